//! One run over one data set: the only door. It draws the batches, hands out noise before values exist, records every release,
//! and closes only if what was executed fits in what was planned.

use super::batch::Batch;
use super::data::{Dataset, Unit};
use super::mechanism::{Exponential, Gaussian, Mechanism, Scale};
use super::minimise::{Objective, Problem};
use super::norm::{L1, L2, LInf, Norm};
use super::record::Record;
use super::rng::{Entropy, Rate, Stream, Words};
use super::select::race;
use super::value::{Bounded, Local, Noise, Origin, Released, Sensitive, Support};
use crate::account::{Event, Objective as ObjectiveFacts};
use crate::engine::Engine;
use crate::error::{Error, Result};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Norms in which noise is added to a value.
pub trait Additive: Norm {}
impl Additive for L1 {}
impl Additive for L2 {}

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

/// The linear term of an objective perturbation.
#[derive(Clone, Copy, Debug)]
pub struct LinearTerm {
    /// Standard deviation over one unit's gradient bound.
    pub noise_multiplier: f64,
    /// Dimensions that one unit's gradient spans.
    pub degrees: u32,
    /// Bound on the log determinant ratio.
    pub log_determinant: f64,
}

/// Grid of the linear term: its standard deviation is 2^40 units.
const LINEAR_BITS: u32 = 40;

/// A run over a data set, under a plan.
pub struct Run<'d> {
    data: &'d Dataset,
    engine: &'d dyn Engine,
    entropy: &'d Entropy,
    planned: Event,
    record: Record,
    id: u64,
    process: u32,
    batches: u64,
    /// Sampled batches that have fed a release.
    used: Vec<u64>,
}

