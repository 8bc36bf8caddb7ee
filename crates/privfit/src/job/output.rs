//! What comes out of a job.

use crate::artifact::Artifact;
use crate::certificate::Declared;
use crate::error::{Error, Result};
use crate::ledger::Position;
use crate::metric::Metric;
use crate::prediction::labels::Labels;
use privfit_kernel::account::Event;
use serde::{Deserialize, Serialize};

/// What a release made.
pub enum Output {
    /// A model file.
    Model(Box<Artifact>),
    /// Metrics with noise.
    Metrics(PrivateMetrics),
    /// A schema whose open bounds are filled in.
    Bounds(String),
    /// Labels of public points, with noise.
    Labels(Box<Labels>),
}

impl Output {
    /// The bytes that are committed and published.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Output::Model(artifact) => Ok(artifact.to_json()?.into_bytes()),
            Output::Metrics(metrics) => serde_json::to_vec(metrics).map_err(|_| Error::Host),
            Output::Bounds(schema) => Ok(schema.clone().into_bytes()),
            Output::Labels(labels) => labels.to_bytes(),
        }
    }

    /// What a model states about itself, and where its ledger stands.
    pub(crate) fn stating(self, declared: Declared, position: Option<&Position>) -> Output {
        let stated = |artifact: Artifact| {
            let artifact = artifact.with_declared(declared);
            match position {
                Some(position) => artifact.with_ledger(position.clone()),
                None => artifact,
            }
        };
        match self {
            Output::Model(artifact) => Output::Model(Box::new(stated(*artifact))),
            Output::Labels(labels) => Output::Labels(Box::new(Labels { student: stated(labels.student), ..*labels })),
            other => other,
        }
    }

    /// The model, if that is what was made.
    pub fn into_model(self) -> Option<Artifact> {
        if let Output::Model(artifact) = self { Some(*artifact) } else { None }
    }

    /// The labels, if that is what was made.
    pub fn into_labels(self) -> Option<Labels> {
        if let Output::Labels(labels) = self { Some(*labels) } else { None }
    }

    /// The metrics, if that is what was made.
    pub fn into_metrics(self) -> Option<PrivateMetrics> {
        if let Output::Metrics(metrics) = self { Some(metrics) } else { None }
    }

    /// The schema, if that is what was made.
    pub fn into_bounds(self) -> Option<String> {
        if let Output::Bounds(schema) = self { Some(schema) } else { None }
    }
}

/// Private metrics with what they cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivateMetrics {
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// Whether anything is guaranteed.
    pub private: bool,
    /// Epsilon under zero-out.
    pub zero_out: Option<f64>,
    /// Epsilon under replace-one.
    pub replace_one: Option<f64>,
    /// Delta of both.
    pub delta: f64,
    /// What was released.
    pub event: Event,
}
