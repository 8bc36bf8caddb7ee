//! Files that are read whole, no larger than they may be.

use privfit::{artifact, small_file};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// The bytes of a regular file: of a model, or of a text.
#[pyfunction]
pub(crate) fn read_file(py: Python<'_>, path: PathBuf, model: bool) -> PyResult<Bound<'_, PyBytes>> {
    let most = if model { artifact::LARGEST as u64 } else { small_file::TEXT };
    let bytes = py.detach(|| small_file::read(&path, most))?;
    Ok(PyBytes::new(py, &bytes))
}
