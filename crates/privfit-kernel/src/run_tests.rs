//! The kernel as a method author sees it: runs, plans, forks, votes, minimisers; and the tests T-N11 and T-N12.

use super::*;
use crate::account::{Accountant, Adjacency, Event, GaussianAccountant};
use crate::engine::Threads;
use crate::error::Error;
use crate::tests::{LOGISTIC, dataset, identity, integers, shape};

/// A whole run: plan, noise first, sum, release, close. Executed = planned, and the accountant reads what was executed.
#[test]
fn a_run_releases_what_was_planned() {
    let data = dataset(1000, 4, false, None);
    let (engine, entropy) = (Threads::new(2), Entropy::system().unwrap());
    let mechanism = Gaussian::for_gradients(1.0, 3.0).unwrap();
    let rate = Rate::new(0.1).unwrap();
    let planned = planned_step(&mechanism, 4, Some(rate)).repeated(5);
    let once = || {
        let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
        let w = run
            .at(&mechanism, |run, scale| {
                let mut w = vec![0.0; 4];
                for _ in 0..5 {
                    let noise = run.draw(&scale, 4)?;
                    let batch = run.poisson(rate)?;
                    let sum = batch.gradient_sum(&noise, &w, &LOGISTIC)?;
                    let noisy = run.release(noise, &sum)?;
                    w.iter_mut().zip(&noisy).for_each(|(w, g)| *w -= 0.001 * g);
                }
                Ok(w)
            })
            .unwrap();
        run.close(w).unwrap()
    };
    let (one, two) = (once(), once());
    assert_eq!(one.event(), &planned);
    assert!(one.value().iter().zip(two.value()).all(|(a, b)| a != b), "two runs differ in every coordinate");
    let epsilon = one.epsilon(Adjacency::ZeroOut, 1e-5).unwrap().bound.upper;
    assert!(epsilon > 0.01 && epsilon < 1.0, "{epsilon}");
    assert!(one.epsilon(Adjacency::ReplaceOne, 1e-5).unwrap().bound.upper > epsilon);
}

/// Audit: two worlds, with a record and with the null record, at a weak setting (mu = 2), where a calibration error of a tenth
/// shows. 3000 releases in each; the estimate of mu has a standard deviation below 0.045, so seven of them are a false alarm of
/// 3e-12.
#[test]
fn an_attacker_sees_no_more_than_the_claim() {
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let audit =
        |name: &str, mechanism: &Gaussian, sum: for<'id> fn(&Batch<'_>, &Noise<'id, L2>) -> crate::Result<Bounded<'id, L2>>| {
            let release = |record: &[f64]| -> Vec<f64> {
                let mut b = DatasetBuilder::new(&entropy, shape(2, false, None)).unwrap();
                b.row(&[0.3, -0.2], 1.0);
                b.row(record, -1.0);
                let data = b.build();
                (0..3000)
                    .map(|_| {
                        let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(2)).unwrap();
                        let out = run.at(mechanism, |run, scale| {
                            let noise = run.draw(&scale, 2)?;
                            let value = sum(&run.everyone()?, &noise)?;
                            run.release(noise, &value)
                        });
                        run.close(out.unwrap()).unwrap().into_value()[0]
                    })
                    .collect()
            };
            // The worst record: as long as the clip allows, and with weights that make its derivative as large as it gets.
            let (with, without) = (release(&[1.0, 0.0]), release(&[0.0, 0.0]));
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
            let (a, b) = (mean(&with), mean(&without));
            let variance = |v: &[f64], m: f64| v.iter().map(|x| (x - m).powi(2)).sum::<f64>() / v.len() as f64;
            let deviation = (0.5 * (variance(&with, a) + variance(&without, b))).sqrt();
            let (mu, claim) = ((a - b).abs() / deviation, 1.0 / mechanism.noise_multiplier());
            assert!((claim - 2.0).abs() < 0.01 && mu < claim + 7.0 * 0.045, "{name}: measured {mu}, claimed {claim}");
            assert!(mu > 0.9 * claim, "{name}: the record is not the worst one, measured {mu}");
        };
    audit("clipped sum", &Gaussian::new(0.5, 0.5, 2).unwrap(), |batch, noise| batch.sum(noise, &identity(2)));
    // At a score of 40 against its label the derivative of the logistic loss is 1.
    let gradient = Gaussian::for_gradients(1.0, 0.5).unwrap();
    audit("gradient", &gradient, |batch, noise| batch.gradient_sum(noise, &[40.0, 0.0], &LOGISTIC));
}

