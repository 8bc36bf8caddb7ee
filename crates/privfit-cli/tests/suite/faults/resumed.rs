//! Networks that are ended while they are trained, again and again, and gone on with: the same bytes as at once in a simulation, one reservation
//! and every step written down once where a ledger pays.

use crate::faults::checks::{Standing, civil, finish, open, standing};
use crate::faults::disk::Numbers;
use crate::faults::kills::times;
use crate::faults::recorder::{Operation, Recorder};
use crate::faults::scene::{SECRET, Scene, files};
use crate::faults::tracer::{Act, run};
use privfit::ledger::record::Record;
use std::process::Command;

/// Where the state is kept.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    /// In a file, of a simulation.
    File,
    /// In a ledger, of a private run.
    Ledger,
    /// In a file with keys of noise: correlated noise, simulated or private, of a network or of a linear model.
    Keys { private: bool, layers: bool },
}

/// Correlated noise of a network, in a simulation.
const KEYS: Kept = Kept::Keys { private: false, layers: true };

impl Kept {
    fn is_in_file(self) -> bool {
        self != Kept::Ledger
    }

    /// Whether the same bytes come out as at once.
    fn is_simulated(self) -> bool {
        !matches!(self, Kept::Ledger | Kept::Keys { private: true, .. })
    }
}

/// A small network, or a linear model, with so many steps, kept every so many.
fn network(scene: &Scene, kept: Kept, steps: u64, every: u64) -> Command {
    let mut command = scene.command(&["fit", "--epsilon", "1", "--delta", "1e-3", "--threads", "1"]);
    for (flag, value) in [("--data", "d.csv"), ("--schema", "s.toml"), ("--out", "m.json")] {
        command.arg(flag).arg(scene.path(value));
    }
    if !matches!(kept, Kept::Keys { layers: false, .. }) {
        command.args(["--layers", "dense 2,tanh", "--set", &format!("steps={steps}")]);
    }
    match kept {
        // Without samples a plan takes milliseconds, and hundreds of processes plan.
        Kept::File | Kept::Ledger => command.args(["--set", "sampling_rate=1"]),
        Kept::Keys { layers: true, .. } => {
            command.args(["--set", "sampling_rate=0.5", "--set", "correlated=true", "--set", "bands=3"])
        }
        Kept::Keys { layers: false, .. } => command.args([
            "--method",
            "correlated-noise",
            "--set",
            "batches=2",
            "--set",
            &format!("epochs={}", steps / 2),
            "--set",
            "bands=3",
        ]),
    };
    if kept.is_simulated() {
        command.args(["--simulate", "5"]);
    }
    match kept.is_in_file() {
        true => command.arg("--checkpoint").arg(scene.path("run")),
        false => command.args(["--request", "here", "--checkpoint", "ledger", "--ledger", &scene.ledger()]),
    };
    command.args(["--checkpoint-every", &every.to_string()]);
    command
}

/// A directory, with a ledger where one is needed, and what an undisturbed simulation gives.
fn begin(name: &str, kept: Kept, steps: u64) -> (Scene, Option<Vec<u8>>) {
    let scene = Scene::new(name);
    if kept == Kept::Ledger {
        let (place, schema) = (scene.ledger(), scene.path("s.toml"));
        let create = ["ledger", "create", &place, "--schema", schema.to_str().unwrap(), "--epsilon", "3", "--delta", "1e-3"];
        let made = scene.run(&create);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        return (scene, None);
    }
    if !kept.is_simulated() {
        return (scene, None);
    }
    let mut whole = network(&scene, kept, steps, 1);
    // Without any checkpoint.
    let arguments: Vec<_> = whole.get_args().map(|a| a.to_owned()).collect();
    let end = arguments.iter().position(|a| a == "--checkpoint").unwrap();
    whole = scene.command(&[]);
    let done = finish(whole.args(&arguments[..end]));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(scene.path("m.json")).unwrap();
    std::fs::remove_file(scene.path("m.json")).unwrap();
    (scene, Some(bytes))
}

