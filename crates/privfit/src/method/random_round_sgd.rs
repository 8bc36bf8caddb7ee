//! Random-round SGD: noisy gradients of small samples for a random number of rounds.
//!
//! *What it computes.* R is drawn before the first step, P(R = k) proportional to 2 rate_k - smoothness rate_k^2; after R noisy steps
//! the iterate is the answer, without averaging. With a constant rate all rounds up to `steps` are alike.
//!
//! *Privacy.* As `noisy-sgd`, for the largest number of rounds: the plan pays for all of them, and a run may take fewer. R looks at
//! no data. The published proof claims a loss in each step that is 3.7 times too small, and is saved by slack elsewhere; see
//! `published/rounds.rs`.
//!
//! *Accuracy.* A stationary point in expectation, also for losses that are not convex: that is what it is for. On convex losses the
//! average of `noisy-sgd` is better. The rate is the smaller of 1/smoothness and D/(s sqrt(steps)), D^2 = 2 (bound on the loss at 0) /
//! smoothness, s^2 the variance of the noisy average gradient: public numbers, where the published rule looks at the data.
//!
//! *Needs.* A smooth loss, delta > 0. Time: at most sampling rate x steps passes.
//!
//! *Reference.* Zhang, Zheng, Mou, Wang 2017, algorithm 2 (RRPSGD), after Ghadimi and Lan 2013.

use super::Capabilities;
use super::direction::Direction;
use super::noisy_gd::{Answer, Steps, calibrated_steps};
use super::{Method, Plan, Problem, needs_smooth};
use crate::error::{Error, Result};
use crate::method::settings::settings;
use privfit_kernel::Rate;

settings! {
    /// Settings of random-round SGD.
    pub(crate) struct RandomRoundSgdSettings {
        /// probability that a record takes part in a step
        sampling_rate: Option<f64> = None, 1e-6..=1.0;
        /// most steps
        steps: Option<u64> = None, 1.0..=1e7;
        /// length of a step, for the average gradient
        learning_rate: Option<f64> = None, 1e-12..=1e9;
        /// strength of a nonconvex regulariser of the average loss, the sum of w^2 / (1 + w^2)
        nonconvex: f64 = 0.0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "random-round-sgd",
    alias: "RRPSGD",
    needs: "smooth loss, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies",
    source: "Zhang et al. 2017; Poisson samples, numerical composition",
    theorem: "As for noisy-sgd with the largest number of rounds: the plan pays for all of them, and a run that takes fewer \
              reveals a part of what was paid for. The number of rounds is drawn without looking at records.",
    settings: RandomRoundSgdSettings::SETTINGS,
    published: false,
    can: Capabilities { smooth: true, releases_gradients: true, many_steps: true, noise_at_the_end: true, ..Capabilities::ANY },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("random-round-sgd")?;
    needs_smooth(problem, "random-round-sgd")?;
    let settings = RandomRoundSgdSettings::parse(&problem.settings)?;
    let losses = super::head_losses(problem)?;
    let n = problem.all_rows();
    let fraction = settings.sampling_rate.unwrap_or((512.0 / n).clamp(1e-6, 1.0));
    let sampled = (fraction < 1.0).then(|| Rate::new(fraction)).transpose()?;
    let steps = settings.steps.unwrap_or((5.0 / fraction).clamp(100.0, 5000.0).round() as u64);
    let (mechanism, event) = calibrated_steps(problem, &losses, losses[0].lipschitz(), sampled, steps, true)?;
    let loss = &losses[0];
    let dimension = problem.features * loss.outputs();
    let divide = n * fraction;
    let moment = loss.lipschitz().powi(2) / divide + dimension as f64 * (mechanism.standard_deviation() / divide).powi(2);
    let direction = Direction { nonconvex: settings.nonconvex, smoothing: 0.0 };
    let smoothness = loss.smoothness() + direction.curvature();
    let way = (2.0 * loss.at_zero() / smoothness).sqrt();
    let usual = (way / (moment * steps as f64).sqrt()).min(1.0 / smoothness);
    let rate = settings.learning_rate.unwrap_or(usual);
    if rate * smoothness >= 2.0 {
        let most = 2.0 / smoothness;
        return Err(Error::misuse(format!(
            "learning_rate is {rate}: the distribution of the rounds needs less than {most}, give less"
        )));
    }
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |_| rate),
        momentum: Box::new(|_| 0.0),
        ridge: 0.0,
        divide,
        answer: Answer::Random,
        event,
        constraint: problem.constraint,
        features: problem.features,
        offset: None,
        direction,
        recursive: None,
    }))
}
