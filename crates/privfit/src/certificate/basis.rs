//! The groups of a certificate that say what the claim rests on: public facts, releases, accounting, assumptions, circumstances.

use crate::training::Fact;
use privfit_kernel::Numerics;
use privfit_kernel::account::Event;
use serde::{Deserialize, Serialize};

/// What is not protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unprotected {
    /// Facts that were taken as public.
    pub facts: Vec<Fact>,
    /// What no number here covers.
    pub not_covered: Vec<String>,
}

/// What was released, and why that is private.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Releases {
    /// The method.
    pub method: String,
    /// The loss.
    pub loss: String,
    /// Where the method comes from.
    pub source: String,
    /// The theorem that it rests on, in our symbols.
    pub theorem: String,
    /// Parameters of the plan: clips, steps, ridge, noise.
    pub plan: Vec<(String, String)>,
    /// The releases of the event one by one, in words.
    pub releases: Vec<Release>,
    /// The event that any accountant can read again.
    pub event: Event,
    /// What was changed in the released numbers afterwards, without the records: it costs nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<String>,
}

/// One kind of release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// What was done.
    pub what: String,
    /// How often.
    pub times: u64,
    /// Noise scale over the sensitivity of one unit under zero-out, where it is noise on a sum.
    pub noise_multiplier: Option<f64>,
    /// Replace-one sensitivity over zero-out sensitivity.
    pub replace_factor: Option<f64>,
    /// Probability that a unit takes part, where units are sampled.
    pub rate: Option<f64>,
    /// The grid of the noise.
    pub grid: Option<String>,
}

/// How the numbers were worked out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounting {
    /// Under zero-out.
    pub zero_out: Option<Bounds>,
    /// Under replace-one.
    pub replace_one: Option<Bounds>,
    /// What sampling adds, and what that rests on.
    pub amplification: String,
    /// How releases are put together.
    pub composition: String,
    /// What was charged besides the noise.
    pub slack: String,
}

/// A certified enclosure of epsilon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The accountant that proved it.
    pub accountant: String,
    /// No accountant can prove less than this for the event (0 where nothing is known).
    pub lower: f64,
    /// What is claimed.
    pub upper: f64,
    /// What Renyi accounting would say, for comparison.
    pub renyi: Option<f64>,
}

/// What the guarantee rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumptions {
    /// What the code enforces, and the test or type that says so.
    pub enforced: Vec<Enforced>,
    /// What nobody but the operator can vouch for.
    pub assumed: Vec<String>,
}

/// Something that the code enforces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enforced {
    /// What.
    pub what: String,
    /// The test or type.
    pub by: String,
}

/// What happened before training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// How the method was chosen.
    pub method: String,
    /// Settings that the user gave.
    pub given: Vec<(String, f64)>,
    /// Where all other settings come from.
    pub other: String,
    /// Trials on private records that this certificate pays for.
    pub trials: u64,
    /// What that leaves open.
    pub declaration: String,
}

/// Who sees what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// The model of trust.
    pub model: String,
    /// Who is trusted with what.
    pub actors: String,
    /// One release or many.
    pub release: String,
    /// What others get.
    pub access: String,
    /// What stays of the private intermediate values.
    pub retention: String,
}

/// Randomness, numerics, side channels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Security {
    /// How far finite precision is covered.
    pub numerics: Numerics,
    /// The same in words.
    pub precision: String,
    /// Where noise comes from.
    pub randomness: String,
    /// Whether noise came from a seed. Then nothing is guaranteed.
    pub seeded: bool,
    /// What is done about time.
    pub timing: String,
    /// Known limits.
    pub limits: Vec<String>,
}

/// How good the model is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utility {
    /// Metrics with where they come from; declared.
    pub statement: Option<String>,
    /// What the file itself says about that.
    pub note: String,
}
