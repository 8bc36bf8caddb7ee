//! Private records: rows as 16-bit fixed point inside of a ball, grouped into units. Nothing outside of the kernel reads a cell, except the
//! capture-free functions that compute one unit's contribution.

use super::cells::Cells;
use super::list::Memory;
use super::rows::{Columns, Rows, Table, padded};
use crate::limits::ROW_LIMIT;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// The records that this process holds. No Debug, no Clone, no way to a row.
pub struct Dataset {
    pub(super) rows: Rows,
    /// Cells of a table, in the place of features.
    pub(crate) cells: Option<Cells>,
    pub(crate) labels: Memory<f32>,
    /// First row of each unit and the end; none if every row is a unit.
    pub(crate) units: Option<Memory<usize>>,
    pub(crate) dimension: usize,
    pub(crate) row_norm: f64,
    /// Most rows of a unit: a public fact, not read off the data.
    pub(crate) rows_per_unit: usize,
    pub(crate) id: u64,
    /// Index of the first unit among those of all processes.
    pub(crate) first: usize,
    /// Units of all processes.
    pub(crate) total: usize,
    /// Where records are kept that are made from these; none for memory.
    pub(crate) directory: Option<PathBuf>,
}

/// Numbers of data sets.
static DATASETS: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_id() -> u64 {
    DATASETS.fetch_add(1, Ordering::Relaxed)
}

/// Public facts about rows.
#[derive(Clone, Copy, Debug)]
pub struct RowShape {
    /// Features, the constant one included.
    pub dimension: usize,
    /// Rows are scaled into a ball of this radius.
    pub row_norm: f64,
    /// Whether rows are given as index-value pairs.
    pub sparse: bool,
    /// Most rows of one unit, the rows beyond it being left out; none if every row is a unit of its own.
    pub rows_per_unit: Option<usize>,
}

impl Dataset {
    /// Units of this process. Their number is public under zero-out and replace-one; under add-remove it must not leave the owner's hands.
    pub fn unit_count(&self) -> usize {
        self.units.as_ref().map_or(self.labels.len(), |u| u.len() - 1)
    }

    /// Units of all processes.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Features of a row.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    pub(crate) fn is_sparse(&self) -> bool {
        matches!(self.rows, Rows::Sparse(_))
    }

    /// The rows, without labels.
    pub(crate) fn table(&self) -> Table<'_> {
        Table::new(&self.rows, self.dimension)
    }

    /// The cells column after column.
    pub(crate) fn columns(&self) -> Columns {
        Columns::new(self.table(), self.labels.len())
    }

    /// One integer step of a cell in the caller's units: a hair below, so that rounding never puts a row outside of its ball.
    pub(crate) fn cell_unit(&self) -> f64 {
        self.row_norm / ROW_LIMIT as f64 * (1.0 - 4.0 * f64::EPSILON)
    }

    /// Weights times the cell unit, output after output, with padding.
    pub(crate) fn scaled_weights(&self, theta: &[f64]) -> Vec<f64> {
        let (d, unit) = (self.dimension, self.cell_unit());
        let mut out = vec![0f64; theta.len() / d * padded(d)];
        for (to, from) in out.chunks_mut(padded(d)).zip(theta.chunks(d)) {
            to.iter_mut().zip(from).for_each(|(t, f)| *t = f * unit);
        }
        out
    }

    pub(crate) fn rows_of(&self, unit_index: usize) -> Range<usize> {
        self.units.as_ref().map_or(unit_index..unit_index + 1, |u| u[unit_index]..u[unit_index + 1])
    }

    /// Whether a unit of cells is null: none of its rows is known.
    pub(crate) fn is_null(&self, unit_index: usize) -> bool {
        self.cells.as_ref().is_some_and(|cells| self.rows_of(unit_index).all(|row| cells.is_null(row)))
    }

    pub(crate) fn unit(&self, unit_index: usize) -> Unit<'_> {
        Unit { data: self, unit_index }
    }
}

/// One unit's rows, for a capture-free function that computes its contribution.
#[derive(Clone, Copy)]
pub struct Unit<'u> {
    data: &'u Dataset,
    unit_index: usize,
}

impl<'u> Unit<'u> {
    /// Rows in this unit.
    pub fn rows(&self) -> usize {
        self.data.rows_of(self.unit_index).len()
    }

    /// Its own row of that number, if there is one: a unit never sees the rows of another.
    fn own(&self, row: usize) -> Option<usize> {
        let rows = self.data.rows_of(self.unit_index);
        (row < rows.len()).then_some(rows.start + row)
    }

    /// Label of one of its rows; 0 for a row that it does not have.
    pub fn label(&self, row: usize) -> f32 {
        self.own(row).map_or(0.0, |r| self.data.labels[r])
    }

    /// Calls with each non-zero feature of one of its rows; not at all for a row that it does not have.
    pub fn each(&self, row: usize, mut f: impl FnMut(usize, f64)) {
        let Some(row) = self.own(row) else { return };
        let unit = self.data.cell_unit();
        self.data.table().each(row, |j, x| f(j, f64::from(x) * unit));
    }

    /// The cells of one of its rows, into `out`; nothing for a null row, and for one that it does not have.
    pub fn cells(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        if let (Some(row), Some(cells)) = (self.own(row), &self.data.cells)
            && !cells.is_null(row)
        {
            cells.copy_row(row, out);
        }
    }

    /// Inner product of one of its rows with a weight vector.
    pub fn dot(&self, row: usize, weights: &[f64]) -> f64 {
        let mut sum = 0.0;
        self.each(row, |i, x| sum += x * weights[i]);
        sum
    }
}
