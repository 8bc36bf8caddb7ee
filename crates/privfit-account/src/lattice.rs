//! Discrete Gaussian noise is Gaussian-private as it is, on however coarse a grid.
//!
//! Claim. Let X be discrete Gaussian on the integers, `z_x` the number with `P(N(0, 1) >= z_x) = P(X >= x)`, and c the supremum of
//! `z_x - z_(x-1)`. A vector of integers with independent noise of this kind in each coordinate, which one unit moves by at most r in
//! Euclidean length, is Gaussian-private with mu = c r, and c is about (1 + 1/(24 sigma^2)) / sigma.
//!
//! Proof. In one coordinate, shift s > 0: the likelihood ratio increases, so that the best tests are thresholds, "X >= x", with level
//! `P(X >= x)` and power `P(X >= x - s)`. A Gaussian shift mu has, at the same level, at least the same power if
//! `mu >= z_x - z_(x-s)`, which is a sum of s differences, each at most c. Between thresholds tests are mixtures, on a chord below the concave
//! power of the Gaussian. So a shift s is dominated by a Gaussian shift c s, a vector v by Gaussian shifts c |v_i|, which are together one of
//! c |v|; and Gaussian privacy composes, adaptively too.
//!
//! The supremum is taken over thresholds up to 100 sigma. The others have a power of at most P(X > 36 sigma) < 10^-280 where s < 64 sigma, and that
//! is charged to delta.

use super::special::mills;

/// Largest sigma for which thresholds are gone through.
pub(super) const LARGEST: u64 = 64;
/// Largest shift over sigma.
pub(super) const FURTHEST: u64 = 64;
/// Power of all thresholds that are left out, for one coordinate of one release.
pub(super) const LEFT_OUT: f64 = 1e-280;

/// c: how much of a Gaussian shift one step of the grid is at most.
pub(super) fn step(sigma: u64) -> f64 {
    let s = sigma as f64;
    let end = 100 * sigma as usize;
    // Sums over y >= x of e^-((y^2 - x^2) / 2 sigma^2), from so far up that what is left out is no digit of any of them.
    let start = end + 8 * sigma as usize;
    let mut sums = vec![1.0; start + 1];
    for x in (0..start).rev() {
        sums[x] = 1.0 + (-(2.0 * x as f64 + 1.0) / (2.0 * s * s)).exp() * sums[x + 1];
    }
    let log_total = (2.0 * sums[0] - 1.0).ln();
    let quantile = |x: usize| {
        let log_level = -0.5 * (x as f64 / s).powi(2) + sums[x].ln() - log_total;
        let log_root = 0.5 * (2.0 * std::f64::consts::PI).ln();
        // Newton on ln P(N >= z), whose derivative is minus one over the Mills ratio.
        let mut z = x as f64 / s;
        for _ in 0..8 {
            let ratio = mills(z);
            z += ratio * (-0.5 * z * z - log_root + ratio.ln() - log_level);
        }
        z
    };
    // P(X >= 1 - x) = 1 - P(X >= x), so that z_0 = -z_1 and differences below are the same again.
    let mut last = quantile(1);
    let mut most = 2.0 * last;
    for x in 2..end {
        let next = quantile(x);
        most = super::checked::larger(most, next - last);
        last = next;
    }
    // Rounding of quantiles up to 100, relative to a difference of at least 1/64.
    most * (1.0 + 1e-9)
}

#[cfg(test)]
mod tests {
    use super::super::profile::{DiscreteShift, Profile, Shift};
    use super::*;

    /// The Gaussian curve with this shift lies above the exact curve of every discrete shift, and a shift that is smaller does not.
    #[test]
    fn the_gaussian_covers_every_discrete_shift() {
        for sigma in [1u64, 2, 3, 7, 20, 64] {
            let c = step(sigma);
            let s = sigma as f64;
            assert!((c * s - 1.0) * 24.0 * s * s < 1.13 && (c * s - 1.0) * 24.0 * s * s > 0.99, "{sigma}: {}", c * s);
            let mut tight = false;
            for shift in [1, 2, sigma, 3 * sigma] {
                let exact = DiscreteShift::new(sigma, shift);
                let (above, below) =
                    (Shift { mu: c * shift as f64 }, Shift { mu: (1.0 + 0.9 * (c * s - 1.0)) / s * shift as f64 });
                for x in -3 * sigma as i64..6 * sigma as i64 {
                    // Kinks of the exact curve, and points between them.
                    for part in 0..16 {
                        let e =
                            (2.0 * (x as f64 + f64::from(part) / 16.0) * shift as f64 - (shift * shift) as f64) / (2.0 * s * s);
                        let (d, covers) = (exact.delta(e), above.delta(e));
                        assert!(d <= covers * (1.0 + 1e-9) + 1e-15, "{sigma} {shift} {e}: {d} {covers}");
                        tight |= d > below.delta(e) * (1.0 + 1e-9) + 1e-15;
                    }
                }
            }
            assert!(tight, "{sigma}");
        }
    }
}