#[test]
fn a_run_refuses_what_was_not_planned() {
    let data = dataset(100, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let mechanism = Gaussian::new(1.0, 3.0, 100).unwrap();
    let release = |run: &mut Run<'_>, times: usize| {
        run.at(&mechanism, |run, scale| {
            for _ in 0..times {
                let noise = run.draw(&scale, 4)?;
                let sum = run.everyone()?.sum(&noise, &identity(4))?;
                run.release(noise, &sum)?;
            }
            Ok(())
        })
    };
    for (times, released, fits) in [(1, true, false), (2, true, true), (3, false, true)] {
        let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(4).repeated(2)).unwrap();
        assert_eq!(release(&mut run, times).is_ok(), released, "{times}: a third is refused before it leaves");
        assert_eq!(run.close(()).is_ok(), fits, "{times}");
    }
    // Less noise than planned never leaves.
    let weak = Gaussian::new(1.0, 0.001, 100).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(4)).unwrap();
    let leak = run.at(&weak, |run, scale| {
        let noise = run.draw(&scale, 4)?;
        let sum = run.everyone()?.sum(&noise, &identity(4))?;
        run.release(noise, &sum)
    });
    assert!(matches!(leak, Err(Error::Unplanned { .. })));
    // One sampled batch, two releases: the second would reveal who is in the sample.
    let rate = Rate::new(0.5).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &planned_step(&mechanism, 4, Some(rate)).repeated(2)).unwrap();
    let second = run.at(&mechanism, |run, scale| {
        let (one, two) = (run.draw(&scale, 4)?, run.draw(&scale, 4)?);
        let batch = run.poisson(rate)?;
        let sum = batch.sum(&one, &identity(4))?;
        run.release(one, &sum)?;
        run.release(two, &sum)
    });
    assert!(matches!(second, Err(Error::Mismatch { .. })));
    // Lengths and runs must agree.
    let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(4)).unwrap();
    let wrong = run.at(&mechanism, |run, scale| {
        let (long, short) = (run.draw(&scale, 4)?, run.draw(&scale, 3)?);
        let sum = run.everyone()?.sum(&long, &identity(4))?;
        run.release(short, &sum)
    });
    assert!(wrong.is_err());
}

/// Law 10: a seed repeats a run exactly and takes its privacy away.
#[test]
fn a_simulation_is_marked() {
    let data = dataset(100, 4, false, None);
    let engine = Threads::new(1);
    let mechanism = Laplace::new(1.0, 3.0, 100).unwrap();
    let once = |seed| {
        let entropy = Entropy::simulated(seed);
        let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(4)).unwrap();
        let out = run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, 4)?;
            let sum = run.everyone()?.sum(&noise, &identity(4))?;
            run.release(noise, &sum)
        });
        run.close(out.unwrap()).unwrap()
    };
    assert_eq!(once(5).value(), once(5).value());
    assert_ne!(once(5).value(), once(6).value());
    assert!(matches!(once(5).event(), Event::NotPrivate { .. }));
    assert!(once(5).epsilon(Adjacency::ZeroOut, 1e-5).is_err(), "no epsilon for it");
}

/// T-N11: after a fork, parent and child never share noise: fresh draws differ and a run that is under way refuses to go on.
#[test]
fn forks_do_not_share_noise() {
    let entropy = Entropy::system().unwrap();
    let data = dataset(10, 1, false, None);
    let engine = Threads::new(1);
    let mechanism = Gaussian::new(1.0, 1.0, 10).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(1)).unwrap();
    let (mut ends, mut child_word) = ([0i32; 2], [0u8; 16]);
    // SAFETY: the child only draws, writes to the pipe and leaves with _exit.
    let parent_word = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        match libc::fork() {
            0 => {
                let word = entropy.rng(Stream::Noise).map_or(0, |mut r| r.next_word());
                let refused = run.at(&mechanism, |run, scale| run.draw(&scale, 1).map(|_| ())).is_err();
                let mut message = [0u8; 16];
                message[..8].copy_from_slice(&word.to_le_bytes());
                message[8] = u8::from(refused);
                libc::write(ends[1], message.as_ptr().cast(), 16);
                libc::_exit(0);
            }
            child => {
                assert!(child > 0);
                let word = entropy.rng(Stream::Noise).unwrap().next_word();
                assert_eq!(libc::read(ends[0], child_word.as_mut_ptr().cast(), 16), 16);
                libc::waitpid(child, std::ptr::null_mut(), 0);
                word
            }
        }
    };
    assert_ne!(u64::from_le_bytes(child_word[..8].try_into().unwrap()), parent_word);
    assert_eq!(child_word[8], 1, "the child may not continue the parent's run");
    assert!(run.at(&mechanism, |run, scale| run.draw(&scale, 1).map(|_| ())).is_ok(), "the parent may");
}

