//! Audits of a run: what it released, and how far values move between two worlds.

pub(crate) mod transcript;

#[cfg(test)]
mod transcript_tests;
