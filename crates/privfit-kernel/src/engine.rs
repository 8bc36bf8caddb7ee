//! The seam where sums are computed. Integer addition is associative, so every engine gives the same bits: threads here;
//! out-of-core files, cluster ranks and secure parties elsewhere, without touching a method.

use crate::error::Result;
use rayon::prelude::*;
use std::ops::Range;

/// One pass over the units: how to add the contributions of a range of slots to a vector.
pub struct Pass<'a> {
    /// Slots in all.
    pub slots: usize,
    /// Ranges start at multiples of this (floating-point blocks must not depend on the split).
    pub granule: usize,
    /// Adds the slots of a range to a vector, wrapping.
    pub add: &'a (dyn Fn(Range<usize>, &mut [i64]) + Sync),
}

/// Computes the sum of a pass.
pub trait Engine: Sync {
    /// Adds the whole pass to `out`, wrapping.
    fn sum(&self, pass: &Pass<'_>, out: &mut [i64]) -> Result<()>;

    /// Makes public bytes of the leading process known to all of them.
    fn broadcast(&self, public: &mut [u8]) -> Result<()>;

    /// Whether this process draws the noise and releases.
    fn leads(&self) -> bool;
}

/// Threads of this process.
pub struct Threads {
    pool: Option<rayon::ThreadPool>,
    count: usize,
}

impl Threads {
    /// So many threads; 1 runs in the caller's.
    pub fn new(count: usize) -> Threads {
        let pool = (count > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(count).build().ok()).flatten();
        Threads { pool, count: count.max(1) }
    }
}

/// Slots to a task: large enough to hide the hand-over, small enough that a taken core does not stall the sum.
const TASK: usize = 16_384;

impl Engine for Threads {
    fn sum(&self, pass: &Pass<'_>, out: &mut [i64]) -> Result<()> {
        let task = TASK.next_multiple_of(pass.granule.max(1));
        let Some(pool) = self.pool.as_ref().filter(|_| pass.slots > task) else {
            (pass.add)(0..pass.slots, out);
            return Ok(());
        };
        let tasks = pass.slots.div_ceil(task);
        let width = out.len();
        let next = std::sync::atomic::AtomicUsize::new(0);
        let parts: Vec<Vec<i64>> = pool.install(|| {
            (0..self.count)
                .into_par_iter()
                .map(|_| {
                    let mut part = vec![0i64; width];
                    loop {
                        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        if i >= tasks {
                            return part;
                        }
                        (pass.add)(i * task..((i + 1) * task).min(pass.slots), &mut part);
                    }
                })
                .collect()
        });
        for part in parts {
            out.iter_mut().zip(part).for_each(|(o, p)| *o = o.wrapping_add(p));
        }
        Ok(())
    }

    fn broadcast(&self, _public: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn leads(&self) -> bool {
        true
    }
}
