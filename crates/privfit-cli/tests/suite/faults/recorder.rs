//! What a traced command did to the files below one directory, in order: the input of every test about lost power, and the proof of
//! what happened before what.

use super::tracer::{Stop, memory, text};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// One change of the disk, or one look at it. Paths are as the command wrote them, made absolute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// A file was opened; `make` if it was to be made where there was none, `empty` if it was clipped to nothing.
    Open { path: PathBuf, make: bool, empty: bool },
    /// Bytes were written.
    Write { path: PathBuf, offset: u64, bytes: Vec<u8> },
    /// The length was set.
    Cut { path: PathBuf, length: u64 },
    /// What was written before survives a loss of power; for a directory, its names do.
    Sync { path: PathBuf },
    /// A name changed.
    Rename { from: PathBuf, to: PathBuf },
    /// A file got a second name.
    Link { from: PathBuf, to: PathBuf },
    /// A name is gone.
    Remove { path: PathBuf },
}

/// Follows descriptors and notes operations.
pub(crate) struct Recorder {
    root: PathBuf,
    open: HashMap<i32, (PathBuf, u64)>,
    /// What was done, with the number of the call.
    pub(crate) done: Vec<(usize, Operation)>,
}

impl Recorder {
    /// Only what is below `root` is noted.
    pub(crate) fn new(root: &Path) -> Recorder {
        Recorder { root: root.into(), open: HashMap::new(), done: Vec::new() }
    }

    /// The path of a descriptor, if it is below the root.
    pub(crate) fn path(&self, descriptor: u64) -> Option<&Path> {
        self.open.get(&(descriptor as i32)).map(|f| f.0.as_path())
    }

    fn inside(&self, path: String) -> Option<PathBuf> {
        // A bare directory may be given relative to itself by nobody here: all tests use absolute paths.
        let path = PathBuf::from(path);
        path.starts_with(&self.root).then_some(path)
    }

    /// Looks at one stop; only calls that ended well count.
    pub(crate) fn observe(&mut self, stop: &Stop) {
        let Some(result) = stop.result.filter(|r| *r >= 0) else { return };
        let [a, b, c, d, ..] = stop.arguments;
        let path = |address| text(stop.thread, address);
        let mut add = |operation| self.done.push((stop.number, operation));
        match stop.call {
            libc::SYS_openat | libc::SYS_open | libc::SYS_creat => {
                let (name, flags) = match stop.call {
                    libc::SYS_openat => (path(b), c as i32),
                    libc::SYS_open => (path(a), b as i32),
                    _ => (path(a), libc::O_CREAT | libc::O_TRUNC),
                };
                let name = PathBuf::from(name);
                if name.starts_with(&self.root) {
                    add(Operation::Open {
                        path: name.clone(),
                        make: flags & libc::O_CREAT != 0,
                        empty: flags & libc::O_TRUNC != 0,
                    });
                    self.open.insert(result as i32, (name, 0));
                }
            }
            libc::SYS_close => drop(self.open.remove(&(a as i32))),
            libc::SYS_fcntl if matches!(b as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
                if let Some(file) = self.open.get(&(a as i32)).cloned() {
                    self.open.insert(result as i32, file);
                }
            }
            libc::SYS_lseek => drop(self.open.get_mut(&(a as i32)).map(|f| f.1 = result as u64)),
            libc::SYS_read => drop(self.open.get_mut(&(a as i32)).map(|f| f.1 += result as u64)),
            libc::SYS_write => {
                if let Some((path, offset)) = self.open.get_mut(&(a as i32)) {
                    let bytes = memory(stop.thread, b, result as usize);
                    add(Operation::Write { path: path.clone(), offset: *offset, bytes });
                    *offset += result as u64;
                }
            }
            libc::SYS_pwrite64 => {
                if let Some((path, _)) = self.open.get(&(a as i32)) {
                    let bytes = memory(stop.thread, b, result as usize);
                    add(Operation::Write { path: path.clone(), offset: d, bytes });
                }
            }
            // Nothing here writes pieces, copies inside the kernel or maps a file for writing (but for the index of the log, which
            // does not survive): a test that met such a call would see less than happened.
            libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_copy_file_range
            | libc::SYS_sendfile
            | libc::SYS_fallocate
                if self.open.contains_key(&(a as i32)) =>
            {
                panic!("call {} on {:?} is not followed", stop.call, self.path(a));
            }
            libc::SYS_ftruncate => {
                if let Some((path, _)) = self.open.get(&(a as i32)) {
                    add(Operation::Cut { path: path.clone(), length: b });
                }
            }
            libc::SYS_fsync | libc::SYS_fdatasync => {
                if let Some((path, _)) = self.open.get(&(a as i32)) {
                    add(Operation::Sync { path: path.clone() });
                }
            }
            libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_link | libc::SYS_linkat => {
                let two = matches!(stop.call, libc::SYS_rename | libc::SYS_link);
                let names = if two { (path(a), path(b)) } else { (path(b), path(d)) };
                if let (Some(from), Some(to)) = (self.inside(names.0), self.inside(names.1)) {
                    let link = matches!(stop.call, libc::SYS_link | libc::SYS_linkat);
                    self.done
                        .push((stop.number, if link { Operation::Link { from, to } } else { Operation::Rename { from, to } }));
                }
            }
            libc::SYS_unlink | libc::SYS_unlinkat => {
                let name = if stop.call == libc::SYS_unlink { path(a) } else { path(b) };
                if let Some(path) = self.inside(name) {
                    self.done.push((stop.number, Operation::Remove { path }));
                }
            }
            _ => {}
        }
    }

    /// Number of the first call that did such a thing.
    pub(crate) fn first(&self, what: impl Fn(&Operation) -> bool) -> Option<usize> {
        self.done.iter().find(|(_, o)| what(o)).map(|(number, _)| *number)
    }

    /// Number of the last call that did such a thing.
    pub(crate) fn last(&self, what: impl Fn(&Operation) -> bool) -> Option<usize> {
        self.done.iter().rev().find(|(_, o)| what(o)).map(|(number, _)| *number)
    }
}
