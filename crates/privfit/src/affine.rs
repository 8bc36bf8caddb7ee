//! A released linear model as coefficients that people can read: in encoded units for every model, in the units of the columns where
//! the encoder is one scaling for all rows. Nothing here costs anything.

use crate::artifact::Artifact;
use crate::error::{Error, Result};
use crate::loss::Link;
use crate::model::Model;
use crate::schema::Task;
use crate::schema::{Feature, Features, Scaling, Schema, TargetValues};
use serde_json::{Value, json};

/// A cell of a line of CSV.
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

/// Weights over the encoded features as CSV: one line to a feature, one column to a score. Of an additive model its curves: one line to a cell of a column. Of a
/// network one line to a weight.
pub fn weights_csv(artifact: &Artifact) -> Result<String> {
    if let Model::Network(network) = &artifact.model {
        return network.weights_csv();
    }
    let additive = match &artifact.model {
        Model::Additive(model) => Some(model),
        Model::Linear(_) | Model::Point(_) | Model::Network(_) => None,
    };
    let mut out = String::from(if additive.is_some() { "column,cell,share" } else { "feature" });
    for name in score_names(artifact) {
        out.push(',');
        out.push_str(&quoted(&name));
    }
    out.push('\n');
    if let Some(model) = additive {
        for (column, curve) in model.grid.columns.iter().zip(&model.curves) {
            for (cell, share) in curve.shares.iter().enumerate() {
                out.push_str(&format!("{},{},{share}", quoted(&column.name), quoted(&column.kind.cell_name(cell))));
                curve.scores.iter().for_each(|scores| out.push_str(&format!(",{}", scores[cell])));
                out.push('\n');
            }
        }
        return Ok(out);
    }
    for (i, name) in artifact.schema.feature_names().iter().enumerate() {
        out.push_str(&quoted(name));
        artifact.model.weights().iter().for_each(|w| out.push_str(&format!(",{}", w[i])));
        out.push('\n');
    }
    Ok(out)
}

/// A name for each score: the class that it speaks for, or what the number is.
fn score_names(artifact: &Artifact) -> Vec<String> {
    let names = artifact.schema.class_names();
    match (artifact.schema.task(), artifact.model.outputs()) {
        (Task::Location, _) => vec!["point".into()],
        (Task::Classes(_), 1) => vec![names.get(1).cloned().unwrap_or_default()],
        (Task::Classes(_), _) => names,
        (Task::Number, _) => vec![artifact.schema.target.column.clone().unwrap_or("target".into())],
    }
}

/// Coefficients in the units of the columns.
pub fn coefficients(artifact: &Artifact) -> Result<Value> {
    let schema = &artifact.schema;
    let fix = "export it as ONNX or as CSV";
    if schema.task() == Task::Location {
        return Err(Error::misuse("the model is a point: print it in its units with `privfit predict`"));
    }
    if matches!(artifact.model, Model::Additive(_)) {
        return Err(Error::misuse("an additive model has curves, not coefficients: export it as CSV"));
    }
    if matches!(artifact.model, Model::Network(_)) {
        return Err(Error::misuse("a network has layers, not coefficients: its model file holds them"));
    }
    if schema.scatters() {
        return Err(Error::misuse(
            "the model predicts from scattering features, which have no units: its model file holds its weights",
        ));
    }
    if artifact.model.map().is_some() {
        return Err(Error::misuse(format!("the model changes each row by itself and has no coefficients in units: {fix}")));
    }
    if schema.scaling == Scaling::Sphere {
        return Err(Error::misuse(format!(
            "each row is divided by its own length, so that there are no coefficients in units: {fix}, or fit with scaling = \"ball\" \
             in [encoding]"
        )));
    }
    let scores: Vec<Value> = (score_names(artifact).into_iter().zip(artifact.model.weights()))
        .map(|(name, weights)| {
            let (intercept, terms) = one_score(schema, weights);
            json!({"name": name, "intercept": intercept, "terms": terms})
        })
        .collect();
    let g = &artifact.guarantee;
    let mut out = json!({
        "what": reading(artifact), "loss": artifact.model.loss(), "scores": scores,
        "guarantee": {"private": g.private, "simulated": g.simulated, "adjacency": g.adjacency.name(), "delta": g.delta,
            "epsilon": {"zero_out": g.zero_out, "replace_one": g.replace_one}},
    });
    if let TargetValues::Bounds(low, high) = schema.target.values {
        out["bounds"] = json!([low, high]);
    }
    if !matches!(schema.features, Features::Table(_)) {
        out["row_norm"] = json!(longest(schema).sqrt());
    }
    Ok(out)
}

