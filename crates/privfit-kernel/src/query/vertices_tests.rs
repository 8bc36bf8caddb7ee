//! Scores that are kept up to date: equal to scores from scratch, moved by one record by no more than the sensitivity, chosen by the distribution.

use crate::account::Event;
use crate::engine::Threads;
use crate::error::Error;
use crate::sampling::bucket_sampler_tests::assert_distribution;
use crate::tests::{LOGISTIC, shape};
use crate::*;
use std::sync::LazyLock;

const D: usize = 50;
const N: usize = 300;

static ENTROPY: LazyLock<Entropy> = LazyLock::new(|| Entropy::simulated(61));

fn anything() -> Event {
    Event::NotPrivate { why: "test".into() }
}

type Record = (Vec<(u32, f64)>, f32);

/// Rows of a few cells, the first columns in many of them; one record may be another, or null.
fn sparse_data(n: usize, change: Option<(usize, Record)>) -> Dataset {
    let mut rng = NoiseRng::from_key([8; 32]);
    let mut b = DatasetBuilder::new(&ENTROPY, shape(D, true, None)).unwrap();
    for i in 0..n {
        let mut row: Vec<(u32, f64)> =
            (0..6).map(|_| ((rng.uniform().powi(3) * D as f64) as u32, rng.uniform() * 1.6 - 0.7)).collect();
        row.sort_by_key(|p| p.0);
        row.dedup_by_key(|p| p.0);
        let label = if row.iter().map(|p| p.1 * f64::from(p.0 % 3) - 0.2).sum::<f64>() > 0.0 { 1.0 } else { -1.0 };
        match &change {
            Some((at, (other, label))) if *at == i => b.sparse_row(other, *label),
            _ => b.sparse_row(&row, label),
        }
    }
    b.build()
}

/// A public path: coordinate, vertex, part of the way.
fn path(steps: u64, simplex: bool) -> Vec<(usize, f64, f64)> {
    let mut rng = NoiseRng::from_key([9; 32]);
    (1..=steps)
        .map(|t| {
            let vertex = if simplex || rng.next_word().is_multiple_of(2) { 12.0 } else { -12.0 };
            ((rng.uniform().powi(2) * D as f64) as usize, vertex, 2.0 / (t as f64 + 2.0))
        })
        .collect()
}

/// The scores that the pass over all rows gives.
fn from_scratch(data: &Dataset, mechanism: &Exponential, loss: &Loss, weights: &[f64]) -> Vec<i64> {
    let engine = Threads::new(1);
    let mut run = Run::begin(data, &engine, &ENTROPY, &anything()).unwrap();
    let everyone = run.everyone().unwrap();
    run.at(mechanism, |run, scale| {
        let arrival_times = run.draw(&scale, D)?;
        Ok(everyone.gradient_scores(&arrival_times, weights, loss)?.values)
    })
    .unwrap()
}

fn start(simplex: bool) -> Vec<f64> {
    vec![if simplex { 12.0 / D as f64 } else { 0.0 }; D]
}

/// With everything renewed at each step the scores are those of `gradient_scores`, bit for bit, and so are the weights.
#[test]
fn renewed_scores_are_those_from_scratch() {
    let data = sparse_data(N, None);
    let engine = Threads::new(1);
    for cap in [1.0, 0.2] {
        for simplex in [false, true] {
            let mechanism = Exponential::for_gradients(1.0, 1.0, cap, 3.0).unwrap();
            let mut run = Run::begin(&data, &engine, &ENTROPY, &anything()).unwrap();
            let everyone = run.everyone().unwrap();
            let scores = run
                .execute(ScoreVertices { on: &everyone, mechanism: &mechanism, loss: &LOGISTIC, simplex, start: &start(simplex) })
                .unwrap();
            let mut scores = scores.with_rules(1.0, 0);
            let mut weights = start(simplex);
            assert_eq!(scores.scores(), from_scratch(&data, &mechanism, &LOGISTIC, &weights));
            for (at, vertex, part) in path(60, simplex) {
                weights.iter_mut().for_each(|w| *w *= 1.0 - part);
                weights[at] += part * vertex;
                scores.step(at, vertex, part).unwrap();
                assert_eq!(scores.weights(), weights);
                assert_eq!(scores.scores(), from_scratch(&data, &mechanism, &LOGISTIC, &weights));
            }
        }
    }
}

