//! Gradient sums of linear models on 16-bit rows: derivative times row is a product of small integers, so the sum is exact.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::loss::Loss;
use crate::mechanism::{Grid, GridKind};
use crate::norm::{L2, LInf, quantise};
use crate::quiet::quietly;
use crate::store::dataset::Dataset;
use crate::store::rows::{IntegerSums, TILE, single_padded};
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// How derivatives become integers: at most `limit`, so that limit x row limit is the bound of the grid.
#[derive(Clone, Copy)]
pub(crate) struct DerivativeGrid {
    pub(crate) limit: i16,
    per_unit: f32,
    /// Cells are clipped at this before they enter a sum; none where the bound is on the whole row.
    pub(crate) cap: Option<i16>,
}

impl DerivativeGrid {
    /// For cells of at most `cap` units.
    pub(crate) fn new(loss: &Loss, grid: &Grid, cap: u64) -> Option<DerivativeGrid> {
        DerivativeGrid::of_longest(loss.lipschitz, grid, cap)
    }

    /// For derivatives of at most that length.
    pub(crate) fn of_longest(longest: f64, grid: &Grid, cap: u64) -> Option<DerivativeGrid> {
        let limit = grid.bound / cap;
        if limit == 0 || limit > ROW_LIMIT || limit * cap != grid.bound {
            return None;
        }
        let cap = (cap < ROW_LIMIT).then_some(cap as i16);
        Some(DerivativeGrid { limit: limit as i16, per_unit: (limit as f64 / longest) as f32, cap })
    }

