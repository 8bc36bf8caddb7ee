//! The main job: public facts to a plan, a plan and data to a model file.

use crate::artifact::{Artifact, Guarantee, Training};
use crate::certificate::versions;
use crate::constraint::Constraint;
use crate::data::encode::{columns, is_sparse};
use crate::data::load::{Records, count, load};
use crate::error::{Error, Result};
use crate::ledger::record::Scope;
use crate::ledger::{Request, digest};
use crate::loss::{self, Task};
use crate::method::{self, Method, Plan, Problem, Settings, auto};
use crate::model::{Model, RowMap};
use crate::plan_inputs::{PlanInputs, listed};
use crate::schema::{Schema, TargetValues, UnitOfPrivacy};
use privfit_kernel::account::{Adjacency, Event, Target};
use privfit_kernel::engine::Threads;
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
    /// Name of the method, or `auto`.
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
    /// Whatever was taken as public.
    pub public: Vec<String>,
    pub(crate) job: Job,
    counted: bool,
    public_candidates: Option<u64>,
}

/// What a run released, with what is said about how.
pub(crate) struct Outcome {
    pub(crate) weights: Vec<f64>,
    pub(crate) map: Option<RowMap>,
    pub(crate) event: Event,
    pub(crate) numerics: Numerics,
    pub(crate) simulated: bool,
}

/// Number of rows or units: declared, or counted in the files as a public step. A declaration that differs is a misuse.
pub fn public_rows(job: &Job, source: Option<&dyn Records>) -> Result<(u64, bool)> {
    // Said by flags and schema alone, and so before anything is counted or spent.
    source.map_or(Ok(()), |source| source.check(&job.schema))?;
    let declared = match (job.rows, job.schema.rows) {
        (Some(a), Some(b)) if a != b => {
            return Err(Error::misuse(format!("--rows says {a} and the schema says {b}: give the same number, or one of them")));
        }
        (a, b) => a.or(b),
    };
    let grouped = job.schema.unit != UnitOfPrivacy::Row;
    match (declared, source) {
        (None, _) if grouped => {
            Err(Error::misuse("with a unit column the number of units is not counted: add units = N to [dataset], or --rows N"))
        }
        (None, _) if job.adjacency == Adjacency::AddRemove => {
            Err(Error::misuse("under add-remove the number of rows is private: declare a public estimate with --rows N"))
        }
        (None, None) => Err(Error::misuse("without data the number of rows must be declared: add --rows N")),
        (Some(rows), _) if grouped || job.adjacency == Adjacency::AddRemove => Ok((rows, false)),
        (Some(rows), None) => Ok((rows, false)),
        (declared, Some(source)) => {
            let counted = count(source, &job.schema)?;
            match declared {
                Some(rows) if rows != counted => Err(Error::misuse(format!(
                    "{rows} rows are declared and the files have {counted}: the guarantee rests on the true number, correct the declaration"
                ))),
                Some(rows) => Ok((rows, false)),
                None => Ok((counted, true)),
            }
        }
    }
}

/// Whether a delta lets a whole record be published: with probability delta each, one of so many is likely to be.
pub(crate) fn large_delta(delta: f64, rows: u64) -> bool {
    delta >= 1.0 / rows.max(1) as f64
}

