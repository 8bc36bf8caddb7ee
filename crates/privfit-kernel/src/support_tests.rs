//! Choices of columns, runs on some of them, teachers: neighbours are as close as the sensitivity says, and what must not be is refused.

use crate::account::Event;
use crate::engine::Threads;
use crate::run_tests::train;
use crate::tests::{LOGISTIC, dataset, shape};
use crate::*;

fn unplanned() -> Event {
    Event::NotPrivate { why: "test".into() }
}

/// Rows whose last one is given.
fn with_last(last: &[f64], label: f32, sparse: bool) -> Dataset {
    let mut b = DatasetBuilder::new(&Entropy::simulated(1), shape(4, sparse, None)).unwrap();
    for i in 0..40 {
        let x = [0.1 * f64::from(i % 3), -0.2, 0.05 * f64::from(i % 5), 0.3];
        b.row(&x, if i % 2 == 0 { 1.0 } else { -1.0 });
    }
    b.row(last, label);
    b.build()
}

/// Gradient coordinates of a data set at given weights, in grid units, and the grid.
fn coordinates(data: &Dataset, mechanism: &Exponential, weights: &[f64], plus: &[f64]) -> (Vec<i64>, Sensitivity, f64) {
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(3));
    let mut run = Run::begin(data, &engine, &entropy, &unplanned()).unwrap();
    run.at(mechanism, |run, scale| {
        let arrival_times = run.draw(&scale, 4)?;
        let out = run.everyone()?.gradient_coordinates(&arrival_times, weights, &LOGISTIC, plus)?;
        Ok((out.values, out.grid.sensitivity, out.grid.unit))
    })
    .unwrap()
}

/// The bound holds for every pair, and a record with large cells and a derivative of 1 comes within a hundredth of it.
#[test]
fn coordinates_of_neighbours_are_within_the_sensitivity() {
    let mechanism = Exponential::for_gradients(1.0, 1.0, 0.25, 10.0).unwrap();
    let weights = [40.0, 0.0, 0.0, 0.0];
    let mut closest = 0f64;
    for sparse in [false, true] {
        let null = with_last(&[0.0; 4], 1.0, sparse);
        for last in [[0.9, 0.9, 0.9, 0.9], [2.0, 0.0, 0.0, 0.0], [-1e300, 1.0, f64::NAN, 0.0], [0.5, -0.5, 0.5, -0.5]] {
            for label in [1.0, -1.0] {
                let (a, sensitivity, _) = coordinates(&with_last(&last, label, sparse), &mechanism, &weights, &[0.0; 4]);
                let (b, ..) = coordinates(&null, &mechanism, &weights, &[0.0; 4]);
                let opposite: Vec<f64> = last.iter().map(|x| -x).collect();
                let (c, ..) = coordinates(&with_last(&opposite, label, sparse), &mechanism, &weights, &[0.0; 4]);
                let gap = |x: &[i64], y: &[i64]| x.iter().zip(y).map(|(x, y)| x.abs_diff(*y)).max().unwrap();
                assert!(gap(&a, &b) <= sensitivity.zero_out && gap(&a, &c) <= sensitivity.replace_one);
                closest = closest.max(gap(&a, &b) as f64 / sensitivity.zero_out as f64);
            }
        }
    }
    assert!(closest > 0.99, "{closest}");
}

#[test]
fn a_public_vector_is_added() {
    let mechanism = Exponential::for_gradients(1.0, 1.0, 1.0, 10.0).unwrap();
    let data = dataset(50, 4, false, None);
    let (plain, _, unit) = coordinates(&data, &mechanism, &[0.0; 4], &[0.0; 4]);
    let (moved, ..) = coordinates(&data, &mechanism, &[0.0; 4], &[1.0, -2.0, 1e300, f64::NAN]);
    assert!(((moved[0] - plain[0]) as f64 * unit - 1.0).abs() < 1e-6);
    assert!(((moved[1] - plain[1]) as f64 * unit + 2.0).abs() < 1e-6);
    assert!(moved[2] > 1 << 60, "clipped, not wrapped");
}

/// Noise on chosen values is hardly more than what was asked for, and its sensitivity is never above that of a whole row.
#[test]
fn noise_of_chosen_values_fits_closely() {
    for nm in [0.7, 3.0, 47.0] {
        for cap in [0.05, 1.0] {
            let scores = Exponential::for_gradients(0.5, 1.0, cap, nm).unwrap();
            for count in [1, 5, 300] {
                let g = Gaussian::for_selected(&scores, count, nm).unwrap();
                assert!(g.noise_multiplier() >= nm && g.noise_multiplier() < 1.001 * nm, "{nm} {cap} {count}");
                let longest = 0.5 * (count as f64).sqrt().min(1.0 / cap) * cap;
                let sd = g.standard_deviation();
                assert!(sd >= nm * longest * 0.999 && sd < 1.01 * nm * longest, "{sd} {}", nm * longest);
            }
        }
    }
}

