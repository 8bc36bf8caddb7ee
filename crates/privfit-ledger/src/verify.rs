//! Whether a ledger holds: its chain, its sums, what each job was charged by today's accountant, what it kept, and whether models that
//! were published stand in it.

use super::amount::Amount;
use super::record::Record;
use super::{Ledger, Position, Status, digest_of};
use crate::check::Check;
use privfit_account::epsilon;
use privfit_data::error::Result;

/// Everything that the ledger alone can tell. Damage is an error, not a check.
pub fn verify(ledger: &mut Ledger) -> Result<(Status, Vec<Check>)> {
    let status = ledger.status()?;
    let records = status.records.len();
    let mut checks = vec![
        Check::new("chain", true, format!("{records} records follow from each other")),
        Check::new(
            "cap",
            true,
            format!("what was reserved is within epsilon {} at delta {:e}", status.terms.epsilon, status.terms.delta),
        ),
    ];
    if let Some(back) = &status.rolled_back {
        checks.push(Check::new("head", false, back.text(records)));
    }
    let (terms, mut cheap) = (&status.terms, Vec::new());
    for (i, (record, _)) in status.records.iter().enumerate() {
        if let Record::Reserve { event, charge, .. } = record {
            let now = terms.rule.charge(event, terms.scope.adjacency, terms.delta);
            // The last digits may differ between machines.
            let less = |was: Option<Amount>, now: Option<Amount>| match (was, now) {
                (Some(was), Some(now)) => was.number() < now.number() * (1.0 - 1e-9) - 1e-12,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let own = || epsilon(event, terms.scope.adjacency, terms.delta).map_or(f64::INFINITY, |a| a.bound.upper);
            let cheaper = match charge.whole {
                // The only job there is: its own epsilon must be within the cap.
                true => own() > terms.epsilon.number() * (1.0 + 1e-9),
                false => {
                    less(charge.pure, now.pure) || less(charge.renyi, now.renyi) || less(Some(charge.slack), Some(now.slack))
                }
            };
            if cheaper {
                cheap.push(i.to_string());
            }
        }
    }
    let text = match cheap.is_empty() {
        true => "every job was charged what its event costs".to_string(),
        false => format!("charged less than their events cost: records {}", cheap.join(", ")),
    };
    checks.push(Check::new("charges", cheap.is_empty(), text));
    let commits: Vec<(String, String)> = status
        .records
        .iter()
        .filter_map(|(r, _)| match r {
            Record::Commit { request, release } => Some((request.clone(), release.clone())),
            _ => None,
        })
        .collect();
    for (request, release) in &commits {
        ledger.stored_release(request, release)?;
    }
    checks.push(Check::new("releases", true, format!("{} releases are kept and are what was written down", commits.len())));
    let kept = status.open_checkpoints();
    for (request, state) in &kept {
        ledger.kept_state(request, state)?;
    }
    if !kept.is_empty() {
        checks.push(Check::new("checkpoints", true, format!("{} are kept and are what was written down", kept.len())));
    }
    Ok((status, checks))
}

/// Whether a published model stands in this ledger: a ledger that was rolled back, forked or cut contradicts it.
pub fn verify_model(status: &Status, position: &Position, bytes: &[u8]) -> Vec<Check> {
    let ours = status.terms.ledger == position.ledger;
    let text = if ours { "the model names this ledger" } else { "the model names another ledger" };
    let mut checks = vec![Check::new("ledger", ours, text)];
    if !ours {
        return checks;
    }
    let there = status.position(&position.request);
    // Epsilon is worked out anew, and a better accountant says less.
    let same = |p: &Position| Position { epsilon: position.epsilon, ..p.clone() } == *position;
    let holds = there.as_ref().is_some_and(same);
    let text = match (&there, holds) {
        (_, true) => format!("record {} reserved it, with the digest that the model names", position.sequence),
        (None, _) => {
            format!("the ledger has no reservation for it (record {}): it was rolled back, or forked", position.sequence)
        }
        (Some(_), _) => "its reservation is not the one that the model names: the ledger was forked".to_string(),
    };
    checks.push(Check::new("reserved", holds, text));
    let released = status.released(&position.request) == Some(digest_of(bytes).as_str());
    let text = match released {
        true => "its release was written down with the digest of this file",
        false => {
            "its release was not written down, or for other bytes: the ledger was rolled back, or the file is not the one it made"
        }
    };
    checks.push(Check::new("released", released, text));
    checks
}
