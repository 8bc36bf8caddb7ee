//! A run that goes on where another process stopped.
//!
//! *Claim.* What is released by all processes together is what one undisturbed run would release: each planned release once. The releases of the
//! processes before count as executed here, in their order and against the same plan, so that no more can follow than the plan has left, and
//! nothing closes before the plan is complete. They can only be added, never taken away, and what closes costs the whole plan either way.
//!
//! *Randomness.* Every release draws keys of its own for its noise and its sample, from the operating system, in one process as in several: samples
//! stay independent of each other and of all noise, which is what the accountant composes. In a simulation keys are counted, and counting goes on
//! where it stopped, so that the same bytes come out however often the run was ended.
//!
//! *What the kernel can't see.* Whether the same release is made by two processes, both of which go on from one place. Whoever keeps what was
//! executed has to hand it out once; a release that was not kept must not have been seen by anybody.

use super::Run;
use super::series::{KeptSeries, Series};
use crate::account::Event;
use crate::error::{Error, Result};
use crate::numerics::Numerics;
use serde::{Deserialize, Serialize};

/// What a run has released so far, and all that another process needs of it to go on: public, unless it has keys of correlated noise (`has_keys`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executed {
    /// Releases in order, equal neighbours counted.
    releases: Vec<(Event, u64)>,
    /// The worst grade among them.
    numerics: Numerics,
    /// One of them depends on the number or the order of units.
    order_dependent: bool,
    /// The seed of a simulation, and the keys that were drawn from it.
    simulated: Option<(u64, u64)>,
    /// Steps with correlated noise, and the keys of the noise that later ones take back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) correlated: Option<KeptSeries>,
}

impl Executed {
    /// Number of releases.
    pub fn count(&self) -> u64 {
        self.releases.iter().fold(0, |sum, (_, times)| sum.saturating_add(*times))
    }

    /// Whether their noise came from a seed.
    pub fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }
}

