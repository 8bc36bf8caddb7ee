//! The slow path of exact sampling: comparisons of lazily drawn uniform numbers with e^-z to any precision.
//!
//! The fast path decides with doubles and a wide margin; this runs about once in 2^40 comparisons, so it is written to be
//! read. Numbers are fixed point: `Fixed` has `fraction` 64-bit limbs after the point and two before it, lowest first.

use crate::rng::Words;

const INTEGER: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fixed {
    /// Highest limb first, so that the derived order is numeric.
    limbs: Vec<u64>,
}

impl Fixed {
    fn zero(fraction: usize) -> Fixed {
        Fixed { limbs: vec![0; INTEGER + fraction] }
    }

    fn one(fraction: usize) -> Fixed {
        let mut one = Fixed::zero(fraction);
        one.limbs[INTEGER - 1] = 1;
        one
    }

    /// value / 2^shift, exact if the fraction is long enough, else rounded down.
    fn dyadic(value: u128, shift: u32, fraction: usize) -> Fixed {
        let mut out = Fixed::zero(fraction);
        for bit in 0..128u32 {
            if value >> bit & 1 == 1 {
                // Weight 2^(bit - shift); bit 0 of the limb before the point is weight 1.
                let position = i64::from(bit) - i64::from(shift);
                let limb = INTEGER as i64 - 1 - position.div_euclid(64);
                if (0..out.limbs.len() as i64).contains(&limb) {
                    out.limbs[limb as usize] |= 1 << position.rem_euclid(64);
                }
            }
        }
        out
    }

    fn add(&self, other: &Fixed) -> Fixed {
        let mut carry = 0u128;
        let mut out = self.clone();
        for i in (0..out.limbs.len()).rev() {
            carry += u128::from(self.limbs[i]) + u128::from(other.limbs[i]);
            out.limbs[i] = carry as u64;
            carry >>= 64;
        }
        out
    }

    /// self - other, or zero if that is negative.
    fn subtract(&self, other: &Fixed) -> Fixed {
        if self < other {
            return Fixed::zero(self.limbs.len() - INTEGER);
        }
        let mut borrow = 0i128;
        let mut out = self.clone();
        for i in (0..out.limbs.len()).rev() {
            let value = i128::from(self.limbs[i]) - i128::from(other.limbs[i]) + borrow;
            out.limbs[i] = value as u64;
            borrow = value >> 64;
        }
        out
    }

    /// Product, rounded down.
    fn multiply(&self, other: &Fixed) -> Fixed {
        let n = self.limbs.len();
        let mut product = vec![0u64; 2 * n];
        for i in (0..n).rev() {
            let mut carry = 0u128;
            for j in (0..n).rev() {
                carry += u128::from(self.limbs[i]) * u128::from(other.limbs[j]) + u128::from(product[i + j + 1]);
                product[i + j + 1] = carry as u64;
                carry >>= 64;
            }
            product[i] = carry as u64;
        }
        // The product has 2 INTEGER limbs before its point.
        Fixed { limbs: product[INTEGER..INTEGER + n].to_vec() }
    }

    fn times(&self, factor: u128) -> Fixed {
        self.multiply(&Fixed::dyadic(factor, 0, self.limbs.len() - INTEGER))
    }

    fn divide_small(&self, divisor: u64) -> Fixed {
        let mut out = self.clone();
        let mut rest = 0u128;
        for limb in &mut out.limbs {
            rest = rest << 64 | u128::from(*limb);
            *limb = (rest / u128::from(divisor)) as u64;
            rest %= u128::from(divisor);
        }
        out
    }

    /// self / 2^times, rounded down.
    fn halved(&self, times: u32) -> Fixed {
        let whole = (0..times / 32).fold(self.clone(), |x, _| x.divide_small(1 << 32));
        whole.divide_small(1 << (times % 32))
    }

