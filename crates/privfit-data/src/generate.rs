//! Generated data: the synthetic designs on which sparse methods are compared. Nothing here is secret; a seed says it all.

use super::cells::RowForm;
use super::encode::{Encoder, Row};
use super::{Cell, Record};
use crate::error::Result;
use crate::schema::{Schema, TargetValues};
use privfit_kernel::{Dataset, DatasetBuilder, Entropy, PublicRows, RowShape};
use std::ops::Range;

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
    /// Classes by a logistic distribution, with P(1) = 1/(1 + e^-x.w); otherwise numbers.
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

    /// Public facts: what somebody who knows the distribution of the design, but no row, would declare. Numbers are clipped at two standard deviations.
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

/// Numbers that depend linearly on a few words of texts: rows of length 1 with a weight for each word that occurs in the text, the
/// usual product of frequency and rarity. Words follow the distribution of Zipf and Mandelbrot; those that matter are among the common ones.
#[derive(Clone, Copy, Debug)]
pub struct Texts {
    /// Rows.
    pub rows: usize,
    /// Words of the language.
    pub words: usize,
    /// Words of a text, repetitions included, on average; each text has between a half and one and a half times as many.
    pub length: usize,
    /// Words that matter: this many of ten times as many most common ones, with weights uniform up to a factor.
    pub sparsity: usize,
    /// Mean square of the part of a number that words explain.
    pub signal: f64,
    /// Variance of the rest.
    pub noise: f64,
}

impl Texts {
    /// Public facts. Numbers are clipped at two standard deviations.
    pub fn schema(&self) -> Result<Schema> {
        let bound = 2.0 * (self.signal + self.noise).sqrt();
        Schema::parse(&format!(
            "[dataset]\nname = \"generated texts\"\n[target]\nbounds = [{:.6}, {bound:.6}]\n[features]\nkind = \"sparse\"\n\
             dimension = {}\nrow_norm = 1.0\nintercept = false\n",
            -bound, self.words
        ))
    }

    /// Weights, rows and labels.
    pub fn draw(&self, seed: u64) -> DrawnTexts {
        let mut random = Random::new(seed);
        let mut weights = vec![0f64; self.words];
        let common = (10 * self.sparsity).min(self.words);
        let mut left = self.sparsity.min(common);
        while left > 0 {
            let at = random.below(common);
            if weights[at] == 0.0 {
                weights[at] = 2.0 * random.uniform() - 1.0;
                left -= 1;
            }
        }
        // The chance of the j-th word is proportional to 1/(j + 10).
        let mut sums = Vec::with_capacity(self.words);
        let mut sum = 0.0;
        for j in 0..self.words {
            sum += 1.0 / (j as f64 + 10.0);
            sums.push(sum);
        }
        let chance = |j: usize| 1.0 / (j as f64 + 10.0) / sum;
        let missing = |j: usize| (1.0 - chance(j)).powf(self.length as f64);
        let rarity: Vec<f64> = (0..self.words).map(|j| -(1.0 - missing(j)).ln()).collect();
        let mut out = DrawnTexts { weights, start: vec![0], pairs: Vec::new(), labels: Vec::with_capacity(self.rows) };
        let mut text: Vec<u32> = Vec::new();
        for _ in 0..self.rows {
            text.clear();
            let length = (self.length as f64 * (0.5 + random.uniform())).round().max(1.0) as usize;
            for _ in 0..length {
                let at = random.uniform() * sum;
                text.push(sums.partition_point(|s| *s <= at).min(self.words - 1) as u32);
            }
            text.sort_unstable();
            let first = out.pairs.len();
            for same in text.chunk_by(|a, b| a == b) {
                let often = 1.0 + (same.len() as f64).ln();
                out.pairs.push((same[0], often * rarity[same[0] as usize]));
            }
            let row = &mut out.pairs[first..];
            let size = row.iter().map(|p| p.1 * p.1).sum::<f64>().sqrt();
            row.iter_mut().for_each(|p| p.1 /= size.max(1e-300));
            out.start.push(out.pairs.len());
        }
        let scores: Vec<f64> =
            (0..self.rows).map(|i| out.row(i).iter().map(|(j, x)| x * out.weights[*j as usize]).sum()).collect();
        let square = scores.iter().map(|s| s * s).sum::<f64>() / self.rows.max(1) as f64;
        let factor = (self.signal / square.max(1e-300)).sqrt();
        out.weights.iter_mut().for_each(|w| *w *= factor);
        out.labels.extend(scores.iter().map(|s| s * factor + self.noise.sqrt() * random.normal()));
        out
    }
}

