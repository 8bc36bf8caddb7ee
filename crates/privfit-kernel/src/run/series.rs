//! Steps with noise that is correlated over time (`correlated.rs` has the claim): the one place that holds the noise of earlier steps.
//!
//! *Enforced here.* The batch of a step is handed to the code that sums, and what comes back must be the sum over that very batch, made after the noise and on its grid. The order of batches
//! was drawn once, or is that of the units, and goes round, so that no unit takes part more often, or in steps closer together, than the sensitivity says. The event of all steps is admitted before the first
//! one, and the run does not close before the last. A step that failed on its way out ends the run: its sum may have been seen, and the same noise must not meet another one.
//!
//! *Secrets.* Noise of earlier steps, and its keys, would take the noise off what was released. They stay in the run, and are wiped when it ends. Where a run is kept in order to go on in
//! another process, the keys of the last bands are part of what is kept ([`Executed::has_keys`]): that is as confidential as the records. A step that nobody kept is made again with
//! fresh noise of its own.
//!
//! *Processes.* Those of one owner: the first one draws the noise, and the others' part of it, rounded, is zero. Owners who do not trust each other would each round a part of their own.

use super::{Executed, Run, facts};
use crate::account::FACTOR_BITS;
use crate::audit::{Movement, Out};
use crate::batch::{Batch, Chosen};
use crate::correlated::CorrelatedGaussian;
use crate::engine::Needs;
use crate::error::{Error, Result};
use crate::mechanism::{Gaussian, Mechanism};
use crate::norm::{L2, Norm};
use crate::rng::Stream;
use crate::value::{Bounded, Noise};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::marker::PhantomData;
use zeroize::Zeroize;

/// Noise of a step before, with its key.
struct Past {
    key: [u8; 32],
    values: Vec<i64>,
}

impl Drop for Past {
    fn drop(&mut self) {
        self.key.zeroize();
        self.values.zeroize();
    }
}

/// Where the steps of a run stand.
pub(crate) struct Series {
    mechanism: CorrelatedGaussian,
    /// The key of the batches; none where they are parts of the units in their order.
    partition: Option<[u8; 32]>,
    /// The units of each batch.
    batches: Vec<Vec<usize>>,
    done: u64,
    /// Newest first, and no more than the factor takes back.
    past: VecDeque<Past>,
    /// A step failed on its way out.
    failed: bool,
    /// In the second world of an audit: C times the differences of the sums, newest first, and the square of its length.
    apart: (VecDeque<Vec<f64>>, f64),
}

impl Drop for Series {
    fn drop(&mut self) {
        self.partition.zeroize();
    }
}

/// What another process needs of correlated noise to go on.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptSeries {
    done: u64,
    partition: Option<[u8; 32]>,
    /// Keys of the noise of the last steps, newest first.
    keys: Vec<[u8; 32]>,
}

impl KeptSeries {
    pub(super) fn steps(&self) -> u64 {
        self.done
    }
}

impl std::fmt::Debug for KeptSeries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} steps with correlated noise, and its keys", self.done)
    }
}

impl Drop for KeptSeries {
    fn drop(&mut self) {
        self.partition.zeroize();
        self.keys.zeroize();
    }
}

impl Series {
    pub(super) fn is_complete(&self) -> bool {
        self.done == self.mechanism.participation.steps
    }

    pub(super) fn kept(&self) -> KeptSeries {
        KeptSeries { done: self.done, partition: self.partition, keys: self.past.iter().map(|p| p.key).collect() }
    }

    /// What is taken back of the noise before, rounded once: half a step away at the most.
    fn taken_back(&self) -> Vec<i64> {
        let mut sums = vec![0i128; self.mechanism.dimension];
        for (past, a) in self.past.iter().zip(self.mechanism.factor.taken_back()) {
            sums.iter_mut().zip(&past.values).for_each(|(s, z)| *s += i128::from(*a) * i128::from(*z));
        }
        let half = 1i128 << (FACTOR_BITS - 1);
        sums.into_iter().map(|s| ((s + half) >> FACTOR_BITS) as i64).collect()
    }

    /// Keeps the noise of a step, and forgets what is never taken back again.
    fn remember(&mut self, past: Past) {
        self.past.push_front(past);
        self.past.truncate(self.mechanism.factor.bands() - 1);
        self.done += 1;
    }

    /// One step of C (g - g'), from the sums of two worlds.
    fn compare(&mut self, first: &[i64], second: &[i64]) {
        let mut v: Vec<f64> = first.iter().zip(second).map(|(a, b)| a.wrapping_sub(*b) as f64).collect();
        for (earlier, a) in self.apart.0.iter().zip(self.mechanism.factor.taken_back()) {
            let a = *a as f64 / (1u64 << FACTOR_BITS) as f64;
            v.iter_mut().zip(earlier).for_each(|(v, e)| *v += a * e);
        }
        self.apart.1 += v.iter().map(|v| v * v).sum::<f64>();
        self.apart.0.push_front(v);
        self.apart.0.truncate(self.mechanism.factor.bands() - 1);
    }

    /// How far the whole run moved between two worlds.
    fn movement(&self) -> Movement {
        // Rounding of the sums of squares, which is far below this, must not look like a movement that is too long.
        let moved = (self.apart.1.sqrt() * (1.0 - 1e-9)).ceil() as u64;
        Movement {
            what: "all steps with correlated noise",
            norm: L2::NAME,
            sensitivity: self.mechanism.moved,
            moved,
            agrees: true,
        }
    }
}

