//! Output perturbation: minimise the sum of losses plus a ridge, then add noise to the minimiser.
//!
//! *What it computes.* theta = argmin sum of losses + (ridge/2) |theta|^2 to a certified gradient norm tau, plus Gaussian noise, or
//! Laplace noise for pure privacy. Several classes: softmax, or one minimiser for each class against the rest.
//!
//! *Privacy.* The ridge makes the objective strongly convex, so a change of the gradient by L (zero-out, k L for k rows to a unit)
//! moves the minimiser by at most L / ridge; replace-one twice that; the solver adds 2 tau / ridge. The bound holds for every number
//! of rows; the solver's certificate rests on the true one. Pure privacy: the L1 distance is at most sqrt(d) times the L2 distance, and discrete Laplace noise covers it; published
//! forms use a spherical gamma distribution, for which there is no exact sampler.
//!
//! *Accuracy.* Noise of deviation s/ridge on the weights costs about (n/8) (s/ridge)^2, shrinkage (ridge/2) |theta|^2; with weights of
//! length 10 the sum is least at ridge = (n s^2 / 200)^(1/3). `objective` is more accurate; this one is the simplest proof, and pure.
//!
//! *Needs.* A smooth loss, the true number of rows (so not add-remove). Time: some ten passes over the data.
//!
//! *Reference.* Chaudhuri, Monteleoni, Sarwate 2011; published constants of later versions are up to n times too large or rest on
//! exact minimisers, see `docs/methods.md`.

use super::Capabilities;
use super::vector_noise::VectorNoise;
use super::{Method, Noise, Plan, Problem, head_losses, needs_smooth, rounded};
use crate::error::Result;
use crate::method::settings::settings;
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{self as kernel, Loss, Minimise, Run};

settings! {
    /// Settings of output perturbation.
    pub(crate) struct OutputSettings {
        /// strength of the ridge, in sum form
        ridge: Option<f64> = None, 1e-12..=1e15;
    }
}

/// Row of the list.
pub const METHOD: Method = Method {
    name: "output",
    alias: "output-perturbation",
    needs: "smooth loss",
    guarantee: "pure (delta = 0) or (epsilon, delta), zero-out and replace-one",
    source: "Chaudhuri, Monteleoni, Sarwate 2011, with a certified solver",
    theorem: "The objective is ridge-strongly convex, so that one record, which changes the gradient by at most L, moves its \
              minimiser by at most L/ridge in L2 (replace-one 2 L/ridge), plus 2 tau/ridge for a solver that stops at gradient \
              norm tau. Noise calibrated to that distance (to sqrt(d) times it in L1 for pure privacy) is added to the \
              minimiser.",
    settings: OutputSettings::SETTINGS,
    published: false,
    can: Capabilities { pure_by_default: true, affine: true, ..Capabilities::BY_THEOREM },
    plan,
};

/// Expected length of the weights.
const RADIUS: f64 = 10.0;

struct Output {
    losses: Vec<Loss>,
    ridge: f64,
    tolerance: f64,
    noise: VectorNoise,
    event: Event,
    constraint: crate::constraint::Constraint,
    features: usize,
    /// Longest gradient of a unit.
    longest: f64,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_rows("output")?;
    needs_smooth(problem, "output")?;
    let losses = head_losses(problem)?;
    let heads = losses.len() as u64;
    let loss = &losses[0];
    let dimension = problem.features * loss.outputs();
    let pure = problem.target.delta == 0.0;
    let (n, d) = (problem.rows as f64, dimension as f64);
    let longest = loss.lipschitz() * problem.rows_per_unit as f64;
    let settings = OutputSettings::parse(&problem.settings)?;
    let ridge_of = |nm: f64| {
        let deviation = nm * longest * if pure { (2.0 * d).sqrt() } else { 1.0 };
        let usual = (0.5 * n.max(1.0) * deviation * deviation / (RADIUS * RADIUS)).cbrt().max(1e-3);
        settings.ridge.unwrap_or(usual)
    };
    let parts = |nm: f64| -> Result<(f64, f64, VectorNoise, Event)> {
        let ridge = ridge_of(nm);
        let (least, radius) = problem.size().limits(loss, ridge, None);
        // A thousandth of the sensitivity goes to the solver.
        let tolerance = (5e-4 * longest).max(least * 1.01);
        let apart = |moved: f64| (moved / ridge + 2.0 * tolerance / ridge) * (1.0 + 1e-9);
        let (one, two) = (apart(longest), apart(2.0 * longest));
        let noise = VectorNoise::new(pure, (one, two), radius, nm, dimension)?;
        let event = noise.event(dimension);
        Ok((ridge, tolerance, noise, if heads == 1 { event } else { event.repeated(heads) }))
    };
    let multiplier = calibrate(problem.target, |nm| parts(nm).map(|p| p.3), problem.adjacency)?;
    let (ridge, tolerance, noise, event) = parts(multiplier)?;
    Ok(Box::new(Output {
        losses,
        ridge,
        tolerance,
        noise,
        event,
        constraint: problem.constraint,
        features: problem.features,
        longest,
    }))
}

impl Plan for Output {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Totals
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ridge", rounded(self.ridge)),
            ("gradient norm at the end, at most", rounded(self.tolerance)),
            (self.noise.distribution(), rounded(self.noise.multiplier())),
        ]
    }

    fn gradient_noise(&self) -> f64 {
        // Noise of the size deviation/ridge on theta weighs like deviation x curvature / ridge on a gradient.
        self.noise.multiplier() * self.longest * 3.0 * (self.losses.len() as f64).sqrt()
    }

    fn noise(&self) -> Noise {
        Noise::Weights {
            deviation: self.noise.deviation(self.longest / self.ridge, self.features * self.losses[0].outputs()),
            ridge: self.ridge,
        }
    }

    fn steps(&self) -> u64 {
        self.losses.len() as u64
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        for loss in &self.losses {
            let everyone = run.everyone()?;
            let dimension = self.features * loss.outputs();
            let problem = kernel::Problem { loss, ridge: self.ridge, tolerance: self.tolerance };
            let part =
                self.noise.release(run, dimension, |run| run.execute(Minimise { on: &everyone, problem, linear: None }))?;
            weights.extend(part);
            progress();
        }
        self.constraint.project(&mut weights);
        Ok(weights)
    }
}
