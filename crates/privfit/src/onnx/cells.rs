//! The scores of an additive model in operations: a cell for each column, what curves and pairs say about it, and the leaves of trees.

use super::graph::Graph;
use super::proto::Element;
use crate::additive::{AdditiveModel, Cells};
use crate::data::cells::CellKind;

/// Scores of the rows, one column each.
pub(super) fn scores(graph: &mut Graph, model: &AdditiveModel) -> String {
    let cells = cells(graph, model);
    let k = model.offsets.len();
    let mut sum = graph.constant(&[1, k], &model.offsets);
    // Place by place, score after score.
    let across =
        |scores: &[Vec<f64>], places: usize| -> Vec<f64> { (0..places).flat_map(|i| scores.iter().map(move |s| s[i])).collect() };
    let mut add = |graph: &mut Graph, scores: &[Vec<f64>], places: usize, at: &str| {
        let table = graph.constant(&[places, k], &across(scores, places));
        let own = graph.gather(&table, at);
        sum = graph.apply("Add", &[&sum, &own]);
    };
    for (curve, cell) in model.curves.iter().zip(&cells) {
        add(graph, &curve.scores, curve.shares.len(), cell);
    }
    for pair in &model.pairs {
        let [left, right] = pair.counts();
        let group = |graph: &mut Graph, side: usize, times: usize| {
            let groups: Vec<i64> = pair.groups[side].iter().map(|g| i64::from(*g) * times as i64).collect();
            let groups = graph.integers(&groups);
            graph.gather(&groups, &cells[pair.columns[side]])
        };
        let (a, b) = (group(graph, 0, right), group(graph, 1, 1));
        let place = graph.apply("Add", &[&a, &b]);
        add(graph, &pair.scores, left * right, &place);
    }
    // Trees of one depth at a time, so that leaves lie in one table.
    let depths: std::collections::BTreeSet<usize> = model.trees.iter().map(|t| t.questions.len()).collect();
    for depth in depths {
        let own = trees(graph, model, depth, &cells);
        sum = graph.apply("Add", &[&sum, &own]);
    }
    sum
}

/// The cell of each column, a whole number for each row.
fn cells(graph: &mut Graph, model: &AdditiveModel) -> Vec<String> {
    let columns = &model.grid.columns;
    // As for linear models: one tensor if all are numbers, one for each column otherwise.
    let together = columns.iter().all(|c| matches!(c.kind, CellKind::Number { .. }));
    if together {
        graph.input("features", Element::Float, columns.len());
    }
    let mut out = Vec::new();
    for (j, column) in columns.iter().enumerate() {
        out.push(match &column.kind {
            CellKind::Number { bounds, anchor, lines } => {
                let input = if together {
                    graph.column("features", j)
                } else {
                    graph.input(&column.name, Element::Float, 1);
                    column.name.clone()
                };
                let x = graph.cast(&input, Element::Double);
                let missing = graph.apply("IsNaN", &[&x]);
                let clamped = graph.with("Max", &x, bounds.0);
                let clamped = graph.with("Min", &clamped, bounds.1);
                // Lines at or below the number; two cells more above the anchor, one more at it.
                let mut steps: Vec<String> = Vec::new();
                if !lines.is_empty() {
                    let lines = graph.constant(&[1, lines.len()], lines);
                    let reached = graph.apply("GreaterOrEqual", &[&clamped, &lines]);
                    let reached = graph.cast(&reached, Element::Double);
                    steps.push(graph.row_sums(&reached));
                }
                let anchor = graph.scalar(*anchor);
                for operator in ["GreaterOrEqual", "Greater"] {
                    let beyond = graph.apply(operator, &[&clamped, &anchor]);
                    steps.push(graph.cast(&beyond, Element::Double));
                }
                let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
                let beside = graph.beside(&steps);
                let cell = graph.row_sums(&beside);
                let last = graph.scalar((column.kind.count() - 1) as f64);
                let cell = graph.apply("Where", &[&missing, &last, &cell]);
                let cell = graph.cast(&cell, Element::Int64);
                graph.flat(&cell)
            }
            CellKind::Category { values, cell, .. } => {
                graph.input(&column.name, Element::Text, 1);
                let place = graph.places(&column.name, values);
                let place = graph.flat(&place);
                // The place -1 is the last entry of a table: the cell of what is not listed.
                let mut of_place: Vec<i64> = match cell.is_empty() {
                    true => (0..values.len() as i64).collect(),
                    false => cell.iter().map(|c| i64::from(*c)).collect(),
                };
                of_place.push(column.kind.count() as i64 - 1);
                let of_place = graph.integers(&of_place);
                graph.gather(&of_place, &place)
            }
        });
    }
    out
}

/// What the trees of one depth add. The number of a leaf is a sum over columns: each answers questions of its own.
fn trees(graph: &mut Graph, model: &AdditiveModel, depth: usize, cells: &[String]) -> String {
    let own: Vec<_> = model.trees.iter().filter(|t| t.questions.len() == depth).collect();
    let (k, leaves) = (model.offsets.len(), 1usize << depth);
    // Where the leaves of each tree begin.
    let first: Vec<f64> = (0..own.len()).map(|t| (t * leaves) as f64).collect();
    let mut place = graph.constant(&[1, own.len()], &first);
    for (j, cell) in cells.iter().enumerate() {
        let count = model.grid.columns[j].kind.count();
        let mut table = vec![0u8; count * own.len()];
        for (t, tree) in own.iter().enumerate() {
            for (q, question) in tree.questions.iter().enumerate().filter(|q| q.1.column == j) {
                let bit = 1u8 << (depth - 1 - q);
                for at in (0..count).filter(|at| yes(&question.yes, *at)) {
                    table[at * own.len() + t] |= bit;
                }
            }
        }
        if table.iter().all(|x| *x == 0) {
            continue;
        }
        let table = graph.bytes(&[count, own.len()], &table);
        let part = graph.gather(&table, cell);
        let part = graph.cast(&part, Element::Double);
        place = graph.apply("Add", &[&place, &part]);
    }
    let place = graph.cast(&place, Element::Int64);
    let scores: Vec<f64> = own.iter().flat_map(|t| (0..leaves).flat_map(|i| t.scores.iter().map(move |s| s[i]))).collect();
    let table = graph.constant(&[own.len() * leaves, k], &scores);
    let all = graph.gather(&table, &place);
    graph.sum_along(&all, 1)
}

fn yes(cells: &Cells, cell: usize) -> bool {
    match cells {
        Cells::From(first) => cell >= usize::from(*first),
        Cells::List(list) => list.iter().any(|c| usize::from(*c) == cell),
    }
}
