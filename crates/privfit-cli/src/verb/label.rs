//! `privfit label`: private labels of public points by an ensemble, students of them, and a server of labels.

use crate::args::fit::{FitArguments, ResolvedJob};
use crate::args::ledger::check_places;
use crate::args::size::size;
use crate::ui::lines::guarantee_line;
use crate::ui::progress::{Bar, Reading};
use crate::ui::{Failure, Format, note, output, print_line};
use clap::Args;
use privfit::account::{Adjacency, Event};
use privfit::data::load::Source;
use privfit::engine::Threads;
use privfit::job::label::{self, LabelJob, linear_student, student_on};
use privfit::job::release::{self, Context, OutputTarget, Release};
use privfit::job::serve::{self, InMemory, OnlineJob, Served, Stretches};
use privfit::method::ensemble::student_method;
use privfit::prediction::command::CommandArguments;
use privfit::prediction::labels::Labels;
use privfit::{Artifact, Error, publish};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

/// Shown below the flags.
pub(crate) const EXAMPLES: &str = "Examples:
  privfit label --data visits.csv --schema visits.toml --points new.csv --epsilon 1 --delta 1e-8 --out labels.json
  privfit label --data visits.csv --schema visits.toml --points new.csv --epsilon 1 --delta 1e-8 --dry-run
  privfit label ... --student additive --model model.json       # a model of what was released, at no further cost
  privfit label ... --command 'python3 learner.py' --seconds 20 --set parts=100
  privfit label --data visits.csv --schema visits.toml --epsilon 1 --delta 1e-8 --serve --unsure 50 --ledger visits.ledger --request desk < new.csv
  privfit certificate verify labels.json

A command is called with three paths: a file with the encoded rows of its part (columns x0, x1, ..., label; the label is the number of its class), one
with the encoded points, and one where it writes the number of a class for each point, a line each. Whatever else it does counts as no answer of that
part. Every part takes --seconds, so that nobody can see what it did.";

#[derive(Args)]
pub(crate) struct Label {
    #[command(flatten)]
    fit: FitArguments,
    /// Train a student on the released labels: auto, logistic, additive or network
    #[arg(long, value_name = "KIND", requires = "model")]
    student: Option<String>,
    /// Where the student goes
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Where labels go as CSV, besides
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// A learner of your own: a program and its arguments
    #[arg(long, value_name = "WORDS")]
    command: Option<String>,
    /// Seconds that the command has for a part; every part takes as long
    #[arg(long, default_value = "10", requires = "command")]
    seconds: f64,
    /// Memory that the command may use for a part, like 2GB
    #[arg(long, default_value = "2GB", value_name = "SIZE", requires = "command")]
    command_memory: String,
    /// Parts that the command is run for at once
    #[arg(long, default_value = "1", value_name = "PARTS", requires = "command")]
    at_once: usize,
    /// Features are public, and labels alone are private
    #[arg(long)]
    label_private: bool,
    /// Answer points one by one, from standard input: a line of column names, then a line for each point
    #[arg(long, conflicts_with_all = ["student", "command", "table"])]
    serve: bool,
    /// Answers of a server that may be unsure; sure ones cost nothing
    #[arg(long, default_value = "20", requires = "serve")]
    unsure: u64,
}

impl Label {
    pub(crate) fn talks(&self) -> bool {
        self.fit.talks()
    }

