//! `privfit certificate`: what a model file states, on a page; whether that holds; and as an entry of the public registry.

use crate::args::files::{read_bytes, read_model, read_text};
use crate::args::ledger::LedgerArguments;
use crate::ui::lines::selected_line;
use crate::ui::verdict::{json, say};
use crate::ui::{Failure, Format, note, print_line, unwritable};
use clap::{Args, Subcommand};
use privfit::certificate::{Declared, entry, render, yaml};
use privfit::foreign::one_line;
use privfit::verify::{Answer, Examined, against_ledger, examine, verify_artifact};
use privfit::{Artifact, signature};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  privfit certificate show model.json
  privfit certificate verify model.json --ledger visits.ledger
  privfit certificate key --out clinic.key
  privfit certificate sign model.json --key clinic.key
  privfit certificate verify model.json --key clinic.key.pub
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
    /// Make the plan again, and every number and sentence with it; exit code 1 if one does not hold or was not checked, 4 if a byte was changed
    #[command(after_help = "Example: privfit certificate verify model.json --key clinic.key.pub --ledger visits.ledger

Four answers: holds (recomputed, and it agrees), does not hold, not checked (not by this version: exit code 1 unless --allow-unchecked),
declared (the publisher's word, such as the registry fields, and that the weights came from this run).")]
    Verify {
        /// A model file
        model: PathBuf,
        /// Ledger that paid for it: a file, or postgres://user@host/database#name
        #[arg(long)]
        ledger: Option<String>,
        /// File with the key of the ledger, if it was made with one
        #[arg(long, value_name = "FILE")]
        ledger_key: Option<PathBuf>,
        /// Public key of whoever is expected to have signed it
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// The signature [default: MODEL.sig]
        #[arg(long, value_name = "FILE", requires = "key")]
        signature: Option<PathBuf>,
        /// Exit code 0 also where something was not checked
        #[arg(long)]
        allow_unchecked: bool,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Make a pair of keys for signatures: NAME for yourself, NAME.pub for everybody
    #[command(after_help = "Example: privfit certificate key --out clinic.key")]
    Key {
        /// Where the private key goes
        #[arg(long)]
        out: PathBuf,
    },
    /// Sign a model file, all of it: the signature goes into a file beside it, and the model stays as it is
    #[command(after_help = "Example: privfit certificate sign model.json --key clinic.key")]
    Sign {
        /// A model file
        model: PathBuf,
        /// The private key
        #[arg(long)]
        key: PathBuf,
        /// Where the signature goes [default: MODEL.sig]
        #[arg(long)]
        out: Option<PathBuf>,
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

impl Certificate {
    pub(crate) fn is_listing(&self) -> bool {
        matches!(self.what, What::Show { format: Format::Text, .. })
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Show { model, format } => show(&model, format),
            What::Verify { model, ledger, ledger_key, key, signature, allow_unchecked, format } => {
                let key = key.as_deref().map(|key| (key, signature.unwrap_or_else(|| beside(&model))));
                let ledger_arguments = LedgerArguments { ledger, ledger_key, ..LedgerArguments::default() };
                verify(&model, &ledger_arguments, key, allow_unchecked, format)
            }
            What::Key { out } => {
                let public = signature::make_keys(&out)?;
                print_line(&format!("private    {}: keep it to yourself; only you can read the file", out.display()));
                print_line(&format!("public     {}: publish it where people expect your word", public.display()));
                Ok(())
            }
            What::Sign { model, key, out } => sign(&model, &key, &out.unwrap_or_else(|| beside(&model))),
            What::Export { model, registry, out } => export(&model, registry.as_deref(), &out),
        }
    }
}

/// What is printed is what was recomputed, never what the file says; what was not checked is left out.
fn show(model: &Path, format: Format) -> Result<(), Failure> {
    let artifact = read_model(model)?;
    let Examined { verdict, certificate } = examine(&artifact);
    let claims = artifact.guarantee.private || artifact.certificate.guarantee.private;
    if let Some(certificate) = certificate {
        if format == Format::Json {
            let mut object = json(&certificate)?;
            if let Some(chosen) = artifact.selected() {
                // Which columns the weights have is in the weights, and so not in the certificate.
                let names = artifact.schema.feature_names();
                object["selected"] = chosen.iter().map(|i| names[*i].as_str()).collect();
            }
            print_line(&object.to_string());
        } else {
            let scores = artifact.model.weights().len();
            let mut released = vec![format!("weights of {scores} score{}", if scores == 1 { "" } else { "s" })];
            released.extend(selected_line(&artifact));
            if let Some(map) = artifact.model.map() {
                let kept = map.factors.iter().filter(|f| **f != 0.0).count();
                released.push(format!("factors of {kept} columns, by which rows are changed before they meet the weights"));
            }
            print_line(render(&certificate, &released).trim_end());
        }
    }
    // A model that says itself that it is not private may be shown; a false claim may not pass for a true one.
    if claims {
        if let Some(open) = verdict.first(Answer::NotChecked) {
            note(&format!("note: not checked, and left out above: {}: {}", one_line(&open.name), one_line(&open.text)));
        }
        verdict.accept("the certificate", true)?;
    }
    Ok(())
}

/// Where the signature of a model stands.
fn beside(model: &Path) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    name.push(".sig");
    PathBuf::from(name)
}

fn sign(model: &Path, key: &Path, out: &Path) -> Result<(), Failure> {
    let bytes = read_bytes(model)?;
    let artifact = Artifact::from_bytes(&bytes)?;
    // Nobody puts their name under a claim that does not hold.
    verify_artifact(&artifact).into_result("the certificate")?;
    let text = signature::sign(&bytes, &read_text(key, "key")?)?;
    if out.exists() && !std::fs::read_to_string(out).is_ok_and(|old| old.contains("privfit-signature")) {
        return Err(Failure::misuse(format!("{} is there and is not a signature: give another --out", out.display())));
    }
    privfit::publish::publish(out, text.as_bytes())
        .map_err(|_| Failure::misuse(format!("cannot write {}: check the disk and the path", out.display())))?;
    print_line(&format!("signature  {}", out.display()));
    print_line(&format!("next       privfit certificate verify {} --key {}.pub", model.display(), key.display()));
    Ok(())
}

fn verify(
    model: &Path,
    ledger_arguments: &LedgerArguments,
    key: Option<(&Path, PathBuf)>,
    allow_unchecked: bool,
    format: Format,
) -> Result<(), Failure> {
    let bytes = read_bytes(model)?;
    let artifact = Artifact::from_bytes(&bytes)?;
    let mut verdict = verify_artifact(&artifact);
    if let Some(mut ledger) = ledger_arguments.open()? {
        let (status, checks) = privfit::ledger::verify::verify(&mut ledger)?;
        // It was the publisher's word until here.
        verdict.checks.retain(|c| c.name != "ledger");
        verdict.checks.extend(checks);
        verdict.checks.extend(against_ledger(&status, &artifact, &bytes));
    }
    if let Some((key, place)) = key {
        let (public, signed) = (read_text(key, "key")?, read_text(&place, "signature")?);
        verdict.checks.push(signature::check(&bytes, &signed, &public)?);
    }
    say(verdict, "the certificate", allow_unchecked, format)
}

fn export(model: &Path, registry: Option<&Path>, out: &Path) -> Result<(), Failure> {
    let artifact = Artifact::from_bytes(&read_bytes(model)?)?;
    let given = match registry {
        None => Declared::default(),
        Some(path) => {
            let text = read_text(path, "registry")?;
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
    std::fs::write(out, text).map_err(|e| unwritable(out, &e))?;
    print_line(&format!("entry      {}", out.display()));
    print_line(&format!("address    {}", entry["url_slug"].as_str().unwrap_or_default()));
    Ok(())
}
