//! What a unit computes for itself cannot be opened by the code that computes it.
use privfit_kernel::Local;

fn open(local: Local<Vec<f64>>) -> Vec<f64> {
    local.value
}

fn main() {}
