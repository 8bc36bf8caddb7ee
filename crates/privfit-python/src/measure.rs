//! How well a model does: exactly on public rows, with noise on private ones.

use crate::data::{Input, Labels};
use crate::error::raised;
use crate::fit::{context, entropy, threads};
use crate::interrupt::{poll, without_lock};
use crate::ledger::session;
use crate::model::Model;
use privfit::Error;
use privfit::data::encode::Row;
use privfit::data::load::{Records, read_labels};
use privfit::engine::Threads;
use privfit::job::evaluate::prepare;
use privfit::job::facts::public_rows;
use privfit::job::{PublicFacts, release};
use privfit::model::Metrics;
use privfit::schema::TargetValues;
use pyo3::prelude::*;
use serde_json::Value;

/// Exact metrics as JSON. The rows count as public.
#[pyfunction]
pub(crate) fn evaluate(py: Python<'_>, model: &Model, data: Input<'_>, labels: Option<Bound<'_, Labels>>) -> PyResult<String> {
    let artifact = &model.artifact;
    let schema = &artifact.schema;
    let memory = data.memory(schema, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    without_lock(py, || {
        memory.check(schema)?;
        let bounds = match schema.target.values {
            TargetValues::Bounds(low, high) => Some((low, high)),
            _ => None,
        };
        let mut reader = memory.reader(schema, true)?;
        let encoder = artifact.model.encoder(schema, reader.columns(), true)?;
        let mut labels = read_labels(&memory, schema, &encoder)?.map(|l| l.into_iter());
        let (mut metrics, mut row) = (Metrics::default(), Row::default());
        reader.read(&mut |record| {
            encoder.encode(record, None, &mut row);
            if let Some((label, target)) = labels.as_mut().and_then(|l| l.next()) {
                (row.label, row.target) = (label, target);
            }
            metrics.add(&artifact.model, &row, bounds);
            poll();
        })?;
        metrics.check(&schema.target.values)?;
        let integer = |(name, value): (&str, f64)| {
            let value = if name == "rows" { Value::from(value as u64) } else { value.into() };
            (name.to_string(), value)
        };
        let records = ("records".to_string(), Value::from(metrics.seen()));
        Ok(Value::Object(std::iter::once(records).chain(metrics.report().into_iter().map(integer)).collect()).to_string())
    })
}

/// What a private measurement asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    epsilon: f64,
    delta: Option<f64>,
    adjacency: Option<String>,
    rows: Option<u64>,
    ledger: Option<String>,
    ledger_key: Option<String>,
    request: Option<String>,
    threads: Option<usize>,
    simulate: Option<u64>,
}

/// Private metrics as JSON: reserves, opens the data, measures, commits.
#[pyfunction]
pub(crate) fn measure(
    py: Python<'_>,
    model: &Model,
    data: Input<'_>,
    labels: Option<Bound<'_, Labels>>,
    asked: Arguments,
) -> PyResult<String> {
    let artifact = &model.artifact;
    let memory = data.memory(&artifact.schema, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    without_lock(py, || {
        let adjacency = match &asked.adjacency {
            None => artifact.guarantee.adjacency,
            Some(text) => text.parse().map_err(Error::from)?,
        };
        // The rows of the model's own training are not those of this measurement.
        let schema = privfit::Schema { rows: None, ..artifact.schema.clone() };
        let ledger = session(asked.ledger.as_deref(), asked.ledger_key.as_deref(), asked.request.as_deref(), asked.simulate)?;
        let entropy = entropy(asked.simulate)?;
        let rows = public_rows(&schema, asked.rows, adjacency, Some(&memory))?;
        let facts = PublicFacts::new(schema, rows, adjacency, (asked.epsilon, asked.delta), false)?;
        let measurement = prepare(&artifact.model, facts)?;
        let delivered = release(&measurement, context(&memory, &Threads::new(threads(asked.threads)), &entropy, ledger))?;
        Ok(delivered.output.into_metrics().ok_or(Error::Host)?.json().to_string())
    })
}
