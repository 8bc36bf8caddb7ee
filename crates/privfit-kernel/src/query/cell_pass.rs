//! A pass over rows of cells: their derivatives as integers, in tiles of rows that no unit's privacy depends on.
//!
//! *Claim.* Derivatives of a row at its scores are clipped on the integers, to at most R for all outputs together, and divided by how many rows its unit has,
//! truncated. If the integer features of a row have the length L at most, then derivative times features have R L over that number, and those of
//! all rows of a unit R L together: that is how far a unit moves the sum when it becomes null, or is added or removed; another one in its place moves it by twice as much.
//! The derivatives of null rows are 0, by their bytes and not by their label.

use super::gradient::DerivativeGrid;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::loss::Loss;
use crate::mechanism::{Grid, GridKind};
use crate::memory::zeros;
use crate::norm::L2;
use crate::store::cells::{BLOCK, Cells, NULL};
use crate::value::Noise;
use std::ops::Range;

/// Rows that are looked at together: those of one block, or fewer.
pub(crate) const TILE: usize = BLOCK;

/// Tiles whose sum cannot leave 32 bits: 2^15 rows of 2^15 at the most.
const TILES: usize = 32;

/// What a tile of rows works with.
pub(crate) struct Tile {
    /// Scores, row after row.
    pub(crate) scores: Vec<f32>,
    derivatives: Vec<f32>,
    /// Derivatives over the rows of the unit, row after row.
    pub(crate) integers: Vec<i16>,
}

impl Tile {
    fn new(outputs: usize) -> Tile {
        Tile { scores: vec![0.0; TILE * outputs], derivatives: vec![0.0; TILE * outputs], integers: vec![0; TILE * outputs] }
    }
}

impl<'d> Batch<'d> {
    /// The cells, if there are so many for each column.
    pub(crate) fn cells(&self, counts: &[usize]) -> Result<&'d Cells> {
        let cells = self.data.cells.as_ref().filter(|cells| cells.counts() == counts);
        cells.ok_or(Error::Mismatch { what: "these records have no cells, or others than the features are for" })
    }

    /// The grid of gradients of so many coordinates, and how derivatives become integers on it.
    pub(crate) fn cell_grid(&self, noise: &Noise<'_, L2>, dimension: usize, loss: &Loss) -> Result<(Grid, DerivativeGrid)> {
        loss.validate()?;
        let grid = self.grid(noise, dimension, &[GridKind::Gradient])?;
        let derivatives = DerivativeGrid::new(loss, &grid, ROW_LIMIT).filter(|_| (grid.clip / loss.lipschitz - 1.0).abs() < 1e-9);
        let what = "gradients of cells need Gaussian::for_gradients with clip = loss constant";
        Ok((grid, derivatives.ok_or(Error::Mismatch { what })?))
    }

    /// Calls with a tile of rows after the other, and by how much each row is divided: 0 for those that do not take part, an empty list for 1 each.
    pub(crate) fn each_tile(&self, marks: Option<&[bool]>, units: Range<usize>, mut f: impl FnMut(Range<usize>, &[i32])) {
        if units.is_empty() {
            return;
        }
        let data = self.data;
        let rows = data.rows_of(units.start).start..data.rows_of(units.end - 1).end;
        let mut parts = Vec::new();
        if data.units.is_some() || marks.is_some() {
            parts = zeros::<i32>(rows.len());
            for unit_index in units {
                let own = data.rows_of(unit_index);
                let many = i32::try_from(own.len()).unwrap_or(i32::MAX);
                let count = if marks.is_none_or(|m| m[unit_index]) { many } else { 0 };
                parts[own.start - rows.start..own.end - rows.start].fill(count);
            }
        }
        for tile in Cells::tiles(rows.clone()) {
            let own = if parts.is_empty() { &[][..] } else { &parts[tile.start - rows.start..tile.end - rows.start] };
            f(tile, own);
        }
    }

    /// Adds up rows tile by tile: `score` fills in the scores of a tile's rows, `add` adds what they contribute to the sum: at most 2^15 a row.
    pub(crate) fn cell_share(
        &self,
        cells: &Cells,
        loss: &Loss,
        derivatives: DerivativeGrid,
        dimension: usize,
        score: &(dyn Fn(Range<usize>, &mut [f32]) + Sync),
        add: &(dyn Fn(Range<usize>, &Tile, &mut [i32]) + Sync),
    ) -> Vec<i64> {
        let (data, k) = (self.data, loss.outputs);
        let marks = self.chosen.marks(data.unit_count());
        let pass = |units: Range<usize>, out: &mut [i64]| {
            let (mut tile, mut sum, mut tiles) = (Tile::new(k), zeros::<i32>(dimension), 0);
            let mut empty = |sum: &mut [i32]| {
                for (o, s) in out.iter_mut().zip(sum) {
                    *o = o.wrapping_add(i64::from(std::mem::take(s)));
                }
            };
            self.each_tile(marks.as_deref(), units, |part, parts| {
                let n = part.len();
                score(part.clone(), &mut tile.scores[..n * k]);
                let (scores, labels) = (&tile.scores[..n * k], &data.labels[part.clone()]);
                let integers = &mut tile.integers[..n * k];
                derivatives.of_rows(loss, scores, labels, &mut tile.derivatives[..n * k], integers);
                for (own, count) in integers.chunks_mut(k).zip(parts) {
                    own.iter_mut().for_each(|z| *z = i32::from(*z).checked_div(*count).unwrap_or(0) as i16);
                }
                let nulls = cells.column(&part, 0);
                match k {
                    1 => integers.iter_mut().zip(nulls).for_each(|(z, byte)| *z = if *byte == NULL { 0 } else { *z }),
                    _ => integers.chunks_mut(k).zip(nulls).filter(|n| *n.1 == NULL).for_each(|(own, _)| own.fill(0)),
                }
                add(part, &tile, &mut sum);
                tiles += 1;
                if tiles % TILES == 0 {
                    empty(&mut sum);
                }
            });
            empty(&mut sum);
        };
        self.share(1, dimension, &pass)
    }
}
