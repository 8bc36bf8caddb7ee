//! Rows, however they are stored. Nothing outside of this folder knows how; whoever computes asks for scores, sums and cells.

use super::compressed::Compressed;
use super::dense::{self, FLUSH, LANES, PADDING, PairSums};
use super::list::Memory;
use crate::memory::zeros;
use crate::processor::wide;
use std::ops::Range;

/// Rows of 16-bit cells.
pub(super) enum Rows {
    /// Row after row, plus padding.
    Dense(Memory<i16>),
    /// Index-value pairs.
    Sparse(Compressed),
}

/// Rows whose scores are computed together: they stay in the first-level cache.
pub(crate) const TILE: usize = 64;

/// Length of one output's weights in double precision, with padding.
pub(crate) fn padded(d: usize) -> usize {
    d.next_multiple_of(LANES)
}

/// Rows with as many cells as there are features.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    rows: &'a Rows,
    d: usize,
    wide: bool,
}

impl<'a> Table<'a> {
    pub(super) fn new(rows: &'a Rows, d: usize) -> Table<'a> {
        Table { rows, d, wide: wide() }
    }

    /// Inner products of rows with padded weights, in double precision; written with a stride.
    pub(crate) fn scores(&self, rows: Range<usize>, weights: &[f64], out: &mut [f64], stride: usize) {
        match self.rows {
            Rows::Dense(cells) => dense::scores(cells, self.d, rows, weights, out, stride, self.wide),
            Rows::Sparse(sparse) => sparse.scores(rows, weights, out, stride),
        }
    }

    /// Adds rows times derivatives, which are read with a stride, to a padded sum.
    pub(crate) fn add(&self, rows: Range<usize>, derivatives: &[f64], stride: usize, sum: &mut [f64]) {
        match self.rows {
            Rows::Dense(cells) => dense::add_rows(cells, self.d, rows, derivatives, stride, sum, self.wide),
            Rows::Sparse(sparse) => sparse.add(rows, derivatives, stride, sum),
        }
    }

    /// The first features of a row in single precision, times a unit and with a shift, as many as there are places.
    pub(crate) fn copy_row(&self, row: usize, unit: f32, shift: f32, out: &mut [f32]) {
        match self.rows {
            Rows::Dense(cells) => {
                let (own, rest) = out.split_at_mut(out.len().min(self.d));
                copy_cells(&cells[row * self.d..][..own.len()], unit, shift, own);
                rest.fill(0.0);
            }
            Rows::Sparse(_) => {
                out.fill(shift);
                self.each(row, |j, x| {
                    if let Some(out) = out.get_mut(j) {
                        *out = f32::from(x) * unit + shift;
                    }
                });
            }
        }
    }

    /// Cells of a row, if all of them are stored.
    pub(crate) fn row_length(&self) -> Option<usize> {
        matches!(self.rows, Rows::Dense(_)).then_some(self.d)
    }

    /// The cells of a row; none where they are not all stored.
    pub(crate) fn row(&self, row: usize) -> &'a [i16] {
        match self.rows {
            Rows::Dense(cells) => &cells[row * self.d..(row + 1) * self.d],
            Rows::Sparse(_) => &[],
        }
    }

