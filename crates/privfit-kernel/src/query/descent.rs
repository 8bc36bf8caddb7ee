//! Descent with fixed steps and no noise on the way: how far apart neighbours end is worked out here from public numbers, and the
//! answer gets the noise.
//!
//! Claim. w <- w - rate (average gradient of a batch + ridge w), from w = 0; batches are cut from one order of the slots that is drawn
//! without looking at them, or hold everyone. Two neighbours share the order. In one step the records that they have in common map
//! both by v -> v - rate (G(v) + ridge v), where G is the gradient of a convex function whose second derivative is at most the
//! smoothness of one record: distances change by a factor of at most c = max(|1 - rate ridge|, |1 - rate (ridge + smoothness)|), which
//! is 1 - rate ridge exactly if rate <= 2 / (2 ridge + smoothness). The one record adds rate x L / divisor wherever its batch takes
//! part, twice that if it was replaced. So the distance at the end is at most the sum of these terms, each times the factors of the
//! later steps, for the worst batch. The regulariser is the same for both and cancels. Computed gradients are off by a public bound,
//! in either run.

use crate::query::block_gradient::{BlockGradient, cell_unit, padded};
use crate::store::data::{Dataset, PADDING, Rows};
use crate::query::loss::Loss;
use crate::query::minimise::{BLOCK, Limits, Objective, Problem};
use crate::run::ProblemSize;
use crate::engine::Engine;
use crate::error::Result;

/// How long steps are. Updates and passes are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Always this.
    Constant(f64),
    /// scale / (update + offset).
    Decreasing {
        /// Numerator.
        scale: f64,
        /// Added to the number of the update.
        offset: f64,
    },
    /// scale / (square root of the update + offset).
    SquareRoot {
        /// Numerator.
        scale: f64,
        /// Added to the root.
        offset: f64,
    },
    /// The smaller of `cap` and 1 / (strength x update): for strongly convex sums.
    Strong {
        /// Longest step.
        cap: f64,
        /// Strong convexity.
        strength: f64,
    },
    /// The same with the number of the pass in place of the update, as one published listing has it: far less stable.
    StrongByPass {
        /// Longest step.
        cap: f64,
        /// Strong convexity.
        strength: f64,
    },
}

impl Pace {
    /// Length of the step of that number, in the pass of that number.
    pub fn rate(&self, update: u64, pass: u64) -> f64 {
        match *self {
            Pace::Constant(rate) => rate,
            Pace::Decreasing { scale, offset } => scale / (update as f64 + offset),
            Pace::SquareRoot { scale, offset } => scale / ((update as f64).sqrt() + offset),
            Pace::Strong { cap, strength } => cap.min(1.0 / (strength * update as f64)),
            Pace::StrongByPass { cap, strength } => cap.min(1.0 / (strength * pass as f64)),
        }
    }
}

/// A descent, in average form.
#[derive(Clone, Copy)]
pub struct Descent<'a> {
    /// The loss.
    pub loss: &'a Loss,
    /// Strength of the ridge on every coordinate, for the average of losses; 0 for none.
    pub ridge: f64,
    /// Records to a batch, in a random order; none for everyone in each step.
    pub batch: Option<usize>,
    /// Passes over the records.
    pub passes: u64,
    /// Lengths of the steps.
    pub pace: Pace,
    /// Whether a short last batch is divided by its own size and not by that of a batch. Published programs do so; it costs.
    pub own_size: bool,
}

/// What is known about the answer of a descent before data are opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stability {
    /// Distance in L2 when one record becomes null.
    pub zero_out: f64,
    /// Distance in L2 when one record becomes another.
    pub replace_one: f64,
    /// No iterate is longer than this.
    pub longest: f64,
}

