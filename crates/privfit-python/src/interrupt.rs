//! Ctrl-C while the library works, and silence about data when it fails.

use crate::error::raised;
use privfit::Error;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often Python is asked for signals.
const EVERY: Duration = Duration::from_millis(50);

/// Calls that have private data open.
static OPEN: AtomicUsize = AtomicUsize::new(0);
static HOOK: Once = Once::new();

thread_local! {
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// What unwinds out of the library when the user interrupts.
struct Interrupted(PyErr);

/// Ends the call if the user has interrupted it. What was spent stays spent.
pub(crate) fn poll() {
    let now = Instant::now();
    if ASKED.get().is_some_and(|last| now.duration_since(last) < EVERY) {
        return;
    }
    ASKED.set(Some(now));
    if let Err(error) = Python::attach(|py| py.check_signals()) {
        resume_unwind(Box::new(Interrupted(error)));
    }
}

/// Runs a call without the lock of Python. Interrupts become what Python raises for them; a panic, which could quote the data, becomes the
/// one message for failures of the host and is not printed.
pub(crate) fn without_lock<T: Send>(py: Python<'_>, call: impl Send + FnOnce() -> privfit::Result<T>) -> PyResult<T> {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if OPEN.load(Ordering::Relaxed) == 0 {
                before(info);
            }
        }));
    });
    OPEN.fetch_add(1, Ordering::Relaxed);
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(call)));
    OPEN.fetch_sub(1, Ordering::Relaxed);
    match outcome {
        Ok(result) => result.map_err(raised),
        Err(payload) => Err(unwound(payload)),
    }
}

fn unwound(payload: Box<dyn Any + Send>) -> PyErr {
    match payload.downcast::<Interrupted>() {
        Ok(interrupted) => interrupted.0,
        Err(_) => raised(Error::Host),
    }
}
