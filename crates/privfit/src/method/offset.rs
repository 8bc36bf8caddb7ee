//! Where scores of a number begin: a private mean of the target instead of the middle of its bounds.
//!
//! *What it computes.* The mean of the targets, each in [-1, 1], from one noisy sum; losses then take score + offset, and in the end
//! the offset joins the weight of the constant. For counts, whose bound may be a hundred times what is common, first a noisy
//! histogram of their sizes in powers of two below the bound: a count is clamped at the power that minimises what clamping takes away
//! plus the noise that a sum of counts up to there has, and the offset is the logarithm of their mean.
//!
//! *Privacy.* A unit adds the average over its rows of labels in [-1, 1], or of indicator vectors with at most one 1: a vector of
//! norm at most 1 (L2, and L1 too), clipped there on the integers, so that zero-out moves a sum by at most 1 and replace-one by at
//! most 2. Gaussian noise, or Laplace noise for pure privacy, with multipliers that are planned before data are opened. Everything
//! later sees the released numbers only. They change no constant of a loss: score + offset moves like the score, and counts over a
//! smaller bound have the derivatives that counts over the bound have. What a solver may have to reach is planned for any offset.
//!
//! *Accuracy.* Ridge and early stopping pull scores to where they begin. Targets that lie at one end of their bounds made that
//! pull, and the noise of counts that never come near their bound, larger than all that there was to learn. The mean is drawn to the
//! middle by as much as it is noise. Beside the rest the mean
//! costs one part in 144 of its squared privacy loss; for counts the histogram one in 9 and the mean one in 25; with pure privacy,
//! where losses add up, one in 20 each.
//!
//! *Needs.* A number as target, a constant feature that is the same in all rows, no constraint on the weights. `offset = 0` turns it
//! off.
//!
//! *Reference.* A clamp from a noisy histogram of magnitudes is common in private means (Karwa and Vadhan 2018); this use of it is
//! ours.

use super::Problem;
use crate::constraint::Constraint;
use crate::error::Result;
use crate::schema::Task;
use privfit_kernel::account::Event;
use privfit_kernel::{Contribution, Gaussian, Laplace, Loss, Mechanism, Run, Sink, Unit, UnitRandomness};
use std::ops::RangeInclusive;

/// Powers of two that are told apart in counts over their bound.
const POWERS: usize = 15;
/// Counts of a bucket below so many standard deviations of its noise are taken for noise.
const CERTAIN: f64 = 3.0;

/// Noise of one release, over the sensitivity, as a multiple of the noise of the whole rest over its own.
fn multiples(pure: bool, counts: bool) -> Vec<f64> {
    match (pure, counts) {
        (true, false) => vec![20.0],
        (true, true) => vec![20.0, 20.0],
        // Less than a hundredth, with the output noise of an objective: its accountant has a closed form up to there.
        (false, false) => vec![12.0],
        (false, true) => vec![3.0, 5.0],
    }
}

#[derive(Clone, Copy)]
enum Noise {
    Gaussian(Gaussian),
    Laplace(Laplace),
}

impl Noise {
    fn event(&self, dimension: usize) -> Event {
        match self {
            Noise::Gaussian(g) => g.event(dimension),
            Noise::Laplace(l) => l.event(dimension),
        }
    }

    /// Standard deviation for contributions of size 1.
    fn deviation(&self) -> f64 {
        match self {
            Noise::Gaussian(g) => g.noise_multiplier(),
            Noise::Laplace(l) => std::f64::consts::SQRT_2 * l.noise_multiplier(),
        }
    }

    fn release(&self, run: &mut Run<'_>, contribution: &Contribution) -> Result<Vec<f64>> {
        let everyone = run.everyone()?;
        let dimension = contribution.dimension;
        Ok(match self {
            Noise::Gaussian(gaussian) => run.at(gaussian, |run, scale| {
                let noise = run.draw(&scale, dimension)?;
                let sum = everyone.sum(&noise, contribution)?;
                run.release(noise, &sum)
            })?,
            Noise::Laplace(laplace) => run.at(laplace, |run, scale| {
                let noise = run.draw(&scale, dimension)?;
                let sum = everyone.sum(&noise, contribution)?;
                run.release(noise, &sum)
            })?,
        })
    }
}

