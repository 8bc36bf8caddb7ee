//! The main job: public facts to a plan, a plan and data to a model file.

use super::facts::{PublicFacts, large_delta, public_rows};
use super::output::Output;
use super::release::Release;
use crate::artifact::Artifact;
use crate::certificate::versions;
use crate::checkpoint::Checkpoints;
use crate::constraint::Constraint;
use crate::data::encode::{columns, is_sparse};
use crate::data::load::Records;
use crate::data::scattering::USUAL_SIDE;
use crate::error::{Error, Result};
use crate::ledger::digest;
use crate::loss;
use crate::method::{self, Learned, Method, Plan, Problem, Settings, auto};
use crate::model::Model;
use crate::network::Pretrained;
use crate::plan_inputs::{PlanInputs, listed};
use crate::schema::Task;
use crate::schema::{Feature, Features, ImageEncoder, Schema, TargetValues, UnitOfPrivacy};
use crate::training::{Fact, Guarantee, Training};
use privfit_kernel::account::{Adjacency, Event};
use privfit_kernel::engine::{Engine, Needs};
use privfit_kernel::{Dataset, Entropy, Numerics, PublicRows, Run};
use std::sync::Arc;

/// Everything that a training job says.
#[derive(Clone)]
pub struct Job {
    /// Public facts about the data.
    pub schema: Schema,
    /// Rows or units, if declared on the command line.
    pub rows: Option<u64>,
    /// Epsilon.
    pub epsilon: f64,
    /// Delta; 0 asks for pure privacy.
    pub delta: Option<f64>,
    /// What "one record differs" means.
    pub adjacency: Adjacency,
    /// Name of the loss; none for the usual one.
    pub loss: Option<String>,
    /// Name of the method; `auto` and `linear` for what the public facts suggest.
    pub method: String,
    /// Numbers of method and loss.
    pub settings: Settings,
    /// Where weights are held.
    pub constraint: Constraint,
    /// A delta of 1/n or more is meant.
    pub allow_large_delta: bool,
    /// A published form is to be run for comparison, whatever it truly guarantees.
    pub compare: bool,
    /// Encoded rows without labels that are public, for methods whose answers teach a student.
    pub auxiliary: Option<Arc<PublicRows>>,
    /// Layers of a network before its scores, in words, where one is asked for: none for those that the public facts suggest.
    pub layers: Option<Vec<String>>,
    /// Layers that were trained on public rows and stay as they are, so that only the scores are trained on the records (`job/pretrain.rs`).
    pub pretrained: Option<Arc<Pretrained>>,
}

impl Job {
    /// Number of rows or units, and whether it was counted in the files.
    pub fn rows(&self, source: Option<&dyn Records>) -> Result<(u64, bool)> {
        public_rows(&self.schema, self.rows, self.adjacency, source)
    }
}

/// A job with its plan, before data are opened.
pub struct Prepared {
    /// The public facts that the plan rests on.
    pub problem: Problem,
    /// The method.
    pub method: &'static Method,
    /// Its plan.
    pub plan: Box<dyn Plan>,
    /// Why this method, if it was not chosen by name.
    pub reason: Option<&'static str>,
    pub(crate) job: Job,
    facts: PublicFacts,
    public_candidates: Option<u64>,
}

/// What a run released, with what is said about how.
pub(crate) struct Outcome {
    pub(crate) learned: Learned,
    pub(crate) event: Event,
    pub(crate) numerics: Numerics,
    pub(crate) simulated: bool,
}