/// Records of the request: reservations, processes that went on, checkpoints, releases.
fn records(scene: &Scene) -> [u64; 4] {
    let mut found = [0; 4];
    for (record, _) in &open(&scene.ledger()).unwrap().1.records {
        match record {
            Record::Open { .. } => {}
            Record::Reserve { .. } => found[0] += 1,
            Record::Resume { .. } => found[1] += 1,
            Record::Checkpoint { .. } => found[2] += 1,
            Record::Commit { .. } => found[3] += 1,
        }
    }
    found
}

/// The step after which a process said that it goes on.
fn resumed(stderr: &str) -> Option<u64> {
    stderr.lines().find_map(|l| l.strip_prefix("note: going on after step ")?.split(' ').next()?.parse().ok())
}

/// What holds after a whole run, however often it was ended.
fn whole(scene: &Scene, kept: Kept, expected: Option<&[u8]>, checkpoints: u64, when: &str) {
    let model = std::fs::read(scene.path("m.json")).unwrap();
    for path in files(&scene.root).iter().filter(|p| !p.ends_with("d.csv")) {
        let bytes = std::fs::read(path).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()), "{when}: {}", path.display());
    }
    match kept {
        Kept::File | Kept::Keys { .. } => {
            assert!(!kept.is_simulated() || Some(&model[..]) == expected, "{when}: other bytes");
            assert!(!scene.path("run").exists() && !scene.path("run.partial").exists(), "{when}: a checkpoint is left");
        }
        Kept::Ledger => {
            let [reserved, _, kept, released] = records(scene);
            assert_eq!((reserved, kept, released), (1, checkpoints, 1), "{when}: every step is written down once");
            let (mut ledger, status) = open(&scene.ledger()).unwrap();
            assert_eq!(standing(&mut ledger, &status, "here"), Standing::Released(model), "{when}");
        }
    }
}

/// Certificate and ledger hold, and the event is that of the plan.
fn certified(scene: &Scene, steps: u64) {
    let (place, model) = (scene.ledger(), scene.path("m.json"));
    let model = model.to_str().unwrap();
    for line in [["certificate", "verify", model, "--ledger", &place], ["ledger", "verify", &place, "--model", model]] {
        let done = scene.run(&line);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
    let artifact = privfit::Artifact::from_bytes(&std::fs::read(model).unwrap()).unwrap();
    let reserved = open(&place).unwrap().1.summary().jobs.remove(0).event;
    assert_eq!(artifact.guarantee.event, reserved, "what was executed is what was reserved");
    assert!(matches!(reserved, privfit::account::Event::Repeat { times, .. } if times == steps), "{reserved:?}");
}

/// The certificate holds, and the event is that of the plan, which says that all steps of so many coordinates are one release.
fn certified_alone(scene: &Scene, steps: u64) {
    let model = scene.path("m.json");
    let done = scene.run(&["certificate", "verify", model.to_str().unwrap()]);
    let says = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && says.contains("made again from the public facts: event, noise"), "{says}");
    let artifact = privfit::Artifact::from_bytes(&std::fs::read(model).unwrap()).unwrap();
    let privfit::account::Event::DiscreteGaussian { dimension, .. } = artifact.guarantee.event else {
        panic!("{:?}", artifact.guarantee.event)
    };
    assert!(artifact.guarantee.private && dimension.is_multiple_of(steps) && dimension > steps);
}

