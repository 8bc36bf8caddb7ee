//! Where records are kept: one small trait, so that a file for one owner and a server for a team keep the same promises.

use super::chain::Entry;
use privfit_data::error::{Error, Result};

/// What is added in one step.
pub struct Append {
    /// The record.
    pub entry: Entry,
    /// What it releases, kept so that whoever asks again gets the same bytes: the request's digest and the bytes.
    pub release: Option<(String, Vec<u8>)>,
}

/// Decides on what is there what is appended.
pub type Decide<'a> = &'a mut dyn FnMut(&[Entry]) -> Result<Option<Append>>;

/// A place for records.
pub trait Store {
    /// Alone with the store: reads all entries in order, asks, and appends. When it returns, what was appended survives a crash of
    /// process and machine; if it fails, the record may or may not be there, which the caller takes as spent.
    fn transact(&mut self, decide: Decide<'_>) -> Result<Vec<Entry>>;

    /// All entries in order, where nothing is to be appended: also from a place that can't be written to.
    fn entries(&mut self) -> Result<Vec<Entry>> {
        self.transact(&mut |_| Ok(None))
    }

    /// The bytes that were kept for a request.
    fn release(&mut self, request: &str) -> Result<Option<Vec<u8>>>;
}

/// Records of one ledger, in bytes: tens of thousands of jobs. More is a mistake or an attack.
pub(super) const LARGEST: usize = 32 << 20;
/// Text of one record.
pub(super) const LARGEST_BODY: usize = 1 << 20;
/// A release that is kept.
pub(super) const LARGEST_RELEASE: usize = 512 << 20;

/// Adds an entry that was read, within bounds.
pub(super) fn push(entries: &mut Vec<Entry>, size: &mut usize, entry: Entry) -> Result<()> {
    *size += entry.body.len() + entry.hash.len();
    if entry.body.len() > LARGEST_BODY || entry.hash.len() != 64 || *size > LARGEST {
        return Err(damaged("it is larger than any of ours"));
    }
    entries.push(entry);
    Ok(())
}

/// Whether the count and the digest that are kept beside the records are those of the last one: a chain alone can't tell that its end is
/// missing.
pub(super) fn check_head(entries: &[Entry], count: u64, hash: &str) -> Result<()> {
    let last = entries.last().map_or(super::chain::ROOT, |e| e.hash.as_str());
    if count != entries.len() as u64 || hash != last {
        return Err(damaged("its last records are missing"));
    }
    Ok(())
}

/// Whether an append can be kept.
pub(super) fn check_append(entries: &[Entry], append: &Append) -> Result<()> {
    let size: usize = entries.iter().map(|e| e.body.len() + e.hash.len()).sum();
    if append.entry.body.len() > LARGEST_BODY {
        return Err(Error::misuse("the record of this job is larger than a megabyte: simplify its plan"));
    }
    if size + append.entry.body.len() + 64 > LARGEST {
        return Err(Error::misuse("the ledger is full: make a new one for what is left of the budget"));
    }
    if append.release.as_ref().is_some_and(|r| r.1.len() > LARGEST_RELEASE) {
        return Err(Error::misuse("the model is larger than 512 MB: a ledger can't keep it"));
    }
    Ok(())
}

pub(super) fn damaged(what: &str) -> Error {
    Error::damaged(format!("the ledger is damaged ({what}): restore it from a copy, nothing is released meanwhile"))
}
