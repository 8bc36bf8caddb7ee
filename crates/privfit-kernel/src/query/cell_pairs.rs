//! Gradients of all products of two columns' features at once: which pairs of columns would lower the loss together.
//!
//! *Claim.* Every column has public integer vectors Z_j for groups of its cells, and a row the products of all entries of two different columns as features. Their squared length is
//! the sum over pairs of |Z_i|^2 |Z_j|^2, which is half of (sum_j |Z_j|^2)^2 - sum_j |Z_j|^4. A factor a of the row, a whole number of 65536ths that depends on its own cells alone,
//! makes a times that length L at most: checked on the integers, as in `cell_features.rs`. With derivatives of at most R one unit moves the sum by at most R L when it becomes null,
//! and by twice that when it becomes another one.

use super::cell_features::fitting;
use super::cell_pass::{TILE, Tile};
use super::cell_scores::RowScores;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::loss::Loss;
use crate::norm::L2;
use crate::store::cells::MOST_CELLS;
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// Groups of a column in all of its pairs.
const GROUPS: usize = 16;

/// What an entry of 1 is on the integers: products of two are as long as a row may be.
const ONE: f64 = 181.0;

/// Public vectors of a column.
#[derive(Clone, Debug)]
pub struct PairColumn {
    /// The group of each cell, from 0 to 15.
    pub groups: Vec<u8>,
    /// A vector for each group; rows of length 1 are not shortened.
    pub vectors: Vec<Vec<f64>>,
}

/// Public vectors of all columns.
#[derive(Clone, Debug)]
pub struct AllPairs {
    counts: Vec<usize>,
    groups: Vec<Box<[u8; 256]>>,
    tables: Vec<Vec<Vec<i16>>>,
    squares: Vec<[u64; GROUPS]>,
}

impl AllPairs {
    /// From the vectors of each column.
    pub fn new(columns: &[PairColumn]) -> Result<AllPairs> {
        let fine = |c: &PairColumn| {
            let within = c.groups.iter().all(|g| usize::from(*g) < c.vectors.len());
            (1..=MOST_CELLS).contains(&c.groups.len()) && within && (1..=GROUPS).contains(&c.vectors.len())
        };
        if columns.len() < 2 || columns.len() > 1024 || !columns.iter().all(fine) {
            return Err(Error::Mismatch {
                what: "there are from 2 to 1024 columns, each with a group for every cell and at most 16 of them",
            });
        }
        if columns.iter().any(|c| c.vectors.iter().any(|v| v.len() != c.vectors[0].len() || v.len() > 64)) {
            return Err(Error::Mismatch { what: "the vectors of a column have one length, of at most 64" });
        }
        let integer = |x: &f64| (x * ONE).clamp(-4096.0, 4096.0) as i16;
        let table = |c: &PairColumn| -> Vec<Vec<i16>> { c.vectors.iter().map(|v| v.iter().map(integer).collect()).collect() };
        let tables: Vec<Vec<Vec<i16>>> = columns.iter().map(table).collect();
        let squares = tables.iter().map(|t| {
            let mut out = [0u64; GROUPS];
            out.iter_mut().zip(t).for_each(|(o, v)| *o = v.iter().map(|x| u64::from(x.unsigned_abs()).pow(2)).sum());
            out
        });
        let groups = columns.iter().map(|c| {
            let mut out = Box::new([0u8; 256]);
            out.iter_mut().zip(&c.groups).for_each(|(o, g)| *o = *g);
            out
        });
        Ok(AllPairs {
            counts: columns.iter().map(|c| c.groups.len()).collect(),
            groups: groups.collect(),
            squares: squares.collect(),
            tables,
        })
    }

    /// Pairs of columns, in their order.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let f = self.tables.len();
        (0..f).flat_map(move |i| (i + 1..f).map(move |j| (i, j)))
    }

    /// Products of the entries of two columns.
    pub fn products(&self, i: usize, j: usize) -> usize {
        self.tables[i][0].len() * self.tables[j][0].len()
    }

    /// Coordinates of a release.
    pub fn dimension(&self) -> usize {
        self.pairs().map(|(i, j)| self.products(i, j)).sum()
    }

    /// What a product of 1 times a derivative of 1 is in a released number.
    pub fn scale() -> f64 {
        ONE * ONE / ROW_LIMIT as f64
    }

    /// The factor of a row.
    fn factor(&self, sum: u64, squares: u128) -> u16 {
        let twice = u128::from(sum).pow(2).saturating_sub(squares);
        fitting(twice, 2 * u128::from(ROW_LIMIT).pow(2))
    }
}

impl Batch<'_> {
    /// Sums of derivatives at the scores of rows times the products of all pairs of columns: pair after pair, the entries of the second column after each
    /// other. The loss has one output; the mechanism must come from `Gaussian::for_gradients` with clip = loss constant.
    pub fn pair_gradients<'id>(
        &self,
        noise: &Noise<'id, L2>,
        scores: &RowScores,
        all: &AllPairs,
        loss: &Loss,
    ) -> Result<Bounded<'id, L2>> {
        if loss.outputs != 1 {
            return Err(Error::unsupported("pairs for several outputs", "use a loss with one"));
        }
        let (grid, derivatives) = self.cell_grid(noise, all.dimension(), loss)?;
        let cells = self.cells(&all.counts)?;
        let scores = self.own_scores(scores, 1)?;
        let f = all.counts.len();
        const PLACES: usize = GROUPS * GROUPS;
        let add = |part: Range<usize>, tile: &Tile, out: &mut [i32]| {
            let n = part.len();
            let mut groups = vec![[0u8; TILE]; f];
            let (mut sum, mut squares) = ([0u64; TILE], [0u128; TILE]);
            for (j, own) in groups.iter_mut().enumerate() {
                let groups = &all.groups[j];
                own.iter_mut().zip(cells.column(&part, j)).for_each(|(g, byte)| *g = groups[usize::from(*byte)]);
                for i in 0..n {
                    let square = all.squares[j][usize::from(own[i])];
                    sum[i] += square;
                    squares[i] += u128::from(square).pow(2);
                }
            }
            let mut weights = [0i32; TILE];
            for i in 0..n {
                // Truncated toward zero.
                weights[i] = i32::from(tile.integers[i]) * i32::from(all.factor(sum[i], squares[i])) / 65536;
            }
            for ((i, j), own) in all.pairs().zip(out.chunks_exact_mut(PLACES)) {
                for ((w, a), b) in weights[..n].iter().zip(&groups[i]).zip(&groups[j]) {
                    own[usize::from(*a) * GROUPS + usize::from(*b)] += *w;
                }
            }
        };
        let score = |part: Range<usize>, out: &mut [f32]| out.copy_from_slice(&scores[part]);
        let histograms = self.cell_share(cells, loss, derivatives, PLACES * f * (f - 1) / 2, &score, &add);
        let mut gradient = Vec::with_capacity(all.dimension());
        for ((i, j), own) in all.pairs().zip(histograms.chunks_exact(PLACES)) {
            let first = gradient.len();
            gradient.resize(first + all.products(i, j), 0i64);
            for (a, left) in all.tables[i].iter().enumerate() {
                for (b, right) in all.tables[j].iter().enumerate() {
                    let count = own[a * GROUPS + b];
                    let products = left.iter().flat_map(|x| right.iter().map(move |y| i64::from(*x) * i64::from(*y)));
                    gradient[first..].iter_mut().zip(products).for_each(|(g, p)| *g = g.wrapping_add(count.wrapping_mul(p)));
                }
            }
        }
        Ok(self.finish(gradient, grid))
    }
}
