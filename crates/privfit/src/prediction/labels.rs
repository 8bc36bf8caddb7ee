//! Released labels: for each public point the noisy counts of its labels, or nothing, with a linear student of them that carries event, certificate and
//! plan as any model does.

use crate::artifact::Artifact;
use crate::error::{Error, Result};
use crate::method::ensemble::student::winner;
use serde::{Deserialize, Serialize};

/// Of the file.
const FORMAT: &str = "privfit-labels";
const VERSION: u32 = 1;

/// Labels with what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// Noisy counts of the labels of each point; none for a point without an answer.
    pub answers: Vec<Option<Vec<f64>>>,
    /// Parts that voted.
    pub parts: u64,
    /// Standard deviation of the noise of a count.
    pub noise: f64,
    /// A linear student, with the certificate of all this.
    pub student: Artifact,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    parts: u64,
    noise: f64,
    answers: Vec<Option<Vec<f64>>>,
    /// The text of the model file, digest included.
    student: String,
}

fn damaged() -> Error {
    Error::damaged("the file of labels is damaged: fetch it again from where it was written")
}

impl Labels {
    /// The label of each point, by number; none without an answer.
    pub fn labels(&self) -> Vec<Option<usize>> {
        self.answers.iter().map(|answer| answer.as_deref().map(winner)).collect()
    }

    /// Points that were answered.
    pub fn answered(&self) -> usize {
        self.answers.iter().flatten().count()
    }

    /// The file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let Labels { answers, parts, noise, student } = self.clone();
        let student = student.to_json()?;
        let file = File { format: FORMAT.into(), version: VERSION, parts, noise, answers, student };
        serde_json::to_vec(&file).map_err(|_| Error::Host)
    }

    /// Reads the file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Labels> {
        let file: File = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        let student = Artifact::from_json(&file.student)?;
        let classes = student.schema.class_names().len();
        let complete =
            |answer: &Option<Vec<f64>>| answer.as_ref().is_none_or(|a| a.len() == classes && a.iter().all(|x| x.is_finite()));
        if file.format != FORMAT || file.version != VERSION || !file.answers.iter().all(complete) {
            return Err(damaged());
        }
        Ok(Labels { answers: file.answers, parts: file.parts, noise: file.noise, student })
    }

    /// A line for each point: its number, its label and its counts, as CSV; cells of points without an answer are empty.
    pub fn table(&self) -> String {
        let names = self.student.schema.class_names();
        let mut out = String::from("point,label");
        let quoted = |name: &String| crate::affine::quoted(name);
        names.iter().for_each(|name| out.push_str(&format!(",{}", quoted(&format!("votes({name})")))));
        out.push('\n');
        for (number, answer) in self.answers.iter().enumerate() {
            match answer {
                None => out.push_str(&format!("{number},{}", ",".repeat(names.len()))),
                Some(counts) => {
                    let cells: Vec<String> = counts.iter().map(|c| format!("{c:.1}")).collect();
                    out.push_str(&format!("{number},{},{}", quoted(&names[winner(counts)]), cells.join(",")));
                }
            }
            out.push('\n');
        }
        out
    }
}
