//! Objective perturbation as published: AMP, AMP without settings, and the form of Kifer, Smith and Thakurta.
//!
//! What is wrong: the output noise covers half of what the solver leaves, the smoothness is taken to be 1 for every loss (a quarter is
//! right for the logistic one, five for the Huber machine), the determinant is paid for twice, and the last form was proved
//! for a record added or removed, not replaced. The curve of `objective` says what the printed numbers are worth.

use super::super::Capabilities;
use super::printed::{Amp, AmpSplit, Regime, amp, amp_split, kst12};
use super::{published_loss, split_budget};
use crate::error::{Error, Result};
use crate::method::objective::{OUTPUT_SHARE, check, perturbed};
use crate::method::settings::settings;
use crate::method::{Method, Plan, Problem};
use privfit_kernel::LinearTerm;
use privfit_kernel::Numerics;

settings! {
    /// Settings of AMP.
    pub(crate) struct AmpSettings {
        /// part of epsilon and delta for the output noise
        output_share: f64 = 0.01, 1e-4..=0.9;
        /// part of the rest for the noise of the linear term
        noise_share: f64 = 0.95, 0.01..=0.999;
    }
}

/// Row of the list.
pub const AMP: Method = Method {
    name: "published-amp",
    alias: "printed AMP",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; holds for linear models, by another proof",
    source: "Iyengar et al. 2019, algorithm 1",
    theorem: super::THEOREM,
    settings: AmpSettings::SETTINGS,
    published: true,
    can: Capabilities { smooth: true, numerics: Numerics::Bounded, ..Capabilities::PUBLISHED },
    plan: |problem| {
        let problem = published_loss(problem);
        let (_, epsilon, delta) = split_budget(&problem, "published-amp")?;
        let AmpSettings { output_share: f, noise_share: f1 } = AmpSettings::parse(&problem.settings)?;
        let epsilon1 = (1.0 - f) * epsilon;
        let rows = problem.rows.max(2) as f64;
        let split = AmpSplit {
            epsilon1,
            epsilon2: f * epsilon,
            // The algorithm wants less than 1 between the two.
            epsilon3: f1.max(1.0 - 0.99 / epsilon1) * epsilon1,
            delta1: (1.0 - f) * delta,
            delta2: f * delta,
            gamma: 1.0 / (rows * rows),
        };
        run_printed(&problem, amp(split, rows, 1.0, 1.0, 2.0))
    },
};

/// Row of the list.
pub(crate) const WITHOUT_SETTINGS: Method = Method {
    name: "published-hf-amp",
    alias: "printed H-F AMP",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; holds for linear models, by another proof",
    source: "Iyengar et al. 2019, hyperparameter-free AMP",
    theorem: super::THEOREM,
    settings: &[],
    published: true,
    can: Capabilities { smooth: true, numerics: Numerics::Bounded, ..Capabilities::PUBLISHED },
    plan: |problem| {
        let problem = published_loss(problem);
        let (_, epsilon, delta) = split_budget(&problem, "published-hf-amp")?;
        let regime = if problem.features as u64 >= problem.rows { Regime::High } else { Regime::Low };
        let rows = problem.rows.max(2) as f64;
        run_printed(&problem, amp(amp_split(epsilon, delta, rows, regime), rows, 1.0, 1.0, 2.0))
    },
};

/// Row of the list.
pub const KST12: Method = Method {
    name: "published-kst12",
    alias: "KST12",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta); proved for a record added or zeroed out, not replaced",
    source: "Kifer, Smith, Thakurta 2012",
    theorem: super::THEOREM,
    settings: &[],
    published: true,
    can: Capabilities { smooth: true, numerics: Numerics::Bounded, ..Capabilities::PUBLISHED },
    plan: |problem| {
        let problem = published_loss(problem);
        let (losses, epsilon, delta) = split_budget(&problem, "published-kst12")?;
        check(&problem, "published-kst12")?;
        let printed = kst12(epsilon, delta, losses[0].lipschitz(), losses[0].smoothness());
        let linear = LinearTerm::gaussian(printed.sigma / losses[0].lipschitz());
        // It takes the minimiser to be exact; ours is so to a tolerance, whose noise adds a 800th.
        let multiplier = linear.noise_multiplier / OUTPUT_SHARE;
        Ok(Box::new(perturbed(&problem, &losses, linear, printed.ridge, 0.0, |_| multiplier)?))
    },
};

fn run_printed(problem: &Problem, printed: Amp) -> Result<Box<dyn Plan>> {
    let losses = check(problem, "published AMP")?;
    if !(printed.ridge > 0.0 && printed.ridge.is_finite()) {
        return Err(Error::misuse("noise_share leaves nothing for the determinant: give less"));
    }
    let linear = LinearTerm::gaussian(printed.linear_sigma / losses[0].lipschitz());
    // Where 1/m^2 is finer than doubles can certify, gamma is what they can; the printed noise is for any gamma.
    let rows = problem.rows.max(2) as f64;
    let least = problem.size().limits(&losses[0], printed.ridge, Some(linear)).0 * 1.02 / rows;
    let split = AmpSplit { gamma: printed.split.gamma.max(least), ..printed.split };
    let printed = amp(split, rows, 1.0, 1.0, 2.0);
    let tolerance = split.gamma * rows;
    Ok(Box::new(perturbed(problem, &losses, linear, printed.ridge, tolerance, |apart| printed.output_sigma / apart)?))
}
