//! What must hold after any fault: the ledger opens or says why not, and whatever model is there was paid for.

use crate::faults::scene::{SECRET, Scene, files};
use privfit::ledger::chain::MacKey;
use privfit::ledger::record::Record;
use privfit::ledger::{Ledger, Status};
use std::process::{Command, Output};
use std::time::Duration;

/// How long a test waits for a lock that nobody should hold.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Opens a ledger anew, as a process would that knows nothing of what happened.
pub(crate) fn open(place: &str) -> privfit::Result<(Ledger, Status)> {
    let mut ledger = Ledger::open_patiently(place, MacKey::default(), PATIENCE)?;
    let status = ledger.status()?;
    Ok((ledger, status))
}

/// Where a request stands.
#[derive(Clone, PartialEq)]
pub(crate) enum Standing {
    /// Nothing was written down.
    Unknown,
    /// Spent, and nothing was released.
    Reserved,
    /// Spent, and these bytes may be seen.
    Released(Vec<u8>),
}

impl std::fmt::Debug for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Standing::Unknown => f.write_str("unknown"),
            Standing::Reserved => f.write_str("reserved"),
            Standing::Released(bytes) => write!(f, "released with {} bytes", bytes.len()),
        }
    }
}

/// Where the request with this name stands; it is in the ledger at most once.
pub(crate) fn standing(ledger: &mut Ledger, status: &Status, name: &str) -> Standing {
    let requests: Vec<&str> = status
        .records
        .iter()
        .filter_map(|(record, _)| match record {
            Record::Reserve { request, name: n, .. } if n == name => Some(request.as_str()),
            _ => None,
        })
        .collect();
    assert!(requests.len() <= 1, "{name} was spent {} times", requests.len());
    let Some(request) = requests.first() else { return Standing::Unknown };
    match status.released(request) {
        None => Standing::Reserved,
        Some(digest) => Standing::Released(ledger.stored_release(request, digest).unwrap()),
    }
}

/// Everything that was ever released.
fn releases(ledger: &mut Ledger, status: &Status) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (record, _) in &status.records {
        if let Record::Commit { request, release } = record {
            all.push(ledger.stored_release(request, release).unwrap());
        }
    }
    all
}

/// All of it after a fault in a fit with this request and this model file; gives back where the request stands.
pub(crate) fn sound(scene: &Scene, place: &str, request: &str, out: &str, when: &str) -> Standing {
    let (mut ledger, status) = open(place).unwrap_or_else(|e| panic!("{when}: the ledger does not open: {e}"));
    let standing = standing(&mut ledger, &status, request);
    match (std::fs::read(scene.path(out)), &standing) {
        (Err(_), _) => {}
        (Ok(model), Standing::Released(bytes)) => assert!(model == *bytes, "{when}: a model that is not what was released"),
        (Ok(_), _) => panic!("{when}: a model is there and the ledger says {standing:?}"),
    }
    for path in files(&scene.root) {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(SECRET.len()).position(|w| w == SECRET.as_bytes()).filter(|_| name != "d.csv") {
            let around = String::from_utf8_lossy(&bytes[at.saturating_sub(60)..(at + 60).min(bytes.len())]);
            panic!("{when}: {name} ({} bytes) holds a cell of the data at {at}, in {around:?}", bytes.len());
        }
        let ours = ["d.csv", "s.toml", "ledger", "ledger-wal", "ledger-shm"].contains(&name.as_str()) || name.starts_with("m");
        // A file that was on its way to its name holds only what may be seen already.
        let allowed = ours || bytes.is_empty() || releases(&mut ledger, &status).iter().any(|r| r.starts_with(&bytes));
        assert!(allowed, "{when}: {name} is left behind with {} bytes", bytes.len());
    }
    standing
}

/// The same request again: the same bytes, or a refusal, as the ledger stands.
pub(crate) fn again(scene: &Scene, place: &str, request: &str, before: &Standing, when: &str) {
    let out = "m-again.json";
    let done = finish(&mut scene.fit(place, request, out));
    let says = String::from_utf8_lossy(&done.stderr).into_owned();
    match before {
        Standing::Unknown => assert_eq!(done.status.code(), Some(0), "{when}: {says}"),
        Standing::Reserved => {
            assert_eq!(done.status.code(), Some(1), "{when}: {says}");
            assert!(says.contains("reserved before") && !scene.path(out).exists(), "{when}: {says}");
        }
        Standing::Released(bytes) => {
            assert_eq!(done.status.code(), Some(0), "{when}: {says}");
            assert!(std::fs::read(scene.path(out)).unwrap() == *bytes, "{when}: other bytes for the same request");
        }
    }
    let _ = std::fs::remove_file(scene.path(out));
}

/// A new request works.
pub(crate) fn goes_on(scene: &Scene, place: &str, request: &str, when: &str) {
    let out = "m-next.json";
    let done = finish(&mut scene.fit(place, request, out));
    assert_eq!(done.status.code(), Some(0), "{when}: {}", String::from_utf8_lossy(&done.stderr));
    let standing = sound(scene, place, request, out, when);
    assert!(matches!(standing, Standing::Released(_)), "{when}: {standing:?}");
    std::fs::remove_file(scene.path(out)).unwrap();
}

/// Runs a command to its end without a tracer.
pub(crate) fn finish(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// No message of a panic ever reaches a user.
pub(crate) fn civil(stderr: &str, when: &str) {
    assert!(!stderr.contains("panicked") && !stderr.contains("RUST_BACKTRACE"), "{when}: {stderr}");
}
