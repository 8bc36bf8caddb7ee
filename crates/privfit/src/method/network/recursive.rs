//! Recursive momentum for networks: what a step carries on, and the bounds of what an example adds. `network/recursion.rs` has the claim about a step, `recursive_momentum.rs` that about all of them.

use super::{Iterate, NetworkSettings};
use crate::error::{Error, Result};
use crate::method::{Problem, rounded};
use crate::network::recursion::Bounds;
use crate::network::{Copies, Network};
use privfit_kernel::{Gaussian, Rate};

/// The line of a plan with recursive momentum; certificates follow it with a sentence.
pub(super) const FRESH: &str = "fresh part of a gradient";

/// Share of the budget for the first step.
const FIRST: f64 = 0.05;
/// Clip of the change of a gradient, over that of gradients.
const CHANGE: f64 = 0.1;

/// Bounds, and the first step, which reads all examples.
pub(super) struct Recursive {
    pub(super) bounds: Bounds,
    pub(super) first: Gaussian,
    /// What sums of later steps are divided by, over what the first is.
    scale: f64,
}

/// A mechanism for sums of gradients with a clip.
pub(super) fn mechanism(network: &Network, exact: bool, clip: f64, noise_multiplier: f64, rows: u64) -> Result<Gaussian> {
    Ok(match exact {
        true => Gaussian::new(clip, noise_multiplier, rows)?,
        false => Gaussian::for_blocks(clip, network.error(), noise_multiplier, rows, network.trained())?,
    })
}

/// Correlated noise is planned for sums of gradients, each of which is fresh.
pub(super) fn samples_alone() -> Error {
    Error::misuse("recursive momentum has independent noise: leave out fresh, or give ").give("set", "correlated=false")
}

/// None where every gradient is fresh.
pub(super) fn planned(
    problem: &Problem,
    settings: &NetworkSettings,
    network: &Network,
    clip: f64,
    sampling_rate: f64,
) -> Result<Option<Recursive>> {
    if settings.fresh == 1.0 {
        return match settings.change_clip {
            None => Ok(None),
            Some(_) => Err(Error::misuse(
                "change_clip is for recursive momentum, and every gradient is fresh: give fresh below 1, or leave it out",
            )),
        };
    }
    if network.copies != Copies::NONE || settings.automatic {
        return Err(Error::misuse(
            "recursive momentum takes gradients of examples as they are, and clips them itself: leave out copies and automatic, or fresh",
        ));
    }
    let change = settings.change_clip.unwrap_or(CHANGE * clip).min(2.0 * clip);
    let first_noise = (problem.single_noise()? / FIRST.sqrt()).max(0.5);
    Ok(Some(Recursive {
        bounds: Bounds { fresh: settings.fresh, gradient: clip, change },
        first: mechanism(network, settings.exact, clip, first_noise, problem.rows)?,
        scale: sampling_rate,
    }))
}

impl Recursive {
    /// How the first step samples: not at all.
    pub(super) const FIRST_SAMPLED: Option<Rate> = None;

    /// The estimate after a step's noisy sum, in the units of later sums.
    pub(super) fn carried(&self, at: &mut Iterate, step: u64, sum: &[f64]) -> Vec<f64> {
        let kept = 1.0 - self.bounds.fresh;
        for (e, s) in at.estimate.iter_mut().zip(sum) {
            *e = if step == 0 { self.scale * s } else { kept * *e + s };
        }
        at.before.copy_from_slice(&at.weights);
        at.estimate.clone()
    }

    /// Variance of the noise in an estimate, over that of a step's sum, after many steps.
    pub(super) fn variance(&self) -> f64 {
        1.0 / (self.bounds.fresh * (2.0 - self.bounds.fresh))
    }

