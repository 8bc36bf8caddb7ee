//! A checkpoint in a file, for a run without a ledger.
//!
//! The file is replaced whole, by a rename of one that is durable; whoever reads it finds the state before or the state after. It is locked by the process
//! that uses it, and so is each new one before it gets the name, so that there is no moment at which a second process could begin. A crash can
//! leave a whole file that did not get its name yet: what is in it may have been seen, so that a run goes on from it, not from the one before. One
//! that is torn is removed before anything is computed.

use super::{Checkpoints, LARGEST, State, from_bytes, is_due, to_bytes};
use crate::error::{Error, Result};
use crate::publish::{publish_held, publish_new_held, sync_directory};
use crate::small_file;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The file of one run, which this process holds.
pub struct CheckpointFile {
    path: PathBuf,
    /// Where the next state is written before it gets the name.
    partial: PathBuf,
    held: File,
    job: String,
    found: Option<State>,
    /// Steps between two checkpoints, and in all.
    every: u64,
    steps: u64,
}

/// What a job says of its checkpoints: its digest, the steps between two of them, and all of its steps.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Digest of everything that the job says.
    pub job: String,
    /// Steps between two checkpoints.
    pub every: u64,
    /// All steps.
    pub steps: u64,
}

impl CheckpointFile {
    /// The file of this job, if there is one.
    pub fn find(path: &Path, kept: &Kept) -> Result<Option<CheckpointFile>> {
        match path.symlink_metadata() {
            Err(_) => return Ok(None),
            Ok(there) if there.is_symlink() => {
                let text = format!("{} is a link, and a checkpoint replaces its file: give the file itself as ", path.display());
                return Err(Error::misuse(text).naming("checkpoint"));
            }
            Ok(_) => {}
        }
        let unread =
            |e: std::io::Error| Error::misuse(format!("cannot read {}: {e}; give another ", path.display())).naming("checkpoint");
        let mut held = small_file::open(path).map_err(unread)?;
        lock(&held, path)?;
        let mut found = read(path, kept)?;
        let partial = partial(path);
        if let Ok(bytes) = small_file::read(&partial, LARGEST) {
            let newer = from_bytes(&bytes).ok().filter(|(job, _)| *job == kept.job).and_then(|(_, state)| state);
            match newer.filter(|n| found.as_ref().is_none_or(|f| f.steps < n.steps)) {
                Some(newer) => {
                    held = adopt(&partial, path)?;
                    found = Some(newer);
                }
                None => remove(&partial)?,
            }
        }
        let Kept { job, every, steps } = kept.clone();
        Ok(Some(CheckpointFile { path: path.into(), partial, held, job, found, every, steps }))
    }

    /// A new one, before the first step: it shows that there is a place for those that follow.
    pub fn create(path: &Path, kept: &Kept) -> Result<CheckpointFile> {
        let Kept { job, every, steps } = kept.clone();
        let held = publish_new_held(path, &to_bytes(&job, None)?)?;
        let partial = partial(path);
        // Of another run, whose file somebody removed.
        if partial.symlink_metadata().is_ok() {
            remove(&partial)?;
        }
        Ok(CheckpointFile { path: path.into(), partial, held, job, found: None, every, steps })
    }

    /// Steps that another process has done.
    pub fn done(&self) -> u64 {
        self.found.as_ref().map_or(0, |f| f.steps)
    }

    /// All steps are done; what is left is to deliver.
    pub fn is_complete(&self) -> bool {
        self.done() == self.steps
    }

    /// What came of the run is durable elsewhere: the file goes.
    pub fn finish(self) -> Result<()> {
        let old = std::fs::OpenOptions::new().write(true).open(&self.path);
        let gone = std::fs::remove_file(&self.path).map_err(|e| e.to_string());
        // There may be keys in it. It is overwritten without its name, so that nobody finds half of it; what a disk keeps of files that were replaced is the disk's matter.
        if let Ok(mut old) = old {
            use std::io::Write;
            let length = old.metadata().map_or(0, |there| there.len());
            let _ = old.write_all(&vec![0; length as usize]).and_then(|()| old.sync_all());
        }
        gone.and_then(|()| sync_directory(&self.path).map_err(|e| e.to_string())).map_err(|why| {
            Error::output(format!(
                "the release is complete, and its checkpoint {} can't be removed ({why}): remove it",
                self.path.display()
            ))
        })
    }
}

impl Checkpoints for CheckpointFile {
    fn due(&self, steps: u64) -> bool {
        is_due(self.every, self.steps, steps)
    }

    fn found(&mut self) -> Option<State> {
        self.found.take()
    }

    fn keep(&mut self, state: State) -> Result<()> {
        let bytes = to_bytes(&self.job, Some(&state))?;
        // The one before stays locked until the new one has its name.
        self.held = publish_held(&self.path, &self.partial, &bytes)?;
        Ok(())
    }
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path)
        .map_err(|e| Error::misuse(format!("cannot remove {}, which a process left behind: {e}; remove it", path.display())))
}

