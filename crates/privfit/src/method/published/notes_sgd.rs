//! Noisy projected SGD with the noise of the lecture notes: n^2 steps of one record, or (n/batch)^2 of a batch. The sketch of its
//! proof does not hold, the claim does, with some twenty times the noise that it needs. Sampling here is Poisson.

use super::super::Capabilities;
use super::printed::{notes_sgd_moment, notes_sgd_sigma, notes_sgd_step};
use super::{published_loss, split_budget};
use crate::constraint::Constraint;
use crate::error::Result;
use crate::method::direction::Direction;
use crate::method::noisy_gd::{Answer, Steps};
use crate::method::noisy_projected_sgd::radius_of;
use crate::method::settings::settings;
use crate::method::{Method, Plan, Problem};
use privfit_kernel::{Gaussian, Rate, planned_step};

settings! {
    /// Settings of the SGD of the lecture notes.
    pub(crate) struct NotesSgdSettings {
        /// records to a step
        batch: u64 = 50, 1.0..=1e9;
        /// number of steps; (n/batch)^2 in the publication
        steps: Option<u64> = None, 1.0..=1e12;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "published-notes-sgd",
    alias: "printed BST14",
    needs: "any loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; holds with much room, by another proof",
    source: "lecture notes on private empirical risk minimisation, algorithm 3, after Bassily et al. 2014",
    theorem: super::THEOREM,
    settings: NotesSgdSettings::SETTINGS,
    published: true,
    can: Capabilities { many_steps: true, ..Capabilities::PUBLISHED },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (losses, epsilon, delta) = split_budget(&problem, "published-notes-sgd")?;
    let rows = problem.rows.max(2) as f64;
    let settings = NotesSgdSettings::parse(&problem.settings)?;
    let batch = (settings.batch as f64).min(rows);
    let steps = settings.steps.unwrap_or((rows / batch).powi(2).min(5000.0).round() as u64);
    let bound = losses[0].lipschitz();
    // On n times one gradient; on one gradient, or the sum of a batch, an n-th of it.
    let sigma = notes_sgd_sigma(bound, rows, epsilon, delta);
    let mechanism = Gaussian::for_gradients(bound, sigma / (rows * bound))?;
    let sampled = (batch < rows).then(|| Rate::new(batch / rows)).transpose()?;
    let event = planned_step(&mechanism, problem.features, sampled).repeated(steps * losses.len() as u64);
    let dimension = problem.features as f64;
    let radius = radius_of(problem.constraint, problem.features);
    let constraint = if problem.constraint == Constraint::None { Constraint::L2(radius) } else { problem.constraint };
    // Steps are for n times the average gradient there, and for the average here.
    let moment = notes_sgd_moment(bound, rows, dimension, sigma / batch);
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |t| rows * notes_sgd_step(t, 2.0 * radius, moment)),
        momentum: Box::new(|_| 0.0),
        ridge: 0.0,
        divide: batch,
        answer: Answer::Last,
        event,
        constraint,
        features: problem.features,
        offset: None,
        direction: Direction::default(),
        recursive: None,
    }))
}
