//! Data sets of the published tables: real ones from the shared directory, generated ones, and stand-ins for those that cannot be
//! had. Rows here are experimental material, not anybody's secret: the split, and choices of rows, are public.

use crate::Failure;
use privfit::Schema;
use privfit::data::encode::{Encoder, Row, is_sparse};
use privfit::data::load::{Source, open, read_labels};
use privfit::data::{Cell, Record};
use privfit::kernel::{Dataset, DatasetBuilder, Entropy, RowShape};
use std::path::Path;

/// A data set, split.
pub(super) struct Set {
    pub(super) schema: Schema,
    pub(super) train: Dataset,
    pub(super) test: Vec<Row>,
    pub(super) rows: u64,
    /// Rows for training in the clear, where they were asked for.
    pub(super) clear: Vec<Row>,
}

/// What is known about a set before it is loaded.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// Row of the published tables, and whether this is that set or stands for it.
    pub(super) published: &'static str,
    pub(super) stands_in: bool,
    /// Epsilon of the published tables.
    pub(super) epsilon: f64,
    /// How much a fit costs: 0 little, 1 several scores, 2 millions of rows.
    pub(super) weight: u8,
    pub(super) load: fn(&Path) -> Result<Set, Failure>,
}

/// Every set.
pub(super) const ALL: &[Entry] = &[
    entry("Synthetic-L", "Synthetic-L", false, 0.1, 0, |_| generated(10_000, 20, 10, 1, false)),
    entry("Adult", "Adult", false, 0.1, 0, |shared| table(shared, "adult", None)),
    entry("KDDCup99", "KDDCup99", false, 0.1, 0, |shared| table(shared, "kddcup99_10pct", Some(70_000))),
    entry("Covertype", "Covertype", false, 1.0, 1, |shared| table(shared, "covertype", None)),
    entry("MNIST", "MNIST", false, 1.0, 1, |shared| mnist(shared, "0 1 2 3 4 5 6 7 8 9", "")),
    entry("Synthetic-H 5000", "Synthetic-H", false, 0.1, 0, |_| generated(5_000, 5_000, 10, 2, false)),
    entry("Synthetic-H 2000", "Synthetic-H", false, 0.1, 0, |_| generated(2_000, 2_000, 10, 3, false)),
    entry("Madelon", "Gisette", true, 0.1, 0, |shared| madelon(shared, false)),
    entry("MNIST 4 against 9", "Gisette", true, 0.1, 0, |shared| mnist(shared, "4 9", "")),
    entry("PCMAC", "Real-sim", true, 0.1, 0, |shared| text(shared, "pcmac", 3_289, false, false)),
    entry("RCV1 sample", "RCV1", true, 0.1, 0, |shared| text(shared, "rcv1_sample", 47_236, true, false)),
    entry("Generated 4M x 23", "Industrial #1", true, 0.1, 2, |_| industrial(4_000_000, 23, 4)),
    entry("Generated 18M x 20", "Industrial #3", true, 0.1, 2, |_| industrial(18_000_000, 20, 5)),
];

const fn entry(
    name: &'static str,
    published: &'static str,
    stands_in: bool,
    epsilon: f64,
    weight: u8,
    load: fn(&Path) -> Result<Set, Failure>,
) -> Entry {
    Entry { name, published, stands_in, epsilon, weight, load }
}

/// Where a row goes.
pub(super) enum Part {
    Train,
    Test,
    Nowhere,
}

