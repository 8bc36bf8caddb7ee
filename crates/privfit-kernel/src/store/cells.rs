//! Rows as cells: one byte for each column of a table, in the place of features.
//!
//! A cell is a public interval of numbers, a category, or "missing"; how many a column has is a public fact. A null row has the byte 255 in every
//! column, which is no cell of any: it is a flag, and adds nothing to any sum. Bytes lie in blocks of rows, and column after column within a block:
//! a pass looks up one column for many rows, whose table stays in the cache.

use super::list::{Growing, Memory};
use crate::error::{Error, Result};
use std::collections::TryReserveError;
use std::ops::Range;
use std::path::Path;

/// The byte of a null row.
pub(crate) const NULL: u8 = 255;

/// Most cells of a column.
pub const MOST_CELLS: usize = NULL as usize;

/// Label of a null row, which no loss of classes or of bounded numbers knows. Sums over cells go by the bytes.
pub(crate) const NULL_LABEL: f32 = f32::MIN;

/// Rows of a block.
pub(crate) const BLOCK: usize = 1024;

/// Cells of rows.
pub(crate) struct Cells {
    bytes: Memory<u8>,
    /// How many cells each column has.
    counts: Vec<usize>,
}

impl Cells {
    /// How many cells each column has; public.
    pub(crate) fn counts(&self) -> &[usize] {
        &self.counts
    }

    fn at(&self, row: usize, column: usize) -> usize {
        (row / BLOCK * self.counts.len() + column) * BLOCK + row % BLOCK
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.bytes[self.at(row, 0)] == NULL
    }

    /// The bytes of a row, into `out`.
    pub(super) fn copy_row(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend((0..self.counts.len()).map(|column| self.bytes[self.at(row, column)]));
    }

    /// The rows of a range, block by block.
    pub(crate) fn tiles(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut start = rows.start;
        std::iter::from_fn(move || {
            let tile = start..(start - start % BLOCK + BLOCK).min(rows.end);
            start = tile.end;
            (!tile.is_empty()).then_some(tile)
        })
    }

    /// The bytes of a column for rows of one block.
    #[inline]
    pub(crate) fn column(&self, rows: &Range<usize>, column: usize) -> &[u8] {
        let at = self.at(rows.start, column);
        &self.bytes[at..at + rows.len()]
    }

    /// As many bytes as so many rows need.
    pub(super) fn complete(&self, rows: usize) -> bool {
        self.bytes.len() == rows.div_ceil(BLOCK) * BLOCK * self.counts.len()
    }
}

/// Cells that are still collected.
pub(super) struct CellsBuilder {
    blocks: Growing<u8>,
    /// The rows of the last block, row after row.
    rows: Vec<u8>,
    counts: Vec<usize>,
}

impl CellsBuilder {
    pub(super) fn new(counts: &[usize], directory: Option<&Path>) -> Result<CellsBuilder> {
        if counts.is_empty() || counts.len() > u16::MAX as usize {
            return Err(Error::domain("columns", counts.len(), "give a number from 1 to 65535"));
        }
        if let Some(count) = counts.iter().find(|count| !(1..=MOST_CELLS).contains(count)) {
            return Err(Error::domain("cells of a column", count, "give a number from 1 to 255"));
        }
        Ok(CellsBuilder { blocks: Growing::new(directory)?, rows: Vec::new(), counts: counts.to_vec() })
    }

    pub(super) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Whether every byte is a cell of its column.
    pub(super) fn knows(&self, row: &[u8]) -> bool {
        row.len() == self.counts.len() && row.iter().zip(&self.counts).all(|(byte, count)| usize::from(*byte) < *count)
    }

    /// Adds a row; none for a null row.
    pub(super) fn push(&mut self, row: Option<&[u8]>) {
        match row {
            Some(row) => self.rows.extend_from_slice(row),
            None => self.rows.resize(self.rows.len() + self.counts.len(), NULL),
        }
        if self.rows.len() == BLOCK * self.counts.len() {
            self.write();
        }
    }

    pub(super) fn try_reserve(&mut self, rows: usize) -> std::result::Result<(), TryReserveError> {
        self.blocks.try_reserve(rows.div_ceil(BLOCK).saturating_mul(BLOCK).saturating_mul(self.counts.len()))
    }

    /// Column after column.
    fn write(&mut self) {
        let columns = self.counts.len();
        self.rows.resize(BLOCK * columns, NULL);
        let to = self.blocks.room(BLOCK * columns);
        for column in 0..columns {
            to.extend(self.rows[column..].iter().step_by(columns));
        }
        self.rows.clear();
    }

    pub(super) fn finish(mut self) -> Cells {
        if !self.rows.is_empty() {
            self.write();
        }
        Cells { bytes: self.blocks.finish(), counts: self.counts }
    }
}
