//! `privfit audit`: a lower bound on what a method leaks, held against its claim.

mod report;

use crate::args::files::read_text;
use crate::args::settings::settings;
use crate::ui::progress::Bar;
use crate::ui::{Failure, Format, quiet};
use clap::{Args, Subcommand};
use privfit::account::Adjacency;
use privfit::audit::shipped::Question;
use privfit::audit::{Pair, RowMaker, Shipped, Subject, canaries, distribution, own_rows, precision, sensitivity};
use privfit::data::cells::RowForm;
use privfit::data::encode::Row;
use privfit::data::generate::Random;
use privfit::data::load::Source;
use privfit::{Error, Schema, method};
use report::{Report, conclude};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  privfit audit sensitivity --method objective
  privfit audit distribution --method noisy-gd --set steps=1 --runs 3000
  privfit audit distribution --method output --loss logistic --adjacency replace-one
  privfit audit canaries --method noisy-sgd --set sampling_rate=0.1 --canaries 2000
  privfit audit canaries --method network --layers 'dense 3, tanh' --set sampling_rate=1
  privfit audit precision
  privfit audit sensitivity --model model.json --pairs 200

An audit finds bugs; it proves a guarantee wrong, never right. Its setting is weak on
purpose (epsilon 10 at delta 1e-5, a mu of 2): a bug shows there in a few hundred runs, and
at epsilon 1 in tens of thousands. Without --data records are generated from the schema
alone, without --schema from two features between -1 and 1. With --data every run trains on
all of them: give few --runs. Exit code 1: the claim does not hold.")]
pub(crate) struct Audit {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Neighbouring pairs, before noise: nothing moves further than its sensitivity, and nothing else moves (exact, seconds)
    Sensitivity(Common),
    /// Two worlds, many runs: neighbours are told apart no better than claimed
    Distribution(Common),
    /// One run with many canaries, for methods that release gradients
    Canaries(Common),
    /// Released numbers lie on their public grid, and linear terms do not show
    Precision(Common),
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
struct Common {
    /// A method of `privfit methods`; for precision all of them by default
    #[arg(long)]
    method: Option<String>,
    /// A model file: audit exactly the plan that it records, for as many rows
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "loss", "schema", "epsilon", "delta", "adjacency", "set", "rows", "layers"])]
    model: Option<PathBuf>,
    /// Loss; one that fits by default
    #[arg(long)]
    loss: Option<String>,
    /// Public facts; two features between -1 and 1 by default
    #[arg(long)]
    schema: Option<PathBuf>,
    /// Your records, among which the pair differs: what is printed then tells about them
    #[arg(long, num_args = 1..)]
    data: Vec<PathBuf>,
    /// Files with labels, for formats that keep them apart
    #[arg(long, num_args = 1..)]
    labels: Vec<PathBuf>,
    /// Epsilon of the claim [default: 10]
    #[arg(long)]
    epsilon: Option<f64>,
    /// Delta of the claim [default: 1e-5, or 0 for objective-pure]
    #[arg(long)]
    delta: Option<f64>,
    /// zero-out (default), replace-one or add-remove
    #[arg(long)]
    adjacency: Option<String>,
    /// A setting of method or loss, like steps=200
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Layers of a network, like "dense 3, tanh", or its name
    #[arg(long, value_delimiter = ',', value_name = "LAYERS")]
    layers: Vec<String>,
    /// Rows that are generated [default: 20, or 3 in two worlds]
    #[arg(long)]
    rows: Option<u64>,
    /// Runs in each world, or fits for precision [default: 1500, or 300]
    #[arg(long)]
    runs: Option<usize>,
    /// Pairs to compare
    #[arg(long, default_value_t = 2000)]
    pairs: u64,
    /// Canaries in the one run
    #[arg(long, default_value_t = 1000)]
    canaries: u64,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// A subject and the records that surround the one in question.
struct Scene {
    subject: Shipped,
    maker: RowMaker,
    rows: usize,
    others: Vec<Row>,
}

