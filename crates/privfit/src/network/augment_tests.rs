use super::*;
use crate::data::encode::UNKNOWN;
use crate::network::{Layer, reference};
use privfit_kernel::account::Event;
use privfit_kernel::engine::Threads;
use privfit_kernel::{Blockwise, Clipping, Dataset, DatasetBuilder, Entropy, Gaussian, Mechanism, Result, RowShape, Run};
use std::sync::Mutex;

const CLIP: f64 = 0.3;

fn network(shape: [usize; 3], layers: &[&str], classes: usize) -> Network {
    let layers: Vec<Layer> = layers.iter().map(|l| Layer::parse(l).unwrap()).collect();
    let [height, width, channels] = shape;
    Network::new(Shape { height, width, channels }, &layers, classes, 3.0, 0.1).unwrap()
}

/// With a border and without, one channel and several, for classes and for a number; the last is so large that its copies are computed in several parts.
fn networks() -> Vec<Network> {
    let large = ["convolution 32 3 padding 1", "relu", "convolution 8 3 stride 3", "tanh", "flatten", "dense 40", "tanh"];
    vec![
        network([5, 4, 2], &["convolution 4 3 padding 1", "group_norm 2", "tanh", "max_pool 2"], 3),
        network([3, 6, 1], &["tanh", "flatten", "dense 5", "relu"], 0),
        network([4, 4, 3], &[], 2),
        network([16, 16, 3], &large, 4),
    ]
}

fn numbers(count: usize, seed: u64, size: f64) -> Vec<f64> {
    let mut random = crate::data::generate::Random::new(seed);
    (0..count).map(|_| size * (2.0 * random.uniform() - 1.0)).collect()
}

/// A row and a label.
type Example = (Vec<f64>, f32);

fn examples(network: &Network, count: usize) -> Vec<Example> {
    let size = network.input.size();
    let label = |i: usize| if network.classes() == 0 { (i as f32).sin() } else { (i % network.classes()) as f32 };
    (0..count).map(|i| (numbers(size, i as u64, 0.9 / (size as f64).sqrt()), label(i))).collect()
}

