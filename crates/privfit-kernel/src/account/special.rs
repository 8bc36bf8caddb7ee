//! Normal tails and a few numeric tools, accurate in relative terms far into the tails.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Density of the standard normal law.
pub(crate) fn normal_density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// P(N > x).
pub(crate) fn normal_upper(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// ln P(N > x), also where the probability underflows.
pub(crate) fn log_normal_upper(x: f64) -> f64 {
    if x < 25.0 {
        return normal_upper(x).ln();
    }
    -0.5 * x * x - 0.5 * (2.0 * PI).ln() + mills(x).ln()
}

/// Mills ratio P(N > x) / density(x).
pub(crate) fn mills(x: f64) -> f64 {
    if x < 25.0 {
        return normal_upper(x) / normal_density(x);
    }
    // Laplace's continued fraction x + 1/(x + 2/(x + 3/...)) from its 20th term: exact to rounding beyond 25.
    let mut fraction = x;
    for k in (1..=20).rev() {
        fraction = x + f64::from(k) / fraction;
    }
    1.0 / fraction
}

/// ln(e^a + e^b).
pub(crate) fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// ln of the binomial coefficient for a real upper argument >= the lower one.
pub(crate) fn log_binomial(n: f64, k: f64) -> f64 {
    libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
}

/// Minimum of a unimodal function on [low, high] by golden section; returns (argument, value).
pub fn golden_minimum(mut low: f64, mut high: f64, rounds: u32, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut fa, mut fb) = (f(a), f(b));
    for _ in 0..rounds {
        if fa <= fb {
            (high, b, fb) = (b, a, fa);
            a = high - ratio * (high - low);
            fa = f(a);
        } else {
            (low, a, fa) = (a, b, fb);
            b = low + ratio * (high - low);
            fb = f(b);
        }
    }
    if fa <= fb { (a, fa) } else { (b, fb) }
}

/// Smallest x in [low, high] with `holds(x)`, for a predicate that is false below and true above.
/// Returns a point where the predicate holds; `high` must satisfy it.
pub(crate) fn smallest(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high || high - low <= 1e-15 * high.abs() {
            break;
        }
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_meet_where_the_formula_changes() {
        let (below, above) = (mills(25.0 - 1e-9), mills(25.0 + 1e-9));
        assert!((below / above - 1.0).abs() < 1e-10, "{below} {above}");
        assert!((log_normal_upper(30.0) - -454.321_243_956_343_9).abs() < 1e-8, "{}", log_normal_upper(30.0));
        assert!((normal_upper(3.0) - 1.349_898_031_630_094_5e-3).abs() < 1e-17);
    }

    #[test]
    fn searches_end_at_the_right_place() {
        let (x, v) = golden_minimum(0.0, 10.0, 80, |x| (x - 3.0).powi(2) + 1.0);
        assert!((x - 3.0).abs() < 1e-6 && (v - 1.0).abs() < 1e-12);
        let root = smallest(0.0, 10.0, |x| x * x >= 2.0);
        assert!(root * root >= 2.0 && root - 2f64.sqrt() < 1e-12);
    }
}
