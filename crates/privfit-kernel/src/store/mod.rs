//! Rows, and how they are kept.

pub(crate) mod compressed;
pub(crate) mod data;
pub(crate) mod quantise_row;
pub(crate) mod split;
