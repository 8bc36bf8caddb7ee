//! Ordinary numerical work on released numbers; no privacy inside.

pub mod eigen;
