//! The tools first: a tracer that misses calls, a recorder that loses bytes or a disk that forgets would let every test pass.

use crate::faults::disk::{Disk, Loss};
use crate::faults::recorder::{Operation, Recorder};
use crate::faults::scene::Scene;
use crate::faults::tracer::{Act, run};
use std::path::PathBuf;

fn fit(scene: &Scene) -> std::process::Command {
    let mut command = scene.command(&["fit", "--method", "output", "--epsilon", "0.1", "--delta", "0", "--threads", "1"]);
    for (flag, value) in [("--data", "d.csv"), ("--schema", "s.toml"), ("--out", "m.json")] {
        command.arg(flag).arg(scene.path(value));
    }
    command
}

#[test]
fn calls_are_seen_ended_and_failed() {
    let scene = Scene::new("tracer");
    let mut recorder = Recorder::new(&scene.root);
    let seen = run(&mut fit(&scene), |stop| {
        recorder.observe(stop);
        Act::Go
    });
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(seen.calls > 50 && !seen.killed && seen.stdout.contains("guarantee"));
    // Replaying what was noted gives the files that are there.
    let mut disk = Disk::default();
    recorder.done.iter().for_each(|(_, operation)| disk.step(operation));
    let model = std::fs::read(scene.path("m.json")).unwrap();
    assert_eq!(disk.after(Loss::None)[&scene.path("m.json")], model);
    let opened = recorder.first(|o| matches!(o, Operation::Open { path, .. } if path.ends_with("d.csv"))).unwrap();
    // Ended there, nothing comes after.
    std::fs::remove_file(scene.path("m.json")).unwrap();
    let ended = run(&mut fit(&scene), |stop| if stop.number == opened { Act::Kill } else { Act::Go });
    assert!(ended.killed && ended.code.is_none() && ended.calls == opened + 1 && !scene.path("m.json").exists());
    let failed = run(&mut fit(&scene), |stop| match (stop.number == opened, stop.result) {
        (true, None) => Act::Fail(libc::EMFILE),
        (true, Some(result)) => {
            assert_eq!(result, -i64::from(libc::EMFILE));
            Act::Go
        }
        _ => Act::Go,
    });
    assert!(failed.code == Some(2) && failed.stderr.contains("Too many open files"), "{}", failed.stderr);
    // A short write is gone on with.
    let mut shortened = 0;
    let whole = run(&mut fit(&scene), |stop| {
        let long = stop.call == libc::SYS_write && stop.arguments[2] > 1000;
        if long && stop.result.is_none() && shortened == 0 {
            shortened += 1;
            return Act::Shorten(7);
        }
        Act::Go
    });
    assert!(whole.code == Some(0) && shortened == 1);
    assert!(std::fs::read_to_string(scene.path("m.json")).unwrap().trim_end().ends_with('}'));
}

#[test]
fn a_disk_loses_what_was_not_synchronised() {
    let [a, b, directory] = ["/t/a", "/t/b", "/t"].map(PathBuf::from);
    let mut disk = Disk::default();
    let make = |path: &PathBuf| Operation::Open { path: path.clone(), make: true, empty: false };
    disk.step(&make(&a));
    disk.step(&Operation::Write { path: a.clone(), offset: 0, bytes: vec![1; 1200] });
    assert!(disk.after(Loss::All).is_empty() && disk.sectors() == 3);
    assert_eq!(disk.after(Loss::None)[&a], vec![1; 1200]);
    assert_eq!(disk.after(Loss::Torn(2))[&a], vec![1; 1024]);
    disk.step(&Operation::Sync { path: directory.clone() });
    assert!(disk.after(Loss::All)[&a].is_empty());
    disk.step(&Operation::Sync { path: a.clone() });
    disk.step(&Operation::Rename { from: a.clone(), to: b.clone() });
    assert!(disk.after(Loss::All).contains_key(&a) && disk.after(Loss::Contents)[&b] == vec![1; 1200]);
    disk.step(&Operation::Sync { path: directory });
    let found = disk.after(Loss::All);
    assert!(found.len() == 1 && found[&b] == vec![1; 1200]);
    let lengths: std::collections::BTreeSet<usize> = (0..50)
        .map(|seed| {
            let mut disk = disk.clone();
            disk.step(&Operation::Write { path: b.clone(), offset: 1200, bytes: vec![2; 1024] });
            disk.after(Loss::Some(seed))[&b].len()
        })
        .collect();
    assert_eq!(Vec::from_iter(lengths), [1200, 1712, 2224]);
}
