//! A network as a value: its layers, what is public about it, and the way of rows through it.

use super::layer::{Layer, Shape};
use super::normal;
use super::pass::{Goal, backward, forward, weighted};
use super::program::{Area, Kind, Program};
use crate::error::Result;
use std::cell::RefCell;
use std::rc::Rc;

/// Copies of an example in a step, and how they may differ from it: all public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copies {
    /// So many; with 1 an example is itself, whatever else is said here.
    pub(crate) count: usize,
    /// A copy is moved by at most so many pixels, down or up, and right or left.
    pub(crate) shift: usize,
    /// Whether half of them are mirrored, left to right.
    pub(crate) flip: bool,
}

impl Copies {
    /// Examples are themselves.
    pub(crate) const NONE: Copies = Copies { count: 1, shift: 0, flip: false };

    /// Whether examples are replaced by copies.
    pub(crate) fn are_made(self) -> bool {
        self.count > 1
    }

    /// Numbers of working memory, after those of the program: a picture, and the average of the gradients of its copies.
    pub(crate) fn room(self, input: Shape, trained: usize) -> usize {
        if self.are_made() { input.size() + trained } else { 0 }
    }
}

thread_local! {
    /// The network that was asked for last: making its lists anew for every few examples would take longer than some networks do.
    static LAST: RefCell<Option<(Vec<usize>, Rc<Network>)>> = const { RefCell::new(None) };
}

/// A network with everything that is public about it but its weights.
#[derive(Clone, Debug)]
pub struct Network {
    /// What comes in.
    pub(crate) input: Shape,
    /// Layers before the scores.
    pub(crate) layers: Vec<Layer>,
    /// Scores.
    pub(crate) scores: usize,
    pub(crate) goal: Goal,
    /// What the numbers of a row are multiplied by, and what is added to them.
    pub(crate) scale: f32,
    pub(crate) shift: f32,
    /// Whether the layers before the scores stay as they are.
    pub(crate) frozen: bool,
    /// What examples are replaced by in training.
    pub(crate) copies: Copies,
    pub(crate) program: Program,
    /// Everything above as integers, for functions that can hold nothing else.
    pub(super) words: Vec<usize>,
}

impl Network {
    /// Of layers, for rows of a shape; classes, or a number if there are none.
    pub fn new(input: Shape, layers: &[Layer], classes: usize, scale: f32, shift: f32) -> Result<Network> {
        Network::made(input, layers, classes, scale, shift, false)
    }

    /// The same network, of which only the scores are trained: the layers before them stay as they are.
    pub fn with_frozen_layers(&self) -> Result<Network> {
        Ok(Network::made(self.input, &self.layers, self.classes(), self.scale, self.shift, true)?.with_copies(self.copies))
    }

    fn made(input: Shape, layers: &[Layer], classes: usize, scale: f32, shift: f32, frozen: bool) -> Result<Network> {
        let (goal, scores) = if classes == 0 { (Goal::Number, 1) } else { (Goal::Classes, classes) };
        let program = Program::new(input, layers, scores, frozen)?;
        Ok(Network::of(input, layers, goal, [scale, shift], frozen, program))
    }

    /// Of a program, with the words that stand for all of it.
    fn of(input: Shape, layers: &[Layer], goal: Goal, [scale, shift]: [f32; 2], frozen: bool, program: Program) -> Network {
        let scores = program.output.shape.channels;
        let mut words = vec![
            input.height,
            input.width,
            input.channels,
            scores,
            usize::from(goal == Goal::Classes),
            scale.to_bits() as usize,
            shift.to_bits() as usize,
            usize::from(frozen),
            program.at_once,
        ];
        words.extend(words_of(Copies::NONE));
        for layer in layers {
            let own = match *layer {
                Layer::Dense(n) => [0, n, 0, 0, 0],
                Layer::Convolution { filters, kernel, stride, padding } => [1, filters, kernel, stride, padding],
                Layer::MaxPool { kernel, stride } => [2, kernel, stride, 0, 0],
                Layer::AveragePool { kernel, stride } => [3, kernel, stride, 0, 0],
                Layer::GroupNorm(groups) => [4, groups, 0, 0, 0],
                Layer::Tanh => [5, 0, 0, 0, 0],
                Layer::Relu => [6, 0, 0, 0, 0],
                Layer::Flatten => [7, 0, 0, 0, 0],
            };
            words.extend(own);
        }
        Network { input, layers: layers.to_vec(), scores, goal, scale, shift, frozen, copies: Copies::NONE, program, words }
    }

