//! Dominating pairs as tails of the privacy loss L = ln(P/Q), the one form in which the loss-distribution accountant
//! wants every mechanism. delta(epsilon) = P(L > epsilon) - e^epsilon Q(L > epsilon).
//!
//! Both tails are given, so that the mass of a narrow cell is a difference of small numbers on either side.

use super::checked::probability_at_most;
use super::special::normal_upper;

/// (probability under P, probability under Q).
pub(crate) type Pair = (f64, f64);

/// Tails of a privacy loss; P's tail above includes an infinite loss, Q's tail below includes minus infinity.
pub(crate) trait Profile: Sync {
    /// (P(L > e), Q(L > e)).
    fn above(&self, e: f64) -> Pair;
    /// (P(L <= e), Q(L <= e)).
    fn below(&self, e: f64) -> Pair;
    /// P(L = infinity).
    fn infinite(&self) -> f64 {
        0.0
    }
    /// Whether exchanging P and Q gives the same curve.
    fn symmetric(&self) -> bool {
        true
    }
    /// A loss that carries mass of its own, or divides all that do; the grid is laid through it.
    fn atom(&self) -> Option<f64> {
        None
    }
    /// Relative error of the tails.
    fn slack(&self) -> f64 {
        1e-14
    }
    /// delta(epsilon).
    fn delta(&self, e: f64) -> f64 {
        let (p, q) = self.above(e);
        // In logarithms, because e^e may not fit where Q is small enough.
        probability_at_most(p - (e + q.ln()).exp())
    }
}

fn swap(pair: Pair) -> Pair {
    (pair.1, pair.0)
}

/// P and Q exchanged.
pub(crate) struct Reversed<'a>(pub(crate) &'a dyn Profile);

impl Profile for Reversed<'_> {
    fn above(&self, e: f64) -> Pair {
        swap(self.0.below(-e))
    }
    fn below(&self, e: f64) -> Pair {
        swap(self.0.above(-e))
    }
    fn infinite(&self) -> f64 {
        self.0.below(f64::MIN / 4.0).1
    }
    fn symmetric(&self) -> bool {
        self.0.symmetric()
    }
    fn atom(&self) -> Option<f64> {
        self.0.atom()
    }
}

/// Two unit Gaussians at distance `mu`.
pub(crate) struct Shift {
    pub(crate) mu: f64,
}

impl Profile for Shift {
    fn above(&self, e: f64) -> Pair {
        let x = e / self.mu;
        (normal_upper(x - 0.5 * self.mu), normal_upper(x + 0.5 * self.mu))
    }
    fn below(&self, e: f64) -> Pair {
        let x = e / self.mu;
        (normal_upper(0.5 * self.mu - x), normal_upper(-x - 0.5 * self.mu))
    }
    fn delta(&self, e: f64) -> f64 {
        super::gdp::gaussian_delta(e, self.mu).upper
    }
}

/// Two Laplace distributions at distance `epsilon` scales.
pub(crate) struct LaplaceShift {
    pub(crate) epsilon: f64,
}

impl Profile for LaplaceShift {
    fn above(&self, e: f64) -> Pair {
        if e >= self.epsilon {
            (0.0, 0.0)
        } else if e < -self.epsilon {
            (1.0, 1.0)
        } else {
            (1.0 - 0.5 * (0.5 * (e - self.epsilon)).exp(), 0.5 * (-0.5 * (e + self.epsilon)).exp())
        }
    }
    fn below(&self, e: f64) -> Pair {
        if e >= self.epsilon {
            (1.0, 1.0)
        } else if e < -self.epsilon {
            (0.0, 0.0)
        } else {
            (0.5 * (0.5 * (e - self.epsilon)).exp(), 1.0 - 0.5 * (-0.5 * (e + self.epsilon)).exp())
        }
    }
    fn atom(&self) -> Option<f64> {
        Some(self.epsilon)
    }
    fn delta(&self, e: f64) -> f64 {
        if e >= self.epsilon {
            0.0
        } else if e < -self.epsilon {
            -e.exp_m1()
        } else {
            -(0.5 * (e - self.epsilon)).exp_m1()
        }
    }
}

/// The worst mechanism with (epsilon, delta): randomised response, and with probability delta everything.
pub(crate) struct Response {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
}

