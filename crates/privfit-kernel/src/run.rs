//! One run over one data set: the only door. It draws the batches, hands out noise before values exist, records every release,
//! and closes only if what was executed fits in what was planned.

mod audited;
mod resumed;
mod series;

use crate::account::{Adjacency, Event};
use crate::audit::{Audit, Facts, Out};
use crate::batch::{Batch, Chosen};
use crate::engine::{Engine, Needs, Seam};
use crate::error::order_dependent;
use crate::error::{Error, Result};
use crate::mechanism::{Gaussian, GridKind, Mechanism, Scale, rounding_l1, rounding_l2};
use crate::memory::grow;
use crate::norm::{L1, L2, LInf, Norm};
use crate::quiet::quietly;
use crate::record::Record;
use crate::rng::{Entropy, Rate, Stream, Words, unit_blocks};
use crate::store::dataset::{Dataset, Unit};
use crate::value::Message;
use crate::value::{Bounded, Local, Noise, Origin, Released, Sensitive, Theorem};
use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use resumed::Executed;

/// Norms in which noise is added to a value.
pub trait Additive: Norm {}
impl Additive for L1 {}
impl Additive for L2 {}

/// Numbers of runs.
pub(crate) static RUNS: AtomicU64 = AtomicU64::new(1);

/// Something that a run executes.
pub trait Query<'d> {
    /// What comes of it. Where it is computed from records it is `Sensitive` or `Bounded`; otherwise the run has recorded its cost.
    type Output;

    /// Executes it. Use [`Run::execute`].
    fn execute(self, run: &mut Run<'d>) -> Result<Self::Output>;
}

/// A run over a data set, under a plan.
pub struct Run<'d> {
    pub(crate) data: &'d Dataset,
    pub(crate) seam: Arc<Seam<'d>>,
    pub(crate) entropy: &'d Entropy,
    pub(crate) planned: Event,
    pub(crate) record: Record,
    pub(crate) id: u64,
    pub(crate) process: u32,
    pub(crate) batches: u64,
    /// Sampled batches that have fed a release.
    pub(crate) used: HashSet<u64>,
    /// What is promised. Under add-remove nothing may depend on the number or the order of units.
    pub(crate) adjacency: Adjacency,
    /// Something released depends on them.
    pub(crate) order_dependent: bool,
    /// The record is with a run on some of the columns, which has not come back.
    pub(crate) in_subrun: bool,
    /// An audit looks on.
    pub(crate) audit: Option<Audit>,
    /// Steps with correlated noise, and what another process left of them.
    pub(crate) series: Option<series::Series>,
    pub(crate) kept_series: Option<series::KeptSeries>,
}

impl<'d> Run<'d> {
    /// Opens a run. The plan is complete before data are touched.
    pub fn begin(data: &'d Dataset, engine: &'d dyn Engine, entropy: &'d Entropy, planned: &Event) -> Result<Run<'d>> {
        planned.validate()?;
        Ok(Run {
            data,
            seam: Arc::new(Seam::begin(engine, entropy, planned)?),
            entropy,
            planned: planned.clone(),
            record: Record::default(),
            id: RUNS.fetch_add(1, Ordering::Relaxed),
            process: std::process::id(),
            batches: 0,
            used: HashSet::new(),
            adjacency: Adjacency::ZeroOut,
            order_dependent: false,
            in_subrun: false,
            audit: None,
            series: None,
            kept_series: None,
        })
    }

    /// The adjacency under which the plan is promised. Without it a run may use the number and the order of units, and
    /// `Released::epsilon` refuses add-remove if it did; under add-remove whatever would use them is refused before records are looked at.
    /// Once add-remove, always add-remove.
    pub fn under(self, adjacency: Adjacency) -> Run<'d> {
        let adjacency = if self.adjacency == Adjacency::AddRemove { self.adjacency } else { adjacency };
        Run { adjacency, ..self }
    }

    /// Number of this run.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Refuses what depends on the number or the order of units where one unit more or less is what neighbours differ in.
    pub(crate) fn may_depend_on_order(&self) -> Result<()> {
        match self.adjacency == Adjacency::AddRemove && !matches!(self.planned, Event::NotPrivate { .. }) {
            true => Err(order_dependent()),
            // Their number is public here, and it must be the true one.
            false if self.data.first + self.data.unit_count() > self.data.total => {
                Err(Error::Mismatch { what: "there are more units than this process was said to hold" })
            }
            false => Ok(()),
        }
    }

