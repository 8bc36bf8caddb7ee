//! Public integer features of rows of cells: a vector for each cell of a column, and for each pair of groups of cells of two columns.
//!
//! *Claim.* A row has the features T_b[c_b] for its cells (or groups of two cells) c_b and a constant k0; tables T and k0 are public integers. Features may be long, and what a row adds is
//! clipped: a factor a, which depends on the row's own cells alone and is a whole number of 65536ths, has a^2 sum_b |T_b[c_b]|^2 + k0^2 <= L^2. That is checked on the integers, once
//! for each row; a row for which it does not hold has a = 0. For an integer z the row adds w T_b[c_b] and z k0 with w = trunc(z a): |w| <= |z| a, so that their squared length
//! is at most z^2 L^2.

use super::cell_pass::TILE;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::memory::zeros;
use crate::store::cells::{Cells, MOST_CELLS};
use std::ops::{Add, AddAssign, Range};

/// A column has a place for every byte, so that none is outside.
const BYTES: usize = 256;

/// Most groups of the cells of a column in a pair.
pub const MOST_GROUPS: usize = 32;

/// Features of the cells of a column.
#[derive(Clone, Debug)]
pub struct ColumnFeatures {
    /// A vector for each cell, in units of the longest row.
    pub cells: Vec<Vec<f64>>,
}

/// Features of two columns together.
#[derive(Clone, Debug)]
pub struct PairFeatures {
    /// The columns.
    pub columns: [usize; 2],
    /// The group of each cell of either, from 0.
    pub groups: [Vec<u8>; 2],
    /// A vector for each pair of groups, those of one group of the first column after each other.
    pub pairs: Vec<Vec<f64>>,
}

/// Where a block finds its place for a row.
#[derive(Clone, Debug)]
enum Source {
    Column(usize),
    /// Places are the sum of two look-ups.
    Pair([usize; 2], [Box<[u16; 256]>; 2]),
}

#[derive(Clone, Debug)]
struct Block {
    source: Source,
    /// Places of its histogram.
    places: Range<usize>,
    /// Its features.
    features: Range<usize>,
    /// The features of each place.
    table: Vec<i32>,
}

/// Public features of rows of cells.
#[derive(Clone, Debug)]
pub struct CellFeatures {
    cells: Vec<usize>,
    blocks: Vec<Block>,
    /// Squared length of the features of each place.
    squares: Vec<u64>,
    /// Features that are zero in every row.
    padding: usize,
    constant: i32,
}

/// Longest feature, in units of the longest row: what a row adds is clipped, and its score is not.
const LONGEST: f64 = 8.0;

/// Truncated; what is not a number becomes 0, and what is too large is clipped.
fn integer(x: f64) -> i32 {
    (x.clamp(-LONGEST, LONGEST) * ROW_LIMIT as f64) as i32
}

/// Look-ups for every byte; those that are no cell find 0.
fn by_byte(groups: &[u8], times: u16) -> Box<[u16; 256]> {
    let mut out = Box::new([0u16; 256]);
    out.iter_mut().zip(groups).for_each(|(o, g)| *o = u16::from(*g) * times);
    out
}

impl CellFeatures {
    /// From features of columns and of pairs of them, in units of the longest row, and the size of the constant one.
    pub fn new(columns: &[ColumnFeatures], pairs: &[PairFeatures], constant: f64) -> Result<CellFeatures> {
        if columns.is_empty() || columns.iter().any(|c| !(1..=MOST_CELLS).contains(&c.cells.len())) {
            return Err(Error::Mismatch { what: "features have a column, and a column from 1 to 255 cells" });
        }
        if !(0.0..=0.9).contains(&constant) {
            return Err(Error::domain("constant feature", constant, "give a number from 0 to 0.9"));
        }
        let cells: Vec<usize> = columns.iter().map(|c| c.cells.len()).collect();
        let mut out = CellFeatures { cells, blocks: Vec::new(), squares: Vec::new(), padding: 0, constant: integer(constant) };
        for (j, column) in columns.iter().enumerate() {
            out.push(Source::Column(j), &column.cells, BYTES)?;
        }
        for PairFeatures { columns: [i, j], groups, pairs } in pairs {
            let counts = groups.each_ref().map(|own| own.iter().max().map_or(0, |g| usize::from(*g) + 1));
            let known = |j: usize, own: &[u8]| out.cells.get(j).is_some_and(|count| *count == own.len());
            if i == j || !known(*i, &groups[0]) || !known(*j, &groups[1]) {
                return Err(Error::Mismatch { what: "a pair has two columns, and a group for each of their cells" });
            }
            if counts.iter().any(|count| *count > MOST_GROUPS) || pairs.len() != counts[0] * counts[1] {
                return Err(Error::Mismatch { what: "a pair has at most 32 groups a column, and features for each two of them" });
            }
            let maps = [by_byte(&groups[0], counts[1] as u16), by_byte(&groups[1], 1)];
            out.push(Source::Pair([*i, *j], maps), pairs, pairs.len())?;
        }
        match out.dimension() < 1 << 31 {
            true => Ok(out),
            false => Err(Error::Mismatch { what: "there are fewer than 2^31 features" }),
        }
    }

