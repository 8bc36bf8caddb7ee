//! Sums over cells: neighbours, null rows, and equality with sums over features.

use super::cell_gradient::CellBasis;
use crate::account::Event;
use crate::engine::Threads;
use crate::limits::ROW_LIMIT;
use crate::loss::{self, Loss};
use crate::mechanism::{Gaussian, Mechanism};
use crate::norm::root_up;
use crate::rng::{Entropy, NoiseRng, Words};
use crate::run::Run;
use crate::store::builder::DatasetBuilder;
use crate::store::dataset::Dataset;

const COUNTS: [usize; 3] = [2, 5, 17];

fn table(rows: &[Option<([u8; 3], f32)>], per_unit: Option<usize>) -> Dataset {
    let mut builder = DatasetBuilder::of_cells(&Entropy::simulated(1), 3, per_unit).unwrap();
    for row in rows {
        match row {
            Some((cells, label)) => builder.cell_row(cells, *label),
            None => builder.null_cell_row(),
        }
        if per_unit.is_some() {
            builder.end_unit();
        }
    }
    builder.build()
}

fn random(rng: &mut NoiseRng) -> Option<([u8; 3], f32)> {
    let cells = COUNTS.map(|count| (rng.word() % (count as u64 + u64::from(rng.word() % 50 == 0))) as u8);
    (rng.word() % 8 > 0).then_some((cells, (rng.word() % 2) as f32))
}

fn basis(rng: &mut NoiseRng, size: f64) -> CellBasis {
    let mut unit = || (rng.word() >> 11) as f64 * 0.5f64.powi(52) - 1.0;
    let columns: Vec<Vec<Vec<f64>>> = COUNTS
        .iter()
        .zip([1usize, 0, 4])
        .map(|(c, d)| (0..*c).map(|_| (0..d).map(|_| size * unit()).collect()).collect())
        .collect();
    CellBasis::new(&columns, 0.3).unwrap()
}

