//! Privacy accounting: pure arithmetic on public facts.
//!
//! An [`Event`] says what was done, an [`Adjacency`] what a neighbour is, and an [`Accountant`] turns both into certified
//! bounds on epsilon or delta. [`epsilon`] and [`delta`] ask every accountant that applies and report the tightest.

mod adjacency;
mod atoms;
mod calibrate;
mod checked;
mod chi;
mod compose;
mod conversion;
mod coordinates;
mod curve;
mod direction;
mod discretise;
mod error;
mod event;
mod gdp;
mod lattice;
mod memo;
mod objective;
mod pld;
mod profile;
mod pure;
mod range;
mod rdp;
mod selection;
mod selection_accountant;
mod sparse_vector;
mod special;
mod table;
mod toeplitz;
mod zcdp;

#[cfg(test)]
mod tests;

pub use adjacency::Adjacency;
pub use calibrate::{Target, calibrate, calibrate_bounds, calibrate_near};
pub use curve::Curve;
pub use error::{Error, Result};
pub use event::{Event, Objective, Stopping};
pub use gdp::GaussianAccountant;
pub use objective::ObjectiveAccountant;
pub use pld::LossDistributionAccountant;
pub use pure::PureAccountant;
pub use rdp::{RenyiAccountant, epsilon_at_orders, grid_gap, renyi};
pub use selection::expected_runs;
pub use selection_accountant::SelectionAccountant;
pub use sparse_vector::crossing_probability;
pub use special::golden_minimum;
pub use toeplitz::{FACTOR_BITS, Factor, Participation};
pub use zcdp::{ConcentratedAccountant, optimal_epsilon, simple_epsilon};

/// A certified enclosure of the true value; `upper` is what we print.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The worst case that the event describes costs at least this (0 where an accountant proves nothing from below).
    pub lower: f64,
    /// The true value is at most this.
    pub upper: f64,
}

/// A method of accounting.
pub trait Accountant: Sync {
    /// The name printed beside its answers.
    fn name(&self) -> &'static str;
    /// Smallest epsilon at a given delta.
    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound>;
    /// Smallest delta at a given epsilon.
    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound>;
    /// The upper bound on epsilon alone, where that is faster.
    fn epsilon_at_most(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<f64> {
        Ok(self.epsilon(event, adjacency, delta)?.upper)
    }
    /// The upper bound on delta alone, where that is faster.
    fn delta_at_most(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<f64> {
        Ok(self.delta(event, adjacency, epsilon)?.upper)
    }
}

/// All accountants, cheapest exact ones first.
pub const ALL: [&dyn Accountant; 7] = [
    &PureAccountant,
    &GaussianAccountant,
    &ObjectiveAccountant,
    &SelectionAccountant,
    &LossDistributionAccountant,
    &ConcentratedAccountant,
    &RenyiAccountant,
];

/// A bound and the accountant that proved it.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The enclosure.
    pub bound: Bound,
    /// Name of the accountant.
    pub accountant: &'static str,
}

pub(crate) fn check_delta(delta: f64, zero_allowed: bool) -> Result<()> {
    let allowed = if zero_allowed { delta >= 0.0 } else { delta >= f64::MIN_POSITIVE };
    if allowed && delta < 1.0 && !(delta > 0.0 && delta < f64::MIN_POSITIVE) {
        return Ok(());
    }
    Err(Error::domain(
        "delta",
        delta,
        if zero_allowed {
            "give a number of at least 0 and below 1"
        } else {
            "give a number above 0 and below 1 (0 is for pure mechanisms only)"
        },
    ))
}

pub(crate) fn check_epsilon(epsilon: f64) -> Result<()> {
    if epsilon >= f64::MIN_POSITIVE && epsilon.is_finite() {
        return Ok(());
    }
    Err(Error::domain("epsilon", epsilon, "give a positive finite number"))
}

/// Exact composition rules that leave nothing for another accountant to improve.
fn exact(accountant: &str) -> bool {
    matches!(accountant, "gaussian" | "pld")
}

/// Asks one accountant after the other and keeps the least upper and the largest lower bound. An answer that is not a number is none.
fn tightest(ask: impl Fn(&dyn Accountant) -> Result<Bound>) -> Result<Answer> {
    let mut best: Option<Answer> = None;
    let mut problem = None;
    let mut lower: f64 = 0.0;
    for accountant in ALL {
        match ask(accountant) {
            Ok(Bound { lower: below, upper: above }) => {
                let bound = Bound { lower: checked::at_least(below), upper: checked::at_most(above) };
                lower = if bound.lower > lower { bound.lower } else { lower };
                if best.is_none_or(|b| bound.upper < b.bound.upper) {
                    best = Some(Answer { bound, accountant: accountant.name() });
                }
                if exact(accountant.name()) && bound.upper.is_finite() && bound.upper - bound.lower <= 2e-3 * bound.upper {
                    break;
                }
                if accountant.name() == "objective" && bound.upper.is_finite() {
                    // The loss distribution would be made from the same curve, and the others are looser.
                    break;
                }
            }
            Err(error @ Error::Domain { .. }) if accountant.name() != "pure" => return Err(error),
            Err(error) => problem = Some(error),
        }
    }
    match (best, problem) {
        (Some(mut answer), _) if answer.bound.upper.is_finite() => {
            answer.bound.lower = if lower < answer.bound.upper { lower } else { answer.bound.upper };
            Ok(answer)
        }
        (Some(_), _) => Err(Error::unsupported("a finite epsilon at this delta", "give a larger delta, or more noise")),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::unsupported("this event", "describe it with other events")),
    }
}

