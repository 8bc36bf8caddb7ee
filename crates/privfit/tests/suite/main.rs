//! The library as a whole: every method, every format, every claim.

mod auditor;
mod broken;
mod certificate;
mod checkpoint;
mod conformance;
mod flaws;
mod flaws_nonconvex;
mod formats;
mod labels;
mod memory;
mod onnx;
mod seam;
mod sparse;
mod tuning;
mod vectors;
