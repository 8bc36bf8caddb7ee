//! `privfit fit`: train a model from a file.

use crate::certificate::selected_line;
use crate::ledger_arguments::LedgerArguments;
use crate::progress::{Bar, Reading};
use crate::style::shell;
use crate::{Failure, Format, print_line, quiet};
use clap::Args;
use privfit::account::{Adjacency, Event};
use privfit::certificate::Declared;
use privfit::constraint::Constraint;
use privfit::data::load::{Source, public_features};
use privfit::engine::Threads;
use privfit::job::fit::{Job, Prepared, prepare};
use privfit::job::release::{self, Context, OutputTarget, Release};
use privfit::kernel::Entropy;
use privfit::loss::Task;
use privfit::method::Settings;
use privfit::schema::toml_problem;
use privfit::{Artifact, Error, Schema, small_file};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  privfit fit examples/adult/job.toml
  privfit fit --data visits.csv --schema visits.toml --epsilon 1 --delta 1e-8 --out model.json
  privfit fit examples/adult/job.toml --epsilon 0.1 --dry-run
  privfit fit examples/adult/job.toml --ledger adult.ledger --request monday
  privfit fit --data visits.csv --schema counts.toml --loss quantile --set quantile=0.9 --epsilon 1 --delta 1e-8 --out model.json

A job file holds the same keys as the flags (data, labels, auxiliary, schema, rows, epsilon, delta, adjacency, loss, method, constraint, out, force,
threads, ledger, ledger_key, request, date, and tables [set] and [registry]); paths in it are relative to it, and flags win over it."
)]
pub(crate) struct Fit {
    /// Job file with the same keys as the flags
    job: Option<PathBuf>,
    /// Files with records: CSV, CSV.gz, Parquet, LIBSVM, NumPy, IDX
    #[arg(long, num_args = 1..)]
    pub(crate) data: Vec<PathBuf>,
    /// Files with labels, for formats that keep them apart
    #[arg(long, num_args = 1..)]
    pub(crate) labels: Vec<PathBuf>,
    /// PUBLIC rows without labels, for transfer methods: what the teacher answers for them teaches the student
    #[arg(long, num_args = 1..)]
    auxiliary: Vec<PathBuf>,
    /// Public facts: bounds, categories, classes, unit of privacy
    #[arg(long)]
    schema: Option<PathBuf>,
    /// Number of rows (or units), if it is to be declared rather than counted
    #[arg(long)]
    rows: Option<u64>,
    /// Privacy parameter epsilon
    #[arg(long)]
    epsilon: Option<f64>,
    /// Privacy parameter delta
    #[arg(long)]
    delta: Option<f64>,
    /// zero-out (default), replace-one or add-remove
    #[arg(long)]
    adjacency: Option<String>,
    /// logistic, softmax, huber-svm, hinge; squared, huber, quantile, poisson; mean, geometric-median (see `privfit methods`)
    #[arg(long)]
    loss: Option<String>,
    /// auto (default), or a method of `privfit methods`
    #[arg(long)]
    method: Option<String>,
    /// A setting of method or loss, like steps=200
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// none (default), l2:R, l1:R, box:LOW:HIGH or simplex:R
    #[arg(long)]
    constraint: Option<String>,
    /// Where the model goes
    #[arg(long)]
    out: Option<PathBuf>,
    /// Replace a file that is there; without it only the same --request may deliver the same model again
    #[arg(long)]
    force: bool,
    /// Threads; all cores by default
    #[arg(long)]
    threads: Option<usize>,
    /// Print plan, noise, cost and a forecast; open no data
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take noise from a seed: repeatable, and NOT private
    #[arg(long, value_name = "SEED")]
    pub(crate) simulate: Option<u64>,
    /// Accept a delta of 1/rows or more
    #[arg(long)]
    allow_large_delta: bool,
    /// Run a published form for comparison, and show what it truly guarantees
    #[arg(long)]
    compare: bool,
    #[command(flatten)]
    pub(crate) ledger_arguments: LedgerArguments,
    /// Day for the certificate, as YYYY-MM-DD; none by default
    #[arg(long, value_name = "DAY")]
    date: Option<String>,
    /// What the job declares about the model
    #[arg(skip)]
    registry: Declared,
    /// What is to be tuned
    #[arg(skip)]
    pub(crate) tuning: Option<toml::Table>,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

/// Keys of a job file.
const KEYS: &str = "data, labels, auxiliary, schema, rows, epsilon, delta, adjacency, loss, method, constraint, out, force, threads, \
                    ledger, ledger_key, request, allow_large_delta, compare, date, set, registry, tune";

/// What flags and job file say.
pub(crate) struct Asked {
    pub(crate) job: Job,
    pub(crate) source: Source,
    pub(crate) declared: Declared,
}

/// Where the model goes, and what the noise is made from.
pub(crate) struct Place {
    out: PathBuf,
    entropy: Entropy,
}

impl Fit {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let asked = self.ask()?;
        if self.tuning.is_some() {
            return Err(Failure::misuse("the job has a table [tune]: run `privfit tune` with it, or remove the table"));
        }
        if self.dry_run {
            let (rows, counted) = asked.job.rows(None)?;
            return self.show_plan(&asked.job, &prepare(&asked.job, rows, counted)?);
        }
        let place = self.place(&asked)?;
        let (rows, counted) = self.count(&asked)?;
        let prepared = prepare(&asked.job, rows, counted)?;
        self.say_plan(&prepared);
        self.release(&prepared, asked, &place)
    }

