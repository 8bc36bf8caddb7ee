//! One thing that was verified, and what it came to.

use serde::Serialize;

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Recomputed, and it agrees.
    Holds,
    /// Recomputed, and it contradicts.
    DoesNotHold,
    /// Not recomputed by this version.
    NotChecked,
    /// The publisher's word, which nobody can recompute.
    Declared,
}

impl Answer {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::DoesNotHold => "does not hold",
            Answer::NotChecked => "not checked",
            Answer::Declared => "declared",
        }
    }
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What.
    pub name: String,
    /// What it came to.
    pub answer: Answer,
    /// Why, in a line.
    pub text: String,
}

impl Check {
    /// A check by its outcome.
    pub fn new(name: &str, held: bool, text: impl Into<String>) -> Check {
        Check::with(name, if held { Answer::Holds } else { Answer::DoesNotHold }, text)
    }

    /// A check by its answer.
    pub fn with(name: &str, answer: Answer, text: impl Into<String>) -> Check {
        Check { name: name.into(), answer, text: text.into() }
    }

    /// Whether it was recomputed and agrees.
    pub fn held(&self) -> bool {
        self.answer == Answer::Holds
    }
}
