//! Public facts about a data set: names, bounds, categories, classes, privacy unit. Everything here is known without looking at
//! the data, and everything that training may assume is here.
//!
//! ```
//! let schema = privfit_data::Schema::parse(r#"
//!     [dataset]
//!     name = "visits"
//!     [target]
//!     column = "ill"
//!     classes = ["no", "yes"]
//!     [features.age]
//!     type = "number"
//!     min = 0
//!     max = 120
//! "#)?;
//! assert_eq!(schema.name, "visits");
//! # Ok::<(), privfit_data::Error>(())
//! ```

pub mod declared;
mod keys;
mod open;
mod parse;
pub mod private_bounds;

use crate::error::{Error, Result};
use crate::scattering;
use serde::{Deserialize, Serialize};

pub use declared::Declared;
pub use open::{key, quote};
pub use parse::toml_problem;
pub use private_bounds::PrivateBounds;

/// Name of a data set that has none.
pub const UNNAMED: &str = "unnamed";

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One of several classes.
    Classes(usize),
    /// A number.
    Number,
    /// Nothing: one point of the feature space stands for all rows.
    Location,
}

impl Task {
    /// Number of classes; 0 where there are none.
    pub fn classes(self) -> usize {
        match self {
            Task::Classes(k) => k,
            Task::Number | Task::Location => 0,
        }
    }
}

/// Public facts about a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Identity of the data set.
    pub name: String,
    /// Data set that this one overlaps with, and whose budget it spends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whose privacy is protected.
    pub unit: UnitOfPrivacy,
    /// Number of rows, or of units where there is a unit column, if declared.
    pub rows: Option<u64>,
    /// What is predicted.
    pub target: Target,
    /// What it is predicted from.
    pub features: Features,
    /// Whether a constant feature is appended.
    pub intercept: bool,
    /// How rows get into the unit ball.
    pub scaling: Scaling,
    /// What is declared about models from these data; it goes into their certificates.
    #[serde(skip)]
    pub registry: Option<Declared>,
    /// Bounds that were released from the records themselves.
    #[serde(rename = "bought", default, skip_serializing_if = "Option::is_none")]
    pub private_bounds: Option<PrivateBounds>,
}

/// Whose privacy is protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum UnitOfPrivacy {
    /// Every row by itself.
    Row,
    /// All rows with one value of a column, of which at most so many count.
    Column {
        /// Column with the identity.
        column: String,
        /// Most rows of one unit that count.
        max_rows: usize,
    },
}

/// What is predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its column; none where the format has a place for the label.
    pub column: Option<String>,
    /// The values that it can have.
    pub values: TargetValues,
    /// Public weights of the classes; empty if they are equal.
    pub weights: Vec<f64>,
}

/// The values that a target can have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TargetValues {
    /// One of these; a record with another value adds nothing.
    Classes(Vec<String>),
    /// One of these against everything else.
    Positive(Vec<String>),
    /// A number, clamped to these bounds.
    Bounds(f64, f64),
    /// There is no target: one point is to stand for all rows.
    None,
}

/// What is predicted from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Features {
    /// Columns of a table, in the order of the schema.
    Table(Vec<(String, Feature)>),
    /// Index-value pairs.
    Sparse {
        /// Number of features.
        dimension: usize,
        /// Longest row that is not scaled down.
        row_norm: f64,
        /// Cells are clipped at this size, where it is declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound: Option<f64>,
    },
    /// Rows of numbers.
    Dense {
        /// Number of features.
        dimension: usize,
        /// Longest row that is not scaled down.
        row_norm: f64,
        /// Cells are clipped at this size, where it is declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound: Option<f64>,
    },
    /// Pixels from 0 to a maximum.
    Image {
        /// Rows, columns, channels ...
        shape: Vec<usize>,
        /// Largest value of a pixel; of pictures in files it is white.
        max: f64,
        /// What pixels become; none where nobody said, so that the method decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encoder: Option<ImageEncoder>,
        /// Pictures of another size are cropped and resized, and are not null records.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        resize: bool,
        /// Means and deviations of the channels, where they are declared: networks see (pixel - mean) / deviation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moments: Option<ChannelMoments>,
    },
}

