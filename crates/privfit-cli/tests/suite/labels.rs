//! Private labels, as a user meets them: a job with its ledger and certificate, students, a command as learner, and a server.

use crate::harness::{Scratch, text};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SCHEMA: &str = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                      [features.age]\ntype = \"number\"\nmin = 0\nmax = 100\n[features.ward]\ntype = \"category\"\nvalues = [\"A\", \"B\"]\n";

fn rows(count: usize, odd: &str) -> String {
    let row = |i: usize| match i {
        7 => format!("{odd}\n"),
        _ => {
            format!("{},{},{}\n", 20 + i * 7 % 60, if i % 3 == 0 { "A" } else { "B" }, if i * 7 % 60 > 30 { "yes" } else { "no" })
        }
    };
    format!("age,ward,ill\n{}", (0..count).map(row).collect::<String>())
}

fn place(name: &str, count: usize) -> Scratch {
    let here = Scratch::new(name);
    here.write("d.csv", rows(count, "30,A,no"));
    here.write("s.toml", SCHEMA);
    let points: String = (0..60).map(|i| format!("{},A\n", 20 + i)).collect();
    here.write("p.csv", format!("age,ward\n{points}"));
    here
}

const JOB: &str = "label --data d.csv --schema s.toml --points p.csv --epsilon 2 --delta 1e-8";

#[test]
fn labels_have_a_ledger_a_certificate_and_students() {
    let here = place("labels", 9000);
    let plan = here.json(&format!("{JOB} --rows 9000 --dry-run"));
    let offers = plan["offers"].as_array().unwrap();
    assert!(plan["epsilon"]["zero_out"].as_f64().unwrap() <= 2.0 && plan["points"] == 60 && !offers.is_empty(), "{plan}");
    assert!(!here.join("l.json").exists());
    assert!(here.ok(&format!("{JOB} --rows 9000 --dry-run")).contains("of the parts agree"));
    here.ok("ledger create b --schema s.toml --epsilon 3 --delta 1e-7");
    let said = here.json(&format!("{JOB} --out l.json --ledger b --request one --table t.csv --student additive --model a.json"));
    assert!(said["answered"].as_u64().unwrap() > 20 && said["private"] == true, "{said}");
    assert_eq!(here.json("ledger show b")["jobs"].as_array().unwrap().len(), 1, "a student costs nothing");
    let table = here.read("t.csv");
    let right = table.lines().skip(1).enumerate().filter_map(|(i, line)| {
        let label = line.split(',').nth(1)?;
        (!label.is_empty() && !(45..56).contains(&(20 + i))).then_some((label == "yes") == (20 + i > 50))
    });
    let right: Vec<bool> = right.collect();
    assert!(right.len() > 15 && right.iter().filter(|r| **r).count() as f64 > 0.85 * right.len() as f64, "{table}");
    for file in ["l.json", "a.json"] {
        here.ok(&format!("certificate verify {file}"));
        assert!(here.ok(&format!("certificate show {file}")).contains("votes"), "{file}");
        let found = here.json(&format!("evaluate --model {file} --data d.csv"));
        assert!(found["accuracy"].as_f64().unwrap() > 0.8, "{file}: {found}");
    }
    here.ok("certificate verify l.json --ledger b");
    // The same request gives the same labels again.
    let before = here.read("l.json");
    here.ok(&format!("{JOB} --out again.json --ledger b --request one"));
    assert_eq!(here.read("again.json"), before);
    for (more, words) in [
        ("--adjacency add-remove --rows 9000", "unit indices"),
        ("--student forest --model x.json", "give auto, logistic"),
        ("--set teachers=command", "command"),
        ("--set parts=100000", "more than there are units"),
    ] {
        here.refused(&format!("{JOB} --out x.json {more}"), 2, words);
    }
}

