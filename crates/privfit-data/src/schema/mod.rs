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
mod open;
pub mod private_bounds;

use crate::error::{Error, Result};
use crate::scattering;
use privfit_kernel::account::Event;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use declared::Declared;
pub use open::{key, quote};
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
    /// Reads a schema. Every problem is named; unknown keys are problems.
    pub fn parse(text: &str) -> Result<Schema> {
        let table: Table = toml::from_str(text)
            .map_err(|e| Error::misuse(format!("the schema is not valid TOML: {}", toml_problem(text, &e))))?;
        let dotted = open::dotted(&table);
        if !dotted.is_empty() {
            let lines: Vec<String> = dotted.iter().map(|(wrong, right)| format!("\n  {right}   # not {wrong}")).collect();
            return Err(Error::misuse(format!(
                "a dot in the name of a column makes a table in a table: put the name in quotes, and write{}",
                lines.concat()
            )));
        }
        let open = open::open(&table);
        if !open.is_empty() {
            return Err(Error::misuse(format!(
                "the schema leaves public facts open. They can't be read off private data: take them from documentation or \
                 domain knowledge. Put lines like these under their tables, in place of those with \"?\":\n{open}"
            )));
        }
        let mut top = Keys::new("", table);
        let mut dataset = top.table("dataset")?;
        let name = dataset.text("name")?.unwrap_or_else(|| UNNAMED.into());
        let parent = dataset.text("parent")?;
        let unit = dataset.unit()?;
        let rows = match (dataset.integer("rows")?, dataset.integer("units")?) {
            (Some(_), Some(_)) => return Err(Error::misuse("[dataset] has both rows and units: give one of them")),
            (Some(_), None) if unit != UnitOfPrivacy::Row => {
                return Err(Error::misuse("[dataset] rows: with a unit column give units = ... (how many of them)"));
            }
            (None, Some(_)) if unit == UnitOfPrivacy::Row => {
                return Err(Error::misuse("[dataset] units: every row is a unit here, give rows = ..."));
            }
            (rows, units) => rows.or(units),
        };
        dataset.finish("name, parent, unit, rows, units")?;
        let target = match top.table.contains_key("target") {
            true => target(top.table("target")?)?,
            false => Target { column: None, values: TargetValues::None, weights: Vec::new() },
        };
        let located = target.values == TargetValues::None;
        let (features, kind_intercept) = features(top.table("features")?)?;
        let mut encoding = top.table_or_empty("encoding")?;
        let intercept = encoding.flag("intercept")?.or(kind_intercept).unwrap_or(!located);
        let celled = matches!(features, Features::Sparse { bound: Some(_), .. } | Features::Dense { bound: Some(_), .. });
        let scaling = match encoding.text("scaling")?.as_deref() {
            // A linear predictor of a number needs rows that keep their length, and so do a point among them, cells with a bound, and pixels with a mean.
            None if celled || matches!(features, Features::Image { moments: Some(_), .. }) => Scaling::Ball,
            None if located || matches!(target.values, TargetValues::Bounds(..)) => Scaling::Ball,
            None | Some("sphere") => Scaling::Sphere,
            Some("ball") => Scaling::Ball,
            Some(other) => return Err(Error::misuse(format!("[encoding] scaling is {other:?}: give \"sphere\" or \"ball\""))),
        };
        encoding.finish("intercept, scaling")?;
        let registry = match top.table.contains_key("registry") {
            true => Some(Declared::parse(&top.table("registry")?.table)?),
            false => None,
        };
        // The second is what earlier versions called it.
        let written = ["private_bounds", "bought"].into_iter().find(|name| top.table.contains_key(*name));
        let private_bounds = written.map(|name| private_bounds(top.table(name)?)).transpose()?;
        top.finish("dataset, target, features, encoding, registry, private_bounds")?;
        let schema = Schema { name, parent, unit, rows, target, features, intercept, scaling, registry, private_bounds };
        schema.check()?;
        Ok(schema)
    }

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

/// A table whose keys are taken one by one; what is left is unknown.
struct Keys {
    place: String,
    table: Table,
}

impl Keys {
    fn new(place: &str, table: Table) -> Keys {
        Keys { place: place.into(), table }
    }

    fn wrong<T>(&self, key: &str, fix: &str) -> Result<T> {
        Err(Error::misuse(match self.place.is_empty() {
            true => format!("[{key}]: {fix}"),
            false => format!("[{}] {key}: {fix}", self.place),
        }))
    }