/// Plans: a pure function of public facts.
pub fn prepare(job: &Job, rows: u64, counted: bool) -> Result<Prepared> {
    let task = job.schema.task();
    let job = &encoded_images(job);
    // Whoever gives layers, or public rows to train them on, means a network.
    let layered = job.layers.is_some() || job.pretrained.is_some();
    let job = &match layered && auto::NAMES.contains(&job.method.as_str()) {
        true => Job { method: method::network::METHOD.name.into(), ..job.clone() },
        false => job.clone(),
    };
    if job.layers.is_some() && !method::find(&job.method).is_some_and(|m| m.can.of_layers) {
        return Err(Error::misuse(format!("{} trains no network: leave layers out, or use ", job.method))
            .give("method", method::network::METHOD.name));
    }
    if job.pretrained.is_some() && !method::find(&job.method).is_some_and(|m| m.can.of_layers) {
        return Err(Error::misuse(format!("{} trains no layers on public rows: leave out ", job.method))
            .naming("public_rows")
            .text(", or use ")
            .give("method", method::network::METHOD.name));
    }
    let can = method::find(&job.method).map(|m| m.can);
    let usual = match can {
        Some(can) if can.of_cells => loss::usual_of_cells(task),
        Some(can) if can.of_layers => loss::usual_of_layers(task),
        _ => loss::usual(task),
    };
    let Some(name) = job.loss.as_deref().or(usual.map(|l| l.name)) else {
        // A forgotten target must not become another task.
        let forgotten = Error::misuse("the schema has no [target]: add one, or ask for a point with ");
        let points = loss::ALL.iter().filter(|l| l.fits(task)).enumerate();
        return Err(points.fold(forgotten, |e, (i, l)| if i > 0 { e.text(" or ") } else { e }.give("loss", l.name)));
    };
    let Some(loss) = loss::find(name) else {
        let known: Vec<&str> = loss::ALL.iter().map(|l| l.name).collect();
        let hint = crate::nearest::hint(name, known.iter().copied());
        return Err(Error::misuse(format!("unknown loss {name:?}: {hint}known are {}", known.join(", "))));
    };
    if loss.counts
        && let TargetValues::Bounds(low, high) = job.schema.target.values
        && low != 0.0
    {
        let high = if high > 0.0 { high } else { 100.0 };
        return Err(Error::misuse(format!(
            "loss {} is for counts from 0 and the target begins at {low}: give bounds = [0, {high}] in [target], or use ",
            loss.name
        ))
        .give("loss", loss::usual_name(task)));
    }
    let named = method::find(&job.method);
    if let Some(published) = named.filter(|m| m.published && !job.compare) {
        return Err(Error::misuse(format!("{} is a published form and may not guarantee what it is asked for: use its repaired form (`privfit methods`), or add ", published.name)).naming("compare").text(" to run it and see what it truly guarantees"));
    }
    let pure = named.is_some_and(|m| m.can.pure_by_default);
    let delta = job.delta.or(pure.then_some(0.0));
    if delta.is_none() {
        let missing = Error::misuse("delta is missing: add ")
            .give("delta", format!("{:.1e}", 1.0 / (rows.max(2) as f64).powi(2)))
            .text(" (1/rows^2)");
        return Err(match task {
            Task::Location => missing,
            _ => missing
                .text(", or ")
                .give("method", method::output::METHOD.name)
                .text(" with ")
                .give("delta", "0")
                .text(" for pure privacy"),
        });
    }
    let (asked, large) = ((job.epsilon, delta), job.allow_large_delta);
    let facts =
        PublicFacts::new(job.schema.clone(), (rows, counted), job.adjacency, asked, large).map_err(|error| match delta {
            // Only a fit can be told that it is meant.
            Some(delta) if delta < 1.0 && large_delta(delta, rows) && !large => {
                error.text(", or ").naming("allow_large_delta").text(" if you mean it")
            }
            _ => error,
        })?;
    let rows_per_unit = match job.schema.unit {
        UnitOfPrivacy::Row => 1,
        UnitOfPrivacy::Column { max_rows, .. } => max_rows,
    };
    let problem = Problem {
        schema: Arc::new(job.schema.clone()),
        rows,
        rows_known: facts.rows_known(),
        rows_per_unit,
        features: job.schema.dimension(),
        sparse: is_sparse(&job.schema),
        columns: columns(&job.schema),
        task,
        loss,
        weights: job.schema.target.weights.clone(),
        adjacency: job.adjacency,
        target: facts.target,
        constraint: job.constraint,
        settings: job.settings.clone(),
        auxiliary: job.auxiliary.clone(),
        layers: job.layers.clone(),
        pretrained: job.pretrained.clone(),
    };
    // Published forms have losses of their own, which the model must name.
    let problem = if named.is_some_and(|m| m.published) { method::published::published_loss(&problem) } else { problem };
    // Whoever names a loss means that of a linear model, or names the method.
    let curves = (job.method == "auto" && job.loss.is_none())
        .then(|| Problem { loss: loss::usual_of_cells(task).unwrap_or(loss), ..problem.clone() })
        .and_then(|problem| auto::additive(&problem).map(|reason| (problem, reason)));
    let free = job.method == "auto" && job.loss.is_none();
    let network = free.then(|| auto::network(&problem).map(|why| (method::network::METHOD.name, why))).flatten();
    let either = free.then(|| auto::additive_or_network(&problem).map(|why| (method::additive_or_network::METHOD.name, why)));
    let layers = network.or(either.flatten());
    let layers = layers.map(|which| (Problem { loss: loss::usual_of_layers(task).unwrap_or(loss), ..problem.clone() }, which));
    let chosen = auto::NAMES.contains(&job.method.as_str());
    let (name, problem, reason) = match (layers, curves) {
        (Some((problem, (name, reason))), _) => (name, problem, Some(reason)),
        (_, Some((problem, reason))) => (method::additive::METHOD.name, problem, Some(reason)),
        _ => (job.method.as_str(), problem.clone(), chosen.then(|| auto::choose(&problem).1)),
    };
    let (method, plan) = method::plan(name, &problem)?;
    Ok(Prepared { facts, problem, method, plan, reason, job: job.clone(), public_candidates: None })
}

