//! Jobs that are kept in between: where, how often, and what is refused before anything is spent.
//!
//! Checkpoints of a job that a ledger pays for are kept by the ledger, in the same transaction as the record that makes each of them the last one: a
//! file beside it could be older or newer than what the ledger knows. A job without a ledger keeps them in a file of its own.

use crate::checkpoint::file::{CheckpointFile, Kept};
use crate::checkpoint::{Checkpoints, State, from_bytes, is_due, to_bytes, usual_distance};
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::ledger::attempt::MOST_CHECKPOINTS;
use crate::method;
use std::path::Path;

/// Where checkpoints are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckpointPlace<'a> {
    /// In a file, for a job without a ledger.
    File(&'a Path),
    /// In the ledger that pays.
    Ledger,
}

/// Checkpoints as a job asks for them.
pub struct CheckpointArguments<'a> {
    /// Where they are kept.
    pub place: CheckpointPlace<'a>,
    /// Steps between two of them; none for some fifty in all.
    pub every: Option<u64>,
    /// Told how many steps other processes have done, where the run goes on.
    pub resumed: &'a dyn Fn(u64),
}

impl CheckpointArguments<'_> {
    /// What is kept of a job with this digest and so many steps, or why it can't be; without a digest it can't be stopped.
    /// `keys`: there are keys of noise in it.
    pub(crate) fn check(&self, job: Option<String>, steps: u64, has_ledger: bool, keys: bool) -> Result<Kept> {
        let Some(job) = job else {
            let text = "this job can't be stopped and gone on with: leave out ";
            let error = Error::misuse(text).naming("checkpoint");
            // A network can, with a ledger too, and one without layers is a linear model.
            let able = method::ALL.iter().find(|m| m.can.resumable && m.can.of_layers);
            return Err(able.map_or(error.clone(), |m| error.text(", or fit with ").give("method", m.name)));
        };
        if keys && has_ledger {
            let text = "a checkpoint of correlated noise has its keys, which are as confidential as the records, and a ledger is read by others: leave out ";
            return Err(Error::misuse(text)
                .naming("checkpoint")
                .text(", or give ")
                .give("set", "correlated=false")
                .text(" to a network, of which linear layers are a linear model"));
        }
        match (self.place, has_ledger) {
            (CheckpointPlace::File(_), true) => {
                return Err(Error::misuse(
                    "a ledger pays for this job and keeps its checkpoints, so that none is used twice: give ",
                )
                .give("checkpoint", "ledger"));
            }
            (CheckpointPlace::Ledger, false) => {
                return Err(Error::misuse("there is no ledger to keep checkpoints in: give ")
                    .naming("ledger")
                    .text(", or a file (./ledger for one of this name) as ")
                    .naming("checkpoint"));
            }
            _ => {}
        }
        let every = self.every.unwrap_or_else(|| usual_distance(steps));
        if every == 0 {
            return Err(Error::misuse("checkpoints are kept every so many steps, and this is 0: give ")
                .give("checkpoint_every", usual_distance(steps)));
        }
        if has_ledger && steps.div_ceil(every) > MOST_CHECKPOINTS {
            let text = format!(
                "a ledger keeps at most {MOST_CHECKPOINTS} checkpoints of a run, and {steps} steps have more: give at least "
            );
            return Err(Error::misuse(text).give("checkpoint_every", steps.div_ceil(MOST_CHECKPOINTS)));
        }
        Ok(Kept { job, every, steps })
    }

    /// The file of the job, where there is one.
    pub(crate) fn find(&self, kept: &Kept) -> Result<Option<CheckpointFile>> {
        match self.place {
            CheckpointPlace::File(path) => CheckpointFile::find(path, kept),
            CheckpointPlace::Ledger => Ok(None),
        }
    }

    /// A file, where none was found and one is wanted.
    pub(crate) fn create(&self, kept: &Kept) -> Result<Option<CheckpointFile>> {
        match self.place {
            CheckpointPlace::File(path) => CheckpointFile::create(path, kept).map(Some),
            CheckpointPlace::Ledger => Ok(None),
        }
    }
}

/// The state that a ledger kept of a job.
pub(crate) fn state_of(kept: &Kept, bytes: &[u8]) -> Result<Option<State>> {
    let (job, state) = from_bytes(bytes)?;
    match job == kept.job && state.as_ref().is_none_or(|s| s.steps <= kept.steps) {
        true => Ok(state),
        false => Err(Error::damaged("the ledger keeps a state of another job for this request: restore it from a copy")),
    }
}

/// Checkpoints in a ledger.
pub(crate) struct InLedger<'a> {
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) request: String,
    pub(crate) attempt: u64,
    pub(crate) kept: &'a Kept,
    pub(crate) found: Option<State>,
}

impl Checkpoints for InLedger<'_> {
    fn due(&self, steps: u64) -> bool {
        is_due(self.kept.every, self.kept.steps, steps)
    }

    fn found(&mut self) -> Option<State> {
        self.found.take()
    }

    fn keep(&mut self, state: State) -> Result<()> {
        let bytes = to_bytes(&self.kept.job, Some(&state))?;
        self.ledger.keep(&self.request, self.attempt, bytes).map_err(|error| match error {
            // Nothing of the records is in it, so that its words may be said.
            Error::Misuse(text) => Error::Output(text),
            other => other,
        })
    }
}
