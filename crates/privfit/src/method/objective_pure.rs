//! Objective perturbation with pure privacy: the sum of losses plus a ridge is perturbed by Laplace noise, and the minimiser gets a
//! little more of it.
//!
//! *What it computes.* theta = argmin sum of losses + (ridge/2) |theta|^2 + <b, theta> with b Laplace in each coordinate, to a
//! certified gradient norm tau, plus Laplace noise for the 2 tau/ridge that the solver leaves between neighbours.
//!
//! *Privacy.* One record shifts b by at most L in L2, so by sqrt(d) L in L1 (replace-one twice that), and changes the determinant by a
//! factor of at most 1 + smoothness/ridge, under replace-one too: epsilon = sqrt(d) L/scale + ln(1 + smoothness/ridge), and the output
//! noise adds its own. The published form has b with a spherical gamma distribution, for which there is no exact sampler, charges the
//! determinant twice, and takes the minimiser to be exact. The solver's limits may fail with a probability below e^-800.
//!
//! *Accuracy.* The noise is about d L/epsilon long, sqrt(d) longer than with a delta, so give a delta if you can. The ridge balances
//! noise and shrinkage as in `objective`; the determinant takes at most a quarter of epsilon.
//!
//! *Needs.* A smooth loss, one row to a unit, the true number of rows (so not add-remove), delta = 0. Time: some ten passes.
//!
//! *Reference.* Chaudhuri, Monteleoni, Sarwate 2011, algorithm 2.

use super::Capabilities;
use super::objective::{calibrated, check};
use super::{Method, Plan, Problem};
use crate::error::{Error, Result};
use crate::method::settings::settings;

settings! {
    /// Settings of objective perturbation with pure privacy.
    pub(crate) struct ObjectivePureSettings {
        /// strength of the ridge, in sum form
        ridge: Option<f64> = None, 1e-12..=1e15;
        /// expected length of the weights (sets the ridge)
        radius: Option<f64> = None, 1e-12..=1e15;
        /// whether scores of a number begin at its private mean, not at the middle of its bounds
        offset: bool = true, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "objective-pure",
    alias: "CMS11",
    needs: "smooth loss, one row to a unit, delta = 0",
    guarantee: "pure epsilon, zero-out and replace-one",
    source: "Chaudhuri, Monteleoni, Sarwate 2011, with a certified solver and exact noise",
    theorem: "Let theta minimise the sum of losses + (ridge/2)|theta|^2 + <b, theta>, b with independent Laplace coordinates. \
              One record shifts b by at most sqrt(d) L in L1 (replace-one twice that) and changes the determinant by a factor \
              of at most 1 + smoothness/ridge: epsilon = sqrt(d) L/scale + ln(1 + smoothness/ridge), plus that of the output \
              noise, which covers the solver's error.",
    settings: ObjectivePureSettings::SETTINGS,
    published: false,
    can: Capabilities { pure_by_default: true, pure_only: true, ..Capabilities::BY_THEOREM },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    if problem.target.delta > 0.0 {
        return Err(Error::misuse("objective-pure has no use for a delta: give ")
            .give("delta", "0")
            .text(", or ")
            .give("method", "objective")
            .text(", which is better"));
    }
    let losses = check(problem, "objective-pure")?;
    let loss = losses[0].clone();
    let rank = f64::from(loss.rank());
    let (n, d) = (problem.rows.max(1) as f64, (problem.features * loss.outputs()) as f64);
    let least = loss.trace() / rank / (problem.target.epsilon / (4.0 * rank * losses.len() as f64)).exp_m1();
    let settings = ObjectivePureSettings::parse(&problem.settings)?;
    let ridge_of = |nm: f64| {
        let length = (2.0 * d).sqrt() * nm * loss.lipschitz() * d.sqrt();
        let radius = settings.radius.unwrap_or(20.0 * (n / (50.0 * length)).sqrt().min(1.0));
        settings.ridge.unwrap_or((length / radius).max(least))
    };
    calibrated(problem, losses, settings.offset, true, ridge_of)
}
