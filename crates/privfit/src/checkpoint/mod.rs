//! Checkpoints: what is kept of a run that is under way, so that another process can go on with it.
//!
//! *Claim.* A checkpoint holds what was released, and nothing else that depends on records: which releases of the plan were executed
//! (`Executed` of the kernel) and numbers that were computed from them alone, such as weights and moments. So it is post-processing of a prefix
//! of the plan, whoever reads it, and its length is public. It is a release all the same: the whole plan is reserved before the first
//! one is written, and nothing of a step leaves the process before the checkpoint that holds it is durable. A step that is in none has been seen by
//! nobody, and making it again with fresh noise is its first release. What is in one is never made again: a run goes on after it, with these
//! numbers to the bit.
//!
//! *Correlated noise.* The one exception: steps whose noise takes back that of earlier steps go on with the keys of that noise, which are in `Executed` (`has_keys`). Keys depend on no record, but with them the noise can be
//! taken off what was released: such a file is as confidential as the records, is written for its owner alone, and is overwritten before it goes. A ledger, which others read, keeps none.
//!
//! *Once.* Two processes that go on from the same checkpoint would release the same steps twice. In a ledger that can't happen
//! (`privfit_ledger::attempt`). A file is held by the process that uses it (`file.rs`), but a copy of it is another file: without a ledger
//! nobody notices, as nobody notices a second run.
//!
//! *Changed records.* Where the files are is no part of a job, so that they may have changed in between. One unit still adds to each step no more
//! than its clip, whatever its record is by then: the guarantee is for all records that it had.

pub mod file;

use crate::error::{Error, Result};
use crate::ledger::digest_of;
use privfit_kernel::Executed;
use serde::{Deserialize, Serialize};

/// Where a method keeps the state of a run, and finds what another process kept.
pub trait Checkpoints {
    /// Whether the state after so many steps is to be kept. A function of public numbers.
    fn due(&self, steps: u64) -> bool;
    /// What another process kept last; once.
    fn found(&mut self) -> Option<State>;
    /// Keeps a state in the place of the one before. When this returns it is durable, and it is public.
    fn keep(&mut self, state: State) -> Result<()>;
}

/// A run that is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Steps that are done.
    pub steps: u64,
    /// What was released.
    pub executed: Executed,
    /// Lists of numbers that the method computed from that.
    pub numbers: Vec<Vec<f64>>,
}

/// Every so many steps, and after the last one, so that what is published later needs no step again.
pub(crate) fn is_due(every: u64, all: u64, steps: u64) -> bool {
    steps == all || steps.is_multiple_of(every.max(1))
}

/// Steps between two checkpoints, unless it is said: fifty checkpoints in all.
pub fn usual_distance(steps: u64) -> u64 {
    steps.div_ceil(50).max(1)
}

/// What a checkpoint begins with; then the length of its facts in eight bytes, the facts as JSON, the numbers in eight bytes each, and the digest
/// of everything before.
const MAGIC: &[u8] = b"privfit checkpoint 1\n";
/// Letters of a digest.
const DIGEST: usize = 64;
/// Bytes of a checkpoint at the most, as a ledger takes them.
pub(crate) const LARGEST: u64 = 512 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    /// Digest of everything that the job says, and of the seed of a simulation.
    job: String,
    steps: u64,
    /// None before the first step.
    executed: Option<Executed>,
    lengths: Vec<usize>,
}

/// The bytes of a state of a job; of no state before the first step.
pub(crate) fn to_bytes(job: &str, state: Option<&State>) -> Result<Vec<u8>> {
    let facts = Facts {
        job: job.into(),
        steps: state.map_or(0, |s| s.steps),
        executed: state.map(|s| s.executed.clone()),
        lengths: state.map_or(Vec::new(), |s| s.numbers.iter().map(Vec::len).collect()),
    };
    let facts = serde_json::to_vec(&facts).map_err(|_| Error::Host)?;
    let mut bytes = [MAGIC, &(facts.len() as u64).to_le_bytes(), &facts].concat();
    for x in state.iter().flat_map(|s| &s.numbers).flatten() {
        bytes.extend(x.to_bits().to_le_bytes());
    }
    let digest = digest_of(&bytes);
    bytes.extend(digest.as_bytes());
    Ok(bytes)
}

