//! `privfit certificate` as a user meets it: the page, the check, the entry for the registry, and the exit codes.

use crate::harness::Scratch;
use privfit::Artifact;

const SCHEMA: &str = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
                      [features.x]\ntype = \"number\"\nmin = -3\nmax = 3\n";
const JOB: &str = "data = \"d.csv\"\nschema = \"s.toml\"\nepsilon = 1.0\ndelta = 1e-6\nout = \"m.json\"\ndate = \"2024-05-17\"\n\
                   [registry]\nname = \"Visits model\"\ncurator = \"Clinic\"\ncontact = \"privacy@clinic.example\"\n";

/// A directory with a small table, its schema and a job.
fn place(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let rows: String = (0..400).map(|i| format!("{},{}\n", (i % 61) as f64 / 10.0 - 3.0, ["no", "yes"][i % 2])).collect();
    scratch.write("d.csv", format!("x,y\n{rows}"));
    scratch.write("s.toml", SCHEMA);
    scratch.write("job.toml", JOB);
    scratch
}

#[test]
fn a_model_is_shown_verified_and_exported() {
    let at = place("whole");
    let (code, _, err) = at.call(&["fit", "job.toml"]);
    assert_eq!(code, Some(0), "{err}");
    let (code, page, _) = at.call(&["certificate", "show", "m.json"]);
    assert_eq!(code, Some(0));
    for says in ["Visits model", "2024-05-17", "IN PLAIN WORDS", "guessing: 50 %", "epsilon     1.0000 under zero-out", "Clinic"]
    {
        assert!(page.contains(says), "{says}\n{page}");
    }
    let lines = page.lines().count();
    assert!((60..=115).contains(&lines) && page.lines().all(|l| l.chars().count() <= 100), "{lines} lines\n{page}");
    let (_, json, _) = at.call(&["certificate", "show", "m.json", "--format", "json"]);
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
    let (code, out, err) = at.call(&["certificate", "verify", "m.json"]);
    assert!(code == Some(0) && err.is_empty() && out.starts_with("verdict        holds: "), "{out}{err}");
    // The publisher's word is never said to hold.
    let (holds, declared): (Vec<&str>, Vec<&str>) = out.lines().skip(1).partition(|l| l.starts_with("holds "));
    assert!(holds.len() > 12 && declared.iter().all(|l| l.starts_with("declared ")), "{out}");
    for word in ["weights", "registry"] {
        assert!(declared.iter().any(|l| l.contains(word)) && holds.iter().all(|l| !l.contains(&format!(" {word} "))), "{out}");
    }
    let (code, out, _) = at.call(&["certificate", "verify", "m.json", "--format", "json"]);
    let verdict: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(code == Some(0) && verdict["holds"] == true && verdict["checks"].as_array().unwrap().len() > 8);
    assert!(verdict["verdict"] == "holds" && verdict["checks"][0]["answer"] == "holds", "{verdict}");

    let (code, _, err) = at.call(&["certificate", "export", "m.json", "--out", "entry.yaml"]);
    assert!(code == Some(2) && err.contains("intended_use, region, publication_date") && err.contains("--registry"), "{err}");
    at.write(
        "names.toml",
        "[registry]\nintended_use = \"planning \\\"beds\\\"\"\nregion = \"nowhere\"\npublication_date = 2024-06-01\n",
    );
    let export = |out: &str| at.call(&["certificate", "export", "m.json", "--registry", "names.toml", "--out", out]);
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
    let at = place("codes");
    assert_eq!(at.call(&["fit", "job.toml"]).0, Some(0));
    let text = at.read("m.json");
    let code = |name: &str| ["verify", "show"].map(|verb| at.call(&["certificate", verb, name]).0);
    at.write("b.json", &text.replacen("visits", "visitz", 1));
    assert_eq!(code("b.json"), [Some(4); 2]);
    at.write("b.json", &text.replacen("\"version\": 4", "\"version\": 5", 1));
    let (newer, _, err) = at.call(&["certificate", "verify", "b.json"]);
    assert!(newer == Some(4) && err.contains("use a newer privfit"), "{err}");
    at.write("b.json", &text.replacen("\"version\": 4", "\"version\": 1", 1));
    let (older, _, err) = at.call(&["predict", "--model", "b.json", "--data", "d.csv"]);
    assert!(older == Some(4) && err.contains("fit it again"), "{err}");
    std::fs::write(at.join("b.json"), [0xff, 0xfe]).unwrap();
    assert_eq!(code("b.json"), [Some(4); 2]);
    assert_eq!(code("none.json"), [Some(2); 2]);
    let (simulated, _, _) = at.call(&["fit", "job.toml", "--simulate", "7", "--out", "sim.json"]);
    assert_eq!(simulated, Some(0));
    let (refused, out, err) = at.call(&["certificate", "verify", "sim.json"]);
    assert!(refused == Some(1) && out.contains("does not hold  guarantee") && err.contains("not private"), "{out}{err}");
    let (shown, page, _) = at.call(&["certificate", "show", "sim.json"]);
    assert!(shown == Some(0) && page.contains("infinite: not private") && page.contains("Nothing is guaranteed"), "{page}");
    assert_eq!(at.call(&["certificate", "export", "sim.json", "--out", "e.yaml"]).0, Some(1));
}

