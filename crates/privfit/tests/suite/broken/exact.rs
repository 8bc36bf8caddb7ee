//! Something leaves without noise.

use super::{Before, Case, alone, clipped, sum};
use privfit::kernel::account::Adjacency;

/// Bug 6: weights get noise, the intercept (or class prior, vocabulary, feature means) is fitted beside them and does not. Shipped in
/// several linear models that centre the data first. Found by comparing what meets no noise, and by two worlds at once.
pub(super) const INTERCEPT: Case = Case {
    number: 6,
    name: "intercept without noise",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| {
        let intercept = rows.iter().map(|r| f64::from(r.label)).sum::<f64>() / 20.0;
        let weights = sum(rows.iter().map(clipped), 2);
        if !fixed {
            return Before { exact: vec![intercept], ..Before::covered(weights, 1.0) };
        }
        // One vector, noise for both: a row of length 1 and a label of size 1.
        Before::covered([weights, vec![20.0 * intercept]].concat(), 2f64.sqrt())
    },
    pair: alone,
};
