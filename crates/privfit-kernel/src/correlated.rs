//! Gaussian noise that is correlated over the steps of a run: how far one unit can move the whole run, and the event that says so. All public, all before data.
//!
//! *What is released.* y_t = g_t + z_t - round(sum over i >= 1 of a_i z_{t-i}) for t = 1 ... T, all of them integer vectors of length d: g_t the sum over the units of batch t, z_t
//! independent discrete Gaussians of deviation sigma, and 1, -a_1, -a_2, ... the bands of C^-1 (`account/toeplitz.rs`), whole multiples of 2^-40, so that nothing but the one
//! rounding is off. C^-1 z itself would not do: it is off the grid by a part that its reader can check, and g + C^-1 z then says of every neighbour whether it is the true one.
//!
//! *Privacy.* Zero-out and replace-one. Let e_t be what rounding adds, at most 1/2 in a coordinate. Then z = C (y - g - e), and the noise z' that makes the same y of a neighbour
//! differs from z by v = C (g - g') + C (e - e'), a vector of integers. |C (g - g')| <= Delta, the sensitivity of a step times that of the factor over the participation; |e - e'| <= 1 in
//! each of T d coordinates, so that the rest has length |C| sqrt(T d) at the most. v_t depends on what came before step t alone (g_t and g'_t on the y before, e_t and e'_t on the z before),
//! so that steps are shifted Gaussians whose shifts are chosen as the run goes on and whose squares add up to at most S^2, S = ceil(Delta) + ceil(|C| sqrt(T d)). Such a run is no
//! less private than one discrete Gaussian of T d coordinates with sensitivity S: with continuous noise sum v_t z_t is a martingale whose variation is S^2 at the end, filled up in a further
//! coordinate, and has exactly the distribution of S z; that discrete noise is not continuous is charged for all T d coordinates, and zCDP adds up such shifts as they are.
//! Replace-one doubles what units move, and not the rounding.
//!
//! *Participation.* Batches are parts of the units by a random word of each, drawn once and kept in every epoch (`run/series.rs`): a unit is in one of b batches, takes part every b steps,
//! and moves no other unit to another batch. A replaced record stays in its batch.
//!
//! *A given order* (`in_order`). Nothing is drawn: unit i of n is in batch floor(i b / n), so that records take part in the order in which they came, as streams, several owners or clusters bring them. Which batch a unit is in is a
//! function of its index and of n and b, all three public, and of nothing that any record holds. Under zero-out a null record keeps its index, under replace-one the new record has that of the old one, so that neighbours
//! have the same batches, the pattern of a unit is one of the b above, and the bound, which is the largest over them, holds as it stands. Nothing is amplified by drawn batches either: who knows a unit's place loses no privacy and
//! gains no noise. What is public is the place of each unit. Under add-remove places shift, and it is refused. An order that was made from values, such as rows sorted by age, is no such order: a replaced record has another place
//! in it, and every unit between both places moves by one.
//!
//! *Accounting.* One [`Event::DiscreteGaussian`] of T d coordinates, admitted before the first step.

use crate::account::{Event, Factor, Participation};
use crate::error::{Error, Result};
use crate::mechanism::{Gaussian, GridKind, Mechanism, Sensitivity};
use crate::norm::root_up;

/// Exact discrete Gaussian noise, correlated over the steps of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatedGaussian {
    /// Noise and grid of a step.
    pub(crate) step: Gaussian,
    pub(crate) factor: Factor,
    pub(crate) participation: Participation,
    pub(crate) dimension: usize,
    /// Batches are parts of the units in their order, not drawn.
    pub(crate) in_order: bool,
    /// How far one unit moves C times all sums.
    pub(crate) moved: Sensitivity,
    /// The same, rounding included: what the noise covers.
    pub(crate) whole: Sensitivity,
}

impl CorrelatedGaussian {
    /// For so many steps over so many batches, each of which is a sum of `dimension` coordinates with the noise of `step`: for clipped sums, gradients or blocks.
    pub fn new(step: Gaussian, factor: Factor, steps: u64, batches: u32, dimension: usize) -> Result<CorrelatedGaussian> {
        let grid = step.grid().0;
        if !matches!(grid.kind, GridKind::Clipped | GridKind::Gradient | GridKind::Blocks { .. }) {
            return Err(Error::Mismatch { what: "correlated noise is for clipped sums, gradients and sums of blocks" });
        }
        if batches == 0 {
            return Err(Error::domain("batches", batches, "give a whole number of at least 1"));
        }
        let participation = Participation::epochs(steps, u64::from(batches));
        let times = participation.sensitivity(&factor)?;
        let rounding = rounding(&factor, steps, dimension)?;
        let moved = |sensitivity: u64| (times * up(sensitivity)).next_up().ceil();
        let Sensitivity { zero_out, replace_one } = grid.sensitivity;
        let (zero_out, replace_one) = (moved(zero_out), moved(replace_one));
        if !(replace_one.max(zero_out) + rounding < 2f64.powi(61)) {
            return Err(Error::domain("steps", steps, "give fewer steps, or less noise"));
        }
        let of = |more: f64| Sensitivity { zero_out: (zero_out + more) as u64 + 1, replace_one: (replace_one + more) as u64 + 1 };
        Ok(CorrelatedGaussian { step, factor, participation, dimension, in_order: false, moved: of(0.0), whole: of(rounding) })
    }

    /// The same with batches that are parts of the units in their order: whoever asks for it takes the place of each unit as public.
    pub fn in_order(self) -> CorrelatedGaussian {
        CorrelatedGaussian { in_order: true, ..self }
    }

    /// Whether batches are parts of the units in their order.
    pub fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// What all steps together cost: one Gaussian of all their coordinates.
    pub fn event(&self) -> Event {
        let Sensitivity { zero_out: sensitivity, replace_one: replace_sensitivity } = self.whole;
        let dimension = (self.dimension as u64).saturating_mul(self.participation.steps);
        Event::DiscreteGaussian { sigma: 1 << self.step.grid().0.bits, sensitivity, replace_sensitivity, dimension }
    }

    /// The factor.
    pub fn factor(&self) -> &Factor {
        &self.factor
    }

    /// How often, and how far apart, one unit takes part.
    pub fn participation(&self) -> Participation {
        self.participation
    }

    /// Standard deviation of the independent noise z in the caller's units.
    pub fn standard_deviation(&self) -> f64 {
        self.step.standard_deviation()
    }

    /// Sensitivity of all steps over that of one step.
    pub fn sensitivity_factor(&self) -> f64 {
        self.whole.zero_out as f64 / self.step.grid().0.sensitivity.zero_out as f64
    }
}

/// A double that is at least a whole number.
fn up(value: u64) -> f64 {
    (value as f64).next_up()
}

/// Most that rounding moves C times all sums: |C| sqrt(T d), rounded up.
fn rounding(factor: &Factor, steps: u64, dimension: usize) -> Result<f64> {
    let root = root_up(u128::from(steps) * dimension as u128);
    Ok((factor.norm(steps)? * up(root)).next_up().ceil())
}
