//! What scores of the softmax loss stand for.

/// Probabilities of the classes.
pub fn probabilities(scores: &[f64], out: &mut [f64]) {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (o, s) in out.iter_mut().zip(scores) {
        *o = (s - top).exp();
        sum += *o;
    }
    out.iter_mut().for_each(|o| *o /= sum);
}
