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
//! *Needs.* Any loss, delta > 0. Time: `rate` x steps passes over the data.
//!
//! *Reference.* Bassily, Smith, Thakurta 2014; Abadi et al. 2016.

use super::{Capabilities, Point};
use super::{Method, Plan, Problem};
use crate::error::Result;

/// Row of the list.
pub const METHOD: Method = Method {
    name: "noisy-sgd",
    alias: "DP-SGD, P-SGD",
    needs: "any loss but mean, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies",
    source: "Bassily et al. 2014, Abadi et al. 2016; Poisson samples, numerical composition",
    theorem: "Each step takes every record with probability q, secretly and independently, and releases the sum of gradients \
              cut to length C with Gaussian noise sigma. Its privacy loss is that of N(0, sigma^2) against (1 - q) N(0, \
              sigma^2) + q N(C, sigma^2), in both directions (replace-one: the mixtures around -C and C); T steps are composed \
              numerically.",
    settings: &[
        ("sampling_rate", "probability that a record takes part in a step"),
        ("steps", "number of steps"),
        ("rate", "length of a step, for the average gradient"),
        ("momentum", "part of the last move that is kept, from 0 to 1"),
        ("clip", "largest gradient of a record"),
        ("ridge", "strength of a ridge outside of the clipped sum, in sum form"),
        super::offset::SETTING,
    ],
    published: false,
    can: Capabilities { point: Some(Point::Median), releases_gradients: true, many_steps: true, ..Capabilities::ANY },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    super::noisy_gd::plan(problem, sampling_rate(problem)?)
}

/// Probability that a record takes part in a step; none if all do.
pub(super) fn sampling_rate(problem: &Problem) -> Result<Option<f64>> {
    // Samples of some thousand records, but not less than one in fifty.
    let default = (4096.0 / problem.rows.max(1) as f64).clamp(0.02, 1.0);
    let rate = problem.settings.within("sampling_rate", default, 1e-6, 1.0)?;
    Ok(Some(rate).filter(|r| *r < 1.0))
}