/// T-N12, the structure: a sum takes the noise it will meet by reference, so noise exists first; and a release is one addition
/// and one multiplication for each coordinate, whatever the noise is.
#[test]
fn noise_comes_before_the_value() {
    let data = dataset(10, 2, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let mechanism = Gaussian::for_gradients(1.0, 1.0).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(2).repeated(2)).unwrap();
    run.at(&mechanism, |run, scale| {
        let (one, two) = (run.draw(&scale, 2)?, run.draw(&scale, 2)?);
        let expected: Vec<i64> = one.values.clone();
        let value = run.everyone()?.gradient_sum(&one, &[0.1, 0.2], &LOGISTIC)?;
        let unit = value.grid.unit;
        let plain = value.values.clone();
        let out = run.release(one, &value)?;
        for i in 0..2 {
            assert_eq!(out[i], expected[i].wrapping_add(plain[i]) as f64 * unit, "the noise drawn first is the noise added");
        }
        let value = run.everyone()?.gradient_sum(&two, &[0.0, 0.0], &LOGISTIC)?;
        run.release(two, &value).map(|_| ())
    })
    .unwrap();
    assert!(run.close(()).is_ok());
}

#[test]
fn units_of_several_rows_are_clipped_as_one() {
    let entropy = Entropy::simulated(0);
    let build = |rows: usize| {
        let mut b = DatasetBuilder::new(&entropy, shape(2, false, Some(5))).unwrap();
        for unit in 0..20 {
            for _ in 0..(if unit == 7 { rows } else { 1 }) {
                b.row(&[0.9, 0.1], 1.0);
            }
            b.end_unit();
        }
        b.build()
    };
    let m = Gaussian::for_gradients(1.0, 1.0).unwrap();
    let gradient = |rows| integers(&build(rows), 1, &m, 2, |b, n| b.gradient_sum(n, &[0.3, 0.2], &LOGISTIC));
    let (none, many) = (gradient(0), gradient(5));
    let gap: Vec<i64> = none.0.iter().zip(&many.0).map(|(a, b)| a - b).collect();
    assert!(L2::within(&gap, many.1.zero_out), "{gap:?}");
    assert!(!L2::within(&gap, many.1.zero_out / 2), "five rows fill the clip");
    // Nothing inside of an objective is clipped for a unit, so objective perturbation refuses such data.
    let data = build(5);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(0));
    let mut run = Run::begin(&data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
    let batch = run.everyone().unwrap();
    let problem = Problem { loss: &LOGISTIC, ridge: 1.0, tolerance: 1e-3 };
    let linear = LinearTerm::gaussian(1.0);
    assert!(run.execute(Minimise { on: &batch, problem, linear: Some(linear) }).is_err());
}

#[test]
fn blocks_move_by_at_most_the_sensitivity() {
    // Rows as vectors, summed in single precision: the error of a weighted sum of 32 is below 1e-5 of the clip.
    let rows = Blockwise {
        name: "rows",
        dimension: 6,
        error: 1e-5,
        exact: false,
        labels: (-1.0, 1.0),
        clipping: Clipping::Norm,
        parameters: &[],
        layout: &[6],
        scratch: 0,
        at_once: 5,
        norms: |_, units, _, out| {
            for (i, o) in out.iter_mut().enumerate() {
                let mut square = 0f32;
                units.get(i).each(0, |_, x| square += (x * x) as f32);
                *o = square.sqrt();
            }
        },
        weighted: |_, units, weights, _, out| {
            for (i, w) in weights.iter().enumerate() {
                if *w > 0.0 {
                    units.get(i).each(0, |j, x| out[j] += w * x as f32);
                }
            }
        },
    };
    let m = Gaussian::for_blocks(0.4, 1e-5, 1.0, 100, 6).unwrap();
    let sum = |change| integers(&dataset(100, 6, false, change), 2, &m, 6, |b, n| b.sum_blocks(n, &rows));
    let base = sum(None);
    for at in [0usize, 31, 32, 99] {
        for with in [None, Some(vec![9.0f64; 6]), Some(vec![0.01; 6])] {
            let other = sum(Some((at, with.clone())));
            let gap: Vec<i64> = base.0.iter().zip(&other.0).map(|(a, b)| a - b).collect();
            let sensitivity = if with.is_some() { base.1.replace_one } else { base.1.zero_out };
            assert!(L2::within(&gap, sensitivity), "{at} {with:?}");
        }
    }
    // A mechanism that forgets the error of a block is refused.
    let plain = Gaussian::new(0.4, 1.0, 100).unwrap();
    let data = dataset(10, 6, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(3));
    let mut run = Run::begin(&data, &engine, &entropy, &plain.event(6)).unwrap();
    let refused = run.at(&plain, |run, scale| {
        let noise = run.draw(&scale, 6)?;
        run.everyone()?.sum_blocks(&noise, &rows).map(|_| ())
    });
    assert!(refused.is_err());
}

