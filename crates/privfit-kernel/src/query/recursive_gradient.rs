//! Sums of recursive gradients of linear models: what a record adds is made of its gradients at two iterates.
//!
//! *Claim.* With g the gradient of a unit at the iterate and g' that at the one before, both functions of what was released, a unit adds one vector:
//! - split: h = gamma clip(g, C) + (1 - gamma) clip(clip(g, C) - clip(g', C), D), of length at most H = gamma C + (1 - gamma) D;
//! - joint: h = clip(g - (1 - gamma) g', H).
//!
//! Zero-out and add-remove move the sum by at most H, replace-one by 2 H. Nothing rests on a smoothness of the loss: the difference is clipped as a whole after it was
//! made, since a difference of two vectors that were clipped apart may be twice as long as either. One sample feeds both gradients, and they leave as one vector with one noise.
//!
//! *Arithmetic.* One row to a unit: the gradient is derivative times row, so that h is a derivative made of two, times the row. It is put on the 16-bit grid of H and its length is checked there, whatever
//! the floating-point code did, as in `gradient.rs`. Several rows: both gradients of a unit are summed in f64, made into h, and h is clipped at H on the integers.
//!
//! *Clipping the difference of clipped gradients* costs no more noise than that of plain ones, and the sum over steps is then the clipped gradient itself: v = (1 - gamma) v' + h keeps no gradient that was not clipped.

use super::gradient::{DerivativeGrid, add_products, derivatives_of_rows};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::loss::Loss;
use crate::mechanism::{Grid, GridKind};
use crate::norm::{L2, quantise};
use crate::store::rows::TILE;
use crate::value::{Bounded, Noise};
use std::ops::Range;

/// How the two gradients of a unit are brought to their bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecursiveClip {
    /// The gradient at one bound, its change at another.
    Split {
        /// Longest gradient.
        gradient: f64,
        /// Longest change of a gradient.
        change: f64,
    },
    /// What a unit adds, as a whole.
    Joint {
        /// Longest vector.
        clip: f64,
    },
}

/// A recursion: where it comes from, and how much of a gradient is fresh in each step.
#[derive(Clone, Copy, Debug)]
pub struct Recursion<'a> {
    /// The iterate before; released numbers.
    pub before: &'a [f64],
    /// gamma, above 0 and at most 1.
    pub fresh: f64,
    /// Bounds.
    pub clip: RecursiveClip,
}

impl RecursiveClip {
    /// H: the longest vector of a unit, for that part of fresh gradient.
    pub fn longest(&self, fresh: f64) -> f64 {
        match self {
            RecursiveClip::Split { gradient, change } => fresh * gradient + (1.0 - fresh) * change,
            RecursiveClip::Joint { clip } => *clip,
        }
    }
}

/// Brings a vector to a bound.
fn clip_to(longest: f64, vector: &mut [f64]) {
    let size = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    if size > longest {
        let factor = longest / size;
        vector.iter_mut().for_each(|x| *x *= factor);
    }
}

impl Recursion<'_> {
    fn longest(&self) -> f64 {
        self.clip.longest(self.fresh)
    }

    fn validate(&self) -> Result<()> {
        if !(self.fresh > 0.0 && self.fresh <= 1.0) {
            return Err(Error::domain("fresh", self.fresh, "give a number above 0 and at most 1"));
        }
        let bounds = match self.clip {
            RecursiveClip::Split { gradient, change } => [gradient, change],
            RecursiveClip::Joint { clip } => [clip, clip],
        };
        match bounds.into_iter().find(|b| !(*b >= 0.0 && b.is_finite())) {
            Some(wrong) => Err(Error::domain("clip", wrong, "give a finite number of at least 0")),
            None => Ok(()),
        }
    }

    /// What a unit adds, in the place of its gradient; `before` is used up.
    fn combine(&self, now: &mut [f64], before: &mut [f64]) {
        let kept = 1.0 - self.fresh;
        match self.clip {
            RecursiveClip::Split { gradient, change } => {
                clip_to(gradient, now);
                clip_to(gradient, before);
                before.iter_mut().zip(&*now).for_each(|(b, n)| *b = n - *b);
                clip_to(change, before);
                now.iter_mut().zip(&*before).for_each(|(n, b)| *n = self.fresh * *n + kept * b);
            }
            RecursiveClip::Joint { clip } => {
                now.iter_mut().zip(&*before).for_each(|(n, b)| *n -= kept * b);
                clip_to(clip, now);
            }
        }
    }
}

