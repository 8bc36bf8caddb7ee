//! Accuracy of published methods, of their published values, and of ours: which cells there are, and how each is run.

use super::cell::{Fit, Outcome, Point, accuracy, fits, without_privacy};
use super::record::{Record, Records};
use super::sets::{ALL, Entry, Set};
use super::{Options, each_on_two_cores};
use crate::Failure;
use crate::progress::Bar;

/// The seven epsilons of the published curves.
pub(super) fn epsilons() -> Vec<f64> {
    (-4..=2).map(|i| (10f64.powf(0.5 * f64::from(i)) * 1e6).round() / 1e6).collect()
}

/// Losses of the published tables: name there, and here.
pub(super) const LOSSES: [(&str, &str); 2] = [("logistic", "logistic"), ("Huber SVM", "huber-svm")];

/// A published method: column of the tables, and name here.
pub(super) const METHODS: [(&str, &str); 6] = [
    ("AMP", "published-amp"),
    ("H-F AMP", "published-hf-amp"),
    ("P-SGD", "published-p-sgd"),
    ("P-PSGD", "published-p-psgd"),
    ("P-SCPSGD", "published-p-scpsgd"),
    ("P-FW", "published-p-fw"),
];

/// Our default, and without privacy.
pub(super) const OURS: &str = "ours";
pub(super) const WITHOUT: &str = "without privacy";

