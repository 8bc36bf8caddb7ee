//! Finished cells, one line each in a CSV file, so that a run that was stopped goes on where it was.

use crate::Failure;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// One finished cell.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) set: String,
    pub(super) loss: String,
    pub(super) claimed: f64,
    pub(super) delta: f64,
    pub(super) method: String,
    pub(super) setting: String,
    pub(super) runs: usize,
    pub(super) mean: f64,
    pub(super) error: f64,
    pub(super) epsilon: f64,
    pub(super) seconds: f64,
}

const HEADER: &str = "set,loss,claimed_epsilon,delta,method,setting,runs,mean,standard_error,true_epsilon,seconds";

impl Record {
    fn line(&self) -> String {
        let Record { set, loss, claimed, delta, method, setting, runs, mean, error, epsilon, seconds } = self;
        format!("{set},{loss},{claimed},{delta:e},{method},{setting},{runs},{mean:.6e},{error:.3e},{epsilon:.6},{seconds:.4}")
    }

    fn parse(line: &str) -> Option<Record> {
        let f: Vec<&str> = line.split(',').collect();
        let number = |i: usize| f.get(i)?.parse::<f64>().ok();
        Some(Record {
            set: f.first()?.to_string(),
            loss: f.get(1)?.to_string(),
            claimed: number(2)?,
            delta: number(3)?,
            method: f.get(4)?.to_string(),
            setting: f.get(5)?.to_string(),
            runs: number(6)? as usize,
            mean: number(7)?,
            error: number(8)?,
            epsilon: number(9)?,
            seconds: number(10)?,
        })
    }
}

/// All finished cells, in memory and in the file.
pub(super) struct Records {
    path: PathBuf,
    all: Mutex<Vec<Record>>,
}

impl Records {
    /// Reads what is there; a last line that was cut off is computed again.
    pub(super) fn open(path: &Path) -> Records {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let all = text.split_inclusive('\n').skip(1).filter(|l| l.ends_with('\n')).filter_map(|l| Record::parse(l.trim_end()));
        Records { path: path.into(), all: Mutex::new(all.collect()) }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Record>> {
        self.all.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn all(&self) -> Vec<Record> {
        self.list().clone()
    }

    pub(super) fn has(&self, set: &str, loss: &str, claimed: f64, method: &str) -> bool {
        self.find(set, loss, claimed, method).is_some()
    }

    pub(super) fn find(&self, set: &str, loss: &str, claimed: f64, method: &str) -> Option<Record> {
        let all = self.list();
        all.iter().find(|r| r.set == set && r.loss == loss && r.claimed == claimed && r.method == method).cloned()
    }

    /// Adds a cell, and writes the file anew beside itself, so that it is whole at any time.
    pub(super) fn add(&self, record: Record) -> Result<(), Failure> {
        let mut all = self.list();
        all.push(record);
        self.write(&all)
    }

    /// Sorted, so that the file does not depend on which core was faster.
    pub(super) fn sort(&self) -> Result<(), Failure> {
        let mut all = self.list();
        all.sort_by(|a, b| {
            let key = |r: &Record| (r.set.clone(), r.loss.clone(), r.method.clone());
            key(a).cmp(&key(b)).then(a.claimed.total_cmp(&b.claimed))
        });
        self.write(&all)
    }

    fn write(&self, all: &[Record]) -> Result<(), Failure> {
        let lines: String = all.iter().map(|r| r.line() + "\n").collect();
        let beside = self.path.with_extension("new");
        let done = std::fs::File::create(&beside)
            .and_then(|mut f| f.write_all(format!("{HEADER}\n{lines}").as_bytes()))
            .and_then(|()| std::fs::rename(&beside, &self.path));
        done.map_err(|e| Failure::misuse(format!("cannot write {}: {e}; give another --out", self.path.display())))
    }
}