    /// Integer derivatives of rows with these scores and labels. Each depends on its own row alone: a row whose derivative panics, or whose
    /// label the loss does not know, has none, and the others do not notice.
    pub(crate) fn of_rows(&self, loss: &Loss, scores: &[f32], labels: &[f32], derivatives: &mut [f32], out: &mut [i16]) {
        derivatives_of_rows(loss, scores, labels, derivatives);
        self.quantise(derivatives, loss.outputs, out);
    }
    /// Truncates toward zero; a derivative that is not finite, or too long, becomes zero or is clipped, on the integers.
    pub(crate) fn quantise(&self, derivatives: &[f32], outputs: usize, out: &mut [i16]) {
        let limit = i32::from(self.limit);
        for (z, s) in out.iter_mut().zip(derivatives) {
            // NaN becomes 0, infinities saturate and are clipped.
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

/// Derivatives of rows with these scores and labels, each by its own row alone; none for a row whose derivative panics or whose label the loss does not know.
pub(crate) fn derivatives_of_rows(loss: &Loss, scores: &[f32], labels: &[f32], derivatives: &mut [f32]) {
    let k = loss.outputs;
    let call = || (loss.derivatives)(&loss.parameters, scores, labels, derivatives);
    if quietly(call).is_none() {
        // One row's doing: each by itself, and only that one contributes nothing.
        for i in 0..labels.len() {
            let part = i * k..(i + 1) * k;
            let call =
                || (loss.derivatives)(&loss.parameters, &scores[part.clone()], &labels[i..=i], &mut derivatives[part.clone()]);
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
}

/// Adds the gradients of the rows of a range of units (one row each) to `out`, output after output.
pub(crate) fn add_gradients(
    data: &Dataset,
    range: Range<usize>,
    chosen: Option<&[bool]>,
    weights: &[f64],
    loss: &Loss,
    derivative_grid: DerivativeGrid,
    out: &mut [i64],
) {
    let k = loss.outputs;
    let mut derivatives = vec![0f32; TILE * k];
    let mut make = |scores: &[f32], _: &[f32], labels: &[f32], integers: &mut [i16]| {
        derivative_grid.of_rows(loss, scores, labels, &mut derivatives[..labels.len() * k], integers);
    };
    add_products(data, range, chosen, (weights, None), k, derivative_grid.cap, &mut make, out);
}

/// What makes integer derivatives of the scores at one iterate, those at the one before where there is one, and labels.
pub(crate) type MakeDerivatives<'a> = dyn FnMut(&[f32], &[f32], &[f32], &mut [i16]) + 'a;

/// Adds integer derivative times row, for the rows of a range of units (one row each), output after output.
#[allow(clippy::too_many_arguments)]
pub(crate) fn add_products(
    data: &Dataset,
    range: Range<usize>,
    chosen: Option<&[bool]>,
    (weights, before): (&[f64], Option<&[f64]>),
    k: usize,
    cap: Option<i16>,
    make: &mut MakeDerivatives<'_>,
    out: &mut [i64],
) {
    let d = data.dimension;
    let unit = data.row_norm / ROW_LIMIT as f64;
    // Weights absorb the row unit; padded for wide loads.
    let padded = single_padded(d);
    let scaled = |weights: &[f64]| {
        let mut scaled = vec![0f32; k * padded];
        for o in 0..k {
            for j in 0..d {
                scaled[o * padded + j] = (weights[o * d + j] * unit) as f32;
            }
        }
        scaled
    };
    // At the start of a descent all scores are 0, which nobody needs to add up. Weights are public.
    let nowhere = |weights: &[f64]| weights.iter().all(|w| *w == 0.0);
    let own = (!nowhere(weights)).then(|| scaled(weights));
    let other = before.filter(|w| !nowhere(w)).map(scaled);
    let mut scores = vec![0f32; TILE * k];
    let mut scores_before = vec![0f32; if before.is_some() { TILE * k } else { 0 }];
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
        for (scaled, scores) in [(&own, &mut scores), (&other, &mut scores_before)] {
            let Some(scaled) = scaled else { continue };
            for o in 0..k {
                sums.scores(rows, &scaled[o * padded..(o + 1) * padded], &mut scores[o..], k);
            }
        }
        let used = if before.is_some() { n * k } else { 0 };
        make(&scores[..n * k], &scores_before[..used], &labels[..n], &mut integers[..n * k]);
        for o in 0..k {
            for i in 0..n {
                column[i] = integers[i * k + o];
            }
            sums.add(rows, &column[..n], o, cap, out);
        }
        sums.end_tile(n, out);
    }
    sums.flush(out);
}

impl Batch<'_> {
    /// Sum of gradients of a linear model with weights output after output; the mechanism must come from
    /// `Gaussian::for_gradients` with clip = loss constant x row norm. One row to a unit: derivative times row on 16-bit integers.
    /// Several: the unit's gradient is summed in f64, then clipped.
    pub fn gradient_sum<'id>(&self, noise: &Noise<'id, L2>, weights: &[f64], loss: &Loss) -> Result<Bounded<'id, L2>> {
        loss.validate()?;
        let dimension = self.data.dimension * loss.outputs;
        let grid = self.grid(noise, dimension, &[GridKind::Gradient])?;
        if weights.len() != dimension {
            return Err(Error::Mismatch { what: "the number of weights is not features x outputs" });
        }
        if self.data.units.is_some() {
            return Ok(self.finish(self.unit_gradients(&grid, weights, loss), grid));
        }
        let clip = loss.lipschitz * self.data.row_norm;
        let derivatives = DerivativeGrid::new(loss, &grid, ROW_LIMIT).filter(|_| (grid.clip / clip - 1.0).abs() < 1e-9);
        let Some(derivatives) = derivatives else {
            return Err(Error::Mismatch {
                what: "16-bit gradients need Gaussian::for_gradients with clip = loss constant x row norm",
            });
        };
        let marks = self.chosen.marks(self.data.unit_count());
        let add = |range: Range<usize>, out: &mut [i64]| {
            add_gradients(self.data, range, marks.as_deref(), weights, loss, derivatives, out);
        };
        Ok(self.finish(self.share(1, dimension, &add), grid))
    }

    /// Scores for a choice among vertices: first the negative gradient, coordinate after coordinate, then the gradient, so that the
    /// highest score is the coordinate and sign along which the loss falls most. The mechanism must come from
    /// `Exponential::for_gradients`. A derivative, and a cell, are clipped on the integers by themselves, one row to a unit.
    pub fn gradient_scores<'id>(
        &self,
        arrival_times: &Noise<'id, LInf>,
        weights: &[f64],
        loss: &Loss,
    ) -> Result<Bounded<'id, LInf>> {
        // One score for each coordinate leaves out the negative vertices.
        let signs = if arrival_times.values.len() == self.data.dimension * loss.outputs { 1 } else { 2 };
        let (total, grid) = self.capped_gradient(arrival_times, signs, weights, loss)?;
        let down = total.iter().map(|g| g.wrapping_neg());
        let scores = if signs == 2 { down.chain(total.iter().copied()).collect() } else { down.collect() };
        let mut out = self.finish(scores, grid);
        out.mirrored = signs == 2;
        Ok(out)
    }

    /// The gradient plus a public vector, coordinate after coordinate, in the same way: for a choice of the largest ones in size
    /// (`Run::choose_largest`), whose values may then be released.
    pub fn gradient_coordinates<'id>(
        &self,
        arrival_times: &Noise<'id, LInf>,
        weights: &[f64],
        loss: &Loss,
        plus: &[f64],
    ) -> Result<Bounded<'id, LInf>> {
        let (mut total, grid) = self.capped_gradient(arrival_times, 1, weights, loss)?;
        if plus.len() != total.len() {
            return Err(Error::Mismatch { what: "the public vector has another length than the gradient" });
        }
        // Both below 2^61: comparisons of sizes must not see a sum that wrapped. What is public is added once.
        let limit = 2f64.powi(61);
        if self.seam.leads() {
            total.iter_mut().zip(plus).for_each(|(t, p)| *t += (p / grid.unit).round().max(-limit).min(limit) as i64);
        }
        Ok(self.finish(total, grid))
    }

    /// Sum of derivative x cell, both clipped on the integers.
    fn capped_gradient(
        &self,
        arrival_times: &Noise<'_, LInf>,
        signs: usize,
        weights: &[f64],
        loss: &Loss,
    ) -> Result<(Vec<i64>, Grid)> {
        let derivatives = self.score_derivatives(&arrival_times.grid, loss)?;
        let dimension = self.data.dimension * loss.outputs;
        let grid = self.grid(arrival_times, signs * dimension, &[arrival_times.grid.kind])?;
        if weights.len() != dimension {
            return Err(Error::Mismatch { what: "the number of weights is not features x outputs" });
        }
        let marks = self.chosen.marks(self.data.unit_count());
        let add = |range: Range<usize>, out: &mut [i64]| {
            add_gradients(self.data, range, marks.as_deref(), weights, loss, derivatives, out);
        };
        Ok((self.share(1, dimension, &add), grid))
    }

    /// How derivatives become integers in scores that are gradients, if the grid was made for them, for this loss and for these rows.
    pub(crate) fn score_derivatives(&self, grid: &Grid, loss: &Loss) -> Result<DerivativeGrid> {
        loss.validate()?;
        let GridKind::GradientScores { cap } = grid.kind else {
            return Err(Error::Mismatch { what: "scores that are gradients need Exponential::for_gradients" });
        };
        if self.data.units.is_some() {
            return Err(Error::unsupported("scores of units with several rows", "declare one row to a unit"));
        }
        let clip = loss.lipschitz * self.data.row_norm * cap as f64 / ROW_LIMIT as f64;
        let derivatives = DerivativeGrid::new(loss, grid, cap).filter(|_| (grid.clip / clip - 1.0).abs() < 1e-9);
        derivatives.ok_or(Error::Mismatch { what: "Exponential::for_gradients was made for another loss or row norm" })
    }

    fn unit_gradients(&self, grid: &Grid, weights: &[f64], loss: &Loss) -> Vec<i64> {
        let (d, k) = (self.data.dimension, loss.outputs);
        let add = |range: Range<usize>, out: &mut [i64]| {
            let mut sum = vec![0f64; d * k];
            let (mut scores, mut derivatives) = (vec![0f64; k], vec![0f64; k]);
            let mut integers = Vec::new();
            self.chosen.each(range, |unit_index| {
                let unit = self.data.unit(unit_index);
                sum.fill(0.0);
                for row in 0..unit.rows() {
                    for o in 0..k {
                        scores[o] = unit.dot(row, &weights[o * d..(o + 1) * d]);
                    }
                    loss.bounded_derivatives(&scores, &[unit.label(row)], &mut derivatives);
                    for (o, s) in derivatives.iter().enumerate() {
                        unit.each(row, |j, x| sum[o * d + j] += s * x);
                    }
                }
                quantise::<L2>(&mut sum, grid.clip, 1.0 / grid.unit, grid.bound, &mut integers);
                out.iter_mut().zip(&integers).for_each(|(o, z)| *o = o.wrapping_add(*z));
            });
        };
        self.share(1, d * k, &add)
    }
}
