//! Output perturbation by gradient descent: a fixed number of full steps without noise, then noise on the answer.
//!
//! *What it computes.* w <- w - rate (average gradient + mu w) from 0, so many times, plus Gaussian noise, or Laplace noise for pure
//! privacy; mu = ridge / n. Without a ridge it is the convex form, with one the strongly convex form.
//!
//! *Privacy.* In a step, what neighbours share maps both without pulling them apart (rate at most 2/smoothness; with a ridge at most
//! 2/(2 mu + smoothness), and then it shrinks their distance by 1 - rate mu), and one record adds rate L/n. So after T steps they are
//! at most rate T L/n apart, or (L/(n mu)) (1 - (1 - rate mu)^T); replace-one twice that; float errors come on top. Published
//! constants are 3 L T rate/n and 5 L (mu + smoothness)/(n mu smoothness) under replace-one: 1.5 and 2.5 (1 + mu/smoothness) times as
//! large, and the Gaussian that goes with them is half as much again; see `published/gradient_output.rs`. The regulariser cancels,
//! so its derivative has no part in L.
//!
//! *Accuracy.* Convex: steps up to the time where the shrinking error R^2/(2 T rate) meets that of the growing noise. Strongly
//! convex: the noise stops growing, and the steps go on until the error of the descent is below it. `objective` is more accurate.
//!
//! *Needs.* A smooth loss, one row to a unit, the true number of rows (so not add-remove). Time: a pass over the data for each step.
//!
//! *Reference.* Zhang, Zheng, Mou, Wang 2017, algorithm 1.

use super::Capabilities;
use super::end_noise::{Recipe, calibrated, check};
use super::{Method, Plan, Problem};
use crate::error::{Error, Result};
use crate::method::settings::settings;
use privfit_kernel::{Loss, StepSchedule};

settings! {
    /// Settings of output perturbation by gradient descent.
    pub(crate) struct OutputGdSettings {
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e7;
        /// length of a step, for the average gradient
        learning_rate: Option<f64> = None, 1e-9..=1e9;
        /// strength of the ridge, in sum form; 0 for the convex form
        ridge: Option<f64> = None, 0.0..=1e12;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "output-gd",
    alias: "OPGD",
    needs: "smooth loss, one row to a unit",
    guarantee: "pure (delta = 0) or (epsilon, delta), zero-out and replace-one",
    source: "Zhang et al. 2017, tight constants",
    theorem: "In a gradient step of rate at most 2/smoothness what neighbours share moves them no further apart, and one \
              record adds rate L/n (replace-one twice that): after T steps they are at most rate T L/n apart, or (L/(n mu))(1 \
              - (1 - rate mu)^T) with a ridge mu, plus float errors. Noise calibrated to that distance is added to the last \
              iterate.",
    settings: OutputGdSettings::SETTINGS,
    published: false,
    can: Capabilities { affine: true, noise_at_the_end: true, ..Capabilities::BY_THEOREM },
    plan,
};

/// Expected length of the weights.
pub(super) const RADIUS: f64 = 10.0;

/// Deviation of noise over the distance of neighbours, before any plan: for defaults only.
pub(super) fn rough_noise(problem: &Problem, loss: &Loss) -> Result<f64> {
    if problem.target.delta > 0.0 {
        return problem.single_noise();
    }
    let d = (problem.features * loss.outputs()) as f64;
    Ok((2.0 * d).sqrt() / problem.target.epsilon)
}

/// The ridge, in sum form, at which noise and shrinkage cost the same.
pub(super) fn balanced_ridge(problem: &Problem, loss: &Loss) -> Result<f64> {
    let deviation = rough_noise(problem, loss)? * loss.lipschitz();
    let n = problem.rows.max(1) as f64;
    Ok((0.5 * n * deviation * deviation / (RADIUS * RADIUS)).cbrt().max(1e-3))
}

/// The time of a convex descent, steps times rate, at which noise and distance to the minimum cost the same.
pub(super) fn balanced_time(problem: &Problem, loss: &Loss) -> Result<f64> {
    let n = problem.rows.max(1) as f64;
    let noise = rough_noise(problem, loss)? * loss.lipschitz();
    // Noise of deviation s on every weight costs at most smoothness s^2 / 2 of the average loss, since rows have norm 1.
    Ok((RADIUS * RADIUS * n * n / (2.0 * loss.smoothness() * noise * noise)).cbrt())
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let losses = check(problem, "output-gd")?;
    let loss = &losses[0];
    let settings = OutputGdSettings::parse(&problem.settings)?;
    let n = problem.rows.max(1) as f64;
    let mu = settings.ridge.map_or_else(|| balanced_ridge(problem, loss), Ok)? / n;
    let longest = 2.0 / (2.0 * mu + loss.smoothness());
    let rate = settings.learning_rate.unwrap_or(if mu > 0.0 { longest } else { 0.5 * longest });
    if rate > longest * (1.0 + 1e-12) {
        return Err(Error::misuse(format!(
            "learning_rate is {rate}: above {longest} neighbours move apart in every step; give at most that"
        )));
    }
    let steps = if mu > 0.0 {
        let d = (problem.features * loss.outputs()) as f64;
        let noise = rough_noise(problem, loss)? * loss.lipschitz() / (n * mu) * d.sqrt();
        ((10.0 * RADIUS / noise).max(2.0).ln() / (rate * mu)).ceil()
    } else {
        (balanced_time(problem, loss)? / rate).ceil()
    };
    let steps = settings.steps.unwrap_or(steps.clamp(1.0, 20_000.0) as u64);
    calibrated(
        problem,
        losses,
        Recipe { ridge: mu, batch: None, passes: steps, schedule: StepSchedule::Constant(rate), own_size: false },
    )
}
