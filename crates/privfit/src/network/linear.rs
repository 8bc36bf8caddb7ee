//! Networks that are scores alone, on rows as the kernel stores them: a cell becomes an input in a register, twice, and is never written.
//!
//! An input is x = cell x scale + offset with scales and offsets of its own, in one multiply-add, the same to the bit in both passes. Scores are sums over lanes of inputs, each
//! a chain of multiply-adds of its own, which are added in a fixed order at the end: what is computed for one example does not depend on which others are computed with it.
//! A weighted sum is, for every weight, one chain of multiply-adds over the examples. All processors do the same arithmetic: what differs is how many lanes an instruction has.

use super::architecture::Network;
use super::normal;
use super::pass::{Goal, LONGEST_INPUT, derivative};
use super::product::{LANES, padded};
use super::program::{MOST_AT_ONCE, MOST_SCORES};
use privfit_kernel::UnitBlock;

/// Groups of inputs whose weights stay in the first cache, while all examples go by; and a chain of squares in single precision.
const PART: usize = 64;

/// Rows that are asked for before they are read.
const AHEAD: usize = 4;

/// What both passes need.
pub(super) struct Linear<'a> {
    scores: usize,
    goal: Goal,
    inputs: usize,
    /// Scales and offsets of inputs: zeros beyond the last.
    maps: &'a mut [f32],
    /// Sums over lanes, of the forward pass.
    sums: &'a mut [f32],
    /// Derivatives by the scores, of all examples, and their weighted ones.
    deltas: &'a mut [f32],
    weighted: &'a mut [f32],
}

impl<'a> Linear<'a> {
    /// Whether rows are stored cell by cell, and the network has this way: both are public.
    pub(super) fn fits(network: &Network, units: &UnitBlock<'_>) -> bool {
        network.program.across.is_some() && units.row_length().is_some_and(|cells| cells >= network.input.size())
    }

