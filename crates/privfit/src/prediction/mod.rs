//! Private prediction: labels of public points from an ensemble of models on disjoint parts of the records. Any learner becomes private in that way,
//! because nothing but the agreement of many models leaves, with noise.
//!
//! *Claim.* Released are, for each public point that the ensemble is sure of, the counts of its labels with Gaussian noise, and for every other one the
//! fact that it is not (`query/confident.rs` of the kernel has adjacency, sensitivity and theorem, `method/ensemble` the plan). A part is chosen for a unit
//! by its index under a secret key, so that another record in the place of one changes one part, whatever the learner is. Encoder, number of parts,
//! threshold and noise follow from public facts: the schema, the number of units, the budget and the public points.

pub mod command;
pub mod labels;
pub mod published;