/// With the usual rules the scores are the sums for the derivatives in force, exactly, and derivatives are as stale as the rules allow.
#[test]
fn stale_scores_are_sums_for_stale_derivatives() {
    let data = sparse_data(N, None);
    let engine = Threads::new(1);
    let mechanism = Exponential::for_gradients(1.0, 1.0, 0.3, 3.0).unwrap();
    let mut run = Run::begin(&data, &engine, &ENTROPY, &anything()).unwrap();
    let everyone = run.everyone().unwrap();
    let mut scores = run
        .execute(ScoreVertices { on: &everyone, mechanism: &mechanism, loss: &LOGISTIC, simplex: false, start: &start(false) })
        .unwrap();
    let cap = (0.3f64 * 32767.0).ceil() as i64;
    let mut stale = 0;
    let mut weights = start(false);
    for (at, vertex, part) in path(400, false) {
        scores.step(at, vertex, part).unwrap();
        weights.iter_mut().for_each(|w| *w *= 1.0 - part);
        weights[at] += part * vertex;
        assert!(scores.weights().iter().zip(&weights).all(|(a, b)| (a - b).abs() < 1e-12));
        let (derivatives, margins, limit) = scores.derivatives();
        let mut sums = [0i64; D];
        for (unit_index, derivative) in derivatives.iter().enumerate() {
            let cell = |x: f64| (x * 32767.0).round() as i64;
            data.unit(unit_index).each(0, |j, x| sums[j] -= i64::from(*derivative) * cell(x).clamp(-cap, cap));
            let label = f64::from(data.unit(unit_index).label(0));
            let fresh = -label / (1.0 + (margins[unit_index] * label).exp()) * limit;
            // The derivative moves by at most a quarter of the margin's way, and the margin at most by 1 - 0.85 of what it was.
            let allowed = (0.25 * margins[unit_index].abs() * (1.0 / 0.85 - 1.0) + 1.0 / 256.0 + 1e-4) * limit + 1.0;
            assert!((fresh - f64::from(*derivative)).abs() <= allowed, "{fresh} {derivative} {}", margins[unit_index]);
            stale += usize::from((fresh - f64::from(*derivative)).abs() > 2.0);
        }
        assert_eq!(scores.scores(), sums);
    }
    assert!(stale > 1000, "nothing was stale, so nothing was tested: {stale}");
}

