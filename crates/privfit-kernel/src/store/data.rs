//! Rows as 16-bit fixed point inside of a ball, grouped into units. Private: nothing outside of the kernel reads a cell, except
//! the capture-free functions that compute one unit's contribution.

use crate::store::compressed::Compressed;
use crate::mechanism::ROW_LIMIT;
use crate::norm::{L2, Norm};
use crate::rng::Entropy;
use crate::value::Local;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cells read past the end of a row by wide loads.
pub(crate) const PADDING: usize = 32;

pub(crate) enum Rows {
    /// Row after row, plus padding.
    Dense(Vec<i16>),
    /// Compressed rows.
    Sparse(Compressed),
}

/// Private records. No Debug, no Clone, no way to a row.
pub struct Dataset {
    pub(crate) rows: Rows,
    pub(crate) labels: Vec<f32>,
    /// First row of each slot and the end; none if every row is a unit.
    pub(crate) units: Option<Vec<usize>>,
    pub(crate) dimension: usize,
    pub(crate) row_norm: f64,
    /// Most rows of a unit: a public fact, not read off the data.
    pub(crate) rows_per_unit: usize,
    pub(crate) id: u64,
}

static DATASETS: AtomicU64 = AtomicU64::new(1);

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

/// What unwinds where memory for private rows ends. An allocation that fails ends the process with a message that names its size, and how
/// many rows there are may be private; whoever catches a panic while data are open says one thing for all of them.
pub struct NoMemory;

/// Makes room at the end of a list of private things.
pub fn grow<T>(list: &mut Vec<T>, more: usize) {
    if list.try_reserve(more).is_err() {
        std::panic::panic_any(NoMemory);
    }
}

/// Collects records one at a time, each by a rule that looks at no other record.
pub struct DatasetBuilder {
    shape: RowShape,
    data: Dataset,
    in_unit: usize,
    scratch: Vec<f64>,
    pairs: Vec<(u32, f64)>,
    quantised: Vec<i64>,
    index: Vec<u32>,
    value: Vec<i16>,
}

impl DatasetBuilder {
    /// Entropy comes first: without randomness no data are opened.
    pub fn new(_entropy: &Entropy, shape: RowShape) -> Result<DatasetBuilder> {
        if !(shape.row_norm >= f64::MIN_POSITIVE && shape.row_norm.is_finite()) {
            return Err(Error::domain("row_norm", shape.row_norm, "give a positive finite number"));
        }
        if shape.dimension == 0 || shape.dimension > u32::MAX as usize {
            return Err(Error::domain("dimension", shape.dimension, "give a number from 1 to 4294967295"));
        }
        if shape.rows_per_unit == Some(0) {
            return Err(Error::domain("rows_per_unit", 0, "give a whole number of at least 1"));
        }
        let rows = if shape.sparse { Rows::Sparse(Compressed::new()) } else { Rows::Dense(Vec::new()) };
        let units = shape.rows_per_unit.map(|_| vec![0]);
        let data = Dataset {
            rows,
            labels: Vec::new(),
            units,
            dimension: shape.dimension,
            row_norm: shape.row_norm,
            rows_per_unit: shape.rows_per_unit.unwrap_or(1),
            id: DATASETS.fetch_add(1, Ordering::Relaxed),
        };
        let (scratch, pairs, quantised) = (Vec::new(), Vec::new(), Vec::new());
        Ok(DatasetBuilder { shape, data, in_unit: 0, scratch, pairs, quantised, index: Vec::new(), value: Vec::new() })
    }

    /// Adds a row to the current unit; without memory for it, it unwinds with `NoMemory`, which says nothing about rows. Features beyond the dimension are left out, missing ones are 0. A row outside of the ball is
    /// scaled into it; a row with a cell that is not a finite number becomes the zero row.
    pub fn row(&mut self, features: &[f64], label: f32) {
        if !self.room_for(label) {
            return;
        }
        let dimension = self.shape.dimension;
        self.make_room(features.len());
        if let Rows::Dense(cells) = &mut self.data.rows
            && features.len() == dimension
            && crate::store::quantise_row::append(features, self.shape.row_norm, cells)
        {
            return;
        }
        self.scratch.clear();
        self.scratch.extend(features.iter().take(dimension));
        self.scratch.resize(dimension, 0.0);
        self.quantise();
        self.keep_dense();
    }

