//! Scores of all rows, kept in the kernel between the steps of a job: each is a function of its own row and of public weights and leaf values.
//!
//! *Claim (residuals).* A unit of m rows adds floor(W/m), W the grid value of one unit, to the count of one interval for each of its rows with a known label: sensitivity W, and
//! sqrt 2 W for another unit in its place, as for counts by cell in one column.

use super::cell_features::CellRows;
use super::cell_gradient::CellPoint;
use super::cell_pass::TILE;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::mechanism::GridKind;
use crate::memory::zeros;
use crate::norm::L2;
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// Scores of all rows; private.
pub struct RowScores {
    pub(crate) data: u64,
    pub(crate) outputs: usize,
    /// Row after row.
    pub(crate) scores: Vec<f32>,
}

impl Batch<'_> {
    /// Scores at a point.
    pub fn row_scores(&self, rows: &CellRows, point: CellPoint<'_>, outputs: usize) -> Result<RowScores> {
        if outputs == 0 {
            return Err(Error::domain("outputs", outputs, "give at least 1"));
        }
        let tables = self.cell_tables(rows, point, outputs)?;
        let mut out = RowScores { data: self.data.id, outputs, scores: zeros::<f32>(self.data.labels.len() * outputs) };
        self.update_scores(&mut out, &|part, scores| tables.score(part, scores));
        Ok(out)
    }

    /// Changes scores tile by tile, on all threads.
    pub(crate) fn update_scores(&self, scores: &mut RowScores, update: &(dyn Fn(Range<usize>, &mut [f32]) + Sync)) {
        let k = scores.outputs.max(1);
        let task = 16 * TILE;
        let one = |(number, own): (usize, &mut [f32])| {
            for (i, tile) in own.chunks_mut(TILE * k).enumerate() {
                let start = number * task + i * TILE;
                update(start..start + tile.len() / k, tile);
            }
        };
        self.seam.threads().chunks(&mut scores.scores, task * k, &one);
    }

    pub(crate) fn own_scores<'s>(&self, scores: &'s RowScores, outputs: usize) -> Result<&'s [f32]> {
        match scores.data == self.data.id && scores.outputs == outputs {
            true => Ok(&scores.scores),
            false => Err(Error::Mismatch { what: "these scores belong to other records, or have another number of outputs" }),
        }
    }

    /// Counts of rows by the size of their derivative, for a loss with one output: `edges` are the upper ends of all intervals but the last,
    /// ascending. The mechanism must come from `Gaussian::for_counts` with one column.
    pub fn residual_counts<'id>(
        &self,
        noise: &Noise<'id, L2>,
        scores: &RowScores,
        loss: &Loss,
        edges: &[f64],
    ) -> Result<Bounded<'id, L2>> {
        loss.validate()?;
        let grid = self.grid(noise, edges.len() + 1, &[GridKind::Counts { columns: 1 }])?;
        let (scores, data) = (self.own_scores(scores, 1)?, self.data);
        if loss.outputs != 1 {
            return Err(Error::unsupported("sizes of residuals of several outputs", "use a loss with one"));
        }
        let add = |range: Range<usize>, out: &mut [i64]| {
            self.chosen.each(range, |unit_index| {
                let rows = data.rows_of(unit_index);
                let weight = (grid.bound / rows.len().max(1) as u64) as i64;
                for row in rows {
                    let mut derivative = [0f64];
                    loss.bounded_derivatives(&[f64::from(scores[row])], &data.labels[row..=row], &mut derivative);
                    let place = edges.partition_point(|edge| *edge < derivative[0].abs());
                    // A null row, and one with a label that the loss does not know, add zero.
                    let null = data.cells.as_ref().is_none_or(|cells| cells.is_null(row));
                    let known = i64::from(!null && loss.knows(data.labels[row]));
                    out[place] = out[place].wrapping_add(weight * known);
                }
            });
        };
        Ok(self.finish(self.share(1, edges.len() + 1, &add), grid))
    }
}
