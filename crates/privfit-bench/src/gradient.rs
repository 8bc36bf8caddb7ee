//! `privfit-bench gradient`: the gradient sum of a logistic model on 16-bit rows against fused loops in double and single precision.

use crate::measure::timed;
use crate::{Failure, print_line};
use privfit::account::Event;
use privfit::engine::Threads;
use privfit::kernel::{DatasetBuilder, Entropy, Gaussian, Mechanism, RowShape, Run};
use serde_json::json;

/// The loops that people write today: one pass, fused, with per-row scores, derivatives and sums in floating point.
mod reference {
    macro_rules! fused {
        ($name:ident, $wide:ident, $float:ty, $lanes:expr) => {
            #[inline(always)]
            fn $name(rows: &[$float], labels: &[$float], weights: &[$float], out: &mut [$float]) {
                let d = weights.len();
                for (row, y) in rows.chunks_exact(d).zip(labels) {
                    let mut lanes = [0.0 as $float; $lanes];
                    let (row_chunks, weight_chunks) = (row.chunks_exact($lanes), weights.chunks_exact($lanes));
                    let rest = row_chunks.remainder().iter().zip(weight_chunks.remainder()).map(|(x, w)| x * w).sum::<$float>();
                    for (x, w) in row_chunks.zip(weight_chunks) {
                        for i in 0..$lanes {
                            lanes[i] += x[i] * w[i];
                        }
                    }
                    // A tree, so that the sum of lanes is not one long chain.
                    let mut width = $lanes / 2;
                    while width > 0 {
                        for i in 0..width {
                            lanes[i] += lanes[i + width];
                        }
                        width /= 2;
                    }
                    let score = lanes[0] + rest;
                    let derivative = -y / (1.0 + (score * y).exp());
                    for (o, x) in out.iter_mut().zip(row) {
                        *o += derivative * x;
                    }
                }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            pub(super) fn $wide(rows: &[$float], labels: &[$float], weights: &[$float], out: &mut [$float]) {
                $name(rows, labels, weights, out);
            }

            #[cfg(not(target_arch = "x86_64"))]
            pub(super) fn $wide(rows: &[$float], labels: &[$float], weights: &[$float], out: &mut [$float]) {
                $name(rows, labels, weights, out);
            }
        };
    }
    fused!(double_loop, double, f64, 16);
    fused!(single_loop, single, f32, 32);
}

#[allow(unused_unsafe)]
pub(crate) fn run(rows: usize, features: usize, repeats: usize) -> Result<(), Failure> {
    if rows == 0 || features == 0 {
        return Err(Failure::misuse("--rows and --features must be at least 1: give whole numbers"));
    }
    let entropy = Entropy::simulated(1);
    let shape = RowShape { dimension: features, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&entropy, shape)?;
    // Random directions of norm 1 from a small generator; speed does not depend on them.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
    };
    let mut single = Vec::with_capacity(rows * features);
    let mut labels = Vec::with_capacity(rows);
    let mut row = vec![0f64; features];
    for _ in 0..rows {
        row.iter_mut().for_each(|x| *x = uniform());
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        row.iter_mut().for_each(|x| *x /= norm);
        let label: f32 = if uniform() < 0.0 { -1.0 } else { 1.0 };
        builder.row(&row, label.max(0.0));
        single.extend(row.iter().map(|x| *x as f32));
        labels.push(label);
    }
    let data = builder.build();
    let weights: Vec<f64> = (0..features).map(|i| ((i * 37 % 19) as f64 - 9.0) * 0.3).collect();
    #[cfg(target_arch = "x86_64")]
    if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
        eprintln!("note: this processor lacks AVX2 and FMA, so there is nothing to compare");
        return Ok(());
    }
    let fastest = |f: &mut dyn FnMut()| (0..repeats).map(|_| timed(&mut *f).1).fold(f64::INFINITY, f64::min);

    let mechanism = Gaussian::for_gradients(1.0, 1.0)?;
    let mut totals: Vec<Vec<f64>> = Vec::new();
    let loss = privfit::kernel::loss::logistic(1, 2, 1.0, [1.0, 1.0]);
    let mut ours = |threads: usize| -> Result<f64, privfit::KernelError> {
        let engine = Threads::new(threads);
        let planned = Event::AtMost { times: 1000, event: Box::new(mechanism.event(features)) };
        // The same key for both thread counts, so that released totals can be compared.
        let keys = Entropy::simulated(2);
        let mut run = Run::begin(&data, &engine, &keys, &planned)?;
        let mut best = f64::INFINITY;
        run.at(&mechanism, |run, scale| {
            for i in 0..repeats {
                let noise = run.draw(&scale, features)?;
                let batch = run.everyone()?;
                let (sum, seconds) = timed(|| batch.gradient_sum(&noise, &weights, &loss));
                best = best.min(seconds);
                let total = run.release(noise, &sum?)?;
                if i == 0 {
                    totals.push(total);
                }
            }
            Ok(())
        })?;
        Ok(best)
    };
    let integer = ours(1)?;
    ours(2)?;
    let identical = totals[0] == totals[1];

    let single_weights: Vec<f32> = weights.iter().map(|w| *w as f32).collect();
    let mut single_sum = vec![0f32; features];
    // SAFETY: the processor has the instructions, checked above.
    let single_time = fastest(&mut || unsafe { reference::single(&single, &labels, &single_weights, &mut single_sum) });
    let double: Vec<f64> = single.iter().map(|x| f64::from(*x)).collect();
    drop(single);
    let double_labels: Vec<f64> = labels.iter().map(|y| f64::from(*y)).collect();
    let mut double_sum = vec![0f64; features];
    // SAFETY: as above.
    let double_time = fastest(&mut || unsafe { reference::double(&double, &double_labels, &weights, &mut double_sum) });
    let bytes = (rows * features * 2) as f64;
    let noise = mechanism.standard_deviation();
    let worst = totals[0].iter().zip(&double_sum).map(|(a, b)| (a - b / repeats as f64).abs()).fold(0.0, f64::max);
    let out = json!({
        "rows": rows, "features": features, "repeats": repeats,
        "integer_cpu_s": integer, "single_cpu_s": single_time, "double_cpu_s": double_time,
        "ratio_to_double": integer / double_time, "ratio_to_single": integer / single_time,
        "gigabytes_per_second": bytes / integer * 1e-9,
        "totals_identical_for_1_and_2_threads": identical,
        "largest_difference_to_double_in_noise_deviations": worst / noise,
    });
    print_line(&out.to_string());
    Ok(())
}
