//! Compressed rows: inner products with weights, and sums of rows times derivatives.
//!
//! Memory traffic: six bytes a non-zero cell, once from memory and once more from the first-level cache; weights and sums stay in caches.
//! Indices are looked at where a row is added, and nowhere else: whoever brings a weight for each of them reads without a check. The fields
//! are private for that reason. Wide and plain code do the same additions in the same order: no bit depends on the processor.

use super::list::{Growing, Memory};
use crate::error::Result;
use crate::processor::wide;
use std::collections::TryReserveError;
use std::ops::Range;
use std::path::Path;

/// Rows one after the other.
pub(crate) struct Compressed {
    /// Row r has the cells start[r] .. start[r + 1].
    start: Memory<usize>,
    index: Memory<u32>,
    value: Memory<i16>,
    /// Above every index.
    below: usize,
}

/// The same while rows are added.
pub(crate) struct CompressedBuilder {
    start: Growing<usize>,
    index: Growing<u32>,
    value: Growing<i16>,
    below: usize,
}

/// Where the cells lie.
#[derive(Clone, Copy)]
pub(crate) struct CompressedRows<'a> {
    start: &'a [usize],
    index: &'a [u32],
    value: &'a [i16],
}

impl<'a> CompressedRows<'a> {
    /// Indices and values of a row.
    #[inline(always)]
    pub(crate) fn row(self, row: usize) -> (&'a [u32], &'a [i16]) {
        let cells: Range<usize> = self.start[row]..self.start[row + 1];
        (&self.index[cells.clone()], &self.value[cells])
    }
}

impl CompressedBuilder {
    /// No rows; in memory, or in files of a directory.
    pub(crate) fn new(directory: Option<&Path>) -> Result<CompressedBuilder> {
        let mut start = Growing::new(directory)?;
        start.push(0);
        Ok(CompressedBuilder { start, index: Growing::new(directory)?, value: Growing::new(directory)?, below: 0 })
    }

    /// Adds a row: an index for each value.
    pub(crate) fn push(&mut self, index: &[u32], value: &[i16]) {
        assert!(index.len() == value.len(), "a row has as many indices as values");
        let largest = index.iter().fold(0, |most: u32, j| most.max(*j));
        self.below = self.below.max(if index.is_empty() { 0 } else { largest as usize + 1 });
        self.index.extend(index);
        self.value.extend(value);
        self.start.push(self.index.len());
    }

    /// Makes room for so many rows and cells more.
    pub(crate) fn try_reserve(&mut self, rows: usize, cells: usize) -> Result<(), TryReserveError> {
        self.start.try_reserve(rows)?;
        self.index.try_reserve(cells)?;
        self.value.try_reserve(cells)
    }

    pub(crate) fn finish(self) -> Compressed {
        let (start, index, value) = (self.start.finish(), self.index.finish(), self.value.finish());
        Compressed { start, index, value, below: self.below }
    }
}

impl Compressed {
    /// Rows.
    pub(crate) fn count(&self) -> usize {
        self.start.len() - 1
    }

