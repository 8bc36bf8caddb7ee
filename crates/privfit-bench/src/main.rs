//! The `privfit-bench` command: numbers about this machine, as JSON, and the published tables. Times are processor times. It is a program of
//! its own, so that the one that people install carries neither benchmarks nor plots.

mod accounting;
mod blocks;
mod cells;
mod chart;
mod factors;
mod fit;
mod gradient;
mod ledger;
mod measure;
mod network;
mod noise;
mod progress;
mod sparse;
mod tables;

use clap::{Parser, Subcommand};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Measure this machine: noise, accounting, gradients, sparse rows, fits; published tables
#[derive(Parser)]
#[command(
    name = "privfit-bench",
    version,
    max_term_width = 110,
    after_help = "Examples:
  privfit-bench noise
  privfit-bench account --repeats 10
  privfit-bench gradient --rows 1000000 --features 100"
)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What the kernel adds to a step of a network: sampling, gathering, clipping, release
    #[command(after_help = "Example:\n  privfit-bench blocks --rows 60000 --batch 256 --parameters 26000")]
    Blocks {
        /// Records
        #[arg(long, default_value_t = 60_000)]
        rows: usize,
        /// Records of a step on average
        #[arg(long, default_value_t = 256)]
        batch: usize,
        /// Parameters of the network
        #[arg(long, default_value_t = 26_000)]
        parameters: usize,
        /// Parameters of a larger one
        #[arg(long, default_value_t = 600_000)]
        large: usize,
        /// Steps of which the median is taken
        #[arg(long, default_value_t = 101)]
        steps: usize,
    },
    /// Examples a second in private training of a network on random images
    #[command(after_help = "Example:\n  privfit-bench network --model cnn --batch 256 --threads 1")]
    Network {
        /// linear or cnn
        #[arg(long, default_value = "cnn")]
        model: String,
        /// relu or tanh
        #[arg(long, default_value = "relu")]
        act: String,
        /// Examples of a step on average
        #[arg(long, default_value_t = 256)]
        batch: usize,
        /// Threads
        #[arg(long, default_value_t = 1)]
        threads: usize,
        /// Seconds of a measurement
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Measurements
        #[arg(long, default_value_t = 3)]
        repeats: usize,
    },
    /// Exact noise samples a second on one core, as drawn for a release
    #[command(after_help = "Example:\n  privfit-bench noise --samples 10000000")]
    Noise {
        /// Samples to draw
        #[arg(long, default_value_t = 20_000_000)]
        samples: usize,
    },
    /// Certified epsilon of five well-known settings, with processor time and memory
    #[command(after_help = "Example:\n  privfit-bench account --repeats 10 --only tinyq")]
    Account {
        /// Runs of each setting; the fastest counts
        #[arg(long, default_value_t = 5)]
        repeats: usize,
        /// One setting: mnist60ep, abadi, tinyq, largebatch or gauss
        #[arg(long)]
        only: Option<String>,
    },
    /// Sensitivity and error of factors of correlated noise, one JSON line for each
    #[command(after_help = "Example:\n  privfit-bench factors --steps 100,2048 --bands 4,16 --separations 7 --decays 0.9")]
    Factors {
        /// Steps
        #[arg(long, value_delimiter = ',', default_value = "2048")]
        steps: Vec<u64>,
        /// Bands of the inverse square root
        #[arg(long, value_delimiter = ',', default_value = "4,16")]
        bands: Vec<usize>,
        /// Batches of an epoch
        #[arg(long, value_delimiter = ',', default_value = "32")]
        separations: Vec<u64>,
        /// Parts of the last noise that geometric factors take back
        #[arg(long, value_delimiter = ',', default_value = "0.9")]
        decays: Vec<f64>,
    },
    /// Gradient sum of a logistic model: 16-bit rows against fused f64 and f32 loops
    #[command(after_help = "Example:\n  privfit-bench gradient --rows 1000000 --features 100 --repeats 5")]
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
    /// One pass over rows of cells against one gradient pass over rows of as many features; five trees
    #[command(after_help = "Example:\n  privfit-bench cells --rows 1000000 --columns 30")]
    Cells {
        /// Rows
        #[arg(long, default_value_t = 1_000_000)]
        rows: usize,
        /// Columns of a row
        #[arg(long, default_value_t = 30)]
        columns: usize,
        /// Cells of a column
        #[arg(long, default_value_t = 131)]
        cells: usize,
        /// Runs of each pass; the fastest counts
        #[arg(long, default_value_t = 5)]
        repeats: usize,
        /// Threads
        #[arg(long, default_value_t = 1)]
        threads: usize,
    },
    /// Frank-Wolfe on generated sparse rows: scores kept from step to step against scores summed anew, with peak memory
    #[command(
        after_help = "Example:\n  privfit-bench sparse --rows 20000 --features 1000000 --non-zeros 100 --steps 1000 --zipf"
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
    #[command(after_help = "Examples:\n  privfit-bench tables convex --shared ../shared --out bench/convex\n  \
