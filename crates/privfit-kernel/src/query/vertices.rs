//! Scores of the vertices of an L1 ball or simplex along a Frank-Wolfe path, kept up to date instead of summed anew: a step costs
//! about the non-zero cells of the rows that it touches, not of all rows, and a choice does not look at every vertex
//! (`bucket_sampler.rs`).
//!
//! *What it computes.* The score of coordinate j is minus the sum over records of q_i x_ij: q_i the record's derivative as an integer,
//! clipped at the derivative limit, x_ij its cell clipped at the cap, as in `Batch::gradient_scores`. Scores change by integer differences
//! only, so at every moment they are exactly the sums for the derivatives as they are. Derivatives may be stale:
//!
//! 1. After a move w <- (1 - m) w + m s to the vertex s = +-c e_j the rows with a cell in column j get a new margin and a new
//!    derivative.
//! 2. The factor 1 - m changes every margin. Margins are kept as shrink x raw margin, and only where the product of the factors
//!    since the last time falls below `FRESH`, all margins are computed again from the weights and all derivatives from the margins.
//!    That happens at every step as long as steps are large, and for m = 2/(t+2) about 2 ln T / ln(1/FRESH) times in T steps.
//!    Margins come from the columns with a non-zero weight, so that a row which no chosen vertex has met costs one derivative and no
//!    cell.
//! 3. A new derivative within 1/`PATIENCE` of the derivative limit of the one in force is not put in force. Late steps are short, and a
//!    column that most rows have would cost all rows each time. (With 1024 in its place, or none, the loss reached was the same in
//!    our trials.)
//!
//! *Privacy.* All three rules look at one record's own row and label, and at public numbers: the start, the chosen vertices, the
//! step sizes. So q_i is a function of record i and of what was released, stale or not, never of another record. One record's part
//! of every score is then at most derivative limit x cap = the bound of the grid; replaced by another record it moves a score by at
//! most twice that. This is the sensitivity for which `Exponential::event` was made, and each choice is that event, admitted by the run
//! before it is drawn. What is done in floating point (margins, derivatives) is done for each record by itself, so its rounding is part
//! of q_i; that losses treat each row of a block by itself is tested for every loss, here as in `gradient.rs`.
//!
//! The column index and all that is kept are made of rows: they stay in here, and nothing reads a score. Time depends on data, as
//! in all passes over sparse rows; that of a choice too, see `bucket_sampler.rs`.

use crate::account::Event;
use crate::audit::{Facts, Out};
use crate::batch::Batch;
use crate::engine::{Needs, Seam};
use crate::error::disagree;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::loss::Loss;
use crate::mechanism::{Exponential, Sensitivity};
use crate::memory::zeros;
use crate::norm::{LInf, Norm};
use crate::query::gradient::DerivativeGrid;
use crate::rng::{Stream, Words};
use crate::run::Query;
use crate::run::Run;
use crate::sampling::bucket_sampler::BucketSampler;
use crate::store::dataset::Dataset;
use crate::store::rows::{Columns, TILE};
use std::sync::Arc;

/// All derivatives are renewed when margins have shrunk by this since they were.
const FRESH: f64 = 0.85;
/// A derivative stays in force until it is off by more than the derivative limit over this.
const PATIENCE: u16 = 256;

/// Scores of vertices, held by the kernel between the steps of one path. No Debug, no Clone, no way to a score.
pub struct VertexScores<'d> {
    data: &'d Dataset,
    columns: Columns,
    loss: Loss,
    grid: DerivativeGrid,
    event: Event,
    sensitivity: Sensitivity,
    pub(crate) run: u64,
    /// Minus the gradient: the score of the positive vertex.
    bucket_sampler: BucketSampler,
    /// Changes of scores by the rows of this process that are not in the bucketed sampler yet, and which are not 0.
    change: Vec<i64>,
    changed: Vec<u32>,
    seam: Arc<Seam<'d>>,
    /// Derivatives in force.
    derivatives: Vec<i16>,
    /// Times `shrink`: the margins.
    margins: Vec<f64>,
    /// Times `shrink`: the weights. Public.
    weights: Vec<f64>,
    /// Coordinates with a weight, ascending. Public.
    support: Vec<u32>,
    shrink: f64,
    fresh: f64,
    patience: u16,
}

/// Opens the scores of the vertices of a polytope along a path from `start`, for sparse rows and a loss of one output. They are of all records;
/// the mechanism must come from `Exponential::for_gradients`.
pub struct ScoreVertices<'a, 'd> {
    /// Everyone.
    pub on: &'a Batch<'d>,
    /// Of each choice.
    pub mechanism: &'a Exponential,
    /// The loss.
    pub loss: &'a Loss,
    /// Positive vertices only.
    pub simplex: bool,
    /// Weights at the start; public.
    pub start: &'a [f64],
}

impl<'d> Query<'d> for ScoreVertices<'_, 'd> {
    type Output = VertexScores<'d>;

