//! Private minibatch SGD as published: noise from the small-epsilon limit of a moments bound, its conditions dropped. Beyond that
//! point the true epsilon is up to hundreds of times the claim. It samples with replacement; here it runs, and is
//! accounted, on Poisson samples of the same expected size, which is kinder to it.

use super::super::Capabilities;
use super::printed::sgd_sigma;
use super::{published_loss, split_budget};
use crate::error::Result;
use crate::method::direction::Direction;
use crate::method::noisy_gd::{Answer, Steps};
use crate::method::settings::settings;
use crate::method::{Method, Plan, Problem};
use privfit_kernel::{Gaussian, Rate, planned_step};

settings! {
    /// Settings of the published private SGD.
    pub(crate) struct PublishedSgdSettings {
        /// number of steps
        steps: u64 = 1000, 1.0..=1e7;
        /// records to a step
        batch: u64 = 50, 1.0..=1e9;
        /// length of a step
        learning_rate: f64 = 1.0, 1e-9..=1e9;
        /// ridge of the average loss
        lambda: f64 = 0.0, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "published-p-sgd",
    alias: "printed P-SGD",
    needs: "any loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; false unless the noise exceeds one gradient",
    source: "Iyengar et al. 2019, algorithm 4, after Bassily et al. 2014",
    theorem: super::THEOREM,
    settings: PublishedSgdSettings::SETTINGS,
    published: true,
    can: Capabilities { many_steps: true, ..Capabilities::PUBLISHED },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (losses, epsilon, delta) = split_budget(&problem, "published-p-sgd")?;
    let PublishedSgdSettings { steps, batch, learning_rate: rate, lambda } = PublishedSgdSettings::parse(&problem.settings)?;
    let rows = problem.rows.max(1) as f64;
    let batch = (batch as f64).min(rows);
    let sampled = (batch < rows).then(|| Rate::new(batch / rows)).transpose()?;
    let clip = losses[0].lipschitz();
    let noise_multiplier = sgd_sigma(1.0, steps as f64, rows, epsilon, delta) * batch;
    let mechanism = Gaussian::for_gradients(clip, noise_multiplier)?;
    let event = planned_step(&mechanism, problem.features, sampled).repeated(steps * losses.len() as u64);
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |_| rate),
        momentum: Box::new(|_| 0.0),
        ridge: lambda * batch,
        divide: batch,
        answer: Answer::Last,
        event,
        constraint: problem.constraint,
        features: problem.features,
        offset: None,
        direction: Direction::default(),
        recursive: None,
    }))
}
