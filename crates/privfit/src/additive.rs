//! An additive model: a sum of public functions of one column each, of a few pairs of columns, and of random trees. What it says about a row can be read, drawn and edited.

pub mod edit;
pub(crate) mod flat;

use crate::data::cells::CellGrid;
use crate::data::encode::Row;
use edit::Edit;
use serde::{Deserialize, Serialize};

/// A sum of curves, pairs and trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdditiveModel {
    /// Name of the loss.
    pub loss: String,
    /// Its numbers.
    pub loss_parameters: Vec<f64>,
    /// Number of classes; 0 for a number.
    pub classes: usize,
    /// Where each score begins: that of an average row.
    pub offsets: Vec<f64>,
    /// The cells of all columns: public.
    pub grid: CellGrid,
    /// A curve for each column.
    pub curves: Vec<Curve>,
    /// Terms of two columns.
    pub pairs: Vec<PairTerm>,
    /// Terms of several columns.
    pub trees: Vec<TreeTerm>,
    /// What was changed after the release, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

/// What a column adds to the scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Share of the rows in each cell, from counts with noise.
    pub shares: Vec<f64>,
    /// For each score the number that each cell adds to it.
    pub scores: Vec<Vec<f64>>,
    /// The largest standard deviation that the noise in each of these numbers can have; empty for a curve that was edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<f64>,
}

/// What two columns together add to the scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairTerm {
    /// The columns.
    pub columns: [usize; 2],
    /// The group of each cell of either.
    pub groups: [Vec<u8>; 2],
    /// For each score the number that each two groups add to it, those of one group of the first column after each other.
    pub scores: Vec<Vec<f64>>,
}

/// What a tree adds to the scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeTerm {
    /// Its questions: a column, and the cells that answer with yes, as the cell from which on they do or as a list.
    pub questions: Vec<Question>,
    /// For each score the numbers of its leaves.
    pub scores: Vec<Vec<f64>>,
}

/// A question of a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The column.
    pub column: usize,
    /// The cells that answer with yes.
    pub yes: Cells,
}

/// Some cells of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cells {
    /// This one and all after it.
    From(u8),
    /// These.
    List(Vec<u8>),
}

impl Cells {
    /// The cells with a yes.
    pub fn of(yes: &[bool]) -> Cells {
        let first = yes.iter().position(|y| *y).unwrap_or(yes.len());
        match yes[first..].iter().all(|y| *y) {
            true => Cells::From(first.min(255) as u8),
            false => Cells::List((0u8..=255).zip(yes).filter(|(_, y)| **y).map(|(i, _)| i).collect()),
        }
    }

    fn has(&self, cell: u8) -> bool {
        match self {
            Cells::From(first) => cell >= *first,
            Cells::List(cells) => cells.contains(&cell),
        }
    }
}

impl AdditiveModel {
    /// Scores of a row; a row without cells has those of an average row.
    pub fn scores(&self, row: &Row, out: &mut Vec<f64>) {
        out.extend_from_slice(&self.offsets);
        self.each_term(&row.cells, |_, scores, at| {
            out.iter_mut().zip(scores).for_each(|(o, s)| *o += s.get(at).copied().unwrap_or(0.0));
        });
    }

    /// What each term adds to a score of a row, in the order of `term_names`; zeros for a row without cells.
    pub fn reasons(&self, row: &Row, score: usize) -> Vec<f64> {
        let mut out = vec![0.0; self.term_names().len()];
        self.each_term(&row.cells, |term, scores, at| {
            out[term] += scores.get(score).and_then(|s| s.get(at)).copied().unwrap_or(0.0);
        });
        out
    }

    /// Names of the terms: columns, pairs of columns, and all trees together.
    pub fn term_names(&self) -> Vec<String> {
        let name = |j: usize| self.grid.columns.get(j).map_or("", |c| c.name.as_str());
        let columns = (0..self.curves.len()).map(|j| name(j).to_string());
        let pairs = self.pairs.iter().map(|p| format!("{} x {}", name(p.columns[0]), name(p.columns[1])));
        columns.chain(pairs).chain((!self.trees.is_empty()).then(|| "trees".to_string())).collect()
    }

    /// Calls with the number of each term, its scores, and where a row with these cells is in them.
    fn each_term(&self, cells: &[u8], mut f: impl FnMut(usize, &[Vec<f64>], usize)) {
        if cells.len() != self.curves.len() {
            return;
        }
        for (term, (curve, cell)) in self.curves.iter().zip(cells).enumerate() {
            f(term, &curve.scores, usize::from(*cell));
        }
        for (i, pair) in self.pairs.iter().enumerate() {
            f(cells.len() + i, &pair.scores, pair.place(cells));
        }
        for tree in &self.trees {
            let yes = |q: &Question| cells.get(q.column).is_some_and(|cell| q.yes.has(*cell));
            let leaf = tree.questions.iter().fold(0, |leaf, q| 2 * leaf + usize::from(yes(q)));
            f(cells.len() + self.pairs.len(), &tree.scores, leaf);
        }
    }