/// Pictures become scattering features where nobody asked for another encoder, for layers or for another method.
fn encoded_images(job: &Job) -> Job {
    let mut job = job.clone();
    let Features::Image { shape, encoder, .. } = &mut job.schema.features else { return job };
    if encoder.is_some() {
        return job;
    }
    let layered = job.layers.is_some() || job.pretrained.is_some();
    let free = !layered && job.loss.is_none() && job.constraint == Constraint::None;
    let method = job.method == "auto" || job.method == method::network::METHOD.name;
    let known = job.settings.0.keys().all(|name| method::network::METHOD.has(name));
    let large = shape.len() >= 2 && shape[..2].iter().all(|side| *side >= USUAL_SIDE);
    let possible =
        job.delta.is_some_and(|d| d > 0.0) && job.adjacency != Adjacency::AddRemove && job.schema.target.weights.is_empty();
    let classes = matches!(job.schema.target.values, TargetValues::Classes(_) | TargetValues::Positive(_));
    let scattered = free && method && known && large && possible && classes;
    // Networks say which, so that their plan can be made again; other methods take pixels.
    *encoder = match (scattered, job.method == method::network::METHOD.name || layered) {
        // Colours are those of photographs, whose classes rarely tell left from right; signs and letters have none.
        (true, _) if shape.get(2) == Some(&3) => Some(ImageEncoder::MirroredScattering),
        (true, _) => Some(ImageEncoder::Scattering),
        (false, true) => Some(ImageEncoder::Pixels),
        (false, false) => None,
    };
    job
}

impl Release for Prepared {
    fn kind(&self) -> &'static str {
        "fit"
    }

    fn facts(&self) -> &PublicFacts {
        &self.facts
    }

    fn event(&self) -> &Event {
        self.plan.event()
    }

    fn needs(&self) -> Needs {
        self.plan.needs()
    }

    fn steps(&self) -> u64 {
        self.plan.steps()
    }

    fn statement(&self) -> serde_json::Value {
        let p = &self.problem;
        // Public rows, so that their digest tells nothing about anybody.
        let auxiliary = self.job.auxiliary.as_ref().map(|rows| {
            let bytes: Vec<u8> = rows.cells().iter().flat_map(|x| x.to_bits().to_le_bytes()).collect();
            digest(&[b"auxiliary", &bytes])
        });
        let mut statement = serde_json::json!({
            "schema": self.job.schema, "rows": p.rows, "epsilon": p.target.epsilon, "delta": p.target.delta, "loss": p.loss.name,
            "method": self.method.name, "settings": p.settings.0, "constraint": format!("{:?}", p.constraint), "auxiliary": auxiliary,
            "layers": p.layers, "event": self.event(),
        });
        // With the digest of frozen layers in it, so that no run goes on with others.
        if let Some(pretrained) = &p.pretrained {
            statement["pretrained"] = serde_json::json!(pretrained.recorded());
        }
        statement
    }

    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        self.facts.open(source, self.plan.row_form(), entropy)
    }

    fn run(&self, data: Dataset, engine: &dyn Engine, entropy: &Entropy, progress: &dyn Fn()) -> Result<Output> {
        Ok(Output::Model(Box::new(self.train(&data, engine, entropy, progress)?)))
    }

    fn resumable(&self) -> bool {
        self.method.can.resumable
    }

    fn keeps_keys(&self) -> bool {
        self.plan.keeps_keys()
    }

    fn run_kept(
        &self,
        data: Dataset,
        engine: &dyn Engine,
        entropy: &Entropy,
        progress: &dyn Fn(),
        kept: &mut dyn Checkpoints,
    ) -> Result<Output> {
        Ok(Output::Model(Box::new(self.train_by(&data, engine, entropy, |run| self.plan.learn_kept(run, progress, kept))?)))
    }

    fn read(&self, bytes: &[u8]) -> Result<Output> {
        Ok(Output::Model(Box::new(Artifact::from_bytes(bytes)?)))
    }
}

