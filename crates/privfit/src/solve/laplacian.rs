//! Laplacian smoothing of a vector on a ring: the solution x of A x = v, where A = I - s L and L is the second difference with neighbours that wrap around.
//!
//! A = (s / w) (1 - w S) (1 - w S^-1), S being the shift by one place and w = 2s / (1 + 2s + sqrt(1 + 4s)): two recursions of first order, one each way, take the place of a Fourier transform. The factor of
//! frequency k is 1 / (1 + 2s (1 - cos(2 pi k / d))), between 1 / (1 + 4s) and 1, and that of the mean is 1.

use std::f64::consts::TAU;

/// Smooths in place. Strength 0 changes no bit.
pub fn smooth(values: &mut [f64], strength: f64) {
    // The one place of a ring of length 1 is its own neighbour.
    if !(strength > 0.0) || values.len() < 2 {
        return;
    }
    let wide = 1.0 + 2.0 * strength + (1.0 + 4.0 * strength).sqrt();
    let keep = 2.0 * strength / wide;
    // The recursion around a ring begins with what it ends with.
    let whole = 1.0 / (1.0 - keep.powi(values.len().min(i32::MAX as usize) as i32));
    let around = |carry: f64, v: &f64| v + keep * carry;
    let mut carry = values.iter().fold(0.0, around) * whole;
    for v in values.iter_mut() {
        carry = *v + keep * carry;
        *v = carry;
    }
    let mut carry = values.iter().rev().fold(0.0, around) * whole;
    for v in values.iter_mut().rev() {
        carry = *v + keep * carry;
        *v = carry * 2.0 / wide;
    }
}

