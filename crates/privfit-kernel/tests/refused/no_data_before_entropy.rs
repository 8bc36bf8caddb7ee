//! Data cannot be opened before randomness is at hand.
use privfit_kernel::{DatasetBuilder, RowShape};

fn main() {
    let shape = RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let _ = DatasetBuilder::new(shape);
}
