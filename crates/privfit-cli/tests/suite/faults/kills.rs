//! A fit that is ended before and after every system call it makes, and at random moments: what is there afterwards is nothing, or spent
//! and nothing, or a whole model that was paid for.

use crate::faults::checks::{Standing, again, finish, goes_on, sound};
use crate::faults::disk::Numbers;
use crate::faults::recorder::{Operation, Recorder};
use crate::faults::scene::Scene;
use crate::faults::tracer::{Act, run};
use std::time::{Duration, Instant};

/// How often each outcome was met.
#[derive(Default, Debug, PartialEq)]
pub(crate) struct Tally {
    unknown: usize,
    reserved: usize,
    released: usize,
    published: usize,
}

impl Tally {
    fn add(&mut self, standing: &Standing, published: bool) {
        match standing {
            Standing::Unknown => self.unknown += 1,
            Standing::Reserved => self.reserved += 1,
            Standing::Released(_) => self.released += 1,
        }
        self.published += usize::from(published);
    }
}

/// So many in every run of the tests, or as many as a sweep makes: PRIVFIT_SWEEP=1, for days rather than for landings.
pub(crate) fn times(usual: usize, sweep: usize) -> usize {
    if std::env::var_os("PRIVFIT_SWEEP").is_some() { sweep } else { usual }
}

/// Ends a fit at the k-th call for every k; `after` is whether the call is let through first.
fn every_call(scene: &Scene, after: bool) -> (usize, Tally) {
    let place = scene.ledger();
    scene.make(&place, "100");
    // A fit came before, so that the file has a past.
    goes_on(scene, &place, "before", "before all");
    let copy = scene.copy();
    let mut tally = Tally::default();
    // Every second call in every run of the tests: those that one test leaves out are met by the other.
    for k in (usize::from(after)..).step_by(times(2, 1)) {
        scene.restore(&copy);
        let outcome = run(&mut scene.fit(&place, "here", "m.json"), |stop| {
            if stop.number == k && stop.result.is_some() == after { Act::Kill } else { Act::Go }
        });
        if !outcome.killed {
            // The call that ends the process has no end of its own.
            assert!(outcome.code == Some(0) && outcome.calls <= k + 1, "{}", outcome.stderr);
            return (k, tally);
        }
        let when = format!("ended {} call {k}", if after { "after" } else { "before" });
        let standing = sound(scene, &place, "here", "m.json", &when);
        tally.add(&standing, scene.path("m.json").exists());
        again(scene, &place, "here", &standing, &when);
        if k % 4 < 2 {
            goes_on(scene, &place, "next", &when);
        }
    }
    unreachable!("a fit makes finitely many calls")
}

#[test]
fn before_every_call() {
    let scene = Scene::new("before");
    let (calls, tally) = every_call(&scene, false);
    println!("ended before each of {calls} calls: {tally:?}");
    // Every stage was met, and a commit can come without its file but not the other way round.
    assert!(calls >= 150 && tally.unknown > 0 && tally.reserved > 0, "{calls} {tally:?}");
    assert!(tally.published > 0 && tally.released > tally.published, "{tally:?}");
}

#[test]
fn after_every_call() {
    let scene = Scene::new("after");
    let (calls, tally) = every_call(&scene, true);
    println!("ended after each of {calls} calls: {tally:?}");
    assert!(calls >= 150 && tally.unknown > 0 && tally.reserved > 0, "{calls} {tally:?}");
    assert!(tally.published > 0 && tally.released > tally.published, "{tally:?}");
}

