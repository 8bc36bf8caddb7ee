//! What a run did, and whether that fits in what was planned.

use crate::account::{Adjacency, ConcentratedAccountant, Event};
use crate::error::{Error, Result};
use crate::numerics::Numerics;

/// Releases in order, equal neighbours counted.
#[derive(Default)]
pub(crate) struct Record {
    runs: Vec<(Event, u64)>,
    /// The worst grade among what left.
    numerics: Numerics,
    /// Where the plan is, if it can be followed step by step; made with the first release.
    follower: Option<Option<Follower>>,
}

impl Record {
    /// Something of this grade is about to leave.
    pub(crate) fn grade(&mut self, numerics: Numerics) {
        self.numerics = self.numerics.max(numerics);
    }

    pub(crate) fn numerics(&self) -> Numerics {
        self.numerics
    }

    /// What was released, in order.
    pub(crate) fn releases(&self) -> &[(Event, u64)] {
        &self.runs
    }

    pub(crate) fn push(&mut self, event: Event) {
        match self.runs.last_mut() {
            Some((last, count)) if *last == event => *count += 1,
            _ => self.runs.push((event, 1)),
        }
    }

    /// Adds so many of an event if the plan allows them now; what is not planned is refused before it leaves. The plan is the same each time.
    pub(crate) fn admit(&mut self, planned: &Event, event: Event, times: u64) -> Result<()> {
        let before = (self.runs.len(), self.runs.last().map(|r| r.1));
        (0..times).for_each(|_| self.push(event.clone()));
        let verdict = match self.follower.get_or_insert_with(|| Follower::new(planned)) {
            Some(follower) => follower.admit(&event, times),
            None => self.is_prefix(planned),
        };
        if verdict.is_err() {
            self.runs.truncate(before.0);
            if let (Some(last), Some(count)) = (self.runs.last_mut(), before.1) {
                last.1 = count;
            }
        }
        verdict
    }

    /// Everything executed is matched, and the plan may still want more.
    fn is_prefix(&self, planned: &Event) -> Result<()> {
        let mut cursor = Cursor { runs: &self.runs, at: 0, used: 0 };
        let matched = cursor.take(planned);
        match (matched, cursor.next()) {
            (_, None) => Ok(()),
            (Err(error), Some(_)) => Err(error),
            (Ok(()), Some(extra)) => Err(not_planned(extra)),
        }
    }

    /// The whole as one event.
    pub(crate) fn event(&self) -> Event {
        let mut events: Vec<Event> = self
            .runs
            .iter()
            .map(|(event, count)| if *count == 1 { event.clone() } else { event.clone().repeated(*count) })
            .collect();
        if events.len() == 1 { events.remove(0) } else { Event::Compose(events) }
    }

    /// Equal, a prefix of an `AtMost`, or inside of a `Budget`; everything else is refused.
    pub(crate) fn fits(&self, planned: &Event) -> Result<()> {
        let mut cursor = Cursor { runs: &self.runs, at: 0, used: 0 };
        cursor.take(planned)?;
        match cursor.next() {
            None => Ok(()),
            Some(extra) => Err(Error::Unplanned { what: format!("executed but not planned: {extra:?}") }),
        }
    }
}

fn not_planned(event: &Event) -> Error {
    Error::Unplanned { what: format!("not planned: {event:?}") }
}

/// What an event costs of a budget: replace-one costs at most four times as much wherever the replace sensitivity is at most twice the other.
fn cost_of(event: &Event) -> Option<f64> {
    let one = ConcentratedAccountant.rho(event, Adjacency::ZeroOut).ok()?;
    let other = ConcentratedAccountant.rho(event, Adjacency::ReplaceOne).ok()?;
    Some(one.max(0.25 * other))
}

/// Whether a budget has room for one more after so many, whose rounded sum is `spent`. The accountant charges a budget 1e-12 more than it is, so
/// that sums of decimals may meet it.
fn has_room(rho: f64, spent: f64, taken: u64, cost: f64) -> bool {
    (spent + cost) * (1.0 + f64::EPSILON * taken as f64) <= rho * (1.0 + 1e-12)
}

/// A step of a plan.
enum Step {
    /// So many of an event; all of them, or at most so many.
    Take { event: Event, times: u64, all: bool },
    /// Anything within a budget.
    Budget { rho: f64 },
    /// Anything.
    Anything,
    /// Everything up to the step after `end`, so many times.
    Begin { times: u64, end: usize },
    /// Back to the step after `begin`.
    End { begin: usize },
}