    /// self / other for 0 <= self < 2 other, rounded down: one bit at a time.
    fn divide(&self, other: &Fixed) -> Fixed {
        let n = self.limbs.len();
        let (mut rest, mut out) = (self.clone(), Fixed::zero(n - INTEGER));
        for bit in 0..=64 * (n - INTEGER) {
            if rest >= *other {
                rest = rest.subtract(other);
                // Bit 0 has weight 1.
                let (limb, shift) = if bit == 0 { (INTEGER - 1, 0) } else { (INTEGER + (bit - 1) / 64, 63 - (bit - 1) % 64) };
                out.limbs[limb] |= 1 << shift;
            }
            rest = rest.add(&rest);
        }
        out
    }

    /// A number of `units` in the last place.
    fn ulps(units: u64, fraction: usize) -> Fixed {
        let mut out = Fixed::zero(fraction);
        let last = out.limbs.len() - 1;
        out.limbs[last] = units;
        out
    }
}

/// A value that is certain to lie between two bounds.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) low: Fixed,
    pub(crate) high: Fixed,
}

impl Interval {
    fn around(value: &Fixed, ulps: u64) -> Interval {
        let slack = Fixed::ulps(ulps, value.limbs.len() - INTEGER);
        Interval { low: value.subtract(&slack), high: value.add(&slack) }
    }

    fn square(&self) -> Interval {
        let slack = Fixed::ulps(1, self.low.limbs.len() - INTEGER);
        Interval { low: self.low.multiply(&self.low), high: self.high.multiply(&self.high).add(&slack) }
    }

    fn add(&self, other: &Interval) -> Interval {
        Interval { low: self.low.add(&other.low), high: self.high.add(&other.high) }
    }

    fn times(&self, factor: u128) -> Interval {
        let slack = Fixed::ulps(1, self.low.limbs.len() - INTEGER);
        Interval { low: self.low.times(factor), high: self.high.times(factor).add(&slack) }
    }
}

/// e^-z for z = value / 2^shift.
pub(crate) fn exp_minus(value: u128, shift: u32, fraction: usize) -> Interval {
    // z / 2^halvings < 2^-8, then a Taylor series, then so many squarings.
    let magnitude = 128 - value.leading_zeros();
    let halvings = (magnitude + 8).saturating_sub(shift);
    let z = Fixed::dyadic(value, shift + halvings, fraction);
    let (mut positive, mut negative) = (Fixed::one(fraction), Fixed::zero(fraction));
    let mut term = Fixed::one(fraction);
    let mut k = 0u64;
    while term != Fixed::zero(fraction) {
        k += 1;
        term = term.multiply(&z).divide_small(k);
        if k % 2 == 1 { negative = negative.add(&term) } else { positive = positive.add(&term) }
    }
    // Each term is rounded down by at most two units and inherits the error of the one before; z itself by one.
    let mut out = Interval::around(&positive.subtract(&negative), 4 * k + 4);
    for _ in 0..halvings {
        out = out.square();
    }
    out
}

/// -ln u for a uniform u in [bits, bits + 1) / 2^(64 n), given by its words, highest first. None if u may be 0.
pub(crate) fn minus_log(words: &[u64], fraction: usize) -> Option<Interval> {
    let mut low = Fixed::zero(fraction);
    for (limb, word) in low.limbs[INTEGER..].iter_mut().zip(words) {
        *limb = *word;
    }
    if low == Fixed::zero(fraction) {
        return None;
    }
    let mut step = Fixed::zero(fraction);
    step.limbs[INTEGER + words.len() - 1] = 1;
    let high = low.add(&step);
    Some(Interval { low: minus_log_of(&high, fraction).low, high: minus_log_of(&low, fraction).high })
}

