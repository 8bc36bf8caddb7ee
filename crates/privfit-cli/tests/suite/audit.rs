//! `privfit audit` as a user meets it.

use crate::harness::privfit;
use serde_json::Value;
use std::process::Output;

fn audit(arguments: &[&str]) -> Output {
    privfit(&[&["audit"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    crate::harness::json(&[&["audit"], arguments].concat())
}

#[test]
fn good_methods_pass() {
    let found = json(&["sensitivity", "--method", "objective", "--pairs", "300"]);
    assert_eq!((found["violated"].as_bool(), found["audit"].as_str()), (Some(false), Some("sensitivity")));
    assert!(found["largest"].as_f64().unwrap() > 0.5 && found["largest"].as_f64().unwrap() <= 1.0);
    assert!(found["values"].as_array().unwrap().len() >= 12, "two kinds of values in six kinds of pairs");
    let found = json(&["distribution", "--method", "noisy-gd", "--set", "steps=1", "--runs", "900"]);
    assert_eq!(found["violated"], false);
    let mu = found["claim"]["mu"].as_f64().unwrap();
    assert!((mu - 2.0).abs() < 0.01 && found["lower_bound"]["shift"].as_f64().unwrap() > 1.0);
    assert!(found["claim"]["epsilon"].as_f64().unwrap() <= 10.0 && found["shift_judged"] == true);
    assert_eq!((found["false_alarm"].as_f64(), found["runs_per_world"].as_u64()), (Some(1e-6), Some(900)));
    let found = json(&["canaries", "--method", "noisy-gd", "--canaries", "500"]);
    assert!(found["lower_bound"]["epsilon"].as_f64().unwrap() > 1.0 && found["violated"] == false);
    let layers = ["--method", "network", "--layers", "dense 3, tanh", "--set", "sampling_rate=1", "--set", "steps=2"];
    let found = json(&[&["canaries", "--canaries", "500"][..], &layers].concat());
    assert!(found["lower_bound"]["epsilon"].as_f64().unwrap() > 1.0 && found["violated"] == false && found["loss"] == "softmax");
    let found = json(&["precision", "--method", "statistics", "--runs", "100"]);
    assert!(found["grids"][0]["off"] == 0 && found["inverse"]["fits"] == 100 && found["violated"] == false);
    let out = audit(&["sensitivity", "--method", "output", "--pairs", "60"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("whole vector") && text.contains("#") && text.contains("proves nothing"), "{text}");
}

/// A published form does not keep what it prints: exit code 1, and the sentence ends with what to do.
#[test]
fn violations_are_exit_code_1() {
    let out = audit(&[
        "sensitivity",
        "--method",
        "published-knowledge-transfer",
        "--rows",
        "20",
        "--pairs",
        "300",
        "--set",
        "sparsity=1",
    ]);
    let error = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{error}");
    assert!(error.contains("the claim does not hold") && error.contains("do not release"), "{error}");
}

#[test]
fn broken_mechanisms_cannot_be_reached_and_misuse_is_told() {
    for name in ["intercept", "wrong-sensitivity", "noise from a fixed seed", "two trials charged once", "shuffled", "broken"] {
        let out = audit(&["distribution", "--method", name, "--runs", "60"]);
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{name}: {error}");
        assert!(error.contains("unknown method"), "{name}: {error}");
    }
    for (arguments, says) in [
        (&["distribution"][..], "--method"),
        (&["distribution", "--method", "noisy-gd", "--runs", "3"][..], "at least 30"),
        (&["canaries", "--method", "output"][..], "audit distribution"),
        (&["canaries", "--method", "noisy-gd", "--canaries", "2"][..], "20 to 200000"),
        (&["sensitivity", "--method", "noisy-gd", "--data", "x.csv"][..], "--schema"),
        (&["sensitivity", "--method", "noisy-gd", "--rows", "0"][..], "--rows"),
    ] {
        let out = audit(arguments);
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
}

/// On the owner's records: a warning that the output is confidential.
#[test]
fn own_records_are_announced() {
    let folder = std::env::temp_dir().join(format!("privfit-audit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (data, schema) = (folder.join("d.csv"), folder.join("s.toml"));
    let lines: String = (0..30).map(|i| format!("{},{}\n", f64::from(i) / 30.0, if i % 2 == 0 { "no" } else { "yes" })).collect();
    std::fs::write(&data, format!("x,y\n{lines}")).unwrap();
    std::fs::write(
        &schema,
        "[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n[features.x]\ntype = \"number\"\nmin = 0\nmax = 1\n",
    )
    .unwrap();
    let files = ["--schema", schema.to_str().unwrap(), "--data", data.to_str().unwrap()];
    for what in ["sensitivity", "distribution"] {
        let more = ["--method", "noisy-gd", "--set", "steps=3", "--pairs", "60", "--runs", "120", "--format", "json"];
        let out = audit(&[&[what][..], &files, &more].concat());
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(0), "{error}");
        assert!(error.contains("confidential"), "{error}");
        let found: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(found["rows"], 30);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
