//! The ledger through its own door, with a file of its own for each test.

use super::*;
use crate::check::Check;
use privfit_account::Adjacency;

fn place(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("privfit-ledger-{}-{name}", std::process::id()));
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
    path.display().to_string()
}

fn scope() -> Scope {
    Scope { dataset: "visits".into(), unit: "row".into(), adjacency: Adjacency::ZeroOut }
}

fn request(name: &str, event: Event) -> Request {
    let digest = digest(&[name.as_bytes(), format!("{event:?}").as_bytes()]);
    Request { name: name.into(), job: "fit".into(), digest, scope: scope(), event, resumable: false }
}

fn make(name: &str, cap: &str, delta: f64) -> (String, Ledger) {
    let place = place(name);
    let ledger = Ledger::create(&place, MacKey::default(), scope(), Amount::parse(cap).unwrap(), delta).unwrap();
    (place, ledger)
}

#[test]
fn ten_tenths_fit_and_an_eleventh_does_not() {
    let (place, mut ledger) = make("tenths", "1.0", 0.0);
    for i in 0..10 {
        let job = request(&format!("job-{i}"), Event::pure(0.1));
        let Reserved::Now(position) = ledger.reserve(&job).unwrap() else { panic!() };
        assert_eq!((position.jobs, position.sequence), (i + 1, 2 * i + 1));
        ledger.commit(&job.digest, format!("release {i}").into_bytes()).unwrap();
    }
    let refused = ledger.reserve(&request("job-10", Event::pure(0.1))).unwrap_err();
    assert_eq!(refused.code(), 1, "{refused}");
    assert_eq!(ledger.reserve(&request("tiny", Event::pure(1e-12))).unwrap_err().code(), 1);
    let status = Ledger::open(&place, MacKey::default()).unwrap().status().unwrap();
    assert_eq!((status.spent.jobs, status.spent.released, status.spent.pure), (10, 10, Amount::parse("1")));
}

#[test]
fn a_request_is_spent_once_and_gives_the_same_bytes() {
    let (place, mut ledger) = make("once", "1", 1e-6);
    let job = request("monday", Event::gaussian(20.0));
    assert!(matches!(ledger.reserve(&job), Ok(Reserved::Now(_))));
    // Reserved, and nobody knows what became of it.
    assert_eq!(ledger.reserve(&job).unwrap_err().code(), 1);
    ledger.commit(&job.digest, b"model".to_vec()).unwrap();
    drop(ledger);
    let mut ledger = Ledger::open(&place, MacKey::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(ledger.reserve(&job).unwrap(), Reserved::Before(b"model".to_vec()));
    }
    assert_eq!(ledger.status().unwrap().spent.jobs, 1);
    assert!(ledger.commit(&job.digest, b"other".to_vec()).is_err(), "released once");
    assert!(ledger.commit(&"0".repeat(64), b"other".to_vec()).is_err(), "nothing is released that was not reserved");
    // A name is for one job.
    assert_eq!(ledger.reserve(&request("monday", Event::gaussian(30.0))).unwrap_err().code(), 2);
    for bad in ["", "a b", "ä", "../x", &"x".repeat(101)] {
        assert_eq!(ledger.reserve(&request(bad, Event::gaussian(30.0))).unwrap_err().code(), 2, "{bad}");
    }
}

#[test]
fn other_data_units_and_adjacencies_are_refused() {
    let (_, mut ledger) = make("scope", "1", 1e-6);
    let job = request("a", Event::gaussian(20.0));
    for other in [
        Scope { dataset: "other".into(), ..scope() },
        Scope { unit: "patient".into(), ..scope() },
        Scope { adjacency: Adjacency::ReplaceOne, ..scope() },
    ] {
        let error = ledger.reserve(&Request { scope: other, ..job.clone() }).unwrap_err();
        assert_eq!(error.code(), 2, "{error}");
    }
    assert_eq!(ledger.status().unwrap().spent.jobs, 0);
}

#[test]
fn one_job_may_take_everything_as_the_only_one() {
    let delta = 1e-6;
    let event = |nm: f64| Event::gaussian(nm);
    let target = privfit_account::Target { epsilon: 1.0, delta };
    let exact = event(privfit_account::calibrate::<privfit_data::Error>(target, |x| Ok(event(x)), Adjacency::ZeroOut).unwrap());
    let (_, mut ledger) = make("whole", "1", delta);
    assert!(matches!(ledger.reserve(&request("all", exact.clone())), Ok(Reserved::Now(p)) if (0.999..=1.0).contains(&p.epsilon)));
    for (name, event) in [("more", exact.clone()), ("little", Event::gaussian(1e6)), ("pure", Event::pure(1e-9))] {
        let error = ledger.reserve(&request(name, event)).unwrap_err();
        assert_eq!(error.code(), 1, "{error}");
        assert!(error.to_string().contains("nothing is left"), "{error}");
    }
    // Not after something else.
    let (_, mut ledger) = make("later", "1", delta);
    ledger.reserve(&request("little", Event::gaussian(1e3))).unwrap();
    assert_eq!(ledger.reserve(&request("all", exact)).unwrap_err().code(), 1);
}

