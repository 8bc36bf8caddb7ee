//! Why an accountant refuses: what was given, what is allowed, what to do.

use std::fmt;

/// Why an accountant refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A parameter lies outside its domain.
    Domain {
        /// The parameter.
        what: &'static str,
        /// The value that was given.
        given: String,
        /// The values that are allowed, and what to do.
        allowed: &'static str,
    },
    /// No proven bound exists for this combination of events, adjacency or accountant.
    Unsupported {
        /// The combination.
        what: String,
        /// What to do instead.
        fix: &'static str,
    },
}

/// Result of an accountant.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn domain(what: &'static str, given: impl ToString, allowed: &'static str) -> Self {
        Error::Domain { what, given: given.to_string(), allowed }
    }
    pub(crate) fn unsupported(what: impl Into<String>, fix: &'static str) -> Self {
        Error::Unsupported { what: what.into(), fix }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Domain { what, given, allowed } => write!(f, "{what} is {given}: {allowed}"),
            Error::Unsupported { what, fix } => write!(f, "{what} has no proven bound here: {fix}"),
        }
    }
}

impl std::error::Error for Error {}
