//! Sparse methods on generated data: what they promise, and that it can be had.

use privfit::Schema;
use privfit::account::Adjacency;
use privfit::constraint::Constraint;
use privfit::data::generate::{Design, Drawn};
use privfit::engine::Threads;
use privfit::fit::{Job, prepare};
use privfit::method::Settings;
use privfit::privacy::{Entropy, Run};

fn job(schema: &Schema, method: &str, epsilon: f64, delta: f64, set: &[(&str, f64)]) -> Job {
    Job {
        schema: schema.clone(),
        rows: None,
        epsilon,
        delta: Some(delta),
        adjacency: Adjacency::ReplaceOne,
        loss: None,
        method: method.into(),
        settings: Settings(set.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: true,
        auxiliary: None,
    }
}

/// Mean relative error over seeds.
fn error_of(design: &Design, method: &str, epsilon: f64, seeds: u64, set: &[(&str, f64)]) -> f64 {
    let schema = design.schema().unwrap();
    let prepared = prepare(&job(&schema, method, epsilon, 0.01, set), design.rows as u64, true).unwrap();
    let engine = Threads::new(2);
    let one = |seed: u64| {
        let drawn: Drawn = design.draw(seed);
        let entropy = Entropy::simulated(seed);
        let data = drawn.dataset(&schema, &entropy).unwrap();
        let mut run = Run::begin(&data, &engine, &entropy, prepared.plan.event()).unwrap();
        let weights = prepared.plan.run(&mut run, &|| ()).unwrap();
        let weights = run.close(weights).unwrap().into_value();
        drawn.relative_error(&schema, &weights)
    };
    (0..seeds).map(one).sum::<f64>() / seeds as f64
}

#[test]
fn explore() {
    let methods = std::env::var("M").unwrap_or("noisy-thresholding".into());
    let n: usize = std::env::var("N").map_or(800, |v| v.parse().unwrap());
    let logistic = std::env::var("LOGISTIC").is_ok();
    let seeds: u64 = std::env::var("SEEDS").map_or(5, |v| v.parse().unwrap());
    let set: Vec<(String, f64)> = std::env::var("SET").map_or(vec![], |v| {
        v.split(',').map(|p| p.split_once('=').map(|(k, v)| (k.to_string(), v.parse().unwrap())).unwrap()).collect()
    });
    let s = if logistic { 30.0 } else { 10.0 };
    let mut set: Vec<(&str, f64)> = set.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    set.push(("sparsity", s));
    let design = if logistic { Design::scaled(5000, 5000, 30, true) } else { Design::bounded(n, 1000, 10, false) };
    for m in methods.split(',') {
        for e in std::env::var("E").unwrap_or("0.8,2,5".into()).split(',') {
            let t = std::time::Instant::now();
            let error = error_of(&design, m, e.parse().unwrap(), seeds, &set);
            println!("{m} {e}: {error:.4}  {:?}", t.elapsed() / seeds as u32);
        }
    }
}
