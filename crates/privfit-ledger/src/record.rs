//! What a ledger holds: what the budget is for, what was reserved, what was kept in between, what was released. No row, no count, no path and
//! no digest of data.

use super::amount::Amount;
use super::budget::{Charge, Rule, Spent};
use super::store::damaged;
use privfit_account::{Adjacency, Event};
use privfit_data::error::{Error, Result};
use privfit_data::schema::{Schema, UnitOfPrivacy};
use serde::{Deserialize, Serialize};

/// Version of the records that this code writes; it reads all until this one.
pub const VERSION: u32 = 2;

/// The first version that has checkpoints.
pub const WITH_CHECKPOINTS: u32 = 2;

/// What a budget is for: chosen by the owner of the data, and the same for every job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Name of the data set, as schemas have it, or of the parent of several that overlap.
    pub dataset: String,
    /// Whose privacy is protected: `row`, or `column` and the name of the one with identities.
    pub unit: String,
    /// What a neighbour is.
    pub adjacency: Adjacency,
}

impl Scope {
    /// What the jobs of a schema spend from.
    pub fn of(schema: &Schema, adjacency: Adjacency) -> Result<Scope> {
        if schema.name == privfit_data::schema::UNNAMED {
            return Err(Error::misuse("a ledger is for a data set with a name: add name = \"...\" to [dataset]"));
        }
        let unit = match &schema.unit {
            UnitOfPrivacy::Row => "row".to_string(),
            UnitOfPrivacy::Column { column, .. } => format!("column {column}"),
        };
        Ok(Scope { dataset: schema.parent.clone().unwrap_or_else(|| schema.name.clone()), unit, adjacency })
    }
}

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// The first one: the budget.
    Open {
        /// Version of the records.
        version: u32,
        /// Random name of this ledger, so that two with the same budget differ.
        ledger: String,
        /// What it is for.
        scope: Scope,
        /// Epsilon of everything together ...
        epsilon: Amount,
        /// ... at this delta.
        delta: f64,
        /// How spending is counted.
        rule: Rule,
    },
    /// Spent from now on, whatever happens.
    Reserve {
        /// Digest of everything that the job says.
        request: String,
        /// Name that the caller gave to it.
        name: String,
        /// What kind of job.
        job: String,
        /// What will be released.
        event: Event,
        /// What it costs by the rule.
        charge: Charge,
        /// Another process may go on with it: nothing of it leaves but through checkpoints and its release.
        #[serde(default, skip_serializing_if = "is_false")]
        resumable: bool,
    },
    /// Another process goes on with it; the ones before may write no more.
    Resume {
        /// Digest of the request.
        request: String,
        /// Number of the process: 2 for the first that goes on.
        attempt: u64,
    },
    /// Its state so far, kept in the place of the one before.
    Checkpoint {
        /// Digest of the request.
        request: String,
        /// Number of the process.
        attempt: u64,
        /// Digest of the state.
        state: String,
    },
    /// Released.
    Commit {
        /// Digest of the request.
        request: String,
        /// Digest of what was released.
        release: String,
    },
}

impl Record {
    /// Text of the record: always the same for the same record.
    pub fn body(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|_| Error::damaged("a record can't be written as JSON: report this"))
    }

    /// Reads a text; whatever is not exactly a record is damaged.
    pub fn read(body: &str) -> Result<Record> {
        let record: Record = serde_json::from_str(body).map_err(|_| unread(body))?;
        if let Record::Open { version, .. } = record
            && version > VERSION
        {
            return Err(unread(body));
        }
        record.check()?;
        // One text for one record.
        if record.body()? != body {
            return Err(damaged("a record is not as we write it"));
        }
        Ok(record)
    }

    /// What every record of ours satisfies.
    fn check(&self) -> Result<()> {
        let digest = |t: &str| t.len() == 64 && t.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let holds = match self {
            Record::Open { version, ledger, scope, epsilon, delta, rule } => {
                (1..=VERSION).contains(version)
                    && digest(ledger)
                    && !scope.dataset.is_empty()
                    && !scope.unit.is_empty()
                    && rule.fits(*epsilon, *delta)
            }
            Record::Reserve { request, name, event, charge, .. } => {
                digest(request) && is_name(name) && event.validate().is_ok() && !charge.is_free()
            }
            Record::Resume { request, attempt } => digest(request) && *attempt > 1,
            Record::Checkpoint { request, attempt, state } => digest(request) && digest(state) && *attempt > 0,
            Record::Commit { request, release } => digest(request) && digest(release),
        };
        if holds { Ok(()) } else { Err(damaged("a record does not hold together")) }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Why a text is no record. A newer version may have any other keys, and must not look like damage.
fn unread(body: &str) -> Error {
    #[derive(Deserialize)]
    struct Probe {
        open: Head,
    }
    #[derive(Deserialize)]
    struct Head {
        version: u32,
    }
    match serde_json::from_str::<Probe>(body) {
        Ok(probe) if probe.open.version > VERSION => Error::damaged(format!(
            "the ledger has version {} and this program reads up to {VERSION}: use a newer privfit",
            probe.open.version
        )),
        _ => damaged("a record can't be read"),
    }
}

/// Names are public and stay in the ledger, so they are kept plain.
pub fn is_name(text: &str) -> bool {
    (1..=100).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Adds up all reservations, released or not.
pub fn spent_by(records: &[Record]) -> Result<Spent> {
    let mut out = Spent::NOTHING;
    for record in records {
        match record {
            Record::Reserve { charge, .. } if out.whole || charge.whole && out.jobs > 0 => {
                return Err(damaged("a job follows one that took everything"));
            }
            Record::Reserve { charge, .. } => out = out.and(charge),
            Record::Commit { .. } => out.released += 1,
            Record::Open { .. } | Record::Resume { .. } | Record::Checkpoint { .. } => {}
        }
    }
    Ok(out)
}
