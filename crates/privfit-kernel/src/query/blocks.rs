//! Sums of vectors that are computed many at a time, in floating point: networks. Norms of the units of a block first, then their weighted sum.
//!
//! *Claim.* Blocks are cut by the indices of units, never by positions in a sample, so that whether a unit is in the sample changes its own block
//! only. Of a block the sampled units are gathered. If there are at most [`OCCUPANCY`] = c of them, their sum with weights min(1, clip / norm) is
//! made in floating point and is off by at most E = clip x error x c, `error` being the stated relative error of norms and sums for one unit. The
//! sum is rounded as a whole. If there are more, or if the sum is not finite, each unit is computed by itself, clipped and put on the grid on the
//! integers, so that it adds a vector that no other unit can change. One unit more or less, or another one in its place, moves a block by its own
//! clip (twice that), by 2E, and, where it makes the block change from one way to the other, by the rounding of c units: (c + 2) sqrt(d) steps
//! in all. This is the sensitivity that `Gaussian::for_blocks` is made with. It rests on the stated error, so that such a value has the grade
//! `bounded`.
//!
//! *Exact.* If asked for, every unit is computed by itself, in working memory that was cleared, and what it adds is checked on the integers. The
//! mechanism is then `Gaussian::new`, which knows no error, and the grade is `exact`: whatever the functions compute, a unit moves the sum by
//! its clip at the most, because nothing of one unit is left for the next.
//!
//! How many units of a block are sampled is decided by coins alone, so that empty blocks may be skipped. Under add-remove the index of a unit
//! depends on those before it: refused.

use super::contribution::UnitRandomness;
use crate::batch::Batch;
use crate::engine::SLOW_TASK;
use crate::error::{Error, Result};
use crate::limits::ALIGNMENT;
use crate::limits::OCCUPANCY;
use crate::mechanism::GridKind;
use crate::norm::{L2, quantise};
use crate::quiet::quietly;
use crate::rng::NoiseRng;
use crate::store::dataset::{Dataset, Unit};
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// Units of a block, so many that it has room for the sample nearly always: a public number.
fn units_in_block(rate: Option<f64>) -> usize {
    let mean = 0.625 * OCCUPANCY as f64;
    let units = (mean / rate.unwrap_or(1.0)).min(ALIGNMENT as f64) as usize;
    // The largest power of two, which divides the alignment.
    1 << units.ilog2()
}

/// The sampled units of a block.
#[derive(Clone, Copy)]
pub struct UnitBlock<'u> {
    data: &'u Dataset,
    unit_count: &'u [usize],
    key: &'u [u8; 32],
}

impl<'u> UnitBlock<'u> {
    /// How many.
    pub fn len(&self) -> usize {
        self.unit_count.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.unit_count.is_empty()
    }

