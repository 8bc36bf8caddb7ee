//! Recursive momentum: an estimate of the gradient that is carried on by the changes of gradients along the way.
//!
//! *What it computes.* The first step averages gradients over a large sample, all records by default. Each later step takes a Poisson sample and adds, for each sampled record, a part `fresh` of its gradient g at
//! the iterate and 1 - fresh times what its gradient changed since the iterate before: v = (1 - fresh) v' + (noisy sum of these) / (expected sample size). Steps go along v. A record's vector is
//! h = fresh clip(g, C) + (1 - fresh) clip(change, D), of length H = fresh C + (1 - fresh) D at the most; or, with `joint`, clip(g - (1 - fresh) g', H). With fresh = 1 nothing is carried on: `noisy-sgd`.
//!
//! *Privacy.* Records enter a step through one clipped sum of h, whose two gradients come from one sample and leave as one vector with one noise (`query/recursive_gradient.rs` of the kernel): one record moves it by
//! H under zero-out and add-remove, by 2 H under replace-one. Both iterates, and (1 - fresh) v', are functions of earlier releases. The noise of every step is sigma = z H with one z, so that steps differ in H
//! alone and the event of each is that of a sampled Gaussian with multiplier z; the first step has a multiplier and a rate of its own, and is paid for. H follows the way: D is at most
//! smoothness x the length of the last step, a public number by then, beyond which the change of no gradient of a row in the unit ball can be. It is clipped there all the same.
//! The published noise rests on a lemma about sampling whose conditions no published run meets; see `published/recursive.rs`.
//!
//! *Accuracy.* For losses that are not convex, and where a pass is dear. What is carried on is the noise of earlier steps too: a step's noise z H adds up to z H / fresh, which is never less than the z C of `noisy-sgd`,
//! unless few steps follow. A wide clip of changes feeds on itself: noise makes longer steps, and these more noise. Defaults were found on validation rows of a9a and ijcnn1 at epsilon 0.2: fresh from 0.4 to 0.8
//! and a clip of changes of a hundredth to a tenth of that of gradients were alike there, a smaller fresh part or a wider clip worse, and `noisy-sgd` as good as the best of them.
//!
//! *Needs.* A smooth loss, delta > 0. Time: two gradients for each sampled record.
//!
//! *Reference.* Cutkosky and Orabona 2019 (STORM); Wang, Chen, Gu 2021 (DP-SRM).

use super::Capabilities;
use super::direction::Direction;
use super::noisy_gd::{Answer, DISTANCE, LONGEST, Steps, calibrated_steps, stable_rate};
use super::recursion::{Clip, Recursive};
use super::settings::settings;
use super::{Method, Plan, Problem, needs_smooth};
use crate::error::{Error, Result};
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::{Gaussian, Loss, Rate, planned_step};