    fn table(&mut self, key: &str) -> Result<Keys> {
        match self.table.remove(key) {
            Some(Value::Table(t)) => Ok(Keys::new(key, t)),
            Some(_) => self.wrong(key, "give a table"),
            None => Err(Error::misuse(format!("the schema has no [{key}] table: add one (`privfit schema` has an example)"))),
        }
    }

    fn table_or_empty(&mut self, key: &str) -> Result<Keys> {
        if self.table.contains_key(key) { self.table(key) } else { Ok(Keys::new(key, Table::new())) }
    }

    fn text(&mut self, key: &str) -> Result<Option<String>> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(_) => self.wrong(key, "give text in quotes"),
        }
    }

    fn flag(&mut self, key: &str) -> Result<Option<bool>> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Boolean(b)) => Ok(Some(b)),
            Some(_) => self.wrong(key, "give true or false"),
        }
    }

    fn number(&mut self, key: &str) -> Result<Option<f64>> {
        let value = match self.table.remove(key) {
            None => return Ok(None),
            Some(Value::Integer(i)) => i as f64,
            Some(Value::Float(f)) => f,
            Some(_) => return self.wrong(key, "give a number"),
        };
        if !value.is_finite() {
            return self.wrong(key, "give a finite number");
        }
        Ok(Some(value))
    }

    fn integer(&mut self, key: &str) -> Result<Option<u64>> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Integer(i)) if i > 0 => Ok(Some(i as u64)),
            Some(_) => self.wrong(key, "give a whole number of at least 1"),
        }
    }

    fn need<T>(&self, key: &str, value: Option<T>, fix: &str) -> Result<T> {
        let Some(value) = value else {
            // Missing because it is misspelt, perhaps.
            return match crate::nearest::nearest(key, self.table.keys().map(String::as_str)) {
                Some(typed) => self.wrong(typed, &format!("unknown key: did you mean {key:?}? {fix}")),
                None => self.wrong(key, fix),
            };
        };
        Ok(value)
    }

    /// Texts; numbers are taken as they are written.
    fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>> {
        let list = match self.table.remove(key) {
            None => return Ok(None),
            Some(Value::Array(list)) => list,
            Some(_) => return self.wrong(key, "give a list, like [\"a\", \"b\"]"),
        };
        let mut out = Vec::with_capacity(list.len());
        for value in list {
            out.push(match value {
                Value::String(s) => s,
                Value::Integer(i) => i.to_string(),
                Value::Float(f) => f.to_string(),
                Value::Boolean(b) => b.to_string(),
                _ => return self.wrong(key, "give a list of texts"),
            });
        }
        let mut sorted = out.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != out.len() {
            return self.wrong(key, "a value is listed twice: remove one of them");
        }
        Ok(Some(out))
    }

    fn numbers(&mut self, key: &str) -> Result<Option<Vec<f64>>> {
        let list = match self.table.remove(key) {
            None => return Ok(None),
            Some(Value::Array(list)) => list,
            Some(_) => return self.wrong(key, "give a list of numbers"),
        };
        let number = |v: &Value| v.as_float().or(v.as_integer().map(|i| i as f64)).filter(|x| x.is_finite());
        match list.iter().map(number).collect() {
            Some(out) => Ok(Some(out)),
            None => self.wrong(key, "give a list of finite numbers"),
        }
    }

    fn unit(&mut self) -> Result<UnitOfPrivacy> {
        match self.table.remove("unit") {
            None => Ok(UnitOfPrivacy::Row),
            Some(Value::String(s)) if s == "row" => Ok(UnitOfPrivacy::Row),
            Some(Value::Table(t)) => {
                let mut keys = Keys::new("dataset.unit", t);
                let column = keys.text("column")?;
                let column = keys.need("column", column, "give the name of the column with the identity")?;
                let max_rows = keys.integer("max_rows")?;
                let max_rows = keys.need("max_rows", max_rows, "give the most rows of one unit that count")? as usize;
                if max_rows > 1_000_000 {
                    return keys.wrong("max_rows", "give at most 1000000");
                }
                keys.finish("column, max_rows")?;
                Ok(UnitOfPrivacy::Column { column, max_rows })
            }
            Some(_) => self.wrong("unit", "give \"row\" or { column = \"NAME\", max_rows = K }"),
        }
    }

    fn finish(self, allowed: &str) -> Result<()> {
        match self.table.keys().next() {
            None => Ok(()),
            Some(key) => {
                let hint = crate::nearest::hint(key, allowed.split(", "));
                Err(Error::misuse(match self.place.is_empty() {
                    true => format!("unknown table [{key}]: {hint}known are {allowed}"),
                    false => format!("[{}] unknown key {key:?}: {hint}known are {allowed}", self.place),
                }))
            }
        }
    }
}

