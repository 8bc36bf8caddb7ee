//! Values on their way out. What is computed from rows has no Debug, Clone, Display, comparison or accessor; it leaves through
//! a mechanism that records its cost.

use super::mechanism::Grid;
use super::norm::{L2, LInf, Norm};
use crate::account::{Adjacency, Answer, Event};
use crate::error::Result;
use std::marker::PhantomData;

/// Something computed from rows.
pub struct Sensitive<T>(pub(crate) T);

pub(crate) type Brand<'id, N> = PhantomData<(fn(&'id ()) -> &'id (), N)>;

/// Where a value came from: the batch, and how the batch was drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Origin {
    pub(crate) batch: u64,
    pub(crate) rate: Option<f64>,
}

/// An integer vector that one unit moves by at most a known reach in the norm N.
pub struct Bounded<'id, N: Norm> {
    pub(crate) values: Vec<i64>,
    pub(crate) grid: Grid,
    pub(crate) origin: Origin,
    pub(crate) run: u64,
    pub(crate) brand: Brand<'id, N>,
}

/// Which coordinates were chosen; released information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    pub(crate) indices: Vec<usize>,
}

impl Support {
    /// The coordinates, in the order in which they were chosen.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl<'id> Bounded<'id, LInf> {
    /// The chosen coordinates only, for noise in L2 (`Gaussian::for_selected` has the reach of so many).
    pub fn restrict<'to>(&self, support: &Support, to: &super::mechanism::Scale<'to, L2>) -> Result<Bounded<'to, L2>> {
        let wide = super::norm::root_up(u128::from(self.grid.reach.zero_out).pow(2) * support.indices.len() as u128);
        let fits = to.grid.unit == self.grid.unit && to.run == self.run && to.grid.reach.zero_out >= wide;
        if !fits {
            return Err(crate::Error::Mismatch { what: "a restricted value needs a scale made by Gaussian::for_selected" });
        }
        let values = support.indices.iter().map(|&i| self.values[i]).collect();
        Ok(Bounded { values, grid: to.grid, origin: self.origin, run: self.run, brand: PhantomData })
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
}

impl<T> Released<T> {
    /// The released value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// What was executed.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Epsilon at a delta, by the tightest accountant.
    pub fn epsilon(&self, adjacency: Adjacency, delta: f64) -> Result<Answer> {
        crate::account::epsilon(&self.event, adjacency, delta)
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

/// What one unit computes for itself from a released message and its own rows (joint privacy). It goes back to that unit and
/// never becomes `Released`.
pub struct Local<T>(pub(crate) T);

impl<T> Local<Vec<T>> {
    /// Hands each unit's own answer to its own recipient. The slot is public, the answer is that unit's business.
    pub fn deliver(self, mut to: impl FnMut(usize, T)) {
        self.0.into_iter().enumerate().for_each(|(slot, answer)| to(slot, answer));
    }
}