impl Profile for Response {
    fn above(&self, e: f64) -> Pair {
        let (keep, rest) = (1.0 / (1.0 + (-self.epsilon).exp()), 1.0 - self.delta);
        if e >= self.epsilon {
            (self.delta, 0.0)
        } else if e >= -self.epsilon {
            (self.delta + rest * keep, rest / (1.0 + self.epsilon.exp()))
        } else {
            (1.0, rest)
        }
    }
    fn below(&self, e: f64) -> Pair {
        let (keep, rest) = (1.0 / (1.0 + (-self.epsilon).exp()), 1.0 - self.delta);
        if e >= self.epsilon {
            (rest, 1.0)
        } else if e >= -self.epsilon {
            (rest / (1.0 + self.epsilon.exp()), self.delta + rest * keep)
        } else {
            (0.0, self.delta)
        }
    }
    fn infinite(&self) -> f64 {
        self.delta
    }
    fn atom(&self) -> Option<f64> {
        Some(self.epsilon)
    }
}

/// The exponential mechanism with losses in a window of width `range`: the supremum over all positions of the window of
/// two-point pairs, delta(e) = (e^(range/2) - e^(e/2))^2 / (e^range - 1). The symmetric two-point pair is not dominating.
pub(crate) struct BoundedRange {
    pub(crate) range: f64,
}

impl Profile for BoundedRange {
    fn above(&self, e: f64) -> Pair {
        let r = self.range;
        if e >= r {
            (0.0, 0.0)
        } else if e < -r {
            (1.0, 1.0)
        } else {
            ((0.5 * (e - r)).exp_m1() / (-r).exp_m1(), (0.5 * (r - e)).exp_m1() / r.exp_m1())
        }
    }
    fn below(&self, e: f64) -> Pair {
        let r = self.range;
        if e >= r {
            (1.0, 1.0)
        } else if e < -r {
            (0.0, 0.0)
        } else {
            ((0.5 * (e + r)).exp_m1() / r.exp_m1(), (-0.5 * (e + r)).exp_m1() / (-r).exp_m1())
        }
    }
}

/// Mixture (1-q) Q + q P against Q: a record that is present with probability q, then absent. Its reversal is the other
/// direction. Holds for the dominating pair of any base mechanism.
pub(crate) struct Amplified<B> {
    pub(crate) base: B,
    pub(crate) rate: f64,
}

impl<B: Profile> Amplified<B> {
    /// ln(1 + (e^e - 1)/q), or nothing where every outcome has a larger loss.
    fn inner(&self, e: f64) -> Option<f64> {
        if e > 30.0 {
            return Some(e - self.rate.ln() + (-(1.0 - self.rate) * (-e).exp()).ln_1p());
        }
        let gap = e.exp_m1() / self.rate;
        (gap > -1.0).then(|| gap.ln_1p())
    }
    fn mix(&self, (p, q): Pair) -> Pair {
        (q + self.rate * (p - q), q)
    }
}

impl<B: Profile> Profile for Amplified<B> {
    fn above(&self, e: f64) -> Pair {
        // Below ln(1-q) lies nothing: where P has no mass, the mixture still has 1-q times that of Q.
        self.inner(e).map_or((1.0, 1.0), |i| self.mix(self.base.above(i)))
    }
    fn below(&self, e: f64) -> Pair {
        self.inner(e).map_or((0.0, 0.0), |i| self.mix(self.base.below(i)))
    }
    fn infinite(&self) -> f64 {
        self.rate * self.base.infinite()
    }
    fn symmetric(&self) -> bool {
        false
    }
}

/// The pointwise maximum of a profile and its reversal, for adversaries that pick the direction anew at each step: the
/// profile itself from 0 upwards, its reflection below.
pub(crate) struct Symmetrised<B>(pub(crate) B);

impl<B: Profile> Profile for Symmetrised<B> {
    fn above(&self, e: f64) -> Pair {
        if e >= 0.0 {
            return self.0.above(e);
        }
        let (p, q) = self.0.above(-e);
        (1.0 - q, 1.0 - p)
    }
    fn below(&self, e: f64) -> Pair {
        if e >= 0.0 { self.0.below(e) } else { swap(self.0.above(-e)) }
    }
    fn infinite(&self) -> f64 {
        self.0.infinite()
    }
}

/// Poisson-sampled Gaussian under replace-one: (1-q)N(0)+qN(1) against (1-q)N(0)+qN(1-factor), standard deviation `noise`.
/// Symmetric for factor 2; for other factors it is used inside `Symmetrised`.
pub(crate) struct ReplacedMixture {
    pub(crate) rate: f64,
    pub(crate) noise: f64,
    pub(crate) factor: f64,
}

impl ReplacedMixture {
    fn loss(&self, x: f64) -> f64 {
        let inverse = 1.0 / (self.noise * self.noise);
        let part = |shift: f64| {
            let exponent = (x * shift - 0.5 * shift * shift) * inverse;
            super::special::log_add((-self.rate).ln_1p(), self.rate.ln() + exponent)
        };
        part(1.0) - part(1.0 - self.factor)
    }

