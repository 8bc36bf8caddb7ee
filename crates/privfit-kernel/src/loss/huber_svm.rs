//! Support vector machine with a rounded kink of half-width h: with margin m = y s, zero for m > 1 + h, 1 - m for m < 1 - h,
//! and (1 + h - m)^2 / 4h between. Parameters: positive class, h, weight of the others, weight of the positive class.
//!
//! Constants for rows of norm 1 and weight w: derivative at most w, second derivative at most w / 2h.

use super::{Loss, LossParameters};

/// The loss; `positive` is the class that scores speak for.
pub fn huber_svm(positive: usize, classes: usize, width: f64, weights: [f64; 2]) -> Loss {
    let weight = weights[0].max(weights[1]);
    let curvature = weight / (2.0 * width);
    Loss {
        name: "huber-svm",
        outputs: 1,
        parameters: vec![positive as f64, width, weights[0], weights[1]],
        values: |p, s, y, out| super::by_margin(p, s, y, out, value),
        derivatives: |p, s, y, out| super::by_margin_fast(p, s, y, out, derivative),
        derivatives_exact: |p, s, y, out| super::by_margin_derivative(p, s, y, out, derivative),
        labels: (0.0, classes as f32 - 1.0),
        rank: 1,
        lipschitz: weight,
        smoothness: curvature,
        trace: curvature,
        at_zero: weight * (1.0 + width),
        convex: true,
        starting: None,
    }
}

fn value(p: &LossParameters, m: f64) -> f64 {
    let h = p[1];
    if m > 1.0 + h {
        0.0
    } else if m < 1.0 - h {
        1.0 - m
    } else {
        (1.0 + h - m).powi(2) / (4.0 * h)
    }
}

fn derivative(p: &LossParameters, m: f64) -> f64 {
    -((1.0 + p[1] - m) / (2.0 * p[1])).max(0.0).min(1.0)
}