/// Public means and standard deviations of the channels of pictures, in units of pixels: from a larger collection or from its documentation, never computed from the
/// private pictures, which nobody would have paid for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelMoments {
    /// One for each channel.
    pub mean: Vec<f64>,
    /// One for each channel, above 0.
    pub deviation: Vec<f64>,
}

/// What the pixels of a picture become: a map of one record that no data decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageEncoder {
    /// Themselves.
    Pixels,
    /// Scattering features.
    Scattering,
    /// Scattering features of a picture and of its mirror image, added: for pictures whose class does not tell left from right.
    MirroredScattering,
}

impl ImageEncoder {
    /// Whether pictures become scattering features.
    pub fn scatters(self) -> bool {
        matches!(self, ImageEncoder::Scattering | ImageEncoder::MirroredScattering)
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Feature {
    /// A number, clamped to its bounds and mapped to -1 ... 1.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
        /// Map by ln(1 + x - min) and not by x - min.
        log: bool,
    },
    /// One of these values, one column each; anything else is none of them. Two values share one column of 0 and 1.
    Category(Vec<String>),
    /// Not used.
    Ignore,
}

/// How rows get into the unit ball.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// Each row is divided by its own norm.
    Sphere,
    /// All rows are divided by the longest possible norm.
    Ball,
}

/// Largest number of features, categories included.
const LARGEST: usize = 10_000_000;

impl Schema {
    /// Whether the facts fit together; parsing checks it, and so does reading a model file.
    pub fn check(&self) -> Result<()> {
        let d = self.dimension();
        if d == 0 || d > LARGEST {
            return Err(Error::misuse(format!("the schema has {d} features: give between 1 and {LARGEST}")));
        }
        let bad = |f: &Feature| match f {
            Feature::Number { min, max, .. } => !(min < max && (max - min).is_finite()),
            Feature::Category(values) => values.is_empty(),
            Feature::Ignore => false,
        };
        if let Features::Table(columns) = &self.features
            && let Some((name, _)) = columns.iter().find(|c| bad(&c.1))
        {
            return Err(Error::misuse(format!("[features.{}]: give min below max, or a list of values", key(name))));
        }
        if let Features::Image { moments: Some(moments), max, .. } = &self.features {
            self.check_moments(moments, *max)?;
        }
        let table = matches!(self.features, Features::Table(_));
        if self.task() == Task::Location {
            if self.intercept {
                return Err(Error::misuse(
                    "without [target] there is no constant feature: remove intercept = true, or add [target]",
                ));
            }
            if self.scaling != Scaling::Ball {
                return Err(Error::misuse("without [target] rows keep their length: give scaling = \"ball\", or add [target]"));
            }
            if self.target.column.is_some() || !self.target.weights.is_empty() {
                return Err(Error::misuse("a target without values has neither column nor weights: remove them"));
            }
        } else if table && self.target.column.is_none() {
            return Err(Error::misuse("[target] has no column: add column = \"NAME\""));
        }
        if let (Features::Table(columns), Some(target)) = (&self.features, &self.target.column)
            && columns.iter().any(|c| c.0 == *target && c.1 != Feature::Ignore)
        {
            return Err(Error::misuse(format!(
                "column {target:?} is both target and feature: remove [features.{}]",
                key(target)
            )));
        }
        if !table && self.unit != UnitOfPrivacy::Row {
            return Err(Error::misuse("a unit column needs a table: use unit = \"row\", or CSV or Parquet"));
        }
        if let UnitOfPrivacy::Column { column, .. } = &self.unit
            && let Features::Table(columns) = &self.features
            && columns.iter().any(|c| c.0 == *column && c.1 != Feature::Ignore)
        {
            return Err(Error::misuse(format!(
                "column {column:?} is both unit and feature: give it type = \"ignore\" in [features.{}]",
                key(column)
            )));
        }
        Ok(())
    }

