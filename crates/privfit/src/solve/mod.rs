//! Ordinary numerical work; no privacy inside.

pub mod eigen;
pub mod iterative_hard_thresholding;
