//! Pictures: digits, clothes, half of CIFAR-10, and generated ones. What is held out are the test files, or validation rows that are cut from the rows for training.

use super::sets::{Collector, Part, Random, Set, fold, generated, read};
use crate::Failure;
use privfit::Schema;
use privfit::data::Record;
use privfit::data::encode::{Encoder, Row};
use privfit::data::load::Source;
use std::path::Path;

/// What a model is measured on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// The files for testing, after all rows for training.
    Test,
    /// Rows for training that the model does not see; test files are not opened.
    Validation,
}

/// Rows of `mnist` and `fashion` that are left for training when the rest is for validation.
const KEPT: u64 = 50_000;

/// Rows for training that are kept in the clear, for losses of training rows.
const CLEAR: usize = 2_000;

/// A set by name: `mnist`, `fashion`, `cifar`, with `-pixels` for the pixels instead of scattering features; `generated-pictures`, `generated-table`.
pub(super) fn load(shared: &Path, name: &str, held: Held) -> Result<Set, Failure> {
    let (base, encoder) = match name.strip_suffix("-pixels") {
        Some(base) => (base, "pixels"),
        None => (name, "scattering"),
    };
    let data = shared.join("data");
    let idx = |part: &str| Source {
        files: vec![data.join(format!("{part}_images.idx3.gz"))],
        labels: vec![data.join(format!("{part}_labels.idx1.gz"))],
    };
    let folder = |part: &str| Source { files: vec![data.join("cifar10_jpeg_half.zip").join(part)], labels: vec![] };
    let digits: Vec<String> = (0..10).map(|d| d.to_string()).collect();
    let things = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
    let things: Vec<String> = things.iter().enumerate().map(|(i, name)| format!("{i}_{name}")).collect();
    let (schema, train, test) = match base {
        "mnist" => (schema("mnist", &digits, [28, 28, 1], encoder)?, idx("mnist_train"), idx("mnist_t10k_even")),
        "fashion" => (schema("fashion", &digits, [28, 28, 1], encoder)?, idx("fashion_mnist_train"), idx("fashion_mnist_t10k")),
        "cifar" => (schema("cifar", &things, [32, 32, 3], encoder)?, folder("train"), folder("test")),
        "generated-pictures" => return drawn(20_000),
        // Two classes of two clusters each, so that no line divides them.
        "generated-table" => return generated(50_000, 20, 10, 7, false),
        _ => {
            return Err(Failure::misuse(format!(
                "no set {name:?}: give mnist, fashion, cifar, generated-pictures or generated-table"
            )));
        }
    };
    let mut collector = Collector::new(&schema, true)?;
    collector.keep_clear(CLEAR);
    let by_class = base == "cifar";
    read(&train, &schema, &mut collector, |i, _, _| match held {
        Held::Test => Part::Train,
        // Pictures in folders come class by class.
        Held::Validation if by_class => fold(i),
        Held::Validation if i < KEPT => Part::Train,
        Held::Validation => Part::Test,
    })?;
    if held == Held::Test {
        read(&test, &schema, &mut collector, |_, _, _| Part::Test)?;
    }
    Ok(collector.finish(schema))
}

fn schema(name: &str, classes: &[String], shape: [usize; 3], encoder: &str) -> Result<Schema, Failure> {
    let [height, width, channels] = shape;
    let shape = if channels == 1 { format!("[{height}, {width}]") } else { format!("[{height}, {width}, {channels}]") };
    Ok(Schema::parse(&format!(
        "[dataset]\nname = {name:?}\n[target]\nclasses = {classes:?}\n[features]\nkind = \"image\"\nshape = {shape}\nmax = 255\nencoder = {encoder:?}\n"
    ))?)
}

/// Ten shapes of four soft strokes each, moved by up to three pixels, stroke by stroke by one more, under noise; a fifth of so many is held out.
fn drawn(count: usize) -> Result<Set, Failure> {
    const SIDE: usize = 24;
    let classes: Vec<String> = (0..10).map(|d| d.to_string()).collect();
    let schema = schema("drawn", &classes, [SIDE, SIDE, 1], "pixels")?;
    let encoder = Encoder::new(&schema, &[], true)?;
    let mut random = Random(11 << 32);
    let strokes: Vec<[f64; 4]> = (0..40)
        .map(|_| [4.0 + 12.0 * random.uniform(), 4.0 + 12.0 * random.uniform(), random.normal(), random.normal()])
        .collect();
    let mut collector = Collector::new(&schema, false)?;
    let (mut row, mut pixels) = (Row::default(), vec![0f64; SIDE * SIDE]);
    for i in 0..count {
        let class = i % 10;
        let mut moved = |by: f64| [by * (2.0 * random.uniform() - 1.0), by * (2.0 * random.uniform() - 1.0)];
        let all = moved(3.0);
        let own: Vec<[f64; 2]> = (0..4).map(|_| moved(1.0)).collect();
        for (at, pixel) in pixels.iter_mut().enumerate() {
            let (y, x) = ((at / SIDE) as f64, (at % SIDE) as f64);
            let ink = strokes[4 * class..4 * class + 4].iter().zip(&own).map(|([sy, sx, dy, dx], [my, mx])| {
                let (y, x) = (y - sy - all[0] - my, x - sx - all[1] - mx);
                // Long along one direction, thin across it.
                let size = dy.hypot(*dx).max(1e-3);
                let (along, across) = ((y * dy + x * dx) / size, (y * dx - x * dy) / size);
                (-(along / 3.0).powi(2) - across.powi(2)).exp()
            });
            *pixel = (200.0 * ink.fold(0.0, f64::max) + 40.0 * random.normal()).clamp(0.0, 255.0);
        }
        encoder.encode(Record::Dense(&pixels), None, &mut row);
        row.label = class as f32;
        collector.add(&row, fold(i as u64));
    }
    Ok(collector.finish(schema))
}
