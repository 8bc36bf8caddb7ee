//! Copies of a picture for one step, each moved by a few pixels and mirrored or not: the gradient of an example is the average of those of its copies (De et al. 2022).
//!
//! *Claim.* A step releases what it releases without copies: a noisy sum of one vector for each sampled example, clipped to length C. With K copies this vector v is the average of the gradients of K
//! copies of the example. It is stored, its norm is that of the stored numbers, and it is clipped once, after the average. So an example adds at most C, however many copies it has and
//! whatever they are, and the sensitivity is C under zero-out and 2 C under replace-one, as before.
//!
//! *Coins.* How a copy differs from its picture comes from a generator that the kernel keys by a secret of the step and by the index of the unit (`UnitBlock::rng`). No record and no sample has a part in
//! it: the coins of one example are the same whoever else is there, so that its copies can't move what others add. Given the coins of all units, a step is the mechanism that the accountant
//! knows. Neighbours have the same distribution of coins, so that both outputs are mixtures with the same weights, and no mixture is easier to tell from its neighbour than the worst of its parts (the
//! divergence that defines epsilon and delta is jointly convex). The bound holds for every outcome of the coins, and nothing rests on their being secret.
//!
//! *Error.* Units are of 2^-24, as in `blocks.rs`. v is *defined* as the numbers that were stored: what rounding did on the way to the average is part of v, which is a function of the example, its coins
//! and public weights alone, to the bit, and enters no bound. Its norm N is a sum of squares in double precision (lanes of at most 2^22 numbers: off by less than 2^-30) and is rounded once; the
//! factor w has three roundings more, so that |w v| is at most the clip and 5 units. A product w v is rounded once and goes through at most 128 additions: the error of a sum is
//! at most 129 units times the sum of the lengths. Both together stay below 140 units, 8.4e-6. The 2e-5 that is charged without copies covers it, and is charged here too.
//! - *Small and large numbers.* Squares of single numbers neither vanish nor overflow in double precision, so that N misses nothing. A product w v below 2^-126 is off by 2^-150: nothing against the least clip,
//!   1e-9, for all weights that a network may have. A v that is not finite has no finite norm, and one that is longer than single precision can say neither: both get the factor 0 and add nothing.
//!
//! *Time.* Every example has K copies, whatever it holds. Coins decide which pixels are read, records do not, and a factor of 0 is multiplied like any other.
//!
//! *Edges.* What lies beyond an edge is the picture mirrored at it. Any constant would be a guess about pictures: 0 is black before inputs are normalised and their mean afterwards. Mirrored pixels are those of
//! the picture, so that it makes no difference whether inputs are normalised before or after they are moved.

use super::architecture::{Copies, Network};
use super::layer::Shape;
use super::normal;
use super::pass::{backward, forward, weighted};
use super::product::LANES;
use super::program::{Area, MOST_AT_ONCE};
use privfit_kernel::{NoiseRng, UnitBlock};

/// How one copy differs from its picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) mirrored: bool,
    /// Where the first pixel of the copy lies in the picture.
    pub(super) down: isize,
    pub(super) right: isize,
}

impl Change {
    /// Three words for each copy, whatever may change.
    pub(super) fn draw(rng: &mut NoiseRng, copies: Copies) -> Change {
        let mirrored = rng.below(2) == 1 && copies.flip;
        let mut pixels = || rng.below(2 * copies.shift as u64 + 1) as isize - copies.shift as isize;
        Change { mirrored, down: pixels(), right: pixels() }
    }
}

/// The pixel of a side that stands at a place, which may lie beyond an edge by less than the side.
fn inside(at: isize, side: usize) -> usize {
    let last = side as isize - 1;
    let at = at.abs();
    (if at > last { 2 * last - at } else { at }).clamp(0, last) as usize
}

/// Writes a changed copy of a picture to its place in the input area, which may have a border.
#[inline(always)]
fn enter(picture: &[f32], change: Change, input: Area, out: &mut [f32]) {
    let Shape { height, width, channels } = input.shape;
    out.fill(0.0);
    for y in 0..height {
        let row = &picture[inside(y as isize + change.down, height) * width * channels..][..width * channels];
        let out = &mut out[input.pixel(y, 0)..][..width * channels];
        for (x, out) in out.chunks_exact_mut(channels).enumerate() {
            let x = if change.mirrored { width - 1 - x } else { x };
            out.copy_from_slice(&row[inside(x as isize + change.right, width) * channels..][..channels]);
        }
    }
}

/// Norm of the average of the gradients of a unit's copies, which stays at the end of the working memory.
#[inline(always)]
pub(super) fn norm(network: &Network, weights: &[f32], unit: &UnitBlock<'_>, scratch: &mut [f32]) -> f32 {
    let Network { program, copies, .. } = network;
    assert_eq!(unit.len(), 1, "copies are made of one unit at a time");
    let mut label = [f32::NAN];
    unit.copy_labels(&mut label);
    let (own, more) = scratch.split_at_mut(program.scratch);
    let (picture, average) = more.split_at_mut(network.input.size());
    let average = &mut average[..network.trained()];
    unit.copy_rows(network.scale, network.shift, picture);
    normal::apply(network.normal_of(weights), picture);
    average.fill(0.0);
    let (mut rng, part) = (unit.rng(0), 1.0 / copies.count as f32);
    let mut left = copies.count;
    while left > 0 {
        let count = left.min(program.at_once);
        let input = program.input;
        for e in 0..count {
            let change = Change::draw(&mut rng, *copies);
            enter(picture, change, input, &mut own[input.at + e * input.size()..][..input.size()]);
        }
        forward(program, weights, own, count);
        // Norms of single copies are of no use.
        let (labels, mut norms) = ([label[0]; MOST_AT_ONCE], [0f32; MOST_AT_ONCE]);
        backward(program, weights, network.goal, &labels[..count], own, &mut norms[..count]);
        weighted(program, &[part; MOST_AT_ONCE][..count], own, average);
        left -= count;
    }
    length(average) as f32
}

/// Adds that average, weighted.
#[inline(always)]
pub(super) fn add(network: &Network, factor: f32, scratch: &[f32], sum: &mut [f32]) {
    add_stored(&scratch[network.program.scratch + network.input.size()..][..network.trained()], factor, sum);
}

/// Adds a stored vector, weighted.
#[inline(always)]
pub(super) fn add_stored(vector: &[f32], factor: f32, sum: &mut [f32]) {
    // A factor of 0 adds 0, whatever there is: 0 times infinity would be no number.
    let kept = u32::from(factor > 0.0).wrapping_neg();
    sum.iter_mut().zip(vector).for_each(|(s, x)| *s += f32::from_bits((factor * x).to_bits() & kept));
}

/// Euclidean length, in double precision.
#[inline(always)]
pub(super) fn length(numbers: &[f32]) -> f64 {
    let (groups, rest) = numbers.as_chunks::<LANES>();
    let mut lanes = [0f64; LANES];
    for group in groups {
        for (lane, x) in lanes.iter_mut().zip(group) {
            *lane += f64::from(*x) * f64::from(*x);
        }
    }
    let rest = rest.iter().map(|x| f64::from(*x) * f64::from(*x));
    lanes.into_iter().chain(rest).sum::<f64>().sqrt()
}

#[cfg(test)]
#[path = "augment_tests.rs"]
mod tests;
