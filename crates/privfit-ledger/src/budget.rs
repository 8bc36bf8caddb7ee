//! How spending is counted: a filter, valid although each job may be chosen after the answers of all before it.
//!
//! Two sums are kept, and a job is admitted while either of them stays within its budget.
//! * Epsilons of pure jobs, up to the cap.
//! * Renyi divergences of one order that was fixed when the ledger was made, up to what the conversion to (epsilon, delta) leaves of the
//!   cap. An order that is chosen later could follow the answers, and a tight composition of jobs that were chosen by answers is not proved.
//!
//! Why "either" costs no delta: let L be the privacy loss of everything and S the loss of the process that stops before the Renyi sum
//! exceeds its budget. On histories that end within the Renyi budget L = S, and E[(1 - exp(cap - S))+] <= delta; on all others the
//! pure sum is within the cap, so that L <= cap and their part of E[(1 - exp(cap - L))+] is 0.
//!
//! A conversion costs a little, so that one job with the whole epsilon would not fit. Such a job is let through as the only one ever: it was
//! chosen before anything was released, and its own tight accounting counts. A job inside of itself is planned before data are opened.
//!
//! Linear terms of objectives lie on a grid; their distance from the continuous distribution is no divergence. A thousandth of delta is set aside
//! for it, and each job is charged its part of delta.

use super::amount::Amount;
use privfit_account::{Adjacency, Event, epsilon, grid_gap, renyi};
use privfit_data::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// How spending is counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Pure epsilons add up to at most this.
    pub pure: Amount,
    /// Renyi divergences add up; none where delta is 0.
    pub renyi: Option<Renyi>,
}

/// Renyi divergences of one order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renyi {
    /// The order.
    pub order: f64,
    /// They add up to at most this.
    pub budget: Amount,
}

/// What a job costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// Its pure epsilon, if it has one.
    pub pure: Option<Amount>,
    /// Its Renyi divergence, if there is a bound.
    pub renyi: Option<Amount>,
    /// Its distance from continuous distributions, times 1 + exp(cap), in parts of delta.
    pub slack: Amount,
    /// It takes the whole budget as the only job.
    pub whole: bool,
}

impl Charge {
    /// Nothing is free.
    pub fn is_free(&self) -> bool {
        self.pure == Some(Amount::default()) || self.renyi == Some(Amount::default())
    }
}

/// Part of delta that is set aside for slack.
const SLACK: f64 = 1e-3;

/// What the conversion at an order takes off epsilon.
fn conversion(order: f64, delta: f64) -> f64 {
    let delta = delta * (1.0 - SLACK);
    let cost = ((1.0 / delta).ln() + (order - 1.0) * (-1.0 / order).ln_1p() - order.ln()) / (order - 1.0);
    cost.max(0.0) * (1.0 + 1e-12)
}

impl Rule {
    /// The rule of a cap.
    pub fn of(cap: Amount, delta: f64) -> Result<Rule> {
        if !(0.0..1.0).contains(&delta) || cap == Amount::default() {
            return Err(Error::misuse("a budget needs a positive epsilon and a delta from 0 to below 1: give ")
                .naming("epsilon")
                .text(" and ")
                .naming("delta"));
        }
        if delta == 0.0 {
            return Ok(Rule { pure: cap, renyi: None });
        }
        // The order that allows the most Gaussians. Few digits, so that the number reads well.
        let orders = (0..=600).map(|i| 1.01 * 1.016f64.powi(i)).map(|o| format!("{o:.3e}").parse::<f64>().unwrap_or(2.0));
        let room = |o: f64| (cap.number() - conversion(o, delta)) / o;
        let best = orders.max_by(|a, b| room(*a).total_cmp(&room(*b))).unwrap_or(2.0);
        let left = cap.number() - conversion(best, delta);
        let renyi = if left > 1e-9 { Some(Renyi { order: best, budget: Amount::down(left)? }) } else { None };
        Ok(Rule { pure: cap, renyi })
    }

    /// Whether keeping to this rule keeps to the cap.
    pub fn fits(&self, cap: Amount, delta: f64) -> bool {
        let renyi = self.renyi.is_none_or(|r| {
            delta > 0.0
                && (1.001..=16384.0).contains(&r.order)
                && r.budget.number() + conversion(r.order, delta) <= cap.number() * (1.0 + 1e-12)
        });
        (0.0..1.0).contains(&delta) && cap > Amount::default() && self.pure == cap && renyi
    }

