//! Clocks of a selection are not additive noise.
use privfit_kernel::{Bounded, LInf, Noise, Run};

fn add<'id>(run: &mut Run<'_>, arrival_times: Noise<'id, LInf>, scores: &Bounded<'id, LInf>) {
    let _ = run.release(arrival_times, scores);
}

fn main() {}
