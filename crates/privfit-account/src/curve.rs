//! Many points of one privacy profile. Composing costs far more than reading, and a distribution that was composed for one question answers its
//! neighbours too, a little less tightly and as validly.

use super::checked::{at_least, largest, probability_at_most, smaller};
use super::compose::{Composed, Question};
use super::event::Step;
use super::gdp::{GaussianAccountant, discrete_delta, discrete_epsilon};
use super::objective::ObjectiveAccountant;
use super::pld::{Parts, approximated, discrete_laplace_gap, distributions, parts};
use super::zcdp::ConcentratedAccountant;
use super::{Accountant, Adjacency, Bound, Event, check_delta, check_epsilon, selection};
use crate::error::Result;

/// Deltas that distributions are composed for: every delta from 0.1 to 10^-12 is within a factor of 32 of one, where it matters.
const ANCHORS: [f64; 4] = [2e-2, 1e-5, 1e-8, 1e-11];

/// The privacy profile of an event, prepared for many questions. Only upper bounds: ask [`super::epsilon`] for an enclosure.
pub struct Curve<'e> {
    event: &'e Event,
    adjacency: Adjacency,
    kind: Kind<'e>,
}

enum Kind<'e> {
    /// Each question is asked by itself.
    Asked,
    /// Composed once.
    Composed(Distributions<'e>),
    /// Many choices alone, whose table is made once; concentrated privacy may prove less.
    Choices(Parts),
    /// The worst of several.
    Worst(Vec<Curve<'e>>),
    /// The best of a random number of runs: the curve of one run, how far its weights grow (ln), the mean number of runs.
    Best { one: Box<Curve<'e>>, growth: f64, runs: f64 },
}

struct Distributions<'e> {
    steps: Vec<Step<'e>>,
    /// Log ratio between discrete and continuous Laplace noise.
    ratio: f64,
    /// Composed distributions, one list for each direction.
    directions: Vec<Vec<Composed>>,
}

impl Distributions<'_> {
    /// The larger of the directions, each by its best distribution.
    fn ask(&self, question: Question) -> f64 {
        let best =
            |distributions: &Vec<Composed>| distributions.iter().map(|l| l.answer(question, true)).fold(f64::INFINITY, smaller);
        largest(self.directions.iter().map(best))
    }

    fn epsilon(&self, delta: f64) -> Result<f64> {
        let bound = discrete_epsilon(delta * (-self.ratio).exp(), &self.steps, |d| {
            Ok(Bound { lower: 0.0, upper: self.ask(Question::Epsilon { delta: d }) })
        })?;
        Ok(bound.upper + 2.0 * self.ratio)
    }

    fn delta(&self, epsilon: f64) -> f64 {
        discrete_delta(epsilon, &self.steps, |e| {
            // Below zero the curve is at most its value at zero plus 1 - e^epsilon.
            let shifted = e - 2.0 * self.ratio;
            let value = probability_at_most(self.ask(Question::Delta { epsilon: at_least(shifted) }));
            self.ratio.exp() * (value - shifted.min(0.0).exp_m1())
        })
    }
}

