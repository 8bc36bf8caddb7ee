//! The command as its users meet it.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_privfit-bench")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory of its own for a test.
fn scratch(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("privfit-command-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn misuse_is_one_sentence_and_exit_code_2() {
    for (arguments, word) in [
        (&["account", "--only", "x"][..], "mnist60ep"),
        (&["sparse", "--features", "3"], "four times"),
        (&["gradient", "--rows", "0"], "at least 1"),
        (&["ledger", "--job", "nowhere.toml", "--repeats", "10"], "check the path"),
    ] {
        let out = bench(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        let message = text(&out.stderr);
        assert!(message.starts_with("error: ") && message.contains(word) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn every_verb_has_help_with_an_example() {
    for verb in ["", "noise", "account", "gradient", "sparse", "tables", "variants", "ledger", "fit"] {
        let arguments = [verb, "--help"];
        let help = text(&bench(if verb.is_empty() { &arguments[1..] } else { &arguments }).stdout);
        assert!(help.contains("Example") && help.contains("privfit-bench "), "{verb}: {help}");
    }
    assert!(text(&bench(&["--version"]).stdout).starts_with("privfit-bench 0."));
}

#[test]
fn benchmarks_print_json() {
    let noise: serde_json::Value = serde_json::from_slice(&bench(&["noise", "--samples", "1000"]).stdout).unwrap();
    assert!(
        noise["discrete_gaussian_per_second"].as_f64() > Some(0.0) && noise["discrete_laplace_per_second"].as_f64() > Some(0.0)
    );
    let account: serde_json::Value =
        serde_json::from_slice(&bench(&["account", "--repeats", "1", "--only", "abadi"]).stdout).unwrap();
    assert!(account["relative_gap"].as_f64() < Some(2e-3) && account["upper"].as_f64() > Some(0.9468));
    let gradient: serde_json::Value =
        serde_json::from_slice(&bench(&["gradient", "--rows", "20000", "--features", "17", "--repeats", "1"]).stdout).unwrap();
    assert_eq!(gradient["totals_identical_for_1_and_2_threads"], true);
    assert!(gradient["largest_difference_to_double_in_noise_deviations"].as_f64() < Some(8.0), "{gradient}");
    let small = ["sparse", "--rows", "500", "--features", "1000", "--non-zeros", "10", "--steps", "30", "--compare", "3"];
    let sparse: serde_json::Value = serde_json::from_slice(&bench(&small).stdout).unwrap();
    assert!(sparse["ratio"].as_f64() > Some(0.0) && sparse["new_scores_scaled"] == true, "{sparse}");
}

/// The published tables on a generated set: finished cells are kept, and a second run only draws them again.
#[test]
fn tables_are_resumable() {
    let dir = scratch("tables");
    let out = dir.to_str().unwrap();
    let all = ["tables", "convex", "--only", "Synthetic-L", "--quick", "--shared", "nowhere", "--out", out];
    let first = bench(&all);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let cells = std::fs::read_to_string(dir.join("accuracy.csv")).unwrap();
    // Two losses: without privacy, then seven epsilons of ours and six published methods, and ours at the true epsilon of those.
    let expected = 1 + 2 * (1 + 7 * 7 + 6);
    assert!(cells.lines().count() <= expected && cells.lines().count() > expected - 4, "{}", cells.lines().count());
    // A line cut off in the middle is computed again.
    let cut = cells.len() - 40;
    std::fs::write(dir.join("accuracy.csv"), &cells[..cut]).unwrap();
    assert!(bench(&all).status.success());
    assert_eq!(std::fs::read_to_string(dir.join("accuracy.csv")).unwrap().lines().count(), cells.lines().count());
    let page = std::fs::read_to_string(dir.join("README.md")).unwrap();
    assert!(page.contains("| Synthetic-L | logistic | P-SGD |") && page.contains("BANK"));
    for plot in ["synthetic-l-logistic.svg", "synthetic-l-huber-svm.svg"] {
        assert!(std::fs::metadata(dir.join("plots").join(plot)).unwrap().len() > 1000);
    }
    let wrong = bench(&["tables", "dense"]);
    assert!(wrong.status.code() == Some(2) && text(&wrong.stderr).contains("give convex"));
    let missing = bench(&["tables", "convex", "--only", "ADULT", "--shared", "nowhere", "--out", out]);
    assert!(missing.status.code() == Some(2) && text(&missing.stderr).contains("give --shared"));
    std::fs::remove_dir_all(dir).unwrap();
}

/// The tables of sparse methods on small generated data, without any file.
#[test]
fn sparse_tables_are_resumable() {
    let dir = scratch("sparse-tables");
    let out = dir.to_str().unwrap();
    let only = "chapter 3 linear n=800,table 3.2 s=2000";
    let all = ["tables", "sparse", "--only", only, "--quick", "--shared", "nowhere", "--out", out];
    let first = bench(&all);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let cells = std::fs::read_to_string(dir.join("cells.csv")).unwrap();
    // On both: the baseline, then two epsilons of three published methods, the one that is not private, and four of ours.
    assert_eq!(cells.lines().count(), 1 + 2 * (1 + 2 * 8), "{cells}");
    assert!(!cells.contains("refused"), "{cells}");
    // A line cut off in the middle is computed again, with the same numbers; only times differ.
    let numbers =
        |cells: &str| -> Vec<String> { cells.lines().filter_map(|l| Some(l.rsplit_once(',')?.0.to_string())).collect() };
    std::fs::write(dir.join("cells.csv"), &cells[..cells.len() - 40]).unwrap();
    assert!(bench(&all).status.success());
    assert_eq!(numbers(&std::fs::read_to_string(dir.join("cells.csv")).unwrap()), numbers(&cells));
    let page = std::fs::read_to_string(dir.join("README.md")).unwrap();
    assert!(
        page.contains("| DPSL-KT printed (NOT private) |") && page.contains("E2006-TFIDF") && page.contains("3.731 (0.207) /")
    );
    for plot in ["chapter-3-linear-n-800-d-1000-small.svg", "texts-for-table-3.2-s-2000-small.svg"] {
        assert!(std::fs::metadata(dir.join("plots").join(plot)).unwrap().len() > 1000);
    }
    let missing = bench(&["tables", "sparse", "--only", "PCMAC", "--shared", "nowhere", "--out", out]);
    assert!(!missing.status.success());
    std::fs::remove_dir_all(dir).unwrap();
}

/// Settings side by side: one line each, on rows that are held out, with the forecast that a network without a word on its noise would go by.
#[test]
fn variants_are_lines() {
    let common = ["variants", "--shared", "nowhere", "--set", "generated-table", "--epsilon", "8", "--fits", "1"];
    let out =
        bench(&[&common[..], &["--variant", "correlated=true steps=40", "--variant", "correlated=false steps=40"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let lines: Vec<serde_json::Value> = text(&out.stdout).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        let correlated = line["variant"] == "correlated=true steps=40";
        assert!(line["batches"].is_string() == correlated && line["rate"].is_string() != correlated, "{line}");
        assert!(line["held"] == "validation" && line["accuracy"].as_f64() > Some(0.6), "{line}");
    }
    // Forty steps of twenty batches: two epochs, where correlated noise has less than samples at this epsilon.
    assert!(lines[0]["forecast"].as_f64() < Some(0.85) && lines[0]["forecast"] == lines[1]["forecast"], "{}", lines[0]);
    for wrong in [["--set", "letters"], ["--variant", "steps"]] {
        let out = bench(&[&["variants", "--shared", "nowhere"][..], &wrong].concat());
        assert_eq!(out.status.code(), Some(2));
    }
}

/// The tables on losses that are not convex, on generated rows: finished cells are kept, and a second run draws them again.
#[test]
fn nonconvex_tables_are_resumable() {
    let dir = scratch("nonconvex-tables");
    let out = dir.to_str().unwrap();
    let all = ["tables", "nonconvex", "--only", "Synthetic-L", "--quick", "--shared", "nowhere", "--out", out];
    let first = bench(&all);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let cells = std::fs::read_to_string(dir.join("cells.csv")).unwrap();
    // Two epsilons: fourteen methods, five points of two curves, four strengths of smoothing.
    assert_eq!(cells.lines().count(), 1 + 2 * (14 + 10 + 4), "{cells}");
    let numbers =
        |cells: &str| -> Vec<String> { cells.lines().filter_map(|l| Some(l.rsplit_once(',')?.0.to_string())).collect() };
    std::fs::write(dir.join("cells.csv"), &cells[..cells.len() - 40]).unwrap();
    assert!(bench(&all).status.success());
    assert_eq!(numbers(&std::fs::read_to_string(dir.join("cells.csv")).unwrap()), numbers(&cells));
    let page = std::fs::read_to_string(dir.join("README.md")).unwrap();
    assert!(page.contains("| 0.2 | storm-without-noise | none |") && page.contains("Tables 5.3 and 5.4"), "{page}");
    // The one figure that needs no data.
    assert!(std::fs::metadata(dir.join("plots/figure-5-2.svg")).unwrap().len() > 1000);
    let missing = bench(&["tables", "nonconvex", "--only", "a9a", "--shared", "nowhere", "--out", out]);
    assert!(!missing.status.success());
    std::fs::remove_dir_all(dir).unwrap();
}
