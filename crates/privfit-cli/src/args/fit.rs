//! Flags of `fit` and `tune`, and the job file that holds the same keys.

use super::files::read_text;
use super::ledger::LedgerArguments;
use super::pretrain::PretrainArguments;
use super::settings::settings;
use super::size::size;
use crate::ui::{Failure, Format, memory};
use clap::Args;
use privfit::account::Adjacency;
use privfit::certificate::Declared;
use privfit::constraint::Constraint;
use privfit::data::load::{Source, public_features};
use privfit::job::fit::Job;
use privfit::job::kept::{CheckpointArguments, CheckpointPlace};
use privfit::memory::MemoryConditions;
use privfit::schema::toml_problem;
use privfit::{Error, Schema};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  privfit fit examples/adult/job.toml
  privfit fit --data visits.csv --schema visits.toml --epsilon 1 --delta 1e-8 --out model.json
  privfit fit examples/adult/job.toml --epsilon 0.1 --dry-run
  privfit fit examples/adult/job.toml --ledger adult.ledger --request monday
  privfit fit --data train-images.idx --labels train-labels.idx --schema digits.toml --layers mnist_cnn --epsilon 3 --delta 1e-5 --out model.json
  privfit fit network.toml --memory 300MB                       # refused before data are opened if that is too little
  privfit fit --data pets.zip/train --schema pets.toml --layers cifar_cnn5 --epsilon 3 --delta 1e-5 --out model.json
  privfit fit --data scans.idx --labels scan-labels.idx --schema scans.toml --layers mnist_cnn --public-rows digits.idx --public-labels digit-labels.idx --public-schema digits.toml --epsilon 1 --delta 1e-5 --out model.json
  privfit fit network.toml --checkpoint run.checkpoint          # stopped? the same command goes on
  privfit fit network.toml --ledger visits.ledger --request monday --checkpoint ledger
  privfit fit --data visits.csv --schema counts.toml --loss quantile --set quantile=0.9 --epsilon 1 --delta 1e-8 --out model.json

