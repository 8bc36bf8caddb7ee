//! Lists of private numbers, in memory or in a mapped file.
//!
//! A file has no name: it is created readable by its owner alone and unlinked before the first number is written, so that no
//! file is left when the process ends, however it ends. The disk is not wiped: use one that is encrypted. It is written with ordinary calls, which report a full disk, and mapped when it is complete.

use crate::error::{Error, Result};
use crate::memory::{grow, no_memory};
use std::collections::TryReserveError;
use std::fs::File;
use std::io::Write;
use std::ops::Deref;
use std::path::Path;

/// Numbers without padding, for which every pattern of bits is a number.
///
/// # Safety
/// Both must be true.
pub(crate) unsafe trait Plain: Copy + Default + Send + Sync + 'static {}
// SAFETY: integers and floats.
unsafe impl Plain for u8 {}
unsafe impl Plain for i16 {}
unsafe impl Plain for u32 {}
unsafe impl Plain for f32 {}
unsafe impl Plain for usize {}

fn bytes<T: Plain>(list: &[T]) -> &[u8] {
    // SAFETY: plain numbers have no padding, and a byte has no alignment.
    unsafe { std::slice::from_raw_parts(list.as_ptr().cast(), std::mem::size_of_val(list)) }
}

/// Numbers that no longer change.
pub(crate) enum Memory<T: Plain> {
    Owned(Vec<T>),
    Mapped { map: memmap2::Mmap, length: usize },
}

impl<T: Plain> Deref for Memory<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Memory::Owned(list) => list,
            // SAFETY: `finish` wrote so many numbers; a map begins at a page, so that they are aligned.
            Memory::Mapped { map, length } => unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), *length) },
        }
    }
}

/// Numbers that are still collected. On disk only the last ones are in memory.
pub(crate) struct Growing<T: Plain> {
    tail: Vec<T>,
    file: Option<File>,
    written: usize,
}

/// Numbers that are written at once.
const CHUNK: usize = 1 << 19;

impl<T: Plain> Growing<T> {
    /// In memory, or in a file of this directory.
    pub(crate) fn new(directory: Option<&Path>) -> Result<Growing<T>> {
        let file = directory.map(unnamed).transpose()?;
        Ok(Growing { tail: Vec::new(), file, written: 0 })
    }

    pub(crate) fn len(&self) -> usize {
        self.written + self.tail.len()
    }

    /// Room for numbers that are appended one after the other.
    pub(crate) fn room(&mut self, more: usize) -> &mut Vec<T> {
        if self.file.is_some() && self.tail.len() >= CHUNK {
            self.write();
        }
        grow(&mut self.tail, more);
        &mut self.tail
    }

    pub(crate) fn push(&mut self, value: T) {
        self.room(1).push(value);
    }

    pub(crate) fn extend(&mut self, values: &[T]) {
        self.room(values.len()).extend_from_slice(values);
    }

    /// Room for so many at once, if they are in memory.
    pub(crate) fn try_reserve(&mut self, more: usize) -> std::result::Result<(), TryReserveError> {
        if self.file.is_some() { Ok(()) } else { self.tail.try_reserve_exact(more) }
    }

    fn write(&mut self) {
        let Some(file) = &mut self.file else { return };
        if file.write_all(bytes(&self.tail)).is_err() {
            no_memory();
        }
        self.written += self.tail.len();
        self.tail.clear();
    }

    pub(crate) fn finish(mut self) -> Memory<T> {
        self.write();
        match self.file {
            Some(file) if self.written > 0 => {
                // SAFETY: the file has no name, so that nobody else can change it.
                let Ok(map) = (unsafe { memmap2::Mmap::map(&file) }) else { no_memory() };
                Memory::Mapped { map, length: self.written }
            }
            _ => Memory::Owned(self.tail),
        }
    }
}

/// A file that ends with the process.
fn unnamed(directory: &Path) -> Result<File> {
    let failed = |_| Error::domain("directory for rows", directory.display(), "give a directory that can be written to");
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).map_err(|_| Error::Entropy)?;
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = directory.join(format!(".privfit-{name}"));
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).map_err(failed)?;
    std::fs::remove_file(&path).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_what_memory_holds_and_leave_no_name() {
        let directory = std::env::temp_dir().join(format!("privfit-memory-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let fill = |directory: Option<&Path>| {
            let mut list = Growing::new(directory).unwrap();
            (0..CHUNK / 1000 * 3).for_each(|i| list.extend(&[i as u32; 1000]));
            list.push(7);
            assert_eq!(list.len(), CHUNK / 1000 * 3000 + 1);
            list.finish()
        };
        let (owned, mapped) = (fill(None), fill(Some(&directory)));
        assert!(matches!(&mapped, Memory::Mapped { .. }) && owned[..] == mapped[..]);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        assert!(Growing::<u32>::new(Some(&directory)).unwrap().finish().is_empty());
        std::fs::remove_dir(&directory).unwrap();
        assert!(Growing::<u32>::new(Some(&directory)).is_err());
    }
}
