//! Logistic loss, ln(1 + e^-m) of the margin m = y s, with derivatives clipped at `clip`.
//!
//! A derivative of size 1 belongs to a record on the wrong side; beyond the margin where the derivative reaches `clip` the loss goes on as
//! its tangent. It stays convex and smooth, one record moves a gradient by `clip` instead of 1, and the noise falls with it.
//! `clip = 1` is the plain loss. Parameters: positive class, clip, weight of the others, weight of the positive class.
//!
//! Constants for rows of norm 1 and weight w: derivative at most w clip, second derivative at most w/4 (w c (1-c) where c < 1/2).

use super::wide::wide;
use super::{Loss, LossParameters, exact_exp, fast_exp};

/// The loss; `positive` is the class that scores speak for.
pub fn logistic(positive: usize, classes: usize, clip: f64, weights: [f64; 2]) -> Loss {
    let weight = weights[0].max(weights[1]);
    let curvature = if clip < 0.5 { clip * (1.0 - clip) } else { 0.25 };
    Loss {
        name: "logistic",
        outputs: 1,
        parameters: vec![positive as f64, clip, weights[0], weights[1]],
        values,
        derivatives,
        derivatives_exact,
        labels: (0.0, classes as f32 - 1.0),
        rank: 1,
        lipschitz: weight * clip,
        smoothness: weight * curvature,
        trace: weight * curvature,
        at_zero: weight * std::f64::consts::LN_2,
        convex: true,
        starting: None,
    }
}

fn values(p: &LossParameters, scores: &[f64], labels: &[f32], out: &mut [f64]) {
    let clip = p[1];
    // The margin where the derivative reaches the clip.
    let edge = if clip < 1.0 { (1.0 / clip - 1.0).ln() } else { f64::NEG_INFINITY };
    for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
        let positive = f64::from(*y) == p[0];
        let margin = if positive { *s } else { -s };
        let plain = |m: f64| (-m).max(0.0) + (-m.abs()).exp().ln_1p();
        let value = if margin >= edge { plain(margin) } else { plain(edge) + clip * (edge - margin) };
        *o = value * if positive { p[3] } else { p[2] };
    }
}

wide!(fn derivatives_exact = plain_derivatives_exact, f64);

#[inline(always)]
fn plain_derivatives_exact(p: &LossParameters, scores: &[f64], labels: &[f32], out: &mut [f64]) {
    let (positive, [clip, negative_weight, positive_weight]) = (p[0] as f32, [p[1], p[2], p[3]]);
    for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
        let (y, w) = if *y == positive { (1.0, positive_weight) } else { (-1.0, negative_weight) };
        *o = -y * w * (1.0 / (1.0 + exact_exp(s * y))).min(clip);
    }
}

wide!(fn derivatives = plain_derivatives, f32);

#[inline(always)]
fn plain_derivatives(p: &LossParameters, scores: &[f32], labels: &[f32], out: &mut [f32]) {
    let [positive, clip, negative_weight, positive_weight] = [p[0] as f32, p[1] as f32, p[2] as f32, p[3] as f32];
    for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
        let (y, w) = if *y == positive { (1.0, positive_weight) } else { (-1.0, negative_weight) };
        *o = -y * w * (1.0 / (1.0 + fast_exp(s * y))).min(clip);
    }
}
