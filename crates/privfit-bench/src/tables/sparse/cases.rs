//! What is computed: the designs of the published figures, and what stands for the sets of the published tables.

use crate::Failure;
use crate::tables::sets::{Set, madelon, text};
use privfit::Schema;
use privfit::account::Adjacency;
use privfit::data::cells::RowForm;
use privfit::data::encode::Row;
use privfit::data::generate::{Design, Drawn, Texts, per_unit, private, public};
use privfit::kernel::{Dataset, Entropy, PublicRows};
use std::path::Path;
use std::sync::Arc;

/// Where a case belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    /// A published figure: error over epsilon.
    Figure,
    /// A published table, by its number.
    Table(&'static str),
    /// Texts with default settings only, beside methods that are not sparse.
    Defaults,
}

/// Where rows come from.
#[derive(Clone, Copy)]
enum Source {
    Design(Design),
    /// Rows for training, for testing, and public ones; half of the squared error or all of it.
    Texts(Texts, [usize; 3], f64),
    Real(fn(&Path) -> Result<Set, Failure>),
}

/// A data set with everything that is public about it.
#[derive(Clone)]
pub(super) struct Case {
    /// Without commas.
    pub(super) name: String,
    pub(super) part: Part,
    pub(super) loss: &'static str,
    pub(super) epsilons: Vec<f64>,
    pub(super) delta: f64,
    pub(super) adjacency: Adjacency,
    /// Declared number of columns.
    pub(super) sparsity: usize,
    /// As chapter 3 has it: knowledge transfer takes part; for real sets half of the rows are public.
    pub(super) third: bool,
    /// Fits take long.
    pub(super) large: bool,
    pub(super) quick: bool,
    /// Sizes that rules of publications ask for; of designs only.
    pub(super) rows: f64,
    pub(super) features: f64,
    pub(super) seeds: usize,
    source: Source,
}

/// What a model is measured against.
pub(super) enum Judge {
    /// The true weights: relative error.
    Truth(Box<Drawn>),
    /// Rows with classes: part that is wrong.
    Classes(Arc<Vec<Row>>),
    /// Rows with numbers: mean squared error times a factor; half of the range of numbers.
    Numbers(Vec<Row>, f64, f64),
}

/// One draw of the data.
pub(super) struct Sample {
    pub(super) train: Arc<Dataset>,
    pub(super) judge: Judge,
}

/// The rows of a case.
pub(super) struct Data {
    pub(super) schema: Schema,
    pub(super) rows: u64,
    /// A sample for each seed; one for all of them if rows are not drawn.
    pub(super) samples: Vec<Sample>,
    pub(super) public: Option<Arc<PublicRows>>,
    /// Radii of L1 balls to try, near that of the truth where it is known.
    pub(super) radii: Vec<f64>,
}

const EVEN: [f64; 5] = [2.0, 4.0, 6.0, 8.0, 10.0];

