//! Layers that were trained on public rows and stay as they are while the scores are trained on private records.

use serde::{Deserialize, Serialize};

/// What public rows gave: everything in it is public.
#[derive(Clone, Debug, PartialEq)]
pub struct Pretrained {
    rows: u64,
    files: Vec<String>,
    weights: Option<Vec<f64>>,
}

impl Pretrained {
    /// So many rows, from files with these SHA-256 digests, before anything was trained on them: enough for a plan, which looks at sizes alone.
    pub fn planned(rows: u64, files: Vec<String>) -> Pretrained {
        Pretrained { rows, files, weights: None }
    }

    /// The same with the weights of all layers before the scores.
    pub fn with_weights(self, weights: Vec<f64>) -> Pretrained {
        Pretrained { weights: Some(weights), ..self }
    }

    /// Public rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Weights of the frozen layers, once they are trained.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// What a model file records: the digest of the weights binds the record to the layers of the file.
    pub(crate) fn recorded(&self) -> PublicTraining {
        let bytes: Vec<u8> = self.weights.iter().flatten().flat_map(|w| w.to_le_bytes()).collect();
        PublicTraining { rows: self.rows, files: self.files.clone(), layers: crate::ledger::digest_of(&bytes) }
    }
}

/// Rows that were declared public, and what was trained on them without noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicTraining {
    /// How many rows.
    pub rows: u64,
    /// SHA-256 of their files, of rows first and then of labels.
    pub files: Vec<String>,
    /// SHA-256 of the weights of the layers before the scores: eight bytes each, the least first.
    pub layers: String,
}

impl PublicTraining {
    /// Whether digests are digests: their text goes into a certificate.
    pub(crate) fn is_complete(&self) -> bool {
        let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let digest = |text: &String| text.len() == 64 && text.bytes().all(hexadecimal);
        self.files.iter().all(digest) && digest(&self.layers)
    }

    /// As a fact that was taken as public.
    pub(crate) fn fact(&self) -> String {
        format!(
            "rows that layers were trained on without noise before they were frozen: {}, declared public by whoever gave them; SHA-256 of their files: {}; of the layers: {}",
            self.rows,
            self.files.join(", "),
            self.layers
        )
    }
}
