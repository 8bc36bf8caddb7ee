//! Whoever reads an exit code must not take silence for "good": what can't be written is exit code 3.

use super::place;
use crate::harness::Scratch;
use privfit::Artifact;
use std::fs::File;
use std::process::{Command, Stdio};

/// Verdicts and data: nobody may stop reading them.
const ANSWERS: [&str; 9] = [
    "certificate verify m.json",
    "certificate verify bad.json",
    "ledger verify l",
    "ledger export l",
    "predict --model m.json --data d.csv",
    "evaluate --model m.json --data d.csv --epsilon 1 --delta 1e-6 --ledger l",
    "export m.json --format csv",
    "audit sensitivity --method output --pairs 3",
    "account --noise-multiplier 1 --delta 1e-5",
];

/// Plain listings: `| head` is no failure.
const LISTINGS: [&str; 6] = [
    "methods",
    "explain",
    "certificate show m.json",
    "ledger show l",
    "account --rows 20000 --features 8 --loss logistic --epsilon 0.5",
    "--help",
];

fn scene(name: &str) -> Scratch {
    let here = place(name);
    here.ok("ledger create l --schema s.toml --epsilon 100 --delta 1e-6");
    here.ok("fit job.toml");
    // A claim that does not hold, with a digest that does.
    let mut bad = Artifact::from_json(&std::fs::read_to_string(here.join("m.json")).unwrap()).unwrap();
    bad.certificate.guarantee.zero_out = Some(0.001);
    std::fs::write(here.join("bad.json"), bad.to_json().unwrap()).unwrap();
    here.refused("certificate verify bad.json", 1, "does not hold");
    here
}

fn code(command: &mut Command, stdout: Stdio) -> (Option<i32>, String) {
    let done = command.stdout(stdout).output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let end = reader.stdin.take().unwrap();
    reader.wait().unwrap();
    end.into()
}

#[test]
fn an_answer_that_is_not_written_is_exit_3() {
    let here = scene("answers");
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    // Open, and not for writing: the standard library takes that for success.
    let unwritable = || Stdio::from(File::open("/dev/null").unwrap());
    for line in ANSWERS {
        for (what, stdout) in [("full", full()), ("closed", closed()), ("unwritable", unwritable())] {
            let (code, said) = code(&mut here.command(line), stdout);
            assert_eq!(code, Some(3), "{line}, {what}: {said}");
            assert!(said.contains("standard output can't be written to"), "{line}, {what}: {said}");
        }
    }
    for line in LISTINGS {
        assert_eq!(code(&mut here.command(line), full()).0, Some(3), "{line}");
        let (code, said) = code(&mut here.command(line), closed());
        assert!(code == Some(0) && !said.contains("error"), "{line}: {code:?} {said}");
    }
}