/// Both signs of a coordinate are two scores of one column: their values must not be released as if they were two columns.
#[test]
fn corners_are_not_coordinates() {
    let data = dataset(50, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let scores = Exponential::for_gradients(1.0, 1.0, 1.0, 5.0).unwrap();
    let values = Gaussian::for_selected(&scores, 2, 5.0).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &unplanned()).unwrap();
    run.at(&scores, |run, scale| {
        let arrival_times = run.draw(&scale, 8)?;
        let vertices = run.everyone()?.gradient_scores(&arrival_times, &[0.0; 4], &LOGISTIC)?;
        let both = Support { indices: vec![0, 4] };
        run.at(&values, |_, scale| {
            assert!(vertices.restrict(&both, &scale).is_err());
            Ok(())
        })?;
        assert!(
            run.execute(ChooseLargest { arrival_times, values: &vertices, mechanism: &scores, count: 1, except: &[] }).is_err()
        );
        Ok(())
    })
    .unwrap();
}

/// The same bits, bound and unit may come from other caps, whose values reach further on several columns.
#[test]
fn values_of_another_cap_are_refused() {
    let data = dataset(50, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let narrow = Exponential::for_gradients(1.0, 1.0, 0.25, 5.0).unwrap();
    let mut other = Exponential::for_gradients(1.0, 1.0, 0.5, 5.0).unwrap();
    (other.grid.bits, other.grid.bound, other.grid.unit) = (narrow.grid.bits, narrow.grid.bound, narrow.grid.unit);
    let values = Gaussian::for_selected(&other, 2, 5.0).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &unplanned()).unwrap();
    run.at(&narrow, |run, scale| {
        let arrival_times = run.draw(&scale, 4)?;
        let sums = run.everyone()?.gradient_coordinates(&arrival_times, &[0.0; 4], &LOGISTIC, &[0.0; 4])?;
        run.at(&values, |_, scale| {
            assert!(sums.restrict(&Support { indices: vec![0, 1] }, &scale).is_err());
            Ok(())
        })
    })
    .unwrap();
}

