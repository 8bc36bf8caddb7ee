//! Many processes that want the same budget, some of them stopped and woken at random; and one that is stopped or ended while it is
//! inside. The budget allows a number of releases, and exactly so many there are.

use crate::faults::checks::open;
use crate::faults::disk::Numbers;
use crate::faults::kills::times;
use crate::faults::scene::Scene;
use crate::faults::tracer::{Act, run};
use privfit::account::{Adjacency, Event};
use privfit::ledger::amount::Amount;
use privfit::ledger::chain::MacKey;
use privfit::ledger::record::Scope;
use privfit::ledger::{Ledger, Request, Reserved, digest};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Releases that the budget allows: 37 times 0.1.
const ALLOWED: usize = 37;

pub(crate) fn scope() -> Scope {
    Scope { dataset: "faults".into(), unit: "row".into(), adjacency: Adjacency::ZeroOut }
}

/// A job of pure epsilon 0.1 with this name.
pub(crate) fn request(name: &str) -> Request {
    Request {
        name: name.into(),
        job: "fit".into(),
        digest: digest(&[name.as_bytes()]),
        scope: scope(),
        resumable: false,
        event: Event::Pure { epsilon: 0.1, replace_factor: 2.0 },
    }
}

pub(crate) fn make(place: &str, cap: &str) -> Ledger {
    Ledger::create(place, MacKey::default(), scope(), Amount::parse(cap).unwrap(), 0.0).unwrap()
}

/// What a worker does; as a test it does nothing, and the tests below start it as processes of their own.
#[test]
fn worker() {
    let Ok(place) = std::env::var("PRIVFIT_WORKER_LEDGER") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let (me, requests) = (number("PRIVFIT_WORKER"), number("PRIVFIT_WORKER_REQUESTS"));
    let directory = std::env::var("PRIVFIT_WORKER_OUT").unwrap();
    let mut ledger = Ledger::open(&place, MacKey::default()).unwrap();
    for i in 0..requests {
        let job = request(&format!("worker-{me}-{i}"));
        match ledger.reserve(&job) {
            Ok(Reserved::Now(_)) => {
                // From here on it could be seen by everybody.
                let file = Path::new(&directory).join(&job.name);
                std::fs::OpenOptions::new().write(true).create_new(true).open(file).unwrap();
                ledger.commit(&job.digest, job.name.clone().into_bytes()).unwrap();
            }
            Ok(Reserved::Before(_) | Reserved::Again { .. }) => panic!("nobody else has this name"),
            Err(privfit::Error::Refused(text)) if text.contains("budget") => {}
            Err(other) => panic!("{}: {other}", job.name),
        }
    }
}

fn start(place: &str, me: usize, requests: usize, out: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::races::worker", "--nocapture"])
        .env("PRIVFIT_WORKER_LEDGER", place)
        .env("PRIVFIT_WORKER", me.to_string())
        .env("PRIVFIT_WORKER_REQUESTS", requests.to_string())
        .env("PRIVFIT_WORKER_OUT", out)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a child of this thread that has not been waited for.
    unsafe { libc::kill(child.id() as i32, signal) };
}

