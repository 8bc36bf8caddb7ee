//! Training, and what it would cost.

use crate::data::{Input, Labels};
use crate::error::{misuse, raised, spelled};
use crate::interrupt::{poll, without_lock};
use crate::ledger::session;
use crate::model::Model;
use crate::schema::Schema;
use crate::settings::{SettingsInput, settings};
use privfit::account::Adjacency;
use privfit::certificate::Declared;
use privfit::constraint::Constraint;
use privfit::data::memory::Memory;
use privfit::engine::Threads;
use privfit::job::fit::{Job, prepare};
use privfit::job::release::{Context, Delivered, LedgerSession};
use privfit::job::{Release, release};
use privfit::kernel::Entropy;
use privfit::method::{self, Method};
use privfit::{Error, Result, loss};
use pyo3::prelude::*;
use serde_json::json;

/// What an estimator asks for; the names are those of its constructor.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    rows: Option<u64>,
    epsilon: f64,
    delta: Option<f64>,
    adjacency: String,
    loss: Option<String>,
    method: String,
    settings: SettingsInput,
    layers: Option<Vec<String>>,
    allow_large_delta: bool,
    pub(crate) ledger: Option<String>,
    ledger_key: Option<String>,
    request: Option<String>,
    threads: Option<usize>,
    simulate: Option<u64>,
}

impl Arguments {
    pub(crate) fn job(&self, schema: &Schema) -> PyResult<Job> {
        let adjacency: Adjacency = self.adjacency.parse().map_err(|e: privfit::account::Error| raised(Error::from(e)))?;
        Ok(Job {
            schema: schema.0.clone(),
            rows: self.rows,
            epsilon: self.epsilon,
            delta: self.delta,
            adjacency,
            loss: self.loss.clone(),
            method: self.method.clone(),
            settings: settings(&self.settings)?,
            constraint: Constraint::None,
            allow_large_delta: self.allow_large_delta,
            compare: false,
            auxiliary: None,
            layers: self.layers.clone(),
            pretrained: None,
        })
    }

    fn session(&self) -> Result<Option<LedgerSession>> {
        session(self.ledger.as_deref(), self.ledger_key.as_deref(), self.request.as_deref(), self.simulate)
    }

    /// Threads that are asked for, or as many as there are cores.
    pub(crate) fn threads(&self) -> usize {
        threads(self.threads)
    }

    /// Randomness. It comes first: without it no data are opened.
    pub(crate) fn entropy(&self) -> Result<Entropy> {
        entropy(self.simulate)
    }

    /// Reserves, opens the data, trains, commits.
    pub(crate) fn release(&self, job: &dyn Release, memory: &Memory<'_>, entropy: &Entropy) -> Result<Model> {
        let delivered = self.deliver(job, memory, entropy)?;
        let artifact = delivered.output.into_model().ok_or(Error::Host)?;
        Ok(Model { artifact, bytes: delivered.bytes, before: delivered.before })
    }

    /// The same for whatever is released.
    pub(crate) fn deliver(&self, job: &dyn Release, memory: &Memory<'_>, entropy: &Entropy) -> Result<Delivered> {
        release(job, context(memory, &Threads::new(self.threads()), entropy, self.session()?))
    }

    /// Whether the ledger, if there is one, has room for an event.
    pub(crate) fn room(&self, job: &dyn Release) -> Result<Option<serde_json::Value>> {
        let status = self.session()?.map(|mut session| session.ledger.status()).transpose()?;
        Ok(status.map(|status| {
            let fits = job.facts().scope().is_ok_and(|scope| scope == status.terms.scope);
            match (fits, status.admits(job.event())) {
                (false, _) => json!({"fits": false, "why": "the ledger is for other data, another unit or another adjacency"}),
                (true, Err(error)) => json!({"fits": false, "why": spelled(&error)}),
                (true, Ok((_, sum))) => json!({"fits": true, "part": sum.part(&status.terms.rule)}),
            }
        }))
    }
}