/// A grid after the published one; smaller where a fit is dear.
fn grid(method: &str, weight: u8) -> Vec<Point> {
    let points = |lists: &[(&'static str, &[f64])]| -> Vec<Point> {
        lists.iter().fold(vec![Point::default()], |all, (key, values)| {
            let with = |p: &Point, v: &f64| Point { settings: [p.settings.clone(), vec![(*key, *v)]].concat(), ..p.clone() };
            all.iter().flat_map(|p| values.iter().map(move |v| with(p, v))).collect()
        })
    };
    let heavy = weight > 0;
    match method {
        "published-amp" if heavy => points(&[("noise_share", &[0.9])]),
        "published-amp" => points(&[("output_share", &[0.001, 0.01]), ("noise_share", &[0.9, 0.98])]),
        "published-p-sgd" if weight > 1 => points(&[("steps", &[100.0]), ("batch", &[300.0]), ("learning_rate", &[1.0])]),
        "published-p-sgd" if heavy => points(&[("steps", &[1000.0]), ("batch", &[50.0]), ("learning_rate", &[1.0])]),
        "published-p-sgd" => points(&[("steps", &[100.0, 1000.0]), ("batch", &[50.0]), ("learning_rate", &[0.1, 1.0, 10.0])]),
        "published-p-psgd" if heavy => points(&[("passes", &[5.0]), ("batch", &[50.0]), ("learning_rate", &[0.01, 0.1])]),
        "published-p-psgd" => {
            points(&[("passes", &[5.0, 10.0, 100.0]), ("batch", &[50.0]), ("learning_rate", &[0.001, 0.01, 0.1])])
        }
        "published-p-scpsgd" if heavy => points(&[("passes", &[10.0]), ("batch", &[50.0]), ("lambda", &[1e-3])]),
        "published-p-scpsgd" => points(&[("passes", &[200.0]), ("batch", &[50.0]), ("lambda", &[1e-4, 1e-3, 1e-2])]),
        "published-p-fw" => {
            let steps: &[f64] = if heavy { &[10.0] } else { &[10.0, 50.0] };
            let vertices: &[f64] = if heavy { &[30.0] } else { &[10.0, 30.0, 100.0] };
            let with = |p: &Point, c: f64| Point { vertex: Some(c), ..p.clone() };
            points(&[("steps", steps), ("cap", &[0.1, 1.0])])
                .iter()
                .flat_map(|p| vertices.iter().map(|c| with(p, *c)).collect::<Vec<_>>())
                .collect()
        }
        _ => vec![Point::default()],
    }
}

/// One cell to be computed.
struct Task {
    loss: usize,
    epsilon: f64,
    method: &'static str,
    /// The comparison at the true epsilon is wanted too.
    main: bool,
}

/// Fits of the final point, and of each point of the grid before.
fn repeats(entry: &Entry, options: &Options, main: bool) -> (usize, usize) {
    match (options.quick, entry.weight, main) {
        (true, _, _) => (2, 1),
        (false, 0, true) => (10, 2),
        (false, _, true) => (3, 1),
        // The rest of a curve has fewer fits to a point.
        (false, 0, false) => (4, 1),
        (false, _, false) => (1, 1),
    }
}

fn tasks(entry: &Entry, records: &Records, main: bool) -> Vec<Task> {
    let mut out = Vec::new();
    let all = epsilons();
    let curve: Vec<f64> = all.into_iter().filter(|e| (*e == entry.epsilon) == main).collect();
    // The largest set shows three points of its curve.
    let few = entry.name.starts_with("Generated 18M");
    let curve: Vec<f64> = curve.into_iter().filter(|e| main || !few || [0.01, 1.0].contains(e)).collect();
    for (loss, (title, _)) in LOSSES.iter().enumerate() {
        let missing = |method: &str, epsilon: f64| !records.has(entry.name, title, epsilon, method);
        if main && missing(WITHOUT, f64::INFINITY) {
            out.push(Task { loss, epsilon: f64::INFINITY, method: WITHOUT, main });
        }
        for epsilon in &curve {
            for method in std::iter::once(OURS).chain(METHODS.iter().map(|m| m.1)) {
                if missing(method, *epsilon) {
                    out.push(Task { loss, epsilon: *epsilon, method, main });
                }
            }
        }
    }
    out
}

/// Computes every cell that is not there yet: first those of the tables, then the rest of the curves.
pub(super) fn run(options: &Options, records: &Records) -> Result<(), Failure> {
    let entries: Vec<&Entry> = ALL.iter().filter(|e| options.wants(e.name)).collect();
    let total: usize = entries.iter().map(|e| tasks(e, records, true).len() + tasks(e, records, false).len()).sum();
    let bar = Bar::new(total as u64, true, "cells");
    for main in [true, false] {
        for entry in &entries {
            let tasks = tasks(entry, records, main);
            if tasks.is_empty() {
                continue;
            }
            let set = (entry.load)(&options.shared)?;
            each_on_two_cores(tasks, |task| {
                let done = cell(entry, &set, &task, options, records);
                bar.step();
                done
            })?;
        }
    }
    bar.finish();
    Ok(())
}

fn cell(entry: &Entry, set: &Set, task: &Task, options: &Options, records: &Records) -> Result<(), Failure> {
    let (title, loss) = LOSSES[task.loss];
    let delta = 1.0 / (set.rows as f64 * set.rows as f64);
    let (runs, scouts) = repeats(entry, options, task.main);
    let measure = |model: &privfit::model::Model| accuracy(model, &set.test);
    let record = |method: &str, setting: String, o: &Outcome| {
        records.add(Record {
            set: entry.name.into(),
            loss: title.into(),
            claimed: task.epsilon,
            delta,
            method: method.into(),
            setting,
            runs: o.runs,
            mean: o.mean,
            error: o.error,
            epsilon: o.epsilon,
            seconds: o.seconds,
        })
    };
    // Several classes at once are ours alone.
    let classes = set.schema.class_names().len();
    let own_loss = if title == "logistic" && classes > 2 { None } else { Some(loss.to_string()) };
    let own = |epsilon: f64| Fit { loss: own_loss.clone(), method: "linear".into(), epsilon, delta, point: Point::default() };
    if task.method == WITHOUT {
        let start = super::cell::thread_time();
        if classes > 2 {
            // Many scores at once: long descent at an epsilon where noise no longer matters is faster than a certified minimiser.
            let point = Point { settings: vec![("steps", 400.0)], vertex: None };
            let fit = Fit { method: "noisy-gd".into(), point, ..own(1000.0) };
            let outcome = fits(set, &fit, 1, &measure)?;
            return record(WITHOUT, fit.point.text(), &Outcome { epsilon: f64::INFINITY, ..outcome });
        }
        let settings: &[(&str, f64)] = if title == "logistic" && classes == 2 { &[("slope_clip", 1.0)] } else { &[] };
        let model = without_privacy(set, own_loss.as_deref(), settings, (1e-6 * set.rows as f64).max(0.1))?;
        let seconds = super::cell::thread_time() - start;
        let outcome = Outcome { mean: measure(&model), error: 0.0, runs: 1, epsilon: f64::INFINITY, seconds };
        return record(WITHOUT, String::new(), &outcome);
    }
    if task.method == OURS {
        let outcome = fits(set, &own(task.epsilon), runs, &measure)?;
        return record(OURS, String::new(), &outcome);
    }
    let fit = |point: &Point| Fit {
        loss: Some(loss.into()),
        method: task.method.into(),
        epsilon: task.epsilon,
        delta,
        point: point.clone(),
    };
    let points = grid(task.method, entry.weight);
    let mut best: Option<(f64, Point)> = None;
    for point in &points {
        if points.len() == 1 {
            best = Some((0.0, point.clone()));
            break;
        }
        // A point that the method cannot run at is left out.
        let Ok(outcome) = fits(set, &fit(point), scouts, &measure) else { continue };
        if best.as_ref().is_none_or(|b| outcome.mean > b.0) {
            best = Some((outcome.mean, point.clone()));
        }
    }
    let Some((_, point)) = best else { return Ok(()) };
    let outcome = fits(set, &fit(&point), runs, &measure)?;
    record(task.method, point.text(), &outcome)?;
    if task.main && outcome.epsilon.is_finite() {
        let truth = outcome.epsilon.min(1000.0);
        let ours = fits(set, &own(truth), runs, &measure)?;
        record(&format!("{OURS} at the true epsilon of {}", task.method), String::new(), &ours)?;
    }
    Ok(())
}