/// Every case, in the order of the report.
pub(super) fn all(quick: bool) -> Vec<Case> {
    let mut out = Vec::new();
    let mut figure = |chapter: usize, (n, d, s): (usize, usize, usize), classes: bool, epsilons: &[f64], seeds: usize| {
        let loss = if classes { "logistic" } else { "linear" };
        let design = if chapter == 2 { Design::scaled } else { Design::bounded };
        let (rows, features) = if quick { (n / 8, d / 8) } else { (n, d) };
        out.push(Case {
            name: format!("chapter {chapter} {loss} n={n} d={d}{}", if quick { " small" } else { "" }),
            part: Part::Figure,
            loss,
            epsilons: epsilons.to_vec(),
            delta: 0.01,
            adjacency: Adjacency::ReplaceOne,
            sparsity: s,
            // A student on thousands of full rows of 5,000 cells takes minutes.
            third: chapter == 3 && d < 5000,
            large: n * d > 2_000_000,
            quick,
            rows: rows as f64,
            features: features as f64,
            seeds,
            source: Source::Design(design(rows, features, s, classes)),
        });
    };
    figure(3, (800, 1000, 10), false, &[0.8, 2.0, 3.5, 5.0], 10);
    figure(3, (800, 1000, 10), true, &EVEN, 10);
    figure(2, (1000, 1000, 10), false, &EVEN, 10);
    figure(2, (1000, 1000, 10), true, &EVEN, 10);
    figure(3, (20_000, 1000, 10), false, &[0.8], 5);
    figure(3, (4000, 5000, 50), false, &[0.8, 2.0, 5.0], 2);
    figure(2, (5000, 5000, 30), true, &[2.0, 4.0, 10.0], 4);
    figure(2, (5000, 5000, 30), false, &[2.0, 6.0, 10.0], 2);
    figure(3, (4000, 5000, 50), true, &[2.0, 6.0, 10.0], 2);
    let shrink = |n: usize| if quick { n / 50 } else { n };
    let mut numbers = |table: &'static str, sparsity: usize, epsilons: &[f64], delta: f64| {
        let third = table == "3.2";
        let words = shrink(if third { 25_000 } else { 50_000 });
        let sizes = if third { [8_044, 3_308, 1_000] } else { [16_087, 3_308, 0] }.map(shrink);
        let distribution =
            Texts { rows: sizes.iter().sum(), words, length: 140, sparsity: shrink(100).max(5), signal: 2.2, noise: 0.8 };
        out.push(Case {
            name: format!("texts for table {table} s={sparsity}{}", if quick { " small" } else { "" }),
            part: Part::Table(table),
            loss: "linear",
            epsilons: epsilons.to_vec(),
            delta,
            adjacency: Adjacency::ReplaceOne,
            sparsity: shrink(sparsity).max(5),
            third,
            large: true,
            quick,
            rows: sizes[0] as f64,
            features: words as f64,
            seeds: 3,
            source: Source::Texts(distribution, sizes, if third { 1.0 } else { 0.5 }),
        });
    };
    for sparsity in [2000, 100] {
        numbers("2.2", sparsity, &EVEN, 0.01);
    }
    numbers("3.2", 2000, &[0.8, 1.5, 2.5, 3.5, 4.5], 1e-5);
    let mut real = |part: Part, epsilons: &[f64], delta: f64, adjacency: Adjacency, seeds: usize| {
        for (name, sparsity, load) in REAL {
            out.push(Case {
                name: match part {
                    Part::Table(table) => format!("{name} for table {table}"),
                    _ => format!("{name} with defaults"),
                },
                part,
                loss: "logistic",
                epsilons: epsilons.to_vec(),
                delta,
                adjacency,
                // Weighted columns keep columns rather than weights, and keep more of them.
                sparsity: if part == Part::Defaults && *sparsity == 200 { 3000 } else { *sparsity },
                third: part == Part::Table("3.3"),
                large: false,
                quick,
                rows: 0.0,
                features: 0.0,
                seeds,
                source: Source::Real(*load),
            });
        }
    };
    real(Part::Table("2.3"), &EVEN, 0.01, Adjacency::ReplaceOne, 5);
    real(Part::Table("3.3"), &[2.0, 4.0, 6.0, 8.0], 1e-5, Adjacency::ReplaceOne, 5);
    real(Part::Defaults, &[2.0, 4.0, 8.0], 1e-5, Adjacency::ZeroOut, 10);
    if quick {
        out.iter_mut().for_each(|c| c.epsilons = vec![c.epsilons[0], c.epsilons[c.epsilons.len() - 1]]);
    }
    out.iter_mut().for_each(|c| c.epsilons.dedup());
    out
}

type Load = fn(&Path) -> Result<Set, Failure>;

/// Name, declared number of columns, rows.
const REAL: &[(&str, usize, Load)] = &[
    ("RCV1 sample", 200, |shared| text(shared, "rcv1_sample", 47_236, true, true)),
    ("PCMAC", 200, |shared| text(shared, "pcmac", 3_289, false, true)),
    ("RELATHE", 200, |shared| text(shared, "relathe", 4_322, false, true)),
    ("Madelon", 20, |shared| madelon(shared, true)),
];

impl Case {
    /// Rows are generated anew for each seed.
    pub(super) fn drawn(&self) -> bool {
        !matches!(self.source, Source::Real(_))
    }

