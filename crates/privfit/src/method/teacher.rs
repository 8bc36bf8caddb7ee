//! A convex teacher and what leaves it: its weights with noise, or its answers for public rows with noise.

use super::vector_noise::VectorNoise;
use super::{Noise, Problem, rounded};
use crate::error::Result;
use crate::schema::Task;
use crate::solve::iterative_hard_thresholding::{Rows, Thresholding, iterative_hard_thresholding};
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::{self as kernel, Loss, Minimise, MinimiseElastic, Project, PublicRows, Run, norm_bound, products_error};
use std::sync::Arc;

/// Expected length of the weights of a classifier, as in `output`; that of a predictor of numbers is about 1.
const RADIUS: f64 = 10.0;
/// Public rows are divided by their bound, which is then 1 up to rounding.
const LONGER: f64 = 1.0 + 1e-6;

/// The ridge minimiser, with noise that meets the target of its problem.
pub(super) struct Teacher {
    loss: Loss,
    ridge: f64,
    tolerance: f64,
    /// No weights are longer.
    longest: f64,
    noise: VectorNoise,
    /// Length of what is released.
    released: usize,
    deviation: f64,
}

impl Teacher {
    /// `answers`: how many answers leave, where there are public rows; none for the weights.
    pub(super) fn new(problem: &Problem, loss: Loss, ridge: Option<f64>, answers: Option<usize>) -> Result<Teacher> {
        let dimension = problem.features;
        let longest = loss.lipschitz();
        let n = problem.rows.max(1) as f64;
        let released = answers.unwrap_or(dimension);
        let radius = if problem.task == Task::Number { 1.0 } else { RADIUS };
        let ridge_of = |nm: f64| {
            let deviation = nm * longest;
            ridge.unwrap_or((0.5 * n * deviation * deviation / (radius * radius)).cbrt().max(1e-3))
        };
        let parts = |nm: f64| -> Result<(f64, f64, f64, VectorNoise)> {
            let ridge = ridge_of(nm);
            let (least, radius) = problem.size().limits(&loss, ridge, None);
            // A thousandth of the sensitivity goes to the solver.
            let tolerance = (5e-4 * longest).max(least * 1.01);
            let error = if answers.is_some() { products_error(dimension, LONGER, radius) } else { 0.0 };
            let apart = |moved: f64| (moved + 2.0 * tolerance) / ridge * (1.0 + 1e-9) * LONGER + error;
            let noise = VectorNoise::new(false, (apart(longest), apart(2.0 * longest)), radius * LONGER, nm, released)?;
            Ok((ridge, tolerance, radius, noise))
        };
        let event = |nm: f64| parts(nm).map(|p| p.3.event(released));
        let multiplier = calibrate(problem.target, event, problem.adjacency)?;
        let (ridge, tolerance, radius, noise) = parts(multiplier)?;
        Ok(Teacher { loss, ridge, tolerance, longest: radius, noise, released, deviation: multiplier * longest })
    }

    pub(super) fn event(&self) -> Event {
        self.noise.event(self.released)
    }

    pub(super) fn describe(&self) -> Vec<(&'static str, String)> {
        vec![("ridge", rounded(self.ridge)), (self.noise.distribution(), rounded(self.noise.multiplier()))]
    }

    pub(super) fn gradient_noise(&self) -> f64 {
        3.0 * self.deviation
    }

    pub(super) fn noise(&self) -> Noise {
        Noise::Weights { deviation: self.deviation / self.ridge, ridge: self.ridge }
    }

    /// Weights, or answers for public rows (whose bound is 1). With `lasso`, an L1 term.
    pub(super) fn release(&self, run: &mut Run<'_>, lasso: Option<f64>, rows: Option<&PublicRows>) -> Result<Vec<f64>> {
        let everyone = run.everyone()?;
        let problem = kernel::Problem { loss: &self.loss, ridge: self.ridge, tolerance: self.tolerance };
        self.noise.release(run, self.released, |run| {
            let weights = match lasso {
                None => run.execute(Minimise { on: &everyone, problem, linear: None })?,
                Some(lasso) => run.execute(MinimiseElastic { on: &everyone, problem, lasso })?,
            };
            match rows {
                None => Ok(weights),
                Some(rows) => run.execute(Project { value: weights, rows, longest: self.longest }),
            }
        })
    }
}

/// Public rows for a student: none, generated ones, or given ones.
pub(super) struct Answers {
    public: Option<Public>,
}

enum Public {
    /// So many rows of cells spread evenly between -1 and 1.
    Generated(usize),
    Given(Arc<PublicRows>),
}

impl Answers {
    /// `generated`: rows to be made where none are given.
    pub(super) fn new(problem: &Problem, generated: u64) -> Answers {
        let public = match &problem.auxiliary {
            Some(given) => Some(Public::Given(given.clone())),
            None if generated > 0 => Some(Public::Generated(generated as usize)),
            None => None,
        };
        Answers { public }
    }

    /// How many answers leave; none if the weights do.
    pub(super) fn count(&self) -> Option<usize> {
        match &self.public {
            None => None,
            Some(Public::Generated(rows)) => Some(*rows),
            Some(Public::Given(rows)) => Some(rows.len()),
        }
    }

    pub(super) fn describe(&self) -> Vec<(&'static str, String)> {
        match &self.public {
            None => vec![("released", "weights of the teacher".into())],
            Some(Public::Generated(rows)) => vec![("released", format!("answers for {rows} generated rows"))],
            Some(Public::Given(rows)) => vec![("released", format!("answers for {} public rows", rows.len()))],
        }
    }

    /// The rows on some columns, divided by a bound on their largest singular value. Generated ones are the same on every run.
    pub(super) fn rows(&self, columns: &[usize]) -> Option<PublicRows> {
        let rows = match self.public.as_ref()? {
            Public::Given(rows) => rows.columns(columns),
            Public::Generated(count) => {
                let mut state = 1u64;
                let mut uniform = || {
                    state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                    let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                    ((z ^ (z >> 31)) >> 11) as f64 * 0.5f64.powi(52) - 1.0
                };
                PublicRows::new((0..count * columns.len()).map(|_| uniform()).collect(), columns.len())
            }
        };
        let bound = norm_bound(&rows);
        Some(if bound > 0.0 { rows.divided_by(bound) } else { rows })
    }
}

/// A student's least squares on public rows, with at most so many weights.
pub(super) fn student(rows: &PublicRows, answers: &[f64], sparsity: usize) -> Vec<f64> {
    let mut data = Rows::new();
    // Rows were divided by their bound; back to the size that steps and labels are made for.
    let longer = (rows.len() as f64).sqrt();
    for (row, y) in rows.iter().zip(answers) {
        data.push(row.iter().map(|x| x * longer).enumerate(), (y * longer) as f32);
    }
    let found = iterative_hard_thresholding(
        data,
        &privfit_kernel::loss::least_squares(),
        &Thresholding { sparsity, always: None, ridge: 0.0, steps: 300 },
    );
    let mut out = vec![0f64; rows.features()];
    found.iter().for_each(|(i, w)| out[*i as usize] = *w);
    out
}
