//! Gradients of scores that are sums over columns of functions of one cell: additive models.
//!
//! *Claim.* A row with cells c_1 .. c_F has the features a T_j[c_j] for the columns, and a constant k0. The tables T and k0 are public integers; a, at
//! most 1, is a function of the row's own cells, with 16 bits, and small enough that the features have length L at most. For a derivative r
//! of an output, an integer of at most R in size (for several outputs together), w = trunc(r a) is one integer, and the row adds r k0 and
//! w T_j[c_j]. Their squared length, the sum over outputs of r^2 k0^2 + w^2 sum_j |T_j[c_j]|^2, is computed exactly. The rows of a unit are divided
//! by how many there are before that, and the sum of their lengths, each rounded up, is compared with R L; a unit that is longer adds nothing.
//! So one unit moves the sum by at most R L when it becomes null, and by twice that when it becomes another one.
//!
//! *Cost.* A pass adds w to one place of a histogram over all cells for each column: a few look-ups and an addition for each column of a row, whatever
//! the number of features.
//! The gradient is the product of the public tables with the histogram, in integers that may wrap (a wrapped sum plus noise is the wrapped sum of both).

use super::cell_counts::{known, places};
use super::gradient::DerivativeGrid;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::loss::Loss;
use crate::mechanism::GridKind;
use crate::memory::{grow, zeros};
use crate::norm::{L2, root_up};
use crate::store::cells::{Cells, MOST_CELLS};
use crate::store::dataset::Dataset;
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// Public features of cells: a vector of integers for each cell of each column, and a constant.
#[derive(Clone, Debug)]
pub struct CellBasis {
    cells: Vec<usize>,
    /// First place of each column in a list over all cells, and the end.
    places: Vec<usize>,
    /// First feature of each column, and the end.
    features: Vec<usize>,
    /// For each cell of each column its features.
    tables: Vec<Vec<i16>>,
    /// Squared length of the features of each cell, column after column.
    squares: Vec<u64>,
    constant: i16,
}

impl CellBasis {
    /// From features of cells, column after column and cell after cell, in units of the longest row; numbers beyond 1 in size are clipped.
    /// `constant` is the size of the constant feature.
    pub fn new(columns: &[Vec<Vec<f64>>], constant: f64) -> Result<CellBasis> {
        if columns.is_empty() || columns.iter().any(|c| !(1..=MOST_CELLS).contains(&c.len())) {
            return Err(Error::Mismatch { what: "a basis has a column, and a column from 1 to 255 cells" });
        }
        if columns.iter().any(|c| c.iter().any(|cell| cell.len() != c[0].len())) {
            return Err(Error::Mismatch { what: "the cells of a column have different numbers of features" });
        }
        if !(0.0..=0.9).contains(&constant) {
            return Err(Error::domain("constant feature", constant, "give a number from 0 to 0.9"));
        }
        // Truncated; what is not a number becomes 0.
        let integer = |x: f64| (x * ROW_LIMIT as f64).clamp(-(ROW_LIMIT as f64), ROW_LIMIT as f64) as i16;
        if columns.iter().map(|c| c[0].len() as u64).sum::<u64>() >= 1 << 31 {
            return Err(Error::Mismatch { what: "a basis has fewer than 2^31 features" });
        }
        let cells: Vec<usize> = columns.iter().map(Vec::len).collect();
        let widths: Vec<usize> = columns.iter().map(|c| c[0].len()).collect();
        let tables: Vec<Vec<i16>> = columns.iter().map(|c| c.iter().flatten().map(|x| integer(*x)).collect()).collect();
        let square = |x: &i16| u64::from(x.unsigned_abs()).pow(2);
        let lengths = |(table, width): (&Vec<i16>, &usize)| -> Vec<u64> {
            match width {
                0 => Vec::new(),
                width => table.chunks(*width).map(|cell| cell.iter().map(square).sum()).collect(),
            }
        };
        let squares = tables.iter().zip(&widths).zip(&cells).flat_map(|(both, count)| {
            let mut own = lengths(both);
            own.resize(*count, 0);
            own
        });
        let squares = squares.collect();
        Ok(CellBasis { places: places(&cells), features: places(&widths), cells, tables, squares, constant: integer(constant) })
    }

    /// Features in all, the constant last.
    pub fn dimension(&self) -> usize {
        self.features[self.cells.len()] + 1
    }

