//! A strongly convex sum over the records, as solver and preconditioner see it.

use crate::engine::{Seam, Threads};
use crate::loss::Loss;
use crate::store::dataset::Dataset;

/// A strongly convex problem in sum form: sum of losses + (ridge/2) |theta|^2 + <linear, theta>.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The loss; needs a finite smoothness.
    pub loss: &'a Loss,
    /// Covers every coordinate, the intercept included.
    pub ridge: f64,
    /// Bound on the gradient norm at the answer, in sum form; must exceed four times the rounding floor.
    pub tolerance: f64,
}

/// The sum with its records and its linear term.
pub(crate) struct Objective<'a> {
    pub(crate) data: &'a Dataset,
    pub(crate) chosen: Option<&'a [bool]>,
    pub(crate) threads: &'a Threads,
    /// The records are divided among the processes of this; none if each process has all of them.
    pub(crate) seam: Option<&'a Seam<'a>>,
    pub(crate) problem: Problem<'a>,
    pub(crate) linear: Vec<f64>,
    /// Bound on the norm of the linear term, public.
    pub(crate) linear_bound: f64,
    /// One unit of its grid, public.
    pub(crate) linear_grid: f64,
}

/// Public sizes of a minimisation, before data are opened.
#[derive(Clone, Copy, Debug)]
pub struct ProblemSize {
    /// Units.
    pub unit_count: usize,
    /// Most rows of one unit.
    pub rows_per_unit: usize,
    /// Features of a row.
    pub features: usize,
    /// Bound on the norm of a row.
    pub row_norm: f64,
    /// Whether rows are index-value pairs.
    pub sparse: bool,
}

impl ProblemSize {
    /// Of all records.
    pub(crate) fn of(data: &Dataset) -> ProblemSize {
        ProblemSize {
            unit_count: data.total(),
            rows_per_unit: data.rows_per_unit,
            features: data.dimension,
            row_norm: data.row_norm,
            sparse: data.is_sparse(),
        }
    }
}
