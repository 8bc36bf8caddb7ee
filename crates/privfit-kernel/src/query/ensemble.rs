//! Models on parts of the records: one unit is in one part, and changes one of them.

use super::contribution::Learner;
use crate::batch::Batch;
use crate::engine::Needs;
use crate::error::{Error, Result};
use crate::mechanism::GridKind;
use crate::memory::grow;
use crate::norm::{L2, LInf};
use crate::quiet::quietly;
use crate::rng::{Stream, indexed};
use crate::run::Query;
use crate::run::Run;
use crate::store::dataset::Unit;
use crate::value::{Bounded, Noise, Sensitive, Theorem};

/// A model as index-value pairs.
pub type SparseModel = Vec<(u32, f64)>;

/// Trains a model on each part, on the threads of the engine; they stay inside of the kernel. A learner that panics leaves no model, and nobody
/// hears of it.
pub struct Train<'a, 'd, M> {
    /// The parts.
    pub parts: &'a [Batch<'d>],
    /// How.
    pub learner: &'a Learner<M>,
    /// Called for each model.
    pub progress: &'a dyn Fn(),
}

impl<'d, M: Send> Query<'d> for Train<'_, 'd, M> {
    type Output = Vec<Sensitive<Option<M>>>;

    fn execute(self, run: &mut Run<'d>) -> Result<Vec<Sensitive<Option<M>>>> {
        run.seam.needs(Needs::Records)?;
        if self.parts.iter().any(|part| part.run != run.id) {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        let key = run.seam.key(run.entropy, Stream::Unit)?;
        let (parts, learner, threads) = (self.parts, self.learner, run.seam.threads());
        let train = |number: usize| {
            let part = &parts[number];
            let mut own = Vec::new();
            part.chosen.each(0..part.data.unit_count(), |unit_index| {
                grow(&mut own, 1);
                own.push(unit_index);
            });
            let mut units = own.into_iter().map(|unit_index| part.data.unit(unit_index));
            let units: &mut dyn Iterator<Item = Unit<'_>> = &mut units;
            quietly(|| (learner.train)(&learner.parameters, units, &mut indexed(&key, number as u64)))
        };
        let mut models = Vec::with_capacity(parts.len());
        let together = 4 * threads.count();
        for first in (0..parts.len()).step_by(together) {
            let some = threads.map(first..parts.len().min(first + together), &train);
            some.iter().for_each(|_| (self.progress)());
            models.extend(some);
        }
        let sensitive = |(value, part): (Option<M>, &Batch<'d>)| Sensitive {
            value,
            run: run.id,
            part: part.origin.part,
            claim: None,
            order_dependent: false,
        };
        Ok(models.into_iter().zip(parts).map(sensitive).collect())
    }
}

/// Counts of labels that models on parts give to a point (mechanism: `Gaussian::for_votes`).
pub struct Votes<'a, 'id, M> {
    /// The noise of the release.
    pub noise: &'a Noise<'id, L2>,
    /// The models.
    pub models: &'a [Sensitive<Option<M>>],
    /// A model's label of a point.
    pub label: fn(&M, &[f32]) -> u32,
    /// The point; public.
    pub point: &'a [f32],
}

impl<'id, M> Query<'_> for Votes<'_, 'id, M> {
    type Output = Bounded<'id, L2>;

    fn execute(self, run: &mut Run<'_>) -> Result<Bounded<'id, L2>> {
        let grid = self.noise.grid;
        if grid.kind != GridKind::Votes || self.noise.run != run.id {
            return Err(Error::Mismatch { what: "votes need noise of this run from Gaussian::for_votes" });
        }
        run.seam.needs(Needs::Records)?;
        run.of_one_partition(self.models)?;
        let mut counts = vec![0i64; self.noise.values.len()];
        for model in self.models {
            let call = || model.value.as_ref().map_or(usize::MAX, |m| (self.label)(m, self.point) as usize);
            let vote = quietly(call).unwrap_or(usize::MAX);
            if let Some(unit_index) = counts.get_mut(vote) {
                *unit_index = unit_index.wrapping_add(grid.bound as i64);
            }
        }
        Ok(run.from_all_records(counts, grid))
    }
}

/// Counts of votes for coordinates, by models on parts (mechanism: `Exponential::for_votes`). A model has one vote for each coordinate that it
/// names; one that panicked has none.
pub struct SupportVotes<'a, 'id> {
    /// The randomness of the choice.
    pub arrival_times: &'a Noise<'id, LInf>,
    /// The models.
    pub models: &'a [Sensitive<Option<SparseModel>>],
}

impl<'id> Query<'_> for SupportVotes<'_, 'id> {
    type Output = Bounded<'id, LInf>;

