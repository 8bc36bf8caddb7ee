//! Laplacian smoothing with the printed noise (DP-LSSGD), or with that of the released code, which is a fifth of it in variance. Both are several times what the claim needs, by another proof than the
//! printed one, provided that gradients are clipped one by one, as here; the released code clips the mean of a batch, and nothing holds for that (`tests/suite/flaws_nonconvex.rs`).

use super::super::Capabilities;
use super::printed::smoothing_sigma;
use super::published_loss;
use crate::error::Result;
use crate::method::direction::Direction;
use crate::method::noisy_gd::{Answer, Steps};
use crate::method::settings::settings;
use crate::method::{Method, Plan, Problem};
use privfit_kernel::{Gaussian, Rate, planned_step};

settings! {
    /// Settings of the published Laplacian smoothing.
    pub(crate) struct PublishedSmoothingSettings {
        /// records to a step
        batch: u64 = 128, 1.0..=1e9;
        /// passes over the records
        passes: f64 = 50.0, 0.001..=1e6;
        /// length of a step in the first pass; it falls as one over the number of the pass
        learning_rate: f64 = 1.0, 1e-9..=1e9;
        /// strength of smoothing
        smoothing: f64 = 1.0, 0.0..=1e6;
        /// ridge of the average loss
        lambda: f64 = 1e-4, 0.0..=1.0;
        /// share of epsilon for the divergence
        share: f64 = 0.5, 0.01..=0.99;
        /// whether noise is that of the released code
        released: bool = false, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "published-dp-lssgd",
    alias: "printed DP-LSSGD",
    needs: "any loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; holds with much room on Poisson samples, by another proof",
    source: "Wang et al. 2020, algorithm 5 and theorem 5.3.2 of the thesis",
    theorem: super::THEOREM,
    settings: PublishedSmoothingSettings::SETTINGS,
    published: true,
    can: Capabilities { many_steps: true, ..Capabilities::PUBLISHED },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    problem.needs_delta(METHOD.name)?;
    let s = PublishedSmoothingSettings::parse(&problem.settings)?;
    let losses = crate::method::head_losses(&problem)?;
    let heads = losses.len() as f64;
    let rows = problem.rows.max(1) as f64;
    let batch = (s.batch as f64).min(rows);
    let sampled = (batch < rows).then(|| Rate::new(batch / rows)).transpose()?;
    let per_pass = (rows / batch).ceil();
    let steps = (s.passes * rows / batch).ceil().max(1.0) as u64;
    let clip = losses[0].lipschitz().min(1.0);
    let losses: Vec<_> = losses.iter().map(|l| l.clipped(clip)).collect();
    let constant = if s.released { 4.0 } else { 20.0 };
    let (epsilon, delta) = (problem.target.epsilon / heads, problem.target.delta / heads);
    let sigma = smoothing_sigma(constant, steps as f64, rows, clip, s.share, epsilon, delta);
    let mechanism = Gaussian::for_gradients(clip, batch * sigma / clip)?;
    let dimension = problem.features * losses[0].outputs();
    let event = planned_step(&mechanism, dimension, sampled).repeated(steps * losses.len() as u64);
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |step| s.learning_rate / (1.0 + ((step - 1) as f64 / per_pass).floor())),
        momentum: Box::new(|_| 0.0),
        ridge: s.lambda * batch,
        divide: batch,
        answer: Answer::Last,
        event,
        constraint: problem.constraint,
        features: problem.features,
        offset: None,
        direction: Direction { nonconvex: 0.0, smoothing: s.smoothing },
        recursive: None,
    }))
}
