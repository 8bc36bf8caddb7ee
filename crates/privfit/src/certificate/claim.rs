//! The groups of a certificate that say what is claimed: which model, which guarantee, whose privacy, in numbers and in plain words.

use super::LedgerPosition;
use privfit_kernel::account::Adjacency;
use serde::{Deserialize, Serialize};

/// Which model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Version of the certificate's groups.
    pub version: u32,
    /// Program that wrote it.
    pub program: String,
    /// Digest of the program, if whoever built it stated one.
    pub build: Option<String>,
    /// Name of the data set.
    pub data: String,
    /// SHA-256 of the released numbers as little-endian doubles: weights score after score, then factors, constant and weight of a map
    /// of rows, if there is one.
    pub model_sha256: String,
    /// SHA-256 of the schema, as compact JSON in the order of the file; none in files of format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_sha256: Option<String>,
    /// SHA-256 of the record of how it was trained, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_sha256: Option<String>,
    /// Day of creation, if stated.
    pub date: Option<String>,
    /// Position in the ledger of the data set, if there is one.
    pub ledger: Option<LedgerPosition>,
}

/// What a registry of deployments asks for; declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Name of the model.
    pub name: Option<String>,
    /// Who publishes it.
    pub curators: Vec<String>,
    /// One or two sentences about it.
    pub description: Option<String>,
    /// What it is for.
    pub intended_use: Option<String>,
    /// Always `machine learning model`.
    pub product_type: String,
    /// Region that the data describe.
    pub region: Option<String>,
    /// Sector.
    pub sector: Option<String>,
    /// Day of publication.
    pub publication_date: Option<String>,
}

/// What is guaranteed. Epsilons are none where nothing finite is proved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Whether anything is guaranteed.
    pub private: bool,
    /// Why not, if not.
    pub why_not: Option<String>,
    /// `pure`, `approximate` or `none`.
    pub variant: String,
    /// Epsilon that was asked for; what is guaranteed stands below.
    pub asked_epsilon: f64,
    /// The adjacency that was asked for.
    pub asked_adjacency: Adjacency,
    /// Delta of the epsilons below.
    pub delta: f64,
    /// Epsilon under zero-out.
    pub zero_out: Option<f64>,
    /// Epsilon under replace-one.
    pub replace_one: Option<f64>,
    /// Epsilon under add-remove, if that was asked for.
    pub add_remove: Option<f64>,
    /// Zero-concentrated privacy, where all releases have it.
    pub rho: Option<Rho>,
    /// Epsilon at other deltas.
    pub profile: Vec<Point>,
    /// Numbers are rounded `up`.
    pub rounding: String,
    /// What the numbers are about.
    pub scope: String,
}

/// Zero-concentrated privacy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rho {
    /// Under zero-out.
    pub zero_out: f64,
    /// Under replace-one.
    pub replace_one: f64,
}

/// A point of the privacy profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Delta.
    pub delta: f64,
    /// Epsilon there under zero-out.
    pub zero_out: Option<f64>,
    /// Epsilon there under replace-one.
    pub replace_one: Option<f64>,
}

/// Whose privacy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// `row`, or `column`.
    pub kind: String,
    /// The column that says which rows belong together.
    pub column: Option<String>,
    /// Most rows of one unit that count.
    pub max_rows: u64,
    /// How rows make units.
    pub mapping: String,
    /// What holds for several units together.
    pub group: String,
}

/// What "one unit differs" means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbours {
    /// Number of rows, or of units.
    pub units: u64,
    /// Whether that number counts as public.
    pub units_public: bool,
    /// Every notion that the certificate has numbers for.
    pub notions: Vec<Notion>,
    /// The data sets that the guarantee is about.
    pub domain: String,
}

/// A notion of neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notion {
    /// Its name.
    pub name: Adjacency,
    /// What it means.
    pub meaning: String,
}

/// What an attacker can do, in plain words. Numbers are bounds; none where there is no guarantee.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plain {
    /// Share of false alarms that the attacker of `true_positive_rate` allows himself.
    pub false_positive_rate: f64,
    /// Under zero-out: is this person's record in the data, or blank?
    pub zero_out: Option<Risk>,
    /// Under replace-one: is it this record, or that one?
    pub replace_one: Option<Risk>,
    /// The guarantee in a sentence.
    pub sentence: String,
}

/// What the best attacker reaches who knows all other records and sees the model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// Share of right alarms, at the share of false alarms that is stated.
    pub true_positive_rate: f64,
    /// Share of right guesses about something that is as likely as not.
    pub accuracy: f64,
    /// What somebody who holds something for as likely as not can believe afterwards.
    pub posterior: f64,
    /// Probability with which the bound on belief may fail.
    pub except: f64,
}

/// Whom to ask; declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contact {
    /// Address.
    pub contact: Option<String>,
    /// Licence of the model.
    pub licence: Option<String>,
    /// Day after which the statement should not be relied on.
    pub expiry: Option<String>,
    /// What changed since an earlier model.
    pub revision: Option<String>,
}
