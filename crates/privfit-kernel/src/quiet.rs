//! Calls into code that may panic on a record: contributions, losses, learners, readers of damaged files. The message of a panic could quote
//! the record, and the default hook prints it to standard error before anybody can catch it; here it is not printed.

#[cfg(panic = "abort")]
compile_error!(
    "with panic = \"abort\" a record that makes a contribution panic ends the process, which tells that it is there: use panic = \"unwind\""
);

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// The value of a call, or none if it panicked. (A hook that somebody sets later, without calling the one before it, would print again.) Panics of other threads, and of this one later, are reported as ever. Whatever
/// the call worked on should be dropped after a panic.
pub fn quietly<T>(call: impl FnOnce() -> T) -> Option<T> {
    // The hook belongs to the process: ours goes in front of the one that is there and stays.
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.try_with(Cell::get).unwrap_or(false) {
                before(info);
            }
        }));
    });
    let _restored = Restored(QUIET.replace(true));
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => Some(value),
        Err(payload) => {
            // What a panic carries may panic once more when it is dropped.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(again);
            }
            None
        }
    }
}

/// Puts back what was, however a call ends.
struct Restored(bool);

impl Drop for Restored {
    fn drop(&mut self) {
        QUIET.set(self.0);
    }
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

    /// What the hook prints goes to standard error, so another process has to look: this test starts itself once more.
    #[test]
    fn a_contribution_that_panics_says_nothing() {
        const CHILD: &str = "PRIVFIT_TEST_PANICS";
        if std::env::var_os(CHILD).is_some() {
            crate::run_tests::panicking_contribution();
            return;
        }
        let own = std::env::current_exe().unwrap();
        let test = "quiet::tests::a_contribution_that_panics_says_nothing";
        let child = std::process::Command::new(own).args([test, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
        let said = [child.stdout, child.stderr].map(|s| String::from_utf8_lossy(&s).into_owned()).concat();
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
        assert!(!said.contains("secret") && !said.contains("panicked"), "{said}");
    }

    /// Without unwinding nothing of this works, so that it must not compile. The file stands alone.
    #[test]
    fn aborting_does_not_compile() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/quiet.rs");
        let out = std::env::temp_dir().join(format!("privfit-quiet-{}", std::process::id()));
        let compile = |panic: &str| {
            let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
            let mut command = std::process::Command::new(rustc);
            command
                .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-C", panic, "-o"])
                .arg(&out)
                .arg(source);
            command.output().unwrap()
        };
        let (unwind, abort) = (compile("panic=unwind"), compile("panic=abort"));
        let _ = std::fs::remove_file(&out);
        assert!(unwind.status.success(), "{}", String::from_utf8_lossy(&unwind.stderr));
        assert!(!abort.status.success() && String::from_utf8_lossy(&abort.stderr).contains("panic = \"unwind\""));
    }
}
