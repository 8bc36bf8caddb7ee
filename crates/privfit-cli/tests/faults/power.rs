//! Power that is lost at any moment between the making of a ledger and the end of its second fit: from what the processes wrote and
//! synchronised every disk is built that may be found afterwards (`disk.rs`), and on each of them nothing is published that was not paid
//! for, and whoever has opened data has spent.

use crate::checks::{Standing, open, standing};
use crate::disk::{Disk, Files, Loss, Numbers};
use crate::recorder::{Operation, Recorder};
use crate::scene::Scene;
use crate::tracer::{Act, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a traced process did, and that it ended well.
fn record(scene: &Scene, command: &mut Command) -> Vec<Operation> {
    let mut recorder = Recorder::new(&scene.root);
    let outcome = run(command, |stop| {
        recorder.observe(stop);
        Act::Go
    });
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // The index of the log lives in memory that is shared: it does not count after a loss of power.
    recorder.done.into_iter().map(|(_, o)| o).filter(|o| !about(o).ends_with("ledger-shm")).collect()
}

fn about(operation: &Operation) -> &Path {
    match operation {
        Operation::Open { path, .. } | Operation::Write { path, .. } | Operation::Cut { path, .. } => path,
        Operation::Sync { path } | Operation::Remove { path } => path,
        Operation::Rename { to, .. } | Operation::Link { to, .. } => to,
    }
}

/// What has happened so far, and what follows from it for any disk.
#[derive(Default)]
struct Promise {
    /// The ledger was made, and its maker has ended.
    made: bool,
    /// Requests whose data were opened.
    opened: Vec<&'static str>,
    /// Requests that ended well: what they wrote is there for good.
    ended: Vec<&'static str>,
}

/// The disk in a directory of its own, where the ledger is opened; the paths of the disk are those of the scene.
fn lay_out(files: &Files, scene: &Scene, to: &Path, garbage: Option<u64>) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for (path, bytes) in files {
        std::fs::write(to.join(path.strip_prefix(&scene.root).unwrap()), bytes).unwrap();
    }
    if let Some(seed) = garbage {
        let mut random = Numbers(seed);
        let bytes: Vec<u8> = (0..32768).map(|_| random.next() as u8).collect();
        std::fs::write(to.join("ledger-shm"), bytes).unwrap();
    }
}

fn check(promise: &Promise, at: &Path, when: &str) {
    let place = at.join("ledger");
    let opened = open(place.to_str().unwrap());
    let models = |name: &&str| at.join(format!("m-{name}.json"));
    let (mut ledger, status) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            // A ledger whose maker never ended is none, and says so.
            assert!(!promise.made, "{when}: {error}");
            assert!([2, 4].contains(&error.code()), "{when}: {error}");
            return;
        }
    };
    for name in ["one", "two"] {
        let stands = standing(&mut ledger, &status, name);
        assert!(!promise.opened.contains(&name) || stands != Standing::Unknown, "{when}: {name} opened data and spent nothing");
        let model = std::fs::read(models(&name)).ok();
        if promise.ended.contains(&name) {
            assert!(matches!(stands, Standing::Released(_)), "{when}: {name} had ended well and is {stands:?}");
            assert!(model.is_some(), "{when}: the model of {name} is gone although its command ended well");
        }
        if let Some(model) = model {
            let Standing::Released(bytes) = stands else { panic!("{when}: {name} is published and {stands:?}") };
            assert!(model == bytes, "{when}: the model of {name} has {} of {} bytes", model.len(), bytes.len());
        }
    }
}

#[test]
fn at_any_moment() {
    let scene = Scene::new("power");
    let place = scene.ledger();
    let schema = scene.path("s.toml");
    let create = ["ledger", "create", &place, "--schema", schema.to_str().unwrap(), "--epsilon", "1", "--delta", "0"];
    let parts = [
        ("", record(&scene, &mut scene.command(&create))),
        ("one", record(&scene, &mut scene.fit(&place, "one", "m-one.json"))),
        ("two", record(&scene, &mut scene.fit(&place, "two", "m-two.json"))),
    ];
    let target = Scene::new("power-after");
    let (mut disk, mut promise, mut states) = (Disk::default(), Promise::default(), 0u64);
    // What was there before anything began has long been synchronised.
    for name in ["d.csv", "s.toml"] {
        disk.step(&Operation::Open { path: scene.path(name), make: true, empty: false });
    }
    disk.step(&Operation::Sync { path: scene.root.clone() });
    let mut seen = 0;
    for (name, operations) in &parts {
        let opens: Vec<usize> = (0..operations.len()).filter(|i| about(&operations[*i]).ends_with("d.csv")).collect();
        for (i, operation) in operations.iter().enumerate() {
            disk.step(operation);
            if opens.last() == Some(&i) {
                promise.opened.push(name);
            }
            if i + 1 == operations.len() {
                if name.is_empty() { promise.made = true } else { promise.ended.push(name) }
            }
            // Looking changes nothing on the disk.
            if matches!(operation, Operation::Open { make: false, empty: false, .. }) && opens.last() != Some(&i) {
                continue;
            }
            let torn = (0..disk.sectors()).map(Loss::Torn);
            let seed = states;
            let some = (0..6).map(|n| Loss::Some(seed + 7919 * n));
            let losses = [Loss::All, Loss::None, Loss::Contents, Loss::Names].into_iter().chain(torn).chain(some);
            for loss in losses {
                let files = disk.after(loss);
                let to: PathBuf = target.path("disk");
                lay_out(&files, &scene, &to, (states % 5 == 4).then_some(states));
                check(&promise, &to, &format!("{name:?} after operation {i} ({:?}), lost {loss:?}", about(operation)));
                states += 1;
            }
            seen += 1;
        }
    }
    println!("{states} disks after {seen} operations");
    assert!(states > 500 && promise.ended.len() == 2 && promise.opened.len() == 2);
}