    /// The point whose loss is e: the loss increases in x.
    fn point(&self, e: f64) -> f64 {
        if self.factor == 2.0 {
            // q k u^2 + (1-q)(1-a) u - a q k = 0 in u = e^(x/noise^2), k = e^(-1/(2 noise^2)), a = e^e.
            let square = self.noise * self.noise;
            let b = -(1.0 - self.rate) * e.exp_m1() / self.rate * (0.5 / square).exp();
            if b.is_finite() && b.abs() < 1e150 {
                let root = (b * b + 4.0 * e.exp()).sqrt();
                let u = if b > 0.0 { 2.0 * e.exp() / (b + root) } else { 0.5 * (root - b) };
                return square * u.ln();
            }
        }
        let (mut low, mut high) = (-1.0, 1.0);
        while self.loss(low) > e {
            low *= 2.0;
        }
        while self.loss(high) < e {
            high *= 2.0;
        }
        // Newton's method inside of a bracket.
        let mut x = 0.5 * (low + high);
        for _ in 0..60 {
            let (value, derivative) = self.loss_and_derivative(x);
            if value <= e {
                low = x
            } else {
                high = x
            }
            let newton = x - (value - e) / derivative;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            let done = (next - x).abs() <= 1e-15 * (1.0 + x.abs()) || high - low <= 1e-15 * (1.0 + x.abs());
            x = next;
            if done {
                break;
            }
        }
        x
    }

    /// The loss at x and its derivative.
    fn loss_and_derivative(&self, x: f64) -> (f64, f64) {
        let inverse = 1.0 / (self.noise * self.noise);
        let odds = self.rate.ln() - (-self.rate).ln_1p();
        // ln(1 - q + q e^u) and its derivative in x: the share of the second part, times the shift.
        let part = |shift: f64| {
            let u = odds + (x * shift - 0.5 * shift * shift) * inverse;
            let value = if u > 0.0 { u + (-u).exp().ln_1p() } else { u.exp().ln_1p() };
            (value, shift * inverse / (1.0 + (-u).exp()))
        };
        let (high, low) = (part(1.0), part(1.0 - self.factor));
        (high.0 - low.0, high.1 - low.1)
    }

    fn tails(&self, e: f64, sign: f64) -> Pair {
        let x = self.point(e);
        let tail = |centre: f64| normal_upper(sign * (x - centre) / self.noise);
        let rest = (1.0 - self.rate) * tail(0.0);
        (rest + self.rate * tail(1.0), rest + self.rate * tail(1.0 - self.factor))
    }
}

impl Profile for ReplacedMixture {
    fn above(&self, e: f64) -> Pair {
        self.tails(e, 1.0)
    }
    fn below(&self, e: f64) -> Pair {
        self.tails(e, -1.0)
    }
    fn symmetric(&self) -> bool {
        self.factor == 2.0
    }
}

/// One coordinate of exact discrete Gaussian noise, shifted by a whole number: sums of its own probabilities.
pub(crate) struct DiscreteShift {
    sigma: f64,
    shift: f64,
    /// `tail[i]` = P(X >= i - offset), from the centred distribution.
    tail: Vec<f64>,
    offset: i64,
}

impl DiscreteShift {
    /// Largest sigma for which the table is built.
    pub(crate) const LARGEST: u64 = 2048;

    pub(crate) fn new(sigma: u64, shift: u64) -> DiscreteShift {
        let sigma = sigma as f64;
        let offset = (39.0 * sigma).ceil() as i64 + 1;
        let weight = |x: i64| (-0.5 * (x as f64 / sigma).powi(2)).exp();
        let mut tail = vec![0.0; 2 * offset as usize + 1];
        let mut sum = 0.0;
        for (i, cell) in tail.iter_mut().enumerate().rev() {
            sum += weight(i as i64 - offset);
            *cell = sum;
        }
        tail.iter_mut().for_each(|t| *t /= sum);
        DiscreteShift { sigma, shift: shift as f64, tail, offset }
    }

    /// P(X >= x) of the centred distribution.
    fn at_least(&self, x: i64) -> f64 {
        let i = x.saturating_add(self.offset);
        if i <= 0 { 1.0 } else { self.tail.get(i as usize).copied().unwrap_or(0.0) }
    }

    /// The first integer whose loss (2 x shift - shift^2) / (2 sigma^2) exceeds e, P being the shifted distribution.
    fn first(&self, e: f64) -> i64 {
        let loss = |x: i64| (2.0 * x as f64 * self.shift - self.shift * self.shift) / (2.0 * self.sigma * self.sigma);
        // Beyond the table every tail is 0 or 1 anyway.
        let far = self.offset as f64 + self.shift + 2.0;
        let edge = ((2.0 * self.sigma * self.sigma * e + self.shift * self.shift) / (2.0 * self.shift)).clamp(-far, far);
        let mut x = edge.floor() as i64 - 1;
        while (x as f64) < far && loss(x) <= e {
            x += 1;
        }
        x
    }
}