/// Plans: a pure function of public facts.
pub fn prepare(job: &Job, rows: u64, counted: bool) -> Result<Prepared> {
    let task = job.schema.task();
    let usual = match task {
        Task::Classes(2) => "logistic",
        Task::Classes(_) => "softmax",
        Task::Number => "squared",
        // A forgotten target must not become another task.
        Task::Location if job.loss.is_none() => {
            return Err(Error::misuse(
                "the schema has no [target]: add one, or ask for a point with --loss mean or --loss geometric-median",
            ));
        }
        Task::Location => "mean",
    };
    let name = job.loss.as_deref().unwrap_or(usual);
    let Some(loss) = loss::find(name) else {
        let known: Vec<&str> = loss::ALL.iter().map(|l| l.name).collect();
        let hint = crate::nearest::hint(name, known.iter().copied());
        return Err(Error::misuse(format!("unknown loss {name:?}: {hint}known are {}", known.join(", "))));
    };
    if loss.name == "poisson"
        && let TargetValues::Bounds(low, high) = job.schema.target.values
        && low != 0.0
    {
        let high = if high > 0.0 { high } else { 100.0 };
        return Err(Error::misuse(format!(
            "loss poisson is for counts from 0 and the target begins at {low}: give bounds = [0, {high}] in [target], or use \
             --loss squared"
        )));
    }
    if !(job.epsilon > 0.0 && job.epsilon.is_finite()) {
        return Err(Error::misuse(format!("epsilon is {}: give a positive number", job.epsilon)));
    }
    let named = method::find(&job.method);
    if let Some(published) = named.filter(|m| m.published && !job.compare) {
        return Err(Error::misuse(format!(
            "{} is a published form and may not guarantee what it is asked for: use its repaired form (`privfit methods`), or add \
             --compare to run it and see what it truly guarantees",
            published.name
        )));
    }
    let pure = named.is_some_and(|m| ["output", "objective-pure"].contains(&m.name));
    let delta = match job.delta {
        Some(delta) => delta,
        None if pure => 0.0,
        None => {
            return Err(Error::misuse(format!(
                "delta is missing: add --delta {:.1e} (1/rows^2){}",
                1.0 / (rows.max(2) as f64).powi(2),
                if task == Task::Location { "" } else { ", or --method output --delta 0 for pure privacy" }
            )));
        }
    };
    if !(0.0..1.0).contains(&delta) {
        return Err(Error::misuse(format!("delta is {delta}: give a number from 0 to below 1")));
    }
    if large_delta(delta, rows) && !job.allow_large_delta {
        return Err(Error::misuse(format!(
            "delta is {delta} and there are {rows} rows: a delta of 1/rows or more allows publishing a whole record; give a smaller \
             one (say {:.1e}), or --allow-large-delta if you mean it",
            1.0 / (rows.max(2) as f64).powi(2)
        )));
    }
    let rows_per_unit = match job.schema.unit {
        UnitOfPrivacy::Row => 1,
        UnitOfPrivacy::Column { max_rows, .. } => max_rows,
    };
    let problem = Problem {
        rows,
        rows_known: job.adjacency != Adjacency::AddRemove && job.schema.unit == UnitOfPrivacy::Row,
        rows_per_unit,
        features: job.schema.dimension(),
        sparse: is_sparse(&job.schema),
        columns: columns(&job.schema),
        task,
        loss,
        weights: job.schema.target.weights.clone(),
        adjacency: job.adjacency,
        target: Target { epsilon: job.epsilon, delta },
        constraint: job.constraint,
        settings: job.settings.clone(),
        auxiliary: job.auxiliary.clone(),
    };
    // Published forms have losses of their own, which the model must name.
    let problem = if named.is_some_and(|m| m.published) { method::published::plain(&problem) } else { problem };
    let (method, plan) = method::plan(&job.method, &problem)?;
    let reason = (job.method == "auto").then(|| auto::reason(&problem));
    let unit = match &job.schema.unit {
        UnitOfPrivacy::Row => "row".to_string(),
        UnitOfPrivacy::Column { column, max_rows } => format!("{column} (at most {max_rows} rows)"),
    };
    let counting = match (job.adjacency, counted) {
        (Adjacency::AddRemove, _) => "declared estimate",
        (_, true) => "counted in the files",
        (_, false) => "declared",
    };
    let mut public = vec![
        format!("schema of {:?}: names, bounds, categories, classes", job.schema.name),
        format!("unit of privacy: {unit}"),
        format!("number of {}: {rows} ({counting})", if rows_per_unit > 1 { "units" } else { "rows" }),
        format!("settings: loss {}, method {}, and the plan", loss.name, method.name),
    ];
    if job.constraint != Constraint::None {
        public.push(format!("settings: weights are held to {}", job.constraint.text()));
    }
    if large_delta(delta, rows) {
        public.push(format!("settings: a delta of {delta}, 1/rows or more, was allowed; it permits publishing a whole record"));
    }
    if let Some(rows) = &job.auxiliary {
        public.push(format!("auxiliary rows: {}, declared public by whoever gave them", rows.len()));
    }
    Ok(Prepared { problem, method, plan, reason, public, job: job.clone(), counted, public_candidates: None })
}

/// Reads records; `known` is their number where that is public.
pub(crate) fn open(source: &dyn Records, schema: &Schema, entropy: &Entropy, known: Option<u64>) -> Result<Dataset> {
    let data = load(source, schema, entropy, known)?;
    // The count is public here, so that a file that changed in between may be noticed.
    match known {
        Some(rows) if rows != data.slots() as u64 => Err(Error::misuse(format!(
            "{rows} rows were declared or counted and {} were read: do not change the files meanwhile",
            data.slots()
        ))),
        _ => Ok(data),
    }
}

