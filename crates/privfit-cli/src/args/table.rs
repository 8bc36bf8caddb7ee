//! A table that does not exist, by its public facts, and what a method would plan for it.

use super::settings::settings;
use crate::ui::Failure;
use privfit::account::Adjacency;
use privfit::constraint::Constraint;
use privfit::forecast::Forecast;
use privfit::job::fit::{Job, prepare};
use privfit::loss::{self, Kind};
use privfit::method::Settings;
use privfit::schema::{Feature, Features, Scaling, Schema, Target, TargetValues, UnitOfPrivacy};

/// Most columns that are planned for.
const MOST: u64 = 1_000_000;

/// The public facts of a table that does not exist.
pub(crate) struct PlannedTable {
    pub(crate) rows: u64,
    pub(crate) features: u64,
    pub(crate) loss: String,
    pub(crate) classes: Option<u64>,
    pub(crate) epsilon: f64,
    pub(crate) delta: Option<f64>,
    pub(crate) adjacency: Adjacency,
    pub(crate) settings: Settings,
    pub(crate) constraint: Constraint,
}

/// A plan with its forecast.
pub(crate) struct Planned {
    pub(crate) forecast: Forecast,
    pub(crate) plan: Vec<(String, String)>,
    pub(crate) noise: f64,
}

impl PlannedTable {
    pub(crate) fn schema(&self) -> Result<Schema, Failure> {
        let Some(entry) = loss::find(&self.loss) else {
            let known: Vec<&str> = loss::ALL.iter().map(|l| l.name).collect();
            let hint = privfit::nearest::hint(&self.loss, known.iter().copied());
            return Err(Failure::misuse(format!("unknown loss {:?}: {hint}known are {}", self.loss, known.join(", "))));
        };
        if entry.kind != Kind::Classes && self.classes.is_some() {
            return Err(Failure::misuse(format!("loss {} has no classes: leave out --classes", entry.name)));
        }
        let classes = self.classes.unwrap_or(if entry.multiclass { 3 } else { 2 });
        if !(2..=100_000).contains(&classes) {
            return Err(Failure::misuse(format!("--classes is {classes}: give a whole number from 2 to 100000")));
        }
        if !(1..=MOST).contains(&self.features) {
            return Err(Failure::misuse(format!("--features is {}: give a whole number from 1 to {MOST}", self.features)));
        }
        let values = match entry.kind {
            Kind::Classes => TargetValues::Classes((0..classes).map(|c| c.to_string()).collect()),
            Kind::Number => TargetValues::Bounds(if entry.counts { 0.0 } else { -1.0 }, 1.0),
            Kind::Location => TargetValues::None,
        };
        let located = values == TargetValues::None;
        let scaling = if entry.kind == Kind::Classes { Scaling::Sphere } else { Scaling::Ball };
        let number = Feature::Number { min: -1.0, max: 1.0, log: false };
        Ok(Schema {
            name: "planned".into(),
            parent: None,
            unit: UnitOfPrivacy::Row,
            rows: None,
            target: Target { column: (!located).then(|| "target".into()), values, weights: Vec::new() },
            features: Features::Table((0..self.features).map(|i| (format!("x{i}"), number.clone())).collect()),
            intercept: !located,
            scaling,
            registry: None,
            private_bounds: None,
        })
    }

    pub(crate) fn job(&self, schema: Schema, delta: f64) -> Job {
        Job {
            schema,
            rows: Some(self.rows),
            epsilon: self.epsilon,
            delta: Some(delta),
            adjacency: self.adjacency,
            loss: Some(self.loss.clone()),
            method: "auto".into(),
            settings: self.settings.clone(),
            constraint: self.constraint,
            allow_large_delta: false,
            compare: false,
            auxiliary: None,
            layers: None,
            pretrained: None,
        }
    }
}

/// The plan of a job, or why there is none.
pub(crate) fn planned(job: &Job, rows: u64) -> Result<Planned, Failure> {
    let prepared = prepare(job, rows, false)?;
    let forecast = privfit::forecast::forecast(&prepared.problem, prepared.plan.as_ref());
    let plan = prepared.plan.describe().into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    Ok(Planned { forecast, plan, noise: prepared.plan.gradient_noise() })
}

/// The plan of a method for 100000 rows of 20 numbers at epsilon 1, as `describe` words it; empty if it does not apply. `extra` are
/// flags of `fit`.
pub(crate) fn example_plan(method: &str, loss: &str, delta: f64, extra: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = extra.split_whitespace().collect();
    let after = |flag: &str| words.windows(2).filter(|w| w[0] == flag).map(|w| w[1].to_string()).collect::<Vec<_>>();
    let facts = || -> Result<PlannedTable, Failure> {
        Ok(PlannedTable {
            rows: 100_000,
            features: 20,
            loss: loss.into(),
            classes: None,
            epsilon: 1.0,
            delta: Some(delta),
            adjacency: Adjacency::ZeroOut,
            settings: settings(&after("--set"))?,
            constraint: (after("--constraint").first()).map_or(Ok(Constraint::None), |c| Constraint::parse(c))?,
        })
    };
    let plan = || -> Result<Planned, Failure> {
        let facts = facts()?;
        let job = facts.job(facts.schema()?, delta);
        planned(&Job { method: method.into(), compare: words.contains(&"--compare"), ..job }, facts.rows)
    };
    plan().map(|p| p.plan).unwrap_or_default()
}
