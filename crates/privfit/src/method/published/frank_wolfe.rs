//! Private Frank-Wolfe as published: Laplace noise for the scores, twice what they need, and a composition that overshoots by
//! epsilon^2/(4 ln(1/delta)). Its clipping holds from above only; here cells are clipped on both sides. The choice is
//! made with Gumbel noise of the printed scale, which has the same range of losses and a little less spread.

use super::super::Capabilities;
use super::printed::{frank_wolfe_scale, frank_wolfe_step};
use super::{published_loss, split_budget};
use crate::error::Result;
use crate::method::frank_wolfe::{FrankWolfe, polytope};
use crate::method::settings::settings;
use crate::method::{Method, Plan, Problem};
use privfit_kernel::Exponential;

settings! {
    /// Settings of the published Frank-Wolfe.
    pub(crate) struct PublishedFrankWolfeSettings {
        /// number of steps
        steps: u64 = 50, 1.0..=1e6;
        /// cells are clipped at this size: L of the publication
        cap: f64 = 1.0, 1e-4..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "published-p-fw",
    alias: "printed P-FW",
    needs: "any loss, L1 ball or simplex, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; overshoots a little",
    source: "Iyengar et al. 2019, algorithm 5, after Talwar et al. 2015",
    theorem: super::THEOREM,
    settings: PublishedFrankWolfeSettings::SETTINGS,
    published: true,
    can: Capabilities { in_l1_ball: true, many_steps: true, ..Capabilities::PUBLISHED },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (losses, epsilon, delta) = split_budget(&problem, "published-p-fw")?;
    let (vertex, simplex) = polytope(&problem, None)?;
    let PublishedFrankWolfeSettings { steps, cap } = PublishedFrankWolfeSettings::parse(&problem.settings)?;
    let rows = problem.rows.max(1) as f64;
    // Of the average loss on a vertex of length `vertex`; ours is for one coordinate of the sum.
    let scale = frank_wolfe_scale(cap, vertex, steps as f64, rows, epsilon, delta) * rows / vertex;
    let lipschitz = losses[0].lipschitz();
    let mechanism = Exponential::for_gradients(lipschitz, 1.0, cap, scale / (cap * lipschitz))?;
    let event = mechanism.event().repeated(steps * losses.len() as u64);
    let features = problem.features;
    let part = frank_wolfe_step;
    Ok(Box::new(FrankWolfe {
        losses,
        mechanism,
        steps,
        vertex,
        simplex,
        part,
        cap,
        event,
        features,
        keep: false,
        kept: usize::MAX,
    }))
}