#[test]
fn selection_then_values_on_the_selected() {
    let entropy = Entropy::system().unwrap();
    let mut b = DatasetBuilder::new(&entropy, shape(50, true, None)).unwrap();
    for i in 0..3000u32 {
        b.sparse_row(&[(7, 0.6), (23, -0.5), (i % 50, 0.1)], 1.0);
    }
    let data = b.build();
    let engine = Threads::new(2);
    let scores = Exponential::new(0.5, 20.0).unwrap();
    let values = Gaussian::for_selected(&scores, 2, 20.0).unwrap();
    let planned = Event::Compose(vec![scores.event().repeated(2), values.event(2)]);
    // Absolute values, so that both signs can be chosen.
    let absolute = Contribution {
        name: "absolute",
        dimension: 50,
        parameters: vec![],
        add: |_, unit, _, out| unit.each(0, |i, x| out.add(i, x.abs())),
    };
    let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
    let (support, means) = run
        .at(&scores, |run, scale| {
            let arrival_times = run.draw(&scale, 50)?;
            let sum = run.everyone()?.sum(&arrival_times, &absolute)?;
            let support = run.execute(Choose { arrival_times, scores: &sum, mechanism: &scores, count: 2 })?;
            let means = run.at(&values, |run, scale| {
                let noise = run.draw(&scale, 2)?;
                let part = sum.restrict(&support, &scale)?;
                run.release(noise, &part)
            })?;
            Ok((support, means))
        })
        .unwrap();
    let mut chosen = support.indices().to_vec();
    chosen.sort_unstable();
    assert_eq!(chosen, [7, 23]);
    assert!(means.iter().all(|m| (m / 3000.0 - 0.5).abs() < 0.11), "{means:?}");
    assert!(run.close(support).is_ok());
}

/// A sensitivity holds for the kind of value that its mechanism was made for, and for no other.
#[test]
fn grids_are_not_interchangeable() {
    let data = dataset(100, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let sum_refused = |m: &Gaussian| {
        let mut run = Run::begin(&data, &engine, &entropy, &m.event(4)).unwrap();
        run.at(m, |run, scale| {
            let noise = run.draw(&scale, 4)?;
            run.everyone()?.sum(&noise, &identity(4)).map(|_| ())
        })
        .is_err()
    };
    // Each of these has a replace-one sensitivity that clipped sums would exceed.
    for m in [
        Gaussian::for_output(1.0, 1.0, 10.0, 1.0, 4).unwrap(),
        Gaussian::for_votes(1.0).unwrap(),
        Gaussian::for_gradients(1.0, 1.0).unwrap(),
        Gaussian::for_selected(&Exponential::new(1.0, 1.0).unwrap(), 4, 1.0).unwrap(),
    ] {
        assert!(sum_refused(&m));
    }
    assert!(!sum_refused(&Gaussian::new(1.0, 1.0, 100).unwrap()));
    // A spherical bound for one coordinate does not serve four.
    let narrow = Laplace::spherical(1.0, 1.0, 100, 1).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &narrow.event(4)).unwrap();
    let refused = run.at(&narrow, |run, scale| {
        let noise = run.draw(&scale, 4)?;
        run.everyone()?.sum(&noise, &identity(4)).map(|_| ())
    });
    assert!(refused.is_err());
    // Scores never wrap, however many units there are: a comparison is not post-processing of added noise.
    for noise_multiplier in [1e-3, 0.5f64.powi(20), 1.0, 1e6] {
        let Ok(scores) = Exponential::new(1.0, noise_multiplier) else { continue };
        assert!((scores.grid.bound as f64) * (crate::limits::MOST_UNITS as f64) < 2f64.powi(62));
    }
    let gradients = Exponential::for_gradients(1.0, 1.0, 1.0, 1e-3).unwrap();
    assert!((gradients.grid.bound as f64) * (crate::limits::MOST_UNITS as f64) < 2f64.powi(63));
}

