//! Random-round private SGD with the printed noise. The proof claims a loss in each step that is 3.7 times too small and composes
//! with a term left out; the noise is enough all the same, with room. Its n^2 steps of one record each are not run
//! in full: give `steps`. D_F, which the paper takes from the data, is the public bound.

use super::super::Capabilities;
use super::printed::{rrpsgd_sigma, rrpsgd_step};
use super::{published_loss, split_budget};
use crate::error::Result;
use crate::method::direction::Direction;
use crate::method::noisy_gd::{Answer, Steps};
use crate::method::settings::settings;
use crate::method::{Method, Plan, Problem, needs_smooth};
use privfit_kernel::account::Event;
use privfit_kernel::{Gaussian, Rate, planned_step};

settings! {
    /// Settings of the published random-round SGD.
    pub(crate) struct PublishedRoundsSettings {
        /// most steps; n^2 in the publication
        steps: Option<u64> = None, 1.0..=1e12;
    }
}

/// Row of the list.
pub const METHOD: Method = Method {
    name: "published-rrpsgd",
    alias: "printed RRPSGD",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; holds with room, by another proof",
    source: "Zhang et al. 2017, algorithm 2",
    theorem: super::THEOREM,
    settings: PublishedRoundsSettings::SETTINGS,
    published: true,
    can: Capabilities { smooth: true, many_steps: true, ..Capabilities::PUBLISHED },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (losses, epsilon, delta) = split_budget(&problem, "published-rrpsgd")?;
    needs_smooth(&problem, "published-rrpsgd")?;
    let loss = &losses[0];
    let rows = problem.rows.max(2) as f64;
    let steps = PublishedRoundsSettings::parse(&problem.settings)?.steps.unwrap_or((rows * rows).min(5000.0) as u64);
    let sigma = rrpsgd_sigma(loss.lipschitz(), rows, epsilon, delta);
    let mechanism = Gaussian::for_gradients(loss.lipschitz(), sigma / loss.lipschitz())?;
    let sampled = Some(Rate::new(1.0 / rows)?);
    let step = planned_step(&mechanism, problem.features, sampled);
    let event = Event::AtMost { times: steps * losses.len() as u64, event: Box::new(step) };
    let way = (2.0 * loss.at_zero() / loss.smoothness()).sqrt();
    let rate = rrpsgd_step(loss.smoothness(), way, loss.lipschitz(), problem.features as f64, rows, epsilon, delta);
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |_| rate),
        momentum: Box::new(|_| 0.0),
        ridge: 0.0,
        divide: 1.0,
        answer: Answer::Random,
        event,
        constraint: problem.constraint,
        features: problem.features,
        offset: None,
        direction: Direction::default(),
        recursive: None,
    }))
}
