//! An additive model as one list of numbers, for places that hold nothing else: what a unit adds to private metrics is computed from such a list, and candidates of a tuning are.
//!
//! The list: how many scores, columns, pairs and trees there are; the offsets; for each column its number of cells, their shares, the noise, and the curve of each score; for each pair its columns, the groups of
//! their cells, how many groups there are, and the table of each score; for each tree its questions (column, kind, length, cells), and the leaves of each score.

use super::{AdditiveModel, Cells, Curve, PairTerm, Question, TreeTerm};
use crate::data::cells::CellGrid;

/// The front of what is left of a list.
struct Rest<'n>(&'n [f64]);

impl<'n> Rest<'n> {
    /// So many numbers; fewer where the list ends.
    fn take(&mut self, count: usize) -> &'n [f64] {
        let (own, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        own
    }

    fn count(&mut self) -> usize {
        self.take(1).first().map_or(0, |x| *x as usize)
    }

    /// A count, and as many numbers.
    fn list(&mut self) -> &'n [f64] {
        let count = self.count();
        self.take(count)
    }
}

fn counted(list: &[u8]) -> impl Iterator<Item = f64> {
    [list.len() as f64].into_iter().chain(list.iter().map(|x| f64::from(*x)))
}

fn bytes(list: &[f64]) -> Vec<u8> {
    list.iter().map(|x| *x as u8).collect()
}

impl AdditiveModel {
    /// The list of this model.
    pub(crate) fn to_list(&self) -> Vec<f64> {
        let mut out: Vec<f64> =
            [self.offsets.len(), self.curves.len(), self.pairs.len(), self.trees.len()].map(|n| n as f64).to_vec();
        out.extend(&self.offsets);
        for Curve { shares, scores, noise } in &self.curves {
            out.push(shares.len() as f64);
            out.extend(shares);
            out.push(noise.len() as f64);
            out.extend(noise.iter().chain(scores.iter().flatten()));
        }
        for pair in &self.pairs {
            out.extend(pair.columns.map(|j| j as f64));
            pair.groups.iter().for_each(|own| out.extend(counted(own)));
            out.extend(pair.counts().map(|n| n as f64));
            out.extend(pair.scores.iter().flatten());
        }
        for tree in &self.trees {
            out.push(tree.questions.len() as f64);
            for Question { column, yes } in &tree.questions {
                out.push(*column as f64);
                match yes {
                    Cells::From(first) => out.extend([0.0, 1.0, f64::from(*first)]),
                    Cells::List(cells) => out.extend([1.0].into_iter().chain(counted(cells))),
                }
            }
            out.extend(tree.scores.iter().flatten());
        }
        out
    }

    /// The model of a list, with what a list does not say.
    pub(crate) fn from_list(
        list: &[f64],
        grid: CellGrid,
        loss: &str,
        loss_parameters: Vec<f64>,
        classes: usize,
    ) -> AdditiveModel {
        let mut rest = Rest(list);
        let [k, columns, pairs, trees] = [0; 4].map(|_| rest.count());
        let offsets = rest.take(k).to_vec();
        let table =
            |rest: &mut Rest<'_>, places: usize| -> Vec<Vec<f64>> { (0..k).map(|_| rest.take(places).to_vec()).collect() };
        let curve = |rest: &mut Rest<'_>| {
            let (shares, noise) = (rest.list().to_vec(), rest.list().to_vec());
            Curve { scores: table(rest, shares.len()), shares, noise }
        };
        let curves = (0..columns).map(|_| curve(&mut rest)).collect();
        let pair = |rest: &mut Rest<'_>| {
            let columns = [0; 2].map(|_| rest.count());
            let groups = [0; 2].map(|_| bytes(rest.list()));
            let [left, right] = [0; 2].map(|_| rest.count());
            PairTerm { columns, groups, scores: table(rest, left * right) }
        };
        let pairs = (0..pairs).map(|_| pair(&mut rest)).collect();
        let question = |rest: &mut Rest<'_>| {
            let (column, listed, cells) = (rest.count(), rest.count() == 1, bytes(rest.list()));
            Question { column, yes: if listed { Cells::List(cells) } else { Cells::From(cells.first().copied().unwrap_or(255)) } }
        };
        let tree = |rest: &mut Rest<'_>| {
            let depth = rest.count().min(16);
            let questions = (0..depth).map(|_| question(rest)).collect();
            TreeTerm { questions, scores: table(rest, 1 << depth) }
        };
        let trees = (0..trees).map(|_| tree(&mut rest)).collect();
        AdditiveModel { loss: loss.into(), loss_parameters, classes, offsets, grid, curves, pairs, trees, edits: Vec::new() }
    }
}