impl Profile for DiscreteShift {
    fn above(&self, e: f64) -> Pair {
        let x = self.first(e);
        (self.at_least(x - self.shift as i64), self.at_least(x))
    }
    fn below(&self, e: f64) -> Pair {
        // P(X <= x - 1) = P(X >= 1 - x) by symmetry.
        let x = self.first(e);
        (self.at_least(1 - x + self.shift as i64), self.at_least(1 - x))
    }
    fn atom(&self) -> Option<f64> {
        // All losses are multiples of this: (2 x - shift) shift / (2 sigma^2).
        Some(0.5 * self.shift / (self.sigma * self.sigma))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 + 1e-9 * b.abs()
    }

    /// Slope of delta in a = e^e is -Q(L > e); tails add to one; a symmetric profile equals its reflection.
    fn check(name: &str, p: &dyn Profile, points: &[f64]) {
        for &e in points {
            let (above, below) = (p.above(e), p.below(e));
            assert!(close(above.0 + below.0, 1.0), "{name} at {e}: P {above:?} {below:?}");
            let step = 1e-6;
            let slope = (p.delta((e.exp() + step).ln()) - p.delta((e.exp() - step).ln())) / (2.0 * step);
            assert!((slope + above.1).abs() < 1e-5, "{name} at {e}: slope {slope} {above:?}");
            if p.symmetric() {
                let reflected = 1.0 - e.exp() + e.exp() * p.delta(-e);
                assert!((p.delta(e) - reflected).abs() < 1e-9, "{name} at {e}: {} {reflected}", p.delta(e));
            }
        }
    }

    #[test]
    fn tails_are_consistent() {
        let points = [-1.3, -0.31, -0.02, 0.013, 0.2, 0.77, 1.9];
        check("shift", &Shift { mu: 0.7 }, &points);
        check("laplace", &LaplaceShift { epsilon: 1.0 }, &points);
        check("response", &Response { epsilon: 0.6, delta: 1e-3 }, &points);
        check("range", &BoundedRange { range: 1.1 }, &points);
        check("amplified", &Amplified { base: Shift { mu: 1.0 }, rate: 0.3 }, &points);
        check("symmetrised", &Symmetrised(Amplified { base: Shift { mu: 1.0 }, rate: 0.3 }), &points);
        check("replaced", &ReplacedMixture { rate: 0.2, noise: 1.0, factor: 2.0 }, &points);
        check("replaced 1.4", &ReplacedMixture { rate: 0.2, noise: 1.0, factor: 1.4 }, &points);
        check("discrete", &DiscreteShift::new(3, 2), &points);
        check("amplified laplace", &Amplified { base: LaplaceShift { epsilon: 1.0 }, rate: 0.4 }, &points);
    }

    #[test]
    fn symmetrised_is_the_pointwise_maximum() {
        for (rate, mu) in [(0.01, 1.0), (0.3, 2.0), (0.7, 0.3)] {
            let one = Amplified { base: Shift { mu }, rate };
            let both = Symmetrised(Amplified { base: Shift { mu }, rate });
            for i in -40..40 {
                let e = 0.05 * f64::from(i) + 0.003;
                let most = one.delta(e).max(Reversed(&one).delta(e));
                assert!((both.delta(e) - most).abs() < 1e-12, "{rate} {mu} {e}: {} {most}", both.delta(e));
            }
        }
    }

    /// Correction A9: exponential mechanism over 10 items, range 1. The pair with losses +-1/2 says nothing is left above
    /// 0.5; the truth at 0.7 is 0.0277, and our profile covers it.
    #[test]
    fn bounded_range_covers_the_exponential_mechanism() {
        let range: f64 = 1.0;
        // Scores 0 or 1 with weight e^(range/2 score): one item goes up by one score under P and all others down.
        let mut worst: f64 = 0.0;
        for up in 1..10u32 {
            let (high, low) = ((0.5 * range).exp(), (-0.5 * range).exp());
            let total = f64::from(up) * high + f64::from(10 - up) * low;
            let p = f64::from(up) * high / total;
            let q = f64::from(up) / 10.0;
            worst = worst.max(p - 0.7f64.exp() * q);
        }
        assert!(worst >= 0.0277, "{worst}");
        let ours = BoundedRange { range }.delta(0.7);
        assert!(ours >= worst && ours < 1.2 * worst, "{ours} {worst}");
        assert_eq!(Response { epsilon: 0.5, delta: 0.0 }.delta(0.7), 0.0, "the symmetric pair misses it");
    }
}