settings! {
    /// Settings of recursive momentum.
    pub(crate) struct RecursiveSettings {
        /// part of each step's estimate that is a fresh gradient; 1 is noisy-sgd
        fresh: f64 = 0.5, 0.001..=1.0;
        /// probability that a record takes part in a step
        sampling_rate: Option<f64> = None, 1e-6..=1.0;
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e7;
        /// length of a step, for the average gradient
        learning_rate: Option<f64> = None, 1e-9..=1e9;
        /// part of the last move that is kept
        momentum: f64 = 0.9, 0.0..=0.999;
        /// largest gradient of a record
        clip: Option<f64> = None, 1e-6..=1e6;
        /// largest change of a record's gradient in a step; a tenth of the clip if not given, and never more than smoothness times the length of the last step
        change_clip: Option<f64> = None, 0.0..=1e6;
        /// largest vector of a record, in the place of both clips
        joint: Option<f64> = None, 1e-9..=1e6;
        /// probability that a record takes part in the first step
        first_rate: f64 = 1.0, 1e-6..=1.0;
        /// share of the budget for the first step
        first_share: f64 = 0.05, 0.001..=0.9;
        /// strength of a ridge outside of the clipped sum, in sum form
        ridge: f64 = 0.0, 0.0..=1e12;
        /// strength of a nonconvex regulariser of the average loss, the sum of w^2 / (1 + w^2)
        nonconvex: f64 = 0.0, 0.0..=1e6;
        /// strength of Laplacian smoothing of noisy gradients
        smoothing: f64 = 0.0, 0.0..=1e6;
        /// whether the answer is the average of the second half of the iterates, not the last one
        averaged: bool = true, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "recursive-momentum",
    alias: "DP-SRM, DP-STORM",
    needs: "smooth loss, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies; also units of several rows",
    source: "Cutkosky and Orabona 2019, Wang et al. 2021; Poisson samples, numerical composition",
    theorem: "Each step takes every record with probability q, secretly and independently, and releases one sum with Gaussian noise z H: a sampled record adds gamma times its gradient clipped to C \
              and 1 - gamma times the change of its clipped gradient since the iterate before, clipped to D, or both clipped as one; its length H = gamma C + (1 - gamma) D is checked on the integers. One \
              record moves the sum by at most H (replace-one 2 H). Both iterates, and the estimate that is carried on, are functions of earlier releases. The privacy loss is that of sampled \
              Gaussians with multiplier z, composed numerically with that of the first step.",
    settings: RecursiveSettings::SETTINGS,
    published: false,
    can: Capabilities { smooth: true, releases_gradients: true, many_steps: true, ..Capabilities::ANY },
    plan,
};

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta(METHOD.name)?;
    needs_smooth(problem, METHOD.name)?;
    let settings = RecursiveSettings::parse(&problem.settings)?;
    let losses = super::head_losses(problem)?;
    let n = problem.all_rows();
    let bound = losses[0].lipschitz();
    let gradient = settings.clip.unwrap_or(if losses[0].outputs() > 1 { 0.5 * bound } else { bound }).min(bound);
    // Derivatives are clipped on the integers in the first step, and before the recursion in others.
    let losses: Vec<Loss> = losses.iter().map(|l| l.clipped(gradient)).collect();
    // Gradients of a unit of several rows are longer, and are clipped as one.
    let unit = if problem.rows_per_unit > 1 { (problem.rows_per_unit as f64).sqrt() } else { 1.0 };
    let direction = Direction { nonconvex: settings.nonconvex, smoothing: settings.smoothing };
    let fraction = settings.sampling_rate.unwrap_or((1024.0 / problem.rows.max(1) as f64).clamp(0.01, 1.0));
    let steps = settings.steps.unwrap_or(1 + (4.0 / fraction).clamp(50.0, 5000.0).round() as u64);
    let clip = match (settings.joint, settings.change_clip) {
        (Some(_), Some(_)) => {
            return Err(Error::misuse("joint is a clip in the place of change_clip: give one of them"));
        }
        (Some(joint), None) => Clip::Joint(joint.min(2.0 * gradient) * unit),
        (None, change) => Clip::Split {
            gradient: gradient * unit,
            // No change of a clipped gradient is longer than twice the clip.
            change: change.unwrap_or(0.1 * gradient).min(2.0 * gradient) * unit,
            smoothness: losses[0].smoothness() * problem.rows_per_unit.max(1) as f64,
        },
    };
    let sampled = (fraction < 1.0).then(|| Rate::new(fraction)).transpose()?;
    let dimension = problem.features * losses[0].outputs();
    let (mechanism, recursive, event) = if settings.fresh == 1.0 && settings.joint.is_none() {
        // Nothing is carried on, and nothing has to be begun.
        let (mechanism, event) = calibrated_steps(problem, &losses, gradient * unit, sampled, steps, false)?;
        (mechanism, None, event)
    } else {
        let first_sampled = (settings.first_rate < 1.0).then(|| Rate::new(settings.first_rate)).transpose()?;
        // Its share of mu^2 under the whole target, as if a sample were as good as its part of everyone; the event says what it costs.
        let first_noise = problem.single_noise()? * (losses.len() as f64 / settings.first_share).sqrt() * settings.first_rate;
        let first = Gaussian::for_gradients(gradient * unit, first_noise.max(0.5))?;
        let make = |noise_multiplier: f64| -> Result<Event> {
            // The integers of a sensitivity do not depend on its size in the caller's units.
            let later = planned_step(&Gaussian::for_gradients(gradient, noise_multiplier)?, dimension, sampled);
            let first = planned_step(&first, dimension, first_sampled);
            let own = if steps > 1 { Event::Compose(vec![first, later.repeated(steps - 1)]) } else { first };
            Ok(if losses.len() > 1 { own.repeated(losses.len() as u64) } else { own })
        };
        let noise_multiplier = calibrate(problem.target, make, problem.adjacency)?;
        let first_divide = n * settings.first_rate;
        let recursive = Recursive { fresh: settings.fresh, clip, first: (first, first_sampled, first_divide), noise_multiplier };
        let longest = recursive.longest();
        (Gaussian::for_gradients(longest, noise_multiplier)?, Some(recursive), make(noise_multiplier)?)
    };
    let smoothness = losses[0].smoothness() + direction.curvature();
    let usual = usual_rate(problem, &losses, steps, settings.momentum)?;
    let rate = settings.learning_rate.unwrap_or(usual.min(stable_rate(settings.momentum, smoothness)));
    let momentum = settings.momentum;
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |_| rate),
        momentum: Box::new(move |_| momentum),
        ridge: settings.ridge,
        divide: n * fraction,
        answer: if settings.averaged { Answer::HalfAverage } else { Answer::Last },
        event,
        constraint: problem.constraint,
        features: problem.features,
        offset: None,
        direction,
        recursive,
    }))
}

