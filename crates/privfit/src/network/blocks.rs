//! Sums of clipped gradients of a network, for the kernel.
//!
//! *Error.* Let v be the vector of an example as defined in `mod.rs`, w its factor and N its norm as computed; units are of 2^-24.
//! - *Norm.* Squares are rounded, added in chains of at most 64 in single precision and then in double, all of them positive: the square of N is off by less than 70 units, relative, in a dense
//!   layer too, whose deltas are squared in double. N is off by half of it and a rounding, the factor by three roundings more, also the one of automatic clipping: |w v| is at most the clip and 40 units.
//! - *Sum.* An entry is a chain over a group of examples, then one over groups, of at most 128 examples in all: every w v goes through at most 128 + 16 + 3 roundings, so that the error of an entry
//!   is at most 147 units times the sum of |w v| there, and that of the sum of all at most 147 units times the sum of their lengths. Products a d of a dense layer are exact within the chain of
//!   multiply-adds. Both together stay below 190 units, 1.2e-5; 2e-5 is charged.
//! - *Numbers below 2^-126.* A square that is lost makes N too small by at most sqrt(d) 2^-75, below 4e-19: nothing against the least clip of the kernel, 1e-9, and automatic clipping adds a
//!   thousandth of the clip to N. A weighted delta w d that is not normal is off by 2^-150, and so its product with an activation a by 2^-150 |a|, which would be 2e-7 for the largest numbers that
//!   there are. Inputs of a dense layer that are longer than 1e15, which weights that diverged can make, give a norm that is infinite, and the example adds nothing; then it is below 1e-30.
//! - *Scores alone.* Inputs are computed from cells by one multiply-add, in both passes alike, so that v is made of the same numbers in both (`linear.rs`). Squares have chains of at most 64 in
//!   every lane, and a weight one chain over the examples of a block: what is above holds.
//! - *Frozen layers.* Where the layers before the scores are frozen, v is the gradient by the weights of the scores alone: the exact products of the activations that the frozen layers gave, as computed, and
//!   of the deltas of the scores. It is a function of the example and of public weights as before, so that errors of the frozen layers are no errors of v; what is above for a dense layer is all there is.
//! - *Overflow.* A unit with a norm that is no finite number has the factor 0 and adds nothing. All others add at most the clip, so that no sum overflows.
//! - *Copies.* Where an example is replaced by copies, v is the stored average of their gradients, clipped once. It is a function of the example, of coins that no other example has a part in, and of public weights.
//!   Its norm is taken in double precision and w v goes through 129 roundings: below 140 units together, so that the same 2e-5 covers it (`augment.rs` has the claim and the derivation).

use super::architecture::Network;
use super::augment;
use super::linear::Linear;
use super::normal;
use super::pass::{Goal, backward, forward, weighted};
use super::program::MOST_AT_ONCE;
use super::recursion;
use privfit_kernel::{Blockwise, Clipping, UnitBlock};

/// Relative error of norms and sums, for one example.
pub(crate) const ERROR: f64 = 2e-5;

impl Network {
    /// Relative error of the norm of an example and of its part of a sum, for `Gaussian::for_blocks`.
    pub fn error(&self) -> f64 {
        ERROR
    }

    /// Sums of clipped gradients at prepared weights.
    pub fn blocks<'a>(&'a self, prepared: &'a [f32], clipping: Clipping) -> Blockwise<'a> {
        let labels = match self.goal {
            Goal::Classes => (0.0, self.scores as f32 - 1.0),
            Goal::Number => (-1.0, 1.0),
        };
        Blockwise {
            name: if self.frozen { "gradients of scores" } else { "gradients of layers" },
            dimension: self.trained(),
            error: ERROR,
            exact: false,
            clipping,
            labels,
            parameters: prepared,
            layout: &self.words,
            scratch: self.scratch(),
            // Copies of one example are computed together, those of two are not.
            at_once: if self.copies.are_made() { 1 } else { self.program.at_once },
            norms: |blocks, units, scratch, norms| on_this_processor(&Call::Norms, blocks, units, scratch, norms),
            weighted: |blocks, units, weights, scratch, sum| {
                on_this_processor(&Call::Weighted(weights), blocks, units, scratch, sum)
            },
        }
    }

