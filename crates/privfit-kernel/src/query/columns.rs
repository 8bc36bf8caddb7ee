//! A run on some of the columns. Which ones is public by then; leaving the others out is a map of each record by itself.

use crate::error::{Error, Result};
use crate::run::Run;
use crate::store::builder::DatasetBuilder;
use crate::store::dataset::{Dataset, RowShape};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// Columns above which rows that were sparse stay so.
const FEW: usize = 256;

/// How the rest of a row gets into the unit ball.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowScaling {
    /// Divided by this length, and clipped where it is still too long.
    Within(f64),
    /// Divided by its own length.
    Sphere,
    /// Each cell is replaced by the root of its size first (with its sign, before its factor), the row divided by its own length,
    /// a constant of this size appended as the last column, and the whole divided by its length.
    Root(f64),
}

impl RowScaling {
    /// Whether rows with so many columns left are still index-value pairs. Public, so that a plan can know it.
    pub fn stays_sparse(sparse: bool, columns: usize) -> bool {
        sparse && columns > FEW
    }
}

/// Runs on some of the columns, in this order, each times a public factor, under the same plan and record. Rows lie in the unit ball there.
#[derive(Clone, Copy, Debug)]
pub struct SelectColumns<'a> {
    /// Columns, each with its factor.
    pub columns: &'a [(usize, f64)],
    /// How the rest of a row gets into the unit ball.
    pub fit: RowScaling,
}

impl SelectColumns<'_> {
    pub(crate) fn execute<T, E: From<Error>>(
        &self,
        run: &mut Run<'_>,
        scope: impl FnOnce(&mut Run<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let data = columns(run, self.columns, self.fit)?;
        let mut inner = Run {
            data: &data,
            seam: run.seam.clone(),
            entropy: run.entropy,
            planned: run.planned.clone(),
            record: std::mem::take(&mut run.record),
            id: crate::run::RUNS.fetch_add(1, Ordering::Relaxed),
            process: run.process,
            batches: 0,
            used: HashSet::new(),
            adjacency: run.adjacency,
            order_dependent: run.order_dependent,
            in_subrun: false,
            audit: run.audit.take(),
            series: run.series.take(),
            kept_series: run.kept_series.take(),
        };
        // A panic in the scope leaves this run without its record, so it must not go on.
        run.in_subrun = true;
        let id = inner.id;
        let out = scope(&mut inner);
        // A scope may put another run in its place; the record of that one says nothing about these records.
        if inner.id == id {
            run.order_dependent |= inner.order_dependent;
            run.in_subrun = inner.in_subrun;
            run.record = inner.record;
            run.audit = inner.audit;
            (run.series, run.kept_series) = (inner.series, inner.kept_series);
        }
        out
    }
}

impl Run<'_> {
    /// Executes what is in a scope on some of the columns.
    pub fn select_columns<T, E: From<Error>>(
        &mut self,
        select: SelectColumns<'_>,
        scope: impl FnOnce(&mut Run<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.same_process()?;
        select.execute(self, scope)
    }
}

fn columns(run: &Run<'_>, columns: &[(usize, f64)], fit: RowScaling) -> Result<Dataset> {
    let from = run.data;
    let d = from.dimension;
    if from.cells.is_some() {
        return Err(Error::Mismatch { what: "rows of cells have no columns of features" });
    }
    if columns.is_empty() || columns.iter().any(|c| c.0 >= d || !c.1.is_finite()) {
        return Err(Error::domain("columns", columns.len(), "give columns that the data have, at least one, and finite factors"));
    }
    let mut place = vec![u32::MAX; d];
    columns.iter().enumerate().for_each(|(to, c)| place[c.0] = to as u32);
    let factor = match fit {
        RowScaling::Within(radius) if radius > 1e-6 * from.row_norm && radius.is_finite() => 1.0 / radius,
        RowScaling::Within(radius) => return Err(Error::domain("radius", radius, "give at least a millionth of the row norm")),
        RowScaling::Root(constant) if !constant.is_finite() => {
            return Err(Error::domain("constant", constant, "give a finite number"));
        }
        RowScaling::Sphere | RowScaling::Root(_) => 1.0 / from.row_norm,
    };
    let constant = match fit {
        RowScaling::Root(constant) => Some((columns.len() as u32, constant)),
        _ => None,
    };
    let dimension = columns.len() + usize::from(constant.is_some());
    let sparse = RowScaling::stays_sparse(from.is_sparse(), dimension);
    let shape = RowShape { dimension, row_norm: 1.0, sparse, rows_per_unit: from.units.as_ref().map(|_| from.rows_per_unit) };
    let mut builder = DatasetBuilder::new(run.entropy, shape)?.place(from.first, from.total)?;
    if let Some(directory) = &from.directory {
        builder = builder.on_disk(directory)?;
    }
    let mut dense = vec![0f64; if sparse { 0 } else { dimension }];
    let mut pairs: Vec<(u32, f64)> = Vec::new();
    for unit_index in 0..from.unit_count() {
        let unit = from.unit(unit_index);
        for row in 0..unit.rows() {
            pairs.clear();
            let mut square = 0.0;
            unit.each(row, |j, x| {
                if let Some((_, times)) = columns.get(place[j] as usize) {
                    let x = x * factor;
                    let x = if constant.is_some() { x.signum() * x.abs().sqrt() } else { x } * times;
                    pairs.push((place[j], x));
                    square += x * x;
                }
            });
            if !matches!(fit, RowScaling::Within(_)) && square > 0.0 {
                let longer = 1.0 / square.sqrt();
                pairs.iter_mut().for_each(|p| p.1 *= longer);
            }
            if let Some((place, constant)) = constant {
                let length = (1.0 + constant * constant).sqrt();
                pairs.push((place, constant));
                pairs.iter_mut().for_each(|p| p.1 /= length);
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