impl<'d> Run<'d> {
    /// Opens a run. The plan is complete before data are touched.
    pub fn begin(data: &'d Dataset, engine: &'d dyn Engine, entropy: &'d Entropy, planned: &Event) -> Result<Run<'d>> {
        planned.validate()?;
        static RUNS: AtomicU64 = AtomicU64::new(1);
        Ok(Run {
            data,
            engine,
            entropy,
            planned: planned.clone(),
            record: Record::default(),
            id: RUNS.fetch_add(1, Ordering::Relaxed),
            process: std::process::id(),
            batches: 0,
            used: Vec::new(),
        })
    }

    /// A forked child shares noise with its parent, so it must not go on.
    fn same_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Error::Mismatch { what: "this run was begun in another process (a fork): begin a new run here" })
    }

    fn batch(&mut self, chosen: Option<Vec<bool>>, rate: Option<f64>) -> Result<Batch<'d>> {
        self.same_process()?;
        self.batches += 1;
        let mut unit_key = [0u8; 32];
        let mut rng = self.entropy.rng(Stream::Unit)?;
        for chunk in unit_key.chunks_exact_mut(8) {
            chunk.copy_from_slice(&rng.word().to_le_bytes());
        }
        let origin = Origin { batch: self.batches, rate };
        Ok(Batch { data: self.data, engine: self.engine, chosen, origin, run: self.id, unit_key })
    }

    /// Every record.
    pub fn everyone(&mut self) -> Result<Batch<'d>> {
        self.batch(None, None)
    }

    /// A fresh Poisson sample: each unit by an exact Bernoulli of its own. The rate enters the event by itself.
    pub fn poisson(&mut self, rate: Rate) -> Result<Batch<'d>> {
        let mut rng = self.entropy.rng(Stream::Sampling)?;
        let chosen = (0..self.data.slots()).map(|_| rate.draw(&mut rng)).collect();
        self.batch(Some(chosen), Some(rate.value()))
    }

    /// Disjoint parts by a keyed hash of the slot, so that a replaced record stays in its part.
    pub fn parts(&mut self, count: u32) -> Result<Vec<Batch<'d>>> {
        if count == 0 {
            return Err(Error::domain("parts", count, "give a whole number of at least 1"));
        }
        let mut rng = self.entropy.rng(Stream::Parts)?;
        let part: Vec<u32> =
            (0..self.data.slots()).map(|_| ((u128::from(rng.word()) * u128::from(count)) >> 64) as u32).collect();
        (0..count).map(|p| self.batch(Some(part.iter().map(|x| *x == p).collect()), None)).collect()
    }

    /// Opens a scope for one mechanism. Noise and values made inside carry its brand: they fit each other and nothing else.
    pub fn at<M: Mechanism, T>(
        &mut self,
        mechanism: &M,
        scope: impl for<'id> FnOnce(&mut Run<'d>, Scale<'id, M::Norm>) -> Result<T>,
    ) -> Result<T> {
        let scale = Scale { grid: mechanism.grid().0, run: self.id, brand: PhantomData };
        scope(self, scale)
    }

    /// Draws the noise of one release, before its value exists. For a selection: the clocks of its race.
    pub fn draw<'id, N: Norm>(&mut self, scale: &Scale<'id, N>, dimension: usize) -> Result<Noise<'id, N>> {
        self.same_process()?;
        if scale.run != self.id {
            return Err(Error::Mismatch { what: "the scale belongs to another run" });
        }
        let mut rng = self.entropy.rng(Stream::Noise)?;
        let mut values = vec![0i64; dimension];
        if N::NAME == LInf::NAME {
            values.iter_mut().for_each(|v| *v = rng.word() as i64);
        } else {
            scale.grid.sampler().fill(&mut rng, &mut values);
        }
        Ok(Noise { values, grid: scale.grid, run: self.id, process: self.process, brand: PhantomData })
    }

    /// Everything that must agree between noise and value; the compiler has checked most of it.
    fn admit<N: Norm>(&mut self, noise: &Noise<'_, N>, value: &Bounded<'_, N>, event: Event, times: u64) -> Result<()> {
        self.same_process()?;
        if noise.run != self.id || value.run != self.id || noise.process != self.process {
            return Err(Error::Mismatch { what: "noise and value belong to different runs or processes" });
        }
        if noise.grid != value.grid {
            return Err(Error::Mismatch { what: "noise and value have different grids or reaches" });
        }
        if noise.values.len() != value.values.len() {
            return Err(Error::Mismatch { what: "noise and value have different lengths" });
        }
        let event = match value.origin.rate {
            None => event,
            Some(rate) => {
                // Amplification is for one release from a secret sample; a second one would reveal who is in it.
                if self.used.contains(&value.origin.batch) || times > 1 {
                    return Err(Error::Mismatch { what: "a sampled batch feeds one release only" });
                }
                self.used.push(value.origin.batch);
                event.sampled(rate)
            }
        };
        (0..times).for_each(|_| self.record.push(event.clone()));
        Ok(())
    }

    /// Adds the noise, wrapping, and only then turns integers into numbers: exact multiples of the grid. Uses up the noise.
    pub fn release<'id, N: Additive>(&mut self, noise: Noise<'id, N>, value: &Bounded<'id, N>) -> Result<Vec<f64>> {
        let grid = value.grid;
        self.admit(&noise, value, grid.event(value.values.len() as u64), 1)?;
        Ok(noise.values.iter().zip(&value.values).map(|(n, v)| n.wrapping_add(*v) as f64 * grid.unit).collect())
    }

    /// Chooses coordinates with the highest scores by the exponential mechanism, one after the other.
    pub fn choose<'id>(
        &mut self,
        clocks: Noise<'id, LInf>,
        scores: &Bounded<'id, LInf>,
        mechanism: &Exponential,
        count: usize,
    ) -> Result<Support> {
        if mechanism.grid != scores.grid {
            return Err(Error::Mismatch { what: "the scores were summed for another mechanism" });
        }
        let count = count.min(scores.values.len());
        self.admit(&clocks, scores, mechanism.event(), count as u64)?;
        let mut more = self.entropy.rng(Stream::Noise)?;
        Ok(Support { indices: race(&clocks.values, &scores.values, scores.grid.bits, count, &mut more) })
    }

    /// Votes of models that were trained on parts (mechanism: `Gaussian::for_votes`).
    pub fn votes<'id, M>(
        &mut self,
        noise: &Noise<'id, L2>,
        models: &[Sensitive<M>],
        label: fn(&M, &[f32]) -> u32,
        point: &[f32],
    ) -> Result<Bounded<'id, L2>> {
        let grid = noise.grid;
        // One vote of `bound` units moves to another label: sqrt 2 of it in L2.
        if super::norm::root_up(2 * u128::from(grid.bound).pow(2)) > grid.reach.zero_out {
            return Err(Error::Mismatch { what: "votes need Gaussian::for_votes" });
        }
        let mut counts = vec![0i64; noise.values.len()];
        for Sensitive(model) in models {
            if let Some(slot) = counts.get_mut(label(model, point) as usize) {
                *slot += grid.bound as i64;
            }
        }
        self.batches += 1;
        let origin = Origin { batch: self.batches, rate: None };
        Ok(Bounded { values: counts, grid, origin, run: self.id, brand: PhantomData })
    }

    /// Minimises a strongly convex sum. With a linear term the kernel draws it itself, since whoever holds it and the minimiser
    /// holds the gradient, and the objective perturbation is recorded here; output noise must follow in any case, because the
    /// minimiser is only reached to a tolerance and the linear term lies on a grid.
    pub fn minimize(&mut self, on: &Batch<'d>, problem: Problem<'_>, linear: Option<LinearTerm>) -> Result<Sensitive<Vec<f64>>> {
        self.same_process()?;
        if on.run != self.id {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        if !(problem.ridge >= f64::MIN_POSITIVE && problem.ridge.is_finite()) {
            return Err(Error::domain("ridge", problem.ridge, "give a positive finite number"));
        }
        if on.origin.rate.is_some() {
            return Err(Error::Mismatch { what: "a minimisation has no amplification by sampling: use everyone()" });
        }
        if linear.is_some() && self.data.rows_per_unit > 1 {
            return Err(Error::unsupported(
                "objective perturbation with several rows to a unit, whose gradients are not clipped together",
                "declare one row to a unit",
            ));
        }
        let dimension = self.data.dimension * problem.loss.outputs;
        let mut term = vec![0.0; dimension];
        let mut linear_bound = 0.0;
        if let Some(l) = linear {
            let deviation = l.noise_multiplier * problem.loss.lipschitz * self.data.row_norm;
            let unit = deviation * 0.5f64.powi(LINEAR_BITS as i32);
            let mut rng = self.entropy.rng(Stream::Noise)?;
            let mut integers = vec![0i64; dimension];
            super::sampler::Sampler::new(super::sampler::Shape::Gaussian, LINEAR_BITS).fill(&mut rng, &mut integers);
            term.iter_mut().zip(&integers).for_each(|(t, z)| *t = *z as f64 * unit);
            // Exceeded with a probability below e^-800.
            linear_bound = deviation * ((dimension as f64).sqrt() + 40.0);
            self.record.push(Event::ObjectivePerturbation(ObjectiveFacts {
                noise_multiplier: l.noise_multiplier,
                replace_factor: 2.0,
                degrees: l.degrees,
                log_determinant: l.log_determinant,
                output_noise_multiplier: f64::INFINITY,
                grid_sigma: 1 << LINEAR_BITS,
                dimension: dimension as u64,
            }));
        }
        let objective =
            Objective { data: self.data, chosen: on.chosen.as_deref(), engine: self.engine, problem, linear: term, linear_bound };
        objective.solve().map(Sensitive)
    }

    /// Puts a whole vector on the grid of `Gaussian::for_output`, on the word of a theorem.
    pub fn bounded<'id>(
        &mut self,
        noise: &Noise<'id, L2>,
        value: Sensitive<Vec<f64>>,
        theorem: &Theorem,
    ) -> Result<Bounded<'id, L2>> {
        let grid = noise.grid;
        let rounding = super::norm::root_up(value.0.len() as u128) as f64;
        let needs = |distance: f64| (distance / grid.unit).ceil() + rounding;
        let fits =
            needs(theorem.zero_out) <= grid.reach.zero_out as f64 && needs(theorem.replace_one) <= grid.reach.replace_one as f64;
        if !fits || noise.run != self.id {
            return Err(Error::Mismatch { what: "the theorem needs a larger reach than the noise was drawn for" });
        }
        self.batches += 1;
        let origin = Origin { batch: self.batches, rate: None };
        let per_unit = 1.0 / grid.unit;
        // Finite by the certificate; a cast saturates, which only shrinks distances.
        let values = value.0.iter().map(|v| (v * per_unit).round() as i64).collect();
        Ok(Bounded { values, grid, origin, run: self.id, brand: PhantomData })
    }

    /// Joint privacy: what each unit computes for itself from a released message. It never becomes `Released`.
    pub fn local<M, T>(&self, message: &Released<M>, compute: fn(&M, Unit<'_>) -> T) -> Local<Vec<T>> {
        Local((0..self.data.slots()).map(|slot| compute(&message.value, self.data.unit(slot))).collect())
    }

    /// Ends the run. Nothing is released unless executed fits in planned; a simulation is marked as not private.
    pub fn close<T>(self, out: T) -> Result<Released<T>> {
        self.same_process()?;
        self.record.fits(&self.planned)?;
        let event = if self.entropy.is_simulated() {
            Event::NotPrivate { why: "simulated: the noise came from a seed".into() }
        } else {
            self.record.event()
        };
        Ok(Released { value: out, event })
    }
}

/// The event of a full-batch or sampled Gaussian step, for plans.
pub fn planned_step(mechanism: &Gaussian, dimension: usize, rate: Option<Rate>) -> Event {
    let event = mechanism.event(dimension);
    match rate {
        None => event,
        Some(rate) => event.sampled(rate.value()),
    }
}
