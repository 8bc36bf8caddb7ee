//! A value computed from rows cannot be taken out of its wrapper.
use privfit_kernel::Sensitive;

fn take(value: Sensitive<f64>) -> f64 {
    value.value
}

fn main() {}
