//! `privfit-bench ledger`: what a durable budget costs. Round trips on the disk that is named, with the file system's own
//! synchronisation beside them, and whole fits with and without a ledger in turns, so that one run gives the ratio.

use crate::{Failure, print_line};
use privfit::account::{Adjacency, Event};
use privfit::ledger::amount::Amount;
use privfit::ledger::chain::MacKey;
use privfit::ledger::record::Scope;
use privfit::ledger::{Ledger, Request, Reserved, digest};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Seconds of one write and synchronisation of 4096 bytes.
fn synchronised(path: &Path) -> std::io::Result<f64> {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    let start = Instant::now();
    file.write_all(&[0; 4096])?;
    file.sync_data()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Measures.
pub(crate) fn run(job: &Path, directory: &Path, repeats: usize) -> Result<(), Failure> {
    let failed =
        |e: std::io::Error| Failure::misuse(format!("{}: {e}; give a directory that can be written to", directory.display()));
    let here = directory.join(format!("privfit-bench-ledger-{}", std::process::id()));
    std::fs::create_dir_all(&here).map_err(failed)?;
    let measured = measure(job, &here, repeats);
    // Before anything is printed: whoever reads may go away.
    let _ = std::fs::remove_dir_all(&here);
    measured?.iter().for_each(|line| print_line(line));
    Ok(())
}

fn measure(job: &Path, here: &Path, repeats: usize) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let place = here.join("trips.ledger").display().to_string();
    let scope = Scope { dataset: "bench".into(), unit: "row".into(), adjacency: Adjacency::ZeroOut };
    let cap = Amount::parse("1000").unwrap_or_default();
    let mut ledger = Ledger::create(&place, MacKey::default(), scope.clone(), cap, 1e-6)?;
    let (mut trips, mut syncs) = (Vec::new(), Vec::new());
    for i in 0..repeats {
        let name = format!("trip-{i}");
        let digest = digest(&[name.as_bytes()]);
        let request =
            Request { name, job: "bench".into(), digest, scope: scope.clone(), event: Event::gaussian(100.0), resumable: false };
        let start = Instant::now();
        let Reserved::Now(position) = ledger.reserve(&request)? else { continue };
        ledger.commit(&position.request, vec![b'x'; 10_000])?;
        trips.push(start.elapsed().as_secs_f64());
        syncs.push(synchronised(&here.join("plain")).unwrap_or(f64::NAN));
    }
    let (trip, sync) = (middle(trips), middle(syncs));
    lines.push(format!(
        "round trip, SQLite: {:.2} ms (middle of {repeats}); one synchronised write of 4 kB: {:.2} ms; ratio {:.1}",
        1e3 * trip,
        1e3 * sync,
        trip / sync
    ));
    // Both programs are built into one directory.
    let own = std::env::current_exe().map_err(|_| Failure::misuse("the program can't find itself: give its full path"))?;
    let program = own.with_file_name("privfit");
    let unread = |e: std::io::Error| Failure::misuse(format!("cannot read the job {}: {e}; check the path", job.display()));
    let text = std::fs::read_to_string(job).map_err(unread)?;
    let table: toml::Table = toml::from_str(&text).map_err(|_| Failure::misuse("the job is not valid TOML: correct it"))?;
    let schema = table.get("schema").and_then(|v| v.as_str()).unwrap_or("schema.toml");
    let schema = job.parent().unwrap_or(Path::new("")).join(schema);
    let place = here.join("fits.ledger").display().to_string();
    let run = |arguments: &[&str]| {
        let start = Instant::now();
        let done = Command::new(&program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match done {
            Ok(status) if status.success() => Ok(start.elapsed().as_secs_f64()),
            _ => Err(Failure::misuse(format!("`privfit {}` did not succeed: try it by itself", arguments.join(" ")))),
        }
    };
    let (schema, job, out) = (schema.display().to_string(), job.display().to_string(), here.join("m.json").display().to_string());
    run(&["ledger", "create", &place, "--schema", &schema, "--epsilon", "30", "--delta", "1e-6"])?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..repeats / 10 {
        without.push(run(&["fit", &job, "--out", &out])?);
        with.push(run(&["fit", &job, "--out", &out, "--ledger", &place])?);
    }
    let (with, without) = (middle(with), middle(without));
    lines.push(format!(
        "fit: {:.1} ms with a ledger, {:.1} ms without (middle of {} each, in turns); ratio {:.3}",
        1e3 * with,
        1e3 * without,
        repeats / 10,
        with / without
    ));
    Ok(lines)
}
