//! `privfit evaluate --epsilon`: private metrics of a model on records that are private themselves.

use crate::fit::guarantee_line;
use crate::progress::Reading;
use crate::spend::Purse;
use crate::{Failure, Format, print_line, quiet};
use clap::Args;
use privfit::Artifact;
use privfit::constraint::Constraint;
use privfit::data::load::Source;
use privfit::fit::{Job, public_rows};
use privfit::kernel::Entropy;
use privfit::measure::{self, Measured};
use privfit::method::Settings;
use privfit::{Error, spend};

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
    purse: Purse,
}

impl Private {
    /// Plans, spends, measures and prints.
    pub(crate) fn run(&self, epsilon: f64, artifact: &Artifact, source: &Source, format: Format) -> Result<(), Failure> {
        self.purse.check(self.simulate.is_some())?;
        let job = Job {
            schema: artifact.schema.clone(),
            rows: self.rows,
            epsilon,
            delta: self.delta,
            adjacency: self.adjacency.as_deref().map_or(Ok(artifact.guarantee.adjacency), |t| t.parse().map_err(Error::from))?,
            loss: None,
            method: String::new(),
            settings: Settings::default(),
            constraint: Constraint::None,
            allow_large_delta: false,
            compare: false,
            auxiliary: None,
        };
        // The rows of the model's own training are not those of this measurement.
        let job = Job { schema: privfit::Schema { rows: None, ..job.schema }, ..job };
        let entropy = match self.simulate {
            None => Entropy::system().map_err(Error::from)?,
            Some(seed) => Entropy::simulated(seed),
        };
        quiet();
        let counting = Reading::new("counting", format == Format::Text);
        let (rows, _) = public_rows(&job, Some(source))?;
        drop(counting);
        let measurement = measure::prepare(artifact, &job, rows)?;
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let released = spend::release(self.purse.payer()?, None, &|name| measurement.request(name), |_| {
            let _reading = Reading::new("reading", format == Format::Text);
            let measured = measurement.run(source, &entropy, threads)?;
            serde_json::to_vec(&measured).map_err(|_| Error::Host)
        })
        .map_err(|e| self.purse.failed(e, None))?;
        if released.before {
            crate::note("note: this request was released before; here are the same numbers again, and nothing was spent");
        }
        let damaged = |_| Failure(Error::Damaged("the released metrics can't be read: use a newer privfit".into()));
        let measured: Measured = serde_json::from_slice(&released.bytes).map_err(damaged)?;
        print(&measured, format);
        match (crate::output::all_written(), released.request) {
            (false, Some(request)) => {
                let why = "standard output can't be written to".to_string();
                Err(self.purse.failed(Error::Undelivered { request, committed: true, why }, None))
            }
            _ => Ok(()),
        }
    }
}

fn print(measured: &Measured, format: Format) {
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