    /// What an event costs by this rule, rounded up.
    pub fn charge(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Charge {
        let finite = |x: f64| Amount::round_up(x).ok().filter(|a| *a > Amount::default());
        let pure = epsilon(event, adjacency, 0.0).ok().and_then(|a| finite(a.bound.upper));
        let gap = grid_gap(event, adjacency).unwrap_or(f64::INFINITY);
        let part = if gap == 0.0 { 0.0 } else { gap * (1.0 + self.pure.number().exp()) / delta };
        let slack = if gap == 0.0 { Some(Amount::ZERO) } else { Amount::round_up(part).ok().filter(|s| s.number() <= SLACK) };
        // Errors of the sums behind a divergence are far below what is added here.
        let cost = |r: Renyi| renyi(event, adjacency, r.order).ok().and_then(|x| finite(x * (1.0 + 1e-12)));
        let renyi = self.renyi.filter(|_| slack.is_some()).and_then(cost);
        Charge { pure, renyi, slack: slack.unwrap_or_default(), whole: false }
    }
}

/// What was spent, by the records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// Pure epsilons; none if a job had none.
    pub pure: Option<Amount>,
    /// Renyi divergences; none if a job had no bound.
    pub renyi: Option<Amount>,
    /// Parts of delta that slack has taken.
    pub slack: Amount,
    /// Jobs.
    pub jobs: u64,
    /// Jobs that were released.
    pub released: u64,
    /// One of them took everything.
    pub whole: bool,
}

impl Spent {
    /// Nothing yet.
    pub const NOTHING: Spent =
        Spent { pure: Some(Amount::ZERO), renyi: Some(Amount::ZERO), slack: Amount::ZERO, jobs: 0, released: 0, whole: false };

    /// With one more job.
    pub fn and(&self, charge: &Charge) -> Spent {
        let sum = |a: Option<Amount>, b: Option<Amount>| a.zip(b).and_then(|(a, b)| a.plus(b));
        Spent {
            pure: sum(self.pure, charge.pure),
            renyi: sum(self.renyi, charge.renyi),
            slack: self.slack.plus(charge.slack).unwrap_or(Amount::LARGEST),
            jobs: self.jobs + 1,
            released: self.released,
            whole: self.whole || charge.whole,
        }
    }

    /// Whether a rule allows so much.
    pub fn within(&self, rule: &Rule) -> bool {
        let pure = self.pure.is_some_and(|p| p <= rule.pure);
        let renyi = self.renyi.zip(rule.renyi).is_some_and(|(spent, r)| spent <= r.budget);
        self.whole && self.jobs == 1 || !self.whole && (pure || renyi && self.slack.number() <= SLACK)
    }

    /// Part of the budget that is gone, by the sum that leaves most.
    pub fn part(&self, rule: &Rule) -> f64 {
        let of = |spent: Option<Amount>, all: Amount| spent.map_or(f64::INFINITY, |s| s.number() / all.number());
        let renyi = rule.renyi.map_or(f64::INFINITY, |r| of(self.renyi, r.budget));
        if self.whole { 1.0 } else { of(self.pure, rule.pure).min(renyi) }
    }

    /// Epsilon that so much amounts to, whatever was chosen after which answer; at most the cap.
    pub fn epsilon(&self, rule: &Rule, delta: f64) -> f64 {
        if self.jobs == 0 {
            return 0.0;
        }
        let pure = self.pure.map_or(f64::INFINITY, Amount::number);
        let renyi = self.renyi.zip(rule.renyi).map_or(f64::INFINITY, |(s, r)| s.number() + conversion(r.order, delta));
        if self.whole { rule.pure.number() } else { pure.min(renyi).min(rule.pure.number()) }
    }

    /// Largest epsilon that one more job may have at delta: as the first and only one, as a Gaussian, or as a pure one.
    pub fn next(&self, rule: &Rule, adjacency: Adjacency, delta: f64) -> f64 {
        if self.jobs == 0 {
            return rule.pure.number();
        }
        if self.whole {
            return 0.0;
        }
        let pure = self.pure.map_or(0.0, |p| rule.pure.minus(p).number());
        let gaussian = self.renyi.zip(rule.renyi).map_or(0.0, |(spent, r)| {
            let factor = if adjacency == Adjacency::ReplaceOne { 2.0 } else { 1.0 };
            let mu = (2.0 * r.budget.minus(spent).number() / r.order).sqrt();
            let event = Event::GaussianDp { mu: mu / factor };
            if mu > 1e-9 { epsilon(&event, adjacency, delta).map_or(0.0, |a| a.bound.lower) } else { 0.0 }
        });
        pure.max(gaussian)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privfit_account::{Target, calibrate};

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap()
    }

