//! One cell of a table: a method, its best point of a grid, several fits, and what they truly guarantee.

use super::sets::Set;
use crate::Failure;
use privfit::account::{Adjacency, Event};
use privfit::constraint::Constraint;
use privfit::data::encode::Row;
use privfit::engine::Threads;
use privfit::job::fit::{Job, prepare};
use privfit::kernel::{self, Entropy, Gaussian, Minimise, Run};
use privfit::method::{Learned, Plan, Settings};
use privfit::model::{Model, RowMap};
use privfit::schema::Task;
use privfit::training::epsilon;

/// A point of a grid: settings, and the vertices of the polytope for Frank-Wolfe.
#[derive(Clone, Default)]
pub(super) struct Point {
    pub(super) settings: Vec<(&'static str, f64)>,
    pub(super) vertex: Option<f64>,
}

impl Point {
    pub(super) fn text(&self) -> String {
        let mut parts: Vec<String> = self.settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
        parts.extend(self.vertex.map(|c| format!("corner={c}")));
        parts.join(" ")
    }
}

/// What to fit.
#[derive(Clone)]
pub(super) struct Fit {
    pub(super) loss: Option<String>,
    pub(super) method: String,
    pub(super) epsilon: f64,
    pub(super) delta: f64,
    pub(super) point: Point,
}

/// Mean and standard error of some fits, and their cost.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) mean: f64,
    pub(super) error: f64,
    pub(super) runs: usize,
    /// Replace-one, at the delta asked for; infinite if nothing is guaranteed.
    pub(super) epsilon: f64,
    /// Processor seconds of one fit, on one thread.
    pub(super) seconds: f64,
}

pub(super) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
    (mean, if values.len() > 1 { (square / (n - 1.0) / n).sqrt() } else { 0.0 })
}

/// Time of this thread alone, since cells run side by side.
pub(super) fn thread_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

pub(super) fn job(set: &Set, fit: &Fit) -> Job {
    let vertex = fit.point.vertex.map_or(Constraint::None, Constraint::L1);
    Job {
        schema: set.schema.clone(),
        rows: Some(set.rows),
        epsilon: fit.epsilon,
        delta: Some(fit.delta),
        adjacency: Adjacency::ReplaceOne,
        loss: fit.loss.clone(),
        method: fit.method.clone(),
        settings: Settings(fit.point.settings.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: vertex,
        allow_large_delta: true,
        compare: true,
        auxiliary: None,
        layers: None,
        pretrained: None,
    }
}

/// Fits several times and measures each model; weights of a fit go to `measure`.
pub(super) fn fits(set: &Set, fit: &Fit, runs: usize, measure: &dyn Fn(&Model) -> f64) -> Result<Outcome, Failure> {
    let prepared = prepare(&job(set, fit), set.rows, false)?;
    let event = prepared.plan.event();
    let truth = epsilon(event, Adjacency::ReplaceOne, fit.delta).unwrap_or(f64::INFINITY);
    let loss = prepared.problem.build_loss(1)?;
    let classes = if let Task::Classes(k) = prepared.problem.task { k } else { 0 };
    let (mut values, mut seconds) = (Vec::new(), 0.0);
    for _ in 0..runs {
        let start = thread_time();
        let (weights, map) = run(set, prepared.plan.as_ref())?;
        seconds += thread_time() - start;
        let weights = weights.chunks(prepared.problem.features).map(<[f64]>::to_vec).collect();
        let model = Model::new(prepared.problem.loss, loss.parameters().to_vec(), classes, weights, map);
        values.push(measure(&model));
    }
    let (mean, error) = mean_and_error(&values);
    Ok(Outcome { mean, error, runs, epsilon: truth, seconds: seconds / runs.max(1) as f64 })
}

fn run(set: &Set, plan: &dyn Plan) -> Result<(Vec<f64>, Option<RowMap>), Failure> {
    let entropy = Entropy::system().map_err(privfit::Error::from)?;
    let engine = Threads::new(1);
    let mut run = Run::begin(&set.train, &engine, &entropy, plan.event()).map_err(privfit::Error::from)?;
    let learned = plan.learn(&mut run, &|| {})?;
    let Learned::Weights(weights, map) = run.close(learned).map_err(privfit::Error::from)?.into_value() else {
        return Err(Failure::misuse("the published tables compare linear models: leave out additive"));
    };
    Ok((weights.iter().map(|w| if w.is_finite() { *w } else { 0.0 }).collect(), map))
}

/// Part of the test rows that a model gets right.
pub(super) fn accuracy(model: &Model, test: &[Row]) -> f64 {
    let mut scores = Vec::new();
    let right = test.iter().filter(|row| {
        model.scores(row, &mut scores);
        let class = match scores.len() {
            1 => usize::from(scores[0] > 0.0),
            k => (0..k).fold(0, |best, c| if scores[c] > scores[best] { c } else { best }),
        };
        class as f32 == row.label
    });
    right.count() as f64 / test.len().max(1) as f64
}

/// The minimiser without privacy, at a ridge of the sum of losses.
pub(super) fn without_privacy(
    set: &Set,
    loss: Option<&str>,
    settings: &[(&'static str, f64)],
    ridge: f64,
) -> Result<Model, Failure> {
    let point = Point { settings: settings.to_vec(), vertex: None };
    let fit = Fit { loss: loss.map(String::from), method: "noisy-gd".into(), epsilon: 1.0, delta: 1e-9, point };
    let problem = prepare(&job(set, &fit), set.rows, false)?.problem;
    let kernel = privfit::Error::from;
    let plan = Event::NotPrivate { why: "the minimiser itself, for comparison".into() };
    let entropy = Entropy::system().map_err(kernel)?;
    let engine = Threads::new(1);
    let mut run = Run::begin(&set.train, &engine, &entropy, &plan).map_err(kernel)?;
    let mut weights = Vec::new();
    let losses: Vec<kernel::Loss> = if problem.loss.multiclass {
        vec![problem.build_loss(1)?]
    } else {
        problem.heads().into_iter().map(|h| problem.build_loss(h)).collect::<privfit::Result<_>>()?
    };
    for loss in &losses {
        let dimension = problem.features * loss.outputs();
        let (least, radius) = problem.size().limits(loss, ridge, None);
        let tolerance = (1e-6 * set.rows as f64).max(least * 1.01);
        let small = Gaussian::for_output(1e-9 * radius, 1e-9 * radius, radius, 1.0, dimension).map_err(kernel)?;
        let everyone = run.everyone().map_err(kernel)?;
        let part = run.at(&small, |run, scale| {
            let noise = run.draw(&scale, dimension)?;
            let minimum =
                run.execute(Minimise { on: &everyone, problem: kernel::Problem { loss, ridge, tolerance }, linear: None })?;
            let bounded = run.bounded(&noise, minimum)?;
            run.release(noise, &bounded)
        });
        weights.extend(part.map_err(kernel)?);
    }
    let classes = if let Task::Classes(k) = problem.task { k } else { 0 };
    let weights = weights.chunks(problem.features).map(<[f64]>::to_vec).collect();
    Ok(Model::new(problem.loss, losses[0].parameters().to_vec(), classes, weights, None))
}
