//! A dominating pair from points of a privacy profile, for mechanisms of which only an upper bound on the profile is known: it composes
//! with everything else that has a loss distribution.
//!
//! The true profile is convex in a = e^epsilon. So it lies below every chord between points that lie above it, and below the lower hull of
//! all of them; a hull of chords is the profile of a mechanism whose losses sit on its vertices. No mechanism need attain it: upper bounds only.

use super::checked::probability_at_most;
use super::conversion::delta_from_curve;
use super::profile::{Pair, Profile};

/// Losses on the vertices of a convex profile that holds in both directions.
pub(crate) struct Table {
    /// Corners, ascending.
    loss: Vec<f64>,
    /// (P(L > e), Q(L > e)) for e from a vertex up to the next; the first entry is for all e below the first vertex.
    tail: Vec<Pair>,
}

impl Table {
    /// From upper bounds on delta at ascending epsilons, negative ones included; none if nothing finite can be made of them.
    pub(crate) fn new(points: impl Iterator<Item = (f64, f64)>) -> Option<Table> {
        // (loss, e^loss, delta); a = 0 with delta 1 is a point of every profile.
        let mut hull: Vec<(f64, f64, f64)> = vec![(f64::NEG_INFINITY, 0.0, 1.0)];
        let fall = |x: &(f64, f64, f64), y: &(f64, f64, f64)| (x.2 - y.2) / (y.1 - x.1);
        for (e, delta) in points {
            let point = (e, e.exp(), probability_at_most(delta));
            if !point.1.is_finite() || !(point.1 > hull[hull.len() - 1].1) {
                return None;
            }
            // Delta never rises: where the bound does, the bound before it holds.
            if point.2 >= hull[hull.len() - 1].2 {
                continue;
            }
            while hull.len() > 1 && fall(&hull[hull.len() - 2], &hull[hull.len() - 1]) <= fall(&hull[hull.len() - 1], &point) {
                hull.pop();
            }
            hull.push(point);
        }
        if hull.len() < 2 {
            return None;
        }
        let mut tail: Vec<Pair> = hull
            .windows(2)
            .map(|w| {
                let q = fall(&w[0], &w[1]);
                (w[0].2 + w[0].1 * q, q)
            })
            .collect();
        tail.push((hull[hull.len() - 1].2, 0.0));
        tail[0].0 = 1.0;
        let loss = hull[1..].iter().map(|p| p.0).collect();
        Some(Table { loss, tail })
    }

    /// Any mechanism with zero-concentrated privacy rho.
    pub(crate) fn concentrated(rho: f64) -> Option<Table> {
        // As far out as delta is a number, in fortieths of a standard deviation of the loss.
        let end = rho + 2.0 * (690.0 * rho).sqrt();
        if !(end < 600.0 && rho > 1e-20) {
            return None;
        }
        let step = (2.0 * rho).sqrt() / 40.0;
        let count = (end / step).ceil() as usize;
        let curve: Vec<(f64, f64)> = (0..=count)
            .map(|i| step * i as f64)
            .map(|e| (e, if e == 0.0 { zero_concentrated_variation(rho) } else { delta_from_curve(&|order| rho * order, e) }))
            .collect();
        Table::symmetric(&curve)
    }

    /// From bounds at epsilons from 0 upwards that hold in both directions: delta(-e) = 1 - e^-e + e^-e delta(e).
    pub(crate) fn symmetric(curve: &[(f64, f64)]) -> Option<Table> {
        let below = curve.iter().rev().filter(|p| p.0 > 0.0).map(|(e, d)| (-e, (-e).exp() * d - (-e).exp_m1()));
        Table::new(below.chain(curve.iter().copied()))
    }

    /// Entry of `tail` for e.
    fn at(&self, e: f64) -> usize {
        self.loss.partition_point(|l| *l <= e)
    }
}

/// Total variation at rho: by Pinsker (the divergence of order 1 is at most rho), and by Bretagnolle and Huber.
fn zero_concentrated_variation(rho: f64) -> f64 {
    let (pinsker, huber) = ((0.5 * rho).sqrt(), (-(-rho).exp_m1()).sqrt());
    (if pinsker < huber { pinsker } else { huber }) * (1.0 + 1e-12)
}

impl Profile for Table {
    fn above(&self, e: f64) -> Pair {
        self.tail[self.at(e)]
    }
    fn below(&self, e: f64) -> Pair {
        let (p, q) = self.tail[self.at(e)];
        (1.0 - p, self.tail[0].1 - q)
    }
    fn infinite(&self) -> f64 {
        self.tail[self.tail.len() - 1].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of a Gaussian's own curve is the Gaussian, up to its chords.
    #[test]
    fn chords_of_a_gaussian_lie_above_it() {
        let gaussian = |e: f64| super::super::gdp::gaussian_delta(e, 1.0).upper;
        let curve: Vec<(f64, f64)> = (0..1600).map(|i| 0.025 * f64::from(i)).map(|e| (e, gaussian(e))).collect();
        let table = Table::symmetric(&curve).unwrap();
        for i in -300..300 {
            let e = 0.0311 * f64::from(i);
            let (truth, ours) = (gaussian(e), table.delta(e));
            assert!(ours >= truth - 1e-12 && ours <= truth * 1.005 + 1e-12, "{e}: {truth} {ours}");
        }
    }

    #[test]
    fn concentrated_mechanisms_are_covered() {
        for rho in [1e-6, 0.01, 0.5, 20.0] {
            let table = Table::concentrated(rho).unwrap();
            for i in -40..200 {
                let e = 0.1 * f64::from(i) * rho.sqrt();
                let gaussian = super::super::gdp::gaussian_delta(e, (2.0 * rho).sqrt()).upper;
                assert!(table.delta(e) >= gaussian * (1.0 - 1e-9), "{rho} {e}");
            }
        }
    }
}
