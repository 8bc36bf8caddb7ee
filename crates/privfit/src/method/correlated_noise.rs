//! Noisy gradient descent on fixed batches, with noise that is correlated over the steps.
//!
//! *What it computes.* Records are put into batches once, at random. Every epoch goes through the batches in the same order; each step releases the sum of clipped gradients of its batch, with noise that
//! takes back a part of the noise of earlier steps. A descent adds its steps up, so that much of the noise cancels. The answer is the average of the second half of the iterates.
//!
//! *Privacy.* Zero-out and replace-one. A record's gradient is clipped to `clip` on the integers, as in `noisy-gd`. It takes part in every b-th step, and all steps together are one Gaussian release whose
//! sensitivity is that of C times all sums (`correlated.rs` of the kernel, `account/toeplitz.rs`). No step rests on secret samples, and nothing is amplified. Add-remove is refused. With `in_order` batches are parts of the
//! records in the order in which they came, as a stream or several owners bring them: a record's place is public then, and the claim is the same (the kernel says why, and which orders are none).
//!
//! *Checkpoints.* Weights, moves and averages are functions of what was released; with them goes the key of each noise that later steps take back (`checkpoint/mod.rs`), so that such a file is as confidential as the records.
//!
//! *Accuracy.* With as many passes over the data about that of full batches, which take b times fewer steps; better than samples where epsilon is large. The factor is the one with the least noise in
//! the answer, among banded inverse square roots and geometric ones (`correlation.rs`).
//!
//! *Needs.* Any loss, delta > 0, zero-out or replace-one. Time: `epochs` passes over the data. Memory: one gradient for each step whose noise is taken back.
//!
//! *Reference.* Kairouz et al. 2021 (DP-FTRL); Denisov et al. 2022; Choquette-Choo et al. 2023; Kalinin et al. 2025 (banded inverse square root).

use super::correlation::{self, Schedule};
use super::direction::Direction;
use super::noisy_gd::{Answer, Steps, stable_rate};
use super::offset::{self, Offset};
use super::settings::settings;
use super::{Capabilities, Method, Plan, Problem};
use crate::error::{Error, Result};
use privfit_kernel::account::{Adjacency, Event, Participation, calibrate};
use privfit_kernel::{CorrelatedGaussian, Gaussian};

