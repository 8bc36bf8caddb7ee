//! What a ledger's records amount to: each job by itself, and all of them together in three ways of counting.

use super::budget::Charge;
use super::record::Record;
use super::{Ledger, Status};
use privfit_account::{Adjacency, Event, epsilon};
use privfit_data::error::{Error, Result};
use serde_json::{Value, json};

/// A job of a ledger.
#[derive(Clone, Debug)]
pub struct Job {
    /// Number of the record that reserved.
    pub sequence: usize,
    /// Name that the caller gave to it.
    pub name: String,
    /// What kind of job.
    pub job: String,
    /// Digest of the request.
    pub request: String,
    /// What it releases.
    pub event: Event,
    /// What it was charged.
    pub charge: Charge,
    /// Its epsilon by itself at the delta of the ledger, none if it has none.
    pub epsilon: Option<f64>,
    /// Whether it was released.
    pub released: bool,
    /// Whether its state is kept, so that another process can go on with it.
    pub resumable: bool,
}

impl Job {
    /// Its name in few characters: a random one is cut.
    pub fn short_name(&self) -> String {
        if self.name.len() == 64 { format!("{}...", &self.name[..12]) } else { self.name.clone() }
    }
}

/// All jobs of a ledger.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The jobs, in order.
    pub jobs: Vec<Job>,
    /// Sum of their epsilons, which nobody has to pay.
    pub added: Option<f64>,
    /// Epsilon of all, composed as jobs that were fixed beforehand: the tight answer for what was done.
    pub fixed: Option<f64>,
    /// Epsilon of all together where each may have been chosen after the answers before it.
    pub filter: f64,
    /// Part of the budget that is gone.
    pub part: f64,
    /// Largest epsilon that one more job may have.
    pub next: f64,
}

fn alone(event: &Event, adjacency: Adjacency, delta: f64) -> Option<f64> {
    epsilon(event, adjacency, delta).ok().map(|a| a.bound.upper).filter(|e| e.is_finite())
}

impl Status {
    /// What the records amount to, by today's accountant.
    pub fn summary(&self) -> Summary {
        let (terms, spent) = (&self.terms, &self.spent);
        let (adjacency, delta) = (terms.scope.adjacency, terms.delta);
        let mut jobs: Vec<Job> = Vec::new();
        for (sequence, (record, _)) in self.records.iter().enumerate() {
            let Record::Reserve { request, name, job, event, charge, resumable } = record else { continue };
            // Jobs are often repeated, and the same event costs the same.
            let known = jobs.iter().rev().take(20).find(|j| j.event == *event).map(|j| j.epsilon);
            jobs.push(Job {
                sequence,
                name: name.clone(),
                job: job.clone(),
                request: request.clone(),
                event: event.clone(),
                charge: *charge,
                epsilon: known.unwrap_or_else(|| alone(event, adjacency, delta)),
                released: self.released(request).is_some(),
                resumable: *resumable && self.released(request).is_none(),
            });
        }
        let added = jobs.iter().map(|j| j.epsilon).collect::<Option<Vec<f64>>>().map(|e| e.iter().sum::<f64>());
        let all = || Event::Compose(jobs.iter().map(|j| j.event.clone()).collect());
        let fixed = if jobs.is_empty() { None } else { alone(&all(), adjacency, delta) };
        Summary {
            added,
            fixed,
            filter: self.together(spent.jobs),
            part: spent.part(&terms.rule),
            next: spent.next(&terms.rule, adjacency, delta),
            jobs,
        }
    }

    /// The same for programs: what the budget is for, what was spent by which jobs, and what the next one may cost.
    pub fn facts(&self) -> Value {
        let (t, s, all) = (&self.terms, &self.spent, self.summary());
        let jobs = all.jobs.iter().map(|j| {
            json!({
                "sequence": j.sequence, "name": j.name, "job": j.job, "request": j.request, "released": j.released,
                "epsilon": j.epsilon, "charge": j.charge, "event": j.event,
            })
        });
        json!({
            "ledger": t.ledger, "dataset": t.scope.dataset, "unit": t.scope.unit, "adjacency": t.scope.adjacency.name(),
            "epsilon": t.epsilon, "delta": t.delta, "rule": t.rule, "jobs": jobs.collect::<Vec<_>>(), "released": s.released,
            "spent": {"part": all.part, "filter": all.filter, "fixed": all.fixed, "added": all.added, "pure": s.pure, "renyi": s.renyi},
            "next": all.next, "records": self.records.len(), "head": self.records.last().map(|r| &r.1),
        })
    }

    /// All records, each with the text that its digest is made of.
    pub fn export(&self) -> Result<Vec<u8>> {
        let mut records = Vec::new();
        for (i, (record, hash)) in self.records.iter().enumerate() {
            records.push(json!({"sequence": i, "hash": hash, "body": record.body()?, "record": record}));
        }
        let json = json!({"format": "privfit-ledger", "version": 1, "records": records});
        Ok(format!("{json:#}\n").into_bytes())
    }
}

impl Ledger {
    /// What was released under a name, or under the digest of a request.
    pub fn released_under(&mut self, wanted: &str) -> Result<Vec<u8>> {
        let status = self.status()?;
        let known = status.records.iter().find_map(|(r, _)| match r {
            Record::Reserve { request, name, .. } if name == wanted || request == wanted => Some(request),
            _ => None,
        });
        match known.and_then(|request| status.released(request).map(|digest| (request, digest))) {
            Some((request, digest)) => self.stored_release(request, digest),
            None => Err(Error::refused(format!("nothing was released under {wanted:?}: see `privfit ledger show`"))),
        }
    }
}