    /// In working memory that both passes share.
    pub(super) fn new(network: &Network, scratch: &'a mut [f32]) -> Linear<'a> {
        let (inputs, scores, examples) = (network.input.size(), network.scores, network.program.at_once);
        let (maps, rest) = scratch.split_at_mut(2 * padded(inputs));
        let (sums, rest) = rest.split_at_mut(examples * scores * LANES);
        let (deltas, rest) = rest.split_at_mut(examples * scores);
        let weighted = &mut rest[..examples * scores];
        Linear { scores, goal: network.goal, inputs, maps, sums, deltas, weighted }
    }
}

/// Sixteen numbers, whatever instructions there are for them.
trait Lanes: Copy {
    /// All zero.
    fn zero() -> Self;
    /// All the same.
    fn all(x: f32) -> Self;
    /// From memory.
    fn load(from: &[f32; LANES]) -> Self;
    /// Cells as numbers.
    fn cells(from: &[i16; LANES]) -> Self;
    /// self x a + b, rounded once.
    fn times_plus(self, a: Self, b: Self) -> Self;
    /// To memory.
    fn store(self, to: &mut [f32; LANES]);
    /// The sum of all, halves to halves.
    fn total(self) -> f32;
}

#[derive(Clone, Copy)]
struct Plain([f32; LANES]);

impl Lanes for Plain {
    #[inline(always)]
    fn zero() -> Plain {
        Plain([0.0; LANES])
    }
    #[inline(always)]
    fn all(x: f32) -> Plain {
        Plain([x; LANES])
    }
    #[inline(always)]
    fn load(from: &[f32; LANES]) -> Plain {
        Plain(*from)
    }
    #[inline(always)]
    fn cells(from: &[i16; LANES]) -> Plain {
        Plain(from.map(f32::from))
    }
    #[inline(always)]
    fn times_plus(self, a: Plain, b: Plain) -> Plain {
        Plain(std::array::from_fn(|i| self.0[i].mul_add(a.0[i], b.0[i])))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        *to = self.0;
    }
    #[inline(always)]
    fn total(self) -> f32 {
        let eight: [f32; 8] = std::array::from_fn(|i| self.0[i] + self.0[i + 8]);
        let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
        let two: [f32; 2] = std::array::from_fn(|i| four[i] + four[i + 2]);
        two[0] + two[1]
    }
}

/// Only made and used by what was compiled for processors with AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Wide(std::arch::x86_64::__m512);

#[cfg(target_arch = "x86_64")]
impl Lanes for Wide {
    #[inline(always)]
    fn zero() -> Wide {
        // SAFETY: the processor has the instructions, as for all below.
        unsafe { Wide(std::arch::x86_64::_mm512_setzero_ps()) }
    }
    #[inline(always)]
    fn all(x: f32) -> Wide {
        // SAFETY: as above.
        unsafe { Wide(std::arch::x86_64::_mm512_set1_ps(x)) }
    }
    #[inline(always)]
    fn load(from: &[f32; LANES]) -> Wide {
        // SAFETY: there are sixteen numbers.
        unsafe { Wide(std::arch::x86_64::_mm512_loadu_ps(from.as_ptr())) }
    }
    #[inline(always)]
    fn cells(from: &[i16; LANES]) -> Wide {
        use std::arch::x86_64::{_mm256_loadu_si256, _mm512_cvtepi16_epi32, _mm512_cvtepi32_ps};
        // SAFETY: there are sixteen cells.
        unsafe { Wide(_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256(from.as_ptr().cast())))) }
    }
    #[inline(always)]
    fn times_plus(self, a: Wide, b: Wide) -> Wide {
        // SAFETY: as above.
        unsafe { Wide(std::arch::x86_64::_mm512_fmadd_ps(self.0, a.0, b.0)) }
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        // SAFETY: there is room for sixteen numbers.
        unsafe { std::arch::x86_64::_mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn total(self) -> f32 {
        use std::arch::x86_64::*;
        // SAFETY: as above.
        unsafe {
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0)));
            let eight = _mm256_add_ps(_mm512_castps512_ps256(self.0), upper);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

/// Calls a function of two sizes with the scores of a network as a number that is known to the compiler.
macro_rules! with_scores {
    ($scores:expr, $name:ident::<$lanes:ident>($($rest:expr),*)) => {
        match $scores {
            1 => $name::<$lanes, 1>($($rest),*),
            2 => $name::<$lanes, 2>($($rest),*),
            3 => $name::<$lanes, 3>($($rest),*),
            4 => $name::<$lanes, 4>($($rest),*),
            5 => $name::<$lanes, 5>($($rest),*),
            6 => $name::<$lanes, 6>($($rest),*),
            7 => $name::<$lanes, 7>($($rest),*),
            8 => $name::<$lanes, 8>($($rest),*),
            9 => $name::<$lanes, 9>($($rest),*),
            10 => $name::<$lanes, 10>($($rest),*),
            11 => $name::<$lanes, 11>($($rest),*),
            _ => $name::<$lanes, MOST_SCORES>($($rest),*),
        }
    };
}

/// The two passes, for all kinds of lanes.
macro_rules! passes {
    ($norms:ident, $weighted:ident, $lanes:ident, $($feature:meta),*) => {
        $(#[$feature])*
        fn $norms(linear: Linear<'_>, network: &Network, prepared: &[f32], units: &UnitBlock<'_>, out: &mut [f32]) {
            with_scores!(linear.scores, norms_of::<$lanes>(linear, network, prepared, units, out))
        }

        $(#[$feature])*
        fn $weighted(linear: Linear<'_>, units: &UnitBlock<'_>, factors: &[f32], out: &mut [f32]) {
            with_scores!(linear.scores, weighted_of::<$lanes>(linear, units, factors, out))
        }
    };
}

passes!(norms_plain, weighted_plain, Plain,);
#[cfg(target_arch = "x86_64")]
passes!(norms_wide, weighted_wide, Plain, target_feature(enable = "avx2,fma"));
#[cfg(target_arch = "x86_64")]
passes!(norms_widest, weighted_widest, Wide, target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma"));

/// Which instructions there are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Wide,
    #[cfg(target_arch = "x86_64")]
    Widest,
}

fn way() -> Way {
    #[cfg(target_arch = "x86_64")]
    {
        let fused = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let wide =
            is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl");
        if fused {
            return if wide { Way::Widest } else { Way::Wide };
        }
    }
    Way::Plain
}

impl Linear<'_> {
    /// Euclidean norms of gradients; a unit without rows has none.
    pub(super) fn norms(self, network: &Network, prepared: &[f32], units: &UnitBlock<'_>, out: &mut [f32]) {
        self.norms_by(way(), network, prepared, units, out);
    }

    /// After `norms`, with the same working memory: adds the sum of gradients times factors.
    pub(super) fn weighted(self, units: &UnitBlock<'_>, factors: &[f32], out: &mut [f32]) {
        self.weighted_by(way(), units, factors, out);
    }

    fn norms_by(self, way: Way, network: &Network, prepared: &[f32], units: &UnitBlock<'_>, out: &mut [f32]) {
        match way {
            Way::Plain => norms_plain(self, network, prepared, units, out),
            // SAFETY: the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            Way::Wide => unsafe { norms_wide(self, network, prepared, units, out) },
            // SAFETY: the same.
            #[cfg(target_arch = "x86_64")]
            Way::Widest => unsafe { norms_widest(self, network, prepared, units, out) },
        }
    }

    fn weighted_by(self, way: Way, units: &UnitBlock<'_>, factors: &[f32], out: &mut [f32]) {
        match way {
            Way::Plain => weighted_plain(self, units, factors, out),
            // SAFETY: the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            Way::Wide => unsafe { weighted_wide(self, units, factors, out) },
            // SAFETY: the same.
            #[cfg(target_arch = "x86_64")]
            Way::Widest => unsafe { weighted_widest(self, units, factors, out) },
        }
    }
}

/// The inputs of all units. A unit without rows is computed like another one, and never used: it has no label.
#[inline(always)]
fn rows<'u>(units: &UnitBlock<'u>, inputs: usize) -> Option<[&'u [i16]; MOST_AT_ONCE]> {
    let own = |i: usize| units.row(i).get(..inputs);
    let some = (0..units.len()).find_map(own)?;
    Some(std::array::from_fn(|i| own(i).unwrap_or(some)))
}

/// The last cells of a row, fewer than a group, filled up with zeros.
#[inline(always)]
fn last_group(row: &[i16]) -> [i16; LANES] {
    let (_, rest) = row.as_chunks::<LANES>();
    let mut last = [0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    last
}

#[inline(always)]
fn norms_of<L: Lanes, const O: usize>(
    linear: Linear<'_>,
    network: &Network,
    prepared: &[f32],
    units: &UnitBlock<'_>,
    out: &mut [f32],
) {
    let Linear { goal, inputs, maps, sums, deltas, .. } = linear;
    let (count, long) = (units.len().min(MOST_AT_ONCE), padded(inputs));
    let (scales, offsets) = maps.split_at_mut(long);
    scales[inputs..].fill(0.0);
    offsets[inputs..].fill(0.0);
    scales[..inputs].fill(units.cell_unit() as f32 * network.scale);
    offsets[..inputs].fill(network.shift);
    normal::compose(network.normal_of(prepared), &mut scales[..inputs], &mut offsets[..inputs]);
    let ((scales, _), (offsets, _)) = (scales.as_chunks::<LANES>(), offsets.as_chunks::<LANES>());
    let across = &prepared[network.program.across.unwrap_or(0)..][..O * long + O];
    let (weights, bias) = across.split_at(O * long);
    let (weights, _) = weights.as_chunks::<LANES>();
    let (weights, _) = weights.as_chunks::<O>();
    let (sums, _) = sums.as_chunks_mut::<LANES>();
    let (sums, _) = sums.as_chunks_mut::<O>();
    let mut squares = [0f64; MOST_AT_ONCE];
    let Some(rows) = rows(units, inputs) else { return out.fill(f32::NAN) };
    sums[..count].fill([[0.0; LANES]; O]);
    let groups = long / LANES;
    for first in (0..groups).step_by(PART) {
        let own = first..groups.min(first + PART);
        let part = Part { first, scales: &scales[own.clone()], offsets: &offsets[own.clone()], weights: &weights[own] };
        let mut at = 0;
        while at < count {
            if first == 0 {
                (at + AHEAD..at + AHEAD + 2).for_each(|i| units.fetch(i));
            }
            // Few scores leave registers for more examples, whose chains hide each other's latency.
            let left = count - at;
            at += match O {
                1..=3 if left >= 4 => part.add::<L, 4>(&rows, at, sums, &mut squares),
                _ if left >= 2 => part.add::<L, 2>(&rows, at, sums, &mut squares),
                _ => part.add::<L, 1>(&rows, at, sums, &mut squares),
            };
        }
    }
    let mut labels = [f32::NAN; MOST_AT_ONCE];
    units.copy_labels(&mut labels[..count]);
    let (deltas, _) = deltas.as_chunks_mut::<O>();
    for e in 0..count {
        let scores: [f32; O] = std::array::from_fn(|o| L::load(&sums[e][o]).total() + bias[o]);
        derivative(goal, &scores, labels[e], &mut deltas[e]);
        let square: f64 = deltas[e].iter().map(|d| f64::from(*d) * f64::from(*d)).sum();
        // As for every dense layer (`blocks.rs`).
        let short = squares[e] <= LONGEST_INPUT * LONGEST_INPUT;
        out[e] = if short { ((1.0 + squares[e]) * square).sqrt() as f32 } else { f32::INFINITY };
    }
}

/// Inputs of which the weights are in the first cache.
struct Part<'a, const O: usize> {
    first: usize,
    scales: &'a [[f32; LANES]],
    offsets: &'a [[f32; LANES]],
    weights: &'a [[[f32; LANES]; O]],
}

impl<const O: usize> Part<'_, O> {
    /// Adds the part to the sums and squares of R examples, and returns R.
    #[inline(always)]
    fn add<L: Lanes, const R: usize>(
        &self,
        rows: &[&[i16]; MOST_AT_ONCE],
        at: usize,
        sums: &mut [[[f32; LANES]; O]],
        squares: &mut [f64; MOST_AT_ONCE],
    ) -> usize {
        let sums = &mut sums[at..at + R];
        let mut own = Own { scores: [[L::zero(); O]; R], square: [L::zero(); R] };
        for r in 0..R {
            for o in 0..O {
                own.scores[r][o] = L::load(&sums[r][o]);
            }
        }
        let cells: [&[[i16; LANES]]; R] =
            std::array::from_fn(|r| rows[at + r].as_chunks::<LANES>().0.get(self.first..).unwrap_or(&[]));
        let whole = cells[0].len().min(self.scales.len());
        let cells: [&[[i16; LANES]]; R] = std::array::from_fn(|r| &cells[r][..whole]);
        let maps = self.scales.iter().zip(self.offsets).zip(self.weights);
        for (g, ((scale, offset), weights)) in maps.clone().take(whole).enumerate() {
            own.add(std::array::from_fn(|r| &cells[r][g]), scale, offset, weights);
        }
        // A last group with fewer inputs.
        if let Some(((scale, offset), weights)) = maps.clone().nth(whole) {
            let last: [[i16; LANES]; R] = std::array::from_fn(|r| last_group(rows[at + r]));
            own.add(std::array::from_fn(|r| &last[r]), scale, offset, weights);
        }
        for r in 0..R {
            let mut lanes = [0f32; LANES];
            own.square[r].store(&mut lanes);
            squares[at + r] += lanes.iter().map(|x| f64::from(*x)).sum::<f64>();
            for o in 0..O {
                own.scores[r][o].store(&mut sums[r][o]);
            }
        }
        R
    }
}

