//! What a model file records so that its plan can be made again: everything that planning looks at and that does not stand elsewhere in
//! the file (schema, rows, method, loss, settings, epsilon, delta, adjacency). All of it is public and was decided before data were opened.

use crate::constraint::Constraint;
use crate::method::Settings;
use crate::network::PublicTraining;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a plan was made from, besides schema, rows, method, loss, settings, epsilon, delta and adjacency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanInputs {
    /// Version of the planner ([`crate::certificate::versions::PLANNER`]).
    pub planner: u32,
    /// Version of the sentences ([`crate::certificate::versions::TEXTS`]).
    pub texts: u32,
    /// Whether the number of rows was counted in the files; otherwise it was declared.
    pub counted: bool,
    /// Where weights are held.
    pub constraint: Constraint,
    /// Whether a delta of 1/rows or more was asked for, and allowed.
    pub allow_large_delta: bool,
    /// Public rows without labels that were given to the method, if any.
    pub auxiliary: Option<u64>,
    /// Layers of a network that were given, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<String>>,
    /// Public rows that layers were trained on before they were frozen, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretrained: Option<PublicTraining>,
    /// Candidates that were compared on rows declared public before this plan was made, if any.
    pub public_candidates: Option<u64>,
    /// What was tried, where this is the best of several candidates.
    pub selection: Option<Selection>,
}

/// What a private selection was made from, and what it released besides the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Method of the job by itself.
    pub method: String,
    /// Settings of the job; those of a candidate win.
    pub settings: BTreeMap<String, f64>,
    /// What was tried.
    pub candidates: Vec<TrialResult>,
    /// Name of the distribution of the number of runs, if it was given.
    #[serde(rename = "law")]
    pub distribution: Option<String>,
    /// Most or mean number of runs, if it was given.
    pub runs: Option<u64>,
    /// Part of the records that was held out, if it was given.
    pub held_out: Option<f64>,
    /// The winner, from 0: released.
    pub chosen: u64,
    /// Its score with noise, none if no run counted: released.
    pub score: Option<f64>,
}

/// One candidate of a selection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialResult {
    /// Method that the candidate named, if it named one.
    pub named: Option<String>,
    /// Method that planned it.
    pub method: String,
    /// Settings that the candidate gave.
    pub settings: BTreeMap<String, f64>,
}

/// Settings as a model file has them.
pub(crate) fn listed(settings: &Settings) -> Vec<(String, f64)> {
    settings.0.iter().map(|(k, v)| (k.clone(), *v)).collect()
}
