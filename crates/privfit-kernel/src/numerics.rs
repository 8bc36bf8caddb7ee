//! How far finite precision is covered.

use serde::{Deserialize, Serialize};

/// How far the finite precision of the machine is covered, from best to worst. A run has the grade of its worst release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Numerics {
    /// Contributions are checked on integers, and the noise has its distribution exactly.
    #[default]
    Exact,
    /// The noise has its distribution exactly; the distance of neighbours comes from a theorem or a clip, and the errors of solver and floating
    /// point have proved bounds that are part of the sensitivity.
    Bounded,
    /// The sensitivity rests on a stated, not a proved, error of floating-point code.
    Float,
}
