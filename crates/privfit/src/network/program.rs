//! A network as steps over working memory: places of activations and of weights, all of them public sizes.

use super::layer::{Layer, Shape};
use super::product::{LANES, padded};
use crate::error::{Error, Result};

/// Examples that are computed together, at the most: those of a block, for networks that are scores alone.
pub(crate) const MOST_AT_ONCE: usize = 128;
/// Of other networks.
const LAYERS_AT_ONCE: usize = 64;
/// At the least, however large what they need.
const LEAST_AT_ONCE: usize = 8;
/// Most scores of networks that are scores alone and read cells where they lie: their sums for two examples stay in registers.
pub(super) const MOST_SCORES: usize = 12;
/// Numbers of working memory that stay in the second cache.
const CACHED: usize = 150_000;

/// Numbers of an example between two layers: a picture with zeros around it, and with channels that are always 0 up to a multiple of the group where a product writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    /// Without padding.
    pub(crate) shape: Shape,
    /// Channels of a pixel, those that are always 0 included.
    pub(crate) channels: usize,
    /// Rows and columns of zeros on each side.
    pub(crate) border: usize,
    /// Where the examples of a block begin in the working memory.
    pub(crate) at: usize,
}

impl Area {
    /// Numbers from one row of pixels to the next.
    pub(crate) fn row(&self) -> usize {
        (self.shape.width + 2 * self.border) * self.channels
    }

    /// Numbers of an example.
    pub(crate) fn size(&self) -> usize {
        (self.shape.height + 2 * self.border) * self.row()
    }

    /// Deltas of an example: the same without borders.
    pub(crate) fn deltas(&self) -> usize {
        self.shape.height * self.shape.width * self.channels
    }

    /// Where a pixel begins within an example.
    pub(crate) fn pixel(&self, y: usize, x: usize) -> usize {
        (y + self.border) * self.row() + (x + self.border) * self.channels
    }
}

/// Weights of a layer: of a window of inputs, and a bias, for each output.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// Inputs, and those with channels that are always 0.
    pub(crate) inputs: usize,
    /// Outputs, and those up to a multiple of the group.
    pub(crate) outputs: usize,
    pub(crate) wide: usize,
    /// For each input of a window, where it lies from the window's first number on.
    pub(crate) steps: Vec<u32>,
    /// For each input of a window, its row among the weights of the model; none for one that is always 0.
    pub(crate) own: Vec<Option<u32>>,
    /// For each window, where it begins within an example.
    pub(crate) windows: Vec<u32>,
    /// For each window, where its deltas begin.
    pub(crate) deltas: Vec<u32>,
    /// Numbers 0, 1, ..., one for each output.
    pub(crate) counting: Vec<u32>,
    /// Pixels of a side of a window, and from one window to the next.
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    /// Where they lie in the list of all weights: inputs x outputs, then a bias for each output.
    pub(crate) at: usize,
    /// Where they lie among prepared ones: inputs x wide, bias, then outputs x inputs (padded) for the way back, where that is needed.
    pub(crate) prepared: usize,
    pub(crate) back: Option<usize>,
    /// Where what is kept of each example lies in the working memory.
    pub(crate) gradients: usize,
    pub(crate) dense: bool,
}

impl Weights {
    /// Inputs of a window with those that are always 0, up to a multiple of the group.
    pub(crate) fn windowed(&self) -> usize {
        padded(self.steps.len())
    }

    /// Numbers that are kept of an example: its gradient, or the deltas of a dense layer.
    pub(crate) fn kept(&self) -> usize {
        if self.dense { self.wide } else { self.gradient_size() }
    }

    /// Numbers of the gradient of an example, in rows of `wide`: weights and bias.
    pub(crate) fn gradient_size(&self) -> usize {
        (self.steps.len() + 1) * self.wide
    }
}

/// Groups of channels with mean 0 and variance 1.
#[derive(Clone, Debug)]
pub(crate) struct Norm {
    pub(crate) groups: usize,
    /// The group and the number of each channel; none for one that is always 0.
    pub(crate) own: Vec<Option<(u32, u32)>>,
    /// Channels that are not.
    pub(crate) real: usize,
    /// Where scales, and offsets after them, lie in the list of all weights, and among prepared ones.
    pub(crate) at: usize,
    pub(crate) prepared: usize,
    /// Where mean and inverse deviation of each group lie, for each example, and the gradients of scales and offsets.
    pub(crate) moments: usize,
    pub(crate) gradients: usize,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Weighted sums of windows; dense layers have one window.
    Sums(Box<Weights>),
    MaxPool {
        kernel: usize,
        stride: usize,
    },
    AveragePool {
        kernel: usize,
        stride: usize,
    },
    GroupNorm(Box<Norm>),
    /// In place.
    Tanh,
    Relu,
}

