//! Private bounds.

use crate::data::{Input, Labels};
use crate::error::raised;
use crate::fit::{context, entropy, threads};
use crate::interrupt::without_lock;
use crate::ledger::session;
use privfit::Error;
use privfit::account::Adjacency;
use privfit::engine::Threads;
use privfit::job::bounds::{Draft, prepare};
use privfit::job::facts::public_rows;
use privfit::job::{PublicFacts, release};
use pyo3::prelude::*;

/// What private bounds ask for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
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
    data: Input<'_>,
    labels: Option<Bound<'_, Labels>>,
    asked: Arguments,
) -> PyResult<String> {
    let draft = Draft::parse(draft).map_err(raised)?;
    let adjacency: Adjacency = asked.adjacency.parse().map_err(|e: privfit::account::Error| raised(Error::from(e)))?;
    let schema = draft.schema().clone();
    let memory = data.memory(&schema, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    without_lock(py, || {
        let ledger = session(asked.ledger.as_deref(), asked.ledger_key.as_deref(), asked.request.as_deref(), asked.simulate)?;
        let entropy = entropy(asked.simulate)?;
        let rows = public_rows(&schema, asked.rows, adjacency, Some(&memory))?;
        let facts = PublicFacts::new(schema, rows, adjacency, (asked.epsilon, Some(asked.delta)), false)?;
        let bounds = prepare(draft, facts, asked.beyond)?;
        let delivered = release(&bounds, context(&memory, &Threads::new(threads(asked.threads)), &entropy, ledger))?;
        delivered.output.into_bounds().ok_or(Error::Host)
    })
}
