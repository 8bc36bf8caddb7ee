//! A matrix that looks like the curvature of a problem, from a few of its rows, so that a minimiser needs few passes. It has no
//! part in any proof: whatever it is, the certificate is on the gradient of the whole problem.

use crate::query::block_gradient::{cell_unit, padded, scaled_weights, scores};
use crate::store::data::{Dataset, PADDING, Rows};
use crate::query::loss::Loss;

/// Most features for which a matrix is worth its cost.
const LARGEST: usize = 600;

/// Something like the curvature, and cheap to divide by.
pub(crate) enum Preconditioner {
    /// Cholesky factors of sum of curvature x x' + ridge, one for each output of d weights.
    Matrix { d: usize, factors: Vec<Vec<f64>> },
    /// Half of the largest curvature of each weight.
    Diagonal(Vec<f64>),
}

/// Some rows that stand for all of them: every so many, so that an order in the file does not matter. None where there are few rows
/// anyway, or no matrix.
pub(crate) fn sample(data: &Dataset, chosen: Option<&[bool]>) -> Option<Dataset> {
    let Rows::Dense(cells) = &data.rows else { return None };
    let (d, rows) = (data.dimension, data.labels.len());
    if d > LARGEST || rows < 8192 || chosen.is_some() || data.units.is_some() {
        return None;
    }
    // The error of the curvature falls like sqrt(d / rows).
    let count = (50 * d).max(rows / 32).clamp(2_048, 32_768).min(rows / 4);
    let mut picked = Vec::with_capacity(count * d + PADDING);
    let mut labels = Vec::with_capacity(count);
    for i in 0..count {
        let row = (i as u128 * rows as u128 / count as u128) as usize;
        picked.extend_from_slice(&cells[row * d..(row + 1) * d]);
        labels.push(data.labels[row]);
    }
    picked.resize(picked.len() + PADDING, 0);
    Some(Dataset {
        rows: Rows::Dense(picked),
        labels,
        units: None,
        dimension: d,
        row_norm: data.row_norm,
        rows_per_unit: 1,
        id: data.id,
    })
}

impl Preconditioner {
    /// From curvatures at a point, taken over scores `step` to either side, each row counting `weight` times; none where there is
    /// nothing to gain. Wide steps are for the way: a loss may have corners in its slope, and rows next to one must not count as flat
    /// or steep. Narrow ones are for the end, where the rows have chosen their sides.
    pub(crate) fn at(
        data: &Dataset,
        loss: &Loss,
        (weight, ridge): (f64, f64),
        theta: &[f64],
        step: f64,
    ) -> Option<Preconditioner> {
        let (d, k) = (data.dimension, loss.outputs);
        let unit = cell_unit(data);
        let cells = match &data.rows {
            Rows::Sparse(sparse) => {
                let mut squares = vec![0f64; d];
                sparse.cells().for_each(|(j, x)| squares[*j as usize] += f64::from(*x) * f64::from(*x));
                let half = 0.5 * loss.smoothness * unit * unit * weight;
                let one = squares.iter().map(|s| ridge + half * s);
                return Some(Preconditioner::Diagonal((0..k).flat_map(|_| one.clone()).collect()));
            }
            Rows::Dense(cells) => cells,
        };
        let n = data.labels.len();
        if d > LARGEST || n == 0 {
            return None;
        }
        let (weights, wide) = (scaled_weights(data, theta), padded(d));
        let mut at = vec![0f64; n * k];
        for o in 0..k {
            scores(data, 0..n, &weights[o * wide..(o + 1) * wide], &mut at[o..], k);
        }
        let slopes = |at: &[f64]| {
            let mut out = vec![0f64; at.len()];
            loss.bounded_slopes(at, &data.labels, &mut out);
            out
        };
        // Single precision is enough for the way.
        let exact = step < 0.1;
        let mut factors = Vec::with_capacity(k);
        for o in 0..k {
            let shifted = |by: f64| {
                let mut moved = at.clone();
                moved.iter_mut().skip(o).step_by(k).for_each(|s| *s += by);
                slopes(&moved)
            };
            let (above, below) = (shifted(step), shifted(-step));
            let curvature = |row: usize| ((above[row * k + o] - below[row * k + o]) / (2.0 * step)).max(0.0);
            let mut matrix =
                if exact { double_moments(cells, d, n, unit, &curvature) } else { moments(cells, d, n, unit, &curvature) };
            matrix.iter_mut().for_each(|x| *x *= weight);
            let trace: f64 = (0..d).map(|j| matrix[j * d + j]).sum();
            // Rounding must not make it indefinite.
            let least = if exact { 1e-15 } else { 1e-7 } * trace;
            (0..d).for_each(|j| matrix[j * d + j] += ridge + least);
            factors.push(cholesky(matrix, d)?);
        }
        Some(Preconditioner::Matrix { d, factors })
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

/// Sum of curvature x x' in single precision.
fn moments(cells: &[i16], d: usize, n: usize, unit: f64, curvature: &dyn Fn(usize) -> f64) -> Vec<f64> {
    let mut matrix = vec![0f32; d * d];
    let mut tile: Vec<f32> = Vec::new();
    for first in (0..n).step_by(512) {
        let m = 512.min(n - first);
        tile.clear();
        for row in first..first + m {
            let root = (curvature(row).sqrt() * unit) as f32;
            tile.extend(cells[row * d..(row + 1) * d].iter().map(|x| root * f32::from(*x)));
        }
        let (stride, from) = (d as isize, tile.as_ptr());
        // SAFETY: the tile holds m x d numbers, the matrix d x d, with the strides given.
        unsafe { matrixmultiply::sgemm(d, m, d, 1.0, from, 1, stride, from, stride, 1, 1.0, matrix.as_mut_ptr(), stride, 1) };
    }
    matrix.iter().map(|x| f64::from(*x)).collect()
}

/// The same in double precision.
fn double_moments(cells: &[i16], d: usize, n: usize, unit: f64, curvature: &dyn Fn(usize) -> f64) -> Vec<f64> {
    let mut matrix = vec![0f64; d * d];
    let mut tile: Vec<f64> = Vec::new();
    for first in (0..n).step_by(512) {
        let m = 512.min(n - first);
        tile.clear();
        for row in first..first + m {
            let root = curvature(row).sqrt() * unit;
            tile.extend(cells[row * d..(row + 1) * d].iter().map(|x| root * f64::from(*x)));
        }
        let (stride, from) = (d as isize, tile.as_ptr());
        // SAFETY: the tile holds m x d numbers, the matrix d x d, with the strides given.
        unsafe { matrixmultiply::dgemm(d, m, d, 1.0, from, 1, stride, from, stride, 1, 1.0, matrix.as_mut_ptr(), stride, 1) };
    }
    matrix
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
