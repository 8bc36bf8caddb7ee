//! A matrix that looks like the curvature of a problem, from a few of its rows, so that a minimiser needs few passes. It has no
//! part in any proof: whatever it is, the certificate is on the gradient of the whole problem.

use crate::error::Result;
use crate::loss::Loss;
use crate::query::problem::Objective;
use crate::store::dataset::Dataset;
use crate::store::rows::padded;
use std::ops::Range;

/// Units whose curvature is summed in floating point.
const BLOCK: usize = 512;

/// Most features for which a matrix is worth its cost.
const LARGEST: usize = 600;

/// Something like the curvature, and cheap to divide by.
pub(crate) enum Preconditioner {
    /// Cholesky factors of sum of curvature x x' + ridge, one for each output of d weights.
    Matrix { d: usize, factors: Vec<Vec<f64>> },
    /// Half of the largest curvature of each weight.
    Diagonal(Vec<f64>),
}

impl Objective<'_> {
    /// Some rows that stand for all of them: every so many, so that an order in the file does not matter. None where there are few rows
    /// anyway, or no matrix. Each process gets all of them.
    pub(crate) fn sample(&self) -> Result<Option<Dataset>> {
        let (data, d, rows) = (self.data, self.data.dimension, self.data.total());
        if data.is_sparse() || d > LARGEST || rows < 8192 || self.chosen.is_some() || data.units.is_some() {
            return Ok(None);
        }
        // The error of the curvature falls like sqrt(d / rows).
        let count = (50 * d).max(rows / 32).clamp(2_048, 32_768).min(rows / 4);
        let global = |i: usize| (i as u128 * rows as u128 / count as u128) as usize;
        let before = (0..count).take_while(|i| global(*i) < data.first).count();
        let own = (before..count).map(global).take_while(|row| *row < data.first + data.unit_count());
        let own = data.picked(own.map(|row| row - data.first))?;
        Ok(Some(match self.seam {
            None => own,
            Some(seam) if !seam.divided() => own,
            Some(seam) => own.gathered(before, count, |share| seam.collect(share))?,
        }))
    }
}

impl Preconditioner {
    /// From curvatures at a point, taken over scores `step` to either side; none where there is nothing to gain. Wide steps are for the way: a
    /// loss may have kinks in its derivative, and rows next to one must not count as flat or steep. Narrow ones are for the end, where the
    /// rows have chosen their sides.
    pub(crate) fn at(of: &Objective<'_>, theta: &[f64], step: f64) -> Result<Option<Preconditioner>> {
        let (data, loss, ridge) = (of.data, of.problem.loss, of.problem.ridge);
        let (d, k, unit) = (data.dimension, loss.outputs, data.cell_unit());
        let table = data.table();
        if data.is_sparse() {
            // Squares of cells are below 2^30.
            let add = |unit_count: Range<usize>, out: &mut [i64]| {
                let rows = if unit_count.is_empty() {
                    0..0
                } else {
                    data.rows_of(unit_count.start).start..data.rows_of(unit_count.end - 1).end
                };
                rows.for_each(|row| table.each(row, |j, x| out[j] += i64::from(i32::from(x) * i32::from(x))));
            };
            let squares = of.total(1, d, &add)?;
            let half = 0.5 * loss.smoothness * unit * unit;
            let one = squares.iter().map(|s| ridge + half * *s as f64);
            return Ok(Some(Preconditioner::Diagonal((0..k).flat_map(|_| one.clone()).collect())));
        }
        if d > LARGEST || data.total() == 0 {
            return Ok(None);
        }
        let (weights, wide) = (data.scaled_weights(theta), padded(d));
        // Single precision is enough for the way.
        let exact = step < 0.1;
        // The largest entry that there can be is below 2^60 steps of the grid.
        let most = data.total() as f64 * data.rows_per_unit as f64 * loss.smoothness * data.row_norm * data.row_norm;
        let scale = 2f64.powi((60.0 - most.max(f64::MIN_POSITIVE).log2()).floor() as i32);
        let add = |unit_count: Range<usize>, out: &mut [i64]| {
            let mut tile = CurvatureTile::new(data, loss, &weights, wide, step);
            for start in unit_count.clone().step_by(BLOCK) {
                let end = (start + BLOCK).min(unit_count.end);
                tile.add(data.rows_of(start).start..data.rows_of(end - 1).end, exact, unit, scale, out);
            }
        };
        let total = of.total(BLOCK, k * d * d, &add)?;
        let mut factors = Vec::with_capacity(k);
        for part in total.chunks_exact(d * d) {
            let mut matrix: Vec<f64> = part.iter().map(|x| *x as f64 / scale).collect();
            let trace: f64 = (0..d).map(|j| matrix[j * d + j]).sum();
            // Rounding must not make it indefinite.
            let least = if exact { 1e-15 } else { 1e-7 } * trace;
            (0..d).for_each(|j| matrix[j * d + j] += ridge + least);
            let Some(factor) = cholesky(matrix, d) else { return Ok(None) };
            factors.push(factor);
        }
        Ok(Some(Preconditioner::Matrix { d, factors }))
    }

