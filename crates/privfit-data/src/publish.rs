//! Putting a file in its place, whole or not at all.

use crate::error::{Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Puts a file in its place, whole or not at all, so that it survives a crash; one that is there is replaced.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<()> {
    put(path, &beside(path)?, bytes, true, false).map(drop)
}

/// The same, where nothing may be there.
pub fn publish_new(path: &Path, bytes: &[u8]) -> Result<()> {
    put(path, &beside(path)?, bytes, false, false).map(drop)
}

/// A new file that this process holds from the moment it has its name: nobody else gets its lock before what is returned is dropped.
pub fn publish_new_held(path: &Path, bytes: &[u8]) -> Result<File> {
    put(path, &beside(path)?, bytes, false, true)
}

/// The same for one that replaces what is there. It is written under a name that its owner knows, so that whoever comes after a crash finds it.
pub fn publish_held(path: &Path, partial: &Path, bytes: &[u8]) -> Result<File> {
    put(path, partial, bytes, true, true)
}

/// Only what is released is ever in it, so that one left by a crash harms nobody. A name that nobody can guess, and never a link.
fn beside(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| Error::misuse("the path of the file has no name: give one like model.json"))?;
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(|_| Error::misuse("the system gives no randomness: run on one that does"))?;
    Ok(path.with_file_name(format!(".{}.{:016x}.partial", name.to_string_lossy(), u64::from_le_bytes(random))))
}

fn put(path: &Path, beside: &Path, bytes: &[u8], replace: bool, hold: bool) -> Result<File> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let write = |mut file: File| -> std::io::Result<File> {
        if hold {
            file.try_lock()?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        if replace { std::fs::rename(beside, path) } else { rename_new(beside, path) }?;
        Ok(file)
    };
    let failed = |why: String| Error::output(format!("cannot write {}: {why}; check its disk and its directory", path.display()));
    // What is released to its owner is not released to everybody on this machine.
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside);
    let file = opened.map_err(|error| failed(error.to_string()))?;
    let file = write(file).map_err(|error| {
        let _ = std::fs::remove_file(beside);
        failed(error.to_string())
    })?;
    sync_directory(path).map_err(|_| failed("its directory can't be synchronised".into()))?;
    Ok(file)
}

/// A rename that replaces nothing, whoever came first. Where the system has no such call a look before it must do.
fn rename_new(from: &Path, to: &Path) -> std::io::Result<()> {
    let there = || std::io::Error::from(std::io::ErrorKind::AlreadyExists);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        let names = [from, to].map(|p| std::ffi::CString::new(p.as_os_str().as_bytes()));
        if let [Ok(from), Ok(to)] = &names {
            let (here, flag) = (libc::AT_FDCWD, libc::RENAME_NOREPLACE);
            // SAFETY: two paths that end with a zero byte.
            if unsafe { libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), flag) } == 0 {
                return Ok(());
            }
            let error = std::io::Error::last_os_error();
            if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) {
                return Err(error);
            }
        }
    }
    if to.symlink_metadata().is_ok() { Err(there()) } else { std::fs::rename(from, to) }
}

/// The name of a new file survives a crash only when its directory was synchronised.
pub fn sync_directory(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(parent).and_then(|d| d.sync_all());
    synced.map_err(|_| Error::damaged(format!("the directory {} can't be synchronised: use another disk", parent.display())))
}
