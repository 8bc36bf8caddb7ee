//! Norms on integer vectors, checked exactly.

use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}

/// The norm in which one unit's sensitivity is stated.
pub trait Norm: sealed::Sealed + 'static {
    /// Its name in events and messages.
    const NAME: &'static str;

    /// Whether an integer vector lies within the bound. Exact for every input: no overflow, no saturation, no wrap.
    fn within(values: &[i64], bound: u64) -> bool;

    /// Norm in doubles, without overflow; used to clip, never to decide.
    fn size(values: &[f64]) -> f64;
}

/// Sum of absolute values.
pub enum L1 {}
/// Euclidean norm.
pub enum L2 {}
/// Largest absolute value.
pub enum LInf {}

impl sealed::Sealed for L1 {}
impl sealed::Sealed for L2 {}
impl sealed::Sealed for LInf {}

/// Largest magnitude of finite values.
fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m, v| m.max(v.abs()))
}

impl Norm for LInf {
    const NAME: &'static str = "l-infinity";

    fn within(values: &[i64], bound: u64) -> bool {
        values.iter().all(|z| z.unsigned_abs() <= bound)
    }

    fn size(values: &[f64]) -> f64 {
        largest(values)
    }
}

impl Norm for L1 {
    const NAME: &'static str = "l1";

    fn within(values: &[i64], bound: u64) -> bool {
        if !LInf::within(values, bound) {
            return false;
        }
        let sum = values.iter().try_fold(0u128, |sum, z| sum.checked_add(u128::from(z.unsigned_abs())));
        sum.is_some_and(|sum| sum <= u128::from(bound))
    }

    fn size(values: &[f64]) -> f64 {
        let top = largest(values);
        if top == 0.0 { 0.0 } else { top * values.iter().map(|v| v.abs() / top).sum::<f64>() }
    }
}

impl Norm for L2 {
    const NAME: &'static str = "l2";

    /// Each coordinate first: sixteen coordinates of 2^62 have squares that add to 2^128, which is 0 in 128 bits.
    fn within(values: &[i64], bound: u64) -> bool {
        if !LInf::within(values, bound) {
            return false;
        }
        let square = |z: u64| u128::from(z) * u128::from(z);
        let sum = values.iter().try_fold(0u128, |sum, z| sum.checked_add(square(z.unsigned_abs())));
        sum.is_some_and(|sum| sum <= square(bound))
    }

    fn size(values: &[f64]) -> f64 {
        let top = largest(values);
        if top == 0.0 { 0.0 } else { top * values.iter().map(|v| (v / top) * (v / top)).sum::<f64>().sqrt() }
    }
}

/// Smallest integer whose square is at least `value`.
pub(crate) fn root_up(value: u128) -> u64 {
    let mut root = (value as f64).sqrt() as u128;
    while root * root < value {
        root += 1;
    }
    while root > 0 && (root - 1) * (root - 1) >= value {
        root -= 1;
    }
    root as u64
}

/// Clips to `clip`, puts on the grid, checks on the integers; a vector that cannot be made to fit becomes zero.
///
/// `values` is overwritten. Rules: a non-finite coordinate zeroes the whole vector, rounding is toward zero, and the check is
/// on what is added, so the sensitivity holds whatever the floating-point code did.
pub(crate) fn quantise<N: Norm>(values: &mut [f64], clip: f64, per_unit: f64, bound: u64, out: &mut Vec<i64>) {
    out.clear();
    out.resize(values.len(), 0);
    if values.iter().any(|v| !v.is_finite()) {
        return;
    }
    let size = N::size(values);
    let mut factor = if size > clip { clip / size } else { 1.0 };
    for _ in 0..4 {
        for (z, v) in out.iter_mut().zip(values.iter()) {
            // A cast truncates toward zero and saturates; a saturated value fails the check.
            *z = (v * factor * per_unit) as i64;
        }
        if N::within(out, bound) {
            return;
        }
        // More than the size of so many numbers can be off in doubles, so that a long vector is shortened and not lost.
        factor *= 1.0 - (2.0 / bound as f64).max(0.5f64.powi(40)).max(values.len() as f64 * 0.5f64.powi(52));
    }
    out.fill(0);
}