A job file holds the same keys as the flags (data, labels, auxiliary, schema, rows, epsilon, delta, adjacency, loss, method, constraint, out, force,
threads, memory, ledger, ledger_key, request, checkpoint, checkpoint_every, date, and tables [model], [pretrain] with data, labels and schema of public rows, [set] and [registry]); paths in it are relative to it, and flags win over it."
)]
pub(crate) struct FitArguments {
    /// Job file with the same keys as the flags
    job: Option<PathBuf>,
    /// Files with records: CSV, CSV.gz, Parquet, LIBSVM, NumPy, IDX; a folder of pictures, or a zip file of one
    #[arg(long, num_args = 1..)]
    pub(crate) data: Vec<PathBuf>,
    /// Files with labels, for formats that keep them apart
    #[arg(long, num_args = 1..)]
    pub(crate) labels: Vec<PathBuf>,
    /// PUBLIC rows without labels, for transfer methods and private labels: what teachers answer for them teaches the student
    #[arg(long, visible_alias = "points", num_args = 1..)]
    pub(crate) auxiliary: Vec<PathBuf>,
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
    pub(crate) adjacency: Option<String>,
    /// logistic, softmax, huber-svm, hinge; squared, huber, quantile, poisson; mean, geometric-median (see `privfit methods`)
    #[arg(long)]
    loss: Option<String>,
    /// auto (default), linear (the best for a linear model), or a method of `privfit methods`
    #[arg(long)]
    method: Option<String>,
    /// A network: its name (linear, mlp, mnist_cnn, cifar_cnn5, cifar_cnn6), or its layers before the scores, like "dense 64, tanh"
    #[arg(long, value_delimiter = ',', value_name = "LAYERS")]
    layers: Vec<String>,
    /// A setting of method or loss, like steps=200
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// none (default), l2:R, l1:R, box:LOW:HIGH or simplex:R
    #[arg(long)]
    constraint: Option<String>,
    /// Where the model goes
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Replace a file that is there; without it only the same --request may deliver the same model again
    #[arg(long)]
    pub(crate) force: bool,
    /// Threads; all cores by default
    #[arg(long)]
    threads: Option<usize>,
    /// Memory that the job may use, like 300MB or 2GiB: networks compute fewer examples at once where that is enough, and what needs more is refused before data are opened
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Print plan, noise, cost, memory and a forecast; open no data
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
    pub(crate) compare: bool,
    #[command(flatten)]
    pub(crate) ledger_arguments: LedgerArguments,
    /// Keep the state of training in this file, so that the same command goes on where it was stopped; `ledger` keeps it in the --ledger. For networks
    #[arg(long, value_name = "FILE|ledger")]
    checkpoint: Option<PathBuf>,
    /// Steps between two checkpoints; a fiftieth of all by default
    #[arg(long, value_name = "STEPS", requires = "checkpoint")]
    checkpoint_every: Option<u64>,
    /// Day for the certificate, as YYYY-MM-DD; none by default
    #[arg(long, value_name = "DAY")]
    date: Option<String>,
    /// What the job declares about the model
    #[arg(skip)]
    registry: Declared,
    /// Public rows that the job file gives, for `fit`
    #[arg(skip)]
    pub(crate) pretraining: Option<PretrainArguments>,
    /// Public rows are points that want labels
    #[arg(skip)]
    pub(crate) for_labels: bool,
    /// What is to be tuned
    #[arg(skip)]
    pub(crate) tuning: Option<toml::Table>,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

/// Says that checkpoints are kept in the ledger; a file of this name is `./ledger`.
const IN_LEDGER: &str = "ledger";

/// Keys of a job file.
const KEYS: &str = "data, labels, auxiliary, schema, rows, epsilon, delta, adjacency, loss, method, constraint, out, force, threads, memory, \
                    ledger, ledger_key, request, checkpoint, checkpoint_every, allow_large_delta, compare, date, model, pretrain, set, registry, tune";

/// What flags and job file say.
pub(crate) struct ResolvedJob {
    pub(crate) job: Job,
    pub(crate) source: Source,
    pub(crate) declared: Declared,
}

impl FitArguments {
    /// Everything that flags and job file say.
    pub(crate) fn resolve(&mut self) -> Result<ResolvedJob, Failure> {
        if let Some(path) = self.job.clone() {
            self.read_job(&path)?;
        }
        let Some(schema_path) = &self.schema else {
            return Err(Failure::misuse("no schema is given: add --schema FILE (start with `privfit schema init DATA`)"));
        };
        let text = read_text(schema_path, "schema")?;
        let mut schema = Schema::parse(&text)?;
        if self.for_labels {
            schema = privfit::job::label::encoded(schema);
        }
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
            // Written one after the other they have spaces around them, which a job file has not.
            layers: (!self.layers.is_empty()).then(|| self.layers.iter().map(|l| l.trim().to_string()).collect()),
            // Trained when everything else was checked.
            pretrained: None,
        };
        self.ledger_arguments.check(self.simulate.is_some())?;
        self.memory_limit()?;
        if self.checkpoint.is_some() && self.checkpoint == self.out {
            return Err(Failure::misuse("--checkpoint and --out are one file: give two"));
        }
        let declared = self.date.as_deref().map_or(Ok(Declared::default()), Declared::on)?.or(self.registry.clone());
        Ok(ResolvedJob { job, source, declared })
    }

    pub(crate) fn talks(&self) -> bool {
        self.format == Format::Text
    }

    /// Where the state of training is kept, if it is.
    pub(crate) fn checkpoint<'a>(&'a self, resumed: &'a dyn Fn(u64)) -> Option<CheckpointArguments<'a>> {
        let path = self.checkpoint.as_deref()?;
        let place = if path == Path::new(IN_LEDGER) { CheckpointPlace::Ledger } else { CheckpointPlace::File(path) };
        Some(CheckpointArguments { place, every: self.checkpoint_every, resumed })
    }

    /// Bytes that the job may use, if that is said.
    pub(crate) fn memory_limit(&self) -> Result<Option<u64>, Failure> {
        self.memory.as_deref().map(size).transpose()
    }

