//! Training as `fit` and `tune` do it: spend, open, train, publish, report.

use crate::args::fit::{FitArguments, ResolvedJob};
use crate::args::ledger::check_places;
use crate::ui::lines::{guarantee_line, selected_line};
use crate::ui::progress::{Bar, Reading};
use crate::ui::spent::SpentSoFar;
use crate::ui::style::shell;
use crate::ui::{Failure, Format, note, output, print_line, quiet};
use privfit::account::Event;
use privfit::engine::Threads;
use privfit::job::release::{self, Context, OutputTarget, Release};
use privfit::kernel::Entropy;
use privfit::schema::Task;
use privfit::{Artifact, Error};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Where the model goes, and what the noise is made from.
pub(crate) struct Destination {
    pub(crate) out: PathBuf,
    pub(crate) entropy: Entropy,
}

impl FitArguments {
    /// Where the model goes, and randomness: both before data are opened. From here on a failure says nothing.
    pub(crate) fn destination(&self, resolved: &ResolvedJob) -> Result<Destination, Failure> {
        if resolved.source.files.is_empty() {
            return Err(Failure::misuse("no data are given: add --data FILE"));
        }
        let Some(out) = self.out.clone() else {
            return Err(Failure::misuse("no place for the model is given: add --out model.json"));
        };
        let entropy = match self.simulate {
            None => Entropy::system().map_err(Error::from)?,
            Some(seed) => Entropy::simulated(seed),
        };
        quiet();
        Ok(Destination { out, entropy })
    }

    /// Refuses to lose a file, as training does before anything is reserved; for whoever works long before that.
    pub(crate) fn check_target(&self, destination: &Destination) -> Result<(), Failure> {
        let target = OutputTarget { path: &destination.out, replace: self.force };
        Ok(target.check(self.ledger_arguments.session()?.as_mut())?)
    }

    /// Number of rows, and whether it was counted.
    pub(crate) fn count(&self, resolved: &ResolvedJob) -> Result<(u64, bool), Failure> {
        let _counting = Reading::new("counting", self.talks());
        Ok(resolved.job.rows(Some(&resolved.source))?)
    }

    /// Spends, trains, publishes and reports.
    pub(crate) fn release(&self, job: &dyn Release, resolved: ResolvedJob, destination: &Destination) -> Result<(), Failure> {
        let talk = self.talks();
        check_places(&self.data, &self.labels, &self.ledger_arguments, &destination.out)?;
        let engine = Threads::new(self.threads());
        let reading = std::cell::Cell::new(None);
        let bar = std::cell::OnceCell::new();
        let all = job.steps();
        // Worked out now, and where somebody looks: when data are open nothing is but the run.
        let facts = job.facts();
        let watched = talk && self.simulate.is_none() && std::io::stderr().is_terminal();
        let counted = watched.then(|| SpentSoFar::of(job.event(), all, facts.adjacency, facts.target.delta)).flatten();
        let spent = std::cell::Cell::new(counted);
        let going_on = |done: u64| {
            bar.get().into_iter().for_each(|bar: &Bar| bar.go_on_from(done));
            if talk {
                note(&format!("note: going on after step {done} of {all}"));
            }
        };
        let context = Context {
            source: &resolved.source,
            engine: &engine,
            entropy: &destination.entropy,
            ledger: self.ledger_arguments.session()?,
            declared: resolved.declared,
            out: Some(OutputTarget { path: &destination.out, replace: self.force }),
            checkpoint: self.checkpoint(&going_on),
            opening: &|| reading.set(Some(Reading::new("reading", talk))),
            opened: &|| {
                drop(reading.take());
                bar.get_or_init(|| Bar::new(all, talk, "training").with_spent(spent.take()));
            },
            progress: &|| bar.get().into_iter().for_each(Bar::step),
        };
        let delivered = release::release(job, context).map_err(|e| self.ledger_arguments.failed(e, Some(&destination.out)))?;
        drop(reading.take());
        bar.get().into_iter().for_each(Bar::finish);
        let Some(artifact) = delivered.output.into_model() else { return Err(Failure(Error::Host)) };
        let position = artifact.certificate.identity.ledger.clone();
        if delivered.before {
            note("note: this request was released before; here is the same model again, and nothing was spent");
            return self.report(&artifact, &destination.out, None);
        }
        self.report(&artifact, &destination.out, position.map(|p| release::line(&p)))
    }

    fn report(&self, artifact: &Artifact, out: &Path, spent: Option<String>) -> Result<(), Failure> {
        let printed = self.print(artifact, out, spent);
        if !output::all_written() {
            note(&format!("note: the model is complete in {}; what was printed about it is lost", out.display()));
        }
        printed
    }

    fn print(&self, artifact: &Artifact, out: &Path, spent: Option<String>) -> Result<(), Failure> {
        let g = &artifact.guarantee;
        if self.format == Format::Json {
            let json = serde_json::json!({
                "model": out.display().to_string(), "method": artifact.training.method, "adjacency": g.adjacency.name(),
                "private": g.private, "epsilon": {"zero_out": g.zero_out, "replace_one": g.replace_one}, "delta": g.delta,
                "simulated": g.simulated, "public": artifact.training.public,
                "selected": artifact.selected().map(|s| s.len()), "ledger": artifact.certificate.identity.ledger,
            });
            print_line(&json.to_string());
            return Ok(());
        }
        if self.compare {
            print_line(&format!("asked for  epsilon {} at delta {:e}, {}", g.asked_epsilon, g.delta, g.adjacency.name()));
        }
        if g.simulated {
            print_line("guarantee  none: the noise came from a seed (epsilon is infinite)");
        } else if let Event::NotPrivate { why } = &g.event {
            print_line(&format!("guarantee  none: {why} (epsilon is infinite)"));
        } else {
            print_line(&format!("guarantee  {}", guarantee_line(g.zero_out, g.replace_one, g.delta)));
        }
        let public: Vec<String> = artifact.training.public.iter().map(|fact| fact.to_string()).collect();
        print_line(&format!("public     {}", public.join("; ")));
        if let Some(line) = selected_line(artifact) {
            print_line(&format!("selected   {line}"));
        }
        if let Some(line) = spent {
            print_line(&format!("ledger     {line}"));
        }
        print_line(&format!("model      {}", out.display()));
        let next = match artifact.schema.task() {
            Task::Location => format!("privfit predict --model {}   # prints the point", shell(out)),
            _ => format!("privfit evaluate --model {} --data PUBLIC_ROWS", shell(out)),
        };
        print_line(&format!("next       {next}"));
        Ok(())
    }
}
