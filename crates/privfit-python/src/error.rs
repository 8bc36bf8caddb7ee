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
    let text = in_python(&error.to_string());
    match error {
        Error::Refused(_) => classes::BudgetError::new_err(text),
        Error::Damaged(_) => classes::DamagedError::new_err(text),
        Error::Misuse(_) | Error::Output(_) | Error::Undelivered { .. } | Error::Host => PrivfitError::new_err(text),
    }
}

/// A misuse, in words that end with the fix.
pub(crate) fn misuse(text: impl Into<String>) -> PyErr {
    PrivfitError::new_err(text.into())
}

/// Flags that have no value.
const SWITCHES: [&str; 2] = ["allow-large-delta", "compare"];

/// Flags of the command as arguments: `--delta 1e-6` is `delta=1e-6`.
fn in_python(text: &str) -> String {
    // A job file has tables, a call has arguments.
    let text = &text.replace("[tune] ", "");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("--") {
        out.push_str(&rest[..at]);
        rest = &rest[at + 2..];
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('-');
        if name.is_empty() {
            out.push_str("--");
            continue;
        }
        rest = &rest[name.len()..];
        out.push_str(&name.replace('-', "_"));
        if SWITCHES.contains(&name) {
            out.push_str("=True");
            continue;
        }
        let value = rest.strip_prefix(' ').unwrap_or("");
        let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || "._+-".contains(c))).unwrap_or(value.len());
        let value = value[..end].trim_end_matches('.');
        let word = ["loss", "method"].contains(&name);
        if !value.is_empty() && (word || value.chars().any(|c| c.is_ascii_digit() || c.is_ascii_uppercase())) {
            out.push_str(&if word { format!("={value:?}") } else { format!("={value}") });
            rest = &rest[1 + value.len()..];
        }
    }
    out + rest
}
