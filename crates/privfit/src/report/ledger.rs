//! What the page of a ledger is made of. A ledger is verified before anything is said about it.

use crate::certificate::releases_of;
use crate::certificate::{Release, round_up};
use crate::error::Result;
use crate::ledger::Ledger;
use crate::ledger::record::Scope;
use crate::ledger::verify::verify;
use crate::verify::{Check, Verdict};
use serde::Serialize;

/// A ledger, what was spent, and what is left.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerReport {
    /// Always `privfit-report`.
    pub format: String,
    /// Version of this form.
    pub version: u32,
    /// Always `ledger`.
    pub about: String,
    /// Program that wrote the report.
    pub program: String,
    /// Identity of the ledger.
    pub ledger: String,
    /// What the budget is for.
    pub scope: Scope,
    /// Epsilon of everything together ...
    pub cap: f64,
    /// ... at this delta.
    pub delta: f64,
    /// What was checked before anything was stated.
    pub checks: Vec<Check>,
    /// The jobs, in order.
    pub jobs: Vec<Spending>,
    /// Sum of their epsilons, which nobody has to pay.
    pub added: Option<f64>,
    /// Epsilon of all, composed as jobs that were fixed beforehand.
    pub fixed: Option<f64>,
    /// Epsilon of all together, whatever was chosen after which answer.
    pub filter: f64,
    /// Part of the budget that is gone.
    pub part: f64,
    /// Largest epsilon that one more job may have.
    pub next: f64,
    /// Records.
    pub records: usize,
    /// Digest of the last one.
    pub head: String,
}

/// A job.
#[derive(Clone, Debug, Serialize)]
pub struct Spending {
    /// Number of the record that reserved.
    pub sequence: usize,
    /// Its name.
    pub name: String,
    /// What kind of job.
    pub job: String,
    /// What it releases.
    pub releases: Vec<Release>,
    /// Its epsilon by itself.
    pub epsilon: Option<f64>,
    /// Epsilon of all jobs so far.
    pub together: f64,
    /// Whether it was released.
    pub released: bool,
}

impl LedgerReport {
    /// Verifies a ledger and gathers its report. One that does not hold is refused.
    pub fn gather(ledger: &mut Ledger) -> Result<LedgerReport> {
        let (status, checks) = verify(ledger)?;
        Verdict { checks: checks.clone() }.into_result("the ledger")?;
        let summary = status.summary();
        let jobs = summary.jobs.iter().enumerate().map(|(i, j)| Spending {
            sequence: j.sequence,
            name: j.short_name(),
            job: j.job.clone(),
            releases: releases_of(&j.event),
            epsilon: j.epsilon,
            together: status.together(i as u64 + 1),
            released: j.released,
        });
        Ok(LedgerReport {
            format: "privfit-report".into(),
            version: super::VERSION,
            about: "ledger".into(),
            program: crate::training::program(),
            ledger: status.terms.ledger.clone(),
            scope: status.terms.scope.clone(),
            cap: status.terms.epsilon.number(),
            delta: status.terms.delta,
            checks,
            jobs: jobs.collect(),
            added: summary.added,
            fixed: summary.fixed,
            filter: summary.filter,
            part: summary.part.min(1.0),
            next: summary.next,
            records: status.records.len(),
            head: status.records.last().map(|r| r.1.clone()).unwrap_or_default(),
        })
    }

    /// What was spent, in a sentence.
    pub(super) fn sentence(&self) -> String {
        let n = self.jobs.len();
        let jobs = if n == 1 { "1 job".to_string() } else { format!("{n} jobs") };
        match (self.fixed, self.added) {
            _ if n == 0 => "Nothing was spent yet.".into(),
            (Some(fixed), Some(added)) if n > 1 => format!(
                "{jobs}, epsilon {} composed; basic composition {}. At most {} where each may have been chosen after the \
                 answers before it, and that is what counts.",
                round_up(fixed),
                round_up(added),
                round_up(self.filter)
            ),
            (Some(fixed), _) if n == 1 => format!("{jobs}, epsilon {}.", round_up(fixed)),
            _ => format!("{jobs}, epsilon at most {} together.", round_up(self.filter)),
        }
    }

    /// What the next job may cost, in a sentence.
    pub(super) fn forecast(&self) -> String {
        match self.next > 1e-6 {
            true => format!("One more job may have an epsilon of about {} at delta {:e}.", down(self.next), self.delta),
            false => "Nothing is left: no more can be released about these data.".into(),
        }
    }

    /// Jobs that were reserved and not released, in a sentence.
    pub(super) fn open(&self) -> Option<String> {
        let open = self.jobs.iter().filter(|j| !j.released).count();
        let jobs = if open == 1 { "1 job was".to_string() } else { format!("{open} jobs were") };
        (open > 0).then(|| format!("{jobs} reserved and not released. That stays spent: nobody can prove that nothing was seen."))
    }
}

/// What may be spent is rounded down.
pub(super) fn down(epsilon: f64) -> String {
    format!("{:.4}", (epsilon * 1e4).floor() / 1e4)
}
