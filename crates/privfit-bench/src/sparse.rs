//! `privfit-bench sparse`: Frank-Wolfe on generated sparse rows, with scores kept from step to step against scores summed anew and
//! a race of all vertices, in one run; and how noisy thresholding grows with the number of features.

use super::measure::processor_time;
use crate::{Failure, print_line};
use privfit::account::{Adjacency, Event, Target, calibrate};
use privfit::constraint::Constraint;
use privfit::engine::Threads;
use privfit::job::fit::{Job, prepare};
use privfit::kernel::{Choose, ChooseVertex, Dataset, DatasetBuilder, Entropy, Exponential, Loss, RowShape, Run, ScoreVertices};
use privfit::method::Settings;
use privfit::{KernelError, Schema};
use serde_json::json;

/// Options of the verb.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) rows: usize,
    pub(crate) features: usize,
    pub(crate) non_zeros: usize,
    pub(crate) steps: u64,
    pub(crate) zipf: bool,
    pub(crate) epsilon: f64,
    pub(crate) compare: u64,
}

const VERTEX: f64 = 30.0;

/// Rows that can be made again, so that nobody has to hold them.
struct Rows<'o> {
    options: &'o Options,
    state: u64,
}

impl Rows<'_> {
    fn uniform(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 * 0.5f64.powi(53)
    }

    /// Calls with each row and label. Every hundredth feature speaks for one of the labels.
    fn each(options: &Options, mut f: impl FnMut(&[(u32, f64)], f32)) {
        let mut rows = Rows { options, state: 0x9e37_79b9_7f4a_7c15 };
        let d = options.features as f64;
        let mut row: Vec<(u32, f64)> = Vec::new();
        for _ in 0..options.rows {
            row.clear();
            while row.len() < options.non_zeros {
                while row.len() < options.non_zeros {
                    let u = rows.uniform();
                    // Feature j with probability 1/d, or about proportional to 1/(j + 1).
                    let j = if rows.options.zipf { d.powf(u) - 1.0 } else { d * u };
                    row.push(((j as u32).min(options.features as u32 - 1), rows.uniform() * 2.0 - 1.0));
                }
                row.sort_by_key(|p| p.0);
                row.dedup_by_key(|p| p.0);
            }
            let norm = row.iter().map(|p| p.1 * p.1).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            row.iter_mut().for_each(|p| p.1 /= norm);
            let planted = |j: u32| if j.is_multiple_of(100) { 1.0 - f64::from(j / 100 % 2) * 2.0 } else { 0.0 };
            let score: f64 = row.iter().map(|p| p.1 * planted(p.0)).sum();
            f(&row, if score + (rows.uniform() - 0.5) * 1e-3 > 0.0 { 1.0 } else { 0.0 });
        }
    }
}

/// Mean logistic loss of the rows.
fn mean_loss(options: &Options, weights: &[f64]) -> f64 {
    let mut total = 0.0;
    Rows::each(options, |row, label| {
        let score: f64 = row.iter().map(|p| p.1 * weights[p.0 as usize]).sum();
        total += (if label > 0.0 { -score } else { score }).exp().ln_1p();
    });
    total / options.rows as f64
}

/// Largest resident memory of this process so far, in megabytes.
fn high_water() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse::<f64>().ok());
    kilobytes.map_or_else(super::measure::peak_memory, |k| k / 1024.0)
}

struct Task<'t> {
    data: &'t Dataset,
    loss: Loss,
    mechanism: Exponential,
    planned: Event,
    entropy: Entropy,
    engine: Threads,
}

fn part(step: u64) -> f64 {
    2.0 / (step as f64 + 2.0)
}

impl Task<'_> {
    fn stored(&self, steps: u64) -> Result<(Vec<f64>, f64), KernelError> {
        let start = processor_time();
        let mut run = Run::begin(self.data, &self.engine, &self.entropy, &self.planned)?;
        let everyone = run.everyone()?;
        let zero = vec![0.0; self.data.dimension()];
        let mut scores = run.execute(ScoreVertices {
            on: &everyone,
            mechanism: &self.mechanism,
            loss: &self.loss,
            simplex: false,
            start: &zero,
        })?;
        for step in 1..=steps {
            let (at, negative) = run.execute(ChooseVertex { scores: &scores })?;
            scores.step(at, if negative { -VERTEX } else { VERTEX }, part(step))?;
        }
        let weights = run.close(scores.weights())?.into_value();
        Ok((weights, processor_time() - start))
    }

    fn anew(&self, steps: u64) -> Result<(Vec<f64>, f64), KernelError> {
        let start = processor_time();
        let mut run = Run::begin(self.data, &self.engine, &self.entropy, &self.planned)?;
        let everyone = run.everyone()?;
        let d = self.data.dimension();
        let mut weights = vec![0.0; d];
        for step in 1..=steps {
            let chosen = run.at(&self.mechanism, |run, scale| {
                let arrival_times = run.draw(&scale, 2 * d)?;
                let scores = everyone.gradient_scores(&arrival_times, &weights, &self.loss)?;
                run.execute(Choose { arrival_times, scores: &scores, mechanism: &self.mechanism, count: 1 })
            })?;
            let at = chosen.indices()[0];
            weights.iter_mut().for_each(|w| *w *= 1.0 - part(step));
            weights[at % d] += part(step) * if at < d { VERTEX } else { -VERTEX };
        }
        Ok((weights, processor_time() - start))
    }
}

