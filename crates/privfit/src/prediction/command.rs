//! A user's command as the learner of an ensemble: what it may use, what it must not see, and the file with public points that it reads. A system that can't keep it apart
//! is refused before data are opened.

use crate::error::{Error, Result};
use privfit_kernel::{CommandLearner, Entropy, PublicRows};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A command as a job gives it.
#[derive(Clone, Debug)]
pub struct CommandArguments {
    /// Program and first arguments; it is called with three paths more: rows, points, and where labels go.
    pub words: Vec<String>,
    /// Seconds for a part; every part takes so long.
    pub seconds: f64,
    /// Bytes of address space.
    pub memory: u64,
    /// Parts at once.
    pub at_once: usize,
    /// Files and directories that it must not see, as they were named; what is no path of this machine is passed over.
    pub hidden: Vec<PathBuf>,
}

/// A command that is ready, with its points in a directory that goes with it.
pub struct ReadyCommand {
    pub(crate) learner: CommandLearner,
    directory: PathBuf,
}

impl Drop for ReadyCommand {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl CommandArguments {
    /// Writes the public points, and finds out whether the command can be kept apart.
    pub(crate) fn ready(&self, points: &PublicRows, classes: usize) -> Result<ReadyCommand> {
        if self.words.is_empty() {
            return Err(Error::misuse("the command has no words: give a program and its arguments"));
        }
        if !(self.seconds >= 0.05 && self.seconds <= 86_400.0) {
            return Err(Error::misuse(format!("a part has {} seconds: give from 0.05 to 86400", self.seconds)));
        }
        if !(1..=1024).contains(&self.at_once) || self.memory < 1 << 20 {
            return Err(Error::misuse("a command runs for 1 to 1024 parts at once, each with at least a megabyte"));
        }
        let host = |_| Error::output("no private directory can be made for the command: check the temporary directory");
        let name = format!("privfit-command-{:016x}", Entropy::system()?.for_units()?.next_word());
        let directory = std::env::temp_dir().join(name);
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&directory).map_err(host)?;
        let file = directory.join("points.csv");
        let ready = ReadyCommand {
            learner: CommandLearner {
                command: self.words.iter().map(OsString::from).collect(),
                points: file.clone(),
                count: points.len(),
                classes,
                time: Duration::from_secs_f64(self.seconds),
                memory: self.memory,
                at_once: self.at_once,
                directory: directory.clone(),
                hidden: self.hidden.iter().filter_map(|path| there(path)).collect(),
            },
            directory,
        };
        let mut text = String::new();
        let names: Vec<String> = (0..points.features()).map(|i| format!("x{i}")).collect();
        let _ = writeln!(text, "{}", names.join(","));
        for row in points.iter() {
            for (i, x) in row.iter().enumerate() {
                let _ = write!(text, "{}{}", if i == 0 { "" } else { "," }, *x as f32);
            }
            text.push('\n');
        }
        std::fs::write(file, text).map_err(host)?;
        if !ready.learner.prepare() {
            return Err(Error::misuse(
                "this system does not keep a command apart: that takes Linux with namespaces for whoever runs this (sysctl kernel.unprivileged_userns_clone=1 where there is such a key; in a container, one that may make \
                 them); otherwise use teachers of privfit's own",
            ));
        }
        Ok(ready)
    }

    /// What is said about it, for the digest of a request.
    pub(crate) fn statement(&self) -> serde_json::Value {
        serde_json::json!({"words": self.words, "seconds": self.seconds, "memory": self.memory, "at_once": self.at_once})
    }
}

/// The file or directory of a path, and of one that goes on inside of a file (a folder of a zip file): that file.
fn there(path: &Path) -> Option<PathBuf> {
    let whole = path.canonicalize().ok();
    whole.or_else(|| path.ancestors().skip(1).find(|p| p.is_file()).and_then(|p| p.canonicalize().ok()))
}

impl ReadyCommand {
    /// Seconds that so many parts take: public.
    pub fn seconds(&self, parts: u32) -> f64 {
        self.learner.duration(parts).as_secs_f64()
    }

    /// What the system can't keep the command from.
    pub fn warnings(&self) -> Vec<&'static str> {
        let mut out = Vec::new();
        out.push("the command, and every file that it reads besides rows and points, must be public: what was made of the records would make every vote depend on every record");
        if self.learner.at_once > 1 {
            out.push("several parts at once share memory and caches: that one does not slow another down beyond its time is taken on trust");
        }
        out
    }
}
