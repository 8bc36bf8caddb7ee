//! Exact noise and exact choices.

pub(crate) mod exact;
pub(crate) mod ladder;
pub(crate) mod sampler;
pub(crate) mod select;

#[cfg(test)]
pub(crate) mod ladder_tests;
