//! A run on some of the columns. Which ones is public by then; leaving the others out is a map of each record by itself.

use super::Run;
use crate::error::{Error, Result};
use crate::privacy::data::{Dataset, DatasetBuilder, RowShape, Rows};
use std::sync::atomic::Ordering;

/// Columns above which rows that were sparse stay so.
const FEW: usize = 256;

/// How the rest of a row gets into the unit ball.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fit {
    /// Divided by this length, and cut where it is still too long.
    Within(f64),
    /// Divided by its own length.
    Sphere,
}

impl<'d> Run<'d> {
    /// Runs on some of the columns, in this order, under the same plan and record. Rows lie in the unit ball there.
    pub fn narrow<T, E: From<Error>>(
        &mut self,
        columns: &[usize],
        fit: Fit,
        scope: impl FnOnce(&mut Run<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.same_process()?;
        let data = self.columns(columns, fit)?;
        let mut inner = Run {
            data: &data,
            engine: self.engine,
            entropy: self.entropy,
            planned: self.planned.clone(),
            record: std::mem::take(&mut self.record),
            id: super::RUNS.fetch_add(1, Ordering::Relaxed),
            process: self.process,
            batches: 0,
            used: Vec::new(),
            by_slot: self.by_slot,
            lent: false,
        };
        // A panic in the scope leaves this run without its record, so it must not go on.
        self.lent = true;
        let out = scope(&mut inner);
        self.by_slot |= inner.by_slot;
        self.lent = inner.lent;
        self.record = inner.record;
        out
    }

    fn columns(&self, columns: &[usize], fit: Fit) -> Result<Dataset> {
        let from = self.data;
        let d = from.dimension;
        if columns.is_empty() || columns.iter().any(|c| *c >= d) {
            return Err(Error::domain("columns", columns.len(), "give columns that the data have, at least one"));
        }
        let mut place = vec![u32::MAX; d];
        columns.iter().enumerate().for_each(|(to, c)| place[*c] = to as u32);
        let factor = match fit {
            Fit::Within(radius) if radius > 1e-6 * from.row_norm && radius.is_finite() => 1.0 / radius,
            Fit::Within(radius) => return Err(Error::domain("radius", radius, "give at least a millionth of the row norm")),
            Fit::Sphere => 1.0 / from.row_norm,
        };
        let sparse = matches!(from.rows, Rows::Sparse { .. }) && columns.len() > FEW;
        let shape = RowShape {
            dimension: columns.len(),
            row_norm: 1.0,
            sparse,
            rows_per_unit: from.units.as_ref().map(|_| from.rows_per_unit),
        };
        let mut builder = DatasetBuilder::new(self.entropy, shape)?;
        let mut dense = vec![0f64; if sparse { 0 } else { columns.len() }];
        let mut pairs: Vec<(u32, f64)> = Vec::new();
        for slot in 0..from.slots() {
            let unit = from.unit(slot);
            for row in 0..unit.rows() {
                pairs.clear();
                let mut square = 0.0;
                unit.each(row, |j, x| {
                    if place[j] != u32::MAX {
                        pairs.push((place[j], x * factor));
                        square += (x * factor).powi(2);
                    }
                });
                if fit == Fit::Sphere && square > 0.0 {
                    let longer = 1.0 / square.sqrt();
                    pairs.iter_mut().for_each(|p| p.1 *= longer);
                }
                let label = unit.label(row);
                if sparse {
                    pairs.sort_unstable_by_key(|p| p.0);
                    builder.sparse_row(&pairs, label);
                } else {
                    dense.fill(0.0);
                    pairs.iter().for_each(|(to, x)| dense[*to as usize] = *x);
                    builder.row(&dense, label);
                }
            }
            if shape.rows_per_unit.is_some() {
                builder.end_unit();
            }
        }
        Ok(builder.build())
    }
}
