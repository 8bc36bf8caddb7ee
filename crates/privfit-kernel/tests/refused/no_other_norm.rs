//! Noise calibrated in L2 does not cover a value bounded in L1.
use privfit_kernel::{Bounded, L1, L2, Noise, Run};

fn mix<'id>(run: &mut Run<'_>, noise: Noise<'id, L2>, value: &Bounded<'id, L1>) {
    let _ = run.release(noise, value);
}

fn main() {}