impl Prepared {
    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// What looks wrong about the public facts. Nothing about the records: they are not open yet.
    pub fn warnings(&self) -> Vec<String> {
        /// Ranges beyond this are seldom those of a quantity that somebody has measured.
        const WIDEST: f64 = 1e8;
        let wide = |what: String, low: f64, high: f64| {
            (high - low > WIDEST).then(|| {
                format!("{what} has the bounds {low:e} to {high:e}, and what is small against that can't be told apart: give the least and the largest value that can truly occur")
            })
        };
        let target = match self.job.schema.target.values {
            TargetValues::Bounds(low, high) => wide("the target".into(), low, high),
            _ => None,
        };
        let Features::Table(columns) = &self.job.schema.features else { return target.into_iter().collect() };
        let column = |(name, feature): &(String, Feature)| match feature {
            Feature::Number { min, max, log: false } => wide(format!("column {name:?}"), *min, *max),
            _ => None,
        };
        columns.iter().filter_map(column).chain(target).collect()
    }

    /// The settings are the best of so many candidates on rows that were declared public.
    pub fn chosen_on_public_rows(mut self, candidates: usize) -> Prepared {
        self.public_candidates = Some(candidates as u64);
        self
    }

    /// Trains.
    pub fn train(&self, data: &Dataset, engine: &dyn Engine, entropy: &Entropy, progress: &dyn Fn()) -> Result<Artifact> {
        self.train_by(data, engine, entropy, |run| self.plan.learn(run, progress))
    }