    /// Adds a row given by its non-zero features. Pairs out of range are left out; of several with one index the first counts.
    pub fn sparse_row(&mut self, features: &[(u32, f64)], label: f32) {
        if !self.room_for(label) {
            return;
        }
        self.make_room(features.len());
        if let Rows::Sparse(rows) = &mut self.data.rows
            && crate::store::quantise_row::sparse(features, self.shape.dimension, self.shape.row_norm, &mut self.index, &mut self.value)
        {
            return rows.push(&self.index, &self.value);
        }
        self.pairs.clear();
        self.pairs.extend(features.iter().filter(|f| (f.0 as usize) < self.shape.dimension));
        if !self.pairs.is_sorted_by(|a, b| a.0 < b.0) {
            self.pairs.sort_by_key(|f| f.0);
            self.pairs.dedup_by_key(|f| f.0);
        }
        self.scratch.clear();
        if let Rows::Dense(_) = self.data.rows {
            self.scratch.resize(self.shape.dimension, 0.0);
            self.pairs.iter().for_each(|f| self.scratch[f.0 as usize] = f.1);
            self.quantise();
            return self.keep_dense();
        }
        self.scratch.extend(self.pairs.iter().map(|f| f.1));
        self.quantise();
        if let Rows::Sparse(rows) = &mut self.data.rows {
            let kept = self.pairs.iter().zip(&self.quantised).filter(|(_, z)| **z != 0);
            (self.index, self.value) = kept.map(|(f, z)| (f.0, *z as i16)).unzip();
            rows.push(&self.index, &self.value);
        }
    }

    fn keep_dense(&mut self) {
        match &mut self.data.rows {
            Rows::Dense(cells) => cells.extend(self.quantised.iter().map(|z| *z as i16)),
            Rows::Sparse(rows) => {
                let kept = self.quantised.iter().enumerate().filter(|(_, z)| **z != 0);
                (self.index, self.value) = kept.map(|(i, z)| (i as u32, *z as i16)).unzip();
                rows.push(&self.index, &self.value);
            }
        }
    }

    /// Takes the label if the unit has room for another row.
    fn room_for(&mut self, label: f32) -> bool {
        if self.shape.rows_per_unit == Some(self.in_unit) {
            return false;
        }
        self.in_unit += usize::from(self.shape.rows_per_unit.is_some());
        grow(&mut self.data.labels, 1);
        self.data.labels.push(if label.is_finite() { label } else { 0.0 });
        true
    }

    /// Makes room for one more row with at most so many non-zero cells.
    fn make_room(&mut self, cells: usize) {
        match &mut self.data.rows {
            Rows::Dense(all) => grow(all, self.shape.dimension + PADDING),
            Rows::Sparse(rows) => {
                if rows.try_reserve(1, cells.min(self.shape.dimension)).is_err() {
                    std::panic::panic_any(NoMemory);
                }
            }
        }
    }

    /// Puts the scratch row on the integers.
    fn quantise(&mut self) {
        let per_unit = ROW_LIMIT as f64 / self.shape.row_norm;
        crate::norm::quantise::<L2>(&mut self.scratch, self.shape.row_norm, per_unit, ROW_LIMIT, &mut self.quantised);
    }

    /// Ends the current unit: the next row belongs to the next slot. A unit may be empty.
    pub fn end_unit(&mut self) {
        self.in_unit = 0;
        let rows = self.data.labels.len();
        if let Some(units) = &mut self.data.units {
            grow(units, 1);
            units.push(rows);
        }
    }

    /// Makes room for so many rows (and non-zero cells, if rows are sparse) at once. Public numbers, which may be wrong: more than
    /// there is memory for is refused here.
    pub fn reserve(&mut self, rows: usize, non_zeros: usize) -> Result<()> {
        let room = match &mut self.data.rows {
            Rows::Dense(cells) => {
                let all = rows.checked_mul(self.shape.dimension).and_then(|n| n.checked_add(PADDING)).ok_or(Error::Memory)?;
                cells.try_reserve_exact(all)
            }
            Rows::Sparse(sparse) => sparse.try_reserve(rows, non_zeros),
        };
        room.and_then(|()| self.data.labels.try_reserve_exact(rows)).map_err(|_| Error::Memory)
    }