/// -ln v for 0 < v <= 1: v = m / 2^k with m in (1/2, 1], -ln v = k ln 2 + 2 artanh((1 - m)/(1 + m)).
fn minus_log_of(v: &Fixed, fraction: usize) -> Interval {
    let one = Fixed::one(fraction);
    let (mut m, mut k) = (v.clone(), 0u64);
    while m.add(&m) <= one {
        m = m.add(&m);
        k += 1;
    }
    let artanh = |x: &Fixed| {
        let square = x.multiply(x);
        let (mut power, mut sum, mut i) = (x.clone(), x.clone(), 1u64);
        while power != Fixed::zero(fraction) {
            power = power.multiply(&square);
            i += 2;
            sum = sum.add(&power.divide_small(i));
        }
        (sum, 4 * i + 8)
    };
    let (log_two_half, error_two) = artanh(&one.divide(&Fixed::dyadic(3, 0, fraction)));
    let (rest_half, error) = artanh(&one.subtract(&m).divide(&one.add(&m)));
    let total = log_two_half.times(2 * u128::from(k)).add(&rest_half.times(2));
    Interval::around(&total, 2 * k * error_two + 2 * error + 4 * k + 8)
}

/// Decides offset + u / 2^power < factor e^-z, z = value / 2^shift, for a uniform u in [0, 1) whose first word is given and whose
/// further words are drawn as needed.
pub(crate) fn below_exp(
    offset: u64,
    first: u64,
    power: u32,
    factor: u64,
    value: u128,
    shift: u32,
    words: &mut impl Words,
) -> bool {
    let mut known = vec![first];
    loop {
        let fraction = known.len() + 6 + (shift as usize).div_ceil(64) + (power as usize).div_ceil(64);
        let threshold = exp_minus(value, shift, fraction).times(u128::from(factor));
        let mut low = Fixed::zero(fraction);
        low.limbs[INTEGER..INTEGER + known.len()].copy_from_slice(&known);
        let mut step = Fixed::zero(fraction);
        step.limbs[INTEGER + known.len() - 1] = 1;
        let (mut low, step) = (low.halved(power), step.halved(power));
        low.limbs[INTEGER - 1] += offset;
        let high = low.add(&step);
        if high <= threshold.low {
            return true;
        }
        if low >= threshold.high {
            return false;
        }
        known.push(words.word());
    }
}

/// Whether E e^-z < F e^-y for E = -ln u, F = -ln v and a gap z - y = sign value / 2^shift; None if more words are needed.
pub(crate) fn race(u: &[u64], v: &[u64], positive: bool, value: u128, shift: u32) -> Option<bool> {
    let fraction = u.len().max(v.len()) + 6 + (shift as usize).div_ceil(64);
    let (e, f) = (minus_log(u, fraction)?, minus_log(v, fraction)?);
    let gap = exp_minus(value, shift, fraction);
    let product = |x: &Interval| Interval {
        low: x.low.multiply(&gap.low),
        high: x.high.multiply(&gap.high).add(&Fixed::ulps(1, fraction)),
    };
    // Move the exponential to the side where it shrinks.
    let (left, right) = if positive { (product(&e), f) } else { (e, product(&f)) };
    if left.high < right.low {
        return Some(true);
    }
    if right.high < left.low {
        return Some(false);
    }
    None
}

