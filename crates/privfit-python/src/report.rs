//! Pages about models and ledgers.

use crate::error::misuse;
use crate::interrupt::without_lock;
use crate::ledger::open;
use crate::model::Model;
use privfit::publish::publish;
use privfit::report::{Results, is_report, ledger_page, model_page};
use pyo3::prelude::*;
use std::io::Read;
use std::path::Path;

/// The page of a model, with metrics in the form of `evaluate` where some are given.
#[pyfunction]
pub(crate) fn report_model(py: Python<'_>, model: &Model, results: Option<&str>) -> PyResult<String> {
    without_lock(py, || model_page(&model.artifact, results.map(Results::parse).transpose()?))
}

/// The page of a ledger.
#[pyfunction]
pub(crate) fn report_ledger(py: Python<'_>, place: &str, key: Option<&str>) -> PyResult<String> {
    without_lock(py, || ledger_page(&mut open(place, key)?))
}

/// Writes a page, whole or not at all, and over nothing but a page.
#[pyfunction]
pub(crate) fn report_write(path: &str, text: &str) -> PyResult<()> {
    let mut head = Vec::new();
    let read = privfit::small_file::open(Path::new(path)).and_then(|file| file.take(1000).read_to_end(&mut head));
    if read.is_ok() && !head.is_empty() && !is_report(&head) {
        return Err(misuse(format!("{path} is there and is not a report: give another out")));
    }
    let failed = |_| misuse(format!("the report can't be written to {path}: check the directory and its permissions"));
    publish(Path::new(path), text.as_bytes()).map_err(failed)
}
