//! Jobs: what is asked for, planned from public facts, and released in the one order that is safe.

pub mod bounds;
pub mod evaluate;
pub mod facts;
pub mod fit;
pub mod kept;
pub mod label;
pub mod memory;
pub mod output;
pub mod pretrain;
pub mod release;
pub mod serve;
pub mod tune;
pub mod tune_public;

pub use facts::PublicFacts;
pub use output::Output;
pub use release::{Release, release};
