//! Collects records one at a time, each by a rule that looks at no other record.

use super::cells::{CellsBuilder, NULL_LABEL};
use super::compressed::CompressedBuilder;
use super::dataset::{Dataset, RowShape, next_id};
use super::dense::PADDING;
use super::list::{Growing, Memory};
use super::quantise_row;
use super::rows::Rows;
use crate::error::{Error, Result};
use crate::limits::{ALIGNMENT, MOST_UNITS, ROW_LIMIT};
use crate::memory::{no_memory, zeros};
use crate::norm::{L2, Norm, quantise};
use crate::rng::Entropy;
use std::path::{Path, PathBuf};

enum Collected {
    Dense(Growing<i16>),
    Sparse(CompressedBuilder),
}

impl Collected {
    fn new(sparse: bool, directory: Option<&Path>) -> Result<Collected> {
        Ok(if sparse {
            Collected::Sparse(CompressedBuilder::new(directory)?)
        } else {
            Collected::Dense(Growing::new(directory)?)
        })
    }

    fn finish(self) -> Rows {
        match self {
            Collected::Dense(mut cells) => {
                cells.extend(&[0; PADDING]);
                Rows::Dense(cells.finish())
            }
            Collected::Sparse(rows) => Rows::Sparse(rows.finish()),
        }
    }
}