/// What smoothing makes of the variance of independent noise: the mean of the squared factors.
pub(crate) fn variance_factor(length: usize, strength: f64) -> f64 {
    if !(strength > 0.0) || length < 2 {
        return 1.0;
    }
    // Sums over a ring of more places than that are those of a longer one, to the last digits.
    let places = length.min(1 << 16);
    let factor = |k: usize| 1.0 / (1.0 + 2.0 * strength * (1.0 - (TAU * k as f64 / places as f64).cos()));
    (0..places).map(|k| factor(k).powi(2)).sum::<f64>() / places as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize) -> Vec<f64> {
        (0..count).map(|i| ((i + 1) as f64 * 12.9898).sin()).collect()
    }

    fn smoothed(values: &[f64], strength: f64) -> Vec<f64> {
        let mut out = values.to_vec();
        smooth(&mut out, strength);
        out
    }

    /// A x, with neighbours that may be the same place.
    fn applied(x: &[f64], strength: f64) -> Vec<f64> {
        let d = x.len();
        (0..d).map(|i| x[i] + strength * (2.0 * x[i] - x[(i + 1) % d] - x[(i + d - 1) % d])).collect()
    }

    /// By discrete Fourier transforms, term by term, with the factors of the frequencies.
    fn by_frequencies(v: &[f64], strength: f64) -> Vec<f64> {
        let d = v.len();
        let angle = |k: usize, i: usize| TAU * (k * i % d) as f64 / d as f64;
        let mut out = vec![0.0; d];
        for k in 0..d {
            let (mut re, mut im) = (0.0, 0.0);
            v.iter().enumerate().for_each(|(i, v)| (re, im) = (re + v * angle(k, i).cos(), im - v * angle(k, i).sin()));
            let factor = 1.0 / (1.0 + 2.0 * strength * (1.0 - angle(k, 1).cos())) / d as f64;
            out.iter_mut().enumerate().for_each(|(i, o)| *o += factor * (re * angle(k, i).cos() - im * angle(k, i).sin()));
        }
        out
    }

    fn assert_near(a: &[f64], b: &[f64], by: f64) {
        assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= by), "{a:?}\n{b:?}");
    }

    #[test]
    fn strength_zero_changes_no_bit() {
        for count in [1, 2, 97] {
            let v: Vec<f64> = numbers(count).into_iter().chain([-0.0, 5e-324]).collect();
            let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&smoothed(&v, 0.0)), bits(&v));
        }
    }

    /// Printed values, and those of an impulse.
    #[test]
    fn closed_forms() {
        let ramp: Vec<f64> = (1..=8).map(f64::from).collect();
        let expected = [3.20952381, 2.83809524, 3.30476190, 4.07619048, 4.92380952, 5.69523810, 6.16190476, 5.79047619];
        assert_near(&smoothed(&ramp, 1.0), &expected, 1e-8);
        let mut impulse = [0.0; 8];
        impulse[0] = 1.0;
        let expected = [0.44761905, 0.17142857, 0.06666667, 0.02857143, 0.01904762, 0.02857143, 0.06666667, 0.17142857];
        assert_near(&smoothed(&impulse, 1.0), &expected, 1e-8);
        // Constants stay, and alternating numbers are divided by 1 + 4s.
        assert_near(&smoothed(&[3.0; 10], 7.0), &[3.0; 10], 1e-13);
        assert_near(&smoothed(&[1.0, -1.0, 1.0, -1.0], 2.0), &[1.0 / 9.0, -1.0 / 9.0, 1.0 / 9.0, -1.0 / 9.0], 1e-15);
    }

    /// It solves the equation, at every length and strength, and agrees with Fourier transforms.
    #[test]
    fn it_is_the_inverse_of_the_operator() {
        for d in [1, 2, 3, 4, 5, 8, 97, 1000] {
            for strength in [1e-9, 0.01, 1.0, 3.0, 100.0] {
                let v = numbers(d);
                let x = smoothed(&v, strength);
                assert_near(&applied(&x, strength), &v, 1e-12 * (1.0 + 4.0 * strength));
                if d < 100 {
                    assert_near(&x, &by_frequencies(&v, strength), 1e-12);
                }
                let (sum, length) = (|v: &[f64]| v.iter().sum::<f64>(), |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>());
                assert!((sum(&x) - sum(&v)).abs() < 1e-11 && length(&x) <= length(&v) * (1.0 + 1e-12), "{d} {strength}");
            }
        }
    }

    /// |v|^2 = |x|^2 + 2s |D x|^2 + s^2 |L x|^2: smoothed gradients are shorter, and so is their noise, by the same operator.
    #[test]
    fn lengths_follow_the_identity() {
        let (v, s) = (numbers(50), 1.7);
        let x = smoothed(&v, s);
        let d = x.len();
        let square = |f: &dyn Fn(usize) -> f64| (0..d).map(|i| f(i).powi(2)).sum::<f64>();
        let first = square(&|i| x[(i + 1) % d] - x[i]);
        let second = square(&|i| x[(i + 1) % d] - 2.0 * x[i] + x[(i + d - 1) % d]);
        let right = square(&|i| x[i]) + 2.0 * s * first + s * s * second;
        assert!((square(&|i| v[i]) / right - 1.0).abs() < 1e-12);
    }

    /// Tables 5.3 and 5.4 of the thesis have the root of the limit and this number; they do not fall with the length.
    #[test]
    fn variance_falls_as_printed() {
        for (strength, expected) in [(1.0, 0.268328), (2.0, 0.185185), (3.0, 0.149342), (5.0, 0.114305)] {
            for length in [1000, 1 << 20] {
                assert!((variance_factor(length, strength) - expected).abs() < 1e-6, "{strength} {length}");
            }
        }
        assert!((variance_factor(5, 1.0) - 0.289256).abs() < 1e-6);
        let mut squares = 0.0;
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for _ in 0..400 {
            let noise: Vec<f64> = (0..1000).map(|_| 12f64.sqrt() * (uniform() - 0.5)).collect();
            squares += smoothed(&noise, 1.0).iter().map(|x| x * x).sum::<f64>() / 1000.0 / 400.0;
        }
        assert!((squares / 0.268328 - 1.0).abs() < 0.01, "{squares}");
        assert_eq!(variance_factor(1, 3.0), 1.0);
    }
}