/// From what was seen of a whole run: spent and synchronised, then the data, then the commit, then the model by one rename.
#[test]
fn the_order_of_things() {
    let scene = Scene::new("order");
    let place = scene.ledger();
    scene.make(&place, "100");
    let mut recorder = Recorder::new(&scene.root);
    let outcome = run(&mut scene.fit(&place, "here", "m.json"), |stop| {
        recorder.observe(stop);
        Act::Go
    });
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let opened = |o: &Operation| matches!(o, Operation::Open { path, .. } if path.ends_with("d.csv"));
    // Under zero-out the lines are counted first, as a public step; the second time is for the records.
    assert_eq!(recorder.done.iter().filter(|(_, o)| opened(o)).count(), 2);
    let data = recorder.last(opened).unwrap();
    let position = |from: usize, what: &dyn Fn(&Operation) -> bool| {
        recorder.done.iter().find(|(n, o)| *n > from && what(o)).map(|(n, _)| *n).unwrap_or(usize::MAX)
    };
    let log = |o: &Operation| matches!(o, Operation::Write { path, .. } if path.ends_with("ledger-wal"));
    let sync = |o: &Operation| matches!(o, Operation::Sync { path } if path.ends_with("ledger-wal"));
    let reserved = position(position(0, &log), &sync);
    assert!(reserved < data, "the reservation is synchronised at call {reserved}, data are opened at {data}");
    // No byte of the ledger that was written before the data were opened waits for its synchronisation.
    for name in ["ledger-wal", "ledger"] {
        let before = |what: &dyn Fn(&Operation) -> bool| {
            recorder.done.iter().filter(|(n, o)| *n < data && what(o)).map(|(n, _)| *n).next_back().unwrap_or(0)
        };
        let written = before(&|o| matches!(o, Operation::Write { path, .. } if path.ends_with(name)));
        let synced = before(&|o| matches!(o, Operation::Sync { path } if path.ends_with(name)));
        assert!(written <= synced, "{name}: written at {written}, synchronised at {synced}, data opened at {data}");
    }
    let committed = position(position(data, &log), &sync);
    let published = recorder.first(|o| matches!(o, Operation::Rename { to, .. } if to.ends_with("m.json"))).unwrap();
    assert!(data < committed && committed < published, "{data} {committed} {published}");
    // The file is whole and synchronised before it gets its name, and never opened under it.
    let (_, Operation::Rename { from, .. }) = recorder.done.iter().find(|(n, _)| *n == published).unwrap() else {
        unreachable!()
    };
    let whole = recorder.last(|o| matches!(o, Operation::Sync { path } if path == from)).unwrap();
    let written = recorder.last(|o| matches!(o, Operation::Write { path, .. } if path == from)).unwrap();
    assert!(committed < written && written < whole && whole < published, "{committed} {written} {whole} {published}");
    assert!(recorder.first(|o| matches!(o, Operation::Open { path, .. } if path.ends_with("m.json"))).is_none());
}

