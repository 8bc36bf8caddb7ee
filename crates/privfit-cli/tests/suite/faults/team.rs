//! The ledger of a team, in a server: races, a holder that is stopped or ended, and fits that are ended at a sample of their calls.

use crate::faults::checks::{again, finish, sound};
use crate::faults::kills::times;
use crate::faults::races::{last_one, make, race, request};
use crate::faults::scene::Scene;
use crate::faults::server::Server;
use crate::faults::tracer::{Act, run};
use privfit::ledger::chain::MacKey;
use privfit::ledger::{Ledger, Request, Reserved};
use std::time::Duration;

/// A request whose state a server keeps: whoever asks last goes on, and nobody else writes.
fn goes_on(place: &str) {
    let job = Request { resumable: true, ..request("kept") };
    let mut first = make(place, "3.7");
    assert!(matches!(first.reserve(&job), Ok(Reserved::Now(_))));
    first.keep(&job.digest, 1, b"one".to_vec()).unwrap();
    first.keep(&job.digest, 1, b"one and more".to_vec()).unwrap();
    let mut second = Ledger::open(place, MacKey::default()).unwrap();
    let Reserved::Again { attempt: 2, state: Some(state), .. } = second.reserve(&job).unwrap() else { panic!() };
    assert_eq!(state, b"one and more");
    assert_eq!(first.keep(&job.digest, 1, b"late".to_vec()).unwrap_err().code(), 1);
    assert_eq!(first.commit(&job.digest, b"late".to_vec()).unwrap_err().code(), 1);
    second.commit_attempt(&job.digest, 2, b"model".to_vec()).unwrap();
    assert_eq!(first.reserve(&job).unwrap(), Reserved::Before(b"model".to_vec()));
    assert_eq!(first.status().unwrap().spent.jobs, 1);
}

#[test]
fn everything_again() {
    let scene = Scene::new("server");
    let server = Server::start(&scene.path("server"));
    // Each request takes several round trips to the server, so that 64 processes ask less often.
    for (workers, requests) in [(2, times(30, 200)), (8, times(30, 200)), (64, times(4, 200))] {
        let place = server.ledger(&format!("race-{workers}"));
        make(&place, "3.7");
        let begun = std::time::Instant::now();
        race(&scene, &place, workers, requests);
        println!("{workers} processes of {requests} requests with a server: {:.1} s", begun.elapsed().as_secs_f64());
    }
    for (name, kill) in [("stopped", false), ("killed", true)] {
        let (busy, first, second) =
            last_one(&scene, &|k| server.ledger(&format!("{name}-{k}")), (times(21, 1), Duration::from_millis(250)), kill);
        println!("{name} with a server: {busy} busy, {first} came too late, {second} came first");
        assert!(first > 0 && second > 0);
    }
    goes_on(&server.ledger("kept"));
    // Files that killed runs left behind belong to other ledgers.
    scene.restore(&[]);
    let place = server.ledger("kills");
    scene.make(&place, "1000");
    let whole = run(&mut scene.fit(&place, "whole", "m.json"), |_| Act::Go);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    for k in (0..whole.calls).step_by(times(15, 1)) {
        let _ = std::fs::remove_file(scene.path("m.json"));
        let name = format!("kill-{k}");
        run(&mut scene.fit(&place, &name, "m.json"), |stop| if stop.number == k { Act::Kill } else { Act::Go });
        let when = format!("server, ended at call {k}");
        let standing = sound(&scene, &place, &name, "m.json", &when);
        again(&scene, &place, &name, &standing, &when);
    }
    assert_eq!(finish(scene.fit(&place, "last", "m.json").arg("--force")).status.code(), Some(0));
}