#[test]
fn dates_and_tables_are_checked_before_data_are_opened() {
    let at = place("misuse");
    for (change, says) in [
        ("date = \"2024-05-17\"", "date = \"17 May\""),
        ("name = \"Visits model\"", "nam = \"Visits model\""),
        ("curator = \"Clinic\"", "sector = \"Mining\""),
    ] {
        at.write("bad.toml", &JOB.replace(change, says));
        let (code, _, err) = at.call(&["fit", "bad.toml"]);
        assert!(code == Some(2) && (err.contains("give") || err.contains("known are")), "{err}");
        assert!(!at.join("m.json").exists());
    }
    assert_eq!(at.call(&["fit", "job.toml", "--date", "2023-02-29"]).0, Some(2));
    assert_eq!(at.call(&["fit", "job.toml", "--date", "2023-02-28"]).0, Some(0));
    assert!(at.read("m.json").contains("\"date\": \"2023-02-28\""));
}

/// What this version cannot check is exit code 1, unless that is accepted; what it shows is what it recomputed.
#[test]
fn not_checked_is_not_good() {
    let at = place("unchecked");
    assert_eq!(at.call(&["fit", "job.toml"]).0, Some(0));
    let mut other = Artifact::from_json(&at.read("m.json")).unwrap();
    other.program = "privfit 9.9.9".into();
    other.certificate.identity.program.clone_from(&other.program);
    at.write("other.json", &other.to_json().unwrap());
    let (code, out, err) = at.call(&["certificate", "verify", "other.json"]);
    assert!(code == Some(1) && out.starts_with("verdict        not checked as a whole: versions"), "{out}{err}");
    assert!(err.contains("--allow-unchecked"), "{err}");
    let (code, out, _) = at.call(&["certificate", "verify", "other.json", "--allow-unchecked", "--format", "json"]);
    assert!(code == Some(0) && out.contains("\"verdict\":\"not-checked\"") && out.contains("\"holds\":false"), "{out}");
    assert_eq!(at.call(&["report", "other.json", "--out", "r.html"]).0, Some(1));
    assert_eq!(at.call(&["report", "other.json", "--out", "r.html", "--allow-unchecked"]).0, Some(0));
    other.certificate.plain.sentence = "INVENTED".into();
    at.write("other.json", &other.to_json().unwrap());
    for arguments in [
        ["certificate", "verify", "other.json", "--allow-unchecked"],
        ["certificate", "show", "other.json", "--format=text"],
        ["certificate", "show", "other.json", "--format=json"],
        ["report", "other.json", "--allow-unchecked", "--out=-"],
    ] {
        let (code, out, err) = at.call(&arguments);
        assert!(code == Some(1) && !out.contains("INVENTED") && err.contains("edited in plain"), "{arguments:?}: {out}{err}");
    }
}

