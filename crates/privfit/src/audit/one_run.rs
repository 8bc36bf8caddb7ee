//! Bounds from one run in which each of m canaries took part by a fair coin. An auditor names r of them, each with a guess, and v guesses
//! are right.
//!
//! *By (epsilon, delta)*, after Steinke, Nasr, Jagielski 2023. Under pure privacy each guess is right with a chance of at most
//! q = e^eps / (1 + e^eps), whatever happened to the others, so that v is at most binomial: P(V >= v) <= F(v), F the tail of
//! Bin(r, q). A delta adds, for each canary, a bad event of chance 2 delta in which its guess is right for sure; i bad events at
//! once lower the bar by i, and Markov's inequality for their number gives 2 m delta max over i of (F(v - i) - F(v)) / i.
//!
//! *By a trade-off curve*, after Mahloujifar, Melis, Chaudhuri 2024. Let h be the inverse of the largest power at a level that the claim
//! allows. Fix canary i and the others' coins, and the event that i is named and that w - 1 of the others are right: its chance
//! with a wrong guess for i is at least h of its chance with a right one. Averaged over canaries and coins (h is convex) and summed
//! over w > k this says
//!     l_k >= h(r_{k+1}),   r_k = sum over w >= k of w p_w / m,   l_k = sum over w >= k of (r - w) p_w / m,
//! p_w the chance of w right guesses. If P(V >= v) were tau, then r_v >= tau v / m with equality if all of it sits at v, and going
//! down from v each step needs at least l_k = h(r_{k+1}), r_k = r_{k+1} + k (l_k - l_{k+1}) / (r - k). In the end r_0 + l_0 is r / m,
//! since all p_w add to 1. If the least that is needed is more, the chance is below tau. (More mass above v, or more at any k, only
//! raises r_k further: by induction the excess of r_k is at least k / r times the excess of r_k + l_k.)

use super::bounds::{at_least, normal, normal_quantile};

/// Named canaries and right guesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guesses {
    /// Canaries in all.
    pub canaries: u64,
    /// Guesses.
    pub named: u64,
    /// Right ones.
    pub right: u64,
}

impl Guesses {
    /// Names the half of `named` with the highest scores as present and as many with the lowest as absent.
    pub fn of(scores: &[f64], present: &[bool], named: u64) -> Guesses {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|i, j| scores[*j].total_cmp(&scores[*i]));
        let half = (named / 2).clamp(1, scores.len() as u64 / 2) as usize;
        let high = order[..half].iter().filter(|i| present[**i]).count();
        let low = order[order.len() - half..].iter().filter(|i| !present[**i]).count();
        Guesses { canaries: scores.len() as u64, named: 2 * half as u64, right: (high + low) as u64 }
    }

    /// Chance of at least so many right guesses under (epsilon, delta).
    pub fn chance(&self, epsilon: f64, delta: f64) -> f64 {
        let q = 1.0 / (1.0 + (-epsilon).exp());
        let tail = at_least(self.right, self.named, q);
        let mut worst = 0.0f64;
        if delta > 0.0 {
            // F(v - i) - F(v), one probability after the other.
            let (n, log_odds) = (self.named as f64, epsilon);
            let log_choose = |k: f64| libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
            let mut sum = 0.0;
            for i in 1..=self.right {
                let k = (self.right - i) as f64;
                sum += (log_choose(k) + k * log_odds + n * (1.0 - q).ln()).exp();
                worst = worst.max(sum / i as f64);
            }
        }
        (tail + 2.0 * self.canaries as f64 * delta * worst).min(1.0)
    }

    /// Epsilon is at least this, with an error of at most alpha.
    pub fn epsilon(&self, delta: f64, alpha: f64) -> f64 {
        if self.chance(0.0, delta) > alpha {
            return 0.0;
        }
        edge(40.0, |e| self.chance(e, delta) <= alpha)
    }

    /// Whether so many right guesses are less likely than alpha under a claim, given the inverse of its largest power.
    pub(crate) fn excluded(&self, alpha: f64, inverse: &dyn Fn(f64) -> f64) -> bool {
        let (m, r) = (self.canaries as f64, self.named as f64);
        let v = self.right as f64;
        let (mut right, mut wrong) = (alpha * v / m, alpha * (r - v) / m);
        for k in (0..self.right).rev() {
            let k = k as f64;
            let next = inverse(right);
            right += k / (r - k) * (next - wrong);
            wrong = next;
        }
        right + wrong > r / m * (1.0 + 1e-9)
    }

    /// Mu is at least this, if the trade-off is Gaussian, with an error of at most alpha.
    pub fn mu(&self, alpha: f64) -> f64 {
        let excluded = |mu: f64| self.excluded(alpha, &|y| gaussian_inverse(y, mu));
        if excluded(0.0) { edge(20.0, excluded) } else { 0.0 }
    }
}

/// Least level that a test of this power needs against a shift of mu.
pub(crate) fn gaussian_inverse(power: f64, mu: f64) -> f64 {
    if power <= 0.0 {
        return 0.0;
    }
    normal(normal_quantile(power.min(1.0)) - mu)
}

