//! `privfit schema bounds`: private quantiles for columns whose bounds nobody knows. Costs budget.

use crate::args::files::read_text;
use crate::args::ledger::LedgerArguments;
use crate::ui::lines::guarantee_line;
use crate::ui::progress::Reading;
use crate::ui::style::shell;
use crate::ui::{Failure, Format, print_line, quiet};
use clap::Args;
use privfit::account::Adjacency;
use privfit::certificate::Declared;
use privfit::data::load::{Records, Source};
use privfit::engine::Threads;
use privfit::job::bounds::{BoundsRelease, Draft, prepare};
use privfit::job::facts::public_rows;
use privfit::job::release::{Context, OutputTarget};
use privfit::job::{PublicFacts, Release, release};
use privfit::kernel::Entropy;
use privfit::{Error, Schema};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Example:
  privfit schema init visits.csv > draft.toml        # then fill in what is known, and leave \"?\" where nobody knows
  privfit schema bounds draft.toml --data visits.csv --epsilon 0.1 --delta 1e-9 --out visits.toml

Bounds from documentation are free and better. What is released here costs budget: one release of noisy counts, which a ledger records, and
which every certificate of a model with these bounds repeats.")]
pub(crate) struct Bounds {
    /// Schema with \"?\" for the bounds that are to be released
    draft: PathBuf,
    /// Files with records
    #[arg(long, num_args = 1..)]
    data: Vec<PathBuf>,
    /// Privacy parameter epsilon
    #[arg(long)]
    epsilon: f64,
    /// Privacy parameter delta
    #[arg(long)]
    delta: f64,
    /// zero-out (default), replace-one or add-remove
    #[arg(long)]
    adjacency: Option<String>,
    /// Number of rows, if it is to be declared rather than counted
    #[arg(long)]
    rows: Option<u64>,
    /// Part of the records that may lie outside at either end
    #[arg(long, default_value_t = 0.005)]
    beyond: f64,
    /// Where the schema goes
    #[arg(long)]
    out: Option<PathBuf>,
    /// Replace a file that is there; without it only the same --request may deliver the same schema again
    #[arg(long)]
    force: bool,
    /// Print what it costs; open no data
    #[arg(long)]
    dry_run: bool,
    /// Take noise from a seed: repeatable, and NOT private
    #[arg(long, value_name = "SEED")]
    simulate: Option<u64>,
    #[command(flatten)]
    ledger_arguments: LedgerArguments,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Bounds {
    fn plan(&self, draft: Draft, adjacency: Adjacency, source: Option<&dyn Records>) -> Result<BoundsRelease, Failure> {
        let schema = draft.schema().clone();
        let rows = public_rows(&schema, self.rows, adjacency, source)?;
        let facts = PublicFacts::new(schema, rows, adjacency, (self.epsilon, Some(self.delta)), false)?;
        Ok(prepare(draft, facts, self.beyond)?)
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        self.ledger_arguments.check(self.simulate.is_some())?;
        let draft = Draft::parse(&read_text(&self.draft, "schema")?)?;
        let adjacency = self.adjacency.as_deref().map_or(Ok(Adjacency::ZeroOut), |t| t.parse().map_err(Error::from))?;
        let source = Source { files: self.data.clone(), labels: Vec::new() };
        if self.dry_run {
            let bounds = self.plan(draft, adjacency, None)?;
            let view = |a| privfit::training::epsilon(bounds.event(), a, self.delta);
            print_line(&format!("columns   {}", privfit::foreign::one_line(&bounds.columns().join(", "))));
            print_line(&format!("noise     {:.1} records on each count", bounds.noise()));
            print_line(&format!(
                "cost      {}",
                guarantee_line(view(Adjacency::ZeroOut), view(Adjacency::ReplaceOne), self.delta)
            ));
            print_line("no data were opened; leave out --dry-run to buy");
            return Ok(());
        }
        let (false, Some(out)) = (self.data.is_empty(), &self.out) else {
            return Err(Failure::misuse("give --data FILE and --out SCHEMA.toml"));
        };
        let entropy = match self.simulate {
            None => Entropy::system().map_err(Error::from)?,
            Some(seed) => Entropy::simulated(seed),
        };
        crate::args::ledger::check_places(
            &[self.data.clone(), vec![self.draft.clone()]].concat(),
            &[],
            &self.ledger_arguments,
            out,
        )?;
        quiet();
        let counting = Reading::new("counting", self.format == Format::Text);
        let bounds = self.plan(draft, adjacency, Some(&source))?;
        drop(counting);
        let target = OutputTarget { path: out, replace: self.force };
        let engine = Threads::new(std::thread::available_parallelism().map_or(1, |n| n.get()));
        let reading = std::cell::Cell::new(None);
        let context = Context {
            source: &source,
            engine: &engine,
            entropy: &entropy,
            ledger: self.ledger_arguments.session()?,
            declared: Declared::default(),
            out: Some(target),
            checkpoint: None,
            opening: &|| reading.set(Some(Reading::new("reading", self.format == Format::Text))),
            opened: &|| {},
            progress: &|| {},
        };
        let delivered = release(&bounds, context).map_err(|e| self.ledger_arguments.failed(e, Some(out)))?;
        drop(reading.take());
        if delivered.before {
            crate::ui::note("note: this request was released before; here is the same schema again, and nothing was spent");
        }
        let view = |a| privfit::training::epsilon(bounds.event(), a, self.delta).filter(|_| self.simulate.is_none());
        let (zero, replace) = (view(Adjacency::ZeroOut), view(Adjacency::ReplaceOne));
        if self.format == Format::Json {
            let json = serde_json::json!({
                "schema": out.display().to_string(), "columns": bounds.columns(), "private": self.simulate.is_none(),
                "epsilon": {"zero_out": zero, "replace_one": replace}, "delta": self.delta, "event": bounds.event(),
            });
            print_line(&json.to_string());
            return Ok(());
        }
        match self.simulate {
            None => print_line(&format!("guarantee  {}", guarantee_line(zero, replace, self.delta))),
            Some(_) => print_line("guarantee  none: the noise came from a seed (epsilon is infinite)"),
        }
        let text = String::from_utf8_lossy(&delivered.bytes);
        let open = Schema::parse(&text).is_err();
        print_line(&format!("schema     {}", out.display()));
        if open {
            print_line(
                "next       some bounds are still \"?\", because noise hides them: give them yourself, or buy with a larger epsilon",
            );
        } else {
            let files: Vec<String> = self.data.iter().map(|p| shell(p)).collect();
            print_line(&format!(
                "next       privfit fit --data {} --schema {} --epsilon 1 --delta {:e} --out model.json   # look at the bounds first",
                files.join(" "),
                shell(out),
                self.delta
            ));
        }
        Ok(())
    }
}
