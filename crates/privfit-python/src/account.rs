//! The privacy calculator.

use crate::error::misuse;
use crate::interrupt::without_lock;
use privfit::Error;
use privfit::request::{Reply, parse};
use pyo3::prelude::*;
use serde_json::json;

/// Answers requests in the format of `privfit account --request`: a list of answers as JSON.
#[pyfunction]
pub(crate) fn answer(py: Python<'_>, text: &str) -> PyResult<String> {
    let requests = parse(text).map_err(|p| misuse(p.0))?;
    without_lock(py, || {
        let mut out = Vec::new();
        for request in &requests {
            let reply = request.answer().map_err(|p| Error::misuse(p.0))?;
            out.push(as_json(&reply));
        }
        Ok(serde_json::Value::from(out).to_string())
    })
}

fn as_json(reply: &Reply) -> serde_json::Value {
    json!({
        "id": reply.id, "query": reply.query.name(), "value": reply.value, "lower": reply.lower, "upper": reply.upper,
        "accountant": reply.accountant, "adjacency": reply.adjacency.name(),
    })
}
