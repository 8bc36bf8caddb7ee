//! Correlated noise on integers: what it covers, what it refuses, and what broken forms of it would leak.

use super::super::Run;
use crate::account::{Adjacency, Event, FACTOR_BITS, Factor, Participation};
use crate::engine::Threads;
use crate::mechanism::Mechanism;
use crate::norm::{L2, Norm};
use crate::tests::{LOGISTIC, dataset, identity};
use crate::{CorrelatedGaussian, Dataset, Entropy, Executed, Gaussian, Result};

const DIMENSION: usize = 4;

/// Bands of several kinds, none of which is a power of two alone.
fn factors() -> [Factor; 4] {
    [Factor::INDEPENDENT, Factor::geometric(0.9).unwrap(), Factor::inverse_square_root(4), Factor::geometric(1.0).unwrap()]
}

/// Sums of rows, clipped at 1.
fn mechanism(factor: Factor, steps: u64, batches: u32) -> CorrelatedGaussian {
    CorrelatedGaussian::new(Gaussian::new(1.0, 3.0, 100).unwrap(), factor, steps, batches, DIMENSION).unwrap()
}

/// What the bands take back of integers before, newest first, rounded.
fn taken_back(past: &[Vec<i64>], factor: &Factor) -> Vec<i64> {
    let half = 1i128 << (FACTOR_BITS - 1);
    let sum = |i: usize| past.iter().rev().zip(factor.taken_back()).map(|(z, a)| i128::from(z[i]) * i128::from(*a)).sum::<i128>();
    (0..DIMENSION).map(|i| ((sum(i) + half) >> FACTOR_BITS) as i64).collect()
}

/// The independent noise that makes what was released of these sums.
fn noise_of(released: &[Vec<i64>], sums: &[Vec<i64>], factor: &Factor) -> Vec<Vec<i64>> {
    let mut noise: Vec<Vec<i64>> = Vec::new();
    for (y, g) in released.iter().zip(sums) {
        let taken = taken_back(&noise, factor);
        noise.push((0..DIMENSION).map(|i| y[i].wrapping_sub(g[i]).wrapping_add(taken[i])).collect());
    }
    noise
}

/// Sums and what is released of them, as integers.
type Steps = (Vec<Vec<i64>>, Vec<Vec<i64>>);

/// All steps over a data set. What a step sums depends on what was released before, so that neighbours are compared at one transcript only where that is `forced`.
fn steps(data: &Dataset, mechanism: &CorrelatedGaussian, seed: u64, forced: Option<&[Vec<i64>]>) -> Result<Steps> {
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(seed));
    let mut run = Run::begin(data, &engine, &entropy, &mechanism.event())?;
    run.begin_correlated(mechanism)?;
    let (mut sums, mut released) = (Vec::new(), Vec::<Vec<i64>>::new());
    for step in 0..mechanism.participation().steps as usize {
        let unit = mechanism.step.grid().0.unit;
        // Public: the signs of the last release.
        let last = if step == 0 { vec![1; DIMENSION] } else { forced.map_or(&released[step - 1], |f| &f[step - 1]).clone() };
        let signs = last.iter().map(|y| if *y < 0 { -1.0 } else { 1.0 }).collect();
        let mut turned = identity(DIMENSION);
        turned.parameters = signs;
        turned.add = |signs, unit, _, out| (0..unit.rows()).for_each(|r| unit.each(r, |i, x| out.add(i, x * signs[i])));
        let out = run.correlated_step(|batch, noise| {
            let value = batch.sum(noise, &turned)?;
            sums.push(value.values.clone());
            Ok(value)
        })?;
        released.push(out.iter().map(|y| (y / unit).round() as i64).collect());
    }
    run.close(())?;
    Ok((sums, released))
}

fn length(difference: &[Vec<i64>]) -> f64 {
    difference.iter().flatten().map(|x| (*x as f64).powi(2)).sum::<f64>().sqrt()
}