    /// One of them; a number too high gives the last.
    pub fn get(&self, i: usize) -> Unit<'u> {
        self.data.unit(self.unit_count[i.min(self.unit_count.len() - 1)])
    }

    /// Randomness of one of them (augmentation, dropout): the same for both passes of a step.
    pub fn rng(&self, i: usize) -> NoiseRng {
        let index = (self.data.first + self.unit_count[i.min(self.unit_count.len() - 1)]) as u64;
        UnitRandomness { key: self.key, index }.rng()
    }

    /// The first row of each unit, one after the other, in single precision, times a scale and with a shift; zeros for a unit without rows. Room for `len` x so many of the first features.
    pub fn copy_rows(&self, scale: f32, shift: f32, out: &mut [f32]) {
        let (table, unit) = (self.data.table(), self.data.cell_unit() as f32 * scale);
        let d = (out.len() / self.len().max(1)).max(1);
        for (i, (unit_index, to)) in self.unit_count.iter().zip(out.chunks_exact_mut(d)).enumerate() {
            // Sampled rows lie far apart: the one after the next is asked for while this one is copied.
            self.fetch(i + 2);
            match self.data.rows_of(*unit_index).next() {
                Some(row) => table.copy_row(row, unit, shift, to),
                None => to.fill(0.0),
            }
        }
    }

    /// Cells of a row, if all of them are stored: rows may be read as they are.
    pub fn row_length(&self) -> Option<usize> {
        self.data.table().row_length()
    }

    /// The cells of the first row of a unit; none for a unit without rows, or where they are not stored.
    pub fn row(&self, i: usize) -> &'u [i16] {
        let row = self.unit_count.get(i).and_then(|unit_index| self.data.rows_of(*unit_index).next());
        row.map_or(&[], |row| self.data.table().row(row))
    }

    /// What a cell is multiplied by.
    pub fn cell_unit(&self) -> f64 {
        self.data.cell_unit()
    }

    /// Asks the memory for the first row of a unit, which will be read soon; nothing if there is no such unit.
    pub fn fetch(&self, i: usize) {
        if let Some(row) = self.unit_count.get(i).and_then(|unit_index| self.data.rows_of(*unit_index).next()) {
            self.data.table().fetch(row);
        }
    }

    fn only(&self, i: usize) -> UnitBlock<'u> {
        UnitBlock { unit_count: &self.unit_count[i..=i], ..*self }
    }

    /// The label of the first row of each unit; NaN for a unit without rows.
    pub fn copy_labels(&self, out: &mut [f32]) {
        for (i, label) in out.iter_mut().enumerate().take(self.len()) {
            let unit = self.get(i);
            *label = if unit.rows() > 0 { unit.label(0) } else { f32::NAN };
        }
    }
}

/// How units of a block become a sum. Functions are capture-free, as those of a `Contribution` are; parameters are borrowed.
#[derive(Clone, Copy)]
pub struct Blockwise<'a> {
    /// Name in certificates and fuzz reports.
    pub name: &'static str,
    /// Length of the vector.
    pub dimension: usize,
    /// Relative error that the norm of a unit, and its part of a sum, may have; enters the sensitivity.
    pub error: f64,
    /// Whether every unit is computed by itself and checked on the integers; needs `Gaussian::new`.
    pub exact: bool,
    /// How vectors are brought to the clip.
    pub clipping: Clipping,
    /// Labels in this range; a unit with another label adds nothing.
    pub labels: (f32, f32),
    /// Public parameters: weights.
    pub parameters: &'a [f32],
    /// Public parameters: sizes.
    pub layout: &'a [usize],
    /// Numbers of working memory that the functions want.
    pub scratch: usize,
    /// Units that the functions are called with, at the most. What one call leaves in the working memory the next one finds.
    pub at_once: usize,
    /// Euclidean norm of each unit's vector.
    pub norms: fn(&Blockwise<'_>, &UnitBlock<'_>, &mut [f32], &mut [f32]),
    /// Adds the weighted sum of the units' vectors; a unit of weight 0 must add nothing at all. Weights, scratch, sum.
    pub weighted: fn(&Blockwise<'_>, &UnitBlock<'_>, &[f32], &mut [f32], &mut [f32]),
}

/// What a vector of a unit is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clipping {
    /// 1, or what brings it to the clip if it is longer.
    Norm,
    /// What brings it to the clip, nearly, whatever its length: clip over its norm and this number, in units of the clip.
    Automatic(f32),
}

/// The least that automatic clipping adds to a norm, in units of the clip: a norm that single precision makes 0 is not multiplied by more than its inverse.
const LEAST_MORE: f32 = 1e-3;

impl Clipping {
    /// Never above clip over norm.
    fn factor(self, clip: f32, norm: f32) -> f32 {
        let norm = norm.max(f32::MIN_POSITIVE);
        let factor = match self {
            Clipping::Norm => (clip / norm).min(1.0),
            Clipping::Automatic(more) => clip / (norm + clip * more.max(LEAST_MORE)),
        };
        // Below, a factor has fewer digits than the error that is charged.
        if factor < f32::MIN_POSITIVE { 0.0 } else { factor }
    }
}