/// Whether an upper bound is as good as another accountant could make it: closed forms, and loss distributions of pairs that are attained.
fn upper_is_tight(accountant: &str, event: &Event) -> bool {
    fn attained(event: &Event) -> bool {
        match event {
            Event::Exponential { .. } | Event::ZeroConcentrated { .. } | Event::Budget { .. } | Event::FixedSize { .. } => false,
            Event::Poisson { event, .. }
            | Event::Repeat { event, .. }
            | Event::AtMost { event, .. }
            | Event::Shuffled { event, .. } => attained(event),
            Event::Compose(events) => events.iter().all(attained),
            Event::DiscreteGaussian { sigma, .. } => *sigma > 1 << 20,
            _ => true,
        }
    }
    matches!(accountant, "gaussian" | "objective") || (accountant == "pld" && attained(event))
}

/// The least of the upper bounds alone: what a search for noise needs, several times faster.
fn least(event: &Event, ask: impl Fn(&dyn Accountant) -> Result<f64>) -> Result<Answer> {
    let mut best: Option<Answer> = None;
    let mut problem = None;
    let mut tight = false;
    for accountant in ALL {
        if tight && accountant.name() != "zcdp" {
            continue;
        }
        match ask(accountant).map(checked::at_most) {
            Ok(upper) => {
                if best.is_none_or(|b| upper < b.bound.upper) {
                    best = Some(Answer { bound: Bound { lower: 0.0, upper }, accountant: accountant.name() });
                }
                // The conversion of concentrated privacy costs nothing, and is the better one where the grid of the noise is charged for at a
                // large epsilon; a delta of 1 says nothing at all.
                tight |= upper.is_finite() && upper != 1.0 && upper_is_tight(accountant.name(), event);
            }
            Err(error @ Error::Domain { .. }) if accountant.name() != "pure" => return Err(error),
            Err(error) => problem = Some(error),
        }
    }
    match (best, problem) {
        (Some(answer), _) if answer.bound.upper.is_finite() => Ok(answer),
        (Some(_), _) => Err(Error::unsupported("a finite epsilon at this delta", "give a larger delta, or more noise")),
        (None, problem) => Err(problem.unwrap_or_else(|| Error::unsupported("this event", "describe it with other events"))),
    }
}