fn apart(a: &[Vec<i64>], b: &[Vec<i64>]) -> Vec<i64> {
    a.iter().zip(b).flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| a.wrapping_sub(*b))).collect()
}

/// The noise that makes the same transcript of a neighbour is a vector of integers within the sensitivity, whatever the unit is and whichever batch it is in; a record that pulls
/// the same way in all its steps moves it nearly as far as that.
#[test]
fn neighbours_are_within_the_sensitivity() {
    let long = |sign: f64| Some(vec![sign, 0.0, 0.0, 0.0]);
    for factor in factors() {
        for (all, batches) in [(1, 1), (6, 3), (7, 3), (5, 1), (4, 9)] {
            let drawn = mechanism(factor.clone(), all, batches);
            for (mechanism, seed, unit) in [
                (drawn.clone(), 1, 0),
                (drawn.clone(), 2, 5),
                (drawn.clone(), 3, 39),
                (drawn.clone().in_order(), 4, 0),
                (drawn.in_order(), 5, 27),
            ] {
                for (with, instead, replaces) in
                    [(long(1.0), None, false), (long(1.0), long(-1.0), true), (Some(vec![0.3; 4]), Some(vec![9.0; 4]), true)]
                {
                    let (first, second) = (
                        dataset(40, DIMENSION, false, Some((unit, with.clone()))),
                        dataset(40, DIMENSION, false, Some((unit, instead))),
                    );
                    let (sums, released) = steps(&first, &mechanism, seed, None).unwrap();
                    let (others, _) = steps(&second, &mechanism, seed, Some(&released)).unwrap();
                    let noise = noise_of(&released, &sums, &factor);
                    let moved = apart(&noise, &noise_of(&released, &others, &factor));
                    let allowed = if replaces { mechanism.whole.replace_one } else { mechanism.whole.zero_out };
                    assert!(L2::within(&moved, allowed), "{factor:?} {all} steps, {batches} batches, unit {unit}");
                    // The independent noise is what the run drew: it was not shifted by the sums.
                    assert!(length(&noise) < 2f64.powi(40) * 8.0 * (all as f64 * 4.0).sqrt());
                }
            }
        }
    }
}