/// Scores of a row with these cells, by the list of a model: what `AdditiveModel::scores` says.
pub(crate) fn scores(list: &[f64], cells: &[u8], out: &mut Vec<f64>) {
    let mut rest = Rest(list);
    let [k, columns, pairs, trees] = [0; 4].map(|_| rest.count());
    out.clear();
    out.extend_from_slice(rest.take(k));
    if cells.len() != columns {
        return;
    }
    let mut add = |table: &[f64], places: usize, at: usize| {
        out.iter_mut().zip(table.chunks(places.max(1))).for_each(|(o, own)| *o += own.get(at).copied().unwrap_or(0.0));
    };
    for cell in cells {
        let places = rest.list().len();
        rest.list();
        add(rest.take(k * places), places, usize::from(*cell));
    }
    for _ in 0..pairs {
        let columns = [0; 2].map(|_| rest.count());
        let groups = columns.map(|j| {
            let (own, cell) = (rest.list(), cells.get(j).copied().unwrap_or_default());
            own.get(usize::from(cell)).map_or(0, |g| *g as usize)
        });
        let [left, right] = [0; 2].map(|_| rest.count());
        add(rest.take(k * left * right), left * right, groups[0] * right + groups[1]);
    }
    for _ in 0..trees {
        let (depth, mut leaf) = (rest.count().min(16), 0);
        for _ in 0..depth {
            let (column, listed, own) = (rest.count(), rest.count() == 1, rest.list());
            let cell = cells.get(column).map_or(-1.0, |cell| f64::from(*cell));
            let yes = if listed { own.contains(&cell) } else { own.first().is_some_and(|first| cell >= *first) };
            leaf = 2 * leaf + usize::from(yes);
        }
        add(rest.take(k << depth), 1 << depth, leaf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cells::CellGrid;
    use crate::data::encode::Row;
    use crate::schema::Schema;

    /// A list says what its model says, whatever the row; and a list is read as the model that it was made of.
    #[test]
    fn lists_say_what_models_say() {
        let schema = "[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1, 2]\n[features.a]\ntype = \"number\"\nmin = 0\nmax = 9\n\
                      [features.b]\ntype = \"category\"\nvalues = [\"u\", \"v\", \"w\"]\n[features.c]\ntype = \"number\"\nmin = -1\nmax = 1\n";
        let grid = CellGrid::new(&Schema::parse(schema).unwrap(), 8).unwrap();
        let (counts, k) = (grid.counts(), 3);
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let mut table =
            |places: usize| -> Vec<Vec<f64>> { (0..k).map(|_| (0..places).map(|_| random() - 0.5).collect()).collect() };
        let curve = |n: &usize| Curve {
            shares: vec![1.0 / *n as f64; *n],
            scores: table(*n),
            noise: if *n > 4 { vec![0.1; *n] } else { Vec::new() },
        };
        let curves = counts.iter().map(curve).collect();
        let groups = [(0..counts[0]).map(|c| (c % 3) as u8).collect(), (0..counts[1]).map(|c| (c % 2) as u8).collect()];
        let pair = PairTerm { columns: [0, 1], groups, scores: table(6) };
        let questions = vec![
            Question { column: 2, yes: Cells::From(4) },
            Question { column: 1, yes: Cells::List(vec![0, 2]) },
            Question { column: 0, yes: Cells::From(255) },
        ];
        let tree = TreeTerm { questions, scores: table(8) };
        let model = AdditiveModel {
            loss: "softmax".into(),
            loss_parameters: vec![1.0; 3],
            classes: 3,
            offsets: vec![0.1, -0.2, 0.3],
            grid: grid.clone(),
            curves,
            pairs: vec![pair],
            trees: vec![tree.clone(), TreeTerm { questions: Vec::new(), scores: table(1) }, tree],
            edits: Vec::new(),
        };
        assert!(model.is_complete());
        let list = model.to_list();
        assert_eq!(AdditiveModel::from_list(&list, grid, "softmax", vec![1.0; 3], 3), model);
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for a in 0..counts[0] as u8 {
            for b in 0..counts[1] as u8 {
                for c in 0..counts[2] as u8 {
                    let row = Row { cells: vec![a, b, c], ..Row::default() };
                    expected.clear();
                    model.scores(&row, &mut expected);
                    scores(&list, &row.cells, &mut found);
                    assert_eq!(found, expected);
                    for (score, sum) in expected.iter().enumerate() {
                        let parts: f64 = model.reasons(&row, score).iter().sum();
                        assert!((model.offsets[score] + parts - sum).abs() < 1e-12);
                    }
                }
            }
        }
        // A list that ends too early says something, and does not panic.
        (0..list.len()).for_each(|end| scores(&list[..end], &[1, 1, 1], &mut found));
    }
}
