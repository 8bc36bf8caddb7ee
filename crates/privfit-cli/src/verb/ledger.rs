//! `privfit ledger`: the budget of a data set.

use crate::args::files::{read_bytes, read_text};
use crate::args::ledger::{mac_key, open};
use crate::ui::verdict::say;
use crate::ui::{Failure, Format, output, print_line};
use clap::{Args, Subcommand};
use privfit::certificate::round_up;
use privfit::ledger::Ledger;
use privfit::ledger::amount::Amount;
use privfit::ledger::record::Scope;
use privfit::ledger::verify::verify;
use privfit::verify::{Verdict, against_ledger};
use privfit::{Artifact, Error, Schema};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  privfit ledger create visits.ledger --schema visits.toml --epsilon 4 --delta 1e-8
  privfit fit job.toml --ledger visits.ledger --request monday
  privfit ledger show visits.ledger
  privfit ledger verify visits.ledger --model model.json
  privfit ledger create 'postgres://me@localhost/team#visits' --schema visits.toml --epsilon 4 --delta 1e-8

A job spends before data are opened, whatever becomes of it. Nothing is ever paid back.")]
pub(crate) struct LedgerVerb {
    #[command(subcommand)]
    what: What,
}

/// Where a ledger is.
#[derive(Args)]
struct LedgerPlace {
    /// A file, or postgres://user@host/database#name
    ledger: String,
    /// File with the key, if the ledger was made with one
    #[arg(long, value_name = "FILE")]
    ledger_key: Option<PathBuf>,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Subcommand)]
