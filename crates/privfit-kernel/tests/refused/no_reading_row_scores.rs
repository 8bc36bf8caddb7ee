//! Scores and factors of rows stay in the kernel.
use privfit_kernel::{CellRows, RowScores};

fn scores(scores: &RowScores) -> Vec<f32> {
    scores.scores.clone()
}

fn factors(rows: &CellRows) -> Vec<u16> {
    rows.factors.clone()
}

fn main() {}
