//! Output perturbation by gradient descent with the printed sensitivities, 3 L T rate/n and 5 L (mu + smoothness)/(n mu smoothness),
//! and the printed Gaussian. Both are true and loose; the Gaussian is claimed for any epsilon and fails from 8.5 on at delta 1e-3.

use super::super::Capabilities;
use super::printed::{GdFacts, gd_sensitivity_convex, gd_sensitivity_strong, gd_sigma, gd_steps_convex, gd_steps_strong};
use super::{published_loss, split_budget};
use crate::error::Result;
use crate::method::end_noise::{Recipe, check, with_deviation};
use crate::method::output_gd::RADIUS;
use crate::method::settings::settings;
use crate::method::{Method, Plan, Problem};
use privfit_kernel::{Numerics, StepSchedule};

settings! {
    /// Settings of the published gradient descent.
    pub(crate) struct PublishedOutputGdSettings {
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e7;
        /// ridge of the average loss; 0 for the convex form
        mu: f64 = 0.0, 0.0..=1e3;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "published-output-gd",
    alias: "printed OPGD",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; holds with room below epsilon 8.5",
    source: "Zhang et al. 2017, algorithm 1",
    theorem: super::THEOREM,
    settings: PublishedOutputGdSettings::SETTINGS,
    published: true,
    can: Capabilities { smooth: true, numerics: Numerics::Bounded, ..Capabilities::PUBLISHED },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (_, epsilon, delta) = split_budget(&problem, "published-output-gd")?;
    let losses = check(&problem, "published-output-gd")?;
    let loss = &losses[0];
    let PublishedOutputGdSettings { steps, mu } = PublishedOutputGdSettings::parse(&problem.settings)?;
    let rows = problem.rows.max(1) as f64;
    let facts = GdFacts {
        rows,
        lipschitz: loss.lipschitz(),
        smoothness: loss.smoothness(),
        dimension: problem.features as f64,
        radius: RADIUS,
        epsilon,
        delta,
    };
    let usual = if mu > 0.0 { gd_steps_strong(&facts, mu) } else { gd_steps_convex(&facts) };
    let steps = steps.unwrap_or(usual) as f64;
    let rate = if mu > 0.0 { 1.0 / (mu + loss.smoothness()) } else { 1.0 / loss.smoothness() };
    let sensitivity = if mu > 0.0 {
        gd_sensitivity_strong(loss.lipschitz(), mu, loss.smoothness(), rows)
    } else {
        gd_sensitivity_convex(loss.lipschitz(), steps, rate, rows)
    };
    let recipe = Recipe { ridge: mu, batch: None, passes: steps as u64, schedule: StepSchedule::Constant(rate), own_size: false };
    with_deviation(&problem, losses, recipe, gd_sigma(sensitivity, epsilon, delta))
}
