//! privfit trains machine-learning models on sensitive data with a differential-privacy guarantee that somebody who does not
//! trust us can read, recompute and test.
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

pub mod logistic;
pub mod request;
mod strict_json;

pub use privfit_kernel::{Error, Result, account, engine, privacy};