/// The digest of the job that bytes belong to, and its state. Whatever is not exactly as we write it is damaged.
pub(crate) fn from_bytes(bytes: &[u8]) -> Result<(String, Option<State>)> {
    let name = MAGIC.len() - 2;
    if bytes.len() > MAGIC.len() && bytes[..name] == MAGIC[..name] && bytes[..MAGIC.len()] != *MAGIC {
        return Err(Error::damaged("the checkpoint is of another version: use the privfit that made it"));
    }
    read(bytes).ok_or_else(|| Error::damaged("the checkpoint is damaged, or is none: restore it; without it the run can't go on"))
}

fn read(bytes: &[u8]) -> Option<(String, Option<State>)> {
    let (body, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST)?)?;
    if digest_of(body).as_bytes() != digest {
        return None;
    }
    let (length, rest) = body.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    let (facts, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let Facts { job, steps, executed, lengths } = serde_json::from_slice(facts).ok()?;
    let words = rest.as_chunks::<8>().0;
    let total = lengths.iter().try_fold(0usize, |sum, n| sum.checked_add(*n))?;
    if total != words.len() || rest.len() % 8 > 0 || executed.is_some() != (steps > 0) {
        return None;
    }
    let mut words = words.iter().map(|w| f64::from_bits(u64::from_le_bytes(*w)));
    let numbers = lengths.iter().map(|n| words.by_ref().take(*n).collect()).collect();
    Some((job, executed.map(|executed| State { steps, executed, numbers })))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn state(steps: u64) -> State {
        let executed = serde_json::json!({
            "releases": [[privfit_kernel::account::Event::gaussian(2.0), steps]], "numerics": "exact", "order_dependent": false, "simulated": null,
        });
        let executed = serde_json::from_value(executed).unwrap();
        State { steps, executed, numbers: vec![vec![1.5, -0.0, f64::MIN_POSITIVE / 8.0], Vec::new(), vec![steps as f64]] }
    }

    #[test]
    fn bytes_there_and_back() {
        for state in [None, Some(state(7))] {
            let bytes = to_bytes("job", state.as_ref()).unwrap();
            assert_eq!(from_bytes(&bytes).unwrap(), ("job".into(), state.clone()));
            // Torn anywhere, longer, or with any bit flipped: damaged.
            for cut in 0..bytes.len() {
                assert_eq!(from_bytes(&bytes[..cut]).unwrap_err().code(), 4, "{cut}");
                let mut flipped = bytes.clone();
                flipped[cut] ^= 1 << (cut % 8);
                assert_eq!(from_bytes(&flipped).unwrap_err().code(), 4, "{cut}");
            }
            assert_eq!(from_bytes(&[&bytes[..], b"0"].concat()).unwrap_err().code(), 4);
        }
        let newer =
            to_bytes("job", None).unwrap().into_iter().enumerate().map(|(i, b)| if i == MAGIC.len() - 2 { b'2' } else { b });
        let error = from_bytes(&newer.collect::<Vec<_>>()).unwrap_err();
        assert!(error.to_string().contains("another version"), "{error}");
    }

    #[test]
    fn some_fifty_and_the_last() {
        for (steps, every) in [(1, 1), (50, 1), (51, 2), (600, 12), (601, 13)] {
            assert_eq!(usual_distance(steps), every);
            let due = (1..=steps).filter(|s| is_due(every, steps, *s)).count();
            assert!(due <= 50 && is_due(every, steps, steps), "{steps}: {due}");
        }
    }
}
