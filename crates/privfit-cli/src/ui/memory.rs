//! Memory that ends: one message and exit code 3, for every allocation of the program. The standard library would abort with the size of
//! what was asked for, which can tell how many private rows there are.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64};

struct Checked;

#[global_allocator]
static MEMORY: Checked = Checked;

/// Bytes of the program itself: its code, its stack, what it has read of flags and schema.
const PROGRAM: u64 = 16_000_000;
/// Buffers of readers, and what an allocator keeps for itself.
const MORE: u64 = 16_000_000;
/// What was measured is rounded up to a multiple of this, so that two runs of one job say the same.
const STEP: u64 = 8_000_000;

/// Whether bytes are counted, how many are held since that began, and the most that ever were.
static COUNTED: AtomicBool = AtomicBool::new(false);
static HELD: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

/// Runs something that depends on public facts alone, and counts what it holds. The peak of the whole process would not do: files were counted before, and how much memory that took depends on their records.
pub(crate) fn count_held<T>(run: impl FnOnce() -> T) -> T {
    HELD.store(0, Relaxed);
    COUNTED.store(true, Relaxed);
    let out = run();
    COUNTED.store(false, Relaxed);
    out
}

/// Bytes of the program with the accounting that was counted: what it will do again with the model is as large.
pub(crate) fn program() -> u64 {
    (MOST.load(Relaxed).max(0) as u64).next_multiple_of(STEP) + PROGRAM + MORE
}

/// So many bytes more, or less.
fn held(bytes: i64) {
    if COUNTED.load(Relaxed) {
        MOST.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }
}

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
        held(layout.size() as i64);
        // SAFETY: as promised by the caller.
        some(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        held(layout.size() as i64);
        // SAFETY: as promised by the caller.
        some(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        held(size as i64 - layout.size() as i64);
        // SAFETY: as promised by the caller.
        some(unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        held(-(layout.size() as i64));
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}
