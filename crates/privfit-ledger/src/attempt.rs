//! Requests that are kept in between, so that another process can go on with them.
//!
//! *Claim.* Of everything that the processes of one request make, at most one version of each step is ever written down or released. A checkpoint
//! is its bytes and the record that names them, in one transaction: it is there whole, or not at all. Whoever goes on writes down a new attempt
//! first, in the same transaction that reads which checkpoint is the last; from then on no process of an earlier attempt can add a checkpoint
//! or a release, whether it is still running, was stopped or is on another machine. So a new attempt begins at the last thing that left, and
//! whatever else an older one has computed never leaves.
//!
//! What a crash leaves of a transaction that did not end, in a log, is read by nobody and gone with the next one.
//!
//! There is nothing to copy: an older checkpoint is not kept, and an older copy of the whole ledger is what `heads.rs` and models are for.

use super::record::Record;
use super::store::{Append, damaged};
use super::{Ledger, Reader, Status, digest_of};
use crate::chain::Entry;
use privfit_data::error::{Error, Result};

/// Records of one ledger that the checkpoints of one run may take; more would fill it.
pub const MOST_CHECKPOINTS: u64 = 1000;

impl Status {
    /// Which process of a request may write: 1 for the one that reserved.
    pub fn attempt(&self, request: &str) -> u64 {
        let resumed = |r: &Record| matches!(r, Record::Resume { request: this, .. } if this == request);
        1 + self.records.iter().filter(|(r, _)| resumed(r)).count() as u64
    }

    /// Digest of the last checkpoint of a request.
    pub fn checkpoint(&self, request: &str) -> Option<&str> {
        self.records.iter().rev().find_map(|(r, _)| match r {
            Record::Checkpoint { request: this, state, .. } if this == request => Some(state.as_str()),
            _ => None,
        })
    }

    /// Checkpoints of requests that were not released: the request, and the digest of the last one.
    pub fn open_checkpoints(&self) -> Vec<(String, String)> {
        let reserved = self.records.iter().filter_map(|(r, _)| match r {
            Record::Reserve { request, .. } if self.released(request).is_none() => Some(request),
            _ => None,
        });
        reserved.filter_map(|request| Some((request.clone(), self.checkpoint(request)?.to_string()))).collect()
    }
}

/// Appends to a request, if this attempt is the last one and nothing was released; gives back where the ledger stands then.
pub(super) fn append(
    reader: &mut Reader,
    entries: &[Entry],
    (request, attempt): (&str, u64),
    record: &Record,
    bytes: &[u8],
) -> Result<(Status, Append)> {
    let mut status = reader.look(entries)?;
    if !status.reserved(request) {
        return Err(Error::misuse("this request was not reserved: reserve first"));
    }
    if status.attempt(request) != attempt {
        return Err(overtaken());
    }
    if status.released(request).is_some() {
        return Err(Error::misuse("this request was released before: ask under another name"));
    }
    let resumable = |r: &Record| matches!(r, Record::Reserve { request: this, resumable: true, .. } if this == request);
    if matches!(record, Record::Checkpoint { .. }) && !status.records.iter().any(|(r, _)| resumable(r)) {
        return Err(Error::misuse("this request was not reserved as one that is kept: reserve it so"));
    }
    let entry = reader.mac_key.next(entries, record.body()?);
    status.records.push((record.clone(), entry.hash.clone()));
    Ok((status, Append { entry, release: Some((request.to_string(), bytes.to_vec())) }))
}

pub(super) fn overtaken() -> Error {
    Error::refused(
        "another process goes on with this request, and this one has ended: let that one finish, nothing is lost or spent twice",
    )
}

impl Ledger {
    /// Keeps the state of a request that is under way, instead of the one before. It is public from here on.
    pub fn keep(&mut self, request: &str, attempt: u64, bytes: Vec<u8>) -> Result<()> {
        let reader = &mut self.reader;
        let record = Record::Checkpoint { request: request.into(), attempt, state: digest_of(&bytes) };
        let mut after = None;
        self.store.transact(&mut |entries| {
            let (status, append) = append(reader, entries, (request, attempt), &record, &bytes)?;
            after = Some(status);
            Ok(Some(append))
        })?;
        self.remember(after);
        Ok(())
    }

    /// The state that was kept last, by its digest; none if somebody has gone on or released meanwhile.
    pub(super) fn kept_state(&mut self, request: &str, digest: &str) -> Result<Option<Vec<u8>>> {
        let bytes = self.store.release(request)?.ok_or_else(|| damaged("a checkpoint is missing"))?;
        if digest_of(&bytes) == digest {
            return Ok(Some(bytes));
        }
        let now = self.look()?;
        match now.released(request).is_none() && now.checkpoint(request) == Some(digest) {
            true => Err(damaged("a checkpoint is not what was written down")),
            false => Ok(None),
        }
    }
}
