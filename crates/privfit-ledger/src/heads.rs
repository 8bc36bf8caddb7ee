//! The last record that a user saw of each ledger. A ledger can't notice that an old copy of it was put back, and everything that was
//! spent since would be forgotten with the newer one; whoever used the newer one on this machine remembers.
//!
//! One small file for each ledger, named after the ledger's random identity, with a count of records and the digest of the last one, which
//! every model names too. No path, no name of a data set, nothing about rows. Where there is no place for such a file nothing is remembered,
//! and nothing else changes.

use super::Status;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// A directory of remembered heads.
#[derive(Clone, Debug)]
pub struct Heads {
    directory: PathBuf,
}

/// Where a ledger ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of records.
    pub records: u64,
    /// Digest of the last one.
    pub hash: String,
}

/// A ledger that does not hold what was seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// What was seen.
    pub seen: Head,
    /// Where that is remembered.
    pub file: PathBuf,
}

impl Head {
    fn of(status: &Status) -> Option<Head> {
        let (_, hash) = status.records.last()?;
        Some(Head { records: status.records.len() as u64, hash: hash.clone() })
    }

    fn parse(text: &str) -> Option<Head> {
        let (records, hash) = text.trim_end().split_once(' ')?;
        Some(Head { records: records.parse().ok().filter(|n| *n > 0)?, hash: hash.into() })
    }

    /// Whether a ledger goes on from here.
    fn is_in(&self, status: &Status) -> bool {
        let at = usize::try_from(self.records - 1).ok();
        at.and_then(|at| status.records.get(at)).is_some_and(|(_, hash)| *hash == self.hash)
    }
}

impl RolledBack {
    /// What happened, and what to do.
    pub fn text(&self, records: usize) -> String {
        let now = match (records as u64) < self.seen.records {
            true => format!("it has {records}"),
            false => "others stand in their place".into(),
        };
        format!(
            "the ledger was rolled back: {} of its records were seen here and now {now}; put its newest copy back (if that is lost, remove {}, \
             and what was spent since is forgotten)",
            self.seen.records,
            self.file.display()
        )
    }
}

impl Heads {
    /// Those of the user who runs this process: in the directory for state of the XDG standard. None without a home.
    pub fn of_user() -> Option<Heads> {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
        Some(Heads { directory: state.join("privfit/ledgers") })
    }

    /// Those in a directory, which is made when it is needed.
    pub fn at(directory: &Path) -> Heads {
        Heads { directory: directory.into() }
    }

    fn file(&self, status: &Status) -> PathBuf {
        // Sixty-four digits: records of a ledger are checked when they are read.
        self.directory.join(&status.terms.ledger)
    }

    /// What was seen of this ledger.
    pub(super) fn last(&self, status: &Status) -> Option<Head> {
        let bytes = privfit_data::small_file::read_text(&self.file(status), 200).ok()?;
        Head::parse(&bytes)
    }

    /// The contradiction between a ledger and what was seen of it before, if there is one.
    pub(super) fn contradicts(&self, status: &Status, seen: Option<Head>) -> Option<RolledBack> {
        let seen = seen.filter(|head| !head.is_in(status))?;
        Some(RolledBack { seen, file: self.file(status) })
    }

    /// Remembers where a ledger ends; never less than was seen. Whatever fails, a job goes on: this is one look more, not a condition.
    pub(super) fn remember(&self, status: &Status) {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        let Some(head) = Head::of(status) else { return };
        if self.last(status).is_some_and(|seen| seen.records >= head.records) {
            return;
        }
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        let opened = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(self.file(status));
        // Whoever else holds it writes as much as we would, or will next time.
        let Some(mut file) = opened.ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()) && f.try_lock().is_ok()) else {
            return;
        };
        let mut text = String::new();
        let _ = (&file).take(200).read_to_string(&mut text);
        if Head::parse(&text).is_none_or(|seen| seen.records < head.records) {
            let _ = file
                .rewind()
                .and_then(|()| file.set_len(0))
                .and_then(|()| file.write_all(format!("{} {}\n", head.records, head.hash).as_bytes()));
        }
    }
}
