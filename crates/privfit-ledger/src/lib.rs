//! The budget of a data set, across processes and crashes: what may still be spent is decided and written down before data are opened.
//!
//! A job reserves first. From then on the amount is spent, whatever happens to the job: a crash, an error or a kill in between leaves it
//! spent, because nobody can prove that nothing was seen. After the release was computed it is committed, with its bytes, and only then
//! published; whoever asks again under the same name gets the same bytes. There are no refunds. Records form a chain (`chain.rs`), amounts
//! are exact (`amount.rs`), the cap is a filter (`budget.rs`), and no clock or host decides anything.
//!
//! What it can't notice by itself: a copy of the ledger on a second machine, or an old copy put back. Every model names the record that paid
//! for it, so that comparing the ledger with published models (`verify.rs`) shows both; and whoever used the newer copy on the same machine
//! remembers where it ended (`heads.rs`).

mod address;
pub mod amount;
pub mod attempt;
pub mod budget;
pub mod chain;
pub mod check;
pub mod heads;
pub mod postgres;
pub mod record;
pub mod sqlite;
pub mod store;
pub mod summary;
mod tls;
pub mod verify;

use amount::Amount;
use budget::{Charge, Rule, Spent};
use chain::{Entry, MacKey, hex};
use heads::{Heads, RolledBack};
use privfit_account::{Event, epsilon};
use privfit_data::error::{Error, Result};
use record::{Record, Scope, VERSION, WITH_CHECKPOINTS, is_name};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Duration;
use store::{Append, Store, damaged};

/// A ledger, in any store.
pub struct Ledger {
    store: Box<dyn Store>,
    reader: Reader,
    heads: Option<Heads>,
}

/// Reads entries; those that it has seen before, and that are the same to the byte, are not recomputed.
struct Reader {
    mac_key: MacKey,
    seen: Vec<Entry>,
    records: Vec<Record>,
}

impl Reader {
    fn new(mac_key: MacKey) -> Reader {
        Reader { mac_key, seen: Vec::new(), records: Vec::new() }
    }

    fn look(&mut self, entries: &[Entry]) -> Result<Status> {
        if !entries.starts_with(&self.seen) {
            (self.seen, self.records) = (Vec::new(), Vec::new());
        }
        let known = self.seen.len();
        self.mac_key.check_from(entries, known)?;
        let new: Vec<Record> = entries[known..].iter().map(|e| Record::read(&e.body)).collect::<Result<_>>()?;
        self.records.extend(new);
        self.seen.extend_from_slice(&entries[known..]);
        read(entries, &self.records)
    }
}

/// What the first record says.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Version of its records.
    pub version: u32,
    /// Identity of the ledger.
    pub ledger: String,
    /// What the budget is for.
    pub scope: Scope,
    /// Epsilon of everything together ...
    pub epsilon: Amount,
    /// ... at this delta.
    pub delta: f64,
    /// How spending is counted.
    pub rule: Rule,
}

/// Where a ledger stands.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it is for, and how much there is.
    pub terms: Terms,
    /// What was spent.
    pub spent: Spent,
    /// All records, in order, with their digests.
    pub records: Vec<(Record, String)>,
    /// What was seen of it before and is not in it, if somebody remembers.
    pub rolled_back: Option<RolledBack>,
}

/// A job that asks for a part of the budget.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name that the caller gave to it; asking again under it is the same request.
    pub name: String,
    /// What kind of job: `fit`, `evaluate` ...
    pub job: String,
    /// Digest of everything that the job says.
    pub digest: String,
    /// Whose budget.
    pub scope: Scope,
    /// What will be released.
    pub event: Event,
    /// Whether it is kept in between, so that asking again goes on with it.
    pub resumable: bool,
}

/// Where in a ledger a job stands: enough for whoever has the model to notice a ledger that was cut, rolled back or forked since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Identity of the ledger.
    pub ledger: String,
    /// Digest of the request.
    pub request: String,
    /// Number of the record that reserved.
    pub sequence: u64,
    /// Its digest.
    pub hash: String,
    /// Jobs so far, with this one.
    pub jobs: u64,
    /// Epsilon of all of them together, by the filter.
    pub epsilon: f64,
    /// The cap.
    pub cap_epsilon: f64,
    /// Delta of both.
    pub delta: f64,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reserved {
    /// Spent now; go on.
    Now(Position),
    /// This very request was released before: nothing is spent again, and this is what was released.
    Before(Vec<u8>),
    /// It was spent before and is not released: go on from what was kept of it, or from the beginning where nothing was.
    Again {
        /// Where its reservation stands.
        position: Position,
        /// Number of this process among those of the request.
        attempt: u64,
        /// What was kept last.
        state: Option<Vec<u8>>,
    },
}

