//! The privacy kernel of privfit: guarded sums, exact noise, privacy accounting.
//!
//! [`account`] is pure arithmetic on public facts: events in, certified epsilon and delta out. [`privacy`] is the only code that
//! reads rows. [`engine`] is the seam where sums are computed.

pub mod account;
pub mod engine;
mod error;
pub mod privacy;

pub use error::{Error, Result};
