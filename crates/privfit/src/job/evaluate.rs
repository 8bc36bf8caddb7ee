//! Private metrics: how well a released model does on labelled records that are private themselves.
//!
//! Released is one noisy vector of sums over all units (`measure/sums.rs` has the claim). Accuracy, errors and the area under the curve are made from it alone
//! (`metric.rs`), and what they are divided by is one of the sums: no count of the records enters.

use super::facts::PublicFacts;
use super::output::{Output, PrivateMetrics};
use super::release::Release;
use crate::data::load::Records;
use crate::error::{Error, Result};
use crate::measure::{Kind, Measures, SumNoise, needs_delta};
use crate::metric::Sums;
use crate::model::Model;
use crate::schema::UnitOfPrivacy;
use crate::training::epsilon;
use privfit_kernel::account::{Adjacency, Event};
use privfit_kernel::engine::{Engine, Needs};
use privfit_kernel::{Dataset, Entropy, Run};

pub use crate::metric::Metric;

/// A measurement, complete before data are opened.
pub struct Measurement {
    model: Model,
    facts: PublicFacts,
    kind: Kind,
    noise: SumNoise,
    event: Event,
}

/// Plans: a pure function of public facts and of the released model.
pub fn prepare(model: &Model, facts: PublicFacts) -> Result<Measurement> {
    let kind = if model.classes() == 0 { Kind::Number } else { Kind::Classes };
    let measures = Measures::of(kind, model)?;
    if matches!(measures, Measures::Network(_)) {
        if facts.target.delta == 0.0 {
            return Err(needs_delta());
        }
        if facts.adjacency == Adjacency::AddRemove {
            return Err(Error::misuse("networks sum blocks of records by their number, which add-remove changes: use ")
                .give("adjacency", "zero-out"));
        }
        if facts.schema.unit != UnitOfPrivacy::Row {
            return Err(Error::misuse("networks take units of one row: give unit = \"row\" in the schema"));
        }
    }
    let noise = SumNoise::meeting(kind, facts.target, facts.adjacency, facts.rows)?;
    let event = noise.event(kind);
    Ok(Measurement { model: model.clone(), facts, kind, noise, event })
}

impl Release for Measurement {
    fn kind(&self) -> &'static str {
        "evaluate"
    }

    fn facts(&self) -> &PublicFacts {
        &self.facts
    }

    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        self.noise.needs()
    }

    fn steps(&self) -> u64 {
        1
    }

    fn statement(&self) -> serde_json::Value {
        let facts = &self.facts;
        serde_json::json!({
            "schema": facts.schema, "model": self.model, "rows": facts.rows, "epsilon": facts.target.epsilon,
            "delta": facts.target.delta, "event": self.event,
        })
    }

    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        self.facts.open(source, self.model.grid().into(), entropy)
    }

    fn run(&self, data: Dataset, engine: &dyn Engine, entropy: &Entropy, progress: &dyn Fn()) -> Result<Output> {
        let mut run = Run::begin(&data, engine, entropy, &self.event)?.under(self.facts.adjacency);
        let sums = self.release(&mut run)?;
        let released = run.close(sums)?;
        progress();
        let (private, delta) = (!entropy.is_simulated(), self.facts.target.delta);
        let view = |a| epsilon(&self.event, a, delta).filter(|_| private);
        Ok(Output::Metrics(PrivateMetrics {
            private,
            zero_out: view(Adjacency::ZeroOut),
            replace_one: view(Adjacency::ReplaceOne),
            delta,
            event: released.event().clone(),
            metrics: self.metrics(released.value()),
        }))
    }

    fn read(&self, bytes: &[u8]) -> Result<Output> {
        let damaged = |_| Error::damaged("the released metrics can't be read: use a newer privfit");
        Ok(Output::Metrics(serde_json::from_slice(bytes).map_err(damaged)?))
    }
}

impl Measurement {
    /// Expected standard deviation of the noise in a share such as the accuracy.
    pub fn noise(&self) -> f64 {
        self.noise.deviation(self.kind) / self.facts.rows.max(1) as f64
    }

    /// All sums with noise: everything that leaves.
    pub(crate) fn release(&self, run: &mut Run<'_>) -> Result<Vec<f64>> {
        self.noise.release(run, &Measures::of(self.kind, &self.model)?)
    }

    /// Metrics from the noisy sums, and from nothing else.
    fn metrics(&self, sums: &[f64]) -> Vec<Metric> {
        let sums = Sums { sums, deviation: self.noise.deviation(self.kind), rows: self.facts.rows };
        match self.kind {
            Kind::Score => Vec::new(),
            Kind::Classes => {
                let probabilities = self.model.link().has_probabilities();
                sums.classes(self.model.classes(), probabilities, self.model.outputs() == 1)
            }
            Kind::Number => sums.number(&self.facts.schema.target.values),
        }
    }
}

impl PrivateMetrics {
    /// For programs: each metric by its name, null where it is withheld, with errors and what it cost.
    pub fn json(&self) -> serde_json::Value {
        let metrics = &self.metrics;
        let of = |get: &dyn Fn(&Metric) -> Option<f64>| -> serde_json::Map<String, serde_json::Value> {
            metrics.iter().map(|m| (m.name.clone(), get(m).into())).collect()
        };
        let mut map = of(&|m| m.value);
        map.insert("noise".into(), of(&|m| m.noise).into());
        let biased: Vec<&Metric> = metrics.iter().filter(|m| m.bias.is_some()).collect();
        map.insert("bias".into(), biased.iter().map(|m| (m.name.clone(), serde_json::Value::from(m.bias))).collect());
        let withheld: Vec<&str> = metrics.iter().filter(|m| m.value.is_none()).map(|m| m.name.as_str()).collect();
        map.insert("withheld".into(), withheld.into());
        map.insert("private".into(), self.private.into());
        map.insert("epsilon".into(), serde_json::json!({"zero_out": self.zero_out, "replace_one": self.replace_one}));
        map.insert("delta".into(), self.delta.into());
        map.insert("event".into(), serde_json::to_value(&self.event).unwrap_or_default());
        map.into()
    }
}
