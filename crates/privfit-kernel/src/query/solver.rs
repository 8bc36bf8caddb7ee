//! Minimisation with a certificate: the proof rests on the gradient at the end, not on the solver.
//!
//! Derivatives in f64 on the fixed-point rows, f64 sums inside of blocks of 1024 units cut by unit index, block sums rounded to a
//! public grid and added as integers: every engine gives the same bits. The certified gradient norm is the measured one plus a
//! floor for this rounding; without the floor a tolerance could be claimed that the arithmetic cannot reach.

use crate::engine::{Pass, TASK};
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::query::block_gradient::BlockGradient;
use crate::query::precondition::Preconditioner;
use crate::query::problem::{Objective, Problem, ProblemSize};
use crate::store::rows::padded;

/// Pairs that the quasi-Newton method remembers.
const MEMORY: usize = 20;

/// Distance in scores over which curvature is averaged at first.
const WIDE: f64 = 0.25;

/// Where a walk ended.
struct Path {
    theta: Vec<f64>,
    gradient: Vec<f64>,
    matrix: Option<Preconditioner>,
    arrived: bool,
}

/// Units in a floating-point block.
pub(crate) const BLOCK: usize = 1024;

/// What is known about a minimisation before data are opened: how fine sums are, how far the solver goes, how exact it can be.
pub(crate) struct Limits<'a> {
    pub(crate) size: ProblemSize,
    pub(crate) loss: &'a Loss,
    pub(crate) ridge: f64,
    pub(crate) linear_bound: f64,
    /// One unit of the grid that the linear term lies on; 0 without one.
    pub(crate) linear_grid: f64,
}

impl Limits<'_> {
    /// Most rows that these units can have: public, unlike the number that they do have.
    fn rows(&self) -> f64 {
        (self.size.unit_count as f64 * self.size.rows_per_unit as f64).max(1.0)
    }

    /// Bits after the point of block sums: fewer if the sum of all rows would not fit.
    fn bits(&self) -> i32 {
        let largest = self.rows() * self.loss.lipschitz * self.size.row_norm;
        40.min((61.0 - largest.log2()).floor() as i32)
    }

    /// No iterate of the solver is longer than this, and the minimiser is at most half as long: there the objective is not above
    /// its value at zero, so that (ridge/2) r^2 - |linear| r <= rows x loss at zero; and its gradient is zero, so that
    /// ridge r <= rows x gradient bound + |linear|.
    pub(crate) fn radius(&self) -> f64 {
        let (rows, ridge, linear) = (self.rows(), self.ridge, self.linear_bound);
        let by_value = (linear + (linear * linear + 2.0 * ridge * rows * self.loss.at_zero).sqrt()) / ridge;
        let by_gradient = (rows * self.loss.lipschitz * self.size.row_norm + linear) / ridge;
        2.0 * by_value.min(by_gradient)
    }

    /// Bound on the error of a computed gradient at any point within the radius; public.
    pub(crate) fn floor(&self) -> f64 {
        self.floor_within(self.radius())
    }

    /// The same for points of at most this length.
    pub(crate) fn floor_within(&self, radius: f64) -> f64 {
        let d = (self.size.features * self.loss.outputs) as f64;
        let rows = self.rows();
        let blocks = (self.size.unit_count as f64 / BLOCK as f64).ceil();
        let (derivative, row) = (self.loss.lipschitz, self.size.row_norm);
        let rounding = d.sqrt() * blocks * 2f64.powi(-self.bits() - 1);
        // A score is off by u |theta| |x| for each of the additions behind one another: of one in 8 terms, and 12 more, for dense
        // rows, of every term for sparse ones. Its derivative is off by the smoothness times that, and by 16 u
        // of its own size, one more for each score of a row.
        let features = self.size.features as f64;
        let additions = if self.size.sparse { features + 4.0 } else { features / 8.0 + 14.0 };
        let score = additions * f64::EPSILON * radius * row;
        let derivatives =
            rows * row * (self.loss.smoothness * score + (16.0 + self.loss.outputs as f64) * f64::EPSILON * derivative);
        // Recursive sums of at most BLOCK x rows-per-unit terms.
        let sums = rows * derivative * row * (BLOCK as f64 * self.size.rows_per_unit as f64 + 4.0) * f64::EPSILON;
        let rest = 4.0 * f64::EPSILON * (self.ridge * radius + self.linear_bound + rows * derivative * row);
        // The proof is about a continuous linear term; the one on the grid is its rounding, and moves the gradient by as much.
        let grid = 0.5 * d.sqrt() * self.linear_grid;
        rounding + derivatives + sums + rest + grid
    }
}

