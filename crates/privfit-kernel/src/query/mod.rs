//! What is computed from records inside of a run: values that [`Run::execute`](crate::Run::execute) executes.

pub(crate) mod block_gradient;
pub(crate) mod blocks;
pub(crate) mod cell_counts;
pub(crate) mod cell_features;
pub(crate) mod cell_gradient;
pub(crate) mod cell_pairs;
pub(crate) mod cell_pass;
pub(crate) mod cell_scores;
pub(crate) mod cell_trees;
pub(crate) mod choice;
pub(crate) mod columns;
pub(crate) mod command;
pub(crate) mod confident;
pub(crate) mod contribution;
pub(crate) mod descent;
pub(crate) mod elastic;
pub(crate) mod ensemble;
pub(crate) mod gradient;
pub(crate) mod loss_scores;
pub(crate) mod minimise;
pub(crate) mod precondition;
pub(crate) mod problem;
pub(crate) mod projection;
pub(crate) mod recursive_gradient;
pub(crate) mod solver;
pub(crate) mod threshold;
pub(crate) mod unit_state;
pub(crate) mod vertices;

#[cfg(test)]
mod cell_tests;
#[cfg(test)]
mod descent_tests;
#[cfg(test)]
mod perturbed_tests;
#[cfg(test)]
mod vertices_tests;
