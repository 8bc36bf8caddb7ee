//! Where a ledger stands, for programs, and all that it holds.

use super::record::Record;
use super::{Ledger, Status};
use crate::error::{Error, Result};
use privfit_kernel::account::{Event, epsilon};
use serde_json::{Value, json};

impl Status {
    /// What the budget is for, what was spent by which jobs, and what the next one may cost.
    pub fn summary(&self) -> Value {
        let (t, s) = (&self.terms, &self.spent);
        let (adjacency, delta) = (t.scope.adjacency, t.delta);
        let alone = |event: &Event| epsilon(event, adjacency, delta).ok().map(|a| a.bound.upper).filter(|e| e.is_finite());
        let (mut jobs, mut events) = (Vec::new(), Vec::new());
        for (i, (record, _)) in self.records.iter().enumerate() {
            if let Record::Reserve { request, name, job, event, charge } = record {
                jobs.push(json!({
                    "sequence": i, "name": name, "job": job, "request": request, "released": self.released(request).is_some(),
                    "epsilon": alone(event), "charge": charge, "event": event,
                }));
                events.push(event.clone());
            }
        }
        // As if all jobs had been fixed beforehand: the tight answer for what was done.
        let fixed = if events.is_empty() { None } else { alone(&Event::Compose(events)) };
        json!({
            "ledger": t.ledger, "dataset": t.scope.dataset, "unit": t.scope.unit, "adjacency": adjacency.name(), "epsilon": t.epsilon,
            "delta": delta, "rule": t.rule, "jobs": jobs, "released": s.released,
            "spent": {"part": s.part(&t.rule), "filter": self.together(s.jobs), "fixed": fixed, "pure": s.pure, "renyi": s.renyi},
            "next": s.next(&t.rule, adjacency, delta), "records": self.records.len(), "head": self.records.last().map(|r| &r.1),
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
            Some((request, digest)) => self.kept(request, digest),
            None => Err(Error::misuse(format!("nothing was released under {wanted:?}: look at what the ledger shows"))),
        }
    }
}
