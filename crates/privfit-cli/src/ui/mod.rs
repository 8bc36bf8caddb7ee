//! What people see: colour, layout, progress, standard output, failures.

pub(crate) mod layout;
pub(crate) mod lines;
pub(crate) mod memory;
pub(crate) mod output;
pub(crate) mod plot;
pub(crate) mod progress;
pub(crate) mod spent;
pub(crate) mod style;
pub(crate) mod verdict;

pub(crate) use output::print_line;

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs, at full precision
    Json,
}

/// Why a verb failed.
pub(crate) struct Failure(pub(crate) privfit::Error);

impl Failure {
    /// One sentence that ends with the fix.
    pub(crate) fn misuse(text: impl Into<String>) -> Failure {
        Failure(privfit::Error::misuse(text))
    }
}

impl From<privfit::Error> for Failure {
    fn from(error: privfit::Error) -> Failure {
        Failure(error)
    }
}

/// An argument as the command has it.
pub(crate) fn as_flag(name: &str, value: Option<&str>) -> String {
    let name = name.replace('_', "-");
    value.map_or(format!("--{name}"), |value| format!("--{name} {value}"))
}

/// From here on private data are open: a panic says nothing, and no core is dumped.
pub(crate) fn quiet() {
    std::panic::set_hook(Box::new(|_| {}));
    #[cfg(unix)]
    // SAFETY: sets a limit of this process.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
}

/// Why a file could not be written: the host's failure if its disk is full or fails, the caller's if the path is wrong.
pub(crate) fn unwritable(path: &std::path::Path, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind::{AlreadyExists, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let path = path.display();
    match error.kind() {
        AlreadyExists | IsADirectory | NotADirectory | NotFound | PermissionDenied => {
            Failure::misuse(format!("cannot write {path}: {error}; give another path"))
        }
        _ => Failure(privfit::Error::output(format!("cannot write {path}: {error}; check its disk"))),
    }
}

/// Prints a line for people. A screen that is closed or full is no reason to fail.
pub(crate) fn note(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{}", style::Paint::err().line(&style::Paint::err().safe(line)));
}