/// Processor time of noisy thresholding for ten columns, on the same number of cells whatever the number of features is. The plan is
/// made before, from public facts.
fn thresholding(options: &Options, features: usize) -> Result<f64, KernelError> {
    let wide = Options { features, ..*options };
    let schema = format!(
        "[dataset]\nname = \"generated\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"sparse\"\ndimension = {features}\n\
         row_norm = 1.0\nintercept = false\n"
    );
    let failed = |e: privfit::Error| KernelError::Unplanned { what: e.to_string() };
    let job = Job {
        schema: Schema::parse(&schema).map_err(failed)?,
        rows: None,
        epsilon: options.epsilon,
        delta: Some(1.0 / (options.rows as f64 * options.rows as f64)),
        adjacency: Adjacency::ZeroOut,
        loss: None,
        method: "noisy-thresholding".into(),
        settings: Settings([("sparsity".to_string(), 10.0)].into()),
        constraint: Constraint::None,
        allow_large_delta: false,
        compare: false,
        auxiliary: None,
        layers: None,
        pretrained: None,
    };
    let prepared = prepare(&job, options.rows as u64, true).map_err(failed)?;
    let entropy = Entropy::system()?;
    let shape = RowShape { dimension: features, row_norm: 1.0, sparse: true, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&entropy, shape)?;
    Rows::each(&wide, |row, label| builder.sparse_row(row, label));
    let data = builder.build();
    let engine = Threads::new(1);
    let start = processor_time();
    let mut run = Run::begin(&data, &engine, &entropy, prepared.plan.event())?;
    let weights = prepared.plan.run(&mut run, &|| {}).map_err(failed)?;
    run.close(weights)?;
    Ok(processor_time() - start)
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { rows, features, non_zeros, steps, .. } = *options;
    if rows == 0 || non_zeros == 0 || steps == 0 || features < 4 * non_zeros || features >= u32::MAX as usize {
        return Err(Failure::misuse("give at least one row, step and non-zero cell, and four times as many features as those"));
    }
    measure(options).map_err(|e| Failure::misuse(e.to_string()))
}

fn measure(options: &Options) -> Result<(), KernelError> {
    let Options { rows, features, non_zeros, steps, .. } = *options;
    let entropy = Entropy::system()?;
    let shape = RowShape { dimension: features, row_norm: 1.0, sparse: true, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&entropy, shape)?;
    builder.reserve(rows, rows * non_zeros)?;
    Rows::each(options, |row, label| builder.sparse_row(row, label));
    let data = builder.build();
    let loss = privfit::kernel::loss::logistic(1, 2, 1.0, [1.0, 1.0]);
    let target = Target { epsilon: options.epsilon, delta: 1.0 / (rows as f64 * rows as f64) };
    let choice = |noise: f64| Exponential::for_gradients(loss.lipschitz(), 1.0, 1.0, noise);
    let event = |noise: f64| choice(noise).map(|m| m.event().repeated(steps));
    let mechanism = choice(calibrate(target, event, Adjacency::ZeroOut)?)?;
    let planned = mechanism.event().repeated(steps);
    let task = Task { data: &data, loss, mechanism, planned, entropy, engine: Threads::new(1) };
    let (weights, kept) = task.stored(steps)?;
    let memory = high_water();
    let compared = options.compare.clamp(1, steps);
    let (other, seconds) = task.anew(compared)?;
    let anew = seconds * steps as f64 / compared as f64;
    let growth = [features / 100, features / 10, features]
        .into_iter()
        .filter(|d| *d >= 4 * non_zeros)
        .map(|d| Ok(json!({"features": d, "cpu_s": thresholding(options, d)?})))
        .collect::<Result<Vec<_>, KernelError>>()?;
    let out = json!({
        "noisy_thresholding": growth,
        "rows": rows, "features": features, "non_zeros": non_zeros, "columns": if options.zipf { "zipf" } else { "uniform" },
        "steps": steps, "epsilon": options.epsilon, "kept_scores_cpu_s": kept, "kept_scores_peak_mb": memory,
        "new_scores_cpu_s": anew, "new_scores_steps_timed": compared, "new_scores_scaled": compared < steps,
        "ratio": kept / anew, "peak_mb": high_water(),
        "kept_scores_loss": mean_loss(options, &weights),
        "new_scores_loss": (compared == steps).then(|| mean_loss(options, &other)),
    });
    print_line(&out.to_string());
    Ok(())
}
