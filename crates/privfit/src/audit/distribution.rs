//! Two worlds: the same job on neighbouring data, many times each. A distinguisher is fitted on the first third of the runs, its
//! threshold chosen on the second, and what it can do is bounded from below on the last, by Clopper and Pearson. No claim may be
//! below that.
//!
//! *Judged.* A bound on mu against the claim's mu, if the claim is made of full Gaussian releases; otherwise points of the claimed curve
//! (epsilon, delta). Where a release is one Gaussian vector the shift over the deviation is judged too, which needs a tenth of the
//! runs; everywhere else it is only reported. Each of the three tests has a third of the chance of a false alarm.

use super::FALSE_ALARM;
use super::bounds::{normal_quantile, proportion, shift};
use super::discriminant::Direction;
use super::pair::Pair;
use super::subject::{Claim, Subject};
use crate::error::{Error, Result};

/// What two worlds showed.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Runs in each world.
    pub runs: usize,
    /// Kind of the pair.
    pub pair: &'static str,
    /// Epsilon at the claim's delta is at least this.
    pub epsilon: f64,
    /// Mu is at least this.
    pub mu: f64,
    /// Shift over deviation is at least this, if releases are Gaussian.
    pub shift: f64,
    /// Whether the shift is judged.
    pub shift_judged: bool,
    /// What is below its lower bound; empty if nothing is.
    pub violations: Vec<String>,
    /// Scores of the last third in both worlds.
    pub scores: (Vec<f64>, Vec<f64>),
}

/// Lower ends of what a threshold shows: hits in the first world, and upper ends of hits in the second.
#[derive(Clone, Copy)]
struct Rates {
    hit: f64,
    alarm: f64,
}

impl Rates {
    fn at(a: &[f64], b: &[f64], threshold: f64, alpha: f64) -> Rates {
        let above = |s: &[f64]| s.iter().filter(|x| **x > threshold).count() as u64;
        Rates {
            hit: proportion(above(a), a.len() as u64, 0.5 * alpha).0,
            alarm: proportion(above(b), b.len() as u64, 0.5 * alpha).1,
        }
    }

    /// Quick estimate for the choice of a threshold: the normal bound.
    fn guess(a: &[f64], b: &[f64], threshold: f64) -> Rates {
        let share = |s: &[f64]| s.partition_point(|x| *x <= threshold) as f64 / s.len() as f64;
        let n = a.len() as f64;
        let edge = |p: f64| 4.9 * ((p * (1.0 - p) + 6.0 / n) / n).sqrt();
        let (p, q) = (1.0 - share(a), 1.0 - share(b));
        Rates { hit: (p - edge(p)).max(0.0), alarm: (q + edge(q)).min(1.0) }
    }

    /// Delta at an epsilon is at least this, by either direction.
    fn delta(&self, epsilon: f64) -> f64 {
        let e = epsilon.exp();
        (self.hit - e * self.alarm).max(1.0 - self.alarm - e * (1.0 - self.hit))
    }

    fn epsilon(&self, delta: f64) -> f64 {
        let ratio = |p: f64, q: f64| if p > delta { ((p - delta) / q).ln() } else { 0.0 };
        ratio(self.hit, self.alarm).max(ratio(1.0 - self.alarm, 1.0 - self.hit)).max(0.0)
    }

    fn mu(&self) -> f64 {
        if self.hit <= 0.0 || self.alarm >= 1.0 {
            return 0.0;
        }
        (normal_quantile(self.hit) - normal_quantile(self.alarm)).max(0.0)
    }

