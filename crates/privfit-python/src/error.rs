//! Errors of the library as exceptions, in the words of Python.

use privfit::Error;
use pyo3::PyErr;

mod classes {
    #![allow(missing_docs)]
    pyo3::import_exception!(privfit._errors, PrivfitError);
    pyo3::import_exception!(privfit._errors, BudgetError);
    pyo3::import_exception!(privfit._errors, DamagedError);
}

pub(crate) use classes::PrivfitError;

/// The exception of an error.
pub(crate) fn raised(error: Error) -> PyErr {
    let text = spelled(&error);
    match error {
        Error::Refused(_) => classes::BudgetError::new_err(text),
        Error::Damaged(_) => classes::DamagedError::new_err(text),
        Error::Misuse(_) | Error::Output(_) | Error::Undelivered { .. } | Error::Host => PrivfitError::new_err(text),
    }
}

/// Its text with arguments as a call has them.
pub(crate) fn spelled(error: &Error) -> String {
    // A job file has tables, a call has arguments.
    error.spelled(&as_keyword).replace("[tune] ", "")
}

/// A misuse, in words that end with the fix.
pub(crate) fn misuse(text: impl Into<String>) -> PyErr {
    PrivfitError::new_err(text.into())
}

/// Arguments that are true or false.
const SWITCHES: [&str; 3] = ["allow_large_delta", "compare", "force"];

/// Arguments whose values are words.
const WORDS: [&str; 4] = ["adjacency", "constraint", "loss", "method"];

/// An argument as a call has it: `delta=1e-6`, `method="noisy-gd"`. Settings are arguments of their own.
fn as_keyword(name: &str, value: Option<&str>) -> String {
    match value {
        Some(value) if name == "set" => value.to_string(),
        Some(value) if WORDS.contains(&name) => format!("{name}={value:?}"),
        Some(value) => format!("{name}={value}"),
        None if SWITCHES.contains(&name) => format!("{name}=True"),
        None => name.to_string(),
    }
}