    /// Everything that flags and job file say.
    pub(crate) fn ask(&mut self) -> Result<Asked, Failure> {
        if let Some(path) = self.job.clone() {
            self.read_job(&path)?;
        }
        let Some(schema_path) = &self.schema else {
            return Err(Failure::misuse("no schema is given: add --schema FILE (start with `privfit schema init DATA`)"));
        };
        let text = read_text(schema_path, "schema")?;
        let schema = Schema::parse(&text)?;
        let settings = settings(&self.set)?;
        let auxiliary = match self.auxiliary.is_empty() {
            true => None,
            false => Some(std::sync::Arc::new(public_features(&self.auxiliary, &schema)?)),
        };
        let source = Source { files: self.data.clone(), labels: self.labels.clone() };
        let job = Job {
            schema,
            rows: self.rows,
            epsilon: self.epsilon.ok_or_else(|| Failure::misuse("epsilon is missing: add --epsilon (1 is a common choice)"))?,
            delta: self.delta,
            adjacency: match &self.adjacency {
                None => Adjacency::ZeroOut,
                Some(text) => text.parse().map_err(Error::from)?,
            },
            loss: self.loss.clone(),
            method: self.method.clone().unwrap_or_else(|| "auto".into()),
            settings,
            constraint: self.constraint.as_deref().map_or(Ok(Constraint::None), Constraint::parse)?,
            allow_large_delta: self.allow_large_delta,
            compare: self.compare,
            auxiliary,
        };
        self.ledger_arguments.check(self.simulate.is_some())?;
        let declared = self.date.as_deref().map_or(Ok(Declared::default()), Declared::on)?.or(self.registry.clone());
        Ok(Asked { job, source, declared })
    }

