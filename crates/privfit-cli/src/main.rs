//! The `privfit` command. `args` reads flags and job files and makes jobs of them, `verb` has one file for each verb, of which none imports
//! another, `train` is what `fit` and `tune` share, `ui` is what people see.

mod args;
mod start;
mod train;
mod ui;
mod verb;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use ui::{Failure, as_flag, note, output};
use verb::{
    account, audit, certificate, evaluate, explain, export, fit, label, ledger, manual, methods, model, predict, report, schema,
    tune,
};

/// Train models on sensitive data with a privacy guarantee that can be read, recomputed and tested.
#[derive(Parser)]
#[command(
    name = "privfit",
    version,
    max_term_width = 110,
    after_help = "Examples:
  privfit fit examples/adult/job.toml
  privfit evaluate --model model.json --data test.csv
  privfit ledger create visits.ledger --schema visits.toml --epsilon 4 --delta 1e-8
  privfit account --mechanism gaussian --noise-multiplier 1.1 --sampling-rate 0.01 --steps 1000 --delta 1e-5
  privfit account --request questions.json --format json
  privfit audit distribution --method noisy-gd

Exit codes: 0 done, 1 refused, 2 misuse, 3 host failure (output, disk, memory), 4 damaged file."
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Train a private model from a file
    Fit(Box<fit::Fit>),
    /// Train the best of several candidates, chosen privately or on public rows
    #[command(after_help = tune::EXAMPLES)]
    Tune(Box<tune::Tune>),
    /// Private labels for public points, by an ensemble of any learner; and students of them
    #[command(after_help = label::EXAMPLES)]
    Label(Box<label::Label>),
    /// Apply a released model to new rows; costs nothing
    Predict(predict::Predict),
    /// A released model for other programs: ONNX, weights, coefficients
    Export(export::Export),
    /// Curves of an additive model: show, edit
    Model(model::ModelVerb),
    /// Metrics of a released model: exact on public rows, with noise on private ones
    Evaluate(evaluate::Evaluate),
    /// What a model file claims, and what was released
    Certificate(certificate::Certificate),
    /// A page about a model or a ledger, for people: HTML, Markdown or JSON
    Report(report::Report),
    /// The budget of a data set: make, show, verify, export
    Ledger(ledger::LedgerVerb),
    /// Lower bound on what a method leaks, against its claim
    Audit(audit::Audit),
    /// Every method and loss: needs, guarantee, source
    Methods(methods::Methods),
    /// Public facts of a data set: draft, check, validate
    Schema(schema::SchemaVerb),
    /// Epsilon, delta, noise or Renyi divergence of a described computation
    Account(Box<account::Account>),
    /// What a term means
    Explain(explain::Explain),
    /// A script that completes commands in a shell
    Completions(manual::Completions),
    /// Manual pages
    Man(manual::Man),
}

impl Verb {
    /// Whether what is printed is a plain listing: not a verdict, not data, and nothing that is lost with it.
    fn is_listing(&self) -> bool {
        match self {
            Verb::Methods(_) | Verb::Explain(_) | Verb::Completions(_) | Verb::Man(_) => true,
            Verb::Fit(verb) => verb.talks(),
            Verb::Tune(verb) => verb.talks(),
            Verb::Label(verb) => verb.talks(),
            Verb::Certificate(verb) => verb.is_listing(),
            Verb::Model(verb) => verb.is_listing(),
            Verb::Ledger(verb) => verb.is_listing(),
            Verb::Schema(verb) => verb.is_listing(),
            Verb::Account(verb) => verb.is_listing(),
            Verb::Predict(_) | Verb::Export(_) | Verb::Evaluate(_) | Verb::Report(_) | Verb::Audit(_) => false,
        }
    }
}

fn main() -> ExitCode {
    let arguments = match start::arguments() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    output::is_listing(arguments.verb.is_listing());
    let result = std::panic::catch_unwind(|| match arguments.verb {
        Verb::Fit(verb) => verb.run(),
        Verb::Tune(verb) => verb.run(),
        Verb::Label(verb) => verb.run(),
        Verb::Predict(verb) => verb.run(),
        Verb::Export(verb) => verb.run(),
        Verb::Model(verb) => verb.run(),
        Verb::Evaluate(verb) => verb.run(),
        Verb::Certificate(verb) => verb.run(),
        Verb::Report(verb) => verb.run(),
        Verb::Ledger(verb) => verb.run(),
        Verb::Audit(verb) => verb.run(),
        Verb::Methods(verb) => verb.run(),
        Verb::Schema(verb) => verb.run(),
        Verb::Account(verb) => verb.run(),
        Verb::Explain(verb) => verb.run(),
        Verb::Completions(verb) => verb.run(),
        Verb::Man(verb) => verb.run(),
    })
    .unwrap_or(Err(Failure(privfit::Error::Host)));
    let code = match result {
        Ok(()) => 0,
        Err(Failure(error)) => {
            note(&format!("error: {}", error.spelled(&as_flag)));
            error.code()
        }
    };
    ExitCode::from(if output::all_written() { code } else { unwritten() })
}

/// What was asked for was not told, whatever it was.
fn unwritten() -> u8 {
    let error = privfit::Error::output("standard output can't be written to: check the disk, or who reads it");
    note(&format!("error: {error}"));
    error.code()
}
