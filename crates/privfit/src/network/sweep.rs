//! Sensitivity of networks on the integers: many examples, random ones and such as nobody would send by accident, in and out of a sum.

use super::{Copies, Layer, Network, Shape};
use crate::data::encode::UNKNOWN;
use crate::data::generate::Random;
use privfit_kernel::account::{Adjacency, Event};
use privfit_kernel::engine::Threads;
use privfit_kernel::{Blockwise, Clipping, Dataset, DatasetBuilder, Entropy, Gaussian, RowShape, Run};

/// Small networks that have every layer between them, for classes and for a number, the last two with copies of pictures; and the same with frozen layers.
fn networks() -> Vec<Network> {
    let all = trained_networks();
    let frozen: Vec<Network> = all.iter().map(|n| n.with_frozen_layers().unwrap()).collect();
    all.into_iter().chain(frozen).collect()
}

fn trained_networks() -> Vec<Network> {
    let make = |shape: [usize; 3], layers: &[&str], classes: usize, scale: f32| {
        let layers: Vec<Layer> = layers.iter().map(|l| Layer::parse(l).unwrap()).collect();
        let [height, width, channels] = shape;
        Network::new(Shape { height, width, channels }, &layers, classes, scale, 0.1).unwrap()
    };
    vec![
        make([1, 1, 5], &[], 3, 3.0),
        make([1, 1, 4], &["dense 3", "tanh"], 2, 2.0),
        make([1, 1, 4], &["dense 5", "relu", "dense 3", "relu"], 0, 100.0),
        make([1, 1, 4], &["dense 6", "group_norm 3", "tanh"], 2, 3.0),
        make([5, 5, 1], &["convolution 3 3 padding 1", "tanh", "max_pool 2", "flatten", "dense 4", "relu"], 3, 4.0),
        make([4, 4, 2], &["convolution 4 2 stride 2", "group_norm 2", "relu", "average_pool 2", "flatten"], 2, 3.0),
        make([6, 6, 1], &["convolution 2 3", "relu", "convolution 3 2 padding 1", "max_pool 2 stride 1"], 0, 1e4),
        make([4, 5, 2], &["convolution 3 3 padding 1", "tanh", "max_pool 2", "group_norm 1"], 3, 3.0).with_copies(Copies {
            count: 3,
            shift: 2,
            flip: true,
        }),
        make([3, 3, 1], &["flatten", "dense 4", "relu"], 0, 1e4).with_copies(Copies { count: 9, shift: 1, flip: false }),
    ]
}

/// A row and a label.
type Example = (Vec<f64>, f32);

/// An example of any kind; the first of the others may be repeated.
fn example(random: &mut Random, size: usize, classes: usize, others: &[Example]) -> Example {
    let most = 1.0 / (size as f64).sqrt();
    let row: Vec<f64> = match random.below(10) {
        0 => vec![most; size],
        1 => vec![-most; size],
        2 => (0..size).map(|_| if random.below(2) == 0 { most } else { -most }).collect(),
        3 => {
            let own = random.below(size);
            (0..size).map(|i| if i == own { [1.0, -1.0, 1e-4][own % 3] } else { 0.0 }).collect()
        }
        4 => (0..size).map(|_| [1e300, -1e300, f64::INFINITY, f64::NAN, 5e-324][random.below(5)]).collect(),
        5 => vec![0.0; size],
        6 if !others.is_empty() => others[0].0.clone(),
        _ => (0..size).map(|_| most * (2.0 * random.uniform() - 1.0)).collect(),
    };
    let label = match random.below(8) {
        0 => [f32::NAN, f32::INFINITY, -1.5, 1e9, classes as f32, 0.5, -0.0][random.below(7)],
        _ if classes == 0 => (2.0 * random.uniform() - 1.0) as f32,
        _ => random.below(classes) as f32,
    };
    (row, label)
}

