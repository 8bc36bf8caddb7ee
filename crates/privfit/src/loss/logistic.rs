//! What a score of the clipped logistic loss stands for.

/// Probability of the positive class that a score stands for: where the expected derivative is zero.
pub fn probability(clip: f64, score: f64) -> f64 {
    let derivative = |m: f64| (1.0 / (1.0 + m.exp())).min(clip);
    let (up, down) = (derivative(score), derivative(-score));
    down / (up + down)
}

#[cfg(test)]
mod tests {
    use super::*;
    use privfit_kernel::loss::logistic;

    /// The expected derivative at the score is zero under the probability: so it is calibrated.
    #[test]
    fn probabilities_are_where_the_derivative_vanishes() {
        for clip in [1.0, 0.5, 0.3] {
            for s in [-8.0, -1.0, -0.1, 0.0, 0.4, 3.0] {
                let p = probability(clip, s);
                let loss = logistic(1, 2, clip, [1.0, 1.0]);
                let mut derivatives = [0.0; 2];
                loss.derivatives(&[s, s], &[0.0, 1.0], &mut derivatives);
                assert!((p * derivatives[1] + (1.0 - p) * derivatives[0]).abs() < 1e-12, "{clip} {s} {p}");
            }
        }
        assert!((probability(1.0, 2.0) - 1.0 / (1.0 + (-2f64).exp())).abs() < 1e-15);
    }
}
