//! `privfit bench`: numbers about this machine, as JSON. Times are processor times.

use crate::{Misuse, print_line};
use clap::{Args, Subcommand};
use privfit::account::{Adjacency, Event, epsilon};
use privfit::engine::Threads;
use privfit::privacy::{DatasetBuilder, Entropy, Gaussian, Laplace, Mechanism, RowShape, Run};
use serde_json::json;

/// Measure this machine: noise, accounting, gradients, sparse rows
#[derive(Args)]
#[command(after_help = "Examples:
  privfit bench noise
  privfit bench account --repeats 10
  privfit bench gradient --rows 1000000 --features 100")]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Exact noise samples a second on one core, as drawn for a release
    #[command(after_help = "Example:\n  privfit bench noise --samples 10000000")]
    Noise {
        /// Samples to draw
        #[arg(long, default_value_t = 20_000_000)]
        samples: usize,
    },
    /// Certified epsilon of five well-known settings, with processor time and memory
    #[command(after_help = "Example:\n  privfit bench account --repeats 10 --only tinyq")]
    Account {
        /// Runs of each setting; the fastest counts
        #[arg(long, default_value_t = 5)]
        repeats: usize,
        /// One setting: mnist60ep, abadi, tinyq, largebatch or gauss
        #[arg(long)]
        only: Option<String>,
    },
    /// Gradient sum of a logistic model: 16-bit rows against fused f64 and f32 loops
    #[command(after_help = "Example:\n  privfit bench gradient --rows 1000000 --features 100 --repeats 5")]
    Gradient {
        /// Rows
        #[arg(long, default_value_t = 1_000_000)]
        rows: usize,
        /// Features of a row
        #[arg(long, default_value_t = 100)]
        features: usize,
        /// Runs of each loop; the fastest counts
        #[arg(long, default_value_t = 5)]
        repeats: usize,
    },
    /// Frank-Wolfe on generated sparse rows: scores kept from step to step against scores summed anew, with peak memory
    #[command(
        after_help = "Example:\n  privfit bench sparse --rows 20000 --features 1000000 --non-zeros 100 --steps 1000 --zipf"
    )]
    Sparse {
        /// Rows
        #[arg(long, default_value_t = 20_000)]
        rows: usize,
        /// Features
        #[arg(long, default_value_t = 1_000_000)]
        features: usize,
        /// Non-zero cells of a row
        #[arg(long, default_value_t = 100)]
        non_zeros: usize,
        /// Steps
        #[arg(long, default_value_t = 1000)]
        steps: u64,
        /// Feature j in proportion to 1/j; all alike by default
        #[arg(long)]
        zipf: bool,
        /// Epsilon that the noise is for, at delta 1/rows^2
        #[arg(long, default_value_t = 1.0)]
        epsilon: f64,
        /// Steps of the slow way that are timed; the time of all steps is scaled from them
        #[arg(long, default_value_t = 20)]
        compare: u64,
    },
    /// Published tables: every published method with what it truly guarantees, next to ours; resumable
    #[command(after_help = "Examples:\n  privfit bench tables convex --shared ../shared --out bench/convex\n  \
privfit bench tables sparse --shared ../shared --out bench/sparse\n\n\
Finished cells are kept in the output directory; a run that was stopped goes on where it was.")]
    Tables {
        /// Which tables: convex, sparse
        which: String,
        /// Directory with data and schemas
        #[arg(long, default_value = "../shared")]
        shared: std::path::PathBuf,
        /// Where CSV files, tables and plots go; bench/convex or bench/sparse by default
        #[arg(long)]
        out: Option<std::path::PathBuf>,
        /// Only data sets whose name contains one of these
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Two fits to a cell: to see that everything runs
        #[arg(long)]
        quick: bool,
    },
    /// Round trips of a ledger (reserve and commit) on this disk, and a fit with a ledger against one without, in turns
    #[command(after_help = "Example:\n  privfit bench ledger --job examples/adult/job.toml --directory .")]
    Ledger {
        /// Job that is fitted
        #[arg(long)]
        job: std::path::PathBuf,
        /// Directory on the disk that is measured
        #[arg(long, default_value = ".")]
        directory: std::path::PathBuf,
        /// Round trips, and a tenth of it of fits
        #[arg(long, default_value_t = 200)]
        repeats: usize,
    },
    /// Private logistic regression on a directory with Xtr.npy, ytr.npy, Xte.npy, yte.npy and meta.json; one JSON line for each fit
    #[command(after_help = "Example:\n  privfit bench fit --data DATA/syn50k --epsilon 0.1,1,8 --repeats 3 --threads 1")]
    Fit {
        /// Directory with the training part
        #[arg(long)]
        data: std::path::PathBuf,
        /// Directory with the test part, if it is another one
        #[arg(long)]
        test: Option<std::path::PathBuf>,
        /// Epsilons
        #[arg(long, value_delimiter = ',', default_value = "0.1,0.5,1,2,4,8")]
        epsilon: Vec<f64>,
        /// Delta; 1/n^2 by default
        #[arg(long)]
        delta: Option<f64>,
        /// Fits at each epsilon
        #[arg(long, default_value_t = 1)]
        repeats: usize,
        /// Threads
        #[arg(long, default_value_t = 1)]
        threads: usize,
    },
}

