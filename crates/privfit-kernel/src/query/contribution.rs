//! What one unit adds to a sum: a named, capture-free function with public parameters. It can be printed, sent to another
//! process and fuzzed, and it has nowhere to put a row but the sink.

use super::unit_state::UnitState;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::mechanism::GridKind;
use crate::norm::{L2, Norm, quantise};
use crate::quiet::quietly;
use crate::rng::{NoiseRng, indexed};
use crate::store::dataset::Unit;
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// A per-unit vector.
///
/// `add` is a function pointer, so it cannot capture a channel, a lock or a list and walk off with the rows. A static or a file
/// could still be misused on purpose: code that computes contributions is reviewed code. A panic makes the contribution zero.
#[derive(Clone)]
pub struct Contribution {
    /// Name in certificates and fuzz reports.
    pub name: &'static str,
    /// Length of the vector.
    pub dimension: usize,
    /// Public parameters.
    pub parameters: Vec<f64>,
    /// Adds the unit's values to the sink.
    pub add: fn(&[f64], Unit<'_>, &mut UnitRandomness<'_>, &mut Sink<'_>),
}

/// A per-unit vector that depends on the unit's state, which the kernel holds. A unit without a state adds nothing.
#[derive(Clone)]
pub struct StatefulContribution {
    /// Name in certificates and fuzz reports.
    pub name: &'static str,
    /// Length of the vector.
    pub dimension: usize,
    /// Public parameters.
    pub parameters: Vec<f64>,
    /// Adds the unit's values to the sink, given its state.
    pub add: fn(&[f64], Unit<'_>, &[f64], &mut Sink<'_>),
}

/// Randomness of one unit in one step: the same for both iterates of a step, whatever the batch is.
pub struct UnitRandomness<'a> {
    pub(crate) key: &'a [u8; 32],
    /// Of the unit, among those of all processes.
    pub(crate) index: u64,
}

impl UnitRandomness<'_> {
    /// A generator for this unit and step.
    pub fn rng(&mut self) -> NoiseRng {
        indexed(self.key, self.index)
    }
}

/// Takes index-value pairs; pairs with one index add up before anything is clipped.
pub struct Sink<'a> {
    pub(crate) values: &'a mut [f64],
    pub(crate) touched: &'a mut Vec<usize>,
    pub(crate) marks: &'a mut [bool],
}

impl Sink<'_> {
    /// Adds a value at an index. An index out of range is left out.
    #[inline]
    pub fn add(&mut self, index: usize, value: f64) {
        let Some(mark) = self.marks.get_mut(index) else { return };
        if !*mark {
            *mark = true;
            self.touched.push(index);
        }
        self.values[index] += value;
    }
}

/// A learner for one part of the data: ensembles, teachers. Capture-free, like the above.
pub struct Learner<M> {
    /// Name in certificates.
    pub name: &'static str,
    /// Public parameters.
    pub parameters: Vec<f64>,
    /// Trains on the units of a part, with randomness of its own; the model stays inside of the kernel.
    pub train: fn(&[f64], &mut dyn Iterator<Item = Unit<'_>>, &mut NoiseRng) -> M,
}

impl Batch<'_> {
    /// Sum of clipped contributions, each put on the grid and checked there by itself.
    pub fn sum<'id, N: Norm>(&self, noise: &Noise<'id, N>, contribution: &Contribution) -> Result<Bounded<'id, N>> {
        self.clipped_sum(noise, contribution.dimension, &|unit_index, sink| {
            let mut draw = UnitRandomness { key: &self.unit_key, index: (self.data.first + unit_index) as u64 };
            (contribution.add)(&contribution.parameters, self.data.unit(unit_index), &mut draw, sink);
        })
    }

    /// The same for contributions that read the state of their unit; a unit without one adds nothing.
    pub fn sum_with<'id, N: Norm>(
        &self,
        noise: &Noise<'id, N>,
        contribution: &StatefulContribution,
        state: &UnitState,
    ) -> Result<Bounded<'id, N>> {
        if state.data != self.data.id {
            return Err(Error::Mismatch { what: "these states belong to other records" });
        }
        self.clipped_sum(noise, contribution.dimension, &|unit_index, sink| {
            if let Some(own) = state.of(unit_index) {
                (contribution.add)(&contribution.parameters, self.data.unit(unit_index), own, sink);
            }
        })
    }

    pub(crate) fn clipped_sum<'id, N: Norm>(
        &self,
        noise: &Noise<'id, N>,
        dimension: usize,
        add_unit: &(dyn Fn(usize, &mut Sink<'_>) + Sync),
    ) -> Result<Bounded<'id, N>> {
        let kinds = [GridKind::Clipped, GridKind::Spherical { dimension }, GridKind::Scores];
        let grid = self.grid(noise, dimension, &kinds)?;
        let in_l2 = grid.kind == GridKind::Spherical { dimension };
        let per_unit = 1.0 / grid.unit;
        let add = |range: Range<usize>, out: &mut [i64]| {
            let mut values = vec![0f64; dimension];
            let mut marks = vec![false; dimension];
            let mut touched = Vec::new();
            let (mut compact, mut integers) = (Vec::new(), Vec::new());
            self.chosen.each(range, |unit_index| {
                let mut sink = Sink { values: &mut values, touched: &mut touched, marks: &mut marks };
                // A null unit of cells has no label and no rows, and adds nothing.
                let null = self.data.is_null(unit_index);
                let calm = null || quietly(|| add_unit(unit_index, &mut sink)).is_some();
                compact.clear();
                // A panic is the record's doing: its contribution becomes zero, and nobody hears of it.
                compact.extend(touched.iter().map(|&i| if calm { values[i] } else { 0.0 }));
                if in_l2 {
                    quantise::<L2>(&mut compact, grid.clip, per_unit, grid.bound, &mut integers);
                } else {
                    quantise::<N>(&mut compact, grid.clip, per_unit, grid.bound, &mut integers);
                }
                for (&i, z) in touched.iter().zip(&integers) {
                    out[i] = out[i].wrapping_add(*z);
                    values[i] = 0.0;
                    marks[i] = false;
                }
                touched.clear();
            });
        };
        Ok(self.finish(self.share(1, dimension, &add), grid))
    }
}