/// Digest of a list of texts.
pub fn digest(parts: &[&[u8]]) -> String {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_le_bytes());
        sha.update(part);
    }
    hex(&sha.finalize())
}

/// Digest of released bytes, as `sha256sum` prints it.
pub fn digest_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A random name, for requests that nobody will repeat and for ledgers.
pub fn random_name() -> Result<String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|_| Error::misuse("the system gives no randomness: run on one that does"))?;
    Ok(hex(&bytes))
}

fn is_address(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://")
}

fn read(entries: &[Entry], records: &[Record]) -> Result<Status> {
    let Some(Record::Open { version, ledger, scope, epsilon, delta, rule }) = records.first().cloned() else {
        return Err(damaged("it does not begin with its budget"));
    };
    // The attempt that may write for each request, none if there can be no other; requests that were released are in it no more.
    let (mut known, mut open) = (std::collections::HashSet::new(), std::collections::HashMap::new());
    for record in &records[1..] {
        let holds = match record {
            Record::Open { .. } => false,
            // Every reservation once, every release after its reservation and once.
            Record::Reserve { request, resumable, .. } => {
                let attempt = (*resumable && version >= WITH_CHECKPOINTS).then_some(1);
                open.insert(request, attempt);
                known.insert(request) && attempt.is_some() == *resumable
            }
            Record::Commit { request, .. } => open.remove(request).is_some(),
            Record::Checkpoint { request, attempt, .. } => open.get(request) == Some(&Some(*attempt)),
            Record::Resume { request, attempt } => open.insert(request, Some(*attempt)) == Some(attempt.checked_sub(1)),
        };
        if !holds {
            return Err(damaged("its records do not follow from each other"));
        }
    }
    let spent = record::spent_by(records)?;
    if spent.jobs > 0 && !spent.within(&rule) {
        return Err(damaged("more was spent than there is"));
    }
    let records = records.iter().cloned().zip(entries.iter().map(|e| e.hash.clone())).collect();
    Ok(Status { terms: Terms { version, ledger, scope, epsilon, delta, rule }, spent, records, rolled_back: None })
}

impl Status {
    /// Refuses a ledger that was rolled back.
    pub fn check_head(&self) -> Result<()> {
        match &self.rolled_back {
            Some(back) => Err(Error::refused(back.text(self.records.len()))),
            None => Ok(()),
        }
    }

    /// Refuses a job on other data.
    fn is_for(&self, job: &Request) -> Result<()> {
        let scope = &self.terms.scope;
        if *scope == job.scope {
            return Ok(());
        }
        let say = |s: &Scope| format!("{:?}, unit {}, {}", s.dataset, s.unit, s.adjacency);
        Err(Error::misuse(format!(
            "the ledger is for {} and the job for {}: use the ledger of that data set",
            say(scope),
            say(&job.scope)
        )))
    }

    /// Whether a request that is not released was reserved before, as one that another process may go on with.
    fn may_go_on(&self, job: &Request) -> Result<bool> {
        for (record, _) in &self.records {
            match record {
                Record::Reserve { request, resumable, .. } if *request == job.digest => {
                    if *resumable && job.resumable {
                        return Ok(true);
                    }
                    let unknown = match resumable {
                        true => Error::refused(
                            "this request was reserved before and not released, and its state is kept: go on with it by ",
                        )
                        .give("checkpoint", "ledger")
                        .text(", or ask again under another "),
                        false => Error::refused(
                            "this request was reserved before and not released: what became of it is unknown, so it stays spent; ask again \
                             under another ",
                        ),
                    };
                    return Err(unknown.naming("request").text(", which is spent anew"));
                }
                Record::Reserve { name, .. } if *name == job.name => {
                    return Err(Error::misuse(format!("the name {name:?} was used for another job: give this one another "))
                        .naming("request"));
                }
                _ => {}
            }
        }
        if job.resumable && self.terms.version < WITH_CHECKPOINTS {
            return Err(Error::misuse("this ledger was made before there were checkpoints and can't keep any: leave out ")
                .naming("checkpoint")
                .text(", or make a new ledger for what is left of the budget"));
        }
        Ok(false)
    }