    /// The score that weights over the features give each cell, column after column, and that of the constant: public tables.
    fn scores(&self, weights: &[f64]) -> (Vec<f32>, f32) {
        let unit = 1.0 / ROW_LIMIT as f64;
        let mut out = Vec::with_capacity(self.squares.len());
        for (j, table) in self.tables.iter().enumerate() {
            let own = &weights[self.features[j]..self.features[j + 1]];
            for cell in 0..self.cells[j] {
                let features = &table[cell * own.len()..(cell + 1) * own.len()];
                out.push((features.iter().zip(own).map(|(t, w)| f64::from(*t) * w).sum::<f64>() * unit) as f32);
            }
        }
        (out, (weights[self.dimension() - 1] * f64::from(self.constant) * unit) as f32)
    }

    /// Squared length of a row's features without the constant, and without the factor.
    #[inline]
    fn square(&self, row: &[u8]) -> u64 {
        row.iter().zip(&self.places).map(|(byte, place)| self.squares[place + usize::from(*byte)]).sum()
    }

    /// The factor of such a row, in 65536ths and less by one of them: at most 1, and the features are no longer than the ball allows. Privacy does
    /// not rest on it: lengths are compared on the integers.
    fn factor(&self, square: u64) -> u16 {
        let room = (ROW_LIMIT * ROW_LIMIT) as f64 - f64::from(self.constant).powi(2);
        let factor = (room / square.max(1) as f64).sqrt().min(1.0) * 65536.0;
        ((factor * (1.0 + 1e-12)).floor() - 1.0).clamp(0.0, 65535.0) as u16
    }
}

/// The factors of all rows for a basis: private, and kept in the kernel. They save a root for each row in every step.
pub struct CellFactors {
    data: u64,
    factors: Vec<u16>,
    basis: CellBasis,
}

impl CellFactors {
    /// The basis that they are for.
    pub fn basis(&self) -> &CellBasis {
        &self.basis
    }
}

fn cells_of<'d>(data: &'d Dataset, columns: usize) -> Result<&'d Cells> {
    data.cells
        .as_ref()
        .filter(|t| t.columns() == columns)
        .ok_or(Error::Mismatch { what: "these records have no cells, or of another number of columns" })
}

impl Batch<'_> {
    /// The factors of these records for a basis; a null row has 0.
    pub fn cell_factors(&self, basis: CellBasis) -> Result<CellFactors> {
        let table = cells_of(self.data, basis.cells.len())?;
        let mut factors = zeros::<u16>(self.data.labels.len());
        for (row, factor) in factors.iter_mut().enumerate() {
            if let Some(row) = table.row(row).filter(|row| known(row, &basis.cells)) {
                *factor = basis.factor(basis.square(row));
            }
        }
        Ok(CellFactors { data: self.data.id, factors, basis })
    }

    /// Sum of gradients of scores that are linear in the features of cells, with weights output after output, the constant last in each; the
    /// mechanism must come from `Gaussian::for_gradients` with clip = loss constant.
    pub fn cell_gradient<'id>(
        &self,
        noise: &Noise<'id, L2>,
        prepared: &CellFactors,
        weights: &[f64],
        loss: &Loss,
    ) -> Result<Bounded<'id, L2>> {
        loss.validate()?;
        let basis = &prepared.basis;
        if prepared.data != self.data.id {
            return Err(Error::Mismatch { what: "these factors belong to other records" });
        }
        let table = cells_of(self.data, basis.cells.len())?;
        let (d, k) = (basis.dimension(), loss.outputs);
        let grid = self.grid(noise, d * k, &[GridKind::Gradient])?;
        if weights.len() != d * k {
            return Err(Error::Mismatch { what: "the number of weights is not features x outputs" });
        }
        let derivatives = DerivativeGrid::new(loss, &grid, ROW_LIMIT).filter(|_| (grid.clip / loss.lipschitz - 1.0).abs() < 1e-9);
        let Some(derivatives) = derivatives else {
            return Err(Error::Mismatch { what: "gradients of cells need Gaussian::for_gradients with clip = loss constant" });
        };
        let pass = Pass {
            basis,
            table,
            factors: &prepared.factors,
            derivatives,
            loss,
            bound: grid.bound,
            nothing: vec![0; basis.cells.len()],
        };
        let tables: Vec<(Vec<f32>, f32)> = weights.chunks(d).map(|own| basis.scores(own)).collect();
        // A histogram over all cells for each output, and its constant.
        let width = basis.squares.len() + 1;
        let add = |range: Range<usize>, out: &mut [i64]| {
            let mut scratch = Scratch::new(k);
            self.chosen.each(range, |unit_index| pass.unit(self.data, unit_index, &tables, &mut scratch, out));
        };
        let histogram = self.share(1, width * k, &add);
        let gradient: Vec<i64> = histogram.chunks(width).flat_map(|own| basis.project(own)).collect();
        Ok(self.finish(gradient, grid))
    }
}