/// Two data sets that differ in one record, one public path: no score moves by more than the sensitivity, fresh or stale.
#[test]
fn one_record_moves_a_stored_score_by_its_sensitivity() {
    let engine = Threads::new(1);
    let records: [Record; 9] = [
        (vec![], 1.0),
        (vec![(0, 9.0)], -1.0),
        (vec![(0, 9.0)], 1.0),
        (vec![(0, -9.0)], -1.0),
        (vec![(0, -9.0)], 1.0),
        (vec![(0, 0.6), (1, -0.6), (2, 0.5)], -1.0),
        (vec![(3, f64::NAN)], 1.0),
        (vec![(0, 1.0)], 77.0),
        ((0..D as u32).map(|j| (j, 1e200)).collect(), -1.0),
    ];
    for (cap, fresh, patience) in [(1.0, 0.85, 128), (0.3, 0.85, 0), (1.0, 0.3, 500), (1.0, 1.0, 0)] {
        let mechanism = Exponential::for_gradients(1.0, 1.0, cap, 3.0).unwrap();
        let sensitivity = mechanism.grid.sensitivity;
        let along = |record: &Record| -> Vec<Vec<i64>> {
            let data = sparse_data(40, Some((7, record.clone())));
            let mut run = Run::begin(&data, &engine, &ENTROPY, &anything()).unwrap();
            let everyone = run.everyone().unwrap();
            let scores = run
                .execute(ScoreVertices {
                    on: &everyone,
                    mechanism: &mechanism,
                    loss: &LOGISTIC,
                    simplex: false,
                    start: &start(false),
                })
                .unwrap();
            let mut scores = scores.with_rules(fresh, patience);
            let mut seen = vec![scores.scores().to_vec()];
            for (at, vertex, part) in path(60, false) {
                // Far enough for derivatives to reach their bounds.
                scores.step(at, 5.0 * vertex, part).unwrap();
                seen.push(scores.scores().to_vec());
            }
            seen
        };
        let all: Vec<Vec<Vec<i64>>> = records.iter().map(along).collect();
        let mut largest = (0, 0);
        for (i, a) in all.iter().enumerate() {
            for b in &all[..i] {
                let moved = a.iter().flatten().zip(b.iter().flatten()).map(|(x, y)| x.abs_diff(*y)).max().unwrap();
                assert!(moved <= sensitivity.replace_one, "{moved} above {}", sensitivity.replace_one);
                largest.1 = largest.1.max(moved);
            }
            let moved = a.iter().flatten().zip(all[0].iter().flatten()).map(|(x, y)| x.abs_diff(*y)).max().unwrap();
            assert!(moved <= sensitivity.zero_out, "{moved} above {}", sensitivity.zero_out);
            largest.0 = largest.0.max(moved);
        }
        let share = |moved: u64, sensitivity: u64| moved as f64 / sensitivity as f64;
        assert!(
            share(largest.0, sensitivity.zero_out) > 0.95 && share(largest.1, sensitivity.replace_one) > 0.4,
            "{largest:?} {sensitivity:?}"
        );
    }
}

/// A loss that panics on a label, and labels that it does not know: those records contribute zero, the others as ever.
#[test]
fn a_panic_is_one_record_s_own() {
    let mut loss = LOGISTIC.clone();
    loss.derivatives = |p, s, y, out| {
        assert!(y.iter().all(|y| *y != 0.5));
        (LOGISTIC.derivatives)(p, s, y, out);
    };
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mechanism = Exponential::for_gradients(1.0, 1.0, 1.0, 3.0).unwrap();
    let engine = Threads::new(1);
    let along = |label: f32, loss: &Loss| -> Vec<Vec<i64>> {
        let data = sparse_data(100, Some((70, (vec![(0, 0.6), (4, 0.5)], label))));
        let mut run = Run::begin(&data, &engine, &ENTROPY, &anything()).unwrap();
        let everyone = run.everyone().unwrap();
        let mut scores = run
            .execute(ScoreVertices { on: &everyone, mechanism: &mechanism, loss, simplex: false, start: &start(false) })
            .unwrap();
        let step = |(at, vertex, part): (usize, f64, f64)| {
            scores.step(at, vertex, part).unwrap();
            scores.scores().to_vec()
        };
        path(40, false).into_iter().map(step).collect()
    };
    let (panics, unknown, known) = (along(0.5, &loss), along(3.0, &loss), along(1.0, &loss));
    std::panic::set_hook(quiet);
    assert!(panics == unknown && panics != known);
}

