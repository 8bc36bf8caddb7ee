//! Noisy gradient descent on random samples of the records.
//!
//! *What it computes.* The steps of `noisy-gd`, each on a fresh Poisson sample: every record takes part with the same probability,
//! by a coin of its own. Sums are divided by the expected size of a sample, a public number.
//!
//! *Privacy.* Clipping as in `noisy-gd`; a record that may not even take part is protected better, and the accountant composes the
//! exact privacy loss of sampled Gaussians (`account/pld.rs`). The samples stay secret. A published form samples with replacement, or
//! shuffles, and claims the same amplification; that is not proven and not done here.
//!
//! *Accuracy.* Full batches are as good or better for linear models at the same budget; samples are for data where a pass is dear.
//!
//! *Smoothing.* With `smoothing` noisy averages are smoothed on a ring of the weights before they are steps (`direction.rs`): DP-LSSGD. It is an invertible function of what was released, so that
//! the guarantee is that of plain steps, neither more nor less.
//!
//! *Needs.* Any loss, delta > 0. Time: `rate` x steps passes over the data.
//!
//! *Reference.* Bassily, Smith, Thakurta 2014; Abadi et al. 2016.

use super::noisy_gd::NoisyGdSettings;
use super::{Capabilities, Point};
use super::{Method, Plan, Problem};
use crate::error::Result;
use crate::method::settings::settings;

settings! {
    /// Settings of noisy SGD.
    pub(crate) struct NoisySgdSettings {
        /// probability that a record takes part in a step
        sampling_rate: Option<f64> = None, 1e-6..=1.0;
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e7;
        /// length of a step, for the average gradient
        learning_rate: Option<f64> = None, 1e-9..=1e9;
        /// part of the last move that is kept; 0.9 by default, 0 for a median
        momentum: Option<f64> = None, 0.0..=0.999;
        /// largest gradient of a record
        clip: Option<f64> = None, 1e-6..=1e6;
        /// strength of a ridge outside of the clipped sum, in sum form
        ridge: f64 = 0.0, 0.0..=1e12;
        /// whether scores of a number begin at its private mean, not at the middle of its bounds
        offset: bool = true, 0.0..=1.0;
        /// strength of a nonconvex regulariser of the average loss, the sum of w^2 / (1 + w^2)
        nonconvex: f64 = 0.0, 0.0..=1e6;
        /// strength of Laplacian smoothing of noisy gradients
        smoothing: f64 = 0.0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "noisy-sgd",
    alias: "DP-SGD, P-SGD, DP-LSSGD",
    needs: "any loss but mean, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies",
    source: "Bassily et al. 2014, Abadi et al. 2016; Poisson samples, numerical composition",
    theorem: "Each step takes every record with probability q, secretly and independently, and releases the sum of gradients \
              clipped to length C with Gaussian noise sigma. Its privacy loss is that of N(0, sigma^2) against (1 - q) N(0, \
              sigma^2) + q N(C, sigma^2), in both directions (replace-one: the mixtures around -C and C); T steps are composed \
              numerically.",
    settings: NoisySgdSettings::SETTINGS,
    published: false,
    can: Capabilities { point: Some(Point::Median), releases_gradients: true, many_steps: true, ..Capabilities::ANY },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let NoisySgdSettings { sampling_rate, steps, learning_rate, momentum, clip, ridge, offset, nonconvex, smoothing } =
        NoisySgdSettings::parse(&problem.settings)?;
    let settings = NoisyGdSettings { steps, learning_rate, momentum, clip, ridge, offset, nonconvex, smoothing };
    super::noisy_gd::plan(problem, settings, sampled(problem, sampling_rate))
}

/// Probability that a record takes part in a step; none if all do.
pub(super) fn sampled(problem: &Problem, given: Option<f64>) -> Option<f64> {
    // Samples of some thousand records, but not less than one in fifty.
    let default = (4096.0 / problem.rows.max(1) as f64).clamp(0.02, 1.0);
    Some(given.unwrap_or(default)).filter(|rate| *rate < 1.0)
}
