//! A scale does not leave the scope that it was made for.
use privfit_kernel::{Gaussian, Run};

fn escape(run: &mut Run<'_>, mechanism: &Gaussian) {
    let _scale = run.at(mechanism, |_, scale| Ok(scale));
}

fn main() {}