    fn execute(self, run: &mut Run<'_>) -> Result<Bounded<'id, LInf>> {
        let grid = self.arrival_times.grid;
        if grid.kind != GridKind::VoteScores || self.arrival_times.run != run.id {
            return Err(Error::Mismatch {
                what: "votes for coordinates need arrival times of this run from Exponential::for_votes",
            });
        }
        run.seam.needs(Needs::Records)?;
        run.of_one_partition(self.models)?;
        if self.models.len() as f64 * grid.bound as f64 >= 2f64.powi(62) {
            return Err(Error::Mismatch { what: "so many votes do not fit in 64 bits: use fewer parts" });
        }
        let mut counts = vec![0i64; self.arrival_times.values.len()];
        for model in self.models {
            let mut named: Vec<u32> = model.value.iter().flatten().map(|p| p.0).collect();
            named.sort_unstable();
            named.dedup();
            for coordinate in named {
                if let Some(count) = counts.get_mut(coordinate as usize) {
                    *count += grid.bound as i64;
                }
            }
        }
        Ok(run.from_all_records(counts, grid))
    }
}

/// Average of the models of all parts, each clipped to a ball. One unit is in one part, whose model may change altogether, under every adjacency
/// alike: the average moves by at most 2 radius / parts. Halving that for zero-out would be wrong. A model that is missing or not finite is the
/// zero vector.
pub struct Average {
    /// The models.
    pub models: Vec<Sensitive<Option<SparseModel>>>,
    /// Of the ball.
    pub radius: f64,
    /// Coordinates of a model.
    pub dimension: usize,
}

impl Query<'_> for Average {
    type Output = Sensitive<Vec<f64>>;

    fn execute(self, run: &mut Run<'_>) -> Result<Sensitive<Vec<f64>>> {
        run.seam.needs(Needs::Records)?;
        run.of_one_partition(&self.models)?;
        if self.models.is_empty() || !(self.radius > 0.0 && self.radius.is_finite()) {
            return Err(Error::domain("radius", self.radius, "give a positive radius, and at least one model"));
        }
        let parts = self.models.len() as f64;
        let mut mean = vec![0f64; self.dimension];
        for model in self.models {
            let mut model = model.value.unwrap_or_default();
            model.retain(|p| (p.0 as usize) < self.dimension);
            model.sort_by_key(|p| p.0);
            model.dedup_by_key(|p| p.0);
            let largest = model.iter().fold(0.0f64, |m, p| m.max(p.1.abs()));
            if !model.iter().all(|p| p.1.is_finite()) || largest == 0.0 {
                continue;
            }
            let length = largest * model.iter().map(|p| (p.1 / largest).powi(2)).sum::<f64>().sqrt();
            let factor = (self.radius / length).min(1.0) / parts;
            model.iter().for_each(|(i, x)| mean[*i as usize] += x * factor);
        }
        // Float errors: of each model's factor, and of sums of so many terms of at most self.radius / parts.
        let apart = 2.0 * self.radius / parts * (1.0 + 1e-8) + 4.0 * parts * f64::EPSILON * self.radius;
        let claim = Theorem {
            reason: "one unit changes the model of one part, and each model lies in a ball: 2 radius / parts",
            zero_out: apart,
            replace_one: apart,
        };
        Ok(Sensitive { value: mean, run: run.id, part: None, claim: Some(claim), order_dependent: false })
    }
}
