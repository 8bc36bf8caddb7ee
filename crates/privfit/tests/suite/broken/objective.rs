//! Bug 12: noise with low bits that talk. Objective perturbation releases the minimiser itself: minus the gradient there is the linear
//! term, and that lies on the grid it was drawn from for the true data only. And noise added in floats leaves sums whose last
//! bits depend on the value below. Shipped by every float implementation (Mironov 2012, Haney et al. 2022). Found by the audit of
//! precision. Repaired: output noise that covers what the minimiser gives away.

use super::normal;
use privfit::audit::precision::{Gradient, Inverse, inverse, inverse_rows, on_grid};
use privfit::data::encode::Row;
use privfit::error::Result;
use privfit::kernel::Entropy;

/// Deviation of the linear term, and its grid.
const DEVIATION: f64 = 1.0;
const UNIT: f64 = DEVIATION / (1u64 << 30) as f64;
const RIDGE: f64 = 4.0;

/// Gradient and curvature of the logistic loss with a ridge, labels 0 and 1.
fn derivatives(rows: &[Row], theta: &[f64]) -> (Vec<f64>, [[f64; 3]; 3]) {
    let mut gradient: Vec<f64> = theta.iter().map(|t| RIDGE * t).collect();
    let mut curvature = [[0.0; 3]; 3];
    (0..3).for_each(|j| curvature[j][j] = RIDGE);
    for row in rows {
        let score: f64 = row.dense.iter().zip(theta).map(|(x, t)| x * t).sum();
        let chance = 1.0 / (1.0 + (-score).exp());
        for j in 0..3 {
            gradient[j] += (chance - f64::from(row.label)) * row.dense[j];
            (0..3).for_each(|k| curvature[j][k] += chance * (1.0 - chance) * row.dense[j] * row.dense[k]);
        }
    }
    (gradient, curvature)
}

/// Newton's method to the last bit.
fn minimise(rows: &[Row], linear: &[f64; 3]) -> Vec<f64> {
    let mut theta = vec![0.0; 3];
    for _ in 0..30 {
        let (gradient, a) = derivatives(rows, &theta);
        let g: Vec<f64> = gradient.iter().zip(linear).map(|(g, b)| g + b).collect();
        // Cramer's rule.
        let det = |m: [[f64; 3]; 3]| {
            m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
                + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
        };
        let whole = det(a);
        for j in 0..3 {
            let mut changed = a;
            (0..3).for_each(|i| changed[i][j] = g[i]);
            theta[j] -= det(changed) / whole;
        }
    }
    theta
}

/// The inverse test on the broken form, or on the repaired one, which adds output noise of a millionth.
pub(crate) fn inverse_test(fits: u64, fixed: bool) -> Result<Inverse> {
    let rows = inverse_rows();
    let without = rows[..rows.len() - 1].to_vec();
    let mut words = Entropy::system()?.for_units()?;
    let mut fit = || {
        let linear = [0; 3].map(|_| (DEVIATION * normal(&mut words) / UNIT).round() * UNIT);
        let theta = minimise(&rows, &linear);
        Ok(theta.iter().map(|t| if fixed { t + 1e-6 * normal(&mut words) } else { *t }).collect())
    };
    let (own, other): (Gradient<'_>, Gradient<'_>) = (&|t| derivatives(&rows, t).0, &|t| derivatives(&without, t).0);
    inverse(fits, &mut fit, own, other, UNIT)
}

/// Shares of releases that are off the grid of 2^-53: noise in floats on 0, and on 1. They must be equal, and 0.
pub(crate) fn float_noise(releases: u64) -> Result<(f64, f64)> {
    let mut words = Entropy::system()?.for_units()?;
    let mut off = |value: f64| {
        let hits = (0..releases).filter(|_| !on_grid(value + normal(&mut words), 0.5f64.powi(53))).count();
        hits as f64 / releases as f64
    };
    Ok((off(0.0), off(1.0)))
}
