//! The layers of a released network one by one: what comes in, what goes out, and where their weights lie. For listings, pictures and other programs.

use super::layer::{Layer, Shape};
use super::model::NetworkModel;
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::Range;

/// A layer in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedLayer {
    /// The layer; the last one gives the scores.
    pub layer: Layer,
    /// What comes in.
    pub input: Shape,
    /// What goes out.
    pub output: Shape,
    /// Where its weights lie in the list of all weights.
    pub weights: Range<usize>,
}

impl PlacedLayer {
    /// Inputs of a weighted sum, and how many sums there are; none for a layer without sums.
    pub fn sums(&self) -> Option<(usize, usize)> {
        match self.layer {
            Layer::Dense(n) => Some((self.input.size(), n)),
            Layer::Convolution { filters, kernel, .. } => Some((kernel * kernel * self.input.channels, filters)),
            _ => None,
        }
    }

    /// How many weights it has.
    fn count(&self) -> usize {
        match (self.sums(), self.layer) {
            (Some((inputs, outputs)), _) => (inputs + 1) * outputs,
            (None, Layer::GroupNorm(_)) => 2 * self.input.channels,
            _ => 0,
        }
    }
}

impl NetworkModel {
    /// All layers, with the flattening that pictures get before the scores, and with the scores.
    pub fn placed(&self) -> Result<Vec<PlacedLayer>> {
        let damaged = || Error::damaged("the layers of the network do not fit its weights: fetch the file again");
        let (network, _) = self.network().ok_or_else(damaged)?;
        let mut out: Vec<PlacedLayer> = Vec::new();
        let mut place = |layer: Layer| -> Result<Shape> {
            let (input, at) = out.last().map_or((network.input, 0), |l| (l.output, l.weights.end));
            let output = layer.shape(out.len() + 1, input)?;
            let mut placed = PlacedLayer { layer, input, output, weights: at..at };
            placed.weights.end = at + placed.count();
            out.push(placed);
            Ok(output)
        };
        let mut last = network.input;
        for layer in network.layers() {
            last = place(*layer)?;
        }
        if (last.height, last.width) != (1, 1) {
            place(Layer::Flatten)?;
        }
        place(Layer::Dense(self.outputs()))?;
        if out.last().is_none_or(|l| l.weights.end != self.weights.len()) {
            return Err(damaged());
        }
        Ok(out)
    }

    /// Its layers for programs, and its history.
    pub fn listing(&self) -> Result<Value> {
        let layers: Vec<Value> = self
            .placed()?
            .iter()
            .map(|l| {
                let shape = [l.output.height, l.output.width, l.output.channels];
                json!({"layer": l.layer.to_string(), "shape": shape, "weights": l.weights.len()})
            })
            .collect();
        let mut out = json!({"input": self.input, "scale": self.scale, "shift": self.shift, "layers": layers, "weights": self.weights.len(), "history": self.history});
        if !self.normal.is_empty() {
            let (scales, shifts) = self.normal.split_at(self.normal.len() / 2);
            out["normal"] = json!({"scales": scales, "shifts": shifts});
        }
        Ok(out)
    }

    /// All weights as CSV: the number of the layer from 1, its words, what the number is, and which input and output it is of.
    pub fn weights_csv(&self) -> Result<String> {
        let mut out = String::from("number,layer,what,input,output,value\n");
        for (i, placed) in self.placed()?.iter().enumerate() {
            let own = &self.weights[placed.weights.clone()];
            let head = format!("{},{}", i + 1, placed.layer);
            let mut line = |what: &str, input: String, output: usize, value: f64| {
                let _ = writeln!(out, "{head},{what},{input},{output},{value}");
            };
            match placed.sums() {
                Some((inputs, outputs)) => {
                    for (at, value) in own.iter().enumerate() {
                        let (input, output) = (at / outputs, at % outputs);
                        let what = if input < inputs { "weight" } else { "bias" };
                        line(what, if input < inputs { input.to_string() } else { String::new() }, output, *value);
                    }
                }
                None => {
                    let channels = own.len() / 2;
                    for (at, value) in own.iter().enumerate() {
                        let what = if at < channels { "scale" } else { "offset" };
                        line(what, String::new(), at % channels, *value);
                    }
                }
            }
        }
        Ok(out)
    }
}
