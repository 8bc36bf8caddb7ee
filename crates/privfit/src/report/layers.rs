//! The layers of a network, and how its training went, from what was released on the way.

use super::filters::Filters;
use super::html::{Page, folded, paragraph, table};
use crate::artifact::Artifact;
use crate::model::Model;
use crate::network::{History, Point};
use crate::plot::{Axis, Plot, Series, Unit, escape, short};
use serde::Serialize;

/// A network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layers {
    /// What comes in, in words.
    pub input: String,
    /// Layers in order; the last one gives the scores.
    pub layers: Vec<LayerRow>,
    /// Weights in all.
    pub weights: usize,
    /// Those that were trained on the records; fewer where layers are frozen.
    pub trained: usize,
    /// How training went, where the model file states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerRow {
    /// Its words.
    pub layer: String,
    /// What comes out of it, in words.
    pub output: String,
    /// How many weights it has.
    pub weights: usize,
}

impl Layers {
    /// Those of a model; none where it is no network.
    pub(super) fn of(artifact: &Artifact) -> Option<Layers> {
        let Model::Network(model) = &artifact.model else { return None };
        let placed = model.placed().ok()?;
        let row = |l: &crate::network::PlacedLayer| LayerRow {
            layer: l.layer.to_string(),
            output: l.output.to_string(),
            weights: l.weights.len(),
        };
        Some(Layers {
            input: placed.first()?.input.to_string(),
            layers: placed.iter().map(row).collect(),
            weights: model.weights.len(),
            trained: match artifact.training.inputs.as_ref().is_some_and(|i| i.pretrained.is_some()) {
                true => placed.last()?.weights.len(),
                false => model.weights.len(),
            },
            history: model.history.clone(),
        })
    }

    /// The list of layers, as cells of a table.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = vec![vec!["what comes in".to_string(), self.input.clone(), String::new()]];
        let weights = |l: &LayerRow| if l.weights == 0 { String::new() } else { l.weights.to_string() };
        rows.extend(self.layers.iter().map(|l| vec![l.layer.clone(), l.output.clone(), weights(l)]));
        if let Some(last) = rows.last_mut() {
            last[0] += " (scores)";
        }
        rows
    }
}

/// The released numbers of a network: its layers, pictures of those weights that meet pixels, and what is known about the noise.
pub(super) fn released(layers: &Layers, filters: Option<&Filters>, noise: &str) -> String {
    let mut body = paragraph(&match layers.trained < layers.weights {
        false => format!(
            "The model is a network with {} weights. They are what was released: whoever has the file can read all of them.",
            layers.weights
        ),
        true => format!(
            "The model is a network with {} weights. The {} of its scores are what was released. The layers before them were trained on public rows and hold nothing of the private records.",
            layers.weights, layers.trained
        ),
    });
    body += &table(&["layer", "comes out (height x width x channels)", "#weights"], &layers.rows(), None);
    body += &filters.map_or(String::new(), Filters::figure);
    body + &format!("<p class=\"note\">{}</p>\n", escape(noise))
}

/// How training went.
pub(super) fn training(layers: &Layers, page: &mut Page) {
    let Some(history) = layers.history.as_ref().filter(|h| !h.points.is_empty()) else { return };
    let mut body = paragraph(
        "Each step released a sum of clipped gradients with noise, and nothing else. How long such a sum is, and how long noise alone \
         would be, tells how much the records had to say: the square of the one less the square of the other is an estimate of the \
         gradient without noise.",
    );
    body += &signal(history, layers.trained).figure(&escape(&format!(
        "Made of numbers that were released for the model itself, so that it costs nothing and reveals nothing more. Lengths are those \
         of the mean gradient in units of the clip, over {}. A gradient without noise shorter than about {} can't be told from none.",
        steps_of_a_point(history),
        short(history.least_visible(layers.trained))
    )));
    body += &moves(history).figure(
        "From the weights of one step to those of the next; the learning rate is read off with it. This costs nothing either.",
    );
    let rows: Vec<Vec<String>> = history
        .points
        .iter()
        .map(|p| vec![p.step.to_string(), short(p.noisy), short(p.signal), short(p.learning_rate), short(p.moved)])
        .collect();
    let heads = ["#until step", "#noisy gradient", "#without noise", "#learning rate", "#move of a step"];
    body += &folded("The same as a table", &table(&heads, &rows, None));
    page.section("training", "How training went", &body);
}

fn steps_of_a_point(history: &History) -> String {
    match history.steps / history.points.len().max(1) as u64 {
        0 | 1 => "single steps".into(),
        n => format!("means of about {n} steps"),
    }
}

fn line(class: &'static str, name: &str, history: &History, value: &dyn Fn(&Point) -> (f64, String)) -> Series {
    let point = |p: &Point| {
        let (y, text) = value(p);
        (p.step as f64, y, format!("step {}: {text}", p.step))
    };
    Series { class, name: name.into(), points: history.points.iter().map(point).collect(), ..Series::default() }
}

fn signal(history: &History, weights: usize) -> Plot {
    let most = history.points.iter().map(|p| p.noisy).fold(history.noise, f64::max);
    let mean = |part: &[Point]| part.iter().map(|p| p.signal).sum::<f64>() / part.len().max(1) as f64;
    let (first, last) = history.points.split_at(history.points.len() / 2);
    Plot {
        id: "training-plot",
        title: "Signal and noise of the gradient over the steps".into(),
        description: format!(
            "Line plot over {} steps of {weights} weights. Noise alone would be {} long; the gradient without noise is about {} in the \
             first half and {} in the second.",
            history.steps,
            short(history.noise),
            short(mean(first)),
            short(mean(last))
        ),
        x: Axis::from_zero("steps", history.steps as f64, Unit::Count),
        y: Axis::from_zero("length, in units of the clip", most, Unit::Plain),
        series: vec![
            line("c1", "with noise, as released", history, &|p| (p.noisy, format!("with noise {}", short(p.noisy)))),
            line("c2", "without noise, estimated", history, &|p| (p.signal, format!("without noise about {}", short(p.signal)))),
            line("quiet", "noise alone", history, &|_| (history.noise, format!("noise alone {}", short(history.noise)))),
        ],
        levels: Vec::new(),
        marks: Vec::new(),
    }
}

fn moves(history: &History) -> Plot {
    let most = history.points.iter().map(|p| p.moved).fold(0.0, f64::max);
    let text = |p: &Point| format!("the weights move by {}, learning rate {}", short(p.moved), short(p.learning_rate));
    Plot {
        id: "moves-plot",
        title: "How far the weights move in a step".into(),
        description: history.points.last().map(|p| format!("At the end, step {}: {}.", p.step, text(p))).unwrap_or_default(),
        x: Axis::from_zero("steps", history.steps as f64, Unit::Count),
        y: Axis::from_zero("length of a move", most, Unit::Plain),
        series: vec![line("c1", "move of the weights", history, &|p| (p.moved, text(p)))],
        levels: Vec::new(),
        marks: Vec::new(),
    }
}
