//! Exact confidence bounds: proportions by Clopper and Pearson, shifts of Gaussians by the non-central t distribution.

use std::f64::consts::FRAC_1_SQRT_2;

/// P(N <= x).
pub fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// The x with P(N <= x) = p, on the tail that does not cancel: by bisection, and by Newton's method from near.
pub fn normal_quantile(p: f64) -> f64 {
    if !(p > 0.0) {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        // 1 - p is exact here.
        return -normal_quantile(1.0 - p);
    }
    let (mut low, mut high) = (-40.0, 0.0);
    for _ in 0..12 {
        let middle = 0.5 * (low + high);
        if normal(middle) < p { low = middle } else { high = middle }
    }
    let mut x = 0.5 * (low + high);
    for _ in 0..3 {
        let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        x -= (normal(x) - p) / density.max(1e-308);
    }
    x.clamp(low, high)
}

/// The regularised incomplete beta function I_x(a, b), by the continued fraction on the side where it converges fast.
pub(crate) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    if x < (a + 1.0) / (a + b + 2.0) {
        front.exp() * fraction(x, a, b) / a
    } else {
        1.0 - front.exp() * fraction(1.0 - x, b, a) / b
    }
}

/// Lentz's evaluation of the continued fraction.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let tiny = 1e-300;
    let safe = |v: f64| if v.abs() < tiny { tiny } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / safe(1.0 - (a + b) * x / (a + 1.0));
    let mut out = d;
    for m in 1..100_000 {
        let m = f64::from(m);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / safe(1.0 + term * d);
            c = safe(1.0 + term / c);
            out *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    out
}

/// P(at least `hits` of `runs`) for a chance p.
pub fn at_least(hits: u64, runs: u64, p: f64) -> f64 {
    match hits {
        0 => 1.0,
        h if h > runs => 0.0,
        h => incomplete_beta(p, h as f64, (runs - h + 1) as f64),
    }
}

fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> (f64, f64) {
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if below(middle) { low = middle } else { high = middle }
    }
    (low, high)
}

/// Clopper-Pearson: a chance is below the first number, or above the second, with a probability of at most alpha each.
pub fn proportion(hits: u64, runs: u64, alpha: f64) -> (f64, f64) {
    let low = if hits == 0 { 0.0 } else { bisect(0.0, 1.0, |p| at_least(hits, runs, p) < alpha).0 };
    // Few misses are few hits of the other kind, so that the bound keeps its relative precision.
    let high = if hits == runs { 1.0 } else { bisect(0.0, 1.0, |p| 1.0 - at_least(hits + 1, runs, p) > alpha).1 };
    (low, high)
}

/// Lower confidence bound on (mean difference) / deviation of two Gaussian samples with one deviation: `statistic` is that ratio as
/// measured, with the pooled deviation of `runs` in each world. Exact: the statistic has a non-central t distribution.
pub fn shift(statistic: f64, runs: u64, alpha: f64) -> f64 {
    if !(statistic > 0.0) || runs < 2 {
        return 0.0;
    }
    let degrees = 2.0 * runs as f64 - 2.0;
    let root = (runs as f64 / 2.0).sqrt();
    let t = statistic * root;
    // P(T >= t) is the mean of P(N >= t s - shift) over s, the pooled deviation over the true one, which has a chi distribution.
    let log_density = |s: f64| {
        let k = degrees;
        (2.0f64).ln() + 0.5 * k * (0.5 * k).ln() - libm::lgamma(0.5 * k) + (k - 1.0) * s.ln() - 0.5 * k * s * s
    };
    let spread = 1.0 / (2.0 * degrees).sqrt();
    let steps = 4000;
    let (from, to) = ((1.0 - 12.0 * spread).max(1e-6), 1.0 + 12.0 * spread);
    let width = (to - from) / f64::from(steps);
    let nodes: Vec<(f64, f64)> = (0..steps)
        .map(|i| {
            let s = from + (f64::from(i) + 0.5) * width;
            (s, log_density(s).exp() * width)
        })
        .collect();
    let tail = |mu: f64| nodes.iter().map(|(s, w)| w * normal(mu * root - t * s)).sum::<f64>();
    if tail(0.0) >= alpha {
        return 0.0;
    }
    bisect(0.0, statistic, |mu| tail(mu) < alpha).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert!((incomplete_beta(0.3, 2.0, 5.0) - 0.579_825).abs() < 1e-9);
        // P(Bin(10, 0.5) >= 8) = 56 / 1024.
        assert!((at_least(8, 10, 0.5) - 56.0 / 1024.0).abs() < 1e-14);
        assert!((normal(1.959_963_984_540_054) - 0.975).abs() < 1e-14);
        assert!((normal_quantile(1e-6) + 4.753_424_308_822_9).abs() < 1e-9);
        let (low, high) = proportion(8, 10, 0.025);
        assert!((low - 0.443_904_5).abs() < 1e-6 && (high - 0.974_789_2).abs() < 1e-6, "{low} {high}");
        let (_, high) = proportion(0, 1000, 1e-6);
        assert!((high - (1.0 - 1e-6f64.powf(1e-3))).abs() < 1e-9);
        assert_eq!(proportion(1000, 1000, 1e-6).1, 1.0);
    }

    /// The edges are where the tail has the asked chance, also for many runs.
    #[test]
    fn proportions_cover() {
        for runs in [20, 300, 20_000] {
            for hits in [1, runs / 3, runs - 1] {
                let (low, high) = proportion(hits, runs, 1e-6);
                assert!((at_least(hits, runs, low) / 1e-6 - 1.0).abs() < 1e-3, "{hits} of {runs}");
                assert!(((1.0 - at_least(hits + 1, runs, high)) / 1e-6 - 1.0).abs() < 1e-3, "{hits} of {runs}");
            }
        }
    }

    /// For many runs the bound is the normal one; and 300 runs in a world see a quarter more than mu 2.
    #[test]
    fn shifts_near_the_normal_distribution() {
        let (mu, runs) = (2.0, 5000u64);
        let error = (2.0 / runs as f64 + mu * mu / (4.0 * runs as f64)).sqrt();
        let expected = mu + normal_quantile(1e-6) * error;
        assert!((shift(mu, runs, 1e-6) - expected).abs() < 0.003, "{} {expected}", shift(mu, runs, 1e-6));
        assert!(shift(2.5, 300, 1e-3) > 2.0 && shift(0.01, 300, 1e-3) == 0.0);
    }
}