    /// With copies of examples in training; scores are those of rows as they are.
    pub(crate) fn with_copies(mut self, copies: Copies) -> Network {
        self.words[COPIES..COPIES + 3].copy_from_slice(&words_of(copies));
        Network { copies, ..self }
    }

    /// Numbers of working memory of a thread.
    pub(crate) fn scratch(&self) -> usize {
        self.program.scratch + self.copies.room(self.input, self.trained())
    }

    /// Examples that are computed together.
    pub(crate) fn at_once(&self) -> usize {
        self.program.at_once
    }

    /// Computes at most so many examples together: less working memory, and more calls. Sums are those of the same groups in another order, within the same error.
    pub(crate) fn limit_at_once(&mut self, most: usize) {
        let at_once = most.clamp(1, self.program.at_once);
        // The same layers with other places; they fit together as before.
        if let Ok(program) = Program::of(self.input, &self.layers, self.scores, self.frozen, at_once) {
            let same = Network::of(self.input, &self.layers, self.goal, [self.scale, self.shift], self.frozen, program);
            *self = same.with_copies(self.copies);
        }
    }

    /// The same from the words that stand for it.
    pub(super) fn from_words(words: &[usize]) -> Option<Network> {
        let [height, width, channels, scores, classes, scale, shift, frozen, at_once, count, moved, flip, rest @ ..] = words
        else {
            return None;
        };
        let layer = |own: &[usize]| match *own {
            [0, n, ..] => Some(Layer::Dense(n)),
            [1, filters, kernel, stride, padding] => Some(Layer::Convolution { filters, kernel, stride, padding }),
            [2, kernel, stride, ..] => Some(Layer::MaxPool { kernel, stride }),
            [3, kernel, stride, ..] => Some(Layer::AveragePool { kernel, stride }),
            [4, groups, ..] => Some(Layer::GroupNorm(groups)),
            [5, ..] => Some(Layer::Tanh),
            [6, ..] => Some(Layer::Relu),
            [7, ..] => Some(Layer::Flatten),
            _ => None,
        };
        let layers: Vec<Layer> = rest.chunks(5).map(layer).collect::<Option<_>>()?;
        let shape = Shape { height: *height, width: *width, channels: *channels };
        let classes = if *classes == 1 { *scores } else { 0 };
        let [scale, shift] = [scale, shift].map(|bits| f32::from_bits(*bits as u32));
        let copies = Copies { count: *count, shift: *moved, flip: *flip == 1 };
        let mut network = Network::made(shape, &layers, classes, scale, shift, *frozen == 1).ok()?.with_copies(copies);
        if *at_once < network.at_once() {
            network.limit_at_once(*at_once);
        }
        Some(network)
    }

    /// The same, without making its lists again if it is the one that this thread asked for last.
    pub(crate) fn known(words: &[usize]) -> Rc<Network> {
        LAST.with_borrow_mut(|last| match last {
            Some((own, network)) if own == words => network.clone(),
            _ => {
                let network = Rc::new(Network::from_words(words).expect("words of a network"));
                *last = Some((words.to_vec(), network.clone()));
                network
            }
        })
    }

    /// Integers that stand for the network.
    pub(crate) fn words(&self) -> &[usize] {
        &self.words
    }

    /// Numbers of a row that enter.
    pub(crate) fn inputs_of_a_row(&self) -> usize {
        self.input.size()
    }

    /// Layers before the scores.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Classes; 0 for a number.
    pub fn classes(&self) -> usize {
        if self.goal == Goal::Classes { self.scores } else { 0 }
    }

    /// Weights to begin with: those of a layer are uniform up to one over the root of its inputs, from a public generator; scales of groups are 1, all others 0, as those of a linear model are.
    pub fn initial(&self) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut uniform = || {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        let mut out = vec![0.0; self.dimension()];
        // A linear model has no symmetry that random numbers would have to break.
        let linear = self.layers.iter().all(|l| *l == Layer::Flatten);
        for step in &self.program.steps {
            match &step.kind {
                Kind::Sums(_) if linear => {}
                Kind::Sums(w) => {
                    let size = 1.0 / (w.inputs.max(1) as f64).sqrt();
                    out[w.at..w.at + w.inputs * w.outputs].iter_mut().for_each(|o| *o = size * uniform());
                }
                Kind::GroupNorm(norm) => out[norm.at..norm.at + norm.real].fill(1.0),
                _ => {}
            }
        }
        out
    }