/// The choice among 2 x 50 vertices: as the race on scores from scratch makes it, and as the distribution says.
#[test]
fn vertices_are_chosen_by_the_distribution() {
    let data = sparse_data(N, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(62));
    let mechanism = Exponential::for_gradients(1.0, 1.0, 1.0, 9.0).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &anything()).unwrap();
    let everyone = run.everyone().unwrap();
    let scores = run
        .execute(ScoreVertices { on: &everyone, mechanism: &mechanism, loss: &LOGISTIC, simplex: false, start: &start(false) })
        .unwrap();
    let mut scores = scores.with_rules(1.0, 0);
    for (steps, seed) in [(0, "at the start"), (7, "later")] {
        for (at, vertex, part) in path(steps, false) {
            scores.step(at, vertex, part).unwrap();
        }
        let draws = 40_000;
        let (mut ours, mut race) = ([0f64; 2 * D], [0f64; 2 * D]);
        let weights = scores.weights();
        for _ in 0..draws {
            let (at, negative) = run.execute(ChooseVertex { scores: &scores }).unwrap();
            ours[at + if negative { D } else { 0 }] += 1.0;
            let chosen = run.at(&mechanism, |run, scale| {
                let arrival_times = run.draw(&scale, 2 * D)?;
                // The same scores each time: only their choice is under test.
                let bounded = everyone.gradient_scores(&arrival_times, &weights, &LOGISTIC)?;
                run.execute(Choose { arrival_times, scores: &bounded, mechanism: &mechanism, count: 1 })
            });
            race[chosen.unwrap().indices()[0]] += 1.0;
        }
        let distribution = |sign: f64| move |s: &i64| (sign * *s as f64 * 0.5f64.powi(mechanism.grid.bits as i32)).exp();
        let kept = scores.scores();
        let exact: Vec<f64> = kept.iter().map(distribution(1.0)).chain(kept.iter().map(distribution(-1.0))).collect();
        assert_distribution(&ours, &exact, seed);
        assert_distribution(&race, &exact, seed);
    }
}

/// Whole paths, kept scores against scores from scratch: the mean of every weight, 50 times 6.5 deviations, false alarm 4e-9.
#[test]
fn whole_paths_agree() {
    let data = sparse_data(N, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(63));
    let mechanism = Exponential::for_gradients(1.0, 1.0, 1.0, 6.0).unwrap();
    let runs = 400;
    let (mut sums, mut squares) = ([[0f64; D]; 2], [[0f64; D]; 2]);
    for i in 0..2 * runs {
        let mut run = Run::begin(&data, &engine, &entropy, &anything()).unwrap();
        let everyone = run.everyone().unwrap();
        let mut weights = start(false);
        let mut scores = run
            .execute(ScoreVertices { on: &everyone, mechanism: &mechanism, loss: &LOGISTIC, simplex: false, start: &weights })
            .unwrap();
        for t in 1..=40u64 {
            let part = 2.0 / (t as f64 + 2.0);
            if i % 2 == 0 {
                let (at, negative) = run.execute(ChooseVertex { scores: &scores }).unwrap();
                scores.step(at, if negative { -12.0 } else { 12.0 }, part).unwrap();
                continue;
            }
            let chosen = run.at(&mechanism, |run, scale| {
                let arrival_times = run.draw(&scale, 2 * D)?;
                let bounded = everyone.gradient_scores(&arrival_times, &weights, &LOGISTIC)?;
                run.execute(Choose { arrival_times, scores: &bounded, mechanism: &mechanism, count: 1 })
            });
            let at = chosen.unwrap().indices()[0];
            weights.iter_mut().for_each(|w| *w *= 1.0 - part);
            weights[at % D] += part * if at < D { 12.0 } else { -12.0 };
        }
        let end = if i % 2 == 0 { scores.weights() } else { weights };
        for (j, w) in end.iter().enumerate() {
            sums[i % 2][j] += w;
            squares[i % 2][j] += w * w;
        }
    }
    let n = runs as f64;
    for j in 0..D {
        let mean = |k: usize| sums[k][j] / n;
        let variance = |k: usize| (squares[k][j] / n - mean(k).powi(2)) / n;
        let spread = (variance(0) + variance(1)).sqrt();
        assert!((mean(0) - mean(1)).abs() <= 6.5 * spread + 1e-9, "{j}: {} {} {spread}", mean(0), mean(1));
    }
}