    pub(crate) fn run(mut self) -> Result<(), Failure> {
        self.fit.for_labels = true;
        let mut resolved = self.fit.resolve()?;
        if self.label_private {
            if self.fit.adjacency.is_some() && resolved.job.adjacency != Adjacency::ReplaceOne {
                return Err(Failure::misuse(
                    "where labels alone are private, neighbours have another label in one place: leave out --adjacency, or give --adjacency replace-one",
                ));
            }
            resolved.job.settings.0.insert("label_private".into(), 1.0);
            resolved.job.adjacency = Adjacency::ReplaceOne;
        }
        if self.serve {
            return self.serve(resolved);
        }
        let command = self.command_arguments(&resolved.source)?;
        if self.fit.dry_run {
            let (rows, counted) = resolved.job.rows(None)?;
            return self.show(&label::plan(&resolved.job, rows, counted, command)?);
        }
        let destination = self.fit.destination(&resolved)?;
        let (rows, counted) = self.fit.count(&resolved)?;
        let job = label::plan(&resolved.job, rows, counted, command)?;
        let student = self.student.as_deref().map(student_method).transpose()?;
        if self.talks() {
            let plan: Vec<String> = job.describe().iter().map(|(k, v)| format!("{k} {v}")).collect();
            note(&format!("labels: {}", plan.join(", ")));
            job.warnings().iter().for_each(|warning| note(&format!("note: {warning}")));
            if let Some(seconds) = job.seconds() {
                note(&format!("note: the command takes {seconds:.0} seconds for all parts, whatever it does"));
            }
            if self.fit.simulate.is_some() {
                note("note: noise comes from a seed; the labels will be marked as not private");
            }
        }
        let labels = self.release(&job, resolved, &destination.out, &destination.entropy)?;
        if let Some(path) = &self.table {
            publish::publish(path, labels.table().as_bytes())?;
        }
        if let Some((method, path)) = student.zip(self.model.as_ref()) {
            let student = self.train_student(method, &labels)?;
            publish::publish(path, student.to_json()?.as_bytes())?;
            if self.talks() {
                print_line(&format!("student    {}", path.display()));
            }
        }
        Ok(())
    }

    fn command_arguments(&self, source: &Source) -> Result<Option<CommandArguments>, Failure> {
        let Some(text) = &self.command else { return Ok(None) };
        // It runs in a directory of its own, so that files are named by their whole path.
        let whole = |word: &str| match Path::new(word).canonicalize() {
            Ok(path) if Path::new(word).is_file() => path.display().to_string(),
            _ => word.to_string(),
        };
        let words = text.split_whitespace().map(whole).collect();
        let memory = size(&self.command_memory)?;
        let ledger = &self.fit.ledger_arguments;
        let hidden = source.files.iter().chain(&source.labels).chain(&ledger.ledger_key).cloned();
        let hidden = hidden.chain(ledger.ledger.iter().map(PathBuf::from)).collect();
        Ok(Some(CommandArguments { words, seconds: self.seconds, memory, at_once: self.at_once, hidden }))
    }

    fn train_student(&self, method: Option<&str>, labels: &Labels) -> Result<Artifact, Failure> {
        match method {
            None => Ok(linear_student(labels)),
            Some(method) => {
                let points = Source { files: self.fit.auxiliary.clone(), labels: Vec::new() };
                Ok(student_on(labels, &points, method, &Threads::new(self.fit.threads()))?)
            }
        }
    }

    /// Spends, labels and publishes.
    fn release(
        &self,
        job: &LabelJob,
        resolved: ResolvedJob,
        out: &Path,
        entropy: &privfit::kernel::Entropy,
    ) -> Result<Labels, Failure> {
        let arguments = &self.fit.ledger_arguments;
        check_places(&self.fit.data, &self.fit.labels, arguments, out)?;
        let engine = Threads::new(self.fit.threads());
        let reading = std::cell::Cell::new(None);
        let (bar, talk) = (std::cell::OnceCell::new(), self.talks());
        let context = Context {
            source: &resolved.source,
            engine: &engine,
            entropy,
            ledger: arguments.session()?,
            declared: resolved.declared,
            out: Some(OutputTarget { path: out, replace: self.fit.force }),
            checkpoint: None,
            opening: &|| reading.set(Some(Reading::new("reading", talk))),
            opened: &|| {
                drop(reading.take());
                bar.get_or_init(|| Bar::new(job.steps(), talk, "parts and points"));
            },
            progress: &|| bar.get().into_iter().for_each(Bar::step),
        };
        let delivered = release::release(job, context).map_err(|e| arguments.failed(e, Some(out)))?;
        drop(reading.take());
        bar.get().into_iter().for_each(Bar::finish);
        if delivered.before {
            note("note: this request was released before; here are the same labels again, and nothing was spent");
        }
        let Some(labels) = delivered.output.into_labels() else { return Err(Failure(Error::Host)) };
        self.print(&labels, out);
        if !output::all_written() {
            note(&format!("note: the labels are complete in {}; what was printed about them is lost", out.display()));
        }
        Ok(labels)
    }

