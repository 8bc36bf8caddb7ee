//! Normalisation of what enters a network: channel c of a row (a column, where rows are no pictures) becomes u times scale c plus shift c, so that it has mean 0 and variance 1. Scales and shifts
//! are public facts of the schema, or are computed from one noisy release.
//!
//! *Claim.* What is released is one sum over all records, with Gaussian noise. A record adds the vector with the entries sum_p x_pc / sqrt P and w sum_p x_pc^2, for its encoded numbers x of P pixels
//! and C channels and the public weight w. Rows lie in the unit ball, so that the first half is no longer than |x| <= 1 (Cauchy-Schwarz) and the second no longer than w |x|^2 <= w. The kernel clips each vector
//! on the integers to the length sqrt 2, whatever it was: that is the sensitivity under zero-out, and twice that under replace-one. With w = 1 nothing is ever clipped.
//! Everything after the noise is post-processing of it and of public numbers: means, variances, their least value, scales and shifts.
//!
//! *Weight.* Rows of many columns have short cells, and the squares of short cells vanish in the noise. The weight, a quarter of the root of the number of channels, lifts them; rows whose fourth moments are
//! sixteen times as large as those of a row with equal cells are clipped, as a whole.
//!
//! *Centred alone.* Scattering features have been normalised within a picture, and a quiet one says less than a loud one. Of them only the mean of every number is released: a record adds its row x, clipped on
//! the integers to length 1. The noisy mean is shrunk by the part of its length that noise explains (James and Stein 1961).
//!
//! *Least variance.* A channel without variance, or with less than the noise hides, is not divided by what noise left there.

use privfit_kernel::{Contribution, Sink, Unit, UnitRandomness};

/// Bound on the vector of a record with sums and squares.
const CLIP: f64 = std::f64::consts::SQRT_2;

/// Variance below which no channel is blown up further, in units of the mean square that inputs have without normalisation: about 1.
const LEAST_VARIANCE: f64 = 0.05;

/// So many standard deviations of the noise are no variance.
const NOISY: f64 = 4.0;

/// Scales of all channels, then their shifts; none where nothing is normalised.
pub(crate) type Normal = Vec<f32>;

/// The release that scales and shifts are computed from: all public sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments {
    pub(crate) channels: usize,
    pub(crate) pixels: usize,
    /// What encoded numbers are multiplied by before they are normalised.
    pub(crate) scale: f64,
    /// Number of records, for means.
    pub(crate) rows: f64,
    /// Whether means are all that is released: scales are 1.
    pub(crate) centred: bool,
}

impl Moments {
    /// Length of the release.
    pub(crate) fn dimension(&self) -> usize {
        if self.centred { self.channels } else { 2 * self.channels }
    }

    /// Bound on the vector of a record.
    pub(crate) fn clip(&self) -> f64 {
        if self.centred { 1.0 } else { CLIP }
    }

    /// Scales and shifts that change nothing: how many there are.
    pub(crate) fn unchanged(&self) -> Normal {
        let ones = std::iter::repeat_n(1.0, self.channels);
        ones.chain(std::iter::repeat_n(0.0, self.channels)).collect()
    }

    fn weight(&self) -> f64 {
        (0.25 * (self.channels as f64).sqrt()).max(1.0)
    }

    /// What a record adds.
    pub(crate) fn contribution(&self) -> Contribution {
        Contribution {
            name: if self.centred { "sums of inputs" } else { "sums of inputs and of their squares" },
            dimension: self.dimension(),
            parameters: vec![
                self.channels as f64,
                (self.channels * self.pixels) as f64,
                1.0 / (self.pixels as f64).sqrt(),
                if self.centred { 0.0 } else { self.weight() },
            ],
            add,
        }
    }