/// Every choice is in the record, before it is drawn; and what has no bound is refused.
#[test]
fn choices_are_recorded_and_misuse_is_refused() {
    let data = sparse_data(N, None);
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let mechanism = Exponential::for_gradients(1.0, 1.0, 1.0, 9.0).unwrap();
    let planned = mechanism.event().repeated(2);
    for (times, fits) in [(1, false), (2, true)] {
        let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
        let everyone = run.everyone().unwrap();
        let scores = run
            .execute(ScoreVertices {
                on: &everyone,
                mechanism: &mechanism,
                loss: &LOGISTIC,
                simplex: false,
                start: &start(false),
            })
            .unwrap();
        (0..times).for_each(|_| assert!(run.execute(ChooseVertex { scores: &scores }).is_ok()));
        if times == 2 {
            assert!(matches!(run.execute(ChooseVertex { scores: &scores }), Err(Error::Unplanned { .. })), "a third is refused");
        }
        assert_eq!(run.close(()).is_ok(), fits);
    }
    let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
    let everyone = run.everyone().unwrap();
    let sample = run.poisson(Rate::new(0.5).unwrap()).unwrap();
    assert!(
        run.execute(ScoreVertices { on: &sample, mechanism: &mechanism, loss: &LOGISTIC, simplex: false, start: &start(false) })
            .is_err(),
        "of all records only"
    );
    let part = run.parts(2).unwrap().remove(0);
    assert!(
        run.execute(ScoreVertices { on: &part, mechanism: &mechanism, loss: &LOGISTIC, simplex: false, start: &start(false) })
            .is_err()
    );
    assert!(
        run.execute(ScoreVertices { on: &everyone, mechanism: &mechanism, loss: &LOGISTIC, simplex: false, start: &[0.0; 3] })
            .is_err()
    );
    let clipped = Exponential::new(1.0, 9.0).unwrap();
    assert!(
        run.execute(ScoreVertices { on: &everyone, mechanism: &clipped, loss: &LOGISTIC, simplex: false, start: &start(false) })
            .is_err(),
        "another kind of score"
    );
    let steeper = Loss { lipschitz: 2.0, ..LOGISTIC.clone() };
    assert!(
        run.execute(ScoreVertices { on: &everyone, mechanism: &mechanism, loss: &steeper, simplex: false, start: &start(false) })
            .is_err(),
        "another bound of derivatives"
    );
    let mut scores = run
        .execute(ScoreVertices { on: &everyone, mechanism: &mechanism, loss: &LOGISTIC, simplex: false, start: &start(false) })
        .unwrap();
    for (at, vertex, part) in [(D, 1.0, 0.5), (0, f64::NAN, 0.5), (0, 1.0, f64::NAN), (0, 1.0, 1.5), (0, 1.0, -0.5)] {
        assert!(scores.step(at, vertex, part).is_err());
    }
    let mut other = Run::begin(&data, &engine, &entropy, &planned).unwrap();
    assert!(
        other.execute(ChooseVertex { scores: &scores }).is_err()
            && other
                .execute(ScoreVertices {
                    on: &everyone,
                    mechanism: &mechanism,
                    loss: &LOGISTIC,
                    simplex: false,
                    start: &start(false)
                })
                .is_err()
    );
    let dense = crate::tests::dataset(10, D, false, None);
    let mut run = Run::begin(&dense, &engine, &entropy, &planned).unwrap();
    let everyone = run.everyone().unwrap();
    assert!(
        run.execute(ScoreVertices {
            on: &everyone,
            mechanism: &mechanism,
            loss: &LOGISTIC,
            simplex: false,
            start: &start(false)
        })
        .is_err()
    );
    let mut b = DatasetBuilder::new(&entropy, shape(D, true, Some(2))).unwrap();
    b.sparse_row(&[(0, 1.0)], 1.0);
    let units = b.build();
    let mut run = Run::begin(&units, &engine, &entropy, &planned).unwrap();
    let everyone = run.everyone().unwrap();
    assert!(
        run.execute(ScoreVertices {
            on: &everyone,
            mechanism: &mechanism,
            loss: &LOGISTIC,
            simplex: false,
            start: &start(false)
        })
        .is_err()
    );
}
