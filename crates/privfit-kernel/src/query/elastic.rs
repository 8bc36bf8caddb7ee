//! Minimisation with an L1 term: proximal steps with momentum, and a certificate on the shortest subgradient.
//!
//! The sum of losses with its ridge is strongly convex, and stays so when `lasso` |theta|_1 is added. If some subgradient at theta has
//! a norm of at most tau, theta is within tau / ridge of the minimiser: the same certificate as without the L1 term. Steps of
//! 1 / smoothness contract by 1 - ridge/smoothness at least, and the ridge that privacy asks for is large, so few are needed.

use crate::error::{Error, Result};
use crate::query::problem::Objective;

/// Moves towards zero by `by`, and stops there.
fn shrink(x: f64, by: f64) -> f64 {
    x.signum() * (x.abs() - by).max(0.0)
}

/// Norm of the shortest subgradient, rounded up by more than its float error.
fn shortest(theta: &[f64], gradient: &[f64], lasso: f64) -> f64 {
    let square = |(w, g): (&f64, &f64)| if *w == 0.0 { shrink(*g, lasso) } else { g + lasso * w.signum() }.powi(2);
    theta.iter().zip(gradient).map(square).sum::<f64>().sqrt() * (1.0 + (theta.len() as f64 + 8.0) * f64::EPSILON)
}

impl Objective<'_> {
    /// A point whose shortest subgradient is at most the tolerance.
    pub(crate) fn solve_elastic(&self, lasso: f64) -> Result<Vec<f64>> {
        let limits = self.limits();
        // The subgradient adds one rounding of the L1 term to each coordinate.
        let floor = limits.floor() + 4.0 * f64::EPSILON * lasso * (self.dimension() as f64).sqrt();
        let tolerance = self.problem.tolerance;
        if tolerance < 4.0 * floor {
            return Err(Error::domain("tolerance", tolerance, "give at least four times the rounding floor of the gradient"));
        }
        let rows = self.data.total() as f64 * self.data.rows_per_unit as f64;
        let smooth = rows * self.problem.loss.smoothness * self.data.row_norm.powi(2) + self.problem.ridge;
        let root = (self.problem.ridge / smooth).sqrt();
        let momentum = (1.0 - root) / (1.0 + root);
        let radius = limits.radius();
        let start = smooth * 2.0 * radius / tolerance;
        let most = (8.0 / root * start.ln().max(1.0)).ceil() as u64 + 100;
        let mut theta = vec![0f64; self.dimension()];
        let mut ahead = theta.clone();
        for _ in 0..most {
            let gradient = self.gradient(&ahead)?;
            let step = |(w, g): (&f64, &f64)| shrink(w - g / smooth, lasso / smooth);
            let mut next: Vec<f64> = ahead.iter().zip(&gradient).map(step).collect();
            let length = next.iter().map(|w| w * w).sum::<f64>().sqrt();
            if length > 0.5 * radius {
                // The minimiser is not longer than that.
                next.iter_mut().for_each(|w| *w *= 0.5 * radius / length);
            }
            let there = self.gradient(&next)?;
            if shortest(&next, &there, lasso) + floor <= tolerance {
                return Ok(next);
            }
            ahead = next.iter().zip(&theta).map(|(n, t)| n + momentum * (n - t)).collect();
            theta = next;
        }
        Err(Error::Mismatch { what: "the certificate of the minimiser does not hold" })
    }
}
