//! Edits of a released model: they look at released numbers alone, so that they cost nothing and the guarantee stays as it is.

use super::{AdditiveModel, Curve};
use crate::data::cells::CellKind;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Scores never fall with the column.
    Up,
    /// Scores never rise with it.
    Down,
}

/// One edit, of the column with that name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Edit {
    /// The curve goes one way: the closest such curve, in the mean of squares over the rows.
    Monotone {
        /// The column.
        column: String,
        /// Which way.
        direction: Direction,
    },
    /// Neighbouring cells are averaged by their shares.
    Smooth {
        /// The column.
        column: String,
    },
    /// The column says nothing any more.
    Drop {
        /// The column.
        column: String,
    },
    /// Numbers outside count as the nearest one inside.
    Clamp {
        /// The column.
        column: String,
        /// Least number.
        low: f64,
        /// Largest number.
        high: f64,
    },
    /// All trees are left out.
    DropTrees,
}

impl Edit {
    /// For people, as a certificate has it.
    pub fn text(&self) -> String {
        match self {
            Edit::Monotone { column, direction: Direction::Up } => {
                format!("scores never fall with {column}; its trees are left out")
            }
            Edit::Monotone { column, .. } => format!("scores never rise with {column}; its trees are left out"),
            Edit::Smooth { column } => format!("the curve of {column} is smoothed"),
            Edit::Drop { column } => format!("{column} is left out"),
            Edit::Clamp { column, low, high } => {
                format!("numbers of {column} outside of {low} to {high} count as the nearest inside")
            }
            Edit::DropTrees => "all trees are left out".into(),
        }
    }
}

impl AdditiveModel {
    /// The number of the column with that name.
    pub fn column(&self, name: &str) -> Result<usize> {
        let names = || self.grid.columns.iter().map(|c| c.name.as_str());
        names().position(|n| n == name).ok_or_else(|| {
            let hint = crate::nearest::hint(name, names());
            Error::misuse(format!("the model has no column {name:?}: {hint}it has {}", names().collect::<Vec<_>>().join(", ")))
        })
    }

    /// Cells with an order, without the last one, which stands for what is missing or unlisted.
    fn ordered(&self, name: &str) -> Result<(usize, usize)> {
        let j = self.column(name)?;
        let kind = &self.grid.columns[j].kind;
        match kind.ordered() {
            true => Ok((j, kind.count() - 1)),
            false => Err(Error::misuse(format!("column {name:?} has no order: edit a number, or categories that are numbers"))),
        }
    }

    /// The model after an edit.
    pub fn edited(mut self, edit: &Edit) -> Result<AdditiveModel> {
        match edit {
            Edit::DropTrees => self.trees.clear(),
            Edit::Drop { column } => {
                let j = self.column(column)?;
                self.curves[j].scores.iter_mut().flatten().for_each(|x| *x = 0.0);
                self.curves[j].noise.clear();
                self.pairs.retain(|p| !p.columns.contains(&j));
                self.without_trees_of(j);
            }
            Edit::Monotone { column, direction } => {
                let (j, cells) = self.ordered(column)?;
                let Curve { shares, scores, noise } = &mut self.curves[j];
                noise.clear();
                scores.iter_mut().for_each(|own| monotone(&mut own[..cells], &shares[..cells], *direction));
                self.monotone_pairs(j, *direction);
                // A tree mixes the column with others, and has no curve of it that could be made to go one way.
                self.without_trees_of(j);
            }
            Edit::Smooth { column } => {
                let (j, cells) = self.ordered(column)?;
                let Curve { shares, scores, noise } = &mut self.curves[j];
                noise.clear();
                scores.iter_mut().for_each(|own| smooth(&mut own[..cells], &shares[..cells]));
            }
            Edit::Clamp { column, low, high } => self.clamp(column, *low, *high)?,
        }
        self.edits.push(edit.clone());
        Ok(self)
    }

    fn without_trees_of(&mut self, column: usize) {
        self.trees.retain(|t| t.questions.iter().all(|q| q.column != column));
    }

    /// Every line of a pair along the column goes the same way; groups of neighbouring cells have their order.
    fn monotone_pairs(&mut self, column: usize, direction: Direction) {
        for pair in self.pairs.iter_mut().filter(|p| p.columns.contains(&column)) {
            let [left, right] = pair.counts();
            let first = pair.columns[0] == column;
            // The last cell has a group of its own.
            let (along, across) = if first { (left - 1, right) } else { (right - 1, left) };
            for scores in &mut pair.scores {
                for other in 0..across {
                    let at = |own: usize| if first { own * right + other } else { other * right + own };
                    let mut line: Vec<f64> = (0..along).map(|own| scores[at(own)]).collect();
                    monotone(&mut line, &vec![1.0; along], direction);
                    line.iter().enumerate().for_each(|(own, x)| scores[at(own)] = *x);
                }
            }
        }
    }

