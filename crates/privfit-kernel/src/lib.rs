//! The privacy kernel of privfit: the only code that reads rows.
//!
//! Data flow: [`Dataset`] -> [`Run`] -> [`Batch`] -> [`Bounded`] + [`Noise`] -> [`Released`]. A method writes capture-free
//! [`Contribution`]s and arithmetic on what was released; it never holds a row, and what it cannot do does not compile. [`engine`] is the
//! seam where sums are computed and opened. [`account`], a crate of its own, is pure arithmetic on public facts: events in, certified
//! epsilon and delta out.

pub use privfit_account as account;

mod audit;
mod batch;
mod best_of;
mod correlated;
pub mod engine;
mod error;
mod limits;
pub mod loss;
mod mechanism;
mod memory;
mod norm;
mod numerics;
mod processor;
mod query;
mod quiet;
mod record;
mod rng;
mod run;
mod sampling;
mod sandbox;
mod store;
mod value;

#[cfg(test)]
mod audit_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod support_tests;
#[cfg(test)]
mod tests;

pub use audit::{Movement, ReleasedVector, Transcript};
pub use batch::Batch;
pub use best_of::{BestOf, Candidates, Winner};
pub use correlated::CorrelatedGaussian;
pub use error::{Error, Result};
pub use limits::ALIGNMENT;
pub use loss::{Loss, LossParameters};
pub use mechanism::{Exponential, Gaussian, Laplace, Mechanism, Scale, Sensitivity};
pub use memory::{NoMemory, grow};
pub use norm::{L1, L2, LInf, Norm};
pub use numerics::Numerics;
pub use query::blocks::{Blockwise, Clipping, UnitBlock};
pub use query::cell_features::{CellFeatures, CellRows, ColumnFeatures, MOST_GROUPS, PairFeatures};
pub use query::cell_gradient::CellPoint;
pub use query::cell_pairs::{AllPairs, PairColumn};
pub use query::cell_scores::RowScores;
pub use query::cell_trees::{CellSplit, CellTree, DEEPEST, leaf_feature};
pub use query::choice::{Choose, ChooseLargest, StabilityTest, StableSupport};
pub use query::columns::{RowScaling, SelectColumns};
pub use query::command::{CommandLearner, TrainByCommand};
pub use query::confident::{AskVotes, ConfidentVotes, OpenVotes};
pub use query::contribution::{Contribution, Learner, Sink, StatefulContribution, UnitRandomness};
pub use query::descent::{Descend, Descent, Stability, StepSchedule};
pub use query::ensemble::{Average, SparseModel, SupportVotes, Train, Votes};
pub use query::minimise::{LinearTerm, Minimise, MinimiseElastic};
pub use query::problem::{Problem, ProblemSize};
pub use query::projection::{Project, PublicRows, norm_bound, products_error};
pub use query::recursive_gradient::{Recursion, RecursiveClip};
pub use query::threshold::{AboveThreshold, OpenTest, StableLabel};
pub use query::unit_state::{BeginState, UnitState, UpdateState};
pub use query::vertices::{ChooseVertex, ScoreVertices, VertexScores};
pub use quiet::quietly;
pub use rng::{Entropy, NoiseRng, Rate, Stream};
pub use run::{Additive, Executed, Query, Run, planned_step};
pub use store::builder::DatasetBuilder;
pub use store::cells::MOST_CELLS;
pub use store::dataset::{Dataset, RowShape, Unit};
pub use store::split::{HeldOut, Split};
pub use value::{Bounded, Local, Message, Noise, Released, Sensitive, Support, Theorem};
