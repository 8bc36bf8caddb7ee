//! Two trials for the price of one.

use super::{Before, Case, alone, clipped, sum};
use privfit::kernel::account::Adjacency;

/// Bug 13: a model is trained with two settings, the better one is released, and the label has the cost of one. Shipped in every grid
/// search around a private estimator. Found by adding up what was executed and holding it against the label.
pub(super) const TWO_TRIALS: Case = Case {
    number: 13,
    name: "two trials charged once",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 2,
    before: |rows, _| Before::covered(sum(rows.iter().map(clipped), 2), 1.0),
    pair: alone,
};
