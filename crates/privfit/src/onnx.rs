//! A released model as an ONNX file: rows go in in the units of the user's columns, classes or numbers come out. The encoder of
//! the schema is a part of the graph. Nothing here costs anything.
//!
//! Rows of numbers alone are one tensor `features` [N, D] of floats, in the order of the schema. With categories there is one tensor
//! [N, 1] for each column, of floats or of texts, under the column's name. Inside everything is computed in doubles. A number that is
//! not one (NaN) counts as missing, as in a table; a category must be written as the schema writes it, where a table may also say 1.0
//! for 1. The pixels of a picture are one row of `features`, as they lie in its file: row by row, the channels of a pixel side by side.
//! Layers of a network compute in floats, as they do in the network itself, and so do scattering features, whose convolutions with fixed weights are a part of the graph.

mod cells;
mod graph;
mod layers;
mod proto;
mod scattering;

use crate::artifact::Artifact;
use crate::certificate::derive::hex;
use crate::data::encode::scattering_of;
use crate::error::{Error, Result};
use crate::loss::Link;
use crate::model::Model;
use crate::schema::Task;
use crate::schema::{Feature, Features, Scaling, Schema, TargetValues};
use graph::Graph;
use proto::{Element, Message, operators, pair};

/// Version of the main set of operations: of 2020, and known to every runtime since.
const OPERATORS: i64 = 13;
/// Version of the set with `LabelEncoder`.
const LEARNING_OPERATORS: i64 = 2;
/// Version of the file format that goes with both.
const FORMAT: i64 = 7;
/// Below the smallest square that matters.
const TINY: f64 = 1e-300;

/// The bytes of an ONNX file; `file` are those of the model file, whose SHA-256 goes into the metadata.
pub fn export(artifact: &Artifact, file: &[u8]) -> Result<Vec<u8>> {
    let task = artifact.schema.task();
    if task == Task::Location {
        return Err(Error::misuse("the model is a point and predicts nothing: print it with `privfit predict`"));
    }
    let mut graph = Graph::default();
    let scores = match &artifact.model {
        Model::Additive(model) => cells::scores(&mut graph, model),
        Model::Network(model) => {
            // A network has biases of its own and leaves the constant out.
            let row = encoded_row(&mut graph, &artifact.schema, false);
            layers::scores(&mut graph, model, &row)?
        }
        Model::Linear(_) | Model::Point(_) => {
            let row = encoded_row(&mut graph, &artifact.schema, true);
            scores(&mut graph, artifact, &row)
        }
    };
    match task {
        Task::Number | Task::Location => number(&mut graph, artifact, &scores),
        Task::Classes(classes) => classify(&mut graph, artifact, &scores, classes),
    }
    let mut model = Message::default().number(1, FORMAT).text(2, "privfit").text(3, env!("CARGO_PKG_VERSION"));
    model = model.inner(7, &graph.done(&artifact.schema.name));
    model = model.inner(8, &operators("", OPERATORS)).inner(8, &operators("ai.onnx.ml", LEARNING_OPERATORS));
    let facts: Vec<Message> = metadata(artifact, file).iter().map(|(k, v)| pair(k, v)).collect();
    Ok(model.all(14, &facts).done())
}

/// What a reader of the file should know about the model.
pub fn metadata(artifact: &Artifact, file: &[u8]) -> Vec<(&'static str, String)> {
    let g = &artifact.guarantee;
    let epsilon = |e: Option<f64>| e.map_or("infinite".to_string(), crate::certificate::round_up);
    vec![
        ("privfit.private", g.private.to_string()),
        ("privfit.simulated", g.simulated.to_string()),
        ("privfit.adjacency", g.adjacency.name().into()),
        ("privfit.epsilon.zero_out", epsilon(g.zero_out)),
        ("privfit.epsilon.replace_one", epsilon(g.replace_one)),
        ("privfit.delta", format!("{:e}", g.delta)),
        ("privfit.method", artifact.training.method.clone()),
        ("privfit.loss", artifact.model.loss().into()),
        ("privfit.program", artifact.program.clone()),
        ("privfit.model_sha256", hex(&[file])),
    ]
}

