//! Making a plan again from what a model file records. A plan is a pure function of public facts, so that whoever holds the file can make it:
//! the event, the noise, the parameters and the list of public facts must come out as they are recorded. `auto` is never asked: the
//! recorded method plans, whatever today's rule would choose.

use crate::artifact::Artifact;
use crate::error::{Error, Result};
use crate::job::Release;
use crate::job::fit::{self, Job, Prepared};
use crate::job::tune::{self, Candidate, Tuning};
use crate::method::{self, Settings, auto};
use crate::model::Model;
use crate::network::{Pretrained, PublicTraining};
use crate::plan_inputs::{PlanInputs, Selection};
use crate::schema::UnitOfPrivacy;
use crate::training::Training;
use privfit_kernel::PublicRows;
use privfit_kernel::account::{Adjacency, Event};
use serde_json::Value;
use std::sync::Arc;

/// Numbers of two plans agree if they differ by no more than other machines round.
const ROUNDING: f64 = 1e-9;

/// Most public rows that a plan is made for.
const MOST_AUXILIARY: u64 = 10_000_000;

/// A plan that was made again, as a model file would record it.
pub(super) struct Replanned {
    pub(super) training: Training,
    pub(super) event: Event,
    loss_parameters: Vec<f64>,
}

fn no_plan(text: &str) -> Error {
    Error::refused(text)
}

/// The job that a file describes.
fn job(artifact: &Artifact, inputs: &PlanInputs) -> Result<Job> {
    let (t, g) = (&artifact.training, &artifact.guarantee);
    if !method::find(&t.method).is_some_and(|m| m.name == t.method) {
        return Err(no_plan("its method does not exist"));
    }
    let declared = artifact.schema.rows;
    if declared.is_some_and(|rows| rows != t.rows) {
        return Err(no_plan("the schema declares another number of rows"));
    }
    let private_count = g.adjacency == Adjacency::AddRemove || artifact.schema.unit != UnitOfPrivacy::Row;
    if inputs.counted && (declared.is_some() || private_count) {
        return Err(no_plan("its number of rows cannot have been counted"));
    }
    let settings: std::collections::BTreeMap<String, f64> = t.settings.iter().cloned().collect();
    if settings.len() != t.settings.len() {
        return Err(no_plan("a setting is recorded twice"));
    }
    if inputs.auxiliary.is_some_and(|rows| rows > MOST_AUXILIARY) {
        return Err(no_plan("it records more public rows than are ever used"));
    }
    Ok(Job {
        schema: artifact.schema.clone(),
        rows: Some(t.rows),
        epsilon: g.asked_epsilon,
        delta: Some(g.delta),
        adjacency: g.adjacency,
        loss: Some(artifact.model.loss().into()),
        method: t.method.clone(),
        settings: Settings(settings),
        constraint: inputs.constraint,
        allow_large_delta: inputs.allow_large_delta,
        compare: method::find(&t.method).is_some_and(|m| m.published),
        // Plans look at their number alone.
        auxiliary: inputs.auxiliary.map(|rows| Arc::new(PublicRows::new(vec![0.0; rows as usize], 1))),
        layers: inputs.layers.clone(),
        pretrained: inputs.pretrained.as_ref().map(|recorded| frozen(&artifact.model, recorded)).transpose()?,
    })
}

/// Frozen layers as the file has them: their digest is recomputed from the weights, so that other layers make another record.
fn frozen(model: &Model, recorded: &PublicTraining) -> Result<Arc<Pretrained>> {
    if !recorded.is_complete() {
        return Err(no_plan("a digest of its public rows is none"));
    }
    let Model::Network(model) = model else { return Err(no_plan("it has no layers that public rows could train")) };
    let whole = model.network().ok_or_else(|| no_plan("its layers do not fit together"))?;
    let weights = model.weights[..whole.0.with_frozen_layers()?.frozen()].to_vec();
    Ok(Arc::new(Pretrained::planned(recorded.rows, recorded.files.clone()).with_weights(weights)))
}

/// The plan of a file that is not a selection, ready to run.
pub(crate) fn prepared(artifact: &Artifact) -> Result<Prepared> {
    let inputs = artifact.training.inputs.as_ref();
    let inputs =
        inputs.filter(|i| i.planner == crate::certificate::versions::PLANNER && i.selection.is_none()).ok_or_else(|| {
            Error::misuse(
                "the model file records no plan that this version can make again, or a selection: audit its method by name",
            )
        })?;
    let prepared = fit::prepare(&job(artifact, inputs)?, artifact.training.rows, inputs.counted)?;
    Ok(match inputs.public_candidates {
        Some(candidates) => prepared.chosen_on_public_rows(candidates as usize),
        None => prepared,
    })
}