impl Objective<'_> {
    pub(crate) fn dimension(&self) -> usize {
        self.data.dimension * self.problem.loss.outputs
    }

    pub(crate) fn limits(&self) -> Limits<'_> {
        Limits {
            size: ProblemSize::of(self.data),
            loss: self.problem.loss,
            ridge: self.problem.ridge,
            linear_bound: self.linear_bound,
            linear_grid: self.linear_grid,
        }
    }

    /// The sum of a pass over all records, the same bits on every engine.
    pub(crate) fn total(
        &self,
        granule: usize,
        length: usize,
        add: &(dyn Fn(std::ops::Range<usize>, &mut [i64]) + Sync),
    ) -> Result<Vec<i64>> {
        let mut share = vec![0i64; length];
        self.threads.sum(&Pass { unit_count: self.data.unit_count(), granule, task: TASK, add }, &mut share);
        match self.seam {
            None => Ok(share),
            Some(seam) => seam.collect(share),
        }
    }

    /// The gradient, the same bits on every engine.
    pub(crate) fn gradient(&self, theta: &[f64]) -> Result<Vec<f64>> {
        let (d, k) = (self.data.dimension, self.problem.loss.outputs);
        let scale = 2f64.powi(self.limits().bits());
        let cell = self.data.cell_unit() * scale;
        let wide = padded(d);
        let add = |range: std::ops::Range<usize>, out: &mut [i64]| {
            let mut sum = vec![0f64; wide * k];
            let mut block = BlockGradient::new(self.data, self.problem.loss, self.chosen, theta);
            let mut start = range.start;
            while start < range.end {
                let end = (start / BLOCK * BLOCK + BLOCK).min(range.end);
                sum.fill(0.0);
                block.add(start..end, &mut sum);
                for (out, sum) in out.chunks_mut(d).zip(sum.chunks(wide)) {
                    for (total, s) in out.iter_mut().zip(sum) {
                        *total = total.wrapping_add(nearest(s * cell));
                    }
                }
                start = end;
            }
        };
        let total = self.total(BLOCK, d * k, &add)?;
        let rest = theta.iter().zip(&self.linear);
        Ok(total.iter().zip(rest).map(|(t, (w, b))| *t as f64 / scale + self.problem.ridge * w + b).collect())
    }

    /// A point whose true gradient norm is at most the tolerance.
    pub(crate) fn solve(&self) -> Result<Vec<f64>> {
        let floor = self.limits().floor();
        let tolerance = self.problem.tolerance;
        if tolerance < 4.0 * floor {
            return Err(Error::domain(
                "tolerance",
                tolerance,
                "give at least four times the rounding floor of the gradient, or a larger ridge",
            ));
        }
        let radius = self.limits().radius();
        let certified = |theta: &[f64], g: &[f64]| norm(theta) <= radius && norm(g) + floor <= tolerance;
        // First on some of the rows, which costs little; then few passes over all of them are left.
        let zero = vec![0.0; self.dimension()];
        let (start, matrix) = match self.sample()? {
            // The diagonal of sparse rows does not depend on the point.
            None if self.data.is_sparse() => (zero.clone(), Preconditioner::at(self, &zero, WIDE)?),
            None => {
                let Path { theta, .. } =
                    self.walk(zero.clone(), Preconditioner::at(self, &zero, WIDE)?, radius, (3, 0.9), &certified)?;
                let matrix = Preconditioner::at(self, &theta, WIDE)?;
                (theta, matrix)
            }
            Some(some) => {
                let weight = self.data.total() as f64 / some.total() as f64;
                let small = Objective {
                    data: &some,
                    chosen: None,
                    threads: self.threads,
                    seam: None,
                    problem: Problem { ridge: self.problem.ridge / weight, ..self.problem },
                    linear: self.linear.iter().map(|b| b / weight).collect(),
                    linear_bound: self.linear_bound,
                    linear_grid: self.linear_grid,
                };
                let at = |theta: &[f64]| Preconditioner::at(&small, theta, WIDE);
                let first = norm(&small.gradient(&zero)?);
                let near = |part: f64| move |_: &[f64], g: &[f64]| norm(g) <= part * first;
                let path = small.walk(zero.clone(), at(&zero)?, radius, (20, 0.9), &near(1e-2))?;
                let path = small.walk(path.theta.clone(), at(&path.theta)?, radius, (40, 0.9), &near(1e-4))?;
                // The same curvature, for all rows.
                (path.theta, path.matrix.map(|m| m.times(weight)))
            }
        };
        // A diagonal says little about how long a step is, and what is learned from one that is far too long misleads the next ones.
        let enough = if matches!(matrix, Some(Preconditioner::Diagonal(_))) { 0.5 } else { 0.9 };
        let mut path = self.walk(start, matrix, radius, (200, enough), &certified)?;
        // Losses with sharp kinks: the curvature at the point itself, again and again, narrower and narrower.
        for round in 0..200 {
            if path.arrived {
                return Ok(path.theta);
            }
            let step = (WIDE * 0.25f64.powi(1 + round % 12)).max(1e-9);
            let matrix = Preconditioner::at(self, &path.theta, step)?;
            path = self.walk(path.theta, matrix, radius, (3, 0.3), &certified)?;
        }
        if path.arrived {
            return Ok(path.theta);
        }
        self.descend(path.theta, path.gradient, certified)
    }

    /// Limited-memory quasi-Newton with a search on the derivative along the line: the function is convex, so the derivative is monotone. A
    /// search ends where the derivative is `enough` of what it was.
    fn walk(
        &self,
        mut theta: Vec<f64>,
        mut matrix: Option<Preconditioner>,
        radius: f64,
        (steps, enough): (usize, f64),
        arrived: &dyn Fn(&[f64], &[f64]) -> bool,
    ) -> Result<Path> {
        let mut gradient = self.gradient(&theta)?;
        let mut pairs: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
        for _ in 0..steps {
            if arrived(&theta, &gradient) {
                return Ok(Path { theta, gradient, matrix, arrived: true });
            }
            let direction = two_loop(&gradient, &pairs, matrix.as_ref());
            let derivative = dot(&gradient, &direction);
            if !(derivative < 0.0) {
                if pairs.is_empty() && matrix.is_none() {
                    break;
                }
                pairs.clear();
                matrix = None;
                continue;
            }
            // The derivative is `derivative` at 0 and at `low` what `below` says; `high` is the nearest point where it was positive.
            let (mut low, mut below) = (0.0, derivative);
            let mut high: Option<(f64, f64)> = None;
            let mut t = if pairs.is_empty() && matrix.is_none() { (1.0 / norm(&gradient)).min(1.0) } else { 1.0 };
            let mut next = None;
            for _ in 0..40 {
                let at: Vec<f64> = theta.iter().zip(&direction).map(|(w, p)| w + t * p).collect();
                if norm(&at) > radius {
                    high = Some((t, 0.0));
                    t = 0.5 * (low + t);
                    continue;
                }
                let there = self.gradient(&at)?;
                let here = dot(&there, &direction);
                next = Some((at, there));
                if here.abs() <= enough * derivative.abs() {
                    break;
                }
                if here > 0.0 {
                    high = Some((t, here));
                } else {
                    (low, below) = (t, here);
                }
                t = match high {
                    None => 4.0 * t,
                    // Where a straight line would cross zero, but not next to an end.
                    Some((h, above)) => low + (h - low) * (-below / (above - below)).clamp(0.1, 0.9),
                };
            }
            let Some((at, there)) = next else { break };
            let s: Vec<f64> = at.iter().zip(&theta).map(|(a, b)| a - b).collect();
            let y: Vec<f64> = there.iter().zip(&gradient).map(|(a, b)| a - b).collect();
            let curvature = dot(&s, &y);
            if curvature > 1e-12 * dot(&y, &y).sqrt() * norm(&s) {
                pairs.push((s, y, 1.0 / curvature));
                if pairs.len() > MEMORY {
                    pairs.remove(0);
                }
            } else {
                pairs.clear();
            }
            (theta, gradient) = (at, there);
        }
        let arrived = arrived(&theta, &gradient);
        Ok(Path { theta, gradient, matrix, arrived })
    }

    /// Plain gradient descent from wherever the fast solver stopped: the last resort. With exact gradients it contracts the distance
    /// to the minimiser by 1 - ridge/(smoothness + ridge) a step; errors of a gradient are far below the floor in practice, and
    /// whether the point is good enough is decided by the certificate alone.
    fn descend(&self, mut theta: Vec<f64>, mut g: Vec<f64>, certified: impl Fn(&[f64], &[f64]) -> bool) -> Result<Vec<f64>> {
        let rows = self.limits().rows();
        let smooth = rows * self.problem.loss.smoothness * self.data.row_norm.powi(2) + self.problem.ridge;
        let start = smooth * 2.0 * self.limits().radius();
        let worst = 4.0 * smooth / self.problem.ridge * (start / (0.5 * self.problem.tolerance)).ln().max(1.0);
        let mut left = (worst.ceil() as u64).saturating_add(1);
        while !certified(&theta, &g) && left > 0 {
            theta.iter_mut().zip(&g).for_each(|(w, g)| *w -= g / smooth);
            g = self.gradient(&theta)?;
            left -= 1;
        }
        // A host that computes wrongly must not release.
        if certified(&theta, &g) {
            Ok(theta)
        } else {
            Err(Error::Mismatch { what: "the certificate of the minimiser does not hold" })
        }
    }
}

