//! A value computed from rows cannot be printed.
use privfit_kernel::Sensitive;

fn print(value: Sensitive<f64>) {
    println!("{:?}", value);
}

fn main() {}
