//! Recursive gradients of an example: its gradients at two iterates become one vector, for one step.
//!
//! *Claim.* With g and g' the gradients of a sampled example at the iterate and at the one before, it adds v = gamma clip(g, C) + (1 - gamma) clip(clip(g, C) - clip(g', C), D), which has the length
//! H = gamma C + (1 - gamma) D at the most, and is brought to H once more by the kernel, whatever this code did. The sensitivity is H under zero-out and 2 H under replace-one. Both iterates are functions of
//! released numbers. `recursive_momentum.rs` among the methods has the claim about all steps.
//!
//! *Error.* v is *defined* as the numbers that were stored: what rounding did on the way is part of v, a function of the example and of public weights alone, to the bit, because each example is computed by itself.
//! Its norm and its part of a sum are taken as those of averages over copies are (`augment.rs`), and the 2e-5 that is charged there is charged here.
//! A gradient that is not finite makes a v without a finite norm, which adds nothing.
//!
//! *Time.* Two gradients for each example, stored in full: several times that of plain sums.

use super::architecture::Network;
use super::augment::{add_stored, length};
use super::normal;
use super::pass::{backward, forward, weighted};
use privfit_kernel::UnitBlock;

/// gamma, C and D.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) fresh: f64,
    pub(crate) gradient: f64,
    pub(crate) change: f64,
}

impl Bounds {
    /// H.
    pub(crate) fn longest(&self) -> f64 {
        self.fresh * self.gradient + (1.0 - self.fresh) * self.change
    }
}

impl Network {
    /// What the sums of a step read: weights of both iterates as the layers read them, then the bounds.
    pub(crate) fn prepare_recursive(&self, now: &[f32], before: &[f32], bounds: Bounds) -> Vec<f32> {
        let numbers = [bounds.fresh, bounds.gradient, bounds.change].map(|x| x as f32);
        [now, before, &numbers].concat()
    }
}

/// The gradient of one unit as it is.
#[inline(always)]
fn gradient(network: &Network, weights: &[f32], unit: &UnitBlock<'_>, scratch: &mut [f32], out: &mut [f32]) {
    let mut label = [f32::NAN];
    unit.copy_labels(&mut label);
    let size = network.input.size();
    let (areas, room) = scratch.split_at_mut(network.program.deltas[0]);
    let row = &mut room[..size];
    unit.copy_rows(network.scale, network.shift, row);
    normal::apply(network.normal_of(weights), row);
    network.enter(row, areas);
    forward(&network.program, weights, scratch, 1);
    backward(&network.program, weights, network.goal, &label, scratch, &mut [0f32]);
    out.fill(0.0);
    weighted(&network.program, &[1.0], scratch, out);
}

fn clip_to(longest: f32, vector: &mut [f32]) {
    let size = length(vector);
    if size > f64::from(longest) {
        let factor = (f64::from(longest) / size) as f32;
        vector.iter_mut().for_each(|x| *x *= factor);
    }
}

/// The length of the vector of a unit, which stays at the end of the working memory.
#[inline(always)]
pub(super) fn norm(network: &Network, parameters: &[f32], unit: &UnitBlock<'_>, scratch: &mut [f32]) -> f32 {
    assert_eq!(unit.len(), 1, "recursive gradients are those of one unit at a time");
    let (iterates, numbers) = parameters.split_at(parameters.len() - 3);
    let (now, before) = iterates.split_at(iterates.len() / 2);
    let (own, stored) = scratch.split_at_mut(network.program.scratch);
    let (a, b) = stored[..2 * network.trained()].split_at_mut(network.trained());
    gradient(network, now, unit, own, a);
    gradient(network, before, unit, own, b);
    let (fresh, longest, change) = (numbers[0], numbers[1], numbers[2]);
    clip_to(longest, a);
    clip_to(longest, b);
    b.iter_mut().zip(&*a).for_each(|(b, a)| *b = a - *b);
    clip_to(change, b);
    a.iter_mut().zip(&*b).for_each(|(a, b)| *a = fresh * *a + (1.0 - fresh) * b);
    length(a) as f32
}