/// Parts of the units in their order: a function of the index alone, the same in every split over processes, none larger than another by more than one, and one step apart in the file as in the epoch.
#[test]
fn batches_in_order_are_a_function_of_places() {
    let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
    let event = Event::gaussian(1.0);
    let of = |data: &Dataset, count: u32| Run::begin(data, &engine, &entropy, &event).unwrap().in_order(count);
    for (units, count) in [(40, 3), (40, 40), (7, 9), (5, 1), (0, 2)] {
        let whole = of(&dataset(units, 2, false, None), count);
        assert_eq!(whole.concat(), (0..units).collect::<Vec<_>>(), "every unit once, in order");
        let sizes: Vec<usize> = whole.iter().map(Vec::len).collect();
        assert!(sizes.len() == count as usize && sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        if units == 0 {
            continue;
        }
        // A null record, and another one, are where the first was.
        for instead in [None, Some(vec![9.0, 9.0])] {
            assert_eq!(of(&dataset(units, 2, false, Some((units / 2, instead))), count), whole);
        }
        // Of a process that holds the last units of all.
        let mut tail = dataset(units - units / 3, 2, false, None);
        (tail.first, tail.total) = (units / 3, units);
        let own: Vec<Vec<usize>> =
            of(&tail, count).into_iter().map(|part| part.iter().map(|i| i + units / 3).collect()).collect();
        let expected: Vec<Vec<usize>> =
            whole.iter().map(|part| part.iter().copied().filter(|i| *i >= units / 3).collect()).collect();
        assert_eq!(own, expected);
    }
}

/// Rows in the order of their values are in no given order: replace the least by the largest, and each batch has another unit at both ends, so that the sums of all steps move where those of one step may. A factor that
/// sums everything up would hide it, because what leaves one batch enters the next.
#[test]
fn an_order_of_values_passes_the_sensitivity() {
    let (units, batches) = (60u64, 6u64);
    for factor in [Factor::INDEPENDENT, Factor::inverse_square_root(4)] {
        let m = mechanism(factor.clone(), batches, batches as u32);
        let bound = m.step.grid().0.bound as i64;
        // Ten records in turn pull up, and ten down, each with all of a clip.
        let pull = |record: u64| if record / 10 % 2 == 0 { bound } else { -bound };
        let sums = |ordered: &[u64]| -> Vec<Vec<i64>> {
            let batch = |b: u64| ordered.iter().zip(0..).filter(|(_, i)| i * batches / units == b).map(|(r, _)| pull(*r)).sum();
            (0..batches).map(|b| vec![batch(b), 0, 0, 0]).collect()
        };
        let none = vec![vec![0; DIMENSION]; batches as usize];
        let moved = |a: &[u64], b: &[u64]| apart(&noise_of(&none, &sums(a), &factor), &noise_of(&none, &sums(b), &factor));
        let first: Vec<u64> = (0..units).collect();
        // Record 70 takes the place of record 0, or that which its value has among the others.
        let in_place: Vec<u64> = [70].into_iter().chain(1..units).collect();
        let sorted: Vec<u64> = (1..units).chain([70]).collect();
        let honest = moved(&first, &in_place);
        assert!(L2::within(&honest, m.whole.replace_one) && !L2::within(&honest, m.whole.replace_one / 2), "{factor:?}");
        assert!(!L2::within(&moved(&first, &sorted), m.whole.replace_one), "{factor:?}");
    }
}

/// Sums of the same sign in every step that a unit takes part in: the largest shift there is, of this factor, with a participation.
fn shift(factor: &Factor, takes_part: impl Fn(u64) -> bool, all: u64, bound: i64) -> Vec<i64> {
    let sums: Vec<Vec<i64>> = (0..all).map(|t| vec![if takes_part(t) { bound } else { 0 }, 0, 0, 0]).collect();
    let none = vec![vec![0; DIMENSION]; all as usize];
    apart(&noise_of(&none, &none, factor), &noise_of(&none, &sums, factor))
}

/// The bound is met, and one participation more, or batches that are shuffled anew for every epoch, pass it.
#[test]
fn broken_participation_passes_the_sensitivity() {
    let (all, batches) = (24, 6);
    for factor in factors() {
        let m = mechanism(factor.clone(), all, batches);
        let bound = m.step.grid().0.bound as i64;
        let honest = shift(&factor, |t| t % 6 == 0, all, bound);
        assert!(L2::within(&honest, m.whole.zero_out) && !L2::within(&honest, (m.whole.zero_out as f64 * 0.999_999) as u64));
        let once_more = shift(&factor, |t| t % 6 == 0 || t == 3, all, bound);
        assert!(!L2::within(&once_more, m.whole.zero_out), "{factor:?}: five times instead of four");
        // Last in one epoch, first in the next: as often, but next to each other.
        let shuffled = shift(&factor, |t| [5, 6, 17, 18].contains(&t), all, bound);
        let independent = factor == Factor::INDEPENDENT;
        assert_eq!(
            L2::within(&shuffled, m.whole.zero_out),
            independent || factor == Factor::geometric(1.0).unwrap(),
            "{factor:?}"
        );
        let close = shift(&factor, |t| t < 4, all, bound);
        assert_eq!(L2::within(&close, m.whole.zero_out), independent, "{factor:?}: next to each other");
    }
}

/// C^-1 z that is not rounded: of the true sums C takes the release back to integers, of a neighbour's it does not. Rounded, both are integers.
#[test]
fn noise_off_the_grid_says_which_neighbour_is_true() {
    let factor = Factor::geometric(0.5).unwrap();
    let (sums, other) = (vec![vec![7, 0, 0, 0]; 2], vec![vec![4, 0, 0, 0]; 2]);
    let noise = [vec![1001i64, -12, 5, 80], vec![33, 4, -9, 2]];
    // In half steps: 2 y_2 = 2 g_2 + 2 z_2 - z_1.
    let halves: Vec<i64> = (0..DIMENSION).map(|i| 2 * sums[1][i] + 2 * noise[1][i] - noise[0][i]).collect();
    let integral = |g: &[Vec<i64>]| {
        let first: Vec<i64> = (0..DIMENSION).map(|i| sums[0][i] + noise[0][i] - g[0][i]).collect();
        (0..DIMENSION).all(|i| (halves[i] - 2 * g[1][i] + first[i]) % 2 == 0)
    };
    assert!(integral(&sums) && !integral(&other), "a reader of the release sees which of both it was");
    // What is released is rounded: every neighbour has noise that makes it, as close as the sensitivity says.
    let taken = taken_back(&noise[..1], &factor);
    let released: Vec<Vec<i64>> =
        vec![(0..4).map(|i| sums[0][i] + noise[0][i]).collect(), (0..4).map(|i| sums[1][i] + noise[1][i] - taken[i]).collect()];
    assert_eq!(noise_of(&released, &sums, &factor), noise);
    let moved = apart(&noise, &noise_of(&released, &other, &factor));
    assert!(length(&[moved]) <= 3.0 * (1.0f64 + 1.5 * 1.5).sqrt() + 1.5 * (2.0f64 * 4.0).sqrt());
}

/// Prefix sums have the error that the factor says, and z the deviation of the event. 20,000 coordinates: the ratio of the mean squares is off by a hundredth, and by six with a chance below 1e-8.
#[test]
fn errors_of_prefix_sums() {
    let (d, all) = (20_000, 24);
    let data = dataset(3, d, false, None);
    for factor in factors() {
        let step = Gaussian::new(1e-9, 3.0, 100).unwrap();
        let m = CorrelatedGaussian::new(step, factor.clone(), all, 2, d).unwrap();
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(8));
        let mut run = Run::begin(&data, &engine, &entropy, &m.event()).unwrap();
        run.begin_correlated(&m).unwrap();
        let none = crate::Contribution { add: |_, _, _, _| {}, ..identity(d) };
        let (mut prefix, mut square) = (vec![0.0; d], 0.0);
        for _ in 0..all {
            let out = run.correlated_step(|batch, noise| batch.sum(noise, &none)).unwrap();
            prefix.iter_mut().zip(&out).for_each(|(p, y)| *p += y / m.standard_deviation());
            square += prefix.iter().map(|p| p * p).sum::<f64>();
        }
        let measured = (square / (all as usize * d) as f64).sqrt();
        let stated = factor.prefix_error(all).unwrap();
        assert!((measured / stated - 1.0).abs() < 0.06, "{factor:?}: {measured} {stated}");
    }
}

