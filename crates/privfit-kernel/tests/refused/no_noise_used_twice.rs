//! Noise is used up by a release.
use privfit_kernel::{Bounded, L2, Noise, Run};

fn twice<'id>(run: &mut Run<'_>, noise: Noise<'id, L2>, one: &Bounded<'id, L2>, two: &Bounded<'id, L2>) {
    let _ = run.release(noise, one);
    let _ = run.release(noise, two);
}

fn main() {}