    /// The same with zeros up to so many features: how many there are must not depend on what is not planned.
    pub fn padded(mut self, dimension: usize) -> Result<CellFeatures> {
        let own = self.dimension() - self.padding;
        self.padding = dimension.checked_sub(own).ok_or(Error::Mismatch { what: "there are more features than planned" })?;
        Ok(self)
    }

    fn push(&mut self, source: Source, vectors: &[Vec<f64>], places: usize) -> Result<()> {
        let width = vectors.first().map_or(0, Vec::len);
        if vectors.iter().any(|v| v.len() != width) {
            return Err(Error::Mismatch { what: "the cells of a column have different numbers of features" });
        }
        let table: Vec<i32> = vectors.iter().flatten().map(|x| integer(*x)).collect();
        let (first, feature) = (self.squares.len(), self.dimension() - 1);
        let square = |v: &[i32]| v.iter().map(|x| u64::from(x.unsigned_abs()).pow(2)).sum::<u64>();
        self.squares.extend((0..vectors.len()).map(|at| square(&table[at * width..(at + 1) * width])));
        self.squares.resize(first + places, 0);
        self.blocks.push(Block { source, places: first..first + places, features: feature..feature + width, table });
        Ok(())
    }

    /// Features in all, the constant last.
    pub fn dimension(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.features.end) + self.padding + 1
    }

    /// Cells of each column.
    pub fn cells(&self) -> &[usize] {
        &self.cells
    }

    /// Places of a histogram over all blocks.
    pub(crate) fn places(&self) -> usize {
        self.squares.len()
    }

    /// The score that weights over the features give each cell of each column, then each pair of groups of each pair, and the constant.
    pub fn curves(&self, weights: &[f64]) -> (Vec<Vec<f64>>, f64) {
        let unit = 1.0 / ROW_LIMIT as f64;
        let curve = |block: &Block| {
            let own = &weights[block.features.clone()];
            let dot = |v: &[i32]| v.iter().zip(own).map(|(t, w)| f64::from(*t) * w).sum::<f64>() * unit;
            let places = match block.source {
                Source::Column(j) => self.cells[j],
                Source::Pair(..) => block.places.len(),
            };
            if own.is_empty() { vec![0.0; places] } else { block.table.chunks(own.len()).map(dot).collect() }
        };
        (self.blocks.iter().map(curve).collect(), weights[self.dimension() - 1] * f64::from(self.constant) * unit)
    }

    /// The standard deviations of curves from noise in weights with these variances, in the same order.
    pub fn deviations(&self, variances: &[f64]) -> Vec<Vec<f64>> {
        let unit = 1.0 / ROW_LIMIT as f64;
        let of_block = |block: &Block| {
            let own = &variances[block.features.clone()];
            let square = |v: &[i32]| v.iter().zip(own).map(|(t, x)| (f64::from(*t) * unit).powi(2) * x).sum::<f64>();
            if own.is_empty() { Vec::new() } else { block.table.chunks(own.len()).map(|v| square(v).sqrt()).collect() }
        };
        self.blocks.iter().map(of_block).collect()
    }

    /// Curves in single precision, place after place.
    pub(crate) fn scores(&self, weights: &[f64]) -> (Vec<f32>, f32) {
        let (curves, constant) = self.curves(weights);
        let mut out = vec![0f32; self.places()];
        for (block, curve) in self.blocks.iter().zip(curves) {
            out[block.places.clone()].iter_mut().zip(curve).for_each(|(o, v)| *o = v as f32);
        }
        (out, constant as f32)
    }

    /// The public tables times a histogram over all places, and the constant times what was added up for it. Integers wrap.
    pub(crate) fn project(&self, histogram: &[i64], constant: i64) -> Vec<i64> {
        let mut out = vec![0i64; self.dimension()];
        for block in &self.blocks {
            let own = &mut out[block.features.clone()];
            if own.is_empty() {
                continue;
            }
            for (features, count) in block.table.chunks(own.len()).zip(&histogram[block.places.clone()]) {
                own.iter_mut().zip(features).for_each(|(o, t)| *o = o.wrapping_add(count.wrapping_mul(i64::from(*t))));
            }
        }
        out[self.dimension() - 1] = constant.wrapping_mul(i64::from(self.constant));
        out
    }

    /// Adds the entries of a table at the places of rows, for rows of one tile.
    pub(crate) fn add_entries<T: Copy + Add<Output = T> + AddAssign>(
        &self,
        cells: &Cells,
        rows: &Range<usize>,
        table: &[T],
        out: &mut [T],
    ) {
        let (columns, rest) = table.split_at(BYTES * self.cells.len());
        let bytes = |j: usize| cells.column(rows, j);
        // Four columns at once: every score is read and written once for them.
        for (i, own) in columns.as_chunks::<BYTES>().0.chunks(4).enumerate() {
            let j = 4 * i;
            let [a, b, c, d] = own else {
                for (table, j) in own.iter().zip(j..) {
                    out.iter_mut().zip(bytes(j)).for_each(|(o, a)| *o += table[usize::from(*a)]);
                }
                continue;
            };
            let places = bytes(j).iter().zip(bytes(j + 1)).zip(bytes(j + 2).iter().zip(bytes(j + 3)));
            for (o, ((w, x), (y, z))) in out.iter_mut().zip(places) {
                *o += (a[usize::from(*w)] + b[usize::from(*x)]) + (c[usize::from(*y)] + d[usize::from(*z)]);
            }
        }
        let mut places = [0u16; TILE];
        self.each_pair(cells, rows, &mut places, |range, places| {
            let table = &rest[range];
            out.iter_mut().zip(places).for_each(|(o, place)| *o += table[usize::from(*place)]);
        });
    }

    /// Adds the weights of rows to their places, for rows of one tile.
    pub(crate) fn add_to_places(&self, cells: &Cells, rows: &Range<usize>, weights: &[i32], histogram: &mut [i32]) {
        let (columns, rest) = histogram.split_at_mut(BYTES * self.cells.len());
        let bytes = |j: usize| cells.column(rows, j);
        // Four columns at once: rows that follow each other often have the same cell, and an addition waits for the one before it.
        for (i, own) in columns.as_chunks_mut::<BYTES>().0.chunks_mut(4).enumerate() {
            let j = 4 * i;
            let [a, b, c, d] = own else {
                for (histogram, j) in own.iter_mut().zip(j..) {
                    weights.iter().zip(bytes(j)).for_each(|(weight, a)| histogram[usize::from(*a)] += weight);
                }
                continue;
            };
            let places = bytes(j).iter().zip(bytes(j + 1)).zip(bytes(j + 2).iter().zip(bytes(j + 3)));
            for (weight, ((w, x), (y, z))) in weights.iter().zip(places) {
                a[usize::from(*w)] += weight;
                b[usize::from(*x)] += weight;
                c[usize::from(*y)] += weight;
                d[usize::from(*z)] += weight;
            }
        }
        let mut places = [0u16; TILE];
        self.each_pair(cells, rows, &mut places, |range, places| {
            let own = &mut rest[range];
            weights.iter().zip(places).for_each(|(weight, place)| own[usize::from(*place)] += weight);
        });
    }

    /// Calls with the range that a pair has among all of them, and the place of each row in it.
    fn each_pair(&self, cells: &Cells, rows: &Range<usize>, places: &mut [u16; TILE], mut f: impl FnMut(Range<usize>, &[u16])) {
        let first = BYTES * self.cells.len();
        for block in &self.blocks {
            let Source::Pair([i, j], [left, right]) = &block.source else { continue };
            for ((place, a), b) in places.iter_mut().zip(cells.column(rows, *i)).zip(cells.column(rows, *j)) {
                *place = left[usize::from(*a)] + right[usize::from(*b)];
            }
            f(block.places.start - first..block.places.end - first, &places[..rows.len()]);
        }
    }

    /// The factor of a row with so long features, in 65536ths: as large as the ball allows.
    fn factor(&self, square: u64) -> u16 {
        let room = u128::from(ROW_LIMIT * ROW_LIMIT) - u128::from(self.constant.unsigned_abs()).pow(2);
        fitting(u128::from(square), room)
    }
}