impl Audit {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Sensitivity(common) => common.sensitivity(),
            What::Distribution(common) => common.distribution(),
            What::Canaries(common) => common.canaries(),
            What::Precision(common) => common.precision(),
        }
    }
}

impl Common {
    fn question(&self, method: &str, rows: u64) -> Result<Question, Failure> {
        let schema = match &self.schema {
            None => None,
            Some(path) => Some(Schema::parse(&read_text(path, "schema")?)?),
        };
        if schema.is_none() && !self.data.is_empty() {
            return Err(Failure::misuse("data need their public facts: add --schema FILE"));
        }
        let pure = method::find(method).is_some_and(|m| m.can.pure_only);
        Ok(Question {
            method: method.to_string(),
            loss: self.loss.clone(),
            schema,
            rows,
            epsilon: self.epsilon.unwrap_or(10.0),
            delta: self.delta.unwrap_or(if pure { 0.0 } else { 1e-5 }),
            adjacency: match &self.adjacency {
                None => Adjacency::ZeroOut,
                Some(text) => text.parse().map_err(Error::from)?,
            },
            settings: settings(&self.set)?,
            layers: (!self.layers.is_empty()).then(|| self.layers.iter().map(|l| l.trim().to_string()).collect()),
        })
    }

    fn method(&self) -> Result<&str, Failure> {
        let known = || method::ALL.iter().map(|m| m.name).collect::<Vec<_>>().join(", ");
        self.method.as_deref().ok_or_else(|| Failure::misuse(format!("no method is given: add --method, one of {}", known())))
    }

    /// The plan of a model file, and as many rows as it is for.
    fn recorded(&self, path: &std::path::Path) -> Result<Scene, Failure> {
        let artifact = crate::args::files::read_model(path)?;
        let subject = Shipped::of_model(&artifact)?;
        let rows = usize::try_from(artifact.training.rows).ok().filter(|r| (1..=1 << 24).contains(r));
        let rows =
            rows.ok_or_else(|| Failure::misuse("the plan is for more rows than an audit can make: audit its method by name"))?;
        let others = self.others(&artifact.schema, subject.prepared().plan.row_form())?;
        if !others.is_empty() && others.len() != rows {
            return Err(Failure::misuse(format!(
                "the plan is for {rows} rows and the files have others: give the rows of the model"
            )));
        }
        Ok(Scene { maker: subject.row_maker()?, subject, rows, others })
    }

    /// The records that were given.
    fn others(&self, schema: &Schema, form: RowForm<'_>) -> Result<Vec<Row>, Failure> {
        if self.data.is_empty() {
            return Ok(Vec::new());
        }
        crate::ui::note("note: what follows is computed from your records without protection: it is as confidential as they are");
        quiet();
        let others = own_rows(&Source { files: self.data.clone(), labels: self.labels.clone() }, schema, form)?;
        match others.is_empty() {
            true => Err(Failure::misuse("the files hold no records: give others, or leave out --data")),
            false => Ok(others),
        }
    }

    fn scene(&self, rows: u64) -> Result<Scene, Failure> {
        if let Some(path) = &self.model {
            return self.recorded(path);
        }
        let mut question = self.question(self.method()?, self.rows.unwrap_or(rows))?;
        let mut others = Vec::new();
        if let (Some(schema), false) = (&question.schema, self.data.is_empty()) {
            others = self.others(schema, RowForm::Features)?;
            question.rows = others.len() as u64;
        }
        if question.rows == 0 {
            return Err(Failure::misuse("an audit needs a row: give --rows of at least 1"));
        }
        let subject = Shipped::new(&question)?;
        let form = subject.prepared().plan.row_form();
        if form != RowForm::Features && !others.is_empty() {
            others = self.others(subject.schema(), form)?;
        }
        let maker = subject.row_maker()?;
        Ok(Scene { subject, maker, rows: question.rows as usize, others })
    }

    fn sensitivity(&self) -> Result<(), Failure> {
        let scene = self.scene(20)?;
        let bar = Bar::new(self.pairs, self.format == Format::Text, "comparing pairs");
        let found = sensitivity::audit(&scene.subject, &scene.maker, scene.rows, self.pairs, &scene.others, &|| bar.step())?;
        bar.finish();
        let report = Report::new("sensitivity", &scene.subject, &[("pairs", found.pairs), ("rows", scene.rows as u64)]);
        conclude(report.sensitivity(&found), self.format)
    }

