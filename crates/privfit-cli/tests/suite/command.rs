//! The binary as a user meets it.

use crate::harness::{Scratch, text, top};
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn privfit(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_privfit"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A child that refuses early may close its end first.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn flags_and_requests_agree() {
    let flags = [
        "account",
        "--noise-multiplier",
        "1",
        "--rate",
        "0.01",
        "--steps",
        "1000",
        "--delta",
        "1e-5",
        "--adjacency",
        "add-remove",
        "--format",
        "json",
    ];
    let one: serde_json::Value = serde_json::from_slice(&privfit(&flags, b"").stdout).unwrap();
    let request =
        br#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"mechanisms":[{"type":"gaussian","noise_multiplier":1,
        "count":1000,"sampling":"poisson","sampling_probability":0.01}]}"#;
    let two: serde_json::Value =
        serde_json::from_slice(&privfit(&["account", "--request", "-", "--format", "json"], request).stdout).unwrap();
    assert_eq!(one["value"], two["value"]);
    assert!(one["lower"].as_f64() <= one["upper"].as_f64() && one["accountant"] == "pld" && one["adjacency"] == "add-remove");
    let out = privfit(&flags[..11], b"");
    let line = text(&out.stdout);
    assert!(line.starts_with("epsilon is at most 1.828") && line.contains("add-remove") && line.contains("pld"), "{line}");
}

#[test]
fn ten_times_a_tenth_is_one() {
    let out = privfit(&["account", "--mechanism", "pure", "--epsilon", "0.1", "--steps", "10", "--delta", "0"], b"");
    assert_eq!(text(&out.stdout), "epsilon is at most 1 (zero-out, by the pure accountant)\n");
}

#[test]
fn misuse_is_one_sentence_and_exit_code_2() {
    for (arguments, word) in [
        (vec!["account", "--noise-multiplier", "-1", "--delta", "1e-5"], "positive"),
        (vec!["account", "--noise-multiplier", "NaN", "--delta", "1e-5"], "positive"),
        (vec!["account", "--noise-multiplier", "1", "--delta", "0"], "delta above 0"),
        (vec!["account", "--noise-multiplier", "1", "--delta", "2"], "below 1"),
        (vec!["account", "--noise-multiplier", "1", "--sampling-rate", "1.5", "--delta", "1e-5"], "at most 1"),
        (vec!["account", "--noise-multiplier", "1"], "needs delta"),
        (vec!["account", "--delta", "1e-5"], "needs --noise-multiplier"),
        (vec!["account", "--mechanism", "magic", "--delta", "1e-5"], "use gaussian"),
        (vec!["account", "--noise-multiplier", "1", "--delta", "1e-5", "--adjacency", "x"], "zero-out"),
        (vec!["account", "--query", "delta", "--noise-multiplier", "1", "--epsilon", "0"], "positive"),
        (vec!["account", "--request", "/no/such/file"], "cannot read"),
        (vec!["account", "--request", "."], "cannot read"),
    ] {
        let out = privfit(&arguments, b"");
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        let message = text(&out.stderr);
        assert!(
            message.starts_with("error: ") && message.contains(word) && message.lines().count() == 1,
            "{arguments:?}: {message}"
        );
        assert!(out.stdout.is_empty());
    }
    assert_eq!(privfit(&["account", "--frobnicate"], b"").status.code(), Some(2));
    assert_eq!(privfit(&[], b"").status.code(), Some(2));
    assert_eq!(privfit(&["--help"], b"").status.code(), Some(0));
}

#[test]
fn hostile_requests_end_in_bounded_time_and_memory() {
    // A line without an end: refused after 16 MiB.
    let long = vec![b'1'; (16 << 20) + 10];
    for (input, word) in [
        (&long[..], "larger than 16 MiB"),
        (&b"\xff\xfe"[..], "UTF-8"),
        (&b"{\"query\": NaN}"[..], "JSON"),
        (&b"{\"query\": 1e400}"[..], "JSON"),
    ] {
        let out = privfit(&["account", "--request", "-"], input);
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out.stderr).contains(word), "{}", text(&out.stderr));
    }
}

#[test]
fn every_verb_has_help_with_an_example() {
    for arguments in [&["--help"][..], &["account", "--help"]] {
        let help = text(&privfit(arguments, b"").stdout);
        assert!(help.contains("Example") && help.contains("privfit "), "{arguments:?}");
    }
    assert!(text(&privfit(&["--version"], b"").stdout).starts_with("privfit 0."));
}