    /// How much more of the claim this contradicts: above 0 if it does.
    fn margin(&self, claim: &Claim) -> f64 {
        match claim.mu {
            Some(mu) => self.mu() - mu,
            None => claim.curve().iter().map(|(e, d)| self.delta(*e) - d).fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// Runs both worlds and judges. `progress` is called once a run.
pub fn audit(subject: &dyn Subject, pair: &Pair, runs: usize, progress: &dyn Fn()) -> Result<Finding> {
    if runs < 30 {
        return Err(Error::misuse(format!("{runs} runs in each world are too few: give at least 30 (300 find a factor of two)")));
    }
    let sample = |rows| -> Result<Vec<Vec<f64>>> {
        let mut world = subject.open(rows)?;
        (0..runs)
            .map(|_| {
                progress();
                world().map(|r| r.numbers)
            })
            .collect()
    };
    let (a, b) = (sample(&pair.a)?, sample(&pair.b)?);
    Ok(judge(subject.claim(), subject.one_gaussian(), pair.kind, &a, &b))
}

/// Number of the pair that shows most in a few runs of its own; they are not looked at again, so that the choice costs nothing.
pub fn telling(subject: &dyn Subject, pairs: &[Pair], runs: usize) -> Result<usize> {
    let half = runs / 2;
    let mut best = (0, f64::NEG_INFINITY);
    for (i, pair) in pairs.iter().enumerate() {
        let sample = |rows| -> Result<Vec<Vec<f64>>> {
            let mut world = subject.open(rows)?;
            (0..2 * half).map(|_| world().map(|r| r.numbers)).collect()
        };
        let (a, b) = (sample(&pair.a)?, sample(&pair.b)?);
        let direction = Direction::fit(&a[..half], &b[..half]);
        let score = |s: &[Vec<f64>]| -> Vec<f64> { s[half..].iter().map(|n| direction.score(n)).collect() };
        let shown = ratio(&score(&a), &score(&b));
        if shown > best.1 {
            best = (i, shown);
        }
    }
    Ok(best.0)
}

/// Judges samples of both worlds.
pub fn judge(claim: &Claim, one_gaussian: bool, pair: &'static str, a: &[Vec<f64>], b: &[Vec<f64>]) -> Finding {
    let runs = a.len().min(b.len());
    let third = runs / 3;
    let direction = Direction::fit(&a[..third], &b[..third]);
    // A linear score of a Gaussian vector is Gaussian; a length is not.
    let linear = one_gaussian && direction.linear();
    let score = |s: &[Vec<f64>]| -> Vec<f64> { s.iter().map(|n| direction.score(n)).collect() };
    let sorted = |s: &[Vec<f64>]| {
        let mut out = score(s);
        out.sort_by(f64::total_cmp);
        out
    };
    let (middle_a, middle_b) = (sorted(&a[third..2 * third]), sorted(&b[third..2 * third]));
    // Between the scores that were seen, so that a gap is cut in its middle.
    let mut all: Vec<f64> = middle_a.iter().chain(&middle_b).copied().collect();
    all.sort_by(f64::total_cmp);
    let step = (all.len() / 400).max(1);
    let candidates: Vec<f64> = all.windows(2).step_by(step).map(|w| 0.5 * (w[0] + w[1])).collect();
    let best = |value: &dyn Fn(&Rates) -> f64| {
        let of = |t: &f64| value(&Rates::guess(&middle_a, &middle_b, *t));
        candidates.iter().copied().max_by(|s, t| of(s).total_cmp(&of(t))).unwrap_or(0.0)
    };
    let (for_claim, for_epsilon) = (best(&|r| r.margin(claim)), best(&|r| r.epsilon(claim.delta)));
    let (last_a, last_b) = (score(&a[2 * third..runs]), score(&b[2 * third..runs]));
    let alpha = FALSE_ALARM / 3.0;
    let rates = Rates::at(&last_a, &last_b, for_claim, alpha);
    let epsilon = Rates::at(&last_a, &last_b, for_epsilon, alpha).epsilon(claim.delta);
    let measured = ratio(&last_a, &last_b);
    let shift = shift(measured, last_a.len() as u64, alpha);
    let mut violations = Vec::new();
    // A claim is a number that was rounded up, and a discrete distribution is off from the continuous one by less than this.
    let above = |found: f64, claimed: f64| found > claimed * (1.0 + 1e-6);
    if above(epsilon, claim.epsilon()) {
        violations.push(format!("epsilon is at least {epsilon:.3} and {:.3} is claimed", claim.epsilon()));
    }
    match claim.mu {
        Some(mu) if above(rates.mu(), mu) => violations.push(format!("mu is at least {:.3} and {mu:.3} is claimed", rates.mu())),
        Some(_) => {}
        None => {
            let broken = claim.curve().iter().find(|(e, d)| above(rates.delta(*e), *d));
            violations.extend(
                broken
                    .map(|(e, d)| format!("delta at epsilon {e:.3} is at least {:.3e} and {d:.3e} is claimed", rates.delta(*e))),
            );
        }
    }
    if let Some(mu) = claim.mu
        && linear
        && above(shift, mu)
    {
        violations.push(format!("the shift is at least {shift:.3} deviations and {mu:.3} are claimed"));
    }
    Finding {
        runs,
        pair,
        epsilon,
        mu: rates.mu(),
        shift,
        shift_judged: linear && claim.mu.is_some(),
        violations,
        scores: (last_a, last_b),
    }
}

/// Difference of means over the pooled deviation.
fn ratio(a: &[f64], b: &[f64]) -> f64 {
    let mean = |s: &[f64]| s.iter().sum::<f64>() / s.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let square = |s: &[f64], m: f64| s.iter().map(|x| (x - m) * (x - m)).sum::<f64>();
    let pooled = (square(a, ma) + square(b, mb)) / (a.len() + b.len() - 2).max(1) as f64;
    if pooled > 0.0 { (ma - mb) / pooled.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::Random;
    use privfit_kernel::account::{Adjacency, Event};

    fn worlds(mu: f64, runs: usize, seed: u64) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let mut random = Random::new(seed);
        let mut world = |shift: f64| (0..runs).map(|_| vec![shift + random.normal(), random.normal()]).collect();
        (world(mu), world(0.0))
    }

    fn claim(mu: f64) -> Claim {
        Claim::new(Event::gaussian(1.0 / mu), Adjacency::ZeroOut, 1e-5)
    }

    /// Ideal Gaussians at the claim: never an alarm; a quarter more than claimed: the shift sees it with 1500 runs, twice with 600.
    #[test]
    fn ideal_gaussians() {
        for seed in 0..40 {
            let (a, b) = worlds(2.0, 900, seed);
            let found = judge(&claim(2.0), true, "ideal", &a, &b);
            assert!(found.violations.is_empty(), "{:?}", found.violations);
            let shown = (found.mu, found.shift, found.epsilon);
            assert!(shown.0 > 0.5 && shown.1 > 1.2 && shown.2 > 0.4, "{shown:?}");
            let (a, b) = worlds(4.0, 600, seed);
            assert!(!judge(&claim(2.0), true, "ideal", &a, &b).violations.is_empty());
        }
        let flagged = (0..20).filter(|seed| {
            let (a, b) = worlds(2.5, 3000, 100 + seed);
            !judge(&claim(2.0), true, "ideal", &a, &b).violations.is_empty()
        });
        assert!(flagged.count() >= 18);
    }

    /// A sample that does not vary at all is told apart for certain.
    #[test]
    fn constants_differ() {
        let (a, b) = (vec![vec![1.0]; 300], vec![vec![1.0 + 1e-9]; 300]);
        assert!(!judge(&claim(2.0), true, "constant", &a, &b).violations.is_empty());
        assert!(judge(&claim(2.0), true, "constant", &a, &a).violations.is_empty());
    }
}