impl<'d> Run<'d> {
    /// Begins steps with correlated noise: admits the event of all of them, and draws who is in which batch. In a run that goes on where another process stopped it is the same batches and
    /// the same noise.
    pub fn begin_correlated(&mut self, mechanism: &CorrelatedGaussian) -> Result<()> {
        self.same_process()?;
        self.may_depend_on_order()?;
        self.seam.needs(Needs::Totals)?;
        if self.series.as_ref().is_some_and(|s| s.failed || !s.is_complete()) {
            return Err(Error::Mismatch { what: "the steps with correlated noise before have not ended" });
        }
        let (kept, past) = match self.kept_series.take() {
            None => {
                self.record.admit(&self.planned, mechanism.event(), 1)?;
                let partition = match mechanism.in_order {
                    true => None,
                    false => Some(self.seam.key(self.entropy, Stream::Parts)?),
                };
                (KeptSeries { done: 0, partition, keys: Vec::new() }, VecDeque::new())
            }
            Some(kept) => {
                // Its event is among those that were executed; none but the last can have steps that are left.
                let bands = mechanism.factor.bands() as u64;
                let fits = self.record.releases().last().is_some_and(|(event, _)| *event == mechanism.event())
                    && kept.done <= mechanism.participation.steps
                    && kept.partition.is_none() == mechanism.in_order
                    && kept.keys.len() as u64 == kept.done.min(bands - 1);
                if !fits {
                    return Err(Error::Mismatch { what: "what was executed belongs to other steps with correlated noise" });
                }
                let noise = |key: &[u8; 32]| Ok(Past { key: *key, values: self.noise_of(mechanism, key)? });
                let past = kept.keys.iter().map(noise).collect::<Result<_>>()?;
                (kept, past)
            }
        };
        let count = mechanism.participation.separation as u32;
        let batches = match &kept.partition {
            Some(key) => self.partition(key, count),
            None => self.in_order(count),
        };
        self.order_dependent = true;
        self.record.grade(mechanism.step.grid().0.kind.numerics());
        self.series = Some(Series {
            mechanism: mechanism.clone(),
            partition: kept.partition,
            batches,
            done: kept.done,
            past,
            failed: false,
            apart: (VecDeque::new(), 0.0),
        });
        Ok(())
    }

    /// The next step: the sum over its batch leaves with its noise.
    pub fn correlated_step(
        &mut self,
        sum: impl for<'id> FnOnce(&Batch<'d>, &Noise<'id, L2>) -> Result<Bounded<'id, L2>>,
    ) -> Result<Vec<f64>> {
        self.same_process()?;
        let Some(mut series) = self.series.take_if(|s| !s.failed && !s.is_complete()) else {
            return Err(Error::Mismatch { what: "there is no step with correlated noise left" });
        };
        let out = self.step_of(&mut series, sum);
        series.failed = out.is_err();
        self.series = Some(series);
        out
    }

    fn step_of(
        &mut self,
        series: &mut Series,
        sum: impl for<'id> FnOnce(&Batch<'d>, &Noise<'id, L2>) -> Result<Bounded<'id, L2>>,
    ) -> Result<Vec<f64>> {
        let number = (series.done % series.mechanism.participation.separation) as usize;
        let batch = self.batch(Chosen::Listed(series.batches[number].clone()), None, None)?;
        let batch = batch.with_share(1.0 / series.mechanism.participation.separation as f64);
        let step: Gaussian = series.mechanism.step;
        self.at(&step, |run, scale| {
            let key = run.entropy.key(Stream::Noise)?;
            let past = Past { key, values: run.noise_of(&series.mechanism, &key)? };
            let values = past.values.iter().zip(series.taken_back()).map(|(z, taken)| z.wrapping_sub(taken)).collect();
            let noise = Noise { values, grid: scale.grid, run: run.id, process: run.process, brand: PhantomData };
            let value = sum(&batch, &noise)?;
            let same_batch = value.run == run.id && value.origin.batch == batch.origin.batch && value.origin.rate.is_none();
            if !same_batch || value.grid != noise.grid || value.values.len() != noise.values.len() {
                return Err(Error::Mismatch {
                    what: "a step with correlated noise needs the sum over the batch that it was given",
                });
            }
            let grid = value.grid;
            let first = run.recorded_integers();
            let total = run.seam.open(&value.values, noise.values)?;
            series.remember(past);
            let out: Vec<f64> = total.iter().map(|t| *t as f64 * grid.unit).collect();
            let out = match run.on_release(|| facts::<L2>(grid, series.mechanism.event(), None), &value.values, Out::Numbers(out))
            {
                Out::Numbers(out) => out,
                _ => Vec::new(),
            };
            if let Some(first) = first {
                series.compare(&first, &value.values);
                if series.is_complete() {
                    run.note_movement(series.movement());
                }
            }
            Ok(out)
        })
    }

    /// The independent noise of a step.
    fn noise_of(&self, mechanism: &CorrelatedGaussian, key: &[u8; 32]) -> Result<Vec<i64>> {
        let grid = mechanism.step.grid().0;
        self.seam.noise_of(key, grid.shape, grid.bits, mechanism.dimension)
    }
}

impl Executed {
    /// Steps with correlated noise that were made, where there are such.
    pub fn correlated_steps(&self) -> Option<u64> {
        self.correlated.as_ref().map(KeptSeries::steps)
    }

    /// Whether keys of noise are in it, so that it is as confidential as the records.
    pub fn has_keys(&self) -> bool {
        self.correlated.is_some()
    }
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
