//! Random trees on released ranks: nothing about a tree depends on rows, except through what was released.

use super::basis::KnownColumn;
use privfit_kernel::{CellSplit, CellTree};

/// Public randomness from one public word.
pub(super) struct PublicRandom(pub(super) u64);

impl PublicRandom {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(super) fn next(&mut self) -> f64 {
        (self.word() >> 11) as f64 * 0.5f64.powi(53)
    }
}

/// How trees are drawn: public.
pub(super) struct Forest {
    /// How often each column is asked about, as a running sum up to 1.
    upto: Vec<f64>,
    /// The order of each column's cells, as ranks; none for categories that have none.
    ranks: Vec<Option<Vec<f64>>>,
    /// The same by what the additive model says about a category.
    by_score: Vec<Option<Vec<f64>>>,
    cells: Vec<usize>,
    shares: Vec<Vec<f64>>,
}

impl Forest {
    /// Columns are asked about in proportion to their importance, and none never.
    pub(super) fn new(known: &[KnownColumn], importance: &[f64], curves: &[Vec<f64>]) -> Forest {
        let sum: f64 = importance.iter().sum::<f64>().max(1e-300);
        let floor = 0.05 / known.len() as f64;
        let mut upto = 0.0;
        let upto = importance.iter().map(|i| {
            upto += (i / sum + floor) / 1.05;
            upto
        });
        let by_score = |(column, curve): (&KnownColumn, &Vec<f64>)| {
            if column.ranks.is_some() {
                return None;
            }
            let mut order: Vec<usize> = (0..curve.len()).collect();
            order.sort_by(|a, b| curve[*a].total_cmp(&curve[*b]));
            let sorted: Vec<f64> = order.iter().map(|i| column.shares[*i]).collect();
            let mut out = vec![0.0; curve.len()];
            order.iter().zip(super::histogram::ranks(&sorted)).for_each(|(i, rank)| out[*i] = rank);
            Some(out)
        };
        Forest {
            upto: upto.collect(),
            ranks: known.iter().map(|c| c.ranks.clone()).collect(),
            by_score: known.iter().zip(curves).map(by_score).collect(),
            cells: known.iter().map(|c| c.shares.len()).collect(),
            shares: known.iter().map(|c| c.shares.clone()).collect(),
        }
    }

    /// A tree with so many questions.
    pub(super) fn tree(&self, depth: usize, random: &mut PublicRandom) -> CellTree {
        let split = |random: &mut PublicRandom| {
            let at = random.next();
            let column = self.upto.iter().position(|upto| at < *upto).unwrap_or(self.upto.len() - 1);
            let by_score = self.by_score[column].as_ref().filter(|_| random.next() < 0.5);
            let yes = match self.ranks[column].as_ref().or(by_score) {
                Some(ranks) => {
                    let threshold = random.next();
                    ranks.iter().map(|rank| *rank > threshold).collect()
                }
                None => (0..self.cells[column]).map(|_| random.next() < 0.5).collect(),
            };
            CellSplit { column, yes }
        };
        CellTree { splits: (0..depth).map(|_| split(random)).collect() }
    }

    /// The most that each leaf can hold of all rows, whatever one column has to do with another: the least share of the cells that a leaf allows in a column.
    pub(super) fn most(&self, tree: &CellTree) -> Vec<f64> {
        let depth = tree.splits.len();
        let answer = |leaf: usize, question: usize| leaf >> (depth - 1 - question) & 1 == 1;
        let allowed = |leaf: usize, column: usize| -> f64 {
            let questions = || tree.splits.iter().enumerate().filter(|(_, split)| split.column == column);
            let fits =
                |cell: usize| questions().all(|(q, split)| split.yes.get(cell).copied().unwrap_or(false) == answer(leaf, q));
            self.shares[column].iter().enumerate().filter(|(cell, _)| fits(*cell)).map(|(_, share)| share).sum()
        };
        let most = |leaf| tree.splits.iter().map(|split| allowed(leaf, split.column)).fold(1.0, f64::min);
        (0..tree.leaves()).map(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_leaf_holds_more_than_its_bound() {
        let shares = vec![vec![0.7, 0.2, 0.1], vec![0.5, 0.5]];
        let forest =
            Forest { upto: vec![0.5, 1.0], ranks: vec![None, None], by_score: vec![None, None], cells: vec![3, 2], shares };
        let split = |column: usize, yes: &[bool]| CellSplit { column, yes: yes.to_vec() };
        let tree =
            CellTree { splits: vec![split(0, &[false, true, true]), split(1, &[true, false]), split(0, &[false, false, true])] };
        // Leaves by their answers, the first question first: 000 and so on.
        let expected = [0.5, 0.0, 0.5, 0.0, 0.2, 0.1, 0.2, 0.1];
        assert!(forest.most(&tree).iter().zip(expected).all(|(m, e)| (m - e).abs() < 1e-12), "{:?}", forest.most(&tree));
    }
}