/// Generated texts with their truth.
#[derive(Clone, Debug)]
pub struct DrawnTexts {
    /// The true weights.
    pub weights: Vec<f64>,
    /// Number of each row.
    pub labels: Vec<f64>,
    start: Vec<usize>,
    pairs: Vec<(u32, f64)>,
}

impl DrawnTexts {
    /// Words and weights of a row.
    pub fn row(&self, i: usize) -> &[(u32, f64)] {
        &self.pairs[self.start[i]..self.start[i + 1]]
    }

    /// Some of the rows, encoded.
    pub fn encoded(&self, schema: &Schema, which: Range<usize>) -> Result<Vec<Row>> {
        let encoder = Encoder::new(schema, &[], true)?;
        let one = |i: usize| {
            let mut row = Row::default();
            encoder.encode(Record::Sparse(Cell::Number(self.labels[i]), self.row(i)), None, &mut row);
            row
        };
        Ok(which.map(one).collect())
    }
}

/// Encoded rows as private records; with a unit column as many rows in a row are a unit as it may have.
pub fn private(rows: &[Row], schema: &Schema, form: RowForm<'_>, entropy: &Entropy) -> Result<Dataset> {
    let rows_per_unit = super::load::rows_per_unit(schema);
    let mut builder = super::load::empty(schema, form, entropy)?;
    for unit in rows.chunks(rows_per_unit.unwrap_or(1).max(1)) {
        unit.iter().for_each(|row| super::load::put(&mut builder, row));
        builder.end_unit();
    }
    Ok(builder.build())
}

/// Encoded rows as public ones, without labels.
pub fn public(rows: &[Row], schema: &Schema) -> PublicRows {
    let features = schema.dimension();
    let mut cells = vec![0f64; rows.len() * features];
    for (row, to) in rows.iter().zip(cells.chunks_mut(features.max(1))) {
        row.dense.iter().zip(to.iter_mut()).for_each(|(x, c)| *c = *x);
        row.pairs.iter().for_each(|(i, x)| to[*i as usize] = *x);
    }
    PublicRows::new(cells, features)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of length 1 with about a hundred words, and labels of the declared variance that the weights explain up to the noise.
    #[test]
    fn texts_follow_their_distribution() {
        let distribution = Texts { rows: 2000, words: 5000, length: 140, sparsity: 20, signal: 2.0, noise: 0.5 };
        let drawn = distribution.draw(3);
        let mean = |f: &dyn Fn(usize) -> f64| (0..distribution.rows).map(f).sum::<f64>() / distribution.rows as f64;
        let score = |i: usize| drawn.row(i).iter().map(|(j, x)| x * drawn.weights[*j as usize]).sum::<f64>();
        let words = mean(&|i| drawn.row(i).len() as f64);
        assert!((80.0..125.0).contains(&words), "{words}");
        assert_eq!(drawn.weights.iter().filter(|w| **w != 0.0).count(), 20);
        assert!((mean(&|i| score(i).powi(2)) - 2.0).abs() < 1e-9);
        let rest = mean(&|i| (drawn.labels[i] - score(i)).powi(2));
        assert!((rest - 0.5).abs() < 0.08, "five standard deviations: {rest}");
        let schema = distribution.schema().unwrap();
        let rows = drawn.encoded(&schema, 0..10).unwrap();
        let public = public(&rows, &schema);
        for (row, cells) in rows.iter().zip(public.iter()) {
            assert!((cells.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(row.pairs.iter().all(|(i, x)| cells[*i as usize] == *x) && row.label.abs() <= 1.0);
        }
    }
}