/// The row as the model meets it: what `Encoder` does, in operations. The constant is part of its length, also where it is left out.
fn encoded_row(graph: &mut Graph, schema: &Schema, constant: bool) -> String {
    let own = schema.dimension() - usize::from(schema.intercept);
    let (cells, longest, table) = match &schema.features {
        Features::Table(columns) => {
            let used: Vec<&(String, Feature)> = columns.iter().filter(|c| c.1 != Feature::Ignore).collect();
            (table(graph, &used), used.len() as f64, true)
        }
        Features::Sparse { row_norm, bound, .. } | Features::Dense { row_norm, bound, .. } => {
            (plain(graph, own, *bound, 1.0), row_norm * row_norm, false)
        }
        Features::Image { max, .. } => (pixels(graph, schema, own, *max), own as f64, false),
    };
    let squares = graph.apply("Mul", &[&cells, &cells]);
    let square = graph.row_sums(&squares);
    // A row of a table can't be longer than its columns allow; another row is clipped.
    let cells = if table {
        cells
    } else {
        let length = graph.with("Max", &square, longest);
        let whole = graph.scalar(longest);
        let part = graph.apply("Div", &[&whole, &length]);
        let cut = graph.apply("Sqrt", &[&part]);
        graph.apply("Mul", &[&cells, &cut])
    };
    let one = f64::from(u8::from(schema.intercept));
    let row = if schema.intercept && constant {
        // A column of ones, one for each row.
        let none = graph.with("Mul", &square, 0.0);
        let constant = graph.with("Add", &none, 1.0);
        graph.beside(&[&cells, &constant])
    } else {
        cells
    };
    match schema.scaling {
        Scaling::Ball => graph.with("Mul", &row, 1.0 / (longest + one).sqrt()),
        Scaling::Sphere => {
            let shorter = graph.with("Min", &square, longest);
            let size = graph.with("Add", &shorter, one);
            // A row of zeros stays one, whatever it is divided by.
            let size = graph.with("Max", &size, TINY);
            let length = graph.apply("Sqrt", &[&size]);
            graph.apply("Div", &[&row, &length])
        }
    }
}

/// Rows of numbers without bounds of their own.
fn plain(graph: &mut Graph, width: usize, bound: Option<f64>, divide: f64) -> String {
    graph.input("features", Element::Float, width);
    let x = graph.cast("features", Element::Double);
    let x = zero_for_nan(graph, &x, &x);
    // No float is beyond what the encoder cuts rows without a bound at, except infinity.
    let largest = bound.unwrap_or(1e150);
    let x = graph.with("Max", &x, -largest);
    let x = graph.with("Min", &x, largest);
    if divide == 1.0 { x } else { graph.with("Div", &x, divide) }
}

/// Pixels, or the scattering features of a picture.
fn pixels(graph: &mut Graph, schema: &Schema, own: usize, max: f64) -> String {
    let Some(all) = scattering_of(schema).map(|s| s.convolutions()) else { return plain(graph, own, None, max) };
    let pixels = plain(graph, all.picture.iter().product(), Some(max), max);
    let pixels = graph.with("Max", &pixels, 0.0);
    scattering::features(graph, &all, &pixels)
}

fn zero_for_nan(graph: &mut Graph, asked: &str, otherwise: &str) -> String {
    let missing = graph.apply("IsNaN", &[asked]);
    let zero = graph.scalar(0.0);
    graph.apply("Where", &[&missing, &zero, otherwise])
}

