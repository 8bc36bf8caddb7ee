//! `privfit certificate`: what a model file states, on a page; whether that holds; and as an entry of the public registry.

use crate::predict::{read_bytes, read_model};
use crate::spend::Purse;
use crate::{Failure, Format, print_line};
use clap::{Args, Subcommand};
use privfit::certificate::verify::{Check, Verdict, verify_artifact};
use privfit::certificate::{Declared, entry, page, yaml};
use privfit::{Artifact, Error};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  privfit certificate show model.json
  privfit certificate verify model.json --ledger visits.ledger
  privfit certificate export model.json --registry names.toml --out entry.yaml")]
pub(crate) struct Certificate {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What the model guarantees, what it rests on, and what was released
    Show {
        /// A model file
        model: PathBuf,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Work every number out again from the recorded noise; exit code 1 if a claim does not hold, 4 if a byte was changed
    Verify {
        /// A model file
        model: PathBuf,
        /// Ledger that paid for it: a file, or postgres://user@host/database#name
        #[arg(long)]
        ledger: Option<String>,
        /// File with the key of the ledger, if it was made with one
        #[arg(long, value_name = "FILE")]
        ledger_key: Option<PathBuf>,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// An entry for the public registry of deployments, YAML or JSON by the name of the file
    Export {
        /// A model file
        model: PathBuf,
        /// File with a table `[registry]`: name, curator, intended_use, region, sector, publication_date ...
        #[arg(long)]
        registry: Option<PathBuf>,
        /// Where it goes: entry.yaml or entry.json
        #[arg(long)]
        out: PathBuf,
    },
}

/// Columns that a text names at the most.
const NAMED: usize = 20;

/// One line about the columns that the model has, where it does not have all.
pub(crate) fn selected_line(artifact: &Artifact) -> Option<String> {
    let chosen = artifact.selected()?;
    let names = artifact.schema.feature_names();
    let some: Vec<&str> = chosen.iter().take(NAMED).map(|i| names[*i].as_str()).collect();
    let rest = chosen.len().saturating_sub(NAMED);
    let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    Some(format!("{} of {} columns, released information: {}{more}", chosen.len(), names.len(), some.join(", ")))
}

impl Certificate {
    pub(crate) fn is_listing(&self) -> bool {
        matches!(self.what, What::Show { format: Format::Text, .. })
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Show { model, format } => show(&model, format),
            What::Verify { model, ledger, ledger_key, format } => {
                verify(&model, &Purse { ledger, ledger_key, request: None }, format)
            }
            What::Export { model, registry, out } => export(&model, registry.as_deref(), &out),
        }
    }
}

fn json(value: &impl serde::Serialize) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(value)
        .map_err(|_| Failure(Error::Damaged("the certificate can't be written as JSON: fetch it again".into())))
}

fn show(model: &Path, format: Format) -> Result<(), Failure> {
    let artifact = read_model(model)?;
    if format == Format::Json {
        let mut object = json(&artifact.certificate)?;
        if let Some(chosen) = artifact.selected() {
            // Which columns the weights have is in the weights, and so not in the certificate.
            let names = artifact.schema.feature_names();
            object["selected"] = chosen.iter().map(|i| names[*i].as_str()).collect();
        }
        print_line(&object.to_string());
        return Ok(());
    }
    let scores = artifact.model.weights.len();
    let mut released = vec![format!("weights of {scores} score{}", if scores == 1 { "" } else { "s" })];
    released.extend(selected_line(&artifact));
    if let Some(map) = &artifact.model.map {
        let kept = map.factors.iter().filter(|f| **f != 0.0).count();
        released.push(format!("factors of {kept} columns, by which rows are changed before they meet the weights"));
    }
    print_line(page(&artifact.certificate, &released).trim_end());
    Ok(())
}

fn verify(model: &Path, purse: &Purse, format: Format) -> Result<(), Failure> {
    let bytes = read_bytes(model)?;
    let artifact = Artifact::from_bytes(&bytes)?;
    let mut verdict = verify_artifact(&artifact);
    match (purse.open()?, &artifact.certificate.identity.ledger) {
        (Some(mut ledger), _) => {
            let (status, checks) = privfit::ledger::verify::verify(&mut ledger)?;
            verdict.checks.extend(checks);
            verdict.checks.extend(crate::ledger::against(&status, &artifact, &bytes));
        }
        (None, Some(_)) => {
            let text = "not compared: the model names a ledger, give it with --ledger";
            verdict.checks.push(Check::new("ledger", true, text));
        }
        (None, None) => {}
    }
    say(verdict, "the certificate", format)
}

/// Prints checks; a refusal if one does not hold.
pub(crate) fn say(verdict: Verdict, what: &str, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => {
            print_line(&serde_json::json!({"holds": verdict.holds(), "checks": json(&verdict.checks)?}).to_string());
        }
        Format::Text => {
            for check in &verdict.checks {
                print_line(&format!("{:<6} {:<26} {}", if check.held { "holds" } else { "fails" }, check.name, check.text));
            }
        }
    }
    Ok(verdict.into_result(what)?)
}

fn export(model: &Path, registry: Option<&Path>, out: &Path) -> Result<(), Failure> {
    let artifact = Artifact::from_bytes(&read_bytes(model)?)?;
    let given = match registry {
        None => Declared::default(),
        Some(path) => {
            let text = crate::fit::read_text(path, "registry")?;
            let table: toml::Table = toml::from_str(&text)
                .map_err(|e| Failure::misuse(format!("{} is not valid TOML: {}", path.display(), e.to_string().trim())))?;
            let table = table.get("registry").and_then(toml::Value::as_table);
            Declared::parse(
                table.ok_or_else(|| Failure::misuse(format!("{} has no table [registry]: add one", path.display())))?,
            )?
        }
    };
    // A claim that does not hold is not passed on.
    verify_artifact(&artifact).into_result("the certificate")?;
    let entry = entry(&artifact.certificate, &given.or(artifact.certificate.declared()))?;
    let text = match out.extension().and_then(|e| e.to_str()) {
        Some("yaml" | "yml") => yaml(&entry),
        Some("json") => format!("{entry:#}\n"),
        _ => return Err(Failure::misuse(format!("{}: give a name that ends with .yaml or .json", out.display()))),
    };
    std::fs::write(out, text).map_err(|e| crate::unwritable(out, &e))?;
    print_line(&format!("entry      {}", out.display()));
    print_line(&format!("address    {}", entry["url_slug"].as_str().unwrap_or_default()));
    Ok(())
}