impl CellBasis {
    /// The public tables times a histogram over all cells, whose last place is the constant. Integers wrap.
    fn project(&self, histogram: &[i64]) -> Vec<i64> {
        let mut out = vec![0i64; self.dimension()];
        for (j, table) in self.tables.iter().enumerate() {
            let own = &mut out[self.features[j]..self.features[j + 1]];
            if own.is_empty() {
                continue;
            }
            for (cell, count) in table.chunks(own.len()).zip(&histogram[self.places[j]..self.places[j + 1]]) {
                own.iter_mut().zip(cell).for_each(|(o, t)| *o = o.wrapping_add(count.wrapping_mul(i64::from(*t))));
            }
        }
        out[self.dimension() - 1] = histogram[self.squares.len()].wrapping_mul(i64::from(self.constant));
        out
    }
}

/// What a pass looks at, all of it public but cells and factors.
struct Pass<'p> {
    basis: &'p CellBasis,
    table: &'p Cells,
    factors: &'p [u16],
    derivatives: DerivativeGrid,
    loss: &'p Loss,
    bound: u64,
    /// First cells.
    nothing: Vec<u8>,
}

struct Scratch {
    scores: Vec<f32>,
    derivatives: Vec<f32>,
    integers: Vec<i16>,
    /// Weights of the rows of a unit: those of the features, then those of the constant.
    weights: Vec<i64>,
}

impl Scratch {
    fn new(outputs: usize) -> Scratch {
        let zeros = vec![0f32; outputs];
        Scratch { scores: zeros.clone(), derivatives: zeros, integers: vec![0; outputs], weights: Vec::new() }
    }
}

impl Pass<'_> {
    /// The cells of a row and 1, or first cells and 0 for a null row, which is nearly as much work as any other.
    fn cells(&self, row: usize) -> (&[u8], i64) {
        match self.table.row(row).filter(|cells| known(cells, &self.basis.cells)) {
            Some(cells) => (cells, 1),
            None => (&self.nothing, 0),
        }
    }

    /// Adds what a unit adds, or nothing if it would be longer than the bound.
    fn unit(&self, data: &Dataset, unit_index: usize, tables: &[(Vec<f32>, f32)], scratch: &mut Scratch, out: &mut [i64]) {
        let rows = data.rows_of(unit_index);
        let (k, parts) = (tables.len(), rows.len().max(1) as i64);
        scratch.weights.clear();
        grow(&mut scratch.weights, 2 * k * rows.len());
        let mut length = 0u64;
        for row in rows.clone() {
            let (cells, counts) = self.cells(row);
            let factor = self.factors[row];
            let part = (f32::from(factor) + 1.0) / 65536.0;
            for (score, (table, constant)) in scratch.scores.iter_mut().zip(tables) {
                let sum: f32 = cells.iter().zip(&self.basis.places).map(|(byte, at)| table[at + usize::from(*byte)]).sum();
                *score = part * sum + constant;
            }
            let label = &data.labels[row..=row];
            self.derivatives.of_rows(self.loss, &scratch.scores, label, &mut scratch.derivatives, &mut scratch.integers);
            let mut square = 0u128;
            let (features, constant) = (u128::from(self.basis.square(cells)), u128::from(self.basis.constant.unsigned_abs()));
            for z in &scratch.integers {
                // Truncated toward zero, both times.
                let weight = i64::from(*z) * counts / parts;
                let scaled = i64::from(*z) * counts * (i64::from(factor) + 1) / (65536 * parts);
                square +=
                    u128::from(scaled.unsigned_abs()).pow(2) * features + (u128::from(weight.unsigned_abs()) * constant).pow(2);
                scratch.weights.extend([scaled, weight]);
            }
            length = length.saturating_add(root_up(square));
        }
        if length > self.bound {
            return;
        }
        let width = self.basis.squares.len() + 1;
        for (row, weights) in rows.zip(scratch.weights.chunks(2 * k)) {
            let (cells, _) = self.cells(row);
            for (own, both) in out.chunks_exact_mut(width).zip(weights.chunks(2)) {
                for (byte, at) in cells.iter().zip(&self.basis.places) {
                    let count = &mut own[at + usize::from(*byte)];
                    *count = count.wrapping_add(both[0]);
                }
                own[width - 1] = own[width - 1].wrapping_add(both[1]);
            }
        }
    }
}
