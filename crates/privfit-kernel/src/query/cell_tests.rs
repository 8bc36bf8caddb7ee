//! Sums over cells: neighbours, null rows, units of several rows, and closed forms.

use super::cell_features::{CellFeatures, ColumnFeatures, PairFeatures};
use super::cell_gradient::CellPoint;
use super::cell_pairs::{AllPairs, PairColumn};
use super::cell_trees::{CellSplit, CellTree, leaf_feature};
use crate::batch::Batch;
use crate::engine::Threads;
use crate::error::Result;
use crate::limits::ROW_LIMIT;
use crate::loss::{self, Loss};
use crate::mechanism::{Gaussian, Mechanism};
use crate::norm::{L2, root_up};
use crate::rng::{Entropy, NoiseRng, Words};
use crate::run::Run;
use crate::store::builder::DatasetBuilder;
use crate::store::dataset::Dataset;
use crate::value::{Bounded, Noise};

const COUNTS: [usize; 3] = [2, 5, 17];

type Row = Option<([u8; 3], f32)>;

fn add(builder: &mut DatasetBuilder, row: &Row) {
    match row {
        Some((cells, label)) => builder.cell_row(cells, *label),
        None => builder.null_cell_row(),
    }
}

/// Units of several rows, or one row each.
fn table(units: &[Vec<Row>], per_unit: Option<usize>) -> Dataset {
    let mut builder = DatasetBuilder::of_cells(&Entropy::simulated(1), &COUNTS, per_unit).unwrap();
    for unit in units {
        unit.iter().for_each(|row| add(&mut builder, row));
        if per_unit.is_some() {
            builder.end_unit();
        }
    }
    builder.build()
}

/// A row, now and then null, with a cell that its column does not have, or with a label that no class has.
fn random(rng: &mut NoiseRng, labels: &[f32]) -> Row {
    let cells = COUNTS.map(|count| (rng.word() % (count as u64 + u64::from(rng.word() % 50 == 0))) as u8);
    (rng.word() % 8 > 0).then_some((cells, labels[(rng.word() % labels.len() as u64) as usize]))
}

fn unit(rng: &mut NoiseRng) -> f64 {
    (rng.word() >> 11) as f64 * 0.5f64.powi(52) - 1.0
}

fn vectors(rng: &mut NoiseRng, count: usize, width: usize, size: f64) -> Vec<Vec<f64>> {
    (0..count).map(|_| (0..width).map(|_| size * unit(rng)).collect()).collect()
}

/// Features of all columns and of one pair.
fn features(rng: &mut NoiseRng, size: f64) -> CellFeatures {
    let columns: Vec<ColumnFeatures> =
        COUNTS.iter().zip([1usize, 0, 4]).map(|(c, d)| ColumnFeatures { cells: vectors(rng, *c, d, size) }).collect();
    let groups = [vec![1, 0], (0..17).map(|cell| cell / 5).collect()];
    let pair = PairFeatures { columns: [0, 2], groups, pairs: vectors(rng, 8, 3, size) };
    CellFeatures::new(&columns, &[pair], 0.3).unwrap()
}

fn trees(rng: &mut NoiseRng, count: usize) -> Vec<CellTree> {
    let split = |rng: &mut NoiseRng| {
        let column = (rng.word() % 3) as usize;
        CellSplit { column, yes: (0..COUNTS[column]).map(|_| rng.word() % 2 == 1).collect() }
    };
    (0..count).map(|i| CellTree { splits: (0..1 + i % 4).map(|_| split(rng)).collect() }).collect()
}

fn all_pairs(rng: &mut NoiseRng, size: f64) -> AllPairs {
    let column = |rng: &mut NoiseRng, count: usize, width: usize| {
        let groups: Vec<u8> = (0..count).map(|c| (c % 7) as u8).collect();
        let used = usize::from(*groups.iter().max().unwrap()) + 1;
        PairColumn { groups, vectors: vectors(rng, used, width, size) }
    };
    AllPairs::new(&[column(rng, 2, 1), column(rng, 5, 3), column(rng, 17, 2)]).unwrap()
}

