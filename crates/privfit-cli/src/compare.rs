//! `privfit account --rows N --features D --loss L --epsilon E`: every method by its forecast, before anything is spent. The plans are
//! those that `fit --dry-run` would make for a table of numbers.

use crate::layout::{paragraph, table, width};
use crate::style::Paint;
use crate::{Format, Misuse, note, print_line};
use privfit::account::Adjacency;
use privfit::constraint::Constraint;
use privfit::forecast::Forecast;
use privfit::job::fit::{Job, prepare};
use privfit::loss::{self, Kind};
use privfit::method::{self, Settings, auto};
use privfit::schema::{Feature, Features, Scaling, Schema, Target, TargetValues, UnitOfPrivacy};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most columns that are planned for.
const MOST: u64 = 1_000_000;

/// The public facts of a table that does not exist.
pub(crate) struct Facts {
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

/// A method with its forecast, or why it does not apply.
struct Row {
    method: &'static str,
    outcome: Result<Planned, String>,
}

struct Planned {
    forecast: Forecast,
    plan: Vec<(String, String)>,
    noise: f64,
}

impl Facts {
    fn schema(&self) -> Result<Schema, Misuse> {
        let Some(entry) = loss::find(&self.loss) else {
            let known: Vec<&str> = loss::ALL.iter().map(|l| l.name).collect();
            let hint = privfit::nearest::hint(&self.loss, known.iter().copied());
            return Err(Misuse(format!("unknown loss {:?}: {hint}known are {}", self.loss, known.join(", "))));
        };
        if entry.kind != Kind::Classes && self.classes.is_some() {
            return Err(Misuse(format!("loss {} has no classes: leave out --classes", entry.name)));
        }
        let classes = self.classes.unwrap_or(if entry.many { 3 } else { 2 });
        if !(2..=100_000).contains(&classes) {
            return Err(Misuse(format!("--classes is {classes}: give a whole number from 2 to 100000")));
        }
        if !(1..=MOST).contains(&self.features) {
            return Err(Misuse(format!("--features is {}: give a whole number from 1 to {MOST}", self.features)));
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
            bought: None,
        })
    }

    fn job(&self, schema: Schema, delta: f64) -> Job {
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
        }
    }

    pub(crate) fn run(self, format: Format) -> Result<(), Misuse> {
        if self.rows == 0 {
            return Err(Misuse("--rows is 0: give the number of records, at least 1".into()));
        }
        // The same delta that `fit` suggests when there is none.
        let usual = 1.0 / (self.rows.max(2) as f64).powi(2);
        let delta = self.delta.unwrap_or(usual);
        let job = self.job(self.schema()?, delta);
        let chosen = prepare(&job, self.rows, false).map_err(|e| Misuse(e.to_string()))?;
        let (chosen, reason) = (chosen.method.name, auto::choose(&chosen.problem).1);
        let bar = crate::progress::Bar::new(method::ALL.len() as u64, format == Format::Text, "planning");
        let mut rows = planned_by_all(&job, self.rows, &|| bar.step());
        bar.finish();
        // By the upper end; many are at its limit, and then what columns that fill their bounds would lose says more.
        let key = |r: &Row| r.outcome.as_ref().map_or((f64::INFINITY, 0.0), |p| (p.forecast.most, p.forecast.filled));
        rows.sort_by(|a, b| key(a).0.total_cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
        if format == Format::Json {
            self.print_json(&rows, delta, chosen, &job);
        } else {
            self.print_text(&rows, delta, chosen, reason);
        }
        Ok(())
    }

    fn print_json(&self, rows: &[Row], delta: f64, chosen: &str, job: &Job) {
        let methods: Vec<serde_json::Value> = rows
            .iter()
            .map(|r| match &r.outcome {
                Ok(p) => {
                    let plan: serde_json::Map<_, _> = p.plan.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
                    json!({"method": r.method, "applies": true, "forecast": p.forecast.json(), "noise": p.noise, "plan": plan})
                }
                Err(why) => json!({"method": r.method, "applies": false, "why": why}),
            })
            .collect();
        let out = json!({"rows": self.rows, "features": self.features, "encoded_features": job.schema.dimension(), "loss": self.loss,
            "classes": job.schema.task().classes(), "epsilon": self.epsilon, "delta": delta, "delta_by_default": self.delta.is_none(),
            "adjacency": self.adjacency.name(), "auto": chosen, "methods": methods});
        print_line(&serde_json::to_string_pretty(&out).unwrap_or_default());
    }

    fn print_text(&self, rows: &[Row], delta: f64, chosen: &str, reason: &str) {
        let (paint, width) = (Paint::out(), width());
        let (what, unit) =
            rows.iter().find_map(|r| r.outcome.as_ref().ok()).map_or(("", ""), |p| (p.forecast.what, p.forecast.unit()));
        print_line(&format!(
            "{} rows, {} features, loss {}, epsilon {} at delta {delta:e}, {}",
            self.rows, self.features, self.loss, self.epsilon, self.adjacency
        ));
        let unit = if what.starts_with(unit) { String::new() } else { format!(", in {unit}") };
        print_line(&format!("forecast: {what}{unit}"));
        print_line("filled: upper end where columns fill their bounds (`privfit explain forecast`);");
        print_line("what leaving columns out costs is not counted\n");
        let cells: Vec<Vec<String>> = rows
            .iter()
            .filter_map(|r| r.outcome.as_ref().ok().map(|p| (r, p)))
            .map(|(r, p)| {
                let long = ["noise", "standard deviation", "norm at the end", "released", "distance"];
                let short = p.plan.iter().filter(|(k, _)| !long.iter().any(|l| k.contains(l)));
                let plan: Vec<String> = short.map(|(k, v)| format!("{k} {v}")).collect();
                let name = format!("{}{}", r.method, if r.method == chosen { " *" } else { "" });
                let [least, filled, most] = p.forecast.ends();
                vec![name, format!("{least} to {most}"), filled, significant(p.noise), plan.join(", ")]
            })
            .collect();
        table(&["method", "forecast", "filled", "noise", "plan"], &cells, width, paint).iter().for_each(|l| print_line(l));
        print_line("");
        print_line(&paragraph("* ", &format!("what `--method auto` takes: {reason}"), width));
        print_line("noise: standard deviation on the sum of all gradients");
        let rest: Vec<Vec<String>> =
            rows.iter().filter_map(|r| r.outcome.as_ref().err().map(|why| vec![r.method.into(), why.clone()])).collect();
        if !rest.is_empty() {
            print_line("");
            table(&["does not apply", "why"], &rest, width, paint).iter().for_each(|l| print_line(l));
        }
        if self.delta.is_none() {
            note(&format!(
                "note: delta is {delta:e}, 1/rows^2, because none is given: set it with --delta (`privfit explain delta`)"
            ));
        }
        note("note: nothing was opened and nothing was spent");
    }
}