    /// Whether a job fits into what is left: its cost, and the sum with it.
    pub fn admits(&self, event: &Event) -> Result<(Charge, Spent)> {
        let Terms { scope, epsilon: cap, delta, rule, .. } = &self.terms;
        let charge = rule.charge(event, scope.adjacency, *delta);
        let sum = self.spent.and(&charge);
        if sum.within(rule) {
            return Ok((charge, sum));
        }
        // As the only job there ever is, its own epsilon is all that counts.
        let whole = Charge { whole: true, ..charge };
        let own = || epsilon(event, scope.adjacency, *delta).ok().map(|a| a.bound.upper);
        if self.spent.jobs == 0 && own().is_some_and(|e| e <= cap.number()) {
            return Ok((whole, self.spent.and(&whole)));
        }
        let next = self.spent.next(rule, scope.adjacency, *delta);
        let left = if next > 1e-6 {
            format!("one more job may have an epsilon of about {next:.4} at delta {delta:e}; give it a smaller epsilon")
        } else {
            "nothing is left: no more can be released about these data".to_string()
        };
        Err(Error::refused(format!(
            "the budget of {cap} does not allow it: {} spent {:.1} % of it; {left}",
            if self.spent.jobs == 1 { "1 job has".into() } else { format!("{} jobs have", self.spent.jobs) },
            100.0 * self.spent.part(rule).min(1.0)
        )))
    }

    /// Epsilon of the first reservations together, whatever was chosen after which answer. The first job was chosen before any answer, so
    /// that its own tight accounting holds.
    pub fn together(&self, jobs: u64) -> f64 {
        let Terms { scope, epsilon: cap, delta, rule, .. } = &self.terms;
        let reserved = self.records.iter().filter_map(|(r, _)| match r {
            Record::Reserve { charge, event, .. } => Some((charge, event)),
            _ => None,
        });
        let first: Vec<(&Charge, &Event)> = reserved.take(jobs as usize).collect();
        let filter = first.iter().fold(Spent::NOTHING, |s, (charge, _)| s.and(charge)).epsilon(rule, *delta);
        match first[..] {
            [(_, event)] => epsilon(event, scope.adjacency, *delta).map_or(filter, |a| a.bound.upper.min(cap.number())),
            _ => filter,
        }
    }

    /// Position of a reservation.
    fn position(&self, request: &str) -> Option<Position> {
        let mut jobs = 0;
        for (at, (record, hash)) in self.records.iter().enumerate() {
            if let Record::Reserve { request: this, .. } = record {
                jobs += 1;
                if this == request {
                    return Some(Position {
                        ledger: self.terms.ledger.clone(),
                        request: request.into(),
                        sequence: at as u64,
                        hash: hash.clone(),
                        jobs,
                        epsilon: self.together(jobs),
                        cap_epsilon: self.terms.epsilon.number(),
                        delta: self.terms.delta,
                    });
                }
            }
        }
        None
    }

    fn reserved(&self, request: &str) -> bool {
        self.records.iter().any(|(r, _)| matches!(r, Record::Reserve { request: this, .. } if this == request))
    }

    /// Digest of what was released for a request.
    pub fn released(&self, request: &str) -> Option<&str> {
        self.records.iter().find_map(|(r, _)| match r {
            Record::Commit { request: r, release } if r == request => Some(release.as_str()),
            _ => None,
        })
    }
}

impl Ledger {
    /// Makes a ledger at a path or an address.
    pub fn create(place: &str, mac_key: MacKey, scope: Scope, cap: Amount, delta: f64) -> Result<Ledger> {
        let rule = Rule::of(cap, delta)?;
        let body = Record::Open { version: VERSION, ledger: random_name()?, scope, epsilon: cap, delta, rule }.body()?;
        Record::read(&body)
            .map_err(|_| Error::misuse("a ledger needs the name of a data set and a unit: give a schema that has them"))?;
        let mut store: Box<dyn Store> = match is_address(place) {
            true => Box::new(postgres::Postgres::create(place)?),
            false => Box::new(sqlite::Sqlite::create(Path::new(place))?),
        };
        store.transact(&mut |entries| match entries.is_empty() {
            true => Ok(Some(Append { entry: mac_key.next(entries, body.clone()), release: None })),
            false => Err(Error::misuse("there is a ledger already: give another name")),
        })?;
        Ok(Ledger { store, reader: Reader::new(mac_key), heads: None })
    }

    /// Opens what is at a path or an address.
    pub fn open(place: &str, mac_key: MacKey) -> Result<Ledger> {
        Ledger::open_patiently(place, mac_key, sqlite::PATIENCE)
    }

    /// The same, with a time that other jobs are waited for.
    pub fn open_patiently(place: &str, mac_key: MacKey, patience: Duration) -> Result<Ledger> {
        let store: Box<dyn Store> = match is_address(place) {
            true => Box::new(postgres::Postgres::open(place, patience)?),
            false => Box::new(sqlite::Sqlite::open(Path::new(place), patience)?),
        };
        Ok(Ledger { store, reader: Reader::new(mac_key), heads: None })
    }