impl Blockwise<'_> {
    fn knows(&self, unit: Unit<'_>) -> bool {
        unit.rows() > 0 && (0..unit.rows()).all(|row| unit.label(row) >= self.labels.0 && unit.label(row) <= self.labels.1)
    }
}

/// Working memory of one thread.
struct Work {
    unit_count: Vec<usize>,
    single: Vec<f64>,
    integers: Vec<i64>,
}

/// Weighted sum of one block in `sum`; false if it is not finite or panicked.
fn block_sum(blocks: &Blockwise<'_>, units: UnitBlock<'_>, clip: f64, scratch: &mut [f32], sum: &mut [f32]) -> bool {
    let (mut norms, mut weights) = ([0f32; OCCUPANCY], [0f32; OCCUPANCY]);
    sum.fill(0.0);
    let call = || {
        for own in units.unit_count.chunks(blocks.at_once.clamp(1, OCCUPANCY)) {
            let (units, n) = (UnitBlock { unit_count: own, ..units }, own.len());
            (blocks.norms)(blocks, &units, scratch, &mut norms[..n]);
            for i in 0..n {
                let fits = norms[i].is_finite() && blocks.knows(units.get(i));
                weights[i] = if fits { blocks.clipping.factor(clip as f32, norms[i]) } else { 0.0 };
            }
            (blocks.weighted)(blocks, &units, &weights[..n], scratch, sum);
        }
    };
    // One that is not finite makes the sum of all zeros something else than zero.
    quietly(call).is_some() && zero_times(sum) == 0.0
}

/// Zero times the sum, in lanes.
fn zero_times(sum: &[f32]) -> f32 {
    let (chunks, rest) = sum.as_chunks::<16>();
    let mut lanes = [0f32; 16];
    for chunk in chunks {
        (0..16).for_each(|i| lanes[i] += 0.0 * chunk[i]);
    }
    lanes.iter().chain(rest).fold(0.0, |bad, s| bad + 0.0 * s)
}