/// A planned offset.
pub(super) struct Offset {
    /// Of the histogram, for counts; of the mean.
    noises: Vec<Noise>,
    constant: usize,
    /// The constant's cell.
    cell: f64,
    units: f64,
    /// Length of the noise on a gradient sum of counts over their bound.
    length: f64,
}

/// A released offset, and for counts the part of the bound at which they are clamped.
pub(super) struct Start {
    offset: f64,
    clamp: f64,
    constant: usize,
    cell: f64,
}

/// Whether scores begin at a private mean.
pub(super) fn applies(problem: &Problem) -> bool {
    let same = problem.constant().is_some_and(|c| problem.columns[c].scale > 1.0);
    problem.task == Task::Number && same && problem.constraint == Constraint::None
}

/// The losses as plans must see them: far from zero scores if an offset may be wrong.
pub(super) fn losses(losses: Vec<Loss>) -> Vec<Loss> {
    losses.iter().map(|l| l.starting_at(0.0, 1.0)).collect()
}

impl Offset {
    /// For a rest whose noise, over its sensitivity, is `multiplier` altogether; none where scores begin at zero.
    pub(super) fn new(problem: &Problem, pure: bool, multiplier: f64) -> Result<Option<Offset>> {
        let Some(constant) = problem.constant().filter(|_| applies(problem)) else { return Ok(None) };
        let counts = problem.loss.counts;
        let noise = |times: f64| -> Result<Noise> {
            Ok(match pure {
                true => Noise::Laplace(Laplace::new(1.0, times * multiplier, problem.rows)?),
                false => Noise::Gaussian(Gaussian::new(1.0, times * multiplier, problem.rows)?),
            })
        };
        let noises = multiples(pure, counts).into_iter().map(noise).collect::<Result<Vec<Noise>>>()?;
        let d = problem.features as f64;
        let length = multiplier * d.sqrt() * if pure { (2.0 * d).sqrt() } else { 1.0 };
        let cell = 1.0 / problem.columns[constant].scale;
        Ok(Some(Offset { noises, constant, cell, units: problem.rows.max(1) as f64, length }))
    }

    /// What it costs.
    pub(super) fn events(&self) -> Vec<Event> {
        let last = self.noises.len() - 1;
        self.noises.iter().enumerate().map(|(i, n)| n.event(if i == last { 1 } else { POWERS })).collect()
    }

    /// For people.
    pub(super) fn describe(&self) -> (&'static str, String) {
        let names = [
            "noise of the histogram and of the mean of the target, standard deviations",
            "noise of the target's sum, standard deviation",
        ];
        let all: Vec<String> = self.noises.iter().map(|n| super::rounded(n.deviation())).collect();
        (names[usize::from(all.len() == 1)], all.join(", "))
    }

    /// Releases the offset.
    pub(super) fn find(&self, run: &mut Run<'_>) -> Result<Start> {
        let counts = self.noises.len() > 1;
        let mut clamp = 1.0;
        if counts {
            let histogram = Contribution { name: "sizes of counts", dimension: POWERS, parameters: Vec::new(), add: add_size };
            let sizes = self.noises[0].release(run, &histogram)?;
            clamp = best_clamp(&sizes, CERTAIN * self.noises[0].deviation(), self.length);
        }
        let noise = self.noises[self.noises.len() - 1];
        let parameters = if counts { vec![clamp] } else { Vec::new() };
        let mean = Contribution { name: "sum of targets", dimension: 1, parameters, add: add_target };
        let mean = noise.release(run, &mean)?[0] / self.units;
        let error = noise.deviation() / self.units;
        let offset = match counts {
            true => mean.max(error).ln().clamp(privfit_kernel::loss::LOWEST, 0.0),
            // Drawn to the middle as if targets had a deviation of a quarter of the half-range there.
            false => (mean * 0.0625 / (0.0625 + error * error)).clamp(-1.0, 1.0),
        };
        Ok(Start { offset, clamp, constant: self.constant, cell: self.cell })
    }
}

