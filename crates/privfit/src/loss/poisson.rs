//! What a score of the Poisson loss stands for.

/// The rate over the bound that a score stands for.
pub fn rate(score: f64) -> f64 {
    score.min(0.0).exp()
}

/// Poisson deviance of a count from a rate: twice the log-likelihood that is missing.
pub fn deviance(count: f64, rate: f64) -> f64 {
    let rate = rate.max(1e-300);
    let fit = if count > 0.0 { count * (count / rate).ln() } else { 0.0 };
    2.0 * (fit - (count - rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice the loss is the deviance.
    #[test]
    fn closed_forms() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let loss = privfit_kernel::loss::poisson();
        for s in [-3.0, -1.0, -0.2, 0.0] {
            let mut value = [0.0];
            loss.values(&[s], &[-0.5], &mut value);
            assert!(close(2.0 * value[0], deviance(0.25, rate(s))), "{s}");
        }
        assert!(close(deviance(0.0, 2.0), 4.0) && close(deviance(3.0, 3.0), 0.0) && rate(5.0) == 1.0);
    }
}
