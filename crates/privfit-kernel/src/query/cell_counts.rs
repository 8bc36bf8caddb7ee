//! Counts of units by cell, column after column: histograms of all columns of a table at once.
//!
//! *Claim.* Let W be the grid value of one unit. A unit of m rows adds floor(W/m) to one cell of each of the F columns for each of its rows that is
//! not null, and a null unit adds nothing. In each column its vector has no negative entry and a sum of at most W, so that its length is at
//! most W, and at most W sqrt(F) in all: that is how far it moves the sum when it becomes null, or is added or removed. Two such vectors
//! have an inner product of at least 0, so that one in the place of the other moves the sum by at most W sqrt(2 F). All of it holds on the
//! integers. A row with a byte that is no cell of its column counts as null, whatever else it holds.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::mechanism::GridKind;
use crate::norm::L2;
use crate::store::cells::MOST_CELLS;
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// First place of each column in a list over all cells, and the end.
pub(crate) fn places(cells: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let mut out: Vec<usize> = cells
        .iter()
        .map(|count| {
            end += count;
            end - count
        })
        .collect();
    out.push(end);
    out
}

/// Whether every byte is a cell of its column.
#[inline]
pub(crate) fn known(row: &[u8], cells: &[usize]) -> bool {
    row.iter().zip(cells).all(|(byte, count)| usize::from(*byte) < *count)
}

impl Batch<'_> {
    /// Counts by cell; `cells` is how many each column has. The mechanism must come from `Gaussian::for_counts` with as many columns.
    pub fn cell_counts<'id>(&self, noise: &Noise<'id, L2>, cells: &[usize]) -> Result<Bounded<'id, L2>> {
        let Some(table) = self.data.cells.as_ref().filter(|t| t.columns() == cells.len()) else {
            return Err(Error::Mismatch { what: "these records have no cells, or of another number of columns" });
        };
        if cells.iter().any(|count| !(1..=MOST_CELLS).contains(count)) {
            return Err(Error::Mismatch { what: "a column has from 1 to 255 cells" });
        }
        let places = places(cells);
        let nothing = vec![0u8; cells.len()];
        let dimension = places[cells.len()];
        let grid = self.grid(noise, dimension, &[GridKind::Counts { columns: cells.len() }])?;
        let add = |range: Range<usize>, out: &mut [i64]| {
            self.chosen.each(range, |unit_index| {
                let rows = self.data.rows_of(unit_index);
                let weight = (grid.bound / rows.len().max(1) as u64) as i64;
                for row in rows {
                    // A null row adds zeros to first cells: nearly as much work as any other.
                    let (row, weight) = match table.row(row).filter(|row| known(row, cells)) {
                        Some(row) => (row, weight),
                        None => (nothing.as_slice(), 0),
                    };
                    for (byte, place) in row.iter().zip(&places) {
                        let count = &mut out[place + usize::from(*byte)];
                        *count = count.wrapping_add(weight);
                    }
                }
            });
        };
        Ok(self.finish(self.share(1, dimension, &add), grid))
    }
}
