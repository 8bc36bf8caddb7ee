//! One cell: a method on a set at an epsilon, over seeds. Every epsilon is accounted again from the event of the plan.

use super::cases::{Candidate, DELTA, Entry, STRENGTH};
use super::lines::Line;
use crate::Failure;
use crate::tables::cell::{mean_and_error, thread_time};
use crate::tables::sets::{Set, splitmix64};
use privfit::constraint::Constraint;
use privfit::data::encode::Row;
use privfit::engine::Threads;
use privfit::job::fit::{Job, prepare};
use privfit::kernel::Entropy;
use privfit::method::{Plan, Settings};
use privfit::model::Model;
use privfit::training::epsilon as certified;

/// The cell as a line; a method that is refused leaves the reason there.
pub(super) fn compute(entry: &Entry, set: &Set, candidate: &Candidate, epsilon: f64, quick: bool) -> Result<Line, Failure> {
    let job = Job {
        schema: set.schema.clone(),
        rows: Some(set.rows),
        epsilon,
        delta: Some(DELTA),
        adjacency: candidate.adjacency,
        loss: candidate.loss.map(String::from),
        method: candidate.method.into(),
        settings: Settings(candidate.settings.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: true,
        auxiliary: None,
        layers: candidate.layers.map(|l| vec![l.to_string()]),
        pretrained: None,
    };
    let prepared = prepare(&job, set.rows, false)?;
    let truth = certified(prepared.plan.event(), candidate.adjacency, DELTA).unwrap_or(f64::INFINITY);
    let engine = Threads::new(1);
    let mut measured: [Vec<f64>; 3] = Default::default();
    let (mut seconds, mut runs) = (0.0, 0);
    for seed in 0..if quick { candidate.seeds.min(2) } else { candidate.seeds } {
        let key = [set.schema.name.as_str(), &candidate.name, &epsilon.to_string(), &seed.to_string()];
        let key = key.iter().flat_map(|p| p.bytes().chain([0])).fold(1, |k, b| splitmix64(k ^ u64::from(b)));
        let start = thread_time();
        let artifact = prepared.train(&set.train, &engine, &Entropy::simulated(key), &|| {})?;
        seconds += thread_time() - start;
        let [entropy, wrong] = tested(&artifact.model, &set.test);
        measured[0].push(entropy);
        measured[1].push(wrong);
        measured[2].push(if entry.two_classes { gradient_norm(&artifact.model, &set.clear) } else { f64::NAN });
        runs += 1;
    }
    let [entropy, wrong, norm] = measured.map(|m| mean_and_error(&m));
    let (passes, gradients) = passes(prepared.plan.as_ref());
    let settings: Vec<String> = candidate.settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
    Ok(Line {
        set: entry.name.into(),
        name: candidate.name.clone(),
        setting: settings.join(" "),
        numbers: [
            epsilon,
            DELTA,
            f64::from(runs),
            truth,
            entropy.0,
            entropy.1,
            wrong.0,
            wrong.1,
            norm.0,
            norm.1,
            passes,
            gradients,
            seconds / f64::from(runs).max(1.0),
        ],
    })
}

/// Records that the steps read, over all records, and gradients that they compute, as the plan says; NaN where there are no steps.
fn passes(plan: &dyn Plan) -> (f64, f64) {
    let said = plan.describe();
    let number = |name: &str| said.iter().find(|d| d.0 == name).and_then(|d| d.1.parse::<f64>().ok());
    let Some(steps) = number("steps") else { return (f64::NAN, f64::NAN) };
    let rate = number("sampling rate").unwrap_or(1.0);
    match number("sampling rate of the first step") {
        None => (steps * rate, steps * rate),
        Some(first) => (first + (steps - 1.0) * rate, first + 2.0 * (steps - 1.0) * rate),
    }
}

/// Cross-entropy of test rows, and the part of them that is predicted wrong.
pub(in crate::tables) fn tested(model: &Model, test: &[Row]) -> [f64; 2] {
    let (mut scores, mut sums) = (Vec::new(), [0.0, 0.0]);
    for row in test {
        model.scores(row, &mut scores);
        let label = row.label as usize;
        let (entropy, class) = match scores.len() {
            1 => {
                let margin = if label == 1 { scores[0] } else { -scores[0] };
                ((-margin).max(0.0) + (-margin.abs()).exp().ln_1p(), usize::from(scores[0] > 0.0))
            }
            k => {
                let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = scores.iter().map(|s| (s - top).exp()).sum();
                let best = (0..k).fold(0, |best, c| if scores[c] > scores[best] { c } else { best });
                (sum.ln() + top - scores[label.min(k - 1)], best)
            }
        };
        sums[0] += entropy;
        sums[1] += f64::from(u8::from(class != label));
    }
    sums.map(|s| s / test.len().max(1) as f64)
}

/// Norm of the gradient of the average logistic loss with the regulariser, on the rows for training in the clear.
fn gradient_norm(model: &Model, rows: &[Row]) -> f64 {
    let w = &model.weights()[0];
    let mut gradient = vec![0.0; w.len()];
    for row in rows {
        let dense: f64 = row.dense.iter().zip(w).map(|(x, w)| x * w).sum();
        let score = dense + row.pairs.iter().map(|(i, x)| w[*i as usize] * x).sum::<f64>();
        let slope = 1.0 / (1.0 + (-score).exp()) - f64::from(row.label);
        row.dense.iter().zip(&mut gradient).for_each(|(x, g)| *g += slope * x);
        row.pairs.iter().for_each(|(i, x)| gradient[*i as usize] += slope * x);
    }
    let regular = |w: f64| STRENGTH * 2.0 * w / (1.0 + w * w).powi(2);
    let all = gradient.iter().zip(w).map(|(g, w)| (g / rows.len().max(1) as f64 + regular(*w)).powi(2));
    all.sum::<f64>().sqrt()
}