/// The integers of one sum, before any noise.
fn integers(data: &Dataset, planned: &Event, sum: &dyn Fn(&mut Run<'_>) -> Vec<i64>) -> Vec<i64> {
    let (engine, entropy) = (Threads::new(2), Entropy::simulated(3));
    let mut run = Run::begin(data, &engine, &entropy, planned).unwrap();
    sum(&mut run)
}

fn distance(a: &[i64], b: &[i64]) -> u64 {
    root_up(a.iter().zip(b).map(|(a, b)| u128::from(a.abs_diff(*b)).pow(2)).sum())
}

fn counts(data: &Dataset, mechanism: &Gaussian) -> Vec<i64> {
    let dimension = COUNTS.iter().sum();
    integers(data, &mechanism.event(dimension), &|run| {
        let everyone = run.everyone().unwrap();
        run.at(mechanism, |run, scale| {
            let noise = run.draw(&scale, dimension)?;
            Ok(everyone.cell_counts(&noise, &COUNTS)?.values)
        })
        .unwrap()
    })
}

#[test]
fn neighbours_move_counts_by_at_most_the_sensitivity() {
    let mut rng = NoiseRng::from_key([5; 32]);
    let mechanism = Gaussian::for_counts(3, 2.0, 1000).unwrap();
    let sensitivity = mechanism.grid().0.sensitivity;
    let (mut nearest, mut replaced) = (0.0f64, 0.0f64);
    for _ in 0..200 {
        let mut rows: Vec<_> = (0..9).map(|_| random(&mut rng)).collect();
        let before = counts(&table(&rows, None), &mechanism);
        rows[4] = None;
        let without = counts(&table(&rows, None), &mechanism);
        rows[4] = random(&mut rng);
        let other = counts(&table(&rows, None), &mechanism);
        assert!(distance(&before, &without) <= sensitivity.zero_out && distance(&other, &without) <= sensitivity.zero_out);
        assert!(distance(&before, &other) <= sensitivity.replace_one);
        nearest = nearest.max(distance(&before, &without) as f64 / sensitivity.zero_out as f64);
        replaced = replaced.max(distance(&before, &other) as f64 / sensitivity.replace_one as f64);
    }
    // Both are attained, and replace-one costs sqrt 2, not 2.
    assert!(nearest > 1.0 - 1e-6 && replaced > 1.0 - 1e-6, "{nearest} {replaced}");
    let ratio = sensitivity.replace_one as f64 / sensitivity.zero_out as f64;
    assert!((ratio - 2f64.sqrt()).abs() < 1e-6, "{ratio}");
}

/// Several rows of a unit weigh as much as one.
#[test]
fn units_of_several_rows_count_once() {
    let mechanism = Gaussian::for_counts(3, 2.0, 1000).unwrap();
    let sensitivity = mechanism.grid().0.sensitivity;
    let mut rng = NoiseRng::from_key([6; 32]);
    let build = |rows: &[Option<([u8; 3], f32)>]| {
        let mut builder = DatasetBuilder::of_cells(&Entropy::simulated(1), 3, Some(4)).unwrap();
        for row in rows {
            match row {
                Some((cells, label)) => builder.cell_row(cells, *label),
                None => builder.null_cell_row(),
            }
        }
        builder.end_unit();
        builder.build()
    };
    for _ in 0..100 {
        let draw = |rng: &mut NoiseRng| -> Vec<_> { (0..rng.word() % 5).map(|_| random(rng)).collect() };
        let (a, b) = (counts(&build(&draw(&mut rng)), &mechanism), counts(&build(&draw(&mut rng)), &mechanism));
        let nothing = counts(&build(&[]), &mechanism);
        assert!(distance(&a, &nothing) <= sensitivity.zero_out && distance(&a, &b) <= sensitivity.replace_one);
    }
}

fn gradient(data: &Dataset, basis: &CellBasis, mechanism: &Gaussian, weights: &[f64]) -> Vec<i64> {
    gradient_of(&loss::logistic(1, 2, 1.0, [1.0, 1.0]), data, basis, mechanism, weights)
}

fn gradient_of(loss: &Loss, data: &Dataset, basis: &CellBasis, mechanism: &Gaussian, weights: &[f64]) -> Vec<i64> {
    let dimension = basis.dimension() * loss.outputs();
    integers(data, &mechanism.event(dimension), &|run| {
        let everyone = run.everyone().unwrap();
        let factors = everyone.cell_factors(basis.clone()).unwrap();
        run.at(mechanism, |run, scale| {
            let noise = run.draw(&scale, dimension)?;
            Ok(everyone.cell_gradient(&noise, &factors, weights, loss)?.values)
        })
        .unwrap()
    })
}

/// Several rows of a unit, several outputs, labels that no class has, weights that are no numbers: one unit moves the sum by the bound.
#[test]
fn units_and_outputs_are_clipped_together() {
    let mut rng = NoiseRng::from_key([9; 32]);
    let softmax = loss::softmax(&[1.0; 3]);
    let mechanism = Gaussian::for_gradients(softmax.lipschitz(), 3.0).unwrap();
    let sensitivity = mechanism.grid().0.sensitivity;
    let build = |units: &[Vec<Option<([u8; 3], f32)>>]| {
        let mut builder = DatasetBuilder::of_cells(&Entropy::simulated(1), 3, Some(4)).unwrap();
        for unit in units {
            for row in unit {
                match row {
                    Some((cells, label)) => builder.cell_row(cells, *label),
                    None => builder.null_cell_row(),
                }
            }
            builder.end_unit();
        }
        builder.build()
    };
    let labels = [0.0, 1.0, 2.0, 7.0, -1.0, f32::NAN];
    let draw = |rng: &mut NoiseRng| -> Vec<_> {
        let row = |rng: &mut NoiseRng| random(rng).map(|(cells, _)| (cells, labels[(rng.word() % 6) as usize]));
        (0..rng.word() % 5).map(|_| row(rng)).collect()
    };
    let mut most = 0.0f64;
    for round in 0..60 {
        let basis = basis(&mut rng, 0.8);
        let mut weights: Vec<f64> = (0..3 * basis.dimension()).map(|_| (rng.word() % 2001) as f64 * 0.05 - 50.0).collect();
        if round % 10 == 9 {
            weights[1] = [f64::NAN, f64::INFINITY][(round / 10) % 2];
        }
        let mut units: Vec<_> = (0..4).map(|_| draw(&mut rng)).collect();
        let before = gradient_of(&softmax, &build(&units), &basis, &mechanism, &weights);
        units[1] = Vec::new();
        let without = gradient_of(&softmax, &build(&units), &basis, &mechanism, &weights);
        units[1] = draw(&mut rng);
        let other = gradient_of(&softmax, &build(&units), &basis, &mechanism, &weights);
        assert!(distance(&before, &without) <= sensitivity.zero_out && distance(&other, &without) <= sensitivity.zero_out);
        assert!(distance(&before, &other) <= sensitivity.replace_one);
        most = most.max(distance(&before, &without) as f64 / sensitivity.zero_out as f64);
    }
    assert!(most > 0.3, "{most}");
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
    let fill = |mut builder: DatasetBuilder| {
        builder.row(&[1.0], 1.0);
        builder.sparse_row(&[(0, 1.0)], 1.0);
        builder.cell_row(&[1, 4, 16], 1.0);
        builder.cell_row(&[1, 4, 16], f32::NAN);
        builder.cell_row(&[1, 4], 1.0);
        builder.build()
    };
    let make = || DatasetBuilder::of_cells(&Entropy::simulated(1), 3, None).unwrap();
    let (memory, file) = (fill(make()), fill(make().on_disk(&std::env::temp_dir()).unwrap()));
    let found = counts(&memory, &mechanism);
    assert_eq!(found, counts(&file, &mechanism));
    assert_eq!(found.iter().filter(|c| **c != 0).count(), 3, "one row counts, in three columns");
    let picked = memory.picked([2usize, 3, 2].into_iter()).unwrap();
    assert_eq!(counts(&picked, &mechanism).iter().sum::<i64>(), 2 * found.iter().sum::<i64>());
    // A null unit has no label: a contribution that counts labels finds nothing.
    let label = crate::Contribution {
        name: "labels",
        dimension: 2,
        parameters: Vec::new(),
        add: |_, unit, _, sink| sink.add(unit.label(0).clamp(0.0, 1.0) as usize, 1.0),
    };
    let noise = Gaussian::new(1.0, 2.0, 10).unwrap();
    let sums = integers(&memory, &noise.event(2), &|run| {
        let everyone = run.everyone().unwrap();
        run.at(&noise, |run, scale| {
            let noise = run.draw(&scale, 2)?;
            Ok(everyone.sum(&noise, &label)?.values)
        })
        .unwrap()
    });
    assert!(sums[0] == 0 && sums[1] > 0, "{sums:?}");
}

#[test]
fn neighbours_move_cell_gradients_by_at_most_the_sensitivity() {
    let mut rng = NoiseRng::from_key([7; 32]);
    let mechanism = Gaussian::for_gradients(1.0, 3.0).unwrap();
    let sensitivity = mechanism.grid().0.sensitivity;
    let mut nearest = 0.0f64;
    for size in [0.01, 0.3, 1.0, 5.0] {
        let basis = basis(&mut rng, size);
        for _ in 0..60 {
            let weights: Vec<f64> = (0..basis.dimension()).map(|_| (rng.word() % 2001) as f64 * 0.05 - 50.0).collect();
            let mut rows: Vec<_> = (0..5).map(|_| random(&mut rng)).collect();
            let before = gradient(&table(&rows, None), &basis, &mechanism, &weights);
            rows[2] = None;
            let without = gradient(&table(&rows, None), &basis, &mechanism, &weights);
            rows[2] = random(&mut rng);
            let other = gradient(&table(&rows, None), &basis, &mechanism, &weights);
            assert!(distance(&before, &without) <= sensitivity.zero_out, "{size}");
            assert!(distance(&before, &other) <= sensitivity.replace_one, "{size}");
            nearest = nearest.max(distance(&before, &without) as f64 / sensitivity.zero_out as f64);
        }
    }
    assert!(nearest > 0.99 && nearest <= 1.0, "{nearest}");
}

/// One row adds w T and r k0, with w, T, r and k0 computed by hand; at score 0 the derivative of the logistic loss is -1/2 for the second class.
#[test]
fn a_row_adds_its_features_times_its_weight() {
    let mechanism = Gaussian::for_gradients(1.0, 3.0).unwrap();
    let limit = (mechanism.grid().0.bound / ROW_LIMIT) as i64;
    let integer = |x: f64| (x * ROW_LIMIT as f64) as i64;
    for size in [0.1, 0.9] {
        // The cells of the row are 1, 3 and 7; the second column has no features.
        let features = [[size].as_slice(), &[size, -0.5 * size, 0.25, 0.0]].concat();
        let cell = |column: usize, at: u8| match (column, at) {
            (0, 1) => vec![size],
            (0, _) => vec![0.7],
            (1, _) => Vec::new(),
            (_, 7) => features[1..].to_vec(),
            _ => vec![0.3; 4],
        };
        let columns: Vec<Vec<Vec<f64>>> =
            COUNTS.iter().enumerate().map(|(j, count)| (0..*count as u8).map(|at| cell(j, at)).collect()).collect();
        let basis = CellBasis::new(&columns, 0.3).unwrap();
        let weights = vec![0.0; basis.dimension()];
        let found = gradient(&table(&[Some(([1, 3, 7], 1.0))], None), &basis, &mechanism, &weights);
        let (constant, own) = found.split_last().unwrap();
        let r = constant / integer(0.3);
        assert!(constant % integer(0.3) == 0 && (r + limit / 2).abs() <= 1, "{r} {limit}");
        let square: f64 = features.iter().map(|x| (integer(*x) as f64).powi(2)).sum();
        let factor = (((ROW_LIMIT as f64).powi(2) - (integer(0.3) as f64).powi(2)) / square).sqrt().min(1.0);
        let w = own[0] / integer(size);
        assert!((w as f64 - r as f64 * factor).abs() <= 1.0, "{w} {r} {factor}");
        assert_eq!(own, features.iter().map(|x| w * integer(*x)).collect::<Vec<_>>());
    }
    let mut rng = NoiseRng::from_key([8; 32]);
    let basis = basis(&mut rng, 0.5);
    let weights = vec![0.0; basis.dimension()];
    let null = gradient(&table(&[None, Some(([1, 3, 17], 1.0))], None), &basis, &mechanism, &weights);
    assert!(null.iter().all(|g| *g == 0), "a null row, and one with a byte that is no cell, add nothing");
}