    /// Whether means and deviations are those of the channels of pictures with this largest pixel.
    fn check_moments(&self, moments: &ChannelMoments, max: f64) -> Result<()> {
        if self.scatters() {
            return Err(Error::misuse(
                "[features] mean and deviation are those of pixels, which scattering does not keep: remove them, or give encoder = \"pixels\"",
            ));
        }
        if self.scaling != Scaling::Ball {
            return Err(Error::misuse(
                "[features] mean and deviation need pixels that keep their size: give scaling = \"ball\" in [encoding], or remove scaling there",
            ));
        }
        let channels = self.image_shape().map_or(0, |s| s[2]);
        let lengths = moments.mean.len() == channels && moments.deviation.len() == channels;
        // A deviation that is tiny against the range is a wrong unit, and would make numbers that single precision does not hold.
        let least = max * 1e-6;
        let sizes =
            moments.mean.iter().all(|m| (0.0..=max).contains(m)) && moments.deviation.iter().all(|d| (least..=max).contains(d));
        if lengths && sizes {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "[features] mean and deviation: give a list of {channels} each, one for a channel, in units of pixels: means from 0 to {max}, deviations from {least:e} to {max}"
        )))
    }

    /// Features after encoding, the constant one included. Public.
    pub fn dimension(&self) -> usize {
        let own = match &self.features {
            Features::Table(columns) => columns.iter().map(|c| c.1.width()).sum(),
            Features::Sparse { dimension, .. } | Features::Dense { dimension, .. } => *dimension,
            Features::Image { .. } => self.image_shape().map_or(0, |s| s.iter().product()),
        };
        own + usize::from(self.intercept && own > 0)
    }

    /// Height, width and channels of encoded pictures; none for other rows.
    pub fn image_shape(&self) -> Option<[usize; 3]> {
        let Features::Image { shape, encoder, .. } = &self.features else { return None };
        let pixels = match shape.as_slice() {
            [height, width] => [*height, *width, 1],
            [height, width, rest @ ..] if !rest.is_empty() => [*height, *width, rest.iter().product()],
            all => [1, 1, all.iter().product()],
        };
        match encoder {
            Some(encoder) if encoder.scatters() => scattering::shape(pixels[0], pixels[1], pixels[2]),
            _ => Some(pixels),
        }
    }

    /// Whether pictures become scattering features.
    pub fn scatters(&self) -> bool {
        matches!(&self.features, Features::Image { encoder: Some(encoder), .. } if encoder.scatters())
    }

    /// Columns of a table that are predicted from; 0 for other rows.
    pub fn used_columns(&self) -> usize {
        match &self.features {
            Features::Table(columns) => columns.iter().filter(|c| c.1 != Feature::Ignore).count(),
            _ => 0,
        }
    }

    /// What is predicted.
    pub fn task(&self) -> Task {
        match &self.target.values {
            TargetValues::Classes(classes) => Task::Classes(classes.len()),
            TargetValues::Positive(_) => Task::Classes(2),
            TargetValues::Bounds(..) => Task::Number,
            TargetValues::None => Task::Location,
        }
    }

    /// Names of the classes, in the order of their numbers; empty where there are none.
    pub fn class_names(&self) -> Vec<String> {
        match &self.target.values {
            TargetValues::Classes(classes) => classes.clone(),
            TargetValues::Positive(listed) => vec!["other".into(), listed.join("|")],
            TargetValues::Bounds(..) | TargetValues::None => Vec::new(),
        }
    }

    /// Names of the encoded features.
    pub fn feature_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        match &self.features {
            Features::Table(columns) => {
                for (name, feature) in columns {
                    match feature {
                        Feature::Number { .. } => names.push(name.clone()),
                        Feature::Category(values) if values.len() == 2 => names.push(format!("{name}={}", values[1])),
                        Feature::Category(values) => names.extend(values.iter().map(|v| format!("{name}={v}"))),
                        Feature::Ignore => {}
                    }
                }
            }
            _ => names.extend((0..self.dimension() - usize::from(self.intercept)).map(|i| format!("x{i}"))),
        }
        if self.intercept {
            names.push("intercept".into());
        }
        names
    }
}

impl Feature {
    /// Encoded columns.
    pub fn width(&self) -> usize {
        match self {
            Feature::Number { .. } => 1,
            // A category with one value is that value or not; two values share a column.
            Feature::Category(values) => {
                if values.len() == 2 {
                    1
                } else {
                    values.len()
                }
            }
            Feature::Ignore => 0,
        }
    }
}