/// Lets workers race, each with so many requests.
pub(crate) fn race(scene: &Scene, place: &str, workers: usize, requests: usize) {
    let out = scene.path(&format!("releases-{workers}"));
    std::fs::create_dir_all(&out).unwrap();
    let mut running: Vec<Child> = (0..workers).map(|me| start(place, me, requests, &out)).collect();
    let mut random = Numbers(workers as u64);
    // As long as any of them runs, one is stopped for a moment, wherever it is.
    while running.iter_mut().any(|c| c.try_wait().unwrap().is_none()) {
        let unlucky = random.below(workers);
        if running[unlucky].try_wait().unwrap().is_none() {
            signal(&running[unlucky], libc::SIGSTOP);
            std::thread::sleep(Duration::from_millis(random.below(30) as u64));
            signal(&running[unlucky], libc::SIGCONT);
        }
        std::thread::sleep(Duration::from_millis(random.below(20) as u64));
    }
    for child in running {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let releases = std::fs::read_dir(&out).unwrap().count();
    let (_, status) = open(place).unwrap();
    assert_eq!(releases, ALLOWED, "{workers} workers");
    assert_eq!((status.spent.jobs, status.spent.released), (ALLOWED as u64, ALLOWED as u64));
    assert_eq!(status.spent.pure, Amount::parse("3.7"));
    assert_eq!(status.records.len(), 1 + 2 * ALLOWED);
}

#[test]
fn exactly_as_many_as_the_budget_allows() {
    let scene = Scene::new("races");
    for workers in [2, 8, 64] {
        let place = scene.path(&format!("ledger-{workers}")).to_str().unwrap().to_string();
        make(&place, "3.7");
        let begun = std::time::Instant::now();
        race(&scene, &place, workers, 200);
        println!("{workers} processes of 200 requests: {:.1} s", begun.elapsed().as_secs_f64());
    }
}

/// A fit is stopped at every call, and while it stands there another one asks for the last of the budget, with little patience: exactly
/// one of them gets it, and whoever does not is told why. `kill` ends the first one there.
pub(crate) fn last_one(
    scene: &Scene,
    place: &dyn Fn(usize) -> String,
    (step, patience): (usize, Duration),
    kill: bool,
) -> (usize, usize, usize) {
    let (mut busy, mut first, mut second) = (0, 0, 0);
    let mut k = 0;
    loop {
        let place = place(k);
        make(&place, "0.1");
        let _ = std::fs::remove_file(scene.path("m.json"));
        let (mut other, mut asked, mut took) = (None, false, Duration::ZERO);
        let outcome = run(&mut scene.fit(&place, "here", "m.json"), |stop| {
            if stop.number < k || stop.result.is_none() || asked {
                return Act::Go;
            }
            asked = true;
            let begun = std::time::Instant::now();
            other = Some(
                Ledger::open_patiently(&place, MacKey::default(), patience)
                    .and_then(|mut ledger| ledger.reserve(&request("other"))),
            );
            took = begun.elapsed();
            if kill { Act::Kill } else { Act::Go }
        });
        let Some(other) = other else { return (busy, first, second) };
        let when = format!("stopped after call {k}: {other:?}, exit {:?} {}", outcome.code, outcome.stderr);
        let (_, status) = open(&place).unwrap_or_else(|e| panic!("{when}: {e}"));
        assert!(status.spent.jobs <= 1, "{when}: both were inside");
        match (&other, outcome.code) {
            (Ok(_), Some(0)) => panic!("{when}: both were let through"),
            (Ok(_), _) => second += 1,
            (Err(privfit::Error::Refused(text)), Some(0)) if text.contains("budget") => first += 1,
            (Err(privfit::Error::Refused(text)), Some(0)) if text.contains("busy") => busy += 1,
            // Told that it is busy, although it was written down: lost, and not to be had by the first one either.
            (Err(privfit::Error::Refused(text)), Some(1)) if text.contains("busy") && status.spent.jobs == 1 => busy += 1,
            (Err(privfit::Error::Refused(text)), None) if text.contains("busy") => {
                busy += 1;
                // Whoever held it is gone, so nobody waits.
                let (mut ledger, status) = open(&place).unwrap();
                let next = ledger.reserve(&request("next"));
                assert_eq!(next.is_ok(), status.spent.jobs == 0, "{when}: {next:?}");
            }
            (Err(privfit::Error::Refused(_)), None) => first += 1,
            _ => panic!("{when}"),
        }
        assert!(!scene.path("m.json").exists() || status.spent.released == 1, "{when}");
        // Whoever stands in the making of the log's index is waited for ten seconds by the library itself: once is enough.
        k += if took > Duration::from_secs(2) { 20 } else { step };
    }
}

fn in_files(scene: &Scene, name: &str) -> impl Fn(usize) -> String {
    let (root, name) = (scene.root.clone(), name.to_string());
    move |k| root.join(format!("{name}-{k}")).to_str().unwrap().into()
}

#[test]
fn a_holder_that_is_stopped() {
    let scene = Scene::new("stopped");
    let (busy, first, second) = last_one(&scene, &in_files(&scene, "ledger"), (times(3, 1), Duration::from_millis(30)), false);
    println!("stopped at each call: {busy} busy, {first} came too late, {second} came first");
    assert!(busy > 0 && first > 0 && second > 0);
}

#[test]
fn a_holder_that_is_killed() {
    let scene = Scene::new("killed");
    let (busy, first, second) = last_one(&scene, &in_files(&scene, "ledger"), (times(3, 1), Duration::from_millis(30)), true);
    println!("ended at each call: {busy} busy, {first} came too late, {second} came first");
    assert!(busy > 0 && first > 0 && second > 0);
}
