//! `privfit-bench tables`: the published tables, the published methods rerun with what they truly guarantee, and ours. The convex
//! ones are here, the others in directories of their own.

mod accuracy;
mod cell;
pub(crate) mod nonconvex;
mod pictures;
mod printed;
mod record;
mod report;
mod risk;
mod sets;
pub(crate) mod sparse;
pub(crate) mod variants;

use crate::{Failure, print_line};
use record::Records;
use std::path::PathBuf;
use std::sync::Mutex;

/// Options of the verb.
pub(crate) struct Options {
    pub(crate) shared: PathBuf,
    pub(crate) out: PathBuf,
    /// Names of data sets; empty for all.
    pub(crate) only: Vec<String>,
    /// Two fits to a cell.
    pub(crate) quick: bool,
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| name.to_lowercase().contains(&o.to_lowercase()))
    }
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let made = std::fs::create_dir_all(options.out.join("plots"));
    made.map_err(|e| Failure::misuse(format!("cannot make {}: {e}; give another --out", options.out.display())))?;
    let risks = Records::open(&options.out.join("risk.csv"));
    risk::run(options, &risks)?;
    risks.sort()?;
    let cells = Records::open(&options.out.join("accuracy.csv"));
    accuracy::run(options, &cells)?;
    cells.sort()?;
    let summary = report::write(options, &cells, &risks)?;
    print_line(&summary);
    Ok(())
}

/// Works off a list on two threads; the first failure ends it.
fn each_on_two_cores<T: Send>(work: Vec<T>, each: impl Fn(T) -> Result<(), Failure> + Sync) -> Result<(), Failure> {
    let queue = Mutex::new(work.into_iter());
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(|e| e.into_inner()).next();
                    let Some(task) = next else { break };
                    if let Err(failure) = each(task) {
                        *failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(failure);
                        break;
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}