/// Follows a plan release by release, in constant time for each: a plan of sixteen thousand different releases is not matched from its beginning
/// for each of them. It takes what comes as early as it can, as `Cursor` does.
struct Follower {
    steps: Vec<Step>,
    place: Place,
}

/// Where a plan is.
#[derive(Clone, Default)]
struct Place {
    step: usize,
    /// Releases that this step has taken, and what they spent of its budget.
    taken: u64,
    spent: f64,
    /// Releases in all.
    releases: u64,
    /// Repetitions that are left, and the releases before this one began.
    loops: Vec<(u64, u64)>,
}

impl Follower {
    /// None for a plan with several events in an `AtMost`: how often they came may only be known later.
    fn new(planned: &Event) -> Option<Follower> {
        let mut steps = Vec::new();
        listed(planned, &mut steps)?;
        Some(Follower { steps, place: Place::default() })
    }

    fn admit(&mut self, event: &Event, times: u64) -> Result<()> {
        let before = self.place.clone();
        for _ in 0..times {
            if !self.takes(event) {
                self.place = before;
                return Err(not_planned(event));
            }
        }
        Ok(())
    }

    fn leave_step(&mut self) {
        (self.place.step, self.place.taken, self.place.spent) = (self.place.step + 1, 0, 0.0);
    }

    fn takes(&mut self, next: &Event) -> bool {
        loop {
            let Some(step) = self.steps.get(self.place.step) else { return false };
            match step {
                Step::Take { event, times, all } => {
                    if self.place.taken < *times && event == next {
                        self.place.taken += 1;
                        self.place.releases += 1;
                        return true;
                    }
                    if *all && self.place.taken < *times {
                        return false;
                    }
                }
                Step::Budget { rho } => {
                    let room = |cost: &f64| has_room(*rho, self.place.spent, self.place.taken, *cost);
                    if let Some(cost) = cost_of(next).filter(room) {
                        self.place.spent += cost;
                        self.place.taken += 1;
                        self.place.releases += 1;
                        return true;
                    }
                }
                Step::Anything => return true,
                Step::Begin { times: 0, end } => self.place.step = *end,
                Step::Begin { times, .. } => self.place.loops.push((*times, self.place.releases)),
                Step::End { begin } => {
                    let Some((left, since)) = self.place.loops.pop() else { return false };
                    // What took nothing takes nothing however often.
                    if left > 1 && since < self.place.releases {
                        self.place.loops.push((left - 1, self.place.releases));
                        self.place.step = *begin;
                    }
                }
            }
            self.leave_step();
        }
    }
}

/// The steps of an event, in order.
fn listed(event: &Event, steps: &mut Vec<Step>) -> Option<()> {
    match event {
        Event::Compose(events) => events.iter().try_for_each(|e| listed(e, steps))?,
        Event::Repeat { times, event } if simple(event) => {
            steps.push(Step::Take { event: event.as_ref().clone(), times: *times, all: true });
        }
        Event::AtMost { times, event } if simple(event) => {
            steps.push(Step::Take { event: event.as_ref().clone(), times: *times, all: false });
        }
        Event::AtMost { .. } => return None,
        Event::Repeat { times, event } => {
            let begin = steps.len();
            steps.push(Step::Begin { times: *times, end: 0 });
            listed(event, steps)?;
            let last = steps.len();
            steps.push(Step::End { begin });
            steps[begin] = Step::Begin { times: *times, end: last };
        }
        Event::Budget { rho } => steps.push(Step::Budget { rho: *rho }),
        Event::NotPrivate { .. } => steps.push(Step::Anything),
        one => steps.push(Step::Take { event: one.clone(), times: 1, all: true }),
    }
    Some(())
}

struct Cursor<'a> {
    runs: &'a [(Event, u64)],
    at: usize,
    used: u64,
}