/// Square of the longest row before the constant.
fn longest(schema: &Schema) -> f64 {
    match &schema.features {
        Features::Table(columns) => columns.iter().filter(|c| c.1 != Feature::Ignore).count() as f64,
        Features::Sparse { row_norm, .. } | Features::Dense { row_norm, .. } => row_norm * row_norm,
        Features::Image { shape, .. } => shape.iter().product::<usize>() as f64,
    }
}

/// How scores are read, in words.
fn reading(artifact: &Artifact) -> String {
    let cells = match artifact.schema.features {
        Features::Table(_) => {
            "clamp each number to min and max (a missing one is the middle, on its scale), add coefficient times it, or times \
             ln(1 + x - min) for scale log; a category adds the coefficient of its value, an unlisted one nothing"
        }
        Features::Image { .. } => {
            "divide pixels by max, scale rows longer than row_norm down to it, add coefficient times each cell"
        }
        _ => "scale rows longer than row_norm down to it, add coefficient times each cell",
    };
    let last = match (artifact.schema.task(), artifact.model.weights().len()) {
        (Task::Number | Task::Location, _) if artifact.model.link() == Link::Log => {
            "the number is the upper bound times e^min(score, 0)"
        }
        (Task::Number | Task::Location, _) if artifact.model.link() == Link::Share => {
            "the number is lower bound + (upper - lower bound)/(1 + e^-score)"
        }
        (Task::Number | Task::Location, _) => {
            "the number is lower bound + (score + 1)/2 (upper - lower bound), with scores from -1 to 1"
        }
        (Task::Classes(_), 1) => "the named class if the score is above 0",
        (Task::Classes(_), _) => "the class with the largest score",
    };
    format!("{cells}; add the intercept: that is the score; {last}")
}

/// Intercept and terms of one score.
fn one_score(schema: &Schema, weights: &[f64]) -> (f64, Vec<Value>) {
    let one = f64::from(u8::from(schema.intercept));
    let factor = 1.0 / (longest(schema) + one).sqrt();
    let mut intercept = if schema.intercept { weights.last().copied().unwrap_or(0.0) * factor } else { 0.0 };
    let mut terms = Vec::new();
    let mut rest = weights.iter().map(|w| w * factor);
    let mut next = || rest.next().unwrap_or(0.0);
    match &schema.features {
        Features::Table(columns) => {
            for (name, feature) in columns {
                match feature {
                    Feature::Ignore => {}
                    Feature::Number { min, max, log } => {
                        let w = next();
                        let coefficient = 2.0 * w / if *log { (max - min).ln_1p() } else { max - min };
                        intercept -= w + if *log { 0.0 } else { coefficient * min };
                        terms.push(json!({"column": name, "scale": if *log { "log" } else { "linear" }, "min": min, "max": max,
                            "coefficient": coefficient}));
                    }
                    Feature::Category(values) => {
                        let listed = if values.len() == 2 { &values[1..] } else { &values[..] };
                        let term = |v: &String| json!({"column": name, "value": v, "coefficient": next()});
                        terms.extend(listed.iter().map(term));
                    }
                }
            }
        }
        _ => {
            let own = schema.dimension() - usize::from(schema.intercept);
            terms.extend((0..own).map(|i| json!({"column": i, "coefficient": next()})));
        }
    }
    (intercept, terms)
}