type Sum<'s> = &'s dyn for<'id> Fn(&Batch<'_>, &Noise<'id, L2>) -> Result<Bounded<'id, L2>>;

/// The integers of one sum, before any noise.
fn integers(data: &Dataset, mechanism: &Gaussian, dimension: usize, sum: Sum<'_>) -> Vec<i64> {
    let (engine, entropy) = (Threads::new(2), Entropy::simulated(3));
    let mut run = Run::begin(data, &engine, &entropy, &mechanism.event(dimension)).unwrap();
    let everyone = run.everyone().unwrap();
    run.at(mechanism, |run, scale| {
        let noise = run.draw(&scale, dimension)?;
        Ok(sum(&everyone, &noise)?.values)
    })
    .unwrap()
}

fn distance(a: &[i64], b: &[i64]) -> u64 {
    root_up(a.iter().zip(b).map(|(a, b)| u128::from(a.abs_diff(*b)).pow(2)).sum())
}

/// What is summed in the tests below: a name, the mechanism, how many numbers, and the sum.
struct Query {
    name: &'static str,
    mechanism: Gaussian,
    dimension: usize,
    sum: Box<dyn for<'id> Fn(&Batch<'_>, &Noise<'id, L2>) -> Result<Bounded<'id, L2>>>,
}

/// Every query over cells, for features, weights and trees that change from call to call, some of them not numbers.
fn queries(rng: &mut NoiseRng, loss: &Loss) -> Vec<Query> {
    let k = loss.outputs();
    let size = [0.01, 0.3, 1.0, 5.0][(rng.word() % 4) as usize];
    let gradients = Gaussian::for_gradients(loss.lipschitz(), 3.0).unwrap();
    let features = features(rng, size);
    let d = features.dimension();
    let mut weights: Vec<f64> = (0..d * k).map(|_| 50.0 * unit(rng)).collect();
    if rng.word().is_multiple_of(10) {
        weights[1] = [f64::NAN, f64::INFINITY][(rng.word() % 2) as usize];
    }
    let offsets: Vec<f64> = (0..k).map(|_| unit(rng)).collect();
    let mut out = Vec::new();
    let (f, w, o, l) = (features.clone(), weights.clone(), offsets.clone(), loss.clone());
    out.push(Query {
        name: "gradient",
        mechanism: gradients,
        dimension: d * k,
        sum: Box::new(move |all, noise| {
            let rows = all.cell_rows(f.clone())?;
            all.cell_gradient(noise, &rows, CellPoint { weights: &w, offsets: &o }, &l)
        }),
    });
    let (f, w, o, l) = (features.clone(), weights.clone(), offsets.clone(), loss.clone());
    let forest = trees(rng, 6);
    out.push(Query {
        name: "leaves",
        mechanism: gradients,
        dimension: forest.iter().map(CellTree::leaves).sum::<usize>() * k,
        sum: Box::new(move |all, noise| {
            let rows = all.cell_rows(f.clone())?;
            let mut scores = all.row_scores(&rows, CellPoint { weights: &w, offsets: &o }, l.outputs())?;
            let values = vec![0.5; forest[..2].iter().map(CellTree::leaves).sum::<usize>() * l.outputs()];
            all.add_leaves(&mut scores, &forest[..2], &values)?;
            all.leaf_sums(noise, &scores, &forest, &l)
        }),
    });
    if k == 1 {
        let (f, w, o, l) = (features.clone(), weights.clone(), offsets.clone(), loss.clone());
        let pairs = all_pairs(rng, size);
        out.push(Query {
            name: "pairs",
            mechanism: gradients,
            dimension: pairs.dimension(),
            sum: Box::new(move |all, noise| {
                let rows = all.cell_rows(f.clone())?;
                let scores = all.row_scores(&rows, CellPoint { weights: &w, offsets: &o }, 1)?;
                all.pair_gradients(noise, &scores, &pairs, &l)
            }),
        });
        let (f, w, o, l) = (features, weights, offsets, loss.clone());
        out.push(Query {
            name: "residuals",
            mechanism: Gaussian::for_counts(1, 2.0, 1000).unwrap(),
            dimension: 4,
            sum: Box::new(move |all, noise| {
                let rows = all.cell_rows(f.clone())?;
                let scores = all.row_scores(&rows, CellPoint { weights: &w, offsets: &o }, 1)?;
                all.residual_counts(noise, &scores, &l, &[0.1, 0.3, 0.6])
            }),
        });
    }
    out.push(Query {
        name: "counts",
        mechanism: Gaussian::for_counts(3, 2.0, 1000).unwrap(),
        dimension: COUNTS.iter().sum(),
        sum: Box::new(|all, noise| all.cell_counts(noise, &COUNTS)),
    });
    out
}

