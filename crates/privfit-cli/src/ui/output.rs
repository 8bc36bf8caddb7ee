//! Standard output. Whoever runs a verifier in a script reads its exit code, so that an answer that can't be written must not end like one
//! that was read: any write error is a failure of the host, exit code 3. Only a reader who has seen enough of a plain listing (`| head`)
//! is no failure.

use std::fs::File;
use std::io::{ErrorKind, Result, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what is printed is a plain listing, which nobody has to read to its end.
static LISTING: AtomicBool = AtomicBool::new(false);
/// Whether something could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Says what the verb prints; an answer unless this is called.
pub(crate) fn is_listing(listing: bool) {
    LISTING.store(listing, Ordering::Relaxed);
}

/// Whether everything that was printed was taken.
pub(crate) fn all_written() -> bool {
    !LOST.load(Ordering::Relaxed)
}

/// Notes what became of a write to standard output, and ends quietly if a listing is not read to its end.
pub(crate) fn took(written: Result<()>) {
    match written {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::BrokenPipe && LISTING.load(Ordering::Relaxed) => std::process::exit(0),
        Err(_) => lost(),
    }
}

/// Something was not taken.
pub(crate) fn lost() {
    LOST.store(true, Ordering::Relaxed);
}

/// Prints a line; text of other files in it does not act on the terminal.
pub(crate) fn print_line(line: &str) {
    let line = crate::ui::style::Paint::out().safe(line);
    print_bytes(format!("{line}\n").as_bytes());
}

/// Prints bytes as they are.
pub(crate) fn print_bytes(bytes: &[u8]) {
    if all_written() {
        took(Stdout.write_all(bytes));
    }
}

/// Descriptor 1 itself: the handle of the standard library takes one that can't be written to for one where everything was written.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // SAFETY: the descriptor is not closed here, and nobody else in this process closes it.
        let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(1) });
        file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
