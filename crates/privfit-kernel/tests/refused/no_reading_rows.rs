//! A data set shows no row.
use privfit_kernel::Dataset;

fn peek(data: &Dataset) {
    let _ = data.unit(0).label(0);
}

fn main() {}
