//! The privacy kernel of privfit: the only code that reads rows.
//!
//! Data flow: [`Dataset`] -> [`Run`] -> [`Batch`] -> [`Bounded`] + [`Noise`] -> [`Released`]. A method writes capture-free
//! [`Contribution`]s and arithmetic on what was released; it never holds a row, and what it cannot do does not compile. [`engine`] is the
//! seam where sums are computed and opened. [`account`], a crate of its own, is pure arithmetic on public facts: events in, certified
//! epsilon and delta out.

pub use privfit_account as account;

mod batch;
mod best_of;
pub mod engine;
mod error;
mod mechanism;
mod norm;
mod query;
mod quiet;
mod record;
mod rng;
mod run;
mod sampling;
mod store;
mod value;

#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod support_tests;
#[cfg(test)]
mod tests;

pub use batch::Batch;
pub use best_of::{BestOf, Candidates, Winner};
pub use error::{Error, Result};
pub use mechanism::{Exponential, Gaussian, Laplace, Mechanism, Reach, Scale};
pub use norm::{L1, L2, LInf, Norm};
pub use query::contribution::{Blockwise, Contribution, Draw, Learner, Sink, Units};
pub use query::descent::{Descent, Pace, Stability};
pub use query::lazy_scores::CornerScores;
pub use query::loss::{Loss, LossParameters};
pub use query::minimise::Problem;
pub use query::operator::{PublicRows, norm_bound};
pub use quiet::quietly;
pub use rng::{Entropy, NoiseRng, Rate, Stream};
pub use run::{
    Additive, Fit, Heard, LinearTerm, Movement, ProblemSize, Run, SparseModel, StabilityTest, Tape, planned_step, products_error,
};
pub use store::data::{Dataset, DatasetBuilder, NoMemory, RowShape, Unit, grow};
pub use store::split::{HeldOut, Split};
pub use value::{Bounded, Local, Noise, Numerics, Released, Sensitive, Support, Theorem};
