//! Records that are not bounded one by one.

use super::{Before, Case, alone, axis, clipped, neighbours, norm, null, sum};
use privfit::data::encode::Row;
use privfit::kernel::account::Adjacency;

/// Bug 2: rows are said to have length 1 and nobody checks. Shipped wherever "the user must normalise the data" is in the manual.
/// Found by an outlier before noise, and by two worlds at once.
pub(super) const NO_CLIPPING: Case = Case {
    number: 2,
    name: "rows are not clipped",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| {
        let one = |r: &Row| if fixed { clipped(r) } else { r.dense.clone() };
        Before::covered(sum(rows.iter().map(one), 2), 1.0)
    },
    pair: |case| neighbours(case, "telling", vec![null(2); case.rows - 1], axis(2, 0, 10.0, 1.0), axis(2, 0, -10.0, 1.0)),
};

/// Bug 3: rows are scaled by bounds that are measured on the data. One record far out moves everybody else. Shipped as the path with a
/// warning in diffprivlib, and in every pipeline with a min-max scaler in front. Found by an outlier.
pub(super) const MEASURED_BOUNDS: Case = Case {
    number: 3,
    name: "bounds measured on the data",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| {
        let largest = rows.iter().map(|r| norm(&r.dense)).fold(1e-9, f64::max);
        let one = |r: &Row| if fixed { clipped(r) } else { r.dense.iter().map(|x| x / largest).collect() };
        Before::covered(sum(rows.iter().map(one), 2), 1.0)
    },
    pair: |case| neighbours(case, "telling", vec![axis(2, 0, 1.0, 1.0); case.rows - 1], axis(2, 0, 4.0, 1.0), null(2)),
};

/// Bug 8: the mean is clipped to length 1, not the records, and gets noise for 1/n. Shipped as "gradient clipping" of a whole batch. Found
/// by one pair; two worlds at epsilon 1 need more than three thousand runs.
pub(super) const CLIPPED_MEAN: Case = Case {
    number: 8,
    name: "the mean is clipped, not the records",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| {
        let n = 20.0;
        let mean: Vec<f64> = match fixed {
            true => sum(rows.iter().map(clipped), 2).iter().map(|x| x / n).collect(),
            false => sum(rows.iter().map(|r| r.dense.clone()), 2).iter().map(|x| x / n).collect(),
        };
        let factor = 1.0 / norm(&mean).max(1.0);
        Before::covered(mean.iter().map(|x| x * factor).collect(), 1.0 / n)
    },
    pair: |case| match case.rows {
        0 => alone(case),
        n => neighbours(case, "telling", vec![null(2); n - 1], axis(2, 0, 10.0, 1.0), null(2)),
    },
};
