//! How much privacy a run has spent so far, for whoever watches it: a function of the plan and of the number of steps, worked out before data are
//! opened. It is never a loss, an accuracy or anything else that records could move.

use privfit::account::{Adjacency, Event};
use privfit::certificate::round_up;
use privfit::training::epsilon;

/// Epsilon after some numbers of steps.
pub(crate) struct SpentSoFar {
    /// Steps, and the epsilon of so many, both growing.
    points: Vec<(u64, f64)>,
}

/// Points at which epsilon is worked out: each costs as much as a part of the planning.
const POINTS: u64 = 8;

impl SpentSoFar {
    /// None for plans that are not so many equal steps, or that guarantee nothing.
    pub(crate) fn of(event: &Event, steps: u64, adjacency: Adjacency, delta: f64) -> Option<SpentSoFar> {
        let Event::Repeat { times, event } = event else { return None };
        if *times != steps || steps < POINTS {
            return None;
        }
        let point = |i: u64| {
            let done = (steps * i).div_ceil(POINTS);
            Some((done, epsilon(&event.as_ref().clone().repeated(done), adjacency, delta)?))
        };
        (1..=POINTS).map(point).collect::<Option<Vec<_>>>().map(|points| SpentSoFar { points })
    }

    /// What so many steps cost at the most: the epsilon at the next point.
    pub(crate) fn after(&self, steps: u64) -> String {
        let now = self.points.iter().find(|p| p.0 >= steps).or(self.points.last());
        match (steps, now, self.points.last()) {
            (1.., Some((_, now)), Some((_, all))) => format!(", epsilon <= {} of {}", round_up(*now), round_up(*all)),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_less_than_what_is_spent() {
        let step = Event::gaussian(8.0).sampled(0.1);
        let (plan, delta) = (step.clone().repeated(100), 1e-5);
        let spent = SpentSoFar::of(&plan, 100, Adjacency::ZeroOut, delta).unwrap();
        assert_eq!(spent.after(0), "");
        let number = |text: &str| text.split_whitespace().find_map(|w| w.parse::<f64>().ok()).unwrap();
        for steps in [1, 12, 13, 14, 50, 99, 100] {
            let true_cost = epsilon(&step.clone().repeated(steps), Adjacency::ZeroOut, delta).unwrap();
            assert!(number(&spent.after(steps)) >= true_cost, "{steps}: {} {true_cost}", spent.after(steps));
        }
        assert!(number(&spent.after(1)) < 0.6 * number(&spent.after(100)));
        assert!(SpentSoFar::of(&plan, 99, Adjacency::ZeroOut, delta).is_none());
        assert!(SpentSoFar::of(&step, 1, Adjacency::ZeroOut, delta).is_none());
    }
}
