//! Rows, and how they are kept.

pub(crate) mod builder;
pub(crate) mod cells;
pub(crate) mod compressed;
pub(crate) mod dataset;
mod dense;
pub(crate) mod list;
mod quantise_row;
pub(crate) mod rows;
pub(crate) mod split;