/// Records that make a contribution panic, or have a label that the loss does not know, contribute nothing; nobody hears of it.
#[test]
fn panics_and_foreign_labels_are_contained() {
    let entropy = Entropy::simulated(0);
    let build = |label: f32| {
        let mut b = DatasetBuilder::new(&entropy, shape(2, false, None)).unwrap();
        for i in 0..200 {
            b.row(&[0.6, 0.1], if i == 77 { label } else { 1.0 });
        }
        b.build()
    };
    let touchy = Contribution {
        name: "touchy",
        dimension: 2,
        parameters: vec![],
        add: |_, unit, _, out| {
            unit.each(0, |i, x| out.add(i, x));
            assert!(unit.label(0) < 5.0);
        },
    };
    let m = Gaussian::new(1.0, 1.0, 200).unwrap();
    let sum = |data: &Dataset| integers(data, 2, &m, 2, |b, n| b.sum(n, &touchy));
    let (calm, panicked) = (sum(&build(1.0)), sum(&build(9.0)));
    let gap: Vec<i64> = calm.0.iter().zip(&panicked.0).map(|(a, b)| a - b).collect();
    assert!(L2::within(&gap, calm.1.zero_out) && gap[0] > 0, "{gap:?}");
    let g = Gaussian::for_gradients(1.0, 1.0).unwrap();
    let gradient = |data: &Dataset| integers(data, 1, &g, 2, |b, n| b.gradient_sum(n, &[0.0, 0.0], &LOGISTIC));
    let (known, foreign) = (gradient(&build(1.0)), gradient(&build(1e30)));
    let gap: Vec<i64> = known.0.iter().zip(&foreign.0).map(|(a, b)| a - b).collect();
    assert!(L2::within(&gap, known.1.zero_out) && gap[0] != 0);
    // Inside of an objective nothing is clipped afterwards, so derivatives are bounded as they are made.
    let solve = |data: &Dataset| {
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
        let mut run = Run::begin(data, &engine, &entropy, &Event::Compose(vec![])).unwrap();
        let batch = run.everyone().unwrap();
        run.execute(Minimise { on: &batch, problem: Problem { loss: &LOGISTIC, ridge: 1.0, tolerance: 1e-4 }, linear: None })
            .unwrap()
            .value
    };
    let (a, b) = (solve(&build(1.0)), solve(&build(1e30)));
    let distance = ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt();
    assert!(distance <= 1.0 + 2e-4, "{distance}");
}

/// A model on one part.
pub(crate) fn train<'d, M: Send>(run: &mut Run<'d>, part: &Batch<'d>, learner: &Learner<M>) -> Sensitive<Option<M>> {
    run.execute(Train { parts: std::slice::from_ref(part), learner, progress: &|| {} }).unwrap().remove(0)
}

#[test]
fn votes_of_parts_and_local_answers() {
    let entropy = Entropy::system().unwrap();
    let data = dataset(2000, 2, false, None);
    let engine = Threads::new(1);
    let mechanism = Gaussian::for_votes(5.0).unwrap();
    let Event::DiscreteGaussian { sensitivity, replace_sensitivity, .. } = mechanism.event(2) else { panic!() };
    assert_eq!(sensitivity, replace_sensitivity, "votes move as far under zero-out as under replace-one");
    let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(2)).unwrap();
    // Teachers that always vote 1: the released count of label 1 is near the number of parts.
    let learner: Learner<f64> = Learner { name: "size", parameters: vec![], train: |_, units, _| units.count() as f64 };
    let parts = run.parts(40).unwrap();
    let models = run.execute(Train { parts: &parts, learner: &learner, progress: &|| {} }).unwrap();
    assert!((models.iter().filter_map(|m| m.value).sum::<f64>() - 2000.0).abs() < 0.5, "parts are disjoint and complete");
    // Models on all records, or two on one part, would let one unit move many votes.
    let everyone = run.everyone().unwrap();
    let doubled = parts.iter().chain(&parts[..1]).map(|p| train(&mut run, p, &learner)).collect();
    for wrong in [vec![train(&mut run, &everyone, &learner), train(&mut run, &everyone, &learner)], doubled] {
        let refused = run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, 2)?;
            run.execute(Votes { noise: &noise, models: &wrong, label: |_, _| 1, point: &[0.0] }).map(|_| ())
        });
        assert!(refused.is_err());
    }
    let out = run
        .at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, 2)?;
            let votes =
                run.execute(Votes { noise: &noise, models: &models, label: |size, _| u32::from(*size > 0.0), point: &[0.0] })?;
            run.release(noise, &votes)
        })
        .unwrap();
    assert!((out[1] - 40.0).abs() < 50.0 && out[0].abs() < 50.0, "{out:?}");
    // A learner that panics leaves nothing behind, and no trace.
    let touchy: Learner<f64> = Learner { name: "touchy", parameters: vec![], train: |_, _, _| panic!() };
    assert!(train(&mut run, &parts[0], &touchy).value.is_none());
    let released = run.close(out).unwrap();
    let again = Run::begin(&data, &engine, &entropy, &Event::Compose(vec![])).unwrap();
    let mut answers = 0;
    let local = again.local(&released, |message, unit| message[1] * f64::from(unit.label(0)));
    data.deliver(local, |_, _| answers += 1).unwrap();
    // Nor does an answer.
    let silent = again.local(&released, |_, _| -> f64 { panic!() });
    data.deliver(silent, |_, _| answers += 1).unwrap();
    assert_eq!(answers, 2000);
}

