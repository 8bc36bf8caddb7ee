//! A model in the units of its columns, where the way from a row to its score is linear: what people call coefficients.
//!
//! The encoder maps a column to -1 ... 1, which is linear, and divides rows by a length. Where all rows are divided by the same length the
//! score is linear. Where each row is divided by its own, the score is a linear function over that length: its sign, and which of several
//! is the largest, are those of the linear function, which is what stands here then.

use crate::artifact::Artifact;
use crate::loss::Link;
use crate::model::{LinearModel, Model};
use crate::schema::Task;
use crate::schema::{Feature, Features, Scaling, TargetValues};

/// A linear function for each score.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// Weights of the encoded features (without the constant one): of the number itself, of ln(1 + x - min) on a logarithmic scale, of the
    /// 0 or 1 of a category.
    pub weights: Vec<Vec<f64>>,
    /// What is added to them.
    pub constants: Vec<f64>,
    /// What scores of rows at full length are multiplied by.
    pub scale: f64,
}

impl Artifact {
    /// The linear functions of a model; none if rows are mapped in another way, or there is no target.
    pub fn linear(&self) -> Option<Linear> {
        let schema = &self.schema;
        let ball = schema.scaling == Scaling::Ball;
        let Model::Linear(LinearModel { map: None, weights: released, .. }) = &self.model else { return None };
        if !ball && self.model.task() == Task::Number {
            return None;
        }
        // Slope of each encoded feature, and where it begins.
        let mut maps: Vec<(f64, f64)> = Vec::new();
        let longest = match &schema.features {
            Features::Table(columns) => {
                for (_, feature) in columns {
                    match feature {
                        Feature::Ignore => {}
                        Feature::Number { min, max, log: false } => {
                            maps.push((2.0 / (max - min), -2.0 * min / (max - min) - 1.0));
                        }
                        Feature::Number { min, max, log: true } => maps.push((2.0 / (max - min).ln_1p(), -1.0)),
                        Feature::Category(_) => maps.resize(maps.len() + feature.width(), (1.0, 0.0)),
                    }
                }
                columns.iter().filter(|c| c.1 != Feature::Ignore).count() as f64
            }
            Features::Sparse { dimension, row_norm, .. } | Features::Dense { dimension, row_norm, .. } => {
                maps.resize(*dimension, (1.0, 0.0));
                row_norm * row_norm
            }
            Features::Image { shape, max, .. } => {
                let pixels = shape.iter().product::<usize>();
                maps.resize(pixels, (1.0 / max, 0.0));
                pixels as f64
            }
        };
        let one = f64::from(u8::from(schema.intercept));
        let scale = if ball { 1.0 / (longest + one).sqrt() } else { 1.0 };
        // A score between -1 and 1 is a number between the bounds of the target.
        let (slope, start) = match schema.target.values {
            TargetValues::Bounds(low, high) if self.model.link() == Link::Identity => ((high - low) / 2.0, (high + low) / 2.0),
            _ => (1.0, 0.0),
        };
        let (mut weights, mut constants) = (Vec::new(), Vec::new());
        for own in released {
            weights.push(own.iter().zip(&maps).map(|(w, m)| slope * scale * w * m.0).collect());
            let constant = if schema.intercept { own.get(maps.len()).copied().unwrap_or(0.0) } else { 0.0 };
            let begin: f64 = own.iter().zip(&maps).map(|(w, m)| w * m.1).sum();
            constants.push(start + slope * scale * (begin + constant));
        }
        Some(Linear { weights, constants, scale })
    }
}
