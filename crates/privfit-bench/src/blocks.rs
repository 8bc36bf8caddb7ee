//! `privfit-bench blocks`: what the kernel adds to a step of a network. A network that costs nothing, so that what is measured is sampling,
//! gathering, clipping, the sum on the grid and the release; noise apart.

use crate::{Failure, print_line};
use privfit::account::Event;
use privfit::engine::Threads;
use privfit::kernel::{Blockwise, Clipping, DatasetBuilder, Entropy, Gaussian, Rate, RowShape, Run};
use serde_json::json;
use std::time::Instant;

/// Norms of 1 and no vector at all.
fn free(dimension: usize) -> Blockwise<'static> {
    Blockwise {
        name: "free",
        dimension,
        error: 1e-5,
        exact: false,
        clipping: Clipping::Norm,
        labels: (0.0, 1.0),
        parameters: &[],
        layout: &[],
        scratch: 0,
        at_once: 128,
        norms: |_, _, _, out| out.fill(1.0),
        weighted: |_, _, _, _, _| {},
    }
}

/// The value of a call, and its seconds by the clock: several threads work on it.
fn timed<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let out = f();
    (out, start.elapsed().as_secs_f64())
}

pub(crate) fn run(rows: usize, batch: usize, parameters: usize, large: usize, steps: usize) -> Result<(), Failure> {
    let entropy = Entropy::system()?;
    let shape = RowShape { dimension: 16, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&entropy, shape)?;
    (0..rows).for_each(|i| builder.row(&[0.1; 16], (i % 2) as f32));
    let data = builder.build();
    let rate = Rate::new(batch as f64 / rows as f64)?;
    let nothing = Event::NotPrivate { why: "a measurement".into() };
    let mut out = json!({"rows": rows, "batch": batch, "parameters": parameters, "large": large, "steps": steps});
    let mut seconds = Vec::new();
    for threads in [1, std::thread::available_parallelism().map_or(1, |n| n.get())] {
        let engine = Threads::new(threads);
        let mut run = Run::begin(&data, &engine, &entropy, &nothing)?;
        // One step of a network of this size: noise first, then everything else.
        let mut step = |dimension: usize| -> Result<(f64, f64, f64), privfit::KernelError> {
            let mechanism = Gaussian::for_blocks(1.0, 1e-5, 1.0, rows as u64, dimension)?;
            run.at(&mechanism, |run, scale| {
                let (noise, drawn) = timed(|| run.draw(&scale, dimension));
                let noise = noise?;
                let (value, summed) = timed(|| run.poisson(rate)?.sum_blocks(&noise, &free(dimension)));
                let value = value?;
                let (released, opened) = timed(|| run.release(noise, &value));
                released?;
                Ok((drawn, summed, opened))
            })
        };
        for (name, dimension) in [("parameters", parameters), ("large", large)] {
            step(dimension)?;
            let mut all = (0..steps).map(|_| step(dimension)).collect::<Result<Vec<_>, _>>()?;
            // The median step.
            all.sort_by(|a, b| (a.0 + a.1 + a.2).total_cmp(&(b.0 + b.1 + b.2)));
            seconds.push((threads, name, all[steps / 2]));
        }
    }
    for (threads, name, (drawn, summed, opened)) in seconds {
        out[format!("{name} on {threads} threads")] = json!({
            "noise_ms": 1e3 * drawn, "sample_and_sum_ms": 1e3 * summed, "release_ms": 1e3 * opened,
            "step_ms": 1e3 * (drawn + summed + opened), "examples_per_second_without_noise": batch as f64 / (summed + opened),
        });
    }
    print_line(&out.to_string());
    Ok(())
}