    fn gaussian(epsilon: f64, delta: f64) -> Event {
        let event = |nm: f64| Event::Gaussian { noise_multiplier: nm, replace_factor: 2.0 };
        event(calibrate::<privfit_data::Error>(Target { epsilon, delta }, |x| Ok(event(x)), Adjacency::ZeroOut).unwrap())
    }

    #[test]
    fn budgets_leave_room_for_what_they_say() {
        for (cap, delta) in [("1", 1e-5), ("0.1", 1e-9), ("8", 1e-6), ("3", 0.0)] {
            let cap = amount(cap);
            let rule = Rule::of(cap, delta).unwrap();
            assert!(rule.fits(cap, delta), "{cap} {delta}");
            assert!(!rule.fits(amount("0.01"), delta));
            if let Some(r) = rule.renyi {
                let more = Renyi { budget: r.budget.plus(amount("0.001")).unwrap(), ..r };
                assert!(!Rule { renyi: Some(more), ..rule }.fits(cap, delta));
                // Most of it is there for Gaussians: one of four fifths of the epsilon fits.
                let charge = rule.charge(&gaussian(0.8 * cap.number(), delta), Adjacency::ZeroOut, delta);
                assert!(Spent::NOTHING.and(&charge).within(&rule), "{cap} {delta}: {charge:?} of {rule:?}");
            }
        }
        assert!(Rule::of(amount("1"), 1.0).is_err() && Rule::of(amount("0"), 0.1).is_err());
    }

    /// The sum of many is far below the sum of their epsilons, and never below what a tight accountant says about fixed jobs.
    #[test]
    fn twelve_jobs_cost_less_than_twelve_times_one() {
        let (delta, adjacency) = (1e-6, Adjacency::ZeroOut);
        let rule = Rule::of(amount("4.5"), delta).unwrap();
        let event = gaussian(1.0, delta);
        let charge = rule.charge(&event, adjacency, delta);
        let spent = (0..12).fold(Spent::NOTHING, |s, _| s.and(&charge));
        let tight = epsilon(&event.repeated(12), adjacency, delta).unwrap().bound.upper;
        let filter = spent.epsilon(&rule, delta);
        assert!(spent.within(&rule) && tight <= filter && filter < 1.15 * tight, "{tight} {filter}");
    }

    #[test]
    fn pure_jobs_add_up_exactly() {
        for delta in [0.0, 1e-6] {
            let rule = Rule::of(amount("1"), delta).unwrap();
            let charge = rule.charge(&Event::pure(0.1), Adjacency::ZeroOut, delta);
            assert_eq!(charge.pure, Some(amount("0.1")));
            let mut spent = Spent::NOTHING;
            for _ in 0..10 {
                spent = spent.and(&charge);
                assert!(spent.within(&rule));
            }
            assert!(!spent.and(&charge).within(&rule), "an eleventh");
        }
    }

    #[test]
    fn what_has_no_cost_is_not_admitted() {
        let rule = Rule::of(amount("1"), 1e-6).unwrap();
        let why = Event::NotPrivate { why: "x".into() };
        assert!(!Spent::NOTHING.and(&rule.charge(&why, Adjacency::ZeroOut, 1e-6)).within(&rule));
        let pure = Rule::of(amount("1"), 0.0).unwrap();
        assert!(!Spent::NOTHING.and(&pure.charge(&Event::gaussian(100.0), Adjacency::ZeroOut, 0.0)).within(&pure));
    }

    #[test]
    fn what_is_said_to_fit_next_fits() {
        let (delta, adjacency) = (1e-6, Adjacency::ZeroOut);
        let rule = Rule::of(amount("3"), delta).unwrap();
        let spent = Spent::NOTHING.and(&rule.charge(&gaussian(1.0, delta), adjacency, delta));
        let next = spent.next(&rule, adjacency, delta);
        assert!(next > 1.0, "{next}");
        let fits = |e: f64| spent.and(&rule.charge(&gaussian(e, delta), adjacency, delta)).within(&rule);
        assert!(fits(next * 0.999) && !fits(next * 1.01));
    }
}