/// Collects records one at a time, each by a rule that looks at no other record.
pub struct DatasetBuilder {
    shape: RowShape,
    directory: Option<PathBuf>,
    rows: Collected,
    cells: Option<CellsBuilder>,
    labels: Growing<f32>,
    units: Option<Growing<usize>>,
    place: Option<(usize, usize)>,
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
        DatasetBuilder::collecting(shape, None)
    }

    /// For tables whose rows are cells: so many cells to each column, and at most so many rows to a unit. There are no features: gradients and
    /// contributions find rows of zeros.
    pub fn of_cells(_entropy: &Entropy, cells: &[usize], rows_per_unit: Option<usize>) -> Result<DatasetBuilder> {
        let shape = RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit };
        let mut out = DatasetBuilder::new(_entropy, shape)?;
        out.cells = Some(CellsBuilder::new(cells, None)?);
        Ok(out)
    }

    /// Rows have cells beside their features: so many to each column. One record makes both, and neither looks at another record.
    pub fn and_cells(self, cells: &[usize]) -> Result<DatasetBuilder> {
        if self.labels.len() > 0 {
            return Err(Error::Mismatch { what: "records are collected already: say first that they have cells" });
        }
        let cells = Some(CellsBuilder::new(cells, self.directory.as_deref())?);
        Ok(DatasetBuilder { cells, ..self })
    }

    fn collecting(shape: RowShape, directory: Option<PathBuf>) -> Result<DatasetBuilder> {
        let on = directory.as_deref();
        let mut units = shape.rows_per_unit.map(|_| Growing::new(on)).transpose()?;
        units.iter_mut().for_each(|units| units.push(0));
        Ok(DatasetBuilder {
            shape,
            rows: Collected::new(shape.sparse, on)?,
            cells: None,
            labels: Growing::new(on)?,
            units,
            directory,
            place: None,
            in_unit: 0,
            scratch: Vec::new(),
            pairs: Vec::new(),
            quantised: Vec::new(),
            index: Vec::new(),
            value: Vec::new(),
        })
    }

    /// Keeps records in mapped files of a directory instead of in memory. The files have no name and end with the process.
    pub fn on_disk(self, directory: &Path) -> Result<DatasetBuilder> {
        if self.labels.len() > 0 {
            return Err(Error::Mismatch { what: "records are collected already: say where to keep them first" });
        }
        let place = self.place;
        let cells = match &self.cells {
            Some(cells) => Some(CellsBuilder::new(cells.counts(), Some(directory))?),
            None => None,
        };
        Ok(DatasetBuilder { place, cells, ..DatasetBuilder::collecting(self.shape, Some(directory.into()))? })
    }

    /// These are the units from index `first` on, of `total` in all processes.
    pub fn place(self, first: usize, total: usize) -> Result<DatasetBuilder> {
        if total > MOST_UNITS {
            return Err(Error::domain("units of all processes", total, "give at most 4294967294"));
        }
        if !first.is_multiple_of(ALIGNMENT) {
            return Err(Error::domain("index of the first unit", first, "give a multiple of 16384"));
        }
        Ok(DatasetBuilder { place: Some((first, total)), ..self })
    }

    /// Adds a row to the current unit; without memory for it, it unwinds with `NoMemory`, which says nothing about rows. Features beyond the
    /// dimension are left out, missing ones are 0. A row outside of the ball is scaled into it; a row with a cell that is not a finite number
    /// becomes the zero row.
    pub fn row(&mut self, features: &[f64], label: f32) {
        self.row_and_cells(features, &[], label);
    }

    /// The same with the cells of the row, for builders with cells: without a cell of each column it is null. Other builders leave cells out.
    pub fn row_and_cells(&mut self, features: &[f64], cells: &[u8], label: f32) {
        if !self.begin_row(cells, label) {
            return;
        }
        if features.is_empty() {
            return self.zero_row();
        }
        let dimension = self.shape.dimension;
        if let Collected::Dense(cells) = &mut self.rows
            && features.len() == dimension
            && quantise_row::append(features, self.shape.row_norm, cells.room(dimension + PADDING))
        {
            return;
        }
        self.scratch.clear();
        self.scratch.extend(features.iter().take(dimension));
        self.scratch.resize(dimension, 0.0);
        self.quantise();
        self.keep_dense();
    }

    /// Adds a row of cells, for builders made by `of_cells`; other builders take it as a row of zeros. A row that does not have a cell of each
    /// column, or whose label is not a finite number, is null.
    pub fn cell_row(&mut self, row: &[u8], label: f32) {
        if !self.begin_row(row, if self.cells.is_some() { label } else { NULL_LABEL }) {
            return;
        }
        self.zero_row();
    }

    fn zero_row(&mut self) {
        match &mut self.rows {
            Collected::Dense(features) => features.room(self.shape.dimension).extend((0..self.shape.dimension).map(|_| 0)),
            Collected::Sparse(rows) => rows.push(&[], &[]),
        }
    }

    /// Takes label and cells if the unit has room for another row. Where rows have cells, one that does not have a cell of each column, or whose label
    /// is not a finite number, is null: it has no cells and no label.
    fn begin_row(&mut self, row: &[u8], label: f32) -> bool {
        let known = self.cells.as_ref().is_none_or(|cells| label.is_finite() && cells.knows(row));
        if !self.room_for(if known { label } else { NULL_LABEL }) {
            return false;
        }
        if let Some(cells) = &mut self.cells {
            cells.push(known.then_some(row));
        }
        true
    }

    /// Adds a null row: it adds nothing to any sum over cells.
    pub fn null_cell_row(&mut self) {
        self.cell_row(&[], 0.0);
    }

    /// Adds a row given by its non-zero features. Pairs out of range are left out; of several with one index the first counts.
    pub fn sparse_row(&mut self, features: &[(u32, f64)], label: f32) {
        self.sparse_row_and_cells(features, &[], label);
    }

    /// The same with the cells of the row, as in `row_and_cells`.
    pub fn sparse_row_and_cells(&mut self, features: &[(u32, f64)], cells: &[u8], label: f32) {
        if !self.begin_row(cells, label) {
            return;
        }
        if let Collected::Sparse(rows) = &mut self.rows
            && quantise_row::sparse(features, self.shape.dimension, self.shape.row_norm, &mut self.index, &mut self.value)
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
        if let Collected::Dense(_) = self.rows {
            self.scratch.resize(self.shape.dimension, 0.0);
            self.pairs.iter().for_each(|f| self.scratch[f.0 as usize] = f.1);
            self.quantise();
            return self.keep_dense();
        }
        self.scratch.extend(self.pairs.iter().map(|f| f.1));
        self.quantise();
        if let Collected::Sparse(rows) = &mut self.rows {
            let kept = self.pairs.iter().zip(&self.quantised).filter(|(_, z)| **z != 0);
            (self.index, self.value) = kept.map(|(f, z)| (f.0, *z as i16)).unzip();
            rows.push(&self.index, &self.value);
        }
    }

    fn keep_dense(&mut self) {
        match &mut self.rows {
            Collected::Dense(cells) => cells.room(self.quantised.len()).extend(self.quantised.iter().map(|z| *z as i16)),
            Collected::Sparse(rows) => {
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
        if self.labels.len() >= MOST_UNITS {
            no_memory();
        }
        self.labels.push(if label.is_finite() { label } else { 0.0 });
        true
    }

    /// Puts the scratch row on the integers.
    fn quantise(&mut self) {
        let per_unit = ROW_LIMIT as f64 / self.shape.row_norm;
        quantise::<L2>(&mut self.scratch, self.shape.row_norm, per_unit, ROW_LIMIT, &mut self.quantised);
    }

    /// Ends the current unit: the next row belongs to the next unit index. A unit may be empty.
    pub fn end_unit(&mut self) {
        self.in_unit = 0;
        let rows = self.labels.len();
        if let Some(units) = &mut self.units {
            units.push(rows);
        }
    }

    /// Makes room for so many rows (and non-zero cells, if rows are sparse) at once. Public numbers, which may be wrong: more than
    /// there is memory for is refused here.
    pub fn reserve(&mut self, rows: usize, non_zeros: usize) -> Result<()> {
        let room = match &mut self.rows {
            Collected::Dense(cells) => {
                let all = rows.checked_mul(self.shape.dimension).and_then(|n| n.checked_add(PADDING)).ok_or(Error::Memory)?;
                cells.try_reserve(all)
            }
            Collected::Sparse(sparse) => sparse.try_reserve(rows, non_zeros),
        };
        if let Some(cells) = &mut self.cells {
            cells.try_reserve(rows).map_err(|_| Error::Memory)?;
        }
        room.and_then(|()| self.labels.try_reserve(rows)).map_err(|_| Error::Memory)
    }

    /// The records.
    pub fn build(mut self) -> Dataset {
        let rows = self.labels.len();
        let units = self.units.take().map(|mut units| {
            // Rows without an end of their unit are the last one.
            if self.in_unit > 0 {
                units.push(rows);
            }
            units.finish()
        });
        let unit_count = units.as_ref().map_or(rows, |u: &Memory<usize>| u.len() - 1);
        let (first, total) = self.place.unwrap_or((0, unit_count));
        let data = Dataset {
            rows: self.rows.finish(),
            cells: self.cells.take().map(CellsBuilder::finish),
            labels: self.labels.finish(),
            units,
            dimension: self.shape.dimension,
            row_norm: self.shape.row_norm,
            rows_per_unit: self.shape.rows_per_unit.unwrap_or(1),
            id: next_id(),
            first,
            total,
            directory: self.directory,
        };
        assert!(data.complete(), "rows and labels do not belong together");
        debug_assert!(data.checked());
        data
    }
}

impl Dataset {
    /// Some of the units, in this order, as records of their own.
    pub(crate) fn picked(&self, unit_count: impl Iterator<Item = usize>) -> Result<Dataset> {
        let units = self.units.as_ref().map(|_| self.rows_per_unit);
        let shape =
            RowShape { dimension: self.dimension, row_norm: self.row_norm, sparse: self.is_sparse(), rows_per_unit: units };
        let mut part = DatasetBuilder::collecting(shape, self.directory.clone())?;
        if let Some(cells) = &self.cells {
            part.cells = Some(CellsBuilder::new(cells.counts(), self.directory.as_deref())?);
        }
        let (d, mut bytes) = (self.dimension, Vec::new());
        for unit_index in unit_count {
            for row in self.rows_of(unit_index) {
                part.labels.push(self.labels[row]);
                if let (Some(to), Some(from)) = (&mut part.cells, &self.cells) {
                    from.copy_row(row, &mut bytes);
                    to.push((!from.is_null(row)).then_some(&bytes));
                }
                match (&mut part.rows, &self.rows) {
                    (Collected::Dense(to), Rows::Dense(from)) => to.extend(&from[row * d..(row + 1) * d]),
                    (Collected::Sparse(to), Rows::Sparse(from)) => {
                        let (index, value) = from.rows().row(row);
                        to.push(index, value);
                    }
                    _ => {}
                }
            }
            if units.is_some() {
                part.end_unit();
            }
        }
        Ok(part.build())
    }

    /// The rows of all processes, one row to a unit: these are `before` and the following ones of `count`. Sums of what each process has, zeros
    /// elsewhere, are what all of them have. Dense rows.
    pub(crate) fn gathered(self, before: usize, count: usize, collect: impl Fn(Vec<i64>) -> Result<Vec<i64>>) -> Result<Dataset> {
        let (Rows::Dense(cells), None, d) = (&self.rows, &self.cells, self.dimension) else {
            return Err(Error::Mismatch { what: "only dense rows are gathered" });
        };
        let own = self.labels.len();
        // Four cells to a word; a label has a word of its own.
        let words = d.div_ceil(4);
        let mut share = zeros::<i64>(count * (words + 1));
        for (row, to) in share.chunks_exact_mut(words + 1).skip(before).take(own).enumerate() {
            for (word, four) in to.iter_mut().zip(cells[row * d..(row + 1) * d].chunks(4)) {
                let mut lanes = [0i16; 4];
                lanes[..four.len()].copy_from_slice(four);
                *word = i64::from_le_bytes(std::array::from_fn(|i| lanes[i / 2].to_le_bytes()[i % 2]));
            }
            to[words] = i64::from(self.labels[row].to_bits());
        }
        let shape = RowShape { dimension: d, row_norm: self.row_norm, sparse: false, rows_per_unit: None };
        let mut all = DatasetBuilder::collecting(shape, None)?;
        for row in collect(share)?.chunks_exact(words + 1) {
            all.labels.push(f32::from_bits(row[words] as u32));
            if let Collected::Dense(to) = &mut all.rows {
                let lane = |j: usize| i16::from_le_bytes([0, 1].map(|i| row[j / 4].to_le_bytes()[j % 4 * 2 + i]));
                to.room(d).extend((0..d).map(lane));
            }
        }
        Ok(all.build())
    }

    /// Every row has its features and its cells: lengths alone.
    fn complete(&self) -> bool {
        let rows = self.labels.len();
        let features = match &self.rows {
            Rows::Dense(cells) => cells.len() == rows * self.dimension + PADDING,
            Rows::Sparse(sparse) => sparse.count() == rows,
        };
        features && self.cells.as_ref().is_none_or(|c| c.complete(rows))
    }

    /// Every row lies in the ball, on the integers.
    fn checked(&self) -> bool {
        let fits = |row: &[i16]| L2::within(&row.iter().map(|x| i64::from(*x)).collect::<Vec<_>>(), ROW_LIMIT);
        match &self.rows {
            Rows::Dense(cells) => cells[..self.labels.len() * self.dimension].chunks(self.dimension).all(fits),
            Rows::Sparse(rows) => (0..self.labels.len()).all(|row| fits(rows.rows().row(row).1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dimension: usize, sparse: bool, rows_per_unit: Option<usize>) -> RowShape {
        RowShape { dimension, row_norm: 2.0, sparse, rows_per_unit }
    }

    #[test]
    fn rows_stay_in_the_ball_and_keep_their_units() {
        let entropy = Entropy::simulated(1);
        for sparse in [false, true] {
            let mut b = DatasetBuilder::new(&entropy, shape(3, sparse, None)).unwrap();
            b.row(&[1.0, -1.0, 0.5], 1.0);
            b.row(&[f64::NAN, 1.0, 0.0], 1.0);
            b.row(&[1e30, 1e30, -1e30], f32::INFINITY);
            b.sparse_row(&[(2, 0.25), (2, 9.0), (7, 1.0)], -1.0);
            let data = b.build();
            assert_eq!(data.unit_count(), 4);
            assert!(data.checked());
            let cells = |unit_index: usize| {
                let mut out = vec![0.0; 3];
                data.unit(unit_index).each(0, |i, x| out[i] = x);
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
                assert_eq!(b.build().unit_count(), 1);
            }
        }
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
        assert_eq!(data.unit_count(), 3);
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
        assert_eq!(data.unit_count(), 3);
        assert_eq!([0, 1, 2].map(|s| data.unit(s).rows()), [1, 0, 1]);
    }
}
