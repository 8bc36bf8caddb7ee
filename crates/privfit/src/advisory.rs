//! Privacy bugs of released versions, so that whoever holds a model file can ask whether its claim still stands.
//!
//! The list is `advisories.json` beside this crate and is compiled in. It is empty as long as no released version has such a bug. The
//! rule for an entry is in `SECURITY.md`: it names the versions, the calls, and the epsilon that truly holds.
//!
//! ```
//! let known = privfit::advisory::for_version(env!("CARGO_PKG_VERSION"))?;
//! assert!(known.is_empty());
//! # Ok::<(), privfit::Error>(())
//! ```

use crate::error::{Error, Result};
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};

/// The list that this version was built with.
const SHIPPED: &str = include_str!("../advisories.json");

/// A privacy bug of released versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisory {
    /// Its name, `PRIVFIT-YEAR-NUMBER`.
    pub id: String,
    /// Versions that have it, as conditions that must all hold: `>=0.1.0, <0.1.3`.
    pub versions: String,
    /// What was wrong, in a sentence.
    pub what: String,
    /// Which calls, flags or data were affected, in a sentence.
    pub affected: String,
    /// Methods that were affected, by the names of `privfit methods`; empty if all were.
    #[serde(default)]
    pub methods: Vec<String>,
    /// What the affected models truly guarantee: a number, a factor on the claim, or `none`.
    pub true_epsilon: String,
    /// First version without it.
    pub fixed_in: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    advisories: Vec<Advisory>,
}

/// Advisories for a released version, from the list that this version was built with.
pub fn for_version(version: &str) -> Result<Vec<Advisory>> {
    let version = self::version(version)?;
    let mut out = Vec::new();
    for advisory in parse(SHIPPED)? {
        if meets(&version, &advisory.versions)? {
            out.push(advisory);
        }
    }
    Ok(out)
}

/// Advisories for a model that a version made by a method.
pub fn for_model(version: &str, method: &str) -> Result<Vec<Advisory>> {
    let mut all = for_version(version)?;
    all.retain(|a| a.concerns(method));
    Ok(all)
}

/// Reads a list, for example a newer one than was compiled in. An entry that can't be understood is an error: a warning that is
/// skipped looks like none.
pub fn parse(text: &str) -> Result<Vec<Advisory>> {
    let wrong = |what: String| Error::damaged(format!("the list of advisories is damaged: {what}; fetch it again"));
    let file: File = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
    if (file.format.as_str(), file.version) != ("privfit-advisories", 1) {
        return Err(Error::damaged("the list of advisories has another format: use a newer privfit"));
    }
    for advisory in &file.advisories {
        let fixed = version(&advisory.fixed_in).map_err(|e| wrong(format!("{}: {e}", advisory.id)))?;
        if meets(&fixed, &advisory.versions).map_err(|e| wrong(format!("{}: {e}", advisory.id)))? {
            return Err(wrong(format!("{}: the version that fixes it is among those that have it", advisory.id)));
        }
        let texts = [&advisory.id, &advisory.what, &advisory.affected, &advisory.true_epsilon];
        if texts.iter().any(|t| t.trim().is_empty()) {
            return Err(wrong(format!("{:?}: id, what, affected and true_epsilon must not be empty", advisory.id)));
        }
    }
    Ok(file.advisories)
}

impl Advisory {
    /// Whether models of a method are affected.
    pub fn concerns(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|m| m == method)
    }

    /// Whether a version has the bug.
    pub fn covers(&self, version: &str) -> Result<bool> {
        meets(&self::version(version)?, &self.versions)
    }

    /// One line for people.
    pub fn line(&self) -> String {
        format!("{}: {} ({}); true epsilon: {}; fixed in {}", self.id, self.what, self.affected, self.true_epsilon, self.fixed_in)
    }
}

/// A version, judged like its release: what follows a `-` or `+` does not count.
fn version(text: &str) -> Result<Version> {
    let parsed = Version::parse(text.trim());
    let full = parsed.map_err(|_| Error::misuse(format!("{text:?} is not a version: give three numbers, like 0.1.0")))?;
    Ok(Version::new(full.major, full.minor, full.patch))
}

fn meets(version: &Version, conditions: &str) -> Result<bool> {
    let conditions = VersionReq::parse(conditions).map_err(|e| {
        Error::misuse(format!("{conditions:?} are not conditions on versions ({e}): give some, like >=0.1.0, <0.1.3"))
    })?;
    Ok(conditions.matches(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entry: &str) -> String {
        format!(r#"{{"format": "privfit-advisories", "version": 1, "advisories": [{entry}]}}"#)
    }

    const ENTRY: &str = r#"{"id": "PRIVFIT-2030-1", "versions": ">=0.2.0, <0.2.4", "what": "noise was halved", "affected": "fit --method output",
        "methods": ["output"], "true_epsilon": "2 times the claim", "fixed_in": "0.2.4"}"#;

    #[test]
    fn the_shipped_list_is_in_order() {
        let shipped = parse(SHIPPED).unwrap();
        let mut names: Vec<&str> = shipped.iter().map(|a| a.id.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), shipped.len());
        assert_eq!(for_version("0.0.1").unwrap(), Vec::new());
        assert_eq!(for_model(env!("CARGO_PKG_VERSION"), "objective").unwrap(), Vec::new());
    }

    #[test]
    fn versions_and_methods_decide() {
        let advisory = parse(&list(ENTRY)).unwrap().remove(0);
        for (version, has) in
            [("0.1.9", false), ("0.2.0", true), ("0.2.3", true), ("0.2.3+build", true), ("0.2.4", false), ("0.10.0", false)]
        {
            assert_eq!(advisory.covers(version).unwrap(), has, "{version}");
        }
        assert!(advisory.concerns("output") && !advisory.concerns("objective"));
        assert!(advisory.line().contains("2 times the claim"));
    }

    #[test]
    fn what_cannot_be_understood_is_an_error() {
        for (from, to) in [
            ("<0.2.4\"", "<0.2.5\""),
            (">=0.2.0", "!0.2.0"),
            ("\"0.2.4\"", "\"soon\""),
            ("noise was halved", " "),
            ("\"what\"", "\"why\""),
        ] {
            let broken = ENTRY.replacen(from, to, 1);
            assert_ne!(broken, ENTRY);
            assert!(matches!(parse(&list(&broken)), Err(Error::Damaged(_))), "{from} as {to}");
        }
        assert!(parse(&list("").replace(": 1,", ": 2,")).is_err());
        assert!(for_version("newest").is_err());
    }
}