    /// The records.
    pub fn build(mut self) -> Dataset {
        let rows = self.data.labels.len();
        if let Some(units) = &mut self.data.units
            && units.last() != Some(&rows)
        {
            units.push(rows);
        }
        if let Rows::Dense(cells) = &mut self.data.rows {
            grow(cells, PADDING);
            cells.resize(cells.len() + PADDING, 0);
        }
        debug_assert!(self.data.checked());
        self.data
    }
}

impl Dataset {
    /// Number of units. Public under zero-out and replace-one; under add-remove it must not leave the owner's hands.
    pub fn slots(&self) -> usize {
        self.units.as_ref().map_or(self.labels.len(), |u| u.len() - 1)
    }

    /// Features of a row.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// No records, but room for records of the same kind.
    pub(crate) fn empty_like(&self) -> Dataset {
        let rows = match &self.rows {
            Rows::Dense(_) => Rows::Dense(Vec::new()),
            Rows::Sparse(_) => Rows::Sparse(Compressed::new()),
        };
        let units = self.units.as_ref().map(|_| vec![0]);
        let id = DATASETS.fetch_add(1, Ordering::Relaxed);
        Dataset { rows, labels: Vec::new(), units, id, ..*self }
    }

    pub(crate) fn rows_of(&self, slot: usize) -> Range<usize> {
        self.units.as_ref().map_or(slot..slot + 1, |u| u[slot]..u[slot + 1])
    }

    pub(crate) fn unit(&self, slot: usize) -> Unit<'_> {
        Unit { data: self, slot }
    }

    /// Hands each unit's own answer to its own recipient: the owner's call, since only the owner holds the records.
    pub fn deliver<T>(&self, local: Local<Vec<Option<T>>>, mut to: impl FnMut(usize, T)) -> Result<()> {
        if local.data != self.id {
            return Err(Error::Mismatch { what: "these local answers belong to other records" });
        }
        for (slot, answer) in local.value.into_iter().enumerate() {
            if let Some(answer) = answer {
                to(slot, answer);
            }
        }
        Ok(())
    }

    /// Every row lies in the ball, on the integers.
    fn checked(&self) -> bool {
        let fits = |row: &[i16]| L2::within(&row.iter().map(|x| i64::from(*x)).collect::<Vec<_>>(), ROW_LIMIT);
        match &self.rows {
            Rows::Dense(cells) => cells[..self.labels.len() * self.dimension].chunks(self.dimension).all(fits),
            Rows::Sparse(rows) => (0..self.labels.len()).all(|row| fits(rows.row(row).1)),
        }
    }
}

/// One unit's rows, for a capture-free function that computes its contribution.
#[derive(Clone, Copy)]
pub struct Unit<'u> {
    data: &'u Dataset,
    slot: usize,
}