/// What a release gets from Python: no file, and a look at signals after each step.
pub(crate) fn context<'a>(
    memory: &'a Memory<'a>,
    engine: &'a Threads,
    entropy: &'a Entropy,
    ledger: Option<LedgerSession>,
) -> Context<'a> {
    let declared = Declared::default();
    Context {
        source: memory,
        engine,
        entropy,
        ledger,
        declared,
        out: None,
        checkpoint: None,
        opening: &|| {},
        opened: &|| {},
        progress: &poll,
    }
}

/// That many threads, or as many as there are cores.
pub(crate) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get())).max(1)
}

/// Randomness of the system, or of a seed.
pub(crate) fn entropy(simulate: Option<u64>) -> Result<Entropy> {
    Ok(match simulate {
        None => Entropy::system()?,
        Some(seed) => Entropy::simulated(seed),
    })
}

/// Trains: reserves, opens the data, trains, commits.
#[pyfunction]
pub(crate) fn fit(
    py: Python<'_>,
    data: Input<'_>,
    labels: Option<Bound<'_, Labels>>,
    schema: &Schema,
    asked: Arguments,
) -> PyResult<Model> {
    let job = asked.job(schema)?;
    let memory = data.memory(&schema.0, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    without_lock(py, || {
        let entropy = asked.entropy()?;
        let (rows, counted) = job.rows(Some(&memory))?;
        asked.release(&prepare(&job, rows, counted)?, &memory, &entropy)
    })
}

/// What a job would do and cost, as JSON. No data are opened.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, schema: &Schema, asked: Arguments) -> PyResult<String> {
    let job = asked.job(schema)?;
    without_lock(py, || {
        let (rows, counted) = job.rows(None)?;
        let prepared = prepare(&job, rows, counted)?;
        let (event, delta) = (prepared.plan.event(), prepared.problem.target.delta);
        let view = |a| privfit::training::epsilon(event, a, delta);
        let forecast = privfit::forecast::forecast(&prepared.problem, prepared.plan.as_ref());
        let plan = prepared.plan.describe();
        let fits = asked.room(&prepared)?;
        let json = json!({
            "method": prepared.method.name, "reason": prepared.reason, "loss": prepared.problem.loss.name, "rows": prepared.problem.rows,
            "features": prepared.problem.features, "adjacency": job.adjacency.name(), "delta": delta,
            "epsilon": {"zero_out": view(Adjacency::ZeroOut), "replace_one": view(Adjacency::ReplaceOne)}, "plan": plan, "event": event,
            "forecast": forecast.json(), "ledger": fits, "public": prepared.public_facts(prepared.problem.rows),
        });
        Ok(json.to_string())
    })
}

/// Every method and loss, as JSON.
#[pyfunction]
pub(crate) fn methods() -> PyResult<String> {
    let status = |m: &Method| if m.published { "published form, for comparison only" } else { "private" };
    let methods: Vec<serde_json::Value> = method::ALL
        .iter()
        .chain(method::OF_POINTS)
        .chain(method::published::ALL)
        .map(|m| {
            let settings: serde_json::Map<_, _> = m.settings.iter().map(|s| (s.name.into(), s.meaning.into())).collect();
            json!({"name": m.name, "alias": m.alias, "needs": m.needs, "guarantee": m.guarantee, "source": m.source,
                "status": status(m), "settings": settings})
        })
        .collect();
    let losses: Vec<serde_json::Value> = loss::ALL
        .iter()
        .map(|l| {
            let number = |n: &loss::Parameter| json!({"name": n.name, "default": n.default, "range": [n.range.0, n.range.1]});
            json!({"name": l.name, "what": l.what, "settings": l.parameters.iter().map(number).collect::<Vec<_>>()})
        })
        .collect();
    serde_json::to_string(&json!({"methods": methods, "losses": losses})).map_err(|_| misuse("the list can't be written"))
}