    fn print(&self, labels: &Labels, out: &Path) {
        let g = &labels.student.guarantee;
        if self.fit.format == Format::Json {
            let json = serde_json::json!({
                "labels": out.display().to_string(), "points": labels.answers.len(), "answered": labels.answered(), "parts": labels.parts,
                "noise": labels.noise, "adjacency": g.adjacency.name(), "private": g.private, "simulated": g.simulated,
                "epsilon": {"zero_out": g.zero_out, "replace_one": g.replace_one}, "delta": g.delta,
                "ledger": labels.student.certificate.identity.ledger,
            });
            print_line(&json.to_string());
            return;
        }
        print_line(&format!("answered   {} of {} points", labels.answered(), labels.answers.len()));
        match &g.event {
            Event::NotPrivate { why } => print_line(&format!("guarantee  none: {why} (epsilon is infinite)")),
            _ => print_line(&format!("guarantee  {}", guarantee_line(g.zero_out, g.replace_one, g.delta))),
        }
        if let Some(position) = &labels.student.certificate.identity.ledger {
            print_line(&format!("ledger     {}", release::line(position)));
        }
        print_line(&format!("labels     {}", out.display()));
    }

    /// The plan: no data are opened.
    fn show(&self, job: &LabelJob) -> Result<(), Failure> {
        let delta = job.facts().target.delta;
        let view = |a| privfit::training::epsilon(job.event(), a, delta);
        let (zero, replace) = (view(Adjacency::ZeroOut), view(Adjacency::ReplaceOne));
        if self.fit.format == Format::Json {
            let plan: serde_json::Map<String, serde_json::Value> =
                job.describe().into_iter().map(|(k, v)| (k.to_string(), v.into())).collect();
            let offers: Vec<serde_json::Value> =
                job.offers().iter().map(|(answers, share)| serde_json::json!({"answers": answers, "agreement": share})).collect();
            print_line(
                &serde_json::json!({
                    "points": job.points(), "plan": plan, "offers": offers, "delta": delta, "event": job.event(),
                    "epsilon": {"zero_out": zero, "replace_one": replace}, "warnings": job.warnings(), "seconds": job.seconds(),
                })
                .to_string(),
            );
            return Ok(());
        }
        for (key, value) in job.describe() {
            print_line(&format!("plan      {key}: {value}"));
        }
        for (answers, share) in job.offers() {
            print_line(&format!("buys      {answers} answers, right to 95 % where {:.0} % of the parts agree", 100.0 * share));
        }
        print_line(&format!("cost      {}", guarantee_line(zero, replace, delta)));
        if let Some(seconds) = job.seconds() {
            print_line(&format!("time      {seconds:.0} seconds for the command, whatever it does"));
        }
        job.warnings().iter().for_each(|warning| print_line(&format!("warning   {warning}")));
        if let Some(line) = self.fit.ledger_arguments.forecast(job)? {
            print_line(&format!("ledger    {line}"));
        }
        print_line("no data were opened; leave out --dry-run to label");
        Ok(())
    }

