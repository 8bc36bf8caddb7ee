//! The certificate: what a model file states about privacy, in fifteen groups that a privacy officer, an auditor and a program can read.
//!
//! Everything in it is of one of three kinds. *Recorded*: the event, the method, the public facts; they stand in the file's `guarantee`
//! and `training` as well. *Derived*: numbers and sentences that follow from the recorded facts; [`crate::verify`] works them out again.
//! *Declared*: what somebody wrote into the table `[registry]`; it is repeated, not checked. A certificate is complete by itself, so that
//! it can be handed out without the weights.

mod basis;
mod claim;
mod declared;
pub(crate) mod derive;
mod entry;
pub(crate) mod merge;
mod numbers;
mod page;
mod text;
pub mod versions;

pub use crate::schema::declared::{Declared, SECTORS};
pub use basis::{
    Accounting, Assumptions, Bounds, Deployment, Enforced, Preparation, Release, Releases, Security, Unprotected, Utility,
};
pub use claim::{Claim, Contact, Identity, Neighbours, Notion, Plain, Point, Registry, Rho, Risk, Unit};
pub use entry::{entry, yaml};
pub(crate) use merge::MOST_CANDIDATES;
pub use numbers::{ATTACK_RATE, DELTAS};
pub(crate) use page::{percent_up, release_line};
pub use page::{render, round_up};
pub(crate) use text::{distribution, releases_of, sentence};

use serde::{Deserialize, Serialize};

/// Version of the fifteen groups.
pub(crate) const VERSION: u32 = 1;

/// The statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Which model, by which program, when, and where it stands in a ledger.
    pub identity: Identity,
    /// What a registry of deployments asks for.
    pub registry: Registry,
    /// What is guaranteed.
    pub guarantee: Claim,
    /// Whose privacy.
    pub unit: Unit,
    /// What "one unit differs" means.
    pub adjacency: Neighbours,
    /// What is not protected.
    pub unprotected: Unprotected,
    /// What was released, and why that is private.
    pub mechanism: Releases,
    /// How the numbers were worked out.
    pub accounting: Accounting,
    /// What the guarantee rests on.
    pub assumptions: Assumptions,
    /// What happened before training.
    pub preparation: Preparation,
    /// Who sees what.
    pub deployment: Deployment,
    /// Randomness, numerics, side channels.
    pub security: Security,
    /// How good the model is.
    pub utility: Utility,
    /// What an attacker can do, in plain words.
    pub plain: Plain,
    /// Whom to ask.
    pub contact: Contact,
}

pub use crate::ledger::Position as LedgerPosition;