/// Ended at the k-th call for every k, and gone on with to the end.
fn at_every_call(kept: Kept, stride: usize) -> usize {
    let (steps, every) = (6, 2);
    let (scene, expected) = begin("every", kept, steps);
    let start = scene.copy();
    for k in (0..).step_by(stride) {
        scene.restore(&start);
        let after = k / stride % 2 == 1;
        let outcome = run(&mut network(&scene, kept, steps, every), |stop| {
            if stop.number == k && stop.result.is_some() == after { Act::Kill } else { Act::Go }
        });
        if !outcome.killed {
            assert!(outcome.code == Some(0) && outcome.calls <= k + 1, "{}", outcome.stderr);
            return k;
        }
        let when = format!("ended {} call {k}", if after { "after" } else { "before" });
        let published = scene.path("m.json").exists();
        let before = (kept == Kept::Ledger).then(|| records(&scene));
        let done = finish(&mut network(&scene, kept, steps, every));
        let says = String::from_utf8_lossy(&done.stderr);
        civil(&says, &when);
        match (done.status.code(), published) {
            (Some(0), _) => {}
            // It was delivered, and only the end of the process is missing: nothing is there to go on with.
            (Some(2), true) if kept.is_in_file() && !scene.path("run").exists() => {
                assert!(says.contains("is there already"), "{when}: {says}");
            }
            other => panic!("{when}: {other:?} {says}"),
        }
        // What was written down is what it goes on from.
        if let Some([_, _, checkpoints, 0]) = before {
            assert_eq!(resumed(&says).unwrap_or(0), checkpoints * every, "{when}: {says}");
        }
        whole(&scene, kept, expected.as_deref(), steps / every, &when);
    }
    unreachable!("a fit makes finitely many calls")
}

#[test]
fn a_file_at_every_call() {
    let calls = at_every_call(Kept::File, times(5, 1));
    assert!(calls >= 100, "{calls}");
}

/// The same where the state has keys of noise: those of the steps before come of them again, to the bit.
#[test]
fn a_file_with_keys_at_every_call() {
    let calls = at_every_call(KEYS, times(23, 1));
    assert!(calls >= 100, "{calls}");
}

#[test]
fn a_ledger_at_every_call() {
    let calls = at_every_call(Kept::Ledger, times(11, 1));
    assert!(calls >= 300, "{calls}");
}

/// One run that is ended so many times, each at a random call.
fn storm(kept: Kept, seed: u64) {
    let kills = times(10, 50);
    let steps = 4 * kills as u64;
    let (scene, expected) = begin("storm", kept, steps);
    let start = scene.copy();
    // Calls of a process that takes no step, and of one step: from two lengths.
    let calls = [8u64, 16].map(|steps| {
        scene.restore(&start);
        let outcome = run(&mut network(&scene, kept, steps, 1), |_| Act::Go);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        outcome.calls
    });
    let step = (calls[1] - calls[0]) / 8;
    let begin = calls[0] - 8 * step;
    scene.restore(&start);
    let mut random = Numbers(seed);
    let (mut ended, mut from) = (0, Vec::new());
    while ended < kills {
        // Most of them while it trains, some before.
        let k = if random.below(4) == 0 { random.below(begin) } else { begin - begin / 8 + random.below(begin / 8 + 4 * step) };
        let after = random.below(2) == 0;
        let outcome = run(&mut network(&scene, kept, steps, 1), |stop| {
            if stop.number == k && stop.result.is_some() == after { Act::Kill } else { Act::Go }
        });
        assert!(outcome.killed, "call {k}: {:?} {}", outcome.code, outcome.stderr);
        ended += 1;
        from.extend(resumed(&outcome.stderr));
        assert!(from.is_sorted(), "nothing that was kept is forgotten: {from:?}");
    }
    let done = finish(&mut network(&scene, kept, steps, 1));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    from.dedup();
    println!("{ended} kills, gone on from {from:?} of {steps}");
    assert!(from.len() >= kills / 5, "{from:?}");
    whole(&scene, kept, expected.as_deref(), steps, "after the storm");
    if kept == (Kept::Keys { private: true, layers: true }) {
        certified_alone(&scene, steps);
    }
    if kept == Kept::Ledger {
        certified(&scene, steps);
        let again = finish(network(&scene, kept, steps, 1).arg("--force"));
        assert!(again.status.success() && String::from_utf8_lossy(&again.stderr).contains("released before"));
        whole(&scene, kept, None, steps, "asked again");
    }
}

#[test]
fn a_storm_of_kills_in_a_simulation() {
    storm(Kept::File, 11);
}