    /// Where the model goes, and randomness: both before data are opened. From here on a failure says nothing.
    pub(crate) fn place(&self, asked: &Asked) -> Result<Place, Failure> {
        if asked.source.files.is_empty() {
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
        Ok(Place { out, entropy })
    }

    /// Refuses to lose a file, as training does before anything is reserved; for whoever works long before that.
    pub(crate) fn check_target(&self, place: &Place) -> Result<(), Failure> {
        let target = OutputTarget { path: &place.out, replace: self.force };
        Ok(target.check(self.ledger_arguments.session()?.as_mut())?)
    }

    pub(crate) fn talks(&self) -> bool {
        self.format == Format::Text
    }

    /// Number of rows, and whether it was counted.
    pub(crate) fn count(&self, asked: &Asked) -> Result<(u64, bool), Failure> {
        let _counting = Reading::new("counting", self.talks());
        Ok(asked.job.rows(Some(&asked.source))?)
    }

    /// Spends, trains, publishes and reports.
    pub(crate) fn release(&self, job: &dyn Release, asked: Asked, place: &Place) -> Result<(), Failure> {
        let talk = self.talks();
        crate::ledger_arguments::check_places(&self.data, &self.labels, &self.ledger_arguments, &place.out)?;
        let engine = Threads::new(self.threads());
        let reading = std::cell::Cell::new(None);
        let bar = std::cell::OnceCell::new();
        let context = Context {
            source: &asked.source,
            engine: &engine,
            entropy: &place.entropy,
            ledger: self.ledger_arguments.session()?,
            declared: asked.declared,
            out: Some(OutputTarget { path: &place.out, replace: self.force }),
            opening: &|| reading.set(Some(Reading::new("reading", talk))),
            opened: &|| {
                drop(reading.take());
                bar.get_or_init(|| Bar::new(job.steps(), talk, "training"));
            },
            progress: &|| bar.get().into_iter().for_each(Bar::step),
        };
        let delivered = release::release(job, context).map_err(|e| self.ledger_arguments.failed(e, Some(&place.out)))?;
        drop(reading.take());
        bar.get().into_iter().for_each(Bar::finish);
        let Some(artifact) = delivered.output.into_model() else { return Err(Failure(Error::Host)) };
        let position = artifact.certificate.identity.ledger.clone();
        if delivered.before {
            crate::note("note: this request was released before; here is the same model again, and nothing was spent");
            return self.report(&artifact, &place.out, None);
        }
        self.report(&artifact, &place.out, position.map(|p| release::line(&p)))
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    }

    /// Fills in what no flag says.
    fn read_job(&mut self, path: &Path) -> Result<(), Failure> {
        let text = read_text(path, "job")?;
        let table: toml::Table = toml::from_str(&text)
            .map_err(|e| Failure::misuse(format!("{} is not valid TOML: {}", path.display(), toml_problem(&text, &e))))?;
        let base = path.parent().unwrap_or(Path::new(""));
        let wrong = |key: &str, fix: &str| Failure::misuse(format!("job {}: {key}: {fix}", path.display()));
        for (key, value) in table {
            let text = value.as_str().map(str::to_string);
            let number = value.as_float().or(value.as_integer().map(|i| i as f64));
            let whole = value.as_integer().filter(|i| *i > 0).map(|i| i as u64);
            let paths = || -> Option<Vec<PathBuf>> {
                match &value {
                    toml::Value::String(s) => Some(vec![base.join(s)]),
                    toml::Value::Array(a) => a.iter().map(|v| v.as_str().map(|s| base.join(s))).collect(),
                    _ => None,
                }
            };
            let need_text = || text.clone().ok_or_else(|| wrong(&key, "give text in quotes"));
            let need_number = || number.ok_or_else(|| wrong(&key, "give a number"));
            let need_whole = || whole.ok_or_else(|| wrong(&key, "give a whole number of at least 1"));
            let need_paths = || paths().ok_or_else(|| wrong(&key, "give a path, or a list of them"));
            match key.as_str() {
                "data" if self.data.is_empty() => self.data = need_paths()?,
                "labels" if self.labels.is_empty() => self.labels = need_paths()?,
                "auxiliary" if self.auxiliary.is_empty() => self.auxiliary = need_paths()?,
                "schema" if self.schema.is_none() => self.schema = Some(base.join(need_text()?)),
                "out" if self.out.is_none() => self.out = Some(base.join(need_text()?)),
                "rows" if self.rows.is_none() => self.rows = Some(need_whole()?),
                "threads" if self.threads.is_none() => self.threads = Some(need_whole()? as usize),
                "epsilon" if self.epsilon.is_none() => self.epsilon = Some(need_number()?),
                "delta" if self.delta.is_none() => self.delta = Some(need_number()?),
                "adjacency" if self.adjacency.is_none() => self.adjacency = Some(need_text()?),
                "ledger" if self.ledger_arguments.ledger.is_none() => {
                    let place = need_text()?;
                    let path = if place.contains("://") { place } else { base.join(place).display().to_string() };
                    self.ledger_arguments.ledger = Some(path);
                }
                "ledger_key" if self.ledger_arguments.ledger_key.is_none() => {
                    self.ledger_arguments.ledger_key = Some(base.join(need_text()?))
                }
                "request" if self.ledger_arguments.request.is_none() => self.ledger_arguments.request = Some(need_text()?),
                "loss" if self.loss.is_none() => self.loss = Some(need_text()?),
                "method" if self.method.is_none() => self.method = Some(need_text()?),
                "constraint" if self.constraint.is_none() => self.constraint = Some(need_text()?),
                "allow_large_delta" => {
                    self.allow_large_delta |= value.as_bool().ok_or_else(|| wrong(&key, "give true or false"))?;
                }
                "date" if self.date.is_none() => self.date = Some(text.unwrap_or_else(|| value.to_string())),
                "registry" => {
                    self.registry = Declared::parse(value.as_table().ok_or_else(|| wrong(&key, "give a table"))?)?;
                }
                "tune" => self.tuning = Some(value.as_table().ok_or_else(|| wrong(&key, "give a table"))?.clone()),
                "force" => self.force |= value.as_bool().ok_or_else(|| wrong(&key, "give true or false"))?,
                "compare" => self.compare |= value.as_bool().ok_or_else(|| wrong(&key, "give true or false"))?,
                "set" => {
                    let table = value.as_table().ok_or_else(|| wrong(&key, "give a table of numbers"))?;
                    for (name, value) in table {
                        let number = value.as_float().or(value.as_integer().map(|i| i as f64));
                        let number = number.ok_or_else(|| wrong(name, "give a number"))?;
                        if !self.set.iter().any(|s| s.split('=').next() == Some(name)) {
                            self.set.push(format!("{name}={number}"));
                        }
                    }
                }
                "data" | "labels" | "auxiliary" | "schema" | "out" | "rows" | "threads" | "epsilon" | "delta" | "adjacency"
                | "loss" | "method" | "constraint" | "ledger" | "ledger_key" | "request" | "date" => {}
                _ => {
                    let hint = privfit::nearest::hint(&key, KEYS.split(", "));
                    return Err(wrong(&key, &format!("unknown key: {hint}known are {KEYS}")));
                }
            }
        }
        Ok(())
    }

    fn say_plan(&self, prepared: &Prepared) {
        if !self.talks() {
            return;
        }
        let reason = prepared.reason.map_or(String::new(), |r| format!(" (chosen because {r})"));
        let plan: Vec<String> = prepared.plan.describe().iter().map(|(k, v)| format!("{k} {v}")).collect();
        crate::note(&format!(
            "method {}, loss {}{reason}: {}",
            prepared.method.name,
            prepared.problem.loss.name,
            plan.join(", ")
        ));
        if self.simulate.is_some() {
            crate::note("note: noise comes from a seed; the model will be marked as not private");
        }
    }

    fn show_plan(&self, job: &Job, prepared: &Prepared) -> Result<(), Failure> {
        let event = prepared.plan.event();
        let delta = prepared.problem.target.delta;
        let view = |a| privfit::artifact::epsilon(event, a, delta);
        let (zero, replace) = (view(Adjacency::ZeroOut), view(Adjacency::ReplaceOne));
        let forecast = privfit::forecast::forecast(&prepared.problem, prepared.plan.as_ref());
        if self.format == Format::Json {
            let plan: serde_json::Map<String, serde_json::Value> =
                prepared.plan.describe().into_iter().map(|(k, v)| (k.to_string(), v.into())).collect();
            let json = serde_json::json!({
                "method": prepared.method.name, "loss": prepared.problem.loss.name, "rows": prepared.problem.rows,
                "features": prepared.problem.features, "adjacency": job.adjacency.name(), "delta": delta,
                "epsilon": {"zero_out": zero, "replace_one": replace}, "plan": plan, "event": event,
                "forecast": forecast.json(),
            });
            print_line(&json.to_string());
            return Ok(());
        }
        let reason = prepared.reason.map_or(String::new(), |r| format!(" because {r}"));
        print_line(&format!("method    {}, loss {}{reason}", prepared.method.name, prepared.problem.loss.name));
        print_line(&format!("data      {} rows, {} encoded features", prepared.problem.rows, prepared.problem.features));
        for (key, value) in prepared.plan.describe() {
            print_line(&format!("plan      {key}: {value}"));
        }
        if prepared.method.published {
            print_line(&format!("claimed   epsilon {} at delta {delta:e}", job.epsilon));
        }
        print_line(&format!("cost      {}", guarantee_line(zero, replace, delta)));
        print_line(&format!("forecast  {}: {}", forecast.what, forecast.text()));
        if let Some(line) = self.ledger_arguments.forecast(prepared)? {
            print_line(&format!("ledger    {line}"));
        }
        print_line("no data were opened; leave out --dry-run to train");
        Ok(())
    }

    fn report(&self, artifact: &Artifact, out: &Path, spent: Option<String>) -> Result<(), Failure> {
        let told = self.tell(artifact, out, spent);
        if !crate::output::all_written() {
            crate::note(&format!("note: the model is complete in {}; what was printed about it is lost", out.display()));
        }
        told
    }

    fn tell(&self, artifact: &Artifact, out: &Path, spent: Option<String>) -> Result<(), Failure> {
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
        print_line(&format!("public     {}", artifact.training.public.join("; ")));
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

pub(crate) fn guarantee_line(zero: Option<f64>, replace: Option<f64>, delta: f64) -> String {
    let up = |e: Option<f64>| e.map_or("infinite".into(), privfit::certificate::up);
    let delta = if delta == 0.0 { "0".to_string() } else { format!("{delta:e}") };
    format!("epsilon {} under zero-out, {} under replace-one, at delta {delta}", up(zero), up(replace))
}

pub(crate) fn read_text(path: &Path, what: &str) -> Result<String, Failure> {
    small_file::read_text(path, small_file::TEXT)
        .map_err(|e| Failure::misuse(format!("cannot read the {what} {}: {e}; check the path", path.display())))
}

pub(crate) fn settings(set: &[String]) -> Result<Settings, Failure> {
    let mut out = BTreeMap::new();
    for pair in set {
        let parsed = pair.split_once('=').and_then(|(k, v)| v.parse::<f64>().ok().map(|v| (k, v)));
        let Some((key, value)) = parsed.filter(|p| p.1.is_finite()) else {
            return Err(Failure::misuse(format!("--set {pair}: give KEY=NUMBER, like steps=200")));
        };
        if out.insert(key.replace('-', "_"), value).is_some() {
            return Err(Failure::misuse(format!("--set {key} is given twice: remove one of them")));
        }
    }
    Ok(Settings(out))
}
