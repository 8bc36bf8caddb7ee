//! Exact discrete Gaussian and discrete Laplace noise whose scale is a power of two.
//!
//! What it computes: an integer x with probability proportional to e^-(x^2 / 2 scale^2) or e^-(|x| / scale), scale = 2^m.
//!
//! How: the area under the curve is covered by at most 4096 equal cells, columns of scale/32 cut into steps of height 1/r. One
//! random word picks a cell, a sign and a position in it. About nine cells of ten lie wholly below the curve and are accepted
//! at once; in the others a uniform height is compared with the curve, in doubles with a margin of 2^-40, and where that does
//! not decide, to any precision (`exact.rs`). One cell stands for everything beyond the last column, with blocks of halving
//! probability. Every comparison is exact, so the distribution is exact; a table entry that is off costs speed, never exactness.
//!
//! The distribution is clipped at 2^62, which is 2^22 scales for m = 40: a mass below e^-(2^21).

use super::exact;
use crate::rng::Words;
use std::sync::OnceLock;

/// The distribution of the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Gaussian,
    Laplace,
}

const CELLS: usize = 4096;
const CELL_BITS: u32 = 12;
/// Columns to a scale, as a power of two, unless the scale itself is smaller.
const FINEST: u32 = 5;

/// Cell: column in bits 0..12, step in bits 12..24, then one of these.
const ACCEPT: u32 = 1 << 24;
const TAIL: u32 = 1 << 25;
const REJECT: u32 = 1 << 26;

struct Table {
    cells: Vec<u32>,
    /// Steps to the unit of height.
    steps: u64,
}

impl Shape {
    /// Scales covered by columns.
    fn columns(self) -> u64 {
        match self {
            Shape::Gaussian => 6,
            Shape::Laplace => 12,
        }
    }

    /// Width of a tail block, as a power of two: the curve must fall by at least half from one block to the next.
    fn tail_shift(self, m: u32) -> u32 {
        match self {
            Shape::Gaussian => m.saturating_sub(2),
            Shape::Laplace => m,
        }
    }

    fn height(self, scales: f64) -> f64 {
        match self {
            Shape::Gaussian => (-0.5 * scales * scales).exp(),
            Shape::Laplace => (-scales).exp(),
        }
    }

    /// The exponent as a dyadic number: value / 2^shift.
    fn exponent(self, x: u64, m: u32) -> (u128, u32) {
        match self {
            Shape::Gaussian => (u128::from(x) * u128::from(x), 2 * m + 1),
            Shape::Laplace => (u128::from(x), m),
        }
    }

    fn table(self, k: u32) -> &'static Table {
        static TABLES: [[OnceLock<Table>; FINEST as usize + 1]; 2] =
            [const { [const { OnceLock::new() }; FINEST as usize + 1] }; 2];
        TABLES[self as usize][k as usize].get_or_init(|| Table::build(self, k))
    }
}

impl Table {
    fn build(shape: Shape, k: u32) -> Table {
        let columns = shape.columns() << k;
        let width = 0.5f64.powi(k as i32);
        // Rounded outwards: a column never has a step too few.
        let count = |steps: u64, h: u64| (steps as f64 * shape.height(h as f64 * width) * (1.0 + 1e-9)).ceil() as u64;
        let total = |steps: u64| (0..columns).map(|h| count(steps, h)).sum::<u64>() + 1;
        let mut steps = 4095;
        while total(steps) > CELLS as u64 {
            steps -= 1;
        }
        let mut cells = Vec::with_capacity(CELLS);
        for h in 0..columns {
            let lowest = shape.height((h + 1) as f64 * width) * (1.0 - 1e-9);
            for step in 0..count(steps, h) {
                let below = (step + 1) as f64 <= steps as f64 * lowest;
                cells.push(h as u32 | (step as u32) << 12 | if below { ACCEPT } else { 0 });
            }
        }
        cells.push(TAIL);
        cells.resize(CELLS, REJECT);
        Table { cells, steps }
    }
}

/// A sampler for one distribution and scale.
#[derive(Clone, Copy)]
pub(crate) struct Sampler {
    shape: Shape,
    /// Scale is 2^m.
    m: u32,
    /// Columns are 2^column wide.
    column: u32,
    table: &'static Table,
}

