//! Bounds that are bought.

use crate::data::{Given, Labels};
use crate::error::raised;
use crate::fit::{entropy, threads};
use crate::interrupt::without_lock;
use crate::ledger::payer;
use privfit::account::{Adjacency, Target};
use privfit::bounds::{Draft, prepare};
use privfit::constraint::Constraint;
use privfit::fit::{Job, public_rows};
use privfit::method::Settings;
use privfit::{Error, spend};
use pyo3::prelude::*;

/// What a purchase asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    epsilon: f64,
    delta: f64,
    adjacency: String,
    rows: Option<u64>,
    beyond: f64,
    ledger: Option<String>,
    ledger_key: Option<String>,
    request: Option<String>,
    threads: Option<usize>,
    simulate: Option<u64>,
}

/// The text of a schema whose open bounds are filled in: reserves, opens the data, counts with noise, commits.
#[pyfunction]
pub(crate) fn buy_bounds(
    py: Python<'_>,
    draft: &str,
    data: Given<'_>,
    labels: Option<Bound<'_, Labels>>,
    asked: Asked,
) -> PyResult<String> {
    let draft = Draft::parse(draft).map_err(raised)?;
    let adjacency: Adjacency = asked.adjacency.parse().map_err(|e: privfit::account::Error| raised(Error::from(e)))?;
    let schema = draft.schema().clone();
    let memory = data.memory(&schema, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    without_lock(py, || {
        let job = Job {
            schema: schema.clone(),
            rows: asked.rows,
            epsilon: asked.epsilon,
            delta: Some(asked.delta),
            adjacency,
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
        let target = Target { epsilon: asked.epsilon, delta: asked.delta };
        let purchase = prepare(draft, target, adjacency, asked.beyond, rows)?;
        let bytes = spend::release(payer, None, &|name| purchase.request(name), |_| {
            Ok(purchase.run(&memory, &entropy, threads(asked.threads))?.into_bytes())
        })?
        .bytes;
        String::from_utf8(bytes).map_err(|_| Error::Damaged("the released schema is not text: fetch the ledger again".into()))
    })
}