/// Whether -ln u + sign value / 2^shift > level ln 2; None if more words are needed.
pub(crate) fn above(u: &[u64], positive: bool, value: u128, shift: u32, level: i64) -> Option<bool> {
    let fraction = u.len() + 6 + (shift as usize).div_ceil(64);
    let mut left = minus_log(u, fraction)?;
    let mut right = Interval::around(&Fixed::zero(fraction), 0);
    // Everything goes to the side where it is positive.
    let score = Interval::around(&Fixed::dyadic(value, shift, fraction), 0);
    if positive {
        left = left.add(&score)
    } else {
        right = right.add(&score)
    }
    let height = minus_log_of(&Fixed::dyadic(1, 1, fraction), fraction).times(u128::from(level.unsigned_abs()));
    if level < 0 {
        left = left.add(&height)
    } else {
        right = right.add(&height)
    }
    if left.low > right.high {
        return Some(true);
    }
    if left.high < right.low {
        return Some(false);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_f64(x: &Fixed) -> f64 {
        x.limbs.iter().enumerate().map(|(i, &l)| l as f64 * 2f64.powi(64 * (INTEGER as i32 - 1 - i as i32))).sum()
    }

    #[test]
    fn exponentials_and_logarithms_enclose() {
        for (value, shift) in [(0u128, 3u32), (1, 0), (5, 1), (12345, 10), (600, 0), ((1 << 90) + 12345, 88), (3, 80)] {
            let z = value as f64 * 2f64.powi(-(shift as i32));
            for fraction in [3, 5, 20] {
                let interval = exp_minus(value, shift, fraction);
                assert!(interval.low <= interval.high);
                let (low, high) = (to_f64(&interval.low), to_f64(&interval.high));
                let truth = (-z).exp();
                assert!(low <= truth * (1.0 + 1e-12) && high >= truth * (1.0 - 1e-12), "{z}: {low} {high} {truth}");
                if fraction == 20 {
                    assert!(high - low <= 1e-12 * truth + 1e-300, "{z}");
                }
            }
            // More limbs never leave the interval of fewer.
            let (coarse, fine) = (exp_minus(value, shift, 5), exp_minus(value, shift, 9));
            assert!(coarse.low.limbs[..] <= fine.low.limbs[..coarse.low.limbs.len()]);
            assert!(coarse.high.limbs[..] >= fine.low.limbs[..coarse.low.limbs.len()]);
        }
        for word in [1u64, 1 << 20, 1 << 63, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
            let interval = minus_log(&[word], 6).unwrap();
            let truth = -((word as f64) * 2f64.powi(-64)).ln();
            assert!(to_f64(&interval.low) <= truth + 1e-15 && to_f64(&interval.high) >= truth - 1e-15 * truth.max(1.0), "{word}");
        }
        assert!(minus_log(&[0, 0], 6).is_none());
    }

    /// A comparison far below 2^-64: u / 2^power against e^-z, decided as the doubles of the logarithms say.
    #[test]
    fn far_tails_are_compared_too() {
        struct Fixed0;
        impl Words for Fixed0 {
            fn word(&mut self) -> u64 {
                0x1234_5678_9abc_def0
            }
        }
        for (first, power, z) in
            [(u64::MAX / 2, 200u32, 139u128), (u64::MAX / 2, 200, 140), (1 << 60, 1500, 1042), (1 << 60, 1500, 1043)]
        {
            let log_u = (first as f64).ln() - 64.0 * std::f64::consts::LN_2 - f64::from(power) * std::f64::consts::LN_2;
            let expected = log_u < -(z as f64);
            assert_eq!(below_exp(0, first, power, 1, z, 0, &mut Fixed0), expected, "{first} {power} {z}: {log_u}");
        }
    }

    /// -ln u against level ln 2 - score, with both signs of score and level, next to where it turns.
    #[test]
    fn levels_are_compared_on_both_sides() {
        let turn = |gap: f64| ((-gap).exp() * 2f64.powi(64)) as u64;
        for (score, level) in [(5i64, 1i64), (3, 1), (-7, 2), (-9, -1), (-20, -3), (1 << 20, 189_097), (0, 1)] {
            let x = score as f64 / 8.0;
            let gap = level as f64 * std::f64::consts::LN_2 - x;
            assert!(gap > 0.0);
            let compare = |word: u64| above(&[word], score >= 0, score.unsigned_abs().into(), 3, level);
            let (word, step) = (turn(gap), 1 + turn(gap) / 1000);
            assert_eq!(compare(word - step), Some(true), "{score} {level}");
            assert_eq!(compare(word + step), Some(false), "{score} {level}");
        }
        // At the word where it turns, the next word decides, unless that is where it turns too.
        let word = (-1.0f64).exp() * 2f64.powi(64);
        let turns: Vec<u64> =
            (word as u64 - 4096..word as u64 + 4096).filter(|w| above(&[*w], false, 8, 3, 0).is_none()).collect();
        assert_eq!(turns.len(), 1);
        assert_eq!(above(&[turns[0], 0], false, 8, 3, 0), Some(true));
        assert_eq!(above(&[turns[0], u64::MAX], false, 8, 3, 0), Some(false));
    }
}
