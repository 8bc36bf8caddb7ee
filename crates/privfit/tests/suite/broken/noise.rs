//! Noise of the wrong size, or not noise at all.

use super::{Before, Case, alone, clipped, null, sum};
use privfit::audit::Pair;
use privfit::data::encode::Row;
use privfit::kernel::account::Adjacency;

/// Bug 1: the sensitivity of adding or removing a record is used where records are replaced, so that noise is half of what is needed.
/// Shipped by many: clip C, noise for C, and a text that says "neighbouring data sets of the same size". Found by comparing before
/// noise, and by two worlds at mu 2; at epsilon 1 three thousand runs do not show it.
pub(super) const WRONG_REACH: Case = Case {
    number: 1,
    name: "noise for add-remove, claimed for replace-one",
    adjacency: Adjacency::ReplaceOne,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| Before::covered(sum(rows.iter().map(clipped), 2), if fixed { 2.0 } else { 1.0 }),
    pair: alone,
};

/// Bug 4: a mean is divided by the private number of rows, and its noise is too. The mean moves within reach, but the size of the noise
/// says how many rows there are. Shipped in DP-SGD codes that divide by the true batch. Found by comparing before noise (deviations differ),
/// and by two worlds with many coordinates, which show the size of the noise; with five coordinates they do not.
pub(super) const PRIVATE_COUNT: Case = Case {
    number: 4,
    name: "noise scaled with the private number of rows",
    adjacency: Adjacency::AddRemove,
    rows: 10,
    dimension: 2000,
    trials: 1,
    before: |rows, fixed| {
        let n = if fixed { 10.0 } else { rows.len().max(1) as f64 };
        Before::covered(sum(rows.iter().map(clipped), 2000).iter().map(|x| x / n).collect(), 1.0 / n)
    },
    pair: |case| {
        let rows = vec![null(case.dimension); case.rows];
        Pair { kind: "telling", b: rows[1..].to_vec(), a: rows }
    },
};

/// Bug 5: noise from a seed that is the same in every call. Two releases on neighbouring data then differ by the record and nothing else.
/// Shipped wherever a random state is an argument with a default. Found by calling twice.
pub(super) const FIXED_SEED: Case = Case {
    number: 5,
    name: "noise from a fixed seed",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| Before {
        seed: if fixed { None } else { Some(42) },
        ..Before::covered(sum(rows.iter().map(clipped), 2), 1.0)
    },
    pair: alone,
};

/// Bug 10: the sensitivity is computed as lower bound minus lower bound, which is 0, and so is the noise. Shipped in diffprivlib
/// (issue 105). Found by the first pair.
pub(super) const LOWER_TWICE: Case = Case {
    number: 10,
    name: "lower bound used twice",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 1,
    trials: 1,
    before: |rows, fixed| {
        let (lower, upper) = (-1.0f64, if fixed { 1.0f64 } else { -1.0f64 });
        let clipped = |r: &Row| r.dense[0].clamp(-1.0, 1.0) / 20.0;
        Before::covered(vec![rows.iter().map(clipped).sum()], (upper - lower) / 2.0 / 20.0)
    },
    pair: alone,
};
