//! One error type. A text says what was given, what is allowed and what to do; never a value of the data.

use std::fmt;

/// Why nothing was done. Each kind has an exit code of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The answer to a well-formed question is no (budget, a claim that does not hold).
    Refused(String),
    /// Flags, job or schema.
    Misuse(String),
    /// The host failed while private data were open. One text for all cases: record content can't reach it.
    Host,
    /// Something could not be written where it should go: a disk, a pipe, a directory. Records have no part in it.
    Output(String),
    /// What was released could not be delivered. It is paid for, so that whoever asks again under the same name pays nothing.
    Undelivered {
        /// Name of the request.
        request: String,
        /// Whether the release is known to be committed. If not, it may or may not be.
        committed: bool,
        /// Why.
        why: String,
    },
    /// A model or ledger file is damaged.
    Damaged(String),
}

/// What is said whenever the host fails while private data are open.
pub const HOST: &str = "the host failed while private data were open (file damaged or unreadable, memory or disk full), and what a \
                        ledger reserved stays spent: check the file with `privfit schema validate`, then memory and disk";

/// Result of the library.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A misuse, in words that end with the fix.
    pub fn misuse(text: impl Into<String>) -> Error {
        Error::Misuse(text.into())
    }

    /// Exit code of the command.
    pub fn code(&self) -> u8 {
        match self {
            Error::Refused(_) => 1,
            Error::Misuse(_) => 2,
            Error::Host | Error::Output(_) | Error::Undelivered { .. } => 3,
            Error::Damaged(_) => 4,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(text) | Error::Misuse(text) | Error::Output(text) | Error::Damaged(text) => f.write_str(text),
            Error::Host => f.write_str(HOST),
            Error::Undelivered { request, committed: true, why } => {
                write!(
                    f,
                    "the release is committed and was not delivered ({why}): ask for the request {request:?} again, which spends nothing"
                )
            }
            Error::Undelivered { request, committed: false, why } => write!(
                f,
                "whether the release was committed is not known ({why}): ask for the request {request:?} again, which spends nothing and \
                 delivers it if it was; otherwise what was reserved stays spent"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<privfit_kernel::account::Error> for Error {
    fn from(error: privfit_kernel::account::Error) -> Error {
        Error::Misuse(error.to_string())
    }
}

impl From<privfit_kernel::Error> for Error {
    fn from(error: privfit_kernel::Error) -> Error {
        match error {
            privfit_kernel::Error::Memory => Error::Host,
            other => Error::Misuse(other.to_string()),
        }
    }
}
