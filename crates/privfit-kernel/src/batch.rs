//! The records that take part in a step, and the sums over them.

use crate::engine::{Pass, Seam};
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::mechanism::{Grid, GridKind, ROW_LIMIT};
use crate::norm::{L2, LInf, Norm, quantise};
use crate::query::contribution::{Contribution, Draw, Sink, StatefulContribution};
use crate::query::gradient::{DerivativeGrid, add_gradients};
use crate::query::unit_state::UnitState;
use crate::quiet::quietly;
use crate::store::dataset::Dataset;
use crate::store::memory::zeros;
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
            Chosen::Marks(marks) => range.filter(|slot| marks[*slot]).for_each(f),
            Chosen::Listed(list) => {
                let at = |slot: usize| list.partition_point(|s| *s < slot);
                list[at(range.start)..at(range.end)].iter().copied().for_each(f);
            }
        }
    }

    /// A mark for each of so many; none if all take part.
    pub(crate) fn marks(&self, slots: usize) -> Option<Cow<'_, [bool]>> {
        match self {
            Chosen::All => None,
            Chosen::Marks(marks) => Some(Cow::Borrowed(marks)),
            Chosen::Listed(list) => {
                let mut marks = zeros::<bool>(slots);
                list.iter().for_each(|slot| marks[*slot] = true);
                Some(Cow::Owned(marks))
            }
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

    /// Sum of clipped contributions, each put on the grid and checked there by itself.
    pub fn sum<'id, N: Norm>(&self, noise: &Noise<'id, N>, contribution: &Contribution) -> Result<Bounded<'id, N>> {
        self.clipped_sum(noise, contribution.dimension, &|slot, sink| {
            let mut draw = Draw { key: &self.unit_key, index: (self.data.first + slot) as u64 };
            (contribution.add)(&contribution.parameters, self.data.unit(slot), &mut draw, sink);
        })
    }

    /// The same for contributions that read the state of their unit; a unit without one adds nothing.
    pub fn sum_with<'id, N: Norm>(
        &self,
        noise: &Noise<'id, N>,
        contribution: &StatefulContribution,
        state: &UnitState,
    ) -> Result<Bounded<'id, N>> {
        if state.data != self.data.id {
            return Err(Error::Mismatch { what: "these states belong to other records" });
        }
        self.clipped_sum(noise, contribution.dimension, &|slot, sink| {
            if let Some(own) = state.of(slot) {
                (contribution.add)(&contribution.parameters, self.data.unit(slot), own, sink);
            }
        })
    }

    fn clipped_sum<'id, N: Norm>(
        &self,
        noise: &Noise<'id, N>,
        dimension: usize,
        add_unit: &(dyn Fn(usize, &mut Sink<'_>) + Sync),
    ) -> Result<Bounded<'id, N>> {
        let kinds = [GridKind::Clipped, GridKind::Spherical { dimension }, GridKind::Scores];
        let grid = self.grid(noise, dimension, &kinds)?;
        let in_l2 = grid.kind == GridKind::Spherical { dimension };
        let per_unit = 1.0 / grid.unit;
        let add = |range: Range<usize>, out: &mut [i64]| {
            let mut values = vec![0f64; dimension];
            let mut marks = vec![false; dimension];
            let mut touched = Vec::new();
            let (mut compact, mut integers) = (Vec::new(), Vec::new());
            self.chosen.each(range, |slot| {
                let mut sink = Sink { values: &mut values, touched: &mut touched, marks: &mut marks };
                let calm = quietly(|| add_unit(slot, &mut sink)).is_some();
                compact.clear();
                // A panic is the record's doing: its contribution becomes zero, and nobody hears of it.
                compact.extend(touched.iter().map(|&i| if calm { values[i] } else { 0.0 }));
                if in_l2 {
                    quantise::<L2>(&mut compact, grid.clip, per_unit, grid.bound, &mut integers);
                } else {
                    quantise::<N>(&mut compact, grid.clip, per_unit, grid.bound, &mut integers);
                }
                for (&i, z) in touched.iter().zip(&integers) {
                    out[i] = out[i].wrapping_add(*z);
                    values[i] = 0.0;
                    marks[i] = false;
                }
                touched.clear();
            });
        };
        Ok(self.finish(self.share(1, dimension, &add), grid))
    }

    /// This process's part of a sum.
    pub(crate) fn share(&self, granule: usize, dimension: usize, add: &(dyn Fn(Range<usize>, &mut [i64]) + Sync)) -> Vec<i64> {
        self.seam.share(&Pass { slots: self.data.slots(), granule, add }, dimension)
    }

    /// Sum of gradients of a linear model with weights output after output; the mechanism must come from
    /// `Gaussian::for_gradients` with clip = loss constant x row norm. One row to a unit: derivative times row on 16-bit integers.
    /// Several: the unit's gradient is summed in f64, then clipped.
    pub fn gradient_sum<'id>(&self, noise: &Noise<'id, L2>, weights: &[f64], loss: &Loss) -> Result<Bounded<'id, L2>> {
        loss.validate()?;
        let dimension = self.data.dimension * loss.outputs;
        let grid = self.grid(noise, dimension, &[GridKind::Gradient])?;
        if weights.len() != dimension {
            return Err(Error::Mismatch { what: "the number of weights is not features x outputs" });
        }
        if self.data.units.is_some() {
            return Ok(self.finish(self.unit_gradients(&grid, weights, loss), grid));
        }
        let clip = loss.lipschitz * self.data.row_norm;
        let derivatives = DerivativeGrid::new(loss, &grid, ROW_LIMIT).filter(|_| (grid.clip / clip - 1.0).abs() < 1e-9);
        let Some(derivatives) = derivatives else {
            return Err(Error::Mismatch {
                what: "16-bit gradients need Gaussian::for_gradients with clip = loss constant x row norm",
            });
        };
        let marks = self.chosen.marks(self.data.slots());
        let add = |range: Range<usize>, out: &mut [i64]| {
            add_gradients(self.data, range, marks.as_deref(), weights, loss, derivatives, out);
        };
        Ok(self.finish(self.share(1, dimension, &add), grid))
    }

    /// Scores for a choice among corners: first the negative gradient, coordinate after coordinate, then the gradient, so that the
    /// highest score is the coordinate and sign along which the loss falls most. The mechanism must come from
    /// `Exponential::for_gradients`. A derivative, and a cell, are cut on the integers by themselves, one row to a unit.
    pub fn gradient_scores<'id>(&self, clocks: &Noise<'id, LInf>, weights: &[f64], loss: &Loss) -> Result<Bounded<'id, LInf>> {
        // One score for each coordinate leaves out the negative corners.
        let signs = if clocks.values.len() == self.data.dimension * loss.outputs { 1 } else { 2 };
        let (total, grid) = self.capped_gradient(clocks, signs, weights, loss)?;
        let down = total.iter().map(|g| g.wrapping_neg());
        let scores = if signs == 2 { down.chain(total.iter().copied()).collect() } else { down.collect() };
        let mut out = self.finish(scores, grid);
        out.mirrored = signs == 2;
        Ok(out)
    }

    /// The gradient plus a public vector, coordinate after coordinate, in the same way: for a choice of the largest ones in size
    /// (`Run::choose_largest`), whose values may then be released.
    pub fn gradient_coordinates<'id>(
        &self,
        clocks: &Noise<'id, LInf>,
        weights: &[f64],
        loss: &Loss,
        plus: &[f64],
    ) -> Result<Bounded<'id, LInf>> {
        let (mut total, grid) = self.capped_gradient(clocks, 1, weights, loss)?;
        if plus.len() != total.len() {
            return Err(Error::Mismatch { what: "the public vector has another length than the gradient" });
        }
        // Both below 2^61: comparisons of sizes must not see a sum that wrapped. What is public is added once.
        let cut = 2f64.powi(61);
        if self.seam.leads() {
            total.iter_mut().zip(plus).for_each(|(t, p)| *t += (p / grid.unit).round().max(-cut).min(cut) as i64);
        }
        Ok(self.finish(total, grid))
    }

    /// Sum of derivative x cell, both cut on the integers.
    fn capped_gradient(&self, clocks: &Noise<'_, LInf>, signs: usize, weights: &[f64], loss: &Loss) -> Result<(Vec<i64>, Grid)> {
        let derivatives = self.score_derivatives(&clocks.grid, loss)?;
        let dimension = self.data.dimension * loss.outputs;
        let grid = self.grid(clocks, signs * dimension, &[clocks.grid.kind])?;
        if weights.len() != dimension {
            return Err(Error::Mismatch { what: "the number of weights is not features x outputs" });
        }
        let marks = self.chosen.marks(self.data.slots());
        let add = |range: Range<usize>, out: &mut [i64]| {
            add_gradients(self.data, range, marks.as_deref(), weights, loss, derivatives, out);
        };
        Ok((self.share(1, dimension, &add), grid))
    }

    /// How derivatives become integers in scores that are gradients, if the grid was made for them, for this loss and for these rows.
    pub(crate) fn score_derivatives(&self, grid: &Grid, loss: &Loss) -> Result<DerivativeGrid> {
        loss.validate()?;
        let GridKind::GradientScores { cap } = grid.kind else {
            return Err(Error::Mismatch { what: "scores that are gradients need Exponential::for_gradients" });
        };
        if self.data.units.is_some() {
            return Err(Error::unsupported("scores of units with several rows", "declare one row to a unit"));
        }
        let clip = loss.lipschitz * self.data.row_norm * cap as f64 / ROW_LIMIT as f64;
        let derivatives = DerivativeGrid::new(loss, grid, cap).filter(|_| (grid.clip / clip - 1.0).abs() < 1e-9);
        derivatives.ok_or(Error::Mismatch { what: "Exponential::for_gradients was made for another loss or row norm" })
    }

    fn unit_gradients(&self, grid: &Grid, weights: &[f64], loss: &Loss) -> Vec<i64> {
        let (d, k) = (self.data.dimension, loss.outputs);
        let add = |range: Range<usize>, out: &mut [i64]| {
            let mut sum = vec![0f64; d * k];
            let (mut scores, mut derivatives) = (vec![0f64; k], vec![0f64; k]);
            let mut integers = Vec::new();
            self.chosen.each(range, |slot| {
                let unit = self.data.unit(slot);
                sum.fill(0.0);
                for row in 0..unit.rows() {
                    for o in 0..k {
                        scores[o] = unit.dot(row, &weights[o * d..(o + 1) * d]);
                    }
                    loss.bounded_derivatives(&scores, &[unit.label(row)], &mut derivatives);
                    for (o, s) in derivatives.iter().enumerate() {
                        unit.each(row, |j, x| sum[o * d + j] += s * x);
                    }
                }
                quantise::<L2>(&mut sum, grid.clip, 1.0 / grid.unit, grid.bound, &mut integers);
                out.iter_mut().zip(&integers).for_each(|(o, z)| *o = o.wrapping_add(*z));
            });
        };
        self.share(1, d * k, &add)
    }
}
