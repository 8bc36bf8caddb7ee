//! How a model was trained and what it cost, as its file records both.

use crate::plan_inputs::PlanInputs;
use privfit_kernel::Numerics;
use privfit_kernel::account::{self, Adjacency, Event};
use serde::{Deserialize, Serialize};

/// A fact that was taken as public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// The fact.
    pub what: String,
    /// Where it comes from.
    pub source: String,
}

/// Sources that a list of facts for people leaves out.
const SCHEMA: &str = "the schema";
const RULES: &str = "the job, or rules on public facts";
const JOB: &str = "the job";

impl Fact {
    /// What the schema declares.
    pub(crate) fn of_schema(what: String) -> Fact {
        Fact { what, source: SCHEMA.into() }
    }

    /// What the job sets, or a rule for it.
    pub(crate) fn of_rules(what: String) -> Fact {
        Fact { what, source: RULES.into() }
    }

    /// What the job gives.
    pub(crate) fn of_job(what: String) -> Fact {
        Fact { what, source: JOB.into() }
    }

    /// A number of rows or units, and who says so.
    pub(crate) fn of_count(what: String, source: &str) -> Fact {
        Fact { what, source: source.into() }
    }
}

/// For a list that people read: who counted is said, and what everybody expects is not.
impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.source.as_str() {
            SCHEMA | RULES | JOB => f.write_str(&self.what),
            source => write!(f, "{} ({source})", self.what),
        }
    }
}

/// How a model was trained: decided before data were opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The method.
    pub method: String,
    /// Parameters of the plan, for people.
    pub plan: Vec<(String, String)>,
    /// Why this method, if it was not chosen by name.
    pub reason: Option<String>,
    /// Settings that the user gave.
    pub settings: Vec<(String, f64)>,
    /// How far finite precision is covered.
    pub numerics: Numerics,
    /// Rows, or units where there is a unit column.
    pub rows: u64,
    /// Whatever was taken as public.
    pub public: Vec<Fact>,
    /// What else the plan was made from; none in files of format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<PlanInputs>,
}

/// What a model cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// The adjacency that was asked for.
    pub adjacency: Adjacency,
    /// Whether anything is guaranteed: not for a simulation, nor for a published form that does not hold.
    pub private: bool,
    /// Epsilon that was asked for; what is guaranteed stands below.
    pub asked_epsilon: f64,
    /// Its delta.
    pub delta: f64,
    /// What was released: any accountant can read it again.
    pub event: Event,
    /// Epsilon at delta under zero-out, recomputed from the event; none if there is no guarantee.
    pub zero_out: Option<f64>,
    /// The same under replace-one.
    pub replace_one: Option<f64>,
    /// Whether the noise came from a seed. Then nothing is guaranteed.
    pub simulated: bool,
}

/// Epsilon at a delta, none if the event has no guarantee there.
pub fn epsilon(event: &Event, adjacency: Adjacency, delta: f64) -> Option<f64> {
    account::epsilon(event, adjacency, delta).ok().map(|a| a.bound.upper).filter(|e| e.is_finite())
}

/// Name and version of this program.
pub fn program() -> String {
    format!("privfit {}", env!("CARGO_PKG_VERSION"))
}
