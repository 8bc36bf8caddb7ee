//! Fractional logistic regression for a number between bounds: y in [0, 1] is the number over its range, the score s the log-odds of its mean.
//! ln(1 + e^s) - y s: the logistic loss with y as a soft label. Its minimiser is the mean, because the derivative is sigmoid(s) - y, and predictions never leave the bounds. Labels
//! are 2 y - 1, as for every number.
//!
//! Constants for rows of norm 1: the derivative is at most 1 in size, the second derivative at most 1/4. At s = 0 the value is ln 2.

use super::wide::wide;
use super::{Loss, LossParameters, exact_exp, fast_exp};

/// The loss.
pub fn fractional() -> Loss {
    Loss {
        name: "fractional",
        outputs: 1,
        parameters: Vec::new(),
        values,
        derivatives,
        derivatives_exact: |_, scores, labels, out| {
            for ((o, s), l) in out.iter_mut().zip(scores).zip(labels) {
                *o = 1.0 / (1.0 + exact_exp(-s)) - 0.5 * (f64::from(*l) + 1.0);
            }
        },
        labels: (-1.0, 1.0),
        rank: 1,
        lipschitz: 1.0,
        smoothness: 0.25,
        trace: 0.25,
        at_zero: std::f64::consts::LN_2,
        convex: true,
        starting: None,
    }
}

fn values(_: &LossParameters, scores: &[f64], labels: &[f32], out: &mut [f64]) {
    for ((o, s), l) in out.iter_mut().zip(scores).zip(labels) {
        let y = 0.5 * (f64::from(*l) + 1.0);
        // ln(1 + e^s) - y s, without the overflow of e^s.
        *o = (s.max(0.0) - y * s + (-s.abs()).exp().ln_1p()).max(0.0);
    }
}

wide!(fn derivatives = plain_derivatives, f32);

#[inline(always)]
fn plain_derivatives(_: &LossParameters, scores: &[f32], labels: &[f32], out: &mut [f32]) {
    for ((o, s), l) in out.iter_mut().zip(scores).zip(labels) {
        *o = 1.0 / (1.0 + fast_exp(-s)) - 0.5 * (l + 1.0);
    }
}
