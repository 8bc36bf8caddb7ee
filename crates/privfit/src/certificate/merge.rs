//! The same event with equal parts counted: accountants do not ask in which order releases came, and work on each different part once.

use privfit_kernel::account::Event;

/// Most different parts of an event that is worked out, plain Gaussian releases not counted; plans have a handful.
pub(crate) const MOST_PARTS: usize = 16;

/// Most different parts in all. Plain Gaussian releases cost an accountant nothing, and there may be one for each column of a model.
const MOST_IN_ALL: usize = 4096;

/// Most nodes of an event tree that is looked at; plans have a handful, or one for each column of a model.
pub(crate) const MOST_NODES: usize = 65_536;

/// Number of nodes of an event, none if there are more than `most`.
pub(crate) fn nodes(event: &Event, most: usize) -> Option<usize> {
    let inner: &[Event] = match event {
        Event::Poisson { event, .. }
        | Event::FixedSize { event, .. }
        | Event::Shuffled { event, .. }
        | Event::Repeat { event, .. }
        | Event::AtMost { event, .. }
        | Event::Select { event, .. } => std::slice::from_ref(event),
        Event::Compose(events) | Event::Either(events) => events,
        _ => &[],
    };
    let mut count = 1;
    for event in inner {
        count += nodes(event, most.checked_sub(count)?)?;
    }
    (count <= most).then_some(count)
}

/// The event with equal parts put together; none if it has too many different ones, or more releases than can be counted.
pub(crate) fn merged(event: &Event) -> Option<Event> {
    let mut parts = Vec::new();
    collect(event, 1, &mut parts)?;
    let mut events: Vec<Event> = parts.into_iter().map(|(e, n)| if n == 1 { e.clone() } else { e.clone().repeated(n) }).collect();
    Some(if events.len() == 1 { events.remove(0) } else { Event::Compose(events) })
}

fn collect<'a>(event: &'a Event, times: u64, parts: &mut Vec<(&'a Event, u64)>) -> Option<()> {
    match event {
        Event::Repeat { times: n, event } | Event::AtMost { times: n, event } if *n > 0 => {
            return collect(event, times.checked_mul(*n)?, parts);
        }
        Event::Compose(events) => return events.iter().try_for_each(|e| collect(e, times, parts)),
        // A sample is for one release, and a selection has a flat list of candidates: no plan makes anything else.
        Event::Poisson { event, .. } | Event::FixedSize { event, .. } | Event::Shuffled { event, .. } if !single(event) => {
            return None;
        }
        Event::Select { event, .. } if !modest(event) => return None,
        Event::Either(_) if !modest(event) => return None,
        _ => {}
    }
    if let Some(part) = parts.iter_mut().find(|p| p.0 == event) {
        part.1 = part.1.checked_add(times)?;
        return Some(());
    }
    parts.push((event, times));
    let right = cheap(event) || parts.iter().filter(|p| !cheap(p.0)).count() <= MOST_PARTS;
    (right && parts.len() <= MOST_IN_ALL).then_some(())
}

/// Most candidates of a selection.
pub(crate) const MOST_CANDIDATES: usize = 64;

/// Whether this is one release, however it is sampled and repeated.
fn single(event: &Event) -> bool {
    match event {
        Event::Poisson { event, .. } | Event::FixedSize { event, .. } | Event::Shuffled { event, .. } => single(event),
        Event::Repeat { event, .. } | Event::AtMost { event, .. } => single(event),
        Event::Compose(_) | Event::Either(_) | Event::Select { .. } => false,
        _ => true,
    }
}

/// Whether the inside of a selection can be worked out in a bounded time: a flat list of ordinary events, and not too many parts in all.
fn modest(event: &Event) -> bool {
    let list = match event {
        Event::Either(events) => events.as_slice(),
        other => std::slice::from_ref(other),
    };
    let mut all = 0;
    list.len() <= MOST_CANDIDATES
        && list.iter().all(|e| {
            let mut parts = Vec::new();
            let right = collect(e, 1, &mut parts).is_some();
            all += parts.iter().filter(|p| !cheap(p.0)).count();
            right && all <= 2 * MOST_CANDIDATES && parts.iter().all(|p| !matches!(p.0, Event::Select { .. } | Event::Either(_)))
        })
}

/// Plain Gaussian releases cost an accountant nothing.
fn cheap(event: &Event) -> bool {
    matches!(event, Event::Gaussian { .. } | Event::DiscreteGaussian { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use privfit_kernel::account::{Adjacency, Stopping, epsilon};

    #[test]
    fn parts_are_counted() {
        let step = |noise: f64| Event::gaussian(noise).sampled(0.1);
        let event =
            Event::Compose(vec![step(1.0).repeated(3), step(2.0), Event::Compose(vec![step(1.0), step(1.0)]).repeated(2)]);
        let merged = merged(&event).unwrap();
        assert_eq!(merged, Event::Compose(vec![step(1.0).repeated(7), step(2.0)]));
        let view = |e: &Event| epsilon(e, Adjacency::ZeroOut, 1e-6).unwrap().bound.upper;
        assert!((view(&merged) / view(&event) - 1.0).abs() < 1e-3);
        assert!(super::merged(&Event::Compose((1..50).map(|i| step(f64::from(i))).collect())).is_none());
        assert!(super::merged(&step(1.0).repeated(u64::MAX).repeated(2)).is_none());
        assert_eq!(super::merged(&step(1.0)), Some(step(1.0)));
        assert!(super::merged(&Event::Compose((1..500).map(|i| Event::gaussian(f64::from(i))).collect())).is_some());
        // Nothing hides inside of a sample, and selections are flat and short.
        let inside = |event: Event| Event::Shuffled { batches: 1, epochs: 1, event: Box::new(event) };
        let select = |event: Event| Event::Select { stopping: Stopping::Uniform { most: 3 }, event: Box::new(event) };
        let many = |n: u32| Event::Either((1..=n).map(|i| step(f64::from(i))).collect());
        for hostile in [
            inside(many(2)),
            inside(Event::Compose(vec![step(1.0), step(2.0)])),
            step(1.0).repeated(2).sampled(0.5).sampled(0.5),
            select(select(step(1.0))),
            select(Event::Compose(vec![select(step(1.0)), step(2.0)])),
            select(many(65)),
            many(65),
            select(Event::Either(
                (0..20).map(|i| Event::Compose((1..=16).map(|j| step(f64::from(16 * i + j))).collect())).collect(),
            )),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(super::merged(&hostile.1).is_none(), hostile.0 != 2, "{}", hostile.0);
        }
        assert!(super::merged(&select(many(64))).is_some());
        // All of a tree is counted, and counting ends with the limit.
        assert_eq!((nodes(&select(many(3)), 8), nodes(&select(many(3)), 7)), (Some(8), None));
    }
}
