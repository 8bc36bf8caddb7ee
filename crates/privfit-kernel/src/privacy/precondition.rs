//! A matrix that looks like the curvature of a problem, from a few of its rows, so that a minimiser needs few passes. It has no
//! part in any proof: whatever it is, the certificate is on the gradient of the whole problem.

use super::block_gradient::{cell_unit, scores};
use super::data::{Dataset, Rows};
use super::loss::Loss;

/// Most features for which a matrix is worth its cost.
const LARGEST: usize = 600;

/// Cholesky factors of sum of curvature x x' + ridge, one for each output.
pub(crate) struct Preconditioner {
    d: usize,
    factors: Vec<Vec<f64>>,
}

/// Rows that stand for all of them: every so many, so that an order in the file does not matter.
fn sample(data: &Dataset, count: usize) -> (Vec<usize>, f64) {
    let rows = data.labels.len();
    let count = count.min(rows);
    let picked = (0..count).map(|i| (i as u128 * rows as u128 / count as u128) as usize).collect();
    (picked, rows as f64 / count.max(1) as f64)
}

/// Rows enough for a good matrix: the error of the curvature falls like sqrt(d / rows).
fn sample_size(d: usize) -> usize {
    (100 * d).clamp(2_048, 32_768)
}

impl Preconditioner {
    /// From curvatures at a point; none where a matrix does not pay.
    pub(crate) fn at(data: &Dataset, loss: &Loss, ridge: f64, theta: &[f64]) -> Option<Preconditioner> {
        let (d, k) = (data.dimension, loss.outputs);
        let Rows::Dense(cells) = &data.rows else { return None };
        if d > LARGEST || data.labels.len() < 4 * d {
            return None;
        }
        let (rows, weight) = sample(data, sample_size(d));
        let unit = cell_unit(data);
        let weights: Vec<f64> = theta.iter().map(|w| w * unit).collect();
        let mut at = vec![0f64; rows.len() * k];
        for (i, row) in rows.iter().enumerate() {
            for o in 0..k {
                scores(data, *row..row + 1, &weights[o * d..(o + 1) * d], &mut at[i * k + o..], 1);
            }
        }
        let labels: Vec<f32> = rows.iter().map(|r| data.labels[*r]).collect();
        let slopes = |at: &[f64]| {
            let mut out = vec![0f64; at.len()];
            loss.bounded_slopes(at, &labels, &mut out);
            out
        };
        let base = slopes(&at);
        let step = 1e-3;
        let mut factors = Vec::with_capacity(k);
        let mut tile = Vec::new();
        for o in 0..k {
            let mut moved = at.clone();
            moved.iter_mut().skip(o).step_by(k).for_each(|s| *s += step);
            let moved = slopes(&moved);
            let mut matrix = vec![0f32; d * d];
            for (chunk, part) in rows.chunks(512).enumerate() {
                tile.clear();
                for (i, row) in part.iter().enumerate() {
                    let i = (chunk * 512 + i) * k + o;
                    let curvature = ((moved[i] - base[i]) / step).max(0.0);
                    let root = (curvature.sqrt() * unit) as f32;
                    tile.extend(cells[row * d..(row + 1) * d].iter().map(|x| root * f32::from(*x)));
                }
                let (m, rsc) = (part.len(), d as isize);
                // SAFETY: the tile holds m x d numbers, the matrix d x d, with the strides given.
                unsafe {
                    let tile = tile.as_ptr();
                    matrixmultiply::sgemm(d, m, d, 1.0, tile, 1, rsc, tile, rsc, 1, 1.0, matrix.as_mut_ptr(), rsc, 1);
                }
            }
            let mut matrix: Vec<f64> = matrix.iter().map(|x| f64::from(*x) * weight).collect();
            let trace: f64 = (0..d).map(|j| matrix[j * d + j]).sum();
            // Rounding of single precision must not make it indefinite.
            (0..d).for_each(|j| matrix[j * d + j] += ridge + 1e-6 * trace);
            factors.push(cholesky(matrix, d)?);
        }
        Some(Preconditioner { d, factors })
    }

    /// Solves in place.
    pub(crate) fn solve(&self, g: &mut [f64]) {
        for (part, factor) in g.chunks_mut(self.d).zip(&self.factors) {
            solve_factored(factor, part);
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