impl<'u> Unit<'u> {
    pub(crate) fn offset(&self, by: usize) -> Unit<'u> {
        Unit { data: self.data, slot: self.slot + by }
    }

    /// Rows in this unit.
    pub fn rows(&self) -> usize {
        self.data.rows_of(self.slot).len()
    }

    /// Its own row of that number, if there is one: a unit never sees the rows of another.
    fn own(&self, row: usize) -> Option<usize> {
        let rows = self.data.rows_of(self.slot);
        (row < rows.len()).then_some(rows.start + row)
    }

    /// Label of one of its rows; 0 for a row that it does not have.
    pub fn label(&self, row: usize) -> f32 {
        self.own(row).map_or(0.0, |r| self.data.labels[r])
    }

    /// Calls with each non-zero feature of one of its rows; not at all for a row that it does not have.
    pub fn each(&self, row: usize, mut f: impl FnMut(usize, f64)) {
        let Some(row) = self.own(row) else { return };
        // A hair below, so that rounding never puts a row outside of its ball.
        let unit = self.data.row_norm / ROW_LIMIT as f64 * (1.0 - 4.0 * f64::EPSILON);
        match &self.data.rows {
            Rows::Dense(cells) => {
                let start = row * self.data.dimension;
                for (i, x) in cells[start..start + self.data.dimension].iter().enumerate() {
                    if *x != 0 {
                        f(i, f64::from(*x) * unit);
                    }
                }
            }
            Rows::Sparse(rows) => {
                let (index, value) = rows.row(row);
                for (i, x) in index.iter().zip(value) {
                    f(*i as usize, f64::from(*x) * unit);
                }
            }
        }
    }

    /// Inner product of one of its rows with a weight vector.
    pub fn dot(&self, row: usize, weights: &[f64]) -> f64 {
        let mut sum = 0.0;
        self.each(row, |i, x| sum += x * weights[i]);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dimension: usize, sparse: bool, rows_per_unit: Option<usize>) -> RowShape {
        RowShape { dimension, row_norm: 2.0, sparse, rows_per_unit }
    }

    #[test]
    fn rows_stay_in_the_ball_and_keep_their_slots() {
        let entropy = Entropy::simulated(1);
        for sparse in [false, true] {
            let mut b = DatasetBuilder::new(&entropy, shape(3, sparse, None)).unwrap();
            b.row(&[1.0, -1.0, 0.5], 1.0);
            b.row(&[f64::NAN, 1.0, 0.0], 1.0);
            b.row(&[1e30, 1e30, -1e30], f32::INFINITY);
            b.sparse_row(&[(2, 0.25), (2, 9.0), (7, 1.0)], -1.0);
            let data = b.build();
            assert_eq!(data.slots(), 4);
            assert!(data.checked());
            let cells = |slot: usize| {
                let mut out = vec![0.0; 3];
                data.unit(slot).each(0, |i, x| out[i] = x);
                out
            };
            assert!((cells(0)[0] - 1.0).abs() < 1e-4 && (cells(0)[1] + 1.0).abs() < 1e-4);
            assert_eq!(cells(1), vec![0.0; 3], "a bad cell zeroes its own row");
            assert!((L2::size(&cells(2)) - 2.0).abs() < 1e-3);
            assert_eq!(data.unit(2).label(0), 0.0);
            assert!((cells(3)[2] - 0.25).abs() < 1e-4 && cells(3)[0] == 0.0, "{:?}", cells(3));
        }
    }

    /// Numbers of rows that no machine has memory for are refused; they do not end the process.
    #[test]
    fn room_that_is_not_there_is_refused() {
        for sparse in [false, true] {
            for rows in [1 << 52, usize::MAX / 2, usize::MAX] {
                let mut b = DatasetBuilder::new(&Entropy::simulated(1), shape(3, sparse, None)).unwrap();
                assert_eq!(b.reserve(rows, 0), Err(Error::Memory), "{rows}");
                b.row(&[1.0, 0.0, 0.0], 1.0);
                assert_eq!(b.build().slots(), 1);
            }
        }
        // Seen from outside, so that the allocation is not optimised away.
        let grown = std::panic::catch_unwind(|| grow(std::hint::black_box(&mut vec![0u64]), 1 << 58));
        assert!(grown.is_err_and(|e| e.is::<NoMemory>()));
    }

    #[test]
    fn units_have_at_most_their_rows() {
        let mut b = DatasetBuilder::new(&Entropy::simulated(1), shape(1, false, Some(2))).unwrap();
        for unit in [3usize, 0, 1] {
            for i in 0..unit {
                b.row(&[0.1 * (i + 1) as f64], i as f32);
            }
            b.end_unit();
        }
        let data = b.build();
        assert_eq!(data.slots(), 3);
        assert_eq!([0, 1, 2].map(|s| data.unit(s).rows()), [2, 0, 1]);
        // A unit without rows has nothing, not the rows of its neighbour; a row number too high is not another unit's row.
        let mut seen = 0;
        data.unit(1).each(0, |_, _| seen += 1);
        data.unit(0).each(2, |_, _| seen += 1);
        assert_eq!((seen, data.unit(1).label(0), data.unit(1).dot(0, &[1.0])), (0, 0.0, 0.0));
        // A cap of one row still groups.
        let mut b = DatasetBuilder::new(&Entropy::simulated(1), shape(1, false, Some(1))).unwrap();
        for unit in [3usize, 0, 1] {
            (0..unit).for_each(|_| b.row(&[0.5], 1.0));
            b.end_unit();
        }
        let data = b.build();
        assert_eq!(data.slots(), 3);
        assert_eq!([0, 1, 2].map(|s| data.unit(s).rows()), [1, 0, 1]);
    }
}
