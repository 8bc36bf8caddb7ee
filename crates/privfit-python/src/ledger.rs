//! Budgets of data sets.

use crate::error::{misuse, raised};
use crate::interrupt::without_lock;
use crate::schema::Schema;
use privfit::Artifact;
use privfit::account::Adjacency;
use privfit::job::release::LedgerSession;
use privfit::ledger::Ledger;
use privfit::ledger::amount::Amount;
use privfit::ledger::chain::{LONGEST_KEY, MacKey};
use privfit::ledger::heads::Heads;
use privfit::ledger::record::Scope;
use privfit::ledger::verify::verify;
use privfit::verify::against_ledger;
use privfit::{Error, Result, small_file};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::Path;

/// The ledger at a path or an address, with the key of a file if it has one.
pub(crate) fn open(place: &str, key: Option<&str>) -> Result<Ledger> {
    Ok(Ledger::open(place, mac_key(key)?)?.remembering(Heads::of_user()))
}

/// Who pays, if anybody does.
pub(crate) fn session(
    place: Option<&str>,
    key: Option<&str>,
    request: Option<&str>,
    simulate: Option<u64>,
) -> Result<Option<LedgerSession>> {
    match (place, request) {
        (Some(_), _) if simulate.is_some() => {
            Err(Error::misuse("a simulation is not private and can't be paid for: leave out ledger, or simulate"))
        }
        (Some(place), request) => {
            Ok(Some(LedgerSession { ledger: open(place, key)?, request: request.map(Into::into), announce: |_| {} }))
        }
        (None, Some(_)) => Err(Error::misuse("a request is for a ledger and none is given: add ledger=\"FILE\"")),
        (None, None) => Ok(None),
    }
}

fn mac_key(key: Option<&str>) -> Result<MacKey> {
    let Some(path) = key else { return Ok(MacKey::default()) };
    let bytes = small_file::read(Path::new(path), LONGEST_KEY as u64);
    MacKey::keyed(&bytes.map_err(|e| Error::misuse(format!("cannot read the key {path}: {e}; check the path")))?)
}

/// Makes a ledger for the data set of a schema, or for one of that name whose rows are the units.
#[pyfunction]
#[pyo3(signature = (place, key, schema, dataset, epsilon, delta, adjacency))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn ledger_create(
    py: Python<'_>,
    place: &str,
    key: Option<&str>,
    schema: Option<&Schema>,
    dataset: Option<String>,
    epsilon: &str,
    delta: f64,
    adjacency: &str,
) -> PyResult<()> {
    let adjacency: Adjacency = adjacency.parse().map_err(|e: privfit::account::Error| raised(Error::from(e)))?;
    let scope = match (schema, dataset) {
        (Some(schema), None) => Scope::of(&schema.0, adjacency).map_err(raised)?,
        (None, Some(dataset)) if !dataset.is_empty() => Scope { dataset, unit: "row".into(), adjacency },
        _ => return Err(misuse("a ledger is for one data set: give dataset=\"NAME\", or schema=...")),
    };
    let cap = Amount::parse(epsilon)
        .ok_or_else(|| misuse(format!("epsilon is {epsilon:?}: give a decimal with at most twelve digits after the point")))?;
    without_lock(py, || Ledger::create(place, mac_key(key)?, scope, cap, delta).map(|_| ()))
}

/// Where a ledger stands, as JSON.
#[pyfunction]
pub(crate) fn ledger_show(py: Python<'_>, place: &str, key: Option<&str>) -> PyResult<String> {
    without_lock(py, || {
        let status = open(place, key)?.status()?;
        status.check_head()?;
        Ok(status.facts().to_string())
    })
}

/// Checks of a ledger, and of models against it, as JSON.
#[pyfunction]
pub(crate) fn ledger_verify(py: Python<'_>, place: &str, key: Option<&str>, models: Vec<Vec<u8>>) -> PyResult<String> {
    without_lock(py, || {
        let (status, mut checks) = verify(&mut open(place, key)?)?;
        for bytes in &models {
            checks.extend(against_ledger(&status, &Artifact::from_bytes(bytes)?, bytes));
        }
        serde_json::to_string(&checks).map_err(|_| Error::damaged("the checks can't be written as JSON"))
    })
}

/// All records as JSON, or the bytes that were released under a name.
#[pyfunction]
pub(crate) fn ledger_export<'py>(
    py: Python<'py>,
    place: &str,
    key: Option<&str>,
    request: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = without_lock(py, || {
        let mut ledger = open(place, key)?;
        match request {
            Some(wanted) => ledger.released_under(wanted),
            None => ledger.status()?.export(),
        }
    })?;
    Ok(PyBytes::new(py, &bytes))
}