#[test]
fn signatures_say_whose_word_it_is() {
    let at = place("signed");
    assert_eq!(at.call(&["fit", "job.toml"]).0, Some(0));
    let model = at.read("m.json");
    for name in ["mine.key", "theirs.key"] {
        assert_eq!(at.call(&["certificate", "key", "--out", name]).0, Some(0));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(at.join("mine.key")).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let (code, _, err) = at.call(&["certificate", "key", "--out", "mine.key"]);
    assert!(code == Some(2) && err.contains("never written over"), "{err}");
    let verify = |key: &str| at.call(&["certificate", "verify", "m.json", "--key", key]);
    assert_eq!(verify("mine.key.pub").0, Some(2), "nobody signed yet");
    let (code, out, err) = at.call(&["certificate", "sign", "m.json", "--key", "mine.key"]);
    assert!(code == Some(0) && out.contains("m.json.sig"), "{out}{err}");
    assert_eq!(at.read("m.json"), model, "the model stays as it is");
    let (code, out, _) = verify("mine.key.pub");
    assert!(code == Some(0) && out.contains("holds          signature"), "{out}");
    let (code, out, err) = verify("theirs.key.pub");
    assert!(code == Some(1) && out.contains("does not hold  signature") && err.contains("another key"), "{out}{err}");
    // Another model with the same claim.
    assert_eq!(at.call(&["fit", "job.toml", "--out", "n.json"]).0, Some(0));
    let (code, _, err) = at.call(&["certificate", "verify", "n.json", "--key", "mine.key.pub", "--signature", "m.json.sig"]);
    assert!(code == Some(1) && err.contains("another file was signed"), "{err}");
    assert_eq!(at.call(&["certificate", "sign", "m.json", "--key", "mine.key.pub"]).0, Some(2));
    at.call(&["fit", "job.toml", "--simulate", "7", "--out", "sim.json"]);
    assert_eq!(at.call(&["certificate", "sign", "sim.json", "--key", "mine.key"]).0, Some(1), "nobody signs what does not hold");
}

/// Names from files cannot act on a terminal, nor begin a line that looks like ours.
#[test]
fn foreign_text_does_not_act() {
    let at = place("foreign");
    let name = "a\\u001b[2Jb\\u009b1mc\\u202ed\\nholds          all of it";
    at.write("s.toml", &SCHEMA.replace("visits", name).replace("[features.x]", "[features.\"x\\u001b[8m\"]"));
    at.write("d.csv", &at.read("d.csv").replacen('x', "x\u{1b}[8m", 1));
    let (code, _, err) = at.call(&["fit", "job.toml"]);
    assert_eq!(code, Some(0), "{err}");
    for arguments in [
        &["certificate", "verify", "m.json"][..],
        &["certificate", "show", "m.json"],
        &["certificate", "show", "m.json", "--format", "json"],
        &["schema", "check", "s.toml"],
        &["report", "m.json", "--format", "markdown"],
        &["fit", "job.toml", "--dry-run", "--rows", "400"],
    ] {
        let (code, out, err) = at.call(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {err}");
        let acts = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(!out.contains(acts) && !err.contains(acts), "{arguments:?}: {out:?}{err:?}");
        assert!(!out.lines().any(|l| l.starts_with("holds") && l.contains("all of it")), "{arguments:?}: {out}");
    }
}

/// An audit of a model file is about the plan that it records.
#[test]
fn the_plan_of_a_model_is_audited() {
    let at = place("audit");
    assert_eq!(at.call(&["fit", "job.toml"]).0, Some(0));
    let (code, out, err) = at.call(&["audit", "sensitivity", "--model", "m.json", "--pairs", "12", "--format", "json"]);
    assert_eq!(code, Some(0), "{err}");
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(found["rows"] == 400 && found["claim"]["delta"] == 1e-6 && found["violated"] == false, "{found}");
    assert!((found["claim"]["epsilon"].as_f64().unwrap() - 1.0).abs() < 1e-3, "{found}");
    let mut false_one = Artifact::from_json(&at.read("m.json")).unwrap();
    false_one.training.rows = 3;
    at.write("false.json", &false_one.to_json().unwrap());
    assert_eq!(at.call(&["audit", "sensitivity", "--model", "false.json"]).0, Some(1));
    assert_eq!(at.call(&["audit", "sensitivity", "--model", "m.json", "--rows", "3"]).0, Some(2), "it would be another plan");
    assert_eq!(at.call(&["audit", "canaries", "--model", "m.json"]).0, Some(2));
}

/// Model files of earlier formats and plans are read and used; what can't be checked about them is accepted by name only.
#[test]
fn older_models_are_used() {
    let at = place("older");
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../privfit/tests/data/older");
    let code = |args: &[&str]| at.call(args).0;
    at.write("d.csv", "x,c,y\n0.5,p,yes\n-2,q,no\n");
    for name in ["format3-planner1-objective", "format3-planner1-tuned", "format3-planner3-tuned"] {
        std::fs::copy(format!("{corpus}/{name}.json"), at.join("old.json")).unwrap();
        assert_eq!(code(&["predict", "--model", "old.json", "--data", "d.csv"]), Some(0), "{name}");
        assert_eq!(code(&["evaluate", "--model", "old.json", "--data", "d.csv"]), Some(0), "{name}");
        assert_eq!(code(&["export", "old.json", "--format", "csv"]), Some(0), "{name}");
        let (verified, _, error) = at.call(&["certificate", "verify", "old.json"]);
        assert!(verified == Some(1) && error.contains("--allow-unchecked"), "{name}: {error}");
        assert_eq!(code(&["certificate", "verify", "old.json", "--allow-unchecked"]), Some(0), "{name}");
    }
}
