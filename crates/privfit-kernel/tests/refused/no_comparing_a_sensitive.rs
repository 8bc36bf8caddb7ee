//! A value computed from rows cannot be compared: one bit at a time is still everything.
use privfit_kernel::Sensitive;

fn larger(a: &Sensitive<f64>, b: &Sensitive<f64>) -> bool {
    a > b
}

fn main() {}