/// Ties a value to the scope of one mechanism.
pub(crate) type Brand<'id, N> = PhantomData<(fn(&'id ()) -> &'id (), N)>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Correction A8: in plain 128-bit arithmetic this unbounded vector would pass.
    #[test]
    fn squares_do_not_wrap_around() {
        let vector = [1i64 << 62; 16];
        let wrapped = vector.iter().fold(0u128, |s, z| s.wrapping_add((*z as u128) * (*z as u128)));
        assert_eq!(wrapped, 0, "the naive sum is zero");
        assert!(!L2::within(&vector, 1 << 40));
        assert!(!L2::within(&[i64::MIN], 1 << 40) && !L1::within(&[i64::MIN, 1], 1 << 40) && !LInf::within(&[i64::MIN], 1 << 40));
        assert!(!L2::within(&vec![1 << 61; 1 << 7], (1 << 62) + (1 << 61)));
        assert!(L2::within(&[3, -4], 5) && !L2::within(&[3, -4, 1], 5));
        assert!(L1::within(&[3, -4], 7) && !L1::within(&[3, -5], 7));
    }

    #[test]
    fn roots_round_up() {
        for v in [0u128, 1, 2, 3, 4, 5, 24, 25, 26, (1 << 80) - 1, 1 << 80, (1 << 80) + 1] {
            let r = u128::from(root_up(v));
            assert!(r * r >= v && (r == 0 || (r - 1) * (r - 1) < v), "{v}");
        }
    }

    /// T-N5: a million adversarial records at d = 1 and 7, a thousand at d = 10^6. The integer norm never exceeds the bound.
    #[test]
    fn integer_norms_never_exceed_the_bound() {
        use crate::rng::{NoiseRng, Words};
        let mut rng = NoiseRng::from_key([11; 32]);
        let special = [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, 1e-310, 1e308, -1e308, f64::MAX, f64::INFINITY, f64::NAN, 1.0, -1.0];
        let mut draw = |d: usize, clip: f64, v: &mut Vec<f64>| {
            v.clear();
            let kind = rng.word() % 6;
            for _ in 0..d {
                let unit = (rng.word() >> 11) as f64 * 0.5f64.powi(52) - 1.0;
                v.push(match kind {
                    0 => unit,
                    1 => special[(rng.word() % 12) as usize],
                    2 => unit * 10f64.powi((rng.word() % 600) as i32 - 300),
                    3 => 1.0,
                    _ => unit + 2.0,
                });
            }
            if kind >= 4 {
                // A norm of exactly the clip, give or take an ulp.
                let size = L2::size(v);
                let target = [clip, clip.next_up(), clip.next_down()][(rng.word() % 3) as usize];
                v.iter_mut().for_each(|x| *x *= target / size);
            }
        };
        let mut out = Vec::new();
        let mut values = Vec::new();
        let long = if std::env::var_os("PRIVFIT_SWEEP").is_some() { 1000 } else { 100 };
        for (d, records) in [(1usize, 500_000), (7, 500_000), (1_000_000, long)] {
            let mut nonzero = 0;
            for i in 0..records {
                let clip = [1.0, 0.1, 3.7, 1e-9][i % 4];
                let bound = [1u64 << 40, 1000, (1 << 30) + 7, 12345678901][i / 4 % 4];
                draw(d, clip, &mut values);
                let per_unit = bound as f64 / clip;
                // Independent check of each norm, with exact arithmetic in 128 bits on values known to be small.
                quantise::<L2>(&mut values.clone(), clip, per_unit, bound, &mut out);
                let exact: u128 = out.iter().map(|z| u128::from(z.unsigned_abs()).pow(2)).sum();
                assert!(out.iter().all(|z| z.unsigned_abs() <= bound) && exact <= u128::from(bound).pow(2));
                nonzero += usize::from(exact > 0);
                if d <= 7 {
                    quantise::<L1>(&mut values.clone(), clip, per_unit, bound, &mut out);
                    assert!(out.iter().map(|z| u128::from(z.unsigned_abs())).sum::<u128>() <= u128::from(bound));
                    quantise::<LInf>(&mut values, clip, per_unit, bound, &mut out);
                    assert!(out.iter().all(|z| z.unsigned_abs() <= bound));
                }
            }
            assert!(nonzero > records / 2, "most records survive: {nonzero} of {records}");
        }
    }
}
