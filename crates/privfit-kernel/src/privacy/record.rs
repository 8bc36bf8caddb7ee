//! What a run did, and whether that fits in what was planned.

use super::value::Numerics;
use crate::account::{Adjacency, ConcentratedAccountant, Event};
use crate::error::{Error, Result};

/// Releases in order, equal neighbours counted.
#[derive(Default)]
pub(crate) struct Record {
    runs: Vec<(Event, u64)>,
    /// The worst grade among what left.
    numerics: Numerics,
}

impl Record {
    /// Something of this grade is about to leave.
    pub(crate) fn grade(&mut self, numerics: Numerics) {
        self.numerics = self.numerics.max(numerics);
    }

    pub(crate) fn numerics(&self) -> Numerics {
        self.numerics
    }

    pub(crate) fn push(&mut self, event: Event) {
        match self.runs.last_mut() {
            Some((last, count)) if *last == event => *count += 1,
            _ => self.runs.push((event, 1)),
        }
    }

    /// Adds so many of an event if the plan allows them now; what is not planned is refused before it leaves.
    pub(crate) fn admit(&mut self, planned: &Event, event: Event, times: u64) -> Result<()> {
        let before = (self.runs.len(), self.runs.last().map(|r| r.1));
        (0..times).for_each(|_| self.push(event.clone()));
        let mut cursor = Cursor { runs: &self.runs, at: 0, used: 0 };
        // A prefix: everything executed is matched, and the plan may still want more.
        let matched = cursor.take(planned);
        let verdict = match (matched, cursor.next()) {
            (_, None) => return Ok(()),
            (Err(error), Some(_)) => error,
            (Ok(()), Some(extra)) => Error::Unplanned { what: format!("not planned: {extra:?}") },
        };
        self.runs.truncate(before.0);
        if let (Some(last), Some(count)) = (self.runs.last_mut(), before.1) {
            last.1 = count;
        }
        Err(verdict)
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
                // Replace-one costs at most four times as much wherever the replace reach is at most twice the other.
                let mut spent = 0.0;
                while let Some((event, count)) = self.runs.get(self.at) {
                    let one = ConcentratedAccountant.rho(event, Adjacency::ZeroOut);
                    let other = ConcentratedAccountant.rho(event, Adjacency::ReplaceOne);
                    let (Ok(one), Ok(other)) = (one, other) else { break };
                    let cost = one.max(0.25 * other) * (count - self.used) as f64;
                    // The accountant charges a budget this much more, so that sums of decimals may meet it.
                    if spent + cost > *rho * (1.0 + 1e-12) {
                        break;
                    }
                    spent += cost;
                    self.advance(count - self.used);
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
}
