//! The `privfit` command: one file for each verb.

mod account;
mod bench;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Train models on sensitive data with a privacy guarantee that can be read, recomputed and tested.
#[derive(Parser)]
#[command(
    name = "privfit",
    version,
    max_term_width = 110,
    after_help = "Examples:
  privfit account --mechanism gaussian --noise-multiplier 1.1 --rate 0.01 --steps 1000 --delta 1e-5
  privfit account --request questions.json --format json
  privfit bench noise

Exit codes: 0 done, 1 refused, 2 misuse, 3 host failure while private data were open, 4 damaged file."
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Epsilon, delta, noise or Renyi divergence of a described computation
    Account(Box<account::Account>),
    /// Measure this machine: noise, accounting, gradients
    Bench(bench::Bench),
}

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs, at full precision
    Json,
}

/// A misuse: one sentence that ends with the fix.
pub(crate) struct Misuse(pub(crate) String);

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let result = match arguments.verb {
        Verb::Account(verb) => verb.run(),
        Verb::Bench(verb) => verb.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Misuse(text)) => {
            eprintln!("error: {text}");
            ExitCode::from(2)
        }
    }
}

/// Prints a line and ends quietly if nobody reads any more.
pub(crate) fn print_line(line: &str) {
    use std::io::Write;
    if writeln!(std::io::stdout().lock(), "{line}").is_err() {
        std::process::exit(0);
    }
}