/// Holds a file, if nobody else does and it still has its name.
fn lock(file: &File, path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let used = || Error::refused(format!("another process uses the checkpoint {}: wait until it has ended", path.display()));
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(used()),
        Err(TryLockError::Error(_)) => {
            return Err(Error::misuse("this disk has no locks: give a file on a local disk as ").naming("checkpoint"));
        }
    }
    let same = match (file.metadata(), std::fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    };
    if same { Ok(()) } else { Err(used()) }
}

/// The state in a file of this job.
fn read(path: &Path, kept: &Kept) -> Result<Option<State>> {
    let bytes = small_file::read(path, LARGEST)
        .map_err(|e| Error::damaged(format!("cannot read {}: {e}; restore it", path.display())))?;
    let (job, state) = from_bytes(&bytes).map_err(|e| e.after(format!("{}: ", path.display())))?;
    if job != kept.job || state.as_ref().is_some_and(|s| s.steps > kept.steps) {
        let text = format!(
            "{} is the checkpoint of another job: give the job that it was made with, to the last setting, or another file as ",
            path.display()
        );
        return Err(Error::misuse(text).naming("checkpoint"));
    }
    Ok(state)
}

/// Gives a file that is whole the name that it was made for.
fn adopt(partial: &Path, path: &Path) -> Result<File> {
    let failed = |e: std::io::Error| Error::output(format!("cannot replace {}: {e}; check its directory", path.display()));
    let held = small_file::open(partial).map_err(failed)?;
    lock(&held, partial)?;
    held.sync_all().and_then(|()| std::fs::rename(partial, path)).map_err(failed)?;
    sync_directory(path)?;
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::super::tests::state;
    use super::*;

    fn kept() -> Kept {
        Kept { job: "this".into(), every: 2, steps: 8 }
    }

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("privfit-checkpoint-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path.join("run")
    }

    fn find(path: &Path) -> CheckpointFile {
        CheckpointFile::find(path, &kept()).unwrap().unwrap()
    }

    #[test]
    fn one_process_after_the_other() {
        let path = place("after");
        assert!(CheckpointFile::find(&path, &kept()).unwrap().is_none());
        let mut one = CheckpointFile::create(&path, &kept()).unwrap();
        assert!(one.found().is_none() && !one.due(1) && one.due(2) && one.due(8));
        let in_use = || CheckpointFile::find(&path, &kept()).err().unwrap();
        assert_eq!(in_use().code(), 1);
        assert_eq!(CheckpointFile::create(&path, &kept()).err().unwrap().code(), 3, "nothing is replaced");
        for steps in [2, 4] {
            one.keep(state(steps)).unwrap();
            assert_eq!(in_use().code(), 1, "the new file is held, too");
        }
        drop(one);
        let mut two = find(&path);
        assert!(two.done() == 4 && !two.is_complete() && two.found() == Some(state(4)));
        two.keep(state(8)).unwrap();
        drop(two);
        let three = find(&path);
        assert!(three.is_complete());
        three.finish().unwrap();
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    /// What a crash can leave beside the file: newer and whole, torn, older, of another job.
    #[test]
    fn what_did_not_get_its_name() {
        let path = place("partial");
        let mut one = CheckpointFile::create(&path, &kept()).unwrap();
        one.keep(state(4)).unwrap();
        drop(one);
        let whole = to_bytes("this", Some(&state(6))).unwrap();
        let older = to_bytes("this", Some(&state(2))).unwrap();
        let other = to_bytes("that", Some(&state(6))).unwrap();
        for (bytes, done) in [(&whole[..40], 4), (&older[..], 4), (&other, 4), (b"", 4), (&whole, 6), (&whole[..], 6)] {
            std::fs::write(partial(&path), bytes).unwrap();
            let mut found = find(&path);
            assert_eq!(found.found(), Some(state(done)));
            assert!(!partial(&path).exists());
            assert_eq!(CheckpointFile::find(&path, &kept()).err().unwrap().code(), 1, "held");
        }
        // Without the file itself there is nothing to go on with.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(partial(&path), &whole).unwrap();
        assert!(CheckpointFile::find(&path, &kept()).unwrap().is_none());
        let mut new = CheckpointFile::create(&path, &kept()).unwrap();
        assert!(new.found().is_none() && new.keep(state(2)).is_ok());
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_is_not_ours_stays() {
        let path = place("foreign");
        let refused = |bytes: &[u8], code: u8| {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(CheckpointFile::find(&path, &kept()).err().unwrap().code(), code);
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        };
        refused(b"age,ill\n1,yes\n", 4);
        refused(b"", 4);
        refused(&to_bytes("that", Some(&state(6))).unwrap(), 2);
        refused(&to_bytes("this", Some(&state(9))).unwrap(), 2);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert_eq!(CheckpointFile::find(&path, &kept()).err().unwrap().code(), 2);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
