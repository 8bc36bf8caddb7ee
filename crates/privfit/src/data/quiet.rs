//! Calls into foreign code that may panic on damaged files. A panic's message could quote the data, so it is not printed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// The value of a call, or none if it panicked. Panics of other threads, and of this one later, are reported as ever. Whatever
/// the call worked on should be dropped after a panic.
pub(crate) fn quietly<T>(call: impl FnOnce() -> T) -> Option<T> {
    // The hook belongs to the process: ours goes in front of the one that is there and stays.
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.try_with(Cell::get).unwrap_or(false) {
                before(info);
            }
        }));
    });
    let outer = QUIET.replace(true);
    let value = catch_unwind(AssertUnwindSafe(call)).ok();
    QUIET.set(outer);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_none() {
        assert_eq!(quietly(|| 1), Some(1));
        assert_eq!(
            quietly(|| if QUIET.get() {
                panic!("secret")
            }),
            None
        );
        assert_eq!(quietly(|| quietly(|| panic!("secret")).is_none() && QUIET.get()), Some(true));
        assert!(!QUIET.get());
    }
}