impl Descent<'_> {
    fn batches(&self, slots: usize) -> (usize, usize) {
        let size = self.batch.unwrap_or(slots).clamp(1, slots.max(1));
        (size, slots.div_ceil(size).max(1))
    }

    /// The number that a batch is divided by.
    fn divisor(&self, slots: usize, batch: usize) -> f64 {
        let (size, count) = self.batches(slots);
        let short = slots - (count - 1) * size;
        if self.own_size && batch + 1 == count && short > 0 { short as f64 } else { size as f64 }
    }

    /// Updates in all.
    pub fn updates(&self, slots: usize) -> u64 {
        self.passes.saturating_mul(self.batches(slots).1 as u64)
    }

    /// How far apart neighbours end; infinite where steps are so long that nothing is known.
    pub fn stability(&self, size: &ProblemSize) -> Stability {
        let slots = size.slots;
        let (batch, count) = self.batches(slots);
        let bound = self.loss.lipschitz * size.row_norm;
        let smooth = self.loss.smoothness * size.row_norm * size.row_norm;
        let ridge = self.ridge;
        let updates = self.updates(slots);
        let rate = |update: u64| self.pace.rate(update, (update - 1) / count as u64 + 1);
        // A step backwards would count as a distance below zero.
        if (1..=updates).any(|update| !(rate(update) >= 0.0)) {
            return Stability { zero_out: f64::INFINITY, replace_one: f64::INFINITY, longest: f64::INFINITY };
        }
        // Lengths of iterates: a step adds at most rate x bound to what the ridge leaves.
        let (mut length, mut longest) = (0f64, 0f64);
        for update in 1..=updates {
            length = (1.0 - rate(update) * ridge).abs() * length + rate(update) * bound;
            longest = longest.max(length);
        }
        let batch_size = ProblemSize { slots: batch, ..*size };
        let sum_ridge = ridge * batch as f64;
        let limits = Limits { size: batch_size, loss: self.loss, ridge: sum_ridge, linear_bound: 0.0, linear_grid: 0.0 };
        // Blocks of a batch are summed by themselves, and then one after the other.
        let blocks = batch.div_ceil(BLOCK) as f64 + 1.0;
        let error = limits.floor_within(longest) + blocks * f64::EPSILON * batch as f64 * bound;
        let mut apart = vec![0f64; count];
        let (mut later, mut rounding) = (1f64, 0f64);
        for update in (1..=updates).rev() {
            let at = ((update - 1) % count as u64) as usize;
            let (eta, divisor) = (rate(update), self.divisor(slots, at));
            apart[at] += eta * bound / divisor * later;
            let arithmetic = 8.0 * f64::EPSILON * (longest + eta * (bound + ridge * longest));
            rounding += 2.0 * (eta * error / divisor + arithmetic) * later;
            later *= (1.0 - eta * ridge).abs().max((1.0 - eta * (ridge + smooth)).abs());
        }
        let worst = apart.into_iter().fold(0.0, f64::max);
        // A sum of so many doubles is off by at most this.
        let up = 1.0 + 4.0 * f64::EPSILON * (updates as f64 + 8.0);
        let finite = |x: f64| if x.is_finite() { x } else { f64::INFINITY };
        Stability {
            zero_out: finite((worst + rounding) * up),
            replace_one: finite((2.0 * worst + rounding) * up),
            longest: finite(longest * up),
        }
    }

    /// The last iterate. Time and memory depend on public numbers alone.
    pub(crate) fn run(&self, data: &Dataset, engine: &dyn Engine, order: &[usize], tick: &dyn Fn()) -> Result<Vec<f64>> {
        if self.batch.is_none() { self.everyone(data, engine, tick) } else { Ok(self.permuted(&reordered(data, order), tick)) }
    }

    fn everyone(&self, data: &Dataset, engine: &dyn Engine, tick: &dyn Fn()) -> Result<Vec<f64>> {
        let n = data.slots().max(1) as f64;
        let dimension = data.dimension * self.loss.outputs;
        let problem = Problem { loss: self.loss, ridge: self.ridge * n, tolerance: 0.0 };
        let linear = vec![0.0; dimension];
        let objective = Objective { data, chosen: None, engine, problem, linear, linear_bound: 0.0, linear_grid: 0.0 };
        let mut w = vec![0f64; dimension];
        for update in 1..=self.passes {
            let gradient = objective.gradient(&w)?;
            let rate = self.pace.rate(update, update);
            w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= rate * (g / n));
            tick();
        }
        Ok(w)
    }

    fn permuted(&self, data: &Dataset, tick: &dyn Fn()) -> Vec<f64> {
        let (d, wide, slots) = (data.dimension, padded(data.dimension), data.slots());
        let (batch, count) = self.batches(slots);
        let unit = cell_unit(data);
        let mut w = vec![0f64; d * self.loss.outputs];
        let (mut sum, mut part) = (vec![0f64; wide * self.loss.outputs], vec![0f64; wide * self.loss.outputs]);
        let mut block = BlockGradient::new(data, self.loss, None, &w);
        let mut update = 0;
        for pass in 1..=self.passes {
            for at in 0..count {
                update += 1;
                sum.fill(0.0);
                block.move_to(&w);
                let end = ((at + 1) * batch).min(slots);
                for start in (at * batch..end).step_by(BLOCK) {
                    part.fill(0.0);
                    block.add(start..(start + BLOCK).min(end), &mut part);
                    sum.iter_mut().zip(&part).for_each(|(s, p)| *s += p);
                }
                let rate = self.pace.rate(update, pass);
                let step = rate * unit / self.divisor(slots, at);
                let keep = 1.0 - rate * self.ridge;
                for (w, sum) in w.chunks_mut(d).zip(sum.chunks(wide)) {
                    w.iter_mut().zip(sum).for_each(|(w, s)| *w = *w * keep - step * s);
                }
            }
            tick();
        }
        w
    }
}

/// The records in another order, one row to a unit, so that batches lie together.
fn reordered(data: &Dataset, order: &[usize]) -> Dataset {
    let d = data.dimension;
    let rows = match &data.rows {
        Rows::Dense(cells) => {
            let mut moved = Vec::with_capacity(order.len() * d + PADDING);
            order.iter().for_each(|row| moved.extend_from_slice(&cells[row * d..(row + 1) * d]));
            moved.resize(moved.len() + PADDING, 0);
            Rows::Dense(moved)
        }
        Rows::Sparse(sparse) => Rows::Sparse(sparse.picked(order.iter().copied())),
    };
    Dataset {
        rows,
        labels: order.iter().map(|row| data.labels[*row]).collect(),
        units: None,
        dimension: d,
        row_norm: data.row_norm,
        rows_per_unit: 1,
        id: data.id,
    }
}

/// A uniformly random order, by exact draws.
pub(crate) fn shuffled(slots: usize, words: &mut impl crate::rng::Words) -> Vec<usize> {
    let mut order: Vec<usize> = (0..slots).collect();
    for i in (1..slots).rev() {
        // Multiply and reject, so that every number below is equally likely.
        let below = i as u64 + 1;
        let at = loop {
            let product = u128::from(words.word()) * u128::from(below);
            if product as u64 >= below.wrapping_neg() % below {
                break (product >> 64) as usize;
            }
        };
        order.swap(i, at);
    }
    order
}
