//! What one unit adds to a sum: a named, capture-free function with public parameters. It can be printed, sent to another
//! process and fuzzed, and it has nowhere to put a row but the sink.

use crate::rng::{NoiseRng, indexed};
use crate::store::dataset::Unit;

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
    pub add: fn(&[f64], Unit<'_>, &mut Draw<'_>, &mut Sink<'_>),
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
pub struct Draw<'a> {
    pub(crate) key: &'a [u8; 32],
    /// Of the unit, among those of all processes.
    pub(crate) index: u64,
}

impl Draw<'_> {
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
