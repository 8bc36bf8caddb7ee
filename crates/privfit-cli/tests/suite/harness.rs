//! The command as tests run it: in a directory of its own, with memory of ledgers of its own.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The directory of the whole project.
pub(crate) fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a process printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs the command where the tests stand; for what needs no files.
pub(crate) fn privfit(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_privfit")).args(arguments).env("COLUMNS", "80").output().unwrap()
}

/// What it prints; it must succeed.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let output = privfit(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The same as JSON.
pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(&[arguments, &["--format", "json"]].concat())).unwrap()
}

/// A directory for one test, removed at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// An empty one.
    pub(crate) fn new(name: &str) -> Scratch {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("privfit-test-{}-{number}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// A command in this directory, from the words of a line.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_privfit"));
        command.current_dir(&self.0).args(line.split_whitespace()).env("XDG_STATE_HOME", self.0.join("state"));
        command
    }

    pub(crate) fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Exit code, and what was printed on both streams.
    pub(crate) fn outcome(&self, line: &str) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.run(line);
        (status.code(), text(&stdout), text(&stderr))
    }

    /// The same for arguments with spaces in them.
    pub(crate) fn call(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.command("").args(arguments).output().unwrap();
        (status.code(), text(&stdout), text(&stderr))
    }

    /// What is printed; the command must succeed.
    pub(crate) fn ok(&self, line: &str) -> String {
        let (code, out, err) = self.outcome(line);
        assert_eq!(code, Some(0), "{line}: {err}");
        out
    }

    /// It must fail like this. What is printed is returned.
    pub(crate) fn refused(&self, line: &str, code: i32, words: &str) -> String {
        let (found, out, err) = self.outcome(line);
        assert!(found == Some(code) && err.contains(words), "{line}: {found:?} {out} {err}");
        out
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} --format json"))).unwrap()
    }
}

impl std::ops::Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