fn dataset(examples: &[Example]) -> Dataset {
    let shape = RowShape { dimension: examples[0].0.len(), row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
    examples.iter().for_each(|(row, label)| builder.row(row, *label));
    builder.build()
}

/// What is released with little noise, the same in every call, in grid steps; and their size.
fn release(examples: &[Example], blocks: &Blockwise<'_>) -> (Vec<i64>, f64) {
    let mechanism = match blocks.exact {
        true => Gaussian::new(CLIP, 0.01, 100),
        false => Gaussian::for_blocks(CLIP, blocks.error, 0.01, 100, blocks.dimension),
    };
    let (mechanism, data, engine, entropy) = (mechanism.unwrap(), dataset(examples), Threads::new(1), Entropy::simulated(2));
    let mut run = Run::begin(&data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
    let everyone = run.everyone().unwrap();
    let out: Result<Vec<f64>> = run.at(&mechanism, |run, scale| {
        let noise = run.draw(&scale, blocks.dimension)?;
        let value = everyone.sum_blocks(&noise, blocks)?;
        run.release(noise, &value)
    });
    let Event::DiscreteGaussian { sigma, .. } = mechanism.event(blocks.dimension) else { panic!() };
    let step = mechanism.standard_deviation() / sigma as f64;
    // Far below 2^50 steps, so that the integers are found again.
    (out.unwrap().iter().map(|x| (x / step).round() as i64).collect(), step)
}

/// A sum without its noise.
fn sum(examples: &[Example], blocks: &Blockwise<'_>) -> Vec<f64> {
    let nobody: Vec<Example> = examples.iter().map(|(row, _)| (vec![0.0; row.len()], UNKNOWN)).collect();
    let (with, step) = release(examples, blocks);
    with.iter().zip(release(&nobody, blocks).0).map(|(a, b)| (a - b) as f64 * step).collect()
}

fn size_of(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    size_of(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// By hand: a row of pixels that is moved, mirrored, or both, with a border around it and two channels.
#[test]
fn pictures_are_moved_and_mirrored() {
    let changed = |mirrored: bool, down: isize, right: isize| {
        let input = Area { shape: Shape { height: 2, width: 3, channels: 2 }, channels: 2, border: 1, at: 0 };
        let picture: Vec<f32> = (0..12).map(|i| (1 + i / 2) as f32 * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let mut out = vec![f32::NAN; input.size()];
        enter(&picture, Change { mirrored, down, right }, input, &mut out);
        let pixels: Vec<f32> = (0..6).map(|p| out[input.pixel(p / 3, p % 3)]).collect();
        let second: Vec<f32> = (0..6).map(|p| -out[input.pixel(p / 3, p % 3) + 1]).collect();
        assert_eq!(pixels, second);
        // All else is border.
        assert_eq!(out.iter().filter(|x| **x == 0.0).count(), input.size() - 12);
        pixels
    };
    assert_eq!(changed(false, 0, 0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(changed(true, 0, 0), [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
    assert_eq!(changed(false, 0, 1), [2.0, 3.0, 2.0, 5.0, 6.0, 5.0]);
    assert_eq!(changed(false, 0, -2), [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
    assert_eq!(changed(false, 1, 0), [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
    assert_eq!(changed(true, -1, 1), [5.0, 6.0, 5.0, 2.0, 3.0, 2.0]);
    assert_eq!([-3, -1, 0, 2, 3, 5].map(|at| inside(at, 4)), [3, 1, 0, 2, 3, 1]);
    assert_eq!([0, 1, -1].map(|at| inside(at, 1)), [0, 0, 0]);
}

/// All changes are equally likely, and none is outside of what is allowed. 50,000 draws of a fixed seed.
#[test]
fn changes_are_uniform() {
    let mut rng = Entropy::simulated(1).for_units().unwrap();
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..50_000 {
        let Change { mirrored, down, right } = Change::draw(&mut rng, Copies { count: 4, shift: 2, flip: true });
        *seen.entry((mirrored, down, right)).or_insert(0) += 1;
    }
    assert!(seen.len() == 50 && seen.keys().all(|(_, down, right)| down.abs() <= 2 && right.abs() <= 2));
    // Six deviations of a count of 1,000.
    assert!(seen.values().all(|count: &i32| (count - 1000).abs() < 190), "{seen:?}");
    let still = Change::draw(&mut rng, Copies { count: 4, shift: 0, flip: false });
    assert_eq!(still, Change { mirrored: false, down: 0, right: 0 });
}

/// Copies that do not differ from their picture have its gradient: the sum is that without copies, however many there are, clipped or not.
#[test]
fn equal_copies_change_nothing() {
    for (i, plain) in networks().into_iter().enumerate() {
        let examples = examples(&plain, 11);
        for (size, clipping) in [(0.01, Clipping::Norm), (0.5, Clipping::Norm), (0.5, Clipping::Automatic(0.01))] {
            let prepared = plain.prepare(&numbers(plain.dimension(), 5, size));
            let expected = sum(&examples, &plain.blocks(&prepared, clipping));
            for count in [2, 7, 16, 64] {
                let copied = plain.clone().with_copies(Copies { count, shift: 0, flip: false });
                let found = sum(&examples, &copied.blocks(&prepared, clipping));
                let gap = distance(&found, &expected);
                assert!(gap < 1e-5 * size_of(&expected) && size_of(&expected) > 0.01, "network {i}, {count} copies: {gap}");
            }
        }
    }
}

/// Row, label and changes of every unit, in the order in which a kernel hands them out.
static SEEN: Mutex<Vec<(Vec<f32>, f32, Vec<Change>)>> = Mutex::new(Vec::new());

/// The average over copies is that of a loop in double precision over the same copies, by code that shares nothing with this one; it is clipped once. Inputs as they are and normalised.
#[test]
fn averages_are_those_of_a_reference() {
    for (i, network) in networks().into_iter().enumerate() {
        let Shape { height, width, channels } = network.input;
        let copies = Copies { count: [3, 16, 2, 20][i], shift: [2, 1, 3, 4][i], flip: i != 1 };
        assert!(i != 3 || copies.count > network.program.at_once, "several parts");
        let network = network.with_copies(copies);
        let (d, examples) = (network.dimension(), examples(&network, 9));
        // Coins and rows as this very run will see them.
        let layout = [copies.count, copies.shift, usize::from(copies.flip)];
        let record = Blockwise {
            layout: &layout,
            scratch: network.input.size(),
            norms: |blocks, units, row, norms| {
                let mut label = [0f32];
                units.copy_rows(3.0, 0.1, row);
                units.copy_labels(&mut label);
                let copies = Copies { count: blocks.layout[0], shift: blocks.layout[1], flip: blocks.layout[2] == 1 };
                let mut rng = units.rng(0);
                let changes = (0..copies.count).map(|_| Change::draw(&mut rng, copies)).collect();
                SEEN.lock().unwrap().push((row.to_vec(), label[0], changes));
                norms.fill(0.0);
            },
            weighted: |_, _, _, _, _| {},
            ..network.blocks(&[], Clipping::Norm)
        };
        SEEN.lock().unwrap().clear();
        release(&examples, &record);
        let seen = std::mem::take(&mut *SEEN.lock().unwrap());
        assert_eq!(seen.len(), 9);
        assert!(seen[0].2 != seen[1].2, "units have coins of their own");
        for (normalised, weight) in [(false, 0.4), (true, 0.1)] {
            let weights: Vec<f64> = numbers(d, 3, weight).iter().map(|w| f64::from(*w as f32)).collect();
            let normal: Vec<f32> = (0..2 * channels).map(|c| 0.5 + 0.25 * c as f32).collect();
            let prepared = if normalised { network.prepare_normal(&weights, &normal) } else { network.prepare(&weights) };
            let mut expected = vec![0.0; d];
            let mut clipped = 0;
            for (row, label, changes) in &seen {
                let mut average = vec![0.0; d];
                for change in changes {
                    let mirror = |at: i64, side: i64| {
                        if at < 0 {
                            -at
                        } else if at >= side {
                            2 * side - 2 - at
                        } else {
                            at
                        }
                    };
                    let mut x = vec![0.0; row.len()];
                    for (p, x) in x.iter_mut().enumerate() {
                        let (c, px, py) = (p % channels, (p / channels % width) as i64, (p / channels / width) as i64);
                        let px = if change.mirrored { width as i64 - 1 - px } else { px };
                        let (py, px) =
                            (mirror(py + change.down as i64, height as i64), mirror(px + change.right as i64, width as i64));
                        *x = f64::from(row[(py as usize * width + px as usize) * channels + c]);
                        if normalised {
                            *x = *x * f64::from(normal[c]) + f64::from(normal[channels + c]);
                        }
                    }
                    let label = f64::from(*label);
                    let (_, g) =
                        reference::gradient(network.input, &network.layers, network.scores, network.goal, &weights, &x, label);
                    average.iter_mut().zip(&g).for_each(|(a, g)| *a += g / copies.count as f64);
                }
                let factor = (CLIP / size_of(&average)).min(1.0);
                clipped += usize::from(factor < 1.0);
                expected.iter_mut().zip(&average).for_each(|(e, a)| *e += factor * a);
            }
            assert!(clipped > 0, "network {i}: nothing is clipped");
            for exact in [false, true] {
                let blocks = Blockwise { exact, ..network.blocks(&prepared, Clipping::Norm) };
                let gap = distance(&sum(&examples, &blocks), &expected);
                assert!(
                    gap < 3e-5 * size_of(&expected),
                    "network {i}, exact {exact}, normalised {normalised}: {gap} of {}",
                    size_of(&expected)
                );
            }
        }
    }
}

/// An example adds the same integers whoever else is there, in the exact way to the last one; those that add nothing may hold anything, in both ways.
#[test]
fn copies_of_one_example_do_not_reach_another() {
    for (i, network) in networks().into_iter().enumerate() {
        let network = network.with_copies(Copies { count: 5, shift: 2, flip: true });
        let (prepared, size) = (network.prepare(&numbers(network.dimension(), 5, 0.5)), network.input.size());
        let mut all = examples(&network, 8);
        all[1].0 = vec![f64::NAN; size];
        all[2].0 = vec![1e300; size];
        all[3].0 = vec![0.0; size];
        all[4].0 = all[5].0.clone();
        for exact in [true, false] {
            let blocks = Blockwise { exact, ..network.blocks(&prepared, Clipping::Norm) };
            let out_of = |who: &dyn Fn(usize) -> bool, pixels: f64| {
                let one = |(i, e): (usize, &Example)| if who(i) { (vec![pixels; size], UNKNOWN) } else { e.clone() };
                release(&all.iter().enumerate().map(one).collect::<Vec<_>>(), &blocks)
            };
            let ((with, step), (nobody, _)) = (out_of(&|_| false, 0.0), out_of(&|_| true, 0.0));
            let gap = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<i64>>();
            let length = |steps: &[i64]| size_of(&steps.iter().map(|s| *s as f64 * step).collect::<Vec<_>>());
            for unit in 0..8 {
                let ((without, _), (alone, _)) = (out_of(&|i| i == unit, 0.0), out_of(&|i| i != unit, 0.0));
                let (own, moved) = (gap(&alone, &nobody), gap(&with, &without));
                assert!(length(&own) <= CLIP * (1.0 + 2e-5), "network {i}, unit {unit}: {}", length(&own));
                // The default rounds the sum of a block.
                let other_way = length(&gap(&moved, &own));
                assert!(if exact { moved == own } else { other_way < 1e-5 * CLIP }, "network {i}, unit {unit}: {other_way}");
                for pixels in [1e300, f64::NAN, 0.01] {
                    assert_eq!(out_of(&|i| i != unit, pixels).0, alone, "network {i}, unit {unit}, {pixels}");
                }
            }
            assert!(length(&gap(&with, &nobody)) > CLIP, "network {i}: they add something");
        }
    }
}

/// What lay in the working memory before does not matter, and no factor makes a number of what is none.
#[test]
fn nothing_is_left_over() {
    let network =
        network([4, 4, 1], &["convolution 2 3 padding 1", "tanh"], 2).with_copies(Copies { count: 3, shift: 1, flip: true });
    let blocks = network.blocks(&[], Clipping::Norm);
    assert_eq!(blocks.at_once, 1);
    let at = network.program.scratch + network.input.size();
    assert_eq!(blocks.scratch, at + network.dimension());
    let mut scratch = vec![f32::NAN; blocks.scratch];
    let mut sum = vec![1f32; network.dimension()];
    add(&network, 0.0, &scratch, &mut sum);
    assert!(sum.iter().all(|s| *s == 1.0));
    scratch[at..].fill(2.0);
    add(&network, 0.25, &scratch, &mut sum);
    assert!(sum.iter().all(|s| *s == 1.5));
    assert!(length(&[f32::MAX; 40]).is_finite() && (length(&[f32::MAX; 40]) as f32).is_infinite());
    assert!((length(&[1e-40; 100]) / 1e-39 - 1.0).abs() < 1e-3 && length(&[f32::NAN; 3]).is_nan());
    assert_eq!(length(&[3.0, 4.0]), 5.0);
    assert_eq!(Copies::NONE.room(network.input, 7), 0);
}