/// Stopped after every step and written down: the same bits as at once, and one event.
#[test]
fn in_pieces_or_at_once() {
    let (data, engine) = (dataset(300, DIMENSION, false, None), Threads::new(1));
    for (number, factor) in factors().into_iter().enumerate() {
        let step = Gaussian::for_gradients(1.0, 30.0).unwrap();
        let m = CorrelatedGaussian::new(step, factor.clone(), 7, 3, DIMENSION).unwrap();
        let m = if number % 2 == 1 { m.in_order() } else { m };
        let go = |run: &mut Run<'_>, w: &mut [f64], times: usize| {
            for _ in 0..times {
                let g = run.correlated_step(|batch, noise| batch.gradient_sum(noise, w, &LOGISTIC)).unwrap();
                w.iter_mut().zip(&g).for_each(|(w, g)| *w -= 0.01 * g);
            }
        };
        let whole = |seed: u64| {
            let entropy = Entropy::simulated(seed);
            let (mut run, mut w) = (Run::begin(&data, &engine, &entropy, &m.event()).unwrap(), vec![0.0; DIMENSION]);
            run.begin_correlated(&m).unwrap();
            go(&mut run, &mut w, 7);
            let released = run.close(()).unwrap();
            assert!(released.is_order_dependent() && *released.executed() == m.event());
            w
        };
        let (mut w, mut text) = (vec![0.0; DIMENSION], None::<String>);
        for done in 0..=7 {
            let entropy = Entropy::simulated(3);
            let mut run = Run::begin(&data, &engine, &entropy, &m.event()).unwrap();
            if let Some(text) = &text {
                let executed: Executed = serde_json::from_str(text).unwrap();
                assert!(executed.has_keys() && executed.count() == 1 && executed.correlated_steps() == Some(done));
                let printed = format!("{executed:?}");
                assert!(printed.contains("and its keys") && !printed.contains("partition"), "keys are not printed");
                run.resume(&executed).unwrap();
            }
            run.begin_correlated(&m).unwrap();
            if done == 7 {
                run.close(()).unwrap();
                break;
            }
            go(&mut run, &mut w, 1);
            text = Some(serde_json::to_string(&run.executed().unwrap()).unwrap());
            // A step that nobody kept has other noise when it is made again, and a run does not close before its last step.
            assert_eq!(run.close(()).is_ok(), done == 6);
        }
        assert_eq!(w, whole(3), "{factor:?}");
        assert_ne!(w, whole(4));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (data, engine, entropy) = (dataset(30, DIMENSION, false, None), Threads::new(1), Entropy::system().unwrap());
    let m = mechanism(Factor::geometric(0.5).unwrap(), 4, 2);
    let rows = identity(DIMENSION);
    let begin = |event: &Event| Run::begin(&data, &engine, &entropy, event).unwrap();
    // Not planned; planned for fewer steps; under add-remove; no step before the beginning.
    assert!(begin(&Event::gaussian(1.0)).begin_correlated(&m).is_err());
    assert!(begin(&mechanism(Factor::geometric(0.5).unwrap(), 3, 2).event()).begin_correlated(&m).is_err());
    assert!(begin(&m.event()).under(Adjacency::AddRemove).begin_correlated(&m).is_err());
    assert!(begin(&m.event()).under(Adjacency::AddRemove).begin_correlated(&m.clone().in_order()).is_err());
    assert!(begin(&m.event()).correlated_step(|b, n| b.sum(n, &rows)).is_err());
    // A sum over other units than the batch's ends the run.
    let mut run = begin(&m.event());
    let everyone = run.everyone().unwrap();
    run.begin_correlated(&m).unwrap();
    assert!(run.begin_correlated(&m).is_err(), "its event is spent");
    run.correlated_step(|b, n| b.sum(n, &rows)).unwrap();
    let refused = run.correlated_step(|_, n| everyone.sum(n, &rows)).unwrap_err().to_string();
    assert!(refused.contains("the batch that it was given"), "{refused}");
    assert!(run.correlated_step(|b, n| b.sum(n, &rows)).is_err() && run.close(()).is_err());
    // No step after the last, and none is left out.
    let mut run = begin(&m.event());
    run.begin_correlated(&m).unwrap();
    for _ in 0..4 {
        run.correlated_step(|b, n| b.sum(n, &rows)).unwrap();
    }
    assert!(run.correlated_step(|b, n| b.sum(n, &rows)).is_err());
    let executed = run.executed().unwrap();
    let released = run.close(()).unwrap();
    assert!(released.epsilon(Adjacency::ZeroOut, 1e-6).is_ok() && released.epsilon(Adjacency::AddRemove, 1e-6).is_err());
    // Another factor of the same event's steps, or keys that are missing.
    let state = serde_json::to_value(&executed).unwrap();
    let resumed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut state = state.clone();
        change(&mut state["correlated"]);
        let mut run = begin(&m.event());
        run.resume(&serde_json::from_value(state).unwrap()).unwrap();
        run.begin_correlated(&m)
    };
    assert!(resumed(&|_| ()).is_ok());
    assert!(resumed(&|s| s["partition"] = serde_json::Value::Null).is_err(), "batches that were drawn stay what they are");
    assert!(resumed(&|s| s["keys"] = serde_json::json!([])).is_err() && resumed(&|s| s["done"] = 5.into()).is_err());
    let mut run = begin(&m.event());
    run.resume(&executed).unwrap();
    assert!(run.close(()).is_err(), "what was kept was not taken up");
    // Other kinds of values, and no batches.
    assert!(CorrelatedGaussian::new(Gaussian::for_votes(1.0).unwrap(), Factor::INDEPENDENT, 4, 2, 4).is_err());
    let output = Gaussian::for_output(1.0, 2.0, 10.0, 1.0, 4).unwrap();
    assert!(CorrelatedGaussian::new(output, Factor::INDEPENDENT, 4, 2, 4).is_err());
    assert!(CorrelatedGaussian::new(m.step, Factor::INDEPENDENT, 4, 0, 4).is_err());
}