pub(super) fn splitmix64(x: u64) -> u64 {
    let z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The fixed split of the shared data: folds 0 and 1 of ten are for testing.
pub(super) fn fold(row: u64) -> Part {
    if splitmix64(0x9E37_79B9_7F4A_7C15u64.wrapping_add(row)) % 10 < 2 { Part::Test } else { Part::Train }
}

/// Collects rows of both parts.
pub(super) struct Collector {
    builder: DatasetBuilder,
    test: Vec<Row>,
    rows: u64,
    /// Rows for training are kept in the clear too.
    clear: Option<Vec<Row>>,
    most_clear: usize,
}

impl Collector {
    pub(super) fn new(schema: &Schema, clear: bool) -> Result<Collector, Failure> {
        let entropy = Entropy::simulated(0);
        let shape = RowShape { dimension: schema.dimension(), row_norm: 1.0, sparse: is_sparse(schema), rows_per_unit: None };
        let builder = DatasetBuilder::new(&entropy, shape).map_err(privfit::Error::from)?;
        Ok(Collector { builder, test: Vec::new(), rows: 0, clear: clear.then(Vec::new), most_clear: usize::MAX })
    }

    /// Keeps no more than the first rows for training in the clear.
    pub(super) fn keep_clear(&mut self, most: usize) {
        self.most_clear = most;
    }

    pub(super) fn add(&mut self, row: &Row, part: Part) {
        match part {
            Part::Nowhere => {}
            Part::Test => self.test.push(row.clone()),
            Part::Train => {
                self.rows += 1;
                if let Some(clear) = self.clear.as_mut().filter(|clear| clear.len() < self.most_clear) {
                    clear.push(row.clone());
                }
                if row.pairs.is_empty() {
                    self.builder.row(&row.dense, row.label);
                } else {
                    self.builder.sparse_row(&row.pairs, row.label);
                }
            }
        }
    }

    pub(super) fn finish(self, schema: Schema) -> Set {
        Set { schema, train: self.builder.build(), test: self.test, rows: self.rows, clear: self.clear.unwrap_or_default() }
    }
}

/// Reads files, giving each row its part by number and label.
pub(super) fn read(
    source: &Source,
    schema: &Schema,
    collector: &mut Collector,
    mut part: impl FnMut(u64, &Row, Option<Cell<'_>>) -> Part,
) -> Result<(), Failure> {
    let mut reader = open(&source.files[0], schema)?;
    let encoder = Encoder::new(schema, reader.columns(), true)?;
    let split = reader.columns().iter().position(|c| c == "split");
    let mut labels = read_labels(source, schema, &encoder)?.map(|l| l.into_iter());
    let (mut row, mut number) = (Row::default(), 0);
    reader.read(&mut |record| {
        encoder.encode(record, None, &mut row);
        if let Some(label) = labels.as_mut().and_then(Iterator::next) {
            row.label = label.0;
        }
        let cell = match (record, split) {
            (Record::Cells(cells), Some(at)) => cells.get(at).copied(),
            _ => None,
        };
        let to = part(number, &row, cell);
        collector.add(&row, to);
        number += 1;
    })?;
    Ok(())
}

fn schema_of(shared: &Path, name: &str) -> Result<Schema, Failure> {
    let path = shared.join("schemas").join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Failure::misuse(format!("cannot read {}: {e}; give --shared DIRECTORY", path.display())))?;
    Ok(Schema::parse(&text)?)
}

/// A table with a schema; cut to the rows with the smallest hashes, if a number is given.
fn table(shared: &Path, name: &str, keep: Option<usize>) -> Result<Set, Failure> {
    let schema = schema_of(shared, name)?;
    let source = Source { files: vec![shared.join("data").join(format!("{name}.csv.gz"))], labels: vec![] };
    let kept: Option<Vec<bool>> = keep.map(|keep| {
        let all = 494_021;
        let mut order: Vec<u64> = (0..all).collect();
        order.sort_by_key(|i| splitmix64(*i));
        let mut kept = vec![false; all as usize];
        order[..keep].iter().for_each(|i| kept[*i as usize] = true);
        kept
    });
    let mut collector = Collector::new(&schema, false)?;
    let mut number = 0;
    read(&source, &schema, &mut collector, |i, _, split| {
        if kept.as_ref().is_some_and(|k| !k.get(i as usize).copied().unwrap_or(false)) {
            return Part::Nowhere;
        }
        number += 1;
        match split {
            Some(Cell::Text(b"train")) => Part::Train,
            Some(_) => Part::Test,
            None => fold(number - 1),
        }
    })?;
    Ok(collector.finish(schema))
}

/// All rows of a table, also in the clear: for empirical risks.
pub(super) fn all_rows(shared: &Path, name: &str) -> Result<(Set, Vec<Row>), Failure> {
    let schema = schema_of(shared, name)?;
    let source = Source { files: vec![shared.join("data").join(format!("{name}.csv.gz"))], labels: vec![] };
    let mut collector = Collector::new(&schema, true)?;
    read(&source, &schema, &mut collector, |_, _, split| match split {
        Some(Cell::Text(b"train")) | None => Part::Train,
        Some(_) => Part::Nowhere,
    })?;
    let mut set = collector.finish(schema);
    let clear = std::mem::take(&mut set.clear);
    Ok((set, clear))
}

/// Digits, or two of them; as an encoder has them, or as is usual for the method.
pub(super) fn mnist(shared: &Path, digits: &str, encoder: &str) -> Result<Set, Failure> {
    let encoder = if encoder.is_empty() { String::new() } else { format!("encoder = {encoder:?}\n") };
    let classes: Vec<String> = digits.split(' ').map(|d| format!("{d:?}")).collect();
    let schema = Schema::parse(&format!(
        "[dataset]\nname = \"mnist\"\n[target]\nclasses = [{}]\n[features]\nkind = \"image\"\nshape = [28, 28]\nmax = 255\n{encoder}",
        classes.join(", ")
    ))?;
    let data = shared.join("data");
    let mut collector = Collector::new(&schema, false)?;
    for (name, test) in [("mnist_train", false), ("mnist_t10k_even", true)] {
        let files = vec![data.join(format!("{name}_images.idx3.gz"))];
        let source = Source { files, labels: vec![data.join(format!("{name}_labels.idx1.gz"))] };
        read(&source, &schema, &mut collector, |_, row, _| match (row.label >= 0.0, test) {
            (false, _) => Part::Nowhere,
            (true, true) => Part::Test,
            (true, false) => Part::Train,
        })?;
    }
    Ok(collector.finish(schema))
}

pub(super) fn madelon(shared: &Path, clear: bool) -> Result<Set, Failure> {
    let columns: String = (0..500).map(|i| format!("[features.f{i}]\ntype = \"number\"\nmin = 0.0\nmax = 999.0\n")).collect();
    let schema = Schema::parse(&format!(
        "[dataset]\nname = \"madelon\"\n[target]\ncolumn = \"label\"\nclasses = [\"-1\", \"1\"]\n{columns}"
    ))?;
    let source = Source { files: vec![shared.join("data/madelon.csv.gz")], labels: vec![] };
    let mut collector = Collector::new(&schema, clear)?;
    read(&source, &schema, &mut collector, |i, _, _| fold(i))?;
    Ok(collector.finish(schema))
}

/// Words of texts: counts, or rows of norm 1 that come with a split.
pub(super) fn text(shared: &Path, name: &str, dimension: usize, own_split: bool, clear: bool) -> Result<Set, Failure> {
    let longest = if own_split { 1.0 } else { 1000.0 };
    let schema = Schema::parse(&format!(
        "[dataset]\nname = {name:?}\n[target]\nclasses = [\"-1\", \"1\"]\n[features]\nkind = \"sparse\"\ndimension = {dimension}\n\
         row_norm = {longest:.1}\n"
    ))?;
    let mut collector = Collector::new(&schema, clear)?;
    let data = shared.join("data");
    let source = |file: String| Source { files: vec![data.join(file)], labels: vec![] };
    if own_split {
        read(&source(format!("{name}.train.libsvm.gz")), &schema, &mut collector, |_, _, _| Part::Train)?;
        read(&source(format!("{name}.test.libsvm.gz")), &schema, &mut collector, |_, _, _| Part::Test)?;
    } else {
        read(&source(format!("{name}.libsvm.gz")), &schema, &mut collector, |i, _, _| fold(i))?;
    }
    Ok(collector.finish(schema))
}

/// Index-value pairs with a split of their own, two classes, and a bound on rows.
pub(super) fn own_files(shared: &Path, name: &str, classes: [&str; 2], dimension: usize, longest: f64) -> Result<Set, Failure> {
    let schema = Schema::parse(&format!(
        "[dataset]\nname = {name:?}\n[target]\nclasses = {classes:?}\n[features]\nkind = \"sparse\"\ndimension = {dimension}\n\
         row_norm = {longest:.3}\n"
    ))?;
    let mut collector = Collector::new(&schema, true)?;
    for (part, test) in [("train", false), ("test", true)] {
        let source = Source { files: vec![shared.join("data").join(format!("{name}.{part}.libsvm.gz"))], labels: vec![] };
        read(&source, &schema, &mut collector, |_, _, _| if test { Part::Test } else { Part::Train })?;
    }
    Ok(collector.finish(schema))
}

/// Random numbers for generated sets; nothing here is secret.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (splitmix64(self.0) >> 11) as f64 * 0.5f64.powi(53)
    }

    pub(super) fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