    /// Draws or reads the rows, for so many seeds.
    pub(super) fn load(&self, shared: &Path, most: usize) -> Result<Data, Failure> {
        match self.source {
            Source::Design(design) => {
                let schema = design.schema()?;
                let mut samples = Vec::new();
                for seed in 0..most as u64 {
                    let mut drawn = design.draw(seed);
                    let train = Arc::new(drawn.dataset(&schema, &Entropy::simulated(seed))?);
                    // The truth is enough from here on.
                    (drawn.cells, drawn.labels) = (Vec::new(), Vec::new());
                    samples.push(Sample { train, judge: Judge::Truth(Box::new(drawn)) });
                }
                let typical = 0.5 * design.sparsity as f64 / per_unit(&schema);
                let radii = [0.25, 0.5, 1.0].map(|f| f * typical).to_vec();
                Ok(Data { schema, rows: design.rows as u64, samples, public: None, radii })
            }
            Source::Texts(distribution, [train, test, others], factor) => {
                let schema = distribution.schema()?;
                let half = per_unit(&schema);
                let (mut samples, mut shared_rows, mut typical) = (Vec::new(), None, 0.0);
                for seed in 0..most as u64 {
                    let drawn = distribution.draw(seed);
                    let rows = drawn.encoded(&schema, 0..train)?;
                    let judge = Judge::Numbers(drawn.encoded(&schema, train..train + test)?, factor, half);
                    samples.push(Sample {
                        train: Arc::new(private(&rows, &schema, RowForm::Features, &Entropy::simulated(seed))?),
                        judge,
                    });
                    // Words of public texts say nothing about weights, so that one draw of them is enough.
                    if others > 0 && shared_rows.is_none() {
                        let rows = drawn.encoded(&schema, train + test..train + test + others)?;
                        shared_rows = Some(Arc::new(public(&rows, &schema)));
                    }
                    typical = drawn.weights.iter().map(|w| w.abs()).sum::<f64>() / half;
                }
                let radii = [0.1, 0.3, 1.0].map(|f| f * typical).to_vec();
                Ok(Data { schema, rows: train as u64, samples, public: shared_rows, radii })
            }
            Source::Real(load) if self.part == Part::Defaults && !self.name.starts_with("RCV1") => {
                // Every fifth row for testing, in each of five ways; a few rows are left over, so that all have the same number.
                let set = load(shared)?;
                let all: Vec<Row> = set.clear.iter().chain(&set.test).cloned().collect();
                let all = &all[..all.len() / 5 * 5];
                let mut samples = Vec::new();
                for fold in 0..5 {
                    let part = |test: bool| all.iter().enumerate().filter(move |(i, _)| (i % 5 == fold) == test);
                    let own: Vec<Row> = part(false).map(|r| r.1.clone()).collect();
                    let train = Arc::new(private(&own, &set.schema, RowForm::Features, &Entropy::simulated(0))?);
                    samples.push(Sample { train, judge: Judge::Classes(Arc::new(part(true).map(|r| r.1.clone()).collect())) });
                }
                let rows = (all.len() / 5 * 4) as u64;
                Ok(Data { schema: set.schema, rows, samples, public: None, radii: vec![] })
            }
            Source::Real(load) => {
                let set = load(shared)?;
                let (own, others): (Vec<_>, Vec<_>) = set.clear.iter().enumerate().partition(|(i, _)| !self.third || i % 2 == 0);
                let own: Vec<Row> = own.into_iter().map(|r| r.1.clone()).collect();
                let others: Vec<Row> = others.into_iter().map(|r| r.1.clone()).collect();
                let train = Arc::new(private(&own, &set.schema, RowForm::Features, &Entropy::simulated(0))?);
                let sample = Sample { train, judge: Judge::Classes(Arc::new(set.test)) };
                let public = (!others.is_empty()).then(|| Arc::new(public(&others, &set.schema)));
                let radii = vec![5.0, 20.0, 80.0];
                Ok(Data { schema: set.schema, rows: own.len() as u64, samples: vec![sample], public, radii })
            }
        }
    }
}
