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
    /// A model or ledger file is damaged.
    Damaged(String),
}

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
            Error::Host => 3,
            Error::Damaged(_) => 4,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(text) | Error::Misuse(text) | Error::Damaged(text) => f.write_str(text),
            Error::Host => f.write_str(
                "the host failed while private data were open (file damaged or unreadable, memory or disk full): \
                 check the file with `privfit schema validate`, then run again",
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<privfit_kernel::Error> for Error {
    fn from(error: privfit_kernel::Error) -> Error {
        Error::Misuse(error.to_string())
    }
}