    /// So many times the curvature.
    pub(crate) fn times(self, weight: f64) -> Preconditioner {
        match self {
            Preconditioner::Matrix { d, mut factors } => {
                let root = weight.sqrt();
                factors.iter_mut().flatten().for_each(|x| *x *= root);
                Preconditioner::Matrix { d, factors }
            }
            Preconditioner::Diagonal(h) => Preconditioner::Diagonal(h.iter().map(|x| x * weight).collect()),
        }
    }

    /// Solves in place.
    pub(crate) fn solve(&self, g: &mut [f64]) {
        match self {
            Preconditioner::Matrix { d, factors } => {
                for (part, factor) in g.chunks_mut(*d).zip(factors) {
                    solve_factored(factor, part);
                }
            }
            Preconditioner::Diagonal(h) => g.iter_mut().zip(h).for_each(|(g, h)| *g /= h),
        }
    }
}

/// Curvature of a block of rows: working memory of one thread.
struct CurvatureTile<'a> {
    data: &'a Dataset,
    loss: &'a Loss,
    weights: &'a [f64],
    /// Weights of one output, with padding.
    wide: usize,
    step: f64,
    single: Vec<f32>,
    double: Vec<f64>,
    matrix: Vec<f32>,
    double_matrix: Vec<f64>,
}