    /// The rows as slices.
    #[inline(always)]
    pub(crate) fn rows(&self) -> CompressedRows<'_> {
        CompressedRows { start: &self.start, index: &self.index, value: &self.value }
    }

    /// What every loop without checks begins with.
    #[inline(always)]
    fn has_all(&self, length: usize) {
        assert!(self.below <= length, "an index is beyond the last feature");
    }

    /// Inner products of rows with weights in single precision, written with a stride. Cells of a row are added one after the other, as whoever
    /// walks along columns adds them too (`lazy_scores`); four rows side by side, so that additions do not wait for one another.
    pub(crate) fn scores_in_order(&self, rows: &[usize], weights: &[f32], out: &mut [f32], stride: usize) {
        #[cfg(target_arch = "x86_64")]
        if wide() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.in_order_wide(rows, weights, out, stride) };
        }
        self.in_order(rows, weights, out, stride);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn in_order_wide(&self, rows: &[usize], weights: &[f32], out: &mut [f32], stride: usize) {
        self.in_order(rows, weights, out, stride);
    }

    #[inline(always)]
    fn in_order(&self, rows: &[usize], weights: &[f32], out: &mut [f32], stride: usize) {
        self.has_all(weights.len());
        let all_rows = self.rows();
        // SAFETY: there is a weight for every index.
        let product = |j: u32, x: i16| f32::from(x) * unsafe { *weights.get_unchecked(j as usize) };
        for (rows, out) in rows.chunks(4).zip(out.chunks_mut(4 * stride)) {
            // The last rows of a block are computed with the last one repeated.
            // One by one: what is called by `map` is not compiled for the wide instructions.
            let last = rows.len() - 1;
            let a = all_rows.row(rows[0]);
            let b = all_rows.row(rows[last.min(1)]);
            let c = all_rows.row(rows[last.min(2)]);
            let d = all_rows.row(rows[last]);
            let cells = [a, b, c, d];
            let all = a.0.len().min(b.0.len()).min(c.0.len()).min(d.0.len());
            let (a, b) = ((&a.0[..all], &a.1[..all]), (&b.0[..all], &b.1[..all]));
            let (c, d) = ((&c.0[..all], &c.1[..all]), (&d.0[..all], &d.1[..all]));
            let mut sums = [0f32; 4];
            for k in 0..all {
                sums[0] += product(a.0[k], a.1[k]);
                sums[1] += product(b.0[k], b.1[k]);
                sums[2] += product(c.0[k], c.1[k]);
                sums[3] += product(d.0[k], d.1[k]);
            }
            for ((index, value), sum) in cells.iter().zip(&mut sums) {
                index[all..].iter().zip(&value[all..]).for_each(|(j, x)| *sum += product(*j, *x));
            }
            out.iter_mut().step_by(stride).zip(&sums[..rows.len()]).for_each(|(out, sum)| *out = *sum);
        }
    }

    /// Inner products of rows with weights, written with a stride; four sums to a row.
    pub(crate) fn scores(&self, rows: Range<usize>, weights: &[f64], out: &mut [f64], stride: usize) {
        #[cfg(target_arch = "x86_64")]
        if wide() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.scores_wide(rows, weights, out, stride) };
        }
        self.scores_plain(rows, weights, out, stride);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn scores_wide(&self, rows: Range<usize>, weights: &[f64], out: &mut [f64], stride: usize) {
        self.scores_plain(rows, weights, out, stride);
    }

    #[inline(always)]
    fn scores_plain(&self, rows: Range<usize>, weights: &[f64], out: &mut [f64], stride: usize) {
        self.has_all(weights.len());
        let all_rows = self.rows();
        // SAFETY: there is a weight for every index.
        let weight = |j: u32| unsafe { *weights.get_unchecked(j as usize) };
        for (row, out) in rows.zip(out.iter_mut().step_by(stride)) {
            let (index, value) = all_rows.row(row);
            let mut lanes = [0f64; 4];
            let (index, last) = index.as_chunks::<4>();
            let (value, rest) = value.as_chunks::<4>();
            for (j, x) in index.iter().zip(value) {
                let w = j.map(weight);
                for i in 0..4 {
                    lanes[i] += f64::from(x[i]) * w[i];
                }
            }
            let rest: f64 = last.iter().zip(rest).map(|(j, x)| f64::from(*x) * weight(*j)).sum();
            *out = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest;
        }
    }

    /// Adds rows times integer derivatives. Derivatives and cells are below 2^15 in size.
    pub(crate) fn add_integers(&self, rows: &[usize], derivatives: &[i16], out: &mut [i64]) {
        #[cfg(target_arch = "x86_64")]
        if wide() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.add_integers_wide(rows, derivatives, out) };
        }
        self.add_integers_plain(rows, derivatives, out);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn add_integers_wide(&self, rows: &[usize], derivatives: &[i16], out: &mut [i64]) {
        self.add_integers_plain(rows, derivatives, out);
    }

    #[inline(always)]
    fn add_integers_plain(&self, rows: &[usize], derivatives: &[i16], out: &mut [i64]) {
        self.has_all(out.len());
        let all_rows = self.rows();
        for (row, derivative) in rows.iter().zip(derivatives) {
            let (index, value) = all_rows.row(*row);
            for (j, x) in index.iter().zip(value) {
                // SAFETY: there is a sum for every index.
                let sum = unsafe { out.get_unchecked_mut(*j as usize) };
                *sum = sum.wrapping_add(i64::from(i32::from(*derivative) * i32::from(*x)));
            }
        }
    }

    /// Adds rows times derivatives, which are read with a stride.
    pub(crate) fn add(&self, rows: Range<usize>, derivatives: &[f64], stride: usize, out: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        if wide() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.add_wide(rows, derivatives, stride, out) };
        }
        self.add_plain(rows, derivatives, stride, out);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn add_wide(&self, rows: Range<usize>, derivatives: &[f64], stride: usize, out: &mut [f64]) {
        self.add_plain(rows, derivatives, stride, out);
    }

    #[inline(always)]
    fn add_plain(&self, rows: Range<usize>, derivatives: &[f64], stride: usize, out: &mut [f64]) {
        self.has_all(out.len());
        let all_rows = self.rows();
        for (row, derivative) in rows.zip(derivatives.iter().step_by(stride)) {
            let (index, value) = all_rows.row(row);
            for (j, x) in index.iter().zip(value) {
                // SAFETY: there is a sum for every index.
                unsafe { *out.get_unchecked_mut(*j as usize) += derivative * f64::from(*x) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of every length up to 9: products and sums are those of the definition, and wide code has the bits of plain code.
    #[test]
    fn products_and_sums_are_exact() {
        let mut rows = CompressedBuilder::new(None).unwrap();
        for row in 0..10usize {
            let index: Vec<u32> = (0..row).map(|cell| (7 * cell + row) as u32 % 70).collect();
            let value: Vec<i16> = (0..row).map(|cell| (cell as i16 + 1) * if row % 2 == 0 { 3001 } else { -2999 }).collect();
            rows.push(&index, &value);
        }
        let rows = rows.finish();
        let weights: Vec<f64> = (0..70).map(|j| (f64::from(j) * 0.7).sin()).collect();
        let single: Vec<f32> = weights.iter().map(|w| *w as f32).collect();
        let all: Vec<usize> = (0..10).collect();
        let (mut wide, mut plain) = ([0f32; 20], [0f32; 20]);
        rows.scores_in_order(&all, &single, &mut wide, 2);
        rows.in_order(&all, &single, &mut plain, 2);
        assert_eq!(wide.map(f32::to_bits), plain.map(f32::to_bits));
        let derivatives: Vec<i16> = (0..10).map(|i| [32767, -32767, 5][i % 3]).collect();
        let (mut scores, mut sums, mut reals) = ([0f64; 10], vec![0i64; 70], vec![0f64; 70]);
        rows.scores(0..10, &weights, &mut scores, 1);
        rows.add_integers(&all, &derivatives, &mut sums);
        rows.add(0..10, &derivatives.iter().map(|s| f64::from(*s)).collect::<Vec<_>>(), 1, &mut reals);
        let mut exact = vec![0i64; 70];
        for row in 0..10 {
            let (mut score, mut in_order) = (0.0, 0f32);
            let (index, value) = rows.rows().row(row);
            for (j, x) in index.iter().map(|j| *j as usize).zip(value) {
                score += f64::from(*x) * weights[j];
                in_order += f32::from(*x) * single[j];
                exact[j] += i64::from(derivatives[row]) * i64::from(*x);
            }
            assert!((score - scores[row]).abs() < 1e-9 && in_order == wide[2 * row] && wide[2 * row + 1] == 0.0, "{row}");
        }
        assert_eq!(sums, exact);
        assert!(reals.iter().zip(&exact).all(|(a, b)| *a == *b as f64));
    }

    /// Loads are not checked one by one, so an index beyond the weights must end the run before any of them.
    #[test]
    #[should_panic(expected = "beyond the last feature")]
    fn an_index_beyond_the_end_is_never_read() {
        let mut rows = CompressedBuilder::new(None).unwrap();
        rows.push(&[5, 1], &[1, 1]);
        rows.push(&[], &[]);
        rows.finish().scores(1..2, &[0f64; 5], &mut [0.0], 1);
    }
}