    fn serve(&self, resolved: ResolvedJob) -> Result<(), Failure> {
        if self.fit.dry_run {
            let (rows, counted) = resolved.job.rows(None)?;
            return self.show_server(&serve::plan(&resolved.job, rows, counted, self.unsure)?);
        }
        if resolved.source.files.is_empty() {
            return Err(Failure::misuse("no data are given: add --data FILE"));
        }
        let entropy = match self.fit.simulate {
            None => privfit::kernel::Entropy::system().map_err(Error::from)?,
            Some(seed) => privfit::kernel::Entropy::simulated(seed),
        };
        let (rows, counted) = self.fit.count(&resolved)?;
        let job = serve::plan(&resolved.job, rows, counted, self.unsure)?;
        let arguments = &self.fit.ledger_arguments;
        let (mut in_ledger, mut in_memory) = (None, InMemory::default());
        match (arguments.open()?, &arguments.request) {
            (Some(ledger), Some(name)) => in_ledger = Some(job.reserve(ledger, name)?),
            _ if self.fit.simulate.is_some() => {}
            _ => {
                return Err(Failure::misuse(
                    "a server writes down what it spends before it answers: add --ledger FILE and --request NAME, the same after a restart",
                ));
            }
        }
        crate::ui::quiet();
        if self.talks() {
            let plan: Vec<String> = job.describe().iter().map(|(k, v)| format!("{k} {v}")).collect();
            note(&format!("server: {}", plan.join(", ")));
            if self.fit.simulate.is_some() {
                note("note: noise comes from a seed; these answers are not private");
            }
        }
        let data = job.open(&resolved.source, &entropy)?;
        let engine = Threads::new(self.fit.threads());
        let mut lines = std::io::stdin().lock().lines();
        let header = lines.next().and_then(Result::ok).unwrap_or_default();
        job.point(&header, "")?;
        let mut next = || lines.next().and_then(Result::ok).map(|line| job.point(&header, &line).unwrap_or_else(|_| job.blank()));
        let mut answer = |label: Option<usize>| -> privfit::Result<()> {
            let text = match (self.fit.format, label) {
                (Format::Json, label) => {
                    let mut line = serde_json::json!({"label": label.map(|l| job.class_name(l))});
                    if self.fit.simulate.is_some() {
                        line["private"] = false.into();
                    }
                    line.to_string()
                }
                (_, label) => label.map_or("?".into(), |l| job.class_name(l)),
            };
            let mut out = std::io::stdout().lock();
            let written = writeln!(out, "{text}").and_then(|()| out.flush());
            written.map_err(|_| Error::output("standard output can't be written to: check the disk, or who reads it"))
        };
        let stretches: &mut dyn Stretches = match &mut in_ledger {
            Some(stretches) => stretches,
            None => &mut in_memory,
        };
        let served = job.serve(&data, &engine, &entropy, stretches, &mut next, &mut answer);
        let served = served.map_err(|error| if matches!(error, Error::Misuse(_)) { Error::Host } else { error })?;
        if served == Served::Ended {
            in_ledger.as_mut().map_or(Ok(()), |stretches| stretches.finish())?;
            note("note: all unsure answers are spent, and this request answers nothing more");
        }
        Ok(())
    }

    fn show_server(&self, job: &OnlineJob) -> Result<(), Failure> {
        let delta = job.facts().target.delta;
        let view = |a| privfit::training::epsilon(job.event(), a, delta);
        let (zero, replace) = (view(Adjacency::ZeroOut), view(Adjacency::ReplaceOne));
        if self.fit.format == Format::Json {
            let plan: serde_json::Map<String, serde_json::Value> =
                job.describe().into_iter().map(|(k, v)| (k.to_string(), v.into())).collect();
            print_line(
                &serde_json::json!({
                    "plan": plan, "event": job.event(), "delta": delta, "epsilon": {"zero_out": zero, "replace_one": replace},
                })
                .to_string(),
            );
            return Ok(());
        }
        job.describe().iter().for_each(|(key, value)| print_line(&format!("plan      {key}: {value}")));
        if job.is_hopeless() {
            print_line("warning   no answer can be sure: give more parts, fewer unsure answers or a larger epsilon");
        }
        print_line(&format!("cost      {}", guarantee_line(zero, replace, delta)));
        print_line("no data were opened; leave out --dry-run to serve");
        Ok(())
    }
}
