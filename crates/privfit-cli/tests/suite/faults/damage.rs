//! A ledger file that was damaged: bits flipped, cut short, records left out, doubled or swapped, bytes added. Each is noticed, or changes
//! nothing that the ledger says, now and after the next job.

use crate::faults::checks::PATIENCE;
use crate::faults::disk::Numbers;
use crate::faults::kills::times;
use crate::faults::races::{make, request};
use crate::faults::scene::Scene;
use privfit::ledger::chain::MacKey;
use privfit::ledger::record::Record;
use privfit::ledger::verify::verify;
use privfit::ledger::{Ledger, Reserved};
use rusqlite::Connection;
use std::path::Path;

/// Everything that a ledger says: its records with their digests, and every release that it kept.
fn says(ledger: &mut Ledger) -> privfit::Result<String> {
    let (status, findings) = verify(ledger)?;
    let held: Vec<bool> = findings.iter().map(|f| f.held()).collect();
    Ok(format!("{:?} {:?} {:?} {held:?}", status.terms, status.spent, status.records))
}

fn open(path: &Path) -> privfit::Result<Ledger> {
    Ledger::open_patiently(path.to_str().unwrap(), MacKey::default(), PATIENCE)
}

/// A ledger of twenty records: its budget, nine jobs that were released, one that was not.
fn twenty(scene: &Scene) -> (Vec<u8>, String) {
    let place = scene.ledger();
    let mut ledger = make(&place, "5");
    for i in 0..10 {
        let job = request(&format!("job-{i}"));
        assert!(matches!(ledger.reserve(&job), Ok(Reserved::Now(_))));
        if i < 9 {
            ledger.commit(&job.digest, format!("released {i}").repeat(40).into_bytes()).unwrap();
        }
    }
    let text = says(&mut ledger).unwrap();
    assert_eq!(ledger.status().unwrap().records.len(), 20);
    drop(ledger);
    assert!(std::fs::metadata(scene.path("ledger-wal")).is_ok_and(|m| m.len() == 0), "the log is empty at rest");
    (std::fs::read(scene.path("ledger")).unwrap(), text)
}

/// What became of one damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Noticed,
    Harmless,
}

/// Writes damaged bytes, opens them, and looks; `None` if the ledger says something else than before without noticing.
fn judge(path: &Path, bytes: &[u8], before: &str) -> Result<Verdict, String> {
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
    std::fs::write(path, bytes).unwrap();
    let text = match open(path).and_then(|mut ledger| says(&mut ledger)) {
        Ok(text) => text,
        Err(error) if error.code() == 4 => return Ok(Verdict::Noticed),
        Err(error) => return Err(format!("exit {} in the place of 4: {error}", error.code())),
    };
    if text != before {
        return Err(format!("says something else: {text}"));
    }
    // The next job is refused for damage, or lost for nobody.
    let next = open(path).and_then(|mut ledger| ledger.reserve(&request("next")));
    match next {
        Err(error) if error.code() == 4 => return Ok(Verdict::Noticed),
        Err(error) => return Err(format!("the next job: exit {}: {error}", error.code())),
        Ok(_) => {}
    }
    match open(path).and_then(|mut ledger| ledger.status()) {
        Err(error) if error.code() == 4 => Ok(Verdict::Noticed),
        Ok(status) if status.records.len() == 21 && status.spent.jobs == 11 => Ok(Verdict::Harmless),
        other => Err(format!("after the next job: {:?}", other.map(|s| s.records.len()))),
    }
}