impl<'a> Cursor<'a> {
    fn next(&self) -> Option<&'a Event> {
        self.runs.get(self.at).map(|r| &r.0)
    }

    fn advance(&mut self, by: u64) {
        self.used += by;
        if self.used == self.runs[self.at].1 {
            (self.at, self.used) = (self.at + 1, 0);
        }
    }

    /// How many of one event come next, at most `limit`.
    fn count(&self, event: &Event, limit: u64) -> u64 {
        match self.runs.get(self.at) {
            Some((next, count)) if next == event => (count - self.used).min(limit),
            _ => 0,
        }
    }

    fn take(&mut self, planned: &Event) -> Result<()> {
        let missing = |planned: &Event| Error::Unplanned { what: format!("planned but not executed: {planned:?}") };
        match planned {
            Event::Compose(events) => events.iter().try_for_each(|e| self.take(e)),
            Event::Repeat { times, event } if simple(event) => {
                let count = self.count(event, *times);
                if count > 0 {
                    self.advance(count);
                }
                if count < *times {
                    return Err(missing(planned));
                }
                Ok(())
            }
            Event::Repeat { times, event } => {
                for _ in 0..*times {
                    let before = (self.at, self.used);
                    self.take(event)?;
                    if before == (self.at, self.used) {
                        // An event that takes nothing takes nothing however often.
                        break;
                    }
                }
                Ok(())
            }
            Event::AtMost { times, event } if simple(event) => {
                let count = self.count(event, *times);
                if count > 0 {
                    self.advance(count);
                }
                Ok(())
            }
            Event::AtMost { times, event } => {
                for _ in 0..*times {
                    let mut ahead = Cursor { ..*self };
                    let whole = ahead.take(event).is_ok();
                    if !whole && ahead.next().is_some() || (ahead.at, ahead.used) == (self.at, self.used) {
                        break;
                    }
                    *self = ahead;
                    if !whole {
                        return Err(missing(planned));
                    }
                }
                Ok(())
            }
            Event::Budget { rho } => {
                let (mut spent, mut taken) = (0.0, 0);
                while let Some(cost) = self.next().and_then(cost_of) {
                    // One after the other, as they came.
                    let (at, left) = (self.at, self.runs[self.at].1 - self.used);
                    let before = taken;
                    while taken - before < left && has_room(*rho, spent, taken, cost) {
                        (spent, taken) = (spent + cost, taken + 1);
                    }
                    if taken > before {
                        self.advance(taken - before);
                    }
                    if self.at == at {
                        break;
                    }
                }
                Ok(())
            }
            Event::NotPrivate { .. } => {
                // Nothing was promised.
                self.at = self.runs.len();
                Ok(())
            }
            Event::Gaussian { .. }
            | Event::Laplace { .. }
            | Event::DiscreteGaussian { .. }
            | Event::DiscreteLaplace { .. }
            | Event::Pure { .. }
            | Event::Approx { .. }
            | Event::ZeroConcentrated { .. }
            | Event::GaussianDp { .. }
            | Event::ObjectivePerturbation(_)
            | Event::Exponential { .. }
            | Event::Poisson { .. }
            | Event::FixedSize { .. }
            | Event::Shuffled { .. }
            | Event::Either(_)
            | Event::Select { .. } => {
                if self.count(planned, 1) == 0 {
                    return Err(missing(planned));
                }
                self.advance(1);
                Ok(())
            }
        }
    }
}

