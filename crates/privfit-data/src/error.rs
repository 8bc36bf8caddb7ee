//! One error type. A text says what was given, what is allowed and what to do; never a value of the data. Where it names an argument, it
//! names a field, not a flag: the command, the job file and Python each spell that in their own way ([`Error::spelled`]).
//!
//! ```
//! use privfit_data::Error;
//!
//! let error = Error::misuse("delta is missing: add ").give("delta", "1e-8").text(" (1/rows^2)");
//! assert_eq!(error.to_string(), "delta is missing: add delta = 1e-8 (1/rows^2)");
//! let as_flag = |name: &str, value: Option<&str>| format!("--{name} {}", value.unwrap_or_default());
//! assert_eq!(error.spelled(&as_flag), "delta is missing: add --delta 1e-8 (1/rows^2)");
//! assert_eq!(error.after("candidate 2: ").spelled(&as_flag), "candidate 2: delta is missing: add --delta 1e-8 (1/rows^2)");
//! ```

use std::fmt;

/// Why nothing was done. Each kind has an exit code of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The answer to a well-formed question is no (budget, a claim that does not hold).
    Refused(Text),
    /// Arguments, job or schema.
    Misuse(Text),
    /// The host failed while private data were open. One text for all cases: record content can't reach it.
    Host,
    /// Something could not be written where it should go: a disk, a pipe, a directory. Records have no part in it.
    Output(Text),
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
    Damaged(Text),
}

/// A text in pieces: words, and arguments that a front end spells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Words(String),
    Argument(&'static str, Option<String>),
}

impl<T: Into<String>> From<T> for Text {
    fn from(words: T) -> Text {
        Text(vec![Piece::Words(words.into())])
    }
}

impl Text {
    /// Whether the text contains these words, as the library spells it.
    pub fn contains(&self, words: &str) -> bool {
        self.to_string().contains(words)
    }

    fn spelled(&self, spelling: Spelling<'_>) -> String {
        let piece = |p: &Piece| match p {
            Piece::Words(words) => words.clone(),
            Piece::Argument(name, value) => spelling(name, value.as_deref()),
        };
        self.0.iter().map(piece).collect()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As a job file has it: words in quotes, numbers and what stands for something as they are, settings by their own names.
        let bare = |v: &str| v.parse::<f64>().is_ok() || v.chars().all(|c| c.is_ascii_uppercase());
        let field = |name: &str, value: Option<&str>| match value {
            Some(value) if value.contains('=') => value.to_string(),
            Some(value) if bare(value) => format!("{name} = {value}"),
            Some(value) => format!("{name} = {value:?}"),
            None => name.to_string(),
        };
        f.write_str(&self.spelled(&field))
    }
}

/// How a front end writes an argument: its name with underscores, and the value to give, if one is suggested.
pub type Spelling<'a> = &'a dyn Fn(&str, Option<&str>) -> String;

/// What is said whenever the host fails while private data are open.
pub const HOST: &str = "the host failed while private data were open (file damaged or unreadable, memory or disk full), and what a \
                        ledger reserved stays spent: check the file with `privfit schema validate`, then memory and disk";

/// Result of the library.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A misuse, in words that end with the fix.
    pub fn misuse(text: impl Into<Text>) -> Error {
        Error::Misuse(text.into())
    }

    /// A well-formed question whose answer is no.
    pub fn refused(text: impl Into<Text>) -> Error {
        Error::Refused(text.into())
    }

    /// Something could not be written.
    pub fn output(text: impl Into<Text>) -> Error {
        Error::Output(text.into())
    }

    /// A file is damaged.
    pub fn damaged(text: impl Into<Text>) -> Error {
        Error::Damaged(text.into())
    }

    /// Goes on with words.
    pub fn text(self, text: impl Into<String>) -> Error {
        self.with(Piece::Words(text.into()))
    }

    /// The same error with words before it; its kind and its arguments stay.
    pub fn after(mut self, words: impl Into<String>) -> Error {
        if let Error::Refused(text) | Error::Misuse(text) | Error::Output(text) | Error::Damaged(text) = &mut self {
            text.0.insert(0, Piece::Words(words.into()));
        }
        self
    }

    /// Goes on with an argument and the value to give.
    pub fn give(self, name: &'static str, value: impl ToString) -> Error {
        self.with(Piece::Argument(name, Some(value.to_string())))
    }

    /// Goes on with the name of an argument.
    pub fn naming(self, name: &'static str) -> Error {
        self.with(Piece::Argument(name, None))
    }

    fn with(mut self, piece: Piece) -> Error {
        if let Error::Refused(text) | Error::Misuse(text) | Error::Output(text) | Error::Damaged(text) = &mut self {
            text.0.push(piece);
        }
        self
    }

    /// The text as a front end spells arguments.
    pub fn spelled(&self, spelling: Spelling<'_>) -> String {
        match self {
            Error::Refused(text) | Error::Misuse(text) | Error::Output(text) | Error::Damaged(text) => text.spelled(spelling),
            other => other.to_string(),
        }
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
            Error::Refused(text) | Error::Misuse(text) | Error::Output(text) | Error::Damaged(text) => text.fmt(f),
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
        Error::misuse(error.to_string())
    }
}

impl From<privfit_kernel::Error> for Error {
    fn from(error: privfit_kernel::Error) -> Error {
        match error {
            privfit_kernel::Error::Memory => Error::Host,
            other => Error::misuse(other.to_string()),
        }
    }
}