/// Sums of R examples.
struct Own<L, const R: usize, const O: usize> {
    scores: [[L; O]; R],
    square: [L; R],
}

impl<L: Lanes, const R: usize, const O: usize> Own<L, R, O> {
    #[inline(always)]
    fn add(&mut self, cells: [&[i16; LANES]; R], scale: &[f32; LANES], offset: &[f32; LANES], weights: &[[f32; LANES]; O]) {
        let (scale, offset) = (L::load(scale), L::load(offset));
        let x: [L; R] = std::array::from_fn(|r| L::cells(cells[r]).times_plus(scale, offset));
        for r in 0..R {
            self.square[r] = x[r].times_plus(x[r], self.square[r]);
        }
        for o in 0..O {
            let weight = L::load(&weights[o]);
            for r in 0..R {
                self.scores[r][o] = x[r].times_plus(weight, self.scores[r][o]);
            }
        }
    }
}

/// Groups of inputs that are added together: a line of the cache holds the cells of two.
const TWO: usize = 2;

/// Adds one example's inputs times its weighted derivatives.
#[inline(always)]
fn add_example<L: Lanes, const O: usize>(
    cells: [&[i16; LANES]; TWO],
    maps: &[[L; 2]; TWO],
    delta: &[f32; O],
    sums: &mut [[L; TWO]; O],
) {
    let x: [L; TWO] = std::array::from_fn(|t| L::cells(cells[t]).times_plus(maps[t][0], maps[t][1]));
    for o in 0..O {
        let d = L::all(delta[o]);
        for t in 0..TWO {
            sums[o][t] = x[t].times_plus(d, sums[o][t]);
        }
    }
}