impl<'e> Curve<'e> {
    /// Composes what has to be composed numerically; everything else is asked for when it is needed.
    pub fn new(event: &'e Event, adjacency: Adjacency) -> Curve<'e> {
        match event {
            Event::Either(events) => {
                let kind = Kind::Worst(events.iter().map(|e| Curve::new(e, adjacency)).collect());
                return Curve { event, adjacency, kind };
            }
            Event::Select { stopping, event: inner } => {
                let one = Box::new(Curve::new(inner, adjacency));
                let growth = selection::log_growth(*stopping, &|e| one.delta(e));
                let runs = selection::expected_runs(*stopping).max(1.0);
                return Curve { event, adjacency, kind: Kind::Best { one, growth, runs } };
            }
            _ => {}
        }
        let cheap =
            GaussianAccountant.delta(event, adjacency, 1.0).is_ok() || ObjectiveAccountant.delta(event, adjacency, 1.0).is_ok();
        let prepared = || {
            let steps = event.steps(adjacency).ok()?;
            let parts = parts(&steps, adjacency, super::range::WORK).ok().filter(|p| !p.is_empty())?;
            if parts.are_choices_alone() {
                return Some(Kind::Choices(parts));
            }
            let directions = distributions(&parts, &ANCHORS)?;
            Some(Kind::Composed(Distributions {
                ratio: discrete_laplace_gap(&steps),
                steps: approximated(&steps, adjacency),
                directions,
            }))
        };
        let kind = if cheap { None } else { prepared() }.unwrap_or(Kind::Asked);
        Curve { event, adjacency, kind }
    }

    /// An epsilon that holds at delta, none if nothing finite is proved.
    pub fn epsilon(&self, delta: f64) -> Option<f64> {
        check_delta(delta, true).ok()?;
        let read = match &self.kind {
            Kind::Composed(distributions) if delta > 0.0 => distributions.epsilon(delta).ok().filter(|e| e.is_finite()),
            Kind::Choices(parts) if delta > 0.0 => {
                let concentrated =
                    ConcentratedAccountant.epsilon(self.event, self.adjacency, delta).map_or(f64::INFINITY, |b| b.upper);
                Some(smaller(parts.at_most(Question::Epsilon { delta }), concentrated)).filter(|e| e.is_finite())
            }
            Kind::Worst(curves) => {
                return curves.iter().map(|c| c.epsilon(delta)).try_fold(0.0, |most: f64, e| Some(most.max(e?)));
            }
            Kind::Best { one, growth, runs } if delta > 0.0 => {
                let rest = delta / runs * (1.0 - 1e-12);
                return one.epsilon(rest).map(|e| (e + growth) * (1.0 + 1e-12)).filter(|e| e.is_finite());
            }
            _ => None,
        };
        read.or_else(|| super::epsilon(self.event, self.adjacency, delta).ok().map(|a| a.bound.upper).filter(|e| e.is_finite()))
    }

    /// A delta that holds at epsilon; 1 if nothing is proved.
    pub fn delta(&self, epsilon: f64) -> f64 {
        if check_epsilon(epsilon).is_err() {
            return 1.0;
        }
        match &self.kind {
            Kind::Composed(distributions) => probability_at_most(distributions.delta(epsilon)),
            Kind::Choices(parts) => {
                let concentrated = ConcentratedAccountant.delta(self.event, self.adjacency, epsilon).map_or(1.0, |b| b.upper);
                probability_at_most(smaller(parts.at_most(Question::Delta { epsilon }), concentrated))
            }
            Kind::Worst(curves) => largest(curves.iter().map(|c| c.delta(epsilon))),
            Kind::Best { one, growth, runs } => probability_at_most(runs * one.delta(epsilon - growth) * (1.0 + 1e-12)),
            Kind::Asked => super::delta(self.event, self.adjacency, epsilon).map_or(1.0, |a| probability_at_most(a.bound.upper)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve is never below the enclosure of a single question, and hardly above its upper end.
    #[test]
    fn curves_agree_with_single_questions() {
        let choice = Event::Exponential { epsilon: 0.2, replace_factor: 2.0 }.repeated(7);
        let discrete =
            Event::DiscreteGaussian { sigma: 1 << 30, sensitivity: 1 << 28, replace_sensitivity: 1 << 29, dimension: 9 };
        let laplace = Event::DiscreteLaplace { scale: 1 << 20, sensitivity: 1 << 18, replace_sensitivity: 1 << 19, dimension: 3 };
        for event in [
            Event::gaussian(1.1).sampled(0.01).repeated(500),
            choice.clone(),
            Event::Compose(vec![choice.clone(), discrete.clone()]),
            Event::Compose(vec![laplace.repeated(2), choice]),
            Event::gaussian(2.0),
            Event::pure(0.7),
            discrete.sampled(0.2).repeated(9),
        ] {
            for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
                let curve = Curve::new(&event, adjacency);
                for delta in [1e-4, 1e-6, 1e-9, 1e-12] {
                    let single = super::super::epsilon(&event, adjacency, delta).unwrap().bound;
                    let many = curve.epsilon(delta).unwrap();
                    assert!(many >= single.lower && many <= 1.003 * single.upper + 1e-6, "{event:?} {delta}: {single:?} {many}");
                }
                for epsilon in [1e-4, 0.1, 0.5, 2.0] {
                    let single = super::super::delta(&event, adjacency, epsilon).unwrap().bound;
                    let many = curve.delta(epsilon);
                    let near = many <= 1.02 * single.upper + 1e-12;
                    assert!(many >= single.lower && near, "{event:?} {adjacency} {epsilon}: {single:?} {many}");
                }
            }
        }
        let none = Event::NotPrivate { why: "test".into() };
        let curve = Curve::new(&none, Adjacency::ZeroOut);
        assert!(curve.epsilon(1e-5).is_none() && curve.delta(1.0) == 1.0);
    }
}
