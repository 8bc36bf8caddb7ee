//! The model file: versioned JSON with weights, encoder, event tree, plan, public facts and certificate. Nothing that was not released
//! is in it: no losses, no counts of iterations, no times.
//!
//! The file ends with `"sha256": "` + 64 digits + `"`, line break, `}`, line break. The digits are the SHA-256 of the file's own bytes with
//! zeros in their place, so that an edit of any byte shows.

use crate::additive::edit::Edit;
use crate::certificate::{Certificate, Declared, derive};
use crate::error::{Error, Result};
use crate::ledger::Position;
use crate::model::{Model, RowMap};
use crate::older::{self, OlderArtifact};
use crate::schema::Schema;
use crate::schema::Task;
use crate::training::{Guarantee, Training, program};
use privfit_kernel::account::Event;
use serde::{Deserialize, Serialize};

/// Version of the format that this code writes.
pub(crate) const VERSION: u32 = 4;
/// Oldest version that it reads. Files of version 2 do not record what their plan was made from.
pub(crate) const OLDEST: u32 = 2;
/// How a file of released labels begins.
pub(crate) const LABELS: &str = "{\"format\":\"privfit-labels\"";
/// Largest file that is read, in bytes.
pub const LARGEST: usize = 1 << 30;
/// What stands after the digits of the digest.
const TAIL: &str = "\"\n}\n";
/// What stands in their place while it is worked out.
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A trained model with what it may claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Always `privfit-model`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Program that wrote it.
    pub program: String,
    /// Public facts, and with them the encoder.
    pub schema: Schema,
    /// The model.
    pub model: Model,
    /// How it was trained.
    pub training: Training,
    /// What it cost.
    pub guarantee: Guarantee,
    /// The statement about both, complete by itself.
    pub certificate: Certificate,
}

/// The file: the artifact and its digest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<A> {
    artifact: A,
    sha256: String,
}

/// Reads the shape of one format.
fn read<A: serde::de::DeserializeOwned>(text: &str) -> Result<A> {
    let file: File<A> = serde_json::from_str(text).map_err(|_| damaged("a field is missing, unknown or of the wrong type"))?;
    if !text.ends_with(&format!("\"sha256\": \"{}{TAIL}", file.sha256)) {
        return Err(damaged("its digest does not stand at its end"));
    }
    Ok(file.artifact)
}

impl From<OlderArtifact> for Artifact {
    fn from(older: OlderArtifact) -> Artifact {
        let (model, training) = older.parts();
        let OlderArtifact { format, version, program, schema, guarantee, certificate, .. } = older;
        Artifact { format, version, program, schema, model, training, guarantee, certificate }
    }
}

/// Whether the digits at the end are the digest of all bytes with zeros in their place.
fn digest_matches(bytes: &[u8]) -> bool {
    let Some(end) = bytes.len().checked_sub(TAIL.len()).filter(|_| bytes.ends_with(TAIL.as_bytes())) else { return false };
    let Some(start) = end.checked_sub(ZEROS.len()) else { return false };
    derive::hex(&[&bytes[..start], ZEROS.as_bytes(), &bytes[end..]]).as_bytes() == &bytes[start..end]
}

/// The digest at the end of a model file that was read; it covers every other byte.
pub(crate) fn digest_of_file(bytes: &[u8]) -> String {
    let end = bytes.len().saturating_sub(TAIL.len());
    String::from_utf8_lossy(&bytes[end.saturating_sub(ZEROS.len())..end]).into_owned()
}

fn damaged(what: &str) -> Error {
    Error::damaged(format!("the model file is damaged ({what}): fetch it again from where it was written"))
}

impl Artifact {
    /// A model with the certificate that follows from how it was trained; the epsilons of the guarantee are worked out here.
    pub fn certified(mut schema: Schema, model: Model, training: Training, mut guarantee: Guarantee) -> Artifact {
        // What the schema declares about the model stands in the certificate.
        let declared = schema.registry.take().unwrap_or_default();
        let program = program();
        let facts =
            derive::Facts { program: &program, schema: &schema, model: &model, training: &training, guarantee: &guarantee };
        let certificate = Certificate::derive(facts, &declared, None);
        (guarantee.zero_out, guarantee.replace_one) = (certificate.guarantee.zero_out, certificate.guarantee.replace_one);
        Artifact { format: "privfit-model".into(), version: VERSION, program, schema, model, training, guarantee, certificate }
    }

    /// With what the job declares; what the schema declared stays where the job says nothing.
    pub fn with_declared(mut self, declared: Declared) -> Artifact {
        self.certificate.declare(declared.or(self.certificate.declared()));
        self
    }

    /// With its position in a ledger.
    pub fn with_ledger(mut self, position: Position) -> Artifact {
        self.certificate.identity.ledger = Some(position);
        self
    }

    /// With edits of its curves. They look at released numbers only: the guarantee stays, and the certificate records them.
    pub fn edited(mut self, edits: &[Edit]) -> Result<Artifact> {
        let Model::Additive(mut model) = self.model else {
            let text = "this model has no curves that could be edited: fit one with ";
            return Err(Error::misuse(text).give("method", crate::method::additive::METHOD.name));
        };
        for edit in edits {
            *model = model.edited(edit)?;
        }
        self.model = Model::Additive(model);
        self.certificate.mechanism.edits = self.model.edits().iter().map(Edit::text).collect();
        self.certificate.identity.model_sha256 = derive::model_digest(&self.model);
        Ok(self)
    }

