//! What "one record differs" means. A sensitivity or an epsilon without it is not a number.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The neighbouring relation of a guarantee.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One record's contribution is replaced by the null contribution; the number of records is public.
    ZeroOut,
    /// One record is replaced by any other record; the number of records is public.
    ReplaceOne,
    /// One record is added or removed; the number of records is private.
    AddRemove,
}

impl Adjacency {
    /// All three, for tests and tables.
    pub const ALL: [Adjacency; 3] = [Adjacency::ZeroOut, Adjacency::ReplaceOne, Adjacency::AddRemove];

    /// The spelling used on the command line and in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Adjacency::ZeroOut => "zero-out",
            Adjacency::ReplaceOne => "replace-one",
            Adjacency::AddRemove => "add-remove",
        }
    }

    pub(crate) fn replaces(self) -> bool {
        self == Adjacency::ReplaceOne
    }
}

impl fmt::Display for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Adjacency {
    type Err = Error;

    /// Underscores are accepted, and `replace_special (record zeroed out)` as other accountants call zero-out.
    fn from_str(text: &str) -> Result<Self> {
        match text.replace('_', "-").as_str() {
            "zero-out" | "replace-special (record zeroed out)" | "replace-special" => Ok(Adjacency::ZeroOut),
            "replace-one" => Ok(Adjacency::ReplaceOne),
            "add-remove" => Ok(Adjacency::AddRemove),
            _ => Err(Error::domain("adjacency", format!("{text:?}"), "use zero-out, replace-one or add-remove")),
        }
    }
}