/// The README's job, as a user runs it: four lines, a model, and what it predicts.
#[test]
fn adult_from_fit_to_evaluate() {
    let dir = Scratch::new("adult");
    let (model, job) = (dir.join("model.json"), top().join("examples/adult/job.toml"));
    let (model, job) = (model.to_str().unwrap(), job.to_str().unwrap());
    let fit = privfit(&["fit", job, "--out", model], b"");
    assert!(fit.status.success(), "{}", text(&fit.stderr));
    let lines: Vec<String> = text(&fit.stdout).lines().map(|l| l.split_whitespace().next().unwrap_or("").to_string()).collect();
    assert_eq!(lines, ["guarantee", "public", "model", "next"]);
    let out = text(&fit.stdout);
    assert!(out.contains("epsilon 1.0000 under zero-out") && out.contains("under replace-one") && out.contains("48842 (counted"));
    let data = top().join("examples/adult/adult.csv.gz");
    let evaluate = privfit(&["evaluate", "--model", model, "--data", data.to_str().unwrap(), "--format", "json"], b"");
    let metrics: serde_json::Value = serde_json::from_slice(&evaluate.stdout).unwrap();
    assert_eq!(metrics["rows"], 48842);
    // The mean is 0.847 with a deviation of 0.001; a fit this far off would be a bug.
    assert!(metrics["accuracy"].as_f64().unwrap() > 0.83, "{metrics}");
    assert!(metrics["auc"].as_f64().unwrap() > 0.88 && metrics["log_loss"].as_f64().unwrap() < 0.36, "{metrics}");
    let predictions = dir.join("p.csv");
    let predict =
        privfit(&["predict", "--model", model, "--data", data.to_str().unwrap(), "--out", predictions.to_str().unwrap()], b"");
    assert!(predict.status.success());
    let table = std::fs::read_to_string(predictions).unwrap();
    assert_eq!(table.lines().count(), 48843);
    assert_eq!(table.lines().next(), Some("prediction,p(<=50K),p(>50K)"));
    // A model that was touched is damaged, one of the future is refused, and nothing is read from either.
    let written = std::fs::read_to_string(model).unwrap();
    for (from, to, says) in [
        ("\"delta\": 4e-10", "\"delta\": 4e-11", "digest"),
        ("\"version\": 4", "\"version\": 9", "newer"),
        ("\"privfit-model\"", "\"other\"", "not a model file"),
        ("\"artifact\"", "\"x\": 1, \"artifact\"", "digest"),
    ] {
        std::fs::write(model, written.replacen(from, to, 1)).unwrap();
        let refused = privfit(&["evaluate", "--model", model, "--data", data.to_str().unwrap()], b"");
        assert_eq!(refused.status.code(), Some(4), "{from}");
        assert!(text(&refused.stderr).contains(says), "{}", text(&refused.stderr));
    }
}