/// Where the number of rows is private nobody counts: data are opened once, after everything that was spent is synchronised.
#[test]
fn opened_once_where_nobody_counts() {
    let scene = Scene::new("once");
    let place = scene.ledger();
    let schema = scene.path("s.toml");
    let create = ["ledger", "create", &place, "--schema", schema.to_str().unwrap(), "--epsilon", "9", "--delta", "1e-3"];
    let made = scene.run(&[&create[..], &["--adjacency", "add-remove"]].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut recorder = Recorder::new(&scene.root);
    let mut command = scene.command(&["fit", "--method", "noisy-gd", "--epsilon", "1", "--delta", "1e-3", "--threads", "1"]);
    for (flag, value) in [("--data", "d.csv"), ("--schema", "s.toml"), ("--out", "m.json")] {
        command.arg(flag).arg(scene.path(value));
    }
    command.args(["--adjacency", "add-remove", "--ledger", &place, "--request", "here"]);
    let outcome = run(&mut command, |stop| {
        recorder.observe(stop);
        Act::Go
    });
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let opened = |o: &Operation| matches!(o, Operation::Open { path, .. } if path.ends_with("d.csv"));
    assert_eq!(recorder.done.iter().filter(|(_, o)| opened(o)).count(), 1);
    let data = recorder.first(opened).unwrap();
    let log = |o: &Operation| matches!(o, Operation::Write { path, .. } if path.ends_with("ledger-wal"));
    let sync = |o: &Operation| matches!(o, Operation::Sync { path } if path.ends_with("ledger-wal"));
    let before = |what: &dyn Fn(&Operation) -> bool| {
        recorder.done.iter().filter(|(n, o)| *n < data && what(o)).map(|(n, _)| *n).next_back().unwrap_or(0)
    };
    assert!(0 < before(&log) && before(&log) < before(&sync), "{} {} {data}", before(&log), before(&sync));
}

/// Many kills at random moments, half by the number of a call and half by the clock, on one ledger whose history grows.
#[test]
fn at_random() {
    let kills = times(100, 1000);
    let scene = Scene::new("random");
    let place = scene.ledger();
    let mut random = Numbers(1);
    let mut tally = Tally::default();
    scene.make(&place, "1000");
    let empty = scene.copy();
    let whole = run(&mut scene.fit(&place, "whole", "m.json"), |_| Act::Go);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let begun = Instant::now();
    finish(scene.fit(&place, "clock", "m.json").arg("--force"));
    let usual = begun.elapsed();
    let (mut done, mut spent, mut finished) = (0, 2, 0);
    while done < kills {
        if done % 250 == 249 {
            scene.restore(&empty);
            spent = 0;
        }
        let _ = std::fs::remove_file(scene.path("m.json"));
        let (request, when) = (format!("kill-{done}"), format!("kill {done}"));
        let mut command = scene.fit(&place, &request, "m.json");
        let ended = if random.below(2) == 0 {
            let (k, after) = (random.below(whole.calls), random.below(2) == 0);
            run(&mut command, |stop| if stop.number == k && stop.result.is_some() == after { Act::Kill } else { Act::Go }).killed
        } else {
            by_clock(command, usual.mul_f64(1.2 * random.below(1 << 20) as f64 / f64::from(1 << 20)))
        };
        done += 1;
        finished += usize::from(!ended);
        let standing = sound(&scene, &place, &request, "m.json", &when);
        tally.add(&standing, scene.path("m.json").exists());
        spent += u64::from(standing != Standing::Unknown);
        // Nothing that was ever spent is forgotten.
        assert_eq!(crate::faults::checks::open(&place).unwrap().1.spent.jobs, spent, "{when}");
        if random.below(10) == 0 {
            again(&scene, &place, &request, &standing, &when);
            spent += u64::from(standing == Standing::Unknown);
        }
    }
    println!("{done} random kills, {finished} came too late: {tally:?}, in {:.0} s", begun.elapsed().as_secs_f64());
    assert!(tally.unknown > 0 && tally.reserved > 0 && tally.released > 0, "{tally:?}");
}

/// Ends a command after some time; whether it was in time.
fn by_clock(mut command: std::process::Command, wait: Duration) -> bool {
    use std::process::Stdio;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(wait);
    let _ = child.kill();
    !child.wait().unwrap().success()
}

/// One request, asked for again and again while it is ended at random: spent once at the most, and the same bytes whenever there are any.
#[test]
fn a_storm_of_retries() {
    let rounds = times(200, 2000);
    let scene = Scene::new("storm");
    let place = scene.ledger();
    let mut random = Numbers(2);
    let (mut seen, mut refused, mut ended, mut round) = (0, 0, 0, 0);
    scene.make(&place, "0.1");
    let empty = scene.copy();
    while round < rounds {
        // A request that is stuck stays refused: after a few tries the next one begins on an empty ledger.
        scene.restore(&empty);
        let mut first: Option<Vec<u8>> = None;
        for _ in 0..30.min(rounds - round) {
            round += 1;
            let _ = std::fs::remove_file(scene.path("m.json"));
            let k = random.below(1800);
            let outcome = run(&mut scene.fit(&place, "storm", "m.json"), |stop| {
                if stop.number == k / 2 && stop.result.is_some() == (k % 2 == 1) { Act::Kill } else { Act::Go }
            });
            let when = format!("round {round}");
            let standing = sound(&scene, &place, "storm", "m.json", &when);
            // The cap is one job: a second spend would not even fit, and is looked for all the same.
            assert!(crate::faults::checks::open(&place).unwrap().1.spent.jobs <= 1);
            match (&standing, outcome.code) {
                (_, None) => ended += 1,
                (Standing::Released(_), Some(0)) => seen += 1,
                (Standing::Reserved, Some(1)) => refused += 1,
                other => panic!("{when}: {other:?} {}", outcome.stderr),
            }
            if let Standing::Released(bytes) = standing {
                assert!(first.get_or_insert(bytes.clone()) == &bytes, "{when}: other bytes");
            }
        }
    }
    println!("{round} tries: {ended} ended, {seen} gave the same bytes, {refused} refused");
    assert!(ended > 0 && seen > 0 && refused > 0);
}
