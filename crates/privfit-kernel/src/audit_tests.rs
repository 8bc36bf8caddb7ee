//! Two worlds at one transcript: movements are those that were made, values stay inside, and only a seed may do this.

use crate::account::{Adjacency, Event};
use crate::engine::Threads;
use crate::error::Result;
use crate::tests::LOGISTIC;
use crate::*;

fn dataset(rows: &[([f64; 2], f32)]) -> Dataset {
    let shape = RowShape { dimension: 2, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&Entropy::simulated(0), shape).unwrap();
    rows.iter().for_each(|(x, y)| builder.row(x, *y));
    builder.build()
}

/// Some steps of noisy descent.
fn descend(run: &mut Run<'_>, steps: usize) -> Result<Vec<f64>> {
    let mechanism = Gaussian::for_gradients(1.0, 0.5)?;
    let mut w = vec![0.0; 2];
    let everyone = run.everyone()?;
    for _ in 0..steps {
        let g = run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, 2)?;
            let sum = everyone.gradient_sum(&noise, &w, &LOGISTIC)?;
            run.release(noise, &sum)
        })?;
        w.iter_mut().zip(&g).for_each(|(w, g)| *w -= 0.1 * g);
    }
    Ok(w)
}

fn plan(steps: u64) -> Event {
    let step = planned_step(&Gaussian::for_gradients(1.0, 0.5).unwrap(), 2, None);
    Event::AtMost { times: steps, event: Box::new(step) }
}

#[test]
fn movements_are_within_sensitivity_and_outputs_equal() {
    let engine = Threads::new(1);
    let with = dataset(&[([0.6, 0.0], 1.0), ([0.6, 0.8], -1.0)]);
    let without = dataset(&[([0.6, 0.0], 1.0), ([0.0, 0.0], -9.0)]);
    let plan = plan(3);
    let first = Entropy::simulated(5);
    let mut run = Run::recorded(&with, &engine, &first, &plan).unwrap();
    let a = descend(&mut run, 3).unwrap();
    let transcript = run.transcript().unwrap();
    assert!(matches!(run.close(a.clone()).unwrap().event(), Event::NotPrivate { .. }), "a recording has no epsilon");
    let second = Entropy::simulated(5);
    let mut run = Run::replayed(&without, &engine, &second, &plan, &transcript).unwrap();
    let b = descend(&mut run, 3).unwrap();
    let moved = run.movements().unwrap();
    assert_eq!(a, b, "all that differs was released");
    assert_eq!(moved.len(), 3);
    for m in &moved {
        assert!(m.holds(Adjacency::ZeroOut) && m.what == "gradient sum", "{m:?}");
        // The record has the longest row; at weights near zero its derivative is half of the bound.
        assert!((0.3..0.8).contains(&(m.moved as f64 / m.sensitivity.zero_out as f64)), "{m:?}");
    }
    // A run that stops elsewhere is seen.
    let third = Entropy::simulated(5);
    let mut run = Run::replayed(&without, &engine, &third, &plan, &transcript).unwrap();
    descend(&mut run, 2).unwrap();
    assert!(run.movements().unwrap().iter().any(|m| !m.agrees));
}

#[test]
fn system_entropy_is_refused() {
    let engine = Threads::new(1);
    let data = dataset(&[([0.6, 0.0], 1.0)]);
    let real = Entropy::system().unwrap();
    assert!(Run::recorded(&data, &engine, &real, &plan(1)).is_err());
    let mut run = Run::begin(&data, &engine, &real, &plan(1)).unwrap();
    assert!(run.transcript().is_err() && run.movements().is_err());
    run.keep_releases();
    let w = descend(&mut run, 1).unwrap();
    let captured = run.captured_releases();
    assert_eq!((captured.len(), captured[0].numbers[0] * -0.1), (1, w[0]), "what was released, and nothing else");
}

/// Objective perturbation: gradients at one point, and two solvers at one minimiser.
#[test]
fn perturbed_minimisers_are_compared_at_one_point() {
    let engine = Threads::new(1);
    let rows: Vec<([f64; 2], f32)> =
        (0..50).map(|i| ([0.5 + 0.01 * f64::from(i % 40), 0.3], if i % 3 == 0 { 1.0 } else { -1.0 })).collect();
    let mut other = rows.clone();
    other[7] = ([-0.6, 0.8], 1.0);
    let (a, b) = (dataset(&rows), dataset(&other));
    let linear = LinearTerm::gaussian(2.0);
    let problem = Problem { loss: &LOGISTIC, ridge: 1.0, tolerance: 1e-6 };
    let noise = Gaussian::for_output(2e-6, 2e-6, 100.0, 5.0, 2).unwrap();
    let plan = Event::Compose(vec![linear.event(&LOGISTIC, 1.0, 1.0, 2), noise.event(2)]);
    let solve = |run: &mut Run<'_>| {
        run.at(&noise, |run, scale| {
            let drawn = run.draw(&scale, 2)?;
            let everyone = run.everyone()?;
            let theta = run.execute(Minimise { on: &everyone, problem, linear: Some(linear) })?;
            let bounded = run.bounded(&drawn, theta)?;
            run.release(drawn, &bounded)
        })
    };
    for seed in 0..20 {
        let (e, f) = (Entropy::simulated(seed), Entropy::simulated(seed));
        let mut run = Run::recorded(&a, &engine, &e, &plan).unwrap();
        let first = solve(&mut run).unwrap();
        let transcript = run.transcript().unwrap();
        let mut run = Run::replayed(&b, &engine, &f, &plan, &transcript).unwrap();
        let second = solve(&mut run).unwrap();
        let moved = run.movements().unwrap();
        assert_eq!(first, second);
        assert_eq!(moved.len(), 2);
        assert!(moved.iter().all(|m| m.holds(Adjacency::ReplaceOne)), "{moved:?}");
        assert!(moved[0].moved > 1 << 37, "the gradients do differ: {moved:?}");
    }
}