/// One unit that becomes null, or another one, moves every sum by at most what the event says, on the integers; and the most that was seen is close to it, so that
/// the test would notice less.
fn fuzz(loss: &Loss, labels: &[f32], per_unit: Option<usize>, rounds: usize, key: u8) -> Vec<(&'static str, f64, f64)> {
    let mut rng = NoiseRng::from_key([key; 32]);
    let mut most: Vec<(&'static str, f64, f64)> = Vec::new();
    let draw = |rng: &mut NoiseRng| -> Vec<Row> {
        let rows = if per_unit.is_some() { rng.word() % 5 } else { 1 };
        (0..rows).map(|_| random(rng, labels)).collect()
    };
    let nothing = if per_unit.is_some() { Vec::new() } else { vec![None] };
    for _ in 0..rounds {
        let mut units: Vec<Vec<Row>> = (0..5).map(|_| draw(&mut rng)).collect();
        let before = table(&units, per_unit);
        units[2] = nothing.clone();
        let without = table(&units, per_unit);
        units[2] = draw(&mut rng);
        let other = table(&units, per_unit);
        for (i, query) in queries(&mut rng, loss).iter().enumerate() {
            let sensitivity = query.mechanism.grid().0.sensitivity;
            let of = |data: &Dataset| integers(data, &query.mechanism, query.dimension, &*query.sum);
            let (before, without, other) = (of(&before), of(&without), of(&other));
            let (null, replaced) = (distance(&before, &without), distance(&before, &other));
            assert!(null.max(distance(&other, &without)) <= sensitivity.zero_out, "{}", query.name);
            assert!(replaced <= sensitivity.replace_one, "{}", query.name);
            most.resize(most.len().max(i + 1), (query.name, 0.0, 0.0));
            most[i].1 = most[i].1.max(null as f64 / sensitivity.zero_out as f64);
            most[i].2 = most[i].2.max(replaced as f64 / sensitivity.replace_one as f64);
        }
    }
    most
}

#[test]
fn neighbours_move_sums_by_at_most_the_sensitivity() {
    for (name, null, replaced) in fuzz(&loss::logistic(1, 2, 1.0, [1.0, 1.0]), &[0.0, 1.0], None, 250, 5) {
        assert!(null > 0.99 && replaced > 0.8, "{name}: {null} {replaced}");
    }
    let ratio = |m: Gaussian| m.grid().0.sensitivity.replace_one as f64 / m.grid().0.sensitivity.zero_out as f64;
    let (counts, gradients) = (Gaussian::for_counts(3, 2.0, 1000).unwrap(), Gaussian::for_gradients(1.0, 3.0).unwrap());
    assert!((ratio(counts) - 2f64.sqrt()).abs() < 1e-6 && ratio(gradients) == 2.0, "counts cost sqrt 2, signed sums 2");
}

/// Several rows of a unit, several outputs, labels that no class has, weights that are no numbers.
#[test]
fn units_and_outputs_are_clipped_together() {
    let labels = [0.0, 1.0, 2.0, 7.0, -1.0, f32::NAN];
    for (name, null, _) in fuzz(&loss::softmax(&[1.0; 3]), &labels, Some(4), 80, 9) {
        assert!(null > 0.5, "{name}: {null}");
    }
    // A loss that knows every label: null rows are null by their bytes.
    for (name, null, replaced) in fuzz(&loss::least_squares(), &[1e30, -1e30, 0.0], None, 80, 12) {
        assert!(null > 0.5 && replaced > 0.5, "{name}: {null} {replaced}");
    }
    for (name, null, _) in fuzz(&loss::logistic(1, 2, 1.0, [1.0, 1.0]), &labels, Some(4), 80, 10) {
        assert!(null > 0.6, "{name}: {null}");
    }
}

/// Rows of either kind in a builder of the other: zeros or null, never a neighbour's row. In a file they are what they are in memory.
#[test]
fn rows_of_the_other_kind_are_nothing() {
    let mut mixed = DatasetBuilder::new(&Entropy::simulated(1), crate::tests::shape(2, false, None)).unwrap();
    mixed.cell_row(&[1, 2, 3], 0.0);
    mixed.row(&[0.0, 1.0], 0.0);
    mixed.row(&[1.0, 0.0], 0.0);
    let data = mixed.build();
    let mut seen = Vec::new();
    (0..3).for_each(|unit| data.unit(unit).each(0, |j, x| seen.push((unit, j, x > 0.9))));
    assert_eq!(seen, [(1, 1, true), (2, 0, true)]);
    let mechanism = Gaussian::for_counts(3, 2.0, 1000).unwrap();
    let counts = |data: &Dataset| integers(data, &mechanism, 24, &|all, noise| all.cell_counts(noise, &COUNTS));
    let fill = |mut builder: DatasetBuilder| {
        builder.row(&[1.0], 1.0);
        builder.sparse_row(&[(0, 1.0)], 1.0);
        builder.cell_row(&[1, 4, 16], 1.0);
        builder.cell_row(&[1, 4, 16], f32::NAN);
        builder.cell_row(&[1, 4], 1.0);
        builder.cell_row(&[1, 4, 17], 1.0);
        (0..3000).for_each(|_| builder.null_cell_row());
        builder.build()
    };
    let make = || DatasetBuilder::of_cells(&Entropy::simulated(1), &COUNTS, None).unwrap();
    let (memory, file) = (fill(make()), fill(make().on_disk(&std::env::temp_dir()).unwrap()));
    let found = counts(&memory);
    assert_eq!(found, counts(&file));
    assert_eq!(found.iter().filter(|c| **c != 0).count(), 3, "one row counts, in three columns");
    let picked = memory.picked([2usize, 3, 2].into_iter()).unwrap();
    assert_eq!(counts(&picked).iter().sum::<i64>(), 2 * found.iter().sum::<i64>());
    // A null unit has no label: a contribution that counts labels finds nothing.
    let label = crate::Contribution {
        name: "labels",
        dimension: 2,
        parameters: Vec::new(),
        add: |_, unit, _, sink| sink.add(unit.label(0).clamp(0.0, 1.0) as usize, 1.0),
    };
    let noise = Gaussian::new(1.0, 2.0, 10).unwrap();
    let sums = integers(&memory, &noise, 2, &|all, noise| all.sum(noise, &label));
    assert!(sums[0] == 0 && sums[1] > 0, "{sums:?}");
}

/// One row adds w T and z k0, with w, T, z and k0 computed by hand; at score 0 the derivative of the logistic loss is -1/2 for the second class.
#[test]
fn a_row_adds_its_features_times_its_derivative() {
    let mechanism = Gaussian::for_gradients(1.0, 3.0).unwrap();
    let limit = (mechanism.grid().0.bound / ROW_LIMIT) as i64;
    let integer = |x: f64| (x * ROW_LIMIT as f64) as i64;
    let logistic = loss::logistic(1, 2, 1.0, [1.0, 1.0]);
    for size in [0.1, 0.9] {
        // The cells of the row are 1, 3 and 7; the second column has no features. Of the pair it has the groups 0 and 1.
        let own = [size, size, -0.5 * size, 0.25, 0.0, 0.5 * size, 0.1];
        let cell = |column: usize, at: u8| match (column, at) {
            (0, 1) => vec![own[0]],
            (0, _) => vec![0.7],
            (1, _) => Vec::new(),
            (_, 7) => own[1..5].to_vec(),
            _ => vec![0.3; 4],
        };
        let column = |j: usize| ColumnFeatures { cells: (0..COUNTS[j] as u8).map(|at| cell(j, at)).collect() };
        let groups = [vec![1, 0], (0..17).map(|cell| cell / 5).collect()];
        let pairs = (0..8).map(|at| if at == 1 { own[5..].to_vec() } else { vec![0.9, -0.9] }).collect();
        let pair = PairFeatures { columns: [0, 2], groups, pairs };
        let features = CellFeatures::new(&[column(0), column(1), column(2)], &[pair], 0.3).unwrap();
        let weights = vec![0.0; features.dimension()];
        let data = table(&[vec![Some(([1, 3, 7], 1.0))]], None);
        let found = integers(&data, &mechanism, weights.len(), &|all, noise| {
            let rows = all.cell_rows(features.clone())?;
            all.cell_gradient(noise, &rows, CellPoint { weights: &weights, offsets: &[0.0] }, &logistic)
        });
        let (constant, rest) = found.split_last().unwrap();
        let z = constant / integer(0.3);
        assert!(constant % integer(0.3) == 0 && (z + limit / 2).abs() <= 1, "{z} {limit}");
        let square: f64 = own.iter().map(|x| (integer(*x) as f64).powi(2)).sum();
        let factor = (((ROW_LIMIT as f64).powi(2) - (integer(0.3) as f64).powi(2)) / square).sqrt().min(1.0);
        let w = rest[0] / integer(size);
        assert!((w as f64 - z as f64 * factor).abs() <= 2.0, "{w} {z} {factor}");
        assert_eq!(rest, own.iter().map(|x| w * integer(*x)).collect::<Vec<_>>());
        // It counts once in each column, and its residual of 1/2 in the second of three intervals.
        let of_counts = |columns: usize| Gaussian::for_counts(columns, 2.0, 1000).unwrap();
        let one = |columns: usize| of_counts(columns).grid().0.bound as i64;
        let mut expected = vec![0; 24];
        [1, 2 + 3, 7 + 7].iter().for_each(|place| expected[*place] = one(3));
        assert_eq!(integers(&data, &of_counts(3), 24, &|all, noise| all.cell_counts(noise, &COUNTS)), expected);
        let sizes = integers(&data, &of_counts(1), 3, &|all, noise| {
            let at = CellPoint { weights: &weights, offsets: &[0.0] };
            let scores = all.row_scores(&all.cell_rows(features.clone())?, at, 1)?;
            all.residual_counts(noise, &scores, &logistic, &[0.4, 0.6])
        });
        assert_eq!(sizes, [0, one(1), 0]);
        // Its leaves, and the products of its vectors, in the same way.
        let forest = [
            CellTree { splits: vec![CellSplit { column: 2, yes: (0..17).map(|c| c > 6).collect() }] },
            CellTree { splits: [0, 1].map(|column| CellSplit { column, yes: vec![false, true] }).to_vec() },
        ];
        let at = CellPoint { weights: &weights, offsets: &[0.0] };
        let leaves = integers(&data, &mechanism, 6, &|all, noise| {
            let scores = all.row_scores(&all.cell_rows(features.clone())?, at, 1)?;
            all.leaf_sums(noise, &scores, &forest, &logistic)
        });
        let v = (leaf_feature(2) * ROW_LIMIT as f64).round() as i64;
        assert_eq!(leaves, [0, z * v, 0, 0, z * v, 0]);
        let columns = [0usize, 1, 2].map(|j| PairColumn { groups: vec![0; COUNTS[j]], vectors: vec![vec![size, 0.5]; 1] });
        let all_pairs = AllPairs::new(&columns).unwrap();
        let products = integers(&data, &mechanism, 12, &|all, noise| {
            let scores = all.row_scores(&all.cell_rows(features.clone())?, at, 1)?;
            all.pair_gradients(noise, &scores, &all_pairs, &logistic)
        });
        let (a, b) = ((size * 181.0) as i64, 90i64);
        let w = products[3] / (b * b);
        let length = (3.0f64).sqrt() * (a * a + b * b) as f64;
        assert!((w as f64 - z as f64 * (ROW_LIMIT as f64 / length).min(1.0)).abs() <= 2.0, "{w} {z} {length}");
        assert_eq!(products, [a * a, a * b, a * b, b * b].repeat(3).iter().map(|p| p * w).collect::<Vec<_>>());
    }
}

/// Sums of more rows than 32 bits have room for, all in one cell: a sum is the number of its rows times what one of them adds, on any number of threads.
#[test]
fn sums_of_many_equal_rows_are_exact() {
    const MANY: usize = 150_000;
    let mechanism = Gaussian::for_gradients(1.0, 3.0).unwrap();
    let logistic = loss::logistic(1, 2, 1.0, [1.0, 1.0]);
    let columns: Vec<ColumnFeatures> = COUNTS.iter().map(|c| ColumnFeatures { cells: vec![vec![0.2]; *c] }).collect();
    let features = CellFeatures::new(&columns, &[], 0.3).unwrap();
    // The score is far on the wrong side, so that the derivative is the clip.
    let (weights, offsets) = ([0.0; 4], [-60.0]);
    let sums = |rows: usize, threads: usize| {
        let data = table(&vec![vec![Some(([1, 3, 7], 1.0))]; rows], None);
        let (engine, entropy) = (Threads::new(threads), Entropy::simulated(3));
        let mut run = Run::begin(&data, &engine, &entropy, &mechanism.event(4)).unwrap();
        let all = run.everyone().unwrap();
        run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, 4)?;
            let rows = all.cell_rows(features.clone())?;
            Ok(all.cell_gradient(&noise, &rows, CellPoint { weights: &weights, offsets: &offsets }, &logistic)?.values)
        })
        .unwrap()
    };
    let one = sums(1, 1);
    assert_eq!(one[3], -(mechanism.grid().0.bound as i64 / ROW_LIMIT as i64) * (0.3 * ROW_LIMIT as f64) as i64);
    let expected: Vec<i64> = one.iter().map(|x| x * MANY as i64).collect();
    assert!(sums(MANY, 1) == expected && sums(MANY, 2) == expected);
}

