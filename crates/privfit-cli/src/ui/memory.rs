//! Memory that ends: one message and exit code 3, for every allocation of the program. The standard library would abort with the size of
//! what was asked for, which can tell how many private rows there are.

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes of the program where they can't be measured: the largest that accounting has been seen to take, and the program.
const UNMEASURED: u64 = 300_000_000;
/// What is added to what was measured: buffers of readers, and what an allocator keeps for itself.
const MORE: u64 = 16_000_000;
/// What was measured is rounded up to a multiple of this, so that two runs of one job say the same.
const STEP: u64 = 8_000_000;

/// Bytes of the program with the accounting that it has done, for jobs whose data are not open: what it will do again with the model is as large.
pub(crate) fn program() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|number| number.trim().parse::<u64>().ok());
    kilobytes.map_or(UNMEASURED, |kilobytes| (kilobytes * 1024).next_multiple_of(STEP)) + MORE
}

struct Checked;

#[global_allocator]
static MEMORY: Checked = Checked;

/// The same pointer, unless there is none.
fn some(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() { ended() } else { pointer }
}

#[cold]
fn ended() -> ! {
    for part in ["error: ", privfit::error::HOST, "\n"] {
        // SAFETY: bytes and their length. Nothing here allocates, and nothing is left to be tidied up: a job that ends here has spent.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(privfit::Error::Host.code())) }
}

// SAFETY: everything is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Checked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        some(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        some(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised by the caller.
        some(unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}