    /// The same ledger, compared from now on with what was seen of it, which is remembered there.
    pub fn remembering(mut self, heads: Option<Heads>) -> Ledger {
        self.heads = heads;
        self
    }

    /// Where it stands.
    pub fn status(&mut self) -> Result<Status> {
        let mut status = self.look()?;
        let Some(heads) = self.heads.clone() else { return Ok(status) };
        let seen = heads.last(&status);
        if heads.contradicts(&status, seen.clone()).is_some() {
            // What was remembered after our look may be of another job that went on meanwhile: it must be there at the second.
            status = self.look()?;
            status.rolled_back = heads.contradicts(&status, seen);
        }
        if status.rolled_back.is_none() {
            heads.remember(&status);
        }
        Ok(status)
    }

    fn look(&mut self) -> Result<Status> {
        let entries = self.store.entries()?;
        self.reader.look(&entries)
    }

    /// Spends what an event costs, if there is so much left, and has it written down before it returns.
    pub fn reserve(&mut self, job: &Request) -> Result<Reserved> {
        if !is_name(&job.name) {
            return Err(Error::misuse(
                "a request has a name of 1 to 100 letters, digits, dots, dashes or underscores: give such a name",
            ));
        }
        let (reader, heads) = (&mut self.reader, &self.heads);
        let (mut before, mut position, mut after, mut again) = (None, None, None, None);
        self.store.transact(&mut |entries| {
            let mut status = reader.look(entries)?;
            // Nobody else writes meanwhile, so that whatever was seen before is here.
            status.rolled_back = heads.as_ref().and_then(|heads| heads.contradicts(&status, heads.last(&status)));
            status.check_head()?;
            status.is_for(job)?;
            before = status.released(&job.digest).map(str::to_string);
            if before.is_some() {
                return Ok(None);
            }
            let record = if status.may_go_on(job)? {
                let attempt = status.attempt(&job.digest) + 1;
                again = Some((attempt, status.checkpoint(&job.digest).map(str::to_string)));
                Record::Resume { request: job.digest.clone(), attempt }
            } else {
                let (charge, _) = status.admits(&job.event)?;
                Record::Reserve {
                    request: job.digest.clone(),
                    name: job.name.clone(),
                    job: job.job.clone(),
                    event: job.event.clone(),
                    charge,
                    resumable: job.resumable,
                }
            };
            let body = record.body()?;
            Record::read(&body)?;
            let entry = reader.mac_key.next(entries, body);
            status.records.push((record, entry.hash.clone()));
            position = status.position(&job.digest);
            after = Some(status);
            Ok(Some(Append { entry, release: None }))
        })?;
        self.remember(after);
        if let Some(digest) = before {
            return Ok(Reserved::Before(self.stored_release(&job.digest, &digest)?));
        }
        let position = position.ok_or_else(|| damaged("a reservation is missing"))?;
        let Some((attempt, kept)) = again else { return Ok(Reserved::Now(position)) };
        let state = match kept {
            None => None,
            Some(digest) => Some(self.kept_state(&job.digest, &digest)?.ok_or_else(attempt::overtaken)?),
        };
        Ok(Reserved::Again { position, attempt, state })
    }

    /// Writes down what a reserved request releases, with its bytes; after that it may be published.
    pub fn commit(&mut self, request: &str, bytes: Vec<u8>) -> Result<()> {
        self.commit_attempt(request, 1, bytes)
    }

    /// The same for the process of a request that went on with it.
    pub fn commit_attempt(&mut self, request: &str, attempt: u64, bytes: Vec<u8>) -> Result<()> {
        let reader = &mut self.reader;
        let record = Record::Commit { request: request.into(), release: digest_of(&bytes) };
        let mut after = None;
        self.store.transact(&mut |entries| {
            let (status, append) = attempt::append(reader, entries, (request, attempt), &record, &bytes)?;
            after = Some(status);
            Ok(Some(append))
        })?;
        self.remember(after);
        Ok(())
    }

    /// Remembers what was appended.
    fn remember(&self, after: Option<Status>) {
        if let (Some(heads), Some(status)) = (&self.heads, &after) {
            heads.remember(status);
        }
    }

    /// What was released for a request.
    pub fn stored_release(&mut self, request: &str, digest: &str) -> Result<Vec<u8>> {
        let bytes = self.store.release(request)?.ok_or_else(|| damaged("a release is missing"))?;
        if digest_of(&bytes) != digest {
            return Err(damaged("a release is not what was written down"));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
