//! The privacy kernel: the only code that reads rows.
//!
//! Data flow: [`Dataset`] -> [`Run`] -> [`Batch`] -> [`Bounded`] + [`Noise`] -> [`Released`]. A method writes capture-free
//! [`Contribution`]s and arithmetic on what was released; it never holds a row, and what it cannot do does not compile.

mod batch;
mod best_of;
mod block_gradient;
mod compressed;
mod contribution;
mod data;
mod descent;
mod elastic;
mod exact;
mod gradient;
mod ladder;
mod lazy_scores;
mod loss;
mod mechanism;
mod minimise;
mod norm;
mod operator;
mod precondition;
mod quantise_row;
mod quiet;
mod record;
mod rng;
mod run;
mod sampler;
mod select;
mod split;
mod value;

#[cfg(test)]
mod descent_tests;
#[cfg(test)]
mod ladder_tests;
#[cfg(test)]
mod lazy_scores_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod support_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tilt_tests;

pub use batch::Batch;
pub use best_of::{BestOf, Candidates, Winner};
pub use contribution::{Blockwise, Contribution, Draw, Learner, Sink, Units};
pub use data::{Dataset, DatasetBuilder, NoMemory, RowShape, Unit, grow};
pub use descent::{Descent, Pace, Stability};
pub use lazy_scores::CornerScores;
pub use loss::{Loss, LossParameters};
pub use mechanism::{Exponential, Gaussian, Laplace, Mechanism, Reach, Scale};
pub use minimise::Problem;
pub use norm::{L1, L2, LInf, Norm};
pub use operator::{PublicRows, norm_bound};
pub use quiet::quietly;
pub use rng::{Entropy, NoiseRng, Rate, Stream};
pub use run::{
    Additive, Fit, Heard, LinearTerm, Movement, ProblemSize, Run, SparseModel, StabilityTest, Tape, planned_step, products_error,
};
pub use split::{HeldOut, Split};
pub use value::{Bounded, Local, Noise, Numerics, Released, Sensitive, Support, Theorem};
