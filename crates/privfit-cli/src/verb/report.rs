//! `privfit report`: a page about a model or a ledger, for people who never saw the program.

use crate::args::files::read_bytes;
use crate::args::ledger::{LedgerArguments, check_places};
use crate::ui::{Failure, note, print_line};
use clap::{Args, ValueEnum};
use privfit::Artifact;
use privfit::report::{Form, LedgerReport, ModelReport, Results, is_report};
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  privfit report model.json --out report.html
  privfit report model.json --results metrics.json --format markdown --out CARD.md
  privfit report visits.ledger --out budget.html

One file that loads nothing: open it in a browser, print it, or send it by mail. A certificate or a ledger that does not hold gets no
page, and no page shows a sentence that was not recomputed. --results takes what `privfit evaluate --format json` prints, or lines like {\"epsilon\": 1, \"accuracy\": 0.8}; null as an
epsilon is a run without privacy.")]
pub(crate) struct Report {
    /// A model file, a ledger, or postgres://user@host/database#name
    what: String,
    /// Where it goes, - for the screen; the name of the file with .html if none is given, and the screen for other formats
    #[arg(long)]
    out: Option<PathBuf>,
    /// What is written
    #[arg(long, value_enum, default_value = "html")]
    format: ReportFormat,
    /// Metrics on public rows, for the page of a model
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// File with the key of the ledger, if it was made with one
    #[arg(long, value_name = "FILE")]
    ledger_key: Option<PathBuf>,
    /// Write a page also where something was not checked: what was not recomputed is left out of it
    #[arg(long)]
    allow_unchecked: bool,
    /// Write over a file that is not a report
    #[arg(long)]
    overwrite: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// A page for a browser, complete by itself
    Html,
    /// A model card
    Markdown,
    /// What the page was made of
    Json,
}

/// What every SQLite file begins with.
const SQLITE: &[u8] = b"SQLite format 3\0";

fn is_address(what: &str) -> bool {
    what.starts_with("postgres://") || what.starts_with("postgresql://")
}

fn is_ledger(what: &str) -> bool {
    let mut head = Vec::new();
    let read = privfit::small_file::open(Path::new(what)).and_then(|f| f.take(SQLITE.len() as u64).read_to_end(&mut head));
    is_address(what) || read.is_ok() && head == SQLITE
}

impl Report {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let ledger = is_ledger(&self.what);
        let out = self.place()?;
        if ledger && self.results.is_some() {
            return Err(Failure::misuse("results belong to a model and this is a ledger: leave out --results"));
        }
        if !ledger && self.ledger_key.is_some() {
            return Err(Failure::misuse("a key belongs to a ledger and this is none: leave out --ledger-key"));
        }
        if let Some(out) = &out {
            self.check(ledger, out)?;
        }
        let form = match self.format {
            ReportFormat::Html => Form::Html,
            ReportFormat::Markdown => Form::Markdown,
            ReportFormat::Json => Form::Json,
        };
        let text = match ledger {
            true => LedgerReport::gather(&mut crate::args::ledger::open(&self.what, self.ledger_key.as_deref())?)?.write(form)?,
            false => {
                let artifact = Artifact::from_bytes(&read_bytes(Path::new(&self.what))?)?;
                let results = self.results.as_deref().map(read_results).transpose()?;
                let report = ModelReport::gather(&artifact, results, self.allow_unchecked)?;
                if !report.private {
                    note("note: this model is not private, and the report says so");
                }
                report.write(form)?
            }
        };
        let Some(out) = out else {
            print_line(text.trim_end());
            return Ok(());
        };
        privfit::publish::publish(&out, text.as_bytes())?;
        note(&format!("report    {}", out.display()));
        Ok(())
    }

    /// Where it goes; none is the screen.
    fn place(&self) -> Result<Option<PathBuf>, Failure> {
        match &self.out {
            Some(out) if out.as_os_str() == "-" => Ok(None),
            Some(out) => Ok(Some(out.clone())),
            None if self.format != ReportFormat::Html => Ok(None),
            None if is_address(&self.what) => {
                Err(Failure::misuse("a ledger at an address has no file beside it: give --out FILE"))
            }
            None => {
                // `with_extension` would cut a name such as `eps0.5`.
                let stem = [".json", ".ledger"].iter().find_map(|end| self.what.strip_suffix(end)).unwrap_or(&self.what);
                Ok(Some(PathBuf::from(format!("{stem}.html"))))
            }
        }
    }

    /// Nothing that is needed is written over, and nothing that is not a report.
    fn check(&self, ledger: bool, out: &Path) -> Result<(), Failure> {
        let needed: Vec<PathBuf> = (!ledger).then(|| PathBuf::from(&self.what)).into_iter().chain(self.results.clone()).collect();
        let ledger_arguments = LedgerArguments {
            ledger: ledger.then(|| self.what.clone()),
            ledger_key: self.ledger_key.clone(),
            ..LedgerArguments::default()
        };
        check_places(&needed, &[], &ledger_arguments, out)?;
        if self.overwrite || !out.exists() {
            return Ok(());
        }
        let mut head = Vec::new();
        let _ = privfit::small_file::open(out).and_then(|f| f.take(1000).read_to_end(&mut head));
        match head.is_empty() || is_report(&head) {
            true => Ok(()),
            false => Err(Failure::misuse(format!(
                "{} is there and is not a report: give another --out, or --overwrite to lose it",
                out.display()
            ))),
        }
    }
}

fn read_results(path: &Path) -> Result<Results, Failure> {
    Ok(Results::parse(&crate::args::files::read_text(path, "results")?)?)
}
