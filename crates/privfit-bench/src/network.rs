//! `privfit-bench network`: steps of private training of a network, in the lines that other tools print (`../shared/peers/dpsgd.py`): random images, Poisson samples, clipped gradients,
//! exact noise, the step; reading apart.

use crate::measure::{peak_memory, processor_time};
use crate::{Failure, print_line};
use privfit::account::Event;
use privfit::engine::Threads;
use privfit::kernel::{Clipping, DatasetBuilder, Entropy, Gaussian, Rate, RowShape, Run};
use privfit::network::{Layer, Network, Shape};
use serde_json::json;
use std::time::Instant;

/// Images in the data set.
const ROWS: usize = 60_000;

pub(crate) fn run(
    model: &str,
    activation: &str,
    batch: usize,
    threads: usize,
    seconds: f64,
    repeats: usize,
) -> Result<(), Failure> {
    let image = Shape { height: 28, width: 28, channels: 1 };
    let act = activation;
    let layers: Vec<&str> = match model {
        "linear" => vec!["flatten"],
        "cnn" => vec![
            "convolution 16 8 stride 2 padding 3",
            act,
            "max_pool 2 stride 1",
            "convolution 32 4 stride 2",
            act,
            "max_pool 2 stride 1",
            "flatten",
            "dense 32",
            act,
        ],
        _ => return Err(Failure::misuse("--model is linear or cnn")),
    };
    let layers: Vec<Layer> = layers.into_iter().map(Layer::parse).collect::<Result<_, _>>()?;
    let network = Network::new(image, &layers, 10, 28.0, 0.0)?;
    let entropy = Entropy::system()?;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let shape = RowShape { dimension: image.size(), row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&entropy, shape)?;
    let mut row = vec![0f64; image.size()];
    for _ in 0..ROWS {
        row.iter_mut().for_each(|x| *x = uniform() / 28.0);
        builder.row(&row, (uniform() * 10.0) as f32 as u8 as f32);
    }
    let data = builder.build();
    let held = peak_memory();
    let d = network.dimension();
    let mut weights: Vec<f64> = (0..d).map(|_| 0.1 * (uniform() - 0.5)).collect();
    let (engine, nothing) = (Threads::new(threads), Event::NotPrivate { why: "a measurement".into() });
    let mut run = Run::begin(&data, &engine, &entropy, &nothing)?;
    let rate = Rate::new(batch as f64 / ROWS as f64)?;
    let mechanism = Gaussian::for_blocks(1.0, network.error(), 1.1, ROWS as u64, d)?;
    let mut step = || -> Result<(), Failure> {
        let prepared = network.prepare(&weights);
        let gradient = run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, d)?;
            let value = run.poisson(rate)?.sum_blocks(&noise, &network.blocks(&prepared, Clipping::Norm))?;
            run.release(noise, &value)
        })?;
        weights.iter_mut().zip(gradient).for_each(|(w, g)| *w -= 0.05 * g / batch as f64);
        Ok(())
    };
    let begin = Instant::now();
    step()?;
    let first = begin.elapsed().as_secs_f64();
    let (mut by_clock, mut by_processor) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        let (clock, processor, mut steps) = (Instant::now(), processor_time(), 0);
        while clock.elapsed().as_secs_f64() < seconds || steps < 3 {
            step()?;
            steps += 1;
        }
        let seen = (steps * batch) as f64;
        by_clock.push(seen / clock.elapsed().as_secs_f64());
        by_processor.push(seen / (processor_time() - processor));
    }
    let out = json!({
        "bench": "dpsgd", "peer": "privfit", "version": concat!("privfit ", env!("CARGO_PKG_VERSION")), "model": model, "act": activation, "batch": batch,
        "threads": threads, "first_step_s": first, "ex_per_s": by_clock, "ex_per_cpu_s": by_processor, "rss_mb": peak_memory() as u64,
        "mb_above_the_data": peak_memory() - held,
    });
    print_line(&out.to_string());
    Ok(())
}