/// Every method, on all cores: plans for sampled steps take a second.
fn planned_by_all(job: &Job, rows: u64, progress: &(dyn Fn() + Sync)) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        while let Some(m) = method::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = planned(&Job { method: m.name.into(), ..job.clone() }, rows);
            own.push(Row { method: m.name, outcome });
            progress();
        }
        own
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut all: Vec<Row> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap_or_default()).collect()
    });
    // In the order of the list, whoever was first.
    all.sort_by_key(|r| method::ALL.iter().position(|m| m.name == r.method));
    all
}

fn planned(job: &Job, rows: u64) -> Result<Planned, String> {
    let prepared = prepare(job, rows, false).map_err(|e| e.to_string())?;
    let forecast = privfit::forecast::forecast(&prepared.problem, prepared.plan.as_ref());
    let plan = prepared.plan.describe().into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    Ok(Planned { forecast, plan, noise: prepared.plan.gradient_noise() })
}

/// Three significant digits.
fn significant(x: f64) -> String {
    if x != 0.0 && !(1e-3..1e6).contains(&x.abs()) {
        return format!("{x:.2e}");
    }
    let digits = if x == 0.0 { 0 } else { (2 - x.abs().log10().floor() as i32).max(0) as usize };
    format!("{x:.digits$}")
}

/// The plan of a method for 100000 rows of 20 numbers at epsilon 1, as `describe` words it; empty if it does not apply. `extra` are
/// flags of `fit`.
pub(crate) fn example_plan(method: &str, loss: &str, delta: f64, extra: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = extra.split_whitespace().collect();
    let after = |flag: &str| words.windows(2).filter(|w| w[0] == flag).map(|w| w[1].to_string()).collect::<Vec<_>>();
    let facts = || -> Result<Facts, Misuse> {
        Ok(Facts {
            rows: 100_000,
            features: 20,
            loss: loss.into(),
            classes: None,
            epsilon: 1.0,
            delta: Some(delta),
            adjacency: Adjacency::ZeroOut,
            settings: crate::fit::settings(&after("--set")).map_err(|f| Misuse(f.0.to_string()))?,
            constraint: (after("--constraint").first())
                .map_or(Ok(Constraint::None), |c| Constraint::parse(c))
                .map_err(|e| Misuse(e.to_string()))?,
        })
    };
    let plan = || -> Result<Planned, String> {
        let facts = facts().map_err(|m| m.0)?;
        let job = facts.job(facts.schema().map_err(|m| m.0)?, delta);
        planned(&Job { method: method.into(), compare: words.contains(&"--compare"), ..job }, facts.rows)
    };
    plan().map(|p| p.plan).unwrap_or_default()
}
