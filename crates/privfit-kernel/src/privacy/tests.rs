//! The kernel as a method author sees it, on small data; and the tests T-N4, T-N6 to T-N8, T-N11 and T-N12.

use super::*;
use crate::account::{Accountant, Adjacency, Event, GaussianAccountant};
use crate::engine::Threads;
use crate::error::Error;

/// Test loss: logistic, labels -1 and 1.
pub(crate) const LOGISTIC: Loss = Loss {
    name: "logistic",
    outputs: 1,
    parameters: [0.0; 4],
    values: |_, s, y, out| {
        for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
            let m = -s * f64::from(*y);
            *o = if m > 0.0 { m + (-m).exp().ln_1p() } else { m.exp().ln_1p() };
        }
    },
    slopes: |_, s, y, out| {
        for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
            *o = -y / (1.0 + (s * y).exp());
        }
    },
    slopes_exact: |_, s, y, out| {
        for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
            let y = f64::from(*y);
            *o = -y / (1.0 + (s * y).exp());
        }
    },
    labels: (-1.0, 1.0),
    rank: 1,
    lipschitz: 1.0,
    smoothness: 0.25,
};

/// Three scores, slopes p - e_label.
const SOFTMAX: Loss = Loss {
    name: "softmax",
    outputs: 3,
    parameters: [0.0; 4],
    values: |_, _, _, out| out.fill(0.0),
    slopes: |_, s, y, out| {
        for ((s, y), o) in s.chunks(3).zip(y).zip(out.chunks_mut(3)) {
            let total: f32 = s.iter().map(|s| s.exp()).sum();
            for k in 0..3 {
                o[k] = s[k].exp() / total - if *y as usize == k { 1.0 } else { 0.0 };
            }
        }
    },
    slopes_exact: |_, s, y, out| {
        for ((s, y), o) in s.chunks(3).zip(y).zip(out.chunks_mut(3)) {
            let total: f64 = s.iter().map(|s| s.exp()).sum();
            for k in 0..3 {
                o[k] = s[k].exp() / total - if *y as usize == k { 1.0 } else { 0.0 };
            }
        }
    },
    labels: (0.0, 2.0),
    rank: 2,
    lipschitz: std::f64::consts::SQRT_2,
    smoothness: 0.5,
};

fn identity(dimension: usize) -> Contribution {
    Contribution {
        name: "row",
        dimension,
        parameters: vec![],
        add: |_, unit, _, out| (0..unit.rows()).for_each(|r| unit.each(r, |i, x| out.add(i, x))),
    }
}

fn shape(dimension: usize, sparse: bool, rows_per_unit: Option<usize>) -> RowShape {
    RowShape { dimension, row_norm: 1.0, sparse, rows_per_unit }
}

/// Pseudo-random rows; row `change` is replaced by `with` (None: the null record).
fn dataset(n: usize, d: usize, sparse: bool, change: Option<(usize, Option<Vec<f32>>)>) -> Dataset {
    let entropy = Entropy::simulated(0);
    let mut rng = Entropy::simulated(42).rng(Stream::Initialisation).unwrap();
    let mut b = DatasetBuilder::new(&entropy, shape(d, sparse, None)).unwrap();
    for i in 0..n {
        let row: Vec<f32> = (0..d).map(|_| (rng.uniform() * 2.0 - 1.0) as f32).collect();
        let label = if rng.uniform() < 0.5 { -1.0 } else { 1.0 };
        match &change {
            Some((at, Some(with))) if *at == i => b.row(with, -label),
            Some((at, None)) if *at == i => b.row(&vec![0.0; d], label),
            _ => b.row(&row, label),
        }
    }
    b.build()
}

