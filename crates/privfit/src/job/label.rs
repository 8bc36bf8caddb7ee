//! Private labels of public points: the job around an ensemble (`prediction/`).
//!
//! Released are the noisy counts of the labels of the points that the ensemble is sure of, and which those are; a linear student of them comes with it.
//! Every other student is trained on what was released (`student_on`), at no further cost.

use super::facts::PublicFacts;
use super::fit::{Job, Outcome, Prepared, prepare};
use super::output::Output;
use super::release::Release;
use crate::artifact::Artifact;
use crate::data::labelled::LabelledRows;
use crate::data::load::Records;
use crate::error::{Error, Result};
use crate::method::ensemble::plan::Ensemble;
use crate::method::ensemble::{METHOD, student};
use crate::method::settings::Teachers;
use crate::method::{Learned, Settings};
use crate::prediction::command::{CommandArguments, ReadyCommand};
use crate::prediction::labels::Labels;
use crate::schema::{Features, ImageEncoder, Schema};
use privfit_kernel::account::Event;
use privfit_kernel::engine::{Engine, Needs};
use privfit_kernel::{Dataset, Entropy, PublicRows, Run};
use std::sync::Arc;

/// A job of labels, complete before data are opened.
pub struct LabelJob {
    prepared: Prepared,
    ensemble: Ensemble,
    points: Arc<PublicRows>,
    command: Option<(CommandArguments, ReadyCommand)>,
}

/// Pictures are seen by teachers as scattering features, which the schema may say otherwise; public points are encoded in the same way.
pub fn encoded(mut schema: Schema) -> Schema {
    if let Features::Image { shape, encoder: encoder @ None, .. } = &mut schema.features {
        let usual = shape.len() >= 2 && shape[..2].iter().all(|side| *side >= crate::data::scattering::USUAL_SIDE);
        *encoder = Some(if usual { ImageEncoder::Scattering } else { ImageEncoder::Pixels });
    }
    schema
}

/// Plans: a pure function of public facts and public points. `job` says the rest as for any fit; its method is that of ensembles.
pub fn plan(job: &Job, rows: u64, counted: bool, command: Option<CommandArguments>) -> Result<LabelJob> {
    let mut job = Job { method: METHOD.name.into(), ..job.clone() };
    let Some(points) = job.auxiliary.clone().filter(|points| !points.is_empty()) else {
        return Err(Error::misuse("labels are for public points, and none are given: add ").naming("points"));
    };
    if command.is_some() {
        job.settings.0.insert("teachers".into(), f64::from(Teachers::Command as u8));
    }
    let prepared = prepare(&job, rows, counted)?;
    let ensemble = Ensemble::new(&prepared.problem)?;
    if (ensemble.teachers() == Teachers::Command) != command.is_some() {
        return Err(Error::misuse("the teachers are those of a command, and there is none: give ").naming("command"));
    }
    let ready = |arguments: CommandArguments| -> Result<_> {
        let ready = arguments.ready(&points, ensemble.classes())?;
        Ok((arguments, ready))
    };
    let command = command.map(ready).transpose()?;
    Ok(LabelJob { prepared, ensemble, points, command })
}

impl LabelJob {
    /// Its parameters, for people.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        self.ensemble.describe()
    }

    /// What the system can't keep a command from.
    pub fn warnings(&self) -> Vec<String> {
        let command = self.command.iter().flat_map(|(_, ready)| ready.warnings()).map(String::from);
        command.chain(self.prepared.warnings()).collect()
    }

    /// Seconds that a command takes for all parts; none without one.
    pub fn seconds(&self) -> Option<f64> {
        self.command.as_ref().map(|(_, ready)| ready.seconds(self.ensemble.parts()))
    }

    /// What the budget buys: most answers, and the share of the votes at which an answer is the ensemble's with 95 %; for this job, and for others.
    pub fn offers(&self) -> Vec<(u64, f64)> {
        let mut out = vec![(self.ensemble.votes().answers(), self.ensemble.sure_at())];
        let job = &self.prepared.problem;
        for answers in [10u64, 100, 1000, 10_000] {
            if answers < self.points.len() as u64 && answers != out[0].0 {
                let mut settings: Settings = job.settings.clone();
                settings.0.insert("answers".into(), answers as f64);
                let problem = crate::method::Problem { settings, ..job.clone() };
                out.extend(Ensemble::new(&problem).ok().map(|e| (e.votes().answers(), e.sure_at())));
            }
        }
        out.sort_by_key(|offer| offer.0);
        out.dedup_by_key(|offer| offer.0);
        out
    }

    /// The public points.
    pub fn points(&self) -> usize {
        self.points.len()
    }
}

