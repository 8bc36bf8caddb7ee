//! Recursive momentum with the printed noise (DP-SRM), and without any (STORM). The lemma behind the noise has conditions that no published run on tables meets; the noise is several times what the
//! claim needs all the same. Batches are Poisson samples of the printed size here, which is kinder to it; the event states what the noise is worth on them.

use super::super::Capabilities;
use super::printed::srm_sigma;
use super::{published_loss, split_budget};
use crate::error::Result;
use crate::method::direction::Direction;
use crate::method::noisy_gd::{Answer, Steps};
use crate::method::recursion::{Clip, Recursive};
use crate::method::settings::settings;
use crate::method::{Method, Plan, Problem, needs_smooth};
use privfit_kernel::account::Event;
use privfit_kernel::{Gaussian, Rate, planned_step};

settings! {
    /// Settings of the published recursive momentum.
    pub(crate) struct PublishedRecursiveSettings {
        /// records to a step
        batch: u64 = 100, 1.0..=1e9;
        /// records to the first step; as many as to the others if not given
        first_batch: Option<u64> = None, 1.0..=1e9;
        /// number of steps; four passes if not given
        steps: Option<u64> = None, 1.0..=1e7;
        /// length of a step
        learning_rate: f64 = 1.0, 1e-9..=1e9;
        /// part of each step's estimate that is a fresh gradient
        fresh: f64 = 0.01, 0.001..=1.0;
        /// largest gradient of a record
        clip: f64 = 1.0, 1e-6..=1e6;
        /// largest change of a record's gradient
        change_clip: f64 = 0.01, 0.0..=1e6;
        /// share of epsilon for the divergence
        share: f64 = 0.5, 0.01..=0.99;
        /// strength of a nonconvex regulariser of the average loss, the sum of w^2 / (1 + w^2)
        nonconvex: f64 = 0.0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "published-dp-srm",
    alias: "printed DP-SRM",
    needs: "smooth loss, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; holds with much room on Poisson samples, by another proof",
    source: "Wang et al. 2021, algorithm 4 and theorem 4.5.1 of the thesis",
    theorem: super::THEOREM,
    settings: PublishedRecursiveSettings::SETTINGS,
    published: true,
    can: Capabilities { smooth: true, many_steps: true, ..Capabilities::PUBLISHED },
    plan,
};

settings! {
    /// Settings of recursive momentum without noise.
    pub(crate) struct StormSettings {
        /// records to a step
        batch: u64 = 100, 1.0..=1e9;
        /// number of steps; four passes if not given
        steps: Option<u64> = None, 1.0..=1e7;
        /// length of a step
        learning_rate: f64 = 1.0, 1e-9..=1e9;
        /// part of each step's estimate that is a fresh gradient
        fresh: f64 = 0.1, 0.001..=1.0;
        /// strength of a nonconvex regulariser of the average loss, the sum of w^2 / (1 + w^2)
        nonconvex: f64 = 0.0, 0.0..=1e6;
    }
}

/// The baseline.
pub(crate) const STORM: Method = Method {
    name: "storm-without-noise",
    alias: "STORM",
    needs: "smooth loss",
    guarantee: "none: next to no noise, and none that is accounted",
    source: "Cutkosky and Orabona 2019; the baseline without privacy",
    theorem: super::THEOREM,
    settings: StormSettings::SETTINGS,
    published: true,
    can: Capabilities { smooth: true, many_steps: true, ..Capabilities::PUBLISHED },
    plan: storm,
};

/// Sampling of batches, their steps, and the divisor.
fn batches(rows: f64, batch: u64, steps: Option<u64>) -> Result<(Option<Rate>, u64, f64)> {
    let batch = (batch as f64).min(rows);
    let sampled = (batch < rows).then(|| Rate::new(batch / rows)).transpose()?;
    Ok((sampled, steps.unwrap_or((4.0 * rows / batch).round() as u64).max(1), batch))
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (losses, epsilon, delta) = split_budget(&problem, METHOD.name)?;
    needs_smooth(&problem, METHOD.name)?;
    let s = PublishedRecursiveSettings::parse(&problem.settings)?;
    let rows = problem.rows.max(1) as f64;
    let clip = s.clip.min(losses[0].lipschitz());
    let losses: Vec<_> = losses.iter().map(|l| l.clipped(clip)).collect();
    let (sampled, steps, divide) = batches(rows, s.batch, s.steps)?;
    let (first_sampled, _, first_divide) = batches(rows, s.first_batch.unwrap_or(s.batch), None)?;
    let bounds = Clip::Split { gradient: clip, change: s.change_clip, smoothness: f64::INFINITY };
    let longest = s.fresh * clip + (1.0 - s.fresh) * s.change_clip;
    // The printed noise is that of an average; here it is that of a sum.
    let first =
        Gaussian::for_gradients(clip, first_divide * srm_sigma(clip, steps as f64, rows, s.share, epsilon, delta) / clip)?;
    let noise_multiplier = divide * srm_sigma(longest, steps as f64, rows, s.share, epsilon, delta) / longest;
    let later = Gaussian::for_gradients(longest, noise_multiplier)?;
    let d = problem.features;
    // One release more than the proof counts: the first.
    let own = vec![planned_step(&first, d, first_sampled), planned_step(&later, d, sampled).repeated(steps)];
    let event = Event::Compose(own).repeated(losses.len() as u64);
    let recursive = Recursive { fresh: s.fresh, clip: bounds, first: (first, first_sampled, first_divide), noise_multiplier };
    Ok(Box::new(Steps {
        losses,
        mechanism: later,
        sampled,
        correlated: None,
        steps: steps + 1,
        rate: Box::new(move |_| s.learning_rate),
        momentum: Box::new(|_| 0.0),
        ridge: 0.0,
        divide,
        answer: Answer::Last,
        event,
        constraint: problem.constraint,
        features: problem.features,
        offset: None,
        direction: Direction { nonconvex: s.nonconvex, smoothing: 0.0 },
        recursive: Some(recursive),
    }))
}

/// Noise over clip that a sum of many records does not notice.
const UNNOTICED: f64 = 1e-3;

fn storm(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    needs_smooth(&problem, STORM.name)?;
    let s = StormSettings::parse(&problem.settings)?;
    let losses = crate::method::head_losses(&problem)?;
    let rows = problem.rows.max(1) as f64;
    let (sampled, steps, divide) = batches(rows, s.batch, s.steps)?;
    let clip = losses[0].lipschitz();
    let mechanism = Gaussian::for_gradients(clip, UNNOTICED)?;
    // No change is longer than twice the longest gradient.
    let clips = Clip::Split { gradient: clip, change: 2.0 * clip, smoothness: losses[0].smoothness() };
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |_| s.learning_rate),
        momentum: Box::new(|_| 0.0),
        ridge: 0.0,
        divide,
        answer: Answer::Last,
        event: Event::NotPrivate { why: "a baseline without noise".into() },
        constraint: problem.constraint,
        features: problem.features,
        offset: None,
        direction: Direction { nonconvex: s.nonconvex, smoothing: 0.0 },
        recursive: Some(Recursive { fresh: s.fresh, clip: clips, first: (mechanism, None, rows), noise_multiplier: UNNOTICED }),
    }))
}
