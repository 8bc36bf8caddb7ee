//! Gradients of scores that are linear in public features of cells: additive models.
//!
//! *Claim.* Features are those of `cell_features.rs`, of length at most L, derivatives those of `cell_pass.rs`, at most R: one unit moves the sum by at most R L when it becomes
//! null, and by twice that when it becomes another one. All of it holds on the integers.
//!
//! *Cost.* A pass adds an integer to one place of a histogram for each column: a look-up and an addition for each column of a row, whatever the number of features.
//! The gradient is the product of the public tables with the histogram, in integers that may wrap (a wrapped sum plus noise is the wrapped sum of both).

use super::cell_features::CellRows;
use super::cell_pass::{TILE, Tile};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::norm::L2;
use crate::store::cells::Cells;
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// Public weights over features of cells, output after output with the constant last in each, and where the scores of each output begin.
#[derive(Clone, Copy)]
pub struct CellPoint<'w> {
    /// Weights.
    pub weights: &'w [f64],
    /// Where scores begin.
    pub offsets: &'w [f64],
}

/// Public tables of the scores of all places, for each output. Scores are sums over columns: the factors of rows are for gradients alone, which they clip.
pub(crate) struct CellTables<'p> {
    rows: &'p CellRows,
    cells: &'p Cells,
    tables: Vec<(Vec<f32>, f32)>,
}

impl CellTables<'_> {
    /// Scores of the rows of a tile, row after row.
    pub(crate) fn score(&self, rows: Range<usize>, scores: &mut [f32]) {
        let (k, features) = (self.tables.len(), &self.rows.features);
        if let [(table, constant)] = self.tables.as_slice() {
            scores.fill(*constant);
            return features.add_entries(self.cells, &rows, table, scores);
        }
        let mut own = [0f32; TILE];
        for (o, (table, constant)) in self.tables.iter().enumerate() {
            own.fill(*constant);
            features.add_entries(self.cells, &rows, table, &mut own);
            scores.iter_mut().skip(o).step_by(k).zip(&own).for_each(|(score, own)| *score = *own);
        }
    }
}

impl<'d> Batch<'d> {
    pub(crate) fn cell_tables<'p>(&self, rows: &'p CellRows, point: CellPoint<'_>, outputs: usize) -> Result<CellTables<'p>>
    where
        'd: 'p,
    {
        if rows.data != self.data.id {
            return Err(Error::Mismatch { what: "these factors belong to other records" });
        }
        let d = rows.features.dimension();
        if point.weights.len() != d * outputs || point.offsets.len() != outputs {
            return Err(Error::Mismatch { what: "there are weights for each feature and output, and an offset for each output" });
        }
        let table = |(own, offset): (&[f64], &f64)| {
            let (table, constant) = rows.features.scores(own);
            (table, constant + *offset as f32)
        };
        let tables = point.weights.chunks(d).zip(point.offsets).map(table).collect();
        Ok(CellTables { rows, cells: self.cells(rows.features.cells())?, tables })
    }

    /// Sum of gradients at a point; the mechanism must come from `Gaussian::for_gradients` with clip = loss constant.
    pub fn cell_gradient<'id>(
        &self,
        noise: &Noise<'id, L2>,
        rows: &CellRows,
        point: CellPoint<'_>,
        loss: &Loss,
    ) -> Result<Bounded<'id, L2>> {
        let (features, k) = (&rows.features, loss.outputs);
        let (grid, derivatives) = self.cell_grid(noise, features.dimension() * k, loss)?;
        let tables = self.cell_tables(rows, point, k)?;
        // A histogram over all places for each output, and what is added up for the constant.
        let width = features.places() + 1;
        let add = |part: Range<usize>, tile: &Tile, out: &mut [i32]| {
            let mut scaled = [0i32; TILE];
            let scaled = &mut scaled[..part.len()];
            for (o, own) in out.chunks_exact_mut(width).enumerate() {
                let (histogram, constant) = own.split_at_mut(width - 1);
                let integers = tile.integers.iter().skip(o).step_by(k);
                for ((w, z), factor) in scaled.iter_mut().zip(integers).zip(&rows.factors[part.clone()]) {
                    // Truncated toward zero.
                    *w = i32::from(*z) * i32::from(*factor) / 65536;
                    constant[0] += i32::from(*z);
                }
                features.add_to_places(tables.cells, &part, scaled, histogram);
            }
        };
        let score = |part: Range<usize>, scores: &mut [f32]| tables.score(part, scores);
        let sum = self.cell_share(tables.cells, loss, derivatives, width * k, &score, &add);
        let gradient = sum.chunks(width).flat_map(|own| features.project(&own[..width - 1], own[width - 1])).collect();
        Ok(self.finish(gradient, grid))
    }
}
