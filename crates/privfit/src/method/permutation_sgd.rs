//! Permutation SGD: passes over the records in one random order, batch by batch, without noise; then noise on the answer.
//!
//! *What it computes.* w <- w - rate_t (gradient sum of a batch / batch size + mu w); the answer is the last w plus Gaussian noise, or
//! Laplace noise for pure privacy. Steps: constant, decreasing 2/(smoothness (t + n^power)), square-root
//! 2/(smoothness (sqrt t + n^power)); with a ridge min(1/(smoothness + mu), 1/(mu t)). t counts updates over all passes.
//!
//! *Privacy.* A record takes part in one batch of each pass, and adds rate_t L / batch there; every other step moves neighbours no
//! further apart, and nearer by 1 - rate_t mu with a ridge. The kernel adds that up for the worst batch. A short last batch is divided
//! by the size of a full one. Published forms leave out that rate <= 2/smoothness, divide by the true size, or count passes in place
//! of updates, each of which breaks the guarantee; see `published/permutation.rs`. The order is drawn without looking at
//! data and need not stay secret: there is no amplification in the claim.
//!
//! *Accuracy.* The distance of neighbours depends on rate x updates only, as for full gradients; small batches make a pass go further.
//!
//! *Needs.* A smooth loss, one row to a unit, the true number of rows (so not add-remove). Time: `passes` over the data, one core.
//!
//! *Reference.* Wu, Li, Kumar, Chaudhuri, Jha, Naughton 2017; as P-PSGD and P-SCPSGD in Iyengar et al. 2019.

use super::Capabilities;
use super::end_noise::{Recipe, calibrated, check};
use super::output_gd::balanced_time;
use super::{Method, Plan, Problem};
use crate::error::{Error, Result};
use crate::method::settings::{Decay, settings};
use privfit_kernel::StepSchedule;

settings! {
    /// Settings of permutation SGD.
    pub(crate) struct PermutationSgdSettings {
        /// passes over the data
        passes: Option<u64> = None, 1.0..=1e6;
        /// records to a batch
        batch: u64 = 50, 1.0..=1e9;
        /// length of a step, for constant steps
        learning_rate: Option<f64> = None, 1e-12..=1e9;
        /// how steps shrink; the names may be given as 0, 1, 2
        schedule: Decay = Decay::Constant, 0.0..=2.0;
        /// power of the number of rows in decreasing and square-root steps
        power: f64 = 0.5, 0.0..=1.0;
        /// strength of the ridge, in sum form: takes the strongly convex steps
        ridge: f64 = 0.0, 0.0..=1e12;
    }
}

/// Row of the list.
pub const METHOD: Method = Method {
    name: "permutation-sgd",
    alias: "P-PSGD, P-SCPSGD, PSGD",
    needs: "smooth loss, one row to a unit",
    guarantee: "pure (delta = 0) or (epsilon, delta), zero-out and replace-one",
    source: "Wu et al. 2017, stability worked out step by step",
    theorem: "A record takes part in one batch of each pass and adds rate_t L/batch there (replace-one twice that); every \
              other step moves neighbours no further apart, and nearer by 1 - rate_t mu with a ridge. The largest sum over the \
              position of that batch bounds their distance; noise calibrated to it is added to the last iterate. No \
              amplification by the order is claimed.",
    settings: PermutationSgdSettings::SETTINGS,
    published: false,
    can: Capabilities { affine: true, noise_at_the_end: true, many_steps: true, ..Capabilities::BY_THEOREM },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let losses = check(problem, "permutation-sgd")?;
    let loss = &losses[0];
    let settings = PermutationSgdSettings::parse(&problem.settings)?;
    let n = problem.rows.max(1) as f64;
    let mu = settings.ridge / n;
    let batch = (settings.batch as f64).min(n);
    let updates = (n / batch).ceil();
    let longest = 2.0 / loss.smoothness();
    let time = balanced_time(problem, loss)?;
    // Ten passes, or as many as steps of half the longest need for the same way.
    let passes = (time / (updates * 0.5 * longest)).ceil().clamp(10.0, 1000.0);
    let passes = settings.passes.map_or(passes, |given| given as f64);
    let rate = settings.learning_rate.unwrap_or((time / (updates * passes)).min(0.5 * longest));
    if rate > longest {
        return Err(Error::misuse(format!(
            "learning_rate is {rate}: above {longest} neighbours move apart in every step; give at most that"
        )));
    }
    let scale = 2.0 / loss.smoothness();
    let offset = n.powf(settings.power);
    let schedule = match settings.schedule {
        _ if mu > 0.0 => StepSchedule::Strong { cap: 1.0 / (loss.smoothness() + mu), strength: mu },
        Decay::Constant => StepSchedule::Constant(rate),
        Decay::Decreasing => StepSchedule::Decreasing { scale, offset },
        Decay::SquareRoot => StepSchedule::SquareRoot { scale, offset },
    };
    let recipe = Recipe { ridge: mu, batch: Some(batch as usize), passes: passes as u64, schedule, own_size: false };
    calibrated(problem, losses, recipe)
}
