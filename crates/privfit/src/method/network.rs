//! Noisy stochastic gradient descent on the weights of a network.
//!
//! *What it computes.* Each step takes a Poisson sample, the gradient of every sampled example by itself, brings each to the clip (or below it), and adds noise to their sum. Momentum or Adam
//! make steps of these sums, which shrink toward the end, and the average of the last iterates is the answer.
//!
//! *Privacy.* One example adds a vector of length at most the clip, as in `noisy-sgd`. Gradients are computed in single precision, many at a time: what that can do to a sum is bounded and
//! added to the sensitivity (`network/blocks.rs`, `query/blocks.rs` of the kernel), so that the guarantee is for the arithmetic that runs. With `exact` every gradient is computed by itself and
//! its length is checked on the integers, so that nothing rests on that bound. The accountant composes the exact privacy loss of
//! sampled Gaussians. Layers that mix examples do not exist. Weights begin at public random numbers, and everything after the noise is free: momentum, Adam, averages.
//!
//! *Normalisation.* Inputs get mean 0 and variance 1 by channel (by column, where rows are no pictures). Means and deviations that the schema states are public and cost nothing. With `normalise` they come of
//! one Gaussian release of sums, clipped on the integers, before the first step (`network/normal.rs`): its noise multiplier is that of this share of mu^2, and the noise of the steps
//! is calibrated so that both together meet the target. Steps read what was released there, and records again only through gradients that are clipped.
//!
//! *Frozen layers.* Where the layers before the scores were trained on rows that are declared public (`job/pretrain.rs`), they stay as they are. The gradient of an example is that by the weights of the
//! scores alone; it is clipped, summed and noised as above, over so many fewer numbers. The frozen weights are public and a function of no record, so that they change nothing about the guarantee.
//! They are bound to the record of the training, to a checkpoint and to a request by their digest.
//!
//! *Copies.* With `copies` K above 1 a picture is replaced, in every step that it is in, by K copies of it, each moved by up to `shift` pixels and, with `flip`, mirrored half of the time. Its gradient is the
//! average of those of the copies, which is brought to the clip once: it adds a vector no longer than the clip, as without copies, and everything about privacy stays as it is. Coins are keyed by
//! a secret of the step and by the index of the record, so that no other record can move them, and the bound holds for all that they may show (`network/augment.rs`, with the error of the arithmetic).
//!
//! *Fixed batches.* With `correlated` nothing is sampled: records are in fixed batches, and noise is correlated over the steps, all of which are one Gaussian release (`correlated.rs` of the kernel). Where it is not said,
//! it is done where a forecast from public facts has clearly less noise in the answer than samples leave (`correlation.rs`). A checkpoint then has keys of noise and is as confidential as the records.
//!
//! *Checkpoints.* Weights, moments, the sum of the last iterates, and scales and shifts of inputs are functions of the noisy sums so far, and are all that later steps need. Kept after a
//! step, they are the same numbers in another process, to the bit (`checkpoint/mod.rs`): what inputs are normalised with is released once. Coins of copies are drawn anew at each step, and nothing of
//! them is kept.
//!
//! *Recursive momentum.* With `fresh` below 1 the first step reads all examples, and each later one adds for a sampled example a fresh part of its clipped gradient and the clipped change of it since the weights
//! before (`network/recursion.rs`): one vector, whose bound H is smaller than the clip, with noise for H. The estimate that is carried on is made of noisy sums. The event composes the first step with the others.
//!
//! *Random rounds.* With `random_rounds` a run takes R of the steps, each R from 1 to their number alike, drawn before the first one, and its last iterate is the answer: one of a random iterate (`rounds.rs` has the claim). Learning rates stay as
//! they are, and nothing is averaged. The event is that of at most all steps. Together with `fresh` it is what the theory of recursive momentum is about.
//!
//! *Smoothing.* With `smoothing` a noisy sum is smoothed before it is a step, the weights of each layer on a ring of their own, score after score, and its biases on another: DP-LSSGD, or DP-LSAdam with `adam`. It is an
//! invertible function of what was released, so that the guarantee stays what it is.
//!
//! *Accuracy.* Large samples and few passes; bounded activations (tanh) lose less to the clip than others. Copies make the gradient of a picture less a matter of chance at no privacy cost, and take K times as long.
//!
//! *Needs.* Classes or a number, delta > 0, zero-out or replace-one, units of one row. Time: `sampling_rate` x steps passes over the data.
//!
//! *Reference.* Abadi et al. 2016; Papernot et al. 2020 (tanh); Bu et al. 2023 (automatic clipping); Tang and Lecuyer 2023 (what noise does to Adam); De et al. 2022 (copies).

mod copies;

mod memory;
mod recursive;

use super::correlation;
use super::rounds;
use super::settings::settings;
use super::{Capabilities, Learned, Method, Plan, Problem, rounded};
use crate::checkpoint::{Checkpoints, State};
use crate::error::{Error, Result};
use crate::memory::{MemoryConditions, MemoryPart};
use crate::network::normal::{Moments, Normal};
use crate::network::{History, Layer, Network, NetworkModel, Pretrained, Recorder, layers_of, usual_layers};
use crate::schema::{Features, Scaling, Task};
use crate::solve::laplacian::variance_factor;
use privfit_kernel::account::{Adjacency, Event, Factor, Participation, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Blockwise, Clipping, CorrelatedGaussian, Gaussian, Mechanism, Numerics, Rate, Run, planned_step};
use recursive::Recursive;
use std::sync::Arc;