impl Offset {
    /// Where scores begin by the numbers of a checkpoint.
    pub(super) fn kept(&self, [offset, clamp]: [f64; 2]) -> Start {
        Start { offset, clamp, constant: self.constant, cell: self.cell }
    }
}

impl Start {
    /// What was released, for a checkpoint.
    pub(super) fn numbers(&self) -> [f64; 2] {
        [self.offset, self.clamp]
    }

    /// The loss of scores that begin here.
    pub(super) fn loss(&self, loss: &Loss) -> Loss {
        loss.starting_at(self.offset, self.clamp)
    }

    /// Puts the offset into the weights.
    pub(super) fn fold(&self, weights: &mut [f64]) {
        weights[self.constant] += (self.offset + self.clamp.ln()) / self.cell;
    }
}

/// The power of two at which what is clamped away, by noisy counts of each bucket, plus the noise of what is left is least. Where no
/// bucket stands out of the noise, nothing is known, and nothing clamped.
fn best_clamp(sizes: &[f64], threshold: f64, length: f64) -> f64 {
    let certain = |count: &f64| *count > threshold;
    if !sizes.iter().any(certain) {
        return 1.0;
    }
    let mut best = (f64::INFINITY, 1.0);
    for k in 0..=POWERS as i32 {
        let clamp = 0.5f64.powi(k);
        // The middle of a bucket stands for it.
        let above = |j: usize| (0.75 * 0.5f64.powi(j as i32) - clamp).max(0.0);
        let lost: f64 = sizes.iter().enumerate().filter(|s| certain(s.1)).map(|(j, count)| count * above(j)).sum();
        let cost = lost + clamp * length;
        if cost < best.0 {
            best = (cost, clamp);
        }
    }
    best.1
}

/// Rows of a unit whose label lies in a range: each label, and one over their number.
pub(super) fn each_label(unit: Unit<'_>, labels: RangeInclusive<f32>, mut f: impl FnMut(f64, f64)) {
    let known = |row: &usize| labels.contains(&unit.label(*row));
    let weight = 1.0 / (0..unit.rows()).filter(known).count().max(1) as f64;
    (0..unit.rows()).filter(known).for_each(|row| f(f64::from(unit.label(row)), weight));
}

fn add_size(_: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    each_label(unit, -1.0..=1.0, |y, weight| {
        let part = 0.5 * (y + 1.0);
        // Bucket j holds the parts of the bound above 2^-(j+1), up to 2^-j; smaller ones are in none.
        if part > 0.5f64.powi(POWERS as i32) {
            sink.add((-part.log2()).floor().max(0.0) as usize, weight);
        }
    });
}

