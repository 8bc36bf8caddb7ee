//! The scores of a network in operations. Numbers are floats here, as they are in the network itself.
//!
//! A picture of the network lies row by row, pixel by pixel, with the channels of a pixel side by side; operations on pictures want one plane for each channel. So pictures are turned
//! when they come in, and back before they are flattened, and weights stay in the order of the model file.

use super::graph::Graph;
use super::proto::Element;
use crate::error::{Error, Result};
use crate::network::{Layer, NetworkModel, PlacedLayer, Shape};

/// Scores of encoded rows, one column each.
pub(super) fn scores(graph: &mut Graph, model: &NetworkModel, row: &str) -> Result<String> {
    let row = graph.cast(row, Element::Float);
    let scale = graph.floats(&[], &[model.scale]);
    let shift = graph.floats(&[], &[model.shift]);
    let scaled = graph.apply("Mul", &[&row, &scale]);
    let mut moved = graph.apply("Add", &[&scaled, &shift]);
    let layers = model.placed()?;
    let input = layers.first().map_or(Shape::flat(0), |l| l.input);
    if !model.normal.is_empty() {
        // One number for each input: those of a pixel, once for every pixel, where they are not those of all numbers.
        let (scales, shifts) = model.normal.split_at(model.normal.len() / 2);
        let [scales, shifts] = [scales, shifts].map(|own| own.repeat(input.size() / own.len().max(1)));
        let (scales, shifts) = (graph.floats(&[input.size()], &scales), graph.floats(&[input.size()], &shifts));
        let scaled = graph.apply("Mul", &[&moved, &scales]);
        moved = graph.apply("Add", &[&scaled, &shifts]);
    }
    let mut value = Value { name: moved, planes: false };
    if (input.height, input.width) != (1, 1) {
        value = value.with_planes(graph, input);
    }
    for placed in &layers {
        let weights: Vec<f32> = model.weights[placed.weights.clone()].iter().map(|w| *w as f32).collect();
        value = layer(graph, value, placed, &weights)?;
    }
    let flat = value.flat(graph, Shape::flat(model.outputs()));
    Ok(graph.cast(&flat.name, Element::Double))
}

/// A layer that has no operations here.
fn not_written(layer: &Layer) -> Error {
    let words = layer.to_string();
    let word = words.split(' ').next().unwrap_or_default();
    Error::misuse(format!(
        "the layer \"{layer}\" can't be exported as ONNX: export a network without {word}, or use `privfit predict`"
    ))
}

/// What goes through the graph: [N, channels, height, width] with planes, [N, numbers] without.
struct Value {
    name: String,
    planes: bool,
}

impl Value {
    fn with_planes(self, graph: &mut Graph, shape: Shape) -> Value {
        if self.planes {
            return self;
        }
        let pixels = graph.reshape(&self.name, &[shape.height, shape.width, shape.channels]);
        Value { name: graph.transpose(&pixels, &[0, 3, 1, 2]), planes: true }
    }

    fn flat(self, graph: &mut Graph, shape: Shape) -> Value {
        if !self.planes {
            return self;
        }
        let pixels = graph.transpose(&self.name, &[0, 2, 3, 1]);
        Value { name: graph.reshape(&pixels, &[shape.size()]), planes: false }
    }

    /// The same kind of value under another name.
    fn named(&self, name: String) -> Value {
        Value { name, planes: self.planes }
    }
}

fn layer(graph: &mut Graph, value: Value, placed: &PlacedLayer, weights: &[f32]) -> Result<Value> {
    let shape = placed.input;
    Ok(match placed.layer {
        Layer::Dense(n) => {
            let value = value.flat(graph, shape);
            let (matrix, bias) = weights.split_at(shape.size() * n);
            let (matrix, bias) = (graph.floats(&[shape.size(), n], matrix), graph.floats(&[n], bias));
            value.named(graph.apply("Gemm", &[&value.name, &matrix, &bias]))
        }
        Layer::Convolution { filters, kernel, stride, padding } => {
            let value = value.with_planes(graph, shape);
            let (windows, bias) = weights.split_at(kernel * kernel * shape.channels * filters);
            // From the order y, x, channel, filter to filter, channel, y, x.
            let pixels = kernel * kernel;
            let place = |f: usize, c: usize, p: usize| windows[(p * shape.channels + c) * filters + f];
            let turned: Vec<f32> = (0..filters * shape.channels * pixels)
                .map(|i| place(i / (shape.channels * pixels), i / pixels % shape.channels, i % pixels))
                .collect();
            let (turned, bias) =
                (graph.floats(&[filters, shape.channels, kernel, kernel], &turned), graph.floats(&[filters], bias));
            value.named(graph.windows("Conv", &[&value.name, &turned, &bias], kernel, stride, padding))
        }
        Layer::MaxPool { kernel, stride } | Layer::AveragePool { kernel, stride } => {
            let operator = if matches!(placed.layer, Layer::MaxPool { .. }) { "MaxPool" } else { "AveragePool" };
            let value = value.with_planes(graph, shape);
            value.named(graph.windows(operator, &[&value.name], kernel, stride, 0))
        }
        Layer::GroupNorm(groups) => {
            let (scales, offsets) = weights.split_at(shape.channels);
            let wide = if value.planes { vec![shape.channels, 1, 1] } else { vec![shape.channels] };
            let (scales, offsets) = (graph.floats(&wide, scales), graph.floats(&wide, offsets));
            // A group is an instance of its own; the least variance of the operation is that of the network, 1e-5.
            let (ones, zeros) = (graph.floats(&[groups], &vec![1.0; groups]), graph.floats(&[groups], &vec![0.0; groups]));
            let grouped = graph.reshape(&value.name, &[groups, shape.size() / groups]);
            let normal = graph.apply("InstanceNormalization", &[&grouped, &ones, &zeros]);
            let back = if value.planes { vec![shape.channels, shape.height, shape.width] } else { vec![shape.channels] };
            let normal = graph.reshape(&normal, &back);
            let scaled = graph.apply("Mul", &[&normal, &scales]);
            value.named(graph.apply("Add", &[&scaled, &offsets]))
        }
        Layer::Tanh => value.named(graph.apply("Tanh", &[&value.name])),
        Layer::Relu => value.named(graph.apply("Relu", &[&value.name])),
        Layer::Flatten => value.flat(graph, shape),
        // Whatever else a network may have is refused here, in one place, until its operations are written above.
        #[allow(unreachable_patterns)]
        _ => return Err(not_written(&placed.layer)),
    })
}
