//! Gradients in f64 on fixed-point rows, for minimisers: scores of a tile of rows, slopes, weighted sum of the rows.
//!
//! Memory traffic: 2 bytes a cell once from memory and once more from the first-level cache. What costs is turning 16-bit integers
//! into doubles, so wide instructions do that, four rows at a time.

use crate::store::compressed::wide;
use crate::store::data::{Dataset, Rows};
use crate::query::loss::Loss;
use crate::mechanism::ROW_LIMIT;
use std::ops::Range;

/// Rows whose scores are computed together.
const TILE: usize = 64;
/// Weights and sums are padded to whole vectors of this many numbers; cells past a row meet weights of zero.
const LANES: usize = 8;

/// One integer step of a cell in the caller's units: a hair below, so that rounding never puts a row outside of its ball.
pub(crate) fn cell_unit(data: &Dataset) -> f64 {
    data.row_norm / ROW_LIMIT as f64 * (1.0 - 4.0 * f64::EPSILON)
}

/// Length of one output's weights with padding.
pub(crate) fn padded(d: usize) -> usize {
    d.next_multiple_of(LANES)
}

/// Weights times the cell unit, output after output, with padding.
pub(crate) fn scaled_weights(data: &Dataset, theta: &[f64]) -> Vec<f64> {
    let (d, unit) = (data.dimension, cell_unit(data));
    let mut out = vec![0f64; theta.len() / d * padded(d)];
    for (to, from) in out.chunks_mut(padded(d)).zip(theta.chunks(d)) {
        to.iter_mut().zip(from).for_each(|(t, f)| *t = f * unit);
    }
    out
}

/// Working memory of one thread.
pub(crate) struct BlockGradient<'a> {
    data: &'a Dataset,
    loss: &'a Loss,
    chosen: Option<&'a [bool]>,
    weights: Vec<f64>,
    scores: Vec<f64>,
    slopes: Vec<f64>,
    wide: bool,
    /// All weights are 0, and so are all scores.
    nowhere: bool,
}