#[test]
fn a_storm_of_kills_with_correlated_noise() {
    storm(KEYS, 13);
    storm(Kept::Keys { private: true, layers: true }, 14);
    storm(Kept::Keys { private: false, layers: false }, 15);
}

/// A ledger is read by others, and takes no keys: refused before anything is spent, with a way out.
#[test]
fn a_ledger_takes_no_keys() {
    let (scene, _) = begin("keys", Kept::Ledger, 4);
    let all: Vec<_> = network(&scene, Kept::Ledger, 4, 2).get_args().map(|a| a.to_str().unwrap().to_string()).collect();
    let sampled = all.iter().map(|a| if a == "sampling_rate=1" { "sampling_rate=0.5" } else { a });
    let done = finish(scene.command(&[]).args(sampled).args(["--set", "correlated=true"]));
    let says = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.code() == Some(2) && says.contains("as confidential as the records") && says.contains("correlated=false"),
        "{says}"
    );
    assert_eq!(records(&scene), [0; 4]);
}

#[test]
fn a_storm_of_kills_in_a_ledger() {
    storm(Kept::Ledger, 12);
}

/// Every state is durable under its name before the next step is computed, and the last one goes after the model is durable.
#[test]
fn the_order_of_states() {
    let (scene, _) = begin("states", Kept::File, 3);
    let mut recorder = Recorder::new(&scene.root);
    let outcome = run(&mut network(&scene, Kept::File, 3, 1), |stop| {
        recorder.observe(stop);
        Act::Go
    });
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let (state, partial, model) = (scene.path("run"), scene.path("run.partial"), scene.path("m.json"));
    let at = |what: &dyn Fn(&Operation) -> bool| -> Vec<usize> {
        recorder.done.iter().enumerate().filter(|(_, (_, o))| what(o)).map(|(i, _)| i).collect()
    };
    let renamed = at(&|o| matches!(o, Operation::Rename { from, to } if *from == partial && *to == state));
    let begun = at(&|o| matches!(o, Operation::Open { path, make: true, .. } if *path == partial));
    let synced = at(&|o| matches!(o, Operation::Sync { path } if *path == partial));
    let named = at(&|o| matches!(o, Operation::Sync { path } if *path == scene.root));
    assert_eq!((renamed.len(), begun.len(), synced.len()), (3, 3, 3));
    for i in 0..3 {
        let durable = *named.iter().find(|n| **n > renamed[i]).unwrap();
        assert!(begun[i] < synced[i] && synced[i] < renamed[i], "state {i}");
        assert!(i == 2 || durable < begun[i + 1], "state {i}");
    }
    let data = at(&|o| matches!(o, Operation::Open { path, .. } if path.ends_with("d.csv")));
    let made = at(&|o| matches!(o, Operation::Rename { to, .. } if *to == state));
    assert!(made[0] < *data.last().unwrap(), "there is a place for states before data are opened");
    let published = at(&|o| matches!(o, Operation::Rename { to, .. } if *to == model));
    let gone = at(&|o| matches!(o, Operation::Remove { path } if *path == state));
    assert!(published.len() == 1 && gone.len() == 1);
    assert!(named.iter().any(|n| published[0] < *n && *n < gone[0]), "the model is durable before its state goes");
}

