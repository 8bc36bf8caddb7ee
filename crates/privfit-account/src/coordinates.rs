//! Lower bounds for discrete Gaussian noise in several dimensions, on so coarse a grid that it matters.
//!
//! A record that moves a vector of integers in one coordinate, or in a few of them, is a neighbour too, so that a lower bound on what that
//! shift costs is one on the whole. Losses of one coordinate lie on a coarse lattice, multiples of its shift; shifts of the same length in
//! several coordinates, (5, 3, 1, 1) instead of (6), have finer ones and come close to the continuous bound.

use super::Answer;
use super::adjacency::Adjacency;
use super::event::Event;
use crate::error::Result;

/// Largest sigma whose grid matters, and the largest whose losses several coordinates can share a grid for.
const COARSE: u64 = 1 << 12;
const SHARED: u64 = 64;

/// The event with the noise on vectors replaced; none if there is nothing to replace. `sampled`: the replacement is run on a sample.
fn replaced(event: &Event, sampled: bool, leaf: &dyn Fn(&Event, bool) -> Option<Event>) -> Option<Event> {
    let inside = |event: &Event, sampled: bool| replaced(event, sampled, leaf).map(Box::new);
    Some(match event {
        Event::DiscreteGaussian { .. } => return leaf(event, sampled),
        Event::Poisson { rate, event } => Event::Poisson { rate: *rate, event: inside(event, true)? },
        Event::FixedSize { batch, rows, event } => Event::FixedSize { batch: *batch, rows: *rows, event: inside(event, true)? },
        Event::Shuffled { batches, epochs, event } => {
            Event::Shuffled { batches: *batches, epochs: *epochs, event: inside(event, true)? }
        }
        Event::Repeat { times, event } => Event::Repeat { times: *times, event: inside(event, sampled)? },
        Event::AtMost { times, event } => Event::AtMost { times: *times, event: inside(event, sampled)? },
        Event::Compose(events) => {
            let changed: Vec<Option<Event>> = events.iter().map(|e| replaced(e, sampled, leaf)).collect();
            if changed.iter().all(Option::is_none) {
                return None;
            }
            Event::Compose(changed.into_iter().zip(events).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect())
        }
        _ => return None,
    })
}

/// The whole shift in one coordinate.
fn on_one(event: &Event) -> Option<Event> {
    let leaf = |event: &Event, _: bool| match event {
        Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, dimension } if *dimension > 1 && *sigma < COARSE => {
            Some(Event::DiscreteGaussian {
                sigma: *sigma,
                sensitivity: *sensitivity,
                replace_sensitivity: *replace_sensitivity,
                dimension: 1,
            })
        }
        _ => None,
    };
    replaced(event, false, &leaf)
}

/// Positive integers whose squares add up to at most the square of `length`, and nearly to it; the first is one less than it.
fn divided(length: u64, most: usize) -> Vec<u64> {
    let (mut parts, mut rest) = (vec![length - 1], 2 * length - 1);
    while rest > 0 && parts.len() < most {
        let next = rest.isqrt();
        parts.push(next);
        rest -= next * next;
    }
    parts
}

/// The shift divided among a few coordinates. On a sample all of them would be sampled together, which no event says.
fn on_several(event: &Event, adjacency: Adjacency) -> Option<Event> {
    let leaf = |event: &Event, sampled: bool| match event {
        Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, dimension }
            if *dimension > 1 && *sigma <= SHARED && !sampled =>
        {
            let length = if adjacency.replaces() { *replace_sensitivity } else { *sensitivity };
            if length < 2 || length >= 64 * sigma {
                return None;
            }
            let one =
                |part| Event::DiscreteGaussian { sigma: *sigma, sensitivity: part, replace_sensitivity: part, dimension: 1 };
            Some(Event::Compose(divided(length, (*dimension).min(5) as usize).into_iter().map(one).collect()))
        }
        _ => None,
    };
    replaced(event, false, &leaf)
}

/// Raises the lower bound to that of the same computation on one coordinate, or on a few.
pub(super) fn raise(mut answer: Answer, event: &Event, adjacency: Adjacency, ask: impl Fn(&Event) -> Result<Answer>) -> Answer {
    for fewer in [on_one(event), on_several(event, adjacency)].into_iter().flatten() {
        if answer.bound.lower >= 0.999 * answer.bound.upper {
            break;
        }
        if let Ok(found) = ask(&fewer)
            && found.bound.lower > answer.bound.lower
        {
            answer.bound.lower = if found.bound.lower < answer.bound.upper { found.bound.lower } else { answer.bound.upper };
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No shift is longer than the whole, and hardly shorter with five coordinates.
    #[test]
    fn divided_shifts_are_no_longer() {
        for length in 2..3000 {
            for most in 2..6 {
                let parts = divided(length, most);
                let square: u64 = parts.iter().map(|p| p * p).sum();
                assert!(parts.len() <= most && parts.iter().all(|p| *p > 0) && square <= length * length, "{length} {parts:?}");
                assert!(most < 5 || length * length - square < 9, "{length} {parts:?}");
            }
        }
    }
}
