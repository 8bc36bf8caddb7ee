//! A ledger that was made to hurt whoever reads it: wrong amounts, wrong types, huge or deep records, too many of them, triggers and views.
//! The command says that it is damaged, soon and in little memory.

use crate::faults::kills::times;
use crate::faults::races::make;
use crate::faults::scene::Scene;
use crate::faults::tracer::{Act, run};
use privfit::ledger::chain::{Entry, MacKey};
use rusqlite::{Connection, params};
use std::process::Command;
use std::time::{Duration, Instant};

/// Memory that any of it may take, in bytes.
const MEMORY: i64 = 256 << 20;
/// Time that any of it may take; generous, since machines differ.
const TIME: Duration = Duration::from_secs(120);

/// Exit code, what was said, and the largest memory in bytes.
fn measured(command: &mut Command) -> (Option<i32>, String, i64) {
    let mut most = 0;
    // Asked at the last call: what the system says after the end counts the memory of whoever started the command, too.
    let outcome = run(command, |stop| {
        if stop.call == libc::SYS_exit_group {
            let status = std::fs::read_to_string(format!("/proc/{}/status", stop.thread)).unwrap();
            let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a peak of memory");
            most = line.trim().trim_end_matches(" kB").parse::<i64>().unwrap() * 1024;
        }
        Act::Go
    });
    (outcome.code, outcome.stderr + &outcome.stdout, most)
}

/// Every command on a hostile ledger ends with 4, in time and in memory, and no model is made.
fn rejected(scene: &Scene, what: &str) {
    let place = scene.ledger();
    for mut command in [
        scene.command(&["ledger", "show", &place]),
        scene.command(&["ledger", "verify", &place]),
        scene.fit(&place, "here", "m.json"),
    ] {
        let begun = Instant::now();
        let (code, says, memory) = measured(&mut command);
        assert_eq!(code, Some(4), "{what}: {says}");
        assert!(memory > 1 << 20 && memory < MEMORY, "{what}: {} MB", memory >> 20);
        assert!(begun.elapsed() < TIME, "{what}: {:?}", begun.elapsed());
        assert!(says.len() < 2000 && !says.contains("panicked"), "{what}: {says}");
        assert!(!scene.path("m.json").exists(), "{what}");
    }
}

/// A fresh ledger with one job reserved, as a connection.
fn fresh(scene: &Scene) -> Connection {
    for name in ["ledger", "ledger-wal", "ledger-shm"] {
        let _ = std::fs::remove_file(scene.path(name));
    }
    let mut ledger = make(&scene.ledger(), "5");
    ledger.reserve(&crate::faults::races::request("one")).unwrap();
    drop(ledger);
    let connection = Connection::open(scene.path("ledger")).unwrap();
    connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
    connection
}