fn dataset(examples: &[Example], size: usize) -> Dataset {
    let shape = RowShape { dimension: size, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
    examples.iter().for_each(|(row, label)| builder.row(row, *label));
    builder.build()
}

/// Each example taken out, or replaced by another one, moves the integers that meet noise by at most the sensitivity: at weights of all sizes, far beyond those of a training that diverged, for
/// both ways of clipping, and for gradients that are checked one by one. 20,000 examples, a million in a sweep.
#[test]
fn one_example_moves_integers_by_at_most_the_sensitivity() {
    let examples = if std::env::var_os("PRIVFIT_SWEEP").is_some() { 1_000_000 } else { 20_000 };
    let mut random = Random::new(0x5EE9);
    let (networks, engine) = (networks(), Threads::new(1));
    let event = Event::NotPrivate { why: "test".into() };
    // By network and grade: examples, largest part of the sensitivity under zero-out and replace-one.
    let mut seen = vec![[(0u64, 0f64, 0f64); 2]; networks.len()];
    let (mut compared, mut round) = (0, 0);
    while compared < examples {
        let which = round % networks.len();
        let network = &networks[which];
        let (d, size, classes) = (network.trained(), network.input.size(), network.classes());
        let weight = [0.5, 0.5, 3.0, 0.01, 100.0, 1e8, 1e15, 1e19, 1e30, 3e38][round / networks.len() % 10];
        let weights: Vec<f64> = (0..network.dimension()).map(|_| weight * (2.0 * random.uniform() - 1.0)).collect();
        let prepared = network.prepare(&weights);
        let (clip, exact) = ([0.1, 1.0, 1e-6, 30.0, 1e6][random.below(5)], random.below(4) == 0);
        let clipping = [Clipping::Norm, Clipping::Automatic(0.01)][random.below(2)];
        let mechanism = match exact {
            true => Gaussian::new(clip, 1.0, 100),
            false => Gaussian::for_blocks(clip, network.error(), 1.0, 100, d),
        }
        .unwrap();
        let release = |run: &mut Run<'_>| {
            let everyone = run.everyone()?;
            run.at(&mechanism, |run, scale| {
                let noise = run.draw(&scale, d)?;
                let blocks = Blockwise { exact, ..network.blocks(&prepared, clipping) };
                let value = everyone.sum_blocks(&noise, &blocks)?;
                run.release(noise, &value)
            })
        };
        let mut all = Vec::new();
        for _ in 0..[1, 2, 9, 25, 40][random.below(5)] {
            let one = example(&mut random, size, classes, &all);
            all.push(one);
        }
        let (first, entropy) = (dataset(&all, size), Entropy::simulated(round as u64));
        let mut run = Run::recorded(&first, &engine, &entropy, &event).unwrap();
        release(&mut run).unwrap();
        let transcript = run.transcript().unwrap();
        for i in 0..all.len() {
            let replaced = random.below(3) == 0;
            let other = if replaced { example(&mut random, size, classes, &all) } else { (vec![0.0; size], UNKNOWN) };
            let own = std::mem::replace(&mut all[i], other);
            let (second, entropy) = (dataset(&all, size), Entropy::simulated(round as u64));
            let mut run = Run::replayed(&second, &engine, &entropy, &event, &transcript).unwrap();
            release(&mut run).unwrap();
            let adjacency = if replaced { Adjacency::ReplaceOne } else { Adjacency::ZeroOut };
            for moved in run.movements().unwrap() {
                let part = moved.moved as f64 / moved.allowed(adjacency) as f64;
                assert!(
                    moved.holds(adjacency),
                    "network {which}, {adjacency}, exact {exact}, weights {weight}, clip {clip}: {part}, {own:?} by {:?}",
                    all[i]
                );
                let entry = &mut seen[which][usize::from(exact)];
                let largest = if replaced { &mut entry.2 } else { &mut entry.1 };
                *largest = largest.max(part);
                entry.0 += 1;
            }
            all[i] = own;
            compared += 1;
        }
        round += 1;
    }
    for (which, entries) in seen.iter().enumerate() {
        for ((count, out, other), grade) in entries.iter().zip(["bounded", "exact"]) {
            println!("network {which}, {grade}: {count} examples, at most {out:.6} of the sensitivity, {other:.6} if replaced");
            // An example does reach its clip.
            assert!(*count > 0 && *out > 0.9 && *other > 0.5, "network {which}, {grade}: {count} {out} {other}");
        }
    }
}
