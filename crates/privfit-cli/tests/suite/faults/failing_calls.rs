//! Calls that fail: a full disk, a quota, a bad sector, a disk that became read-only, no more descriptors, an interrupt, a short write;
//! each at every call of a fit that touches files, one at a time. What follows is a refusal before data are opened, or spent and not
//! released, or success; never released and unspent.

use crate::faults::checks::{Standing, civil, goes_on, sound};
use crate::faults::kills::times;
use crate::faults::recorder::{Operation, Recorder};
use crate::faults::scene::Scene;
use crate::faults::tracer::{Act, run};
use std::collections::BTreeMap;

const KINDS: [i64; 9] = [
    libc::SYS_openat,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_rename,
    libc::SYS_renameat2,
    libc::SYS_unlink,
];

const ERRORS: [i32; 6] = [libc::ENOSPC, libc::EDQUOT, libc::EIO, libc::EROFS, libc::EMFILE, libc::EINTR];

/// Numbers of the calls that may fail: of these kinds, after the command has begun to read what it was given (before that its loader runs).
fn candidates(scene: &Scene, place: &str) -> Vec<(usize, i64)> {
    let mut recorder = Recorder::new(&scene.root);
    let mut found = Vec::new();
    let outcome = run(&mut scene.fit(place, "count", "m.json"), |stop| {
        recorder.observe(stop);
        if stop.result.is_none() && KINDS.contains(&stop.call) {
            found.push((stop.number, stop.call));
        }
        Act::Go
    });
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let begun = recorder.first(|o| matches!(o, Operation::Open { path, .. } if path.ends_with("s.toml"))).unwrap();
    found.retain(|(number, _)| *number >= begun);
    found
}

#[test]
fn one_at_a_time() {
    let scene = Scene::new("calls");
    let place = scene.ledger();
    scene.make(&place, "100");
    goes_on(&scene, &place, "before", "before all");
    let copy = scene.copy();
    let candidates = candidates(&scene, &place);
    assert!(candidates.len() >= 30, "{candidates:?}");
    let mut outcomes: BTreeMap<(String, Option<i32>), usize> = BTreeMap::new();
    let mut runs = 0;
    for (number, kind) in &candidates {
        let long = [libc::SYS_write, libc::SYS_pwrite64].contains(kind);
        let short = [Act::Shorten(1), Act::Shorten(0)].into_iter().filter(|_| long);
        // Every second failure of a call in every run of the tests, beginning with another one at the next call.
        let acts = ERRORS.into_iter().map(Act::Fail).chain(short);
        for act in acts.skip(number % times(2, 1)).step_by(times(2, 1)) {
            scene.restore(&copy);
            let (mut hit, mut data) = (false, false);
            let mut recorder = Recorder::new(&scene.root);
            let outcome = run(&mut scene.fit(&place, "here", "m.json"), |stop| {
                recorder.observe(stop);
                // Runs may differ by a call of the allocator: the first call of the kind from that number on.
                if stop.result.is_none() && !hit && stop.number >= *number && stop.call == *kind {
                    hit = true;
                    return act;
                }
                Act::Go
            });
            let opens = |o: &&(usize, Operation)| matches!(&o.1, Operation::Open { path, .. } if path.ends_with("d.csv"));
            data |= recorder.done.iter().filter(opens).count() >= 2;
            let when = format!("{act:?} at call {number} (kind {kind}), exit {:?}: {}", outcome.code, outcome.stderr);
            assert!(hit && outcome.code.is_some_and(|c| (0..=4).contains(&c)), "{when}");
            civil(&outcome.stderr, &when);
            let standing = sound(&scene, &place, "here", "m.json", &when);
            let published = scene.path("m.json").exists();
            // Done means paid and published; data that were opened mean paid.
            assert!(outcome.code != Some(0) || published && matches!(standing, Standing::Released(_)), "{when}");
            assert!(!data || standing != Standing::Unknown, "{when}");
            if runs % 8 == 0 {
                goes_on(&scene, &place, "next", &when);
            }
            let name = match standing {
                Standing::Unknown => "nothing spent",
                Standing::Reserved => "spent, not released",
                Standing::Released(_) if published => "published",
                Standing::Released(_) => "released, not published",
            };
            *outcomes.entry((name.into(), outcome.code)).or_default() += 1;
            runs += 1;
        }
    }
    println!("{runs} failing calls: {outcomes:?}");
    assert!(runs >= 200);
}

/// After a synchronisation failed nobody knows what is on the disk, so nothing is released in that run, and it is not tried again.
#[test]
fn a_failed_synchronisation_ends_the_run() {
    let scene = Scene::new("sync");
    let place = scene.ledger();
    scene.make(&place, "100");
    let copy = scene.copy();
    for n in 0.. {
        scene.restore(&copy);
        let (mut count, mut later, mut path) = (0, false, None);
        let mut recorder = Recorder::new(&scene.root);
        let outcome = run(&mut scene.fit(&place, "here", "m.json"), |stop| {
            recorder.observe(stop);
            let sync = [libc::SYS_fsync, libc::SYS_fdatasync].contains(&stop.call);
            if sync && stop.result.is_none() {
                let this = recorder.path(stop.arguments[0]).map(|p| p.to_path_buf());
                count += 1;
                if count == n + 1 {
                    path = this;
                    return Act::Fail(libc::EIO);
                }
                later |= count > n + 1 && this.is_some() && this == path && !this.unwrap().ends_with("ledger-shm");
            }
            Act::Go
        });
        if count <= n {
            println!("{n} synchronisations failed, one at a time");
            assert!(n >= 4 && outcome.code == Some(0));
            return;
        }
        let when = format!("synchronisation {n} of {path:?} failed: exit {:?}, {}", outcome.code, outcome.stderr);
        let closing = recorder.first(|o| matches!(o, Operation::Rename { to, .. } if to.ends_with("m.json"))).is_some();
        // What happens while a finished run closes its ledger no longer matters: everything was synchronised before.
        assert!(outcome.code != Some(0) || closing, "{when}");
        assert!(!later || closing || outcome.code != Some(0), "{when}");
        sound(&scene, &place, "here", "m.json", &when);
    }
}