    /// How the job is run, as far as memory depends on it.
    pub(crate) fn memory_conditions(&self) -> MemoryConditions {
        MemoryConditions {
            threads: self.threads(),
            checkpoint: self.checkpoint.is_some(),
            ledger: self.ledger_arguments.ledger.is_some(),
            program: memory::program(),
        }
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
            let integer = value.as_integer().filter(|i| *i > 0).map(|i| i as u64);
            let paths = || -> Option<Vec<PathBuf>> {
                match &value {
                    toml::Value::String(s) => Some(vec![base.join(s)]),
                    toml::Value::Array(a) => a.iter().map(|v| v.as_str().map(|s| base.join(s))).collect(),
                    _ => None,
                }
            };
            let need_text = || text.clone().ok_or_else(|| wrong(&key, "give text in quotes"));
            let need_number = || number.ok_or_else(|| wrong(&key, "give a number"));
            let need_integer = || integer.ok_or_else(|| wrong(&key, "give a whole number of at least 1"));
            let need_paths = || paths().ok_or_else(|| wrong(&key, "give a path, or a list of them"));
            match key.as_str() {
                "data" if self.data.is_empty() => self.data = need_paths()?,
                "labels" if self.labels.is_empty() => self.labels = need_paths()?,
                "auxiliary" if self.auxiliary.is_empty() => self.auxiliary = need_paths()?,
                "schema" if self.schema.is_none() => self.schema = Some(base.join(need_text()?)),
                "out" if self.out.is_none() => self.out = Some(base.join(need_text()?)),
                "rows" if self.rows.is_none() => self.rows = Some(need_integer()?),
                "threads" if self.threads.is_none() => self.threads = Some(need_integer()? as usize),
                "memory" if self.memory.is_none() => self.memory = Some(text.unwrap_or_else(|| value.to_string())),
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
                "checkpoint" if self.checkpoint.is_none() => {
                    let place = need_text()?;
                    self.checkpoint = Some(if place == IN_LEDGER { place.into() } else { base.join(place) });
                }
                "checkpoint_every" if self.checkpoint_every.is_none() => self.checkpoint_every = Some(need_integer()?),
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
                "model" => {
                    let table = value.as_table().ok_or_else(|| wrong(&key, "give a table with kind and layers"))?;
                    let layers = model_of(table).map_err(|fix| wrong(&key, &fix))?;
                    match layers {
                        _ if !self.layers.is_empty() => {}
                        Some(layers) => self.layers = layers,
                        None if self.method.is_none() => {
                            let of_layers = privfit::method::ALL.iter().find(|m| m.can.of_layers);
                            self.method = of_layers.map(|m| m.name.into());
                        }
                        None => {}
                    }
                }
                "pretrain" => {
                    let table = value.as_table().ok_or_else(|| wrong(&key, "give a table with data, labels and schema"))?;
                    self.pretraining = Some(PretrainArguments::parse(table, base).map_err(|fix| wrong(&key, &fix))?);
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
                "data" | "labels" | "auxiliary" | "schema" | "out" | "rows" | "threads" | "memory" | "epsilon" | "delta"
                | "adjacency" | "loss" | "method" | "constraint" | "ledger" | "ledger_key" | "request" | "checkpoint"
                | "checkpoint_every" | "date" => {}
                _ => {
                    let hint = privfit::nearest::hint(&key, KEYS.split(", "));
                    return Err(wrong(&key, &format!("unknown key: {hint}known are {KEYS}")));
                }
            }
        }
        Ok(())
    }
}

/// The layers of a [model] table; none for those that public facts suggest.
fn model_of(table: &toml::Table) -> Result<Option<Vec<String>>, String> {
    let fix = "give kind = \"network\", and layers = [\"dense 64\", \"tanh\"] or the name of a network";
    if let Some(key) = table.keys().find(|key| !["kind", "layers"].contains(&key.as_str())) {
        return Err(format!("unknown key {key}: {fix}"));
    }
    if table.get("kind").and_then(toml::Value::as_str) != Some("network") {
        return Err(fix.into());
    }
    match table.get("layers") {
        None => Ok(None),
        Some(toml::Value::String(name)) => Ok(Some(vec![name.clone()])),
        Some(toml::Value::Array(list)) => {
            list.iter().map(|l| l.as_str().map(str::to_string)).collect::<Option<_>>().map(Some).ok_or_else(|| fix.into())
        }
        Some(_) => Err(fix.into()),
    }
}
