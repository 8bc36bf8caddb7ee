//! Closed forms in 400 bits: what no rounding of doubles can hide.

use dashu::float::{FBig, round::mode::HalfEven};
use dashu::integer::IBig;
use std::sync::OnceLock;

pub(crate) type Big = FBig<HalfEven, 2>;

const BITS: usize = 400;

/// A double, exactly.
pub(crate) fn big(x: f64) -> Big {
    Big::try_from(x).expect("finite").with_precision(BITS).value()
}

pub(crate) fn small(x: &Big) -> f64 {
    x.to_f64().value()
}

/// An enclosure of a value of which 300 bits are right.
pub(crate) fn around(x: &Big) -> (f64, f64) {
    let x = small(x);
    if x <= 0.0 { (0.0, 0.0) } else { (x * (1.0 - 4e-16), x * (1.0 + 4e-16)) }
}

/// atan(1/n) by its series.
fn arc_cotangent(n: u32) -> Big {
    let (n, mut sum, mut k) = (big(f64::from(n)), big(0.0), 0u32);
    let square = &n * &n;
    let mut power = big(1.0) / n;
    while small(&power) > 1e-140 {
        let term = &power / big(f64::from(2 * k + 1));
        sum = if k % 2 == 0 { sum + term } else { sum - term };
        power /= &square;
        k += 1;
    }
    sum
}

fn root_of_two_pi() -> &'static Big {
    static VALUE: OnceLock<Big> = OnceLock::new();
    VALUE.get_or_init(|| {
        let pi = big(16.0) * arc_cotangent(5) - big(4.0) * arc_cotangent(239);
        (big(2.0) * pi).sqrt()
    })
}

fn density(x: &Big) -> Big {
    (-(x * x) / big(2.0)).exp() / root_of_two_pi()
}

/// P(N > x): a power series near 0, Laplace's continued fraction far out.
pub(crate) fn normal_upper(x: &Big) -> Big {
    let at = small(x);
    if at < 0.0 {
        return big(1.0) - normal_upper(&-x.clone());
    }
    if at < 10.0 {
        let square = x * x;
        let (mut term, mut sum, mut n) = (x.clone(), x.clone(), 0u32);
        while small(&term).abs() > 1e-120 {
            n += 1;
            term = -(&term * &square) / big(f64::from(2 * n));
            sum += &term / big(f64::from(2 * n + 1));
        }
        return big(0.5) - sum / root_of_two_pi();
    }
    let mut fraction = x.clone();
    for k in (1..=300).rev() {
        fraction = x + big(f64::from(k)) / fraction;
    }
    density(x) / fraction
}

/// delta(epsilon) of a Gaussian shift, epsilon and mu as big numbers.
pub(crate) fn gaussian(epsilon: &Big, mu: &Big) -> Big {
    let half = mu / big(2.0);
    let near = epsilon / mu - &half;
    let far = epsilon / mu + half;
    normal_upper(&near) - epsilon.exp() * normal_upper(&far)
}

/// Mean of (1 - e^(e - mu W))+ for W chi-distributed with k degrees, by the recurrence of its incomplete moments
/// I_k = w^(k-2) e^(-w^2/2 - m w) + (k-2) I_(k-2) - m I_(k-1), which is unstable and does not matter here.
pub(crate) fn chi_hockey_stick(degrees: u32, mu: f64, e: &Big) -> Big {
    let m = big(mu);
    let w = if small(e) > 0.0 { e / &m } else { big(0.0) };
    let tail = |m: &Big| -> Big {
        let shifted = &w + m;
        let first = (m * m / big(2.0)).exp() * root_of_two_pi() * normal_upper(&shifted);
        let edge = (-(&w * &w) / big(2.0) - m * &w).exp();
        let second = &edge - m * &first;
        if degrees == 1 {
            return first;
        }
        let (mut before, mut last, mut power) = (first, second, big(1.0));
        for k in 3..=degrees {
            power *= &w;
            let next = &power * &edge + big(f64::from(k - 2)) * before - m * &last;
            (before, last) = (last, next);
        }
        last
    };
    // The norm 2^(k/2-1) Gamma(k/2) is the whole integral at m = 0.
    let norm = {
        let (mut one, mut two) = (root_of_two_pi() / big(2.0), big(1.0));
        for k in 3..=degrees {
            (one, two) = (two.clone(), big(f64::from(k - 2)) * one);
        }
        if degrees == 1 { one } else { two }
    };
    (tail(&big(0.0)) - e.exp() * tail(&m)) / norm
}

/// k randomised responses of epsilon, each revealing everything with probability delta: enumeration.
pub(crate) fn responses(one: f64, delta: f64, count: u64, epsilon: f64) -> Big {
    let (e, d) = (big(one), big(delta));
    let keep = e.exp() / (big(1.0) + e.exp());
    let flip = big(1.0) - &keep;
    let rest = (big(1.0) - &d).powi(IBig::from(count));
    let mut sum = big(0.0);
    let mut term = keep.powi(IBig::from(count));
    for flips in 0..=count {
        let loss = &e * big(count as f64 - 2.0 * flips as f64);
        let above = big(1.0) - (big(epsilon) - &loss).exp();
        if small(&above) <= 0.0 {
            break;
        }
        sum += &term * above;
        term = term * &flip / &keep * big((count - flips) as f64) / big(flips as f64 + 1.0);
    }
    big(1.0) - &rest + rest * sum
}