fn target(mut keys: Keys) -> Result<Target> {
    let column = keys.text("column")?;
    let (classes, positive, bounds) = (keys.texts("classes")?, keys.texts("positive")?, keys.numbers("bounds")?);
    let weights = keys.numbers("weights")?.unwrap_or_default();
    if keys.table.contains_key("sample_weights") {
        return keys.wrong(
            "sample_weights",
            "weights of single records would be private data that scale the sensitivity: use weights = [...] of the classes",
        );
    }
    let values = match (classes, positive, bounds) {
        (Some(classes), None, None) if classes.len() >= 2 => TargetValues::Classes(classes),
        (Some(_), None, None) => return keys.wrong("classes", "list at least two classes"),
        (None, Some(listed), None) if !listed.is_empty() => TargetValues::Positive(listed),
        (None, Some(_), None) => return keys.wrong("positive", "list at least one value"),
        (None, None, Some(b)) if b.len() == 2 && b[0] < b[1] => TargetValues::Bounds(b[0], b[1]),
        (None, None, Some(_)) => return keys.wrong("bounds", "give [smallest, largest]"),
        _ => return Err(Error::misuse("[target] give one of classes = [...], positive = [...] or bounds = [low, high]")),
    };
    let count = match &values {
        TargetValues::Classes(c) => c.len(),
        TargetValues::Positive(_) => 2,
        TargetValues::Bounds(..) | TargetValues::None => 0,
    };
    if !weights.is_empty() && (weights.len() != count || weights.iter().any(|w| !(*w > 0.0))) {
        return keys.wrong("weights", "give one positive number for each class (none for numbers)");
    }
    keys.finish("column, classes, positive, bounds, weights")?;
    Ok(Target { column, values, weights })
}

fn features(mut keys: Keys) -> Result<(Features, Option<bool>)> {
    if !matches!(keys.table.get("kind"), Some(Value::String(_))) {
        let mut columns = Vec::new();
        for (name, value) in std::mem::take(&mut keys.table) {
            let Value::Table(t) = value else {
                return keys.wrong(&name, "give a table [features.NAME] with a type");
            };
            columns.push((name.clone(), feature(Keys::new(&format!("features.{}", key(&name)), t))?));
        }
        return Ok((Features::Table(columns), None));
    }
    let kind = keys.text("kind")?.unwrap_or_default();
    let intercept = keys.flag("intercept")?;
    let features = match kind.as_str() {
        "sparse" | "dense" => {
            let dimension = keys.integer("dimension")?;
            let dimension = keys.need("dimension", dimension, "give the number of features")? as usize;
            let bound = keys.number("bound")?;
            // Cells of at most `bound` in size make rows of at most sqrt(dimension) times that.
            let row_norm = keys.number("row_norm")?.or(bound.map(|b| b * (dimension as f64).sqrt()));
            let row_norm = keys.need(
                "row_norm",
                row_norm,
                "give the norm beyond which rows are scaled down, or bound = B, the largest size of a cell",
            )?;
            if !(row_norm > 1e-100 && row_norm < 1e100) {
                return keys.wrong("row_norm", "give a positive number");
            }
            if bound.is_some_and(|b| !(b > 1e-100 && b < 1e100)) {
                return keys.wrong("bound", "give a positive number");
            }
            match kind.as_str() {
                "sparse" => Features::Sparse { dimension, row_norm, bound },
                _ => Features::Dense { dimension, row_norm, bound },
            }
        }
        "image" => {
            let shape = keys.numbers("shape")?;
            let shape = keys.need("shape", shape, "give the size of an image, like [28, 28]")?;
            let max = keys.number("max")?;
            let max = keys.need("max", max, "give the largest value of a pixel, like 255")?;
            if shape.is_empty() || shape.iter().any(|s| !(*s >= 1.0 && *s <= 1e6 && s.fract() == 0.0)) {
                return keys.wrong("shape", "give whole numbers of at least 1");
            }
            if shape.iter().product::<f64>() > LARGEST as f64 {
                return keys.wrong("shape", "too many pixels");
            }
            if !(max > 1e-100 && max < 1e100) {
                return keys.wrong("max", "give a positive number");
            }
            let shape: Vec<usize> = shape.iter().map(|s| *s as usize).collect();
            let encoder = match keys.text("encoder")?.as_deref() {
                None => None,
                Some("pixels") => Some(ImageEncoder::Pixels),
                Some("scattering") => Some(ImageEncoder::Scattering),
                Some("mirrored-scattering") => Some(ImageEncoder::MirroredScattering),
                Some(_) => return keys.wrong("encoder", "give \"pixels\", \"scattering\" or \"mirrored-scattering\""),
            };
            let scattered = encoder.is_some_and(ImageEncoder::scatters);
            if scattered && (shape.len() < 2 || shape[..2].iter().any(|s| *s < scattering::LEAST_SIDE)) {
                return keys.wrong("encoder", "scattering needs pictures of at least 6 x 6 pixels: give \"pixels\"");
            }
            let resize = keys.flag("resize")?.unwrap_or(false);
            let moments = match (keys.numbers("mean")?, keys.numbers("deviation")?) {
                (None, None) => None,
                (Some(mean), Some(deviation)) => Some(ChannelMoments { mean, deviation }),
                (Some(_), None) => {
                    return keys.wrong("deviation", "with mean = [...] give deviation = [...] too, one for each channel");
                }
                (None, Some(_)) => {
                    return keys.wrong("mean", "with deviation = [...] give mean = [...] too, one for each channel");
                }
            };
            // Whoever says what pixels are like means pixels.
            let encoder = encoder.or(moments.as_ref().map(|_| ImageEncoder::Pixels));
            Features::Image { shape, max, encoder, resize, moments }
        }
        other => return keys.wrong("kind", &format!("{other:?} is unknown: give \"sparse\", \"dense\" or \"image\"")),
    };
    keys.finish("kind, dimension, row_norm, bound, shape, max, encoder, resize, mean, deviation, intercept")?;
    Ok((features, intercept))
}