/// A dry run opens no data: the file need not even exist.
#[test]
fn dry_run_plans_without_data() {
    let job = top().join("examples/adult/job.toml");
    let plan = |extra: &[&str]| {
        let mut arguments = vec!["fit", job.to_str().unwrap(), "--dry-run", "--data", "/nowhere/at/all.csv"];
        arguments.extend_from_slice(extra);
        privfit(&arguments, b"")
    };
    let done = plan(&["--rows", "39000", "--format", "json"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["method"], "additive");
    let spent = json["epsilon"]["zero_out"].as_f64().unwrap();
    assert!(spent <= 1.0 && spent > 0.999, "{json}");
    let end = |key: &str| json["forecast"][key].as_f64().unwrap();
    assert!(0.0 <= end("least") && end("least") < end("likely") && end("likely") < end("most"));
    let missing = plan(&[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("--rows N"), "{}", text(&missing.stderr));
}

/// Misuse is found before data are opened, and every sentence says what to do.
#[test]
fn misuse_ends_with_the_fix() {
    let dir = Scratch::new("misuse");
    let schema = dir.join("schema.toml");
    let data = dir.join("data.csv");
    std::fs::write(&data, "x,y\n1,no\n2,yes\n").unwrap();
    let good = "[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n[features.x]\ntype = \"number\"\nmin = 0\nmax = 3\n";
    let fit = |schema_text: &str, extra: &[&str]| {
        std::fs::write(&schema, schema_text).unwrap();
        let model = dir.join("m.json");
        let mut arguments = vec![
            "fit",
            "--data",
            data.to_str().unwrap(),
            "--schema",
            schema.to_str().unwrap(),
            "--out",
            model.to_str().unwrap(),
            "--force",
        ];
        arguments.extend_from_slice(extra);
        let done = privfit(&arguments, b"");
        (done.status.code(), text(&done.stderr))
    };
    let usual = ["--epsilon", "1", "--delta", "1e-3"];
    assert_eq!(fit(good, &usual).0, Some(0));
    let cases: [(&str, &[&str], &str); 16] = [
        (good, &["--delta", "1e-3"], "--epsilon"),
        (good, &["--epsilon", "1"], "--delta 2.5e-1"),
        (good, &["--epsilon", "-1", "--delta", "1e-3"], "positive"),
        (good, &["--epsilon", "1", "--delta", "0.5"], "--allow-large-delta"),
        (good, &["--epsilon", "1", "--delta", "1e-3", "--rows", "5"], "correct the declaration"),
        (good, &["--epsilon", "1", "--delta", "1e-3", "--method", "magic"], "known are auto, linear, objective"),
        (good, &["--epsilon", "1", "--delta", "1e-3", "--set", "stepz=3"], "unknown setting"),
        (good, &["--epsilon", "1", "--delta", "1e-3", "--loss", "squared"], "does not fit"),
        (good, &["--epsilon", "1", "--delta", "1e-3", "--adjacency", "add-remove"], "--rows N"),
        (good, &["--epsilon", "1", "--delta", "1e-3", "--labels", "x"], "leave out --labels"),
        (&good.replace("min = 0", "min = \"?\""), &usual, "min = 0"),
        (&good.replace("min = 0", "mun = 0"), &usual, "min"),
        (&good.replace("max = 3", "max = 3\nfoo = 1"), &usual, "unknown key"),
        (&good.replace("features.x", "features.w"), &usual, "no column \"w\""),
        (&good.replace("\"yes\"]", "\"yes\"]\nsample_weights = \"w\""), &usual, "weights = [...]"),
        (&good.replace("min = 0", "min = 9"), &usual, "above min"),
    ];
    for (schema, extra, says) in cases {
        let (code, error) = fit(schema, extra);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(says), "{error:?} should say {says:?}");
    }
}

/// Drafts have no bounds, checks name the features, and diagnostics for the data owner are marked as confidential.
#[test]
fn schemas_are_drafted_checked_and_compared() {
    let dir = Scratch::new("schema");
    let data = dir.join("visits.csv");
    std::fs::write(&data, "age,ward name,ill\n40,A,no\n200,Z,yes\nx,B,no\nbroken\n").unwrap();
    let draft = privfit(&["schema", "init", data.to_str().unwrap()], b"");
    let draft = text(&draft.stdout);
    assert!(draft.contains("[features.\"ward name\"]") && draft.contains("min = \"?\"") && !draft.contains("200"), "{draft}");
    let schema = dir.join("visits.toml");
    let facts = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                 [features.age]\ntype = \"number\"\nmin = 0\nmax = 120\n[features.\"ward name\"]\ntype = \"category\"\nvalues = [\"A\", \"B\", \"C\"]\n";
    std::fs::write(&schema, facts).unwrap();
    let check = privfit(&["schema", "check", schema.to_str().unwrap()], b"");
    assert_eq!(text(&check.stdout).trim(), "visits: 5 encoded features, predicts 2 classes");
    let validate = privfit(&["schema", "validate", "--schema", schema.to_str().unwrap(), "--data", data.to_str().unwrap()], b"");
    let report = text(&validate.stdout);
    assert!(report.starts_with("CONFIDENTIAL"), "{report}");
    for says in [
        "a record that can't be read: 1 rows ([4]",
        "age: above max: 1 rows ([2]",
        "age: not a number: 1 rows ([3]",
        "not listed: 1 rows ([2]",
    ] {
        assert!(report.contains(says), "{report}");
    }
}

/// Classes that match no label: the owner is told and so is whoever evaluates on public rows, but nobody by a fit or by private metrics.
#[test]
fn labels_that_match_nothing_are_said_where_rows_are_public() {
    let dir = Scratch::new("labels");
    let [schema, good, bad, half, model, out] =
        ["s.toml", "good.csv", "bad.csv", "half.csv", "m.json", "out.txt"].map(|n| dir.join(n).to_str().unwrap().to_string());
    let facts = "[dataset]\nname = \"d\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                 [features.x]\ntype = \"number\"\nmin = 0\nmax = 1\n";
    std::fs::write(&schema, facts).unwrap();
    let table = |label: &dyn Fn(usize) -> &'static str| {
        (0..400).fold("x,ill\n".to_string(), |t, i| t + &format!("{},{}\n", (i % 10) as f64 / 10.0, label(i)))
    };
    std::fs::write(&good, table(&|i| if i % 10 > 4 { "yes" } else { "no" })).unwrap();
    std::fs::write(&bad, table(&|i| if i % 10 > 4 { "YES" } else { "NO" })).unwrap();
    std::fs::write(&half, table(&|i| ["no", "NO", "yes", ""][i % 4])).unwrap();
    let validate =
        |data: &str, more: &[&str]| privfit(&[&["schema", "validate", "--schema", &schema, "--data", data], more].concat(), b"");
    let found = validate(&bad, &[]);
    assert_eq!(found.status.code(), Some(2), "{}", text(&found.stderr));
    assert!(
        text(&found.stdout).contains("target \"ill\": a label that is none of the classes: 400 rows"),
        "{}",
        text(&found.stdout)
    );
    assert!(text(&found.stderr).contains("classes = [\"no\", \"yes\"]"), "{}", text(&found.stderr));
    // In a file of the owner's own, everything is in the file and nothing is in the exit code.
    let found = validate(&bad, &["--out", &out]);
    assert!(found.status.success() && found.stdout.is_empty() && found.stderr.is_empty());
    assert!(std::fs::read_to_string(&out).unwrap().contains("no label of these files"));
    let found = text(&validate(&half, &[]).stdout);
    assert!(found.contains("200 of 400 rows have a label that the schema knows (\"no\" 100, \"yes\" 100)"), "{found}");
    assert!(found.contains("target \"ill\": missing: 100 rows"), "{found}");
    // Numbers, and one listed value against the rest.
    std::fs::write(
        &schema,
        facts
            .replace("classes = [\"no\", \"yes\"]", "bounds = [0, 1]")
            .replace("\"ill\"", "\"x\"")
            .replace("[features.x]", "[features.ill]")
            .replace("number", "category")
            .replace("min = 0\nmax = 1", "values = [\"a\"]"),
    )
    .unwrap();
    assert!(text(&validate(&bad, &[]).stdout).contains("target \"x\": 400 of 400 rows"));
    std::fs::write(&schema, facts.replace("classes = [\"no\", \"yes\"]", "positive = [\"yes\"]")).unwrap();
    assert_eq!(validate(&good, &[]).status.code(), Some(0));
    assert_eq!(validate(&bad, &[]).status.code(), Some(2));
    std::fs::write(&schema, facts).unwrap();
    let fit = |data: &str| {
        privfit(&["fit", "--schema", &schema, "--data", data, "--epsilon", "1", "--delta", "1e-6", "--out", &model], b"")
    };
    assert!(fit(&good).status.success());
    let evaluate = |data: &str, more: &[&str]| privfit(&[&["evaluate", "--model", &model, "--data", data], more].concat(), b"");
    let found = evaluate(&bad, &[]);
    assert_eq!((found.status.code(), found.stdout.is_empty()), (Some(2), true));
    assert!(text(&found.stderr).contains("none of the 400 rows"), "{}", text(&found.stderr));
    assert!(text(&evaluate(&half, &[]).stdout).contains("rows      200 of 400 have a known label"));
    let json: serde_json::Value = serde_json::from_slice(&evaluate(&half, &["--format", "json"]).stdout).unwrap();
    assert_eq!((json["rows"].as_u64(), json["records"].as_u64()), (Some(200), Some(400)));
    // Private metrics: no exit code, no word and no other lines.
    let private: Vec<_> = [&good, &bad].map(|data| evaluate(data, &["--epsilon", "1", "--delta", "1e-6"])).into();
    for found in &private {
        let names: Vec<String> = text(&found.stdout).lines().map(|l| l.split(' ').next().unwrap().to_string()).collect();
        assert_eq!((found.status.code(), names.join(" ").as_str()), (Some(0), "rows accuracy log_loss auc guarantee"));
        assert!(!text(&found.stderr).contains("label") && !text(&found.stdout).contains("of 400"), "{}", text(&found.stderr));
    }
}

