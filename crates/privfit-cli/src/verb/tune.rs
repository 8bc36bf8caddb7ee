//! `privfit tune`: the best of several candidates, paid for; or chosen on public rows, for free.

use crate::args::files::holds_private;
use crate::args::fit::{FitArguments, ResolvedJob};
use crate::ui::lines::guarantee_line;
use crate::ui::progress::Bar;
use crate::ui::{Failure, Format, note, print_line};
use clap::Args;
use privfit::account::Adjacency;
use privfit::data::load::Source;
use privfit::engine::Threads;
use privfit::job::Release;
use privfit::job::fit::prepare;
use privfit::job::tune::{self, Tuned, Tuning};
use privfit::job::tune_public;
use std::path::PathBuf;

/// Shown below the flags.
pub(crate) const EXAMPLES: &str = "Examples:
  privfit tune examples/tuning/job.toml --dry-run
  privfit tune examples/tuning/job.toml
  privfit tune examples/tuning/job.toml --public public.csv

The job file says what is tried, in a table [tune]:

  [tune]
  runs = 120             # most runs that count; six for each candidate by default
  distribution = \"harmonic\"       # or uniform; or geometric, logarithmic, poisson with a mean of `runs`
  held_out = 0.1         # part of the records that scores are made from
  [tune.grid]            # every combination; or a list of [[tune.candidate]]
  ridge = [1, 10, 100]

The winner's score is the best of several, so it is too high: by how much at most, on average and in 95 of 100 tunings, is printed with it.
How many runs counted stays secret, so as many are made in any case. The price of everything together is printed before data are opened.";

#[derive(Args)]
pub(crate) struct Tune {
    #[command(flatten)]
    fit: FitArguments,
    /// PUBLIC labelled rows to choose on: costs nothing, and the winner gets the whole budget
    #[arg(long, num_args = 1..)]
    public: Vec<PathBuf>,
    /// Labels of the public rows, for formats that keep them apart
    #[arg(long, num_args = 1.., requires = "public")]
    public_labels: Vec<PathBuf>,
}

impl Tune {
    pub(crate) fn talks(&self) -> bool {
        self.fit.talks()
    }

    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let resolved = self.fit.resolve()?;
        if self.fit.memory.is_some() {
            return Err(Failure::misuse("--memory is for `privfit fit`, because tuning has many runs: leave it out"));
        }
        let Some(table) = &self.fit.tuning else {
            return Err(Failure::misuse(
                "the job names no candidates: add a table [tune.grid] to it, like  ridge = [1, 10, 100]",
            ));
        };
        let tuning = Tuning::parse(table)?;
        if self.fit.pretraining.is_some() {
            return Err(Failure::misuse(
                "the job has a table [pretrain], and layers from public rows are not tuned: run `privfit fit` without [tune], or remove [pretrain]",
            ));
        }
        if !self.public.is_empty() {
            return self.on_public_rows(resolved, &tuning);
        }
        if self.fit.dry_run {
            let (rows, counted) = resolved.job.rows(None)?;
            return self.show(&resolved, &tune::prepare(&resolved.job, &tuning, rows, counted)?);
        }
        let destination = self.fit.destination(&resolved)?;
        let (rows, counted) = self.fit.count(&resolved)?;
        let tuned = tune::prepare(&resolved.job, &tuning, rows, counted)?;
        if self.fit.talks() {
            let plan: Vec<String> = tuned.describe().iter().map(|(k, v)| format!("{k} {v}")).collect();
            note(&format!("tuning: {}", plan.join(", ")));
            note(&format!("price: {}, for everything together", cost(&tuned, &resolved)));
        }
        self.fit.release(&tuned, resolved, &destination)
    }

    /// Chooses on public rows, then trains the winner as a job of its own.
    fn on_public_rows(&self, mut resolved: ResolvedJob, tuning: &Tuning) -> Result<(), Failure> {
        let public = Source { files: self.public.clone(), labels: self.public_labels.clone() };
        if self.fit.dry_run {
            print_line(
                "cost      nothing: candidates are tried on rows that are declared public; the winner costs what `fit` costs",
            );
            return Ok(());
        }
        let private = [&self.fit.data[..], &self.fit.labels].concat();
        if let Some(path) = holds_private(self.public.iter().chain(&self.public_labels), &private) {
            return Err(Failure::misuse(format!(
                "{} holds the private records: give other rows to --public, or leave it out and pay",
                path.display()
            )));
        }
        let destination = self.fit.destination(&resolved)?;
        self.fit.check_target(&destination)?;
        let (rows, counted) = self.fit.count(&resolved)?;
        let bar = Bar::new(tune_public::steps(tuning), self.fit.talks(), "trying on public rows");
        let tried = tune_public::rank(&resolved.job, tuning, rows, &public, &Threads::new(self.fit.threads()), &|| bar.step())?;
        bar.finish();
        if self.fit.talks() {
            for (place, one) in tried.iter().take(5).enumerate() {
                note(&format!("{}. {:.4}  {}", place + 1, one.score, one.candidate.text()));
            }
            if tried.len() > 1 {
                note(&format!(
                    "note: the first score is the best of {}, so it is too high for new rows; evaluate on public rows that were not used here",
                    tried.len()
                ));
            }
        }
        resolved.job = tune_public::job_of(&tried[0].candidate, &resolved.job);
        let prepared = prepare(&resolved.job, rows, counted)?.chosen_on_public_rows(tried.len());
        self.fit.release(&prepared, resolved, &destination)
    }

    /// The plan: no data are opened.
    fn show(&self, resolved: &ResolvedJob, tuned: &Tuned) -> Result<(), Failure> {
        if self.fit.format == Format::Json {
            let candidates: Vec<serde_json::Value> = tuned
                .candidates()
                .map(|(text, p)| serde_json::json!({"candidate": text, "method": p.method.name, "event": p.plan.event()}))
                .collect();
            let plan: serde_json::Map<String, serde_json::Value> =
                tuned.describe().into_iter().map(|(k, v)| (k.to_string(), v.into())).collect();
            let delta = resolved.job.delta;
            let view = |a| privfit::training::epsilon(tuned.event(), a, delta.unwrap_or(0.0));
            print_line(
                &serde_json::json!({
                    "epsilon": {"zero_out": view(Adjacency::ZeroOut), "replace_one": view(Adjacency::ReplaceOne)}, "delta": delta,
                    "runs": tuned.runs(), "plan": plan, "candidates": candidates, "event": tuned.event(),
                })
                .to_string(),
            );
            return Ok(());
        }
        for (key, value) in tuned.describe() {
            print_line(&format!("plan      {key}: {value}"));
        }
        for (number, (text, prepared)) in tuned.candidates().enumerate() {
            print_line(&format!("candidate {}: {text} ({})", number + 1, prepared.method.name));
        }
        print_line(&format!("cost      {}, for everything together", cost(tuned, resolved)));
        if let Some(line) = self.fit.ledger_arguments.forecast(tuned)? {
            print_line(&format!("ledger    {line}"));
        }
        print_line("no data were opened; leave out --dry-run to tune");
        Ok(())
    }
}

fn cost(tuned: &Tuned, resolved: &ResolvedJob) -> String {
    let delta = resolved.job.delta.unwrap_or(0.0);
    let view = |a| privfit::training::epsilon(tuned.event(), a, delta);
    guarantee_line(view(Adjacency::ZeroOut), view(Adjacency::ReplaceOne), delta)
}
