//! Rows as cells: a byte for each column of a table, the number of a public cell (a range of numbers, a category, missing). What a cell stands
//! for is decided later, by public tables; a row is stored once and never encoded again.

use super::list::Memory;

/// The byte of a null row, in every column. It is no cell: a null row adds nothing to any sum.
pub(crate) const NULL: u8 = u8::MAX;

/// The label of a null row, which no loss knows.
pub(crate) const NULL_LABEL: f32 = f32::MIN;

/// Most cells of a column.
pub const MOST_CELLS: usize = NULL as usize;

/// Cells, row after row.
pub(crate) struct Cells {
    pub(super) bytes: Memory<u8>,
    pub(super) columns: usize,
}

impl Cells {
    /// Columns of a row.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// The cells of a row; none for a null row.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> Option<&[u8]> {
        let own = &self.bytes[row * self.columns..(row + 1) * self.columns];
        (own[0] != NULL).then_some(own)
    }
}
