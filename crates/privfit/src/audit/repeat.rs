//! Two checks that need a few calls: noise is not repeated, and what was executed costs no more than what the label says.

use super::subject::Subject;
use crate::data::encode::Row;
use crate::error::Result;
use privfit_kernel::account;

/// Calls that are compared: a release of a few choices may be the same twice by chance.
const CALLS: usize = 40;

/// Whether calls on the same data all give the same numbers: noise from a fixed seed, or none at all.
pub fn always_same(subject: &dyn Subject, rows: &[Row]) -> Result<bool> {
    let first = subject.open(rows)?()?;
    for _ in 1..CALLS {
        if subject.open(rows)?()? != first {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Epsilon of what was executed, at the delta of the claim, and whether it is above the claim.
pub fn executed_epsilon(subject: &dyn Subject, rows: &[Row]) -> Result<(f64, bool)> {
    let claim = subject.claim();
    let spent = account::epsilon(&subject.executed(rows)?, claim.adjacency, claim.delta)?.bound;
    Ok((spent.upper, spent.upper > claim.epsilon() * (1.0 + 1e-9)))
}
