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
//! *Checkpoints.* Weights, moments and the sum of the last iterates are functions of the noisy sums so far, and are all that later steps need. Kept after a
//! step, they are the same numbers in another process, to the bit (`checkpoint/mod.rs`).
//!
//! *Accuracy.* Large samples and few passes; bounded activations (tanh) lose less to the clip than others.
//!
//! *Needs.* Classes or a number, delta > 0, zero-out or replace-one, units of one row. Time: `sampling_rate` x steps passes over the data.
//!
//! *Reference.* Abadi et al. 2016; Papernot et al. 2020 (tanh); Bu et al. 2023 (automatic clipping); Tang and Lecuyer 2023 (what noise does to Adam).

use super::settings::settings;
use super::{Capabilities, Learned, Method, Plan, Problem, rounded};
use crate::checkpoint::{Checkpoints, State};
use crate::error::{Error, Result};
use crate::network::{History, Layer, Network, NetworkModel, Recorder, layers_of, usual_layers};
use crate::schema::{Features, Scaling};
use privfit_kernel::account::{Adjacency, Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Blockwise, Clipping, Gaussian, Numerics, Rate, Run, planned_step};

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
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "network",
    alias: "DP-SGD for networks",
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
        // Private scores of a network are not written, and a run without a score would release nothing but zeros.
        tunable: false,
        resumable: true,
        // The error of the arithmetic is derived in `network/blocks.rs`, and is none with `exact`.
        numerics: Numerics::Bounded,
        ..Capabilities::ANY
    },
    plan,
};

/// Share of the first moment, and of the second, that Adam keeps.
const ADAM: [f64; 2] = [0.9, 0.999];
/// What automatic clipping adds to a norm, in units of the clip.
const MORE: f32 = 0.01;
/// Rows times mu at which a linear model takes steps of the length that networks take; with less it takes shorter ones, because nothing but noise would lengthen them.
const LINEAR_SIGNAL: f64 = 36_000.0;
/// Least second moment of Adam, over the variance of the noise in it.
const LEAST: f64 = 0.01;

struct Networks {
    network: Network,
    settings: NetworkSettings,
    mechanism: Gaussian,
    sampled: Option<Rate>,
    steps: u64,
    learning_rate: f64,
    /// Sums are divided by this public number.
    divide: f64,
    clip: f64,
    event: Event,
    loss: &'static str,
    loss_parameters: Vec<f64>,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let settings = NetworkSettings::parse(&problem.settings)?;
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
    let layers = match &problem.layers {
        Some(words) => layers_of(words)?,
        None => usual_layers(&problem.schema),
    };
    let network = network(problem, &layers)?;
    let n = problem.rows.max(1) as f64;
    // Samples of some thousand records, but not more than a quarter of all.
    let rate = settings.sampling_rate.unwrap_or((2048.0 / n).min(0.25));
    let sampled = (rate < 1.0).then(|| Rate::new(rate)).transpose()?;
    let epochs = 20.0 * (problem.single_noise()?.recip() * n / 20_000.0).sqrt().clamp(0.25, 2.0);
    let steps = settings.steps.unwrap_or((epochs / rate).clamp(20.0, 5000.0).round() as u64);
    // Gradients of pictures are all long; those of a table say by their length which records are hard.
    let clip = settings.clip.unwrap_or(if matches!(problem.schema.features, Features::Table(_)) { 1.0 } else { 0.1 });
    let linear = layers.iter().all(|l| *l == Layer::Flatten);
    let signal = n / problem.single_noise()?;
    let learning_rate = settings.learning_rate.unwrap_or(match (settings.adam, linear) {
        (true, _) => 0.002,
        (false, false) => 0.5,
        (false, true) => 0.5 * (signal / LINEAR_SIGNAL).clamp(0.1, 1.5),
    });
    let make = |nm: f64| -> Result<(Gaussian, Event)> {
        let mechanism = match settings.exact {
            true => Gaussian::new(clip, nm, problem.rows)?,
            false => Gaussian::for_blocks(clip, network.error(), nm, problem.rows, network.dimension())?,
        };
        let event = planned_step(&mechanism, network.dimension(), sampled).repeated(steps);
        Ok((mechanism, event))
    };
    let multiplier = calibrate(problem.target, |nm| make(nm).map(|m| m.1), problem.adjacency)?;
    let (mechanism, event) = make(multiplier)?;
    Ok(Box::new(Networks {
        network,
        mechanism,
        sampled,
        steps,
        learning_rate,
        divide: n * rate * clip,
        clip,
        event,
        settings,
        loss: problem.loss.name,
        loss_parameters: problem.build_loss(1)?.parameters().to_vec(),
    }))
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

impl Networks {
    /// The learning rate of a step, from 0.
    fn rate(&self, step: u64) -> f64 {
        let (at, all) = ((step + 1) as f64, self.steps as f64);
        let grows = if self.settings.warm_up > 0.0 { (at / (self.settings.warm_up * all)).min(1.0) } else { 1.0 };
        let left = (all - at + 1.0) / all;
        let shrinks = if self.settings.decay > 0.0 { (left / self.settings.decay).min(1.0) } else { 1.0 };
        self.learning_rate * grows * shrinks
    }