/// Choices of all but one, again and again: the one that is left out is never among them.
#[test]
fn public_columns_are_left_out() {
    let data = dataset(50, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let scores = Exponential::for_gradients(1.0, 1.0, 1.0, 5.0).unwrap();
    let planned = scores.event().repeated(3 * 50);
    let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
    for round in 0..50 {
        let support = run
            .at(&scores, |run, scale| {
                let arrival_times = run.draw(&scale, 4)?;
                let values = run.everyone()?.gradient_coordinates(&arrival_times, &[0.0; 4], &LOGISTIC, &[0.0; 4])?;
                run.execute(ChooseLargest { arrival_times, values: &values, mechanism: &scores, count: 9, except: &[round % 4] })
            })
            .unwrap();
        let mut chosen = support.indices().to_vec();
        chosen.sort_unstable();
        let expected: Vec<usize> = (0..4).filter(|i| *i != round % 4).collect();
        assert_eq!(chosen, expected);
    }
    assert!(run.close(()).is_ok());
}

/// Rows on some of the columns: inside of the unit ball, each from its own record, with label and unit.
#[test]
fn a_run_on_some_columns_has_the_same_records() {
    let entropy = Entropy::simulated(1);
    let engine = Threads::new(1);
    for sparse in [false, true] {
        for units in [None, Some(2)] {
            let mut b = DatasetBuilder::new(&entropy, shape(300, sparse, units)).unwrap();
            for i in 0..12 {
                let row: Vec<f64> = (0..300).map(|j| if (i + j) % 7 == 0 { 0.02 * (j % 9) as f64 } else { 0.0 }).collect();
                b.row(&row, i as f32);
                if i % 3 == 2 {
                    b.end_unit();
                }
            }
            let data = b.build();
            let mut run = Run::begin(&data, &engine, &entropy, &unplanned()).unwrap();
            let few: Vec<(usize, f64)> = vec![(299, 1.0), (7, -2.0), (14, 0.5)];
            let many: Vec<(usize, f64)> = (0..290).rev().map(|c| (c, 1.0)).collect();
            for (columns, fit) in [
                (&few, RowScaling::Within(0.1)),
                (&few, RowScaling::Sphere),
                (&many, RowScaling::Within(2.0)),
                (&many, RowScaling::Sphere),
            ] {
                let checked: crate::Result<()> = run.select_columns(SelectColumns { columns, fit }, |inner| {
                    assert_eq!(inner.everyone()?.data.unit_count(), data.unit_count());
                    for unit_index in 0..data.unit_count() {
                        let everyone = inner.everyone()?;
                        let (was, is) = (data.unit(unit_index), everyone.data.unit(unit_index));
                        assert_eq!(was.rows(), is.rows());
                        for row in 0..was.rows() {
                            assert_eq!(was.label(row), is.label(row));
                            let mut full = vec![0f64; 300];
                            was.each(row, |j, x| full[j] = x);
                            let kept: Vec<f64> = columns.iter().map(|c| full[c.0] * c.1).collect();
                            let length = L2::size(&kept);
                            let factor = match fit {
                                RowScaling::Within(r) => (1.0 / r).min(1.0 / length.max(1e-300)),
                                _ => 1.0 / length.max(1e-300),
                            };
                            let mut seen = vec![0f64; columns.len() + 1];
                            is.each(row, |j, x| seen[j] = x);
                            assert!(L2::size(&seen) <= 1.0);
                            if let RowScaling::Root(constant) = fit {
                                let last = constant / (1.0 + constant * constant).sqrt();
                                assert!((seen[columns.len()] - last).abs() < 1e-4);
                                let root = |c: &(usize, f64)| full[c.0].signum() * full[c.0].abs().sqrt() * c.1;
                                let kept: Vec<f64> = columns.iter().map(root).collect();
                                let factor = 1.0 / (L2::size(&kept) * (1.0 + constant * constant).sqrt()).max(1e-300);
                                assert!(kept.iter().zip(&seen).all(|(k, s)| (k * factor - s).abs() < 1e-3));
                                continue;
                            }
                            assert!(kept.iter().zip(&seen).all(|(k, s)| (k * factor - s).abs() < 1e-3), "{kept:?} {seen:?}");
                        }
                    }
                    Ok(())
                });
                checked.unwrap();
            }
            assert!(
                run.select_columns(SelectColumns { columns: &[(300, 1.0)], fit: RowScaling::Sphere }, |_| {
                    crate::Result::<()>::Ok(())
                })
                .is_err()
            );
            assert!(
                run.select_columns(SelectColumns { columns: &[], fit: RowScaling::Sphere }, |_| crate::Result::<()>::Ok(()))
                    .is_err()
            );
            assert!(
                run.select_columns(SelectColumns { columns: &[(1, 1.0)], fit: RowScaling::Within(0.0) }, |_| {
                    crate::Result::<()>::Ok(())
                })
                .is_err()
            );
        }
    }
}

/// What is released inside counts outside, planned or not; a scope that panics takes the run with it.
#[test]
fn the_record_goes_in_and_comes_back() {
    let data = dataset(50, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let step = Gaussian::for_gradients(1.0, 3.0).unwrap();
    let planned = Event::Compose(vec![step.event(2), step.event(4)]);
    let one = |run: &mut Run<'_>, d: usize| {
        run.at(&step, |run, scale| {
            let noise = run.draw(&scale, d)?;
            let sum = run.everyone()?.gradient_sum(&noise, &vec![0.0; d], &LOGISTIC)?;
            run.release(noise, &sum)
        })
    };
    let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
    run.select_columns(SelectColumns { columns: &[(1, 1.0), (3, 1.0)], fit: RowScaling::Within(1.0) }, |run| one(run, 2))
        .unwrap();
    assert!(
        run.select_columns(SelectColumns { columns: &[(1, 1.0), (3, 1.0)], fit: RowScaling::Within(1.0) }, |run| one(run, 2))
            .is_err(),
        "planned once"
    );
    assert!(run.close(()).is_err(), "and the second part is missing");
    let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run.select_columns(SelectColumns { columns: &[(1, 1.0)], fit: RowScaling::Sphere }, |_| -> crate::Result<()> { panic!() })
    }));
    assert!(caught.is_err() && run.everyone().is_err(), "its record is gone, so it must not go on");
    // Another run in its place would bring back another record.
    let other: &'static Dataset = Box::leak(Box::new(dataset(50, 4, false, None)));
    let (engine, entropy): (&'static Threads, &'static Entropy) =
        (Box::leak(Box::new(Threads::new(1))), Box::leak(Box::new(Entropy::simulated(1))));
    let mut run = Run::begin(&data, engine, entropy, &planned).unwrap();
    let swapped: crate::Result<()> =
        run.select_columns(SelectColumns { columns: &[(1, 1.0), (3, 1.0)], fit: RowScaling::Within(1.0) }, |inner| {
            one(inner, 2)?;
            let _ = std::mem::replace(inner, Run::begin(other, engine, entropy, &planned)?);
            Ok(())
        });
    assert!(swapped.is_ok() && run.everyone().is_err());
}

