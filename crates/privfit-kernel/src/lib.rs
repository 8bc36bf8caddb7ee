//! The privacy kernel of privfit: guarded sums and exact noise.
//!
//! [`privacy`] is the only code that reads rows. [`engine`] is the seam where sums are computed. [`account`], a crate of its own, is pure
//! arithmetic on public facts: events in, certified epsilon and delta out.

pub use privfit_account as account;

pub mod engine;
mod error;
pub mod privacy;

pub use error::{Error, Result};