    pub(super) fn describe(&self) -> Vec<(&'static str, String)> {
        vec![
            (FRESH, rounded(self.bounds.fresh)),
            ("clip of the change of a gradient", rounded(self.bounds.change)),
            ("noise of the first step, over all examples, standard deviation", rounded(self.first.standard_deviation())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{METHOD, networks};
    use super::*;
    use crate::checkpoint::{Checkpoints, State};
    use crate::method::testing::{Random, dataset, plan, schema};
    use crate::method::{Plan, Settings, also};
    use privfit_kernel::account::{Adjacency, Event, epsilon};
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Entropy, Run};

    const CLASSES: &str = "classes = [\"0\", \"1\", \"2\"]";

    fn made(set: &[(&str, f64)]) -> Result<super::super::Networks> {
        let problem = plan(&schema(3, "", CLASSES), "network", "softmax", 300, 1.0, &[("steps", 6.0)]).problem;
        let set = [("steps", 6.0)].iter().chain(set).map(|(name, value)| (name.to_string(), *value));
        networks(&Problem { settings: Settings(set.collect()), ..problem })
    }

    /// Both kinds of step cost what was asked for together, a run executes them, with statistics before them too, and certificates say what a record adds.
    #[test]
    fn every_step_is_paid_for() {
        let mut random = Random(7);
        let rows: Vec<Vec<f64>> = (0..300).map(|i| vec![random.next(), random.next(), random.next(), f64::from(i % 3)]).collect();
        let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
        let data = dataset(&schema(3, "", CLASSES), 3, false, &rows, &entropy);
        for set in
            [&[("fresh", 0.3)][..], &[("fresh", 0.3), ("exact", 1.0)], &[("fresh", 0.5), ("normalise", 0.2), ("adam", 1.0)]]
        {
            let plan = made(set).unwrap();
            let Event::Compose(events) = &plan.event else { panic!("{:?}", plan.event) };
            assert_eq!(events.len(), if set.len() == 3 { 3 } else { 2 });
            let found = epsilon(&plan.event, Adjacency::ZeroOut, 1e-8).unwrap().bound.upper;
            assert!(found <= 1.0 && found > 0.98, "{found}");
            let mut run = Run::begin(&data, &engine, &entropy, &plan.event).unwrap();
            let numbers = plan.run(&mut run, &|| {}).unwrap();
            assert!(run.close(()).is_ok() && numbers.iter().all(|x| x.is_finite()));
            let lines: Vec<_> = plan.describe().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
            assert!(also(METHOD.name, &lines).iter().any(|sentence| sentence.contains("change")));
        }
        let plain = made(&[]).unwrap();
        assert_eq!(made(&[("fresh", 1.0)]).unwrap().event, plain.event);
    }

    /// A state that is kept after each step, and a reader who is stopped there.
    struct Stopping(Option<State>, u64);

    impl Checkpoints for Stopping {
        fn due(&self, _: u64) -> bool {
            true
        }

        fn found(&mut self) -> Option<State> {
            self.0.clone()
        }

        fn keep(&mut self, state: State) -> Result<()> {
            let stops = state.steps == self.1;
            self.0 = Some(state);
            if stops { Err(Error::output("stopped")) } else { Ok(()) }
        }
    }

    /// The estimate and the weights before are kept: a run that is stopped after any step ends with the same numbers, to the bit, with one thread or two.
    #[test]
    fn interruptions_change_nothing() {
        let mut random = Random(9);
        let rows: Vec<Vec<f64>> = (0..300).map(|i| vec![random.next(), random.next(), random.next(), f64::from(i % 3)]).collect();
        let data = dataset(&schema(3, "", CLASSES), 3, false, &rows, &Entropy::simulated(1));
        let plan = made(&[("fresh", 0.3), ("normalise", 0.1)]).unwrap();
        let run = |threads: usize, kept: Option<&mut dyn Checkpoints>| {
            let (engine, entropy) = (Threads::new(threads), Entropy::simulated(5));
            let mut run = Run::begin(&data, &engine, &entropy, &plan.event).unwrap();
            let numbers = plan.descend(&mut run, &|| {}, kept)?;
            assert!(run.close(()).is_ok());
            Ok::<_, Error>(numbers.iter().map(|x| x.to_bits()).collect::<Vec<u64>>())
        };
        let whole = run(1, None).unwrap();
        let mut kept = Stopping(None, 0);
        for stop in 1..=6 {
            kept.1 = stop;
            assert!(run(1 + stop as usize % 2, Some(&mut kept)).is_err());
        }
        kept.1 = 0;
        assert_eq!(run(1, Some(&mut kept)).unwrap(), whole);
        assert_eq!(run(2, None).unwrap(), whole);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (set, words) in [
            (&[("fresh", 0.5), ("automatic", 1.0)][..], "leave out copies and automatic"),
            (&[("change_clip", 0.1)], "give fresh below 1"),
        ] {
            let error = made(set).err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
