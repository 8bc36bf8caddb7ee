//! The binary as a user meets it.

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

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
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
        (vec!["account", "--noise-multiplier", "1", "--rate", "1.5", "--delta", "1e-5"], "at most 1"),
        (vec!["account", "--noise-multiplier", "1"], "needs delta"),
        (vec!["account", "--delta", "1e-5"], "needs --noise-multiplier"),
        (vec!["account", "--mechanism", "magic", "--delta", "1e-5"], "use gaussian"),
        (vec!["account", "--noise-multiplier", "1", "--delta", "1e-5", "--adjacency", "x"], "zero-out"),
        (vec!["account", "--query", "delta", "--noise-multiplier", "1", "--epsilon", "0"], "positive"),
        (vec!["account", "--request", "/no/such/file"], "cannot read"),
        (vec!["account", "--request", "."], "cannot read"),
        (vec!["bench", "account", "--only", "x"], "mnist60ep"),
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
    for arguments in [
        &["--help"][..],
        &["account", "--help"],
        &["bench", "--help"],
        &["bench", "noise", "--help"],
        &["bench", "account", "--help"],
        &["bench", "gradient", "--help"],
    ] {
        let help = text(&privfit(arguments, b"").stdout);
        assert!(help.contains("Example") && help.contains("privfit "), "{arguments:?}");
    }
    assert!(text(&privfit(&["--version"], b"").stdout).starts_with("privfit 0."));
}

#[test]
fn benchmarks_print_json() {
    let noise: serde_json::Value =
        serde_json::from_slice(&privfit(&["bench", "noise", "--samples", "1000"], b"").stdout).unwrap();
    assert!(
        noise["discrete_gaussian_per_second"].as_f64() > Some(0.0) && noise["discrete_laplace_per_second"].as_f64() > Some(0.0)
    );
    let account: serde_json::Value =
        serde_json::from_slice(&privfit(&["bench", "account", "--repeats", "1", "--only", "abadi"], b"").stdout).unwrap();
    assert!(account["relative_gap"].as_f64() < Some(2e-3) && account["upper"].as_f64() > Some(0.9468));
    let gradient: serde_json::Value = serde_json::from_slice(
        &privfit(&["bench", "gradient", "--rows", "20000", "--features", "17", "--repeats", "1"], b"").stdout,
    )
    .unwrap();
    assert_eq!(gradient["totals_identical_for_1_and_2_threads"], true);
    assert!(gradient["largest_difference_to_double_in_noise_deviations"].as_f64() < Some(8.0), "{gradient}");
}
