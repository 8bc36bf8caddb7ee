//! What makes the command pleasant: help for shells and `man`, the glossary, the table of methods, the comparison of methods, export.

use crate::harness::{Scratch, json, printed, privfit, text};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn bash_completes_a_verb_and_a_flag() {
    let place = Scratch::new("bash");
    let script = place.join("privfit.bash");
    std::fs::write(&script, printed(&["completions", "bash"])).unwrap();
    let complete = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let program = format!(
            "set -u; source {script}; COMP_WORDS=({words}); COMP_CWORD={at}; COMPREPLY=(); _privfit privfit '{last}' '{before}'; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script = script.display(),
            words = words.iter().map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" "),
            at = words.len() - 1,
            last = words[words.len() - 1],
            before = words[words.len() - 2],
        );
        let output = Command::new("bash").args(["-c", &program]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(complete("privfit eva").trim(), "evaluate");
    assert!(complete("privfit ledger cre").contains("create"));
    assert!(complete("privfit fit --eps").contains("--epsilon"));
    for (shell, word) in
        [("zsh", "#compdef privfit"), ("fish", "complete -c privfit"), ("powershell", "Register-ArgumentCompleter")]
    {
        assert!(printed(&["completions", shell]).contains(word), "{shell}");
    }
}

#[test]
fn manual_pages_are_whole_and_render_without_a_warning() {
    let place = Scratch::new("man");
    assert!(privfit(&["man", "--out", place.to_str().unwrap()]).status.success());
    let mut pages: Vec<PathBuf> = std::fs::read_dir(&place).unwrap().map(|e| e.unwrap().path()).collect();
    pages.sort();
    for name in ["privfit", "privfit-fit", "privfit-ledger", "privfit-ledger-create", "privfit-explain"] {
        assert!(pages.iter().any(|p| p.file_name().unwrap() == format!("{name}.1").as_str()), "{name}");
    }
    let groff = Command::new("groff").arg("--version").output().is_ok();
    for page in &pages {
        let source = std::fs::read_to_string(page).unwrap();
        assert!(source.contains(".TH ") && source.contains(".SH NAME") && source.contains(".SH SYNOPSIS"), "{}", page.display());
        if groff {
            let done = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(page).output().unwrap();
            assert!(done.status.success() && done.stderr.is_empty(), "{}: {}", page.display(), text(&done.stderr));
        }
    }
    let fit = std::fs::read_to_string(place.join("privfit-fit.1")).unwrap();
    assert!(fit.contains(".SH EXAMPLES\n.nf\n") && fit.contains("\n  privfit fit examples/adult/job.toml\n"), "{fit}");
    assert_eq!(printed(&["man"]).trim_end(), std::fs::read_to_string(place.join("privfit.1")).unwrap().trim_end());
}