fn feature(mut keys: Keys) -> Result<Feature> {
    let kind = keys.text("type")?;
    let kind = keys.need("type", kind, "give \"number\", \"category\" or \"ignore\"")?;
    let feature = match kind.as_str() {
        "number" => {
            let (min, max) = (keys.number("min")?, keys.number("max")?);
            let min = keys.need("min", min, "give the smallest value that can occur: min = ...")?;
            let max = keys.need("max", max, "give the largest value that can occur: max = ...")?;
            if !(min < max && (max - min).is_finite()) {
                return keys.wrong("max", "give a number above min");
            }
            let log = match keys.text("scale")?.as_deref() {
                None | Some("linear") => false,
                Some("log") => true,
                Some(_) => return keys.wrong("scale", "give \"linear\" or \"log\""),
            };
            keys.finish("type, min, max, scale")?;
            Feature::Number { min, max, log }
        }
        "category" => {
            let values = keys.texts("values")?;
            let values = keys.need("values", values, "list the values that can occur: values = [...]")?;
            if values.is_empty() {
                return keys.wrong("values", "list at least one value");
            }
            keys.finish("type, values")?;
            Feature::Category(values)
        }
        "ignore" => Feature::Ignore,
        other => return keys.wrong("type", &format!("{other:?} is unknown: give \"number\", \"category\" or \"ignore\"")),
    };
    Ok(feature)
}

/// Where a text stops being TOML and why, on one line that ends with the fix.
pub fn toml_problem(text: &str, error: &toml::de::Error) -> String {
    let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let before = error.span().and_then(|s| text.get(..s.start)).unwrap_or_default();
    let (line, column) = (before.matches('\n').count() + 1, before.chars().rev().take_while(|c| *c != '\n').count() + 1);
    match text.lines().nth(line - 1).map(|l| l.trim().chars().take(60).collect::<String>()).filter(|l| !l.is_empty()) {
        Some(there) => format!("line {line}, column {column}, `{there}`: {what}; correct that line"),
        None => format!("line {line}, column {column}: {what}; correct that line"),
    }
}

/// What `privfit schema bounds` wrote down.
fn private_bounds(mut table: Keys) -> Result<PrivateBounds> {
    let wrong = || Error::misuse("[private_bounds] is not what `privfit schema bounds` wrote: release the bounds again");
    let event = table.text("event")?.ok_or_else(wrong)?;
    let event: Event = serde_json::from_str(&event).map_err(|_| wrong())?;
    if !matches!(event, Event::DiscreteGaussian { .. } | Event::NotPrivate { .. }) || event.validate().is_err() {
        return Err(wrong());
    }
    let columns = table.table.remove("columns").and_then(|v| v.as_array().cloned()).ok_or_else(wrong)?;
    let columns = columns.iter().map(|c| c.as_str().map(String::from)).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
    let plan = table.text("plan")?.map(|text| serde_json::from_str(&text).map_err(|_| wrong())).transpose()?;
    table.finish("columns, event, plan")?;
    Ok(PrivateBounds { columns, event, plan })
}