/// One step, from an area to an area; both are the same for what is done in place.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) from: Area,
    pub(crate) to: Area,
}

/// All steps of a network.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) input: Area,
    pub(crate) steps: Vec<Step>,
    /// Scores.
    pub(crate) output: Area,
    /// Weights of the model.
    pub(crate) dimension: usize,
    /// The first step that is trained, and how many weights lie before its own: those of earlier steps are frozen.
    pub(crate) first_trained: usize,
    pub(crate) frozen: usize,
    /// Examples that are computed together.
    pub(crate) at_once: usize,
    /// Numbers of prepared weights.
    pub(crate) prepared: usize,
    /// Where weights lie once more among prepared ones, by groups of inputs, in a group score after score, then the biases: for networks that are scores alone (`linear.rs`).
    pub(crate) across: Option<usize>,
    /// Numbers of working memory: activations, then two areas for the way back, gradients of examples, and a sum.
    pub(crate) scratch: usize,
    pub(crate) deltas: [usize; 2],
    /// Room for a gradient by windows of one example.
    pub(crate) windows: usize,
    /// Room for one gradient of a layer.
    pub(crate) sum: usize,
}

/// Most weights of a network.
const MOST_WEIGHTS: usize = 1 << 26;

impl Program {
    /// The steps of layers for pictures of a shape, with so many scores at the end: a dense layer that is added. Where layers are frozen, it alone has gradients.
    pub(crate) fn new(input: Shape, layers: &[Layer], scores: usize, frozen: bool) -> Result<Program> {
        let [one, two] = [1, 2].map(|n| Program::of(input, layers, scores, frozen, n).map(|p| p.scratch));
        let (one, two) = (one?, two?);
        let fixed = 2 * one - two;
        let most = if scores_alone(layers) { MOST_AT_ONCE } else { LAYERS_AT_ONCE };
        let at_once = (CACHED.saturating_sub(fixed) / (two - one).max(1)).clamp(LEAST_AT_ONCE, most) / 8 * 8;
        Program::of(input, layers, scores, frozen, at_once)
    }

