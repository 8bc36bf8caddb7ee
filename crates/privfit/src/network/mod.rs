//! Networks: layers, their gradients for each example, and sums of clipped gradients.
//!
//! *Claim.* The vector of an example is its gradient as computed in single precision: for a convolution the numbers of its own weight gradient, for a dense layer the exact products of
//! its activations and deltas. It is a function of the example and of public weights alone, to the bit: no number of one example depends on which others are computed
//! with it, because every entry of a product is one chain of multiply-adds (`product.rs`) and nothing else mixes examples. With copies of pictures it is the stored average of such vectors (`augment.rs`). Norms and weighted sums have errors that are bounded in `blocks.rs`
//! and charged for by the kernel (`query/blocks.rs` there).

mod architecture;
mod augment;
mod blocks;
mod frozen;
mod history;
mod layer;
mod linear;
mod model;
pub(crate) mod normal;
mod pass;
mod placed;
mod preset;
pub(crate) mod pretrain;
mod product;
mod program;
pub(crate) mod recursion;
#[cfg(test)]
mod reference;
mod smoothing;
#[cfg(test)]
mod sweep;

pub(crate) use architecture::Copies;
pub use architecture::Network;
pub use frozen::{Pretrained, PublicTraining};
pub(crate) use history::Recorder;
pub use history::{History, Point};
pub use layer::{Layer, Shape};
pub use model::NetworkModel;
pub use placed::PlacedLayer;
pub use preset::layers_of;
pub(crate) use preset::{input_shape, usual_layers};
pub use pretrain::PublicExamples;