#[test]
fn terms_are_explained() {
    let all = json(&["explain"]);
    assert!(all.as_array().unwrap().len() >= 45);
    let delta = printed(&["explain", "delta"]);
    assert!(delta.starts_with("delta") && delta.contains("--delta") && delta.contains("see also"), "{delta}");
    assert_eq!(json(&["explain", "noise", "multiplier"])["term"], "noise multiplier");
    assert_eq!(json(&["explain", "Renyi_differential-privacy"])["term"], "RDP");
    assert!(printed(&["explain", "epsilon", "--format", "markdown"]).starts_with("## epsilon\n"));
    let wrong = privfit(&["explain", "epslion"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("did you mean \"epsilon\"?"), "{}", text(&wrong.stderr));
    assert!(printed(&["explain"]).lines().all(|l| l.chars().count() <= 80));
}

#[test]
fn methods_are_a_table_that_fits() {
    let table = printed(&["methods"]);
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    let head = table.lines().next().unwrap();
    for column in ["method", "losses", "needs", "guarantee", "source", "status"] {
        assert!(head.contains(column), "{head}");
    }
    let all = json(&["methods"]);
    for m in all["methods"].as_array().unwrap() {
        for key in ["name", "losses", "needs", "guarantee", "theorem", "source", "status", "settings", "example"] {
            assert!(!m[key].is_null(), "{} has no {key}", m["name"]);
        }
    }
    assert_eq!(json(&["methods", "noisy-gd"])["plan_of_example"]["plan"]["steps"], "234");
    let one = printed(&["methods", "AMP"]);
    assert!(
        one.starts_with("objective (also AMP)") && one.contains("--set      ridge=") && one.contains("privfit fit --data"),
        "{one}"
    );
    let wrong = privfit(&["methods", "objectiv"]);
    assert!(wrong.status.code() == Some(2) && text(&wrong.stderr).contains("did you mean \"objective\"?"));
}

/// The forecasts of the comparison are those of `fit --dry-run` for a table with the same facts, method by method.
#[test]
fn the_comparison_agrees_with_dry_runs() {
    let place = Scratch::new("compare");
    let schema = place.join("schema.toml");
    let features: String = (0..7).map(|i| format!("[features.c{i}]\ntype = \"number\"\nmin = 0\nmax = 9\n")).collect();
    let two = "classes = [\"a\", \"b\"]";
    for (loss, target, classes, adjacency) in [
        ("logistic", two, "2", "replace-one"),
        ("softmax", "classes = [\"a\", \"b\", \"c\", \"d\"]", "4", "zero-out"),
        ("squared", "bounds = [0, 5]", "", "zero-out"),
        ("logistic", two, "", "add-remove"),
    ] {
        std::fs::write(&schema, format!("[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\n{target}\n{features}")).unwrap();
        let mut flags = vec!["account", "--rows", "20000", "--features", "7", "--loss", loss, "--epsilon", "0.7"];
        flags.extend(["--adjacency", adjacency]);
        if !classes.is_empty() {
            flags.extend(["--classes", classes]);
        }
        let all = json(&flags);
        assert_eq!(all["delta"].as_f64(), Some(1.0 / 20000f64.powi(2)));
        let methods = all["methods"].as_array().unwrap();
        assert!(methods.len() > 15 && methods[0]["applies"] == true, "{all}");
        let values: Vec<f64> = methods.iter().filter_map(|m| m["forecast"]["most"].as_f64()).collect();
        assert!(values.windows(2).all(|w| w[0] <= w[1]), "{values:?}");
        for m in methods {
            let name = m["method"].as_str().unwrap();
            // Plans for sampled steps take long, and are made in the same way.
            if name.contains("sgd") {
                continue;
            }
            let path = schema.to_str().unwrap();
            let mut flags =
                vec!["fit", "--schema", path, "--rows", "20000", "--epsilon", "0.7", "--delta", "2.5e-9", "--dry-run"];
            flags.extend(["--loss", loss, "--method", name, "--adjacency", adjacency, "--format", "json"]);
            let dry = privfit(&flags);
            assert_eq!(dry.status.success(), m["applies"] == true, "{name} {loss} {adjacency}: {}", text(&dry.stderr));
            if dry.status.success() {
                let dry: Value = serde_json::from_slice(&dry.stdout).unwrap();
                assert_eq!(dry["forecast"], m["forecast"], "{name} {loss} {adjacency}");
                assert_eq!(dry["plan"], m["plan"]);
            } else {
                assert!(text(&dry.stderr).contains(m["why"].as_str().unwrap()), "{name}: {m}");
            }
        }
        let auto = ["fit", "--schema", schema.to_str().unwrap(), "--rows", "20000", "--epsilon", "0.7", "--delta", "2.5e-9"];
        let auto = json(&[&auto[..], &["--dry-run", "--loss", loss, "--adjacency", adjacency]].concat());
        assert_eq!(auto["method"], all["auto"], "{loss} {adjacency}");
    }
    let table = privfit(&["account", "--rows", "50000", "--features", "30", "--loss", "logistic", "--epsilon", "1"]);
    assert!(text(&table.stderr).contains("1/rows^2") && text(&table.stdout).contains("objective *"), "{}", text(&table.stdout));
    assert!(text(&table.stdout).lines().skip(2).all(|l| l.chars().count() <= 80), "{}", text(&table.stdout));
}

#[test]
fn models_are_exported() {
    let place = Scratch::new("export");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../privfit/tests/corpus/model/objective.json");
    let graph = place.join("m.onnx");
    let done = privfit(&["export", model, "--format", "onnx", "--out", graph.to_str().unwrap()]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(std::fs::read(&graph).unwrap().windows(16).any(|w| w == b"privfit.epsilon."));
    assert!(printed(&["export", model, "--format", "csv"]).starts_with("feature,yes\nage,0.52"));
    let wrong = privfit(&["export", model, "--format", "onnx"]);
    assert!(wrong.status.code() == Some(2) && text(&wrong.stderr).trim_end().ends_with("add --out model.onnx"));
}

#[test]
fn the_start_is_friendly() {
    let alone = privfit(&[]);
    let said = text(&alone.stderr);
    assert!(alone.status.code() == Some(2) && said.starts_with("privfit trains models") && !said.contains('\x1b'), "{said}");
    assert_eq!(said.matches("\n  privfit ").count(), 4);
    let wrong = privfit(&["fitt"]);
    assert!(wrong.status.code() == Some(2) && text(&wrong.stderr).contains("'fit'"));
    for verb in printed(&["--help"])
        .lines()
        .skip_while(|l| *l != "Commands:")
        .skip(1)
        .take_while(|l| l.starts_with("  "))
        .filter(|l| !l.starts_with("   "))
    {
        let verb = verb.split_whitespace().next().unwrap();
        if verb != "help" && !verb.starts_with('(') {
            let help = printed(&["help", verb]);
            assert!(help.contains("Example") && help.contains(&format!("privfit {verb}")), "{verb}: {help}");
        }
    }
}

/// Colour is for terminals, and for nobody who says no.
#[cfg(unix)]
#[test]
fn colour_is_for_terminals_only() {
    let seen = |arguments: &[&str], no_color: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_privfit"));
        command.args(arguments).env("TERM", "xterm").env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        on_a_terminal(command)
    };
    let red = "\x1b[1;31merror\x1b[0m: ";
    assert!(seen(&["explain", "epslion"], false).contains(red));
    assert!(!seen(&["explain", "epslion"], true).contains('\x1b'));
    assert!(!seen(&["explain", "epslion", "--format", "json"], false).contains('\x1b'));
    assert!(seen(&["explain", "delta"], false).starts_with("\x1b[1mdelta"));
    assert!(!seen(&["explain", "delta"], true).contains('\x1b'));
    assert!(!seen(&["fitt", "--format", "json"], false).contains('\x1b'));
    assert!(!text(&privfit(&["explain", "epslion"]).stderr).contains('\x1b'));
}

/// What a command writes when both of its outputs are a terminal.
#[cfg(unix)]
fn on_a_terminal(mut command: Command) -> String {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::FromRawFd;
    let (mut main, mut side) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: two descriptors come back, and each is owned by one file below.
    let made = unsafe { libc::openpty(&mut main, &mut side, none, none.cast(), none.cast()) };
    assert_eq!(made, 0);
    // SAFETY: as above.
    let (mut main, side) = unsafe { (File::from_raw_fd(main), File::from_raw_fd(side)) };
    let mut child = command.stdout(side.try_clone().unwrap()).stderr(side).spawn().unwrap();
    drop(command);
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    // A terminal whose other end is closed is an error, and the end.
    while let Ok(count) = main.read(&mut buffer) {
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
