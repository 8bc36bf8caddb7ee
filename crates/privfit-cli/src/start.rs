//! The first thing that somebody meets: `privfit` alone, and what is typed wrongly.

use crate::style::{self, Paint};
use crate::{Arguments, note};
use clap::{ColorChoice, CommandFactory, FromArgMatches};
use std::process::ExitCode;

/// Four commands from nothing to a model.
const FIRST: [(&str, &str); 4] = [
    ("privfit schema init visits.csv > visits.toml", "draft the public facts, then fill in every \"?\""),
    ("privfit account --rows 50000 --features 30 --loss logistic --epsilon 1", "compare methods, before anything is spent"),
    ("privfit fit --data visits.csv --schema visits.toml --epsilon 1 --delta 1e-10 --out model.json", "train"),
    ("privfit certificate show model.json", "read what the model guarantees"),
];

/// What was typed, or the exit code.
pub(crate) fn arguments() -> Result<Arguments, ExitCode> {
    if std::env::args_os().len() <= 1 {
        welcome();
        return Err(ExitCode::from(2));
    }
    let colour = if style::allowed() { ColorChoice::Auto } else { ColorChoice::Never };
    let parsed = Arguments::command().color(colour).try_get_matches().and_then(|m| Arguments::from_arg_matches(&m));
    parsed.map_err(|error| {
        let printed = error.print();
        if error.use_stderr() {
            return ExitCode::from(2);
        }
        crate::output::is_listing(true);
        crate::output::took(printed);
        ExitCode::from(if crate::output::all_written() { 0 } else { crate::unwritten() })
    })
}

/// Nothing was asked for: what this is, and where to begin.
fn welcome() {
    let paint = Paint::err();
    note(
        &paint.bold("privfit trains models on sensitive data, with a privacy guarantee that can be read, recomputed and tested."),
    );
    note("\nFirst steps:");
    for (command, what) in FIRST {
        note(&format!("  {command}\n      {}", paint.dim(what)));
    }
    note("\nAll verbs: privfit --help. One of them: privfit help fit. A word: privfit explain epsilon.");
}
