//! Flags of a job and its ledger, and the places that it needs.

use crate::ui::{Failure, as_flag, note};
use privfit::Error;
use privfit::data::picture::{container, is_pictures};
use privfit::job::Release;
use privfit::job::release::LedgerSession;
use privfit::ledger::Ledger;
use privfit::ledger::chain::{LONGEST_KEY, MacKey};
use privfit::ledger::heads::Heads;
use privfit::small_file;
use std::path::{Path, PathBuf};

/// Flags of everything that spends.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct LedgerArguments {
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

impl LedgerArguments {
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
        Ok(Some(open(place, self.ledger_key.as_deref())?))
    }

    /// Who pays, if there is a ledger.
    pub(crate) fn session(&self) -> Result<Option<LedgerSession>, Failure> {
        let announce: fn(&str) = |name| note(&format!("request {name}"));
        Ok(self.open()?.map(|ledger| LedgerSession { ledger, request: self.request.clone(), announce }))
    }

    /// What is told of a failure; where something is paid for and not delivered, the command that delivers it.
    pub(crate) fn failed(&self, error: Error, out: Option<&Path>) -> Failure {
        let Error::Undelivered { request, committed, why } = &error else { return Failure(error) };
        let key = self.ledger_key.as_ref().map_or(String::new(), |k| format!(" --ledger-key {}", shell(&k.to_string_lossy())));
        let out = out.map_or(String::new(), |out| format!(" --out {}", shell(&out.to_string_lossy())));
        let ledger = shell(&without_password(self.ledger.as_deref().unwrap_or_default()));
        let command = format!("privfit ledger export {ledger}{key} --request {request}{out}");
        Failure(Error::output(match committed {
            true => format!(
                "the release is committed and was not delivered ({why}): fetch it, which spends nothing, with\n  {command}"
            ),
            false => format!(
                "whether the release was committed is not known ({why}); if it was not, what was reserved stays spent; if it was, \
                 fetch it, which spends nothing, with\n  {command}"
            ),
        }))
    }

    /// One line for a plan: whether the job fits, and what is left after it.
    pub(crate) fn forecast(&self, job: &dyn Release) -> Result<Option<String>, Failure> {
        let Some(mut ledger) = self.open()? else { return Ok(None) };
        let status = ledger.status()?;
        let t = &status.terms;
        if t.scope != job.facts().scope()? {
            return Ok(Some("the ledger is for other data, another unit or another adjacency: it would refuse this job".into()));
        }
        Ok(Some(match status.check_head().and_then(|()| status.admits(job.event())) {
            Err(error) => format!("refused: {}", error.spelled(&as_flag)),
            Ok((_, sum)) => format!(
                "fits: {:.1} % of the budget would be spent, and one more job could have an epsilon of about {:.4}",
                100.0 * sum.part(&t.rule),
                sum.next(&t.rule, t.scope.adjacency, t.delta)
            ),
        }))
    }
}

/// The key of a ledger, from its file.
pub(crate) fn mac_key(key: Option<&Path>) -> Result<MacKey, Failure> {
    let Some(path) = key else { return Ok(MacKey::default()) };
    let bytes = small_file::read(path, LONGEST_KEY as u64)
        .map_err(|e| Failure::misuse(format!("cannot read the key {}: {e}; check the path", path.display())))?;
    Ok(MacKey::keyed(&bytes)?)
}

/// A ledger, compared with what this user saw of it before.
pub(crate) fn open(place: &str, key: Option<&Path>) -> Result<Ledger, Failure> {
    Ok(Ledger::open(place, mac_key(key)?)?.remembering(Heads::of_user()))
}

/// A word of a command as a shell takes it.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/-+=:@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// An address without what stands between the user's name and the host.
fn without_password(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else { return place.into() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((user, host)) => format!("{scheme}://{}@{host}{}", user.split(':').next().unwrap_or_default(), &rest[end..]),
        None => place.into(),
    }
}

/// Refuses before anything is spent what would fail after it: a file that is not there, a place that can't take the model, or one that
/// holds something else that is needed.
pub(crate) fn check_places(
    data: &[PathBuf],
    labels: &[PathBuf],
    ledger_arguments: &LedgerArguments,
    out: &Path,
) -> Result<(), Failure> {
    let mut needed: Vec<PathBuf> = [data, labels].concat();
    if let Some(path) = needed.iter().find(|p| !p.is_file() && !is_pictures(p)) {
        return Err(Failure::misuse(format!("there is no file {}: check the path", path.display())));
    }
    needed.iter_mut().for_each(|p| *p = container(p));
    needed.extend(ledger_arguments.ledger_key.clone());
    for end in ["", "-wal", "-shm", "-journal"] {
        needed.extend(ledger_arguments.ledger.as_ref().map(|l| PathBuf::from(format!("{l}{end}"))));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        assert_eq!(shell("a/b.ledger"), "a/b.ledger");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell(""), "''");
        for (given, told) in [
            ("a:b@c.ledger", "a:b@c.ledger"),
            ("postgres://me:secret@host:5432/team#visits", "postgres://me@host:5432/team#visits"),
            ("postgres://me:a@b@host/team#visits", "postgres://me@host/team#visits"),
            ("postgres://me@host/team#visits", "postgres://me@host/team#visits"),
            ("postgres://host/team?user=a@b#visits", "postgres://host/team?user=a@b#visits"),
        ] {
            assert_eq!(without_password(given), told);
        }
        let ledger_arguments = LedgerArguments { ledger: Some("my ledger".into()), ..LedgerArguments::default() };
        let error = Error::Undelivered { request: "monday".into(), committed: true, why: "the disk is full".into() };
        let Failure(error) = ledger_arguments.failed(error, Some(Path::new("m.json")));
        assert_eq!(error.code(), 3);
        assert!(error.to_string().ends_with("\n  privfit ledger export 'my ledger' --request monday --out m.json"), "{error}");
    }
}