/// A command whose part holds a certain record crashes, hangs, forks, fills its memory or the disk, prints garbage or answers too little. From outside all of these
/// look the same: exit code, what is printed but for noise, and time.
#[test]
#[cfg(target_os = "linux")]
fn what_a_command_does_shows_nowhere() {
    let here = place("command", 200);
    let learner = "#!/bin/sh\nn=$(($(wc -l < \"$2\") - 1))\nif grep -q '^1,' \"$1\"; then\n@@\nfi\nyes 1 | head -n $n > \"$3\"\n";
    let (mut looks, mut times) = (Vec::new(), Vec::new());
    for bad in [
        "true",
        "exit 9",
        "sleep 60",
        "sleep 60 & sleep 60 & exit",
        "echo nonsense > \"$3\"; exit",
        "head -n 2 /dev/zero > \"$3\"; exit",
    ] {
        here.write("learner.sh", learner.replace("@@", bad));
        // The oldest person of all has the cell 1.
        here.write("d.csv", rows(200, "100,A,yes"));
        let started = Instant::now();
        let line = format!("{JOB} --out l.json --force --set parts=3 --seconds 0.4 --format json --command");
        let (code, out, err) = here.call(&[line.split_whitespace().collect::<Vec<_>>(), vec!["sh learner.sh"]].concat());
        times.push(started.elapsed());
        let mut said: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{bad}: {out} {err}"));
        // How many are answered is released, with noise.
        said["answered"] = 0.into();
        looks.push((code, said.to_string(), err));
    }
    assert!(looks.iter().all(|look| *look == looks[0] && look.0 == Some(0)), "{looks:#?}");
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(*least > Duration::from_secs_f64(3.0 * 0.65), "{times:?}");
    println!("{least:?} to {most:?}");
    let left: Vec<String> = std::fs::read_dir(std::env::temp_dir())
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|n| n.starts_with(&"privfit-command-".to_string()))
        .collect();
    assert!(left.len() < 3, "directories are left: {left:?}");
}

/// A server answers what is sure for nothing, ends when its unsure answers are spent, goes on after a restart, and never begins a stretch that is not in the ledger.
#[test]
fn a_server_spends_before_it_answers() {
    let here = place("serve", 9000);
    let line = "label --data d.csv --schema s.toml --epsilon 3 --delta 1e-8 --serve --unsure 3 --set parts=3000";
    assert!(here.ok(&format!("{line} --dry-run --rows 9000")).contains("a lead of"));
    here.refused(line, 2, "--ledger FILE and --request NAME");
    here.ok("ledger create b --schema s.toml --epsilon 4 --delta 1e-7");
    let serve = |points: &str| {
        let mut child = here.command(&format!("{line} --ledger b --request desk"));
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A server that is at its end reads no more.
        let _ = child.stdin.take().unwrap().write_all(format!("age,ward\n{points}").as_bytes());
        let done = child.wait_with_output().unwrap();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let (code, first, err) = serve("80,A\n20,A\n79,B\n21,B\n");
    assert_eq!((code, first.lines().count()), (Some(0), 4), "{first} {err}");
    assert!(first.lines().all(|l| ["yes", "no", "?"].contains(&l)), "{first}");
    assert_eq!(here.json("ledger show b")["jobs"].as_array().unwrap().len(), 1);
    // The border of the classes is unsure: not more than three stretches are left in all.
    let mut unsure = first.matches('?').count();
    for _ in 0..6 {
        let (code, out, err) = serve("50.5,A\n50.4,A\n50.6,A\n50.5,B\n");
        unsure += out.matches('?').count();
        if code != Some(0) {
            assert!(code == Some(1) && err.contains("unsure answers of this request are spent"), "{err}");
            break;
        }
    }
    assert!(unsure <= 3, "{unsure}");
    here.ok("ledger verify b");
    let (code, out, _) = serve("80,A\n");
    assert!(code == Some(1) && out.is_empty(), "nothing is answered when all is spent");
}
