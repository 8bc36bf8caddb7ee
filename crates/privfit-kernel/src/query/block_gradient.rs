//! Gradients in f64 on fixed-point rows, for minimisers: scores of a tile of rows, derivatives, weighted sum of the rows.

use crate::loss::Loss;
use crate::store::dataset::Dataset;
use crate::store::rows::{TILE, Table, padded};
use std::ops::Range;

/// Working memory of one thread.
pub(crate) struct BlockGradient<'a> {
    data: &'a Dataset,
    table: Table<'a>,
    loss: &'a Loss,
    chosen: Option<&'a [bool]>,
    weights: Vec<f64>,
    scores: Vec<f64>,
    derivatives: Vec<f64>,
    /// All weights are 0, and so are all scores.
    nowhere: bool,
}

impl<'a> BlockGradient<'a> {
    pub(crate) fn new(data: &'a Dataset, loss: &'a Loss, chosen: Option<&'a [bool]>, theta: &[f64]) -> BlockGradient<'a> {
        let size = TILE * loss.outputs;
        BlockGradient {
            data,
            table: data.table(),
            loss,
            chosen,
            weights: data.scaled_weights(theta),
            scores: vec![0.0; size],
            derivatives: vec![0.0; size],
            nowhere: theta.iter().all(|w| *w == 0.0),
        }
    }

    /// Goes on at another point.
    pub(crate) fn move_to(&mut self, theta: &[f64]) {
        let (d, unit) = (self.data.dimension, self.data.cell_unit());
        for (to, from) in self.weights.chunks_mut(padded(d)).zip(theta.chunks(d)) {
            to.iter_mut().zip(from).for_each(|(t, f)| *t = f * unit);
        }
        self.nowhere = theta.iter().all(|w| *w == 0.0);
    }

    /// Adds the gradients of the rows of some units to `sum`, in cell units and with padding.
    pub(crate) fn add(&mut self, unit_count: Range<usize>, sum: &mut [f64]) {
        let Range { start, end } = unit_count;
        if self.data.units.is_none() {
            let mut row = start;
            while row < end {
                let next = (row + TILE).min(end);
                self.tile(row..next, |chosen, row| chosen[row], sum);
                row = next;
            }
            return;
        }
        for unit_index in start..end {
            let rows = self.data.rows_of(unit_index);
            let mut row = rows.start;
            while row < rows.end {
                let next = (row + TILE).min(rows.end);
                self.tile(row..next, |chosen, _| chosen[unit_index], sum);
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
            self.table.scores(rows.clone(), &self.weights[o * p..(o + 1) * p], &mut self.scores[o..], k);
        }
        self.loss.bounded_derivatives(&self.scores[..n * k], &self.data.labels[rows.clone()], &mut self.derivatives[..n * k]);
        if let Some(chosen) = self.chosen {
            for (row, s) in rows.clone().zip(self.derivatives.chunks_mut(k)) {
                if !is_chosen(chosen, row) {
                    s.fill(0.0);
                }
            }
        }
        for o in 0..k {
            self.table.add(rows.clone(), &self.derivatives[o..], k, &mut sum[o * p..(o + 1) * p]);
        }
    }
}