/// Sensitivities in closed form: that of a step times that of the factor, and the rounding once; replace-one doubles the first only.
#[test]
fn sensitivity_in_closed_form() {
    let step = Gaussian::new(1.0, 3.0, 100).unwrap();
    let bound = step.grid().0.bound as f64;
    let m = CorrelatedGaussian::new(step, Factor::geometric(0.5).unwrap(), 8, 4, 25).unwrap();
    let times = Participation { steps: 8, times: 2, separation: 4 }.sensitivity(m.factor()).unwrap();
    // |C| <= 1 + 1/2 + ... + 1/128, sqrt(8 x 25) <= 15.
    let rounding = (1.992_187_5f64 * 15.0).ceil();
    let near = |a: u64, b: f64| (a as f64 - b).abs() <= 3.0 + 1e-12 * b;
    assert!(near(m.whole.zero_out, (times * bound).ceil() + rounding) && near(m.moved.zero_out, times * bound));
    assert!(near(m.whole.replace_one, (2.0 * times * bound).ceil() + rounding));
    assert!((m.sensitivity_factor() / times - 1.0).abs() < 1e-9);
    let Event::DiscreteGaussian { sigma, dimension, sensitivity, .. } = m.event() else { panic!() };
    assert_eq!((sigma, dimension, sensitivity), (1 << step.grid().0.bits, 200, m.whole.zero_out));
}