/// A disk that fails under a checkpoint ends the run, and nothing of it is lost.
#[test]
fn a_disk_that_fails() {
    let (scene, expected) = begin("fails", Kept::File, 4);
    let start = scene.copy();
    for (call, nth) in [libc::SYS_write, libc::SYS_fsync, libc::SYS_rename].iter().flat_map(|c| [(*c, 0), (*c, 2)]) {
        scene.restore(&start);
        let mut recorder = Recorder::new(&scene.root);
        let mut met = 0;
        let outcome = run(&mut network(&scene, Kept::File, 4, 1), |stop| {
            recorder.observe(stop);
            let partial = match call {
                libc::SYS_rename => crate::faults::tracer::text(stop.thread, stop.arguments[0]).ends_with("run.partial"),
                _ => recorder.path(stop.arguments[0]).is_some_and(|p| p.ends_with("run.partial")),
            };
            if stop.result.is_some() || stop.call != call || !partial {
                return Act::Go;
            }
            met += 1;
            if met == nth + 1 { Act::Fail(libc::ENOSPC) } else { Act::Go }
        });
        let when = format!("call {call}, time {nth}");
        assert_eq!(outcome.code, Some(3), "{when}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("check its disk") && !scene.path("m.json").exists(), "{when}: {}", outcome.stderr);
        let done = finish(&mut network(&scene, Kept::File, 4, 1));
        assert!(done.status.success(), "{when}: {}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(resumed(&String::from_utf8_lossy(&done.stderr)).unwrap_or(0), nth, "{when}");
        whole(&scene, Kept::File, expected.as_deref(), 4, &when);
    }
}

/// Ends a run of eight steps after one or two of its four states are durable.
fn stopped(scene: &Scene, kept: Kept) {
    let mut recorder = Recorder::new(&scene.root);
    let outcome = run(&mut network(scene, kept, 8, 2), |stop| {
        recorder.observe(stop);
        let wrote = |words: &[u8], end: &str| {
            let has = |o: &Operation| matches!(o, Operation::Write { path, bytes, .. } if path.to_str().unwrap().ends_with(end) && bytes.windows(words.len()).any(|w| w == words));
            recorder.done.iter().filter(|(_, o)| has(o)).count()
        };
        // A log that is emptied ends a transaction.
        let ends = match kept {
            Kept::File | Kept::Keys { .. } => stop.call == libc::SYS_rename && wrote(b"privfit checkpoint", "run.partial") == 2,
            Kept::Ledger => stop.call == libc::SYS_ftruncate && wrote(b"{\"checkpoint\"", "ledger-wal") == 2,
        };
        if ends && stop.result.is_some() { Act::Kill } else { Act::Go }
    });
    assert!(outcome.killed, "{:?} {}", outcome.code, outcome.stderr);
}

/// A file with keys is for its owner alone, and nothing of the keys is left in the model or beside it.
#[test]
fn keys_are_for_their_owner_and_go() {
    use std::os::unix::fs::PermissionsExt;
    let (scene, expected) = begin("mode", KEYS, 8);
    stopped(&scene, KEYS);
    for name in ["run", "run.partial"] {
        let Ok(there) = std::fs::metadata(scene.path(name)) else { continue };
        assert_eq!(there.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let bytes = std::fs::read(scene.path("run")).unwrap();
    assert!(bytes.windows(6).any(|w| w == b"\"keys\""), "there are keys in it");
    let done = finish(&mut network(&scene, KEYS, 8, 2));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    whole(&scene, KEYS, expected.as_deref(), 4, "at last");
    for path in files(&scene.root) {
        let left = std::fs::read(&path).unwrap();
        assert!(!left.windows(6).any(|w| w == b"\"keys\""), "{}", path.display());
    }
}

#[test]
fn what_is_not_gone_on_with() {
    let (scene, expected) = begin("foreign", Kept::File, 8);
    stopped(&scene, Kept::File);
    let good = std::fs::read(scene.path("run")).unwrap();
    let refused = |more: &[&str], code: i32, words: &str| {
        let done = finish(network(&scene, Kept::File, 8, 2).args(more));
        let says = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(code) && says.contains(words), "{more:?}: {:?} {says}", done.status.code());
        assert!(!scene.path("m.json").exists());
    };
    // Another seed, setting, guarantee, adjacency, number of rows, schema; and a private run never goes on with a simulation.
    let rows = std::fs::read_to_string(scene.path("d.csv")).unwrap();
    let schema = std::fs::read_to_string(scene.path("s.toml")).unwrap();
    std::fs::write(scene.path("other.toml"), schema.replace("max = 1", "max = 2")).unwrap();
    std::fs::write(scene.path("more.toml"), schema.replace("rows = 30", "rows = 31")).unwrap();
    let arguments = |scene: &Scene, seed: Option<&str>| {
        let all: Vec<_> = network(scene, Kept::File, 8, 2).get_args().map(|a| a.to_str().unwrap().to_string()).collect();
        let at = all.iter().position(|a| a == "--simulate").unwrap();
        let seed = seed.map_or(Vec::new(), |s| vec!["--simulate".to_string(), s.into()]);
        [&all[..at], &seed, &all[at + 2..]].concat()
    };
    for seed in [None, Some("6")] {
        let done = finish(scene.command(&[]).args(arguments(&scene, seed)));
        assert_eq!(done.status.code(), Some(2), "{seed:?}");
        assert!(String::from_utf8_lossy(&done.stderr).contains("another job"));
    }
    refused(&["--set", "clip=0.2"], 2, "checkpoint of another job");
    refused(&["--adjacency", "replace-one"], 2, "checkpoint of another job");
    refused(&["--layers", "dense 3,tanh"], 2, "checkpoint of another job");
    let swap = |from: &str, to: &str| {
        let all = arguments(&scene, Some("5")).into_iter().map(|a| if a.ends_with(from) { a.replace(from, to) } else { a });
        let done = finish(scene.command(&[]).args(all.collect::<Vec<_>>()));
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, says) = swap("s.toml", "other.toml");
    assert!(code == Some(2) && says.contains("another job"), "{code:?} {says}");
    std::fs::write(scene.path("d.csv"), format!("{rows}0.5,1\n")).unwrap();
    let (code, says) = swap("s.toml", "more.toml");
    assert!(code == Some(2) && says.contains("another job"), "{code:?} {says}");
    std::fs::write(scene.path("d.csv"), rows).unwrap();
    // Torn or damaged, or no checkpoint at all.
    for bad in [&good[..good.len() - 1], &good[..100], b"", b"x,y\n1,0\n"] {
        std::fs::write(scene.path("run"), bad).unwrap();
        refused(&[], 4, "damaged");
    }
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    std::fs::write(scene.path("run"), flipped).unwrap();
    refused(&[], 4, "damaged");
    // The state itself is none the worse for any of it.
    std::fs::write(scene.path("run"), good).unwrap();
    let done = finish(&mut network(&scene, Kept::File, 8, 2));
    assert!(done.status.success() && resumed(&String::from_utf8_lossy(&done.stderr)).is_some());
    whole(&scene, Kept::File, expected.as_deref(), 4, "at last");
}

/// An older copy of the ledger, put back after somebody went on: its checkpoint would be used twice.
#[test]
fn an_old_copy_of_the_ledger_is_not_gone_on_with() {
    let (scene, _) = begin("old", Kept::Ledger, 8);
    let go = || {
        let mut command = network(&scene, Kept::Ledger, 8, 2);
        command.env("XDG_STATE_HOME", scene.path("state"));
        command
    };
    stopped(&scene, Kept::Ledger);
    let [_, _, checkpoints, _] = records(&scene);
    assert!(checkpoints > 0 && checkpoints < 4, "{checkpoints}");
    let old = std::fs::read(scene.ledger()).unwrap();
    let done = finish(&mut go());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let [reserved, resumed, kept, released] = records(&scene);
    assert_eq!((reserved, resumed, kept, released), (1, 1, 4, 1));
    std::fs::write(scene.ledger(), old).unwrap();
    std::fs::remove_file(scene.path("m.json")).unwrap();
    let done = finish(&mut go());
    let says = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && says.contains("rolled back") && !scene.path("m.json").exists(), "{says}");
    // Without the checkpoints the request is one that was reserved, and says how to go on.
    let mut plain = scene.command(&[]);
    let all: Vec<_> = network(&scene, Kept::Ledger, 8, 2).get_args().map(|a| a.to_owned()).collect();
    let kept: Vec<_> =
        all.iter().position(|a| a == "--checkpoint").map(|at| [&all[..at], &all[at + 2..at + 4]].concat()).unwrap();
    let done = finish(plain.args(kept));
    let says = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && says.contains("--checkpoint ledger"), "{says}");
}
