//! `privfit evaluate --epsilon`: private metrics of a model on records that are private themselves.

use crate::args::ledger::LedgerArguments;
use crate::ui::lines::guarantee_line;
use crate::ui::progress::Reading;
use crate::ui::{Failure, Format, print_line, quiet};
use clap::Args;
use privfit::certificate::Declared;
use privfit::data::load::Source;
use privfit::engine::Threads;
use privfit::job::evaluate;
use privfit::job::facts::public_rows;
use privfit::job::output::PrivateMetrics;
use privfit::job::release::Context;
use privfit::job::{PublicFacts, release};
use privfit::kernel::Entropy;
use privfit::{Artifact, Error};

/// Flags of a private measurement.
#[derive(Args)]
pub(crate) struct Private {
    /// Measure with noise, for this epsilon: the rows may be private then
    #[arg(long)]
    pub(crate) epsilon: Option<f64>,
    /// Privacy parameter delta, with --epsilon; 0 for pure privacy
    #[arg(long, requires = "epsilon")]
    delta: Option<f64>,
    /// zero-out (default), replace-one or add-remove, with --epsilon
    #[arg(long, requires = "epsilon")]
    adjacency: Option<String>,
    /// Number of rows (or units), if it is to be declared rather than counted, with --epsilon
    #[arg(long, requires = "epsilon")]
    rows: Option<u64>,
    /// Take noise from a seed: repeatable, and NOT private
    #[arg(long, value_name = "SEED", requires = "epsilon")]
    simulate: Option<u64>,
    #[command(flatten)]
    ledger_arguments: LedgerArguments,
}

impl Private {
    /// Plans, spends, measures and prints.
    pub(crate) fn run(&self, epsilon: f64, artifact: &Artifact, source: &Source, format: Format) -> Result<(), Failure> {
        self.ledger_arguments.check(self.simulate.is_some())?;
        let adjacency = match &self.adjacency {
            None => artifact.guarantee.adjacency,
            Some(text) => text.parse().map_err(Error::from)?,
        };
        // The rows of the model's own training are not those of this measurement.
        let schema = privfit::Schema { rows: None, ..artifact.schema.clone() };
        let entropy = match self.simulate {
            None => Entropy::system().map_err(Error::from)?,
            Some(seed) => Entropy::simulated(seed),
        };
        quiet();
        let counting = Reading::new("counting", format == Format::Text);
        let rows = public_rows(&schema, self.rows, adjacency, Some(source))?;
        drop(counting);
        let facts = PublicFacts::new(schema, rows, adjacency, (epsilon, self.delta), false)?;
        let measurement = evaluate::prepare(&artifact.model, facts)?;
        let engine = Threads::new(std::thread::available_parallelism().map_or(1, |n| n.get()));
        let reading = std::cell::Cell::new(None);
        let context = Context {
            source,
            engine: &engine,
            entropy: &entropy,
            ledger: self.ledger_arguments.session()?,
            declared: Declared::default(),
            out: None,
            checkpoint: None,
            opening: &|| reading.set(Some(Reading::new("reading", format == Format::Text))),
            opened: &|| {},
            progress: &|| {},
        };
        let delivered = release(&measurement, context).map_err(|e| self.ledger_arguments.failed(e, None))?;
        drop(reading.take());
        if delivered.before {
            crate::ui::note("note: this request was released before; here are the same numbers again, and nothing was spent");
        }
        let Some(measured) = delivered.output.into_metrics() else { return Err(Failure(Error::Host)) };
        print(&measured, format);
        match (crate::ui::output::all_written(), delivered.request) {
            (false, Some(request)) => {
                let why = "standard output can't be written to".to_string();
                Err(self.ledger_arguments.failed(Error::Undelivered { request, committed: true, why }, None))
            }
            _ => Ok(()),
        }
    }
}

fn print(measured: &PrivateMetrics, format: Format) {
    if format == Format::Json {
        print_line(&measured.json().to_string());
        return;
    }
    for metric in &measured.metrics {
        print_line(&format!("{:<10}{}", metric.name, metric.text()));
    }
    match measured.private {
        true => {
            let line = guarantee_line(measured.zero_out, measured.replace_one, measured.delta);
            print_line(&format!("guarantee {line}, for these numbers alone"));
        }
        false => print_line("guarantee none: the noise came from a seed (epsilon is infinite)"),
    }
}
