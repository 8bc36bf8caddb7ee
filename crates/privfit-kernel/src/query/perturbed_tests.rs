//! Objective perturbation in one dimension, where its distribution is known, and scores that are gradients.

use crate::account::{Adjacency, Event, epsilon};
use crate::engine::Threads;
use crate::tests::{LOGISTIC, dataset, shape};
use crate::*;

/// Minimisers of many runs on two records, and the gradient of their losses.
fn minimisers(linear: LinearTerm, ridge: f64, runs: usize) -> Vec<f64> {
    let entropy = Entropy::system().unwrap();
    let mut b = DatasetBuilder::new(&entropy, shape(1, false, None)).unwrap();
    b.row(&[1.0], 1.0);
    b.row(&[-0.5], 1.0);
    let data = b.build();
    let engine = Threads::new(1);
    let size = ProblemSize { unit_count: 2, rows_per_unit: 1, features: 1, row_norm: data.row_norm, sparse: false };
    let tolerance = size.limits(&LOGISTIC, ridge, Some(linear)).0 * 1.01;
    let planned = linear.event(&LOGISTIC, data.row_norm, ridge, 1);
    (0..runs)
        .map(|_| {
            let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
            let everyone = run.everyone().unwrap();
            let problem = Problem { loss: &LOGISTIC, ridge, tolerance };
            run.execute(Minimise { on: &everyone, problem, linear: Some(linear) }).unwrap().value[0]
        })
        .collect()
}

/// The change of variables behind the proof: P(theta <= t) = P(b >= -(gradient + ridge t)), for Gaussian and Laplace terms.
#[test]
fn minimisers_follow_the_distribution_of_the_linear_term() {
    let ridge = 0.7;
    let gradient = |t: f64| {
        let mut out = [0.0; 2];
        (LOGISTIC.derivatives_exact)(&[], &[t, -0.5 * t], &[1.0, 1.0], &mut out);
        out[0] - 0.5 * out[1] + ridge * t
    };
    for linear in [LinearTerm::gaussian(1.3), LinearTerm::laplace(0.8)] {
        let scale = linear.scale(&LOGISTIC, 1.0, 1);
        let mut theta = minimisers(linear, ridge, 30_000);
        theta.sort_by(f64::total_cmp);
        let below = |t: f64| {
            let z = gradient(t) / scale;
            if linear.pure {
                if z > 0.0 { 1.0 - 0.5 * (-z).exp() } else { 0.5 * z.exp() }
            } else {
                0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
            }
        };
        let n = theta.len() as f64;
        let gap = theta.iter().enumerate().map(|(i, t)| ((i as f64 + 0.5) / n - below(*t)).abs()).fold(0.0, f64::max);
        // Kolmogorov: a false alarm in 2 e^(-2 n gap^2) = 1e-9 runs.
        assert!(gap < (2e9f64.ln() / (2.0 * n)).sqrt(), "{linear:?}: {gap}");
    }
}

/// Pure objective perturbation: epsilon has its closed form, the determinant once under replace-one too.
#[test]
fn pure_objective_perturbation_has_its_closed_form() {
    for (d, nm, ridge) in [(1usize, 2.0, 3.0), (50, 0.5, 10.0), (3000, 40.0, 0.2)] {
        let event = LinearTerm::laplace(nm).event(&LOGISTIC, 1.0, ridge, d);
        let determinant = (0.25f64 / ridge).ln_1p();
        let grid = d as f64 * 0.5f64.powi(40);
        for (adjacency, shifts) in [(Adjacency::ZeroOut, 1.0), (Adjacency::ReplaceOne, 2.0)] {
            let spent = epsilon(&event, adjacency, 0.0).unwrap().bound.upper;
            let theorem = shifts / nm + determinant;
            assert!(spent >= theorem && spent < theorem + grid + 1e-9, "{adjacency:?}: {spent} {theorem}");
        }
        // One event with one epsilon: a loss distribution of two independent parts would promise less than the pair costs.
        assert!(matches!(event, Event::Pure { .. }));
    }
}

