//! Exact noise and exact choices.

pub(crate) mod bucket_sampler;
pub(crate) mod exact;
pub(crate) mod sampler;
pub(crate) mod select;

#[cfg(test)]
pub(crate) mod bucket_sampler_tests;
