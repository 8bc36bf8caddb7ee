//! How well a model does: exactly on public rows, with noise on private ones.

use crate::data::{Given, Labels};
use crate::error::raised;
use crate::fit::{entropy, threads};
use crate::interrupt::{poll, without_lock};
use crate::ledger::payer;
use crate::model::Model;
use privfit::constraint::Constraint;
use privfit::data::encode::{Encoder, Row};
use privfit::data::load::{Records, read_labels};
use privfit::fit::{Job, public_rows};
use privfit::measure::{Measured, prepare};
use privfit::method::Settings;
use privfit::model::Metrics;
use privfit::schema::TargetValues;
use privfit::{Error, spend};
use pyo3::prelude::*;
use serde_json::Value;

/// Exact metrics as JSON. The rows count as public.
#[pyfunction]
pub(crate) fn evaluate(py: Python<'_>, model: &Model, data: Given<'_>, labels: Option<Bound<'_, Labels>>) -> PyResult<String> {
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
        let encoder = Encoder::new(schema, reader.columns(), true)?;
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
pub(crate) struct Asked {
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
    data: Given<'_>,
    labels: Option<Bound<'_, Labels>>,
    asked: Asked,
) -> PyResult<String> {
    let artifact = &model.artifact;
    let memory = data.memory(&artifact.schema, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    without_lock(py, || {
        let job = Job {
            // The rows of the model's own training are not those of this measurement.
            schema: privfit::Schema { rows: None, ..artifact.schema.clone() },
            rows: asked.rows,
            epsilon: asked.epsilon,
            delta: asked.delta,
            adjacency: asked.adjacency.as_deref().map_or(Ok(artifact.guarantee.adjacency), |t| t.parse().map_err(Error::from))?,
            loss: None,
            method: String::new(),
            settings: Settings::default(),
            constraint: Constraint::None,
            allow_large_delta: false,
            compare: false,
            auxiliary: None,
        };
        let payer = payer(asked.ledger.as_deref(), asked.ledger_key.as_deref(), asked.request.as_deref(), asked.simulate)?;
        let entropy = entropy(asked.simulate)?;
        let (rows, _) = public_rows(&job, Some(&memory))?;
        let measurement = prepare(artifact, &job, rows)?;
        let bytes = spend::release(payer, None, &|name| measurement.request(name), |_| {
            let measured = measurement.run(&memory, &entropy, threads(asked.threads))?;
            serde_json::to_vec(&measured).map_err(|_| Error::Host)
        })?
        .bytes;
        let damaged = |_| Error::Damaged("the released metrics can't be read: use a newer privfit".into());
        let measured: Measured = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(measured.json().to_string())
    })
}