    /// A forked child shares noise with its parent, so it must not go on.
    pub(crate) fn same_process(&self) -> Result<()> {
        if self.in_subrun {
            return Err(Error::Mismatch { what: "the run on some of the columns did not end: begin a new run" });
        }
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Error::Mismatch { what: "this run was begun in another process (a fork): begin a new run here" })
    }

    fn batch(&mut self, chosen: Chosen, rate: Option<f64>, part: Option<(u64, u32)>) -> Result<Batch<'d>> {
        self.same_process()?;
        self.batches += 1;
        let unit_key = self.seam.key(self.entropy, Stream::Unit)?;
        let origin = Origin { batch: self.batches, rate, share: None, part, order_dependent: false };
        Ok(Batch { data: self.data, seam: self.seam.clone(), chosen, origin, run: self.id, unit_key })
    }

    /// Every record.
    pub fn everyone(&mut self) -> Result<Batch<'d>> {
        self.batch(Chosen::All, None, None)
    }

    /// A random word for a choice that may become public, such as how many steps to take. It never looks at data.
    pub fn public_word(&mut self) -> Result<u64> {
        self.same_process()?;
        let word = self.entropy.rng(Stream::Initialisation)?.word();
        Ok(self.seam.agree(&[word])?.first().copied().unwrap_or(word))
    }

    /// A fresh Poisson sample: each unit by an exact Bernoulli of its own. The rate enters the event by itself.
    pub fn poisson(&mut self, rate: Rate) -> Result<Batch<'d>> {
        let key = self.seam.key(self.entropy, Stream::Sampling)?;
        let chosen = rate.draw_units(&key, self.data.first, self.data.unit_count());
        self.batch(Chosen::Marks(chosen), Some(rate.value()), None)
    }

    /// Disjoint parts, by a random word of its own for each unit: a replaced record stays in its part, and a record more or less leaves the
    /// distribution of the others' parts as it is.
    pub fn parts(&mut self, count: u32) -> Result<Vec<Batch<'d>>> {
        if count == 0 {
            return Err(Error::domain("parts", count, "give a whole number of at least 1"));
        }
        let key = self.seam.key(self.entropy, Stream::Parts)?;
        let parts = self.partition(&key, count);
        let partition = self.batches + 1;
        let part = |(number, list)| self.batch(Chosen::Listed(list), None, Some((partition, number)));
        (0..count).zip(parts).map(part).collect()
    }

    /// The units of each part, by a random word for each under a key.
    fn partition(&self, key: &[u8; 32], count: u32) -> Vec<Vec<usize>> {
        let mut parts = vec![Vec::new(); count as usize];
        let mut unit_index = 0;
        unit_blocks(key, self.data.first, self.data.unit_count(), |units, rng| {
            for _ in 0..units {
                let part = &mut parts[((u128::from(rng.word()) * u128::from(count)) >> 64) as usize];
                grow(part, 1);
                part.push(unit_index);
                unit_index += 1;
            }
        });
        parts
    }

    /// The units of each part of all units in their order: a function of their indices, and of numbers that are public.
    fn in_order(&self, count: u32) -> Vec<Vec<usize>> {
        let mut parts = vec![Vec::new(); count as usize];
        for unit_index in 0..self.data.unit_count() {
            let part = (self.data.first + unit_index) as u128 * u128::from(count) / self.data.total.max(1) as u128;
            let part = &mut parts[part as usize];
            grow(part, 1);
            part.push(unit_index);
        }
        parts
    }

    /// Executes a query.
    pub fn execute<Q: Query<'d>>(&mut self, query: Q) -> Result<Q::Output> {
        self.same_process()?;
        query.execute(self)
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

    /// Draws the noise of one release, before its value exists. For a selection: the arrival times of its race.
    pub fn draw<'id, N: Norm>(&mut self, scale: &Scale<'id, N>, dimension: usize) -> Result<Noise<'id, N>> {
        self.same_process()?;
        if scale.run != self.id {
            return Err(Error::Mismatch { what: "the scale belongs to another run" });
        }
        let values = if N::NAME == LInf::NAME {
            self.seam.needs(Needs::Totals)?;
            let mut rng = self.entropy.rng(Stream::Noise)?;
            (0..dimension).map(|_| rng.word() as i64).collect()
        } else {
            self.seam.noise(self.entropy, scale.grid.shape, scale.grid.bits, dimension)?
        };
        Ok(Noise { values, grid: scale.grid, run: self.id, process: self.process, brand: PhantomData })
    }

    /// Everything that must agree between noise and value; the compiler has checked most of it.
    pub(crate) fn admit<N: Norm>(
        &mut self,
        noise: &Noise<'_, N>,
        value: &Bounded<'_, N>,
        event: Event,
        times: u64,
    ) -> Result<()> {
        self.same_process()?;
        if noise.run != self.id || value.run != self.id || noise.process != self.process {
            return Err(Error::Mismatch { what: "noise and value belong to different runs or processes" });
        }
        if noise.grid != value.grid {
            return Err(Error::Mismatch { what: "noise and value have different grids or sensitivities" });
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
                event.sampled(rate)
            }
        };
        if value.origin.order_dependent {
            self.may_depend_on_order()?;
        }
        self.record.admit(&self.planned, event, times)?;
        if value.origin.rate.is_some() {
            self.used.insert(value.origin.batch);
        }
        self.order_dependent |= value.origin.order_dependent;
        self.record.grade(value.grid.kind.numerics());
        Ok(())
    }

    /// Adds the noise, wrapping, and only then turns integers into numbers: exact multiples of the grid. Uses up the noise.
    pub fn release<'id, N: Additive>(&mut self, noise: Noise<'id, N>, value: &Bounded<'id, N>) -> Result<Vec<f64>> {
        let grid = value.grid;
        self.admit(&noise, value, grid.event(value.values.len() as u64), 1)?;
        let total = self.seam.open(&value.values, noise.values)?;
        let out: Vec<f64> = total.iter().map(|t| *t as f64 * grid.unit).collect();
        let facts = || facts::<N>(grid, grid.event(value.values.len() as u64), value.origin.rate);
        Ok(match self.on_release(facts, &value.values, Out::Numbers(out)) {
            Out::Numbers(out) => out,
            _ => Vec::new(),
        })
    }

    /// One unit is in one part of one partition, so that it changes one of these models.
    pub(crate) fn of_one_partition<M>(&self, models: &[Sensitive<M>]) -> Result<()> {
        let mut parts: Vec<(u64, u32)> = models.iter().filter(|m| m.run == self.id).filter_map(|m| m.part).collect();
        parts.sort_unstable();
        parts.dedup();
        if parts.len() == models.len() && parts.iter().all(|p| p.0 == parts[0].0) {
            return Ok(());
        }
        Err(Error::Mismatch { what: "each model must come from another part of one partition of this run" })
    }

    /// A value that comes from all records, and that all processes have alike: it counts once.
    pub(crate) fn from_all_records<'id, N: Norm>(
        &mut self,
        mut values: Vec<i64>,
        grid: crate::mechanism::Grid,
    ) -> Bounded<'id, N> {
        if !self.seam.leads() {
            values.fill(0);
        }
        self.batches += 1;
        let origin = Origin { batch: self.batches, rate: None, share: None, part: None, order_dependent: false };
        Bounded { values, grid, origin, run: self.id, mirrored: false, brand: PhantomData }
    }

    /// Takes a theorem's word for how far apart neighbours' vectors are. Every use is a proof obligation: search for this name.
    pub fn claim_by_theorem(&self, value: Sensitive<Vec<f64>>, theorem: Theorem) -> Sensitive<Vec<f64>> {
        Sensitive { claim: Some(theorem), ..value }
    }

    /// Puts a whole vector on the grid of `Gaussian::for_output` or `Laplace::for_output`, on the word of the theorem that it
    /// carries. The theorem speaks of L2; in L1 a vector is at most sqrt(d) times as long.
    pub fn bounded<'id, N: Additive>(&mut self, noise: &Noise<'id, N>, value: Sensitive<Vec<f64>>) -> Result<Bounded<'id, N>> {
        let grid = noise.grid;
        let dimension = noise.values.len();
        let Some(theorem) = value.claim else {
            return Err(Error::Mismatch { what: "no theorem bounds this vector: use claim_by_theorem" });
        };
        if noise.run != self.id || value.run != self.id || grid.kind != (GridKind::Output { dimension }) {
            return Err(Error::Mismatch { what: "a whole vector needs noise of this run made by for_output of its length" });
        }
        let in_l1 = N::NAME == L1::NAME;
        let rounding = if in_l1 { rounding_l1(dimension) } else { rounding_l2(dimension) } as f64;
        let longer = if in_l1 { (dimension as f64).sqrt().next_up() } else { 1.0 };
        let fits = |distance: f64, sensitivity: u64| (distance * longer / grid.unit).ceil() + rounding <= sensitivity as f64;
        // A plan without a promise may do as published methods do; what it releases is marked as not private.
        let promised = !matches!(self.planned, Event::NotPrivate { .. });
        if promised
            && !(fits(theorem.zero_out, grid.sensitivity.zero_out) && fits(theorem.replace_one, grid.sensitivity.replace_one))
        {
            return Err(Error::Mismatch { what: "the theorem needs a larger sensitivity than the noise was drawn for" });
        }
        // Cut at the magnitude: a projection, so distances do not grow, and the grid resolves every double that is left.
        let mut values: Vec<i64> =
            value.value.iter().map(|v| (v.clamp(-grid.clip, grid.clip) / grid.unit).round() as i64).collect();
        values.resize(dimension, 0);
        let mut bounded = self.from_all_records(values, grid);
        bounded.origin.order_dependent = value.order_dependent;
        Ok(bounded)
    }

    /// Hands out a value without noise: only under a plan that says that nothing is guaranteed.
    pub fn reveal<T>(&mut self, value: Sensitive<T>) -> Result<T> {
        self.same_process()?;
        if value.run != self.id || !matches!(self.planned, Event::NotPrivate { .. }) {
            return Err(Error::Mismatch { what: "a value without noise may leave only a run that is planned as not private" });
        }
        self.on_reveal();
        Ok(value.value)
    }

    /// Publishes numbers that were made from what this run has released, while it goes on. They are public from here on, and what was reserved
    /// for the run stays spent whatever becomes of it.
    pub fn publish(&mut self, values: Vec<f64>) -> Result<Message> {
        self.same_process()?;
        Ok(Message { values, run: self.id })
    }

    /// Joint privacy: what each unit computes for itself from a released message. It never becomes `Released`. A message is plain
    /// numbers: one with a lock or a cell in it could carry rows away.
    pub fn local<T>(&self, message: &Released<Vec<f64>>, compute: fn(&[f64], Unit<'_>) -> T) -> Local<Vec<Option<T>>> {
        let one = |unit_index| quietly(|| compute(&message.value, self.data.unit(unit_index)));
        let value = (0..self.data.unit_count()).map(one).collect();
        Local { value, data: self.data.id }
    }

    /// Ends the run. Nothing is released unless executed fits in planned; a simulation is marked as not private.
    pub fn close<T>(self, out: T) -> Result<Released<T>> {
        self.same_process()?;
        self.record.fits(&self.planned)?;
        if self.kept_series.is_some() || self.series.as_ref().is_some_and(|s| !s.is_complete()) {
            return Err(Error::Unplanned { what: "steps with correlated noise are left".into() });
        }
        let event = if self.entropy.is_simulated() {
            Event::NotPrivate { why: "simulated: the noise came from a seed".into() }
        } else {
            self.planned.clone()
        };
        let numerics = self.record.numerics();
        Ok(Released { value: out, event, executed: self.record.event(), numerics, order_dependent: self.order_dependent })
    }
}

/// What an audit knows about a release.
pub(crate) fn facts<N: Norm>(grid: crate::mechanism::Grid, event: Event, rate: Option<f64>) -> Facts {
    let event = rate.map_or(event.clone(), |rate| event.sampled(rate));
    Facts { what: grid.kind.name(), norm: N::NAME, sensitivity: grid.sensitivity, event, unit: grid.unit }
}

/// The event of a full-batch or sampled Gaussian step, for plans.
pub fn planned_step(mechanism: &Gaussian, dimension: usize, rate: Option<Rate>) -> Event {
    let event = mechanism.event(dimension);
    match rate {
        None => event,
        Some(rate) => event.sampled(rate.value()),
    }
}