    /// Asks the memory for a row that will be read soon.
    pub(crate) fn fetch(&self, row: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Rows::Dense(cells) = self.rows {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            for line in cells[row * self.d..(row + 1) * self.d].chunks(32) {
                // SAFETY: asking for a line reads nothing, and the address is one of this list.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = row;
    }

    /// Calls with each cell of a row that is not zero.
    #[inline]
    pub(crate) fn each(&self, row: usize, mut f: impl FnMut(usize, i16)) {
        match self.rows {
            Rows::Dense(cells) => {
                for (j, x) in cells[row * self.d..(row + 1) * self.d].iter().enumerate() {
                    if *x != 0 {
                        f(j, *x);
                    }
                }
            }
            Rows::Sparse(sparse) => {
                let (index, value) = sparse.rows().row(row);
                index.iter().zip(value).for_each(|(j, x)| f(*j as usize, *x));
            }
        }
    }
}

fn copy_cells(cells: &[i16], unit: f32, shift: f32, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if crate::processor::wide() {
        // SAFETY: the processor has the instructions.
        return unsafe { copy_cells_wide(cells, unit, shift, out) };
    }
    copy_cells_plain(cells, unit, shift, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn copy_cells_wide(cells: &[i16], unit: f32, shift: f32, out: &mut [f32]) {
    copy_cells_plain(cells, unit, shift, out);
}

#[inline(always)]
fn copy_cells_plain(cells: &[i16], unit: f32, shift: f32, out: &mut [f32]) {
    out.iter_mut().zip(cells).for_each(|(o, x)| *o = f32::from(*x) * unit + shift);
}

/// Integer sums of rows times derivatives over many tiles: working memory of one thread.
pub(crate) struct IntegerSums<'a> {
    table: Table<'a>,
    /// Rows of a sample are brought together first, so that a step costs what its sample costs.
    gathered: Option<Vec<i16>>,
    sums: Vec<PairSums>,
    since_flush: usize,
}

impl<'a> IntegerSums<'a> {
    /// For so many outputs; `sampled` where rows of a tile do not follow one another.
    pub(crate) fn new(table: Table<'a>, outputs: usize, sampled: bool) -> IntegerSums<'a> {
        let (dense, padded) = (matches!(table.rows, Rows::Dense(_)), single_padded(table.d));
        IntegerSums {
            table,
            gathered: (dense && sampled).then(|| zeros(TILE * table.d + PADDING)),
            sums: if dense { vec![PairSums::new(padded); outputs] } else { Vec::new() },
            since_flush: 0,
        }
    }

    /// Begins with a tile of at most `TILE` rows.
    pub(crate) fn gather(&mut self, rows: &[usize]) {
        let d = self.table.d;
        if let (Rows::Dense(cells), Some(gathered)) = (self.table.rows, &mut self.gathered) {
            for (to, from) in gathered.chunks_exact_mut(d).zip(rows) {
                to.copy_from_slice(&cells[from * d..(from + 1) * d]);
            }
        }
    }

    fn cells(&self, rows: &[usize]) -> &[i16] {
        match (self.table.rows, &self.gathered, rows.first()) {
            (Rows::Dense(_), Some(gathered), _) => gathered,
            (Rows::Dense(cells), None, Some(first)) => &cells[first * self.table.d..],
            _ => &[],
        }
    }

    /// Inner products of the rows of the tile with padded weights, in single precision; written with a stride.
    pub(crate) fn scores(&self, rows: &[usize], weights: &[f32], out: &mut [f32], stride: usize) {
        match self.table.rows {
            Rows::Dense(_) => {
                let (cells, d) = (self.cells(rows), self.table.d);
                for i in 0..rows.len() {
                    out[i * stride] = dense::dot_single(&cells[i * d..], d, weights);
                }
            }
            Rows::Sparse(sparse) => sparse.scores_in_order(rows, weights, out, stride),
        }
    }

    /// Adds the rows of the tile, each times its derivative, for one output. With a cap cells are clipped to it first.
    pub(crate) fn add(&mut self, rows: &[usize], derivatives: &[i16], output: usize, cap: Option<i16>, out: &mut [i64]) {
        let d = self.table.d;
        let out = &mut out[output * d..(output + 1) * d];
        match (self.table.rows, cap) {
            (Rows::Dense(_), None) => {
                let mut sums = std::mem::replace(&mut self.sums[output], PairSums::new(0));
                sums.add(self.cells(rows), d, derivatives);
                self.sums[output] = sums;
            }
            (Rows::Sparse(sparse), None) => sparse.add_integers(rows, derivatives, out),
            (Rows::Dense(_), Some(cap)) => {
                for (z, row) in derivatives.iter().zip(self.cells(rows).chunks_exact(d)) {
                    // Both below 2^15 in size.
                    let part = |x: &i16| i64::from(i32::from(*z) * i32::from((*x).clamp(-cap, cap)));
                    out.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.wrapping_add(part(x)));
                }
            }
            (Rows::Sparse(_), Some(cap)) => {
                for (z, row) in derivatives.iter().zip(rows) {
                    let add =
                        |j: usize, x: i16| out[j] = out[j].wrapping_add(i64::from(i32::from(*z) * i32::from(x.clamp(-cap, cap))));
                    self.table.each(*row, add);
                }
            }
        }
    }

    /// Ends with a tile.
    pub(crate) fn end_tile(&mut self, rows: usize, out: &mut [i64]) {
        self.since_flush += rows;
        if self.since_flush + TILE > FLUSH {
            self.flush(out);
        }
    }

    /// Ends.
    pub(crate) fn flush(&mut self, out: &mut [i64]) {
        let d = self.table.d;
        self.sums.iter_mut().zip(out.chunks_exact_mut(d)).for_each(|(sums, out)| sums.flush(out));
        self.since_flush = 0;
    }
}

/// Length of one output's weights in single precision, with padding.
pub(crate) fn single_padded(d: usize) -> usize {
    d.next_multiple_of(16)
}

/// The cells column after column, rows ascending.
pub(crate) struct Columns {
    start: Vec<usize>,
    row: Vec<u32>,
    cell: Vec<i16>,
}

impl Columns {
    pub(super) fn new(table: Table<'_>, rows: usize) -> Columns {
        let d = table.d;
        let mut end = vec![0usize; d + 1];
        (0..rows).for_each(|row| table.each(row, |j, _| end[j + 1] += 1));
        (1..=d).for_each(|j| end[j] += end[j - 1]);
        let (mut row, mut cell) = (zeros::<u32>(end[d]), zeros::<i16>(end[d]));
        // Each column's start moves to its end while it fills.
        for i in 0..rows {
            table.each(i, |j, x| {
                let at = &mut end[j];
                row[*at] = i as u32;
                cell[*at] = x;
                *at += 1;
            });
        }
        end.rotate_right(1);
        end[0] = 0;
        Columns { start: end, row, cell }
    }

    /// Rows and cells of a column.
    pub(crate) fn column(&self, j: usize) -> (&[u32], &[i16]) {
        let cells = self.start[j]..self.start[j + 1];
        (&self.row[cells.clone()], &self.cell[cells])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dataset;

    /// Wide and plain code agree to rounding, for every remainder of rows and features.
    #[test]
    fn wide_and_plain_agree() {
        for d in [1usize, 7, 8, 9, 31] {
            for n in [1usize, 2, 3, 4, 5, 64] {
                let data = dataset(n, d, false, None);
                let theta: Vec<f64> = (0..d).map(|j| (j as f64 * 0.7).sin()).collect();
                let weights = data.scaled_weights(&theta);
                let derivatives: Vec<f64> = (0..n).map(|i| (i as f64 * 1.3).cos()).collect();
                let each = |wide: bool| {
                    let (mut out, mut sum) = (vec![0.0; n], vec![0.0; padded(d)]);
                    let table = Table { wide, ..data.table() };
                    table.scores(0..n, &weights, &mut out, 1);
                    table.add(0..n, &derivatives, 1, &mut sum);
                    out.extend_from_slice(&sum[..d]);
                    out
                };
                let exact: Vec<f64> = (0..n).map(|i| data.unit(i).dot(0, &theta)).collect();
                let (plain, fast) = (each(false), each(wide()));
                assert!(plain.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-12), "{d} {n}");
                assert!(plain.iter().zip(&fast).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + a.abs())), "{d} {n}");
            }
        }
    }
}
