//! How much memory a job needs, before data are opened: a bound made of public facts, and a limit that is kept.
//!
//! *What is counted.* Encoded rows and labels of all methods; of networks also everything that a step holds, and the model file as it is written. For other methods nobody has worked out the rest,
//! and for sparse files the number of cells that are not 0 is private: what is counted is a lower bound then, and is called one.
//!
//! *What is not.* What a reader holds of a file while it reads (a block of records, one picture, a group of rows of a Parquet file, names of files in a folder). The program itself with its
//! accounting is measured by whoever runs it, and given here as a number.

use super::fit::Prepared;
use crate::error::{Error, Result};
use crate::memory::{MemoryConditions, MemoryNeed, MemoryPart, size};
use crate::schema::{Feature, Features, UnitOfPrivacy};

/// A limit that is enough, also where the program is measured a little larger the next time.
fn enough(bytes: u64) -> String {
    size(bytes.saturating_add(8_000_000)).replace(' ', "")
}

/// Bytes of labels in a file of their own while they are read: class and number of each, in a list that grows by doubling and may be copied when it does.
const LABELS_APART: u64 = 3 * 16;
/// Bytes of a cell of compressed rows, which grow by doubling as well: its column and its value.
const SPARSE_CELL: u64 = 3 * (4 + 2);
/// Bytes of a row of them: where it begins.
const SPARSE_ROW: u64 = 3 * 8;
/// Bytes of a number of a row that waits for the other rows of its unit.
const WAITING: u64 = 2 * 8;

impl Prepared {
    /// What the job needs under conditions.
    pub fn memory(&self, conditions: &MemoryConditions) -> MemoryNeed {
        let (rows, known) = self.encoded_rows();
        let mut parts = vec![MemoryPart::new("the program and its accounting", conditions.program), rows];
        let own = self.plan.memory(conditions, self.problem.rows);
        let complete = known && own.is_some();
        parts.extend(own.into_iter().flatten());
        MemoryNeed { parts, complete, at_once: self.plan.at_once() }
    }

    /// Encoded rows, and whether their size is public.
    fn encoded_rows(&self) -> (MemoryPart, bool) {
        let (problem, schema) = (&self.problem, &self.problem.schema);
        let rows = problem.rows.saturating_mul(problem.rows_per_unit as u64);
        let used = match &schema.features {
            Features::Table(columns) => columns.iter().filter(|c| c.1 != Feature::Ignore).count() as u64 + 1,
            _ => 0,
        };
        let dense = 2 * problem.features as u64;
        let form = self.plan.row_form();
        let (features, known) = match (form.has_features(), problem.sparse) {
            // One that is always 0.
            (false, _) => (2, true),
            (true, false) => (dense, true),
            (true, true) if used > 0 => (SPARSE_ROW + SPARSE_CELL * used, true),
            (true, true) => (SPARSE_ROW, false),
        };
        // A byte for each column.
        let row = features + form.grid().map_or(0, |grid| grid.columns.len() as u64);
        let labels =
            4 + if matches!(schema.features, Features::Dense { .. } | Features::Image { .. }) { LABELS_APART } else { 0 };
        let (waiting, known) = match schema.unit {
            UnitOfPrivacy::Row => (0, known),
            // How many records there are is not public then, nor how long the names of units are.
            UnitOfPrivacy::Column { .. } => (WAITING * problem.features as u64, false),
        };
        (MemoryPart::new("encoded rows", rows.saturating_mul(row + labels + waiting)), known)
    }

    /// Holds the job to so many bytes: a network computes fewer examples at once where that is enough, and otherwise the job is refused. The limit, like everything here, is public.
    pub fn within(mut self, limit: u64, conditions: &MemoryConditions) -> Result<Prepared> {
        let first = self.memory(conditions);
        if first.total() <= limit {
            return Ok(self);
        }
        let fewer = first.at_once.into_iter().flat_map(|now| (1..now).rev().filter(|n| n % 8 == 0 || n.is_power_of_two()));
        for at_once in fewer {
            self.plan.limit_at_once(at_once);
            if self.memory(conditions).total() <= limit {
                return Ok(self);
            }
        }
        Err(self.too_large(limit, conditions))
    }

    /// What is needed, for what, and what would do; examples are computed one by one already.
    fn too_large(&self, limit: u64, conditions: &MemoryConditions) -> Error {
        let need = self.memory(conditions);
        let bound = if need.complete { "up to" } else { "at least" };
        let batch = match need.at_once {
            Some(1) => ", with a batch of one example at once (no sampling rate needs less)",
            _ => "",
        };
        let text = format!(
            "the job needs {bound} {} of memory{batch} and may use {}: {}; give ",
            size(need.total()),
            size(limit),
            need.text()
        );
        let error = Error::misuse(text).give("memory", enough(need.total()));
        let single = self.memory(&MemoryConditions { threads: 1, ..*conditions });
        let error = match conditions.threads > 1 && single.total() <= limit {
            true => error.text(", or ").give("threads", "1").text(format!(", which needs {}", size(single.total()))),
            false => error,
        };
        match need.at_once {
            Some(_) => error.text(", or smaller layers"),
            None => error,
        }
    }
}
