//! Permutation SGD as published. What is wrong: nothing keeps the rate below 2/smoothness, without which neighbours can end anywhere;
//! released programs divide a short last batch by its own size; and the strongly convex listing counts passes where its proof counts
//! updates, so that its noise is up to m/(T k) times too small. The kernel works out how far apart neighbours truly end.

use super::super::Capabilities;
use super::printed::{
    psgd_sensitivity_constant, psgd_sensitivity_decreasing, psgd_sensitivity_square_root, psgd_sigma, scpsgd_sigma,
};
use super::{published_loss, split_budget};
use crate::error::Result;
use crate::method::end_noise::{Recipe, check, with_deviation};
use crate::method::settings::{Decay, settings};
use crate::method::{Method, Plan, Problem};
use privfit_kernel::Numerics;
use privfit_kernel::StepSchedule;

settings! {
    /// Settings of the published permutation SGD.
    pub(crate) struct PublishedPermutationSettings {
        /// passes over the data
        passes: u64 = 10, 1.0..=1e6;
        /// records to a batch
        batch: u64 = 50, 1.0..=1e9;
        /// length of a step
        learning_rate: f64 = 0.1, 1e-9..=1e9;
        /// how steps shrink; the names may be given as 0, 1, 2
        schedule: Decay = Decay::Constant, 0.0..=2.0;
        /// power of the number of rows in decreasing and square-root steps
        power: f64 = 0.5, 0.0..=1.0;
        /// whether a short last batch is divided by its own size, as in the released program
        own_size: bool = false, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const CONVEX: Method = Method {
    name: "published-p-psgd",
    alias: "printed P-PSGD",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; false where rate > 2/smoothness",
    source: "Iyengar et al. 2019, algorithm 2, after Wu et al. 2017",
    theorem: super::THEOREM,
    settings: PublishedPermutationSettings::SETTINGS,
    published: true,
    can: Capabilities { smooth: true, numerics: Numerics::Bounded, many_steps: true, ..Capabilities::PUBLISHED },
    plan: convex,
};

settings! {
    /// Settings of the published strongly convex permutation SGD.
    pub(crate) struct PublishedStrongSettings {
        /// passes over the data
        passes: u64 = 200, 1.0..=1e6;
        /// records to a batch
        batch: u64 = 50, 1.0..=1e9;
        /// ridge of the average loss
        lambda: f64 = 1e-3, 1e-9..=1e3;
        /// whether steps count updates, as the proof and the released program do
        global: bool = false, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const STRONG: Method = Method {
    name: "published-p-scpsgd",
    alias: "printed P-SCPSGD",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; false as printed, the counter being that of passes",
    source: "Iyengar et al. 2019, algorithm 3, after Wu et al. 2017",
    theorem: super::THEOREM,
    settings: PublishedStrongSettings::SETTINGS,
    published: true,
    can: Capabilities { smooth: true, numerics: Numerics::Bounded, many_steps: true, ..Capabilities::PUBLISHED },
    plan: strong,
};

fn convex(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (_, epsilon, delta) = split_budget(&problem, "published-p-psgd")?;
    let losses = check(&problem, "published-p-psgd")?;
    let settings = PublishedPermutationSettings::parse(&problem.settings)?;
    let rows = problem.rows.max(1) as f64;
    let passes = settings.passes as f64;
    let batch = (settings.batch as f64).min(rows);
    let (rate, power) = (settings.learning_rate, settings.power);
    // The smoothness that the publication takes: L^2 = 1.
    let (scale, offset) = (2.0, rows.powf(power));
    let (schedule, sensitivity) = match settings.schedule {
        Decay::Constant => (StepSchedule::Constant(rate), psgd_sensitivity_constant(passes, rate, 1.0, batch)),
        Decay::Decreasing => {
            (StepSchedule::Decreasing { scale, offset }, psgd_sensitivity_decreasing(passes as u64, 1.0, 1.0, rows, batch, power))
        }
        Decay::SquareRoot => (
            StepSchedule::SquareRoot { scale, offset },
            psgd_sensitivity_square_root(passes as u64, 1.0, 1.0, rows, batch, power),
        ),
    };
    let recipe = Recipe { ridge: 0.0, batch: Some(batch as usize), passes: passes as u64, schedule, own_size: settings.own_size };
    with_deviation(&problem, losses, recipe, psgd_sigma(sensitivity, epsilon, delta))
}

fn strong(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (_, epsilon, delta) = split_budget(&problem, "published-p-scpsgd")?;
    let losses = check(&problem, "published-p-scpsgd")?;
    let settings = PublishedStrongSettings::parse(&problem.settings)?;
    let rows = problem.rows.max(1) as f64;
    let passes = settings.passes;
    let batch = (settings.batch as f64).min(rows) as usize;
    let lambda = settings.lambda;
    let (cap, strength) = (1.0, lambda);
    let schedule =
        if settings.global { StepSchedule::Strong { cap, strength } } else { StepSchedule::StrongByPass { cap, strength } };
    let recipe = Recipe { ridge: lambda, batch: Some(batch), passes, schedule, own_size: false };
    with_deviation(&problem, losses, recipe, scpsgd_sigma(1.0, lambda, rows, epsilon, delta))
}
