//! What a schema records about bounds that were released from the records themselves.

use privfit_kernel::account::{Adjacency, Event};
use serde::{Deserialize, Serialize};

/// What a schema has from a paid step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateBounds {
    /// Columns whose bounds were released.
    pub columns: Vec<String>,
    /// What was released for them.
    pub event: Event,
    /// What its noise was planned from; none in schemas of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<BoundsPlan>,
}

/// What the noise of private bounds is planned from, besides the number of columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundsPlan {
    /// Version of the planner.
    pub planner: u32,
    /// Epsilon that was asked for.
    pub epsilon: f64,
    /// Its delta.
    pub delta: f64,
    /// What "one record differs" means.
    pub adjacency: Adjacency,
    /// Rows.
    pub rows: u64,
}