    /// Where the descent begins.
    fn begin(&self) -> Iterate {
        let d = self.network.dimension();
        let weights = self.network.initial();
        Iterate {
            recorder: Recorder::new(self.steps, self.mechanism.standard_deviation() / self.divide, &weights),
            weights,
            first: vec![0.0; d],
            second: vec![0.0; if self.settings.adam { d } else { 0 }],
            average: vec![0.0; d],
            averaged: 0.0,
        }
    }

    /// Takes one step, from 0, along a noisy sum: nothing else of the records is in it.
    fn step(&self, at: &mut Iterate, step: u64, sum: &[f64]) {
        let rate = self.rate(step);
        if self.settings.adam {
            // Both moments begin at zero, which is taken out; of the second, what is known to be noise as well.
            let noise_variance = (self.mechanism.standard_deviation() / self.divide).powi(2);
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
        at.recorder.step(sum, self.divide, rate, &at.weights);
        if (step + 1) as f64 > (1.0 - self.settings.averaged) * self.steps as f64 {
            at.averaged += 1.0;
            at.average.iter_mut().zip(&at.weights).for_each(|(a, w)| *a += w);
        }
    }

    /// All steps, or those that no other process has done.
    fn descend(&self, run: &mut Run<'_>, progress: &dyn Fn(), mut kept: Option<&mut dyn Checkpoints>) -> Result<Vec<f64>> {
        let d = self.network.dimension();
        let clipping = if self.settings.automatic { Clipping::Automatic(MORE) } else { Clipping::Norm };
        let (mut at, mut done) = (self.begin(), 0);
        let everyone = run.everyone()?;
        if let Some(State { steps, executed, numbers }) = kept.as_mut().and_then(|kept| kept.found()) {
            at.fill(numbers)?;
            // Each step is one release, which the plan admits here for good.
            if executed.count() != steps {
                return Err(not_ours());
            }
            run.resume(&executed)?;
            done = steps;
        }
        for step in done..self.steps {
            let prepared = self.network.prepare(&at.weights);
            let blocks = Blockwise { exact: self.settings.exact, ..self.network.blocks(&prepared, clipping) };
            let sum = run.at(&self.mechanism, |run, scale| {
                let noise = run.draw(&scale, d)?;
                let value = match self.sampled {
                    None => everyone.sum_blocks(&noise, &blocks)?,
                    Some(rate) => run.poisson(rate)?.sum_blocks(&noise, &blocks)?,
                };
                run.release(noise, &value)
            })?;
            self.step(&mut at, step, &sum);
            if let Some(kept) = kept.as_mut().filter(|kept| kept.due(step + 1)) {
                kept.keep(State { steps: step + 1, executed: run.executed()?, numbers: at.numbers() })?;
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
    recorder: Recorder,
}

impl Iterate {
    /// As lists, for a checkpoint.
    fn numbers(&self) -> Vec<Vec<f64>> {
        let own = [&self.weights, &self.first, &self.second, &self.average].map(Vec::clone);
        own.into_iter().chain([vec![self.averaged], self.recorder.numbers()]).collect()
    }

    /// Takes the lists of a checkpoint, which must have the lengths of this one.
    fn fill(&mut self, numbers: Vec<Vec<f64>>) -> Result<()> {
        let lengths = |lists: &[Vec<f64>]| lists.iter().map(Vec::len).collect::<Vec<_>>();
        if lengths(&numbers) != lengths(&self.numbers()) {
            return Err(not_ours());
        }
        if let Ok([weights, first, second, average, averaged, recorded]) = <[Vec<f64>; 6]>::try_from(numbers) {
            self.recorder.go_on(&recorded, &weights);
            (self.weights, self.first, self.second, self.average, self.averaged) = (weights, first, second, average, averaged[0]);
        }
        Ok(())
    }

    /// The average of the last iterates, or the last one.
    fn answer(mut self) -> Vec<f64> {
        if self.averaged > 0.0 {
            self.average.iter_mut().for_each(|a| *a /= self.averaged);
            return self.recorder.with(self.average);
        }
        self.recorder.with(self.weights)
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
        Needs::Sums
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let layers: Vec<String> = self.network.layers().iter().map(|l| l.to_string()).collect();
        let mut out = vec![
            ("layers", if layers.is_empty() { "scores alone".into() } else { layers.join(", ") }),
            ("weights", self.network.dimension().to_string()),
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
        if self.settings.exact {
            out.push(("gradients", "each by itself, checked on whole numbers".into()));
        }
        out
    }

    fn numerics(&self) -> Option<Numerics> {
        self.settings.exact.then_some(Numerics::Exact)
    }

    fn gradient_noise(&self) -> f64 {
        let fraction = self.sampled.map_or(1.0, |r| r.value());
        self.mechanism.standard_deviation() / fraction / (self.steps as f64).sqrt()
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        self.descend(run, progress, None)
    }

    fn learn_kept(&self, run: &mut Run<'_>, progress: &dyn Fn(), kept: &mut dyn Checkpoints) -> Result<Learned> {
        Ok(self.learned(self.descend(run, progress, Some(kept))?))
    }

    fn learned(&self, mut numbers: Vec<f64>) -> Learned {
        let history = History::split(&mut numbers, self.network.dimension());
        numbers.resize(self.network.dimension(), 0.0);
        let model = NetworkModel::new(&self.network, self.loss, self.loss_parameters.clone(), &numbers);
        Learned::Network(Box::new(model.with_history(history)))
    }
}