/// The nearest integer, off by at most one half.
#[inline]
fn nearest(x: f64) -> i64 {
    // Adding 1.5 x 2^52 pushes the fraction out; beyond 2^51 a double has no more than one bit of it.
    const PUSH: f64 = 6_755_399_441_055_744.0;
    if x.abs() < 2_251_799_813_685_248.0 { ((x + PUSH) - PUSH) as i64 } else { x as i64 }
}

/// In lanes, so that additions do not wait for one another.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0f64; 8];
    for (a, b) in a.iter().zip(b) {
        (0..8).for_each(|i| lanes[i] += a[i] * b[i]);
    }
    lanes.iter().sum::<f64>() + rest_a.iter().zip(rest_b).map(|(x, y)| x * y).sum::<f64>()
}

/// Rounded up by more than its own float error.
fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt() * (1.0 + (a.len() as f64 + 4.0) * f64::EPSILON)
}

fn two_loop(g: &[f64], pairs: &[(Vec<f64>, Vec<f64>, f64)], matrix: Option<&Preconditioner>) -> Vec<f64> {
    let mut q = g.to_vec();
    let mut factors = Vec::with_capacity(pairs.len());
    for (s, y, rho) in pairs.iter().rev() {
        let a = rho * dot(s, &q);
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= a * y);
        factors.push(a);
    }
    if let Some(matrix) = matrix {
        matrix.solve(&mut q);
    } else if let Some((s, y, _)) = pairs.last() {
        let scale = dot(s, y) / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y, rho), a) in pairs.iter().zip(factors.iter().rev()) {
        let b = rho * dot(y, &q);
        q.iter_mut().zip(s).for_each(|(q, s)| *q += (a - b) * s);
    }
    q.iter_mut().for_each(|q| *q = -*q);
    q
}
