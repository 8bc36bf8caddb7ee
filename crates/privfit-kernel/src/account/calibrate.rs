//! The smallest parameter whose upper bound meets the target. It never overshoots: what it returns was checked.

use super::adjacency::Adjacency;
use super::event::Event;
use super::{Bound, check_delta, check_epsilon, delta, epsilon};
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
    fn met_by(&self, event: &Event, adjacency: Adjacency) -> Result<bool> {
        if self.delta == 0.0 {
            return Ok(epsilon(event, adjacency, 0.0)?.bound.upper <= self.epsilon);
        }
        Ok(delta(event, adjacency, self.epsilon)?.bound.upper <= self.delta)
    }
}

/// Smallest parameter whose event meets the target; more of the parameter must mean more privacy (noise, not steps).
///
/// `upper` is the answer: its event meets the target, by both readings of it. Below `lower` no parameter meets it.
pub fn calibrate(target: Target, event_of: impl Fn(f64) -> Event, adjacency: Adjacency) -> Result<Bound> {
    check_epsilon(target.epsilon)?;
    check_delta(target.delta, true)?;
    let meets = |x: f64| target.met_by(&event_of(x), adjacency);
    let (mut low, mut high) = (0.5, 1.0);
    if meets(high)? {
        while meets(low)? {
            high = low;
            low *= 0.5;
            if low < 1e-9 {
                break;
            }
        }
    } else {
        low = high;
        high *= 2.0;
        while !meets(high)? {
            low = high;
            high *= 2.0;
            if high > 1e12 {
                return Err(Error::domain(
                    "target",
                    format!("epsilon {} at delta {}", target.epsilon, target.delta),
                    "no noise meets it: give a larger epsilon or delta, or fewer steps",
                ));
            }
        }
    }
    // The bounds have a relative width; below a few 1e-8 there is nothing left to find.
    while high - low > 1e-8 * high {
        let middle = 0.5 * (low + high);
        if meets(middle)? { high = middle } else { low = middle }
    }
    // A certificate states epsilon at delta, so that reading must hold as well.
    for _ in 0..60 {
        if epsilon(&event_of(high), adjacency, target.delta)?.bound.upper <= target.epsilon {
            return Ok(Bound { lower: not_below(target, &event_of, adjacency, high)?, upper: high });
        }
        high *= 1.0 + 1e-5;
    }
    Err(Error::unsupported("this target", "give a slightly larger epsilon"))
}

/// The largest parameter found that certainly misses the target, by the lower bounds.
fn not_below(target: Target, event_of: &impl Fn(f64) -> Event, adjacency: Adjacency, answer: f64) -> Result<f64> {
    let misses = |x: f64| -> Result<bool> {
        let event = event_of(x);
        Ok(if target.delta == 0.0 {
            epsilon(&event, adjacency, 0.0)?.bound.lower > target.epsilon
        } else {
            delta(&event, adjacency, target.epsilon)?.bound.lower > target.delta
        })
    };
    let mut low = 0.0;
    let mut step = 1e-7;
    while step < 1.0 {
        if misses(answer * (1.0 - step))? {
            low = answer * (1.0 - step);
            break;
        }
        step *= 4.0;
    }
    Ok(low)
}
