//! Power that is lost at any moment between the making of a ledger and the end of its second fit: from what the processes wrote and
//! synchronised every disk is built that may be found afterwards (`disk.rs`), and on each of them nothing is published that was not paid
//! for, and whoever has opened data has spent.

use crate::faults::checks::{Standing, open, standing};
use crate::faults::disk::{Disk, Files, Loss, Numbers};
use crate::faults::recorder::{Operation, Recorder};
use crate::faults::scene::Scene;
use crate::faults::tracer::{Act, run};
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

fn check(promise: &Promise, at: &Path) -> Result<(), String> {
    let (mut ledger, status) = match open(at.join("ledger").to_str().unwrap()) {
        Ok(opened) => opened,
        // A ledger whose maker never ended is none, and says so.
        Err(error) if !promise.made && [2, 4].contains(&error.code()) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    for name in ["one", "two"] {
        let stands = standing(&mut ledger, &status, name);
        if promise.opened.contains(&name) && stands == Standing::Unknown {
            return Err(format!("{name} opened data and spent nothing"));
        }
        let model = std::fs::read(at.join(format!("m-{name}.json"))).ok();
        let ended = promise.ended.contains(&name);
        match (&stands, &model) {
            (Standing::Released(bytes), Some(model)) if bytes == model => {}
            (_, Some(model)) => return Err(format!("{name} is published with {} bytes and stands {stands:?}", model.len())),
            (Standing::Released(_), None) if ended => {
                return Err(format!("the model of {name} is gone although its fit had ended"));
            }
            (_, None) if ended => return Err(format!("{name} had ended and stands {stands:?}")),
            (_, None) => {}
        }
    }
    Ok(())
}

/// What was done: by the maker of the ledger, and by two fits.
fn example(scene: &Scene) -> [(&'static str, Vec<Operation>); 3] {
    let place = scene.ledger();
    let schema = scene.path("s.toml");
    let create = ["ledger", "create", &place, "--schema", schema.to_str().unwrap(), "--epsilon", "1", "--delta", "0"];
    [
        ("", record(scene, &mut scene.command(&create))),
        ("one", record(scene, &mut scene.fit(&place, "one", "m-one.json"))),
        ("two", record(scene, &mut scene.fit(&place, "two", "m-two.json"))),
    ]
}

/// Looks at every disk that may be found; how many, or what is wrong with the first one that breaks a promise. Synchronisations of a file
/// whose name ends with `forgotten` count as not made.
fn explore(scene: &Scene, example: &[(&'static str, Vec<Operation>)], forgotten: Option<&str>) -> Result<u64, String> {
    let target = Scene::new("power-after");
    let to: PathBuf = target.path("disk");
    let (mut disk, mut promise, mut states) = (Disk::default(), Promise::default(), 0u64);
    // What was there before anything began has long been synchronised.
    for name in ["d.csv", "s.toml"] {
        disk.step(&Operation::Open { path: scene.path(name), make: true, empty: false });
    }
    disk.step(&Operation::Sync { path: scene.root.clone() });
    for (name, operations) in example {
        let opens: Vec<usize> = (0..operations.len()).filter(|i| about(&operations[*i]).ends_with("d.csv")).collect();
        for (i, operation) in operations.iter().enumerate() {
            let forget = |path: &Path| forgotten.is_some_and(|f| path.to_str().unwrap().ends_with(f));
            if !matches!(operation, Operation::Sync { path } if forget(path)) {
                disk.step(operation);
            }
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
            let (torn, seed) = ((0..disk.sectors()).map(Loss::Torn), states);
            let some = (0..6).map(|n| Loss::Some(seed + 7919 * n));
            for loss in [Loss::All, Loss::None, Loss::Contents, Loss::Names].into_iter().chain(torn).chain(some) {
                lay_out(&disk.after(loss), scene, &to, (states % 5 == 4).then_some(states));
                check(&promise, &to)
                    .map_err(|e| format!("{name:?} after operation {i} ({:?}), lost {loss:?}: {e}", about(operation)))?;
                states += 1;
            }
        }
    }
    assert!(promise.ended.len() == 2 && promise.opened.len() == 2);
    Ok(states)
}

#[test]
fn at_any_moment() {
    let scene = Scene::new("power");
    let states = explore(&scene, &example(&scene), None).unwrap();
    println!("{states} disks");
    assert!(states > 500);
}

/// The test can fail: without any one of the synchronisations that there are, some disk breaks a promise.
#[test]
fn every_synchronisation_is_needed() {
    let scene = Scene::new("forgotten");
    let example = example(&scene);
    let directory = scene.root.file_name().unwrap().to_str().unwrap().to_string();
    for forgotten in ["ledger-wal", "ledger", "partial", directory.as_str()] {
        let found = explore(&scene, &example, Some(forgotten));
        println!("without synchronising {forgotten}: {found:?}");
        assert!(found.is_err(), "{forgotten}");
    }
}