#[test]
fn minimiser_is_certified_and_the_same_on_every_engine() {
    let data = dataset(3000, 4, false, None);
    let entropy = Entropy::simulated(1);
    let problem = Problem { loss: &LOGISTIC, ridge: 2.0, tolerance: 1e-4 };
    let solve = |threads| {
        let engine = Threads::new(threads);
        let mut run = Run::begin(&data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
        let batch = run.everyone().unwrap();
        run.execute(Minimise { on: &batch, problem, linear: None }).unwrap().value
    };
    let theta = solve(1);
    assert_eq!(theta, solve(2));
    // Gradient by plain floating point, as an independent check.
    let mut gradient: Vec<f64> = theta.iter().map(|w| 2.0 * w).collect();
    for unit_index in 0..3000 {
        let unit = data.unit(unit_index);
        let y = f64::from(unit.label(0));
        let s = -y / (1.0 + (y * unit.dot(0, &theta)).exp());
        unit.each(0, |j, x| gradient[j] += s * x);
    }
    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    assert!(norm <= 1e-4, "{norm}");
}

/// Correction A13: with many blocks the rounding of block sums exceeds a tolerance of 1e-9 ridge; such a tolerance is refused.
#[test]
fn tolerance_below_the_rounding_floor_is_refused() {
    let data = dataset(5000, 10, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let mut run = Run::begin(&data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
    let batch = run.everyone().unwrap();
    let problem = |tolerance| Problem { loss: &LOGISTIC, ridge: 2.7, tolerance };
    assert!(run.execute(Minimise { on: &batch, problem: problem(2.7e-13), linear: None }).is_err());
    let objective = crate::query::problem::Objective {
        data: &data,
        chosen: None,
        threads: &engine,
        seam: None,
        problem: problem(1e-9),
        linear: vec![0.0; 10],
        linear_bound: 0.0,
        linear_grid: 0.0,
    };
    let blocks = (5000f64 / 256.0).ceil() * 0.5f64.powi(41) * 10f64.sqrt();
    assert!(
        objective.limits().floor() >= blocks,
        "the floor holds the rounding of every block: {} {blocks}",
        objective.limits().floor()
    );
    // The numbers of the correction: 10^7 rows, 100 features: 1.8e-7, against a tolerance of 2.7e-9.
    let published: f64 = 39063.0 * 0.5f64.powi(41) * 10.0;
    assert!((published / 1.8e-7 - 1.0).abs() < 0.02 && published > 60.0 * 2.7e-9);
}

/// Objective perturbation followed by output noise: one record of each, and the accountant reads their joint curve.
#[test]
fn objective_perturbation_ends_with_output_noise() {
    let data = dataset(3000, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let (ridge, tolerance) = (5.0, 1e-3);
    let linear = LinearTerm::gaussian(5.0);
    let distance = 2.0 * tolerance / ridge;
    let output = Gaussian::for_output(distance, distance, 100.0, 50.0, 4).unwrap();
    let objective = linear.event(&LOGISTIC, 1.0, ridge, 4);
    let planned = Event::Compose(vec![objective.clone(), output.event(4)]);
    let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
    let batch = run.everyone().unwrap();
    let theta = run
        .at(&output, |run, scale| {
            let noise = run.draw(&scale, 4)?;
            let minimum = run.execute(Minimise {
                on: &batch,
                problem: Problem { loss: &LOGISTIC, ridge, tolerance },
                linear: Some(linear),
            })?;
            let value = run.bounded(&noise, minimum)?;
            run.release(noise, &value)
        })
        .unwrap();
    let released = run.close(theta).unwrap();
    let joint = released.epsilon(Adjacency::ZeroOut, 1e-6).unwrap().bound;
    let alone = crate::account::epsilon(&objective, Adjacency::ZeroOut, 1e-6).unwrap().bound;
    assert!(joint.upper >= alone.upper * 0.999 && joint.upper < alone.upper * 1.1, "{joint:?} {alone:?}");
    // A theorem that claims a larger distance than the noise covers is refused; so is a vector without one.
    for claim in [Some(2.0 * distance), None] {
        let mut run = Run::begin(&data, &engine, &entropy, &output.event(4)).unwrap();
        let refused = run.at(&output, |run, scale| {
            let noise = run.draw(&scale, 4)?;
            let claim = claim.map(|d| Theorem { reason: "test", zero_out: d, replace_one: d });
            let value = Sensitive { value: vec![0.0; 4], run: noise.run, part: None, claim, order_dependent: false };
            run.bounded(&noise, value).map(|_| ())
        });
        assert!(refused.is_err());
    }
    // Objective perturbation that was not planned is refused before it is solved.
    let mut run = Run::begin(&data, &engine, &entropy, &output.event(4)).unwrap();
    let batch = run.everyone().unwrap();
    assert!(
        run.execute(Minimise { on: &batch, problem: Problem { loss: &LOGISTIC, ridge, tolerance }, linear: Some(linear) })
            .is_err()
    );
}

/// The event carries the ratio of integers that was really used, and the accountant never sees less noise than was asked for.
#[test]
fn events_hold_what_was_used() {
    let m = Gaussian::new(1.0, 1.7, 1_000_000).unwrap();
    let epsilon = GaussianAccountant.epsilon(&m.event(10), Adjacency::ZeroOut, 1e-6).unwrap().upper;
    let asked = GaussianAccountant.epsilon(&Event::gaussian(1.7), Adjacency::ZeroOut, 1e-6).unwrap().upper;
    assert!(epsilon <= asked * (1.0 + 1e-9) && epsilon > asked * 0.999, "{epsilon} {asked}");
}

/// Poisson samples: the mean size is right, and two samples differ.
#[test]
fn poisson_samples_follow_their_rate() {
    let data = dataset(200_000, 1, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let mut run = Run::begin(&data, &engine, &entropy, &Event::Compose(vec![])).unwrap();
    for rate in [0.001, 0.3] {
        let exact = Rate::new(rate).unwrap();
        let (one, two) = (run.poisson(exact).unwrap(), run.poisson(exact).unwrap());
        let size = one.chosen.marks(data.unit_count()).unwrap().iter().filter(|c| **c).count() as f64;
        let mean = 200_000.0 * rate;
        // Seven standard deviations: a false alarm in 1e-11 runs.
        assert!((size - mean).abs() < 7.0 * mean.sqrt() + 20.0, "{size} {mean}");
        assert_ne!(one.chosen.marks(data.unit_count()), two.chosen.marks(data.unit_count()));
    }
}

/// The linear term lies on a grid, and the proof is about a continuous one: the rounding between them is part of the floor, so that
/// certificate, tolerance and sensitivity of the output noise all contain it.
#[test]
fn the_grid_of_the_linear_term_is_part_of_the_floor() {
    let size = ProblemSize { unit_count: 1, rows_per_unit: 1, features: 1_000_000, row_norm: 1.0, sparse: true };
    for noise_multiplier in [1.0, 1e6] {
        let linear = LinearTerm::gaussian(noise_multiplier);
        let (tolerance, _) = size.limits(&LOGISTIC, 1e12, Some(linear));
        let moved = 0.5 * 1e6f64.sqrt() * noise_multiplier * 0.5f64.powi(40);
        assert!(tolerance >= 4.0 * moved, "{tolerance} {moved}");
    }
}

/// Corners in the derivative and next to no ridge: the minimiser is found all the same, for every data set alike.
#[test]
fn sharp_corners_are_solved() {
    static SHARP: Loss = Loss {
        name: "sharp",
        values: |_, _, _, out| out.fill(0.0),
        derivatives_exact: |_, s, y, out| {
            for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
                let y = f64::from(*y);
                *o = -y * ((1.01 - s * y) / 0.02).clamp(0.0, 1.0);
            }
        },
        smoothness: 50.0,
        trace: 50.0,
        at_zero: 1.01,
        convex: true,
        starting: None,
        outputs: 1,
        parameters: Vec::new(),
        derivatives: |_, _, _, out| out.fill(0.0),
        labels: (-1.0, 1.0),
        rank: 1,
        lipschitz: 1.0,
    };
    for (rows, d) in [(100usize, 20usize), (300, 60), (12, 30)] {
        for ridge in [1e-3, 1.0] {
            let data = dataset(rows, d, false, None);
            let size = ProblemSize { unit_count: rows, rows_per_unit: 1, features: d, row_norm: data.row_norm, sparse: false };
            let tolerance = size.limits(&SHARP, ridge, None).0.max(1e-9);
            let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
            let planned = Event::gaussian(1.0);
            let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
            let batch = run.everyone().unwrap();
            assert!(
                run.execute(Minimise { on: &batch, problem: Problem { loss: &SHARP, ridge, tolerance }, linear: None }).is_ok()
            );
        }
    }
}

/// One record makes the contribution panic, and the message quotes it: for the test that looks at what is printed.
pub(super) fn panicking_contribution() {
    let data = dataset(100, 4, false, None);
    let touchy = Contribution {
        name: "touchy",
        dimension: 1,
        parameters: vec![],
        add: |_, unit, _, _| panic!("secret label {}", unit.label(0)),
    };
    let mechanism = Gaussian::new(1.0, 1.0, 100).unwrap();
    let (total, _) = integers(&data, 2, &mechanism, 1, |batch, noise| batch.sum(noise, &touchy));
    assert_eq!(total, [0]);
}

/// Votes move by one whatever a record becomes, scores by two if it becomes another one: a scale for the former must not take the latter, even
/// where grid and bound are the same.
#[test]
fn chosen_scores_are_not_chosen_votes() {
    let data = dataset(60, 4, false, None);
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(5));
    let (scores, votes) = (Exponential::new(1.0, 20.0).unwrap(), Exponential::for_votes(20.0).unwrap());
    let (own, other) = (Gaussian::for_selected(&scores, 2, 20.0).unwrap(), Gaussian::for_selected(&votes, 2, 20.0).unwrap());
    let replaced = |m: &Gaussian| GaussianAccountant.epsilon(&m.event(2), Adjacency::ReplaceOne, 1e-6).unwrap().upper;
    assert!(replaced(&own) > 1.9 * replaced(&other), "the claim would be half of the truth");
    for (values, fits) in [(own, true), (other, false)] {
        let mut run = Run::begin(&data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
        let out = run.at(&scores, |run, scale| {
            let arrival_times = run.draw(&scale, 4)?;
            let sum = run.everyone()?.sum(&arrival_times, &identity(4))?;
            let support = run.execute(Choose { arrival_times, scores: &sum, mechanism: &scores, count: 2 })?;
            run.at(&values, |_, scale| sum.restrict(&support, &scale).map(|_| ()))
        });
        assert_eq!(out.is_ok(), fits);
    }
}

/// A minimiser, a descent and sums of blocks depend on how many units there are or on their order. Under add-remove they are refused, with any
/// number of units alike; without an adjacency they say so afterwards.
#[test]
fn order_is_refused_under_add_remove() {
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let problem = Problem { loss: &LOGISTIC, ridge: 10.0, tolerance: 0.01 };
    let apart = 1.0 / 10.0 + 2.0 * 0.01 / 10.0;
    let mechanism = Gaussian::for_output(apart, 2.0 * apart, 100.0, 1.0, 4).unwrap();
    for n in [1000, 1001] {
        let data = dataset(n, 4, false, None);
        let attempt = |adjacency: Adjacency| {
            let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(4))?.under(adjacency);
            let out = run.at(&mechanism, |run, scale| {
                let noise = run.draw(&scale, 4)?;
                let everyone = run.everyone()?;
                let minimiser = run.execute(Minimise { on: &everyone, problem, linear: None })?;
                let value = run.bounded(&noise, minimiser)?;
                run.release(noise, &value)
            })?;
            run.close(out)
        };
        let released = attempt(Adjacency::ZeroOut).unwrap();
        assert!(released.is_order_dependent() && released.epsilon(Adjacency::AddRemove, 1e-6).is_err());
        assert!(released.epsilon(Adjacency::ReplaceOne, 1e-6).is_ok());
        let Err(Error::Public(crate::account::Error::Unsupported { .. })) = attempt(Adjacency::AddRemove).map(|_| ()) else {
            panic!("{n} units")
        };
    }
}

/// One unit takes its block with it, and the others are added one by one: to the digits of their own sums, without an error that nobody charges.
#[test]
fn a_block_that_panics_loses_no_digits() {
    let rows = Blockwise {
        name: "touchy rows",
        dimension: 1,
        error: 1e-5,
        exact: false,
        labels: (-1.0, 1.0),
        clipping: Clipping::Norm,
        parameters: &[],
        layout: &[1],
        scratch: 0,
        at_once: 128,
        norms: |_, units, _, out| {
            for (i, o) in out.iter_mut().enumerate() {
                *o = 0.0;
                units.get(i).each(0, |_, x| *o += x as f32);
            }
        },
        weighted: |_, units, weights, _, out| {
            for (i, w) in weights.iter().enumerate() {
                assert!(units.get(i).label(0) >= 0.0, "touchy");
                units.get(i).each(0, |j, x| out[j] += w * x as f32);
            }
        },
    };
    let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape(1, false, None)).unwrap();
    (0..32).for_each(|i| builder.row(&[0.9 - 0.013 * f64::from(i)], if i == 7 { -1.0 } else { 1.0 }));
    let data = builder.build();
    let m = Gaussian::for_blocks(1.0, 1e-5, 1.0, 32, 1).unwrap();
    let (total, _) = integers(&data, 1, &m, 1, |b, n| b.sum_blocks(n, &rows));
    let mut exact = 0.0;
    for i in (0..32).filter(|i| *i != 7) {
        data.unit(i).each(0, |_, x| exact += f64::from(x as f32));
    }
    let unit = m.grid().0.unit;
    assert!((total[0] as f64 * unit - exact).abs() < 1e-10, "{} {exact}", total[0] as f64 * unit);
}