/// Two worlds at one transcript: the audit sees each step, and all of them together.
#[test]
fn audits_see_the_whole_run() {
    let m = mechanism(Factor::inverse_square_root(3), 6, 2);
    two_worlds(&m);
    two_worlds(&m.in_order());
}

fn two_worlds(m: &CorrelatedGaussian) {
    let engine = Threads::new(1);
    let rows = identity(DIMENSION);
    let all = |run: &mut Run<'_>| {
        run.begin_correlated(m).unwrap();
        (0..6).for_each(|_| drop(run.correlated_step(|b, n| b.sum(n, &rows)).unwrap()));
    };
    let world = |row: Option<Vec<f64>>| dataset(20, DIMENSION, false, Some((7, row)));
    let (first, second) = (world(Some(vec![1.0, 0.0, 0.0, 0.0])), world(None));
    let (one, two) = (Entropy::simulated(5), Entropy::simulated(5));
    let mut run = Run::recorded(&first, &engine, &one, &m.event()).unwrap();
    all(&mut run);
    let transcript = run.transcript().unwrap();
    let mut run = Run::replayed(&second, &engine, &two, &m.event(), &transcript).unwrap();
    all(&mut run);
    let movements = run.movements().unwrap();
    assert_eq!(movements.len(), 7);
    assert!(movements.iter().all(|m| m.holds(Adjacency::ZeroOut)));
    let last = movements.last().unwrap();
    assert!(last.what.contains("all steps") && last.moved as f64 > 0.6 * last.sensitivity.zero_out as f64, "{last:?}");
}
