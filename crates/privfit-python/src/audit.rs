//! Lower bounds on what a method leaks, held against its claim.

use crate::error::{misuse, raised};
use crate::interrupt::{poll, without_lock};
use crate::schema::Schema;
use crate::settings::{SettingsInput, settings};
use privfit::audit::shipped::Question;
use privfit::audit::{FALSE_ALARM, Shipped, Subject, canaries, distribution, pair, precision, sensitivity};
use privfit::data::encode::Row;
use privfit::data::generate::Random;
use privfit::method;
use privfit::{Error, Result};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// What is to be audited; the names are those of `privfit.audit`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    kind: String,
    method: String,
    loss: Option<String>,
    rows: Option<u64>,
    runs: Option<usize>,
    pairs: u64,
    canaries: u64,
    epsilon: f64,
    delta: Option<f64>,
    adjacency: String,
    settings: SettingsInput,
}

/// Audits a method on generated records: what it claims, what was measured, and whether they contradict each other, as JSON.
#[pyfunction]
pub(crate) fn audit(py: Python<'_>, schema: Option<&Schema>, asked: Arguments) -> PyResult<String> {
    let adjacency = asked.adjacency.parse().map_err(|e: privfit::account::Error| raised(Error::from(e)))?;
    let pure = method::find(&asked.method).is_some_and(|m| m.can.pure_only);
    let rows = match asked.kind.as_str() {
        "distribution" => asked.rows.unwrap_or(3),
        "canaries" => asked.canaries,
        "sensitivity" | "precision" => asked.rows.unwrap_or(20),
        other => {
            return Err(misuse(format!("the audit {other:?} is unknown: use sensitivity, distribution, canaries or precision")));
        }
    };
    if rows == 0 {
        return Err(misuse("an audit needs a row: give rows of at least 1"));
    }
    let question = Question {
        method: asked.method.clone(),
        loss: asked.loss.clone(),
        schema: schema.map(|s| s.0.clone()),
        rows,
        epsilon: asked.epsilon,
        delta: asked.delta.unwrap_or(if pure { 0.0 } else { 1e-5 }),
        adjacency,
        settings: settings(&asked.settings)?,
        layers: None,
    };
    let json = without_lock(py, || match asked.kind.as_str() {
        "sensitivity" => sensitive(&question, asked.pairs),
        "distribution" => two_worlds(&question, asked.runs.unwrap_or(1500)),
        "canaries" => one_run(&question, asked.canaries),
        _ => precise(&question, asked.runs.unwrap_or(300) as u64),
    })?;
    Ok(json.to_string())
}

/// A number, or null if it is infinite.
fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

fn report(kind: &str, subject: &Shipped, measured: Value, violations: &[String]) -> Value {
    let claim = subject.claim();
    json!({
        "kind": kind, "method": subject.prepared().method.name, "loss": subject.prepared().problem.loss.name,
        "claim": {"epsilon": number(claim.epsilon()), "delta": claim.delta, "adjacency": claim.adjacency.name(), "mu": claim.mu},
        "measured": measured, "violations": violations,
    })
}

fn sensitive(question: &Question, pairs: u64) -> Result<Value> {
    let subject = Shipped::new(question)?;
    let maker = subject.row_maker()?;
    let found = sensitivity::audit(&subject, &maker, question.rows as usize, pairs, &[], &poll)?;
    let lines = found.lines.iter().map(|((what, pair), line)| {
        json!({"value": what, "pair": pair, "values": line.values, "largest": number(line.largest), "violations": line.violations})
    });
    let measured = json!({"largest": number(found.largest()), "unequal": found.unequal, "pairs": found.pairs,
        "values": lines.collect::<Vec<_>>(), "false_alarm": 0.0});
    Ok(report("sensitivity", &subject, measured, &found.first.iter().cloned().collect::<Vec<_>>()))
}

fn two_worlds(question: &Question, runs: usize) -> Result<Value> {
    let subject = Shipped::new(question)?;
    let maker = subject.row_maker()?;
    let pairs = maker.telling(question.rows as usize, question.adjacency, &[]);
    // Too few runs are refused by the audit itself, before this choice matters.
    let best = if runs < 30 { 0 } else { distribution::telling(&subject, &pairs, 120.min(runs))? };
    let found = distribution::audit(&subject, &pairs[best], runs, &poll)?;
    let measured = json!({"epsilon": number(found.epsilon), "mu": number(found.mu), "shift": number(found.shift),
        "shift_judged": found.shift_judged, "runs": runs, "false_alarm": FALSE_ALARM});
    Ok(report("distribution", &subject, measured, &found.violations))
}

fn one_run(question: &Question, count: u64) -> Result<Value> {
    let found = canaries::audit(question, count, &poll)?;
    Ok(json!({
        "kind": "canaries", "method": question.method, "loss": found.loss,
        "claim": {"epsilon": number(found.claimed.0), "delta": found.claimed.1, "adjacency": question.adjacency.name()},
        "measured": {"epsilon": found.epsilon, "gaussian_mu": found.gaussian.0, "gaussian_epsilon": found.gaussian.1,
            "pooled_epsilon": found.pooled.epsilon, "pooled_mu": found.pooled.mu, "canaries": found.canaries,
            "false_alarm": canaries::LOOSE},
        "violations": found.violations,
    }))
}

fn precise(question: &Question, fits: u64) -> Result<Value> {
    if fits == 0 {
        return Err(Error::misuse("precision needs fits: give runs of at least 1"));
    }
    let subject = Shipped::new(question)?;
    let maker = subject.row_maker()?;
    let mut random = Random::new(4);
    let worlds: Vec<Vec<Row>> =
        pair::KINDS.iter().map(|kind| maker.pair(kind, question.rows as usize, question.adjacency, &mut random, &[]).a).collect();
    let grid = precision::grid(&subject, &worlds, &poll)?;
    let inverse = precision::objective(question.epsilon, question.delta, fits, &poll)?;
    let mut violations = Vec::new();
    if grid.off > 0 {
        violations.push(format!("{} released numbers are off their grid", grid.off));
    }
    if inverse.violated() {
        violations.push("minus the gradient at the release of objective is on the noise grid for the true data only".into());
    }
    let measured = json!({"numbers": grid.numbers, "off": grid.off, "releases": grid.releases,
        "inverse": {"fits": inverse.fits, "own": inverse.own, "neighbour": inverse.neighbour}});
    Ok(report("precision", &subject, measured, &violations))
}