/// The integers of a sum, for tests only.
fn integers<N: Norm>(
    data: &Dataset,
    threads: usize,
    mechanism: &impl Mechanism<Norm = N>,
    dimension: usize,
    f: impl for<'id> Fn(&Batch<'_>, &Noise<'id, N>) -> crate::Result<Bounded<'id, N>>,
) -> (Vec<i64>, Reach) {
    let (engine, entropy) = (Threads::new(threads), Entropy::simulated(3));
    let mut run = Run::begin(data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
    run.at(mechanism, |run, scale| {
        let noise = run.draw(&scale, dimension)?;
        let batch = run.everyone()?;
        let sum = f(&batch, &noise)?;
        Ok((sum.values, sum.grid.reach))
    })
    .unwrap()
}

/// T-N6: any order of records and any number of threads give the same bits.
#[test]
fn sums_do_not_depend_on_threads_or_order() {
    let data = dataset(50_000, 9, false, None);
    let sparse = dataset(50_000, 9, true, None);
    let g = Gaussian::new(0.7, 1.3, 50_000).unwrap();
    let one = integers(&data, 1, &g, 9, |b, n| b.sum(n, &identity(9))).0;
    for threads in [2, 3, 8] {
        assert_eq!(one, integers(&data, threads, &g, 9, |b, n| b.sum(n, &identity(9))).0);
    }
    assert_eq!(one, integers(&sparse, 2, &g, 9, |b, n| b.sum(n, &identity(9))).0, "sparse and dense rows agree");
    let entropy = Entropy::simulated(0);
    let mut back = DatasetBuilder::new(&entropy, shape(9, false, None)).unwrap();
    for slot in (0..50_000).rev() {
        let mut row = vec![0f32; 9];
        data.unit(slot).each(0, |i, x| row[i] = x as f32);
        back.row(&row, data.unit(slot).label(0));
    }
    // Decoding and encoding again may move a cell by one grid unit, so compare the data with its own reversal.
    let back = back.build();
    let entropy = Entropy::simulated(0);
    let mut forth = DatasetBuilder::new(&entropy, shape(9, false, None)).unwrap();
    for slot in (0..50_000).rev() {
        let mut row = vec![0f32; 9];
        back.unit(slot).each(0, |i, x| row[i] = x as f32);
        forth.row(&row, back.unit(slot).label(0));
    }
    let mut again = DatasetBuilder::new(&entropy, shape(9, false, None)).unwrap();
    for slot in 0..50_000 {
        let mut row = vec![0f32; 9];
        back.unit(slot).each(0, |i, x| row[i] = x as f32);
        again.row(&row, back.unit(slot).label(0));
    }
    let (forth, again) = (forth.build(), again.build());
    let sum = |d: &Dataset| integers(d, 1, &g, 9, |b, n| b.sum(n, &identity(9))).0;
    assert_eq!(sum(&forth), sum(&again), "permuted records");
    let loss = Gaussian::for_gradients(1.0, 1.0).unwrap();
    let w: Vec<f64> = (0..9).map(|i| f64::from(i) - 4.0).collect();
    let gradient = |d: &Dataset, threads| integers(d, threads, &loss, 9, |b, n| b.gradient_sum(n, &w, &LOGISTIC)).0;
    assert_eq!(gradient(&data, 1), gradient(&data, 2));
    assert_eq!(gradient(&forth, 1), gradient(&again, 3));
    assert_ne!(gradient(&data, 1), vec![0; 9]);
}

/// Neighbour fuzz: one record nulled or replaced moves every kind of sum by at most the reach, on the integers.
#[test]
fn neighbours_move_sums_by_at_most_the_reach() {
    let d = 5;
    let extremes: Vec<Vec<f32>> = vec![
        vec![1e30, 0.0, 0.0, 0.0, 0.0],
        vec![-1.0, -1.0, -1.0, -1.0, -1.0],
        vec![f32::NAN, 1.0, 0.0, 0.0, 0.0],
        vec![1.0, 0.0, 0.0, 0.0, 0.0],
        vec![1e-40, 1.0, f32::MIN_POSITIVE, -0.0, 0.0],
    ];
    let w = vec![30.0, -20.0, 0.0, 5.0, 1e9];
    let weights3: Vec<f64> = w.iter().chain(&w).chain(&w).enumerate().map(|(i, w)| w * (i as f64 - 7.0)).collect();
    let l2 = Gaussian::new(0.3, 0.9, 1000).unwrap();
    let l1 = Laplace::new(0.3, 0.9, 1000).unwrap();
    let spherical = Laplace::spherical(0.3, 0.9, 1000, d).unwrap();
    let linf = Exponential::new(0.3, 0.9, 1000).unwrap();
    let gradient = Gaussian::for_gradients(1.0, 0.7).unwrap();
    let gradient3 = Gaussian::for_gradients(SOFTMAX.lipschitz, 0.7).unwrap();
    let mut largest = 0.0f64;
    for sparse in [false, true] {
        let base = dataset(40, d, sparse, None);
        for at in [0usize, 17, 39] {
            for with in extremes.iter().map(Some).chain([None]) {
                let other = dataset(40, d, sparse, Some((at, with.cloned())));
                let mut check = |name: &str, a: (Vec<i64>, Reach), b: (Vec<i64>, Reach), within: fn(&[i64], u64) -> bool| {
                    let gap: Vec<i64> = a.0.iter().zip(&b.0).map(|(x, y)| x.wrapping_sub(*y)).collect();
                    let reach = if with.is_some() { a.1.replace_one } else { a.1.zero_out };
                    assert!(within(&gap, reach), "{name} at {at} with {with:?}: {gap:?} > {reach}");
                    largest = largest.max(gap.iter().map(|g| g.unsigned_abs()).max().unwrap() as f64 / reach as f64);
                };
                let c = identity(d);
                let both = |m: &Gaussian| {
                    (integers(&base, 1, m, d, |b, n| b.sum(n, &c)), integers(&other, 1, m, d, |b, n| b.sum(n, &c)))
                };
                let (a, b) = both(&l2);
                check("l2", a, b, L2::within);
                for m in [&l1, &spherical] {
                    let sum = |data| integers(data, 1, m, d, |b, n| b.sum(n, &c));
                    check("l1", sum(&base), sum(&other), L1::within);
                }
                let sum = |data| integers(data, 1, &linf, d, |b, n| b.sum(n, &c));
                check("linf", sum(&base), sum(&other), LInf::within);
                let sum = |data| integers(data, 1, &gradient, d, |b, n| b.gradient_sum(n, &w, &LOGISTIC));
                check("gradient", sum(&base), sum(&other), L2::within);
                let sum = |data| integers(data, 1, &gradient3, 3 * d, |b, n| b.gradient_sum(n, &weights3, &SOFTMAX));
                check("softmax", sum(&base), sum(&other), L2::within);
            }
        }
    }
    assert!(largest > 0.4, "the fuzz comes near the reach: {largest}");
}

/// T-N4 and N-8: whatever the value, released numbers are whole multiples of the grid unit and nothing else.
#[test]
fn released_numbers_lie_on_the_grid() {
    let entropy = Entropy::system().unwrap();
    for x in [0.0f32, 1.0, 2f32.powi(-30), 2f32.powi(20), 0.37] {
        let mut b = DatasetBuilder::new(&entropy, shape(1, false, None)).unwrap();
        b.row(&[x], 1.0);
        let data = b.build();
        let engine = Threads::new(1);
        // Clip and multiplier are powers of two here, so the grid unit is one as well and the quotient is exact.
        let m = Gaussian::new(1.0, 4.0, 1).unwrap();
        let unit = m.standard_deviation() * 0.5f64.powi(40);
        assert_eq!(unit.log2().fract(), 0.0);
        for _ in 0..2000 {
            let mut run = Run::begin(&data, &engine, &entropy, &m.event(1)).unwrap();
            let out = run
                .at(&m, |run, scale| {
                    let noise = run.draw(&scale, 1)?;
                    let sum = run.everyone()?.sum(&noise, &identity(1))?;
                    run.release(noise, &sum)
                })
                .unwrap();
            let released = run.close(out).unwrap();
            let quotient = released.value()[0] / unit;
            assert_eq!(quotient, quotient.trunc(), "{x}");
        }
    }
}

/// T-N7: a sum that wraps has a known value modulo 2^64, and noise is added modulo 2^64 as well.
#[test]
fn wrapping_is_exact() {
    let entropy = Entropy::simulated(0);
    let n = 3000usize;
    let mut b = DatasetBuilder::new(&entropy, shape(1, false, None)).unwrap();
    (0..n).for_each(|_| b.row(&[1.0], 1.0));
    let data = b.build();
    // Head-room asked for one row only: bound near 2^53, so 3000 rows exceed 2^63.
    let m = Gaussian::new(1.0, 0.5f64.powi(13), 1).unwrap();
    let (sum, reach) = integers(&data, 2, &m, 1, |b, n| b.sum(n, &identity(1)));
    let each = reach.zero_out as i128;
    assert!(each * n as i128 > 1 << 63, "{each}");
    assert_eq!(sum[0], (each * n as i128) as i64);
    let engine = Threads::new(1);
    let mut run = Run::begin(&data, &engine, &entropy, &m.event(1)).unwrap();
    run.at(&m, |run, scale| {
        let mut noise = run.draw(&scale, 1)?;
        noise.values[0] = i64::MAX - 5;
        let sum = run.everyone()?.sum(&noise, &identity(1))?;
        let (unit, expected) = (sum.grid.unit, sum.values[0].wrapping_add(i64::MAX - 5));
        assert_eq!(run.release(noise, &sum)?, vec![expected as f64 * unit]);
        Ok(())
    })
    .unwrap();
}

/// T-N8: the sequences that break floating-point sums (one huge value among many small ones, alternating signs) have neighbours
/// within one bound here, in every order.
#[test]
fn orders_that_break_float_sums_do_not_matter() {
    let entropy = Entropy::simulated(0);
    let build = |rows: &[f32]| {
        let mut b = DatasetBuilder::new(&entropy, RowShape { row_norm: 2f64.powi(53), ..shape(1, false, None) }).unwrap();
        rows.iter().for_each(|x| b.row(&[*x], 1.0));
        b.build()
    };
    let m = Gaussian::new(2f64.powi(53), 1.0, 4096).unwrap();
    let sum = |rows: &[f32]| integers(&build(rows), 1, &m, 1, |b, n| b.sum(n, &identity(1)));
    let big = 2f32.powi(53);
    let ones_after: Vec<f32> = std::iter::once(big).chain(std::iter::repeat_n(1.0, 4000)).collect();
    let ones_before: Vec<f32> = std::iter::repeat_n(1.0, 4000).chain([big]).collect();
    assert_eq!(sum(&ones_after).0, sum(&ones_before).0);
    let float = |rows: &[f32]| rows.iter().fold(0f64, |s, x| s + f64::from(*x));
    assert_ne!(float(&ones_after), float(&ones_before), "in floating point the order counts");
    let alternating: Vec<f32> = (0..4000).map(|i| if i % 2 == 0 { big } else { -1.0 }).collect();
    for rows in [&ones_after, &ones_before, &alternating] {
        for at in [0, 1, rows.len() - 1] {
            let mut other = rows.clone();
            other[at] = 0.0;
            let (a, b) = (sum(rows), sum(&other));
            assert!(a.0[0].wrapping_sub(b.0[0]).unsigned_abs() <= a.1.zero_out);
        }
    }
}

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
    let linear = LinearTerm { noise_multiplier: 1.0 };
    assert!(run.minimize(&batch, problem, Some(linear)).is_err());
}

