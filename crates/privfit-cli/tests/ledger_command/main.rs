//! The verb `ledger` and jobs that spend, as a user meets them; and what becomes of output, memory and files that fail them.

mod delivery;
mod inputs;
mod memory;
mod output;

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A directory with a small table, its schema and a job.
fn place(name: &str) -> PathBuf {
    let here = std::env::temp_dir().join(format!("privfit-ledger-command-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&here);
    std::fs::create_dir_all(&here).unwrap();
    let rows: String = (0..40).map(|i| format!("{},{}\n", i % 10, if i % 3 == 0 { "yes" } else { "no" })).collect();
    std::fs::write(here.join("d.csv"), format!("age,ill\n{rows}")).unwrap();
    let schema = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                  [features.age]\ntype = \"number\"\nmin = 0\nmax = 10\n";
    std::fs::write(here.join("s.toml"), schema).unwrap();
    std::fs::write(here.join("other.toml"), schema.replace("visits", "others")).unwrap();
    std::fs::write(here.join("child.toml"), schema.replace("name = \"visits\"", "name = \"monday\"\nparent = \"visits\""))
        .unwrap();
    std::fs::write(here.join("unnamed.toml"), schema.replace("name = \"visits\"\n", "")).unwrap();
    let job = "data = \"d.csv\"\nschema = \"s.toml\"\nepsilon = 0.5\ndelta = 1e-6\nout = \"m.json\"\nledger = \"l\"\n";
    std::fs::write(here.join("job.toml"), job).unwrap();
    here
}

fn command(here: &PathBuf, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_privfit"));
    // What is remembered of ledgers stays with the test.
    command.current_dir(here).args(line.split_whitespace()).env("XDG_STATE_HOME", here.join("state"));
    command
}

fn run(here: &PathBuf, line: &str) -> Output {
    command(here, line).output().unwrap()
}

fn ok(here: &PathBuf, line: &str) -> String {
    let out = run(here, line);
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn refused(here: &PathBuf, line: &str, code: i32, words: &str) {
    let out = run(here, line);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(code) && said.contains(words), "{line}: {:?} {said}", out.status.code());
}

fn json(here: &PathBuf, line: &str) -> Value {
    serde_json::from_str(&ok(here, &format!("{line} --format json"))).unwrap()
}

#[test]
fn from_a_budget_to_nothing_left() {
    let here = place("story");
    ok(&here, "ledger create l --schema s.toml --epsilon 1.2 --delta 1e-6");
    let plan = ok(&here, "fit job.toml --dry-run --rows 40");
    assert!(plan.contains("ledger    fits"), "{plan}");
    assert!(!here.join("m.json").exists());
    let first = ok(&here, "fit job.toml --request one");
    assert!(first.contains("record 1: 1 job so far"), "{first}");
    let bytes = std::fs::read(here.join("m.json")).unwrap();
    ok(&here, "fit job.toml --request one --out again.json");
    assert_eq!(std::fs::read(here.join("again.json")).unwrap(), bytes, "the same request, the same bytes");
    ok(&here, "fit job.toml --out m2.json");
    let shown = json(&here, "ledger show l");
    assert_eq!((shown["jobs"].as_array().unwrap().len(), shown["released"].as_u64()), (2, Some(2)));
    let spent = &shown["spent"];
    let number = |key: &str| spent[key].as_f64().unwrap();
    assert!(number("fixed") < number("filter") && number("filter") <= 1.2 && number("fixed") < number("added"), "{spent}");
    let text = ok(&here, "ledger show l");
    assert!(
        text.contains("2 jobs, epsilon 0.") && text.contains(", not 1.0") && text.contains("next      one more job"),
        "{text}"
    );
    let checks = ok(&here, "ledger verify l --model m.json m2.json");
    assert!(checks.starts_with("verdict        holds") && checks.lines().skip(1).all(|l| l.starts_with("holds")), "{checks}");
    // Until there is nothing left for a job of this size.
    let last = (0..20).find(|_| !run(&here, "fit job.toml --out m3.json --force").status.success());
    assert!(last.is_some());
    refused(&here, "fit job.toml --out m4.json", 1, "the budget of 1.2 does not allow it");
    assert!(!here.join("m4.json").exists());
    assert!(ok(&here, "fit job.toml --dry-run --rows 40").contains("ledger    refused"));
    let export = json(&here, "ledger export l");
    assert_eq!(export["format"], "privfit-ledger");
    let records = export["records"].as_array().unwrap();
    assert!(records[0]["record"]["open"].is_object() && records[1]["record"]["reserve"].is_object());
    ok(&here, "ledger export l --request one --out back.json");
    assert_eq!(std::fs::read(here.join("back.json")).unwrap(), bytes);
}

#[test]
fn what_is_refused_spends_nothing() {
    let here = place("refused");
    refused(&here, "fit job.toml", 2, "there is no ledger");
    ok(&here, "ledger create l --schema s.toml --epsilon 2 --delta 1e-6");
    refused(&here, "ledger create l --schema s.toml --epsilon 2 --delta 1e-6", 2, "another path");
    refused(&here, "ledger create l2 --schema unnamed.toml --epsilon 2 --delta 1e-6", 2, "add name");
    for bad in ["0", "-1", "1e3", "NaN", "0.1234567890123"] {
        refused(&here, &format!("ledger create l2 --schema s.toml --epsilon={bad} --delta 1e-6"), 2, "");
    }
    refused(&here, "fit job.toml --schema other.toml", 2, "use the ledger of that data set");
    refused(&here, "fit job.toml --adjacency replace-one", 2, "use the ledger of that data set");
    refused(&here, "fit job.toml --simulate 1", 2, "not private");
    refused(&here, "fit job.toml --out nowhere/m.json", 2, "there is no directory");
    refused(&here, "fit job.toml --out .", 2, "is a directory");
    refused(&here, "fit job.toml --data missing.csv", 2, "check the path");
    refused(&here, "fit job.toml --labels d.csv", 2, "leave out --labels");
    refused(&here, "fit job.toml --out l", 2, "needed for the job itself");
    refused(&here, "fit job.toml --request a/b", 2, "give such a name");
    refused(&here, "ledger export l --request nobody", 1, "nothing was released");
    assert_eq!(json(&here, "ledger show l")["jobs"].as_array().unwrap().len(), 0);
    // A set that overlaps spends from its parent.
    ok(&here, "fit job.toml --schema child.toml");
    assert_eq!(json(&here, "ledger show l")["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_key_is_asked_for() {
    let here = place("key");
    std::fs::write(here.join("key"), [7u8; 32]).unwrap();
    ok(&here, "ledger create l --schema s.toml --epsilon 2 --delta 1e-6 --ledger-key key");
    refused(&here, "fit job.toml", 4, "--ledger-key");
    ok(&here, "fit job.toml --ledger-key key");
    ok(&here, "ledger verify l --ledger-key key --model m.json");
    refused(&here, "ledger verify l", 4, "--ledger-key");
}
