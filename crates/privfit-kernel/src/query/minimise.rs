//! Minimisers of strongly convex sums, with a certificate: the proof rests on the gradient at the end, not on the solver.

use super::problem::{Objective, Problem, ProblemSize};
use super::solver::Limits;
use crate::account::{Event, Objective as ObjectiveFacts};
use crate::audit::{Audit, Movement, PARTS, Point};
use crate::batch::Batch;
use crate::engine::Needs;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::mechanism::Sensitivity;
use crate::norm::{L2, Norm};
use crate::numerics::Numerics;
use crate::rng::Stream;
use crate::run::Query;
use crate::run::Run;
use crate::sampling::sampler::{Sampler, Shape};
use crate::value::{Sensitive, Theorem};

/// Minimises a strongly convex sum. With a linear term the kernel draws it itself, since whoever holds it and the minimiser holds the gradient,
/// and the objective perturbation is recorded here; output noise must follow in any case, because the minimiser is only reached to a tolerance
/// and the linear term lies on a grid.
pub struct Minimise<'a, 'd> {
    /// The records.
    pub on: &'a Batch<'d>,
    /// The sum.
    pub problem: Problem<'a>,
    /// Noise in the objective.
    pub linear: Option<LinearTerm>,
}

impl<'d> Query<'d> for Minimise<'_, 'd> {
    type Output = Sensitive<Vec<f64>>;

