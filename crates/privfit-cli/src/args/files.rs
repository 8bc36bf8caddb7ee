//! Files that are named on the command line.

use crate::ui::{Failure, note};
use privfit::data::picture::container;
use privfit::{Artifact, small_file};
use std::path::{Path, PathBuf};

/// The text of a file; `what` names it in an error.
pub(crate) fn read_text(path: &Path, what: &str) -> Result<String, Failure> {
    small_file::read_text(path, small_file::TEXT)
        .map_err(|e| Failure::misuse(format!("cannot read the {what} {}: {e}; check the path", path.display())))
}

/// The bytes of a model file, no more than a model file may have.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    small_file::read(path, privfit::artifact::LARGEST as u64)
        .map_err(|e| Failure::misuse(format!("cannot read the model {}: {e}; check the path", path.display())))
}

pub(crate) fn read_model(path: &Path) -> Result<Artifact, Failure> {
    let artifact = Artifact::from_bytes(&read_bytes(path)?)?;
    say_if_not_private(&artifact);
    Ok(artifact)
}

pub(crate) fn say_if_not_private(artifact: &Artifact) {
    if !artifact.guarantee.private {
        note("note: this model is not private (a simulation, or a published form without a guarantee)");
    }
}

/// The first of some public paths that is a private one, lies in it or holds it.
pub(crate) fn holds_private<'a>(public: impl IntoIterator<Item = &'a PathBuf>, private: &[PathBuf]) -> Option<&'a PathBuf> {
    // A path that goes into a zip file has no other name there.
    let whole = |path: &PathBuf| {
        let outer = container(path);
        outer.canonicalize().ok().map(|o| o.join(path.strip_prefix(&outer).unwrap_or(Path::new(""))))
    };
    // One folder of pictures may hold the other.
    let shared = |a: PathBuf, b: PathBuf| a.starts_with(&b) || b.starts_with(&a);
    let same = |a: &PathBuf, b: &PathBuf| whole(a).is_some_and(|a| whole(b).is_some_and(|b| shared(a, b)));
    public.into_iter().find(|p| private.iter().any(|q| same(p, q)))
}
