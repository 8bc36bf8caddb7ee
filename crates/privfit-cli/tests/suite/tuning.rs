//! Tuning, private metrics and private bounds, as a user meets them.

use crate::harness::Scratch;
use serde_json::Value;

/// A directory with a table, its schema, a draft without bounds and a job with candidates.
fn place(name: &str) -> Scratch {
    let here = Scratch::new(name);
    let rows: String =
        (0..3000).map(|i| format!("{},{}\n", 20 + i * 7 % 60, if i * 7 % 60 > 30 { "yes" } else { "no" })).collect();
    here.write("d.csv", format!("age,ill\n{rows}"));
    let schema = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                  [features.age]\ntype = \"number\"\nmin = 0\nmax = 100\n";
    here.write("s.toml", schema);
    here.write("draft.toml", schema.replace("min = 0", "min = \"?\"").replace("max = 100", "max = \"?\""));
    let job = "data = \"d.csv\"\nschema = \"s.toml\"\nepsilon = 1.0\ndelta = 1e-8\nout = \"m.json\"\nmethod = \"objective\"\n\
               [tune]\nruns = 6\n[tune.grid]\nridge = [3, 30]\n";
    here.write("job.toml", job);
    here
}

#[test]
fn a_job_with_candidates() {
    let here = place("job");
    here.refused("fit job.toml", 2, "run `privfit tune`");
    let plan = here.json("tune job.toml --dry-run --rows 3000");
    let price = plan["epsilon"]["zero_out"].as_f64().unwrap();
    assert!(price <= 1.0 && price > 0.95 && plan["runs"] == 6 && plan["candidates"].as_array().unwrap().len() == 2, "{plan}");
    assert!(!here.join("m.json").exists());
    here.ok("ledger create l --schema s.toml --epsilon 3 --delta 1e-7");
    let said = here.ok("tune job.toml --dry-run --rows 3000 --ledger l");
    assert!(said.contains("ledger    fits"), "{said}");
    here.ok("tune job.toml --ledger l --request one");
    let bytes = std::fs::read(here.join("m.json")).unwrap();
    here.ok("tune job.toml --ledger l --request one --out again.json");
    assert_eq!(std::fs::read(here.join("again.json")).unwrap(), bytes, "the same request, the same bytes");
    here.ok("certificate verify m.json --ledger l");
    assert!(here.ok("certificate show m.json").contains("the best of a random number of"));
    assert_eq!(here.json("ledger show l")["jobs"].as_array().unwrap().len(), 1);
    here.ok("ledger verify l");
    // A seed is repeatable and promises nothing.
    let simulated = |out: &str| {
        let said = here.json(&format!("tune job.toml --simulate 4 --out {out}"));
        assert_eq!(said["private"], false);
        std::fs::read(here.join(out)).unwrap()
    };
    assert_eq!(simulated("a.json"), simulated("b.json"));
}

#[test]
fn public_rows_choose_for_nothing() {
    let here = place("public");
    here.refused("tune job.toml --public ./d.csv", 2, "holds the private records");
    std::fs::copy(here.join("d.csv"), here.join("p.csv")).unwrap();
    let said = here.json("tune job.toml --public p.csv --simulate 1");
    assert!(
        said["public"]
            .as_array()
            .unwrap()
            .iter()
            .any(|l| l["what"].as_str().unwrap().contains("2 candidates on rows that were declared public")),
        "{said}"
    );
    let model: Value = serde_json::from_slice(&std::fs::read(here.join("m.json")).unwrap()).unwrap();
    assert_eq!(model["artifact"]["training"]["settings"][0], serde_json::json!(["ridge", 3.0]), "the better one");
    let nothing = here.ok("tune job.toml --public p.csv --dry-run --rows 3000");
    assert!(nothing.contains("cost      nothing"));
}

#[test]
fn metrics_with_noise() {
    let here = place("metrics");
    let flags = "fit --data d.csv --schema s.toml --epsilon 4 --delta 1e-8 --out m.json";
    here.ok(flags);
    let exact = here.json("evaluate --model m.json --data d.csv");
    let noisy = here.json("evaluate --model m.json --data d.csv --epsilon 4 --delta 1e-8");
    for (metric, near) in [("accuracy", 0.02), ("rows", 40.0), ("auc", 0.05), ("log_loss", 0.1)] {
        let (a, b) = (exact[metric].as_f64().unwrap(), noisy[metric].as_f64().unwrap());
        assert!((a - b).abs() < near, "{metric}: {a} {b}");
    }
    assert!(noisy["epsilon"]["zero_out"].as_f64().unwrap() <= 4.0 && noisy["private"] == true);
    here.refused("evaluate --model m.json --data d.csv --epsilon 1", 2, "delta is missing");
    here.refused("evaluate --model m.json --data d.csv --delta 1e-8", 2, "--epsilon");
    let pure = here.json("evaluate --model m.json --data d.csv --epsilon 1 --delta 0");
    assert!(pure["epsilon"]["zero_out"].as_f64().unwrap() <= 1.0);
    here.ok("ledger create l --schema s.toml --epsilon 1 --delta 1e-7");
    let line = "evaluate --model m.json --data d.csv --epsilon 0.4 --delta 1e-8 --ledger l --request r";
    assert_eq!(here.json(line), here.json(line), "the same request, the same numbers");
    assert_eq!(here.json("ledger show l")["jobs"].as_array().unwrap().len(), 1);
    here.refused("evaluate --model m.json --data d.csv --epsilon 3 --delta 1e-8 --ledger l", 1, "budget");
}

#[test]
fn bounds_that_were_released() {
    let here = place("bounds");
    here.refused("fit --data d.csv --schema draft.toml --epsilon 1 --delta 1e-8 --out m.json", 2, "leaves public facts open");
    let plan = here.ok("schema bounds draft.toml --epsilon 0.5 --delta 1e-8 --rows 3000 --dry-run");
    assert!(plan.contains("cost      epsilon 0.5000") && plan.contains("columns   age"), "{plan}");
    here.ok("ledger create l --schema s.toml --epsilon 3 --delta 1e-7");
    let line = "schema bounds draft.toml --data d.csv --epsilon 0.5 --delta 1e-8 --out b.toml --ledger l --request bounds";
    assert!(here.json(line)["epsilon"]["zero_out"].as_f64().unwrap() <= 0.5);
    let schema = std::fs::read_to_string(here.join("b.toml")).unwrap();
    assert!(schema.contains("min = 20.0\nmax = 100.0"), "{schema}");
    here.ok("schema check b.toml");
    here.ok("fit --data d.csv --schema b.toml --epsilon 1 --delta 1e-8 --out m.json --ledger l");
    let page = here.ok("certificate show m.json");
    assert!(page.contains("bounds of age were released from the same records"), "{page}");
    here.ok("certificate verify m.json --ledger l");
    assert_eq!(here.json("ledger show l")["jobs"].as_array().unwrap().len(), 2);
    here.refused("schema bounds b.toml --data d.csv --epsilon 0.5 --delta 1e-8 --out x.toml", 2, "no numeric column");
    std::fs::write(here.join("again.toml"), schema.replace("max = 100.0", "max = \"?\"")).unwrap();
    here.refused("schema bounds again.toml --data d.csv --epsilon 0.5 --delta 1e-8 --out x.toml", 2, "released already");
    here.refused("schema bounds s.toml --data d.csv --epsilon 0.5 --delta 1e-8 --out x.toml", 2, "no numeric column");
}