    /// The same, with so many examples at once.
    pub(crate) fn of(input: Shape, layers: &[Layer], scores: usize, frozen: bool, at_once: usize) -> Result<Program> {
        let (alone, size) = (scores_alone(layers), input.size());
        let mut layers = layers.to_vec();
        let mut shapes = vec![input];
        for (i, layer) in layers.iter().enumerate() {
            shapes.push(layer.shape(i + 1, shapes[i])?);
        }
        if let Some(last) = shapes.last().filter(|s| (s.height, s.width) != (1, 1)) {
            let flat = Layer::Flatten.shape(layers.len() + 1, *last)?;
            layers.push(Layer::Flatten);
            shapes.push(flat);
        }
        layers.push(Layer::Dense(scores));
        shapes.push(Shape::flat(scores));
        let border = |i: usize| match layers.get(i) {
            Some(Layer::Convolution { padding, .. }) => *padding,
            _ => 0,
        };
        // What is done in place keeps its area, so a border is that of the next layer which reads it.
        let next_border = |i: usize| {
            let next = (i..layers.len()).find(|j| !matches!(layers[*j], Layer::Tanh | Layer::Relu));
            next.map_or(0, border)
        };
        let mut at = 0;
        let mut area = |shape: Shape, channels: usize, border: usize| {
            let area = Area { shape, channels, border, at };
            at += at_once * area.size();
            area
        };
        let input = area(input, input.channels, next_border(0));
        let (mut steps, mut from): (Vec<Step>, Area) = (Vec::new(), input);
        // For each channel, its number among those that are not always 0.
        let mut real: Vec<Option<u32>> = (0..input.channels as u32).map(Some).collect();
        let (mut dimension, mut prepared) = (0, 0);
        // Nothing goes back to the inputs of scores alone.
        let mut widest = if alone { 0 } else { padded(input.size()) };
        let (mut windows, mut sum) = (0, 0);
        for (i, layer) in layers.iter().enumerate() {
            let wrong = |what: &str| Error::misuse(format!("layer {} ({layer}): {what}", i + 1));
            // What is changed in place is changed once, so that the way back finds what it needs.
            let active = |l: &Layer| matches!(l, Layer::Tanh | Layer::Relu);
            let before = layers[..i].iter().rev().find(|l| **l != Layer::Flatten);
            if active(layer) && before.is_some_and(active) {
                return Err(wrong("it follows another one of its kind: leave one of them out"));
            }
            if border(i) != from.border && matches!(layer, Layer::Convolution { .. }) {
                return Err(wrong("a row of numbers has no border, and it asks for padding: leave flatten or padding out"));
            }
            let out = shapes[i + 1];
            let (kind, to) = match *layer {
                Layer::Tanh => (Kind::Tanh, from),
                Layer::Relu => (Kind::Relu, from),
                Layer::Flatten => {
                    // The same numbers: those that are always 0 stay among them.
                    let pixels = from.shape.height * from.shape.width;
                    let flat = Shape::flat(pixels * from.channels);
                    let known = real.iter().flatten().count() as u32;
                    real = (0..pixels as u32).flat_map(|p| real.iter().map(move |c| c.map(|c| p * known + c))).collect();
                    debug_assert_eq!(from.border, 0);
                    from = Area { shape: flat, channels: flat.channels, border: 0, at: from.at };
                    continue;
                }
                Layer::MaxPool { kernel, stride } => {
                    (Kind::MaxPool { kernel, stride }, area(out, from.channels, next_border(i + 1)))
                }
                Layer::AveragePool { kernel, stride } => {
                    (Kind::AveragePool { kernel, stride }, area(out, from.channels, next_border(i + 1)))
                }
                Layer::GroupNorm(groups) => {
                    let known = real.iter().flatten().count();
                    let own = real.iter().map(|c| c.map(|c| (c / (known / groups) as u32, c))).collect();
                    let norm = Norm { groups, own, real: known, at: dimension, prepared, moments: 0, gradients: 0 };
                    dimension += 2 * known;
                    prepared += 2 * from.channels;
                    (Kind::GroupNorm(Box::new(norm)), area(out_area(from, out), from.channels, next_border(i + 1)))
                }
                Layer::Dense(_) | Layer::Convolution { .. } => {
                    let (kernel, stride, dense) = match *layer {
                        Layer::Convolution { kernel, stride, .. } => (kernel, stride, false),
                        _ => (1, 1, true),
                    };
                    // Nothing that is trained lies before: the way back ends here.
                    let before = steps.iter().any(|s: &Step| matches!(s.kind, Kind::Sums(_) | Kind::GroupNorm(_)));
                    let first = frozen || !before;
                    let known = real.iter().flatten().count();
                    let (wide, inputs) = (padded(out.channels), kernel * kernel * known);
                    let (mut offsets, mut rows) = (Vec::new(), Vec::new());
                    for y in 0..kernel {
                        for x in 0..kernel {
                            for (c, own) in real.iter().enumerate() {
                                offsets.push((y * from.row() + x * from.channels + c) as u32);
                                rows.push(own.map(|c| ((y * kernel + x) * known) as u32 + c));
                            }
                        }
                    }
                    real = (0..wide as u32).map(|c| (c < out.channels as u32).then_some(c)).collect();
                    let mut starts = Vec::new();
                    for y in 0..out.height {
                        for x in 0..out.width {
                            // Windows begin in the border.
                            starts.push((y * stride * from.row() + x * stride * from.channels) as u32);
                        }
                    }
                    let weights = Weights {
                        inputs,
                        outputs: out.channels,
                        wide,
                        counting: (0..out.channels as u32).collect(),
                        kernel,
                        stride,
                        at: dimension,
                        prepared,
                        back: (!first).then_some(prepared + (offsets.len() + 1) * wide),
                        gradients: 0,
                        dense,
                        deltas: (0..starts.len()).map(|p| (p * wide) as u32).collect(),
                        windows: starts,
                        own: rows,
                        steps: offsets,
                    };
                    dimension += (inputs + 1) * out.channels;
                    prepared += (weights.steps.len() + 1) * wide + if first { 0 } else { wide * weights.windowed() };
                    windows = windows.max(weights.windows.len() * weights.windowed());
                    sum = sum.max(weights.gradient_size());
                    (Kind::Sums(Box::new(weights)), area(out, wide, next_border(i + 1)))
                }
            };
            widest = widest.max(padded(to.deltas()));
            steps.push(Step { kind, from, to });
            from = to;
        }
        if dimension > MOST_WEIGHTS {
            return Err(Error::misuse(format!(
                "the network has {dimension} weights, and at most {MOST_WEIGHTS} may be: give fewer or smaller layers"
            )));
        }
        let output = from;
        let first_trained = if frozen { steps.len() - 1 } else { 0 };
        let frozen = match steps.last().map(|s| &s.kind) {
            Some(Kind::Sums(head)) if frozen => head.at,
            _ => 0,
        };
        // The rest of the working memory.
        let deltas = [at, at + at_once * widest];
        at += 2 * at_once * widest;
        for (number, step) in steps.iter_mut().enumerate() {
            match &mut step.kind {
                // Of frozen layers nothing is kept.
                Kind::Sums(_) if number < first_trained => {}
                Kind::Sums(w) => {
                    w.gradients = at;
                    at += at_once * w.kept();
                }
                Kind::GroupNorm(norm) => {
                    (norm.moments, norm.gradients) = (at, at + at_once * 2 * norm.groups);
                    at += at_once * 2 * (norm.groups + step.from.channels);
                }
                _ => {}
            }
        }
        let (windows_at, sum_at) = (at, at + windows);
        let mut scratch = sum_at + sum;
        let across = (alone && reads_cells(size, scores)).then_some(prepared);
        if across.is_some() {
            prepared += scores * (padded(size) + 1);
            scratch = scratch.max(cells_room(size, scores, at_once));
        }
        Ok(Program {
            input,
            steps,
            output,
            dimension,
            first_trained,
            frozen,
            at_once,
            prepared,
            across,
            scratch,
            deltas,
            windows: windows_at,
            sum: sum_at,
        })
    }