/// Scores that are kept are those that gradients are taken at, whatever the threads; leaves are added to them.
#[test]
fn kept_scores_follow_weights_and_leaves() {
    let mut rng = NoiseRng::from_key([11; 32]);
    let units: Vec<Vec<Row>> = (0..40_000).map(|_| vec![random(&mut rng, &[0.0, 1.0])]).collect();
    let data = table(&units, None);
    let (features, forest) = (features(&mut rng, 0.4), trees(&mut rng, 3));
    let weights: Vec<f64> = (0..features.dimension()).map(|_| unit(&mut rng)).collect();
    let values: Vec<f64> = (0..forest.iter().map(CellTree::leaves).sum()).map(|_| unit(&mut rng)).collect();
    let scores = |threads: usize| {
        let (engine, entropy) = (Threads::new(threads), Entropy::simulated(3));
        let event = Gaussian::new(1.0, 1.0, 1).unwrap().event(1);
        let mut run = Run::begin(&data, &engine, &entropy, &event).unwrap();
        let all = run.everyone().unwrap();
        let rows = all.cell_rows(features.clone()).unwrap();
        let mut scores = all.row_scores(&rows, CellPoint { weights: &weights, offsets: &[0.25] }, 1).unwrap();
        let before = scores.scores.clone();
        all.add_leaves(&mut scores, &forest, &values).unwrap();
        (before, scores.scores)
    };
    let (before, after) = scores(1);
    assert!(scores(2) == (before.clone(), after.clone()));
    for row in [0usize, 1023, 1024, 20_000, 39_999] {
        let Some((cells, _)) = units[row][0].filter(|(cells, _)| cells.iter().zip(COUNTS).all(|(b, c)| usize::from(*b) < c))
        else {
            continue;
        };
        let mut first = 0;
        let leaf = |tree: &CellTree| {
            let at = tree.splits.iter().fold(0, |leaf, s| 2 * leaf + usize::from(s.yes[usize::from(cells[s.column])]));
            first += tree.leaves();
            values[first - tree.leaves() + at]
        };
        let added: f64 = forest.iter().map(leaf).sum();
        assert!((f64::from(after[row] - before[row]) - added).abs() < 1e-5, "{row}");
    }
}
