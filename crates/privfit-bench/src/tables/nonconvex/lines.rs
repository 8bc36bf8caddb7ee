//! Finished cells, one line each in a CSV file, so that a run that was stopped goes on where it was.

use crate::Failure;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Numbers of a cell, in the order of the columns.
pub(super) const COLUMNS: [&str; 13] = [
    "claimed",
    "delta",
    "runs",
    "true_epsilon",
    "cross_entropy",
    "cross_entropy_error",
    "wrong",
    "wrong_error",
    "gradient_norm",
    "gradient_norm_error",
    "passes",
    "gradients",
    "seconds",
];

/// One finished cell.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) set: String,
    pub(super) name: String,
    pub(super) setting: String,
    pub(super) numbers: [f64; 13],
}

impl Line {
    /// The number of a column.
    pub(super) fn get(&self, column: &str) -> f64 {
        COLUMNS.iter().position(|c| *c == column).map_or(f64::NAN, |i| self.numbers[i])
    }

    fn text(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(f64::to_string).collect();
        format!("{},{},{},{}", self.set, self.name, self.setting, numbers.join(","))
    }

    fn parse(line: &str) -> Option<Line> {
        let parts: Vec<&str> = line.split(',').collect();
        let [set, name, setting, numbers @ ..] = &parts[..] else { return None };
        let numbers: Vec<f64> = numbers.iter().map(|n| n.parse().ok()).collect::<Option<_>>()?;
        Some(Line {
            set: set.to_string(),
            name: name.to_string(),
            setting: setting.to_string(),
            numbers: numbers.try_into().ok()?,
        })
    }
}

/// All of them, and their file.
pub(super) struct Lines {
    path: PathBuf,
    all: Mutex<Vec<Line>>,
}

impl Lines {
    /// What an earlier run finished; a line that was cut off is not among it.
    pub(super) fn open(path: &Path) -> Lines {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        Lines { path: path.into(), all: Mutex::new(whole.filter_map(|l| Line::parse(l.trim_end())).collect()) }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Line>> {
        self.all.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn find(&self, set: &str, name: &str, claimed: f64) -> Option<Line> {
        self.list().iter().find(|l| l.set == set && l.name == name && l.get("claimed") == claimed).cloned()
    }

    pub(super) fn has(&self, set: &str, name: &str, claimed: f64) -> bool {
        self.find(set, name, claimed).is_some()
    }

    /// Adds a cell, and writes the file anew beside itself, so that it is whole at any time.
    pub(super) fn add(&self, line: Line) -> Result<(), Failure> {
        let mut all = self.list();
        all.push(line);
        self.write(&all)
    }

    /// Sorted, so that the file does not depend on which core was faster.
    pub(super) fn sort(&self) -> Result<(), Failure> {
        let mut all = self.list();
        all.sort_by(|a, b| (&a.set, &a.name).cmp(&(&b.set, &b.name)).then(a.get("claimed").total_cmp(&b.get("claimed"))));
        self.write(&all)
    }

    fn write(&self, all: &[Line]) -> Result<(), Failure> {
        let lines: String = all.iter().map(|l| l.text() + "\n").collect();
        let beside = self.path.with_extension("new");
        let done = std::fs::write(&beside, format!("set,method,setting,{}\n{lines}", COLUMNS.join(",")))
            .and_then(|()| std::fs::rename(&beside, &self.path));
        done.map_err(|e| Failure::misuse(format!("cannot write {}: {e}; give another --out", self.path.display())))
    }
}