impl<'a> CurvatureTile<'a> {
    fn new(data: &'a Dataset, loss: &'a Loss, weights: &'a [f64], wide: usize, step: f64) -> CurvatureTile<'a> {
        let (single, double, matrix, double_matrix) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        CurvatureTile { data, loss, weights, wide, step, single, double, matrix, double_matrix }
    }

    /// Adds sum of curvature x x' over some rows, on a grid, for each output.
    fn add(&mut self, rows: Range<usize>, exact: bool, unit: f64, scale: f64, out: &mut [i64]) {
        let (d, k, n) = (self.data.dimension, self.loss.outputs, rows.len());
        let (table, labels) = (self.data.table(), &self.data.labels[rows.clone()]);
        let mut at = vec![0f64; n * k];
        for o in 0..k {
            table.scores(rows.clone(), &self.weights[o * self.wide..(o + 1) * self.wide], &mut at[o..], k);
        }
        let (mut above, mut below) = (vec![0f64; n * k], vec![0f64; n * k]);
        for (o, out) in out.chunks_exact_mut(d * d).enumerate() {
            for (by, derivatives) in [(self.step, &mut above), (-self.step, &mut below)] {
                let mut moved = at.clone();
                moved.iter_mut().skip(o).step_by(k).for_each(|s| *s += by);
                self.loss.bounded_derivatives(&moved, labels, derivatives);
            }
            let root = |i: usize| ((above[i * k + o] - below[i * k + o]) / (2.0 * self.step)).max(0.0).sqrt() * unit;
            let stride = d as isize;
            if exact {
                self.double.clear();
                self.double.resize(n * d, 0.0);
                for (i, to) in self.double.chunks_exact_mut(d).enumerate() {
                    table.each(rows.start + i, |j, x| to[j] = root(i) * f64::from(x));
                }
                self.double_matrix.clear();
                self.double_matrix.resize(d * d, 0.0);
                let (from, to) = (self.double.as_ptr(), self.double_matrix.as_mut_ptr());
                // SAFETY: the tile holds n x d numbers, the matrix d x d, with the strides given.
                unsafe { matrixmultiply::dgemm(d, n, d, 1.0, from, 1, stride, from, stride, 1, 0.0, to, stride, 1) };
                out.iter_mut().zip(&self.double_matrix).for_each(|(o, m)| *o = o.wrapping_add((m * scale) as i64));
            } else {
                self.single.clear();
                self.single.resize(n * d, 0.0);
                for (i, to) in self.single.chunks_exact_mut(d).enumerate() {
                    let root = root(i) as f32;
                    table.each(rows.start + i, |j, x| to[j] = root * f32::from(x));
                }
                self.matrix.clear();
                self.matrix.resize(d * d, 0.0);
                let (from, to) = (self.single.as_ptr(), self.matrix.as_mut_ptr());
                // SAFETY: the tile holds n x d numbers, the matrix d x d, with the strides given.
                unsafe { matrixmultiply::sgemm(d, n, d, 1.0, from, 1, stride, from, stride, 1, 0.0, to, stride, 1) };
                out.iter_mut().zip(&self.matrix).for_each(|(o, m)| *o = o.wrapping_add((f64::from(*m) * scale) as i64));
            }
        }
    }
}

/// Lower factor of a positive matrix, row after row; none if it is not positive.
fn cholesky(mut a: Vec<f64>, d: usize) -> Option<Vec<f64>> {
    for i in 0..d {
        for j in 0..=i {
            let (above, row) = a.split_at(i * d);
            let other = if j == i { &row[..j] } else { &above[j * d..j * d + j] };
            let sum = row[j] - row[..j].iter().zip(other).map(|(x, y)| x * y).sum::<f64>();
            if j == i {
                if !(sum > 0.0) {
                    return None;
                }
                a[i * d + i] = sum.sqrt();
            } else {
                a[i * d + j] = sum / a[j * d + j];
            }
        }
    }
    Some(a)
}

fn solve_factored(l: &[f64], x: &mut [f64]) {
    let d = x.len();
    for i in 0..d {
        let sum: f64 = l[i * d..i * d + i].iter().zip(&*x).map(|(a, b)| a * b).sum();
        x[i] = (x[i] - sum) / l[i * d + i];
    }
    for i in (0..d).rev() {
        x[i] /= l[i * d + i];
        let (known, xi) = (&l[i * d..i * d + i], x[i]);
        x.iter_mut().zip(known).for_each(|(x, a)| *x -= a * xi);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_solve() {
        let d = 5;
        let mut a = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                a[i * d + j] = (0..7).map(|k| ((i * 7 + k * 3) % 11) as f64 * ((j * 7 + k * 3) % 11) as f64).sum::<f64>();
            }
            a[i * d + i] += 3.0;
        }
        let truth: Vec<f64> = (0..d).map(|i| i as f64 - 1.5).collect();
        let mut x: Vec<f64> = (0..d).map(|i| (0..d).map(|j| a[i * d + j] * truth[j]).sum()).collect();
        solve_factored(&cholesky(a, d).unwrap(), &mut x);
        assert!(x.iter().zip(&truth).all(|(x, t)| (x - t).abs() < 1e-9), "{x:?}");
        assert!(cholesky(vec![-1.0], 1).is_none());
    }
}
