//! `privfit-bench cells`: one pass over rows of cells against one gradient pass over 16-bit rows of as many features, and sums over leaves of trees.

use crate::measure::{memory_bandwidth, timed};
use crate::{Failure, print_line};
use privfit::account::Event;
use privfit::engine::Threads;
use privfit::kernel::{
    CellFeatures, CellPoint, CellSplit, CellTree, ColumnFeatures, DatasetBuilder, Entropy, Gaussian, RowShape, Run,
};
use serde_json::json;

/// Features of a cell, as many as a number column of an additive model has.
const WIDTH: usize = 16;

pub(crate) fn run(rows: usize, columns: usize, cells: usize, repeats: usize, threads: usize) -> Result<(), Failure> {
    if rows == 0 || columns == 0 || repeats == 0 || !(2..=255).contains(&cells) {
        return Err(Failure::misuse(
            "--rows, --columns and --repeats must be at least 1 and --cells from 2 to 255: give whole numbers",
        ));
    }
    let entropy = Entropy::simulated(1);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let mut of_cells = DatasetBuilder::of_cells(&entropy, &vec![cells; columns], None)?;
    let shape = RowShape { dimension: columns, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut of_features = DatasetBuilder::new(&entropy, shape)?;
    let (mut row, mut features) = (vec![0u8; columns], vec![0f64; columns]);
    for _ in 0..rows {
        row.iter_mut().for_each(|c| *c = (word() % cells as u64) as u8);
        features.iter_mut().zip(&row).for_each(|(f, c)| *f = (f64::from(*c) / cells as f64 - 0.5) / (columns as f64).sqrt());
        let label = (word() % 2) as f32;
        of_cells.cell_row(&row, label);
        of_features.row(&features, label);
    }
    let (of_cells, of_features) = (of_cells.build(), of_features.build());
    let mut number = || (word() % 2001) as f64 * 1e-3 - 1.0;
    let column = |number: &mut dyn FnMut() -> f64| ColumnFeatures {
        cells: (0..cells).map(|_| (0..WIDTH).map(|_| 0.2 * number() / (columns as f64).sqrt()).collect()).collect(),
    };
    let basis: Vec<ColumnFeatures> = (0..columns).map(|_| column(&mut number)).collect();
    let basis = CellFeatures::new(&basis, &[], 0.3)?;
    let mechanism = Gaussian::for_gradients(1.0, 1.0)?;
    let loss = privfit::kernel::loss::logistic(1, 2, 1.0, [1.0, 1.0]);
    let engine = Threads::new(threads);
    let any = || Event::NotPrivate { why: "a benchmark".into() };
    // The best of the repeats.
    let mut pass = f64::INFINITY;
    let mut leaves = f64::INFINITY;
    let trees: Vec<CellTree> = (0..5)
        .map(|_| CellTree {
            splits: (0..4)
                .map(|_| {
                    let (column, from) = ((number().abs() * columns as f64) as usize % columns, cells as f64 * number().abs());
                    CellSplit { column, yes: (0..cells).map(|c| c as f64 > from).collect() }
                })
                .collect(),
        })
        .collect();
    {
        let mut run = Run::begin(&of_cells, &engine, &entropy, &any())?;
        let everyone = run.everyone()?;
        let prepared = everyone.cell_rows(basis)?;
        let d = prepared.features().dimension();
        let weights: Vec<f64> = (0..d).map(|_| number()).collect();
        let point = CellPoint { weights: &weights, offsets: &[0.0] };
        let scores = everyone.row_scores(&prepared, point, 1)?;
        run.at(&mechanism, |run, scale| {
            for _ in 0..repeats {
                let noise = run.draw(&scale, d)?;
                let (sum, seconds) = timed(|| everyone.cell_gradient(&noise, &prepared, point, &loss));
                sum?;
                pass = pass.min(seconds);
                let noise = run.draw(&scale, 5 * 16)?;
                let (sum, seconds) = timed(|| everyone.leaf_sums(&noise, &scores, &trees, &loss));
                sum?;
                leaves = leaves.min(seconds);
            }
            Ok(())
        })?;
    }
    let mut linear = f64::INFINITY;
    {
        let mut run = Run::begin(&of_features, &engine, &entropy, &any())?;
        let everyone = run.everyone()?;
        let weights: Vec<f64> = (0..columns).map(|_| number()).collect();
        run.at(&mechanism, |run, scale| {
            for _ in 0..repeats {
                let noise = run.draw(&scale, columns)?;
                let (sum, seconds) = timed(|| everyone.gradient_sum(&noise, &weights, &loss));
                sum?;
                linear = linear.min(seconds);
            }
            Ok(())
        })?;
    }
    let bytes = (columns + 2 + 4) as f64;
    let speed = bytes * rows as f64 / pass;
    let out = json!({
        "rows": rows, "columns": columns, "cells": cells, "threads": threads, "repeats": repeats,
        "pass_cpu_s": pass, "gradient_pass_cpu_s": linear, "ratio": pass / linear,
        "five_trees_cpu_s": leaves, "bytes_per_row": bytes,
        "nanoseconds_per_cell": pass * 1e9 / (rows * columns) as f64,
        "gigabytes_per_second": speed * 1e-9,
        "share_of_memory_bandwidth": speed / memory_bandwidth(),
    });
    print_line(&out.to_string());
    Ok(())
}
