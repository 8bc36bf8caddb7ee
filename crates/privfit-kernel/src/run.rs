//! One run over one data set: the only door. It draws the batches, hands out noise before values exist, records every release,
//! and closes only if what was executed fits in what was planned.

mod narrow;
mod replay;
mod support;
mod teach;

pub use narrow::Fit;
pub use replay::{Heard, Movement, Tape};
pub use support::{SparseModel, StabilityTest};
pub use teach::products_error;

use crate::batch::{Batch, Chosen};
use crate::store::data::{Dataset, Unit};
use crate::query::descent::{Descent, shuffled};
use crate::query::lazy_scores::CornerScores;
use crate::query::loss::Loss;
use crate::mechanism::{Exponential, Gaussian, GridKind, Mechanism, Scale, rounding_l1, rounding_l2};
use crate::query::minimise::{Objective, Problem};
use crate::norm::{L1, L2, LInf, Norm};
use crate::quiet::quietly;
use crate::record::Record;
use crate::rng::{Entropy, Rate, Stream, Words};
use crate::sampling::sampler::{Sampler, Shape};
use crate::value::{Bounded, Local, Noise, Numerics, Origin, Released, Sensitive, Support, Theorem};
use crate::account::{Adjacency, Event, Objective as ObjectiveFacts};
use crate::engine::Engine;
use crate::error::{Error, Result};
use replay::{Audit, Facts, Out};
use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Norms in which noise is added to a value.
pub trait Additive: Norm {}
impl Additive for L1 {}
impl Additive for L2 {}

/// The linear term of an objective perturbation. Everything else that its privacy rests on the kernel works out itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearTerm {
    /// Scale of the noise over one unit's gradient bound: in L2 for Gaussian noise, in L1 for Laplace noise.
    pub noise_multiplier: f64,
    /// Laplace noise, for pure privacy.
    pub pure: bool,
}

impl LinearTerm {
    /// Gaussian noise, its standard deviation over one unit's gradient bound.
    pub fn gaussian(noise_multiplier: f64) -> LinearTerm {
        LinearTerm { noise_multiplier, pure: false }
    }

    /// Laplace noise, its scale over the square root of the dimension times one unit's gradient bound.
    pub fn laplace(noise_multiplier: f64) -> LinearTerm {
        LinearTerm { noise_multiplier, pure: true }
    }

    /// Standard deviation or scale of a coordinate.
    pub fn scale(&self, loss: &Loss, row_norm: f64, dimension: usize) -> f64 {
        let longer = if self.pure { (dimension as f64).sqrt().next_up() } else { 1.0 };
        self.noise_multiplier * loss.lipschitz * row_norm * longer
    }

    /// A length that the term exceeds with a probability below e^-800. The L1 norm of Laplace noise has a gamma law.
    fn longest(&self, loss: &Loss, row_norm: f64, dimension: usize) -> f64 {
        let d = dimension as f64;
        self.scale(loss, row_norm, dimension) * if self.pure { 2.0 * d + 1700.0 } else { d.sqrt() + 40.0 }
    }

    /// One unit of the grid that the term lies on.
    fn grid(&self, loss: &Loss, row_norm: f64, dimension: usize) -> f64 {
        self.scale(loss, row_norm, dimension) * 0.5f64.powi(LINEAR_BITS as i32)
    }

    /// The event that `minimize` will record for this loss, row norm, ridge and number of features.
    pub fn event(&self, loss: &Loss, row_norm: f64, ridge: f64, features: usize) -> Event {
        let rank = f64::from(loss.rank);
        // Eigenvalues that sum to the trace: the determinant is largest when they are equal.
        let log_determinant = rank * (loss.trace / rank * row_norm * row_norm / ridge).ln_1p().next_up();
        let dimension = (features * loss.outputs) as u64;
        if !self.pure {
            return Event::ObjectivePerturbation(ObjectiveFacts {
                noise_multiplier: self.noise_multiplier,
                replace_factor: 2.0,
                degrees: loss.rank,
                log_determinant,
                output_noise_multiplier: f64::INFINITY,
                grid_sigma: 1 << LINEAR_BITS,
                dimension,
            });
        }
        // A continuous term whose density is constant on each cell of the grid is the term on the grid plus less than half a cell. A
        // shift by v crosses at most |v| / unit + 1 cells of each coordinate, and each cell costs 2^-40. The determinant is bounded,
        // but by no means independent of the term, so that both are one event with one epsilon.
        let scale = 2f64.powi(LINEAR_BITS as i32);
        let epsilon = |times: f64| {
            let cells = (times * scale / self.noise_multiplier * (1.0 + 1e-12)).ceil() + dimension as f64;
            (cells / scale + log_determinant).next_up()
        };
        Event::Pure { epsilon: epsilon(1.0), replace_factor: (epsilon(2.0) / epsilon(1.0)).next_up() }
    }
}