/// Length of steps whose average goes as far as those of `noisy-gd` for the same budget.
fn usual_rate(problem: &Problem, losses: &[Loss], steps: u64, momentum: f64) -> Result<f64> {
    let noise = problem.single_noise()? * (losses.len() as f64).sqrt();
    let wanted = (problem.all_rows() / (250.0 * noise)).min(LONGEST);
    Ok(wanted * DISTANCE * (1.0 - momentum) / (0.75 * steps as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{Random, dataset, plan, schema};
    use privfit_kernel::account::{Adjacency, epsilon};
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Dataset, Entropy, Run};

    const CLASSES: &str = "classes = [\"0\", \"1\"]";

    fn rows(count: usize) -> Vec<Vec<f64>> {
        let mut random = Random(7);
        (0..count)
            .map(|_| {
                let x = [random.next(), random.next(), random.next()];
                vec![x[0], x[1], x[2], f64::from(u8::from(x[0] + 0.3 * random.next() > 0.0))]
            })
            .collect()
    }

    /// Weights from a seed, and what the run executed was planned.
    fn trained(plan: &dyn Plan, data: &Dataset, seed: u64) -> Vec<f64> {
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(seed));
        let mut run = Run::begin(data, &engine, &entropy, plan.event()).unwrap();
        let weights = plan.run(&mut run, &|| {}).unwrap();
        run.close(weights).unwrap().into_value()
    }

    /// With fresh = 1 it is noisy SGD: the same plan, and the same weights from the same seed, to the bit.
    #[test]
    fn all_fresh_is_noisy_sgd() {
        let schema = schema(3, "", CLASSES);
        let data = dataset(&schema, 3, false, &rows(300), &Entropy::simulated(1));
        let shared = [
            ("steps", 25.0),
            ("sampling_rate", 0.2),
            ("learning_rate", 1.5),
            ("momentum", 0.0),
            ("nonconvex", 0.01),
            ("smoothing", 0.5),
        ];
        let sgd = plan(&schema, "noisy-sgd", "logistic", 300, 1.0, &shared);
        let own: Vec<_> = shared.iter().copied().chain([("fresh", 1.0)]).collect();
        let fresh = plan(&schema, "recursive-momentum", "logistic", 300, 1.0, &own);
        assert_eq!(sgd.plan.event(), fresh.plan.event());
        for seed in [3, 4] {
            let (a, b) = (trained(sgd.plan.as_ref(), &data, seed), trained(fresh.plan.as_ref(), &data, seed));
            assert_eq!(a.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), b.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        }
        let carried = plan(&schema, "recursive-momentum", "logistic", 300, 1.0, &[("fresh", 0.999), own[0], own[1], own[2]]);
        assert_ne!(trained(carried.plan.as_ref(), &data, 3), trained(fresh.plan.as_ref(), &data, 3));
    }

    /// The first step and the others together cost what was asked for, with every adjacency, clip and several heads; a run executes the plan although the longest vector follows the way.
    #[test]
    fn every_step_is_paid_for() {
        let schema = schema(3, "", CLASSES);
        let data = dataset(&schema, 3, false, &rows(400), &Entropy::simulated(1));
        let few = [("steps", 12.0), ("sampling_rate", 0.25)];
        for more in [
            &[][..],
            &[("change_clip", 0.05)],
            &[("change_clip", 0.0)],
            &[("joint", 0.2)],
            &[("joint", 0.2), ("fresh", 1.0)],
            &[("first_rate", 0.5), ("first_share", 0.3)],
            &[("steps", 1.0)],
        ] {
            let set: Vec<_> = few.iter().filter(|f| more.iter().all(|m| m.0 != f.0)).chain(more).copied().collect();
            let prepared = plan(&schema, "recursive-momentum", "logistic", 400, 1.0, &set);
            let found = epsilon(prepared.plan.event(), Adjacency::ZeroOut, 1e-8).unwrap().bound.upper;
            let least = if more == [("steps", 1.0)] { 0.1 } else { 0.98 };
            assert!(found <= 1.0 && found > least, "{more:?}: {found}");
            assert!(trained(prepared.plan.as_ref(), &data, 5).iter().all(|w| w.is_finite()));
        }
        let both = [("joint", 0.2), ("change_clip", 0.1)];
        let problem = plan(&schema, "recursive-momentum", "logistic", 400, 1.0, &few).problem;
        let settings = super::super::Settings(both.iter().map(|(k, v)| (k.to_string(), *v)).collect());
        let refused = super::plan(&Problem { settings, ..problem }).err().unwrap().to_string();
        assert!(refused.contains("give one of them"), "{refused}");
    }
}
