//! Ordinary numerical work; no privacy inside.

pub mod eigen;
pub mod ight;