fn add_target(p: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    each_label(unit, -1.0..=1.0, |y, weight| {
        let value = p.first().map_or(y, |clamp| (0.5 * (y + 1.0) / clamp).min(1.0));
        sink.add(0, weight * value);
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, coefficients, dataset, plan, schema};
    use super::*;
    use privfit_kernel::Entropy;
    use privfit_kernel::engine::Threads;

    /// By hand: buckets of powers of two, and the clamp that leaves least error.
    #[test]
    fn closed_forms() {
        // A thousand counts at a 64th of the bound, a hundred at a 32nd, noise of length 12.
        let mut sizes = vec![0.0; POWERS];
        (sizes[6], sizes[5]) = (1000.0, 100.0);
        // 12/32 + nothing lost, against 12/64 + 100 x (0.75/32 - 1/64) = 0.97.
        assert_eq!(best_clamp(&sizes, 50.0, 12.0), 1.0 / 32.0);
        // With much more noise the hundred may go: 60/32 against 60/64 + 0.78.
        assert_eq!(best_clamp(&sizes, 50.0, 60.0), 1.0 / 64.0);
        // Nothing certain: nothing is clamped.
        assert_eq!(best_clamp(&sizes, 2000.0, 12.0), 1.0);
        // Few large ones outweigh the noise.
        sizes[0] = 80.0;
        assert_eq!(best_clamp(&sizes, 50.0, 12.0), 1.0);
    }

    /// A unit of one or several rows, null or another one, moves each release by its norm of 1 at most (replace-one by 2), although
    /// the mechanism here would let ten times as much through. The same seed gives the same noise.
    #[test]
    fn one_unit_moves_each_release_by_one_at_most() {
        let schema = schema(1, "unit = { column = \"u\", max_rows = 3 }\nunits = 3", "bounds = [0, 8]");
        let targets = [0.0, 8.0, 4.0, 1.0, 0.001, 1e-9, f64::NAN, 1e300, -5.0, f64::INFINITY];
        for (add, dimension, clamp, signed) in [
            (add_size as fn(&[f64], Unit<'_>, &mut UnitRandomness<'_>, &mut Sink<'_>), POWERS, 0.0, false),
            (add_target, 1, 0.25, false),
            (add_target, 1, 0.0, true),
        ] {
            let parameters = if clamp > 0.0 { vec![clamp] } else { Vec::new() };
            let contribution = Contribution { name: "test", dimension, parameters, add };
            let wide = Gaussian::new(10.0, 1.0, 10).unwrap();
            let event = wide.event(dimension);
            let release = |unit: &[f64]| {
                let mut rows = vec![vec![1.0, 0.1, 3.0], vec![2.0, -0.4, 5.0]];
                rows.extend(unit.iter().map(|y| vec![3.0, 0.3, *y]));
                let (entropy, engine) = (Entropy::simulated(8), Threads::new(1));
                let data = dataset(&schema, 1, true, &rows, &entropy);
                let mut run = Run::begin(&data, &engine, &entropy, &event).unwrap();
                Noise::Gaussian(wide).release(&mut run, &contribution).unwrap()
            };
            let far = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
            let null = release(&[]);
            let mut seen = Vec::new();
            for a in targets {
                for unit in [vec![a], vec![a; 3], vec![a, 8.0, 0.5], vec![a, a, f64::NAN]] {
                    let moved = release(&unit);
                    assert!(far(&moved, &null) <= 1.0 + 1e-6, "{unit:?}: {}", far(&moved, &null));
                    seen.push(moved);
                }
            }
            let (one, two) = (
                seen.iter().map(|s| far(s, &null)).fold(0.0, f64::max),
                seen.iter().flat_map(|a| seen.iter().map(move |b| far(a, b))).fold(0.0, f64::max),
            );
            assert!(one > 0.99 && two <= 2.0 + 1e-6, "{one} {two}");
            assert!(two > if signed { 1.99 } else { 0.99 }, "the test never comes near the bound: {two}");
        }
    }

    /// Rare small counts under a wide bound: better than a constant, as they were not, and close to the truth.
    #[test]
    fn rare_counts_are_learned() {
        let (schema, mut random) = (schema(1, "", "bounds = [0, 100]"), Random(5));
        // A Poisson draw by its sum of probabilities.
        let mut count = |rate: f64| {
            let (mut u, mut p, mut k) = (0.5 * (random.next() + 1.0), (-rate).exp(), 0.0);
            while u > p && k < 50.0 {
                u -= p;
                k += 1.0;
                p *= rate / k;
            }
            k
        };
        let rate = |x: f64| 0.2 * (x - 0.17).exp();
        let rows: Vec<Vec<f64>> =
            (0..20_000).map(|i| f64::from(i % 200) / 100.0 - 1.0).map(|x| vec![x, count(rate(x))]).collect();
        let constant = rows.iter().map(|r| r[1]).sum::<f64>() / rows.len() as f64;
        let deviance = |of: &dyn Fn(f64) -> f64| rows.iter().map(|r| crate::loss::poisson::deviance(r[1], of(r[0]))).sum::<f64>();
        let (best, nothing) = (deviance(&rate), deviance(&|_| constant));
        let entropy = Entropy::simulated(2);
        let data = dataset(&schema, 1, false, &rows, &entropy);
        for method in ["objective", "noisy-gd", "objective-pure", "noisy-sgd"] {
            let w = coefficients(&plan(&schema, method, "poisson", 20_000, 1.0, &[]), &data, &entropy);
            let ours = deviance(&|x| 100.0 * (w[0] * x + w[1]).exp());
            assert!(ours - best < 0.5 * (nothing - best), "{method}: {ours}, best {best}, constant {nothing}");
        }
    }
}
