//! Predictions of a released model for a file of rows, as lines of CSV. They cost nothing.

use crate::affine::quoted;
use crate::artifact::Artifact;
use crate::data::Reader;
use crate::data::encode::Row;
use crate::error::{Error, Result};
use crate::model::{Model, Prediction};
use crate::schema::{TargetValues, Task};
use std::fmt::Write as _;
use std::io::Write;

/// Writes predictions, one line for each row, after one line of names.
pub struct Predictor<'a> {
    artifact: &'a Artifact,
    /// Classes as cells of CSV.
    classes: Vec<String>,
    bounds: (f64, f64),
    /// Names of the terms whose part in a score is written; empty if none is.
    terms: Vec<String>,
    begun: bool,
}

impl<'a> Predictor<'a> {
    /// For a model; nothing is written yet.
    pub fn new(artifact: &'a Artifact) -> Predictor<'a> {
        let classes = artifact.schema.class_names().iter().map(|name| quoted(name)).collect();
        let bounds = match artifact.schema.target.values {
            TargetValues::Bounds(low, high) => (low, high),
            _ => (-1.0, 1.0),
        };
        Predictor { artifact, classes, bounds, terms: Vec::new(), begun: false }
    }

    /// The same with reasons: where scores begin, and what each term adds to the score of the prediction.
    pub fn with_reasons(mut self) -> Result<Predictor<'a>> {
        let Model::Additive(model) = &self.artifact.model else {
            let text = "reasons are the terms of an additive model, and this one is none: fit with ";
            return Err(Error::misuse(text).give("method", crate::method::additive::METHOD.name));
        };
        self.terms = model.term_names();
        Ok(self)
    }

    /// Reads a file and writes its predictions. False if they could not be written; the file is read to its end then too.
    pub fn write(&mut self, reader: &mut dyn Reader, out: &mut dyn Write) -> Result<bool> {
        let encoder = self.artifact.model.encoder(&self.artifact.schema, reader.columns(), false)?;
        let mut row = Row::default();
        let mut line = String::new();
        let mut written = true;
        reader.read(&mut |record| {
            encoder.encode(record, None, &mut row);
            line.clear();
            let prediction = self.artifact.model.predict(&row);
            if !std::mem::replace(&mut self.begun, true) {
                self.names(matches!(&prediction, Prediction::Class(_, p) if !p.is_empty()), &mut line);
            }
            self.line(&prediction, &mut line);
            self.reasons(&prediction, &row, &mut line);
            line.push('\n');
            written &= out.write_all(line.as_bytes()).is_ok();
        })?;
        Ok(written)
    }

    /// The line of names, where there was no row. False if it could not be written.
    pub fn finish(mut self, out: &mut dyn Write) -> bool {
        let mut line = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            self.names(false, &mut line);
        }
        out.write_all(line.as_bytes()).is_ok() && out.flush().is_ok()
    }

    fn names(&self, probabilities: bool, line: &mut String) {
        line.push_str(if self.artifact.schema.task() == Task::Location { "distance" } else { "prediction" });
        if probabilities {
            for name in self.artifact.schema.class_names() {
                line.push(',');
                line.push_str(&quoted(&format!("p({name})")));
            }
        }
        if !self.terms.is_empty() {
            line.push_str(",base");
            self.terms.iter().for_each(|term| line.push_str(&format!(",{}", quoted(term))));
        }
        line.push('\n');
    }

    /// Where the score of a prediction begins, and what each term adds to it. Of two classes it is the score of the second one.
    fn reasons(&self, prediction: &Prediction, row: &Row, line: &mut String) {
        let Model::Additive(model) = &self.artifact.model else { return };
        if self.terms.is_empty() {
            return;
        }
        let score = match prediction {
            Prediction::Class(class, _) if model.offsets.len() > 1 => *class,
            _ => 0,
        };
        let base = model.offsets.get(score).copied().unwrap_or_default();
        for x in [base].into_iter().chain(model.reasons(row, score)) {
            let _ = write!(line, ",{x:.6}");
        }
    }

    fn line(&self, prediction: &Prediction, line: &mut String) {
        let (low, high) = self.bounds;
        let _ = match prediction {
            Prediction::Number(x) => write!(line, "{}", low + (x + 1.0) / 2.0 * (high - low)),
            Prediction::Distance(distance) => write!(line, "{distance}"),
            Prediction::Class(class, probabilities) => {
                line.push_str(&self.classes[*class]);
                probabilities.iter().try_for_each(|p| write!(line, ",{p:.6}"))
            }
        };
    }
}
