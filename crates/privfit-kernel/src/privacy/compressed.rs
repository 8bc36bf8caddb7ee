//! Compressed rows: inner products with weights, and sums of rows times derivatives.
//!
//! Memory traffic: six bytes a non-zero cell, once from memory and once more from the first-level cache; weights and sums stay in caches.
//! What costs is the check of every index, so a row's largest index is compared once, and its loads need no check each. Wide and plain code do
//! the same additions in the same order: no bit depends on the processor.

use std::ops::Range;

/// Rows one after the other: row r has the cells start[r] .. start[r + 1].
#[derive(Clone, Copy)]
pub(crate) struct Compressed<'a> {
    pub(crate) start: &'a [usize],
    pub(crate) index: &'a [u32],
    pub(crate) value: &'a [i16],
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn wide() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn wide() -> bool {
    false
}

impl<'a> Compressed<'a> {
    /// Cells of a row, with every index below `length`.
    #[inline(always)]
    fn row(&self, row: usize, length: usize) -> (&'a [u32], &'a [i16]) {
        let cells: Range<usize> = self.start[row]..self.start[row + 1];
        let (index, value) = (&self.index[cells.clone()], &self.value[cells]);
        let largest = index.iter().fold(0, |most: u32, j| most.max(*j));
        assert!(index.is_empty() || (largest as usize) < length, "an index is beyond the last feature");
        (index, value)
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
        // SAFETY: `row` compares the largest index of each row with the number of weights.
        let product = |j: u32, x: i16| f32::from(x) * unsafe { *weights.get_unchecked(j as usize) };
        for (rows, out) in rows.chunks(4).zip(out.chunks_mut(4 * stride)) {
            // The last rows of a block are computed with the last one repeated.
            // One by one: what is called by `map` is not compiled for the wide instructions.
            let (last, length) = (rows.len() - 1, weights.len());
            let a = self.row(rows[0], length);
            let b = self.row(rows[last.min(1)], length);
            let c = self.row(rows[last.min(2)], length);
            let d = self.row(rows[last], length);
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
        for (row, out) in rows.zip(out.iter_mut().step_by(stride)) {
            let (index, value) = self.row(row, weights.len());
            // SAFETY: `row` compared the largest index with the number of weights.
            let weight = |j: u32| unsafe { *weights.get_unchecked(j as usize) };
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
        for (row, derivative) in rows.iter().zip(derivatives) {
            let (index, value) = self.row(*row, out.len());
            for (j, x) in index.iter().zip(value) {
                // SAFETY: `row` compared the largest index with the number of sums.
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
        for (row, derivative) in rows.zip(derivatives.iter().step_by(stride)) {
            let (index, value) = self.row(row, out.len());
            for (j, x) in index.iter().zip(value) {
                // SAFETY: `row` compared the largest index with the number of sums.
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
        let (mut start, mut index, mut value) = (vec![0], Vec::new(), Vec::new());
        for row in 0..10usize {
            for cell in 0..row {
                index.push((7 * cell + row) as u32 % 70);
                value.push((cell as i16 + 1) * if row % 2 == 0 { 3001 } else { -2999 });
            }
            start.push(index.len());
        }
        let rows = Compressed { start: &start, index: &index, value: &value };
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
            for at in start[row]..start[row + 1] {
                score += f64::from(value[at]) * weights[index[at] as usize];
                in_order += f32::from(value[at]) * single[index[at] as usize];
                exact[index[at] as usize] += i64::from(derivatives[row]) * i64::from(value[at]);
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
        Compressed { start: &[0, 2], index: &[1, 5], value: &[1, 1] }.scores(0..1, &[0f64; 5], &mut [0.0], 1);
    }
}
