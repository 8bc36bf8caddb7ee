//! The privacy curve of an event, and what it lets the best attacker do, as points of a plot. Every point is a bound.

use privfit_kernel::account::{Adjacency, Curve, Event};
use serde::Serialize;

/// Points of a curve.
const POINTS: u32 = 72;
/// Where a curve begins; epsilons below make no difference to an attack.
const SMALLEST: f64 = 1e-4;
/// Smallest delta that is drawn.
pub(super) const FLOOR: f64 = 1e-12;
/// Largest epsilon that is drawn.
const LARGEST: f64 = 60.0;
/// Small shares of false alarms; larger ones follow in steps of 2 %.
const RATES: [f64; 11] = [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08];

/// Epsilon and the delta that holds there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spot {
    /// Epsilon.
    pub epsilon: f64,
    /// Delta, at most.
    pub delta: f64,
}

/// What the best attacker reaches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Attack {
    /// Share of false alarms.
    pub false_positive_rate: f64,
    /// Share of right alarms, at most.
    pub true_positive_rate: f64,
}

/// A notion of neighbours and everything that is proved under it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrivacyCurve {
    /// The notion.
    pub adjacency: Adjacency,
    /// The claim of the certificate.
    pub claim: Spot,
    /// The curve, from small epsilons to large ones.
    pub points: Vec<Spot>,
    /// The trade-off.
    pub attacks: Vec<Attack>,
}

impl PrivacyCurve {
    /// The curve of an event whose epsilon is claimed. `known` is a share of right alarms that is stated elsewhere, with its share of
    /// false alarms: the plot must not say more than the sentence beside it.
    pub(super) fn new(event: &Event, adjacency: Adjacency, claim: Spot, known: Option<Attack>) -> PrivacyCurve {
        let curve = Curve::new(event, adjacency);
        let end = curve.epsilon(FLOOR).unwrap_or(claim.epsilon).max(claim.epsilon).min(LARGEST);
        // The true curve falls, so that a bound at a smaller epsilon holds at a larger one.
        let mut least = 1.0f64;
        let points: Vec<Spot> = (0..=POINTS)
            .map(|i| {
                let epsilon = (end * f64::from(i) / f64::from(POINTS)).max(SMALLEST);
                least = least.min(curve.delta(epsilon));
                Spot { epsilon, delta: least }
            })
            .collect();
        let rates = RATES.into_iter().chain((5..=50).map(|i| f64::from(i) / 50.0));
        let attack = |rate: f64| {
            let best = points.iter().chain([&claim]).map(|p| right_alarms(*p, rate)).fold(1.0, f64::min);
            let stated = known.filter(|k| k.false_positive_rate == rate).map_or(1.0, |k| k.true_positive_rate);
            Attack { false_positive_rate: rate, true_positive_rate: best.min(stated).max(rate) }
        };
        let attacks = rates.map(attack).collect();
        PrivacyCurve { adjacency, claim, points, attacks }
    }
}

/// What one point of the curve says about an attack: at most e^epsilon x + delta right alarms, seen from the false alarms, and at most
/// 1 - e^-epsilon (1 - delta - x), seen from the people who are missed.
fn right_alarms(p: Spot, x: f64) -> f64 {
    (p.epsilon.exp() * x + p.delta).min(1.0 - (-p.epsilon).exp() * (1.0 - p.delta - x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Gaussian shift of 1: the best attack at 5 % finds Phi(Phi^-1(0.05) + 1), at 50 % it finds Phi(1).
    #[test]
    fn a_gaussian_has_its_trade_off() {
        let event = Event::gaussian(1.0);
        let claim = Spot { epsilon: crate::training::epsilon(&event, Adjacency::ZeroOut, 1e-6).unwrap(), delta: 1e-6 };
        let curve = PrivacyCurve::new(&event, Adjacency::ZeroOut, claim, None);
        for (rate, truth) in [(0.05, 0.259_511), (0.5, 0.841_345)] {
            let found = curve.attacks.iter().find(|a| a.false_positive_rate == rate).unwrap().true_positive_rate;
            assert!(found >= truth - 1e-6 && found <= truth + 2e-3, "{rate} {found}");
        }
        assert!(curve.points.windows(2).all(|p| p[1].delta <= p[0].delta && p[1].epsilon > p[0].epsilon));
        assert!(curve.attacks.windows(2).all(|a| a[1].true_positive_rate >= a[0].true_positive_rate));
    }

    #[test]
    fn pure_privacy_is_two_lines() {
        let claim = Spot { epsilon: 1.0, delta: 0.0 };
        let curve = PrivacyCurve::new(&Event::pure(1.0), Adjacency::ZeroOut, claim, None);
        for a in &curve.attacks {
            let x = a.false_positive_rate;
            let truth = (1f64.exp() * x).min(1.0 - (-1f64).exp() * (1.0 - x));
            assert!((a.true_positive_rate - truth).abs() < 1e-9, "{a:?} {truth}");
        }
    }
}