/// Teachers of parts: however one of them turns, the average moves by at most 2 radius / parts; and it does move that far.
#[test]
fn averages_move_by_two_radii_over_parts() {
    let data = dataset(200, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let mut run = Run::begin(&data, &engine, &entropy, &unplanned()).unwrap();
    let parts = run.parts(20).unwrap();
    let teacher = |model: fn(&[f64], &mut dyn Iterator<Item = Unit<'_>>, &mut NoiseRng) -> SparseModel| Learner {
        name: "t",
        parameters: vec![],
        train: model,
    };
    let up = teacher(|_, _, _| vec![(1, 1e300), (2, 0.0)]);
    let down = teacher(|_, _, _| vec![(1, -1e300), (1, 5.0), (9, 1.0)]);
    let bad = teacher(|_, _, _| vec![(0, f64::NAN)]);
    let mut average = |turned: &Learner<SparseModel>| {
        let models = parts.iter().enumerate().map(|(i, p)| train(&mut run, p, if i == 7 { turned } else { &up })).collect();
        run.execute(Average { models, radius: 3.0, dimension: 4 }).unwrap()
    };
    let (a, b, c) = (average(&up), average(&down), average(&bad));
    let claim = a.claim.clone().unwrap();
    assert_eq!(claim.zero_out, claim.replace_one);
    let apart = |x: &[f64], y: &[f64]| L2::size(&x.iter().zip(y).map(|(x, y)| x - y).collect::<Vec<_>>());
    assert!((apart(&a.value, &b.value) / claim.zero_out - 1.0).abs() < 1e-6);
    assert!((apart(&a.value, &c.value) / claim.zero_out - 0.5).abs() < 1e-6);
    // Seen through public rows, the claim grows with them and still holds.
    let rows = PublicRows::new((0..40).map(|i| f64::from(i % 7) - 3.0).collect(), 4);
    let (x, y) = (
        run.execute(Project { value: a, rows: &rows, longest: 10.0 }).unwrap(),
        run.execute(Project { value: b, rows: &rows, longest: 10.0 }).unwrap(),
    );
    assert!(apart(&x.value, &y.value) <= x.claim.clone().unwrap().zero_out);
    let models = vec![train(&mut run, &parts[0], &up), train(&mut run, &parts[0], &up)];
    assert!(run.execute(Average { models, radius: 3.0, dimension: 4 }).is_err(), "two teachers of one part");
    // No noise, no privacy: only where that is the plan.
    assert!(run.reveal(x).is_ok());
    let mut private = Run::begin(&data, &engine, &entropy, &Event::Compose(vec![])).unwrap();
    let everyone = private.everyone().unwrap();
    let model = train(&mut private, &everyone, &up);
    assert!(private.reveal(model).is_err());
}

/// The elastic net: certified, sparse, and as close for neighbours as strong convexity says.
#[test]
fn elastic_minimisers_are_certified_and_close() {
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let problem = Problem { loss: &LOGISTIC, ridge: 3.0, tolerance: 1e-4 };
    let solve = |data: &Dataset, lasso: f64| {
        let mut run = Run::begin(data, &engine, &entropy, &unplanned()).unwrap();
        let everyone = run.everyone().unwrap();
        run.execute(MinimiseElastic { on: &everyone, problem, lasso }).unwrap()
    };
    let base = with_last(&[0.0; 4], 1.0, false);
    let smooth = {
        let mut run = Run::begin(&base, &engine, &entropy, &unplanned()).unwrap();
        let everyone = run.everyone().unwrap();
        run.execute(Minimise { on: &everyone, problem, linear: None }).unwrap().value
    };
    let none = solve(&base, 0.0);
    assert!(none.value.iter().zip(&smooth).all(|(a, b)| (a - b).abs() < 1e-4), "without an L1 term it is the ridge minimiser");
    let mut largest = 0f64;
    for lasso in [0.0, 0.5, 1.0] {
        for last in [[2.0, 0.0, 0.0, 0.0], [0.0, -2.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]] {
            for label in [1.0, -1.0] {
                let (a, b) = (solve(&base, lasso), solve(&with_last(&last, label, false), lasso));
                let apart = L2::size(&a.value.iter().zip(&b.value).map(|(x, y)| x - y).collect::<Vec<_>>());
                let claim = a.claim.unwrap().zero_out;
                assert!(apart <= claim, "{apart} {claim}");
                largest = largest.max(apart / claim);
            }
        }
    }
    assert!(largest > 0.3, "{largest}");
    assert!(solve(&base, 1e6).value.iter().all(|w| *w == 0.0));
}
