//! What the page of a model is made of. Whatever is in it was checked as `privfit certificate verify` does.

use super::columns::Columns;
use super::curves::{Attack, PrivacyCurve, Spot};
use super::filters::Filters;
use super::layers::Layers;
use super::results::Results;
use super::weights::Weights;
use crate::artifact::Artifact;
use crate::certificate::merge::merged;
use crate::certificate::{Certificate, Risk};
use crate::error::{Error, Result};
use crate::schema::Task;
use crate::verify::Answer;
use crate::verify::{Check, Examined, examine};
use privfit_kernel::account::Adjacency;
use serde::Serialize;

/// A model, its claim and what follows from it.
#[derive(Clone, Debug, Serialize)]
pub struct ModelReport {
    /// Always `privfit-report`.
    pub format: String,
    /// Version of this form.
    pub version: u32,
    /// Always `model`.
    pub about: String,
    /// Program that wrote the report.
    pub program: String,
    /// Whether anything is guaranteed. If not, the report states no epsilon.
    pub private: bool,
    /// What was checked before anything was stated.
    pub checks: Vec<Check>,
    /// The certificate of the model, recomputed. What was not checked is left out of it.
    pub certificate: Certificate,
    /// Its event by today's accountant, under each notion of neighbours; empty if nothing is guaranteed.
    pub curves: Vec<PrivacyCurve>,
    /// The released numbers.
    pub weights: Weights,
    /// The curves of an additive model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// The layers of a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Layers>,
    /// Weights that meet the pixels of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
    /// Whether they are a point instead of weights.
    pub point: bool,
    /// Metrics that were given.
    pub results: Option<Results>,
}

impl ModelReport {
    /// Checks a model and gathers its report. A certificate that does not hold is refused, and so is one that was not checked as a whole
    /// unless that is accepted; a model that says itself that it is not private gets a report that says so too. Every sentence and every
    /// number is the one that was recomputed, never the one in the file.
    pub fn gather(artifact: &Artifact, results: Option<Results>, allow_unchecked: bool) -> Result<ModelReport> {
        let g = &artifact.guarantee;
        let Examined { verdict, certificate } = examine(artifact);
        // The record decides: a certificate that claims more than its record is a false one.
        let private = g.private && !g.simulated;
        if private || artifact.certificate.guarantee.private {
            verdict.clone().accept("the certificate", allow_unchecked)?;
        }
        let Some(c) = certificate else {
            return Err(Error::refused("the certificate was not worked out: ask whoever published it for another file"));
        };
        let mut curves = Vec::new();
        if private {
            let event = merged(&g.event).unwrap_or_else(|| g.event.clone());
            let alarms = |risk: Option<Risk>| {
                risk.map(|r| Attack {
                    false_positive_rate: c.plain.false_positive_rate,
                    true_positive_rate: r.true_positive_rate,
                })
            };
            let mut notions = vec![
                (Adjacency::ZeroOut, c.guarantee.zero_out, alarms(c.plain.zero_out)),
                (Adjacency::ReplaceOne, c.guarantee.replace_one, alarms(c.plain.replace_one)),
            ];
            if c.guarantee.asked_adjacency == Adjacency::AddRemove {
                notions.push((Adjacency::AddRemove, c.guarantee.add_remove, None));
            }
            for (adjacency, claimed, known) in notions {
                if let Some(epsilon) = claimed {
                    let claim = Spot { epsilon, delta: c.guarantee.delta };
                    curves.push(PrivacyCurve::new(&event, adjacency, claim, known));
                }
            }
        }
        Ok(ModelReport {
            format: "privfit-report".into(),
            version: super::VERSION,
            about: "model".into(),
            program: crate::training::program(),
            private,
            checks: verdict.checks,
            certificate: c,
            curves,
            weights: Weights::of(artifact),
            columns: Columns::of(artifact),
            layers: Layers::of(artifact),
            filters: Filters::of(artifact),
            point: artifact.schema.task() == Task::Location,
            results,
        })
    }

    /// The name that people see.
    pub(super) fn name(&self) -> String {
        let c = &self.certificate;
        c.registry.name.clone().unwrap_or_else(|| format!("Model of the data set {:?}", c.identity.data).replace('"', ""))
    }

    /// What was not checked, in a sentence.
    pub(super) fn not_checked(&self) -> Option<String> {
        let names: Vec<&str> = self.checks.iter().filter(|c| c.answer == Answer::NotChecked).map(|c| c.name.as_str()).collect();
        (!names.is_empty())
            .then(|| format!("not checked, and left out where it would be a sentence of the file: {}", names.join(", ")))
    }

    /// Rows, or units.
    pub(super) fn units(&self) -> String {
        let c = &self.certificate;
        format!("{} {}", c.adjacency.units, if c.unit.kind == "row" { "rows" } else { "units" })
    }

    /// The epsilon that was asked about, if anything is guaranteed.
    pub(super) fn epsilon(&self) -> Option<f64> {
        let g = &self.certificate.guarantee;
        let asked = match g.asked_adjacency {
            Adjacency::ZeroOut => g.zero_out,
            Adjacency::ReplaceOne => g.replace_one,
            Adjacency::AddRemove => g.add_remove,
        };
        asked.filter(|_| self.private)
    }

    /// The risk that belongs to it.
    pub(super) fn risk(&self) -> Option<Risk> {
        let p = &self.certificate.plain;
        let asked = self.certificate.guarantee.asked_adjacency;
        if asked == Adjacency::ReplaceOne { p.replace_one } else { p.zero_out }.filter(|_| self.private)
    }
}

/// What stands on every page of a model that guarantees nothing.
pub(super) const NOT_PRIVATE: &str = "This model is NOT private.";
