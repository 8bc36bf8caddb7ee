//! From the text of a schema file to its facts.

use super::key;
use super::keys::Keys;
use super::{
    ChannelMoments, Declared, Feature, Features, ImageEncoder, LARGEST, PrivateBounds, Scaling, Schema, Target, TargetValues,
    UNNAMED, UnitOfPrivacy, open,
};
use crate::error::{Error, Result};
use crate::scattering;
use privfit_kernel::account::Event;
use toml::{Table, Value};

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