impl Sampler {
    /// Largest exponent of the scale.
    pub(crate) const LARGEST: u32 = 56;

    pub(crate) fn new(shape: Shape, m: u32) -> Sampler {
        assert!(m <= Sampler::LARGEST, "the scale leaves no room in 64 bits");
        let k = m.min(FINEST);
        Sampler { shape, m, column: m - k, table: shape.table(k) }
    }

    /// Fills a slice with independent draws.
    pub(crate) fn fill(&self, words: &mut impl Words, out: &mut [i64]) {
        let cells: &[u32; CELLS] = self.table.cells.as_slice().try_into().expect("a table has 4096 cells");
        let mask = (1u64 << self.column) - 1;
        for unit_index in out {
            *unit_index = loop {
                let word = words.word();
                let cell = cells[(word as usize) & (CELLS - 1)];
                let negative = word >> CELL_BITS & 1;
                // 12 bits of cell, one of sign, at most 51 of position.
                let position = (word >> (CELL_BITS + 1)) & mask;
                let magnitude = if cell & ACCEPT != 0 {
                    (u64::from(cell & 0xfff) << self.column) + position
                } else {
                    match self.slow(cell, position, words) {
                        Some(x) => x,
                        None => continue,
                    }
                };
                // Zero has one sign only.
                if magnitude == 0 && negative == 1 {
                    continue;
                }
                let magnitude = magnitude as i64;
                break if negative == 1 { -magnitude } else { magnitude };
            };
        }
    }

    /// A cell that the curve crosses, the tail, or nothing.
    #[inline(never)]
    fn slow(&self, cell: u32, position: u64, words: &mut impl Words) -> Option<u64> {
        if cell & REJECT != 0 {
            return None;
        }
        let (x, step, power) = if cell & TAIL != 0 {
            let mut block = 0u32;
            loop {
                let word = words.word();
                block += word.trailing_zeros();
                if word != 0 {
                    break;
                }
            }
            let shift = self.shape.tail_shift(self.m);
            let place = if shift == 0 { 0 } else { words.word() >> (64 - shift) };
            let start = self.shape.columns() << self.m;
            let x = u64::from(block).checked_shl(shift).filter(|b| b >> shift == u64::from(block))?.checked_add(start + place)?;
            if x >> 62 != 0 {
                return None;
            }
            // The cell holds 2^column / steps of area; block b has a share 2^-(b+1) of it, spread over 2^shift integers.
            (x, 0, block + 1 + shift - self.column)
        } else {
            let x = (u64::from(cell & 0xfff) << self.column) + position;
            (x, u64::from(cell >> 12 & 0xfff), 0)
        };
        self.accept(x, step, self.table.steps, power, words).then_some(x)
    }

    /// Accepts with step + u / 2^power < factor e^-z(x).
    fn accept(&self, x: u64, step: u64, factor: u64, power: u32, words: &mut impl Words) -> bool {
        const MARGIN: f64 = 1.0 / (1u64 << 40) as f64;
        let word = words.word();
        let curve = factor as f64 * self.shape.height(x as f64 * 0.5f64.powi(self.m as i32));
        // Doubles reach down to 2^-1022; what lies beyond is left to the exact comparison.
        let ulp = 0.5f64.powi(64 + power.min(1000) as i32);
        let at = step as f64 + word as f64 * ulp;
        if power <= 900 && at + 2.0 * ulp < curve * (1.0 - MARGIN) {
            return true;
        }
        if power <= 900 && at > curve * (1.0 + MARGIN) {
            return false;
        }
        let (value, shift) = self.shape.exponent(x, self.m);
        exact::below_exp(step, word, power, factor, value, shift, words)
    }
}

/// Exact Bernoulli(e^-(gap / 2^m)).
#[cfg(test)]
pub(crate) fn bernoulli_exp(gap: u64, m: u32, words: &mut impl Words) -> bool {
    Sampler { shape: Shape::Laplace, m, column: 0, table: Shape::Laplace.table(0) }.accept(gap, 0, 1, 0, words)
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