/// Columns of a table: one tensor if all are numbers, one for each column otherwise.
fn table(graph: &mut Graph, columns: &[&(String, Feature)]) -> String {
    if columns.iter().all(|c| matches!(c.1, Feature::Number { .. })) {
        graph.input("features", Element::Float, columns.len());
        let features: Vec<&Feature> = columns.iter().map(|c| &c.1).collect();
        return numbers(graph, "features", &features);
    }
    let mut parts = Vec::new();
    for (name, feature) in columns {
        parts.push(match feature {
            Feature::Category(values) => {
                graph.input(name, Element::Text, 1);
                let place = graph.places(name, values);
                let places: Vec<i64> = if values.len() == 2 { vec![1] } else { (0..values.len() as i64).collect() };
                let places = graph.integers(&places);
                let same = graph.apply("Equal", &[&place, &places]);
                graph.cast(&same, Element::Double)
            }
            _ => {
                graph.input(name, Element::Float, 1);
                numbers(graph, name, &[feature])
            }
        });
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    graph.beside(&parts)
}

/// Numbers, clamped to their bounds and mapped to -1 ... 1; a missing one is the middle.
fn numbers(graph: &mut Graph, input: &str, features: &[&Feature]) -> String {
    let facts: Vec<(f64, f64, bool)> = features
        .iter()
        .map(|f| match f {
            Feature::Number { min, max, log } => (*min, max - min, *log),
            _ => (0.0, 1.0, false),
        })
        .collect();
    let width = [facts.len()];
    let column = |of: &dyn Fn(&(f64, f64, bool)) -> f64| facts.iter().map(of).collect::<Vec<f64>>();
    let x = graph.cast(input, Element::Double);
    let (low, range) = (graph.constant(&width, &column(&|f| f.0)), graph.constant(&width, &column(&|f| f.1)));
    let above = graph.apply("Sub", &[&x, &low]);
    let above = graph.with("Max", &above, 0.0);
    let along = graph.apply("Min", &[&above, &range]);
    let mut part = graph.apply("Div", &[&along, &range]);
    if facts.iter().any(|f| f.2) {
        let more = graph.with("Add", &along, 1.0);
        let ln = graph.apply("Log", &[&more]);
        let most = graph.constant(&width, &column(&|f| f.1.ln_1p()));
        let curved = graph.apply("Div", &[&ln, &most]);
        let straight = graph.constant(&width, &column(&|f| if f.2 { 0.0 } else { 1.0 }));
        let bent = graph.constant(&width, &column(&|f| if f.2 { 1.0 } else { 0.0 }));
        let (a, b) = (graph.apply("Mul", &[&part, &straight]), graph.apply("Mul", &[&curved, &bent]));
        part = graph.apply("Add", &[&a, &b]);
    }
    let twice = graph.with("Mul", &part, 2.0);
    let cell = graph.with("Sub", &twice, 1.0);
    zero_for_nan(graph, &x, &cell)
}

/// Scores of the row, one column each.
fn scores(graph: &mut Graph, artifact: &Artifact, row: &str) -> String {
    let model = &artifact.model;
    let (d, k) = (artifact.schema.dimension(), model.outputs());
    // Feature by feature.
    let across: Vec<f64> = (0..d).flat_map(|i| model.weights().iter().map(move |w| w[i])).collect();
    let weights = graph.constant(&[d, k], &across);
    let Some(map) = model.map() else { return graph.apply("MatMul", &[row, &weights]) };
    let size = graph.apply("Abs", &[row]);
    let root = graph.apply("Sqrt", &[&size]);
    let sign = graph.apply("Sign", &[row]);
    let signed = graph.apply("Mul", &[&root, &sign]);
    let factors = graph.constant(&[d], &map.factors);
    let mapped = graph.apply("Mul", &[&signed, &factors]);
    let sum = graph.apply("MatMul", &[&mapped, &weights]);
    let squares = graph.apply("Mul", &[&mapped, &mapped]);
    let square = graph.row_sums(&squares);
    let square = graph.with("Max", &square, TINY);
    let length = graph.apply("Sqrt", &[&square]);
    let own = graph.apply("Div", &[&sum, &length]);
    let more = graph.with("Add", &own, map.constant * map.weight);
    graph.with("Div", &more, (1.0 + map.constant * map.constant).sqrt())
}

fn number(graph: &mut Graph, artifact: &Artifact, scores: &str) {
    let (low, high) = match artifact.schema.target.values {
        TargetValues::Bounds(low, high) => (low, high),
        _ => (-1.0, 1.0),
    };
    // The part of the way from the lower bound to the upper one.
    let part = match artifact.model.link() {
        Link::Log => {
            let below = graph.with("Min", scores, 0.0);
            graph.apply("Exp", &[&below])
        }
        Link::Share => graph.apply("Sigmoid", &[scores]),
        _ => {
            let above = graph.with("Max", scores, -1.0);
            let between = graph.with("Min", &above, 1.0);
            let more = graph.with("Add", &between, 1.0);
            graph.with("Div", &more, 2.0)
        }
    };
    let along = graph.with("Mul", &part, high - low);
    let value = graph.with("Add", &along, low);
    let value = graph.cast(&value, Element::Float);
    graph.output(&value, "value", Element::Float, Some(1));
}

fn classify(graph: &mut Graph, artifact: &Artifact, scores: &str, classes: usize) {
    let model = &artifact.model;
    let single = model.outputs() == 1;
    let class = if single {
        let zero = graph.scalar(0.0);
        let positive = graph.apply("Greater", &[scores, &zero]);
        let number = graph.cast(&positive, Element::Int64);
        graph.flat(&number)
    } else {
        graph.largest(scores)
    };
    let label = graph.named(&class, &artifact.schema.class_names());
    graph.output(&label, "label", Element::Text, None);
    let probabilities = match model.link() {
        Link::Softmax => Some(graph.softmax(scores)),
        Link::LogOdds(at) => {
            let clip = model.loss_parameters().get(at).copied().unwrap_or(1.0);
            // The derivative at a margin m is 1/(1 + e^m), clipped.
            let minus = graph.apply("Neg", &[scores]);
            let (down, up) = (graph.apply("Sigmoid", &[scores]), graph.apply("Sigmoid", &[&minus]));
            let (down, up) = (graph.with("Min", &down, clip), graph.with("Min", &up, clip));
            let both = graph.apply("Add", &[&up, &down]);
            let own = graph.apply("Div", &[&down, &both]);
            Some(if single {
                let rest = graph.apply("Div", &[&up, &both]);
                graph.beside(&[&rest, &own])
            } else {
                let sum = graph.row_sums(&own);
                graph.apply("Div", &[&own, &sum])
            })
        }
        _ => None,
    };
    let (name, from, width) = match &probabilities {
        Some(p) => ("probabilities", p.as_str(), classes),
        None => ("scores", scores, model.outputs()),
    };
    let out = graph.cast(from, Element::Float);
    graph.output(&out, name, Element::Float, Some(width));
}