/// Judges many damages on two threads; counts what was noticed and what was harmless.
fn judge_all(scene: &Scene, before: &str, count: usize, damage: impl Fn(usize) -> Vec<u8> + Sync) -> (usize, usize) {
    let parts = std::thread::scope(|threads| {
        let work = [0, 1].map(|half| {
            let (damage, path) = (&damage, scene.path(&format!("copy-{half}")));
            threads.spawn(move || {
                let (mut noticed, mut harmless, mut wrong) = (0, 0, Vec::new());
                for i in (half..count).step_by(2) {
                    match judge(&path, &damage(i), before) {
                        Ok(Verdict::Noticed) => noticed += 1,
                        Ok(Verdict::Harmless) => harmless += 1,
                        Err(text) => wrong.push((i, text)),
                    }
                }
                (noticed, harmless, wrong)
            })
        });
        work.map(|thread| thread.join().unwrap())
    });
    let wrong: Vec<_> = parts.iter().flat_map(|p| &p.2).collect();
    assert!(wrong.is_empty(), "{} of {count} went unnoticed, first {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    (parts[0].0 + parts[1].0, parts[0].1 + parts[1].1)
}

/// A sample of all bits in every run of the tests, every bit in a sweep.
#[test]
fn flipped_bits() {
    let scene = Scene::new("bits");
    let (good, before) = twenty(&scene);
    let bits = good.len() * 8;
    let wanted = times(1_500, 0);
    let mut random = Numbers(3);
    let chosen: Vec<usize> = if wanted == 0 { (0..bits).collect() } else { (0..wanted).map(|_| random.below(bits)).collect() };
    let (noticed, harmless) = judge_all(&scene, &before, chosen.len(), |i| {
        let mut bytes = good.clone();
        bytes[chosen[i] / 8] ^= 1 << (chosen[i] % 8);
        bytes
    });
    println!("{} of {bits} bits flipped: {noticed} noticed, {harmless} harmless", chosen.len());
    assert!(noticed > chosen.len() / 10);
}

#[test]
fn cut_short_or_longer() {
    let scene = Scene::new("cut");
    let (good, before) = twenty(&scene);
    let cuts = good.len() / 64;
    let (noticed, harmless) = judge_all(&scene, &before, cuts, |i| good[..i * 64].to_vec());
    println!("{cuts} lengths: {noticed} noticed, {harmless} harmless");
    assert!(noticed > 0 && noticed + harmless == cuts);
    let mut random = Numbers(4);
    let tails: Vec<Vec<u8>> = [1, 7, 64, 512, 4096, 5000, 65536]
        .into_iter()
        .flat_map(|n| [vec![0; n], (0..n).map(|_| random.next() as u8).collect()])
        .collect();
    let (noticed, harmless) = judge_all(&scene, &before, tails.len(), |i| [&good[..], &tails[i]].concat());
    println!("{} tails: {noticed} noticed, {harmless} harmless", tails.len());
}

/// A machine stopped between the log and the file, and then a bit of the log flips: whatever had been taken as done, and so could have been
/// published, is still in the ledger. The last reservation, which nobody had been told of, may be lost with the log.
#[test]
fn flipped_bits_of_the_log() {
    let scene = Scene::new("log");
    let mut ledger = make(&scene.ledger(), "5");
    let job = |name: &str| request(name);
    for i in 0..3 {
        ledger.reserve(&job(&format!("under-way-{i}"))).unwrap();
        ledger.reserve(&job(&format!("done-{i}"))).unwrap();
        ledger.commit(&job(&format!("done-{i}")).digest, b"released".repeat(40)).unwrap();
    }
    // One more record, as far as the log: what the ledger does, without its last step.
    let connection = Connection::open(scene.path("ledger")).unwrap();
    let entries = crate::faults::hostile::entries(&connection);
    let reserve = entries.iter().rev().find(|e| e.body.starts_with("{\"reserve\"")).unwrap();
    let next = MacKey::default()
        .next(&entries, reserve.body.replace("done-2", "under-way-3").replace(&job("done-2").digest, &job("x").digest));
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0; BEGIN").unwrap();
    connection.execute("INSERT INTO record VALUES (?1, ?2, ?3)", (next.sequence as i64, &next.body, &next.hash)).unwrap();
    connection.execute("UPDATE head SET count = count + 1, hash = ?1", [&next.hash]).unwrap();
    connection.execute_batch("COMMIT").unwrap();
    let file = std::fs::read(scene.path("ledger")).unwrap();
    let log = std::fs::read(scene.path("ledger-wal")).unwrap();
    assert!(log.len() > 4096, "the last reservation is in the log only");
    let copy = scene.path("copy");
    let beside = scene.path("copy-wal");
    let look = |log: &[u8]| -> privfit::Result<Vec<bool>> {
        let _ = std::fs::remove_file(scene.path("copy-shm"));
        std::fs::write(&copy, &file).unwrap();
        std::fs::write(&beside, log).unwrap();
        let status = open(&copy)?.status()?;
        let reserved = |digest: &str| {
            let is = |r: &Record| matches!(r, Record::Reserve { request, .. } if request == digest);
            status.records.iter().any(|(r, _)| is(r))
        };
        Ok((0..3).map(|i| job(&format!("done-{i}")).digest).map(|d| reserved(&d) && status.released(&d).is_some()).collect())
    };
    assert_eq!(look(&log).unwrap(), [true; 3]);
    let (mut noticed, mut harmless, mut lost) = (0, 0, Vec::new());
    let step = (log.len() * 8 / times(2000, 1 << 40).max(1)).max(1);
    for bit in (0..log.len() * 8).step_by(step) {
        let mut log = log.clone();
        log[bit / 8] ^= 1 << (bit % 8);
        match look(&log) {
            Err(error) if error.code() == 4 => noticed += 1,
            Ok(all) if all == [true; 3] => harmless += 1,
            other => lost.push((bit, other)),
        }
    }
    println!("bits of a log of {} bytes: {noticed} noticed, {harmless} harmless, {} lost", log.len(), lost.len());
    assert!(lost.is_empty(), "{:?}", &lost[..lost.len().min(3)]);
}

/// Records that were taken out, doubled or swapped by somebody who knows SQL.
#[test]
fn records_moved_by_hand() {
    let scene = Scene::new("moved");
    let (good, before) = twenty(&scene);
    let mut commands = Vec::new();
    for i in 0..20 {
        commands.push(format!("DELETE FROM record WHERE sequence = {i}"));
        commands.push(format!("DELETE FROM record WHERE sequence >= {i}"));
        // As the last one with a head that fits, only a model can tell; with any other the chain breaks.
        commands.push(format!("INSERT INTO record SELECT 20, body, hash FROM record WHERE sequence = {i}"));
        commands
            .push(format!("UPDATE record SET body = replace(body, '0.1', '0.01') WHERE sequence = {i} AND body LIKE '%0.1%'"));
        if i > 0 {
            commands.push(format!(
                "UPDATE record SET sequence = 100 WHERE sequence = {i}; UPDATE record SET sequence = {i} WHERE sequence = {i} - 1; \
                 UPDATE record SET sequence = {i} - 1 WHERE sequence = 100"
            ));
        }
    }
    for text in [
        "DELETE FROM release",
        "UPDATE release SET bytes = x'00'",
        "DELETE FROM head",
        "UPDATE head SET count = 19",
        "UPDATE head SET hash = upper(hash)",
        "DROP TABLE record",
        "DROP TABLE release",
        "ALTER TABLE record ADD COLUMN more TEXT",
        "CREATE INDEX more ON record (body)",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 7",
        "VACUUM",
    ] {
        commands.push(text.into());
    }
    let path = scene.path("by-hand");
    let mut harmless = Vec::new();
    for text in &commands {
        let _ = std::fs::remove_file(scene.path("by-hand-wal"));
        let _ = std::fs::remove_file(scene.path("by-hand-shm"));
        std::fs::write(&path, &good).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(text).unwrap();
        connection.close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        match judge(&scene.path("copy"), &bytes, &before) {
            Ok(Verdict::Noticed) => {}
            Ok(Verdict::Harmless) => harmless.push(text.as_str()),
            Err(wrong) => panic!("{text}: {wrong}"),
        }
    }
    println!("{} commands, harmless: {harmless:?}", commands.len());
    // Only what changes no record, no head and no release may go unnoticed.
    assert!(harmless.iter().all(|t| t.starts_with("UPDATE record SET body") || t.starts_with("PRAGMA user") || *t == "VACUUM"));
}