/// The same for points of a curve: power <= delta + e^eps level, and 1 - level <= delta + e^eps (1 - power).
pub(crate) fn curve_inverse(power: f64, curve: &[(f64, f64)]) -> f64 {
    let one = |(e, d): &(f64, f64)| ((power - d) * (-e).exp()).max(1.0 - d - e.exp() * (1.0 - power));
    curve.iter().map(one).fold(0.0, f64::max).min(1.0)
}

/// Largest number up to which it holds.
fn edge(limit: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, limit);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// How many guesses promise the best bound, if scores are Gaussian with this mu: from public numbers, before the run.
pub(crate) fn best_count(canaries: u64, mu: f64, bound: impl Fn(&Guesses) -> f64) -> u64 {
    let shares = [0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0];
    let expected = |share: f64| {
        let named = ((share * canaries as f64) as u64).max(2) / 2 * 2;
        // The threshold that half of the named ones are above: half of the canaries are shifted by mu.
        let above = |t: f64| 0.5 * (normal(-t) + normal(mu - t));
        let target = 0.5 * named as f64 / canaries as f64;
        let (mut low, mut high) = (-10.0, 20.0 + mu);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if above(middle) > target { low = middle } else { high = middle }
        }
        let right = 0.5 * normal(mu - low) / target;
        Guesses { canaries, named, right: (right * named as f64).round() as u64 }
    };
    let best = shares.iter().map(|s| expected(*s)).max_by(|a, b| bound(a).total_cmp(&bound(b)));
    best.map_or(2, |g| g.named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::Random;
    use privfit_kernel::account::{Adjacency, Event, epsilon};

    /// One run with ideal scores.
    fn play(canaries: usize, mu: f64, random: &mut Random) -> (Vec<f64>, Vec<bool>) {
        let present: Vec<bool> = (0..canaries).map(|_| random.below(2) == 1).collect();
        let scores = present.iter().map(|p| random.normal() + if *p { mu } else { 0.0 }).collect();
        (scores, present)
    }

    /// The mu of an epsilon at delta 1e-5.
    fn mu_of(target: f64) -> f64 {
        let at = |mu: f64| epsilon(&Event::GaussianDp { mu }, Adjacency::ZeroOut, 1e-5).unwrap().bound.upper;
        edge(10.0, |mu| mu < 1e-3 || at(mu) <= target)
    }

    /// Ideal Gaussians, 95 %: means near 0.68 (epsilon 2), 1.51 (4), 3.04 (8) with a thousand canaries; wrong in no more than 5 %.
    #[test]
    fn near_what_ideal_gaussians_allow_and_not_above() {
        let mut random = Random::new(5);
        for (target, expected) in [(2.0, 0.68), (4.0, 1.51), (8.0, 3.04)] {
            let mu = mu_of(target);
            let first = best_count(1000, mu, |g| g.epsilon(1e-5, 0.05));
            let second = best_count(1000, mu, |g| g.mu(0.05));
            let (mut mean, mut mean_mu, mut above) = (0.0, 0.0, 0);
            let runs = 40;
            for _ in 0..runs {
                let (scores, present) = play(1000, mu, &mut random);
                let found = Guesses::of(&scores, &present, first).epsilon(1e-5, 0.05);
                let found_mu = Guesses::of(&scores, &present, second).mu(0.05);
                mean += found / f64::from(runs);
                mean_mu += found_mu / f64::from(runs);
                above += u32::from(found > target) + u32::from(found_mu > mu);
            }
            println!("epsilon {target}: by (epsilon, delta) {mean:.2}, mu {mean_mu:.2} of {mu:.2}");
            assert!(above <= 8, "{above} of {} above the truth", 2 * runs);
            assert!((mean - expected).abs() < 0.3 * expected, "{mean} {expected}");
            let by_curve = epsilon(&Event::GaussianDp { mu: mean_mu }, Adjacency::ZeroOut, 1e-5).unwrap().bound.upper;
            assert!(by_curve > mean, "the curve knows more: {by_curve} {mean}");
        }
    }

    /// Against the truth itself: the chance of an alarm is below alpha, by far more runs.
    #[test]
    fn false_alarms_are_rare() {
        let mut random = Random::new(6);
        let (mut by_curve, mut by_epsilon) = (0, 0);
        for _ in 0..2000 {
            let (scores, present) = play(100, 1.0, &mut random);
            let guesses = Guesses::of(&scores, &present, 20);
            by_curve += u32::from(guesses.excluded(0.05, &|y| gaussian_inverse(y, 1.0)));
            by_epsilon += u32::from(guesses.chance(4.38, 1e-5) <= 0.05);
        }
        assert!(by_curve <= 140 && by_epsilon <= 140, "{by_curve} {by_epsilon} of 2000 at 5 %");
        // Points of the Gaussian curve are never stricter than the curve.
        let points: Vec<(f64, f64)> = [0.5, 1.0, 2.0]
            .iter()
            .map(|e| (*e, privfit_kernel::account::delta(&Event::gaussian(1.0), Adjacency::ZeroOut, *e).unwrap().bound.upper))
            .collect();
        for i in 1..100 {
            let y = f64::from(i) / 100.0;
            assert!(curve_inverse(y, &points) <= gaussian_inverse(y, 1.0) + 1e-9, "{y}");
        }
    }
}
