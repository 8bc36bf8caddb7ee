//! Counts of units by cell, column after column: histograms of all columns of a table at once.
//!
//! *Claim.* Let W be the grid value of one unit. A unit of m rows adds floor(W/m) to one cell of each of the F columns for each of its rows that is
//! not null, and a null unit adds nothing. In each column its vector has no negative entry and a sum of at most W, so that its length is at
//! most W, and at most W sqrt(F) in all: that is how far it moves the sum when it becomes null, or is added or removed. Two such vectors
//! have an inner product of at least 0, so that one in the place of the other moves the sum by at most W sqrt(2 F). All of it holds on the
//! integers.

use crate::batch::Batch;
use crate::error::Result;
use crate::mechanism::GridKind;
use crate::norm::L2;
use crate::value::{Bounded, Noise};
use std::ops::Range;

impl Batch<'_> {
    /// Counts by cell, column after column; `cells` is how many each has. The mechanism must come from `Gaussian::for_counts` with as many columns.
    pub fn cell_counts<'id>(&self, noise: &Noise<'id, L2>, cells: &[usize]) -> Result<Bounded<'id, L2>> {
        let table = self.cells(cells)?;
        let grid = self.grid(noise, cells.iter().sum(), &[GridKind::Counts { columns: cells.len() }])?;
        let marks = self.chosen.marks(self.data.unit_count());
        // Of a row, one of so many; 0 does not take part.
        let weight = |rows: i32| u64::try_from(rows).ok().and_then(|rows| grid.bound.checked_div(rows)).unwrap_or(0) as i64;
        let add = |units: Range<usize>, out: &mut [i64]| {
            // Counts of all bytes: those of null rows fall where nobody looks.
            let mut counts = vec![0i64; 256 * cells.len()];
            self.each_tile(marks.as_deref(), units, |tile, parts| {
                for (column, own) in counts.as_chunks_mut::<256>().0.iter_mut().enumerate() {
                    let bytes = table.column(&tile, column);
                    let mut add = |byte: &u8, weight: i64| {
                        let count = &mut own[usize::from(*byte)];
                        *count = count.wrapping_add(weight);
                    };
                    match parts.is_empty() {
                        true => bytes.iter().for_each(|byte| add(byte, grid.bound as i64)),
                        false => bytes.iter().zip(parts).for_each(|(byte, m)| add(byte, weight(*m))),
                    }
                }
            });
            let known = counts.chunks(256).zip(cells).flat_map(|(own, count)| &own[..*count]);
            out.iter_mut().zip(known).for_each(|(o, c)| *o = o.wrapping_add(*c));
        };
        Ok(self.finish(self.share(1, cells.iter().sum(), &add), grid))
    }
}
