//! The smallest parameter whose upper bound meets the target. It never overshoots: what it returns was checked.

use super::adjacency::Adjacency;
use super::event::Event;
use super::{Bound, check_delta, check_epsilon, delta, delta_at_most, epsilon, epsilon_at_most};
use crate::error::{Error, Result};

/// A guarantee to be met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// At most this epsilon ...
    pub epsilon: f64,
    /// ... at this delta (0 asks for pure privacy).
    pub delta: f64,
}

impl Target {
    /// How far an event is from the target, in logarithms: at most 0 if it is met.
    fn excess(&self, event: &Event, adjacency: Adjacency) -> Result<f64> {
        if self.delta == 0.0 {
            return Ok((epsilon(event, adjacency, 0.0)?.bound.upper / self.epsilon).ln());
        }
        Ok((delta_at_most(event, adjacency, self.epsilon)?.bound.upper.max(1e-300) / self.delta).ln())
    }

    /// How far a parameter without an event is from it: as far as one that guarantees nothing.
    fn farthest(&self) -> f64 {
        if self.delta == 0.0 { f64::INFINITY } else { (1.0 / self.delta).ln() }
    }
}

/// Smallest parameter whose event meets the target, by both readings of it; more of the parameter must mean more privacy (noise, not steps).
/// A parameter for which there is no event does not meet it; if none does, the last such error is the answer.
pub fn calibrate<E: From<Error>>(
    target: Target,
    event_of: impl Fn(f64) -> Result<Event, E>,
    adjacency: Adjacency,
) -> Result<f64, E> {
    Ok(search(target, &event_of, adjacency, (1.0, 2.0), 1e-5)?.0)
}

/// The same as `upper`, and a `lower` below which no parameter meets the target; several times as much work.
pub fn calibrate_bounds<E: From<Error>>(
    target: Target,
    event_of: impl Fn(f64) -> Result<Event, E>,
    adjacency: Adjacency,
) -> Result<Bound, E> {
    let (high, closed) = search(target, &event_of, adjacency, (1.0, 2.0), 1e-5)?;
    Ok(Bound { lower: not_below(target, &event_of, adjacency, high, closed)?, upper: high })
}

/// The same, to four digits, beginning near a guess: for events that take long to account for.
pub fn calibrate_near<E: From<Error>>(
    target: Target,
    event_of: impl Fn(f64) -> Result<Event, E>,
    adjacency: Adjacency,
    guess: f64,
) -> Result<f64, E> {
    if !(guess > 1e-9 && guess < 1e12) {
        return Err(Error::domain("guess", guess, "give a number from 1e-9 to 1e12").into());
    }
    Ok(search(target, &event_of, adjacency, (guess, 1.04), 1e-4)?.0)
}

/// A parameter that meets the target, and whether its event has a closed form. The first two ends are `start` and a power of `grow`
/// times that; events without a closed form are met to so many digits.
fn search<E: From<Error>>(
    target: Target,
    event_of: &impl Fn(f64) -> Result<Event, E>,
    adjacency: Adjacency,
    (start, mut grow): (f64, f64),
    digits: f64,
) -> Result<(f64, bool), E> {
    check_epsilon(target.epsilon)?;
    check_delta(target.delta, true)?;
    let excess = |x: f64| -> Result<f64> { event_of(x).map_or(Ok(target.farthest()), |event| target.excess(&event, adjacency)) };
    let (mut low, mut high) = (start, start);
    let mut at_high = excess(high)?;
    let mut at_low = at_high;
    while at_low <= 0.0 && low > 1e-9 {
        (high, at_high) = (low, at_low);
        low /= grow;
        at_low = excess(low)?;
        grow = (grow * grow).min(2.0);
    }
    while at_high > 0.0 {
        (low, at_low) = (high, at_high);
        high *= grow;
        at_high = excess(high)?;
        grow = (grow * grow).min(2.0);
        if high > 1e12 {
            event_of(high)?;
            return Err(Error::domain(
                "target",
                format!("epsilon {} at delta {}", target.epsilon, target.delta),
                "no noise meets it: give a larger epsilon or delta, or fewer steps",
            )
            .into());
        }
    }
    // False position in the logarithm, an end that stays twice counting half. Bounds with a gap of their own need no more digits
    // than that.
    let closed = target.delta == 0.0 || delta_at_most(&event_of(high)?, adjacency, target.epsilon)?.accountant == "gaussian";
    let tolerance = if closed { 1e-9 } else { digits };
    let mut side = 0;
    for _ in 0..100 {
        if high - low <= tolerance * high {
            break;
        }
        let share = if at_low.is_finite() { (at_low / (at_low - at_high)).clamp(0.01, 0.99) } else { 0.5 };
        let x = low + (high - low) * share;
        let value = excess(x)?;
        if value <= 0.0 {
            (high, at_high) = (x, value);
            if side == 1 {
                at_low *= 0.5;
            }
            side = 1;
        } else {
            (low, at_low) = (x, value);
            if side == -1 {
                at_high *= 0.5;
            }
            side = -1;
        }
    }
    // A certificate states epsilon at delta, so that reading must hold as well.
    for i in 0..60 {
        if epsilon_at_most(&event_of(high)?, adjacency, target.delta)?.bound.upper <= target.epsilon {
            return Ok((high, closed));
        }
        high *= 1.0 + 1e-5 * f64::from(1 << (i / 4).min(8));
    }
    Err(Error::unsupported("this target", "give a slightly larger epsilon").into())
}

/// The largest parameter found that certainly misses the target, by the lower bounds.
fn not_below<E: From<Error>>(
    target: Target,
    event_of: &impl Fn(f64) -> Result<Event, E>,
    adjacency: Adjacency,
    answer: f64,
    closed: bool,
) -> Result<f64, E> {
    let misses = |x: f64| -> Result<bool> {
        let Ok(event) = event_of(x) else { return Ok(true) };
        Ok(if target.delta == 0.0 {
            epsilon(&event, adjacency, 0.0)?.bound.lower > target.epsilon
        } else {
            delta(&event, adjacency, target.epsilon)?.bound.lower > target.delta
        })
    };
    let mut low = 0.0;
    let mut step = if closed { 1e-7 } else { 2e-4 };
    while step < 1.0 {
        if misses(answer * (1.0 - step))? {
            low = answer * (1.0 - step);
            break;
        }
        step *= 4.0;
    }
    Ok(low)
}
