//! Flags of a job and its ledger, and the places that it needs.

use crate::Failure;
use privfit::Error;
use privfit::account::Event;
use privfit::fit::Prepared;
use privfit::ledger::Ledger;
use privfit::ledger::record::Scope;
use privfit::spend::Payer;
use std::path::{Path, PathBuf};

/// Flags of everything that spends.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct Purse {
    /// Budget that pays: a file made by `privfit ledger create`, or postgres://user@host/database#name
    #[arg(long)]
    pub(crate) ledger: Option<String>,
    /// Name of this request: asking again under it gives the same model and spends nothing. It is public
    #[arg(long, value_name = "NAME")]
    pub(crate) request: Option<String>,
    /// File with the key of the ledger, if it was made with one
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger_key: Option<PathBuf>,
}

impl Purse {
    /// Whether a job says who pays; a simulation never does.
    pub(crate) fn check(&self, simulated: bool) -> Result<(), Failure> {
        if simulated && self.ledger.is_some() {
            return Err(Failure::misuse("a simulation is not private and can't be paid for: leave out --ledger, or --simulate"));
        }
        if self.ledger.is_none() && (self.request.is_some() || self.ledger_key.is_some()) {
            return Err(Failure::misuse("a request is for a ledger and none is given: add --ledger FILE"));
        }
        Ok(())
    }

    pub(crate) fn open(&self) -> Result<Option<Ledger>, Failure> {
        let Some(place) = &self.ledger else { return Ok(None) };
        Ok(Some(Ledger::open(place, crate::ledger::seal(self.ledger_key.as_deref())?)?))
    }

    /// Who pays, if there is a ledger.
    pub(crate) fn payer(&self) -> Result<Option<Payer>, Failure> {
        Ok(self.open()?.map(|ledger| Payer { ledger, request: self.request.clone() }))
    }

    /// One line for a plan: whether the job fits, and what is left after it.
    pub(crate) fn forecast(&self, prepared: &Prepared) -> Result<Option<String>, Failure> {
        if self.ledger.is_none() {
            return Ok(None);
        }
        self.forecast_event(prepared.plan.event(), &prepared.scope()?)
    }

    /// The same for any event.
    pub(crate) fn forecast_event(&self, event: &Event, scope: &Scope) -> Result<Option<String>, Failure> {
        let Some(mut ledger) = self.open()? else { return Ok(None) };
        let status = ledger.status()?;
        let t = &status.terms;
        if t.scope != *scope {
            return Ok(Some("the ledger is for other data, another unit or another adjacency: it would refuse this job".into()));
        }
        Ok(Some(match status.admits(event) {
            Err(error) => format!("refused: {error}"),
            Ok((_, sum)) => format!(
                "fits: {:.1} % of the budget would be spent, and one more job could have an epsilon of about {:.4}",
                100.0 * sum.part(&t.rule),
                sum.next(&t.rule, t.scope.adjacency, t.delta)
            ),
        }))
    }
}

/// Refuses before anything is spent what would fail after it: a file that is not there, a place that can't take the model, or one that
/// holds something else that is needed.
pub(crate) fn check_places(data: &[PathBuf], labels: &[PathBuf], purse: &Purse, out: &Path) -> Result<(), Failure> {
    let mut needed: Vec<PathBuf> = [data, labels].concat();
    if let Some(path) = needed.iter().find(|p| !p.is_file()) {
        return Err(Failure::misuse(format!("there is no file {}: check the path", path.display())));
    }
    needed.extend(purse.ledger_key.clone());
    for end in ["", "-wal", "-shm", "-journal"] {
        needed.extend(purse.ledger.as_ref().map(|l| PathBuf::from(format!("{l}{end}"))));
    }
    let place = |path: &Path| {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        (parent.canonicalize().ok(), path.file_name().map(|n| n.to_owned()))
    };
    let same =
        |path: &PathBuf| place(path) == place(out) || path.canonicalize().is_ok_and(|p| out.canonicalize().is_ok_and(|o| o == p));
    if needed.iter().any(same) {
        return Err(Failure::misuse(format!("{} is needed for the job itself: give another --out", out.display())));
    }
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if out.is_dir() || out.file_name().is_none() {
        return Err(Failure::misuse(format!("{} is a directory: give the name of a file to --out", out.display())));
    }
    if !parent.is_dir() {
        return Err(Failure::misuse(format!("there is no directory {}: make it, or give another --out", parent.display())));
    }
    let writable = std::fs::metadata(parent).is_ok_and(|m| !m.permissions().readonly());
    if !writable || out.exists() && std::fs::metadata(out).is_ok_and(|m| m.permissions().readonly()) {
        return Err(Failure(Error::misuse(format!("{} can't be written to: give another --out", out.display()))));
    }
    Ok(())
}
