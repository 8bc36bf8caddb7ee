//! Poisson regression for counts from 0 to a public bound: y in [0, 1] is the count over the bound, the score s the logarithm of
//! the rate over the bound. e^s - y s, less its minimum y - y ln y; beyond s = 0, where the rate would leave the bound, it goes
//! on as its tangent. Labels are 2 y - 1, as for every number whose bounds start at 0. Parameters, 0 and 1 if they are left out: where
//! scores begin, and the part c of the bound at which counts are clamped: s stands for score + offset, y for min(y/c, 1).
//!
//! Constants for rows of norm 1: the derivative min(e^s, 1) - y goes from -y to 1 - y, so its size is at most 1; the second derivative
//! is e^s below 0 and nothing beyond, so at most 1. A plain Poisson loss has no bound on either and is not offered. At s = 0 the
//! value is 1 - y + y ln y, which falls in y, so at most 1.

use super::{Loss, LossParameters};
use super::{exact_exp, fast_exp, offset};

/// The loss.
pub fn poisson() -> Loss {
    Loss {
        name: "poisson",
        outputs: 1,
        parameters: Vec::new(),
        values,
        derivatives: |p, scores, labels, out| {
            let (begin, half) = (offset(p, 0) as f32, half(p) as f32);
            for ((o, s), l) in out.iter_mut().zip(scores).zip(labels) {
                *o = fast_exp((s + begin).min(0.0)).min(1.0) - (half * (l + 1.0)).min(1.0);
            }
        },
        derivatives_exact: |p, scores, labels, out| {
            let (begin, half) = (offset(p, 0), half(p));
            for ((o, s), l) in out.iter_mut().zip(scores).zip(labels) {
                *o = exact_exp((s + begin).min(0.0)).min(1.0) - (half * (f64::from(*l) + 1.0)).min(1.0);
            }
        },
        labels: (-1.0, 1.0),
        rank: 1,
        lipschitz: 1.0,
        smoothness: 1.0,
        trace: 1.0,
        at_zero: 1.0,
        convex: true,
        starting: Some(starting_at),
    }
}

/// Scores begin at this or above.
pub const LOWEST: f64 = -6.0;

/// Half of the bound over where counts are clamped.
fn half(p: &LossParameters) -> f64 {
    0.5 / p.get(1).copied().unwrap_or(1.0)
}

/// The same with scores that begin anywhere from `LOWEST` to 0, and counts clamped at this part of the bound. At scores of zero the value
/// e^o - y o - y + y ln y is convex in y: at most 1 for y = 0, and e^o - o - 1 for y = 1.
fn starting_at(loss: &Loss, offset: f64, clamp: f64) -> Loss {
    Loss { parameters: vec![offset, clamp], at_zero: LOWEST.exp() - LOWEST - 1.0, ..loss.clone() }
}

fn values(p: &LossParameters, scores: &[f64], labels: &[f32], out: &mut [f64]) {
    let (begin, half) = (offset(p, 0), half(p));
    for ((o, s), l) in out.iter_mut().zip(scores).zip(labels) {
        let (s, y) = (s + begin, (half * (f64::from(*l) + 1.0)).min(1.0));
        let least = if y > 0.0 { y - y * y.ln() } else { 0.0 };
        // Rounding may leave a hair below zero.
        *o = (s.min(0.0).exp() + s.max(0.0) - y * s - least).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the minimum is at the logarithm of the count, the tangent begins at 0, and twice the loss is the deviance.
    #[test]
    fn closed_forms() {
        let loss = poisson();
        let at = |s: f64, y: f64| {
            let (mut value, mut derivative) = ([0.0], [0.0]);
            (loss.values)(&loss.parameters, &[s], &[(2.0 * y - 1.0) as f32], &mut value);
            (loss.derivatives_exact)(&loss.parameters, &[s], &[(2.0 * y - 1.0) as f32], &mut derivative);
            (value[0], derivative[0])
        };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let (value, derivative) = at(0.25f64.ln(), 0.25);
        assert!(close(value, 0.0) && close(derivative, 0.0), "{value} {derivative}");
        assert!(close(at(0.0, 0.0).0, 1.0) && close(at(0.0, 1.0).0, 0.0) && close(at(0.0, 0.0).1, 1.0));
        assert!(close(at(3.0, 0.5).0, 1.0 + 3.0 - 1.5 - (0.5 + 0.5 * 2f64.ln())) && close(at(3.0, 0.5).1, 0.5));
        assert!(close(at(-40.0, 1.0).1, -1.0) && close(at(-1.0, 0.25).1, (-1f64).exp() - 0.25));
    }
}