/// Adds a sum in grid steps, rounded.
fn add_rounded(total: &mut [i64], sum: &[f32], step: f64) {
    #[cfg(target_arch = "x86_64")]
    if crate::processor::wide() {
        // SAFETY: the processor has the instructions.
        return unsafe { add_rounded_wide(total, sum, step) };
    }
    add_rounded_plain(total, sum, step);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_rounded_wide(total: &mut [i64], sum: &[f32], step: f64) {
    add_rounded_plain(total, sum, step);
}

#[inline(always)]
fn add_rounded_plain(total: &mut [i64], sum: &[f32], step: f64) {
    // Adding 1.5 x 2^52 leaves the integer in the last bits, for sizes below 2^51; a sum of clipped units is far below, and what is not is
    // clipped to it, which moves no two sums apart.
    const PUSH: f64 = 6_755_399_441_055_744.0;
    const MOST: f64 = 2_251_799_813_685_247.0;
    for (total, s) in total.iter_mut().zip(sum) {
        let x = (f64::from(*s) * step).max(-MOST).min(MOST);
        *total = total.wrapping_add((x + PUSH).to_bits().wrapping_sub(PUSH.to_bits()) as i64);
    }
}

impl<'d> Batch<'d> {
    /// Sum of blocks. The mechanism must come from `Gaussian::for_blocks` with the same error, or from `Gaussian::new` if units are exact.
    pub fn sum_blocks<'id>(&self, noise: &Noise<'id, L2>, blocks: &Blockwise<'_>) -> Result<Bounded<'id, L2>> {
        let dimension = blocks.dimension;
        let kind = match noise.grid.kind {
            GridKind::Clipped if blocks.exact => GridKind::Clipped,
            GridKind::Blocks { error, .. } if !blocks.exact => {
                if !(f64::from_bits(error) >= blocks.error && blocks.error > 0.0) {
                    return Err(Error::Mismatch { what: "Gaussian::for_blocks was made for a smaller error" });
                }
                GridKind::Blocks { dimension, error }
            }
            _ => {
                return Err(Error::Mismatch {
                    what: "sums of blocks need Gaussian::for_blocks, or Gaussian::new if they are exact",
                });
            }
        };
        let grid = self.grid(noise, dimension, &[kind])?;
        let size = units_in_block(self.origin.rate.or(self.origin.share));
        let step = 1.0 / grid.unit;
        let add = |range: Range<usize>, out: &mut [i64]| {
            let mut work = Work { unit_count: Vec::with_capacity(size), single: Vec::new(), integers: Vec::new() };
            let mut memory = self.seam.borrow_memory(dimension + blocks.scratch);
            let (sum, rest) = memory.split_at_mut(dimension);
            let scratch = &mut rest[..blocks.scratch];
            for start in range.clone().step_by(size) {
                work.unit_count.clear();
                self.chosen.each(start..(start + size).min(range.end), |unit_index| work.unit_count.push(unit_index));
                let units = UnitBlock { data: self.data, unit_count: &work.unit_count, key: &self.unit_key };
                if units.is_empty() {
                    continue;
                }
                let together = !blocks.exact && units.len() <= OCCUPANCY;
                if together && block_sum(blocks, units, grid.clip, scratch, sum) {
                    add_rounded(out, sum, step);
                    continue;
                }
                for i in 0..units.len() {
                    // What the unit before left there must not reach this one, whatever the functions read.
                    scratch.fill(0.0);
                    if !block_sum(blocks, units.only(i), grid.clip, scratch, sum) {
                        continue;
                    }
                    work.single.clear();
                    work.single.extend(sum.iter().map(|s| f64::from(*s)));
                    quantise::<L2>(&mut work.single, grid.clip, step, grid.bound, &mut work.integers);
                    out.iter_mut().zip(&work.integers).for_each(|(total, z)| *total = total.wrapping_add(*z));
                }
            }
            self.seam.return_memory(memory);
        };
        let mut value = self.finish(self.share_by(SLOW_TASK, size, dimension, &add), grid);
        value.origin.order_dependent = true;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Event;
    use crate::batch::Chosen;
    use crate::engine::Threads;
    use crate::{DatasetBuilder, Entropy, Gaussian, Norm, RowShape, Run};

    /// Rows as vectors, with a constant: what a layer with a bias has.
    fn rows(dimension: usize) -> Blockwise<'static> {
        Blockwise {
            name: "rows",
            dimension,
            error: 1e-5,
            exact: false,
            labels: (0.0, 1.0),
            parameters: &[],
            layout: &[],
            scratch: OCCUPANCY * 8,
            at_once: OCCUPANCY,
            clipping: Clipping::Norm,
            norms: |_, units, scratch, out| {
                let scratch = &mut scratch[..units.len() * 8];
                units.copy_rows(1.0, 0.0, scratch);
                out.iter_mut().zip(scratch.chunks(8)).for_each(|(o, x)| *o = (1.0 + x.iter().map(|x| x * x).sum::<f32>()).sqrt());
            },
            weighted: |_, units, weights, scratch, out| {
                let scratch = &mut scratch[..units.len() * 8];
                units.copy_rows(1.0, 0.0, scratch);
                for (w, x) in weights.iter().zip(scratch.chunks(8)).filter(|(w, _)| **w > 0.0) {
                    out[8] += w;
                    out.iter_mut().zip(x).for_each(|(o, x)| *o += w * x);
                }
            },
        }
    }

    fn data(units: usize, changed: Option<(usize, &[f64], f32)>) -> Dataset {
        let shape = RowShape { dimension: 8, row_norm: 1.0, sparse: false, rows_per_unit: None };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        for i in 0..units {
            let row: Vec<f64> = (0..8).map(|j| ((i * 31 + j * 17) as f64 * 0.7).sin() * 0.3).collect();
            match changed {
                Some((at, row, label)) if at == i => builder.row(row, label),
                _ => builder.row(&row, (i % 2) as f32),
            }
        }
        builder.build()
    }

    /// The integers of a sum over some units of a large block.
    fn integers(data: &Dataset, sampled: &[usize]) -> (Vec<i64>, u64) {
        let (value, sensitivity, _) = sum_of(data, sampled, &rows(9)).unwrap();
        (value, sensitivity)
    }

    /// Integers, sensitivity and grid unit of a sum.
    fn sum_of(data: &Dataset, sampled: &[usize], blocks: &Blockwise<'_>) -> Result<(Vec<i64>, u64, f64)> {
        let mechanism = match blocks.exact {
            true => Gaussian::new(0.5, 1.0, 100),
            false => Gaussian::for_blocks(0.5, 1e-5, 1.0, 100, 9),
        };
        sum_for(&mechanism?, data, sampled, blocks)
    }

    fn sum_for(mechanism: &Gaussian, data: &Dataset, sampled: &[usize], blocks: &Blockwise<'_>) -> Result<(Vec<i64>, u64, f64)> {
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(2));
        let mut run = Run::begin(data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
        let mut batch = run.everyone().unwrap();
        let mut marks = vec![false; data.unit_count()];
        sampled.iter().for_each(|unit_index| marks[*unit_index] = true);
        (batch.chosen, batch.origin.rate) = (Chosen::Marks(marks), Some(0.004));
        run.at(mechanism, |run, scale| {
            let noise = run.draw(&scale, 9)?;
            let value = batch.sum_blocks(&noise, blocks)?;
            Ok((value.values.clone(), value.grid.sensitivity.zero_out, value.grid.unit))
        })
    }

    /// Both ways have the same sum, up to the error that the default is charged for; each takes its own mechanism only, which says its grade.
    #[test]
    fn exact_and_default_sums_agree() {
        let data = data(3000, None);
        let exact = Blockwise { exact: true, ..rows(9) };
        for count in [1usize, 50, 128, 129] {
            let sampled: Vec<usize> = (0..count).map(|i| i * 13 + 5).collect();
            let (a, _, unit_a) = sum_of(&data, &sampled, &rows(9)).unwrap();
            let (b, _, unit_b) = sum_of(&data, &sampled, &exact).unwrap();
            let square: f64 = a.iter().zip(&b).map(|(a, b)| (*a as f64 * unit_a - *b as f64 * unit_b).powi(2)).sum();
            let most = 0.5 * 1e-5 * count as f64 + count as f64 * 7.0 * (unit_a + unit_b);
            assert!(square.sqrt() <= most && square > 0.0, "{count}: {} of {most}", square.sqrt());
        }
        let (plain, blocks) = (Gaussian::new(0.5, 1.0, 100).unwrap(), Gaussian::for_blocks(0.5, 1e-5, 1.0, 100, 9).unwrap());
        assert!(sum_for(&plain, &data, &[5], &rows(9)).is_err() && sum_for(&blocks, &data, &[5], &exact).is_err());
        let grade = |m: &Gaussian| crate::Mechanism::grid(m).0.kind.numerics();
        assert_eq!((grade(&plain), grade(&blocks)), (crate::Numerics::Exact, crate::Numerics::Bounded));
    }

    /// Functions that lie about norms, add far too much, keep what they saw of other units, panic or make numbers that are none, cannot move the exact sum by
    /// more than its sensitivity; the default trusts them, and the first of them moves it further.
    #[test]
    fn broken_functions_do_not_move_exact_sums_too_far() {
        let honest = rows(9);
        let broken = [
            Blockwise { norms: |_, _, _, out| out.fill(0.0), ..honest },
            Blockwise { norms: |_, _, _, out| out.fill(f32::NAN), ..honest },
            Blockwise { norms: |_, _, _, out| out.iter_mut().enumerate().for_each(|(i, o)| *o = [0.0, -1.0][i % 2]), ..honest },
            Blockwise {
                weighted: |_, _, _, _, out| out.iter_mut().enumerate().for_each(|(i, o)| *o += 1e30 * (i as f32 - 4.0)),
                ..honest
            },
            Blockwise { weighted: |_, _, _, _, out| out.fill(f32::INFINITY), ..honest },
            Blockwise { weighted: |_, _, _, _, _| panic!("broken"), ..honest },
            // The sum of all rows that went through this memory: one unit would change what all later ones add.
            Blockwise {
                norms: |_, _, _, out| out.fill(1e-3),
                weighted: |_, units, _, scratch, out| {
                    let mut row = vec![0f32; units.len() * 8];
                    units.copy_rows(10.0, 0.0, &mut row);
                    row.iter().for_each(|x| scratch[20] += x);
                    out.iter_mut().zip([1.0, -1.0].iter().cycle()).for_each(|(o, s)| *o += s * scratch[20]);
                },
                ..honest
            },
        ];
        let long = data(600, Some((0, &[0.35; 8], 1.0)));
        let sampled: Vec<usize> = (0..150).map(|i| i * 4).collect();
        for (number, blocks) in broken.iter().enumerate() {
            let moved = |exact: bool, out_of_it: usize| {
                let blocks = Blockwise { exact, ..*blocks };
                let some = &sampled[..if exact { 150 } else { 100 }];
                let (with, sensitivity, _) = sum_of(&long, some, &blocks).unwrap();
                let without: Vec<usize> = some.iter().copied().filter(|u| *u != sampled[out_of_it]).collect();
                let (without, ..) = sum_of(&long, &without, &blocks).unwrap();
                let gap: Vec<i64> = with.iter().zip(&without).map(|(a, b)| a.wrapping_sub(*b)).collect();
                L2::within(&gap, sensitivity)
            };
            for out_of_it in [0, 1, 70, 149] {
                assert!(moved(true, out_of_it), "{number}: unit {out_of_it} moves the exact sum too far");
            }
            if [0, 6].contains(&number) {
                assert!(!moved(false, 0), "{number}: the default rests on the functions");
            }
        }
    }

    /// A unit that joins the sample, leaves it, or is the one too many for floating point, moves the sum by at most the sensitivity.
    #[test]
    fn one_unit_more_moves_a_block_by_at_most_the_sensitivity() {
        let data = data(3000, None);
        for count in [1usize, 2, 127, 128, 129, 200] {
            let sampled: Vec<usize> = (0..count).map(|i| i * 13 + 5).collect();
            let (with, sensitivity) = integers(&data, &sampled);
            let (without, _) = integers(&data, &sampled[1..]);
            let gap: Vec<i64> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
            assert!(L2::within(&gap, sensitivity), "{count}");
            assert!(!L2::within(&gap, sensitivity / 2), "{count}: it does move");
        }
    }

    /// Another row, an unknown label, or a row that is not finite, in the place of one; of small and of crowded blocks.
    #[test]
    fn another_unit_moves_a_block_by_at_most_twice_the_sensitivity() {
        for count in [3usize, 128, 129] {
            let sampled: Vec<usize> = (0..count).map(|i| i * 13 + 5).collect();
            let (base, sensitivity) = integers(&data(3000, None), &sampled);
            for (row, label) in [([9.0; 8], 1.0), ([0.0; 8], 0.0), ([f64::NAN; 8], 1.0), ([0.4; 8], 7.0)] {
                let (other, _) = integers(&data(3000, Some((5, &row, label))), &sampled);
                let gap: Vec<i64> = base.iter().zip(&other).map(|(a, b)| a - b).collect();
                assert!(L2::within(&gap, 2 * sensitivity), "{count} {row:?}");
                if label == 7.0 {
                    assert!(L2::within(&gap, sensitivity), "an unknown label adds nothing: {count}");
                }
            }
        }
    }

    #[test]
    fn blocks_hold_as_many_units_as_a_sample_fills() {
        assert_eq!([None, Some(0.5), Some(0.01), Some(1e-9)].map(units_in_block), [64, 128, 4096, 16_384]);
        assert!(L2::size(&[3.0, 4.0]) == 5.0);
    }
}
