//! Model files of formats 2 and 3, read into what this program uses today. They have no kind of model, and their public facts are
//! sentences. Nothing writes such files any more.

use crate::certificate::Certificate;
use crate::certificate::derive::json_digest;
use crate::loss::{self, Kind};
use crate::model::{LinearModel, Model};
use crate::plan_inputs::PlanInputs;
use crate::schema::Schema;
use crate::training::{Fact, Guarantee, Training};
use privfit_kernel::Numerics;
use serde::{Deserialize, Serialize};

/// The last format with these shapes.
pub(crate) const LAST: u32 = 3;

/// The artifact of such a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OlderArtifact {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) program: String,
    pub(crate) schema: Schema,
    model: LinearModel,
    training: OlderTraining,
    pub(crate) guarantee: Guarantee,
    pub(crate) certificate: Certificate,
}

impl OlderArtifact {
    /// Model and training in today's shapes.
    pub(crate) fn parts(&self) -> (Model, Training) {
        (model(self.model.clone()), self.training.clone().into())
    }
}

fn model(m: LinearModel) -> Model {
    match loss::find(&m.loss) {
        Some(entry) if entry.kind == Kind::Location && m.classes == 0 && m.weights.len() == 1 && m.map.is_none() => {
            Model::new(entry, m.loss_parameters, 0, m.weights, None)
        }
        // What does not fit together is found when the model is compared with the schema.
        _ => Model::Linear(m),
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OlderTraining {
    method: String,
    plan: Vec<(String, String)>,
    reason: Option<String>,
    settings: Vec<(String, f64)>,
    numerics: Numerics,
    rows: u64,
    public: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inputs: Option<PlanInputs>,
}

impl From<OlderTraining> for Training {
    fn from(t: OlderTraining) -> Training {
        let OlderTraining { method, plan, reason, settings, numerics, rows, public, inputs } = t;
        let public = public.iter().map(|text| fact(text)).collect();
        Training { method, plan, reason, settings, numerics, rows, public, inputs }
    }
}

/// The sentence as a fact with its source.
fn fact(text: &str) -> Fact {
    match text.strip_suffix(')').and_then(|t| t.rsplit_once(" (")) {
        // Counting and declarations say so themselves.
        Some((what, source)) if text.starts_with("number of") => Fact::of_count(what.into(), source),
        _ if text.starts_with("settings") => Fact::of_rules(text.into()),
        _ if text.starts_with("auxiliary") => Fact::of_job(text.into()),
        _ => Fact::of_schema(text.into()),
    }
}

/// Digest of the record of how a model was trained, in the shape of format 3; none in files of format 2.
pub(crate) fn training_digest(training: &Training) -> Option<String> {
    let Training { method, plan, reason, settings, numerics, rows, public, inputs } = training.clone();
    let public = public.iter().map(Fact::to_string).collect();
    let older = OlderTraining { method, plan, reason, settings, numerics, rows, public, inputs };
    older.inputs.as_ref().map(|_| json_digest(&older))
}