    fn execute(self, run: &mut Run<'d>) -> Result<VertexScores<'d>> {
        if self.on.run != run.id {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        VertexScores::new(self.on, self.mechanism, self.loss, self.simplex, self.start)
    }
}

/// Chooses a vertex by the exponential mechanism: a coordinate, and whether the negative one.
pub struct ChooseVertex<'a, 'd> {
    /// The scores.
    pub scores: &'a VertexScores<'d>,
}

impl<'d> Query<'d> for ChooseVertex<'_, 'd> {
    type Output = (usize, bool);

    fn execute(self, run: &mut Run<'d>) -> Result<(usize, bool)> {
        let scores = self.scores;
        if scores.run != run.id {
            return Err(Error::Mismatch { what: "the scores belong to another run" });
        }
        run.record.admit(&run.planned, scores.event(), 1)?;
        let (coordinate, negative) = scores.choose(&mut run.entropy.rng(Stream::Noise)?);
        let agreed = run.seam.agree(&[coordinate as u64, u64::from(negative)])?;
        let [coordinate, negative] = agreed[..] else { return Err(disagree()) };
        let (coordinate, negative) = (coordinate as usize, negative == 1);
        let facts = || Facts {
            what: "choice of a vertex",
            norm: LInf::NAME,
            sensitivity: scores.sensitivity(),
            event: scores.event(),
            unit: 1.0,
        };
        Ok(match run.on_release(facts, scores.scores(), Out::Vertex(coordinate, negative)) {
            Out::Vertex(coordinate, negative) => (coordinate, negative),
            _ => (coordinate, negative),
        })
    }
}

impl<'d> VertexScores<'d> {
    fn new(on: &Batch<'d>, mechanism: &Exponential, loss: &Loss, simplex: bool, start: &[f64]) -> Result<VertexScores<'d>> {
        let (data, grid) = (on.data, &mechanism.grid);
        let derivative_grid = on.score_derivatives(grid, loss)?;
        if loss.outputs != 1 {
            return Err(Error::unsupported("scores of vertices for several outputs", "use gradient_scores"));
        }
        if !on.chosen.is_all() || on.origin.rate.is_some() {
            return Err(Error::Mismatch { what: "scores of vertices are kept for all records: use everyone()" });
        }
        if !data.is_sparse() {
            return Err(Error::unsupported("scores of vertices for dense rows", "use gradient_scores"));
        }
        on.seam.needs(Needs::Totals)?;
        let (n, d) = (data.unit_count(), data.dimension);
        if start.len() != d {
            return Err(Error::Mismatch { what: "the number of weights is not the number of features" });
        }
        let mut scores = VertexScores {
            data,
            columns: data.columns(),
            loss: loss.clone(),
            grid: derivative_grid,
            event: mechanism.event(),
            sensitivity: mechanism.grid.sensitivity,
            run: on.run,
            bucket_sampler: BucketSampler::new(vec![0], grid.bits, !simplex),
            change: vec![0; d],
            changed: Vec::new(),
            seam: on.seam.clone(),
            derivatives: zeros(n),
            margins: zeros(n),
            weights: start.to_vec(),
            support: (0..d as u32).filter(|j| start[*j as usize] != 0.0).collect(),
            shrink: 1.0,
            fresh: FRESH,
            patience: derivative_grid.limit.unsigned_abs() / PATIENCE,
        };
        scores.measure();
        let mut sums = vec![0i64; d];
        let mut block = [0u32; TILE];
        for first in (0..n).step_by(TILE) {
            let block = &mut block[..TILE.min(n - first)];
            block.iter_mut().zip(first as u32..).for_each(|(b, row)| *b = row);
            let derivatives = scores.derivatives_of(block);
            for (row, derivative) in block.iter().zip(derivatives) {
                scores.derivatives[*row as usize] = derivative;
                each_part(data, derivative_grid, *row, -i64::from(derivative), |j, part| sums[j] += part);
            }
        }
        scores.bucket_sampler = BucketSampler::new(on.seam.collect(sums)?, grid.bits, !simplex);
        Ok(scores)
    }

    /// What one choice costs.
    pub(crate) fn event(&self) -> Event {
        self.event.clone()
    }

    /// A coordinate, and whether its negative vertex.
    pub(crate) fn choose(&self, words: &mut impl Words) -> (usize, bool) {
        self.bucket_sampler.draw(words)
    }

    /// Moves the weights part of the way to the vertex at a coordinate, which may be negative. Public numbers.
    pub fn step(&mut self, coordinate: usize, vertex: f64, part: f64) -> Result<()> {
        if coordinate >= self.weights.len() || !vertex.is_finite() || !(0.0..=1.0).contains(&part) {
            return Err(Error::Mismatch { what: "a step goes from 0 to 1 of the way to a finite vertex of the polytope" });
        }
        if let Err(place) = self.support.binary_search(&(coordinate as u32)) {
            self.support.insert(place, coordinate as u32);
        }
        let shrink = self.shrink * (1.0 - part);
        if shrink < self.fresh {
            for j in &self.support {
                self.weights[*j as usize] *= shrink;
            }
            self.weights[coordinate] += part * vertex;
            self.shrink = 1.0;
            self.measure();
            self.renew(0..self.derivatives.len() as u32);
            return self.settle();
        }
        self.shrink = shrink;
        let by = part * vertex / shrink;
        self.weights[coordinate] += by;
        let by = by * self.data.row_norm / ROW_LIMIT as f64;
        let (rows, cells) = self.columns.column(coordinate);
        for (row, cell) in rows.iter().zip(cells) {
            self.margins[*row as usize] += by * f64::from(*cell);
        }
        let rows = rows.to_vec();
        self.renew(rows.into_iter());
        self.settle()
    }

    /// Puts the changes of all processes in the bucketed sampler, in the order of coordinates: which rows belong to which process changes nothing.
    fn settle(&mut self) -> Result<()> {
        if self.seam.divided() {
            let zero = vec![0i64; self.change.len()];
            let total = self.seam.collect(std::mem::replace(&mut self.change, zero))?;
            self.changed.clear();
            total.iter().enumerate().filter(|(_, by)| **by != 0).for_each(|(j, by)| self.bucket_sampler.add(j, *by));
            return Ok(());
        }
        self.changed.sort_unstable();
        for j in self.changed.drain(..) {
            let by = std::mem::take(&mut self.change[j as usize]);
            if by != 0 {
                self.bucket_sampler.add(j as usize, by);
            }
        }
        Ok(())
    }

    /// The weights after the steps so far: a function of the start and the steps alone.
    pub fn weights(&self) -> Vec<f64> {
        self.weights.iter().map(|w| w * self.shrink).collect()
    }

    /// Other rules for when a derivative is renewed: public numbers, for tests.
    #[cfg(test)]
    pub(crate) fn with_rules(mut self, fresh: f64, patience: u16) -> VertexScores<'d> {
        (self.fresh, self.patience) = (fresh, patience);
        self
    }

    /// The scores as they are, for audits.
    pub(crate) fn scores(&self) -> &[i64] {
        #[cfg(test)]
        self.bucket_sampler.check();
        self.bucket_sampler.scores()
    }

    /// How far one record moves a score.
    pub(crate) fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// Derivatives in force, margins from scratch, and the derivative limit.
    #[cfg(test)]
    pub(crate) fn derivatives(&self) -> (&[i16], Vec<f64>, f64) {
        let weights = self.weights();
        let margin = |unit_index: usize| self.data.unit(unit_index).dot(0, &weights);
        (&self.derivatives, (0..self.derivatives.len()).map(margin).collect(), f64::from(self.grid.limit))
    }

    /// Margins of all rows from the weights, in the order and precision of `gradient_scores`.
    fn measure(&mut self) {
        let unit = self.data.row_norm / ROW_LIMIT as f64;
        let mut margins = zeros::<f32>(self.derivatives.len());
        for j in &self.support {
            let weight = (self.weights[*j as usize] * unit) as f32;
            let (rows, cells) = self.columns.column(*j as usize);
            for (row, cell) in rows.iter().zip(cells) {
                margins[*row as usize] += f32::from(*cell) * weight;
            }
        }
        self.margins.iter_mut().zip(&margins).for_each(|(m, x)| *m = f64::from(*x));
    }

    /// Derivatives of at most a block of rows at their margins.
    fn derivatives_of(&self, rows: &[u32]) -> [i16; TILE] {
        let (mut margins, mut labels, mut derivatives) = ([0f32; TILE], [0f32; TILE], [0f32; TILE]);
        for (i, row) in rows.iter().enumerate() {
            margins[i] = (self.margins[*row as usize] * self.shrink) as f32;
            labels[i] = self.data.labels[*row as usize];
        }
        let (n, mut out) = (rows.len(), [0i16; TILE]);
        self.grid.of_rows(&self.loss, &margins[..n], &labels[..n], &mut derivatives[..n], &mut out[..n]);
        out
    }

    /// Puts the derivatives of these rows in force, where they differ from those that are.
    fn renew(&mut self, mut rows: impl Iterator<Item = u32>) {
        let mut block = [0u32; TILE];
        loop {
            let mut n = 0;
            block.iter_mut().zip(&mut rows).for_each(|(b, row)| {
                *b = row;
                n += 1;
            });
            let derivatives = self.derivatives_of(&block[..n]);
            for (row, derivative) in block[..n].iter().zip(derivatives) {
                let old = self.derivatives[*row as usize];
                if derivative.abs_diff(old) > self.patience {
                    self.derivatives[*row as usize] = derivative;
                    let by = i64::from(old) - i64::from(derivative);
                    each_part(self.data, self.grid, *row, by, |j, part| {
                        if self.change[j] == 0 {
                            self.changed.push(j as u32);
                        }
                        self.change[j] += part;
                    });
                }
            }
            if n < TILE {
                return;
            }
        }
    }
}

/// Calls with each coordinate of a row and factor x cell, cells clipped at the cap.
#[inline]
fn each_part(data: &Dataset, grid: DerivativeGrid, row: u32, factor: i64, mut f: impl FnMut(usize, i64)) {
    let cap = grid.cap.unwrap_or(i16::MAX);
    data.table().each(row as usize, |j, x| f(j, factor * i64::from(x.clamp(-cap, cap))));
}
