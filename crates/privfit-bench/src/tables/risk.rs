//! Excess empirical risk of output perturbation by gradient descent: printed constants, tight ones, and our default, each with its
//! best number of steps, as the paper on smooth objectives reports it.

use super::cell::{Fit, Outcome, Point, fits, without_privacy};
use super::record::{Record, Records};
use super::sets::{Set, all_rows};
use super::{Options, each_on_two_cores};
use crate::Failure;
use crate::progress::Bar;
use privfit::data::encode::Row;
use privfit::job::fit::prepare;
use privfit::kernel::Loss;
use privfit::model::Model;

/// Name in the paper, file, loss, strong convexities.
pub(super) const SETS: [(&str, &str, &str, [f64; 2]); 4] = [
    ("ADULT", "adult", "logistic", [0.0, 0.1]),
    ("CreditCard", "credit_default", "logistic", [0.0, 0.1]),
    ("WINE", "wine_quality", "huber", [0.0, 0.5]),
    ("BIKE", "bike_sharing_hour", "huber", [0.0, 0.5]),
];
pub(super) const EPSILONS: [f64; 4] = [0.1, 0.5, 1.0, 2.0];
pub(super) const DELTA: f64 = 1e-3;
/// Name in the records, method here.
pub(super) const METHODS: [(&str, &str); 4] = [
    ("printed constants", "published-output-gd"),
    ("tight constants", "output-gd"),
    ("BST14 as printed", "published-notes-sgd"),
    ("our default", "objective"),
];

struct Task {
    mu: f64,
    epsilon: f64,
    method: usize,
}

/// Average loss plus ridge, on rows in the clear.
fn risk(loss: &Loss, mu: f64, rows: &[Row], model: &Model) -> f64 {
    let w = &model.weights()[0];
    let (mut scores, mut labels) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in rows.iter().filter(|r| loss.knows(r.label)) {
        let dense: f64 = row.dense.iter().zip(w).map(|(x, w)| x * w).sum();
        scores.push(dense + row.pairs.iter().map(|(i, x)| w[*i as usize] * x).sum::<f64>());
        labels.push(row.label);
    }
    let mut values = vec![0.0; scores.len()];
    loss.values(&scores, &labels, &mut values);
    values.iter().sum::<f64>() / rows.len() as f64 + 0.5 * mu * w.iter().map(|w| w * w).sum::<f64>()
}

/// Numbers of steps that are tried: doubling. A strongly convex descent is at its end after a hundred.
fn steps(method: &str, mu: f64) -> Vec<f64> {
    match method {
        "published-output-gd" | "output-gd" => (0..if mu > 0.0 { 8 } else { 11 }).map(|i| f64::from(1 << i)).collect(),
        _ => vec![0.0],
    }
}

/// Fits before and after the choice of steps, by the cells that one reads: a hundred as in the paper, fewer where each takes long.
fn repeats(cells: f64) -> (usize, usize) {
    ((1e10 / cells).clamp(10.0, 100.0) as usize, (5e10 / cells).clamp(30.0, 100.0) as usize)
}

fn fit_of(set: &Set, loss: &str, method: &str, mu: f64, epsilon: f64, steps: f64) -> Fit {
    let mut settings: Vec<(&'static str, f64)> = if loss == "logistic" { vec![("slope_clip", 1.0)] } else { vec![] };
    match method {
        "published-output-gd" => settings.extend([("mu", mu), ("steps", steps)]),
        "output-gd" => settings.extend([("ridge", mu * set.rows as f64), ("steps", steps)]),
        // The whole length of the printed descent: (n/50)^2 steps, up to what can be waited for.
        "published-notes-sgd" => {
            settings.extend([("batch", 50.0), ("steps", (set.rows as f64 / 50.0).powi(2).min(20_000.0).round())])
        }
        _ if mu > 0.0 => settings.push(("ridge", mu * set.rows as f64)),
        _ => {}
    }
    let point = Point { settings, vertex: None };
    Fit { loss: Some(loss.into()), method: method.into(), epsilon, delta: DELTA, point }
}

pub(super) fn run(options: &Options, records: &Records) -> Result<(), Failure> {
    let wanted: Vec<_> = SETS.iter().filter(|s| options.wants(s.0)).collect();
    let mut work = Vec::new();
    for (name, file, loss, mus) in wanted {
        let mut tasks = Vec::new();
        for mu in mus {
            for epsilon in EPSILONS {
                for (method, (title, _)) in METHODS.iter().enumerate() {
                    if !records.has(name, &key(*mu), epsilon, title) {
                        tasks.push(Task { mu: *mu, epsilon, method });
                    }
                }
            }
        }
        work.push((*name, *file, *loss, tasks));
    }
    let bar = Bar::new(work.iter().map(|w| w.3.len() as u64).sum(), true, "risks");
    for (name, file, loss, tasks) in work {
        if tasks.is_empty() {
            continue;
        }
        let (set, rows) = all_rows(&options.shared, file)?;
        let probe = fit_of(&set, loss, "objective", 0.0, 1.0, 0.0);
        let built = prepare(&super::cell::job(&set, &probe), set.rows, false)?.problem.build_loss(1)?;
        let settings: &[(&str, f64)] = if loss == "logistic" { &[("slope_clip", 1.0)] } else { &[] };
        let least = |mu: f64| -> Result<f64, Failure> {
            let ridge = set.rows as f64 * if mu > 0.0 { mu } else { 1e-7 };
            Ok(risk(&built, mu, &rows, &without_privacy(&set, Some(loss), settings, ridge)?))
        };
        let mut floors = Vec::new();
        for task in &tasks {
            if !floors.iter().any(|(mu, _)| *mu == task.mu) {
                floors.push((task.mu, least(task.mu)?));
            }
        }
        each_on_two_cores(tasks, |task| {
            let floor = floors.iter().find(|f| f.0 == task.mu).map_or(0.0, |f| f.1);
            let (title, method) = METHODS[task.method];
            let excess = |model: &Model| risk(&built, task.mu, &rows, model) - floor;
            let dear = method == "published-notes-sgd";
            let repeats = |t: f64| match (options.quick, dear) {
                (true, _) => (1, 2),
                (false, true) => (1, 3),
                (false, false) => repeats(t.max(1.0) * set.rows as f64 * set.schema.dimension() as f64),
            };
            let mut best: Option<(f64, f64)> = None;
            for t in steps(method, task.mu) {
                if t == 0.0 {
                    break;
                }
                let o = fits(&set, &fit_of(&set, loss, method, task.mu, task.epsilon, t), repeats(t).0, &excess)?;
                if best.is_none_or(|b| o.mean < b.0) {
                    best = Some((o.mean, t));
                } else if task.mu == 0.0 && best.is_some_and(|b| o.mean > 1.5 * b.0) {
                    // Noise grows with steps from here on.
                    break;
                }
            }
            let t = best.map_or(0.0, |b| b.1);
            let fit = fit_of(&set, loss, method, task.mu, task.epsilon, t);
            let o: Outcome = fits(&set, &fit, repeats(t).1, &excess)?;
            let record = Record {
                set: name.into(),
                loss: key(task.mu),
                claimed: task.epsilon,
                delta: DELTA,
                method: title.into(),
                setting: fit.point.text(),
                runs: o.runs,
                mean: o.mean,
                error: o.error,
                epsilon: o.epsilon,
                seconds: o.seconds,
            };
            let done = records.add(record);
            bar.step();
            done
        })?;
    }
    bar.finish();
    Ok(())
}

/// How a strong convexity is written in the records.
pub(super) fn key(mu: f64) -> String {
    format!("mu {mu}")
}
