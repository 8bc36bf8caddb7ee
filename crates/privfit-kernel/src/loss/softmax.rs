//! Softmax loss of K scores: ln(sum of e^s) - s of the label. Parameters: weights of the classes.
//!
//! Constants for rows of norm 1 and weights up to w: the derivative p - e_y has norm at most sqrt(2) w; the second derivative
//! diag(p) - p p' has eigenvalues at most w/2, rank K-1 and a trace of at most w (1 - 1/K).

use super::wide::wide;
use super::{Loss, LossParameters, fast_exp};

/// The loss for as many classes as there are weights.
pub fn softmax(weights: &[f64]) -> Loss {
    let k = weights.len();
    let weight = weights.iter().copied().fold(0.0, f64::max);
    Loss {
        name: "softmax",
        outputs: k,
        parameters: weights.to_vec(),
        values,
        derivatives,
        derivatives_exact,
        labels: (0.0, k as f32 - 1.0),
        rank: (k as u32 - 1).max(1),
        lipschitz: weight * std::f64::consts::SQRT_2,
        smoothness: weight * 0.5,
        trace: weight * (1.0 - 1.0 / k as f64),
        at_zero: weight * (k as f64).ln(),
        convex: true,
        starting: None,
    }
}

fn top(scores: &[f64]) -> f64 {
    scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn values(p: &LossParameters, scores: &[f64], labels: &[f32], out: &mut [f64]) {
    for ((o, s), y) in out.iter_mut().zip(scores.chunks(p.len())).zip(labels) {
        let top = top(s);
        let sum: f64 = s.iter().map(|s| (s - top).exp()).sum();
        let y = *y as usize;
        *o = p[y] * (sum.ln() + (top - s[y]));
    }
}

fn derivatives_exact(p: &LossParameters, scores: &[f64], labels: &[f32], out: &mut [f64]) {
    let k = p.len();
    for ((o, s), y) in out.chunks_mut(k).zip(scores.chunks(k)).zip(labels) {
        probabilities(s, o);
        let y = (*y as usize).min(k - 1);
        o[y] -= 1.0;
        o.iter_mut().for_each(|o| *o *= p[y]);
    }
}

/// Probabilities of the classes.
fn probabilities(scores: &[f64], out: &mut [f64]) {
    let top = top(scores);
    let mut sum = 0.0;
    for (o, s) in out.iter_mut().zip(scores) {
        *o = (s - top).exp();
        sum += *o;
    }
    out.iter_mut().for_each(|o| *o /= sum);
}

wide!(fn derivatives = plain_derivatives, f32);

#[inline(always)]
fn plain_derivatives(p: &LossParameters, scores: &[f32], labels: &[f32], out: &mut [f32]) {
    let k = p.len();
    for (o, s) in out.chunks_exact_mut(k).zip(scores.chunks_exact(k)) {
        let top = s.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        o.iter_mut().zip(s).for_each(|(o, s)| *o = s - top);
    }
    // One long loop over all cells, so that wide instructions are full.
    out.iter_mut().for_each(|o| *o = fast_exp(*o));
    for (o, y) in out.chunks_exact_mut(k).zip(labels) {
        let y = (*y as usize).min(k - 1);
        let weight = p[y] as f32;
        let factor = weight / o.iter().sum::<f32>();
        o.iter_mut().for_each(|o| *o *= factor);
        o[y] -= weight;
    }
}