/// Derivatives of many rows at two iterates become those of the recursion, in double precision: differences are small against both.
fn combined(recursion: &Recursion<'_>, k: usize, now: &mut [f32], before: &[f32], room: &mut [f64]) {
    let (own, other) = room.split_at_mut(k);
    for (now, before) in now.chunks_exact_mut(k).zip(before.chunks_exact(k)) {
        own.iter_mut().zip(&*now).for_each(|(o, x)| *o = f64::from(*x));
        other.iter_mut().zip(before).for_each(|(o, x)| *o = f64::from(*x));
        recursion.combine(own, other);
        now.iter_mut().zip(&*own).for_each(|(n, x)| *n = *x as f32);
    }
}

impl Batch<'_> {
    /// Sum of recursive gradients of a linear model with weights output after output; the mechanism must come from `Gaussian::for_gradients` with
    /// clip = the longest vector of the recursion x row norm.
    pub fn recursive_gradient_sum<'id>(
        &self,
        noise: &Noise<'id, L2>,
        weights: &[f64],
        loss: &Loss,
        recursion: &Recursion<'_>,
    ) -> Result<Bounded<'id, L2>> {
        loss.validate()?;
        recursion.validate()?;
        let dimension = self.data.dimension * loss.outputs;
        let grid = self.grid(noise, dimension, &[GridKind::Gradient])?;
        if weights.len() != dimension || recursion.before.len() != dimension {
            return Err(Error::Mismatch { what: "the number of weights is not features x outputs" });
        }
        if self.data.units.is_some() {
            return Ok(self.finish(self.recursive_unit_gradients(&grid, weights, loss, recursion), grid));
        }
        let longest = recursion.longest();
        let derivatives = DerivativeGrid::of_longest(longest, &grid, ROW_LIMIT)
            .filter(|_| (grid.clip / (longest * self.data.row_norm) - 1.0).abs() < 1e-9);
        let Some(derivatives) = derivatives else {
            return Err(Error::Mismatch {
                what: "recursive gradients need Gaussian::for_gradients with clip = longest vector x row norm",
            });
        };
        let (k, marks) = (loss.outputs, self.chosen.marks(self.data.unit_count()));
        let add = |range: Range<usize>, out: &mut [i64]| {
            let (mut now, mut before) = (vec![0f32; TILE * k], vec![0f32; TILE * k]);
            let mut room = vec![0f64; 2 * k];
            let mut make = |scores: &[f32], scores_before: &[f32], labels: &[f32], integers: &mut [i16]| {
                let (now, before) = (&mut now[..scores.len()], &mut before[..scores.len()]);
                derivatives_of_rows(loss, scores, labels, now);
                derivatives_of_rows(loss, scores_before, labels, before);
                combined(recursion, k, now, before, &mut room);
                derivatives.quantise(now, k, integers);
            };
            let iterates = (weights, Some(recursion.before));
            add_products(self.data, range, marks.as_deref(), iterates, k, derivatives.cap, &mut make, out);
        };
        Ok(self.finish(self.share(1, dimension, &add), grid))
    }

    fn recursive_unit_gradients(&self, grid: &Grid, weights: &[f64], loss: &Loss, recursion: &Recursion<'_>) -> Vec<i64> {
        let (d, k) = (self.data.dimension, loss.outputs);
        let add = |range: Range<usize>, out: &mut [i64]| {
            let (mut now, mut before) = (vec![0f64; d * k], vec![0f64; d * k]);
            let (mut scores, mut derivatives) = (vec![0f64; k], vec![0f64; k]);
            let mut integers = Vec::new();
            self.chosen.each(range, |unit_index| {
                let unit = self.data.unit(unit_index);
                for (weights, sum) in [(weights, &mut now), (recursion.before, &mut before)] {
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
                }
                recursion.combine(&mut now, &mut before);
                quantise::<L2>(&mut now, grid.clip, 1.0 / grid.unit, grid.bound, &mut integers);
                out.iter_mut().zip(&integers).for_each(|(o, z)| *o = o.wrapping_add(*z));
            });
        };
        self.share(1, d * k, &add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Event;
    use crate::engine::Threads;
    use crate::loss::{logistic, softmax, squared};
    use crate::{Dataset, DatasetBuilder, Entropy, Gaussian, RowShape, Run};

    const D: usize = 5;
    const SPLIT: RecursiveClip = RecursiveClip::Split { gradient: 0.4, change: 0.05 };
    const JOINT: RecursiveClip = RecursiveClip::Joint { clip: 0.1 };

    fn numbers(count: usize, seed: u64, size: f64) -> Vec<f64> {
        (0..count as u64).map(|i| size * (((i + 1) * (seed + 3)) as f64 * 0.7318).sin()).collect()
    }

    fn row(i: usize) -> Vec<f64> {
        numbers(D, 11 + i as u64, 0.44)
    }

    fn data(count: usize, units: bool, changed: Option<(usize, &[f64], f32)>) -> Dataset {
        let shape = RowShape { dimension: D, row_norm: 1.0, sparse: false, rows_per_unit: units.then_some(3) };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        for i in 0..count {
            let (row, label) = match changed {
                Some((at, row, label)) if at == i => (row.to_vec(), label),
                _ => (row(i), (i % 2) as f32),
            };
            builder.row(&row, label);
            if units && (i % 3 == 2 || i + 1 == count) {
                builder.end_unit();
            }
        }
        builder.build()
    }

    /// The sum and its noise, which is the same for the same seed; `recursion` none for plain gradients.
    fn released(data: &Dataset, loss: &Loss, w: &[f64], recursion: Option<&Recursion<'_>>, noise: f64) -> Vec<f64> {
        let longest = recursion.map_or(loss.lipschitz(), |r| r.clip.longest(r.fresh));
        let mechanism = Gaussian::for_gradients(longest, noise).unwrap();
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(2));
        let mut run = Run::begin(data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
        let everyone = run.everyone().unwrap();
        run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, w.len())?;
            let sum = match recursion {
                Some(recursion) => everyone.recursive_gradient_sum(&noise, w, loss, recursion)?,
                None => everyone.gradient_sum(&noise, w, loss)?,
            };
            run.release(noise, &sum)
        })
        .unwrap()
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }

    /// A closed form: gradients of the squared loss, put together by hand for each record.
    #[test]
    fn a_sum_is_what_the_recursion_says() {
        let (loss, count) = (squared(1.0), 40);
        let data = data(count, false, None);
        let (w, before) = (numbers(D, 5, 0.6), numbers(D, 6, 0.6));
        for (fresh, clip) in [(0.1, SPLIT), (0.7, SPLIT), (0.2, JOINT), (1.0, JOINT)] {
            let recursion = Recursion { before: &before, fresh, clip };
            let noise = 1e-3;
            let mut expected = vec![0.0; D];
            for i in 0..count {
                let x = row(i);
                let derivative = |w: &[f64]| {
                    let score: f64 = x.iter().zip(w).map(|(x, w)| x * w).sum();
                    (score - (i % 2) as f64).clamp(-1.0, 1.0)
                };
                let (a, b) = (derivative(&w), derivative(&before));
                let h = match clip {
                    RecursiveClip::Split { gradient: c, change } => {
                        let (a, b) = (a.clamp(-c, c), b.clamp(-c, c));
                        fresh * a + (1.0 - fresh) * (a - b).clamp(-change, change)
                    }
                    RecursiveClip::Joint { clip } => (a - (1.0 - fresh) * b).clamp(-clip, clip),
                };
                expected.iter_mut().zip(&x).for_each(|(e, x)| *e += h * x);
            }
            let own = released(&data, &loss, &w, Some(&recursion), noise);
            let deviation = noise * clip.longest(fresh);
            assert!(
                distance(&own, &expected) < 20.0 * deviation + 40.0 * 2e-4 * clip.longest(fresh),
                "{fresh} {clip:?}: {own:?} {expected:?}"
            );
        }
    }

    /// With gamma 1 nothing is left of the iterate before: the same integers as plain gradients, to the bit.
    #[test]
    fn all_fresh_is_the_plain_gradient() {
        let (w, before) = (numbers(3 * D, 5, 2.0), numbers(3 * D, 6, 2.0));
        for (loss, k) in [(logistic(1, 2, 0.5, [1.0, 1.0]), 1), (squared(1.0), 1)] {
            let recursion = Recursion {
                before: &before[..k * D],
                fresh: 1.0,
                clip: RecursiveClip::Split { gradient: loss.lipschitz(), change: 9.0 },
            };
            let (a, b) = (
                released(&data(50, false, None), &loss, &w[..k * D], None, 0.5),
                released(&data(50, false, None), &loss, &w[..k * D], Some(&recursion), 0.5),
            );
            assert_eq!(a, b, "{}", loss.name());
        }
    }

    /// Without clipping v = (1 - gamma) v + h over all records is the gradient at each iterate, for any gamma.
    #[test]
    fn over_all_records_the_recursion_is_the_gradient() {
        let loss = softmax(&[1.0; 3]);
        let data = data(60, false, None);
        let mut v: Option<Vec<f64>> = None;
        let mut before = vec![0.0; 3 * D];
        for step in 0..6 {
            let w = numbers(3 * D, step, 0.2 * step as f64);
            let plain = released(&data, &loss, &w, None, 1e-3);
            v = Some(match v {
                None => plain.clone(),
                Some(v) => {
                    let clip = RecursiveClip::Split { gradient: loss.lipschitz(), change: 0.6 };
                    let h = released(&data, &loss, &w, Some(&Recursion { before: &before, fresh: 0.3, clip }), 1e-3);
                    v.iter().zip(&h).map(|(v, h)| 0.7 * v + h).collect()
                }
            });
            assert!(distance(v.as_ref().unwrap(), &plain) < 0.05, "{step}: {v:?} {plain:?}");
            before = w;
        }
    }

    /// One record that becomes null moves the sum by at most H, another one in its place by at most 2 H, with both clips, one row or several to a unit, whatever the record holds. The bound is
    /// met: gradients of the two iterates point in opposite directions.
    #[test]
    fn neighbours_are_within_the_sensitivity() {
        for (units, loss) in
            [(false, logistic(1, 2, 1.0, [1.0, 1.0])), (false, softmax(&[1.0, 2.0])), (false, squared(2.0)), (true, squared(2.0))]
        {
            let d = D * loss.outputs();
            // Far iterates on both sides, so that changes are as long as gradients can make them.
            for (size, fresh, clip) in
                [(1e3, 0.1, SPLIT), (1e3, 0.9, SPLIT), (1e3, 0.1, JOINT), (1e30, 0.5, SPLIT), (0.0, 0.5, JOINT)]
            {
                let (w, before) = (vec![size; d], vec![-size; d]);
                let recursion = Recursion { before: &before, fresh, clip };
                let longest = clip.longest(fresh);
                let sum = |record: &[f64], label: f32| {
                    released(&data(31, units, Some((17, record, label))), &loss, &w, Some(&recursion), 1.0)
                };
                let null = sum(&[0.0; D], f32::NAN);
                let mut most: f64 = 0.0;
                let mut seen: Vec<Vec<f64>> = Vec::new();
                for x in [0.44, -0.44, 9.0, 1e30, f64::NAN, f64::INFINITY, 1e-30] {
                    for label in [0.0, 1.0, -1.0, f32::NAN] {
                        let own = sum(&[x; D], label);
                        let gap = distance(&own, &null);
                        assert!(
                            units || gap <= longest * (1.0 + 1e-9),
                            "{} {clip:?} {x} {label}: {gap} of {longest}",
                            loss.name()
                        );
                        for other in &seen {
                            assert!(distance(&own, other) <= 2.0 * longest * (1.0 + 1e-9), "{}", loss.name());
                        }
                        most = most.max(gap);
                        seen.push(own);
                    }
                }
                assert!(
                    units || size == 0.0 || most > 0.45 * longest,
                    "{} {clip:?}: nothing came near the bound: {most} of {longest}",
                    loss.name()
                );
            }
        }
    }

    /// Noise for another length, or a recursion that is none, is refused before rows are read.
    #[test]
    fn what_does_not_fit_is_refused() {
        let (data, loss, w) = (data(5, false, None), squared(1.0), vec![0.0; D]);
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(2));
        let mut run = Run::begin(&data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
        let everyone = run.everyone().unwrap();
        let mechanism = Gaussian::for_gradients(0.1, 1.0).unwrap();
        run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, D)?;
            let attempt = |fresh: f64, clip: RecursiveClip, before: &[f64]| {
                everyone.recursive_gradient_sum(&noise, &w, &loss, &Recursion { before, fresh, clip }).is_ok()
            };
            assert!(attempt(0.5, JOINT, &w));
            assert!(!attempt(0.5, SPLIT, &w) && !attempt(0.5, RecursiveClip::Joint { clip: 0.2 }, &w));
            assert!(!attempt(0.0, JOINT, &w) && !attempt(1.5, JOINT, &w) && !attempt(f64::NAN, JOINT, &w));
            assert!(!attempt(0.5, JOINT, &w[1..]));
            assert!(!attempt(0.5, RecursiveClip::Split { gradient: f64::NAN, change: 0.1 }, &w));
            Ok(())
        })
        .unwrap();
    }
}