impl Release for LabelJob {
    fn kind(&self) -> &'static str {
        "label"
    }

    fn facts(&self) -> &PublicFacts {
        self.prepared.facts()
    }

    fn event(&self) -> &Event {
        self.ensemble.event()
    }

    fn needs(&self) -> Needs {
        Needs::Records
    }

    fn steps(&self) -> u64 {
        self.ensemble.steps()
    }

    fn statement(&self) -> serde_json::Value {
        let mut statement = self.prepared.statement();
        statement["command"] = self.command.as_ref().map_or(serde_json::Value::Null, |(arguments, _)| arguments.statement());
        statement
    }

    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        self.prepared.open(source, entropy)
    }

    fn run(&self, data: Dataset, engine: &dyn Engine, entropy: &Entropy, progress: &dyn Fn()) -> Result<Output> {
        let mut run = Run::begin(&data, engine, entropy, self.event())?.under(self.facts().adjacency);
        let command = self.command.as_ref().map(|(_, ready)| &ready.learner);
        let encoder = self.ensemble.encoder(&self.points);
        let answers = self.ensemble.answer(&mut run, (&self.points, &encoder), command, progress)?;
        let released = run.close(answers)?;
        let (event, numerics) = (released.event().clone(), released.numerics());
        let answers = released.into_value();
        let weights = student::weights(&self.ensemble, &encoder, &self.points, &answers);
        let learned = Learned::Weights(weights, None);
        let student = self.prepared.artifact(Outcome { learned, event, numerics, simulated: entropy.is_simulated() })?;
        let (parts, noise) = (u64::from(self.ensemble.parts()), self.ensemble.votes().deviation());
        Ok(Output::Labels(Box::new(Labels { answers, parts, noise, student })))
    }

    fn read(&self, bytes: &[u8]) -> Result<Output> {
        Ok(Output::Labels(Box::new(Labels::from_bytes(bytes)?)))
    }
}

/// The linear student, as a model of its own.
pub fn linear_student(labels: &Labels) -> Artifact {
    labels.student.clone().with_student(labels.student.model.clone())
}

/// A student of another family, trained by one of the methods here on the points that were answered, with noise that does not matter: everything that
/// it sees is public. The certificate that it gets is that of the labels.
pub fn student_on(labels: &Labels, points: &dyn Records, method: &str, threads: &dyn Engine) -> Result<Artifact> {
    let base = &labels.student;
    let schema = Schema { rows: None, unit: crate::schema::UnitOfPrivacy::Row, ..base.schema.clone() };
    let answered = LabelledRows::new(points, &schema, &labels.labels())?;
    let job = Job {
        schema,
        rows: None,
        // Noise far below what rows say; points are public and cost nothing.
        epsilon: 1e4,
        delta: Some(1e-6),
        adjacency: privfit_kernel::account::Adjacency::ZeroOut,
        loss: None,
        method: method.into(),
        settings: Settings::default(),
        constraint: crate::constraint::Constraint::None,
        allow_large_delta: true,
        compare: false,
        auxiliary: None,
        layers: None,
        pretrained: None,
    };
    let prepared = prepare(&job, answered.count(), false)?;
    let entropy = Entropy::system()?;
    let data = prepared.open(&answered, &entropy)?;
    let trained = prepared.train(&data, threads, &entropy, &|| {})?;
    Ok(base.clone().with_student(trained.model))
}