privfit-bench tables sparse --shared ../shared --out bench/sparse\n  \
privfit-bench tables nonconvex --shared ../shared --out bench/nonconvex\n\n\
Finished cells are kept in the output directory; a run that was stopped goes on where it was.")]
    Tables {
        /// Which tables: convex, sparse, nonconvex
        which: String,
        /// Directory with data and schemas
        #[arg(long, default_value = "../shared")]
        shared: std::path::PathBuf,
        /// Where CSV files, tables and plots go; a directory in bench by default
        #[arg(long)]
        out: Option<std::path::PathBuf>,
        /// Only data sets whose name contains one of these
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Two fits to a cell: to see that everything runs
        #[arg(long)]
        quick: bool,
    },
    /// Settings of networks side by side: accuracy, log loss and forecast of correlated noise, on validation rows unless asked otherwise; one JSON line each
    #[command(
        after_help = "Example:\n  privfit-bench variants --set mnist --epsilon 2,8 --fits 4 --variant correlated=true --variant 'correlated=false sampling_rate=0.1'"
    )]
    Variants {
        /// mnist, fashion, cifar, each with -pixels for pixels instead of scattering features; generated-pictures, generated-table
        #[arg(long, value_delimiter = ',', default_value = "mnist")]
        set: Vec<String>,
        /// Epsilons
        #[arg(long, value_delimiter = ',', default_value = "8")]
        epsilon: Vec<f64>,
        /// Settings, key=value with spaces between; several times for several variants
        #[arg(long)]
        variant: Vec<String>,
        /// Fits of each
        #[arg(long, default_value_t = 3)]
        fits: u64,
        /// Test files, after all rows for training, instead of validation rows
        #[arg(long)]
        test: bool,
        /// Directory with data
        #[arg(long, default_value = "../shared")]
        shared: std::path::PathBuf,
    },
    /// Round trips of a ledger (reserve and commit) on this disk, and a fit with a ledger against one without, in turns
    #[command(after_help = "Example:\n  privfit-bench ledger --job examples/adult/job.toml --directory .")]
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
    #[command(after_help = "Example:\n  privfit-bench fit --data DATA/syn50k --epsilon 0.1,1,8 --repeats 3 --threads 1")]
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

/// Why a benchmark failed.
pub(crate) struct Failure(privfit::Error);

impl Failure {
    /// One sentence that ends with the fix.
    pub(crate) fn misuse(text: impl Into<String>) -> Failure {
        Failure(privfit::Error::misuse(text))
    }
}

impl<E: Into<privfit::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.into())
    }
}

/// Prints a line; a reader who has seen enough is no failure.
pub(crate) fn print_line(line: &str) {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Ok(()) => {}
        Err(e) => std::process::exit(if e.kind() == ErrorKind::BrokenPipe { 0 } else { 3 }),
    }
}

fn run(what: What) -> Result<(), Failure> {
    match what {
        What::Blocks { rows, batch, parameters, large, steps } => blocks::run(rows, batch, parameters, large, steps),
        What::Network { model, act, batch, threads, seconds, repeats } => {
            network::run(&model, &act, batch, threads, seconds, repeats)
        }
        What::Noise { samples } => noise::run(samples),
        What::Factors { steps, bands, separations, decays } => factors::run(&steps, &bands, &separations, &decays),
        What::Account { repeats, only } => accounting::run(repeats.max(1), only.as_deref()),
        What::Fit { data, test, epsilon, delta, repeats, threads } => {
            fit::run(&fit::Options { data, test, epsilon, delta, repeats, threads })
        }
        What::Ledger { job, directory, repeats } => ledger::run(&job, &directory, repeats.max(10)),
        What::Sparse { rows, features, non_zeros, steps, zipf, epsilon, compare } => {
            sparse::run(&sparse::Options { rows, features, non_zeros, steps, zipf, epsilon, compare })
        }
        What::Tables { which, shared, out, only, quick } => {
            let out = out.unwrap_or_else(|| std::path::Path::new("bench").join(&which));
            let options = tables::Options { shared, out, only, quick };
            match which.as_str() {
                "convex" => tables::run(&options),
                "sparse" => tables::sparse::run(&options),
                "nonconvex" => tables::nonconvex::run(&options),
                _ => Err(Failure::misuse(format!("no tables {which:?}: give convex, sparse or nonconvex"))),
            }
        }
        What::Variants { set, epsilon, variant, fits, test, shared } => tables::variants::run(&tables::variants::Options {
            sets: set,
            epsilons: epsilon,
            variants: variant,
            fits,
            test,
            shared,
        }),
        What::Gradient { rows, features, repeats } => gradient::run(rows, features, repeats.max(1)),
        What::Cells { rows, columns, cells, repeats, threads } => cells::run(rows, columns, cells, repeats, threads.max(1)),
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(error)) => {
            eprintln!("error: {error}");
            ExitCode::from(error.code())
        }
    }
}
