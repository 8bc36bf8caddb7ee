//! Values on their way out. What is computed from rows has no Debug, Clone, Display, comparison or accessor; it leaves through
//! a mechanism that records its cost.

use crate::account::{Adjacency, Answer, Event};
use crate::error::order_dependent;
use crate::error::{Error, Result};
use crate::mechanism::{Grid, GridKind};
use crate::norm::Brand;
use crate::norm::{L2, LInf, Norm};
use crate::numerics::Numerics;
use crate::store::dataset::Dataset;
use std::marker::PhantomData;

/// Something computed from rows, with where it came from.
pub struct Sensitive<T> {
    pub(crate) value: T,
    pub(crate) run: u64,
    /// Partition and part that it was trained on.
    pub(crate) part: Option<(u64, u32)>,
    /// What bounds its distance to a neighbour's.
    pub(crate) claim: Option<Theorem>,
    /// It depends on the order of units or on how many there are, so that nothing is known under add-remove.
    pub(crate) order_dependent: bool,
}

/// A claim that neighbours' vectors are close, with its reason: sensitivity from a theorem instead of from clipping.
#[derive(Clone, Debug)]
pub struct Theorem {
    /// Which theorem, with its constants.
    pub reason: &'static str,
    /// Distance in L2 when one unit becomes null.
    pub zero_out: f64,
    /// Distance in L2 when one unit becomes another.
    pub replace_one: f64,
}

/// Where a value came from: the batch, and how the batch was drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Origin {
    pub(crate) batch: u64,
    pub(crate) rate: Option<f64>,
    /// Public share of the units that is in the batch, where it is one of several whose order was drawn once.
    pub(crate) share: Option<f64>,
    /// Partition and part, for batches that are parts.
    pub(crate) part: Option<(u64, u32)>,
    /// The value depends on the order or the number of units, so that nothing is known under add-remove.
    pub(crate) order_dependent: bool,
}

/// An integer vector that one unit moves by at most a known sensitivity in the norm N.
pub struct Bounded<'id, N: Norm> {
    pub(crate) values: Vec<i64>,
    pub(crate) grid: Grid,
    pub(crate) origin: Origin,
    pub(crate) run: u64,
    /// Every coordinate is there twice, with both signs.
    pub(crate) mirrored: bool,
    pub(crate) brand: Brand<'id, N>,
}

/// Which coordinates were chosen; released information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    pub(crate) indices: Vec<usize>,
}

impl Support {
    /// The coordinates, in the order in which they were chosen; a stable set is in ascending order.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl<'id> Bounded<'id, LInf> {
    /// The chosen coordinates only, for noise in L2 (`Gaussian::for_selected` has the sensitivity of so many).
    pub fn restrict<'to>(&self, support: &Support, to: &crate::mechanism::Scale<'to, L2>) -> Result<Bounded<'to, L2>> {
        let GridKind::Selected { count, from, source, times } = to.grid.kind else {
            return Err(Error::Mismatch { what: "a restricted value needs a scale made by Gaussian::for_selected" });
        };
        let fits = !self.mirrored
            && count == support.indices.len()
            && from == self.grid.bits
            && Some(source) == self.grid.kind.scores()
            && to.grid.unit == self.grid.unit / times as f64
            && to.grid.bound == self.grid.bound
            && to.run == self.run;
        if !fits {
            return Err(Error::Mismatch { what: "the scale was made for other scores, or for another number of them" });
        }
        // A product that wraps is harmless: adding the noise wraps as well.
        let value = |i: &usize| self.values.get(*i).map(|v| v.wrapping_mul(times as i64));
        let Some(values) = support.indices.iter().map(value).collect() else {
            return Err(Error::Mismatch { what: "the support has coordinates that the value does not have" });
        };
        Ok(Bounded { values, grid: to.grid, origin: self.origin, run: self.run, mirrored: false, brand: PhantomData })
    }
}

/// Noise for one release: drawn before the value exists, used up by it.
pub struct Noise<'id, N: Norm> {
    pub(crate) values: Vec<i64>,
    pub(crate) grid: Grid,
    pub(crate) run: u64,
    pub(crate) process: u32,
    pub(crate) brand: Brand<'id, N>,
}

/// What a closed run hands out, with what it cost. Made by `Run::close` only.
pub struct Released<T> {
    pub(crate) value: T,
    pub(crate) event: Event,
    pub(crate) executed: Event,
    pub(crate) numerics: Numerics,
    pub(crate) order_dependent: bool,
}

impl<T> Released<T> {
    /// The released value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// What is charged: the plan. A run that stopped early for reasons found in its outputs has still cost the whole plan.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// What was executed; it fits in what is charged.
    pub fn executed(&self) -> &Event {
        &self.executed
    }

    /// How far finite precision is covered, by the kinds of values that left.
    pub fn numerics(&self) -> Numerics {
        self.numerics
    }

    /// Whether it depends on the number or the order of units, so that nothing is guaranteed under add-remove.
    pub fn is_order_dependent(&self) -> bool {
        self.order_dependent
    }

    /// Epsilon at a delta, by the tightest accountant. Nothing is known under add-remove for what depends on the number or the order of units.
    pub fn epsilon(&self, adjacency: Adjacency, delta: f64) -> Result<Answer> {
        if self.order_dependent && adjacency == Adjacency::AddRemove {
            return Err(order_dependent());
        }
        Ok(crate::account::epsilon(&self.event, adjacency, delta)?)
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

/// What one unit computes for itself from a released message and its own rows (joint privacy). It goes back to that unit and
/// never becomes `Released`; only the owner of the records can deliver it (`Dataset::deliver`).
pub struct Local<T> {
    pub(crate) value: T,
    pub(crate) data: u64,
}

impl Dataset {
    /// Hands each unit's own answer to its own recipient: the owner's call, since only the owner holds the records.
    pub fn deliver<T>(&self, local: Local<Vec<Option<T>>>, mut to: impl FnMut(usize, T)) -> Result<()> {
        if local.data != self.id {
            return Err(Error::Mismatch { what: "these local answers belong to other records" });
        }
        for (unit_index, answer) in local.value.into_iter().enumerate() {
            if let Some(answer) = answer {
                to(unit_index, answer);
            }
        }
        Ok(())
    }
}

/// Numbers that everybody may see, made from what a run has released.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub(crate) values: Vec<f64>,
    pub(crate) run: u64,
}

impl Message {
    /// The numbers.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}