/// About the largest whole number of 65536ths a with a^2 square <= room, which is checked exactly; 0 if the guess is wrong twice.
pub(crate) fn fitting(square: u128, room: u128) -> u16 {
    let guess = ((room as f64 / square.max(1) as f64).sqrt() * 65536.0).clamp(0.0, 65535.0) as u16;
    let fits = |a: &u16| u128::from(*a).pow(2).checked_mul(square).is_some_and(|long| long <= room << 32);
    [guess, guess.saturating_sub(1)].into_iter().find(fits).unwrap_or(0)
}

/// The factors of all rows for some features: private, and kept in the kernel.
pub struct CellRows {
    pub(crate) data: u64,
    pub(crate) factors: Vec<u16>,
    pub(crate) features: CellFeatures,
}

impl CellRows {
    /// The features that they are for.
    pub fn features(&self) -> &CellFeatures {
        &self.features
    }
}

impl Batch<'_> {
    /// The factors of these records for some features.
    pub fn cell_rows(&self, features: CellFeatures) -> Result<CellRows> {
        let cells = self.cells(&features.cells)?;
        let mut factors = zeros::<u16>(self.data.labels.len());
        let tile = |(number, own): (usize, &mut [u16])| {
            let mut squares = [0u64; TILE];
            features.add_entries(cells, &(number * TILE..number * TILE + own.len()), &features.squares, &mut squares);
            own.iter_mut().zip(&squares).for_each(|(factor, square)| *factor = features.factor(*square));
        };
        self.seam.threads().chunks(&mut factors, TILE, &tile);
        Ok(CellRows { data: self.data.id, factors, features })
    }
}