/// Processor time of this process in seconds.
pub(crate) fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Largest resident memory so far, in megabytes.
pub(crate) fn peak_memory() -> f64 {
    // SAFETY: the structure is plain data and lives here.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    usage.ru_maxrss as f64 / 1024.0
}

fn timed<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let start = processor_time();
    let out = f();
    (out, processor_time() - start)
}

impl Bench {
    pub(crate) fn run(self) -> Result<(), crate::Failure> {
        let failed = |e: privfit::KernelError| Misuse(e.to_string());
        match self.what {
            What::Noise { samples } => Ok(noise(samples).map_err(failed)?),
            What::Account { repeats, only } => Ok(account(repeats.max(1), only.as_deref())?),
            What::Fit { data, test, epsilon, delta, repeats, threads } => {
                super::bench_fit::run(&super::bench_fit::Options { data, test, epsilon, delta, repeats, threads })
            }
            What::Ledger { job, directory, repeats } => super::bench_ledger::run(&job, &directory, repeats.max(10)),
            What::Sparse { rows, features, non_zeros, steps, zipf, epsilon, compare } => {
                let options = super::bench_sparse::Options { rows, features, non_zeros, steps, zipf, epsilon, compare };
                super::bench_sparse::run(&options)
            }
            What::Tables { which, shared, out, only, quick } => {
                let out = out.unwrap_or_else(|| std::path::Path::new("bench").join(&which));
                let options = super::tables::Options { shared, out, only, quick };
                match which.as_str() {
                    "convex" => super::tables::run(&options),
                    "sparse" => super::tables::sparse::run(&options),
                    _ => Err(crate::Failure::misuse(format!("no tables {which:?}: give convex or sparse"))),
                }
            }
            What::Gradient { rows, features, repeats } => {
                if rows == 0 || features == 0 {
                    return Err(crate::Failure::misuse("--rows and --features must be at least 1: give whole numbers"));
                }
                Ok(gradient(rows, features, repeats.max(1)).map_err(failed)?)
            }
        }
    }
}

type Result<T, E = privfit::KernelError> = std::result::Result<T, E>;

fn noise(samples: usize) -> Result<()> {
    let entropy = Entropy::system()?;
    let mut rows = DatasetBuilder::new(&entropy, RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None })?;
    rows.row(&[1.0], 1.0);
    let (data, engine) = (rows.build(), Threads::new(1));
    // A multiplier of 1 for one row has a scale of 2^40 grid units.
    fn rate<M: Mechanism>(run: &mut Run<'_>, mechanism: &M, samples: usize) -> Result<f64> {
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

/// Sampling rate, noise multiplier, steps, delta.
const SETTINGS: [(&str, f64, f64, u64, f64); 5] = [
    ("mnist60ep", 256.0 / 60000.0, 1.1, 14063, 1e-5),
    ("abadi", 0.01, 4.0, 10000, 1e-5),
    ("tinyq", 1e-4, 0.8, 1_000_000, 1e-8),
    ("largebatch", 0.2, 10.0, 2000, 1e-6),
    ("gauss", 1.0, 50.0, 1000, 1e-6),
];

fn account(repeats: usize, only: Option<&str>) -> Result<(), Misuse> {
    if let Some(name) = only
        && !SETTINGS.iter().any(|s| s.0 == name)
    {
        return Err(Misuse(format!("the setting {name:?} is unknown: use mnist60ep, abadi, tinyq, largebatch or gauss")));
    }
    for (name, rate, noise, steps, delta) in SETTINGS.iter().filter(|s| only.is_none_or(|o| o == s.0)) {
        let event = Event::gaussian(*noise).sampled(*rate).repeated(*steps);
        let (mut best, mut answer) = (f64::INFINITY, None);
        for _ in 0..repeats {
            let (result, seconds) = timed(|| epsilon(&event, Adjacency::AddRemove, *delta));
            best = best.min(seconds);
            answer = Some(result.map_err(|e| Misuse(e.to_string()))?);
        }
        let Some(answer) = answer else { continue };
        let (lower, upper) = (answer.bound.lower, answer.bound.upper);
        let out = json!({
            "bench": "accounting", "peer": "privfit", "setting": name, "eps": upper, "lower": lower, "upper": upper,
            "relative_gap": (upper - lower) / upper, "accountant": answer.accountant,
            "cpu_s": best, "rss_mb": peak_memory(), "repeats": repeats,
        });
        print_line(&out.to_string());
    }
    Ok(())
}

/// The loops that people write today: one pass, fused, with per-row scores, slopes and sums in floating point.
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
                    let slope = -y / (1.0 + (score * y).exp());
                    for (o, x) in out.iter_mut().zip(row) {
                        *o += slope * x;
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
fn gradient(rows: usize, features: usize, repeats: usize) -> Result<()> {
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
        crate::note("note: this processor lacks AVX2 and FMA, so there is nothing to compare");
        return Ok(());
    }
    let fastest = |f: &mut dyn FnMut()| (0..repeats).map(|_| timed(&mut *f).1).fold(f64::INFINITY, f64::min);

    let mechanism = Gaussian::for_gradients(1.0, 1.0)?;
    let mut totals: Vec<Vec<f64>> = Vec::new();
    let loss = privfit::loss::logistic::logistic(1, 2, 1.0, [1.0, 1.0]);
    let mut ours = |threads: usize| -> Result<f64> {
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
