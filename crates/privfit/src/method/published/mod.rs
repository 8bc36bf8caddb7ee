//! Published forms with their printed constants, for comparison only. A plan here has the noise that its authors printed, and an
//! event that says what that noise truly guarantees, or that it guarantees nothing; it never claims the epsilon it was asked for.
//! Several classes are one against the rest, epsilon and delta divided evenly, as published. Rows have norm 1, so L = 1.

pub mod amp;
pub(crate) mod frank_wolfe;
pub(crate) mod gradient_output;
pub(crate) mod knowledge_transfer;
pub(crate) mod notes_sgd;
pub mod permutation;
pub mod printed;
pub(crate) mod recursive;
pub mod rounds;
pub(crate) mod sampled_sgd;
pub(crate) mod smoothing;

use super::{Method, Problem};
use crate::error::{Error, Result};
use privfit_kernel::Loss;

/// What a certificate says in the place of a theorem.
const THEOREM: &str = "A published form with its printed noise, run for comparison: what is claimed follows from the event, that is, from the \
                       noise that was drawn, and not from the publication.";

/// Every published form.
pub const ALL: &[Method] = &[
    amp::AMP,
    amp::WITHOUT_SETTINGS,
    amp::KST12,
    permutation::CONVEX,
    permutation::STRONG,
    sampled_sgd::METHOD,
    frank_wolfe::METHOD,
    gradient_output::METHOD,
    rounds::METHOD,
    notes_sgd::METHOD,
    knowledge_transfer::METHOD,
    knowledge_transfer::BASELINE,
    recursive::METHOD,
    recursive::STORM,
    smoothing::METHOD,
];

/// The problem with the losses of the publications: derivatives not clipped, kinks as sharp as theirs.
pub(crate) fn published_loss(problem: &Problem) -> Problem {
    let mut plain = problem.clone();
    if let (Some(value), Some(number)) = (problem.loss.published, problem.loss.parameters.first()) {
        plain.settings.0.entry(number.name.into()).or_insert(value);
    }
    plain
}

/// Losses, and the epsilon and delta of each head; several classes at once were not published.
pub(crate) fn split_budget(problem: &Problem, method: &str) -> Result<(Vec<Loss>, f64, f64)> {
    problem.needs_delta(method)?;
    if problem.loss.multiclass || problem.rows_per_unit > 1 {
        return Err(Error::misuse(format!("{method} has one score and one row to a unit: use "))
            .give("loss", "logistic")
            .text(" and unit = \"row\""));
    }
    let losses = super::head_losses(problem)?;
    let heads = losses.len() as f64;
    Ok((losses, problem.target.epsilon / heads, problem.target.delta / heads))
}