pub(crate) fn entries(connection: &Connection) -> Vec<Entry> {
    let mut statement = connection.prepare("SELECT sequence, body, hash FROM record ORDER BY sequence").unwrap();
    let rows = statement.query_map([], |r| Ok(Entry { sequence: r.get::<_, i64>(0)? as u64, body: r.get(1)?, hash: r.get(2)? }));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Writes these texts as a chain that fits, with a head that fits: whoever has the file can do so.
fn forge(connection: &Connection, bodies: impl IntoIterator<Item = String>) {
    connection.execute_batch("BEGIN; DELETE FROM record").unwrap();
    // Only the last entry is needed for the next one.
    let mut last: Vec<Entry> = Vec::new();
    {
        let mut insert = connection.prepare("INSERT INTO record VALUES (?1, ?2, ?3)").unwrap();
        for body in bodies {
            last = vec![MacKey::default().next(&last, body)];
            insert.execute(params![last[0].sequence as i64, last[0].body, last[0].hash]).unwrap();
        }
    }
    connection.execute("UPDATE head SET count = ?1, hash = ?2", params![last[0].sequence as i64 + 1, last[0].hash]).unwrap();
    connection.execute_batch("COMMIT").unwrap();
}

#[test]
fn texts_that_hurt() {
    let scene = Scene::new("hostile");
    let connection = fresh(&scene);
    let good: Vec<String> = entries(&connection).into_iter().map(|e| e.body).collect();
    assert!(good[1].contains("\"0.1\"") && good[0].contains("\"5\""), "{good:?}");
    drop(connection);
    let mut cases: Vec<(String, Vec<String>)> = Vec::new();
    for amount in ["-1", "NaN", "1e-320", "1e400", "18446744073709551616", "", "0", "0x1", "0.1234567890123", "١", "inf", "1e2"]
    {
        for number in [format!("\"{amount}\""), amount.to_string()] {
            cases.push((format!("a charge of {number}"), vec![good[0].clone(), good[1].replace("\"0.1\"", &number)]));
            cases.push((format!("a budget of {number}"), vec![good[0].replace("\"5\"", &number), good[1].clone()]));
        }
    }
    // An amount as a number is the only spelling of 0.1 that is not ours and might be taken for it.
    cases.push(("a charge as a number".into(), vec![good[0].clone(), good[1].replace("\"0.1\"", "0.1")]));
    for event in ["-0.1", "0", "1e400", "NaN", "null", "\"0.1\"", "[0.1]"] {
        let body = good[1].replace("\"epsilon\":0.1", &format!("\"epsilon\":{event}"));
        assert!(body != good[1], "{}", good[1]);
        cases.push((format!("an event of {event}"), vec![good[0].clone(), body]));
    }
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    for n in [100, 10_000, 400_000] {
        cases.push((format!("{n} deep"), vec![good[0].clone(), deep(n)]));
        let event = "{\"poisson\":{\"rate\":0.5,\"event\":".repeat(n) + "{\"pure\":{\"epsilon\":0.1}}" + &"}}".repeat(n);
        let body = good[1].replace("{\"pure\":{\"epsilon\":0.1,\"replace_factor\":2.0}}", &event);
        if n > 100 && body != good[1] {
            cases.push((format!("an event {n} deep"), vec![good[0].clone(), body]));
        }
    }
    for text in
        ["", "{}", "null", "[]", "0", "\"open\"", "{\"open\":{}}", "{\"reserve\":{}}", "{\"unknown\":1}", "\u{0}", "\u{feff}{}"]
    {
        cases.push((format!("a record {text:?}"), vec![good[0].clone(), text.into()]));
        cases.push((format!("a first record {text:?}"), vec![text.into(), good[1].clone()]));
    }
    cases.push(("two beginnings".into(), vec![good[0].clone(), good[0].clone()]));
    cases.push(("a job twice".into(), vec![good[0].clone(), good[1].clone(), good[1].clone()]));
    cases.push(("no beginning".into(), vec![good[1].clone()]));
    let more = |body: &str| body.replacen('{', "{\"more\":1,", 1);
    cases.push(("an unknown key".into(), vec![good[0].clone(), more(&good[1])]));
    for (what, version) in [("a newer version", "3"), ("an old version", "-1")] {
        let body = good[0].replace("\"version\":2", &format!("\"version\":{version}"));
        assert!(body != good[0], "{}", good[0]);
        cases.push((what.into(), vec![body, good[1].clone()]));
    }
    cases.push(("more than there is".into(), vec![good[0].clone(), good[1].replace("\"0.1\"", "\"5.1\"")]));
    println!("{} hostile texts", cases.len());
    for (what, bodies) in cases {
        forge(&fresh(&scene), bodies);
        rejected(&scene, &what);
    }
}

#[test]
fn too_much_of_it() {
    let scene = Scene::new("much");
    // One record of 64 MB.
    let connection = fresh(&scene);
    let good: Vec<String> = entries(&connection).into_iter().map(|e| e.body).collect();
    forge(&connection, [good[0].clone(), " ".repeat(64 << 20) + &good[1]]);
    drop(connection);
    rejected(&scene, "a record of 64 MB");
    // Records by the hundred thousand that all look well.
    let connection = fresh(&scene);
    let many = times(200_000, 1_000_000) as u64;
    let jobs = (0..many).map(|i| good[1].replace("\"name\":\"one\"", &format!("\"name\":\"n{i}\"")));
    forge(&connection, std::iter::once(good[0].clone()).chain(jobs));
    drop(connection);
    rejected(&scene, "many records");
    // As many that are not records.
    let connection = fresh(&scene);
    forge(&connection, std::iter::once(good[0].clone()).chain((0..many).map(|_| "0".into())));
    drop(connection);
    rejected(&scene, "many numbers");
    // A release larger than memory allows is read only by whoever asks for it, and then it is not what was written down.
    let connection = fresh(&scene);
    connection.execute_batch("UPDATE head SET hash = zeroblob(100000000)").ok();
    connection.execute_batch("UPDATE head SET hash = CAST(zeroblob(100000000) AS TEXT)").unwrap();
    drop(connection);
    rejected(&scene, "a head of 100 MB");
}

#[test]
fn programs_in_the_file() {
    let scene = Scene::new("programs");
    let table = "CREATE TABLE record (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)";
    for (what, sql) in [
        (
            "a trigger",
            "CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM record WHERE sequence = new.sequence; END".into(),
        ),
        ("a trigger of the head", "CREATE TRIGGER t BEFORE UPDATE ON head BEGIN SELECT RAISE(IGNORE); END".into()),
        ("a view", "ALTER TABLE record RENAME TO kept; CREATE VIEW record AS SELECT * FROM kept".into()),
        (
            "a view beside",
            "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n".into(),
        ),
        ("another table", "CREATE TABLE more (x)".into()),
        ("a virtual table", "CREATE VIRTUAL TABLE more USING fts5(x)".into()),
        (
            "no types",
            format!("ALTER TABLE record RENAME TO kept; {table}; INSERT INTO record SELECT * FROM kept; DROP TABLE kept"),
        ),
        (
            "numbers in the place of texts",
            format!("DROP TABLE record; {}; INSERT INTO record VALUES (0, 1, 2)", table.replace("TEXT", "ANY")),
        ),
        (
            "a column that is computed",
            "DROP TABLE record; CREATE TABLE record (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, \
             hash TEXT GENERATED ALWAYS AS (hex(randomblob(32))) VIRTUAL)"
                .into(),
        ),
    ] {
        let connection = fresh(&scene);
        // Not every build has every kind of table; what can't be made can't hurt.
        if connection.execute_batch(&sql).is_err() {
            println!("{what}: can't be made here");
            continue;
        }
        drop(connection);
        rejected(&scene, what);
    }
    // Not SQLite at all, and nothing at all.
    for bytes in [&b""[..], b"0", b"SQLite format 3\0", &[0xff; 10_000]] {
        drop(fresh(&scene));
        std::fs::write(scene.path("ledger"), bytes).unwrap();
        rejected(&scene, &format!("a file of {} bytes", bytes.len()));
    }
}
