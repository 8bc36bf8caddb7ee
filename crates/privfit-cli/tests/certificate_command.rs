//! `privfit certificate` as a user meets it: the page, the check, the entry for the registry, and the exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCHEMA: &str = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
                      [features.x]\ntype = \"number\"\nmin = -3\nmax = 3\n";
const JOB: &str = "data = \"d.csv\"\nschema = \"s.toml\"\nepsilon = 1.0\ndelta = 1e-6\nout = \"m.json\"\ndate = \"2024-05-17\"\n\
                   [registry]\nname = \"Visits model\"\ncurator = \"Clinic\"\ncontact = \"privacy@clinic.example\"\n";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("privfit-certificate-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let rows: String = (0..400).map(|i| format!("{},{}\n", (i % 61) as f64 / 10.0 - 3.0, ["no", "yes"][i % 2])).collect();
        let scratch = Scratch(dir);
        scratch.write("d.csv", &format!("x,y\n{rows}"));
        scratch.write("s.toml", SCHEMA);
        scratch.write("job.toml", JOB);
        scratch
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } =
            Command::new(env!("CARGO_BIN_EXE_privfit")).current_dir(Path::new(&self.0)).args(arguments).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_model_is_shown_verified_and_exported() {
    let at = Scratch::new("whole");
    let (code, _, err) = at.run(&["fit", "job.toml"]);
    assert_eq!(code, Some(0), "{err}");
    let (code, page, _) = at.run(&["certificate", "show", "m.json"]);
    assert_eq!(code, Some(0));
    for says in ["Visits model", "2024-05-17", "IN PLAIN WORDS", "a coin has 50 %", "epsilon     1.0000 under zero-out", "Clinic"]
    {
        assert!(page.contains(says), "{says}\n{page}");
    }
    let lines = page.lines().count();
    assert!((60..=105).contains(&lines) && page.lines().all(|l| l.chars().count() <= 100), "{lines} lines\n{page}");
    let (_, json, _) = at.run(&["certificate", "show", "m.json", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let groups = [
        "accounting",
        "adjacency",
        "assumptions",
        "contact",
        "deployment",
        "guarantee",
        "identity",
        "mechanism",
        "plain",
        "preparation",
        "registry",
        "security",
        "unit",
        "unprotected",
        "utility",
    ];
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), groups);
    assert!(json["registry"]["region"].is_null() && json["identity"]["ledger"].is_null());
    let (code, out, err) = at.run(&["certificate", "verify", "m.json"]);
    assert!(code == Some(0) && err.is_empty() && out.lines().all(|l| l.starts_with("holds ")), "{out}{err}");
    let (code, out, _) = at.run(&["certificate", "verify", "m.json", "--format", "json"]);
    let verdict: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(code == Some(0) && verdict["holds"] == true && verdict["checks"].as_array().unwrap().len() > 8);

    let (code, _, err) = at.run(&["certificate", "export", "m.json", "--out", "entry.yaml"]);
    assert!(code == Some(2) && err.contains("intended_use, region, publication_date") && err.contains("--registry"), "{err}");
    at.write(
        "names.toml",
        "[registry]\nintended_use = \"planning \\\"beds\\\"\"\nregion = \"nowhere\"\npublication_date = 2024-06-01\n",
    );
    let export = |out: &str| at.run(&["certificate", "export", "m.json", "--registry", "names.toml", "--out", out]);
    let (code, out, err) = export("entry.yaml");
    assert!(code == Some(0) && out.contains("visits-model-clinic-2024"), "{out}{err}");
    let entry = at.read("entry.yaml");
    assert!(entry.starts_with("url_slug: visits-model-clinic-2024\nstatus: \"Draft\"\ntier: 3\ndeployment:\n"), "{entry}");
    assert!(entry.contains("intended_use: \"planning \\\"beds\\\"\"\n") && entry.contains("delta: 1.0e-6\n"), "{entry}");
    assert_eq!(export("entry.json").0, Some(0));
    let entry: serde_json::Value = serde_json::from_str(&at.read("entry.json")).unwrap();
    assert_eq!(entry["deployment"]["basic"]["data_curators"], serde_json::json!(["Clinic"]));
    assert_eq!(export("entry.txt").0, Some(2));
}

#[test]
fn damage_is_4_and_false_claims_are_1() {
    let at = Scratch::new("codes");
    assert_eq!(at.run(&["fit", "job.toml"]).0, Some(0));
    let text = at.read("m.json");
    let code = |name: &str| ["verify", "show"].map(|verb| at.run(&["certificate", verb, name]).0);
    at.write("b.json", &text.replacen("visits", "visitz", 1));
    assert_eq!(code("b.json"), [Some(4); 2]);
    at.write("b.json", &text.replacen("\"version\": 2", "\"version\": 3", 1));
    let (newer, _, err) = at.run(&["certificate", "verify", "b.json"]);
    assert!(newer == Some(4) && err.contains("use a newer privfit"), "{err}");
    at.write("b.json", &text.replacen("\"version\": 2", "\"version\": 1", 1));
    let (older, _, err) = at.run(&["predict", "--model", "b.json", "--data", "d.csv"]);
    assert!(older == Some(4) && err.contains("fit it again"), "{err}");
    std::fs::write(at.0.join("b.json"), [0xff, 0xfe]).unwrap();
    assert_eq!(code("b.json"), [Some(4); 2]);
    assert_eq!(code("none.json"), [Some(2); 2]);
    let (simulated, _, _) = at.run(&["fit", "job.toml", "--simulate", "7", "--out", "sim.json"]);
    assert_eq!(simulated, Some(0));
    let (refused, out, err) = at.run(&["certificate", "verify", "sim.json"]);
    assert!(refused == Some(1) && out.contains("fails  guarantee") && err.contains("not private"), "{out}{err}");
    let (shown, page, _) = at.run(&["certificate", "show", "sim.json"]);
    assert!(shown == Some(0) && page.contains("infinite: not private") && page.contains("Nothing is guaranteed"), "{page}");
    assert_eq!(at.run(&["certificate", "export", "sim.json", "--out", "e.yaml"]).0, Some(1));
}

#[test]
fn dates_and_tables_are_checked_before_data_are_opened() {
    let at = Scratch::new("misuse");
    for (change, says) in [
        ("date = \"2024-05-17\"", "date = \"17 May\""),
        ("name = \"Visits model\"", "nam = \"Visits model\""),
        ("curator = \"Clinic\"", "sector = \"Mining\""),
    ] {
        at.write("bad.toml", &JOB.replace(change, says));
        let (code, _, err) = at.run(&["fit", "bad.toml"]);
        assert!(code == Some(2) && (err.contains("give") || err.contains("known are")), "{err}");
        assert!(!at.0.join("m.json").exists());
    }
    assert_eq!(at.run(&["fit", "job.toml", "--date", "2023-02-29"]).0, Some(2));
    assert_eq!(at.run(&["fit", "job.toml", "--date", "2023-02-28"]).0, Some(0));
    assert!(at.read("m.json").contains("\"date\": \"2023-02-28\""));
}
