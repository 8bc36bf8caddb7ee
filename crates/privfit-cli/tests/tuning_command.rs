//! Tuning, private metrics and bought bounds, as a user meets them.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A directory with a table, its schema, a draft without bounds and a job with candidates.
fn place(name: &str) -> PathBuf {
    let here = std::env::temp_dir().join(format!("privfit-tuning-command-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&here);
    std::fs::create_dir_all(&here).unwrap();
    let rows: String =
        (0..3000).map(|i| format!("{},{}\n", 20 + i * 7 % 60, if i * 7 % 60 > 30 { "yes" } else { "no" })).collect();
    std::fs::write(here.join("d.csv"), format!("age,ill\n{rows}")).unwrap();
    let schema = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                  [features.age]\ntype = \"number\"\nmin = 0\nmax = 100\n";
    std::fs::write(here.join("s.toml"), schema).unwrap();
    std::fs::write(here.join("draft.toml"), schema.replace("min = 0", "min = \"?\"").replace("max = 100", "max = \"?\""))
        .unwrap();
    let job = "data = \"d.csv\"\nschema = \"s.toml\"\nepsilon = 1.0\ndelta = 1e-8\nout = \"m.json\"\nmethod = \"objective\"\n\
               [tune]\nruns = 6\n[tune.grid]\nridge = [3, 30]\n";
    std::fs::write(here.join("job.toml"), job).unwrap();
    here
}

fn run(here: &PathBuf, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_privfit"));
    command.current_dir(here).args(line.split_whitespace()).env("XDG_STATE_HOME", "/dev/null").output().unwrap()
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
fn a_job_with_candidates() {
    let here = place("job");
    refused(&here, "fit job.toml", 2, "run `privfit tune`");
    let plan = json(&here, "tune job.toml --dry-run --rows 3000");
    let price = plan["epsilon"]["zero_out"].as_f64().unwrap();
    assert!(price <= 1.0 && price > 0.95 && plan["runs"] == 6 && plan["candidates"].as_array().unwrap().len() == 2, "{plan}");
    assert!(!here.join("m.json").exists());
    ok(&here, "ledger create l --schema s.toml --epsilon 3 --delta 1e-7");
    let said = ok(&here, "tune job.toml --dry-run --rows 3000 --ledger l");
    assert!(said.contains("ledger    fits"), "{said}");
    ok(&here, "tune job.toml --ledger l --request one");
    let bytes = std::fs::read(here.join("m.json")).unwrap();
    ok(&here, "tune job.toml --ledger l --request one --out again.json");
    assert_eq!(std::fs::read(here.join("again.json")).unwrap(), bytes, "the same request, the same bytes");
    ok(&here, "certificate verify m.json --ledger l");
    assert!(ok(&here, "certificate show m.json").contains("the best of a random number of"));
    assert_eq!(json(&here, "ledger show l")["jobs"].as_array().unwrap().len(), 1);
    ok(&here, "ledger verify l");
    // A seed is repeatable and promises nothing.
    let simulated = |out: &str| {
        let said = json(&here, &format!("tune job.toml --simulate 4 --out {out}"));
        assert_eq!(said["private"], false);
        std::fs::read(here.join(out)).unwrap()
    };
    assert_eq!(simulated("a.json"), simulated("b.json"));
}

#[test]
fn public_rows_choose_for_nothing() {
    let here = place("public");
    refused(&here, "tune job.toml --public ./d.csv", 2, "holds the private records");
    std::fs::copy(here.join("d.csv"), here.join("p.csv")).unwrap();
    let said = json(&here, "tune job.toml --public p.csv --simulate 1");
    assert!(
        said["public"]
            .as_array()
            .unwrap()
            .iter()
            .any(|l| l.as_str().unwrap().contains("2 candidates on rows that were declared public")),
        "{said}"
    );
    let model: Value = serde_json::from_slice(&std::fs::read(here.join("m.json")).unwrap()).unwrap();
    assert_eq!(model["artifact"]["training"]["settings"][0], serde_json::json!(["ridge", 3.0]), "the better one");
    let nothing = ok(&here, "tune job.toml --public p.csv --dry-run --rows 3000");
    assert!(nothing.contains("cost      nothing"));
}

#[test]
fn metrics_with_noise() {
    let here = place("metrics");
    let flags = "fit --data d.csv --schema s.toml --epsilon 4 --delta 1e-8 --out m.json";
    ok(&here, flags);
    let exact = json(&here, "evaluate --model m.json --data d.csv");
    let noisy = json(&here, "evaluate --model m.json --data d.csv --epsilon 4 --delta 1e-8");
    for (metric, near) in [("accuracy", 0.02), ("rows", 40.0), ("auc", 0.05), ("log_loss", 0.1)] {
        let (a, b) = (exact[metric].as_f64().unwrap(), noisy[metric].as_f64().unwrap());
        assert!((a - b).abs() < near, "{metric}: {a} {b}");
    }
    assert!(noisy["epsilon"]["zero_out"].as_f64().unwrap() <= 4.0 && noisy["private"] == true);
    refused(&here, "evaluate --model m.json --data d.csv --epsilon 1", 2, "delta is missing");
    refused(&here, "evaluate --model m.json --data d.csv --delta 1e-8", 2, "--epsilon");
    let pure = json(&here, "evaluate --model m.json --data d.csv --epsilon 1 --delta 0");
    assert!(pure["epsilon"]["zero_out"].as_f64().unwrap() <= 1.0);
    ok(&here, "ledger create l --schema s.toml --epsilon 1 --delta 1e-7");
    let line = "evaluate --model m.json --data d.csv --epsilon 0.4 --delta 1e-8 --ledger l --request r";
    assert_eq!(json(&here, line), json(&here, line), "the same request, the same numbers");
    assert_eq!(json(&here, "ledger show l")["jobs"].as_array().unwrap().len(), 1);
    refused(&here, "evaluate --model m.json --data d.csv --epsilon 3 --delta 1e-8 --ledger l", 1, "budget");
}

#[test]
fn bounds_that_were_bought() {
    let here = place("bounds");
    refused(&here, "fit --data d.csv --schema draft.toml --epsilon 1 --delta 1e-8 --out m.json", 2, "leaves public facts open");
    let plan = ok(&here, "schema bounds draft.toml --epsilon 0.5 --delta 1e-8 --rows 3000 --dry-run");
    assert!(plan.contains("cost      epsilon 0.5000") && plan.contains("columns   age"), "{plan}");
    ok(&here, "ledger create l --schema s.toml --epsilon 3 --delta 1e-7");
    let line = "schema bounds draft.toml --data d.csv --epsilon 0.5 --delta 1e-8 --out b.toml --ledger l --request bounds";
    assert!(json(&here, line)["epsilon"]["zero_out"].as_f64().unwrap() <= 0.5);
    let schema = std::fs::read_to_string(here.join("b.toml")).unwrap();
    assert!(schema.contains("min = 20.0\nmax = 100.0"), "{schema}");
    ok(&here, "schema check b.toml");
    ok(&here, "fit --data d.csv --schema b.toml --epsilon 1 --delta 1e-8 --out m.json --ledger l");
    let page = ok(&here, "certificate show m.json");
    assert!(page.contains("bounds of age were bought from the same records"), "{page}");
    ok(&here, "certificate verify m.json --ledger l");
    assert_eq!(json(&here, "ledger show l")["jobs"].as_array().unwrap().len(), 2);
    refused(&here, "schema bounds b.toml --data d.csv --epsilon 0.5 --delta 1e-8 --out x.toml", 2, "no numeric column");
    std::fs::write(here.join("again.toml"), schema.replace("max = 100.0", "max = \"?\"")).unwrap();
    refused(&here, "schema bounds again.toml --data d.csv --epsilon 0.5 --delta 1e-8 --out x.toml", 2, "bought already");
    refused(&here, "schema bounds s.toml --data d.csv --epsilon 0.5 --delta 1e-8 --out x.toml", 2, "no numeric column");
}
