//! Noisy gradient descent on all records.
//!
//! *What it computes.* A fixed number of steps; each releases the sum of clipped gradients plus Gaussian noise, divides by the public
//! number of rows, and moves with momentum. The answer is the average of the second half of the iterates.
//!
//! *Privacy.* A record's gradient, slope times row, is cut to `clip` on the integers; zero-out moves a sum by at most clip, replace-one
//! by 2 clip. Steps compose exactly, as Gaussians (`account/gdp.rs`). Momentum, averaging and projection look at released numbers
//! only. A unit of several rows has its gradients added up and cut as one.
//!
//! *Accuracy.* Noise of the steps averages out, so that many small steps cost little; the total time of the descent takes the place of
//! a ridge. rate = n / (250 x noise over clip of one release with the whole budget), at most 32, found on generated data; for
//! numbers also at most 4 over the smoothness of the loss, about where momentum of 0.9 begins to swing.
//!
//! *Needs.* Any loss, any number of rows to a unit, delta > 0. Time: one pass over the data for each step.
//!
//! *Reference.* Song, Chaudhuri, Sarwate 2013; Bassily, Smith, Thakurta 2014; exact composition of Dong, Roth, Su 2019.

use super::{Method, Plan, Problem, show};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::loss::Task;
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::privacy::{Gaussian, Loss, Rate, Run, planned_step};

/// Row of the list.
pub const METHOD: Method = Method {
    name: "noisy-gd",
    alias: "DP-GD",
    needs: "any loss but mean, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies; also units of several rows",
    source: "Song et al. 2013, Bassily et al. 2014, exact Gaussian composition",
    theorem: "Each record's gradient is cut to length C on the integers, so that one record moves a sum by at most C (replace- \
              one 2 C). T sums with Gaussian noise sigma are jointly Gaussian-private with mu = sqrt(T) C/sigma; everything \
              else looks at released sums only.",
    settings: SETTINGS,
    published: false,
    plan: |problem| plan(problem, None),
};

pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("steps", "number of steps"),
    ("rate", "length of a step, for the average gradient"),
    ("momentum", "part of the last move that is kept, from 0 to 1"),
    ("clip", "largest gradient of a record"),
    ("ridge", "strength of a ridge outside of the clipped sum, in sum form"),
];

/// Noisy steps, and what is made of them. Other methods of this kind plan one of these too.
pub(super) struct Steps {
    pub(super) losses: Vec<Loss>,
    pub(super) mechanism: Gaussian,
    pub(super) sampled: Option<Rate>,
    pub(super) steps: u64,
    /// Length of the step of that number, counted from 1, for the average gradient.
    pub(super) rate: Box<dyn Fn(u64) -> f64 + Send + Sync>,
    pub(super) momentum: f64,
    pub(super) ridge: f64,
    /// Gradient sums are divided by this public number.
    pub(super) divide: f64,
    pub(super) answer: Answer,
    pub(super) event: Event,
    pub(super) constraint: Constraint,
    pub(super) features: usize,
}

/// Which iterate is the answer.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Answer {
    /// The average of the second half.
    HalfAverage,
    /// The last one.
    Last,
    /// One drawn at random before the first step, each alike; later steps are not taken.
    Random,
}

/// Noise for so many steps of each head that meets the target, and what they cost. `at_most`: a run may take fewer.
pub(super) fn calibrated_steps(
    problem: &Problem,
    losses: &[Loss],
    clip: f64,
    sampled: Option<Rate>,
    steps: u64,
    at_most: bool,
) -> Result<(Gaussian, Event)> {
    let dimension = problem.features * losses[0].outputs;
    let event_of = |nm: f64| -> Result<(Gaussian, Event)> {
        let mechanism = Gaussian::for_gradients(clip, nm)?;
        let step = planned_step(&mechanism, dimension, sampled);
        let times = steps * losses.len() as u64;
        Ok((mechanism, if at_most { Event::AtMost { times, event: Box::new(step) } } else { step.repeated(times) }))
    };
    let failed = Event::NotPrivate { why: "no such plan".into() };
    let multiplier = calibrate(problem.target, |nm| event_of(nm).map_or(failed.clone(), |s| s.1), problem.adjacency)?.upper;
    event_of(multiplier)
}

