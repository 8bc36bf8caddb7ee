//! `privfit tune`: the best of several candidates, paid for; or chosen on public rows, for free.

use crate::fit::{Asked, Fit, guarantee_line};
use crate::progress::Bar;
use crate::{Failure, Format, print_line};
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
  law = \"harmonic\"       # or uniform; or geometric, logarithmic, poisson with a mean of `runs`
  held_out = 0.1         # part of the records that scores are made from
  [tune.grid]            # every combination; or a list of [[tune.candidate]]
  ridge = [1, 10, 100]

The winner's score is the best of several, so it is too high: by how much at most, on average and in 95 of 100 tunings, is printed with it.
How many runs counted stays secret, so as many are made in any case. The price of everything together is printed before data are opened.";

#[derive(Args)]
pub(crate) struct Tune {
    #[command(flatten)]
    fit: Fit,
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
        let asked = self.fit.ask()?;
        let Some(table) = &self.fit.tuning else {
            return Err(Failure::misuse(
                "the job says nothing about candidates: add a table [tune.grid] to it, like  ridge = [1, 10, 100]",
            ));
        };
        let tuning = Tuning::parse(table)?;
        if !self.public.is_empty() {
            return self.on_public_rows(asked, &tuning);
        }
        if self.fit.dry_run {
            let (rows, counted) = asked.job.rows(None)?;
            return self.show(&asked, &tune::prepare(&asked.job, &tuning, rows, counted)?);
        }
        let place = self.fit.place(&asked)?;
        let (rows, counted) = self.fit.count(&asked)?;
        let tuned = tune::prepare(&asked.job, &tuning, rows, counted)?;
        if self.fit.talks() {
            let plan: Vec<String> = tuned.describe().iter().map(|(k, v)| format!("{k} {v}")).collect();
            crate::note(&format!("tuning: {}", plan.join(", ")));
            crate::note(&format!("price: {}, for everything together", cost(&tuned, &asked)));
        }
        self.fit.release(&tuned, asked, &place)
    }

    /// Chooses on public rows, then trains the winner as a job of its own.
    fn on_public_rows(&self, mut asked: Asked, tuning: &Tuning) -> Result<(), Failure> {
        let public = Source { files: self.public.clone(), labels: self.public_labels.clone() };
        if self.fit.dry_run {
            print_line(
                "cost      nothing: candidates are tried on rows that are declared public; the winner costs what `fit` costs",
            );
            return Ok(());
        }
        let same = |a: &PathBuf, b: &PathBuf| a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
        let private = || self.fit.data.iter().chain(&self.fit.labels);
        if let Some(path) = self.public.iter().chain(&self.public_labels).find(|p| private().any(|q| same(p, q))) {
            return Err(Failure::misuse(format!(
                "{} holds the private records: give other rows to --public, or leave it out and pay",
                path.display()
            )));
        }
        let place = self.fit.place(&asked)?;
        self.fit.check_target(&place)?;
        let (rows, counted) = self.fit.count(&asked)?;
        let bar = Bar::new(tune_public::steps(tuning), self.fit.talks(), "trying on public rows");
        let tried = tune_public::rank(&asked.job, tuning, rows, &public, &Threads::new(self.fit.threads()), &|| bar.step())?;
        bar.finish();
        if self.fit.talks() {
            for (place, one) in tried.iter().take(5).enumerate() {
                crate::note(&format!("{}. {:.4}  {}", place + 1, one.score, one.candidate.text()));
            }
            if tried.len() > 1 {
                crate::note(&format!(
                    "note: the first score is the best of {}, so it is too high for new rows; evaluate on public rows that were not used here",
                    tried.len()
                ));
            }
        }
        asked.job = tune_public::job_of(&tried[0].candidate, &asked.job);
        let prepared = prepare(&asked.job, rows, counted)?.chosen_on_public_rows(tried.len());
        self.fit.release(&prepared, asked, &place)
    }

    /// The plan: no data are opened.
    fn show(&self, asked: &Asked, tuned: &Tuned) -> Result<(), Failure> {
        if self.fit.format == Format::Json {
            let candidates: Vec<serde_json::Value> = tuned
                .candidates()
                .map(|(text, p)| serde_json::json!({"candidate": text, "method": p.method.name, "event": p.plan.event()}))
                .collect();
            let plan: serde_json::Map<String, serde_json::Value> =
                tuned.describe().into_iter().map(|(k, v)| (k.to_string(), v.into())).collect();
            let delta = asked.job.delta;
            let view = |a| privfit::artifact::epsilon(tuned.event(), a, delta.unwrap_or(0.0));
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
        print_line(&format!("cost      {}, for everything together", cost(tuned, asked)));
        if let Some(line) = self.fit.ledger_arguments.forecast(tuned)? {
            print_line(&format!("ledger    {line}"));
        }
        print_line("no data were opened; leave out --dry-run to tune");
        Ok(())
    }
}

fn cost(tuned: &Tuned, asked: &Asked) -> String {
    let delta = asked.job.delta.unwrap_or(0.0);
    let view = |a| privfit::artifact::epsilon(tuned.event(), a, delta);
    guarantee_line(view(Adjacency::ZeroOut), view(Adjacency::ReplaceOne), delta)
}
