//! What every test here starts from: a directory of its own with thirty rows, their schema and a ledger, and the command to train on them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory with all that a fit needs.
pub(crate) struct Scene {
    /// The directory; gone at the end.
    pub(crate) root: PathBuf,
}

/// Rows in the file.
pub(crate) const ROWS: usize = 30;

/// A value of one cell, which must not turn up anywhere: it is far outside of what the schema allows.
pub(crate) const SECRET: &str = "48151.62342";

impl Scene {
    /// A new one.
    pub(crate) fn new(name: &str) -> Scene {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // In memory where there is such a place: a process that is killed leaves its files whole, and thousands of runs follow.
        let memory = Some(PathBuf::from("/dev/shm")).filter(|p| room(p) > 4 << 30);
        let base = memory.unwrap_or_else(std::env::temp_dir);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = base.join(format!("privfit-faults-{}-{name}-{number}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let scene = Scene { root };
        let mut data = String::from("x,y\n");
        (0..ROWS - 1).for_each(|i| data.push_str(&format!("{},{}\n", i as f64 / 30.0, i % 2)));
        data.push_str(&format!("{SECRET},1\n"));
        std::fs::write(scene.path("d.csv"), data).unwrap();
        let schema = format!(
            "[dataset]\nname = \"faults\"\nrows = {ROWS}\n[target]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n\
             [features.x]\ntype = \"number\"\nmin = 0\nmax = 1\n"
        );
        std::fs::write(scene.path("s.toml"), schema).unwrap();
        scene
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The command with its arguments; paths are absolute, and nothing of the caller's settings is seen.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_privfit"));
        command.args(arguments).current_dir(&self.root).env_clear();
        command
    }

    /// Runs to the end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A pure fit of epsilon 0.1.
    pub(crate) fn fit(&self, place: &str, request: &str, out: &str) -> Command {
        let mut command = self.command(&["fit", "--method", "output", "--epsilon", "0.1", "--delta", "0", "--threads", "1"]);
        for (flag, value) in [("--data", "d.csv"), ("--schema", "s.toml"), ("--out", out)] {
            command.arg(flag).arg(self.path(value));
        }
        command.args(["--ledger", place, "--request", request]);
        command
    }

    /// Where the ledger is, as text.
    pub(crate) fn ledger(&self) -> String {
        self.path("ledger").to_str().unwrap().into()
    }

    /// Makes a pure ledger at a place.
    pub(crate) fn make(&self, place: &str, epsilon: &str) {
        let schema = self.path("s.toml");
        let made =
            self.run(&["ledger", "create", place, "--schema", schema.to_str().unwrap(), "--epsilon", epsilon, "--delta", "0"]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// The ledger's file and what goes with it, as they are now.
    pub(crate) fn copy(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        ["ledger", "ledger-wal", "ledger-shm"].map(|n| (self.path(n), std::fs::read(self.path(n)).ok())).into()
    }

    /// Puts a copy back, and takes all models away.
    pub(crate) fn restore(&self, copy: &[(PathBuf, Option<Vec<u8>>)]) {
        for path in files(&self.root) {
            if !["d.csv", "s.toml"].contains(&path.file_name().unwrap().to_str().unwrap()) {
                std::fs::remove_file(path).unwrap();
            }
        }
        for (path, bytes) in copy {
            if let Some(bytes) = bytes {
                std::fs::write(path, bytes).unwrap();
            }
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

/// Bytes that are free below a path.
fn room(path: &Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let text = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a path that ends with a zero byte, and a plain structure that the call fills.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(text.as_ptr(), &mut found) == 0 { found.f_bavail * found.f_frsize } else { 0 }
    }
}

/// All files below a directory, for a look at what is left.
pub(crate) fn files(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(root).into_iter().flatten().filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_file()).collect();
    found.sort();
    found
}
