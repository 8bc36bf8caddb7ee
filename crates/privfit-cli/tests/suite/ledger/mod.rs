//! The verb `ledger` and jobs that spend, as a user meets them; and what becomes of output, memory and files that fail them.

mod delivery;
mod inputs;
mod memory;
mod output;

use crate::harness::Scratch;

/// A directory with a small table, its schema and a job.
fn place(name: &str) -> Scratch {
    let here = Scratch::new(name);
    let rows: String = (0..40).map(|i| format!("{},{}\n", i % 10, if i % 3 == 0 { "yes" } else { "no" })).collect();
    here.write("d.csv", format!("age,ill\n{rows}"));
    let schema = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                  [features.age]\ntype = \"number\"\nmin = 0\nmax = 10\n";
    here.write("s.toml", schema);
    here.write("other.toml", schema.replace("visits", "others"));
    here.write("child.toml", schema.replace("name = \"visits\"", "name = \"monday\"\nparent = \"visits\""));
    here.write("unnamed.toml", schema.replace("name = \"visits\"\n", ""));
    let job = "data = \"d.csv\"\nschema = \"s.toml\"\nepsilon = 0.5\ndelta = 1e-6\nout = \"m.json\"\nledger = \"l\"\n";
    here.write("job.toml", job);
    here
}

#[test]
fn from_a_budget_to_nothing_left() {
    let here = place("story");
    here.ok("ledger create l --schema s.toml --epsilon 1.2 --delta 1e-6");
    let plan = here.ok("fit job.toml --dry-run --rows 40");
    assert!(plan.contains("ledger    fits"), "{plan}");
    assert!(!here.join("m.json").exists());
    let first = here.ok("fit job.toml --request one");
    assert!(first.contains("record 1: 1 job so far"), "{first}");
    let bytes = std::fs::read(here.join("m.json")).unwrap();
    here.ok("fit job.toml --request one --out again.json");
    assert_eq!(std::fs::read(here.join("again.json")).unwrap(), bytes, "the same request, the same bytes");
    here.ok("fit job.toml --out m2.json");
    let shown = here.json("ledger show l");
    assert_eq!((shown["jobs"].as_array().unwrap().len(), shown["released"].as_u64()), (2, Some(2)));
    let spent = &shown["spent"];
    let number = |key: &str| spent[key].as_f64().unwrap();
    assert!(number("fixed") < number("filter") && number("filter") <= 1.2 && number("fixed") < number("added"), "{spent}");
    let text = here.ok("ledger show l");
    assert!(
        text.contains("2 jobs, epsilon 0.") && text.contains("basic composition 1.0") && text.contains("next      one more job"),
        "{text}"
    );
    let checks = here.ok("ledger verify l --model m.json m2.json");
    assert!(checks.starts_with("verdict        holds") && checks.lines().skip(1).all(|l| l.starts_with("holds")), "{checks}");
    // Until there is nothing left for a job of this size.
    let last = (0..20).find(|_| !here.run("fit job.toml --out m3.json --force").status.success());
    assert!(last.is_some());
    here.refused("fit job.toml --out m4.json", 1, "the budget of 1.2 does not allow it");
    assert!(!here.join("m4.json").exists());
    assert!(here.ok("fit job.toml --dry-run --rows 40").contains("ledger    refused"));
    let export = here.json("ledger export l");
    assert_eq!(export["format"], "privfit-ledger");
    let records = export["records"].as_array().unwrap();
    assert!(records[0]["record"]["open"].is_object() && records[1]["record"]["reserve"].is_object());
    here.ok("ledger export l --request one --out back.json");
    assert_eq!(std::fs::read(here.join("back.json")).unwrap(), bytes);
}

#[test]
fn what_is_refused_spends_nothing() {
    let here = place("refused");
    here.refused("fit job.toml", 2, "there is no ledger");
    here.ok("ledger create l --schema s.toml --epsilon 2 --delta 1e-6");
    here.refused("ledger create l --schema s.toml --epsilon 2 --delta 1e-6", 2, "another path");
    here.refused("ledger create l2 --schema unnamed.toml --epsilon 2 --delta 1e-6", 2, "add name");
    for bad in ["0", "-1", "1e3", "NaN", "0.1234567890123"] {
        here.refused(&format!("ledger create l2 --schema s.toml --epsilon={bad} --delta 1e-6"), 2, "");
    }
    here.refused("fit job.toml --schema other.toml", 2, "use the ledger of that data set");
    here.refused("fit job.toml --adjacency replace-one", 2, "use the ledger of that data set");
    here.refused("fit job.toml --simulate 1", 2, "not private");
    here.refused("fit job.toml --out nowhere/m.json", 2, "there is no directory");
    here.refused("fit job.toml --out .", 2, "is a directory");
    here.refused("fit job.toml --data missing.csv", 2, "check the path");
    here.refused("fit job.toml --labels d.csv", 2, "leave out --labels");
    here.refused("fit job.toml --out l", 2, "needed for the job itself");
    here.refused("fit job.toml --request a/b", 2, "give such a name");
    here.refused("ledger export l --request nobody", 1, "nothing was released");
    assert_eq!(here.json("ledger show l")["jobs"].as_array().unwrap().len(), 0);
    // A set that overlaps spends from its parent.
    here.ok("fit job.toml --schema child.toml");
    assert_eq!(here.json("ledger show l")["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_key_is_asked_for() {
    let here = place("key");
    std::fs::write(here.join("key"), [7u8; 32]).unwrap();
    here.ok("ledger create l --schema s.toml --epsilon 2 --delta 1e-6 --ledger-key key");
    here.refused("fit job.toml", 4, "--ledger-key");
    here.ok("fit job.toml --ledger-key key");
    here.ok("ledger verify l --ledger-key key --model m.json");
    here.refused("ledger verify l", 4, "--ledger-key");
}
