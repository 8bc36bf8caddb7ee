//! Ordinary numerical work; no privacy inside.

pub(crate) mod eigen;
pub mod iterative_hard_thresholding;
pub mod laplacian;
pub(crate) mod ridge;
