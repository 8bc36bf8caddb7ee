//! Normal tails and a few numeric tools, accurate in relative terms far into the tails.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI, SQRT_2};
use std::sync::OnceLock;

/// e^(-x^2/2), with the rounding of the square put back: accurate to the last digits however large x is.
pub(crate) fn bell(x: f64) -> f64 {
    let square = x * x;
    if !(square < 1500.0) {
        return (-0.5 * square).exp();
    }
    (-0.5 * square).exp() * (1.0 - 0.5 * x.mul_add(x, -square))
}

/// Density of the standard normal distribution.
pub(crate) fn normal_density(x: f64) -> f64 {
    bell(x) / (2.0 * PI).sqrt()
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

/// Where the continued fraction of the Mills ratio takes over.
const FAR: f64 = 25.0;

/// The rest c of the continued fraction 1/mills = x + c, c = 1/(x + 2/(x + 3/...)), from its 20th term: exact to rounding beyond `FAR`.
fn mills_rest(x: f64) -> f64 {
    let mut fraction = x;
    for k in (2..=20).rev() {
        fraction = x + f64::from(k) / fraction;
    }
    1.0 / fraction
}

/// Mills ratio P(N > x) / density(x), to the last digits; infinite where x is so low that it does not fit.
pub(crate) fn mills(x: f64) -> f64 {
    if x >= FAR {
        return 1.0 / (x + mills_rest(x));
    }
    // 1/sqrt 2 is FRAC_1_SQRT_2 - 4.83e-17. The rounding of the argument, times x, would be seen in the result.
    let t = x * FRAC_1_SQRT_2;
    let missing = x.mul_add(FRAC_1_SQRT_2, -t) - 4.833_646_656_726_457e-17 * x;
    libm::erfc(t) / (bell(x) * FRAC_2_PI.sqrt()) - SQRT_2 * missing
}

/// 1 - x mills(x), the negative derivative of the Mills ratio.
fn mills_derivative(x: f64) -> f64 {
    if x < FAR {
        return 1.0 - x * mills(x);
    }
    let rest = mills_rest(x);
    rest / (x + rest)
}

/// mills(x) - mills(x + step) for a step of at least 0, without cancellation, to about 10 x^2 units in the last place.
pub(crate) fn mills_drop(x: f64, step: f64) -> f64 {
    if step > 1.0 {
        return mills(x) - mills(x + step);
    }
    // The width of the panel is the step itself and not a difference of its rounded ends.
    let half = 0.5 * step;
    half * rule().iter().map(|(node, weight)| weight * mills_derivative(x + half * (1.0 + node))).sum::<f64>()
}

/// Gauss-Legendre rule with 16 points.
pub(crate) fn gauss_legendre(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    half * rule().iter().map(|(x, weight)| weight * f(middle + half * x)).sum::<f64>()
}

/// Points and weights on [-1, 1]: roots of the 16th Legendre polynomial by Newton's method.
pub(crate) fn rule() -> &'static [(f64, f64); 16] {
    static RULE: OnceLock<[(f64, f64); 16]> = OnceLock::new();
    RULE.get_or_init(|| {
        let n = 16usize;
        std::array::from_fn(|i| {
            let mut x = (PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..50 {
                let (mut previous, mut value) = (1.0, x);
                for k in 2..=n {
                    let k = k as f64;
                    (previous, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * previous) / k);
                }
                slope = n as f64 * (x * value - previous) / (x * x - 1.0);
                x -= value / slope;
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        })
    })
}

/// ln of the integral of e^h over [low, infinity) for a concave h with its maximum on that range at `mode`; `scale` is about how far h
/// falls by one there. Panels are laid from the maximum outwards, so narrow that e^h is a polynomial on each of them to 10^-14, until
/// what is left is below 10^-20 of the whole.
pub(crate) fn log_integral(low: f64, mode: f64, scale: f64, h: impl Fn(f64) -> f64) -> f64 {
    let top = h(mode);
    let mut total = 0.0;
    for sign in [1.0, -1.0] {
        let (mut x, mut at, mut width) = (mode, 0.0, scale);
        for _ in 0..4000 {
            let room = if sign < 0.0 { x - low } else { f64::INFINITY };
            if !(room > 0.0) {
                break;
            }
            width = if width < room { width } else { room };
            let mut next = h(x + sign * width) - top;
            while at - next > 6.0 && width > 1e-300 {
                width *= 0.5;
                next = h(x + sign * width) - top;
            }
            let end = x + sign * width;
            if end == x {
                break;
            }
            total += sign * gauss_legendre(x, end, |y| (h(y) - top).exp());
            if at - next < 2.0 {
                width *= 2.0;
            }
            (x, at) = (end, next);
            if at < -46.0 {
                break;
            }
        }
    }
    top + total.ln()
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

/// Where a falling function crosses zero, between a point where it is positive and one where it is not: two such points next to each other.
/// Each is one that was looked at, so that stopping anywhere is safe.
///
/// False position, and half the value of an end that stays (the Illinois method): one value may be a pass over a long list, and the
/// logarithm of a delta is nearly a line.
pub(crate) fn crossing(
    (mut low, mut over): (f64, f64),
    (mut high, mut under): (f64, f64),
    relative: f64,
    f: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let mut stayed = 0;
    for round in 0..200 {
        if high - low <= relative * high {
            break;
        }
        let inside = |x: &f64| *x > low && *x < high;
        let guess = low + over / (over - under) * (high - low);
        let guess = Some(guess).filter(|x| round % 4 != 3 && inside(x));
        let Some(middle) = guess.or(Some(0.5 * (low + high)).filter(inside)) else { break };
        let value = f(middle);
        if value <= 0.0 {
            (high, under) = (middle, value);
            over *= if stayed < 0 { 0.5 } else { 1.0 };
            stayed = -1;
        } else {
            (low, over) = (middle, value);
            under *= if stayed > 0 { 0.5 } else { 1.0 };
            stayed = 1;
        }
    }
    (low, high)
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
        // A line, a curve, a jump, and one that falls to minus infinity.
        let falling: [(f64, fn(f64) -> f64); 4] = [
            (3.0, |x| 3.0 - x),
            (2f64.ln(), |x| (-x).exp() - 0.5),
            (7.0, |x| if x < 7.0 { 1.0 } else { -1e-9 }),
            (5.0, |x| if x < 5.0 { 5.0 - x } else { f64::NEG_INFINITY }),
        ];
        for (truth, f) in falling {
            let (low, high) = crossing((0.0, f(0.0)), (10.0, f(10.0)), 1e-13, f);
            assert!(f(low) > 0.0 && f(high) <= 0.0 && high - low <= 1e-13 * high, "{truth}: {low} {high}");
            assert!(low <= truth && truth <= high + 1e-15, "{truth}: {low} {high}");
        }
    }
}