impl Run<'_> {
    /// What was released until now. Whoever writes it down makes all of that public, unless it has keys: then what was written is as confidential as the records.
    pub fn executed(&self) -> Result<Executed> {
        self.same_process()?;
        self.may_stop()?;
        Ok(Executed {
            releases: self.record.releases().to_vec(),
            numerics: self.record.numerics(),
            order_dependent: self.order_dependent,
            simulated: self.entropy.position(),
            correlated: self.series.as_ref().map(Series::kept),
        })
    }

    /// Goes on after what another process has released under the same plan. Before the first release of this run, and once.
    pub fn resume(&mut self, executed: &Executed) -> Result<()> {
        self.same_process()?;
        self.may_stop()?;
        if !self.record.releases().is_empty() {
            return Err(Error::Mismatch { what: "this run has released something already: resume a new one" });
        }
        if executed.simulated.map(|s| s.0) != self.entropy.position().map(|s| s.0) {
            return Err(Error::Mismatch { what: "what was executed is a simulation of another seed, or this one is" });
        }
        if executed.order_dependent {
            self.may_depend_on_order()?;
        }
        for (event, times) in &executed.releases {
            event.validate()?;
            // One by one: a number that the plan does not have ends at the first release too many.
            (0..*times).try_for_each(|_| self.record.admit(&self.planned, event.clone(), 1))?;
        }
        self.record.grade(executed.numerics);
        self.order_dependent |= executed.order_dependent;
        self.kept_series = executed.correlated.clone();
        if let Some((_, draws)) = executed.simulated {
            self.entropy.go_on_from(draws);
        }
        Ok(())
    }

    /// Several processes would have to stop at the same place, and an audit has to see all releases.
    fn may_stop(&self) -> Result<()> {
        if self.seam.divided() || self.audit.is_some() {
            return Err(Error::unsupported(
                "a run of several processes, or one that is audited, that stops and goes on",
                "use one process",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::account::{Adjacency, Event};
    use crate::engine::Threads;
    use crate::tests::{LOGISTIC, dataset};
    use crate::{Entropy, Executed, Gaussian, Rate, Result, Run, planned_step};

    const STEPS: u64 = 6;

    fn plan() -> (Gaussian, Rate, Event) {
        let (mechanism, rate) = (Gaussian::for_gradients(1.0, 3.0).unwrap(), Rate::new(0.2).unwrap());
        let event = planned_step(&mechanism, 4, Some(rate)).repeated(STEPS);
        (mechanism, rate, event)
    }

    /// Makes so many releases, each of which moves the weights.
    fn descend(run: &mut Run<'_>, weights: &mut [f64], releases: u64) -> Result<()> {
        let (mechanism, rate, _) = plan();
        for _ in 0..releases {
            let noisy = run.at(&mechanism, |run, scale| {
                let noise = run.draw(&scale, 4)?;
                let sum = run.poisson(rate)?.gradient_sum(&noise, weights, &LOGISTIC)?;
                run.release(noise, &sum)
            })?;
            weights.iter_mut().zip(&noisy).for_each(|(w, g)| *w -= 0.01 * g);
        }
        Ok(())
    }

    /// Stopped after every release and written down: the same bits as at once, and executed = planned.
    #[test]
    fn in_pieces_or_at_once() {
        let (data, engine) = (dataset(300, 4, false, None), Threads::new(1));
        let (_, _, planned) = plan();
        let whole = |seed: u64| {
            let entropy = Entropy::simulated(seed);
            let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
            run.everyone().unwrap();
            let mut weights = vec![0.0; 4];
            descend(&mut run, &mut weights, STEPS).unwrap();
            run.close(weights).unwrap().into_value()
        };
        for length in [1, 2, 5] {
            let (mut weights, mut text, mut done) = (vec![0.0; 4], None::<String>, 0);
            let last = loop {
                let entropy = Entropy::simulated(3);
                let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
                run.everyone().unwrap();
                if let Some(text) = &text {
                    run.resume(&serde_json::from_str(text).unwrap()).unwrap();
                }
                // A step that nobody wrote down is made again, from the same keys.
                let kept = run.executed().unwrap();
                let mut lost = weights.clone();
                descend(&mut run, &mut lost, 1).unwrap();
                let mut run = Run::begin(&data, &engine, &entropy, &planned).unwrap();
                run.resume(&kept).unwrap();
                let now = length.min(STEPS - done);
                descend(&mut run, &mut weights, now).unwrap();
                done += now;
                if done == STEPS {
                    assert_eq!(run.executed().unwrap().count(), STEPS);
                    break run.close(weights.clone()).unwrap();
                }
                text = Some(serde_json::to_string(&run.executed().unwrap()).unwrap());
                assert!(run.close(()).is_err(), "{done} releases are not the plan");
            };
            assert_eq!(last.value(), &whole(3));
            assert_ne!(last.value(), &whole(4));
        }
    }

    /// A real run has the event of its plan, no more and no less, and the worst grade of all processes.
    #[test]
    fn what_was_executed_counts() {
        let (data, engine) = (dataset(300, 4, false, None), Threads::new(1));
        let (_, _, planned) = plan();
        let entropy = Entropy::system().unwrap();
        let begin = || Run::begin(&data, &engine, &entropy, &planned).unwrap();
        let mut first = begin();
        descend(&mut first, &mut [0.0; 4], 4).unwrap();
        let executed = first.executed().unwrap();
        assert!(executed.count() == 4 && !executed.is_simulated());
        let mut run = begin();
        run.resume(&executed).unwrap();
        assert!(run.resume(&executed).is_err(), "twice");
        descend(&mut run, &mut [0.0; 4], 2).unwrap();
        assert!(descend(&mut run, &mut [0.0; 4], 1).is_err(), "a seventh of six");
        assert_eq!(run.close(()).unwrap().event(), &planned);
        // What is graded or ordered once stays so.
        let worse = Executed { numerics: crate::Numerics::Float, order_dependent: true, ..executed.clone() };
        let mut run = begin();
        run.resume(&worse).unwrap();
        descend(&mut run, &mut [0.0; 4], 2).unwrap();
        let released = run.close(()).unwrap();
        assert!(released.numerics() == crate::Numerics::Float && released.is_order_dependent());
        assert!(begin().under(Adjacency::AddRemove).resume(&worse).is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (data, engine) = (dataset(300, 4, false, None), Threads::new(1));
        let (_, _, planned) = plan();
        let entropy = Entropy::system().unwrap();
        let begin = || Run::begin(&data, &engine, &entropy, &planned).unwrap();
        let mut first = begin();
        descend(&mut first, &mut [0.0; 4], 1).unwrap();
        let one = first.executed().unwrap();
        let event = one.releases[0].0.clone();
        let of = |releases: Vec<(Event, u64)>| Executed { releases, ..one.clone() };
        assert!(begin().resume(&of(vec![(event.clone(), STEPS)])).is_ok());
        assert!(begin().resume(&of(vec![(event.clone(), STEPS + 1)])).is_err(), "more than the plan");
        assert!(begin().resume(&of(vec![(event.clone(), u64::MAX)])).is_err(), "at once, not after years");
        assert!(begin().resume(&of(vec![(Event::gaussian(3.0), 1)])).is_err(), "not of the plan");
        assert!(
            begin().resume(&Executed { simulated: Some((1, 0)), ..one.clone() }).is_err(),
            "a simulation never becomes private"
        );
        assert!(first.resume(&one).is_err(), "after a release");
        let (five, six) = (Entropy::simulated(5), Entropy::simulated(6));
        let simulated = Run::begin(&data, &engine, &five, &planned).unwrap().executed().unwrap();
        assert!(Run::begin(&data, &engine, &five, &planned).unwrap().resume(&simulated).is_ok());
        assert!(Run::begin(&data, &engine, &six, &planned).unwrap().resume(&simulated).is_err());
        assert!(begin().resume(&simulated).is_err() && Run::begin(&data, &engine, &six, &planned).unwrap().resume(&one).is_err());
        let mut audited = Run::recorded(&data, &engine, &five, &planned).unwrap();
        assert!(audited.resume(&simulated).is_err() && audited.executed().is_err());
    }
}