/// One record moves each score by the sensitivity of the grid at most, whatever it is; the worst one by all of it.
#[test]
fn one_record_moves_a_gradient_score_by_its_sensitivity() {
    let d = 5;
    let entropy = Entropy::simulated(1);
    let build = |record: Option<(&[f64], f32)>, sparse: bool| {
        let mut b = DatasetBuilder::new(&entropy, shape(d, sparse, None)).unwrap();
        b.row(&[0.3, -0.2, 0.9, 0.0, 1.0], 1.0);
        let (x, y) = record.unwrap_or((&[0.0; 5], 0.0));
        b.row(x, y);
        b.build()
    };
    let records: [(&[f64], f32); 6] = [
        (&[9.0, 0.0, 0.0, 0.0, 0.0], -1.0),
        (&[-9.0, 0.0, 0.0, 0.0, 0.0], -1.0),
        (&[1e300, -1e300, 1.0, 1.0, 1.0], -1.0),
        (&[1.0; 5], 1.0),
        (&[f64::NAN, 1.0, 0.0, 0.0, 0.0], -1.0),
        (&[1.0; 5], 77.0),
    ];
    for cap in [1.0, 0.4, 0.05] {
        let mechanism = Exponential::for_gradients(1.0, 1.0, cap, 3.0).unwrap();
        let sensitivity = mechanism.grid.sensitivity;
        assert_eq!(sensitivity.replace_one, 2 * sensitivity.zero_out);
        // The event is the window of 2 sensitivity / scale.
        let Event::Exponential { epsilon, .. } = mechanism.event() else { panic!() };
        assert!(
            epsilon >= 2.0 * sensitivity.zero_out as f64 * 0.5f64.powi(mechanism.grid.bits as i32)
                && epsilon <= 2.0 / 3.0 + 1e-12
        );
        for sparse in [false, true] {
            let scores = |record: Option<(&[f64], f32)>, signs: usize| -> Vec<i64> {
                let data = build(record, sparse);
                let engine = Threads::new(1);
                let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event()).unwrap();
                let everyone = run.everyone().unwrap();
                run.at(&mechanism, |run, scale| {
                    let arrival_times = run.draw(&scale, signs * d)?;
                    Ok(everyone.gradient_scores(&arrival_times, &[40.0, 0.1, 0.0, 0.0, 0.0], &LOGISTIC)?.values)
                })
                .unwrap()
            };
            let mut largest = 0;
            for record in records {
                let (with, without) = (scores(Some(record), 2), scores(None, 2));
                let moved = with.iter().zip(&without).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                assert!(moved <= sensitivity.zero_out, "cap {cap}: {moved} above {}", sensitivity.zero_out);
                largest = largest.max(moved);
                // Both signs, and one of them alone.
                assert!((0..d).all(|j| with[j] == -with[d + j]) && scores(Some(record), 1) == with[..d]);
            }
            assert!(largest as f64 > 0.99 * sensitivity.zero_out as f64, "cap {cap}: {largest} of {}", sensitivity.zero_out);
        }
    }
}

/// The vertex is chosen with probabilities proportional to e^(score / scale), score the negative gradient of the whole sum.
#[test]
fn corners_follow_the_distribution_of_the_exponential_mechanism() {
    let data = dataset(30, 3, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let mechanism = Exponential::for_gradients(1.0, data.row_norm, data.row_norm, 2.0).unwrap();
    let (mut wins, runs) = ([0f64; 3], 20_000);
    let mut scores = Vec::new();
    for _ in 0..runs {
        let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event()).unwrap();
        let everyone = run.everyone().unwrap();
        let chosen = run.at(&mechanism, |run, scale| {
            let arrival_times = run.draw(&scale, 3)?;
            let bounded = everyone.gradient_scores(&arrival_times, &[0.2, -0.1, 0.3], &LOGISTIC)?;
            scores = bounded.values.clone();
            run.execute(Choose { arrival_times, scores: &bounded, mechanism: &mechanism, count: 1 })
        });
        wins[chosen.unwrap().indices()[0]] += 1.0;
    }
    let weights: Vec<f64> = scores.iter().map(|s| (*s as f64 * 0.5f64.powi(mechanism.grid.bits as i32)).exp()).collect();
    let all: f64 = weights.iter().sum();
    let statistic: f64 =
        (0..3).map(|j| (wins[j] - runs as f64 * weights[j] / all).powi(2) / (runs as f64 * weights[j] / all)).sum();
    // Two degrees of freedom: a false alarm in e^-22 runs.
    assert!(statistic < 44.0, "{statistic} {wins:?} {weights:?}");
}