settings! {
    /// Settings of descent with correlated noise.
    pub(crate) struct CorrelatedNoiseSettings {
        /// passes over the data
        epochs: Option<u64> = None, 1.0..=1e5;
        /// batches of an epoch
        batches: Option<u64> = None, 1.0..=1e5;
        /// length of a step, for the average gradient
        learning_rate: Option<f64> = None, 1e-9..=1e9;
        /// part of the last move that is kept
        momentum: f64 = 0.9, 0.0..=0.999;
        /// largest gradient of a record
        clip: Option<f64> = None, 1e-6..=1e6;
        /// strength of a ridge outside of the clipped sum, in sum form
        ridge: f64 = 0.0, 0.0..=1e12;
        /// whether scores of a number begin at its private mean, not at the middle of its bounds
        offset: bool = true, 0.0..=1.0;
        /// bands of the inverse square root that correlates noise: how many steps take noise back, and 1
        bands: Option<u64> = None, 1.0..=64.0;
        /// part of the last noise that a step takes back, in place of bands
        taken_back: Option<f64> = None, 0.0..=1.0;
        /// whether batches are parts of the records in their order, which is public then, not drawn
        in_order: bool = false, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "correlated-noise",
    alias: "DP-FTRL, DP-MF, matrix mechanism",
    needs: "any loss, delta > 0",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "Kairouz et al. 2021, Denisov et al. 2022, Kalinin et al. 2025; one Gaussian release of all steps",
    theorem: "Records are in b fixed batches, drawn once; every epoch goes through them in the same order, so that a record is in every b-th step and adds a gradient clipped to length C to it. Step t \
              releases its sum with Gaussian noise z_t less a fixed part of the noise before, rounded to the grid; 1 and the parts that are taken back, with their sign, are the bands of a \
              matrix K^-1. One record moves K times all sums by at most the length of the sum of K's columns 1, 1 + b, 1 + 2 b, ..., times C (replace-one 2 C), because K's coefficients \
              are not negative and do not grow; rounding adds at most |K| sqrt(T d) grid steps. All T steps are one Gaussian release of this sensitivity.",
    settings: CorrelatedNoiseSettings::SETTINGS,
    published: false,
    can: Capabilities { releases_gradients: true, resumable: true, also: &[correlation::ORDER_SENTENCE], ..Capabilities::ANY },
    plan,
};

/// Records of a batch, unless it is said.
const BATCH: f64 = 2048.0;
/// Most batches, unless it is said.
const BATCHES: f64 = 50.0;
/// Fewest epochs, and fewest steps.
const EPOCHS: f64 = 10.0;
const STEPS: f64 = 100.0;

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta(METHOD.name)?;
    if problem.adjacency == Adjacency::AddRemove {
        return Err(Error::misuse(
            "correlated noise is for records whose number is public, in batches whose order is kept: use ",
        )
        .give("adjacency", "zero-out")
        .text(", or ")
        .give("method", "noisy-sgd"));
    }
    let settings = CorrelatedNoiseSettings::parse(&problem.settings)?;
    correlation::needs_places(problem, settings.in_order)?;
    let losses = super::head_losses(problem)?;
    let several = losses[0].outputs() > 1;
    // As in `noisy-gd`.
    let bound = losses[0].lipschitz();
    let clip = settings.clip.unwrap_or(if several { 0.5 * bound } else { bound }).min(bound);
    let losses: Vec<_> = losses.iter().map(|l| l.clipped(clip)).collect();
    let rows_clip = clip * if problem.rows_per_unit > 1 { (problem.rows_per_unit as f64).sqrt() } else { 1.0 };
    let n = problem.all_rows();
    let batches = settings.batches.unwrap_or((n / BATCH).round().clamp(1.0, BATCHES) as u64);
    let epochs = settings.epochs.unwrap_or((STEPS / batches as f64).ceil().max(EPOCHS) as u64);
    let steps = epochs * batches;
    let noise = problem.single_noise()? * (losses.len() as f64).sqrt();
    // The way of `noisy-gd`, in as many steps as there are here.
    let way = (n / (250.0 * noise)).min(32.0) * STEPS;
    let usual_rate = (way / steps as f64).min(stable_rate(settings.momentum, losses[0].smoothness()));
    let rate = settings.learning_rate.unwrap_or(usual_rate);
    let participation = Participation::epochs(steps, batches);
    let schedule = Schedule { rates: vec![rate; steps as usize], momentum: settings.momentum, averaged_from: steps as usize / 2 };
    let factor = correlation::factor(settings.bands, settings.taken_back, participation, &schedule.directions())?;
    let times = participation.sensitivity(&factor)?;
    let dimension = problem.features * losses[0].outputs();
    let make = |nm: f64| -> Result<(CorrelatedGaussian, Option<Offset>, Event)> {
        let step = Gaussian::for_gradients(rows_clip, nm)?;
        let run = CorrelatedGaussian::new(step, factor.clone(), steps, batches as u32, dimension)?;
        let run = if settings.in_order { run.in_order() } else { run };
        let heads = vec![run.event(); losses.len()];
        let offset = match settings.offset && offset::applies(problem) {
            true => Offset::new(problem, false, nm / times)?,
            false => None,
        };
        let events: Vec<Event> = offset.iter().flat_map(Offset::events).chain(heads).collect();
        let event = if events.len() == 1 { run.event() } else { Event::Compose(events) };
        Ok((run, offset, event))
    };
    let multiplier = calibrate(problem.target, |nm| make(nm).map(|m| m.2), problem.adjacency)?;
    let (run, offset, event) = make(multiplier)?;
    let divide = n / batches as f64;
    let ridge = settings.ridge / batches as f64;
    if rate * ridge / divide > 1.0 {
        return Err(Error::misuse(format!(
            "learning_rate {rate} times ridge {} over {n} rows is above 1 and diverges: give less of them",
            settings.ridge
        )));
    }
    Ok(Box::new(Steps {
        losses,
        mechanism: Gaussian::for_gradients(rows_clip, multiplier)?,
        sampled: None,
        direction: Direction::default(),
        recursive: None,
        correlated: Some(run),
        steps,
        rate: Box::new(move |_| rate),
        momentum: Box::new(move |_| settings.momentum),
        ridge,
        divide,
        answer: Answer::HalfAverage,
        event,
        constraint: problem.constraint,
        features: problem.features,
        offset,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, schema};
    use crate::method::{Problem, find};
    use privfit_kernel::account::{Adjacency, Event, epsilon};

    const TWO: &str = "classes = [\"no\", \"yes\"]";

    /// All steps are one release, of as many coordinates as all of them have; certificates say so.
    #[test]
    fn all_steps_are_one_release() {
        let prepared = plan(&schema(4, "", TWO), "DP-FTRL", "logistic", 10_000, 2.0, &[("epochs", 6.0), ("batches", 5.0)]);
        assert_eq!(prepared.method.name, "correlated-noise");
        let Event::DiscreteGaussian { dimension, sensitivity, replace_sensitivity, .. } = prepared.plan.event() else {
            panic!("{:?}", prepared.plan.event())
        };
        assert_eq!(*dimension, 30 * prepared.problem.features as u64);
        assert!(*replace_sensitivity > 19 * sensitivity / 10 && *replace_sensitivity <= 2 * sensitivity);
        let spent = epsilon(prepared.plan.event(), Adjacency::ZeroOut, prepared.problem.target.delta).unwrap().bound.upper;
        assert!(spent <= 2.0 && spent > 1.99, "{spent}");
        let lines = prepared.plan.describe();
        let line = |name: &str| &lines.iter().find(|l| l.0 == name).unwrap().1;
        assert_eq!(line("batches"), "5, drawn once; 6 epochs go through them in the same order");
        assert!(find("matrix mechanism").is_some_and(|m| m.name == "correlated-noise"));
    }

    /// In their order: the same event, and it is stated; units of several rows have no place of their own.
    #[test]
    fn an_order_that_is_given_is_stated() {
        let set = [("epochs", 6.0), ("batches", 5.0), ("in_order", 1.0)];
        let of = |set: &[(&str, f64)]| plan(&schema(4, "", TWO), "correlated-noise", "logistic", 10_000, 2.0, set);
        let (given, drawn) = (of(&set), of(&set[..2]));
        assert!(given.plan.event() == drawn.plan.event() && given.plan.follows_order() && !drawn.plan.follows_order());
        assert!(given.public_facts(10_000).iter().any(|f| f.what.contains("the place of each row")));
        let lines: Vec<_> = given.plan.describe().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        assert!(crate::method::also("correlated-noise", &lines).iter().any(|s| s.contains("its place alone")));
        let with_units = schema(4, "unit = { column = \"u\", max_rows = 1 }", TWO);
        let problem = Problem { schema: with_units.into(), ..of(&set).problem };
        assert!(super::plan(&problem).err().unwrap().to_string().contains("without a unit column"));
    }

    /// Several heads are a run of steps each; a number begins at an offset.
    #[test]
    fn heads_and_offsets_are_composed() {
        let three = "classes = [\"a\", \"b\", \"c\"]";
        let set = [("epochs", 3.0), ("batches", 2.0), ("taken_back", 0.5)];
        let heads = plan(&schema(4, "", three), "correlated-noise", "logistic", 1000, 2.0, &set);
        assert!(matches!(heads.plan.event(), Event::Compose(all) if all.len() == 3 && all[0] == all[2]));
        let number = plan(&schema(4, "", "bounds = [0, 5]"), "correlated-noise", "squared", 1000, 2.0, &set);
        assert!(matches!(number.plan.event(), Event::Compose(all) if all.len() == 2));
        let lines = heads.plan.describe();
        assert!(lines.iter().any(|l| l.0 == "noise that a step takes back" && l.1.starts_with("0.5 of that")), "{lines:?}");
    }
}