    /// Weights, of all layers one after the other.
    pub fn dimension(&self) -> usize {
        self.program.dimension
    }

    /// Weights of the frozen layers, which come first; 0 where all are trained.
    pub fn frozen(&self) -> usize {
        self.program.frozen
    }

    /// Weights that are trained: the length of a gradient.
    pub fn trained(&self) -> usize {
        self.dimension() - self.frozen()
    }

    /// Inputs of the scores.
    pub(crate) fn score_inputs(&self) -> usize {
        match self.program.steps.last().map(|step| &step.kind) {
            Some(Kind::Sums(scores)) => scores.inputs,
            _ => 0,
        }
    }

    /// Weights as the steps read them.
    pub fn prepare(&self, weights: &[f64]) -> Vec<f32> {
        self.program.prepare(weights)
    }

    /// The same for inputs that are normalised: scales and shifts of the channels follow the weights, because they may be known only when a run is under way.
    pub(crate) fn prepare_normal(&self, weights: &[f64], normal: &[f32]) -> Vec<f32> {
        let mut prepared = self.prepare(weights);
        prepared.extend(normal);
        prepared
    }

    /// Scales and shifts of channels, or of all numbers, among what was prepared; none if inputs stay as they are.
    pub(super) fn normal_of<'a>(&self, prepared: &'a [f32]) -> &'a [f32] {
        prepared.get(self.program.prepared..).filter(|n| self.input.can_be_normalised(n)).unwrap_or_default()
    }

    /// Encoded rows as they enter the network, one after the other.
    pub(super) fn inputs(&self, prepared: &[f32], rows: &[f32]) -> Vec<f32> {
        let mut rows: Vec<f32> = rows.iter().map(|x| x * self.scale + self.shift).collect();
        normal::apply(self.normal_of(prepared), &mut rows);
        rows
    }

    /// The gradient of one encoded row as it is, without copies and before its clip; for audits.
    pub(crate) fn gradient(&self, prepared: &[f32], row: &[f32], label: f32) -> Vec<f32> {
        let (mut scratch, mut out) = (vec![0f32; self.program.scratch], vec![0f32; self.trained()]);
        self.enter(&self.inputs(prepared, row), &mut scratch);
        forward(&self.program, prepared, &mut scratch, 1);
        backward(&self.program, prepared, self.goal, &[label], &mut scratch, &mut [0f32]);
        weighted(&self.program, &[1.0], &mut scratch, &mut out);
        out
    }

    /// Brings scaled rows, one after the other, into the input area.
    #[inline(always)]
    pub(super) fn enter(&self, rows: &[f32], scratch: &mut [f32]) {
        let (input, row) = (self.program.input, self.input.width * self.input.channels);
        for (e, x) in rows.chunks_exact(self.input.size()).enumerate() {
            let out = &mut scratch[input.at + e * input.size()..][..input.size()];
            out.fill(0.0);
            for (y, x) in x.chunks_exact(row).enumerate() {
                let out = &mut out[input.pixel(y, 0)..][..row];
                out.copy_from_slice(x);
            }
        }
    }

    /// Scores of encoded rows, one after the other.
    pub fn scores(&self, prepared: &[f32], rows: &[f32]) -> Vec<f32> {
        let mut scratch = vec![0f32; self.program.scratch];
        let mut out = Vec::new();
        for rows in rows.chunks(self.program.at_once * self.input.size()) {
            let count = rows.len() / self.input.size();
            self.enter(&self.inputs(prepared, rows), &mut scratch);
            forward(&self.program, prepared, &mut scratch, count);
            let Area { at, channels, .. } = self.program.output;
            (0..count).for_each(|e| out.extend(&scratch[at + e * channels..][..self.scores]));
        }
        out
    }
}

/// Where the words of copies begin.
const COPIES: usize = 9;

fn words_of(copies: Copies) -> [usize; 3] {
    [copies.count, copies.shift, usize::from(copies.flip)]
}
