//! Sums of derivatives over the leaves of public trees.
//!
//! *Claim.* A tree asks a few public questions about the cells of a row; the answers are the number of its leaf. Trees are chosen without a look at rows, or from what was
//! released. For b trees at once a row has the feature v in its leaf of each of them, v a whole number with b v^2 <= L^2, so that its features have the length L at most.
//! With derivatives of `cell_pass.rs`, at most R, one unit moves all sums together by at most R L when it becomes null, and by twice that when it becomes another one.

use super::cell_pass::{TILE, Tile};
use super::cell_scores::RowScores;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::loss::Loss;
use crate::norm::L2;
use crate::store::cells::Cells;
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// Most questions of a tree: the number of a leaf is a byte.
pub const DEEPEST: usize = 8;

/// One question: about which column, and the answer for each of its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSplit {
    /// The column.
    pub column: usize,
    /// Whether a cell answers with yes; cells beyond the list do not.
    pub yes: Vec<bool>,
}

/// A tree that asks every row the same questions.
#[derive(Clone, Debug, PartialEq)]
pub struct CellTree {
    /// Its questions, from the root.
    pub splits: Vec<CellSplit>,
}

impl CellTree {
    /// How many leaves it has.
    pub fn leaves(&self) -> usize {
        1 << self.splits.len()
    }
}

/// The same for a pass.
struct Questions {
    splits: Vec<(usize, Answers)>,
    leaves: usize,
}

/// Which bytes answer with yes: those from one on, or an answer for every byte.
enum Answers {
    From(u8),
    Each(Box<[u8; 256]>),
}

impl Answers {
    fn new(yes: &[bool], cells: usize) -> Answers {
        // A comparison of bytes is much faster than a look-up. Cells beyond the list answer with no.
        let first = yes.iter().position(|y| *y).unwrap_or(yes.len());
        if let Ok(first) = u8::try_from(first)
            && yes.len() >= cells
            && yes[usize::from(first)..].iter().all(|y| *y)
        {
            return Answers::From(first);
        }
        let mut out = Box::new([0u8; 256]);
        out.iter_mut().zip(yes).for_each(|(o, yes)| *o = u8::from(*yes));
        Answers::Each(out)
    }
}

impl Questions {
    fn new(tree: &CellTree, counts: &[usize]) -> Result<Questions> {
        if tree.splits.len() > DEEPEST || tree.splits.iter().any(|s| s.column >= counts.len()) {
            return Err(Error::Mismatch { what: "a tree asks at most 8 questions about the columns that there are" });
        }
        let splits = tree.splits.iter().map(|s| (s.column, Answers::new(&s.yes, counts[s.column]))).collect();
        Ok(Questions { splits, leaves: tree.leaves() })
    }

    /// The leaves of the rows of a tile.
    fn leaves(&self, cells: &Cells, rows: &Range<usize>, out: &mut [u8; TILE]) {
        out.fill(0);
        for (column, answers) in &self.splits {
            let leaves = out.iter_mut().zip(cells.column(rows, *column));
            match answers {
                Answers::From(first) => leaves.for_each(|(leaf, byte)| *leaf = 2 * *leaf + u8::from(byte >= first)),
                Answers::Each(table) => leaves.for_each(|(leaf, byte)| *leaf = 2 * *leaf + table[usize::from(*byte)]),
            }
        }
    }
}

/// The feature of a row in its leaf of each of so many trees, in units of the longest row.
pub fn leaf_feature(trees: usize) -> f64 {
    feature(trees) as f64 / ROW_LIMIT as f64
}

fn feature(trees: usize) -> i64 {
    let room = (ROW_LIMIT * ROW_LIMIT) as i64 / trees.max(1) as i64;
    room.isqrt()
}

impl Batch<'_> {
    fn questions(&self, trees: &[CellTree]) -> Result<(&Cells, Vec<Questions>)> {
        let cells = self.data.cells.as_ref().ok_or(Error::Mismatch { what: "these records have no cells" })?;
        Ok((cells, trees.iter().map(|t| Questions::new(t, cells.counts())).collect::<Result<_>>()?))
    }

    /// Sums of derivatives at the scores of rows, times `leaf_feature`, over the leaves of trees: tree after tree, output after output, leaf after
    /// leaf. The mechanism must come from `Gaussian::for_gradients` with clip = loss constant.
    pub fn leaf_sums<'id>(
        &self,
        noise: &Noise<'id, L2>,
        scores: &RowScores,
        trees: &[CellTree],
        loss: &Loss,
    ) -> Result<Bounded<'id, L2>> {
        let k = loss.outputs;
        let (cells, questions) = self.questions(trees)?;
        let dimension = trees.iter().map(CellTree::leaves).sum::<usize>() * k;
        let (grid, derivatives) = self.cell_grid(noise, dimension, loss)?;
        let scores = self.own_scores(scores, k)?;
        let add = |part: Range<usize>, tile: &Tile, out: &mut [i32]| {
            let mut leaves = [0u8; TILE];
            let mut rest = out;
            for tree in &questions {
                tree.leaves(cells, &part, &mut leaves);
                for o in 0..k {
                    let (own, after) = std::mem::take(&mut rest).split_at_mut(tree.leaves);
                    rest = after;
                    for (leaf, z) in leaves[..part.len()].iter().zip(tile.integers.iter().skip(o).step_by(k)) {
                        own[usize::from(*leaf)] += i32::from(*z);
                    }
                }
            }
        };
        let score = |part: Range<usize>, out: &mut [f32]| out.copy_from_slice(&scores[part.start * k..part.end * k]);
        let mut sum = self.cell_share(cells, loss, derivatives, dimension, &score, &add);
        let value = feature(trees.len());
        sum.iter_mut().for_each(|s| *s = s.wrapping_mul(value));
        Ok(self.finish(sum, grid))
    }

    /// Adds public values of leaves to the scores of rows, in the order of `leaf_sums`.
    pub fn add_leaves(&self, scores: &mut RowScores, trees: &[CellTree], values: &[f64]) -> Result<()> {
        let k = scores.outputs;
        let (cells, questions) = self.questions(trees)?;
        self.own_scores(scores, k)?;
        if values.len() != trees.iter().map(CellTree::leaves).sum::<usize>() * k {
            return Err(Error::Mismatch { what: "there is a value for each leaf and output" });
        }
        let values: Vec<f32> = values.iter().map(|v| *v as f32).collect();
        self.update_scores(scores, &|part, scores| {
            let mut leaves = [0u8; TILE];
            let mut rest = values.as_slice();
            for tree in &questions {
                tree.leaves(cells, &part, &mut leaves);
                for o in 0..k {
                    let (own, after) = rest.split_at(tree.leaves);
                    rest = after;
                    scores.chunks_mut(k).zip(&leaves).for_each(|(score, leaf)| score[o] += own[usize::from(*leaf)]);
                }
            }
        });
        Ok(())
    }
}
