//! What is computed from records inside of a run.

pub(crate) mod block_gradient;
pub(crate) mod contribution;
pub(crate) mod descent;
pub(crate) mod elastic;
pub(crate) mod gradient;
pub(crate) mod lazy_scores;
pub(crate) mod loss;
pub(crate) mod minimise;
pub(crate) mod operator;
pub(crate) mod precondition;

#[cfg(test)]
mod descent_tests;
#[cfg(test)]
mod lazy_scores_tests;
#[cfg(test)]
mod tilt_tests;