/// Executed as one record.
fn simple(event: &Event) -> bool {
    !matches!(
        event,
        Event::Compose(_) | Event::Repeat { .. } | Event::AtMost { .. } | Event::Budget { .. } | Event::NotPrivate { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(events: &[(Event, u64)]) -> Record {
        let mut record = Record::default();
        for (event, count) in events {
            (0..*count).for_each(|_| record.push(event.clone()));
        }
        record
    }

    #[test]
    fn a_release_is_checked_before_it_leaves() {
        let (a, b) = (Event::gaussian(1.0), Event::gaussian(2.0));
        let plan = Event::Compose(vec![a.clone().repeated(2), Event::AtMost { times: 2, event: Box::new(b.clone()) }, a.clone()]);
        let mut record = Record::default();
        assert!(record.admit(&plan, b.clone(), 1).is_err(), "b does not come first");
        assert!(record.admit(&plan, a.clone(), 1).is_ok());
        assert!(record.admit(&plan, b.clone(), 1).is_err());
        assert!(record.admit(&plan, a.clone(), 1).is_ok());
        assert!(record.admit(&plan, b.clone(), 2).is_ok());
        assert!(record.admit(&plan, b.clone(), 1).is_err());
        assert!(record.fits(&plan).is_err(), "one a is still missing");
        assert!(record.admit(&plan, a.clone(), 1).is_ok());
        assert!(record.fits(&plan).is_ok());
        assert!(record.admit(&plan, a.clone(), 1).is_err());
        let nested = Event::Compose(vec![a.clone(), b.clone()]).repeated(2);
        let mut record = Record::default();
        for (event, fits) in [(&a, true), (&a, false), (&b, true), (&a, true), (&b, true), (&a, false)] {
            assert_eq!(record.admit(&nested, event.clone(), 1).is_ok(), fits);
        }
        let mut filter = Record::default();
        let budget = Event::Budget { rho: 1.0 };
        assert!(filter.admit(&budget, a.clone(), 2).is_ok());
        assert!(filter.admit(&budget, b.clone(), 1).is_err(), "refused before it is out, not after");
    }

    #[test]
    fn executed_must_fit_in_planned() {
        let (a, b) = (Event::gaussian(1.0), Event::gaussian(2.0));
        let thrice = a.clone().repeated(3);
        assert!(record(&[(a.clone(), 3)]).fits(&thrice).is_ok());
        assert!(record(&[(a.clone(), 2)]).fits(&thrice).is_err(), "fewer than planned is a bug, not a gift");
        assert!(record(&[(a.clone(), 4)]).fits(&thrice).is_err());
        assert!(record(&[(b.clone(), 3)]).fits(&thrice).is_err());
        let at_most = Event::AtMost { times: 3, event: Box::new(a.clone()) };
        for n in 0..=3 {
            assert!(record(&[(a.clone(), n)]).fits(&at_most).is_ok());
        }
        assert!(record(&[(a.clone(), 4)]).fits(&at_most).is_err());
        let both = Event::Compose(vec![at_most.clone(), b.clone()]);
        assert!(record(&[(a.clone(), 1), (b.clone(), 1)]).fits(&both).is_ok());
        assert!(record(&[(b.clone(), 1), (a.clone(), 1)]).fits(&both).is_err(), "order counts");
        let pair = Event::Compose(vec![a.clone(), b.clone()]).repeated(2);
        assert!(record(&[(a.clone(), 1), (b.clone(), 1), (a.clone(), 1), (b.clone(), 1)]).fits(&pair).is_ok());
        let budget = Event::Budget { rho: 1.0 };
        assert!(record(&[(a.clone(), 1), (b.clone(), 4)]).fits(&budget).is_ok(), "0.5 + 4 x 0.125");
        assert!(record(&[(a.clone(), 1), (b.clone(), 5)]).fits(&budget).is_err());
        assert!(record(&[]).fits(&a).is_err());
        // A sampled release is not the plain one.
        assert!(record(&[(a.clone().sampled(0.1), 1)]).fits(&a).is_err());
    }

    /// Step by step and from the beginning are the same: random plans, and releases that are mostly planned.
    #[test]
    fn following_is_matching() {
        let mut state = 17u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let event = |i: u64| Event::gaussian(1.0 + i as f64);
        let (mut admitted, mut refused, mut lists) = (0, 0, 0);
        for _ in 0..4000 {
            let mut parts = Vec::new();
            for _ in 0..1 + draw(4) {
                let one = event(draw(3));
                let pair = Event::Compose(vec![event(draw(3)), event(draw(3))]);
                let maybe = Event::AtMost { times: draw(3), event: Box::new(event(draw(3))) };
                parts.push(match draw(7) {
                    0 => one,
                    1 => one.repeated(1 + draw(3)),
                    2 => maybe,
                    3 => pair.repeated(1 + draw(3)),
                    4 => Event::Compose(vec![one, maybe]).repeated(1 + draw(3)),
                    5 => Event::Budget { rho: 0.125 * (1 + draw(8)) as f64 },
                    _ => maybe.repeated(1 + draw(3)),
                });
            }
            let plan = Event::Compose(parts);
            lists += usize::from(Follower::new(&plan).is_some());
            let (mut quick, mut slow) = (Record::default(), Record { follower: Some(None), ..Record::default() });
            for _ in 0..12 {
                let (next, times) = (event(draw(3)), 1 + draw(2));
                let (a, b) = (quick.admit(&plan, next.clone(), times), slow.admit(&plan, next.clone(), times));
                assert_eq!(a.is_ok(), b.is_ok(), "{plan:?}: {next:?} after {:?}", quick.event());
                assert_eq!(quick.event(), slow.event());
                (admitted, refused) = (admitted + usize::from(a.is_ok()), refused + usize::from(a.is_err()));
            }
            assert_eq!(quick.fits(&plan).is_ok(), slow.fits(&plan).is_ok());
        }
        assert!(admitted > 5000 && refused > 5000 && lists == 4000, "{admitted} {refused} {lists}");
        // Nobody would wait for the square of this.
        let (a, b) = (event(1), event(2));
        let plan = Event::Compose(vec![a.clone(), b.clone()]).repeated(150_000);
        let mut long = Record::default();
        for _ in 0..150_000 {
            long.admit(&plan, a.clone(), 1).unwrap();
            long.admit(&plan, b.clone(), 1).unwrap();
        }
        assert!(long.admit(&plan, a, 1).is_err() && long.fits(&plan).is_ok());
    }
}
