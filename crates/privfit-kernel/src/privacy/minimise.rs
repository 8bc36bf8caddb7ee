//! Minimisation with a certificate: the proof rests on the gradient at the end, not on the solver.
//!
//! Slopes in f64 on the fixed-point rows, f64 sums inside of blocks of 256 slots cut by slot number, block sums rounded to a
//! public grid and added as integers: every engine gives the same bits. The certified gradient norm is the measured one plus a
//! floor for this rounding; without the floor a tolerance could be claimed that the arithmetic cannot reach.

use super::data::Dataset;
use super::loss::Loss;
use crate::engine::{Engine, Pass};
use crate::error::{Error, Result};

/// Slots in a floating-point block.
pub(crate) const BLOCK: usize = 256;

/// A strongly convex problem in sum form: sum of losses + (ridge/2) |theta|^2 + <linear, theta>.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The loss; needs a finite smoothness.
    pub loss: &'a Loss,
    /// Covers every coordinate, the intercept included.
    pub ridge: f64,
    /// Bound on the gradient norm at the answer, in sum form; must exceed four times the rounding floor.
    pub tolerance: f64,
}

pub(crate) struct Objective<'a> {
    pub(crate) data: &'a Dataset,
    pub(crate) chosen: Option<&'a [bool]>,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) problem: Problem<'a>,
    pub(crate) linear: Vec<f64>,
    /// Bound on the norm of the linear term, public.
    pub(crate) linear_bound: f64,
}

