//! Sums and grids on small data: neighbour fuzz and the tests T-N4, T-N6, T-N7 and T-N8.

use super::*;
use crate::account::Event;
use crate::engine::Threads;

/// Test loss: logistic, labels -1 and 1.
pub(crate) static LOGISTIC: Loss = Loss {
    name: "logistic",
    outputs: 1,
    parameters: Vec::new(),
    values: |_, s, y, out| {
        for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
            let m = -s * f64::from(*y);
            *o = if m > 0.0 { m + (-m).exp().ln_1p() } else { m.exp().ln_1p() };
        }
    },
    derivatives: |_, s, y, out| {
        for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
            *o = -y / (1.0 + (s * y).exp());
        }
    },
    derivatives_exact: |_, s, y, out| {
        for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
            let y = f64::from(*y);
            *o = -y / (1.0 + (s * y).exp());
        }
    },
    labels: (-1.0, 1.0),
    rank: 1,
    lipschitz: 1.0,
    smoothness: 0.25,
    trace: 0.25,
    at_zero: std::f64::consts::LN_2,
    convex: true,
    starting: None,
};

/// Three scores, derivatives p - e_label.
static SOFTMAX: Loss = Loss {
    name: "softmax",
    outputs: 3,
    parameters: Vec::new(),
    values: |_, _, _, out| out.fill(0.0),
    derivatives: |_, s, y, out| {
        for ((s, y), o) in s.chunks(3).zip(y).zip(out.chunks_mut(3)) {
            let total: f32 = s.iter().map(|s| s.exp()).sum();
            for k in 0..3 {
                o[k] = s[k].exp() / total - if *y as usize == k { 1.0 } else { 0.0 };
            }
        }
    },
    derivatives_exact: |_, s, y, out| {
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
    trace: 2.0 / 3.0,
    at_zero: 1.1,
    convex: true,
    starting: None,
};

pub(super) fn identity(dimension: usize) -> Contribution {
    Contribution {
        name: "row",
        dimension,
        parameters: vec![],
        add: |_, unit, _, out| (0..unit.rows()).for_each(|r| unit.each(r, |i, x| out.add(i, x))),
    }
}

pub(super) fn shape(dimension: usize, sparse: bool, rows_per_unit: Option<usize>) -> RowShape {
    RowShape { dimension, row_norm: 1.0, sparse, rows_per_unit }
}

/// Pseudo-random rows; row `change` is replaced by `with` (None: the null record).
pub(super) fn dataset(n: usize, d: usize, sparse: bool, change: Option<(usize, Option<Vec<f64>>)>) -> Dataset {
    let entropy = Entropy::simulated(0);
    let mut rng = Entropy::simulated(42).rng(Stream::Initialisation).unwrap();
    let mut b = DatasetBuilder::new(&entropy, shape(d, sparse, None)).unwrap();
    for i in 0..n {
        let row: Vec<f64> = (0..d).map(|_| rng.uniform() * 2.0 - 1.0).collect();
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
pub(super) fn integers<N: Norm>(
    data: &Dataset,
    threads: usize,
    mechanism: &impl Mechanism<Norm = N>,
    dimension: usize,
    f: impl for<'id> Fn(&Batch<'_>, &Noise<'id, N>) -> crate::Result<Bounded<'id, N>>,
) -> (Vec<i64>, Sensitivity) {
    let (engine, entropy) = (Threads::new(threads), Entropy::simulated(3));
    let mut run = Run::begin(data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
    run.at(mechanism, |run, scale| {
        let noise = run.draw(&scale, dimension)?;
        let batch = run.everyone()?;
        let sum = f(&batch, &noise)?;
        Ok((sum.values, sum.grid.sensitivity))
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
    for unit_index in (0..50_000).rev() {
        let mut row = vec![0f64; 9];
        data.unit(unit_index).each(0, |i, x| row[i] = x);
        back.row(&row, data.unit(unit_index).label(0));
    }
    // Decoding and encoding again may move a cell by one grid unit, so compare the data with its own reversal.
    let back = back.build();
    let entropy = Entropy::simulated(0);
    let mut forth = DatasetBuilder::new(&entropy, shape(9, false, None)).unwrap();
    for unit_index in (0..50_000).rev() {
        let mut row = vec![0f64; 9];
        back.unit(unit_index).each(0, |i, x| row[i] = x);
        forth.row(&row, back.unit(unit_index).label(0));
    }
    let mut again = DatasetBuilder::new(&entropy, shape(9, false, None)).unwrap();
    for unit_index in 0..50_000 {
        let mut row = vec![0f64; 9];
        back.unit(unit_index).each(0, |i, x| row[i] = x);
        again.row(&row, back.unit(unit_index).label(0));
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

/// Neighbour fuzz: one record nulled or replaced moves every kind of sum by at most the sensitivity, on the integers.
#[test]
fn neighbours_move_sums_by_at_most_the_sensitivity() {
    let d = 5;
    let extremes: Vec<Vec<f64>> = vec![
        vec![1e30, 0.0, 0.0, 0.0, 0.0],
        vec![-1.0, -1.0, -1.0, -1.0, -1.0],
        vec![f64::NAN, 1.0, 0.0, 0.0, 0.0],
        vec![1.0, 0.0, 0.0, 0.0, 0.0],
        vec![1e-310, 1.0, f64::MIN_POSITIVE, -0.0, 0.0],
    ];
    let w = vec![30.0, -20.0, 0.0, 5.0, 1e9];
    let weights3: Vec<f64> = w.iter().chain(&w).chain(&w).enumerate().map(|(i, w)| w * (i as f64 - 7.0)).collect();
    let l2 = Gaussian::new(0.3, 0.9, 1000).unwrap();
    let l1 = Laplace::new(0.3, 0.9, 1000).unwrap();
    let spherical = Laplace::spherical(0.3, 0.9, 1000, d).unwrap();
    let linf = Exponential::new(0.3, 0.9).unwrap();
    let gradient = Gaussian::for_gradients(1.0, 0.7).unwrap();
    let gradient3 = Gaussian::for_gradients(SOFTMAX.lipschitz, 0.7).unwrap();
    let mut largest = 0.0f64;
    for sparse in [false, true] {
        let base = dataset(40, d, sparse, None);
        for at in [0usize, 17, 39] {
            for with in extremes.iter().map(Some).chain([None]) {
                let other = dataset(40, d, sparse, Some((at, with.cloned())));
                let mut check =
                    |name: &str, a: (Vec<i64>, Sensitivity), b: (Vec<i64>, Sensitivity), within: fn(&[i64], u64) -> bool| {
                        let gap: Vec<i64> = a.0.iter().zip(&b.0).map(|(x, y)| x.wrapping_sub(*y)).collect();
                        let sensitivity = if with.is_some() { a.1.replace_one } else { a.1.zero_out };
                        assert!(within(&gap, sensitivity), "{name} at {at} with {with:?}: {gap:?} > {sensitivity}");
                        largest = largest.max(gap.iter().map(|g| g.unsigned_abs()).max().unwrap() as f64 / sensitivity as f64);
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
    assert!(largest > 0.4, "the fuzz comes near the sensitivity: {largest}");
}

/// T-N4 and N-8: whatever the value, released numbers are whole multiples of the grid unit and nothing else.
#[test]
fn released_numbers_lie_on_the_grid() {
    let entropy = Entropy::system().unwrap();
    for x in [0.0f64, 1.0, 2f64.powi(-30), 2f64.powi(20), 0.37] {
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
    let mut b = DatasetBuilder::new(&entropy, shape(1, false, None)).unwrap();
    b.row(&[1.0], 1.0);
    let single = b.build();
    // Head-room asked for one row only: bound near 2^53, so 3000 rows exceed 2^63.
    let m = Gaussian::new(1.0, 0.5f64.powi(13), 1).unwrap();
    let (sum, sensitivity) = integers(&data, 2, &m, 1, |b, n| b.sum(n, &identity(1)));
    let each = i128::from(integers(&single, 1, &m, 1, |b, n| b.sum(n, &identity(1))).0[0]);
    assert!(each <= i128::from(sensitivity.zero_out) && each > i128::from(sensitivity.zero_out) - 16);
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
    let build = |rows: &[f64]| {
        let mut b = DatasetBuilder::new(&entropy, RowShape { row_norm: 2f64.powi(53), ..shape(1, false, None) }).unwrap();
        rows.iter().for_each(|x| b.row(&[*x], 1.0));
        b.build()
    };
    let m = Gaussian::new(2f64.powi(53), 1.0, 4096).unwrap();
    let sum = |rows: &[f64]| integers(&build(rows), 1, &m, 1, |b, n| b.sum(n, &identity(1)));
    let big = 2f64.powi(53);
    let ones_after: Vec<f64> = std::iter::once(big).chain(std::iter::repeat_n(1.0, 4000)).collect();
    let ones_before: Vec<f64> = std::iter::repeat_n(1.0, 4000).chain([big]).collect();
    assert_eq!(sum(&ones_after).0, sum(&ones_before).0);
    let float = |rows: &[f64]| rows.iter().fold(0f64, |s, x| s + *x);
    assert_ne!(float(&ones_after), float(&ones_before), "in floating point the order counts");
    let alternating: Vec<f64> = (0..4000).map(|i| if i % 2 == 0 { big } else { -1.0 }).collect();
    for rows in [&ones_after, &ones_before, &alternating] {
        for at in [0, 1, rows.len() - 1] {
            let mut other = rows.clone();
            other[at] = 0.0;
            let (a, b) = (sum(rows), sum(&other));
            assert!(a.0[0].wrapping_sub(b.0[0]).unsigned_abs() <= a.1.zero_out);
        }
    }
}