#[test]
fn what_guarantees_nothing_gets_nothing() {
    let (_, mut ledger) = make("nothing", "1000", 1e-6);
    let job = request("x", Event::NotPrivate { why: "published".into() });
    assert_eq!(ledger.reserve(&job).unwrap_err().code(), 1);
    let zero = request("y", Event::Compose(Vec::new()));
    ledger.reserve(&zero).unwrap();
    assert_eq!(ledger.status().unwrap().spent.pure, Amount::parse("0.000000000001"), "nothing is free");
}

#[test]
fn missing_empty_and_foreign_files_release_nothing() {
    let path = place("missing");
    assert_eq!(Ledger::open(&path, MacKey::default()).err().unwrap().code(), 2);
    for bytes in [&b""[..], b"not a ledger", &[0u8; 5000]] {
        std::fs::write(&path, bytes).unwrap();
        let error = Ledger::open(&path, MacKey::default()).and_then(|mut l| l.status()).err().unwrap();
        assert_eq!(error.code(), 4, "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "a foreign file stays as it is");
    }
    let error = Ledger::create(&path, MacKey::default(), scope(), Amount::parse("1").unwrap(), 0.0).err().unwrap();
    assert_eq!(error.code(), 2, "{error}");
}

#[test]
fn a_newer_version_is_refused() {
    let newer = "{\"open\":{\"version\":3,\"anything\":true}}";
    let error = Record::read(newer).unwrap_err();
    assert!(error.code() == 4 && error.to_string().contains("newer"), "{error}");
}

#[test]
fn a_keyed_ledger_needs_its_key() {
    let path = place("keyed");
    let key = MacKey::keyed(&[9; 32]).unwrap();
    let mut ledger = Ledger::create(&path, key.clone(), scope(), Amount::parse("1").unwrap(), 1e-6).unwrap();
    ledger.reserve(&request("a", Event::gaussian(30.0))).unwrap();
    drop(ledger);
    assert!(Ledger::open(&path, key).unwrap().status().is_ok());
    assert_eq!(Ledger::open(&path, MacKey::default()).unwrap().status().unwrap_err().code(), 4);
}

#[test]
fn a_ledger_that_was_put_back_contradicts_its_models() {
    let (path, mut ledger) = make("rollback", "2", 1e-6);
    let (one, two) = (request("one", Event::gaussian(20.0)), request("two", Event::gaussian(20.0)));
    let released = |ledger: &mut Ledger, job: &Request, bytes: &[u8]| {
        let Reserved::Now(position) = ledger.reserve(job).unwrap() else { panic!() };
        ledger.commit(&job.digest, bytes.to_vec()).unwrap();
        position
    };
    let first = released(&mut ledger, &one, b"one");
    drop(ledger);
    let old = std::fs::read(&path).unwrap();
    let mut ledger = Ledger::open(&path, MacKey::default()).unwrap();
    let second = released(&mut ledger, &two, b"two");
    let holds = |ledger: &mut Ledger, position: &Position, bytes: &[u8]| {
        let (status, checks) = verify::verify(ledger).unwrap();
        assert!(checks.iter().all(|f| f.held()), "{checks:?}");
        verify::verify_model(&status, position, bytes).iter().all(|f| f.held())
    };
    assert!(holds(&mut ledger, &first, b"one") && holds(&mut ledger, &second, b"two"));
    assert!(!holds(&mut ledger, &second, b"changed"));
    drop(ledger);
    std::fs::write(&path, old).unwrap();
    let mut ledger = Ledger::open(&path, MacKey::default()).unwrap();
    assert!(holds(&mut ledger, &first, b"one") && !holds(&mut ledger, &second, b"two"), "rolled back");
    released(&mut ledger, &request("three", Event::gaussian(20.0)), b"three");
    assert!(!holds(&mut ledger, &second, b"two"), "forked");
}

/// A file is one ledger whatever it is called, and everything that was taken as done is in it.
#[test]
fn names_of_a_file_are_one_ledger() {
    let (path, mut ledger) = make("names", "1", 0.0);
    let other = place("names-other");
    std::fs::hard_link(&path, &other).unwrap();
    let mut linked = Ledger::open(&other, MacKey::default()).unwrap();
    for i in 0..5 {
        for (ledger, side) in [(&mut ledger, "a"), (&mut linked, "b")] {
            let job = request(&format!("{side}-{i}"), Event::pure(0.1));
            ledger.reserve(&job).unwrap();
            // Nothing is left in a log of either name.
            let alone = place("names-copy");
            std::fs::copy(&path, &alone).unwrap();
            let copied = Ledger::open(&alone, MacKey::default()).unwrap().status().unwrap();
            assert!(copied.reserved(&job.digest), "a file that is moved takes its reservations along");
            ledger.commit(&job.digest, vec![i; 10]).unwrap();
        }
    }
    for ledger in [&mut ledger, &mut linked] {
        assert_eq!(ledger.reserve(&request("one-more", Event::pure(0.1))).unwrap_err().code(), 1);
        assert_eq!(ledger.status().unwrap().spent.jobs, 10);
    }
}

#[test]
fn a_ledger_that_is_gone_or_another_takes_no_release() {
    let (path, mut ledger) = make("gone", "1", 0.0);
    let jobs = ["a", "b"].map(|name| request(name, Event::pure(0.1)));
    for job in &jobs {
        ledger.reserve(job).unwrap();
    }
    let away = place("gone-away");
    std::fs::rename(&path, &away).unwrap();
    assert!(ledger.commit(&jobs[0].digest, b"x".to_vec()).is_err(), "moved away");
    let (_, _) = make("gone", "1", 0.0);
    assert!(ledger.commit(&jobs[1].digest, b"x".to_vec()).is_err(), "another one in its place");
    assert_eq!(Ledger::open(&away, MacKey::default()).unwrap().status().unwrap().spent.jobs, 2);
}

/// A log that a killed job left beside the file, while the file was used elsewhere, must not undo what came later.
#[test]
fn a_log_of_an_earlier_time_is_refused() {
    let (path, mut ledger) = make("stale", "1", 0.0);
    ledger.reserve(&request("a", Event::pure(0.1))).unwrap();
    // A crash leaves a log with the pages of this moment.
    let log = {
        let connection = rusqlite::Connection::open(&path).unwrap();
        let keep = rusqlite::Connection::open(&path).unwrap();
        keep.query_row("SELECT count(*) FROM record", [], |r| r.get::<_, i64>(0)).unwrap();
        let both = "BEGIN; UPDATE head SET count = count + 1; UPDATE head SET count = count - 1; \
                    UPDATE record SET body = body || ' '; UPDATE record SET body = trim(body); COMMIT";
        connection.execute_batch(both).unwrap();
        std::fs::read(format!("{path}-wal")).unwrap()
    };
    assert!(!log.is_empty());
    // It continues what the file holds: nothing is wrong.
    std::fs::write(format!("{path}-wal"), &log).unwrap();
    assert_eq!(ledger.status().unwrap().spent.jobs, 1);
    ledger.reserve(&request("b", Event::pure(0.1))).unwrap();
    std::fs::write(format!("{path}-wal"), &log).unwrap();
    let error = ledger.status().unwrap_err();
    assert!(error.code() == 4 && error.to_string().contains("earlier time"), "{error}");
    std::fs::remove_file(format!("{path}-wal")).unwrap();
    assert_eq!(ledger.status().unwrap().spent.jobs, 2);
}

#[test]
fn a_job_that_took_everything_is_recomputed_too() {
    let path = place("forged");
    let cap = Amount::parse("4").unwrap();
    let mut ledger = Ledger::create(&path, MacKey::default(), scope(), cap, 1e-6).unwrap();
    let charge = Charge { pure: None, renyi: None, slack: Amount::ZERO, whole: true };
    let request = "a".repeat(64);
    let record =
        Record::Reserve { request, name: "x".into(), job: "fit".into(), event: Event::gaussian(0.01), charge, resumable: false };
    let body = record.body().unwrap();
    let mac_key = MacKey::default();
    ledger.store.transact(&mut |entries| Ok(Some(Append { entry: mac_key.next(entries, body.clone()), release: None }))).unwrap();
    let (_, checks) = verify::verify(&mut ledger).unwrap();
    assert!(checks.iter().any(|c| c.name == "charges" && !c.held()), "{checks:?}");
}

/// An old copy put back has a chain, a head and sums that all hold: only whoever saw the newer one knows better.
#[test]
fn an_old_copy_is_remembered() {
    let (place, _) = make("heads", "2", 1e-6);
    let path = Path::new(&place);
    let heads = heads::Heads::at(&path.with_extension("seen"));
    let open = || Ledger::open(&place, MacKey::default()).unwrap().remembering(Some(heads.clone()));
    open().reserve(&request("one", Event::gaussian(30.0))).unwrap();
    let old = std::fs::read(path).unwrap();
    assert!(open().status().unwrap().rolled_back.is_none());
    open().reserve(&request("two", Event::gaussian(30.0))).unwrap();
    let new = std::fs::read(path).unwrap();
    // Cut back, and cut back and gone on elsewhere.
    for more in [false, true] {
        std::fs::write(path, &old).unwrap();
        if more {
            let mut elsewhere = Ledger::open(&place, MacKey::default()).unwrap();
            elsewhere.reserve(&request("other", Event::gaussian(30.0))).unwrap();
            elsewhere.reserve(&request("another", Event::gaussian(30.0))).unwrap();
        }
        let mut ledger = open();
        let status = ledger.status().unwrap();
        assert!(status.rolled_back.is_some() && status.check_head().unwrap_err().code() == 1);
        let error = ledger.reserve(&request("three", Event::gaussian(30.0))).unwrap_err();
        assert!(error.code() == 1 && error.to_string().contains("rolled back"), "{error}");
        let (_, checks) = verify::verify(&mut ledger).unwrap();
        assert_eq!(checks.iter().filter(|c| !c.held()).map(|c| c.name.as_str()).collect::<Vec<_>>(), ["head"]);
        // Whoever remembers nothing sees nothing.
        assert!(Ledger::open(&place, MacKey::default()).unwrap().status().unwrap().rolled_back.is_none());
    }
    std::fs::write(path, &new).unwrap();
    open().reserve(&request("three", Event::gaussian(30.0))).unwrap();
    // Nothing but a count and a digest is remembered, for nobody else to read.
    let kept: Vec<_> = std::fs::read_dir(path.with_extension("seen")).unwrap().map(|f| f.unwrap().path()).collect();
    let [file] = &kept[..] else { panic!("{kept:?}") };
    let text = std::fs::read_to_string(file).unwrap();
    let status = open().status().unwrap();
    assert_eq!(text, format!("{} {}\n", status.records.len(), status.records.last().unwrap().1));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    // What can't be read or written changes nothing.
    std::fs::write(file, "0 x").unwrap();
    assert!(open().status().unwrap().rolled_back.is_none());
    let nowhere = heads::Heads::at(Path::new("/dev/null/nowhere"));
    assert!(Ledger::open(&place, MacKey::default()).unwrap().remembering(Some(nowhere)).status().is_ok());
    std::fs::remove_dir_all(path.with_extension("seen")).unwrap();
}

fn kept(name: &str) -> Request {
    Request { resumable: true, ..request(name, Event::gaussian(20.0)) }
}

/// Whoever asks again goes on, from the last thing that was kept; whoever was before writes no more.
#[test]
fn a_request_that_is_kept_goes_on() {
    let (place, mut first) = make("kept", "1", 1e-6);
    let open = || Ledger::open(&place, MacKey::default()).unwrap();
    let job = kept("monday");
    let Reserved::Now(reserved) = first.reserve(&job).unwrap() else { panic!() };
    // Nothing was kept yet: from the beginning, and not spent again.
    let mut second = open();
    let Reserved::Again { position, attempt: 2, state: None } = second.reserve(&job).unwrap() else { panic!() };
    assert_eq!(position, reserved);
    for error in [first.keep(&job.digest, 1, b"late".to_vec()), first.commit(&job.digest, b"late".to_vec())] {
        assert_eq!(error.unwrap_err().code(), 1, "the first one is overtaken");
    }
    second.keep(&job.digest, 2, b"state 1".to_vec()).unwrap();
    second.keep(&job.digest, 2, b"a state that is longer".to_vec()).unwrap();
    assert!(open().released_under("monday").is_err(), "a checkpoint is not a release");
    let mut third = open();
    let Reserved::Again { attempt: 3, state: Some(state), .. } = third.reserve(&job).unwrap() else { panic!() };
    assert_eq!(state, b"a state that is longer");
    assert_eq!(second.keep(&job.digest, 2, b"late".to_vec()).unwrap_err().code(), 1);
    assert_eq!(second.commit_attempt(&job.digest, 2, b"late".to_vec()).unwrap_err().code(), 1);
    let (status, checks) = verify::verify(&mut open()).unwrap();
    assert!(checks.iter().any(|c| c.name == "checkpoints") && checks.iter().all(Check::held), "{checks:?}");
    assert_eq!((status.spent.jobs, status.spent.released, status.attempt(&job.digest)), (1, 0, 3));
    assert!(status.summary().jobs[0].resumable);
    third.commit_attempt(&job.digest, 3, b"model".to_vec()).unwrap();
    assert!(
        third.keep(&job.digest, 3, b"after".to_vec()).is_err()
            && third.commit_attempt(&job.digest, 3, b"other".to_vec()).is_err()
    );
    // Released is released, however it is asked for.
    for resumable in [true, false] {
        assert_eq!(open().reserve(&Request { resumable, ..job.clone() }).unwrap(), Reserved::Before(b"model".to_vec()));
    }
    let (status, checks) = verify::verify(&mut open()).unwrap();
    assert!(checks.iter().all(Check::held) && !checks.iter().any(|c| c.name == "checkpoints"), "{checks:?}");
    assert_eq!((status.spent.jobs, status.spent.released), (1, 1));
}

#[test]
fn only_what_was_reserved_so_is_gone_on_with() {
    let (_, mut ledger) = make("kept-not", "1", 1e-6);
    let (plain, job) = (request("plain", Event::gaussian(20.0)), kept("kept"));
    ledger.reserve(&plain).unwrap();
    assert_eq!(ledger.reserve(&Request { resumable: true, ..plain.clone() }).unwrap_err().code(), 1);
    assert_eq!(ledger.keep(&plain.digest, 1, b"state".to_vec()).unwrap_err().code(), 2, "no checkpoint of what is not kept");
    assert_eq!(ledger.keep(&job.digest, 1, b"state".to_vec()).unwrap_err().code(), 2, "not reserved");
    ledger.reserve(&job).unwrap();
    let error = ledger.reserve(&Request { resumable: false, ..job.clone() }).unwrap_err();
    assert!(error.code() == 1 && error.to_string().contains("checkpoint = \"ledger\""), "{error}");
    assert_eq!(ledger.status().unwrap().records.len(), 3);
}

/// Records that no process of ours writes in this order.
#[test]
fn attempts_follow_from_each_other() {
    let (_, mut ledger) = make("attempts", "1", 1e-6);
    let job = kept("kept");
    ledger.reserve(&job).unwrap();
    let records: Vec<Record> = ledger.status().unwrap().records.into_iter().map(|r| r.0).collect();
    let resume = |attempt| Record::Resume { request: job.digest.clone(), attempt };
    let keep = |attempt| Record::Checkpoint { request: job.digest.clone(), attempt, state: "a".repeat(64) };
    let commit = Record::Commit { request: job.digest.clone(), release: "b".repeat(64) };
    let holds = |more: &[Record]| {
        let all = [&records, more].concat();
        let entries = all.iter().fold(Vec::new(), |mut entries, r| {
            entries.push(MacKey::default().next(&entries, r.body().unwrap()));
            entries
        });
        Reader::new(MacKey::default()).look(&entries).is_ok()
    };
    assert!(holds(&[keep(1), keep(1), resume(2), resume(3), keep(3), commit.clone()]));
    for wrong in [
        vec![keep(2)],
        vec![resume(3)],
        vec![resume(2), keep(1)],
        vec![resume(2), resume(2)],
        vec![commit.clone(), keep(1)],
        vec![commit.clone(), resume(2)],
        vec![Record::Resume { request: "c".repeat(64), attempt: 2 }],
    ] {
        assert!(!holds(&wrong), "{wrong:?}");
    }
    assert!(Record::read(&resume(1).body().unwrap()).is_err() && Record::read(&keep(0).body().unwrap()).is_err());
}

/// A ledger of the first version is read and spent from as ever; its readers do not know checkpoints, so that it gets none.
#[test]
fn a_ledger_of_the_first_version() {
    let path = place("first-version");
    let cap = Amount::parse("1").unwrap();
    let mut store = sqlite::Sqlite::create(Path::new(&path)).unwrap();
    let open = Record::Open {
        version: 1,
        ledger: "0".repeat(64),
        scope: scope(),
        epsilon: cap,
        delta: 1e-6,
        rule: Rule::of(cap, 1e-6).unwrap(),
    };
    let key = MacKey::default();
    store.transact(&mut |entries| Ok(Some(Append { entry: key.next(entries, open.body()?), release: None }))).unwrap();
    let mut ledger = Ledger::open(&path, MacKey::default()).unwrap();
    ledger.reserve(&request("plain", Event::gaussian(20.0))).unwrap();
    assert!(!ledger.status().unwrap().records[1].0.body().unwrap().contains("resumable"), "as it always was");
    let error = ledger.reserve(&kept("kept")).unwrap_err();
    assert!(error.code() == 2 && error.to_string().contains("leave out"), "{error}");
}