fn dense_schema(name: &str, d: usize, row_norm: f64) -> Result<Schema, Failure> {
    Ok(Schema::parse(&format!(
        "[dataset]\nname = {name:?}\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"dense\"\ndimension = {d}\n\
         row_norm = {row_norm:.1}\n"
    ))?)
}

/// Two classes of two clusters each in `informative` directions that are mixed into a subspace, the rest noise; a hundredth of the
/// labels is drawn anew. The recipe of the published generator, not its stream of random numbers.
pub(super) fn generated(n: usize, d: usize, informative: usize, seed: u64, clear: bool) -> Result<Set, Failure> {
    let mut random = Random(seed << 32);
    let schema = dense_schema("synthetic", d, (2.0 * d as f64).sqrt())?;
    let centres: Vec<Vec<f64>> =
        (0..4).map(|_| (0..informative).map(|_| if random.uniform() < 0.5 { -2.0 } else { 2.0 }).collect()).collect();
    let mixes: Vec<Vec<f64>> =
        (0..4).map(|_| (0..informative * informative).map(|_| 2.0 * random.uniform() - 1.0).collect()).collect();
    let mut collector = Collector::new(&schema, clear)?;
    let (mut row, mut raw) = (Row::default(), vec![0f64; informative]);
    for i in 0..n {
        let cluster = (random.uniform() * 4.0) as usize % 4;
        raw.iter_mut().for_each(|x| *x = random.normal());
        row.dense.clear();
        for j in 0..informative {
            let mixed: f64 = (0..informative).map(|k| raw[k] * mixes[cluster][k * informative + j]).sum();
            row.dense.push(mixed + centres[cluster][j]);
        }
        (informative..d).for_each(|_| row.dense.push(random.normal()));
        let label = if random.uniform() < 0.01 { random.uniform() < 0.5 } else { cluster % 2 == 1 };
        row.label = f32::from(u8::from(label));
        sphere(&mut row.dense);
        collector.add(&row, fold(i as u64));
    }
    Ok(collector.finish(schema))
}