    fn clamp(&mut self, column: &str, low: f64, high: f64) -> Result<()> {
        let j = self.column(column)?;
        let kind = self.grid.columns[j].kind.clone();
        let CellKind::Number { bounds, .. } = &kind else {
            return Err(Error::misuse(format!("column {column:?} is no number: clamp a number")));
        };
        if !(low < high && low >= bounds.0 && high <= bounds.1) {
            return Err(Error::misuse(format!(
                "clamp {low:?} to {high:?} is not within the bounds of {column:?}: give numbers from {:?} to {:?}",
                bounds.0, bounds.1
            )));
        }
        let place = |x: f64| usize::from(kind.of_number(Some(x)).unwrap_or_default());
        let (first, last, cells) = (place(low), place(high), kind.count() - 1);
        let source = |cell: usize| if cell >= cells { cell } else { cell.clamp(first, last) };
        let Curve { scores, noise, .. } = &mut self.curves[j];
        for own in scores.iter_mut().chain((!noise.is_empty()).then_some(noise)) {
            *own = (0..own.len()).map(|cell| own[source(cell)]).collect();
        }
        for pair in &mut self.pairs {
            for (side, groups) in pair.columns.iter().zip(&mut pair.groups) {
                if *side == j {
                    *groups = (0..groups.len()).map(|cell| groups[source(cell)]).collect();
                }
            }
        }
        // A question is answered by the cell that a number is clamped to.
        for question in self.trees.iter_mut().flat_map(|t| &mut t.questions).filter(|q| q.column == j) {
            let yes: Vec<bool> = (0..=cells).map(|cell| question.yes.has(source(cell) as u8)).collect();
            question.yes = super::Cells::of(&yes);
        }
        Ok(())
    }
}

/// The closest curve that goes one way: neighbours that go the other way are averaged by their weights, until none is left.
fn monotone(curve: &mut [f64], weights: &[f64], direction: Direction) {
    let sign = if direction == Direction::Up { 1.0 } else { -1.0 };
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (x, w) in curve.iter().zip(weights) {
        let mut block = (sign * x, w.max(1e-12), 1);
        while let Some(last) = blocks.last().filter(|last| last.0 > block.0) {
            let weight = last.1 + block.1;
            block = ((last.0 * last.1 + block.0 * block.1) / weight, weight, last.2 + block.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let flat = blocks.iter().flat_map(|(x, _, count)| std::iter::repeat_n(sign * x, *count));
    curve.iter_mut().zip(flat).for_each(|(o, x)| *o = x);
    // Averages round: the largest so far is what holds.
    let mut most = f64::NEG_INFINITY;
    for x in curve {
        most = most.max(sign * *x);
        *x = sign * most;
    }
}

/// Each cell becomes the mean of itself and its neighbours, by their shares, three times.
fn smooth(curve: &mut [f64], shares: &[f64]) {
    for _ in 0..3 {
        let old = curve.to_vec();
        for (i, out) in curve.iter_mut().enumerate() {
            let near = i.saturating_sub(1)..(i + 2).min(old.len());
            let weight: f64 = near.clone().map(|k| shares[k].max(1e-12)).sum();
            *out = near.map(|k| old[k] * shares[k].max(1e-12)).sum::<f64>() / weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_go_one_way_at_every_step() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5
        };
        for _ in 0..500 {
            let mut curve: Vec<f64> = (0..40).map(|i| random() + 0.01 * f64::from(i)).collect();
            let weights: Vec<f64> = (0..40).map(|_| random().abs()).collect();
            let before = curve.clone();
            monotone(&mut curve, &weights, Direction::Up);
            assert!(curve.is_sorted(), "{curve:?}");
            // The mean stays where it was.
            let mean = |c: &[f64]| c.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>();
            assert!((mean(&curve) - mean(&before)).abs() < 1e-9);
            let mut down = before.clone();
            monotone(&mut down, &weights, Direction::Down);
            assert!(down.iter().rev().is_sorted());
        }
        let mut already = vec![1.0, 2.0, 2.0, 3.5];
        monotone(&mut already, &[1.0; 4], Direction::Up);
        assert_eq!(already, [1.0, 2.0, 2.0, 3.5]);
        let mut flat = vec![2.0; 5];
        smooth(&mut flat, &[0.1, 0.0, 0.5, 0.2, 0.2]);
        assert!(flat.iter().all(|x| (x - 2.0).abs() < 1e-12));
    }
}
