//! Wavelets and averages.

use super::fourier::{LANES, Lane};
use std::f64::consts::{PI, TAU};

/// Spectra of the wavelets of one size, a direction in each lane. They are real, because a wavelet is the mirror image of its conjugate.
pub(super) struct Bank {
    pub(super) spectrum: Vec<Lane>,
}

/// Deviation of the finest wavelet, in pixels.
const DEVIATION: f64 = 0.8;
/// Its frequency.
const FREQUENCY: f64 = 0.75 * PI;
/// Its width along edges, over that across them.
const SLANT: f64 = LANES as f64 / 4.0;

/// The larger deviation of a wavelet of size 2^size, in pixels.
pub(super) fn deviation(size: usize) -> f64 {
    SLANT * DEVIATION * f64::from(1u32 << size)
}

impl Bank {
    /// Wavelets of size 2^size for pictures of a size.
    ///
    /// A wavelet is a wave exp(i k x) under a Gaussian that is longer along the wave's crests, less so much of the Gaussian that its mean is 0. The Fourier transform of a Gaussian is one, so
    /// spectra are written down: sums over the frequencies that sampling takes for the same one.
    pub(super) fn new(height: usize, width: usize, size: usize) -> Bank {
        let scale = f64::from(1u32 << size);
        let (deviation, frequency) = (DEVIATION * scale, FREQUENCY / scale);
        let mut spectrum = vec![[0f32; LANES]; height * width];
        for lane in 0..LANES {
            let (s, c) = (PI * lane as f64 / LANES as f64).sin_cos();
            let gaussian = |fy: f64, fx: f64, shift: f64| {
                let mut sum = 0.0;
                for ay in -2..=2 {
                    for ax in -2..=2 {
                        let (fy, fx) = (fy + TAU * f64::from(ay), fx + TAU * f64::from(ax));
                        let (across, along) = (fx * c + fy * s - shift, fy * c - fx * s);
                        sum += (-0.5 * deviation * deviation * (across * across + SLANT * SLANT * along * along)).exp();
                    }
                }
                sum
            };
            let part = gaussian(0.0, 0.0, frequency) / gaussian(0.0, 0.0, 0.0);
            for y in 0..height {
                for x in 0..width {
                    let (fy, fx) = (TAU * y as f64 / height as f64, TAU * x as f64 / width as f64);
                    spectrum[y * width + x][lane] = (gaussian(fy, fx, frequency) - part * gaussian(fy, fx, 0.0)) as f32;
                }
            }
        }
        Bank { spectrum }
    }
}

/// Weights of an average over pixels of a size 2^size, in pictures that were halved so many times: a Gaussian, with a sum of 1.
pub(super) fn low_pass(size: usize, halved: usize) -> Vec<f32> {
    let deviation = DEVIATION * f64::from(1u32 << size) / f64::from(1u32 << halved);
    let radius = (4.0 * deviation).ceil() as i32;
    let weights: Vec<f64> = (-radius..=radius).map(|x| (-0.5 * (f64::from(x) / deviation).powi(2)).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| (w / sum) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wavelets have no mean, and answer most to waves of their own direction and frequency.
    #[test]
    fn wavelets_find_waves_of_their_direction() {
        for size in [0, 1] {
            let (h, w) = (48, 40);
            let bank = Bank::new(h, w, size);
            for lane in 0..LANES {
                assert!(bank.spectrum[0][lane].abs() < 1e-6);
                let best = (0..h * w).max_by(|a, b| bank.spectrum[*a][lane].total_cmp(&bank.spectrum[*b][lane])).unwrap();
                let signed = |k: usize, n: usize| TAU * (if 2 * k > n { k as f64 - n as f64 } else { k as f64 }) / n as f64;
                let (fy, fx) = (signed(best / w, h), signed(best % w, w));
                let turn = (fy.atan2(fx) - PI * lane as f64 / LANES as f64).rem_euclid(PI);
                assert!(turn.min(PI - turn) < 0.2, "{lane}: {turn}");
                let expected = FREQUENCY / f64::from(1u32 << size);
                assert!((fy.hypot(fx) / expected - 1.0).abs() < 0.25, "{lane}: {}", fy.hypot(fx));
            }
        }
        assert!((low_pass(1, 0).iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }
}
