//! Audits: lower bounds on what a method leaks, held against its claim. An alarm is a proof (up to a stated chance of a false one); no
//! alarm proves nothing.
//!
//! | audit | question | kind |
//! |---|---|---|
//! | [`sensitivity`] | does one record move what meets noise by more than its sensitivity, or anything else at all? | exact, seconds |
//! | [`distribution`] | can two neighbouring data sets be told apart better than claimed? | many runs in two worlds |
//! | [`canaries`] | can it be told which of many records took part in one run? | one run |
//! | [`precision`] | are released numbers on their public grid, and can noise be computed from them? | exact, and 300 runs |
//!
//! All look at a [`Subject`]. Shipped methods are subjects ([`Shipped`]), and so are the mechanisms of the tests that are broken on
//! purpose, so that the same auditors judge both; an auditor that misses one of the latter is broken itself.

pub mod bounds;
#[doc(hidden)]
pub mod canaries;
pub mod discriminant;
pub mod distribution;
pub mod jobs;
pub mod one_run;
mod own_rows;
pub mod pair;
pub mod precision;
pub mod recovered;
pub mod repeat;
pub mod sensitivity;
pub mod shipped;
pub mod subject;

pub use own_rows::own_rows;
pub use pair::{Pair, RowMaker};
pub use shipped::Shipped;
pub use subject::{Claim, Comparison, Release, Subject};

/// Chance that an audit of a correct method raises an alarm.
pub const FALSE_ALARM: f64 = 1e-6;