    /// All terms for programs; `scores` are the names of the scores.
    pub fn listing(&self, scores: &[String]) -> serde_json::Value {
        let names = |columns: &[usize]| -> Vec<&str> { columns.iter().map(|j| self.grid.columns[*j].name.as_str()).collect() };
        let pair = |p: &PairTerm| serde_json::json!({"columns": names(&p.columns), "groups": p.groups, "scores": p.scores});
        serde_json::json!({
            "base": self.offsets, "columns": (0..self.curves.len()).map(|j| self.listed(j, scores)).collect::<Vec<_>>(),
            "pairs": self.pairs.iter().map(pair).collect::<Vec<_>>(), "trees": self.trees.len(),
            "edits": self.edits.iter().map(Edit::text).collect::<Vec<_>>(),
        })
    }

    /// The curve of a column, for programs.
    pub fn listed(&self, column: usize, scores: &[String]) -> serde_json::Value {
        let (curve, known) = (&self.curves[column], &self.grid.columns[column]);
        let of: serde_json::Map<_, _> = scores.iter().cloned().zip(curve.scores.iter().map(|s| s.clone().into())).collect();
        let cells: Vec<String> = (0..known.kind.count()).map(|cell| known.kind.cell_name(cell)).collect();
        serde_json::json!({"column": known.name, "spread": curve.total_spread(), "cells": cells, "middles": known.kind.middles(),
            "shares": curve.shares, "scores": of, "noise": curve.noise})
    }

    /// Every released number.
    pub fn numbers(&self) -> impl Iterator<Item = &f64> {
        let curves = self.curves.iter().flat_map(|c| c.shares.iter().chain(&c.noise).chain(c.scores.iter().flatten()));
        let pairs = self.pairs.iter().flat_map(|p| p.scores.iter().flatten());
        let trees = self.trees.iter().flat_map(|t| t.scores.iter().flatten());
        self.offsets.iter().chain(curves).chain(pairs).chain(trees)
    }

    /// Whether all lists have the lengths that the cells ask for, and all numbers are finite.
    pub fn is_complete(&self) -> bool {
        let (counts, k) = (self.grid.counts(), self.offsets.len());
        let full = |scores: &[Vec<f64>], places: usize| scores.len() == k && scores.iter().all(|s| s.len() == places);
        let curves = self.curves.len() == counts.len()
            && self
                .curves
                .iter()
                .zip(&counts)
                .all(|(c, n)| c.shares.len() == *n && full(&c.scores, *n) && (c.noise.is_empty() || c.noise.len() == *n));
        let pair = |p: &PairTerm| {
            let known = p.columns.iter().zip(&p.groups).all(|(j, g)| counts.get(*j) == Some(&g.len()));
            known && p.columns[0] != p.columns[1] && full(&p.scores, p.counts()[0] * p.counts()[1])
        };
        let tree = |t: &TreeTerm| {
            t.questions.len() <= 16
                && t.questions.iter().all(|q| q.column < counts.len())
                && full(&t.scores, 1 << t.questions.len())
        };
        k > 0 && curves && self.pairs.iter().all(pair) && self.trees.iter().all(tree) && self.numbers().all(|x| x.is_finite())
    }
}

impl Curve {
    /// How far the column moves a score: the root of the mean square of its curve.
    pub fn spread(&self, score: usize) -> f64 {
        self.scores.get(score).map_or(0.0, |curve| spread(curve, &self.shares))
    }

    /// How far the column moves all scores.
    pub fn total_spread(&self) -> f64 {
        (0..self.scores.len()).map(|score| self.spread(score).powi(2)).sum::<f64>().sqrt()
    }
}

/// Root of the mean square around the mean.
pub(crate) fn spread(curve: &[f64], shares: &[f64]) -> f64 {
    let mean: f64 = curve.iter().zip(shares).map(|(x, s)| x * s).sum();
    curve.iter().zip(shares).map(|(x, s)| s * (x - mean) * (x - mean)).sum::<f64>().sqrt()
}

impl PairTerm {
    /// How many groups either column has.
    pub fn counts(&self) -> [usize; 2] {
        self.groups.each_ref().map(|own| own.iter().max().map_or(0, |g| usize::from(*g) + 1))
    }

    fn place(&self, cells: &[u8]) -> usize {
        let group = |side: usize| {
            let cell = cells.get(self.columns[side]).copied().unwrap_or_default();
            self.groups[side].get(usize::from(cell)).copied().map_or(0, usize::from)
        };
        group(0) * self.counts()[1] + group(1)
    }
}
