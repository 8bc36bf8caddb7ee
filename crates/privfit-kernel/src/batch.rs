//! The records that take part in a step, and the sums over them.

use crate::engine::{Pass, Seam, TASK};
use crate::error::{Error, Result};
use crate::mechanism::{Grid, GridKind};
use crate::memory::zeros;
use crate::norm::Norm;
use crate::store::dataset::Dataset;
use crate::value::{Bounded, Noise, Origin};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Which units take part.
pub(crate) enum Chosen {
    All,
    /// A mark for each.
    Marks(Vec<bool>),
    /// Their indices, ascending: one part of many costs as much memory as it has units.
    Listed(Vec<usize>),
}

impl Chosen {
    pub(crate) fn is_all(&self) -> bool {
        matches!(self, Chosen::All)
    }

    /// Those of a range, in order.
    pub(crate) fn each(&self, range: Range<usize>, f: impl FnMut(usize)) {
        match self {
            Chosen::All => range.for_each(f),
            Chosen::Marks(marks) => marked(marks, range, f),
            Chosen::Listed(list) => {
                let at = |unit_index: usize| list.partition_point(|s| *s < unit_index);
                list[at(range.start)..at(range.end)].iter().copied().for_each(f);
            }
        }
    }

    /// A mark for each of so many; none if all take part.
    pub(crate) fn marks(&self, unit_count: usize) -> Option<Cow<'_, [bool]>> {
        match self {
            Chosen::All => None,
            Chosen::Marks(marks) => Some(Cow::Borrowed(marks)),
            Chosen::Listed(list) => {
                let mut marks = zeros::<bool>(unit_count);
                list.iter().for_each(|unit_index| marks[*unit_index] = true);
                Some(Cow::Owned(marks))
            }
        }
    }
}

/// Units of a range that have a mark. Where few have one, whole runs without are passed over.
fn marked(marks: &[bool], range: Range<usize>, mut f: impl FnMut(usize)) {
    const RUN: usize = 64;
    for (number, run) in marks[range.clone()].chunks(RUN).enumerate() {
        if run.iter().fold(false, |any, mark| any | mark) {
            let first = range.start + number * RUN;
            run.iter().enumerate().filter(|(_, mark)| **mark).for_each(|(i, _)| f(first + i));
        }
    }
}

/// Records of one step. Made by `Run`, which knows how they were drawn.
pub struct Batch<'d> {
    pub(crate) data: &'d Dataset,
    pub(crate) seam: Arc<Seam<'d>>,
    pub(crate) chosen: Chosen,
    pub(crate) origin: Origin,
    pub(crate) run: u64,
    pub(crate) unit_key: [u8; 32],
}

impl<'d> Batch<'d> {
    /// The same units, of which it is public that they are about this share of all.
    pub(crate) fn with_share(mut self, share: f64) -> Batch<'d> {
        self.origin.share = Some(share).filter(|share| *share < 1.0);
        self
    }

    pub(crate) fn finish<'id, N: Norm>(&self, values: Vec<i64>, grid: Grid) -> Bounded<'id, N> {
        Bounded { values, grid, origin: self.origin, run: self.run, mirrored: false, brand: PhantomData }
    }

    /// The grid of the noise, if it was made for this kind of sum and this length.
    pub(crate) fn grid<N: Norm>(&self, noise: &Noise<'_, N>, dimension: usize, kinds: &[GridKind]) -> Result<Grid> {
        if noise.run != self.run {
            return Err(Error::Mismatch { what: "noise and batch come from different runs" });
        }
        if noise.values.len() != dimension {
            return Err(Error::Mismatch { what: "noise and contribution have different lengths" });
        }
        if !kinds.contains(&noise.grid.kind) {
            return Err(Error::Mismatch {
                what: "the mechanism was made for another kind of value: use the constructor for this sum",
            });
        }
        Ok(noise.grid)
    }

    /// This process's part of a sum.
    pub(crate) fn share(&self, granule: usize, dimension: usize, add: &(dyn Fn(Range<usize>, &mut [i64]) + Sync)) -> Vec<i64> {
        self.share_by(TASK, granule, dimension, add)
    }

    /// The same, with so many units to a task at least.
    pub(crate) fn share_by(
        &self,
        task: usize,
        granule: usize,
        dimension: usize,
        add: &(dyn Fn(Range<usize>, &mut [i64]) + Sync),
    ) -> Vec<i64> {
        self.seam.share(&Pass { unit_count: self.data.unit_count(), granule, task, add }, dimension)
    }
}
