//! Gradient sums of linear models on 16-bit rows: derivative times row is a product of small integers, so the sum is exact.

use crate::loss::Loss;
use crate::mechanism::{Grid, ROW_LIMIT};
use crate::quiet::quietly;
use crate::store::dataset::Dataset;
use crate::store::rows::{IntegerSums, TILE, single_padded};
use std::ops::Range;

/// How derivatives become integers: at most `limit`, so that limit x row limit is the bound of the grid.
#[derive(Clone, Copy)]
pub(crate) struct DerivativeGrid {
    pub(crate) limit: i16,
    per_unit: f32,
    /// Cells are cut at this before they enter a sum; none where the bound is on the whole row.
    pub(crate) cap: Option<i16>,
}

impl DerivativeGrid {
    /// For cells of at most `cap` units.
    pub(crate) fn new(loss: &Loss, grid: &Grid, cap: u64) -> Option<DerivativeGrid> {
        let limit = grid.bound / cap;
        if limit == 0 || limit > ROW_LIMIT || limit * cap != grid.bound {
            return None;
        }
        let cap = (cap < ROW_LIMIT).then_some(cap as i16);
        Some(DerivativeGrid { limit: limit as i16, per_unit: (limit as f64 / loss.lipschitz) as f32, cap })
    }

    /// Integer derivatives of rows with these scores and labels. Each depends on its own row alone: a row whose derivative panics, or whose
    /// label the loss does not know, has none, and the others do not notice.
    pub(crate) fn of_rows(&self, loss: &Loss, scores: &[f32], labels: &[f32], derivatives: &mut [f32], out: &mut [i16]) {
        let k = loss.outputs;
        let call = || (loss.derivatives)(&loss.parameters, scores, labels, derivatives);
        if quietly(call).is_none() {
            // One row's doing: each by itself, and only that one contributes nothing.
            for i in 0..labels.len() {
                let part = i * k..(i + 1) * k;
                let call = || {
                    (loss.derivatives)(&loss.parameters, &scores[part.clone()], &labels[i..=i], &mut derivatives[part.clone()])
                };
                if quietly(call).is_none() {
                    derivatives[part].fill(0.0);
                }
            }
        }
        for (s, y) in derivatives.chunks_mut(k).zip(labels) {
            if !loss.knows(*y) {
                s.fill(0.0);
            }
        }
        self.quantise(derivatives, k, out);
    }

    /// Truncates toward zero; a derivative that is not finite, or too long, becomes zero or is cut, on the integers.
    fn quantise(&self, derivatives: &[f32], outputs: usize, out: &mut [i16]) {
        let limit = i32::from(self.limit);
        for (z, s) in out.iter_mut().zip(derivatives) {
            // NaN becomes 0, infinities saturate and are cut.
            *z = ((s * self.per_unit) as i32).clamp(-limit, limit) as i16;
        }
        if outputs > 1 {
            for row in out.chunks_mut(outputs) {
                let square: u64 = row.iter().map(|z| u64::from(z.unsigned_abs()).pow(2)).sum();
                let bound = u64::from(self.limit.unsigned_abs()).pow(2);
                if square > bound {
                    let factor = (bound as f64 / square as f64).sqrt() * (1.0 - 1e-4);
                    row.iter_mut().for_each(|z| *z = (f64::from(*z) * factor) as i16);
                    if row.iter().map(|z| u64::from(z.unsigned_abs()).pow(2)).sum::<u64>() > bound {
                        row.fill(0);
                    }
                }
            }
        }
    }
}

/// Adds the gradients of the rows of a range of slots (one row each) to `out`, output after output.
pub(crate) fn add_gradients(
    data: &Dataset,
    range: Range<usize>,
    chosen: Option<&[bool]>,
    weights: &[f64],
    loss: &Loss,
    derivative_grid: DerivativeGrid,
    out: &mut [i64],
) {
    let (d, k) = (data.dimension, loss.outputs);
    let unit = data.row_norm / ROW_LIMIT as f64;
    // Weights absorb the row unit; padded for wide loads.
    let padded = single_padded(d);
    let mut scaled = vec![0f32; k * padded];
    for o in 0..k {
        for j in 0..d {
            scaled[o * padded + j] = (weights[o * d + j] * unit) as f32;
        }
    }
    // At the start of a descent all scores are 0, which nobody needs to add up. Weights are public.
    let nowhere = weights.iter().all(|w| *w == 0.0);
    let mut scores = vec![0f32; TILE * k];
    let mut derivatives = vec![0f32; TILE * k];
    let mut integers = vec![0i16; TILE * k];
    let mut column = [0i16; TILE];
    let mut labels = [0f32; TILE];
    let mut sums = IntegerSums::new(data.table(), k, chosen.is_some());
    let mut picked = [0usize; TILE];
    let mut row = range.start;
    while row < range.end {
        let mut n = 0;
        match chosen {
            None => {
                n = TILE.min(range.end - row);
                (0..n).for_each(|i| picked[i] = row + i);
                row += n;
            }
            Some(chosen) => {
                while n < TILE && row < range.end {
                    picked[n] = row;
                    n += usize::from(chosen[row]);
                    row += 1;
                }
            }
        }
        let rows = &picked[..n];
        sums.gather(rows);
        labels[..n].iter_mut().zip(rows).for_each(|(l, r)| *l = data.labels[*r]);
        for o in (0..k).filter(|_| !nowhere) {
            sums.scores(rows, &scaled[o * padded..(o + 1) * padded], &mut scores[o..], k);
        }
        derivative_grid.of_rows(loss, &scores[..n * k], &labels[..n], &mut derivatives[..n * k], &mut integers[..n * k]);
        for o in 0..k {
            for i in 0..n {
                column[i] = integers[i * k + o];
            }
            sums.add(rows, &column[..n], o, derivative_grid.cap, out);
        }
        sums.end_tile(n, out);
    }
    sums.flush(out);
}