    fn execute(self, run: &mut Run<'d>) -> Result<Sensitive<Vec<f64>>> {
        if self.on.run != run.id {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        run.seam.needs(Needs::Totals)?;
        // How far the solver goes, and how exact it can be, are computed from the number of units.
        run.may_depend_on_order()?;
        if !(self.problem.ridge >= f64::MIN_POSITIVE && self.problem.ridge.is_finite()) {
            return Err(Error::domain("ridge", self.problem.ridge, "give a positive finite number"));
        }
        if self.on.origin.rate.is_some() {
            return Err(Error::Mismatch { what: "a minimisation has no amplification by sampling: use everyone()" });
        }
        self.problem.loss.validate_smooth()?;
        if self.linear.is_some() && run.data.rows_per_unit > 1 {
            return Err(Error::unsupported(
                "objective perturbation with several rows to a unit, whose gradients are not clipped together",
                "declare one row to a unit",
            ));
        }
        let dimension = run.data.dimension * self.problem.loss.outputs;
        let gradient_bound = self.problem.loss.lipschitz * run.data.row_norm * run.data.rows_per_unit as f64;
        let mut term = vec![0.0; dimension];
        let (mut linear_bound, mut linear_grid) = (0.0, 0.0);
        if let Some(l) = self.linear {
            let unit = l.grid(self.problem.loss, run.data.row_norm, dimension);
            linear_grid = unit;
            if !unit.is_normal() || unit < 0.0 {
                return Err(Error::domain("noise_multiplier", l.noise_multiplier, "give a positive number far from underflow"));
            }
            let event = l.event(self.problem.loss, run.data.row_norm, self.problem.ridge, run.data.dimension);
            run.record.admit(&run.planned, event, 1)?;
            run.record.grade(Numerics::Bounded);
            run.order_dependent = true;
            let mut rng = run.seam.secret(run.entropy, Stream::Noise)?;
            let mut integers = vec![0i64; dimension];
            let shape = if l.pure { Shape::Laplace } else { Shape::Gaussian };
            Sampler::new(shape, LINEAR_BITS).fill(&mut rng, &mut integers);
            term.iter_mut().zip(&integers).for_each(|(t, z)| *t = *z as f64 * unit);
            linear_bound = l.longest(self.problem.loss, run.data.row_norm, dimension);
        }
        let marks = self.on.chosen.marks(run.data.unit_count());
        let seam = run.seam.clone();
        let objective = Objective {
            data: run.data,
            chosen: marks.as_deref(),
            threads: seam.threads(),
            seam: Some(&seam),
            problem: self.problem,
            linear: term,
            linear_bound,
            linear_grid,
        };
        let value = run.solve_audited(objective, self.linear.is_some())?;
        // Two certified points are each within tolerance/ridge of the minimiser. With the linear term the minimiser itself is what
        // the objective perturbation released; without it one unit moves the minimiser by its gradient bound over the ridge.
        let slack = 2.0 * self.problem.tolerance / self.problem.ridge;
        let moved = if self.linear.is_some() { 0.0 } else { gradient_bound / self.problem.ridge };
        let claim = Theorem {
            reason: "strong convexity by the ridge: distance <= gradient difference / ridge, twice the tolerance for the solver",
            zero_out: moved + slack,
            replace_one: 2.0 * moved + slack,
        };
        Ok(Sensitive { value, run: run.id, part: self.on.origin.part, claim: Some(claim), order_dependent: true })
    }
}

impl Run<'_> {
    /// Solves, and in an audit looks at the gradient where the other world ended.
    pub(crate) fn solve_audited(&mut self, mut objective: Objective<'_>, perturbed: bool) -> Result<Vec<f64>> {
        if !perturbed || matches!(self.audit, None | Some(Audit::Capture(_))) {
            return objective.solve();
        }
        let floor = objective.limits().floor();
        let tolerance = objective.problem.tolerance;
        let certified = |gradient: &[f64]| length(gradient) + floor <= tolerance;
        let recorded = match &mut self.audit {
            Some(Audit::Replay { transcript, at, .. }) => {
                *at += 1;
                match transcript.points.get(*at - 1) {
                    Some(Point::Minimum { theta, gradient, linear }) if theta.len() == objective.dimension() => {
                        Some((theta.clone(), gradient.clone(), linear.clone()))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let mut movement = Movement {
            what: "gradient at the minimiser",
            norm: L2::NAME,
            sensitivity: Sensitivity { zero_out: PARTS, replace_one: 2 * PARTS },
            moved: u64::MAX,
            agrees: false,
        };
        if let Some((theta, first, linear)) = recorded {
            objective.linear = linear;
            let here = objective.gradient(&theta)?;
            let apart: Vec<f64> = first.iter().zip(&here).map(|(a, b)| a - b).collect();
            objective.linear.iter_mut().zip(&apart).for_each(|(b, g)| *b += g);
            let bound = objective.problem.loss.lipschitz * self.data.row_norm + 2.0 * floor;
            movement.moved = (length(&apart) / bound * PARTS as f64).ceil() as u64;
            movement.agrees = certified(&first);
        }
        let theta = objective.solve()?;
        let gradient = objective.gradient(&theta)?;
        movement.agrees &= certified(&gradient);
        match &mut self.audit {
            Some(Audit::Record(points)) => {
                points.push(Point::Minimum { theta: theta.clone(), gradient, linear: objective.linear });
            }
            Some(Audit::Replay { movements, .. }) => movements.push(movement),
            _ => {}
        }
        Ok(theta)
    }
}

fn length(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Minimises a strongly convex sum plus `lasso` times the L1 norm, on everyone. One unit moves the minimiser by its gradient bound over the
/// ridge, because the ridge makes the sum strongly convex whatever public convex terms are added to it.
pub struct MinimiseElastic<'a, 'd> {
    /// The records.
    pub on: &'a Batch<'d>,
    /// The sum.
    pub problem: Problem<'a>,
    /// Weight of the L1 norm.
    pub lasso: f64,
}

impl<'d> Query<'d> for MinimiseElastic<'_, 'd> {
    type Output = Sensitive<Vec<f64>>;

    fn execute(self, run: &mut Run<'d>) -> Result<Sensitive<Vec<f64>>> {
        if self.on.run != run.id || !self.on.chosen.is_all() {
            return Err(Error::Mismatch { what: "use everyone() of this run" });
        }
        run.seam.needs(Needs::Totals)?;
        run.may_depend_on_order()?;
        if !(self.problem.ridge >= f64::MIN_POSITIVE
            && self.problem.ridge.is_finite()
            && self.lasso >= 0.0
            && self.lasso.is_finite())
        {
            return Err(Error::domain("ridge", self.problem.ridge, "give a positive ridge, and a lasso of at least 0"));
        }
        self.problem.loss.validate_smooth()?;
        let dimension = run.data.dimension * self.problem.loss.outputs;
        let objective = Objective {
            data: run.data,
            chosen: None,
            threads: run.seam.threads(),
            seam: Some(&run.seam),
            problem: self.problem,
            linear: vec![0.0; dimension],
            linear_bound: 0.0,
            linear_grid: 0.0,
        };
        let value = objective.solve_elastic(self.lasso)?;
        let moved = self.problem.loss.lipschitz * run.data.row_norm * run.data.rows_per_unit as f64 / self.problem.ridge;
        let slack = 2.0 * self.problem.tolerance / self.problem.ridge;
        let claim = Theorem {
            reason: "strong convexity by the ridge, with an L1 term: gradient difference / ridge, twice the tolerance for the solver",
            zero_out: moved + slack,
            replace_one: 2.0 * moved + slack,
        };
        Ok(Sensitive { value, run: run.id, part: None, claim: Some(claim), order_dependent: true })
    }
}

/// The linear term of an objective perturbation. Everything else that its privacy rests on the kernel works out itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearTerm {
    /// Scale of the noise over one unit's gradient bound: in L2 for Gaussian noise, in L1 for Laplace noise.
    pub noise_multiplier: f64,
    /// Laplace noise, for pure privacy.
    pub pure: bool,
}

impl LinearTerm {
    /// Gaussian noise, its standard deviation over one unit's gradient bound.
    pub fn gaussian(noise_multiplier: f64) -> LinearTerm {
        LinearTerm { noise_multiplier, pure: false }
    }

    /// Laplace noise, its scale over the square root of the dimension times one unit's gradient bound.
    pub fn laplace(noise_multiplier: f64) -> LinearTerm {
        LinearTerm { noise_multiplier, pure: true }
    }

    /// Standard deviation or scale of a coordinate.
    pub fn scale(&self, loss: &Loss, row_norm: f64, dimension: usize) -> f64 {
        let longer = if self.pure { (dimension as f64).sqrt().next_up() } else { 1.0 };
        self.noise_multiplier * loss.lipschitz * row_norm * longer
    }

    /// A length that the term exceeds with a probability below e^-800. The L1 norm of Laplace noise has a gamma distribution.
    fn longest(&self, loss: &Loss, row_norm: f64, dimension: usize) -> f64 {
        let d = dimension as f64;
        self.scale(loss, row_norm, dimension) * if self.pure { 2.0 * d + 1700.0 } else { d.sqrt() + 40.0 }
    }

    /// One unit of the grid that the term lies on.
    fn grid(&self, loss: &Loss, row_norm: f64, dimension: usize) -> f64 {
        self.scale(loss, row_norm, dimension) * 0.5f64.powi(LINEAR_BITS as i32)
    }

    /// The event that `minimize` will record for this loss, row norm, ridge and number of features.
    pub fn event(&self, loss: &Loss, row_norm: f64, ridge: f64, features: usize) -> Event {
        let rank = f64::from(loss.rank);
        // Eigenvalues that sum to the trace: the determinant is largest when they are equal.
        let log_determinant = rank * (loss.trace / rank * row_norm * row_norm / ridge).ln_1p().next_up();
        let dimension = (features * loss.outputs) as u64;
        if !self.pure {
            return Event::ObjectivePerturbation(ObjectiveFacts {
                noise_multiplier: self.noise_multiplier,
                replace_factor: 2.0,
                degrees: loss.rank,
                log_determinant,
                output_noise_multiplier: f64::INFINITY,
                grid_sigma: 1 << LINEAR_BITS,
                dimension,
            });
        }
        // A continuous term whose density is constant on each cell of the grid is the term on the grid plus less than half a cell. A
        // shift by v crosses at most |v| / unit + 1 cells of each coordinate, and each cell costs 2^-40. The determinant is bounded,
        // but by no means independent of the term, so that both are one event with one epsilon.
        let scale = 2f64.powi(LINEAR_BITS as i32);
        let epsilon = |times: f64| {
            let cells = (times * scale / self.noise_multiplier * (1.0 + 1e-12)).ceil() + dimension as f64;
            (cells / scale + log_determinant).next_up()
        };
        Event::Pure { epsilon: epsilon(1.0), replace_factor: (epsilon(2.0) / epsilon(1.0)).next_up() }
    }
}

/// Grid of the linear term: its standard deviation is 2^40 units.
const LINEAR_BITS: u32 = 40;

impl ProblemSize {
    /// Smallest tolerance that `Run::minimize` accepts, and a bound on the length of what it returns.
    pub fn limits(&self, loss: &Loss, ridge: f64, linear: Option<LinearTerm>) -> (f64, f64) {
        let dimension = self.features * loss.outputs;
        let linear_bound = linear.map_or(0.0, |l| l.longest(loss, self.row_norm, dimension));
        let linear_grid = linear.map_or(0.0, |l| l.grid(loss, self.row_norm, dimension));
        let limits = Limits { size: *self, loss, ridge, linear_bound, linear_grid };
        (4.0 * limits.floor(), limits.radius())
    }
}