settings! {
    /// Settings of networks.
    pub(crate) struct NetworkSettings {
        /// probability that an example takes part in a step
        sampling_rate: Option<f64> = None, 1e-6..=1.0;
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e7;
        /// length of a step, for the average gradient in units of the clip
        learning_rate: Option<f64> = None, 1e-9..=1e9;
        /// part of the last move that is kept
        momentum: f64 = 0.9, 0.0..=0.999;
        /// largest gradient of an example
        clip: Option<f64> = None, 1e-6..=1e6;
        /// whether all gradients are brought to the clip, not only longer ones
        automatic: bool = false, 0.0..=1.0;
        /// whether steps are those of Adam
        adam: bool = false, 0.0..=1.0;
        /// part of the steps in which the learning rate grows from zero
        warm_up: f64 = 0.0, 0.0..=1.0;
        /// part of the steps, at the end, in which it shrinks to zero
        decay: f64 = 0.3, 0.0..=1.0;
        /// part of the steps, at the end, whose weights are averaged
        averaged: f64 = 0.1, 0.0..=1.0;
        /// whether the gradient of every example is checked on whole numbers: slower, and nothing rests on rounding
        exact: bool = false, 0.0..=1.0;
        /// share of the budget for means and variances of the inputs, which are normalised with them; of scattering features for means alone
        normalise: Option<f64> = None, 0.0..=0.5;
        /// copies of a picture in a step, moved and mirrored at random, whose gradients are averaged before the clip; pixels alone
        copies: u64 = 1, 1.0..=64.0;
        /// most pixels that a copy is moved by, in each direction; an eighth of the shorter side if not given
        shift: Option<u64> = None, 0.0..=1024.0;
        /// whether half of the copies are mirrored, left to right; if not given, those of pictures with several channels are
        flip: Option<bool> = None, 0.0..=1.0;
        /// part of each step's estimate of the gradient that is fresh; below 1 the rest is carried on by clipped changes of gradients
        fresh: f64 = 1.0, 0.001..=1.0;
        /// largest change of an example's gradient in a step, with fresh below 1; a tenth of the clip if not given
        change_clip: Option<f64> = None, 0.0..=1e6;
        /// whether a random number of the steps is taken, each number alike, and the last iterate is the answer
        random_rounds: bool = false, 0.0..=1.0;
        /// strength of Laplacian smoothing of the noisy sums, each layer's weights on a ring of their own
        smoothing: f64 = 0.0, 0.0..=1e6;
        /// whether noise is correlated over steps through fixed batches, not independent on samples
        correlated: Option<bool> = None, 0.0..=1.0;
        /// bands of the inverse square root that correlates noise: how many steps take noise back, and 1
        bands: Option<u64> = None, 1.0..=64.0;
        /// part of the last noise that a step takes back, in place of bands
        taken_back: Option<f64> = None, 0.0..=1.0;
        /// whether the batches of correlated noise are parts of the records in their order, which is public then, not drawn
        in_order: bool = false, 0.0..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "network",
    alias: "DP-SGD for networks, DP-LSAdam",
    needs: "classes or a number, delta > 0, units of one row",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "Abadi et al. 2016, Bu et al. 2023; Poisson samples, numerical composition",
    theorem: "Each step takes every record with probability q, secretly and independently, and releases the sum of gradients of a network, each brought to \
              length C or below, with Gaussian noise sigma. What single precision can do to the sum of a block is bounded and added to C. The privacy loss \
              of a step is that of N(0, sigma^2) against (1 - q) N(0, sigma^2) + q N(C, sigma^2), in both directions (replace-one: the \
              mixtures around -C and C); T steps are composed numerically.",
    settings: NetworkSettings::SETTINGS,
    published: false,
    can: Capabilities {
        releases_gradients: true,
        many_steps: true,
        of_layers: true,
        resumable: true,
        // The error of the arithmetic is derived in `network/blocks.rs`, and is none with `exact`.
        numerics: Numerics::Bounded,
        also: &[
            (
                MOMENTS_NOISE,
                "Before the first step the sums of inputs and of their squares are released once, each record clipped on the integers to length sqrt 2, with Gaussian noise; \
                 inputs are scaled and shifted by what follows from these noisy sums. Its privacy loss is composed with that of the steps.",
            ),
            (
                MEAN_NOISE,
                "Before the first step the sum of inputs is released once, each record clipped on the integers to length 1, with Gaussian noise; inputs are shifted by what follows \
                 from this noisy sum. Its privacy loss is composed with that of the steps.",
            ),
            (
                correlation::BATCHES,
                "Here nothing is sampled: records are in fixed batches, drawn once, and every epoch goes through them in the same order, so that a record is in every b-th step. Step t releases its sum \
                 with the noise z_t less a fixed part of the noise before, rounded to the grid; 1 and the parts that are taken back are the bands of a matrix C^-1. All T steps are one Gaussian release: \
                 a record moves C times all sums by at most C's sensitivity over such participations times its length, and rounding by at most |C| sqrt(T d) grid steps, which is added.",
            ),
            correlation::ORDER_SENTENCE,
            (
                rounds::DRAWN,
                "A run takes R of the T steps. R is drawn before the first one, each number from 1 to T alike, without looking at records, and may be public; the plan pays for all T steps, of which the others are a \
                 prefix.",
            ),
            (
                recursive::FRESH,
                "The first step reads every record. In later ones a sampled record adds gamma times its gradient clipped to C and 1 - gamma times the clipped change of its clipped gradient since the weights before, as one \
                 vector of length H = gamma C + (1 - gamma) D or below; the noise of these steps is that of sums whose records add H. What is carried on from step to step was released.",
            ),
            (
                copies::COUNT,
                "The gradient of a record is the average over copies of its picture that are moved, or mirrored, at random, and is brought to length C once, after the average. Which copies are made \
                 follows from random numbers of the step and of the record's index alone: whatever they are, a record adds a vector of length C or below, and changes no other record's.",
            ),
        ],
        ..Capabilities::ANY
    },
    plan,
};

/// Lines of plans with a release before the first step: of sums and squares, or of sums alone.
const MOMENTS_NOISE: &str = "noise of the sums and squares of inputs, standard deviation";
const MEAN_NOISE: &str = "noise of the sum of inputs, standard deviation";
/// Share of the first moment, and of the second, that Adam keeps.
const ADAM: [f64; 2] = [0.9, 0.999];
/// What automatic clipping adds to a norm, in units of the clip.
const MORE: f32 = 0.01;
/// Share of the budget for the mean of scattering features.
const CENTRE: f64 = 0.02;
/// Deviation that the noise of all steps gives a score of a linear model, whose examples are all clipped: steps are so long that it has this size. Longer ones learn noise, shorter ones too little. On validation
/// rows of three data sets of pictures between epsilon 1 and 7, 4.5 was better than 3 in five of six cases, by up to half a point, and as good as 6 and 10.
const SCORE_NOISE: f64 = 4.5;
/// Passes of a linear model over those of others, whose examples cost more time.
const LINEAR_PASSES: f64 = 1.5;
/// Correlated noise is taken where the forecast of its deviation is below this part of that of samples: `correlation.rs` has what validation rows and generated data say. Checkpoints that hold keys of noise are
/// confidential, so that as good as samples is not enough.
const TAKEN_BELOW: f64 = 0.85;
/// Least second moment of Adam, over the variance of the noise in it.
const LEAST: f64 = 0.01;

pub(super) struct Networks {
    network: Network,
    /// Layers that public rows trained; none where all weights are trained here.
    pretrained: Option<Arc<Pretrained>>,
    settings: NetworkSettings,
    mechanism: Gaussian,
    sampled: Option<Rate>,
    /// Noise that is correlated over the steps, in the place of samples.
    correlated: Option<CorrelatedGaussian>,
    steps: u64,
    learning_rate: f64,
    /// Sums are divided by this public number.
    divide: f64,
    clip: f64,
    inputs: Inputs,
    /// Share of the budget for them.
    share: f64,
    /// Releases of the same run before those of the network.
    before: u64,
    recursive: Option<Recursive>,
    /// Forecast of the noise in the answer with correlated noise, over that with samples; none where there was nothing to choose.
    forecast: Option<f64>,
    event: Event,
    loss: &'static str,
    loss_parameters: Vec<f64>,
}

/// The noise of all steps, and what it costs.
struct StepNoise {
    mechanism: Gaussian,
    sampled: Option<Rate>,
    correlated: Option<CorrelatedGaussian>,
    event: Event,
    divide: f64,
}

/// The learning rate of a step, from 0.
fn rate_of_step(settings: &NetworkSettings, learning_rate: f64, steps: u64, step: u64) -> f64 {
    let (at, all) = ((step + 1) as f64, steps as f64);
    let grows = if settings.warm_up > 0.0 { (at / (settings.warm_up * all)).min(1.0) } else { 1.0 };
    let left = (all - at + 1.0) / all;
    let shrinks = if settings.decay > 0.0 { (left / settings.decay).min(1.0) } else { 1.0 };
    learning_rate * grows * shrinks
}

/// With a random number of steps all learning rates are alike, and nothing is averaged: only then is each iterate as good an answer as every other.
fn steady(problem: &Problem, settings: NetworkSettings) -> Result<NetworkSettings> {
    if !settings.random_rounds {
        return Ok(settings);
    }
    if let Some(name) =
        ["warm_up", "decay", "averaged"].iter().find(|name| problem.settings.0.get(**name).is_some_and(|x| *x > 0.0))
    {
        return Err(Error::misuse(format!(
            "a random number of steps has one learning rate, and its last iterate is the answer: leave out {name}, or random_rounds"
        )));
    }
    Ok(NetworkSettings { warm_up: 0.0, decay: 0.0, averaged: 0.0, ..settings })
}

/// The first step, from 0, whose weights are in the average at the end; the last one where none are.
fn averaged_from(settings: &NetworkSettings, steps: u64) -> u64 {
    let first = (0..steps).find(|step| (step + 1) as f64 > (1.0 - settings.averaged) * steps as f64);
    first.unwrap_or(steps.saturating_sub(1))
}

/// How inputs are normalised.
enum Inputs {
    /// Not at all.
    Plain,
    /// By public scales and shifts.
    Public(Normal),
    /// By those that one release gives.
    Released(Moments, Gaussian),
}

/// What the same run releases besides the training of a network.
#[derive(Default)]
pub(super) struct Beside {
    /// Before the first step, and after the last.
    pub(super) before: Vec<Event>,
    pub(super) after: Vec<Event>,
    /// Part of mu^2 that this costs.
    pub(super) share: f64,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    Ok(Box::new(networks(problem)?))
}

fn networks(problem: &Problem) -> Result<Networks> {
    networks_beside(problem, &Beside::default())
}

/// The plan of a network whose event is that of the whole run: noise is such that all of it meets the target.
pub(super) fn networks_beside(problem: &Problem, beside: &Beside) -> Result<Networks> {
    let settings = steady(problem, NetworkSettings::parse(&problem.settings)?)?;
    problem.needs_delta(METHOD.name)?;
    if problem.adjacency == Adjacency::AddRemove {
        return Err(Error::misuse("networks sum blocks of records by their number, which add-remove changes: use ")
            .give("adjacency", "zero-out")
            .text(", or ")
            .give("method", "noisy-sgd"));
    }
    if problem.rows_per_unit > 1 {
        return Err(Error::misuse("networks take units of one row: give unit = \"row\" in the schema, or use ")
            .give("method", "noisy-sgd"));
    }
    if !METHOD.can.takes(problem.loss) {
        let usual = crate::loss::usual_of_layers(problem.task).map_or("softmax", |l| l.name);
        return Err(Error::misuse(format!("a network does not take loss {}: use ", problem.loss.name)).give("loss", usual));
    }
    if !problem.weights.is_empty() {
        return Err(Error::misuse("a network takes no weights of classes: remove them from [target], or use ")
            .give("method", "noisy-sgd"));
    }
    correlation::needs_places(problem, settings.in_order)?;
    let layers = match &problem.layers {
        Some(words) => layers_of(words)?,
        None => usual_layers(&problem.schema),
    };
    let whole = network(problem, &layers)?;
    let network = match &problem.pretrained {
        Some(pretrained) => frozen(&whole, pretrained)?,
        None => whole,
    };
    let copies = copies::planned(problem, &settings, network.input)?;
    let network = network.with_copies(copies);
    let n = problem.rows.max(1) as f64;
    // Samples of some thousand records, but not more than a quarter of all.
    let rate = settings.sampling_rate.unwrap_or((2048.0 / n).min(0.25));
    let sampled = (rate < 1.0).then(|| Rate::new(rate)).transpose()?;
    let unlearned = layers.iter().all(|l| *l == Layer::Flatten);
    // Scores of what is given, be it rows or what frozen layers make of them: inputs have about this length.
    let linear = unlearned || network.frozen;
    let length = if network.frozen { (network.score_inputs() as f64).sqrt() } else { f64::from(network.scale) };
    let signal = n / problem.single_noise()? * (1.0 - beside.share).sqrt();
    let epochs = if linear { LINEAR_PASSES } else { 1.0 } * 20.0 * (signal / 20_000.0).sqrt().clamp(0.25, 2.0);
    let steps = settings.steps.unwrap_or((epochs / rate).clamp(20.0, 5000.0).round() as u64);
    let clip = settings.clip.unwrap_or(usual_clip(problem, &network));
    let learning_rate = settings.learning_rate.unwrap_or(match (settings.adam, linear) {
        (true, _) => 0.002,
        (false, false) => 0.5,
        // A score moves by rows' length times the sum of steps, which momentum lengthens; the noise of all steps together is that of one release of the mean gradient, 1 / signal.
        (false, true) => SCORE_NOISE * (1.0 - settings.momentum) * signal / (steps as f64 * length),
    });
    let share = settings.normalise.unwrap_or(if problem.schema.scatters() && unlearned { CENTRE } else { 0.0 });
    let inputs = inputs(problem, &network, share)?;
    if network.frozen && share > 0.0 {
        return Err(Error::misuse(
            "frozen layers know their inputs as they were on the public rows, and normalise would change them: leave normalise out, or state mean and deviation in the schema",
        ));
    }
    let recursive = recursive::planned(problem, &settings, &network, clip, rate)?;
    let longest = recursive.as_ref().map_or(clip, |r| r.bounds.longest());
    let of_step = |nm: f64| recursive::mechanism(&network, settings.exact, longest, nm, problem.rows);
    let whole = |steps: Vec<Event>| {
        let mut all = beside.before.clone();
        if let Inputs::Released(moments, first) = &inputs {
            all.push(first.event(moments.dimension()));
        }
        all.extend(steps);
        all.extend(beside.after.iter().cloned());
        if all.len() == 1 { all.remove(0) } else { Event::Compose(all) }
    };
    let samples = || -> Result<StepNoise> {
        let make = |nm: f64| -> Result<(Gaussian, Event)> {
            let mechanism = of_step(nm)?;
            let step = planned_step(&mechanism, network.trained(), sampled);
            let times = |step: Event, times: u64| {
                if settings.random_rounds { rounds::at_most(step, times) } else { step.repeated(times) }
            };
            let event = match &recursive {
                None => whole(vec![times(step, steps)]),
                // The first step is one of its own.
                Some(own) if steps == 1 => whole(vec![planned_step(&own.first, network.trained(), Recursive::FIRST_SAMPLED)]),
                Some(own) => {
                    let first = planned_step(&own.first, network.trained(), Recursive::FIRST_SAMPLED);
                    whole(vec![first, times(step, steps - 1)])
                }
            };
            Ok((mechanism, event))
        };
        let multiplier = calibrate(problem.target, |nm| make(nm).map(|m| m.1), problem.adjacency)?;
        let (mechanism, event) = make(multiplier)?;
        Ok(StepNoise { mechanism, sampled, correlated: None, event, divide: n * rate * clip })
    };
    let schedule = correlation::Schedule {
        rates: (0..steps).map(|step| rate_of_step(&settings, learning_rate, steps, step)).collect(),
        momentum: settings.momentum,
        averaged_from: averaged_from(&settings, steps) as usize,
    };
    let directions = schedule.directions();
    let batches = || -> Result<StepNoise> {
        let batches = (1.0 / rate).round().max(1.0) as u32;
        let participation = Participation::epochs(steps, u64::from(batches));
        let factor = correlation::factor(settings.bands, settings.taken_back, participation, &directions)?;
        let of_run = |nm: f64| -> Result<CorrelatedGaussian> {
            let run = CorrelatedGaussian::new(of_step(nm)?, factor.clone(), steps, batches, network.trained())?;
            Ok(if settings.in_order { run.in_order() } else { run })
        };
        let multiplier = calibrate(problem.target, |nm| Ok::<_, Error>(whole(vec![of_run(nm)?.event()])), problem.adjacency)?;
        let (mechanism, run) = (of_step(multiplier)?, of_run(multiplier)?);
        let event = whole(vec![run.event()]);
        Ok(StepNoise { mechanism, sampled: None, correlated: Some(run), event, divide: n * clip / f64::from(batches) })
    };
    let mut forecast = None;
    let asked = settings.bands.is_some() || settings.taken_back.is_some() || settings.in_order;
    let StepNoise { mechanism, sampled, correlated, event, divide } = match settings.correlated {
        Some(false) if asked => {
            return Err(Error::misuse("bands, taken_back and in_order are for correlated noise: leave them out, or give ")
                .give("set", "correlated=true"));
        }
        Some(true) if recursive.is_some() => return Err(recursive::samples_alone()),
        None if asked && recursive.is_some() => return Err(recursive::samples_alone()),
        // All steps with correlated noise are one release, which no random number of them is.
        chosen if settings.random_rounds && (chosen == Some(true) || asked) => {
            return Err(Error::misuse("a random number of steps has independent noise: leave out random_rounds, or give ")
                .give("set", "correlated=false"));
        }
        None if recursive.is_some() || settings.random_rounds => samples()?,
        Some(true) => batches()?,
        None if asked => batches()?,
        // All examples in every step: there is nothing to sample, and one batch.
        _ if sampled.is_none() => samples()?,
        Some(false) => samples()?,
        None => {
            let (one, other) = (samples()?, batches()?);
            let deviation = |noise: &StepNoise| {
                let independent = Factor::INDEPENDENT;
                let factor = noise.correlated.as_ref().map_or(&independent, |run| run.factor());
                noise.mechanism.standard_deviation() / noise.divide * correlation::noise_of_answer(&directions, factor).sqrt()
            };
            let part = deviation(&other) / deviation(&one);
            forecast = Some(part);
            if part < TAKEN_BELOW { other } else { one }
        }
    };
    Ok(Networks {
        network,
        pretrained: problem.pretrained.clone(),
        mechanism,
        sampled,
        correlated,
        steps,
        learning_rate,
        divide,
        clip,
        inputs,
        share,
        before: beside.before.iter().map(releases).sum(),
        event,
        settings,
        recursive,
        forecast,
        loss: problem.loss.name,
        loss_parameters: problem.build_loss(1)?.parameters().to_vec(),
    })
}

/// Releases of a composition of releases that are made one by one.
fn releases(event: &Event) -> u64 {
    match event {
        Event::Compose(events) => events.iter().map(releases).sum(),
        Event::Repeat { times, event } => times * releases(event),
        _ => 1,
    }
}

/// Gradients of pictures are all long, and those of clear pictures are made as long as those of hard ones. In a table classes overlap, and records that are on the wrong side have long gradients for good: cut short, they
/// would leave a network that is far too sure of itself. The clip is about the longest gradient of a record, whose inputs have length 1 each, as have those of the scores. On validation rows of Covertype at epsilon 1 and
/// on generated tables at epsilon 4 a clip of 10 had half to nine tenths of the log loss of a clip of 1, and as many or more records right.
fn usual_clip(problem: &Problem, network: &Network) -> f64 {
    match (&problem.schema.features, problem.task) {
        (Features::Table(_), Task::Classes(_)) => ((network.input.size() + network.score_inputs()) as f64).sqrt(),
        (Features::Table(_), _) => 1.0,
        _ => 0.1,
    }
}

/// The network of these layers for the rows of a problem.
fn network(problem: &Problem, layers: &[crate::network::Layer]) -> Result<Network> {
    let own = problem.features - usize::from(problem.constant().is_some());
    // Encoded numbers are short, so that rows lie in the unit ball; here they have a mean square of about 1, or their own size within bounds.
    let scale = match &problem.schema.features {
        Features::Image { .. } if problem.schema.scaling == Scaling::Ball => problem.columns.first().map_or(1.0, |c| c.scale),
        Features::Table(_) => (problem.schema.used_columns() as f64 + 1.0).sqrt(),
        _ => (own as f64).sqrt(),
    };
    let input = crate::network::input_shape(&problem.schema, own);
    Network::new(input, layers, problem.task.classes(), scale as f32, 0.0)
}

/// The network whose layers before the scores are frozen, if there is something to freeze and it is theirs.
fn frozen(whole: &Network, pretrained: &Pretrained) -> Result<Network> {
    let network = whole.with_frozen_layers()?;
    if network.frozen() == 0 {
        return Err(Error::misuse("there are no layers that public rows could train: give some before the scores with ")
            .give("layers", "dense 64, tanh")
            .text(", or leave out ")
            .naming("public_rows"));
    }
    match pretrained.weights().is_none_or(|weights| weights.len() == network.frozen()) {
        true => Ok(network),
        false => Err(Error::misuse("the frozen layers are those of another network: train these ones on the public rows")),
    }
}

/// The whole network of a problem, and the public scales and shifts of its inputs: what public rows train.
pub(crate) fn architecture(problem: &Problem) -> Result<(Network, Normal)> {
    let layers = problem.layers.as_ref().map_or_else(|| Ok(usual_layers(&problem.schema)), |words| layers_of(words))?;
    let network = network(problem, &layers)?;
    let normal = match inputs(problem, &network, 0.0)? {
        Inputs::Public(normal) => normal,
        _ => Normal::new(),
    };
    Ok((network, normal))
}

/// How the inputs of a network are normalised, with this share of the budget.
fn inputs(problem: &Problem, network: &Network, share: f64) -> Result<Inputs> {
    let stated = match &problem.schema.features {
        Features::Image { moments: Some(moments), max, .. } => Some((moments, *max)),
        _ => None,
    };
    match stated {
        Some(_) if share > 0.0 => Err(Error::misuse(
            "the schema states mean and deviation of the pixels, and normalise would pay for them: leave out one of them",
        )),
        // The network's own scale makes pixels of 0 ... 1 of encoded ones.
        Some((moments, max)) => {
            let scales = moments.deviation.iter().map(|d| (max / d) as f32);
            let shifts = moments.mean.iter().zip(&moments.deviation).map(|(m, d)| (-m / d) as f32);
            Ok(Inputs::Public(scales.chain(shifts).collect()))
        }
        None if share > 0.0 => {
            let shape = network.input;
            let centred = problem.schema.scatters();
            let (channels, pixels) = if centred { (shape.size(), 1) } else { (shape.channels, shape.height * shape.width) };
            let rows = problem.rows.max(1) as f64;
            let moments = Moments { channels, pixels, scale: f64::from(network.scale), rows, centred };
            let mechanism = Gaussian::new(moments.clip(), problem.single_noise()? / share.sqrt(), problem.rows)?;
            Ok(Inputs::Released(moments, mechanism))
        }
        None => Ok(Inputs::Plain),
    }
}

impl Networks {
    /// Releases before the first step.
    fn before_steps(&self) -> u64 {
        self.before + u64::from(matches!(self.inputs, Inputs::Released(..)))
    }

    /// Scales and shifts of inputs, released where they are not public: called once in all the processes of a run.
    fn normal(&self, run: &mut Run<'_>) -> Result<Normal> {
        match &self.inputs {
            Inputs::Plain => Ok(Normal::new()),
            Inputs::Public(normal) => Ok(normal.clone()),
            Inputs::Released(moments, mechanism) => {
                let everyone = run.everyone()?;
                let sums = run.at(mechanism, |run, scale| {
                    let noise = run.draw(&scale, moments.dimension())?;
                    let value = everyone.sum(&noise, &moments.contribution())?;
                    run.release(noise, &value)
                })?;
                Ok(moments.normal(&sums, mechanism.standard_deviation()))
            }
        }
    }

    /// The learning rate of a step, from 0.
    fn rate(&self, step: u64) -> f64 {
        rate_of_step(&self.settings, self.learning_rate, self.steps, step)
    }

    /// Standard deviation of the noise in the average gradient of a step: correlated noise has some of earlier steps in it.
    fn step_deviation(&self) -> f64 {
        let more = self.correlated.as_ref().map_or(1.0, correlation::step_noise);
        more * self.mechanism.standard_deviation() / self.divide
    }

    /// Where the descent begins, which takes so many steps.
    fn begin(&self, rounds: u64) -> Iterate {
        let d = self.network.trained();
        // Scores of frozen layers are a linear model, which begins at nothing.
        let weights = if self.network.frozen { vec![0.0; d] } else { self.network.initial() };
        Iterate {
            recorder: Recorder::new(rounds, self.step_deviation(), &weights),
            rounds: self.settings.random_rounds.then_some(rounds),
            weights,
            first: vec![0.0; d],
            second: vec![0.0; if self.settings.adam { d } else { 0 }],
            average: vec![0.0; d],
            averaged: 0.0,
            estimate: vec![0.0; if self.recursive.is_some() { d } else { 0 }],
            before: vec![0.0; if self.recursive.is_some() { d } else { 0 }],
            normal: match &self.inputs {
                Inputs::Plain => Normal::new(),
                Inputs::Public(normal) => normal.clone(),
                Inputs::Released(moments, _) => moments.unchanged(),
            },
            released: matches!(self.inputs, Inputs::Released(..)),
        }
    }

    /// All weights: those of frozen layers, and those that are trained.
    fn whole(&self, trained: &[f64]) -> Vec<f64> {
        let frozen = self.pretrained.as_ref().and_then(|p| p.weights()).unwrap_or_default();
        [frozen, trained].concat()
    }

    /// Takes one step, from 0, along a noisy sum: nothing else of the records is in it.
    fn step(&self, at: &mut Iterate, step: u64, sum: &[f64]) {
        let rate = self.rate(step);
        let released = sum;
        let smoothed = (self.settings.smoothing > 0.0).then(|| self.network.smoothed(sum, self.settings.smoothing));
        let sum = smoothed.as_deref().unwrap_or(sum);
        if self.settings.adam {
            // Both moments begin at zero, which is taken out; of the second, what is known to be noise as well.
            let noise_variance = self.step_deviation().powi(2)
                * self.recursive.as_ref().map_or(1.0, Recursive::variance)
                * variance_factor(self.network.trained(), self.settings.smoothing);
            let t = (step + 1) as i32;
            let [one, two] = ADAM.map(|keep| 1.0 - keep.powi(t));
            for (((w, m), v), s) in at.weights.iter_mut().zip(&mut at.first).zip(&mut at.second).zip(sum) {
                let g = s / self.divide;
                *m = ADAM[0] * *m + (1.0 - ADAM[0]) * g;
                *v = ADAM[1] * *v + (1.0 - ADAM[1]) * g * g;
                let square = (*v / two - noise_variance).max(LEAST * noise_variance).max(1e-20);
                *w -= rate * *m / one / square.sqrt();
            }
        } else {
            for ((w, m), s) in at.weights.iter_mut().zip(&mut at.first).zip(sum) {
                *m = self.settings.momentum * *m - rate * s / self.divide;
                *w += *m;
            }
        }
        at.recorder.step(released, self.divide, rate, &at.weights);
        if self.settings.averaged > 0.0 && step >= averaged_from(&self.settings, self.steps) {
            at.averaged += 1.0;
            at.average.iter_mut().zip(&at.weights).for_each(|(a, w)| *a += w);
        }
    }

    /// Goes on after what another process kept: where the descent stands, and the steps that were taken.
    fn go_on(&self, run: &mut Run<'_>, State { steps, executed, numbers }: State) -> Result<(Iterate, u64)> {
        let rounds = match (self.settings.random_rounds, numbers.last().map(Vec::as_slice)) {
            (false, _) => self.steps,
            (true, Some([rounds])) if *rounds >= 1.0 && *rounds <= self.steps as f64 => *rounds as u64,
            (true, _) => return Err(not_ours()),
        };
        let mut at = self.begin(rounds);
        at.fill(numbers)?;
        let done = if steps == self.steps { rounds } else { steps };
        // Each step is one release, or all of them are one, after the one for the inputs where there is one; the plan admits them here for good.
        let (releases, correlated) = match self.correlated {
            None => (done, None),
            Some(_) => (1, Some(done)),
        };
        if executed.count() != self.before_steps() + releases || executed.correlated_steps() != correlated || done > rounds {
            return Err(not_ours());
        }
        run.resume(&executed)?;
        Ok((at, done))
    }

    /// All steps, or those that no other process has done.
    pub(super) fn descend(
        &self,
        run: &mut Run<'_>,
        progress: &dyn Fn(),
        mut kept: Option<&mut dyn Checkpoints>,
    ) -> Result<Vec<f64>> {
        let d = self.network.trained();
        // A plan may be made before public rows were looked at; nothing is trained with it.
        if self.pretrained.as_ref().is_some_and(|p| p.weights().is_none()) {
            return Err(Error::Host);
        }
        let clipping = if self.settings.automatic { Clipping::Automatic(MORE) } else { Clipping::Norm };
        let everyone = run.everyone()?;
        let (mut at, done) = match kept.as_mut().and_then(|kept| kept.found()) {
            Some(state) => self.go_on(run, state)?,
            None => {
                let rounds = if self.settings.random_rounds { rounds::drawn(run, self.steps)? } else { self.steps };
                let mut at = self.begin(rounds);
                at.normal = self.normal(run)?;
                (at, 0)
            }
        };
        let rounds = at.rounds.unwrap_or(self.steps);
        if let Some(correlated) = &self.correlated {
            run.begin_correlated(correlated)?;
        }
        for step in done..rounds {
            let prepared = self.network.prepare_normal(&self.whole(&at.weights), &at.normal);
            let both;
            let (blocks, mechanism, sampled) = match &self.recursive {
                Some(recursive) if step > 0 => {
                    let before = self.network.prepare_normal(&self.whole(&at.before), &at.normal);
                    both = self.network.prepare_recursive(&prepared, &before, recursive.bounds);
                    (self.network.recursive_blocks(&both), &self.mechanism, self.sampled)
                }
                Some(recursive) => (self.network.blocks(&prepared, clipping), &recursive.first, Recursive::FIRST_SAMPLED),
                None => (self.network.blocks(&prepared, clipping), &self.mechanism, self.sampled),
            };
            let blocks = Blockwise { exact: self.settings.exact, ..blocks };
            let sum = match self.correlated {
                Some(_) => run.correlated_step(|batch, noise| batch.sum_blocks(noise, &blocks))?,
                None => run.at(mechanism, |run, scale| {
                    let noise = run.draw(&scale, d)?;
                    let value = match sampled {
                        // Coins of copies are keyed by the batch: every step has one of its own.
                        None if self.network.copies.are_made() => run.everyone()?.sum_blocks(&noise, &blocks)?,
                        None => everyone.sum_blocks(&noise, &blocks)?,
                        Some(rate) => run.poisson(rate)?.sum_blocks(&noise, &blocks)?,
                    };
                    run.release(noise, &value)
                })?,
            };
            let sum = match &self.recursive {
                Some(recursive) => recursive.carried(&mut at, step, &sum),
                None => sum,
            };
            self.step(&mut at, step, &sum);
            // After the last step that is taken, all of them are behind.
            let behind = if step + 1 == rounds { self.steps } else { step + 1 };
            if let Some(kept) = kept.as_mut().filter(|kept| kept.due(behind)) {
                kept.keep(State { steps: behind, executed: run.executed()?, numbers: at.numbers() })?;
            }
            progress();
        }
        Ok(at.answer())
    }
}

/// Where a descent stands: all that the next step needs, and all of it computed from released sums.
struct Iterate {
    weights: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    average: Vec<f64>,
    averaged: f64,
    /// What recursive momentum carries on: the estimate, and the weights before; empty without it.
    estimate: Vec<f64>,
    before: Vec<f64>,
    /// Steps that are taken, where their number was drawn.
    rounds: Option<u64>,
    recorder: Recorder,
    /// Scales and shifts of inputs, and whether they were released.
    normal: Normal,
    released: bool,
}

impl Iterate {
    /// As lists, for a checkpoint.
    fn numbers(&self) -> Vec<Vec<f64>> {
        let own = [&self.weights, &self.first, &self.second, &self.average].map(Vec::clone);
        let all = own.into_iter().chain([vec![self.averaged], self.recorder.numbers()]);
        let carried = [&self.estimate, &self.before].map(Vec::clone).into_iter().filter(|list| !list.is_empty());
        let rounds = self.rounds.map(|rounds| vec![rounds as f64]);
        all.chain(carried).chain(self.released.then(|| self.normal_numbers())).chain(rounds).collect()
    }

    fn normal_numbers(&self) -> Vec<f64> {
        self.normal.iter().map(|x| f64::from(*x)).collect()
    }

    /// Takes the lists of a checkpoint, which must have the lengths of this one.
    fn fill(&mut self, mut numbers: Vec<Vec<f64>>) -> Result<()> {
        let lengths = |lists: &[Vec<f64>]| lists.iter().map(Vec::len).collect::<Vec<_>>();
        if lengths(&numbers) != lengths(&self.numbers()) {
            return Err(not_ours());
        }
        if self.rounds.is_some() {
            numbers.pop();
        }
        if self.released {
            // They were single numbers before, so that nothing is lost.
            self.normal = numbers.pop().unwrap_or_default().iter().map(|x| *x as f32).collect();
        }
        if !self.estimate.is_empty() {
            self.before = numbers.pop().unwrap_or_default();
            self.estimate = numbers.pop().unwrap_or_default();
        }
        if let Ok([weights, first, second, average, averaged, recorded]) = <[Vec<f64>; 6]>::try_from(numbers) {
            self.recorder.go_on(&recorded, &weights);
            (self.weights, self.first, self.second, self.average, self.averaged) = (weights, first, second, average, averaged[0]);
        }
        Ok(())
    }

    /// The average of the last iterates, or the last one; before it the scales and shifts that were released, behind it the history.
    fn answer(mut self) -> Vec<f64> {
        let normal = if self.released { self.normal_numbers() } else { Vec::new() };
        let weights = if self.averaged > 0.0 {
            self.average.iter_mut().for_each(|a| *a /= self.averaged);
            self.average
        } else {
            self.weights
        };
        [normal, self.recorder.with(weights)].concat()
    }
}

/// A whole checkpoint of this very job that does not hold what its runs write.
fn not_ours() -> Error {
    Error::damaged("the checkpoint does not hold a state of this network: restore it; without it the run can't go on")
}

impl Plan for Networks {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        // Owners would each round a part of the noise that is taken back.
        if self.correlated.is_some() { Needs::Totals } else { Needs::Sums }
    }

    fn keeps_keys(&self) -> bool {
        self.correlated.is_some()
    }

    fn follows_order(&self) -> bool {
        self.correlated.as_ref().is_some_and(CorrelatedGaussian::is_in_order)
    }
    fn correlation_forecast(&self) -> Option<f64> {
        self.forecast
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let layers: Vec<String> = self.network.layers().iter().map(|l| l.to_string()).collect();
        let mut out = vec![
            ("layers", if layers.is_empty() { "scores alone".into() } else { layers.join(", ") }),
            (
                "weights",
                match &self.pretrained {
                    None => self.network.dimension().to_string(),
                    Some(p) => format!(
                        "{} of the scores; {} before them are frozen, from {} public rows",
                        self.network.trained(),
                        self.network.frozen(),
                        p.rows()
                    ),
                },
            ),
            ("steps", self.steps.to_string()),
            ("learning rate", rounded(self.learning_rate)),
            (
                "optimizer",
                if self.settings.adam { "Adam".into() } else { format!("momentum {}", rounded(self.settings.momentum)) },
            ),
            ("clip", format!("{}{}", rounded(self.clip), if self.settings.automatic { ", of every gradient" } else { "" })),
            ("noise of a step, standard deviation", rounded(self.mechanism.standard_deviation())),
        ];
        if let Some(rate) = self.sampled {
            out.push(("sampling rate", rounded(rate.value())));
        }
        if let Some(run) = &self.correlated {
            out.extend(correlation::described(run));
            out.extend(correlation::order(run));
        }
        match &self.inputs {
            Inputs::Plain => {}
            Inputs::Public(_) => out.push(("inputs", "normalised by the mean and deviation of the schema".into())),
            Inputs::Released(moments, mechanism) => {
                let how = if moments.centred { "centred" } else { "normalised" };
                out.push(("inputs", format!("{how}, with {} of the budget", rounded(self.share))));
                let line = if moments.centred { MEAN_NOISE } else { MOMENTS_NOISE };
                out.push((line, rounded(mechanism.standard_deviation())));
            }
        }
        out.extend(self.recursive.iter().flat_map(Recursive::describe));
        if self.settings.random_rounds {
            out.push(rounds::described(self.steps));
        }
        if self.settings.smoothing > 0.0 {
            out.push(("strength of Laplacian smoothing", rounded(self.settings.smoothing)));
        }
        out.extend(copies::described(self.network.copies));
        if self.settings.exact {
            out.push(("gradients", "each by itself, checked on whole numbers".into()));
        }
        out
    }

    fn numerics(&self) -> Option<Numerics> {
        self.settings.exact.then_some(Numerics::Exact)
    }

    fn gradient_noise(&self) -> f64 {
        if let Some(run) = &self.correlated {
            return correlation::gradient_noise(run);
        }
        let fraction = self.sampled.map_or(1.0, |r| r.value());
        self.mechanism.standard_deviation() / fraction / (self.steps as f64).sqrt()
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn memory(&self, conditions: &MemoryConditions, rows: u64) -> Option<Vec<MemoryPart>> {
        Some(self.memory_parts(conditions, rows))
    }

    fn at_once(&self) -> Option<usize> {
        Some(self.network.at_once())
    }

    fn limit_at_once(&mut self, most: usize) {
        self.network.limit_at_once(most);
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        self.descend(run, progress, None)
    }

    fn learn_kept(&self, run: &mut Run<'_>, progress: &dyn Fn(), kept: &mut dyn Checkpoints) -> Result<Learned> {
        Ok(self.learned(self.descend(run, progress, Some(kept))?))
    }

    fn learned(&self, mut numbers: Vec<f64>) -> Learned {
        let normal = match &self.inputs {
            Inputs::Plain => Normal::new(),
            Inputs::Public(normal) => normal.clone(),
            Inputs::Released(moments, _) => {
                let own = numbers.drain(..moments.unchanged().len().min(numbers.len()));
                let mut own: Normal = own.map(|x| x as f32).collect();
                own.resize(moments.unchanged().len(), 0.0);
                own
            }
        };
        let history = History::split(&mut numbers, self.network.trained());
        numbers.resize(self.network.trained(), 0.0);
        let model = NetworkModel::new(&self.network, self.loss, self.loss_parameters.clone(), &self.whole(&numbers));
        Learned::Network(Box::new(model.with_normal(normal).with_history(history)))
    }
}

#[cfg(test)]
mod tests;
