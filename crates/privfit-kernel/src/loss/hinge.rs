//! Support vector machine: max(0, 1 - m) of the margin m = y s. Not smooth, so it is for noisy gradients only.
//! Parameters: positive class, unused, weight of the others, weight of the positive class.
//!
//! Constants for rows of norm 1 and weight w: derivative at most w, no bound on the second derivative.

use super::Loss;

/// The loss; `positive` is the class that scores speak for.
pub fn hinge(positive: usize, classes: usize, weights: [f64; 2]) -> Loss {
    let weight = weights[0].max(weights[1]);
    Loss {
        name: "hinge",
        outputs: 1,
        parameters: vec![positive as f64, 0.0, weights[0], weights[1]],
        values: |p, s, y, out| super::by_margin(p, s, y, out, |_, m| (1.0 - m).max(0.0)),
        derivatives: |p, s, y, out| super::by_margin_fast(p, s, y, out, |_, m| if m < 1.0 { -1.0 } else { 0.0 }),
        derivatives_exact: |p, s, y, out| super::by_margin_derivative(p, s, y, out, |_, m| if m < 1.0 { -1.0 } else { 0.0 }),
        labels: (0.0, classes as f32 - 1.0),
        rank: 1,
        lipschitz: weight,
        smoothness: f64::INFINITY,
        trace: f64::INFINITY,
        at_zero: weight,
        convex: true,
        starting: None,
    }
}
