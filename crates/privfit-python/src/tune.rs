//! The best of several candidates: paid for, or chosen on public rows.

use crate::data::{Input, Labels};
use crate::error::raised;
use crate::fit::Arguments;
use crate::interrupt::{poll, without_lock};
use crate::model::Model;
use crate::schema::Schema;
use crate::settings::{SettingsInput, settings};
use privfit::account::Adjacency;
use privfit::engine::Threads;
use privfit::job::Release;
use privfit::job::fit::prepare;
use privfit::job::tune::{self as library, Candidate};
use privfit::job::tune_public::{job_of, rank};
use pyo3::prelude::*;
use serde_json::json;

/// What is tried, and how often.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Tuning {
    candidates: Vec<(Option<String>, SettingsInput)>,
    distribution: Option<String>,
    runs: Option<u64>,
    held_out: Option<f64>,
}

impl Tuning {
    fn parse(self) -> PyResult<library::Tuning> {
        let candidate =
            |(method, given): (Option<String>, SettingsInput)| Ok(Candidate { method, settings: settings(&given)?.0 });
        Ok(library::Tuning {
            candidates: self.candidates.into_iter().map(candidate).collect::<PyResult<_>>()?,
            distribution: self.distribution,
            runs: self.runs,
            held_out: self.held_out,
        })
    }
}

/// Tunes on private records: reserves for everything together, opens the data, tries, commits.
#[pyfunction]
pub(crate) fn tune(
    py: Python<'_>,
    data: Input<'_>,
    labels: Option<Bound<'_, Labels>>,
    schema: &Schema,
    asked: Arguments,
    tuning: Tuning,
) -> PyResult<Model> {
    let (job, tuning) = (asked.job(schema)?, tuning.parse()?);
    let memory = data.memory(&schema.0, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    without_lock(py, || {
        let entropy = asked.entropy()?;
        let (rows, counted) = job.rows(Some(&memory))?;
        asked.release(&library::prepare(&job, &tuning, rows, counted)?, &memory, &entropy)
    })
}

/// Tunes on public rows and trains the winner on private ones. Gives the model, and numbers of candidates with their scores, best first.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn tune_public(
    py: Python<'_>,
    data: Input<'_>,
    labels: Option<Bound<'_, Labels>>,
    public: Input<'_>,
    public_labels: Option<Bound<'_, Labels>>,
    schema: &Schema,
    asked: Arguments,
    tuning: Tuning,
) -> PyResult<(Model, Vec<(usize, f64)>)> {
    let (job, tuning) = (asked.job(schema)?, tuning.parse()?);
    let memory = data.memory(&schema.0, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    let public = public.memory(&schema.0, public_labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    without_lock(py, || {
        let entropy = asked.entropy()?;
        let (rows, counted) = job.rows(Some(&memory))?;
        let tried = rank(&job, &tuning, rows, &public, &Threads::new(asked.threads()), &poll)?;
        let best = job_of(&tried[0].candidate, &job);
        let prepared = prepare(&best, rows, counted)?.chosen_on_public_rows(tried.len());
        let number = |one: &Candidate| tuning.candidates.iter().position(|c| c == one).unwrap_or(0);
        let scores = tried.iter().map(|t| (number(&t.candidate), t.score)).collect();
        Ok((asked.release(&prepared, &memory, &entropy)?, scores))
    })
}

/// What tuning would do and cost, as JSON. No data are opened.
#[pyfunction]
pub(crate) fn tune_plan(py: Python<'_>, schema: &Schema, asked: Arguments, tuning: Tuning) -> PyResult<String> {
    let (job, tuning) = (asked.job(schema)?, tuning.parse()?);
    without_lock(py, || {
        let (rows, counted) = job.rows(None)?;
        let tuned = library::prepare(&job, &tuning, rows, counted)?;
        let event = tuned.event();
        let candidates: Vec<serde_json::Value> = tuned
            .candidates()
            .map(|(text, p)| json!({"candidate": text, "method": p.method.name, "event": p.plan.event()}))
            .collect();
        let view = |a| privfit::training::epsilon(event, a, job.delta.unwrap_or(0.0));
        let json = json!({
            "epsilon": {"zero_out": view(Adjacency::ZeroOut), "replace_one": view(Adjacency::ReplaceOne)}, "delta": job.delta,
            "runs": tuned.runs(), "rows": rows, "plan": tuned.describe(), "candidates": candidates, "event": event,
            "ledger": asked.room(&tuned)?,
        });
        Ok(json.to_string())
    })
}