/// Rows and labels as large firms have them: weak signals, so that three in four are predicted. Features are normal, the label
/// follows a logistic model of them. At most 200,000 rows are for testing.
fn industrial(n: usize, d: usize, seed: u64) -> Result<Set, Failure> {
    let mut random = Random(seed << 32);
    let schema = dense_schema("generated", d, (2.0 * d as f64).sqrt())?;
    let truth: Vec<f64> = (0..d).map(|_| random.normal()).collect();
    let length = truth.iter().map(|t| t * t).sum::<f64>().sqrt();
    let mut collector = Collector::new(&schema, false)?;
    collector.builder.reserve(n, 0).map_err(privfit::Error::from)?;
    let mut row = Row::default();
    for i in 0..n + 200_000 {
        row.dense.clear();
        (0..d).for_each(|_| row.dense.push(random.normal()));
        let score: f64 = row.dense.iter().zip(&truth).map(|(x, t)| x * t).sum::<f64>() * 1.7 / length;
        row.label = f32::from(u8::from(random.uniform() < 1.0 / (1.0 + (-score).exp())));
        sphere(&mut row.dense);
        collector.add(&row, if i < n { Part::Train } else { Part::Test });
    }
    Ok(collector.finish(schema))
}

/// Appends the constant and divides by the norm, as the encoder does.
fn sphere(row: &mut Vec<f64>) {
    row.push(1.0);
    let size = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    row.iter_mut().for_each(|x| *x /= size);
}
