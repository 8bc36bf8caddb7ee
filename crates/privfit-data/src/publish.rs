//! Putting a file in its place, whole or not at all.

use crate::error::{Error, Result};
use std::path::Path;

/// Puts a file in its place, whole or not at all, so that it survives a crash; one that is there is replaced.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<()> {
    put(path, bytes, true)
}

/// The same, where nothing may be there.
pub fn publish_new(path: &Path, bytes: &[u8]) -> Result<()> {
    put(path, bytes, false)
}

fn put(path: &Path, bytes: &[u8], replace: bool) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let name = path.file_name().ok_or_else(|| Error::misuse("the path of the file has no name: give one like model.json"))?;
    // Only what is released is ever in it, so that one left by a crash harms nobody. A name that nobody can guess, and never a link.
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(|_| Error::misuse("the system gives no randomness: run on one that does"))?;
    let beside = path.with_file_name(format!(".{}.{:016x}.partial", name.to_string_lossy(), u64::from_le_bytes(random)));
    // What is released to its owner is not released to everybody on this machine.
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| if replace { std::fs::rename(&beside, path) } else { rename_new(&beside, path) });
    let failed = |why: String| Error::output(format!("cannot write {}: {why}; check its disk and its directory", path.display()));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&beside);
        return Err(failed(error.to_string()));
    }
    sync_directory(path).map_err(|_| failed("its directory can't be synchronised".into()))
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
    let synced = std::fs::File::open(parent).and_then(|d| d.sync_all());
    synced.map_err(|_| Error::damaged(format!("the directory {} can't be synchronised: use another disk", parent.display())))
}
