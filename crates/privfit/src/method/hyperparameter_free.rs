//! Objective perturbation with the ridge rule of H-F AMP: nothing to set, nothing taken from the data.
//!
//! *What it computes.* As `objective`, with the ridge that leaves a fixed share of epsilon to the determinant: with
//! e1 = 0.99 epsilon and e3 = max(min(0.887 + 0.019/e1^0.373, 0.99), 1 - 0.99/e1) e1 (0.97 in place of the minimum when there are at
//! least as many features as rows), ridge = trace / (e^(e1 - e3) - 1), the share divided among scores.
//!
//! *Privacy.* That of `objective`: noise and cost come from the repaired curve, the rule only chooses the ridge. The published form
//! pays for the determinant twice, and for the output noise half of what it should; see `published/amp.rs`.
//!
//! *Accuracy.* The rule ignores how much noise there is, so that it shrinks too much with much data and too little with little;
//! `objective` balances both.
//!
//! *Needs.* As `objective`.
//!
//! *Reference.* Iyengar et al. 2019, section on hyperparameter-free AMP.

use super::Capabilities;
use super::objective::{calibrated, check};
use super::published::printed::{Regime, amp_split};
use super::{Method, Plan, Problem};
use crate::error::Result;
use crate::method::settings::settings;

settings! {
    /// Settings of hyperparameter-free objective perturbation.
    pub(crate) struct HyperparameterFreeSettings {
        /// whether scores of a number begin at its private mean, not at the middle of its bounds
        offset: bool = true, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "hyperparameter-free",
    alias: "H-F AMP",
    needs: "smooth loss, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "Iyengar et al. 2019, the rule for the ridge on the repaired objective",
    theorem: "As for objective perturbation; the rule chooses the ridge from public facts only. One record shifts the linear \
              term b by at most L (replace-one 2 L) and the log determinant by at most k ln(1 + trace/(k ridge)), k and trace \
              being rank and trace of its curvature; output noise covers the solver's error and is charged as a release of its \
              own.",
    settings: HyperparameterFreeSettings::SETTINGS,
    published: false,
    can: Capabilities::BY_THEOREM,
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("hyperparameter-free")?;
    let losses = check(problem, "hyperparameter-free")?;
    let regime = if problem.features as u64 >= problem.rows { Regime::High } else { Regime::Low };
    let split = amp_split(problem.target.epsilon, problem.target.delta, problem.rows.max(1) as f64, regime);
    let rank = f64::from(losses[0].rank());
    let share = (split.epsilon1 - split.epsilon3) / (rank * losses.len() as f64);
    let ridge = losses[0].trace() / rank / share.exp_m1();
    let settings = HyperparameterFreeSettings::parse(&problem.settings)?;
    calibrated(problem, losses, settings.offset, false, move |_| ridge)
}
