//! Permutation SGD as published. What is wrong: nothing keeps the rate below 2/smoothness, without which neighbours can end anywhere;
//! released programs divide a short last batch by its own size; and the strongly convex listing counts passes where its proof counts
//! updates, so that its noise is up to m/(T k) times too small. The kernel works out how far apart neighbours truly end.

use super::super::Capabilities;
use super::printed::{
    psgd_sensitivity_constant, psgd_sensitivity_decreasing, psgd_sensitivity_square_root, psgd_sigma, scpsgd_sigma,
};
use super::{plain, shares};
use crate::error::Result;
use crate::method::end_noise::{Recipe, check, with_deviation};
use crate::method::{Method, Plan, Problem};
use privfit_kernel::Numerics;
use privfit_kernel::StepSchedule;

/// Row of the list.
pub const CONVEX: Method = Method {
    name: "published-p-psgd",
    alias: "printed P-PSGD",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; false where rate > 2/smoothness",
    source: "Iyengar et al. 2019, algorithm 2, after Wu et al. 2017",
    theorem: super::THEOREM,
    settings: &[
        ("passes", "passes over the data"),
        ("batch", "records to a batch"),
        ("rate", "length of a step"),
        ("schedule", "0 constant, 1 decreasing, 2 square-root steps"),
        ("power", "power of the number of rows in the last two"),
        ("own_size", "1: a short last batch is divided by its own size, as in the released program"),
    ],
    published: true,
    can: Capabilities { smooth: true, numerics: Numerics::Bounded, many_steps: true, ..Capabilities::PUBLISHED },
    plan: convex,
};

/// Row of the list.
pub const STRONG: Method = Method {
    name: "published-p-scpsgd",
    alias: "printed P-SCPSGD",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; false as printed, the counter being that of passes",
    source: "Iyengar et al. 2019, algorithm 3, after Wu et al. 2017",
    theorem: super::THEOREM,
    settings: &[
        ("passes", "passes over the data"),
        ("batch", "records to a batch"),
        ("lambda", "ridge of the average loss"),
        ("global", "1: steps count updates, as the proof and the released program do"),
    ],
    published: true,
    can: Capabilities { smooth: true, numerics: Numerics::Bounded, many_steps: true, ..Capabilities::PUBLISHED },
    plan: strong,
};

fn convex(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = plain(problem);
    let (_, epsilon, delta) = shares(&problem, "published-p-psgd")?;
    let losses = check(&problem, "published-p-psgd")?;
    let settings = &problem.settings;
    let rows = problem.rows.max(1) as f64;
    let passes = settings.within("passes", 10.0, 1.0, 1e6)?.round();
    let batch = settings.within("batch", 50.0, 1.0, 1e9)?.round().min(rows);
    let rate = settings.within("rate", 0.1, 1e-9, 1e9)?;
    let power = settings.within("power", 0.5, 0.0, 1.0)?;
    // The smoothness that the publication takes: L^2 = 1.
    let (scale, offset) = (2.0, rows.powf(power));
    let (schedule, sensitivity) = match settings.within("schedule", 0.0, 0.0, 2.0)?.round() as u32 {
        0 => (StepSchedule::Constant(rate), psgd_sensitivity_constant(passes, rate, 1.0, batch)),
        1 => {
            (StepSchedule::Decreasing { scale, offset }, psgd_sensitivity_decreasing(passes as u64, 1.0, 1.0, rows, batch, power))
        }
        _ => (
            StepSchedule::SquareRoot { scale, offset },
            psgd_sensitivity_square_root(passes as u64, 1.0, 1.0, rows, batch, power),
        ),
    };
    let own_size = settings.within("own_size", 0.0, 0.0, 1.0)? > 0.5;
    let recipe = Recipe { ridge: 0.0, batch: Some(batch as usize), passes: passes as u64, schedule, own_size };
    with_deviation(&problem, losses, recipe, psgd_sigma(sensitivity, epsilon, delta))
}

fn strong(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = plain(problem);
    let (_, epsilon, delta) = shares(&problem, "published-p-scpsgd")?;
    let losses = check(&problem, "published-p-scpsgd")?;
    let settings = &problem.settings;
    let rows = problem.rows.max(1) as f64;
    let passes = settings.within("passes", 200.0, 1.0, 1e6)?.round() as u64;
    let batch = settings.within("batch", 50.0, 1.0, 1e9)?.round().min(rows) as usize;
    let lambda = settings.within("lambda", 1e-3, 1e-9, 1e3)?;
    let (cap, strength) = (1.0, lambda);
    let global = settings.within("global", 0.0, 0.0, 1.0)? > 0.5;
    let schedule = if global { StepSchedule::Strong { cap, strength } } else { StepSchedule::StrongByPass { cap, strength } };
    let recipe = Recipe { ridge: lambda, batch: Some(batch), passes, schedule, own_size: false };
    with_deviation(&problem, losses, recipe, scpsgd_sigma(1.0, lambda, rows, epsilon, delta))
}