/// Grid of the linear term: its standard deviation is 2^40 units.
const LINEAR_BITS: u32 = 40;

/// Why a value is refused under add-remove.
pub(crate) fn order_dependent() -> Error {
    Error::unsupported(
        "a value that depends on the number or the order of units under add-remove (one unit more may move it by any amount)",
        "use zero-out or replace-one",
    )
}

/// Numbers of runs.
static RUNS: AtomicU64 = AtomicU64::new(1);

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
    used: HashSet<u64>,
    /// What is promised. Under add-remove nothing may depend on the number or the order of units.
    adjacency: Adjacency,
    /// Something released depends on them.
    order_dependent: bool,
    /// The record is with a run on some of the columns, which has not come back.
    lent: bool,
    /// An audit looks on.
    audit: Option<Audit>,
}

impl<'d> Run<'d> {
    /// Opens a run. The plan is complete before data are touched.
    pub fn begin(data: &'d Dataset, engine: &'d dyn Engine, entropy: &'d Entropy, planned: &Event) -> Result<Run<'d>> {
        planned.validate()?;
        Ok(Run {
            data,
            engine,
            entropy,
            planned: planned.clone(),
            record: Record::default(),
            id: RUNS.fetch_add(1, Ordering::Relaxed),
            process: std::process::id(),
            batches: 0,
            used: HashSet::new(),
            adjacency: Adjacency::ZeroOut,
            order_dependent: false,
            lent: false,
            audit: None,
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
    fn may_depend_on_order(&self) -> Result<()> {
        match self.adjacency == Adjacency::AddRemove && !matches!(self.planned, Event::NotPrivate { .. }) {
            true => Err(order_dependent()),
            false => Ok(()),
        }
    }

    /// A forked child shares noise with its parent, so it must not go on.
    fn same_process(&self) -> Result<()> {
        if self.lent {
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
        let mut unit_key = [0u8; 32];
        let mut rng = self.entropy.rng(Stream::Unit)?;
        for chunk in unit_key.chunks_exact_mut(8) {
            chunk.copy_from_slice(&rng.word().to_le_bytes());
        }
        let origin = Origin { batch: self.batches, rate, part, order_dependent: false };
        Ok(Batch { data: self.data, engine: self.engine, chosen, origin, run: self.id, unit_key })
    }

    /// Every record.
    pub fn everyone(&mut self) -> Result<Batch<'d>> {
        self.batch(Chosen::All, None, None)
    }

    /// A random word for a choice that may become public, such as how many steps to take. It never looks at data.
    pub fn public_word(&mut self) -> Result<u64> {
        self.same_process()?;
        Ok(self.entropy.rng(Stream::Initialisation)?.word())
    }

    /// A fresh Poisson sample: each unit by an exact Bernoulli of its own. The rate enters the event by itself.
    pub fn poisson(&mut self, rate: Rate) -> Result<Batch<'d>> {
        let mut rng = self.entropy.rng(Stream::Sampling)?;
        let chosen = rate.draw(self.data.slots(), &mut rng);
        self.batch(Chosen::Marks(chosen), Some(rate.value()), None)
    }

    /// Disjoint parts, by a random word of its own for each slot: a replaced record stays in its part, and a record more or less leaves the
    /// law of the others' parts as it is.
    pub fn parts(&mut self, count: u32) -> Result<Vec<Batch<'d>>> {
        if count == 0 {
            return Err(Error::domain("parts", count, "give a whole number of at least 1"));
        }
        let mut rng = self.entropy.rng(Stream::Parts)?;
        let mut parts = vec![Vec::new(); count as usize];
        (0..self.data.slots()).for_each(|slot| parts[((u128::from(rng.word()) * u128::from(count)) >> 64) as usize].push(slot));
        let partition = self.batches + 1;
        let part = |(number, list)| self.batch(Chosen::Listed(list), None, Some((partition, number)));
        (0..count).zip(parts).map(part).collect()
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
        let out: Vec<f64> = noise.values.iter().zip(&value.values).map(|(n, v)| n.wrapping_add(*v) as f64 * grid.unit).collect();
        let facts = || self::facts::<N>(grid, grid.event(value.values.len() as u64), value.origin.rate);
        Ok(match self.leaves(facts, &value.values, Out::Numbers(out)) {
            Out::Numbers(out) => out,
            _ => Vec::new(),
        })
    }

    /// Chooses coordinates with the highest scores by the exponential mechanism, one after the other.
    pub fn choose<'id>(
        &mut self,
        clocks: Noise<'id, LInf>,
        scores: &Bounded<'id, LInf>,
        mechanism: &Exponential,
        count: usize,
    ) -> Result<Support> {
        self.pick(clocks, scores, &scores.values, mechanism, count, &[])
    }

    /// Opens the scores of the corners of a polytope along a path from `start`, for sparse rows and a loss of one output. They are
    /// of all records; the mechanism must come from `Exponential::for_gradients`.
    pub fn corner_scores(
        &mut self,
        on: &Batch<'d>,
        mechanism: &Exponential,
        loss: &Loss,
        simplex: bool,
        start: &[f64],
    ) -> Result<CornerScores<'d>> {
        self.same_process()?;
        if on.run != self.id {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        CornerScores::new(on, mechanism, loss, simplex, start)
    }

    /// Chooses a corner by the exponential mechanism: a coordinate, and whether the negative one.
    pub fn choose_corner(&mut self, scores: &CornerScores<'d>) -> Result<(usize, bool)> {
        self.same_process()?;
        if scores.run != self.id {
            return Err(Error::Mismatch { what: "the scores belong to another run" });
        }
        self.record.admit(&self.planned, scores.event(), 1)?;
        let (coordinate, negative) = scores.choose(&mut self.entropy.rng(Stream::Noise)?);
        let facts =
            || Facts { what: "choice of a corner", norm: LInf::NAME, reach: scores.reach(), event: scores.event(), unit: 1.0 };
        Ok(match self.leaves(facts, scores.scores(), Out::Corner(coordinate, negative)) {
            Out::Corner(coordinate, negative) => (coordinate, negative),
            _ => (coordinate, negative),
        })
    }

    /// Votes of models that were trained on parts (mechanism: `Gaussian::for_votes`).
    pub fn votes<'id, M>(
        &mut self,
        noise: &Noise<'id, L2>,
        models: &[Sensitive<Option<M>>],
        label: fn(&M, &[f32]) -> u32,
        point: &[f32],
    ) -> Result<Bounded<'id, L2>> {
        let grid = noise.grid;
        if grid.kind != GridKind::Votes || noise.run != self.id {
            return Err(Error::Mismatch { what: "votes need noise of this run from Gaussian::for_votes" });
        }
        self.of_one_partition(models)?;
        let mut counts = vec![0i64; noise.values.len()];
        for model in models {
            let call = || model.value.as_ref().map_or(usize::MAX, |m| label(m, point) as usize);
            let vote = quietly(call).unwrap_or(usize::MAX);
            if let Some(slot) = counts.get_mut(vote) {
                *slot = slot.wrapping_add(grid.bound as i64);
            }
        }
        Ok(self.whole(counts, grid))
    }

    /// One unit is in one part of one partition, so that it changes one of these models.
    fn of_one_partition<M>(&self, models: &[Sensitive<M>]) -> Result<()> {
        let mut parts: Vec<(u64, u32)> = models.iter().filter(|m| m.run == self.id).filter_map(|m| m.part).collect();
        parts.sort_unstable();
        parts.dedup();
        if parts.len() == models.len() && parts.iter().all(|p| p.0 == parts[0].0) {
            return Ok(());
        }
        Err(Error::Mismatch { what: "each model must come from another part of one partition of this run" })
    }

    /// A value that comes from all records.
    fn whole<'id, N: Norm>(&mut self, values: Vec<i64>, grid: crate::mechanism::Grid) -> Bounded<'id, N> {
        self.batches += 1;
        let origin = Origin { batch: self.batches, rate: None, part: None, order_dependent: false };
        Bounded { values, grid, origin, run: self.id, mirrored: false, brand: PhantomData }
    }

    /// Minimises a strongly convex sum. With a linear term the kernel draws it itself, since whoever holds it and the minimiser
    /// holds the gradient, and the objective perturbation is recorded here; output noise must follow in any case, because the
    /// minimiser is only reached to a tolerance and the linear term lies on a grid.
    pub fn minimize(&mut self, on: &Batch<'d>, problem: Problem<'_>, linear: Option<LinearTerm>) -> Result<Sensitive<Vec<f64>>> {
        self.same_process()?;
        if on.run != self.id {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        // How far the solver goes, and how exact it can be, are computed from the number of units.
        self.may_depend_on_order()?;
        if !(problem.ridge >= f64::MIN_POSITIVE && problem.ridge.is_finite()) {
            return Err(Error::domain("ridge", problem.ridge, "give a positive finite number"));
        }
        if on.origin.rate.is_some() {
            return Err(Error::Mismatch { what: "a minimisation has no amplification by sampling: use everyone()" });
        }
        problem.loss.validate()?;
        if !problem.loss.smoothness.is_finite() {
            return Err(Error::domain("smoothness", problem.loss.smoothness, "use a loss with a bounded second derivative"));
        }
        if linear.is_some() && self.data.rows_per_unit > 1 {
            return Err(Error::unsupported(
                "objective perturbation with several rows to a unit, whose gradients are not clipped together",
                "declare one row to a unit",
            ));
        }
        let dimension = self.data.dimension * problem.loss.outputs;
        let gradient_bound = problem.loss.lipschitz * self.data.row_norm * self.data.rows_per_unit as f64;
        let mut term = vec![0.0; dimension];
        let (mut linear_bound, mut linear_grid) = (0.0, 0.0);
        if let Some(l) = linear {
            let unit = l.grid(problem.loss, self.data.row_norm, dimension);
            linear_grid = unit;
            if !unit.is_normal() || unit < 0.0 {
                return Err(Error::domain("noise_multiplier", l.noise_multiplier, "give a positive number far from underflow"));
            }
            let event = l.event(problem.loss, self.data.row_norm, problem.ridge, self.data.dimension);
            self.record.admit(&self.planned, event, 1)?;
            self.record.grade(Numerics::Bounded);
            self.order_dependent = true;
            let mut rng = self.entropy.rng(Stream::Noise)?;
            let mut integers = vec![0i64; dimension];
            let shape = if l.pure { Shape::Laplace } else { Shape::Gaussian };
            Sampler::new(shape, LINEAR_BITS).fill(&mut rng, &mut integers);
            term.iter_mut().zip(&integers).for_each(|(t, z)| *t = *z as f64 * unit);
            linear_bound = l.longest(problem.loss, self.data.row_norm, dimension);
        }
        let marks = on.chosen.marks(self.data.slots());
        let objective = Objective {
            data: self.data,
            chosen: marks.as_deref(),
            engine: self.engine,
            problem,
            linear: term,
            linear_bound,
            linear_grid,
        };
        let value = self.solves(objective, linear.is_some())?;
        // Two certified points are each within tolerance/ridge of the minimiser. With the linear term the minimiser itself is what
        // the objective perturbation released; without it one unit moves the minimiser by its gradient bound over the ridge.
        let slack = 2.0 * problem.tolerance / problem.ridge;
        let moved = if linear.is_some() { 0.0 } else { gradient_bound / problem.ridge };
        let claim = Theorem {
            reason: "strong convexity by the ridge: distance <= gradient difference / ridge, twice the tolerance for the solver",
            zero_out: moved + slack,
            replace_one: 2.0 * moved + slack,
        };
        Ok(Sensitive { value, run: self.id, part: on.origin.part, claim: Some(claim), order_dependent: true })
    }

    /// Descends with fixed steps on everyone, and says how far apart neighbours end.
    pub fn descend(&mut self, on: &Batch<'d>, descent: &Descent<'_>, tick: &dyn Fn()) -> Result<Sensitive<Vec<f64>>> {
        self.same_process()?;
        if on.run != self.id {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        if !on.chosen.is_all() {
            return Err(Error::Mismatch { what: "a descent draws its own batches: use everyone()" });
        }
        self.may_depend_on_order()?;
        descent.loss.validate()?;
        if !descent.loss.smoothness.is_finite() {
            return Err(Error::domain("smoothness", descent.loss.smoothness, "use a loss with a bounded second derivative"));
        }
        if self.data.units.is_some() {
            return Err(Error::unsupported(
                "a descent without clipping on units of several rows",
                "declare one row to a unit, or release gradients",
            ));
        }
        if !(descent.ridge >= 0.0 && descent.ridge.is_finite()) {
            return Err(Error::domain("ridge", descent.ridge, "give a finite number of at least 0"));
        }
        let order =
            if descent.batch.is_some() { shuffled(self.data.slots(), &mut self.entropy.rng(Stream::Parts)?) } else { Vec::new() };
        let value = descent.run(self.data, self.engine, &order, tick)?;
        let size = ProblemSize {
            slots: self.data.slots(),
            rows_per_unit: 1,
            features: self.data.dimension,
            row_norm: self.data.row_norm,
            sparse: matches!(self.data.rows, crate::store::data::Rows::Sparse(_)),
        };
        let stability = descent.stability(&size);
        let claim = Theorem {
            reason: "each step moves what neighbours share by at most its factor, and one record by rate x bound / divisor",
            zero_out: stability.zero_out,
            replace_one: stability.replace_one,
        };
        Ok(Sensitive { value, run: self.id, part: None, claim: Some(claim), order_dependent: true })
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
        let fits = |distance: f64, reach: u64| (distance * longer / grid.unit).ceil() + rounding <= reach as f64;
        // A plan without a promise may do as published methods do; what it releases is marked as not private.
        let promised = !matches!(self.planned, Event::NotPrivate { .. });
        if promised && !(fits(theorem.zero_out, grid.reach.zero_out) && fits(theorem.replace_one, grid.reach.replace_one)) {
            return Err(Error::Mismatch { what: "the theorem needs a larger reach than the noise was drawn for" });
        }
        // Cut at the magnitude: a projection, so distances do not grow, and the grid resolves every double that is left.
        let mut values: Vec<i64> =
            value.value.iter().map(|v| (v.clamp(-grid.clip, grid.clip) / grid.unit).round() as i64).collect();
        values.resize(dimension, 0);
        let mut whole = self.whole(values, grid);
        whole.origin.order_dependent = value.order_dependent;
        Ok(whole)
    }

    /// Joint privacy: what each unit computes for itself from a released message. It never becomes `Released`. A message is plain
    /// numbers: one with a lock or a cell in it could carry rows away.
    pub fn local<T>(&self, message: &Released<Vec<f64>>, compute: fn(&[f64], Unit<'_>) -> T) -> Local<Vec<Option<T>>> {
        let one = |slot| quietly(|| compute(&message.value, self.data.unit(slot)));
        let value = (0..self.data.slots()).map(one).collect();
        Local { value, data: self.data.id }
    }

    /// Ends the run. Nothing is released unless executed fits in planned; a simulation is marked as not private.
    pub fn close<T>(self, out: T) -> Result<Released<T>> {
        self.same_process()?;
        self.record.fits(&self.planned)?;
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
fn facts<N: Norm>(grid: crate::mechanism::Grid, event: Event, rate: Option<f64>) -> Facts {
    let event = rate.map_or(event.clone(), |rate| event.sampled(rate));
    Facts { what: grid.kind.name(), norm: N::NAME, reach: grid.reach, event, unit: grid.unit }
}

/// The event of a full-batch or sampled Gaussian step, for plans.
pub fn planned_step(mechanism: &Gaussian, dimension: usize, rate: Option<Rate>) -> Event {
    let event = mechanism.event(dimension);
    match rate {
        None => event,
        Some(rate) => event.sampled(rate.value()),
    }
}

/// Public sizes of a minimisation, before data are opened.
#[derive(Clone, Copy, Debug)]
pub struct ProblemSize {
    /// Units.
    pub slots: usize,
    /// Most rows of one unit.
    pub rows_per_unit: usize,
    /// Features of a row.
    pub features: usize,
    /// Bound on the norm of a row.
    pub row_norm: f64,
    /// Whether rows are index-value pairs.
    pub sparse: bool,
}

impl ProblemSize {
    /// Smallest tolerance that `Run::minimize` accepts, and a bound on the length of what it returns.
    pub fn limits(&self, loss: &Loss, ridge: f64, linear: Option<LinearTerm>) -> (f64, f64) {
        let dimension = self.features * loss.outputs;
        let linear_bound = linear.map_or(0.0, |l| l.longest(loss, self.row_norm, dimension));
        let linear_grid = linear.map_or(0.0, |l| l.grid(loss, self.row_norm, dimension));
        let limits = crate::query::minimise::Limits { size: *self, loss, ridge, linear_bound, linear_grid };
        (4.0 * limits.floor(), limits.radius())
    }
}
