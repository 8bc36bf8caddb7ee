//! Descent with fixed steps and no noise on the way: how far apart neighbours end is worked out here from public numbers, and the
//! answer gets the noise.
//!
//! Claim. w <- w - rate (average gradient of a batch + ridge w), from w = 0; batches are cut from one order of the units that is drawn
//! without looking at them, or hold everyone. Two neighbours share the order. In one step the records that they have in common map
//! both by v -> v - rate (G(v) + ridge v), where G is the gradient of a convex function whose second derivative is at most the
//! smoothness of one record: distances change by a factor of at most c = max(|1 - rate ridge|, |1 - rate (ridge + smoothness)|), which
//! is 1 - rate ridge exactly if rate <= 2 / (2 ridge + smoothness). The one record adds rate x L / divisor wherever its batch takes
//! part, twice that if it was replaced. So the distance at the end is at most the sum of these terms, each times the factors of the
//! later steps, for the worst batch. The regulariser is the same for both and cancels. Computed gradients are off by a public bound,
//! in either run.

use super::block_gradient::BlockGradient;
use super::problem::Objective;
use super::problem::Problem;
use super::problem::ProblemSize;
use super::solver::{BLOCK, Limits};
use crate::batch::Batch;
use crate::engine::{Needs, Seam};
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::memory::grow;
use crate::rng::Stream;
use crate::run::Query;
use crate::run::Run;
use crate::store::dataset::Dataset;
use crate::store::rows::padded;
use crate::value::{Sensitive, Theorem};

/// How long steps are. Updates and passes are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepSchedule {
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

