//! Sums over cells, as additive models of tables release them, each with what keeps it private left out.

use super::{Before, Case, axis, clipped, neighbours, null, sum};
use privfit::data::encode::Row;
use privfit::kernel::account::Adjacency;

/// A null record is a flag: its label.
fn counts(row: &Row) -> f64 {
    if row.label == 0.0 { 0.0 } else { 1.0 }
}

/// Bug 17: histograms of all columns are released at once and charged as if a record were in one of them. It is in one cell of each column, so that six columns
/// move by sqrt 6. Found by comparing before noise, and by two worlds.
pub(super) const ONE_COLUMN: Case = Case {
    number: 17,
    name: "histograms of all columns, charged for one",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 6,
    trials: 1,
    before: |rows, fixed| {
        let cells = |row: &Row| -> Vec<f64> {
            let one = counts(row);
            row.dense.iter().flat_map(|x| if *x > 0.0 { [one, 0.0] } else { [0.0, one] }).collect()
        };
        Before::covered(sum(rows.iter().map(cells), 12), if fixed { 6f64.sqrt() } else { 1.0 })
    },
    pair: |case| neighbours(case, "telling", vec![null(6); case.rows - 1], axis(6, 0, 1.0, 1.0), null(6)),
};

/// Bug 18: sums over the leaves of a tree take residuals as they are. One outlier moves its leaf by more than the noise was made for. Shipped wherever boosting
/// gets noise but no clip. Found by comparing before noise, and by two worlds.
pub(super) const LEAVES: Case = Case {
    number: 18,
    name: "sums over leaves without a clip",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 3,
    trials: 1,
    before: |rows, fixed| {
        let leaf = |row: &Row| {
            let residual = counts(row) * if fixed { row.dense[0].clamp(-1.0, 1.0) } else { row.dense[0] };
            let at = usize::from(row.dense[1] > 0.0) * 2 + usize::from(row.dense[2] > 0.0);
            (0..4).map(|i| if i == at { residual } else { 0.0 }).collect()
        };
        Before::covered(sum(rows.iter().map(leaf), 4), 1.0)
    },
    pair: |case| neighbours(case, "telling", vec![null(3); case.rows - 1], axis(3, 0, 30.0, 1.0), null(3)),
};

/// Bug 19: products of the features of all pairs of columns, without the factor that keeps a row in its ball. Four features of size 1 have products of length sqrt 6,
/// and the noise is for 1/sqrt 2. Found by comparing before noise, and by two worlds.
pub(super) const PAIRS: Case = Case {
    number: 19,
    name: "products of pairs without the factor of a row",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 4,
    trials: 1,
    before: |rows, fixed| {
        let products = |row: &Row| -> Vec<f64> {
            let z = if fixed { clipped(row) } else { row.dense.clone() };
            let one = counts(row);
            (0..4).flat_map(|i| (i + 1..4).map(move |j| (i, j))).map(|(i, j)| one * z[i] * z[j]).collect()
        };
        Before::covered(sum(rows.iter().map(products), 6), 0.5f64.sqrt())
    },
    pair: |case| {
        let ones = Row { dense: vec![1.0; 4], label: 1.0, ..Row::default() };
        neighbours(case, "telling", vec![null(4); case.rows - 1], ones, null(4))
    },
};