/// Makes the plan again. An error says why these facts have none.
pub(super) fn replan(artifact: &Artifact, inputs: &PlanInputs) -> Result<Replanned> {
    match &inputs.selection {
        Some(selection) => selected(artifact, inputs, selection),
        None => {
            let plan = prepared(artifact)?;
            let mut training = plan.training(method::grade(plan.method, plan.plan.as_ref()));
            // Why this method: a sentence about public facts, if the rule of this version chooses it.
            let reason = match plan.method.name {
                name if name == method::additive_or_network::METHOD.name => auto::additive_or_network(&plan.problem),
                _ if plan.method.can.of_cells => auto::additive(&plan.problem),
                name if name == method::network::METHOD.name => auto::network(&plan.problem),
                _ => Some(auto::choose(&plan.problem)).filter(|c| c.0.name == plan.method.name).map(|c| c.1),
            };
            training.reason = reason.filter(|_| artifact.training.reason.is_some()).map(String::from);
            Ok(Replanned { training, event: plan.plan.event().clone(), loss_parameters: plan.loss_parameters()? })
        }
    }
}

fn selected(artifact: &Artifact, inputs: &PlanInputs, selection: &Selection) -> Result<Replanned> {
    let mut job = job(artifact, inputs)?;
    job.method.clone_from(&selection.method);
    job.settings = Settings(selection.settings.clone());
    let unnamed = |name: &str| auto::NAMES.contains(&name);
    if unnamed(&job.method) || selection.candidates.iter().any(|c| unnamed(&c.method)) {
        return Err(no_plan("its selection names no method"));
    }
    let candidates = selection.candidates.iter();
    let tuning = Tuning {
        candidates: candidates.map(|c| Candidate { method: c.named.clone(), settings: c.settings.clone() }).collect(),
        distribution: selection.distribution.clone(),
        runs: selection.runs,
        held_out: selection.held_out,
    };
    let methods: Vec<String> = selection.candidates.iter().map(|c| c.method.clone()).collect();
    for c in &selection.candidates {
        // A candidate that names a method was planned by it.
        let named = c.named.as_deref().filter(|n| !unnamed(n)).map(method::find);
        if named.is_some_and(|m| !m.is_some_and(|m| m.name == c.method)) {
            return Err(no_plan("a candidate was not planned by the method that it names"));
        }
    }
    let number = usize::try_from(selection.chosen).unwrap_or(usize::MAX);
    if number >= methods.len() {
        return Err(no_plan("its winner is none of its candidates"));
    }
    let tuned = tune::plan(&job, &tuning, Some(&methods), artifact.training.rows, inputs.counted)?;
    let parameters = tuned.candidates().nth(number).map_or(Ok(Vec::new()), |(_, plan)| plan.loss_parameters())?;
    let training = tuned.training(number, selection.score, tuned.numerics());
    Ok(Replanned { training, event: Release::event(&tuned).clone(), loss_parameters: parameters })
}

fn without_texts(inputs: &Option<PlanInputs>) -> Option<PlanInputs> {
    inputs.clone().map(|inputs| PlanInputs { texts: 0, ..inputs })
}

impl Replanned {
    /// What is recorded otherwise than this plan says.
    pub(super) fn differences(&self, artifact: &Artifact) -> Vec<&'static str> {
        let (now, was) = (&self.training, &artifact.training);
        [
            ("event and noise", same_event(&self.event, &artifact.guarantee.event)),
            ("parameters of the plan", now.plan == was.plan),
            ("public facts", now.public == was.public),
            ("reason for the method", now.reason == was.reason),
            ("method", now.method == was.method),
            ("settings", now.settings == was.settings),
            ("number of rows", now.rows == was.rows),
            ("grade of the numerics", now.numerics == was.numerics),
            // Which sentences go with it is another question.
            ("inputs of the plan", without_texts(&now.inputs) == without_texts(&was.inputs)),
            ("parameters of the loss", self.loss_parameters == artifact.model.loss_parameters()),
        ]
        .into_iter()
        .filter_map(|(what, same)| (!same).then_some(what))
        .collect()
    }
}

/// Whether two events are the same but for the last digits of their numbers.
pub(crate) fn same_event(a: &Event, b: &Event) -> bool {
    match (serde_json::to_value(a), serde_json::to_value(b)) {
        (Ok(a), Ok(b)) => same(&a, &b),
        _ => false,
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) if x == y => true,
        (Value::Number(x), Value::Number(y)) => match (x.as_f64(), y.as_f64()) {
            (Some(x), Some(y)) => (x - y).abs() <= ROUNDING * x.abs().max(y.abs()),
            _ => false,
        },
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}