/// Selections whose own accountant is the tightest wherever it matters; Renyi accounting is a little tighter at very large epsilons.
fn bounded_selection(event: &Event) -> bool {
    matches!(event, Event::Select { stopping: Stopping::Uniform { .. } | Stopping::Harmonic { .. }, .. })
}

/// Mixtures of pairs are no further apart than the worst pair (joint convexity).
fn worst(events: &[Event], ask: impl Fn(&Event) -> Result<Answer>) -> Result<Answer> {
    let mut most: Option<Answer> = None;
    for event in events {
        let answer = ask(event)?;
        if most.is_none_or(|m| answer.bound.upper > m.bound.upper) {
            most = Some(answer);
        }
    }
    most.ok_or_else(|| Error::unsupported("a choice of nothing", "describe at least one event"))
}

/// Smallest epsilon at a given delta that any accountant proves. Delta 0 asks for pure privacy.
pub fn epsilon(event: &Event, adjacency: Adjacency, delta: f64) -> Result<Answer> {
    memo::remembered("epsilon", event, adjacency, delta, || epsilon_anew(event, adjacency, delta))
}

fn epsilon_anew(event: &Event, adjacency: Adjacency, delta: f64) -> Result<Answer> {
    check_delta(delta, true)?;
    event.validate()?;
    if delta == 0.0 {
        let bound = PureAccountant.epsilon(event, adjacency, 0.0)?;
        return Ok(Answer { bound, accountant: PureAccountant.name() });
    }
    if let Event::Either(events) = event {
        return worst(events, |e| epsilon(e, adjacency, delta));
    }
    if bounded_selection(event) {
        return Ok(Answer {
            bound: SelectionAccountant.epsilon(event, adjacency, delta)?,
            accountant: SelectionAccountant.name(),
        });
    }
    let answer = tightest(|a| a.epsilon(event, adjacency, delta))?;
    Ok(coordinates::raise(answer, event, adjacency, |e| tightest(|a| a.epsilon(e, adjacency, delta))))
}

/// The upper bound on epsilon alone, without the work for a lower one.
pub fn epsilon_at_most(event: &Event, adjacency: Adjacency, delta: f64) -> Result<Answer> {
    memo::remembered("epsilon_at_most", event, adjacency, delta, || epsilon_at_most_anew(event, adjacency, delta))
}

fn epsilon_at_most_anew(event: &Event, adjacency: Adjacency, delta: f64) -> Result<Answer> {
    if delta == 0.0 || matches!(event, Event::Either(_) | Event::Select { .. }) {
        return epsilon(event, adjacency, delta);
    }
    check_delta(delta, true)?;
    event.validate()?;
    least(event, |a| a.epsilon_at_most(event, adjacency, delta))
}

/// Smallest delta at a given epsilon that any accountant proves.
pub fn delta(event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Answer> {
    memo::remembered("delta", event, adjacency, epsilon, || delta_anew(event, adjacency, epsilon))
}

fn delta_anew(event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Answer> {
    check_epsilon(epsilon)?;
    event.validate()?;
    if let Event::Either(events) = event {
        return worst(events, |e| self::delta(e, adjacency, epsilon));
    }
    if bounded_selection(event) {
        return Ok(Answer {
            bound: SelectionAccountant.delta(event, adjacency, epsilon)?,
            accountant: SelectionAccountant.name(),
        });
    }
    let answer = tightest(|a| a.delta(event, adjacency, epsilon))?;
    Ok(coordinates::raise(answer, event, adjacency, |e| tightest(|a| a.delta(e, adjacency, epsilon))))
}

/// The upper bound on delta alone, without the work for a lower one.
pub fn delta_at_most(event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Answer> {
    memo::remembered("delta_at_most", event, adjacency, epsilon, || delta_at_most_anew(event, adjacency, epsilon))
}

fn delta_at_most_anew(event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Answer> {
    if matches!(event, Event::Either(_) | Event::Select { .. }) {
        return delta(event, adjacency, epsilon);
    }
    check_epsilon(epsilon)?;
    event.validate()?;
    least(event, |a| a.delta_at_most(event, adjacency, epsilon))
}