#[test]
fn blocks_move_by_at_most_the_reach() {
    // Rows as vectors, summed in single precision: the error of a weighted sum of 32 is below 1e-5 of the clip.
    let rows = Blockwise {
        name: "rows",
        dimension: 6,
        error: 1e-6,
        parameters: vec![],
        layout: vec![6],
        norms: |_, units, out| {
            for (i, o) in out.iter_mut().enumerate() {
                let mut square = 0f32;
                units.get(i).each(0, |_, x| square += (x * x) as f32);
                *o = square.sqrt();
            }
        },
        weighted: |_, units, weights, out| {
            for (i, w) in weights.iter().enumerate() {
                if *w > 0.0 {
                    units.get(i).each(0, |j, x| out[j] += w * x as f32);
                }
            }
        },
    };
    let m = Gaussian::for_blocks(0.4, 0.4 * 1e-6 * 32.0, 1.0, 100, 6).unwrap();
    let sum = |change| integers(&dataset(100, 6, false, change), 2, &m, 6, |b, n| b.sum_blocks(n, &rows));
    let base = sum(None);
    for at in [0usize, 31, 32, 99] {
        for with in [None, Some(vec![9.0f32; 6]), Some(vec![0.01; 6])] {
            let other = sum(Some((at, with.clone())));
            let gap: Vec<i64> = base.0.iter().zip(&other.0).map(|(a, b)| a - b).collect();
            let reach = if with.is_some() { base.1.replace_one } else { base.1.zero_out };
            assert!(L2::within(&gap, reach), "{at} {with:?}");
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
        b.sparse_row(vec![(7, 0.6), (23, -0.5), (i % 50, 0.1)], 1.0);
    }
    let data = b.build();
    let engine = Threads::new(2);
    let scores = Exponential::new(0.5, 20.0, 3000).unwrap();
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
            let clocks = run.draw(&scale, 50)?;
            let sum = run.everyone()?.sum(&clocks, &absolute)?;
            let support = run.choose(clocks, &sum, &scores, 2)?;
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

/// A reach holds for the kind of value that its mechanism was made for, and for no other.
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
    // Each of these has a replace-one reach that clipped sums would exceed.
    for m in [
        Gaussian::for_output(1.0, 1.0, 10.0, 1.0, 4).unwrap(),
        Gaussian::for_votes(1.0).unwrap(),
        Gaussian::for_gradients(1.0, 1.0).unwrap(),
        Gaussian::for_selected(&Exponential::new(1.0, 1.0, 10).unwrap(), 4, 1.0).unwrap(),
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
    // Scores that could wrap are refused: a comparison is not post-processing of added noise.
    let scores = Exponential::new(1.0, 0.5f64.powi(20), 1).unwrap();
    let mut run = Run::begin(&data, &engine, &entropy, &Exponential::event(&scores)).unwrap();
    let refused = run.at(&scores, |run, scale| {
        let clocks = run.draw(&scale, 4)?;
        run.everyone()?.sum(&clocks, &identity(4)).map(|_| ())
    });
    assert!(refused.is_err());
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
    // Inside of an objective nothing is clipped afterwards, so slopes are bounded as they are made.
    let solve = |data: &Dataset| {
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(1));
        let mut run = Run::begin(data, &engine, &entropy, &Event::Compose(vec![])).unwrap();
        let batch = run.everyone().unwrap();
        run.minimize(&batch, Problem { loss: &LOGISTIC, ridge: 1.0, tolerance: 1e-4 }, None).unwrap().value
    };
    let (a, b) = (solve(&build(1.0)), solve(&build(1e30)));
    let distance = ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt();
    assert!(distance <= 1.0 + 2e-4, "{distance}");
}

#[test]
fn votes_of_parts_and_local_answers() {
    let entropy = Entropy::system().unwrap();
    let data = dataset(2000, 2, false, None);
    let engine = Threads::new(1);
    let mechanism = Gaussian::for_votes(5.0).unwrap();
    let Event::DiscreteGaussian { reach, replace_reach, .. } = mechanism.event(2) else { panic!() };
    assert_eq!(reach, replace_reach, "votes move as far under zero-out as under replace-one");
    let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(2)).unwrap();
    // Teachers that always vote 1: the released count of label 1 is near the number of parts.
    let learner: Learner<f64> = Learner { name: "size", parameters: vec![], train: |_, units| units.count() as f64 };
    let parts = run.parts(40).unwrap();
    let models: Vec<Sensitive<f64>> = parts.iter().map(|p| p.train(&learner)).collect();
    assert!((models.iter().map(|m| m.value).sum::<f64>() - 2000.0).abs() < 0.5, "parts are disjoint and complete");
    // Models on all records, or two on one part, would let one unit move many votes.
    let everyone = run.everyone().unwrap();
    let doubled: Vec<Sensitive<f64>> = parts.iter().chain(&parts[..1]).map(|p| p.train(&learner)).collect();
    for wrong in [vec![everyone.train(&learner), everyone.train(&learner)], doubled] {
        let refused = run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, 2)?;
            run.votes(&noise, &wrong, |_, _| 1, &[0.0]).map(|_| ())
        });
        assert!(refused.is_err());
    }
    let out = run
        .at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, 2)?;
            let votes = run.votes(&noise, &models, |size, _| u32::from(*size > 0.0), &[0.0])?;
            run.release(noise, &votes)
        })
        .unwrap();
    assert!((out[1] - 40.0).abs() < 50.0 && out[0].abs() < 50.0, "{out:?}");
    let released = run.close(out).unwrap();
    let again = Run::begin(&data, &engine, &entropy, &Event::Compose(vec![])).unwrap();
    let mut answers = 0;
    let local = again.local(&released, |message, unit| message[1] * f64::from(unit.label(0)));
    data.deliver(local, |_, _| answers += 1).unwrap();
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
        run.minimize(&batch, problem, None).unwrap().value
    };
    let theta = solve(1);
    assert_eq!(theta, solve(2));
    // Gradient by plain floating point, as an independent check.
    let mut gradient: Vec<f64> = theta.iter().map(|w| 2.0 * w).collect();
    for slot in 0..3000 {
        let unit = data.unit(slot);
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
    assert!(run.minimize(&batch, problem(2.7e-13), None).is_err());
    let objective = minimise::Objective {
        data: &data,
        chosen: None,
        engine: &engine,
        problem: problem(1e-9),
        linear: vec![0.0; 10],
        linear_bound: 0.0,
    };
    let blocks = (5000f64 / 256.0).ceil() * 0.5f64.powi(41) * 10f64.sqrt();
    assert!(objective.floor() >= blocks, "the floor holds the rounding of every block: {} {blocks}", objective.floor());
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
    let linear = LinearTerm { noise_multiplier: 5.0 };
    let distance = 2.0 * tolerance / ridge;
    let output = Gaussian::for_output(distance, distance, 100.0, 50.0, 4).unwrap();
    let objective = linear.event(&LOGISTIC, 1.0, ridge, 4);
    let planned = Event::Compose(vec![objective.clone(), output.event(4)]);
    let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
    let batch = run.everyone().unwrap();
    let theta = run
        .at(&output, |run, scale| {
            let noise = run.draw(&scale, 4)?;
            let minimum = run.minimize(&batch, Problem { loss: &LOGISTIC, ridge, tolerance }, Some(linear))?;
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
            let value = Sensitive { value: vec![0.0; 4], run: noise.run, part: None, claim };
            run.bounded(&noise, value).map(|_| ())
        });
        assert!(refused.is_err());
    }
    // Objective perturbation that was not planned is refused before it is solved.
    let mut run = Run::begin(&data, &engine, &entropy, &output.event(4)).unwrap();
    let batch = run.everyone().unwrap();
    assert!(run.minimize(&batch, Problem { loss: &LOGISTIC, ridge, tolerance }, Some(linear)).is_err());
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
        let size = one.chosen.as_ref().unwrap().iter().filter(|c| **c).count() as f64;
        let mean = 200_000.0 * rate;
        // Seven standard deviations: a false alarm in 1e-11 runs.
        assert!((size - mean).abs() < 7.0 * mean.sqrt() + 20.0, "{size} {mean}");
        assert_ne!(one.chosen, two.chosen);
    }
}