enum What {
    /// Make a ledger: one budget for everything that is ever released about a data set
    Create {
        #[command(flatten)]
        place: LedgerPlace,
        /// Schema of the data set, for its name and its unit of privacy
        #[arg(long)]
        schema: PathBuf,
        /// Epsilon of everything together
        #[arg(long)]
        epsilon: String,
        /// Delta of everything together; 0 for jobs that are pure
        #[arg(long)]
        delta: f64,
        /// zero-out (default), replace-one or add-remove: the same for every job
        #[arg(long, default_value = "zero-out")]
        adjacency: String,
    },
    /// What was spent, by which jobs, and what the next one may cost
    Show {
        #[command(flatten)]
        place: LedgerPlace,
    },
    /// Check the chain, the sums, the charges, and published models against it
    Verify {
        #[command(flatten)]
        place: LedgerPlace,
        /// Model files that were published under this ledger
        #[arg(long, num_args = 1..)]
        model: Vec<PathBuf>,
    },
    /// All records as JSON, or with --request what was released then
    Export {
        #[command(flatten)]
        place: LedgerPlace,
        /// Name of a request that was released
        #[arg(long)]
        request: Option<String>,
        /// Where it goes; to the screen if none is given
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

impl LedgerPlace {
    fn open(&self) -> Result<Ledger, Failure> {
        open(&self.ledger, self.ledger_key.as_deref())
    }
}

impl LedgerVerb {
    pub(crate) fn is_listing(&self) -> bool {
        matches!(&self.what, What::Show { place } if place.format == Format::Text)
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Create { place, schema, epsilon, delta, adjacency } => create(&place, &schema, &epsilon, delta, &adjacency),
            What::Show { place } => show(&place),
            What::Verify { place, model } => check(&place, &model),
            What::Export { place, request, out } => export(&place, request.as_deref(), out.as_deref()),
        }
    }
}

fn create(place: &LedgerPlace, schema: &Path, epsilon: &str, delta: f64, adjacency: &str) -> Result<(), Failure> {
    let schema = Schema::parse(&read_text(schema, "schema")?)?;
    let scope = Scope::of(&schema, adjacency.parse().map_err(Error::from)?)?;
    let cap = Amount::parse(epsilon).ok_or_else(|| {
        Failure::misuse(format!("epsilon is {epsilon:?}: give a decimal with at most twelve digits after the point"))
    })?;
    let parent = Path::new(&place.ledger).parent().filter(|p| !p.as_os_str().is_empty() && !place.ledger.contains("://"));
    if let Some(parent) = parent.filter(|p| !p.is_dir()) {
        return Err(Failure::misuse(format!("there is no directory {}: make it, or give another path", parent.display())));
    }
    Ledger::create(&place.ledger, mac_key(place.ledger_key.as_deref())?, scope.clone(), cap, delta)?;
    if place.format == Format::Json {
        let json = serde_json::json!({"dataset": scope.dataset, "unit": scope.unit, "adjacency": scope.adjacency.name(),
            "epsilon": cap, "delta": delta});
        print_line(&json.to_string());
        return Ok(());
    }
    print_line(&format!("ledger    for {:?}, unit {}, {}", scope.dataset, scope.unit, scope.adjacency.name()));
    print_line(&format!("budget    epsilon {cap} at delta {delta:e} for everything that is ever released"));
    print_line("next      privfit fit JOB.toml --ledger LEDGER --request NAME");
    Ok(())
}

fn show(place: &LedgerPlace) -> Result<(), Failure> {
    let status = place.open()?.status()?;
    let (t, s) = (&status.terms, &status.spent);
    let (adjacency, delta) = (t.scope.adjacency, t.delta);
    let summary = status.summary();
    let (sum, together, filter, next) = (summary.added, summary.fixed, summary.filter, summary.next);
    if place.format == Format::Json {
        print_line(&status.facts().to_string());
        return Ok(status.check_head()?);
    }
    print_line(&format!("ledger    {:?}, unit {}, {}", t.scope.dataset, t.scope.unit, adjacency.name()));
    print_line(&format!(
        "budget    epsilon {} at delta {delta:e} for everything together, whatever is asked after which answer",
        t.epsilon
    ));
    let open = s.jobs - s.released;
    let lost = if open > 0 { format!(", {open} reserved and not released, which stays spent") } else { String::new() };
    print_line(&format!("jobs      {} ({} released{lost})", s.jobs, s.released));
    print_line(&format!("spent     {:.1} % of the budget", 100.0 * summary.part.min(1.0)));
    if s.jobs > 0 {
        if let (Some(together), Some(sum)) = (together, sum) {
            let fits = if s.jobs == 1 { "1 job".to_string() } else { format!("{} jobs", s.jobs) };
            let basic = if s.jobs > 1 { format!(" composed; basic composition {}", round_up(sum)) } else { String::new() };
            print_line(&format!("together  {fits}, epsilon {}{basic}", round_up(together)));
        }
        if s.jobs > 1 {
            print_line(&format!(
                "          at most {} where each may have been chosen after the answers before it",
                round_up(filter)
            ));
        }
    }
    match next > 1e-6 {
        true => print_line(&format!("next      one more job may have an epsilon of about {next:.4} at delta {delta:e}")),
        false => print_line("next      nothing is left"),
    }
    for job in &summary.jobs {
        let own = job.epsilon.map_or("no epsilon of its own".into(), |e| format!("epsilon {} by itself", round_up(e)));
        let state = match (job.released, job.resumable) {
            (true, _) => "released",
            (false, true) => "under way, with its state kept: the same command goes on",
            (false, false) => "reserved, not released",
        };
        print_line(&format!("  {:>5}   {} {}: {own}, {state}", job.sequence, job.job, job.short_name()));
    }
    Ok(status.check_head()?)
}

fn check(place: &LedgerPlace, models: &[PathBuf]) -> Result<(), Failure> {
    let (status, checks) = verify(&mut place.open()?)?;
    let mut verdict = Verdict { checks };
    for path in models {
        let bytes = read_bytes(path)?;
        verdict.checks.extend(against_ledger(&status, &Artifact::from_bytes(&bytes)?, &bytes));
    }
    say(verdict, "the ledger", false, place.format)
}

fn export(place: &LedgerPlace, request: Option<&str>, out: Option<&Path>) -> Result<(), Failure> {
    let mut ledger = place.open()?;
    let bytes = match request {
        Some(wanted) => ledger.released_under(wanted)?,
        None => ledger.status()?.export()?,
    };
    match out {
        Some(path) => Ok(privfit::publish::publish(path, &bytes)?),
        None => {
            output::print_bytes(&bytes);
            Ok(())
        }
    }
}
