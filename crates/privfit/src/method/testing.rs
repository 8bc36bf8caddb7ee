//! What the methods' tests share: plans and fits on tables that are made on the spot.

use super::Settings;
use crate::Schema;
use crate::constraint::Constraint;
use crate::data::cells::RowForm;
use crate::data::csv::Csv;
use crate::data::load::load_from;
use crate::job::fit::{Job, Prepared, prepare};
use privfit_kernel::account::Adjacency;
use privfit_kernel::engine::Threads;
use privfit_kernel::{Dataset, Entropy};

/// A table with so many columns of numbers from -1 to 1, named a, b, ...
pub(crate) fn schema(columns: usize, dataset: &str, target: &str) -> Schema {
    let feature = |i: usize| format!("[features.{}]\ntype = \"number\"\nmin = -1\nmax = 1\n", name(i));
    let features: String = (0..columns).map(feature).collect();
    Schema::parse(&format!("[dataset]\nname = \"t\"\n{dataset}\n[target]\ncolumn = \"y\"\n{target}\n{features}")).unwrap()
}

fn name(column: usize) -> char {
    (b'a' + column as u8) as char
}

/// A plan under zero-out; delta 0 where it is pure.
pub(crate) fn plan(schema: &Schema, method: &str, loss: &str, rows: u64, epsilon: f64, set: &[(&str, f64)]) -> Prepared {
    let job = Job {
        schema: schema.clone(),
        rows: Some(rows),
        epsilon,
        delta: Some(if method == "objective-pure" { 0.0 } else { 1e-8 }),
        adjacency: Adjacency::ZeroOut,
        loss: Some(loss.into()),
        method: method.into(),
        settings: Settings(set.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: false,
        auxiliary: None,
        layers: None,
        pretrained: None,
    };
    prepare(&job, rows, false).unwrap()
}

/// Rows of cells in the order of the columns, the target last, and before them the unit where there is one.
pub(crate) fn dataset(schema: &Schema, columns: usize, units: bool, rows: &[Vec<f64>], entropy: &Entropy) -> Dataset {
    let names: String = (0..columns).map(|i| format!("{},", name(i))).collect();
    let lines: String = rows.iter().map(|r| r.iter().map(f64::to_string).collect::<Vec<_>>().join(",") + "\n").collect();
    let text = format!("{}{names}y\n{lines}", if units { "u," } else { "" });
    let mut reader = Csv::open(Box::new(std::io::Cursor::new(text.into_bytes()))).unwrap();
    load_from(&mut reader, schema, RowForm::Features, entropy).unwrap()
}

/// Weights on -1 ... 1 columns and the intercept, in half-ranges of the target or as a logarithm: what a ball-scaled model computes.
pub(crate) fn coefficients(prepared: &Prepared, data: &Dataset, entropy: &Entropy) -> Vec<f64> {
    let artifact = prepared.train(data, &Threads::new(1), entropy, &|| {}).unwrap();
    let weights = &artifact.model.weights()[0];
    weights.iter().zip(&prepared.problem.columns).map(|(w, c)| w / c.scale).collect()
}

/// Uniform in [-1, 1).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