/// Adds that vector, weighted.
#[inline(always)]
pub(super) fn add(network: &Network, factor: f32, scratch: &[f32], sum: &mut [f32]) {
    add_stored(&scratch[network.program.scratch..][..network.trained()], factor, sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Layer, Shape};
    use privfit_kernel::account::Event;
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Clipping, Dataset, DatasetBuilder, Entropy, Gaussian, RowShape, Run};

    const BOUNDS: Bounds = Bounds { fresh: 0.3, gradient: 0.5, change: 0.1 };

    fn networks() -> Vec<Network> {
        let make = |shape: (usize, usize, usize), layers: &[&str], classes: usize| {
            let layers: Vec<Layer> = layers.iter().map(|l| Layer::parse(l).unwrap()).collect();
            Network::new(Shape { height: shape.0, width: shape.1, channels: shape.2 }, &layers, classes, 3.0, 0.1).unwrap()
        };
        vec![
            make((1, 1, 7), &[], 3),
            make((1, 1, 9), &["dense 12", "tanh"], 0),
            make(
                (5, 5, 2),
                &["convolution 4 3 padding 1", "group_norm 2", "relu", "max_pool 2", "flatten", "dense 4", "tanh"],
                3,
            ),
        ]
    }

    fn numbers(count: usize, seed: u64, size: f64) -> Vec<f64> {
        (0..count as u64).map(|i| size * (((i + 1) * (seed + 3)) as f64 * 0.7318).sin()).collect()
    }

    fn row(network: &Network, i: usize) -> Vec<f64> {
        let size = network.input.size();
        numbers(size, 5 + i as u64, 0.9 / (size as f64).sqrt())
    }

    fn data(network: &Network, count: usize, changed: Option<(usize, f64, f32)>) -> Dataset {
        let shape = RowShape { dimension: network.input.size(), row_norm: 1.0, sparse: false, rows_per_unit: None };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        for i in 0..count {
            match changed.filter(|c| c.0 == i) {
                Some((_, x, label)) => builder.row(&vec![x; network.input.size()], label),
                None => builder.row(&row(network, i), (i % network.classes().max(1)) as f32),
            }
        }
        builder.build()
    }

    /// The sum; its noise is the same for the same seed. None for plain gradients.
    fn released(network: &Network, data: &Dataset, prepared: &[f32], bounds: Option<Bounds>) -> Vec<f64> {
        let clip = bounds.map_or(BOUNDS.gradient, |b| b.longest());
        let mechanism = Gaussian::for_blocks(clip, network.error(), 0.01, 1000, network.trained()).unwrap();
        let (engine, entropy, d) = (Threads::new(1), Entropy::simulated(2), network.trained());
        let mut run = Run::begin(data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
        let everyone = run.everyone().unwrap();
        run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, d)?;
            let value = match bounds {
                Some(_) => everyone.sum_blocks(&noise, &network.recursive_blocks(prepared))?,
                None => everyone.sum_blocks(&noise, &network.blocks(prepared, Clipping::Norm))?,
            };
            run.release(noise, &value)
        })
        .unwrap()
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }

    fn prepared(network: &Network, seed: u64) -> Vec<f32> {
        network.prepare(&numbers(network.dimension(), seed, 0.4))
    }

    /// Against gradients of single rows, put together in double precision; and with gamma 1 plain clipped sums.
    #[test]
    fn sums_are_those_of_the_recursion() {
        for network in networks() {
            let (now, before, count) = (prepared(&network, 3), prepared(&network, 4), 6);
            let records = data(&network, count, None);
            let noise = released(&network, &data(&network, 1, Some((0, 0.0, 1e6))), &now, None);
            let mut expected = vec![0.0; network.trained()];
            for i in 0..count {
                let row: Vec<f32> = row(&network, i).iter().map(|x| ((x * 32767.0).trunc() / 32767.0) as f32).collect();
                let label = (i % network.classes().max(1)) as f32;
                let clipped = |weights: &[f32]| {
                    let g: Vec<f64> = network.gradient(weights, &row, label).iter().map(|x| f64::from(*x)).collect();
                    shortened(g, BOUNDS.gradient)
                };
                let (a, b) = (clipped(&now), clipped(&before));
                let change = shortened(a.iter().zip(&b).map(|(a, b)| a - b).collect(), BOUNDS.change);
                let add = a.iter().zip(&change).map(|(a, c)| BOUNDS.fresh * a + (1.0 - BOUNDS.fresh) * c);
                expected.iter_mut().zip(add).for_each(|(e, x)| *e += x);
            }
            let both = network.prepare_recursive(&now, &before, BOUNDS);
            let sum = released(&network, &records, &both, Some(BOUNDS));
            let scale = BOUNDS.longest() / BOUNDS.gradient;
            let own: Vec<f64> = sum.iter().zip(&noise).map(|(s, n)| s - n * scale).collect();
            assert!(distance(&own, &expected) < 2e-3, "{}: {own:?} {expected:?}", network.trained());
            let all = Bounds { fresh: 1.0, ..BOUNDS };
            let both = network.prepare_recursive(&now, &before, all);
            let gap = distance(&released(&network, &records, &both, Some(all)), &released(&network, &records, &now, None));
            assert!(gap < 1e-4, "{gap}");
        }
    }

    fn shortened(v: Vec<f64>, longest: f64) -> Vec<f64> {
        let size = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.iter().map(|x| x * (longest / size).min(1.0)).collect()
    }

    /// One example that becomes null moves a sum by at most H, another one in its place by 2 H, whatever it holds and however far apart the iterates are.
    #[test]
    fn neighbours_are_within_the_sensitivity() {
        for network in networks() {
            for size in [0.4, 30.0, 1e20] {
                let now = network.prepare(&numbers(network.dimension(), 3, size));
                let before = network.prepare(&numbers(network.dimension(), 3, -size));
                let both = network.prepare_recursive(&now, &before, BOUNDS);
                let sum = |x: f64, label: f32| released(&network, &data(&network, 9, Some((4, x, label))), &both, Some(BOUNDS));
                // A label that no network knows.
                let null = sum(0.0, 1e6);
                let bound = BOUNDS.longest() * 1.001;
                let mut seen: Vec<Vec<f64>> = Vec::new();
                for (x, label) in [(0.2, 0.0), (-0.2, 1.0), (9.0, 0.0), (f64::NAN, 0.0), (1e30, 1.0), (0.2, 77.0)] {
                    let own = sum(x, label);
                    let (gap, d) = (distance(&own, &null), network.trained());
                    assert!(gap <= bound, "{d} weights, {size} {x} {label}: {gap} of {bound}");
                    assert!(seen.iter().all(|other| distance(&own, other) <= 2.0 * bound), "{d} weights, {size} {x} {label}");
                    seen.push(own);
                }
                assert!(size > 1.0 || seen.iter().any(|s| distance(s, &null) > 0.3 * bound), "nothing came near the bound");
            }
        }
    }
}