/// What is printed can be pasted: the lines that a draft lacks, the next command, the flag that is missing. Names and paths are awkward.
#[test]
fn hints_work_as_they_are_printed() {
    let dir = Scratch::new("hints of it's own");
    let names = ["net income", "a.b", "it's", "say \"\"no\"\"", "größe", "x"];
    let header: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
    let mut table = format!("{},ward,y\n", header.join(","));
    (0..300).for_each(|i| table.push_str(&format!("{i},1,2,3,4,5,{},{}\n", ["a", "b"][i % 2], ["no", "yes"][i / 150])));
    std::fs::write(dir.join("d.csv"), table).unwrap();
    let at = |line: &str| {
        let path =
            format!("{}:{}", std::path::Path::new(env!("CARGO_BIN_EXE_privfit")).parent().unwrap().display(), env!("PATH"));
        std::process::Command::new("bash").args(["-c", line]).current_dir(&dir).env("PATH", path).output().unwrap()
    };
    let draft = text(&at("privfit schema init d.csv").stdout);
    // The target is no feature; the rest is as the error says.
    let mut draft = draft.replace("[features.y]\ntype = \"category\"\nvalues = [\"?\"]\n", "");
    std::fs::write(dir.join("s.toml"), &draft).unwrap();
    let refused = at("privfit schema check s.toml");
    let mut place = 0;
    for line in text(&refused.stderr).lines().filter_map(|l| l.strip_prefix("  ")) {
        if line.starts_with('[') {
            place = draft.find(&format!("{line}\n")).unwrap_or_else(|| panic!("{line} in {draft}"));
        } else {
            let key = line.split(" = ").next().unwrap();
            let start = place + draft[place..].find(&format!("\n{key} = ")).unwrap() + 1;
            let end = start + draft[start..].find('\n').unwrap();
            draft.replace_range(start..end, line);
        }
    }
    std::fs::write(dir.join("s.toml"), draft.replace("\"NAME\"", "\"y\"")).unwrap();
    let checked = at("privfit schema check s.toml");
    assert!(checked.status.success(), "{}{draft}", text(&checked.stderr));
    // The flag that is missing, then the next command, at a path that needs quotes.
    let fit = "privfit fit --data d.csv --schema s.toml --epsilon 1 --out 'my \"model\".json'";
    let refused = text(&at(fit).stderr);
    let flag: Vec<&str> = refused[refused.find("--delta").unwrap()..].split(' ').take(2).collect();
    let done = at(&format!("{fit} {}", flag.join(" ")));
    assert!(done.status.success(), "{refused}{}", text(&done.stderr));
    let next = |done: &std::process::Output| {
        let said = text(&done.stdout);
        said.lines().find_map(|l| l.strip_prefix("next ")).unwrap_or_else(|| panic!("{said}")).trim().to_string()
    };
    let line = next(&done).replace("PUBLIC_ROWS", "d.csv");
    let done = at(&line);
    assert!(done.status.success(), "{line}: {}", text(&done.stderr));
    let refused = text(&at(&format!("{line} --epsilon 1")).stderr);
    let flag: Vec<&str> = refused[refused.find("--delta").unwrap()..].split(' ').take(2).collect();
    assert!(at(&format!("{line} --epsilon 1 {}", flag.join(" "))).status.success(), "{refused}");
    // A point, and private bounds.
    std::fs::write(dir.join("p.toml"), "[dataset]\nname = \"p\"\n[features.x]\ntype = \"number\"\nmin = 0\nmax = 9\n").unwrap();
    let done = at("privfit fit --data d.csv --schema p.toml --epsilon 1 --delta 1e-6 --loss mean --out 'the point'");
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(at(&next(&done)).status.success(), "{}", next(&done));
    let open = draft.replace("\"NAME\"", "\"y\"").replace("min = 0  ", "min = \"?\"  ");
    std::fs::write(dir.join("o.toml"), open).unwrap();
    let done = at("privfit schema bounds o.toml --data d.csv --epsilon 300 --delta 1e-6 --out 'found.toml'");
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(at(&next(&done)).status.success(), "{}", next(&done));
}

