//! Threads of one process.

use super::{Confidential, Engine, Key, Place, Share, Step};
use crate::error::Result;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One pass over the units of this process: how to add the contributions of a range of them to a vector.
pub(crate) struct Pass<'a> {
    /// Units in all.
    pub(crate) unit_count: usize,
    /// Ranges start at multiples of this (floating-point blocks must not depend on the split).
    pub(crate) granule: usize,
    /// Least units of a task: as few as hide the hand-over.
    pub(crate) task: usize,
    /// Adds the units of a range to a vector, wrapping.
    pub(crate) add: &'a (dyn Fn(Range<usize>, &mut [i64]) + Sync),
}

/// Threads of this process; an engine for records that are all here.
pub struct Threads {
    pool: Option<rayon::ThreadPool>,
    count: usize,
}

/// Units to a task of a fast pass: large enough to hide the hand-over, small enough that a taken core does not stall the sum.
pub(crate) const TASK: usize = 16_384;
/// Of a pass that takes a microsecond or more for a unit.
pub(crate) const SLOW_TASK: usize = 1024;

impl Threads {
    /// So many threads; 1 runs in the caller's.
    pub fn new(count: usize) -> Threads {
        let pool = (count > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(count).build().ok()).flatten();
        Threads { pool, count: count.max(1) }
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Calls with each number of a range.
    pub(crate) fn map<T: Send>(&self, numbers: Range<usize>, f: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
        match &self.pool {
            Some(pool) => pool.install(|| numbers.into_par_iter().map(f).collect()),
            None => numbers.map(f).collect(),
        }
    }

    /// Calls with each chunk of a list, and its number.
    pub(crate) fn chunks<T: Send>(&self, list: &mut [T], size: usize, f: &(dyn Fn((usize, &mut [T])) + Sync)) {
        match self.pool.as_ref().filter(|_| list.len() > size) {
            Some(pool) => pool.install(|| list.par_chunks_mut(size).enumerate().for_each(f)),
            None => list.chunks_mut(size).enumerate().for_each(f),
        }
    }

    /// Adds the whole pass to `out`, wrapping.
    pub(crate) fn sum(&self, pass: &Pass<'_>, out: &mut [i64]) {
        let task = pass.task.next_multiple_of(pass.granule.max(1));
        let Some(pool) = self.pool.as_ref().filter(|_| pass.unit_count > task) else {
            return (pass.add)(0..pass.unit_count, out);
        };
        let tasks = pass.unit_count.div_ceil(task);
        let width = out.len();
        let next = AtomicUsize::new(0);
        let parts: Vec<Vec<i64>> = pool.install(|| {
            (0..self.count)
                .into_par_iter()
                .map(|_| {
                    let mut part = vec![0i64; width];
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i >= tasks {
                            return part;
                        }
                        (pass.add)(i * task..((i + 1) * task).min(pass.unit_count), &mut part);
                    }
                })
                .collect()
        });
        for part in parts {
            out.iter_mut().zip(part).for_each(|(o, p)| *o = o.wrapping_add(p));
        }
    }
}

impl Engine for Threads {
    fn threads(&self) -> &Threads {
        self
    }

    fn place(&self) -> Place {
        Place::alone()
    }

    fn open(&self, _: Step, share: Share<'_>, mut noise: Vec<i64>) -> Result<Vec<i64>> {
        noise.iter_mut().zip(share.values()).for_each(|(n, s)| *n = n.wrapping_add(*s));
        Ok(noise)
    }

    fn collect(&self, _: Step, share: Share<'_>) -> Result<Confidential<Vec<i64>>> {
        Ok(Confidential::new(share.values().to_vec()))
    }

    fn secret(&self, own: Key) -> Result<Confidential<[u8; 32]>> {
        Ok(own.into_secret())
    }

    fn abandon(&self) {}

    fn agree(&self, public: &[u8]) -> Result<Vec<u8>> {
        Ok(public.to_vec())
    }
}