    /// Bytes of the lists that belong to the steps.
    pub(crate) fn lists(&self) -> u64 {
        let bytes = |step: &Step| {
            let own = match &step.kind {
                Kind::Sums(w) => {
                    let four = w.steps.len() + w.windows.len() + w.deltas.len() + w.counting.len();
                    size_of::<Weights>() + 4 * four + size_of::<Option<u32>>() * w.own.len()
                }
                Kind::GroupNorm(norm) => size_of::<Norm>() + size_of::<Option<(u32, u32)>>() * norm.own.len(),
                _ => 0,
            };
            (size_of::<Step>() + own) as u64
        };
        // Lists grow by doubling.
        2 * self.steps.iter().map(bytes).sum::<u64>()
    }

    /// Weights as the steps read them: padded, and transposed for the way back.
    pub(crate) fn prepare(&self, weights: &[f64]) -> Vec<f32> {
        let mut out = vec![0f32; self.prepared];
        for step in &self.steps {
            match &step.kind {
                Kind::Sums(w) => {
                    for (k, row) in w.own.iter().enumerate() {
                        let Some(row) = row else { continue };
                        for f in 0..w.outputs {
                            let value = weights[w.at + *row as usize * w.outputs + f] as f32;
                            out[w.prepared + k * w.wide + f] = value;
                            if let Some(back) = w.back {
                                out[back + f * w.windowed() + k] = value;
                            }
                        }
                    }
                    for f in 0..w.outputs {
                        out[w.prepared + w.steps.len() * w.wide + f] = weights[w.at + w.inputs * w.outputs + f] as f32;
                    }
                }
                Kind::GroupNorm(norm) => {
                    let own = norm.own.iter().enumerate().filter_map(|(c, own)| own.map(|own| (c, own.1 as usize)));
                    for (c, own) in own {
                        out[norm.prepared + c] = weights[norm.at + own] as f32;
                        out[norm.prepared + norm.own.len() + c] = weights[norm.at + norm.real + own] as f32;
                    }
                }
                _ => {}
            }
        }
        if let (Some(across), Some(Kind::Sums(w))) = (self.across, self.steps.last().map(|step| &step.kind)) {
            let own = &weights[w.at..w.at + (w.inputs + 1) * w.outputs];
            for (k, row) in own.chunks_exact(w.outputs).enumerate() {
                // The last row is the biases.
                let (first, step) = match k == w.inputs {
                    true => (w.outputs * padded(w.inputs), 1),
                    false => (k / LANES * w.outputs * LANES + k % LANES, LANES),
                };
                row.iter().enumerate().for_each(|(f, value)| out[across + first + f * step] = *value as f32);
            }
        }
        out
    }
}

/// Whether scores alone, of so many inputs, are computed from cells where they lie (`linear.rs`).
fn reads_cells(inputs: usize, scores: usize) -> bool {
    inputs > 0 && scores <= MOST_SCORES
}

/// Numbers of working memory for that: maps of inputs, and of every example its sums over lanes, its derivatives, and these weighted.
fn cells_room(inputs: usize, scores: usize, at_once: usize) -> usize {
    2 * padded(inputs) + at_once * scores * (LANES + 2)
}

/// Whether nothing but the shape of rows changes before the scores.
fn scores_alone(layers: &[Layer]) -> bool {
    layers.iter().all(|layer| *layer == Layer::Flatten)
}

/// The shape of an area that has another's channels, be they flat with some that are always 0.
fn out_area(from: Area, out: Shape) -> Shape {
    Shape { channels: from.shape.channels, ..out }
}