impl Prepared {
    /// Whose budget this job spends.
    pub fn scope(&self) -> Result<Scope> {
        let schema = &self.job.schema;
        Scope::of(schema, self.job.adjacency)
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The settings are the best of so many candidates on rows that were declared public.
    pub fn chosen_on_public_rows(mut self, candidates: usize) -> Prepared {
        self.public.push(format!("settings: the best of {candidates} candidates on rows that were declared public"));
        self.public_candidates = Some(candidates as u64);
        self
    }

    /// What this job asks of a ledger, under a name. Everything that it says is in the digest; where its files are is not.
    pub fn request(&self, name: &str) -> Result<Request> {
        let (p, event) = (&self.problem, self.plan.event());
        // Public rows, so that their digest tells nothing about anybody.
        let auxiliary = self.job.auxiliary.as_ref().map(|rows| {
            let bytes: Vec<u8> = rows.cells().iter().flat_map(|x| x.to_bits().to_le_bytes()).collect();
            digest(&[b"auxiliary", &bytes])
        });
        let said = serde_json::json!({
            "schema": self.job.schema, "rows": p.rows, "epsilon": p.target.epsilon, "delta": p.target.delta, "loss": p.loss.name,
            "method": self.method.name, "settings": p.settings.0, "constraint": format!("{:?}", p.constraint), "auxiliary": auxiliary,
            "event": event,
        });
        let version = env!("CARGO_PKG_VERSION");
        Ok(Request {
            name: name.into(),
            job: "fit".into(),
            digest: digest(&[b"fit", version.as_bytes(), name.as_bytes(), said.to_string().as_bytes()]),
            scope: self.scope()?,
            event: event.clone(),
        })
    }

    /// Reads the records. From here on nothing depends on what is in them, except through noise.
    pub fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        open(source, &self.job.schema, entropy, self.problem.rows_known.then_some(self.problem.rows))
    }

    /// Trains.
    pub fn train(&self, data: &Dataset, entropy: &Entropy, threads: usize, tick: &dyn Fn()) -> Result<Artifact> {
        let engine = Threads::new(threads);
        let mut run = Run::begin(data, &engine, entropy, self.plan.event())?.under(self.problem.adjacency);
        let (weights, map) = self.plan.run_with_map(&mut run, tick)?;
        let released = run.close(weights)?;
        let (event, numerics) = (released.event().clone(), released.numerics());
        let outcome = Outcome { weights: released.into_value(), map, event, numerics, simulated: entropy.is_simulated() };
        self.artifact(outcome)
    }

    /// The numbers of the loss, as a model has them.
    pub(crate) fn loss_parameters(&self) -> Result<Vec<f64>> {
        match self.problem.task {
            Task::Location => self.problem.loss_numbers(),
            _ => Ok(self.problem.build_loss(1)?.parameters),
        }
    }

    /// The model of these weights.
    pub(crate) fn model(&self, weights: Vec<f64>, map: Option<RowMap>) -> Result<Model> {
        // Numbers that overflowed are released ones; a model file holds finite ones.
        let weights: Vec<f64> = weights.iter().map(|w| if w.is_finite() { *w } else { 0.0 }).collect();
        Ok(Model {
            loss: self.problem.loss.name.into(),
            loss_parameters: self.loss_parameters()?,
            classes: self.problem.task.classes(),
            weights: weights.chunks(self.problem.features).map(<[f64]>::to_vec).collect(),
            map,
        })
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
            public: self.public.clone(),
            inputs: Some(PlanInputs {
                planner: versions::PLANNER,
                texts: versions::TEXTS,
                counted: self.counted,
                constraint: self.job.constraint,
                allow_large_delta: large_delta(delta, rows),
                auxiliary: self.job.auxiliary.as_ref().map(|rows| rows.len() as u64),
                public_candidates: self.public_candidates,
                selection: None,
            }),
        }
    }

    /// The model file of an outcome.
    fn artifact(&self, outcome: Outcome) -> Result<Artifact> {
        let training = self.training(outcome.numerics);
        self.certified(outcome, training, self.problem.target.epsilon, self.job.schema.clone())
    }

    /// The same, where more is recorded than this plan.
    pub(crate) fn certified(&self, outcome: Outcome, training: Training, epsilon: f64, schema: Schema) -> Result<Artifact> {
        let Outcome { weights, map, event, simulated, .. } = outcome;
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
        Ok(Artifact::certified(schema, self.model(weights, map)?, training, guarantee))
    }
}
