//! Settings as Python gives them: a dict of numbers, flags and names.

use crate::error::raised;
use privfit::method::Settings;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// One value; whatever it is, the library reads its text.
#[derive(FromPyObject)]
pub(crate) enum Value {
    Flag(bool),
    Number(f64),
    Name(String),
    Other(Py<PyAny>),
}

/// The dict.
pub(crate) type SettingsInput = BTreeMap<String, Value>;

/// Reads it as a command line is read.
pub(crate) fn settings(given: &SettingsInput) -> PyResult<Settings> {
    let mut out = Settings::default();
    for (name, value) in given {
        let text = match value {
            Value::Flag(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Name(name) => name.clone(),
            Value::Other(object) => object.to_string(),
        };
        out.set(name, &text).map_err(raised)?;
    }
    Ok(out)
}