impl Objective<'_> {
    pub(crate) fn dimension(&self) -> usize {
        self.data.dimension * self.problem.loss.outputs
    }

    /// Most rows that these units can have: public, unlike the number that they do have.
    fn rows(&self) -> f64 {
        (self.data.slots() * self.data.rows_per_unit).max(1) as f64
    }

    /// Bits after the point of block sums: fewer if the sum of all rows would not fit.
    fn bits(&self) -> i32 {
        let largest = self.rows() * self.problem.loss.lipschitz * self.data.row_norm;
        40.min((61.0 - largest.log2()).floor() as i32)
    }

    /// No minimiser, and no iterate of the solver, is longer than this.
    pub(crate) fn radius(&self) -> f64 {
        let rows = self.rows();
        2.0 * (rows * self.problem.loss.lipschitz * self.data.row_norm + self.linear_bound) / self.problem.ridge
    }

    /// Bound on the error of a computed gradient at any point within the radius; public.
    pub(crate) fn floor(&self) -> f64 {
        let d = self.dimension() as f64;
        let rows = self.rows();
        let blocks = (self.data.slots() as f64 / BLOCK as f64).ceil();
        let (slope, row) = (self.problem.loss.lipschitz, self.data.row_norm);
        let rounding = d.sqrt() * blocks * 2f64.powi(-self.bits() - 1);
        // A score is off by (d + 2) u |theta| |x|; its slope by the smoothness times that, and 16 u of its own size.
        let score = (self.data.dimension as f64 + 2.0) * f64::EPSILON * self.radius() * row;
        let slopes = rows * row * (self.problem.loss.smoothness * score + 16.0 * f64::EPSILON * slope);
        // Recursive sums of at most BLOCK x rows-per-unit terms.
        let sums = rows * slope * row * ((BLOCK * self.data.rows_per_unit) as f64 + 2.0) * f64::EPSILON;
        let rest = 4.0 * f64::EPSILON * (self.problem.ridge * self.radius() + self.linear_bound + rows * slope * row);
        rounding + slopes + sums + rest
    }

    /// The gradient, the same bits on every engine.
    fn gradient(&self, theta: &[f64]) -> Result<Vec<f64>> {
        let (d, k) = (self.data.dimension, self.problem.loss.outputs);
        let loss = self.problem.loss;
        let scale = 2f64.powi(self.bits());
        let add = |range: std::ops::Range<usize>, out: &mut [i64]| {
            let mut sum = vec![0f64; d * k];
            let (mut scores, mut slopes) = (vec![0f64; k], vec![0f64; k]);
            let mut start = range.start;
            while start < range.end {
                let end = (start / BLOCK * BLOCK + BLOCK).min(range.end);
                sum.fill(0.0);
                for slot in start..end {
                    if self.chosen.is_some_and(|c| !c[slot]) {
                        continue;
                    }
                    let unit = self.data.unit(slot);
                    for row in 0..unit.rows() {
                        for o in 0..k {
                            scores[o] = unit.dot(row, &theta[o * d..(o + 1) * d]);
                        }
                        loss.bounded_slopes(&scores, unit.label(row), &mut slopes);
                        for (o, s) in slopes.iter().enumerate() {
                            unit.each(row, |j, x| sum[o * d + j] += s * x);
                        }
                    }
                }
                for (total, s) in out.iter_mut().zip(&sum) {
                    *total = total.wrapping_add((s * scale).round() as i64);
                }
                start = end;
            }
        };
        let mut total = vec![0i64; d * k];
        self.engine.sum(&Pass { slots: self.data.slots(), granule: BLOCK, add: &add }, &mut total)?;
        let rest = theta.iter().zip(&self.linear);
        Ok(total.iter().zip(rest).map(|(t, (w, b))| *t as f64 / scale + self.problem.ridge * w + b).collect())
    }

    /// A point whose true gradient norm is at most the tolerance.
    pub(crate) fn solve(&self) -> Result<Vec<f64>> {
        let floor = self.floor();
        let tolerance = self.problem.tolerance;
        if tolerance < 4.0 * floor {
            return Err(Error::domain(
                "tolerance",
                tolerance,
                "give at least four times the rounding floor of the gradient, or a larger ridge",
            ));
        }
        let radius = self.radius();
        let certified = |theta: &[f64], g: &[f64]| norm(theta) <= radius && norm(g) + floor <= tolerance;
        let mut theta = vec![0.0; self.dimension()];
        let mut g = self.gradient(&theta)?;
        // Limited-memory quasi-Newton with a search on the slope along the line: the function is convex, so it is monotone.
        let mut pairs: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
        for _ in 0..1000 {
            if certified(&theta, &g) {
                return Ok(theta);
            }
            let direction = two_loop(&g, &pairs);
            let slope = dot(&g, &direction);
            if !(slope < 0.0) {
                if pairs.is_empty() {
                    break;
                }
                pairs.clear();
                continue;
            }
            let (mut low, mut high, mut t) = (0.0, f64::INFINITY, if pairs.is_empty() { (1.0 / norm(&g)).min(1.0) } else { 1.0 });
            let mut next = None;
            for _ in 0..40 {
                let at: Vec<f64> = theta.iter().zip(&direction).map(|(w, p)| w + t * p).collect();
                if norm(&at) > radius {
                    high = t;
                    t = 0.5 * (low + high);
                    continue;
                }
                let gradient = self.gradient(&at)?;
                let here = dot(&gradient, &direction);
                let enough = here.abs() <= 0.9 * slope.abs();
                next = Some((at, gradient));
                if enough {
                    break;
                }
                if here > 0.0 {
                    high = t
                } else {
                    low = t
                }
                t = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * t };
            }
            let Some((at, gradient)) = next else { break };
            let s: Vec<f64> = at.iter().zip(&theta).map(|(a, b)| a - b).collect();
            let y: Vec<f64> = gradient.iter().zip(&g).map(|(a, b)| a - b).collect();
            let curvature = dot(&s, &y);
            if curvature > 1e-12 * dot(&y, &y).sqrt() * norm(&s) {
                pairs.push((s, y, 1.0 / curvature));
                if pairs.len() > 10 {
                    pairs.remove(0);
                }
            } else if !pairs.is_empty() {
                pairs.clear();
            }
            (theta, g) = (at, gradient);
        }
        self.descend(theta, g, certified)
    }

    /// Plain gradient descent from wherever the fast solver stopped. It contracts the distance to the minimiser by
    /// 1 - ridge/(smoothness + ridge) a step, so the number of steps has a worst case, and the certificate is always reached.
    fn descend(&self, mut theta: Vec<f64>, mut g: Vec<f64>, certified: impl Fn(&[f64], &[f64]) -> bool) -> Result<Vec<f64>> {
        let rows = self.rows();
        let smooth = rows * self.problem.loss.smoothness * self.data.row_norm.powi(2) + self.problem.ridge;
        let start = smooth * 2.0 * self.radius();
        // Four times the count for exact gradients: errors are below a quarter of the tolerance.
        let worst = 4.0 * smooth / self.problem.ridge * (start / (0.5 * self.problem.tolerance)).ln().max(1.0);
        let mut left = (worst.ceil() as u64).saturating_add(1);
        while !certified(&theta, &g) && left > 0 {
            theta.iter_mut().zip(&g).for_each(|(w, g)| *w -= g / smooth);
            g = self.gradient(&theta)?;
            left -= 1;
        }
        // Reached by the bound above; a host that computes wrongly must not release.
        if certified(&theta, &g) {
            Ok(theta)
        } else {
            Err(Error::Mismatch { what: "the certificate of the minimiser does not hold" })
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Rounded up by more than its own float error.
fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt() * (1.0 + (a.len() as f64 + 4.0) * f64::EPSILON)
}

fn two_loop(g: &[f64], pairs: &[(Vec<f64>, Vec<f64>, f64)]) -> Vec<f64> {
    let mut q = g.to_vec();
    let mut factors = Vec::with_capacity(pairs.len());
    for (s, y, rho) in pairs.iter().rev() {
        let a = rho * dot(s, &q);
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= a * y);
        factors.push(a);
    }
    if let Some((s, y, _)) = pairs.last() {
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