impl StepSchedule {
    /// Length of the step of that number, in the pass of that number.
    pub fn rate(&self, update: u64, pass: u64) -> f64 {
        match *self {
            StepSchedule::Constant(rate) => rate,
            StepSchedule::Decreasing { scale, offset } => scale / (update as f64 + offset),
            StepSchedule::SquareRoot { scale, offset } => scale / ((update as f64).sqrt() + offset),
            StepSchedule::Strong { cap, strength } => cap.min(1.0 / (strength * update as f64)),
            StepSchedule::StrongByPass { cap, strength } => cap.min(1.0 / (strength * pass as f64)),
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
    pub schedule: StepSchedule,
    /// Whether a short last batch is divided by its own size and not by that of a batch. Published programs do so; it costs.
    pub own_size: bool,
}

/// Descends with fixed steps on everyone, and says how far apart neighbours end.
pub struct Descend<'a, 'd> {
    /// Everyone.
    pub on: &'a Batch<'d>,
    /// How.
    pub descent: &'a Descent<'a>,
    /// Called after each pass.
    pub progress: &'a dyn Fn(),
}

impl<'d> Query<'d> for Descend<'_, 'd> {
    type Output = Sensitive<Vec<f64>>;

    fn execute(self, run: &mut Run<'d>) -> Result<Sensitive<Vec<f64>>> {
        if self.on.run != run.id {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        if !self.on.chosen.is_all() {
            return Err(Error::Mismatch { what: "a descent draws its own batches: use everyone()" });
        }
        run.seam.needs(if self.descent.batch.is_some() { Needs::Records } else { Needs::Totals })?;
        run.may_depend_on_order()?;
        self.descent.loss.validate_smooth()?;
        if run.data.units.is_some() {
            return Err(Error::unsupported(
                "a descent without clipping on units of several rows",
                "declare one row to a unit, or release gradients",
            ));
        }
        if !(self.descent.ridge >= 0.0 && self.descent.ridge.is_finite()) {
            return Err(Error::domain("ridge", self.descent.ridge, "give a finite number of at least 0"));
        }
        let order = if self.descent.batch.is_some() {
            shuffled(run.data.unit_count(), &mut run.entropy.rng(Stream::Parts)?)
        } else {
            Vec::new()
        };
        let value = self.descent.run(run.data, &run.seam, &order, self.progress)?;
        let stability = self.descent.stability(&ProblemSize::of(run.data));
        let claim = Theorem {
            reason: "each step moves what neighbours share by at most its factor, and one record by rate x bound / divisor",
            zero_out: stability.zero_out,
            replace_one: stability.replace_one,
        };
        Ok(Sensitive { value, run: run.id, part: None, claim: Some(claim), order_dependent: true })
    }
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
    fn batches(&self, unit_count: usize) -> (usize, usize) {
        let size = self.batch.unwrap_or(unit_count).clamp(1, unit_count.max(1));
        (size, unit_count.div_ceil(size).max(1))
    }

    /// The number that a batch is divided by.
    fn divisor(&self, unit_count: usize, batch: usize) -> f64 {
        let (size, count) = self.batches(unit_count);
        let short = unit_count - (count - 1) * size;
        if self.own_size && batch + 1 == count && short > 0 { short as f64 } else { size as f64 }
    }

    /// Updates in all.
    pub fn updates(&self, unit_count: usize) -> u64 {
        self.passes.saturating_mul(self.batches(unit_count).1 as u64)
    }

    /// How far apart neighbours end; infinite where steps are so long that nothing is known.
    pub fn stability(&self, size: &ProblemSize) -> Stability {
        let unit_count = size.unit_count;
        let (batch, count) = self.batches(unit_count);
        let bound = self.loss.lipschitz * size.row_norm;
        let smooth = self.loss.smoothness * size.row_norm * size.row_norm;
        let ridge = self.ridge;
        let updates = self.updates(unit_count);
        let rate = |update: u64| self.schedule.rate(update, (update - 1) / count as u64 + 1);
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
        let batch_size = ProblemSize { unit_count: batch, ..*size };
        let sum_ridge = ridge * batch as f64;
        let limits = Limits { size: batch_size, loss: self.loss, ridge: sum_ridge, linear_bound: 0.0, linear_grid: 0.0 };
        // Blocks of a batch are summed by themselves, and then one after the other.
        let blocks = batch.div_ceil(BLOCK) as f64 + 1.0;
        let error = limits.floor_within(longest) + blocks * f64::EPSILON * batch as f64 * bound;
        let mut apart = vec![0f64; count];
        let (mut later, mut rounding) = (1f64, 0f64);
        for update in (1..=updates).rev() {
            let at = ((update - 1) % count as u64) as usize;
            let (eta, divisor) = (rate(update), self.divisor(unit_count, at));
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
    pub(crate) fn run(&self, data: &Dataset, seam: &Seam<'_>, order: &[usize], progress: &dyn Fn()) -> Result<Vec<f64>> {
        match self.batch {
            None => self.everyone(data, seam, progress),
            // Batches lie together.
            Some(_) => Ok(self.permuted(&data.picked(order.iter().copied())?, progress)),
        }
    }

    fn everyone(&self, data: &Dataset, seam: &Seam<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let n = data.total().max(1) as f64;
        let dimension = data.dimension * self.loss.outputs;
        let problem = Problem { loss: self.loss, ridge: self.ridge * n, tolerance: 0.0 };
        let linear = vec![0.0; dimension];
        let (threads, seam) = (seam.threads(), Some(seam));
        let objective = Objective { data, chosen: None, threads, seam, problem, linear, linear_bound: 0.0, linear_grid: 0.0 };
        let mut w = vec![0f64; dimension];
        for update in 1..=self.passes {
            let gradient = objective.gradient(&w)?;
            let rate = self.schedule.rate(update, update);
            w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= rate * (g / n));
            progress();
        }
        Ok(w)
    }

    fn permuted(&self, data: &Dataset, progress: &dyn Fn()) -> Vec<f64> {
        let (d, wide, unit_count) = (data.dimension, padded(data.dimension), data.unit_count());
        let (batch, count) = self.batches(unit_count);
        let unit = data.cell_unit();
        let mut w = vec![0f64; d * self.loss.outputs];
        let (mut sum, mut part) = (vec![0f64; wide * self.loss.outputs], vec![0f64; wide * self.loss.outputs]);
        let mut block = BlockGradient::new(data, self.loss, None, &w);
        let mut update = 0;
        for pass in 1..=self.passes {
            for at in 0..count {
                update += 1;
                sum.fill(0.0);
                block.move_to(&w);
                let end = ((at + 1) * batch).min(unit_count);
                for start in (at * batch..end).step_by(BLOCK) {
                    part.fill(0.0);
                    block.add(start..(start + BLOCK).min(end), &mut part);
                    sum.iter_mut().zip(&part).for_each(|(s, p)| *s += p);
                }
                let rate = self.schedule.rate(update, pass);
                let step = rate * unit / self.divisor(unit_count, at);
                let keep = 1.0 - rate * self.ridge;
                for (w, sum) in w.chunks_mut(d).zip(sum.chunks(wide)) {
                    w.iter_mut().zip(sum).for_each(|(w, s)| *w = *w * keep - step * s);
                }
            }
            progress();
        }
        w
    }
}

/// A uniformly random order, by exact draws.
pub(crate) fn shuffled(unit_count: usize, words: &mut impl crate::rng::Words) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    grow(&mut order, unit_count);
    order.extend(0..unit_count);
    for i in (1..unit_count).rev() {
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
