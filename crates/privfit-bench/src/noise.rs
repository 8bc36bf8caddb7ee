//! `privfit-bench noise`: exact noise samples a second on one core, as drawn for a release.

use crate::measure::timed;
use crate::{Failure, print_line};
use privfit::account::Event;
use privfit::engine::Threads;
use privfit::kernel::{DatasetBuilder, Entropy, Gaussian, Laplace, Mechanism, RowShape, Run};
use serde_json::json;

pub(crate) fn run(samples: usize) -> Result<(), Failure> {
    let entropy = Entropy::system()?;
    let mut rows = DatasetBuilder::new(&entropy, RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None })?;
    rows.row(&[1.0], 1.0);
    let (data, engine) = (rows.build(), Threads::new(1));
    // A multiplier of 1 for one row has a scale of 2^40 grid units.
    fn rate<M: Mechanism>(run: &mut Run<'_>, mechanism: &M, samples: usize) -> Result<f64, privfit::KernelError> {
        const DIMENSION: usize = 1 << 20;
        let draws = samples.div_ceil(DIMENSION).max(1);
        run.at(mechanism, |run, scale| {
            run.draw(&scale, DIMENSION)?;
            let (result, seconds) = timed(|| (0..draws).try_for_each(|_| run.draw(&scale, DIMENSION).map(drop)));
            result?;
            Ok((draws * DIMENSION) as f64 / seconds)
        })
    }
    let gaussian = Gaussian::new(1.0, 1.0, 1)?;
    let laplace = Laplace::new(1.0, 1.0, 1)?;
    let mut run = Run::begin(&data, &engine, &entropy, &Event::Compose(vec![]))?;
    let out = json!({
        "scale": "2^40",
        "generator": "ChaCha20",
        "discrete_gaussian_per_second": rate(&mut run, &gaussian, samples)?,
        "discrete_laplace_per_second": rate(&mut run, &laplace, samples)?,
    });
    print_line(&out.to_string());
    Ok(())
}