    fn distribution(&self) -> Result<(), Failure> {
        let scene = self.scene(3)?;
        let runs = self.runs.unwrap_or(1500);
        let adjacency = scene.subject.claim().adjacency;
        let pairs: Vec<Pair> = scene.maker.telling(scene.rows, adjacency, &scene.others);
        // Too few runs are refused by the audit itself, before this choice matters.
        let best = if runs < 30 { 0 } else { distribution::telling(&scene.subject, &pairs, 120.min(runs))? };
        let bar = Bar::new(2 * runs as u64, self.format == Format::Text, "runs in two worlds");
        let found = distribution::audit(&scene.subject, &pairs[best], runs, &|| bar.step())?;
        bar.finish();
        let report = Report::new("distribution", &scene.subject, &[("runs_per_world", runs as u64), ("rows", scene.rows as u64)]);
        conclude(report.distribution(&found), self.format)
    }

    fn canaries(&self) -> Result<(), Failure> {
        if !self.data.is_empty() {
            return Err(Failure::misuse("canaries are records of their own: leave out --data"));
        }
        if self.model.is_some() {
            return Err(Failure::misuse(
                "canaries have a schema of their own: use `audit sensitivity --model` or `audit distribution --model`",
            ));
        }
        let question = self.question(self.method()?, self.canaries)?;
        let bar = Bar::new(1, self.format == Format::Text, "one run");
        let found = canaries::audit(&question, self.canaries, &|| {})?;
        bar.finish();
        conclude(Report::canaries(&question, &found), self.format)
    }

    fn precision(&self) -> Result<(), Failure> {
        let fits = self.runs.unwrap_or(300) as u64;
        if fits == 0 {
            return Err(Failure::misuse("precision needs fits: give --runs of at least 1"));
        }
        let names: Vec<&str> = match (&self.method, &self.model) {
            (Some(name), _) => vec![name],
            (None, Some(_)) => Vec::new(),
            (None, None) => method::ALL.iter().map(|m| m.name).collect(),
        };
        let bar = Bar::new(names.len() as u64 + fits, self.format == Format::Text, "releases");
        let mut grids = Vec::new();
        if let Some(path) = &self.model {
            let scene = self.recorded(path)?;
            let (kinds, adjacency) = (privfit::audit::pair::KINDS.iter(), scene.subject.claim().adjacency);
            let mut random = Random::new(4);
            let world = |kind: &&'static str| scene.maker.pair(kind, scene.rows, adjacency, &mut random, &[]).a;
            let worlds: Vec<Vec<Row>> = kinds.map(world).collect();
            grids.push((scene.subject.name(), precision::grid(&scene.subject, &worlds, &|| {})?));
        }
        for name in &names {
            let mut question = self.question(name, self.rows.unwrap_or(20))?;
            if self.method.is_none() && method::find(name).is_some_and(|m| m.can.many_steps) && self.set.is_empty() {
                // Plans for many sampled steps take seconds, and what is released has the same grid.
                if method::find(name).is_some_and(|m| m.has("steps")) {
                    question.settings.0.insert("steps".into(), 5.0);
                }
            }
            let subject = Shipped::new(&question)?;
            let maker = subject.row_maker()?;
            let mut random = Random::new(4);
            let worlds: Vec<Vec<Row>> = privfit::audit::pair::KINDS
                .iter()
                .map(|kind| maker.pair(kind, question.rows as usize, question.adjacency, &mut random, &[]).a)
                .collect();
            grids.push((subject.name(), precision::grid(&subject, &worlds, &|| {})?));
            bar.step();
        }
        let inverse = precision::objective(self.epsilon.unwrap_or(10.0), self.delta.unwrap_or(1e-5), fits, &|| bar.step())?;
        bar.finish();
        conclude(Report::precision(&grids, &inverse), self.format)
    }
}
