//! Noise drawn for one mechanism cannot meet a value summed for another, with a larger sensitivity.
use privfit_kernel::{Contribution, Gaussian, Run};

fn mix(run: &mut Run<'_>, small: &Gaussian, large: &Gaussian, contribution: &Contribution) -> privfit_kernel::Result<()> {
    run.at(small, |run, small_scale| {
        run.at(large, |run, large_scale| {
            let weak = run.draw(&small_scale, 2)?;
            let strong = run.draw(&large_scale, 2)?;
            let sum = run.everyone()?.sum(&strong, contribution)?;
            run.release(weak, &sum)?;
            Ok(())
        })
    })
}

fn main() {}
