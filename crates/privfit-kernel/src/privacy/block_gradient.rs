//! Gradients in f64 on fixed-point rows, for minimisers: scores of a block of rows, slopes, weighted sum of the rows.
//!
//! Memory traffic: 2 bytes a cell once from memory and once more from the first-level cache. Loops are plain; with wide
//! instructions switched on the compiler makes the most of them.

use super::data::{Dataset, Rows};
use super::loss::Loss;
use super::mechanism::ROW_LIMIT;
use std::ops::Range;

/// Rows whose scores are computed together.
const TILE: usize = 64;

/// One integer step of a cell in the caller's units: a hair below, so that rounding never puts a row outside of its ball.
pub(crate) fn cell_unit(data: &Dataset) -> f64 {
    data.row_norm / ROW_LIMIT as f64 * (1.0 - 4.0 * f64::EPSILON)
}

/// Working memory of one thread.
pub(crate) struct BlockGradient<'a> {
    data: &'a Dataset,
    loss: &'a Loss,
    chosen: Option<&'a [bool]>,
    /// Weights times the cell unit, output after output.
    weights: Vec<f64>,
    scores: Vec<f64>,
    slopes: Vec<f64>,
}

impl<'a> BlockGradient<'a> {
    pub(crate) fn new(data: &'a Dataset, loss: &'a Loss, chosen: Option<&'a [bool]>, theta: &[f64]) -> BlockGradient<'a> {
        let unit = cell_unit(data);
        let weights = theta.iter().map(|w| w * unit).collect();
        let size = TILE * loss.outputs;
        BlockGradient { data, loss, chosen, weights, scores: vec![0.0; size], slopes: vec![0.0; size] }
    }

    /// Adds the gradients of the rows of some slots to `sum`, in cell units.
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
        let (d, k, n) = (self.data.dimension, self.loss.outputs, rows.len());
        for o in 0..k {
            scores(self.data, rows.clone(), &self.weights[o * d..(o + 1) * d], &mut self.scores[o..], k);
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
            add_rows(self.data, rows.clone(), &self.slopes[o..], k, &mut sum[o * d..(o + 1) * d]);
        }
    }
}

/// Inner products of rows with weights that absorb the cell unit; written with a stride.
pub(crate) fn scores(data: &Dataset, rows: Range<usize>, weights: &[f64], out: &mut [f64], stride: usize) {
    match &data.rows {
        Rows::Dense(cells) => {
            let d = data.dimension;
            for (i, row) in cells[rows.start * d..rows.end * d].chunks_exact(d).enumerate() {
                out[i * stride] = dot(row, weights);
            }
        }
        Rows::Sparse { start, index, value } => {
            for (i, row) in rows.enumerate() {
                let range = start[row]..start[row + 1];
                let pairs = index[range.clone()].iter().zip(&value[range]);
                out[i * stride] = pairs.map(|(j, x)| f64::from(*x) * weights[*j as usize]).sum();
            }
        }
    }
}

/// Adds slope x row for every row.
fn add_rows(data: &Dataset, rows: Range<usize>, slopes: &[f64], stride: usize, sum: &mut [f64]) {
    match &data.rows {
        Rows::Dense(cells) => {
            let d = data.dimension;
            let n = rows.len();
            let rows = &cells[rows.start * d..rows.end * d];
            let mut i = 0;
            while i + 4 <= n {
                let s = [slopes[i * stride], slopes[(i + 1) * stride], slopes[(i + 2) * stride], slopes[(i + 3) * stride]];
                add_four(&rows[i * d..(i + 4) * d], s, sum);
                i += 4;
            }
            for (row, i) in rows[i * d..].chunks_exact(d).zip(i..) {
                let s = slopes[i * stride];
                sum.iter_mut().zip(row).for_each(|(t, x)| *t += s * f64::from(*x));
            }
        }
        Rows::Sparse { start, index, value } => {
            for (i, row) in rows.enumerate() {
                let s = slopes[i * stride];
                let range = start[row]..start[row + 1];
                for (j, x) in index[range.clone()].iter().zip(&value[range]) {
                    sum[*j as usize] += s * f64::from(*x);
                }
            }
        }
    }
}

#[inline]
fn dot(row: &[i16], weights: &[f64]) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        return unsafe { wide_dot(row, weights) };
    }
    lane_dot(row, weights, |a, b, c| a * b + c)
}

#[inline]
fn add_four(rows: &[i16], slopes: [f64; 4], sum: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        return unsafe { wide_add_four(rows, slopes, sum) };
    }
    plain_add_four(rows, slopes, sum, |a, b, c| a * b + c);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn wide_dot(row: &[i16], weights: &[f64]) -> f64 {
    lane_dot(row, weights, |a, b, c| f64::mul_add(a, b, c))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn wide_add_four(rows: &[i16], slopes: [f64; 4], sum: &mut [f64]) {
    plain_add_four(rows, slopes, sum, |a, b, c| f64::mul_add(a, b, c));
}

#[inline(always)]
fn lane_dot(row: &[i16], weights: &[f64], fma: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let mut lanes = [0f64; 16];
    let (x, w) = (row.chunks_exact(16), weights[..row.len()].chunks_exact(16));
    let rest: f64 = x.remainder().iter().zip(w.remainder()).map(|(x, w)| f64::from(*x) * w).sum();
    for (x, w) in x.zip(w) {
        for i in 0..16 {
            lanes[i] = fma(f64::from(x[i]), w[i], lanes[i]);
        }
    }
    // A tree, not a chain.
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0] + rest
}

#[inline(always)]
fn plain_add_four(rows: &[i16], s: [f64; 4], sum: &mut [f64], fma: impl Fn(f64, f64, f64) -> f64) {
    let d = sum.len();
    let (a, rest) = rows.split_at(d);
    let (b, rest) = rest.split_at(d);
    let (c, e) = rest.split_at(d);
    let e = &e[..d];
    for j in 0..d {
        let first = fma(s[0], f64::from(a[j]), s[1] * f64::from(b[j]));
        let second = fma(s[2], f64::from(c[j]), s[3] * f64::from(e[j]));
        sum[j] += first + second;
    }
}
