//! Generated data: the synthetic designs on which sparse methods are compared. Nothing here is secret; a seed says it all.

use super::encode::{Encoder, Row};
use super::{Cell, Record};
use crate::error::Result;
use crate::schema::{Schema, TargetValues};
use privfit_kernel::privacy::{Dataset, DatasetBuilder, Entropy, RowShape};

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream of its own for each seed.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1));
        random.word();
        random
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 * 0.5f64.powi(53)
    }

    /// Below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.word()) * count as u128) >> 64) as usize
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// A sparse linear or logistic model with rows of independent, evenly spread cells.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// Rows.
    pub rows: usize,
    /// Features.
    pub features: usize,
    /// Weights that are not zero, each uniform in [-1, 1].
    pub sparsity: usize,
    /// Cells are uniform in [-width, width].
    pub width: f64,
    /// Longer rows are scaled down to this norm.
    pub longest: Option<f64>,
    /// Classes by a logistic law, with P(1) = 1/(1 + e^-x.w); otherwise numbers.
    pub classes: bool,
    /// Variance of the noise of a number.
    pub noise: f64,
}

impl Design {
    /// Chapter 3 of the thesis on sparse learning, and the paper: cells in [-1, 1].
    pub fn bounded(rows: usize, features: usize, sparsity: usize, classes: bool) -> Design {
        Design { rows, features, sparsity, width: 1.0, longest: None, classes, noise: 0.1 }
    }

    /// Chapter 2 of it: cells in [-2, 2], rows no longer than twice the sparsity.
    pub fn scaled(rows: usize, features: usize, sparsity: usize, classes: bool) -> Design {
        let longest = Some(2.0 * sparsity as f64);
        Design { rows, features, sparsity, width: 2.0, longest, classes, noise: 0.1 }
    }

    /// Public facts: what somebody who knows the law of the design, but no row, would declare. Numbers are cut at two standard deviations.
    pub fn schema(&self) -> Result<Schema> {
        let mean_square = self.width * self.width / 3.0;
        let typical = (mean_square * self.features as f64).sqrt();
        let shorter = self.longest.map_or(1.0, |l| (l / typical).min(1.0));
        let bound = self.width * shorter;
        let deviation = (self.sparsity as f64 / 3.0 * bound * bound / 3.0 + self.noise).sqrt();
        let target = match self.classes {
            true => "classes = [\"0\", \"1\"]".to_string(),
            false => format!("bounds = [{0:.6}, {1:.6}]", -2.0 * deviation, 2.0 * deviation),
        };
        Schema::parse(&format!(
            "[dataset]\nname = \"generated\"\n[target]\n{target}\n[features]\nkind = \"dense\"\ndimension = {}\nbound = {bound:.6}\n\
             intercept = false\n",
            self.features
        ))
    }

    /// Weights, rows one after the other, and labels.
    pub fn draw(&self, seed: u64) -> Drawn {
        let mut random = Random::new(seed);
        let mut weights = vec![0f64; self.features];
        let mut left = self.sparsity.min(self.features);
        while left > 0 {
            let at = random.below(self.features);
            if weights[at] == 0.0 {
                weights[at] = 2.0 * random.uniform() - 1.0;
                left -= 1;
            }
        }
        let mut cells = Vec::with_capacity(self.rows * self.features);
        let mut labels = Vec::with_capacity(self.rows);
        for _ in 0..self.rows {
            let start = cells.len();
            cells.extend((0..self.features).map(|_| self.width * (2.0 * random.uniform() - 1.0)));
            let row = &mut cells[start..];
            if let Some(longest) = self.longest {
                let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                let factor = (longest / length).min(1.0);
                row.iter_mut().for_each(|x| *x *= factor);
            }
            let score: f64 = row.iter().zip(&weights).map(|(x, w)| x * w).sum();
            labels.push(match self.classes {
                true => f64::from(u8::from(random.uniform() < 1.0 / (1.0 + (-score).exp()))),
                false => score + self.noise.sqrt() * random.normal(),
            });
        }
        Drawn { weights, cells, labels }
    }
}

/// Generated rows with their truth.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The true weights.
    pub weights: Vec<f64>,
    /// Cells, row after row.
    pub cells: Vec<f64>,
    /// Class or number of each row.
    pub labels: Vec<f64>,
}

impl Drawn {
    /// The rows as private records.
    pub fn dataset(&self, schema: &Schema, entropy: &Entropy) -> Result<Dataset> {
        let encoder = Encoder::new(schema, &[], true)?;
        let shape = RowShape { dimension: schema.dimension(), row_norm: 1.0, sparse: encoder.sparse(), rows_per_unit: None };
        let mut builder = DatasetBuilder::new(entropy, shape)?;
        let mut row = Row::default();
        for (cells, label) in self.cells.chunks(self.weights.len()).zip(&self.labels) {
            encoder.encode(Record::Dense(cells), Some(Cell::Number(*label)), &mut row);
            if encoder.sparse() {
                builder.sparse_row(&row.pairs, row.label);
            } else {
                builder.row(&row.dense, row.label);
            }
        }
        Ok(builder.build())
    }

    /// Distance of encoded weights from the truth, over the length of the truth.
    pub fn relative_error(&self, schema: &Schema, encoded: &[f64]) -> f64 {
        let factor = per_unit(schema);
        let apart = |(w, t): (&f64, &f64)| (w * factor - t).powi(2);
        let distance: f64 = encoded.iter().zip(&self.weights).map(apart).sum();
        (distance / self.weights.iter().map(|t| t * t).sum::<f64>()).sqrt()
    }
}

/// An encoded weight times this is the weight of the feature in its own units, for rows of numbers that are all divided by one length.
pub fn per_unit(schema: &Schema) -> f64 {
    use crate::schema::Features;
    let longest = match &schema.features {
        Features::Sparse { row_norm, .. } | Features::Dense { row_norm, .. } => row_norm * row_norm,
        _ => 1.0,
    };
    let half = match schema.target.values {
        TargetValues::Bounds(low, high) => 0.5 * (high - low),
        _ => 1.0,
    };
    half / (longest + f64::from(u8::from(schema.intercept))).sqrt()
}