    /// The encoded features that the model has, where it does not have all of them. They were chosen privately; with the weights they
    /// are released information.
    pub fn selected(&self) -> Option<Vec<usize>> {
        if !matches!(self.model, Model::Linear(_)) {
            return None;
        }
        let d = self.schema.dimension();
        let has = |i: &usize| self.model.weights().iter().any(|w| w.get(*i).is_some_and(|x| *x != 0.0));
        let chosen: Vec<usize> = (0..d).filter(has).collect();
        (chosen.len() < d).then_some(chosen)
    }

    /// Another model of the same released answers: event, plan and guarantee stay, and the certificate is derived anew. It names no ledger: what is
    /// committed there is the answers.
    pub(crate) fn with_student(self, model: Model) -> Artifact {
        let Artifact { schema, mut training, guarantee, certificate, .. } = self;
        let (before, after) = (format!("loss {},", self.model.loss()), format!("loss {},", model.loss()));
        training.public.iter_mut().for_each(|fact| fact.what = fact.what.replacen(&before, &after, 1));
        Artifact::certified(schema, model, training, guarantee).with_declared(certificate.declared())
    }

    /// The file's text.
    pub fn to_json(&self) -> Result<String> {
        let file = File { sha256: ZEROS.into(), artifact: self };
        let text = serde_json::to_string_pretty(&file);
        let mut text = text.map_err(|_| Error::damaged("the model can't be written as JSON"))? + "\n";
        let digest = derive::hex(&[text.as_bytes()]);
        text.truncate(text.len() - TAIL.len() - ZEROS.len());
        Ok(text + &digest + TAIL)
    }

    /// Reads a file; whatever is not exactly a model file is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Artifact> {
        Artifact::from_json(std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?)
    }

    /// Reads a file's text; whatever is not exactly a model file is damaged.
    pub fn from_json(text: &str) -> Result<Artifact> {
        if text.len() > LARGEST {
            return Err(damaged("it is too large"));
        }
        // Labels carry a model, and with it their certificate.
        #[derive(Deserialize)]
        struct Labels {
            student: String,
        }
        if text.starts_with(LABELS)
            && let Ok(labels) = serde_json::from_str::<Labels>(text)
        {
            return Artifact::from_json(&labels.student);
        }
        #[derive(Deserialize)]
        struct Probe {
            artifact: Head,
        }
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head = serde_json::from_str::<Probe>(text).map_err(|_| damaged("it is not a model file"))?.artifact;
        if head.format != "privfit-model" {
            return Err(damaged("it is not a model file"));
        }
        if head.version > VERSION {
            return Err(Error::damaged(format!(
                "the model file has format {} and this program reads {VERSION}: use a newer privfit",
                head.version
            )));
        }
        if head.version < OLDEST {
            return Err(Error::damaged(format!(
                "the model file has format {}, which was never published, and this program reads {OLDEST} to {VERSION}: fit it again",
                head.version
            )));
        }
        // Before anything is built from it: the digest stands at the end, and covers every other byte.
        if !digest_matches(text.as_bytes()) {
            return Err(damaged("its digest does not match"));
        }
        let artifact: Artifact = if head.version > older::LAST { read(text)? } else { read::<OlderArtifact>(text)?.into() };
        let model = &artifact.model;
        // What a format does not have is not smuggled into it, and what it has is not left out.
        let identity = &artifact.certificate.identity;
        let recorded = [artifact.training.inputs.is_some(), identity.schema_sha256.is_some(), identity.training_sha256.is_some()];
        if recorded != [artifact.version > 2; 3] {
            return Err(damaged("it records other things than its format has"));
        }
        artifact.schema.check().map_err(|_| damaged("its schema does not hold together"))?;
        let private_bounds = artifact.schema.private_bounds.as_ref().map(|b| &b.event);
        if private_bounds.is_some_and(|e| !matches!(e, Event::DiscreteGaussian { .. } | Event::NotPrivate { .. })) {
            return Err(damaged("its private bounds are not what is released"));
        }
        let d = artifact.schema.dimension();
        let Some(loss) = crate::loss::find(model.loss()) else { return Err(damaged("its loss is unknown")) };
        let scores = match artifact.schema.task() {
            Task::Number | Task::Location => 1,
            Task::Classes(2) if !loss.multiclass => 1,
            Task::Classes(k) => k,
        };
        let fits = model.task() == artifact.schema.task() && loss.fits(model.task());
        let lists = model.weights();
        if let Model::Additive(additive) = model {
            let complete = additive.is_complete() && additive.offsets.len() == scores;
            if !fits || !complete || additive.grid.check(&artifact.schema).is_err() {
                return Err(damaged("its curves do not fit its schema"));
            }
        } else if let Model::Network(network) = model {
            let [height, width, channels] = network.input;
            let size = height.saturating_mul(width).saturating_mul(channels);
            let own = d - usize::from(artifact.schema.intercept && d > 0);
            if !fits || network.outputs() != scores || size != own || network.network().is_none() {
                return Err(damaged("its network does not fit its schema"));
            }
        } else if !fits || lists.len() != scores || lists.iter().any(|w| w.len() != d || w.iter().any(|x| !x.is_finite())) {
            return Err(damaged("its weights do not fit its schema"));
        }
        let finite = |m: &RowMap| m.constant.is_finite() && m.weight.is_finite() && m.factors.iter().all(|f| f.is_finite());
        if model.map().is_some_and(|m| m.factors.len() != d || !finite(m)) {
            return Err(damaged("its map of rows does not fit its schema"));
        }
        artifact.guarantee.event.validate().map_err(|_| damaged("its event is not one"))?;
        let g = &artifact.guarantee;
        let private = !matches!(g.event, Event::NotPrivate { .. });
        if g.private != private || private && g.simulated || !private && (g.zero_out.is_some() || g.replace_one.is_some()) {
            return Err(damaged("its event and its guarantee disagree"));
        }
        Ok(artifact)
    }
}
