//! Noisy projected SGD: noisy gradients of small samples, falling steps, and a projection after each.
//!
//! *What it computes.* Poisson samples; w <- projection of w - rate_t x (noisy gradient sum / expected sample size), with
//! rate_t = diameter / (G sqrt t), where G^2 bounds the second moment of the noisy average gradient. The answer is the average of
//! the second half. The set is the constraint, or a ball of radius 10.
//!
//! *Privacy.* As `noisy-sgd`: sums of clipped gradients, Gaussian noise, the exact privacy loss of sampled Gaussians. Projections and
//! steps look at released numbers only. The published form takes n^2 steps of one record each with noise from a bound that is some
//! twenty times too large; see `published/notes_sgd.rs`.
//!
//! *Accuracy.* The theorem behind it is worst-case optimal for convex losses, kinks included. On real data `noisy-gd` and
//! `objective` are better at the same budget.
//!
//! *Needs.* Any loss, delta > 0. Time: sampling rate x steps passes.
//!
//! *Reference.* Bassily, Smith, Thakurta 2014, algorithm 1; lecture notes on private empirical risk minimisation, algorithm 3.

use super::Capabilities;
use super::direction::Direction;
use super::noisy_gd::{Answer, Steps, calibrated_steps};
use super::{Method, Plan, Problem};
use crate::constraint::Constraint;
use crate::error::Result;
use crate::method::settings::settings;
use privfit_kernel::Rate;

settings! {
    /// Settings of noisy projected SGD.
    pub(crate) struct NoisyProjectedSgdSettings {
        /// probability that a record takes part in a step
        sampling_rate: Option<f64> = None, 1e-6..=1.0;
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e7;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "noisy-projected-sgd",
    alias: "BST14",
    needs: "any loss, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies",
    source: "Bassily, Smith, Thakurta 2014; Poisson samples, numerical composition",
    theorem: "As for noisy-sgd: sums of gradients clipped to length C on Poisson samples of rate q, Gaussian noise sigma, the \
              exact privacy loss of the sampled Gaussian composed numerically over T steps. Projections look at released \
              numbers only.",
    settings: NoisyProjectedSgdSettings::SETTINGS,
    published: false,
    can: Capabilities { releases_gradients: true, fixed_step: true, many_steps: true, ..Capabilities::ANY },
    plan,
};

/// Half the diameter of the set.
pub(super) fn radius_of(constraint: Constraint, dimension: usize) -> f64 {
    match constraint {
        Constraint::None => 10.0,
        Constraint::L2(r) | Constraint::L1(r) => r,
        Constraint::Box(low, high) => 0.5 * (high - low) * (dimension as f64).sqrt(),
        Constraint::Simplex(r) => r * std::f64::consts::FRAC_1_SQRT_2,
    }
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("noisy-projected-sgd")?;
    let settings = NoisyProjectedSgdSettings::parse(&problem.settings)?;
    let losses = super::head_losses(problem)?;
    let n = problem.all_rows();
    let fraction = settings.sampling_rate.unwrap_or((512.0 / n).clamp(1e-6, 1.0));
    let sampled = (fraction < 1.0).then(|| Rate::new(fraction)).transpose()?;
    let steps = settings.steps.unwrap_or((5.0 / fraction).clamp(100.0, 5000.0).round() as u64);
    let (mechanism, event) = calibrated_steps(problem, &losses, losses[0].lipschitz(), sampled, steps, false)?;
    let dimension = problem.features * losses[0].outputs();
    let divide = n * fraction;
    // Mean, sampling and noise of the average gradient.
    let (bound, deviation) = (losses[0].lipschitz(), mechanism.standard_deviation());
    let moment = (bound * bound * (1.0 + 1.0 / divide) + dimension as f64 * (deviation / divide).powi(2)).sqrt();
    let radius = radius_of(problem.constraint, dimension);
    let constraint = if problem.constraint == Constraint::None { Constraint::L2(radius) } else { problem.constraint };
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |t| 2.0 * radius / (moment * (t as f64).sqrt())),
        momentum: Box::new(|_| 0.0),
        ridge: 0.0,
        divide,
        answer: Answer::HalfAverage,
        event,
        constraint,
        features: problem.features,
        offset: None,
        direction: Direction::default(),
        recursive: None,
    }))
}
