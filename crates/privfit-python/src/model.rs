//! A released model: what it says about new rows, and what it states about privacy. Costs nothing.

use crate::array::Array;
use crate::data::Input;
use crate::error::{misuse, raised};
use crate::interrupt::without_lock;
use crate::ledger::open;
use crate::schema::Schema;
use privfit::additive::AdditiveModel;
use privfit::additive::edit::Edit;
use privfit::certificate::{render, round_up};
use privfit::data::encode::Row;
use privfit::data::memory::Memory;
use privfit::ledger::verify::verify;
use privfit::model::Prediction;
use privfit::publish::publish;
use privfit::schema::TargetValues;
use privfit::verify::against_ledger;
use privfit::verify::{examine, verify_artifact};
use privfit::{Artifact, Error};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use std::path::Path;

/// A model file.
#[pyclass(module = "privfit._privfit", frozen)]
pub(crate) struct Model {
    pub(crate) artifact: Artifact,
    pub(crate) bytes: Vec<u8>,
    pub(crate) before: bool,
}

#[pymethods]
impl Model {
    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Model> {
        let artifact = without_lock(py, || Artifact::from_bytes(&bytes))?;
        Ok(Model { artifact, bytes, before: false })
    }

    /// The bytes of the model file.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }

    /// Writes the model file, whole or not at all.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let failed = |_| misuse(format!("the model can't be written to {path}: check the directory and its permissions"));
        py.detach(|| publish(Path::new(path), &self.bytes)).map_err(failed)
    }

    /// Writes an ONNX file, whole or not at all.
    fn export(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let bytes = without_lock(py, || privfit::onnx::export(&self.artifact, &self.bytes))?;
        let failed = |_| misuse(format!("the ONNX file can't be written to {path}: check the directory and its permissions"));
        py.detach(|| publish(Path::new(path), &bytes)).map_err(failed)
    }

    /// Layers of a network and how its training went, as JSON.
    fn layers(&self) -> PyResult<String> {
        match &self.artifact.model {
            privfit::model::Model::Network(model) => model.listing().map(|l| l.to_string()).map_err(raised),
            _ => Err(misuse("this model has no layers: use a network")),
        }
    }

    /// Whether the same request was released before.
    #[getter]
    fn before(&self) -> bool {
        self.before
    }

    /// The public facts that it rests on.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.artifact.schema.clone())
    }

    /// How it was trained and what it cost, as JSON.
    fn facts(&self) -> String {
        let g = &self.artifact.guarantee;
        let t = &self.artifact.training;
        json!({
            "loss": self.artifact.model.loss(), "family": self.artifact.model.family(), "scores": self.artifact.model.outputs(), "method": t.method, "reason": t.reason, "plan": t.plan,
            "rows": t.rows, "public": t.public, "adjacency": g.adjacency.name(), "private": g.private, "asked_epsilon": g.asked_epsilon,
            "delta": g.delta, "zero_out": g.zero_out, "replace_one": g.replace_one, "simulated": g.simulated,
            "intercept": self.artifact.schema.intercept, "ledger": self.artifact.certificate.identity.ledger,
            "chosen": t.inputs.as_ref().and_then(|i| i.selection.as_ref()).map(|s| s.chosen),
        })
        .to_string()
    }

    /// One line about the guarantee.
    fn guarantee(&self) -> String {
        let g = &self.artifact.guarantee;
        if !g.private {
            return if g.simulated { "not private: the noise came from a seed" } else { "not private" }.into();
        }
        let epsilon = match g.adjacency {
            privfit::account::Adjacency::ReplaceOne => g.replace_one,
            _ => g.zero_out,
        };
        let epsilon = epsilon.map_or("infinite".to_string(), round_up);
        format!("epsilon {epsilon} at delta {:e}, {}, method {}", g.delta, g.adjacency.name(), self.artifact.training.method)
    }

    /// Weights and constants in the units of the columns, score after score; none if rows are not mapped linearly.
    fn linear(&self) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
        self.artifact.linear().map(|l| (l.weights, l.constants))
    }

    /// Curves, pairs and trees of an additive model, as JSON.
    fn curves(&self) -> PyResult<String> {
        let model = self.additive().map_err(raised)?;
        let names = if model.offsets.len() > 1 { self.artifact.schema.class_names() } else { vec!["score".into()] };
        Ok(model.listing(&names).to_string())
    }

    /// Names of the terms whose parts `apply` gives as `reasons`.
    fn terms(&self) -> PyResult<Vec<String>> {
        Ok(self.additive().map_err(raised)?.term_names())
    }

    /// The model after edits, a list as JSON.
    fn edited(&self, edits: &str) -> PyResult<Model> {
        let edits: Vec<Edit> =
            serde_json::from_str(edits).map_err(|_| misuse("an edit is not one: give monotone, smooth, drop or clamp"))?;
        let artifact = self.artifact.clone().edited(&edits).map_err(raised)?;
        let bytes = artifact.to_json().map_err(raised)?.into_bytes();
        Ok(Model { artifact, bytes, before: self.before })
    }

    /// Writes an answer for each row into an array: `class`, `probability`, `number`, `score` or `reasons`.
    fn apply(&self, py: Python<'_>, data: Input<'_>, what: &str, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let memory = data.memory(&self.artifact.schema, None).map_err(raised)?;
        let out = Array::of(out)?;
        let answers = without_lock(py, || self.answers(&memory, what))?;
        out.fill(&answers)
    }

    /// The certificate as a page of text.
    fn certificate_text(&self) -> PyResult<String> {
        let scores = self.artifact.model.outputs();
        let what = if self.additive().is_ok() { "curves" } else { "weights" };
        let released = format!("{what} of {scores} score{}", if scores == 1 { "" } else { "s" });
        Ok(render(&self.restated()?, &[released]))
    }

    /// The certificate as JSON.
    fn certificate_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.restated()?)
            .map_err(|_| raised(Error::damaged("the certificate can't be written as JSON: fetch it again")))
    }

    /// Works every number of the certificate out again; with a ledger also whether the model stands in it. Checks as JSON.
    fn verify(&self, py: Python<'_>, ledger: Option<&str>, key: Option<&str>) -> PyResult<String> {
        without_lock(py, || {
            let mut checks = verify_artifact(&self.artifact).checks;
            if let Some(place) = ledger {
                let (status, own) = verify(&mut open(place, key)?)?;
                // It was the publisher's word until here.
                checks.retain(|c| c.name != "ledger");
                checks.extend(own);
                checks.extend(against_ledger(&status, &self.artifact, &self.bytes));
            }
            serde_json::to_string(&checks).map_err(|_| Error::damaged("the checks can't be written as JSON"))
        })
    }
}

