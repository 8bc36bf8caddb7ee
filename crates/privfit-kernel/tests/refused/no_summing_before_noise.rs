//! A value cannot exist before the noise that it will meet.
use privfit_kernel::{Batch, Contribution};

fn early(batch: &Batch<'_>, contribution: &Contribution) {
    let _ = batch.sum(contribution);
}

fn main() {}