    /// Sums of recursive gradients.
    pub(crate) fn recursive_blocks<'a>(&'a self, prepared: &'a [f32]) -> Blockwise<'a> {
        Blockwise {
            name: "recursive gradients of layers",
            scratch: self.program.scratch + 2 * self.trained(),
            at_once: 1,
            norms: |blocks, units, scratch, norms| on_this_processor(&Call::RecursiveNorm, blocks, units, scratch, norms),
            weighted: |blocks, units, weights, scratch, sum| {
                on_this_processor(&Call::Recursive(weights[0]), blocks, units, scratch, sum)
            },
            ..self.blocks(prepared, Clipping::Norm)
        }
    }
}

/// What the kernel asks for.
enum Call<'a> {
    Norms,
    Weighted(&'a [f32]),
    /// The same of recursive gradients, one unit at a time.
    RecursiveNorm,
    Recursive(f32),
}

fn on_this_processor(call: &Call<'_>, blocks: &Blockwise<'_>, units: &UnitBlock<'_>, scratch: &mut [f32], out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the instructions.
            return unsafe { widest(call, blocks, units, scratch, out) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the instructions.
            return unsafe { wide(call, blocks, units, scratch, out) };
        }
    }
    plain(call, blocks, units, scratch, out);
}

// The three do the same arithmetic in the same order: a compiler may not contract or reorder it.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
fn widest(call: &Call<'_>, blocks: &Blockwise<'_>, units: &UnitBlock<'_>, scratch: &mut [f32], out: &mut [f32]) {
    plain(call, blocks, units, scratch, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn wide(call: &Call<'_>, blocks: &Blockwise<'_>, units: &UnitBlock<'_>, scratch: &mut [f32], out: &mut [f32]) {
    plain(call, blocks, units, scratch, out);
}

#[inline(always)]
fn plain(call: &Call<'_>, blocks: &Blockwise<'_>, units: &UnitBlock<'_>, scratch: &mut [f32], out: &mut [f32]) {
    let network = Network::known(blocks.layout);
    let linear = !network.copies.are_made() && Linear::fits(&network, units);
    match call {
        Call::RecursiveNorm => out[0] = recursion::norm(&network, blocks.parameters, units, scratch),
        Call::Recursive(factor) => recursion::add(&network, *factor, scratch, out),
        Call::Norms if network.copies.are_made() => out[0] = augment::norm(&network, blocks.parameters, units, scratch),
        Call::Weighted(factors) if network.copies.are_made() => augment::add(&network, factors[0], scratch, out),
        Call::Norms if linear => Linear::new(&network, scratch).norms(&network, blocks.parameters, units, out),
        Call::Weighted(factors) if linear => Linear::new(&network, scratch).weighted(units, factors, out),
        Call::Norms => {
            let (size, count) = (network.input.size(), units.len());
            let mut labels = [f32::NAN; MOST_AT_ONCE];
            units.copy_labels(&mut labels[..count]);
            let normal = network.normal_of(blocks.parameters);
            if network.program.input.border == 0 {
                let rows = &mut scratch[..count * size];
                units.copy_rows(network.scale, network.shift, rows);
                normal::apply(normal, rows);
            } else {
                // Rows go through the room of the way back.
                let (areas, room) = scratch.split_at_mut(network.program.deltas[0]);
                let rows = &mut room[..count * size];
                units.copy_rows(network.scale, network.shift, rows);
                // Before borders are put around pictures: what lies beyond an edge is the mean.
                normal::apply(normal, rows);
                network.enter(rows, areas);
            }
            forward(&network.program, blocks.parameters, scratch, count);
            backward(&network.program, blocks.parameters, network.goal, &labels[..count], scratch, out);
        }
        Call::Weighted(factors) => weighted(&network.program, factors, scratch, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::reference;
    use crate::network::{Copies, Layer, Shape};
    use privfit_kernel::account::Event;
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Dataset, DatasetBuilder, Entropy, Gaussian, RowShape, Run};

    fn numbers(count: usize, seed: u64, size: f64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        (0..count).map(|_| size * next()).collect()
    }

    /// All of them, and each with its layers frozen.
    fn networks() -> Vec<Network> {
        let all = trained_networks();
        let frozen: Vec<Network> = all.iter().map(|n| n.with_frozen_layers().unwrap()).collect();
        all.into_iter().chain(frozen).collect()
    }

    /// Networks with every layer, borders, strides, channels that are no multiple of a group, and rows of numbers.
    fn trained_networks() -> Vec<Network> {
        let make = |shape: (usize, usize, usize), layers: &[&str], classes: usize| {
            let layers: Vec<Layer> = layers.iter().map(|l| Layer::parse(l).unwrap()).collect();
            let shape = Shape { height: shape.0, width: shape.1, channels: shape.2 };
            Network::new(shape, &layers, classes, 3.0, 0.1).unwrap()
        };
        vec![
            make((1, 1, 7), &[], 3),
            // Scores alone, with groups of inputs that are full or not, more than fit the first cache, and more scores than have their own way.
            make((1, 1, 32), &[], 2),
            make((5, 7, 1), &["flatten"], 10),
            make((1, 1, 1100), &[], 12),
            make((1, 1, 40), &[], 0),
            make((1, 1, 20), &[], 13),
            make((1, 1, 7), &["dense 8", "relu", "convolution 4 3 padding 1", "tanh"], 3),
            make((5, 5, 3), &["max_pool 2 stride 1", "tanh", "convolution 4 2", "max_pool 2", "relu", "flatten", "dense 4"], 2),
            make((1, 1, 9), &["dense 20", "tanh", "dense 5", "relu"], 2),
            make((1, 1, 6), &["dense 18", "group_norm 3", "tanh"], 0),
            make((9, 7, 2), &["convolution 5 3 stride 2 padding 1", "relu", "convolution 18 2 padding 1", "tanh"], 4),
            make(
                (8, 8, 1),
                &[
                    "convolution 16 3 padding 1",
                    "tanh",
                    "max_pool 2 stride 1",
                    "convolution 3 3 stride 2",
                    "flatten",
                    "tanh",
                    "dense 6",
                    "relu",
                ],
                10,
            ),
            make(
                (6, 7, 3),
                &["average_pool 2 stride 1", "convolution 6 3 padding 2", "group_norm 2", "relu", "average_pool 2", "tanh"],
                3,
            ),
            make(
                (8, 8, 1),
                &["max_pool 2", "group_norm 1", "convolution 4 3", "group_norm 4", "tanh", "max_pool 2", "flatten", "dense 5"],
                0,
            ),
            make(
                (28, 28, 1),
                &[
                    "convolution 16 8 stride 2 padding 3",
                    "relu",
                    "max_pool 2 stride 1",
                    "convolution 32 4 stride 2",
                    "relu",
                    "max_pool 2 stride 1",
                    "dense 32",
                    "relu",
                ]
                .map(|l| l)
                .iter()
                .flat_map(|l| if *l == "dense 32" { vec!["flatten", *l] } else { vec![*l] })
                .collect::<Vec<_>>(),
                10,
            ),
        ]
    }

    fn data(network: &Network, count: usize, changed: Option<(usize, f64, f32)>) -> (Dataset, Vec<Vec<f64>>, Vec<f32>) {
        let size = network.input.size();
        let shape = RowShape { dimension: size, row_norm: 1.0, sparse: false, rows_per_unit: None };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        for i in 0..count {
            let mut row = numbers(size, 7 + i as u64, 0.9 / (size as f64).sqrt());
            let mut label = match network.goal {
                Goal::Classes => (i % network.scores) as f32,
                Goal::Number => (i as f32 * 0.37).sin(),
            };
            if let Some((_, x, l)) = changed.filter(|c| c.0 == i) {
                (row, label) = (vec![x; size], l);
            }
            builder.row(&row, label);
            rows.push(row);
            labels.push(label);
        }
        (builder.build(), rows, labels)
    }

    /// The sum without its noise, which is the same for the same seed, and the sensitivity.
    fn sum(network: &Network, data: &Dataset, weights: &[f64], clip: f64, clipping: Clipping) -> (Vec<f64>, f64) {
        let (prepared, d) = (network.prepare(weights), network.trained());
        let mechanism = Gaussian::for_blocks(clip, ERROR, 0.01, 1000, d).unwrap();
        let release = |data: &Dataset| {
            let (engine, entropy) = (Threads::new(1), Entropy::simulated(2));
            let mut run = Run::begin(data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
            let everyone = run.everyone().unwrap();
            run.at(&mechanism, |run, scale| {
                let noise = run.draw(&scale, d)?;
                let value = everyone.sum_blocks(&noise, &network.blocks(&prepared, clipping))?;
                run.release(noise, &value)
            })
            .unwrap()
        };
        let (noise, _, _) = self::data(network, 1, Some((0, 0.0, 1e6)));
        let out = release(data).iter().zip(release(&noise)).map(|(a, b)| a - b).collect();
        (out, clip * (1.0 + 2.0 * ERROR * 128.0))
    }

    fn length(v: &[f64]) -> f64 {
        v.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Norms and gradients of single examples and weighted sums of several are those of a reference in double precision, by code that shares nothing with this one.
    #[test]
    fn gradients_are_those_of_a_reference() {
        for (i, network) in networks().iter().enumerate() {
            let (d, size) = (network.dimension(), network.input.size());
            let weights: Vec<f64> = numbers(d, 3, 0.4).iter().map(|w| f64::from(*w as f32)).collect();
            let prepared = network.prepare(&weights);
            let (_, rows, labels) = data(network, 8, None);
            let rows: Vec<f32> = rows.concat().iter().map(|x| *x as f32 * network.scale + network.shift).collect();
            let mut scratch = vec![f32::NAN; network.program.scratch];
            let mut norms = [0f32; 8];
            network.enter(&rows, &mut scratch);
            forward(&network.program, &prepared, &mut scratch, 8);
            backward(&network.program, &prepared, network.goal, &labels, &mut scratch, &mut norms);
            let (mut expected, mut sum) = (vec![0.0; network.trained()], vec![0f32; network.trained()]);
            let factors: Vec<f32> = (0..8).map(|e| e as f32 * 0.13).collect();
            for (e, x) in rows.chunks(size).enumerate() {
                let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
                let (_, g) = reference::gradient(
                    network.input,
                    &network.layers,
                    network.scores,
                    network.goal,
                    &weights,
                    &x,
                    f64::from(labels[e]),
                );
                // Of frozen layers there is none.
                let g = &g[network.frozen()..];
                assert!((f64::from(norms[e]) / length(g) - 1.0).abs() < 1e-5, "network {i}: norm {} of {}", norms[e], length(g));
                expected.iter_mut().zip(g).for_each(|(o, g)| *o += f64::from(factors[e]) * g);
            }
            weighted(&network.program, &factors, &mut scratch, &mut sum);
            let gap: Vec<f64> = sum.iter().zip(&expected).map(|(a, b)| f64::from(*a) - b).collect();
            assert!(length(&gap) < 1e-5 * length(&expected), "network {i}: {} of {}", length(&gap), length(&expected));
        }
    }

    /// The same through the kernel, which clips: up to the 16 bits of a cell.
    #[test]
    fn clipped_sums_are_those_of_a_reference() {
        for (i, network) in networks().iter().enumerate() {
            let weights = numbers(network.dimension(), 3, 0.4);
            let (data, rows, labels) = data(network, 19, None);
            for (clip, clipping) in [(100.0, Clipping::Norm), (0.5, Clipping::Norm), (0.5, Clipping::Automatic(0.01))] {
                let mut expected = vec![0.0; network.trained()];
                for (row, label) in rows.iter().zip(&labels) {
                    let x: Vec<f64> = row.iter().map(|x| x * 3.0 + 0.1).collect();
                    let (_, g) = reference::gradient(
                        network.input,
                        &network.layers,
                        network.scores,
                        network.goal,
                        &weights,
                        &x,
                        f64::from(*label),
                    );
                    let g = &g[network.frozen()..];
                    let factor = match clipping {
                        Clipping::Norm => (clip / length(g)).min(1.0),
                        Clipping::Automatic(more) => clip / (length(g) + clip * f64::from(more)),
                    };
                    expected.iter_mut().zip(g).for_each(|(e, g)| *e += factor * g);
                }
                let (found, _) = sum(network, &data, &weights, clip, clipping);
                let gap: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
                assert!(
                    length(&gap) < 2e-2 * length(&expected),
                    "network {i}, clip {clip}: {} of {}",
                    length(&gap),
                    length(&expected)
                );
            }
        }
    }

    /// Norm and gradient of an example have the same bits whoever is computed with it and wherever it stands, whatever was left in the working memory before; a neighbour may be anything.
    #[test]
    fn an_example_has_the_same_bits_in_any_company() {
        for (i, network) in networks().iter().enumerate() {
            let (d, size, most) = (network.trained(), network.input.size(), network.program.at_once);
            let prepared = network.prepare(&numbers(network.dimension(), 9, 0.7));
            let (_, rows, labels) = data(network, most + 1, None);
            let mut rows: Vec<Vec<f32>> = rows.iter().map(|r| r.iter().map(|x| *x as f32 * 20.0).collect()).collect();
            let mut labels = labels;
            let run = |who: &[usize], factor_of: usize, rows: &[Vec<f32>], labels: &[f32], scratch: &mut [f32]| {
                let all: Vec<f32> = who.iter().flat_map(|e| rows[*e].clone()).collect();
                let own: Vec<f32> = who.iter().map(|e| labels[*e]).collect();
                let (mut norms, mut sum) = (vec![0f32; who.len()], vec![0f32; d]);
                network.enter(&all, scratch);
                forward(&network.program, &prepared, scratch, who.len());
                backward(&network.program, &prepared, network.goal, &own, scratch, &mut norms);
                let factors: Vec<f32> = who.iter().map(|e| if *e == factor_of { 0.5 } else { 0.0 }).collect();
                weighted(&network.program, &factors, scratch, &mut sum);
                let place = who.iter().position(|e| *e == factor_of).unwrap();
                (norms[place].to_bits(), sum.iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<_>>())
            };
            let mut scratch = vec![f32::NAN; network.program.scratch];
            let alone = run(&[0], 0, &rows, &labels, &mut scratch);
            // A row that overflows, one that is no number, and a label of no class.
            rows[1] = vec![f32::MAX; size];
            rows[2] = vec![f32::NAN; size];
            labels[3] = f32::NAN;
            for count in [2, 3, 4, 5, 7, most] {
                for place in [0, count / 2, count - 1] {
                    let mut who: Vec<usize> = (1..count).collect();
                    who.insert(place, 0);
                    assert_eq!(run(&who, 0, &rows, &labels, &mut scratch), alone, "network {i}, {place} of {count}");
                }
            }
            assert_eq!(run(&[0], 0, &rows, &labels, &mut scratch), alone, "network {i}, after others");
        }
    }

    /// Fewer examples at once: the same sums within the error that is charged, less working memory, and the words say so.
    #[test]
    fn fewer_at_once_is_the_same_sum() {
        for (i, network) in networks().iter().enumerate() {
            let (data, _, _) = data(network, 100, None);
            let weights = numbers(network.dimension(), 11, 0.5);
            let (expected, _) = sum(network, &data, &weights, 0.3, Clipping::Norm);
            let mut last = network.program.scratch;
            for most in [17, 8, 3, 1] {
                let mut fewer = network.clone();
                fewer.limit_at_once(most);
                assert_eq!(fewer.at_once(), most.min(network.at_once()));
                assert!(fewer.program.scratch < last || network.at_once() <= most, "network {i}, {most}");
                last = fewer.program.scratch;
                let read = Network::from_words(&fewer.words).unwrap();
                assert_eq!((read.at_once(), read.program.scratch, &read.words), (fewer.at_once(), last, &fewer.words));
                let (found, _) = sum(&fewer, &data, &weights, 0.3, Clipping::Norm);
                let gap: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
                // Both sums are off by the error of 100 examples, and by the rounding of their one block.
                let allowed = 2.0 * 0.3 * ERROR * 100.0 + 1e-6;
                // Far below, and far below the sum itself: examples that were left out or came twice would be found.
                let allowed = allowed.min(1e-3 * length(&expected));
                assert!(length(&gap) <= allowed && length(&expected) > 0.0, "network {i}, {most}: {}", length(&gap));
            }
            let mut same = network.clone();
            same.limit_at_once(usize::MAX);
            assert_eq!(same.words, network.words);
        }
    }

    /// One example more or less, another one, a row of NaN or of huge numbers, or a foreign label changes nothing but its own contribution: to the digit of the grid, not only within the clip.
    #[test]
    fn examples_do_not_see_each_other() {
        for (i, network) in networks().iter().enumerate() {
            let weights = numbers(network.dimension(), 5, 0.5);
            let (all, ..) = data(network, 11, None);
            let (base, sensitivity) = sum(network, &all, &weights, 0.3, Clipping::Norm);
            let foreign = if network.goal == Goal::Classes { 99.0 } else { 7.0 };
            for (x, label, most) in
                [(0.01, 1.0, 2.0), (f64::NAN, 0.0, 2.0), (1e300, 1.0, 2.0), (0.0, foreign, 1.0), (0.02, f32::NAN, 2.0)]
            {
                for at in [0, 7, 10] {
                    let (other, ..) = data(network, 11, Some((at, x, label)));
                    let (near, _) = sum(network, &other, &weights, 0.3, Clipping::Norm);
                    let gap: Vec<f64> = base.iter().zip(&near).map(|(a, b)| a - b).collect();
                    assert!(length(&gap) <= most * sensitivity, "network {i}: {x} {label} {at}: {}", length(&gap));
                }
            }
        }
    }

    /// Frozen layers change no score, and the gradient is the end of that of the whole network, to the bit.
    #[test]
    fn frozen_layers_are_left_out_of_gradients_alone() {
        for (i, whole) in trained_networks().iter().enumerate() {
            let frozen = whole.with_frozen_layers().unwrap();
            let weights = numbers(whole.dimension(), 11, 0.6);
            assert_eq!(frozen.frozen() + (whole.score_inputs() + 1) * whole.scores, whole.dimension());
            assert_eq!((whole.frozen(), frozen.dimension()), (0, whole.dimension()));
            let (one, two) = (whole.prepare(&weights), frozen.prepare(&weights));
            let row: Vec<f32> = numbers(whole.input.size(), 12, 0.3).iter().map(|x| *x as f32).collect();
            let bits = |list: &[f32]| list.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&whole.scores(&one, &row)), bits(&frozen.scores(&two, &row)), "network {i}");
            let (all, own) = (whole.gradient(&one, &row, 0.0), frozen.gradient(&two, &row, 0.0));
            assert_eq!(bits(&all[frozen.frozen()..]), bits(&own), "network {i}");
        }
    }

    /// What would be computed wrong is refused, and the layer is named.
    #[test]
    fn layers_that_do_not_follow_are_refused() {
        let image = Shape { height: 6, width: 6, channels: 2 };
        for (layers, number) in [
            (vec!["tanh", "tanh"], "layer 2"),
            (vec!["convolution 3 2", "relu", "flatten", "tanh"], "layer 4"),
            (vec!["flatten", "convolution 3 1 padding 1"], "layer 2"),
        ] {
            let layers: Vec<Layer> = layers.iter().map(|l| Layer::parse(l).unwrap()).collect();
            let message = Network::new(image, &layers, 2, 1.0, 0.0).unwrap_err().to_string();
            assert!(message.contains(number), "{message}");
        }
    }

    #[test]
    fn words_stand_for_a_network() {
        let copies = Copies { count: 5, shift: 2, flip: true };
        for network in networks().into_iter().flat_map(|n| [n.clone(), n.with_copies(copies)]) {
            let same = Network::from_words(&network.words).unwrap();
            assert_eq!(
                (same.words.clone(), same.dimension(), same.trained(), same.scale, same.copies),
                (network.words.clone(), network.dimension(), network.trained(), network.scale, network.copies)
            );
        }
        assert!(Network::from_words(&[1, 2]).is_none());
    }
}