impl Model {
    /// The certificate as this version recomputes it, never the words of the file.
    fn restated(&self) -> PyResult<privfit::Certificate> {
        let missing = || Error::refused("the certificate was not computed: verify() states why");
        examine(&self.artifact).certificate.ok_or_else(|| raised(missing()))
    }

    fn additive(&self) -> privfit::Result<&AdditiveModel> {
        match &self.artifact.model {
            privfit::model::Model::Additive(model) => Ok(model),
            _ => Err(Error::misuse("this model has weights and no curves: use an additive one")),
        }
    }

    fn answers(&self, memory: &Memory<'_>, what: &str) -> privfit::Result<Vec<f64>> {
        let schema = &self.artifact.schema;
        let mut reader = memory.reader(schema, false)?;
        let mut encoder = self.artifact.model.encoder(schema, reader.columns(), false)?;
        let scale = match self.artifact.linear() {
            Some(linear) if what == "score" => {
                encoder = encoder.at_full_length();
                linear.scale
            }
            _ => 1.0,
        };
        let (low, high) = match schema.target.values {
            TargetValues::Bounds(low, high) => (low, high),
            _ => (-1.0, 1.0),
        };
        let mut answers = Vec::with_capacity(memory.count());
        let (mut row, mut scores) = (Row::default(), Vec::new());
        reader.read(&mut |record| {
            encoder.encode(record, None, &mut row);
            if what == "score" {
                self.artifact.model.scores(&row, &mut scores);
                answers.extend(scores.iter().map(|s| s * scale));
                return;
            }
            if what == "reasons" {
                // Where the score of the prediction begins, and what each term adds to it.
                if let Ok(model) = self.additive() {
                    let score = match self.artifact.model.predict(&row) {
                        Prediction::Class(class, _) if model.offsets.len() > 1 => class,
                        _ => 0,
                    };
                    answers.push(model.offsets[score]);
                    answers.extend(model.reasons(&row, score));
                }
                return;
            }
            match self.artifact.model.predict(&row) {
                Prediction::Class(class, _) if what == "class" => answers.push(class as f64),
                Prediction::Class(_, probabilities) => answers.extend(probabilities),
                Prediction::Number(x) => answers.push(low + (x + 1.0) / 2.0 * (high - low)),
                Prediction::Distance(distance) => answers.push(distance),
            }
        })?;
        Ok(answers)
    }
}