    /// Trains by one of the ways in which a plan learns.
    fn train_by(
        &self,
        data: &Dataset,
        engine: &dyn Engine,
        entropy: &Entropy,
        learn: impl FnOnce(&mut Run<'_>) -> Result<Learned>,
    ) -> Result<Artifact> {
        let mut run = Run::begin(data, engine, entropy, self.plan.event())?.under(self.problem.adjacency);
        let learned = learn(&mut run)?;
        let released = run.close(learned)?;
        let (event, numerics) = (released.event().clone(), released.numerics());
        let outcome = Outcome { learned: released.into_value(), event, numerics, simulated: entropy.is_simulated() };
        self.artifact(outcome)
    }

    /// The numbers of the loss, as a model has them.
    pub(crate) fn loss_parameters(&self) -> Result<Vec<f64>> {
        match self.problem.task {
            Task::Location => self.problem.loss_numbers(),
            _ => Ok(self.problem.build_loss(1)?.parameters().to_vec()),
        }
    }

    /// The model of what was learned.
    pub(crate) fn model(&self, learned: Learned) -> Result<Model> {
        let (weights, map) = match learned {
            Learned::Weights(weights, map) => (weights, map),
            Learned::Additive(model) => return Ok(Model::Additive(model)),
            Learned::Network(model) => return Ok(Model::Network(model)),
        };
        // Numbers that overflowed are released ones; a model file holds finite ones.
        let weights: Vec<f64> = weights.iter().map(|w| if w.is_finite() { *w } else { 0.0 }).collect();
        let weights = weights.chunks(self.problem.features).map(<[f64]>::to_vec).collect();
        Ok(Model::new(self.problem.loss, self.loss_parameters()?, self.problem.task.classes(), weights, map))
    }

    /// Whatever is taken as public, where there are so many rows or units.
    pub fn public_facts(&self, rows: u64) -> Vec<Fact> {
        let job = &self.job;
        let unit = match &job.schema.unit {
            UnitOfPrivacy::Row => "row".to_string(),
            UnitOfPrivacy::Column { column, max_rows } => format!("{column} (at most {max_rows} rows)"),
        };
        let units = if self.problem.rows_per_unit > 1 { "units" } else { "rows" };
        let counting = match (job.adjacency, self.facts.counted) {
            (Adjacency::AddRemove, _) => "declared estimate",
            (_, true) => "counted in the files",
            (_, false) => "declared",
        };
        let mut out = vec![
            Fact::of_schema(format!("schema of {:?}: names, bounds, categories, classes", job.schema.name)),
            Fact::of_schema(format!("unit of privacy: {unit}")),
            Fact::of_count(format!("number of {units}: {rows}"), counting),
            Fact::of_rules(format!("settings: loss {}, method {}, and the plan", self.problem.loss.name, self.method.name)),
        ];
        if self.plan.follows_order() {
            out.push(Fact::of_job("the place of each row in the files, which no value of a row may have decided".into()));
        }
        if let Features::Image { moments: Some(moments), .. } = &job.schema.features {
            let (mean, deviation) = (&moments.mean, &moments.deviation);
            out.push(Fact::of_schema(format!("pixels by channel: mean {mean:?}, deviation {deviation:?}, declared public")));
        }
        if job.constraint != Constraint::None {
            out.push(Fact::of_rules(format!("settings: weights are held to {}", job.constraint.text())));
        }
        let delta = self.facts.target.delta;
        if large_delta(delta, rows) {
            out.push(Fact::of_rules(format!(
                "settings: a delta of {delta}, 1/rows or more, was allowed; it permits publishing a whole record"
            )));
        }
        if let Some(rows) = &job.auxiliary {
            out.push(Fact::of_job(format!("auxiliary rows: {}, declared public by whoever gave them", rows.len())));
        }
        if let Some(pretrained) = &job.pretrained {
            out.push(Fact::of_job(pretrained.recorded().fact()));
        }
        if let Some(candidates) = self.public_candidates {
            out.push(Fact::of_rules(format!("settings: the best of {candidates} candidates on rows that were declared public")));
        }
        out
    }

    /// What a model file records about this plan: a function of public facts, so that a verifier can make it again.
    pub(crate) fn training(&self, numerics: Numerics) -> Training {
        let (rows, delta) = (self.problem.rows, self.problem.target.delta);
        Training {
            method: self.method.name.into(),
            plan: self.plan.describe().into_iter().map(|(k, v)| (k.to_string(), v)).collect(),
            reason: self.reason.map(String::from),
            settings: listed(&self.job.settings),
            numerics,
            rows,
            public: self.public_facts(rows),
            inputs: Some(PlanInputs {
                planner: versions::PLANNER,
                texts: versions::TEXTS,
                counted: self.facts.counted,
                constraint: self.job.constraint,
                allow_large_delta: large_delta(delta, rows),
                auxiliary: self.job.auxiliary.as_ref().map(|rows| rows.len() as u64),
                layers: self.job.layers.clone(),
                pretrained: self.job.pretrained.as_ref().map(|p| p.recorded()),
                public_candidates: self.public_candidates,
                selection: None,
            }),
        }
    }

    /// The model file of an outcome.
    pub(crate) fn artifact(&self, outcome: Outcome) -> Result<Artifact> {
        let training = self.training(outcome.numerics);
        self.certified(outcome, training, self.problem.target.epsilon, self.job.schema.clone())
    }

    /// The same, where more is recorded than this plan.
    pub(crate) fn certified(&self, outcome: Outcome, training: Training, epsilon: f64, schema: Schema) -> Result<Artifact> {
        let Outcome { learned, event, simulated, .. } = outcome;
        let guarantee = Guarantee {
            adjacency: self.problem.adjacency,
            private: !matches!(event, Event::NotPrivate { .. }),
            asked_epsilon: epsilon,
            delta: self.problem.target.delta,
            // Worked out with the certificate.
            zero_out: None,
            replace_one: None,
            event,
            simulated,
        };
        Ok(Artifact::certified(schema, self.model(learned)?, training, guarantee))
    }
}