/// Plans a descent on everyone, or on Poisson samples.
pub(super) fn plan(problem: &Problem, sampling: Option<f64>) -> Result<Box<dyn Plan>> {
    problem.needs_delta(if sampling.is_some() { "noisy-sgd" } else { "noisy-gd" })?;
    let settings = &problem.settings;
    let mut losses = super::head_losses(problem)?;
    let several = losses[0].outputs > 1;
    let n = problem.all_rows();
    // Softmax slopes are cut where those of two classes would be: at sqrt(1/2), half of their bound.
    let bound = losses[0].lipschitz;
    let clip = settings.within("clip", if several { 0.5 * bound } else { bound }, 1e-6, 1e6)?.min(bound);
    // Slopes are cut on the integers, so that the bound of the loss is the clip.
    losses.iter_mut().for_each(|l| l.lipschitz = clip);
    let rows_clip = clip * if problem.rows_per_unit > 1 { (problem.rows_per_unit as f64).sqrt() } else { 1.0 };
    let sampled = sampling.map(Rate::new).transpose()?;
    let default_steps = if sampled.is_some() { (20.0 / sampling.unwrap_or(1.0)).clamp(100.0, 5000.0).round() } else { 100.0 };
    let steps = settings.within("steps", default_steps, 1.0, 1e7)?.round() as u64;
    let (mechanism, event) = calibrated_steps(problem, &losses, rows_clip, sampled, steps, false)?;
    let momentum = settings.within("momentum", 0.9, 0.0, 0.999)?;
    let fraction = sampling.unwrap_or(1.0);
    // Momentum of 0.9 swings where rate x curvature is above 3.8, and curvature is at most the smoothness of the loss.
    let fastest = if problem.task == Task::Number { (4.0 / losses[0].smoothness).min(32.0) } else { 32.0 };
    // The rule was found for slopes up to 1/2 and curvature up to 1/4. Steeper losses bring more noise, curved ones learn faster.
    let slower = match problem.task {
        Task::Classes(_) if !several => (0.5 / clip).min(1.0) * (0.25 / losses[0].smoothness.min(1.0)).sqrt().min(1.0),
        _ => 1.0,
    };
    let noise = problem.single_noise()? * (losses.len() as f64).sqrt();
    let rate = settings.within("rate", (slower * n / (250.0 * noise)).min(fastest), 1e-9, 1e9)?;
    let divide = n * fraction;
    let ridge = settings.within("ridge", 0.0, 0.0, 1e12)?;
    if rate * ridge / divide > 1.0 {
        return Err(Error::misuse(format!(
            "rate {rate} times ridge {ridge} over {divide} rows is above 1 and diverges: give less of them"
        )));
    }
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        steps,
        rate: Box::new(move |_| rate),
        momentum,
        ridge,
        divide,
        answer: Answer::HalfAverage,
        event,
        constraint: problem.constraint,
        features: problem.features,
    }))
}

impl Plan for Steps {
    fn event(&self) -> &Event {
        &self.event
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("steps", self.steps.to_string()),
            ("rate", show((self.rate)(1))),
            ("momentum", show(self.momentum)),
            ("clip", show(self.losses[0].lipschitz)),
            ("noise of a step, standard deviation", show(self.mechanism.standard_deviation())),
        ];
        if let Some(rate) = self.sampled {
            out.push(("sampling rate", show(rate.value())));
        }
        out
    }

    fn gradient_noise(&self) -> f64 {
        let fraction = self.sampled.map_or(1.0, |r| r.value());
        self.mechanism.standard_deviation() / fraction / (self.steps as f64).sqrt()
    }

    fn ticks(&self) -> u64 {
        self.steps * self.losses.len() as u64
    }

    fn run(&self, run: &mut Run<'_>, tick: &dyn Fn()) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        for loss in &self.losses {
            let steps = match self.answer {
                // Multiply and take the upper half: off from uniform by less than steps / 2^64.
                Answer::Random => 1 + ((u128::from(run.public_word()?) * u128::from(self.steps)) >> 64) as u64,
                _ => self.steps,
            };
            weights.extend(self.descend(run, loss, steps, tick)?);
        }
        Ok(weights)
    }
}

impl Steps {
    fn descend(&self, run: &mut Run<'_>, loss: &Loss, steps: u64, tick: &dyn Fn()) -> Result<Vec<f64>> {
        let dimension = self.features * loss.outputs;
        let mut w = vec![0f64; dimension];
        let mut move_by = vec![0f64; dimension];
        let mut average = vec![0f64; dimension];
        let mut averaged = 0u64;
        let everyone = run.everyone()?;
        for step in 0..steps {
            let gradient = run.at(&self.mechanism, |run, scale| {
                let noise = run.draw(&scale, dimension)?;
                let sum = match self.sampled {
                    None => everyone.gradient_sum(&noise, &w, loss)?,
                    Some(rate) => run.poisson(rate)?.gradient_sum(&noise, &w, loss)?,
                };
                run.release(noise, &sum)
            })?;
            let rate = (self.rate)(step + 1);
            for ((w, m), g) in w.iter_mut().zip(&mut move_by).zip(&gradient) {
                *m = self.momentum * *m - rate * (g / self.divide + self.ridge / self.divide * *w);
                *w += *m;
            }
            self.constraint.project(&mut w);
            if self.answer == Answer::HalfAverage && 2 * step >= steps - 1 {
                averaged += 1;
                average.iter_mut().zip(&w).for_each(|(a, w)| *a += w);
            }
            tick();
        }
        if averaged == 0 {
            return Ok(w);
        }
        average.iter_mut().for_each(|a| *a /= averaged as f64);
        Ok(average)
    }
}