    /// Scales and shifts from the noisy sums, `deviation` being that of the noise: no record is in them but through the sums.
    pub(crate) fn normal(&self, sums: &[f64], deviation: f64) -> Normal {
        let (first, second) = sums.split_at(self.channels.min(sums.len()));
        let pixels = self.pixels as f64;
        // From sums over records to means of u and of its square.
        let to_mean = self.scale / (self.rows * pixels.sqrt());
        if self.centred {
            let noise = deviation * deviation * first.len() as f64;
            let known = (1.0 - noise / first.iter().map(|x| x * x).sum::<f64>().max(f64::MIN_POSITIVE)).max(0.0);
            let mut normal = self.unchanged();
            normal[self.channels..].iter_mut().zip(first).for_each(|(shift, sum)| *shift = (-sum * to_mean * known) as f32);
            return normal;
        }
        let to_square = self.scale * self.scale / (self.weight() * self.rows * pixels);
        let (mean_noise, square_noise) = (deviation * to_mean, deviation * to_square);
        // Where noise is all there is, numbers keep their size.
        let least = (NOISY * (square_noise + 2.0 * mean_noise)).clamp(LEAST_VARIANCE, 1.0);
        let one = |(first, second): (&f64, &f64)| {
            let (mean, square) = (first * to_mean, second * to_square);
            let variance = square - mean * mean + mean_noise * mean_noise;
            // The part of a mean that its noise would explain is left out.
            let known = if mean == 0.0 { 0.0 } else { (1.0 - (mean_noise / mean).powi(2)).max(0.0) };
            // A number that is none, which a sum beyond all bounds could make, becomes the least one.
            let scale = 1.0 / variance.max(least).sqrt();
            (scale as f32, (-mean * known * scale) as f32)
        };
        let (scales, shifts): (Vec<f32>, Vec<f32>) = first.iter().zip(second).map(one).unzip();
        scales.into_iter().chain(shifts).collect()
    }
}

fn add(p: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    let [channels, numbers, first, weight] = p else { return };
    let (channels, numbers) = (*channels as usize, *numbers as usize);
    if unit.rows() == 0 {
        return;
    }
    // The constant at the end of a row is no input.
    unit.each(0, |j, x| {
        if j < numbers {
            sink.add(j % channels, x * first);
            if *weight > 0.0 {
                sink.add(channels + j % channels, x * x * weight);
            }
        }
    });
}

/// Applies scales and shifts to rows that lie one after the other, channels of a pixel side by side.
#[inline(always)]
pub(crate) fn apply(normal: &[f32], numbers: &mut [f32]) {
    let (scales, shifts) = normal.split_at(normal.len() / 2);
    if scales.is_empty() {
        return;
    }
    for pixel in numbers.chunks_exact_mut(scales.len()) {
        pixel.iter_mut().zip(scales).zip(shifts).for_each(|((x, scale), shift)| *x = *x * scale + shift);
    }
}

