//! One error type: what was given, what is allowed, what to do. Never a data value.

use std::fmt;

/// Why the kernel refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A public parameter lies outside of its domain, or nothing is proved about a combination.
    Public(crate::account::Error),
    /// What a run executed does not fit in what was planned; nothing is released.
    Unplanned {
        /// The first difference between the two.
        what: String,
    },
    /// Two parts of a release do not belong together (another grid, sensitivity, length or process).
    Mismatch {
        /// What differs.
        what: &'static str,
    },
    /// The operating system gave no randomness.
    Entropy,
    /// There is no memory for the records.
    Memory,
    /// The processes of a job do not answer, or not as they should.
    Engine {
        /// What happened.
        what: &'static str,
    },
}

/// Result of the kernel.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn domain(what: &'static str, given: impl ToString, allowed: &'static str) -> Self {
        Error::Public(crate::account::Error::Domain { what, given: given.to_string(), allowed })
    }
    pub(crate) fn unsupported(what: impl Into<String>, fix: &'static str) -> Self {
        Error::Public(crate::account::Error::Unsupported { what: what.into(), fix })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Public(error) => error.fmt(f),
            Error::Unplanned { what } => {
                write!(f, "executed does not fit in planned ({what}): nothing is released, report this as a bug")
            }
            Error::Mismatch { what } => {
                write!(f, "{what}: draw the noise from the scale that the value was summed on, in the same run")
            }
            Error::Memory => write!(f, "there is not enough memory for the records: use a larger machine, or fewer columns"),
            Error::Engine { what } => write!(f, "{what}: see that all of them run, then begin a new run"),
            Error::Entropy => {
                write!(f, "the operating system gave no randomness: check that getrandom(2) or /dev/urandom works, then retry")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<crate::account::Error> for Error {
    fn from(error: crate::account::Error) -> Error {
        Error::Public(error)
    }
}

/// Why a value is refused under add-remove.
pub(crate) fn order_dependent() -> Error {
    Error::unsupported(
        "a value that depends on the number or the order of units under add-remove (one unit more may move it by any amount)",
        "use zero-out or replace-one",
    )
}

/// What another process said makes no sense.
pub(crate) fn disagree() -> Error {
    Error::Engine { what: "a process of this job answered something else than was asked" }
}
