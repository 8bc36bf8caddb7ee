//! A sum that has met no noise cannot be read.
use privfit_kernel::{Bounded, L2};

fn read<'id>(sum: &Bounded<'id, L2>) -> i64 {
    sum.values[0]
}

fn main() {}
