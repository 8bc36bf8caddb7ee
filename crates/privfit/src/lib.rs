//! privfit trains machine-learning models on sensitive data with a differential-privacy guarantee that somebody who does not
//! trust us can read, recompute and test.
//!
//! Five ideas: a [`Schema`] holds the public facts, a [`job::fit::Job`] says what is wanted, a plan ([`method`]) is complete before data
//! are opened, a run of the [`kernel`] is the only way to the records, an [`Artifact`] is what comes out.
//!
//! ```
//! use privfit::account::{Adjacency, Event, epsilon};
//!
//! // 1000 steps of noisy gradient descent on Poisson samples of 1 % of the records.
//! let event = Event::gaussian(1.0).sampled(0.01).repeated(1000);
//! let answer = epsilon(&event, Adjacency::AddRemove, 1e-5)?;
//! assert!(answer.bound.lower <= 1.828237 && answer.bound.upper >= 1.828236);
//! # Ok::<(), privfit::Error>(())
//! ```

pub mod additive;
pub mod advisory;
pub mod affine;
pub mod artifact;
pub mod audit;
pub mod certificate;
pub mod checkpoint;
pub mod constraint;
pub mod forecast;
pub mod foreign;
pub mod job;
pub mod linear;
pub mod loss;
mod measure;
pub mod memory;
pub mod method;
mod metric;
pub mod model;
pub mod network;
mod older;
pub mod onnx;
mod plan_inputs;
pub mod plot;
pub mod predict;
pub mod prediction;
pub mod report;
pub mod request;
pub mod signature;
pub mod solve;
mod strict_json;
pub mod training;
pub mod verify;

pub use artifact::Artifact;
pub use certificate::Certificate;
pub use privfit_data::{self as data, Error, Result, Schema, error, nearest, publish, schema, small_file};
pub use privfit_kernel::{self as kernel, Error as KernelError, account, engine};
pub use privfit_ledger as ledger;
