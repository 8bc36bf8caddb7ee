//! One cell: a method on a case at an epsilon, over seeds, at the best point of its grid.

use super::cases::{Case, Data, Judge};
use super::methods::{Candidate, Kind, grid, takes_sparsity};
use crate::Failure;
use crate::tables::cell::{Point, mean_and_error, thread_time};
use crate::tables::record::Record;
use crate::tables::sets::splitmix64;
use privfit::constraint::Constraint;
use privfit::engine::Threads;
use privfit::job::fit::{Job, Prepared, prepare};
use privfit::kernel::{Entropy, Run};
use privfit::method::{Learned, Settings};
use privfit::model::{LinearModel, Model, RowMap};
use privfit::training::epsilon as certified;

/// Mean and standard error at a point of the grid, and what was run.
struct Outcome {
    mean: f64,
    error: f64,
    runs: usize,
    epsilon: f64,
    seconds: f64,
    setting: String,
}

/// The cell as a line of the record; a method that refuses leaves the reason there.
pub(super) fn compute(case: &Case, data: &Data, candidate: &Candidate, epsilon: f64) -> Record {
    let (rate, largest) = usual(case, data, candidate, epsilon);
    let points = grid(candidate, case, epsilon, rate, largest, &data.radii);
    let (mut best, mut reason): (Option<Outcome>, String) = (None, String::new());
    for point in points {
        match at(case, data, candidate, epsilon, &point) {
            Ok(outcome) if best.as_ref().is_none_or(|b| outcome.mean < b.mean) => best = Some(outcome),
            Ok(_) => {}
            Err(failure) => reason = format!("refused: {}", failure.0.to_string().replace(',', ";").replace('\n', " ")),
        }
    }
    let refused = Outcome { mean: f64::NAN, error: 0.0, runs: 0, epsilon: f64::NAN, seconds: 0.0, setting: reason };
    let o = best.unwrap_or(refused);
    Record {
        set: case.name.clone(),
        loss: case.loss.into(),
        claimed: epsilon,
        delta: case.delta,
        method: candidate.name.into(),
        setting: o.setting,
        runs: o.runs,
        mean: o.mean,
        error: o.error,
        epsilon: o.epsilon,
        seconds: o.seconds,
    }
}

fn prepared(
    case: &Case,
    data: &Data,
    candidate: &Candidate,
    epsilon: f64,
    point: &Point,
    sparse: bool,
) -> privfit::Result<Prepared> {
    let mut settings: Vec<(&str, f64)> = point.settings.clone();
    if sparse {
        settings.push(("sparsity", case.sparsity as f64));
    }
    // A bound on the singular values of public rows on many chosen columns takes long; the teacher itself is the default then.
    let wide = candidate.name == "transfer-support" && case.sparsity > 500;
    let transfers = ["published-knowledge-transfer", "transfer-support", "transfer-blocks", "transfer-convex"];
    let job = Job {
        schema: data.schema.clone(),
        rows: None,
        // Without privacy there is none, but a plan asks for one.
        epsilon: if epsilon.is_finite() { epsilon } else { 1.0 },
        delta: Some(case.delta),
        adjacency: case.adjacency,
        loss: None,
        method: candidate.name.into(),
        settings: Settings(settings.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: point.vertex.map_or(Constraint::None, Constraint::L1),
        allow_large_delta: true,
        compare: true,
        auxiliary: data.public.clone().filter(|_| transfers.contains(&candidate.name) && !wide),
        layers: None,
        pretrained: None,
    };
    prepare(&job, data.rows, true)
}

/// The usual length of a step, as the plan says it, and the largest size of a cell, for methods that are tried at several points.
fn usual(case: &Case, data: &Data, candidate: &Candidate, epsilon: f64) -> (f64, f64) {
    let largest = privfit::data::encode::columns(&data.schema).iter().map(|c| 1.0 / c.scale).fold(0.0f64, f64::max).min(1.0);
    if candidate.name != "hard-thresholding" {
        return (1.0, largest);
    }
    let plan = prepared(case, data, candidate, epsilon, &Point::default(), true);
    let said = plan.ok().and_then(|p| p.plan.describe().iter().find(|d| d.0 == "learning rate")?.1.parse().ok());
    (said.unwrap_or(1.0), largest)
}

fn at(case: &Case, data: &Data, candidate: &Candidate, epsilon: f64, point: &Point) -> Result<Outcome, Failure> {
    let sparse = takes_sparsity(candidate.name);
    let mut setting = point.text();
    let plan = match prepared(case, data, candidate, epsilon, point, sparse) {
        // What is chosen may have no use for the number of columns.
        Err(_) if candidate.name == "auto" => prepared(case, data, candidate, epsilon, point, false)?,
        other => other?,
    };
    if candidate.name == "auto" {
        setting = plan.method.name.into();
    }
    let truth = match candidate.kind {
        Kind::Baseline | Kind::NotPrivate => f64::INFINITY,
        _ => certified(plan.plan.event(), case.adjacency, case.delta).unwrap_or(f64::INFINITY),
    };
    let engine = Threads::new(1);
    let (mut values, mut seconds) = (Vec::new(), 0.0);
    for seed in 0..candidate.seeds(case, epsilon) {
        let sample = &data.samples[seed % data.samples.len()];
        let entropy = Entropy::simulated(key(&[&case.name, candidate.name, &setting, &epsilon.to_string(), &seed.to_string()]));
        let start = thread_time();
        let mut run = Run::begin(&sample.train, &engine, &entropy, plan.plan.event()).map_err(privfit::Error::from)?;
        let learned = plan.plan.learn(&mut run, &|| {})?;
        let released = run.close(learned).map_err(privfit::Error::from)?;
        seconds += thread_time() - start;
        let Learned::Weights(weights, map) = released.into_value() else { continue };
        let weights: Vec<f64> = weights.iter().map(|w| if w.is_finite() { *w } else { 0.0 }).collect();
        values.push(measure(&sample.judge, data, &weights, map));
    }
    let (mean, error) = mean_and_error(&values);
    Ok(Outcome { mean, error, runs: values.len(), epsilon: truth, seconds: seconds / values.len().max(1) as f64, setting })
}

/// A seed of its own for each fit.
fn key(parts: &[&str]) -> u64 {
    parts.iter().flat_map(|p| p.bytes().chain([0])).fold(1, |k, b| splitmix64(k ^ u64::from(b)))
}

fn measure(judge: &Judge, data: &Data, weights: &[f64], map: Option<RowMap>) -> f64 {
    let classes = if matches!(judge, Judge::Classes(_)) { 2 } else { 0 };
    let (loss, loss_parameters) = (String::new(), vec![]);
    let model = Model::Linear(LinearModel { loss, loss_parameters, classes, weights: vec![weights.to_vec()], map });
    let score = |row: &privfit::data::encode::Row| {
        let mut out = Vec::new();
        model.scores(row, &mut out);
        out[0]
    };
    match judge {
        Judge::Truth(drawn) => drawn.relative_error(&data.schema, weights),
        Judge::Classes(rows) => {
            let wrong = rows.iter().filter(|r| f32::from(u8::from(score(r) > 0.0)) != r.label).count();
            wrong as f64 / rows.len().max(1) as f64
        }
        Judge::Numbers(rows, factor, half) => {
            // Predictions stay within the bounds of the target, as everywhere.
            let square = |r: &privfit::data::encode::Row| (r.target - half * score(r).clamp(-1.0, 1.0)).powi(2);
            factor * rows.iter().map(square).sum::<f64>() / rows.len().max(1) as f64
        }
    }
}