#[inline(always)]
fn weighted_of<L: Lanes, const O: usize>(linear: Linear<'_>, units: &UnitBlock<'_>, factors: &[f32], out: &mut [f32]) {
    let Linear { inputs, maps, deltas, weighted, .. } = linear;
    let long = padded(inputs);
    let (scales, offsets) = maps.split_at(long);
    let ((scales, _), (offsets, _)) = (scales.as_chunks::<LANES>(), offsets.as_chunks::<LANES>());
    let ((deltas, _), (weighted, _)) = (deltas.as_chunks::<O>(), weighted.as_chunks_mut::<O>());
    // Who has a part in the sum, and their weighted derivatives, side by side.
    let mut rows: [&[i16]; MOST_AT_ONCE] = [&[]; MOST_AT_ONCE];
    let mut count = 0;
    let (weights, bias) = out.split_at_mut(inputs * O);
    for (e, factor) in factors.iter().enumerate().take(MOST_AT_ONCE).filter(|(_, factor)| **factor > 0.0) {
        rows[count] = units.row(e).get(..inputs).unwrap_or(&[]);
        weighted[count] = deltas[e].map(|d| d * factor);
        bias.iter_mut().zip(weighted[count]).for_each(|(b, d)| *b += d);
        count += 1;
    }
    let (rows, weighted) = (&rows[..count], &weighted[..count]);
    let (places, _) = weights.as_chunks_mut::<O>();
    let groups = long / LANES;
    for first in (0..groups).step_by(TWO) {
        let two = TWO.min(groups - first);
        let map = |list: &[[f32; LANES]], t: usize| list.get(first + t).map_or(L::zero(), L::load);
        let maps: [[L; 2]; TWO] = std::array::from_fn(|t| [map(scales, t), map(offsets, t)]);
        let mut sums = [[L::zero(); TWO]; O];
        if (first + TWO) * LANES <= inputs {
            for (row, delta) in rows.iter().zip(weighted) {
                let cells = row.get(first * LANES..).and_then(|r| r.first_chunk::<{ TWO * LANES }>());
                let Some(cells) = cells else { continue };
                let (cells, _) = cells.as_chunks::<LANES>();
                add_example([&cells[0], &cells[1]], &maps, delta, &mut sums);
            }
        } else {
            for (row, delta) in rows.iter().zip(weighted) {
                let (whole, last) = (row.as_chunks::<LANES>().0, last_group(row));
                let cells = [0, 1].map(|t| whole.get(first + t).unwrap_or(&last));
                add_example(cells, &maps, delta, &mut sums);
            }
        }
        // Weights of an input lie together: its sums, score after score.
        let mut lists = [[[0f32; LANES]; TWO]; O];
        for o in 0..O {
            (0..TWO).for_each(|t| sums[o][t].store(&mut lists[o][t]));
        }
        for t in 0..two {
            for (lane, place) in places.iter_mut().skip((first + t) * LANES).take(LANES).enumerate() {
                for o in 0..O {
                    place[o] += lists[o][t][lane];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Shape;
    use privfit_kernel::account::Event;
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Blockwise, Clipping, Dataset, DatasetBuilder, Entropy, Gaussian, RowShape, Run};

    fn number(i: usize) -> f64 {
        ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f64 / 8_388_608.0 - 1.0
    }

    fn data(inputs: usize, scores: usize, count: usize) -> Dataset {
        let shape = RowShape { dimension: inputs, row_norm: 1.0, sparse: false, rows_per_unit: None };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        for i in 0..count {
            let row: Vec<f64> = (0..inputs).map(|j| 0.9 * number(i * inputs + j) / (inputs as f64).sqrt()).collect();
            // One that is unknown adds nothing.
            builder.row(&row, if i == 5 { -9.0 } else { (i % scores.max(2)) as f32 });
        }
        builder.build()
    }

    /// The sum with its noise, which is the same for the same seed.
    fn sum(network: &Network, prepared: &[f32], data: &Dataset, way: Option<Way>) -> Vec<f64> {
        let blocks = network.blocks(prepared, Clipping::Norm);
        let blocks = match way {
            None => blocks,
            Some(Way::Plain) => by(blocks, norms_by::<0>, sum_by::<0>),
            #[cfg(target_arch = "x86_64")]
            Some(Way::Wide) => by(blocks, norms_by::<1>, sum_by::<1>),
            #[cfg(target_arch = "x86_64")]
            Some(Way::Widest) => by(blocks, norms_by::<2>, sum_by::<2>),
        };
        let mechanism = Gaussian::for_blocks(0.5, network.error(), 0.01, 1000, network.trained()).unwrap();
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(2));
        let mut run = Run::begin(data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
        let everyone = run.everyone().unwrap();
        run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, network.trained())?;
            let value = everyone.sum_blocks(&noise, &blocks)?;
            run.release(noise, &value)
        })
        .unwrap()
    }

    type Norms = fn(&Blockwise<'_>, &UnitBlock<'_>, &mut [f32], &mut [f32]);
    type Sum = fn(&Blockwise<'_>, &UnitBlock<'_>, &[f32], &mut [f32], &mut [f32]);

    fn by<'a>(blocks: Blockwise<'a>, norms: Norms, weighted: Sum) -> Blockwise<'a> {
        Blockwise { norms, weighted, ..blocks }
    }

    fn way_of(number: usize) -> Way {
        #[cfg(target_arch = "x86_64")]
        if number > 0 {
            return if number == 1 { Way::Wide } else { Way::Widest };
        }
        Way::Plain
    }

    fn norms_by<const WAY: usize>(blocks: &Blockwise<'_>, units: &UnitBlock<'_>, scratch: &mut [f32], out: &mut [f32]) {
        let network = Network::from_words(blocks.layout).unwrap();
        assert!(Linear::fits(&network, units));
        Linear::new(&network, scratch).norms_by(way_of(WAY), &network, blocks.parameters, units, out);
    }

    fn sum_by<const WAY: usize>(
        blocks: &Blockwise<'_>,
        units: &UnitBlock<'_>,
        factors: &[f32],
        scratch: &mut [f32],
        out: &mut [f32],
    ) {
        let network = Network::from_words(blocks.layout).unwrap();
        Linear::new(&network, scratch).weighted_by(way_of(WAY), units, factors, out);
    }

    /// Every processor computes the same bits, with normalised inputs too.
    #[test]
    fn all_ways_agree() {
        let ways = match way() {
            Way::Plain => vec![],
            #[cfg(target_arch = "x86_64")]
            Way::Wide => vec![Way::Wide],
            #[cfg(target_arch = "x86_64")]
            Way::Widest => vec![Way::Wide, Way::Widest],
        };
        for (inputs, scores) in [(1, 2), (16, 3), (37, 5), (64, 10), (1050, 12), (40, 0)] {
            let shape = Shape { height: 1, width: 1, channels: inputs };
            let network = Network::new(shape, &[], scores, 3.0, 0.1).unwrap();
            let data = data(inputs, scores, 77);
            let weights: Vec<f64> = (0..network.dimension()).map(|i| 0.4 * number(i)).collect();
            let normal: Vec<f32> = (0..2 * inputs).map(|i| 1.0 + 0.3 * number(i) as f32).collect();
            for prepared in [network.prepare(&weights), network.prepare_normal(&weights, &normal)] {
                let plain = sum(&network, &prepared, &data, Some(Way::Plain));
                assert!(plain.iter().any(|x| *x != 0.0));
                for way in &ways {
                    assert_eq!(sum(&network, &prepared, &data, Some(*way)), plain, "{inputs} {scores} {way:?}");
                }
                assert_eq!(sum(&network, &prepared, &data, None), plain, "{inputs} {scores}: the way that is taken");
            }
        }
    }

    /// The same sum as that of the general way, which rows have that are stored as pairs: within twice the error that is charged for.
    #[test]
    fn sums_are_those_of_the_general_way() {
        for (inputs, scores) in [(7, 2), (100, 10), (1100, 3), (33, 0)] {
            let shape = Shape { height: 1, width: 1, channels: inputs };
            let network = Network::new(shape, &[], scores, 3.0, 0.1).unwrap();
            let weights: Vec<f64> = (0..network.dimension()).map(|i| 0.4 * number(i)).collect();
            let row_shape = RowShape { dimension: inputs, row_norm: 1.0, sparse: true, rows_per_unit: None };
            let mut pairs = DatasetBuilder::new(&Entropy::simulated(1), row_shape).unwrap();
            let dense = data(inputs, scores, 90);
            for i in 0..90 {
                let row: Vec<f64> = (0..inputs).map(|j| 0.9 * number(i * inputs + j) / (inputs as f64).sqrt()).collect();
                pairs.row(&row, if i == 5 { -9.0 } else { (i % scores.max(2)) as f32 });
            }
            let prepared = network.prepare(&weights);
            let (one, two) = (sum(&network, &prepared, &dense, None), sum(&network, &prepared, &pairs.build(), None));
            let gap: f64 = one.iter().zip(&two).map(|(a, b)| (a - b).powi(2)).sum();
            let most = 2.0 * 0.5 * network.error() * 90.0;
            assert!(gap.sqrt() < most && gap > 0.0, "{inputs} {scores}: {} of {most}", gap.sqrt());
        }
    }
}
