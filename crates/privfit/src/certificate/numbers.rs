//! The numbers of a certificate, all worked out from the event: epsilon and its enclosure, the profile, and what the best attacker
//! reaches. Every number is an upper bound whatever the searches find, because each point of the profile is one.

use super::{Bounds, Plain, Point, Rho, Risk};
use privfit_kernel::account::{
    self, Accountant, Adjacency, ConcentratedAccountant, Curve, Event, RenyiAccountant, golden_minimum,
};

/// Deltas of the profile.
pub const DELTAS: [f64; 9] = [1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12];

/// False alarms that the attacker of the plain statement allows himself: one in a hundred.
pub const ATTACK_RATE: f64 = 0.01;

/// Epsilons below this make no difference to an attack.
const SMALLEST: f64 = 1e-4;

/// Steps of a search.
const SEARCH: u32 = 14;

/// Epsilon with its enclosure, none if nothing finite is proved.
pub(super) fn bounds(event: &Event, adjacency: Adjacency, delta: f64) -> Option<Bounds> {
    let answer = account::epsilon(event, adjacency, delta).ok().filter(|a| a.bound.upper.is_finite())?;
    let renyi = match delta > 0.0 {
        true => RenyiAccountant.epsilon(event, adjacency, delta).ok().map(|b| b.upper).filter(|e| e.is_finite()),
        false => None,
    };
    Some(Bounds { accountant: answer.accountant.into(), lower: answer.bound.lower, upper: answer.bound.upper, renyi })
}

/// Epsilon at every delta of the list.
pub(super) fn profile(zero_out: &Curve<'_>, replace_one: &Curve<'_>) -> Vec<Point> {
    DELTAS.map(|delta| Point { delta, zero_out: zero_out.epsilon(delta), replace_one: replace_one.epsilon(delta) }).to_vec()
}

/// Zero-concentrated privacy, where all releases have it.
pub(super) fn rho(event: &Event) -> Option<Rho> {
    let view = |adjacency| ConcentratedAccountant.rho(event, adjacency).ok().filter(|r| r.is_finite());
    Some(Rho { zero_out: view(Adjacency::ZeroOut)?, replace_one: view(Adjacency::ReplaceOne)? })
}

/// Smallest value that a golden-section search over ln epsilon finds, and where.
fn search(low: f64, high: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let (at, value) = golden_minimum(low.ln(), high.ln(), SEARCH, |x| f(x.exp()));
    (at.exp(), value)
}

/// Largest share of right alarms at a share of false alarms: every point (epsilon, delta) of the curve bounds it by
/// e^epsilon x + delta and by 1 - e^-epsilon (1 - delta - x). The first is convex in e^epsilon, the second has one minimum.
fn right_alarms(curve: &Curve<'_>, x: f64) -> f64 {
    let top = (1.0 / x).ln();
    let (at, steep) = search(SMALLEST, top, |e| e.exp() * x + curve.delta(e));
    // The second is the better one only where the attacker's curve is flat at x already: privacy is weak then.
    let flat = match at > 0.01 {
        true => 1.0,
        false => search(SMALLEST, 40.0, |e| 1.0 - (-e).exp() * (1.0 - curve.delta(e) - x)).1,
    };
    steep.min(flat).min(1.0)
}

/// What the best attacker reaches.
fn risk(curve: &Curve<'_>, claim: (f64, f64)) -> Risk {
    let (epsilon, at_delta) = claim;
    // Guesses with equal odds are right with probability (1 + TV)/2, and TV <= (e^e - 1 + 2 delta)/(e^e + 1) at every point.
    let guess = |e: f64, d: f64| 0.5 + 0.5 * ((0.5 * e).tanh() + 2.0 * d / (e.exp() + 1.0));
    let accuracy = guess(SMALLEST, curve.delta(SMALLEST)).min(guess(epsilon, at_delta)).min(1.0);
    // The loss exceeds epsilon with probability at most delta(e) / (1 - e^(e - epsilon)), for every e below.
    let beyond = |part: f64| {
        let e = epsilon - part * epsilon.min(1.0);
        curve.delta(e) / -(e - epsilon).exp_m1()
    };
    let except = match at_delta == 0.0 {
        true => 0.0,
        false => [0.02, 0.05, 0.1, 0.2, 0.4].into_iter().map(beyond).fold(1.0, f64::min),
    };
    // The claim is a point of the curve too; for pure privacy it is the best one, and a search ends beside it.
    let true_positive_rate = right_alarms(curve, ATTACK_RATE).min(epsilon.exp() * ATTACK_RATE + at_delta);
    Risk { true_positive_rate, accuracy, posterior: 1.0 / (1.0 + (-epsilon).exp()), except }
}

/// The group of plain words: numbers, and a sentence for the notion that was asked for. Curves come with the epsilon that is claimed.
pub(super) fn plain(
    asked: Adjacency,
    zero_out: Option<(&Curve<'_>, f64)>,
    replace_one: Option<(&Curve<'_>, f64)>,
    delta: f64,
) -> Plain {
    let view =
        |claim: Option<(&Curve<'_>, f64)>| claim.filter(|c| c.1 > 0.0).map(|(curve, epsilon)| risk(curve, (epsilon, delta)));
    let (zero_out, replace_one) = (view(zero_out), view(replace_one));
    let sentence = super::text::sentence(asked, if asked == Adjacency::ReplaceOne { replace_one } else { zero_out });
    Plain { false_positive_rate: ATTACK_RATE, zero_out, replace_one, sentence }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Gaussian shift of mu: the best attack at x is Phi(Phi^-1(x) + mu), the best guess Phi(mu/2).
    #[test]
    fn gaussians_have_closed_forms() {
        // Phi(-2.3263478740408408 + mu), Phi(mu / 2).
        let known = [
            (0.1, 0.012_995_4, 0.519_938_8),
            (0.5, 0.033_898_9, 0.598_706_3),
            (1.0, 0.092_362_2, 0.691_462_5),
            (3.0, 0.749_733_7, 0.933_192_8),
            (6.0, 0.999_880_4, 0.998_650_1),
        ];
        for (mu, alarms, guesses) in known {
            let event = Event::gaussian(1.0 / mu);
            let epsilon = crate::training::epsilon(&event, Adjacency::ZeroOut, 1e-6).unwrap();
            let risk = risk(&Curve::new(&event, Adjacency::ZeroOut), (epsilon, 1e-6));
            assert!(risk.true_positive_rate >= alarms - 1e-6 && risk.true_positive_rate <= 1.002 * alarms, "{mu} {risk:?}");
            assert!(risk.accuracy >= guesses - 1e-6 && risk.accuracy <= guesses + 1e-3, "{mu} {risk:?}");
            assert!(risk.except >= 1e-6 && risk.except < 1e-3 && risk.posterior > risk.accuracy, "{mu} {risk:?}");
        }
    }

    #[test]
    fn pure_mechanisms_have_the_formula_of_the_textbook() {
        let event = Event::pure(1.0);
        let risk = risk(&Curve::new(&event, Adjacency::ZeroOut), (1.0, 0.0));
        let sigmoid = 1.0 / (1.0 + (-1f64).exp());
        assert!((risk.accuracy - sigmoid).abs() < 1e-12 && (risk.posterior - sigmoid).abs() < 1e-12 && risk.except == 0.0);
        assert!(risk.true_positive_rate <= 0.01 * 1f64.exp() * 1.001, "{risk:?}");
    }
}