#[test]
fn methods_are_listed() {
    let json: serde_json::Value = serde_json::from_slice(&privfit(&["methods", "--format", "json"], b"").stdout).unwrap();
    let names: Vec<&str> = json["methods"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    let ours = [
        "objective",
        "objective-pure",
        "hyperparameter-free",
        "output",
        "output-gd",
        "permutation-sgd",
        "noisy-gd",
        "noisy-sgd",
        "noisy-projected-sgd",
        "correlated-noise",
        "random-round-sgd",
        "recursive-momentum",
        "adaptive-gd",
        "frank-wolfe",
        "statistics",
        "additive",
        "network",
        "additive-or-network",
        "noisy-thresholding",
        "weighted-columns",
        "hard-thresholding",
        "two-stage",
        "transfer-support",
        "transfer-blocks",
        "transfer-convex",
        "private-labels",
    ];
    assert_eq!(names[..ours.len()], ours);
    let rest = &json["methods"].as_array().unwrap()[ours.len()..];
    assert_eq!(rest.len(), 15);
    assert!(rest.iter().all(|m| m["status"].as_str().unwrap().starts_with("published form")));
    assert!(text(&privfit(&["methods"], b"").stdout).contains("AMP"));
}

/// A published form runs when asked for by name and with --compare; what it does not guarantee is said wherever its model is used.
#[test]
fn published_forms_are_for_comparison() {
    let dir = Scratch::new("published");
    let mut data = String::from("x,y\n");
    (0..400).for_each(|i| data.push_str(&format!("{},{}\n", f64::from(i % 20) / 10.0 - 1.0, i / 10 % 2)));
    let [schema, file, model] = ["s.toml", "d.csv", "m.json"].map(|name| dir.join(name).to_str().unwrap().to_string());
    std::fs::write(&file, data).unwrap();
    let columns = "[features.x]\ntype = \"number\"\nmin = -1\nmax = 1\n";
    std::fs::write(&schema, format!("[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n{columns}"))
        .unwrap();
    let fit = |extra: &[&str]| {
        let usual =
            ["fit", "--data", &file, "--schema", &schema, "--epsilon", "1", "--delta", "1e-6", "--out", &model, "--force"];
        privfit(&[&usual[..], extra].concat(), b"")
    };
    let refused = fit(&["--method", "published-p-psgd"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--compare"));
    for (rate, private) in [("learning_rate=0.1", true), ("learning_rate=100", false)] {
        let done = fit(&["--method", "published-p-psgd", "--compare", "--set", rate]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        let (says, json) = (text(&done.stdout), std::fs::read_to_string(&model).unwrap());
        assert!(says.contains("asked for  epsilon 1"), "{says}");
        assert_eq!(says.contains("guarantee  none: steps longer than"), !private, "{says}");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["artifact"]["guarantee"]["private"], private);
        // Trained with the publication's derivatives, and named so.
        assert_eq!(json["artifact"]["model"]["loss_parameters"][1], 1.0);
        let evaluate = privfit(&["evaluate", "--model", &model, "--data", &file], b"");
        assert!(evaluate.status.success(), "{}", text(&evaluate.stderr));
        assert_eq!(text(&evaluate.stderr).contains("not private"), !private);
    }
}

/// A job, its model, and what evaluate says as JSON.
fn fit_and_evaluate(dir: &std::path::Path, schema: &str, extra: &[&str]) -> serde_json::Value {
    let [schema_file, data, model] = ["s.toml", "d.csv", "m.json"].map(|name| dir.join(name).to_str().unwrap().to_string());
    std::fs::write(&schema_file, schema).unwrap();
    let usual =
        ["fit", "--data", &data, "--schema", &schema_file, "--epsilon", "4", "--delta", "1e-8", "--out", &model, "--force"];
    let fit = privfit(&[&usual[..], extra].concat(), b"");
    assert!(fit.status.success(), "{}", text(&fit.stderr));
    assert!(text(&fit.stdout).contains("epsilon 4.0000 under zero-out"), "{}", text(&fit.stdout));
    let evaluate = privfit(&["evaluate", "--model", &model, "--data", &data, "--format", "json"], b"");
    assert!(evaluate.status.success(), "{}", text(&evaluate.stderr));
    serde_json::from_slice(&evaluate.stdout).unwrap()
}

/// Quantiles, counts and points, as a user meets them. In 40 fits each limit was at least eight standard deviations away.
#[test]
fn quantiles_counts_and_points() {
    let dir = Scratch::new("losses");
    // x runs from 0 to 10; y is x^2 or x^2 + 40, in turn; counts go up with x; one row in fifty is far off in w.
    let mut data = String::from("x,y,n,w,c\n");
    for i in 0..6000u32 {
        let x = f64::from(i % 101) / 10.0;
        let (y, n) = (x * x + 40.0 * f64::from(i / 101 % 2), (0.3 * x).exp().round());
        let w = if i % 50 == 0 { 100.0 } else { 10.0 + f64::from(i % 7) - 3.0 };
        data.push_str(&format!("{x},{y},{n},{w},{}\n", if i % 4 == 0 { "b" } else { "a" }));
    }
    std::fs::write(dir.join("d.csv"), data + "broken\n,,,,\n").unwrap();
    let number = |name: &str, max: u32| format!("[features.{name}]\ntype = \"number\"\nmin = 0\nmax = {max}\n");
    let target =
        |column: &str, max: u32| format!("[dataset]\nname = \"t\"\n[target]\ncolumn = \"{column}\"\nbounds = [0, {max}]\n");
    let get = |json: &serde_json::Value, key: &str| json[key].as_f64().unwrap_or_else(|| panic!("no {key} in {json}"));

    let schema = target("y", 150) + &number("x", 10);
    for (level, low, high) in [("quantile=0.9", 0.6, 1.0), ("quantile=0.5", 0.35, 0.65)] {
        let seen = fit_and_evaluate(&dir, &schema, &["--loss", "quantile", "--set", level]);
        assert!((low..=high).contains(&get(&seen, "below")) && get(&seen, "pinball") < 15.0, "{level}: {seen}");
    }
    let schema = target("n", 60) + &number("x", 10);
    let seen = fit_and_evaluate(&dir, &schema, &["--loss", "poisson"]);
    assert!(get(&seen, "deviance") < 1.0 && get(&seen, "r2") > 0.8, "{seen}");
    let predictions = text(
        &privfit(
            &["predict", "--model", dir.join("m.json").to_str().unwrap(), "--data", dir.join("d.csv").to_str().unwrap()],
            b"",
        )
        .stdout,
    );
    assert!(predictions.lines().skip(1).all(|p| (0.0..=60.0).contains(&p.parse::<f64>().unwrap())));

    let schema = format!(
        "[dataset]\nname = \"t\"\n{}{}[features.c]\ntype = \"category\"\nvalues = [\"a\", \"b\"]\n",
        number("x", 10),
        number("w", 100)
    );
    for (extra, x, w, c) in [(&["--loss", "mean"][..], 5.0, 11.8, 0.25), (&["--loss", "geometric-median"], 5.0, 10.0, 0.0)] {
        let seen = fit_and_evaluate(&dir, &schema, extra);
        // Rows without a readable cell are left out.
        assert_eq!(seen["rows"], 6000);
        assert!(get(&seen, "distance") < 0.5, "{seen}");
        let model = dir.join("m.json");
        let point = privfit(&["predict", "--model", model.to_str().unwrap()], b"");
        let point = text(&point.stdout);
        let lines: Vec<&str> = point.lines().collect();
        assert_eq!((lines[0], lines.len()), ("feature,value", 4));
        for (line, (name, value, near)) in lines[1..].iter().zip([("x", x, 0.3), ("w", w, 1.2), ("c=b", c, 0.15)]) {
            let (key, number) = line.split_once(',').unwrap();
            let number: f64 = number.parse().unwrap();
            assert!(key == name && (number - value).abs() < near, "{extra:?}: {point}");
        }
        let rows = privfit(&["predict", "--model", model.to_str().unwrap(), "--data", dir.join("d.csv").to_str().unwrap()], b"");
        assert_eq!(text(&rows.stdout).lines().next(), Some("distance"));
    }

    // What does not fit is refused before data are opened, with the way out.
    let refused = |schema: &str, extra: &[&str], says: &str| {
        std::fs::write(dir.join("s.toml"), schema).unwrap();
        let usual = ["fit", "--schema", dir.join("s.toml").to_str().unwrap(), "--dry-run", "--rows", "6000", "--epsilon", "1"]
            .map(String::from);
        let all: Vec<&str> = usual.iter().map(String::as_str).chain(extra.iter().copied()).collect();
        let done = privfit(&all, b"");
        assert_eq!(done.status.code(), Some(2), "{extra:?}");
        assert!(text(&done.stderr).contains(says), "{extra:?}: {}", text(&done.stderr));
    };
    let delta = ["--delta", "1e-8"];
    refused(&schema, &delta, "--loss mean or --loss geometric-median");
    refused(&schema, &[&delta[..], &["--loss", "mean", "--method", "objective"]].concat(), "use --method statistics");
    refused(&schema, &[&delta[..], &["--loss", "geometric-median", "--method", "output"]].concat(), "use --method noisy-gd");
    refused(&schema, &["--delta", "0", "--loss", "mean"], "give --delta");
    refused(&schema, &["--loss", "mean"], "add --delta 2.8e-8 (1/rows^2)\n");
    refused(&(schema.clone() + "[encoding]\nintercept = true\n"), &delta, "remove intercept");
    refused(&(schema.clone() + "[encoding]\nscaling = \"sphere\"\n"), &delta, "scaling = \"ball\"");
    let shifted = target("n", 60).replace("[0, 60]", "[1, 60]") + &number("x", 10);
    refused(&shifted, &[&delta[..], &["--loss", "poisson"]].concat(), "give bounds = [0, 60]");
    refused(&shifted, &[&delta[..], &["--loss", "quantile", "--set", "quantile=1"]].concat(), "from 0.01 to 0.99");
    let check = text(&privfit(&["methods", "--format", "json"], b"").stdout);
    assert!(check.contains("\"geometric-median\"") && check.contains("\"range\":[0.01,0.99]"), "{check}");
}

/// Few columns: chosen, named, listed in the certificate; a student on public rows; a declared sparsity is enough for `auto`.
#[test]
fn few_columns_are_chosen_and_named() {
    let dir = Scratch::new("columns");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_string();
    let (schema, file, public, model) = (path("s.toml"), path("d.libsvm"), path("p.libsvm"), path("m.json"));
    let row = |i: u32| {
        let cells: Vec<String> =
            (0..30).map(|j| format!("{}:{:.2}", j + 1, f64::from((i * 7 + j * 13 + i * j) % 41) / 20.0 - 1.0)).collect();
        let class = u32::from((i * 7 + 4 * 13 + i * 4) % 41 > 20);
        format!("{class} {}\n", cells.join(" "))
    };
    std::fs::write(&file, (0..3000).map(row).collect::<String>()).unwrap();
    std::fs::write(&public, (5000..5100).map(row).collect::<String>()).unwrap();
    let facts =
        "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"sparse\"\ndimension = 30\nbound = 1\n";
    std::fs::write(&schema, facts).unwrap();
    let fit = |extra: &[&str]| {
        let usual =
            ["fit", "--data", &file, "--schema", &schema, "--epsilon", "4", "--delta", "1e-7", "--out", &model, "--force"];
        let done = privfit(&[&usual[..], extra].concat(), b"");
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        (text(&done.stdout), text(&done.stderr))
    };
    let (out, err) = fit(&["--set", "sparsity=1"]);
    assert!(err.contains("noisy-thresholding") && err.contains("few columns matter"), "{err}");
    assert!(out.contains("selected   2 of 31 columns, released information: x4, intercept"), "{out}");
    let shown = privfit(&["certificate", "show", &model], b"");
    let page = text(&shown.stdout);
    assert!(page.contains("- 2 of 31 columns, released information: x4, intercept"), "{page}");
    assert!(page.contains("  epsilon     ") && page.contains("columns chosen: 1"), "{page}");
    let json = privfit(&["certificate", "show", &model, "--format", "json"], b"");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["selected"], serde_json::json!(["x4", "intercept"]));
    let (out, err) = fit(&["--method", "KT-PS", "--set", "sparsity=1", "--auxiliary", &public]);
    assert!(err.contains("answers for 100 public rows") && out.contains("x4"), "{out} {err}");
    let missing = privfit(&["certificate", "show", &path("none.json")], b"");
    assert_eq!(missing.status.code(), Some(2));
}
