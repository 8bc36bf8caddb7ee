//! The first thing that somebody meets: `privfit` alone, and what is typed wrongly.

use crate::Arguments;
use crate::ui::note;
use crate::ui::style::{self, Paint};
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
        crate::ui::output::is_listing(true);
        crate::ui::output::took(printed);
        ExitCode::from(if crate::ui::output::all_written() { 0 } else { crate::unwritten() })
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// Words of a line as a shell splits it, up to a comment, a pipe or a redirection.
    fn words(line: &str) -> Vec<String> {
        let (mut out, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
        for c in line.chars() {
            match c {
                '\'' => (quoted, any) = (!quoted, true),
                '#' if !quoted && !any => break,
                '|' | '>' | '<' if !quoted => break,
                ' ' if !quoted => {
                    if std::mem::take(&mut any) {
                        out.push(std::mem::take(&mut word));
                    }
                }
                c => {
                    word.push(c);
                    any = true;
                }
            }
        }
        if any {
            out.push(word);
        }
        out
    }

    fn collect(command: &clap::Command, out: &mut Vec<String>) {
        let help = command.get_after_help().or(command.get_after_long_help()).map(ToString::to_string).unwrap_or_default();
        out.extend(help.lines().map(str::trim).filter(|l| l.starts_with("privfit ")).map(String::from));
        command.get_subcommands().for_each(|c| collect(c, out));
    }

    /// Every command that help, the first page and the pages of methods print is one that this program takes.
    #[test]
    fn printed_commands_are_taken() {
        let mut lines: Vec<String> = FIRST.iter().map(|f| f.0.to_string()).collect();
        collect(&Arguments::command(), &mut lines);
        lines.extend(crate::verb::methods::example_commands());
        assert!(lines.len() > 80, "{}", lines.len());
        for line in lines {
            let parsed = Arguments::try_parse_from(words(&line));
            assert!(parsed.is_ok(), "{line}: {}", parsed.err().map(|e| e.to_string()).unwrap_or_default());
        }
    }
}