impl<'a> BlockGradient<'a> {
    pub(crate) fn new(data: &'a Dataset, loss: &'a Loss, chosen: Option<&'a [bool]>, theta: &[f64]) -> BlockGradient<'a> {
        let size = TILE * loss.outputs;
        BlockGradient {
            data,
            loss,
            chosen,
            weights: scaled_weights(data, theta),
            scores: vec![0.0; size],
            slopes: vec![0.0; size],
            wide: wide(),
            nowhere: theta.iter().all(|w| *w == 0.0),
        }
    }

    /// Goes on at another point.
    pub(crate) fn move_to(&mut self, theta: &[f64]) {
        let (d, unit) = (self.data.dimension, cell_unit(self.data));
        for (to, from) in self.weights.chunks_mut(padded(d)).zip(theta.chunks(d)) {
            to.iter_mut().zip(from).for_each(|(t, f)| *t = f * unit);
        }
        self.nowhere = theta.iter().all(|w| *w == 0.0);
    }

    /// Adds the gradients of the rows of some slots to `sum`, in cell units and with padding.
    pub(crate) fn add(&mut self, slots: Range<usize>, sum: &mut [f64]) {
        let Range { start, end } = slots;
        if self.data.units.is_none() {
            let mut row = start;
            while row < end {
                let next = (row + TILE).min(end);
                self.tile(row..next, |chosen, row| chosen[row], sum);
                row = next;
            }
            return;
        }
        for slot in start..end {
            let rows = self.data.rows_of(slot);
            let mut row = rows.start;
            while row < rows.end {
                let next = (row + TILE).min(rows.end);
                self.tile(row..next, |chosen, _| chosen[slot], sum);
                row = next;
            }
        }
    }

    fn tile(&mut self, rows: Range<usize>, is_chosen: impl Fn(&[bool], usize) -> bool, sum: &mut [f64]) {
        let (p, k, n) = (padded(self.data.dimension), self.loss.outputs, rows.len());
        if self.nowhere {
            self.scores.fill(0.0);
        }
        for o in (0..k).filter(|_| !self.nowhere) {
            score_rows(self.data, rows.clone(), &self.weights[o * p..(o + 1) * p], &mut self.scores[o..], k, self.wide);
        }
        self.loss.bounded_slopes(&self.scores[..n * k], &self.data.labels[rows.clone()], &mut self.slopes[..n * k]);
        if let Some(chosen) = self.chosen {
            for (row, s) in rows.clone().zip(self.slopes.chunks_mut(k)) {
                if !is_chosen(chosen, row) {
                    s.fill(0.0);
                }
            }
        }
        for o in 0..k {
            add_rows(self.data, rows.clone(), &self.slopes[o..], k, &mut sum[o * p..(o + 1) * p], self.wide);
        }
    }
}

/// Inner products of rows with weights of `scaled_weights`; written with a stride.
pub(crate) fn scores(data: &Dataset, rows: Range<usize>, weights: &[f64], out: &mut [f64], stride: usize) {
    score_rows(data, rows, weights, out, stride, wide());
}

fn score_rows(data: &Dataset, rows: Range<usize>, weights: &[f64], out: &mut [f64], stride: usize, wide: bool) {
    let d = data.dimension;
    match &data.rows {
        Rows::Dense(cells) => {
            let cells = &cells[rows.start * d..];
            #[cfg(target_arch = "x86_64")]
            if wide {
                // SAFETY: the processor has the instructions; every row is followed by at least PADDING more cells.
                return unsafe { x86::scores(cells, d, rows.len(), weights, out, stride) };
            }
            let _ = wide;
            for (i, row) in cells[..rows.len() * d].chunks_exact(d).enumerate() {
                out[i * stride] = dot(row, weights);
            }
        }
        Rows::Sparse(sparse) => sparse.scores(rows, weights, out, stride),
    }
}

/// Adds slope x row for every row.
fn add_rows(data: &Dataset, rows: Range<usize>, slopes: &[f64], stride: usize, sum: &mut [f64], wide: bool) {
    let d = data.dimension;
    match &data.rows {
        Rows::Dense(cells) => {
            let cells = &cells[rows.start * d..];
            #[cfg(target_arch = "x86_64")]
            if wide {
                // SAFETY: the processor has the instructions; every row is followed by at least PADDING more cells.
                return unsafe { x86::add_rows(cells, d, rows.len(), slopes, stride, sum) };
            }
            let _ = wide;
            for (i, row) in cells[..rows.len() * d].chunks_exact(d).enumerate() {
                let s = slopes[i * stride];
                sum.iter_mut().zip(row).for_each(|(t, x)| *t += s * f64::from(*x));
            }
        }
        Rows::Sparse(sparse) => sparse.add(rows, slopes, stride, sum),
    }
}

/// Inner product in lanes, so that the compiler can use what every processor has.
fn dot(row: &[i16], weights: &[f64]) -> f64 {
    let mut lanes = [0f64; LANES];
    let (x, w) = (row.chunks_exact(LANES), weights[..row.len()].chunks_exact(LANES));
    let rest: f64 = x.remainder().iter().zip(w.remainder()).map(|(x, w)| f64::from(*x) * w).sum();
    for (x, w) in x.zip(w) {
        for i in 0..LANES {
            lanes[i] += f64::from(x[i]) * w[i];
        }
    }
    // A tree, not a chain.
    for half in [4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0] + rest
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::LANES;
    use std::arch::x86_64::*;

    /// Four cells as doubles.
    ///
    /// # Safety
    /// Four cells must be readable at the pointer.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn four(cells: *const i16) -> __m256d {
        // SAFETY: the caller's word.
        _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(unsafe { _mm_loadl_epi64(cells.cast()) }))
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn scores(cells: &[i16], d: usize, rows: usize, weights: &[f64], out: &mut [f64], stride: usize) {
        let chunks = d.div_ceil(LANES);
        assert!(weights.len() >= LANES * chunks);
        assert!(rows == 0 || (cells.len() >= (rows - 1) * d + LANES * chunks && out.len() > (rows - 1) * stride));
        let mut row = 0;
        while row < rows {
            let n = 4.min(rows - row);
            let mut sums = [_mm256_setzero_pd(); 8];
            // The last rows of a tile are computed with the last one repeated.
            let at = [0, 1, 2, 3].map(|i: usize| (row + i.min(n - 1)) * d);
            for c in 0..chunks {
                // SAFETY: asserted above.
                unsafe {
                    let w = weights.as_ptr().add(LANES * c);
                    let (low, high) = (_mm256_loadu_pd(w), _mm256_loadu_pd(w.add(4)));
                    for i in 0..4 {
                        let x = cells.as_ptr().add(at[i] + LANES * c);
                        sums[i] = _mm256_fmadd_pd(four(x), low, sums[i]);
                        sums[4 + i] = _mm256_fmadd_pd(four(x.add(4)), high, sums[4 + i]);
                    }
                }
            }
            for i in 0..n {
                let sum = _mm256_add_pd(sums[i], sums[4 + i]);
                let sum = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
                out[(row + i) * stride] = _mm_cvtsd_f64(_mm_add_sd(sum, _mm_unpackhi_pd(sum, sum)));
            }
            row += n;
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add_rows(cells: &[i16], d: usize, rows: usize, slopes: &[f64], stride: usize, sum: &mut [f64]) {
        let chunks = d.div_ceil(LANES);
        assert!(sum.len() >= LANES * chunks);
        assert!(rows == 0 || (cells.len() >= (rows - 1) * d + LANES * chunks && slopes.len() > (rows - 1) * stride));
        let mut row = 0;
        while row < rows {
            let n = 4.min(rows - row);
            let at = [0, 1, 2, 3].map(|i: usize| (row + i.min(n - 1)) * d);
            let slope = [0, 1, 2, 3].map(|i: usize| _mm256_set1_pd(if i < n { slopes[(row + i) * stride] } else { 0.0 }));
            for c in 0..chunks {
                // SAFETY: asserted above.
                unsafe {
                    let to = sum.as_mut_ptr().add(LANES * c);
                    let (mut low, mut high) = (_mm256_loadu_pd(to), _mm256_loadu_pd(to.add(4)));
                    for i in 0..4 {
                        let x = cells.as_ptr().add(at[i] + LANES * c);
                        low = _mm256_fmadd_pd(four(x), slope[i], low);
                        high = _mm256_fmadd_pd(four(x.add(4)), slope[i], high);
                    }
                    _mm256_storeu_pd(to, low);
                    _mm256_storeu_pd(to.add(4), high);
                }
            }
            row += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dataset;

    /// Wide and plain code agree to rounding, for every remainder of rows and features.
    #[test]
    fn wide_and_plain_agree() {
        for d in [1usize, 7, 8, 9, 31] {
            for n in [1usize, 2, 3, 4, 5, 64] {
                let data = dataset(n, d, false, None);
                let theta: Vec<f64> = (0..d).map(|j| (j as f64 * 0.7).sin()).collect();
                let weights = scaled_weights(&data, &theta);
                let slopes: Vec<f64> = (0..n).map(|i| (i as f64 * 1.3).cos()).collect();
                let each = |wide: bool| {
                    let (mut out, mut sum) = (vec![0.0; n], vec![0.0; padded(d)]);
                    score_rows(&data, 0..n, &weights, &mut out, 1, wide);
                    add_rows(&data, 0..n, &slopes, 1, &mut sum, wide);
                    out.extend_from_slice(&sum[..d]);
                    out
                };
                let exact: Vec<f64> = (0..n).map(|i| data.unit(i).dot(0, &theta)).collect();
                let (plain, fast) = (each(false), each(wide()));
                assert!(plain.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-12), "{d} {n}");
                assert!(plain.iter().zip(&fast).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + a.abs())), "{d} {n}");
            }
        }
    }
}