/// Applies them to maps x -> scale x + offset in the place of numbers.
#[inline(always)]
pub(crate) fn compose(normal: &[f32], scales: &mut [f32], offsets: &mut [f32]) {
    let (own, shifts) = normal.split_at(normal.len() / 2);
    if own.is_empty() {
        return;
    }
    for (scales, offsets) in scales.chunks_exact_mut(own.len()).zip(offsets.chunks_exact_mut(own.len())) {
        for ((scale, offset), (own, shift)) in scales.iter_mut().zip(offsets).zip(own.iter().zip(shifts)) {
            *scale *= own;
            *offset = *offset * own + shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privfit_kernel::account::Event;
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Dataset, DatasetBuilder, Entropy, Gaussian, Mechanism, RowShape, Run};

    /// Rows with a mean and a spread of their own in every column, in the unit ball, and a constant at the end.
    fn rows(count: usize, columns: usize) -> Vec<Vec<f64>> {
        let mut state = 88172645463325252u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        let size = 1.0 / (columns as f64 + 1.0).sqrt();
        let one = |j: usize, x: f64| size * (0.6 * (j % 3) as f64 / 2.0 + 0.4 * x);
        (0..count).map(|_| (0..columns).map(|j| one(j, next())).chain([size]).collect()).collect()
    }

    fn dataset(rows: &[Vec<f64>]) -> Dataset {
        let shape = RowShape { dimension: rows[0].len(), row_norm: 1.0, sparse: false, rows_per_unit: None };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        rows.iter().for_each(|row| builder.row(row, 0.0));
        builder.build()
    }

    /// The noisy sums of rows, and the deviation of their noise; the same noise whatever the rows are.
    fn released(data: &Dataset, moments: &Moments, noise_multiplier: f64) -> (Vec<f64>, f64) {
        let mechanism = Gaussian::new(moments.clip(), noise_multiplier, data.unit_count() as u64).unwrap();
        let (engine, entropy, d) = (Threads::new(1), Entropy::simulated(2), moments.dimension());
        let mut run = Run::begin(data, &engine, &entropy, &mechanism.event(d)).unwrap();
        let everyone = run.everyone().unwrap();
        let sums = run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, d)?;
            let sum = everyone.sum(&noise, &moments.contribution())?;
            run.release(noise, &sum)
        });
        (sums.unwrap(), mechanism.standard_deviation())
    }

    /// The vector of one row, without noise to speak of.
    fn vector(row: &[f64], moments: &Moments) -> Vec<f64> {
        released(&dataset(&[row.to_vec()]), moments, 1e-6).0
    }

    fn length(v: &[f64]) -> f64 {
        v.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Closed form: with the weight 1 the longest vectors of rows in the unit ball have the length sqrt 2, which nothing clips; those of many columns are clipped there and not before.
    #[test]
    fn no_vector_is_longer_than_the_clip() {
        let picture = Moments { channels: 3, pixels: 4, scale: 12f64.sqrt(), rows: 1.0, centred: false };
        // All of a row in one channel, spread over its pixels: both halves have the length 1.
        let mut one_channel = vec![0.0; 13];
        (0..4).for_each(|p| one_channel[3 * p + 1] = 0.5);
        let v = vector(&one_channel, &picture);
        assert!((length(&v) - CLIP).abs() < 1e-3 && (v[1] - 1.0).abs() < 1e-3 && (v[4] - 1.0).abs() < 1e-3, "{v:?}");
        // Pixels of opposite signs have no mean, and the constant is no input.
        let opposite: Vec<f64> = (0..12).map(|j| if j / 3 % 2 == 0 { 0.25 } else { -0.25 }).chain([0.5]).collect();
        let v = vector(&opposite, &picture);
        assert!(length(&v[..3]) < 1e-3 && v[3..].iter().all(|q| (q - 0.25).abs() < 1e-3), "{v:?}");
        let table = Moments { channels: 100, pixels: 1, scale: 101f64.sqrt(), rows: 1.0, centred: false };
        assert_eq!((picture.weight(), table.weight()), (1.0, 2.5));
        let mut one_cell = vec![0.0; 101];
        one_cell[7] = 1.0;
        let v = vector(&one_cell, &table);
        // (1, 2.5) brought to the length sqrt 2.
        assert!((length(&v) - CLIP).abs() < 1e-3 && (v[107] / v[7] - 2.5).abs() < 1e-3, "{v:?}");
    }

    /// One record that becomes null moves the sums by at most the clip, another one in its place by at most twice that; a clip of half the size would be exceeded. With sums alone as well.
    #[test]
    fn neighbours_are_within_the_sensitivity() {
        for centred in [false, true] {
            let moments = Moments { channels: 24, pixels: 1, scale: 5.0, rows: 50.0, centred };
            let clip = moments.clip();
            let mut all = rows(50, 24);
            let base = released(&dataset(&all), &moments, 1e-6).0;
            let vertex = |at: usize, x: f64| (0..25).map(|j| if j == at { x } else { 0.0 }).collect::<Vec<f64>>();
            let mut most: f64 = 0.0;
            let mut before = None;
            for row in
                [vec![0.0; 25], vertex(3, 1.0), vertex(3, -1.0), vertex(4, 1.0), vec![0.2; 25], vec![9.0; 25], vec![f64::NAN; 25]]
            {
                all[17] = row.clone();
                let sums = released(&dataset(&all), &moments, 1e-6).0;
                let null = before.get_or_insert_with(|| sums.clone());
                let gap = |other: &[f64]| length(&sums.iter().zip(other).map(|(a, b)| a - b).collect::<Vec<_>>());
                assert!(gap(null) <= clip + 1e-3, "{row:?} against null: {}", gap(null));
                assert!(gap(&base) <= 2.0 * clip + 1e-3, "{row:?}: {}", gap(&base));
                most = most.max(gap(null));
            }
            assert!(most > 0.9 * clip, "nothing came near to the bound: {most}");
        }
    }

    /// Sums alone: without noise every number has mean 0 after it and keeps its variance; under much noise the mean is left as it is.
    #[test]
    fn inputs_are_centred() {
        let rows = rows(3000, 12);
        let moments = Moments { channels: 12, pixels: 1, scale: 13f64.sqrt(), rows: 3000.0, centred: true };
        let (sums, deviation) = released(&dataset(&rows), &moments, 1e-6);
        assert_eq!(sums.len(), 12);
        let normal = moments.normal(&sums, deviation);
        assert!(normal[..12].iter().all(|scale| *scale == 1.0));
        for (c, shift) in normal[12..].iter().enumerate() {
            let mean = rows.iter().map(|r| r[c] * moments.scale).sum::<f64>() / 3000.0;
            assert!((mean + f64::from(*shift)).abs() < 5e-3, "{c}: {mean} {shift}");
        }
        let (sums, deviation) = released(&dataset(&rows), &moments, 1e6);
        let shifts = &moments.normal(&sums, deviation)[12..];
        let size = moments.scale * deviation / 3000.0;
        assert!(shifts.iter().map(|s| f64::from(s * s)).sum::<f64>() < 12.0 * size * size, "{shifts:?}");
        assert!(moments.normal(&[0.0; 12], 1.0).iter().all(|x| x.is_finite()));
    }

    /// Without noise every column, and every channel of pictures, has mean 0 and variance 1 after it.
    #[test]
    fn inputs_have_mean_zero_and_variance_one() {
        for (channels, pixels) in [(12, 1), (3, 4), (1, 12)] {
            let rows = rows(3000, channels * pixels);
            let moments = Moments { channels, pixels, scale: 13f64.sqrt(), rows: 3000.0, centred: false };
            let (sums, deviation) = released(&dataset(&rows), &moments, 1e-6);
            let normal = moments.normal(&sums, deviation);
            let mut inputs: Vec<f32> =
                rows.iter().flat_map(|r| r[..channels * pixels].iter().map(|x| (x * moments.scale) as f32)).collect();
            apply(&normal, &mut inputs);
            for c in 0..channels {
                let own: Vec<f64> = inputs.iter().skip(c).step_by(channels).map(|x| f64::from(*x)).collect();
                let mean = own.iter().sum::<f64>() / own.len() as f64;
                let variance = own.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / own.len() as f64;
                assert!(mean.abs() < 5e-3 && (variance - 1.0).abs() < 5e-3, "{channels} {c}: {mean} {variance}");
            }
        }
    }

    /// A column with nothing in it, and columns under much noise, are not blown up; sums that are no numbers make no others.
    #[test]
    fn noise_is_not_blown_up() {
        let mut empty = rows(3000, 12);
        empty.iter_mut().for_each(|r| r[5] = 0.0);
        let data = dataset(&empty);
        let moments = Moments { channels: 12, pixels: 1, scale: 13f64.sqrt(), rows: 3000.0, centred: false };
        for noise_multiplier in [1e-6, 1.0, 30.0, 3000.0] {
            let (sums, deviation) = released(&data, &moments, noise_multiplier);
            let normal = moments.normal(&sums, deviation);
            let most = (1.0 / LEAST_VARIANCE).sqrt() as f32;
            assert!(normal[..12].iter().all(|s| *s > 0.0 && *s <= most), "{noise_multiplier}: {normal:?}");
            if noise_multiplier == 3000.0 {
                assert!(normal[..12].iter().all(|s| *s <= 1.0), "{normal:?}");
            }
        }
        let normal = moments.normal(&[f64::NAN; 24], 1.0);
        assert!(normal[..12].iter().all(|s| s.is_finite()));
        let event =
            |m: f64| matches!(Gaussian::new(CLIP, m, 10).unwrap().event(24), Event::DiscreteGaussian { dimension: 24, .. });
        assert!(event(2.0));
    }
}
