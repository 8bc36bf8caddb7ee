//! A value computed from rows cannot be copied.
use privfit_kernel::Sensitive;

fn twice(value: &Sensitive<Vec<f64>>) -> Sensitive<Vec<f64>> {
    value.clone()
}

fn main() {}
