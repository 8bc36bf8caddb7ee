//! Private hard thresholding: noisy gradient steps, each followed by keeping the largest weights.
//!
//! *What it computes.* w = 0; in each step the sum of clipped gradients plus Gaussian noise is released, w moves against it, and all but
//! the `sparsity` largest weights (the constant besides) become zero; optionally w is clipped to a ball. The answer is the last w.
//!
//! *Privacy.* A record's gradient, derivative times row, is clipped to `clip` on the integers: zero-out moves the sum by at most clip,
//! replace-one by 2 clip. All columns get noise before any is left out, so that thresholding looks at released numbers only; steps
//! compose exactly, as Gaussians. The published theorem loses a factor of 2 between sensitivity and zero-concentrated privacy, and
//! its gradient bounds hold for likely data only; here gradients are clipped.
//!
//! *Accuracy.* The noise has a length of sqrt(columns) times the length of a row, of which thresholding leaves sqrt(sparsity): good for
//! rows of length 1 with few large cells, such as words. Where cells have a bound, `noisy-thresholding` needs less noise. Few steps:
//! their noise grows like sqrt(steps).
//!
//! *Needs.* Any loss, one row to a unit, delta > 0. Time: a pass over the non-zeros for each step, and noise for each column.
//!
//! *Reference.* Wang and Gu 2019 (DP-IGHT), with corrected constants; exact composition of Dong, Roth, Su 2019.

use super::Capabilities;
use super::block_learner::usual_radius;
use super::noisy_gd::calibrated_steps;
use super::support::sparsity;
use super::{Method, Noise, Plan, Problem, head_losses, rounded};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::method::settings::settings;
use crate::schema::Task;
use crate::solve::iterative_hard_thresholding::keep_largest;
use privfit_kernel::account::Event;
use privfit_kernel::engine::Needs;
use privfit_kernel::{Gaussian, Loss, Run};

settings! {
    /// Settings of hard thresholding.
    pub(crate) struct HardThresholdingSettings {
        /// weights that are kept
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e5;
        /// length of a step, for the average gradient
        learning_rate: Option<f64> = None, 1e-9..=1e9;
        /// largest gradient of a record
        clip: Option<f64> = None, 1e-6..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "hard-thresholding",
    alias: "DP-IGHT",
    needs: "any loss, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies",
    source: "Wang, Gu 2019, corrected; exact Gaussian composition",
    theorem: "Each record's gradient is clipped to length C on the integers; all columns get Gaussian noise sigma before any is \
              left out, so that thresholding looks at released numbers only. T steps are jointly Gaussian-private with mu = \
              sqrt(T) C/sigma (replace-one twice that).",
    settings: HardThresholdingSettings::SETTINGS,
    published: false,
    can: Capabilities::ANY,
    plan,
};

pub(super) struct HardThresholding {
    pub(super) losses: Vec<Loss>,
    pub(super) mechanism: Gaussian,
    pub(super) steps: u64,
    pub(super) rate: f64,
    pub(super) constant_rate: f64,
    pub(super) count: usize,
    pub(super) constant: Option<usize>,
    pub(super) constraint: Constraint,
    pub(super) rows: f64,
    pub(super) features: usize,
    pub(super) event: Event,
}

/// Length of a step that undoes the curvature of the average loss along one column: smoothness times the mean square of a cell.
pub(super) fn usual_rate(problem: &Problem, loss: &Loss) -> f64 {
    let cell = problem.largest_cell();
    // Cells spread evenly over their range have a third of its square. Words are all positive: together they have much more
    // curvature than each by itself.
    let square = if cell < 1.0 { cell * cell / 3.0 } else { 1.0 / problem.features.min(16) as f64 };
    1.0 / (loss.smoothness().min(1.0) * square)
}

/// The rate of the constant: its cell is as large as public facts say, in every row, which makes its curvature another one.
pub(super) fn constant_rate(problem: &Problem, loss: &Loss, rate: f64) -> f64 {
    let cell = problem.constant().map_or(1.0, |c| 1.0 / problem.columns[c].scale);
    rate.min(1.0 / (loss.smoothness().min(1.0) * cell * cell))
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("hard-thresholding")?;
    if problem.rows_per_unit > 1 {
        return Err(Error::misuse("hard-thresholding has one row to a unit: use ").give("method", "noisy-gd"));
    }
    let settings = HardThresholdingSettings::parse(&problem.settings)?;
    let losses = head_losses(problem)?;
    let bound = losses[0].lipschitz();
    let usual = if problem.task == Task::Number { bound.min(0.5) } else { bound };
    let clip = settings.clip.unwrap_or(usual).min(bound);
    let losses: Vec<Loss> = losses.iter().map(|l| l.clipped(clip)).collect();
    let usual = if problem.largest_cell() < 1.0 { 3 } else { 8 };
    let steps = settings.steps.unwrap_or(usual);
    let (mechanism, event) = calibrated_steps(problem, &losses, clip, None, steps, false)?;
    let count = sparsity(problem, settings.sparsity);
    // Noise that is kept is the largest of many; a step so short that it is no longer than a usual weight.
    let largest = mechanism.standard_deviation() * (2.0 * (problem.features.max(2) as f64).ln() * steps as f64).sqrt();
    let longest = usual_radius(problem) / (count as f64).sqrt() * problem.all_rows() / largest;
    let rate = settings.learning_rate.unwrap_or(usual_rate(problem, &losses[0]).min(longest));
    let constant_rate = constant_rate(problem, &losses[0], rate);
    Ok(Box::new(HardThresholding {
        losses,
        mechanism,
        steps,
        rate,
        constant_rate,
        count,
        constant: problem.constant(),
        constraint: problem.constraint,
        rows: problem.all_rows(),
        features: problem.features,
        event,
    }))
}

impl Plan for HardThresholding {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Sums
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        vec![
            ("weights kept", self.count.to_string()),
            ("steps", self.steps.to_string()),
            ("learning rate", rounded(self.rate)),
            ("clip", rounded(self.losses[0].lipschitz())),
            ("noise of a step, standard deviation", rounded(self.mechanism.standard_deviation())),
        ]
    }

    fn gradient_noise(&self) -> f64 {
        self.mechanism.standard_deviation() / (self.steps as f64).sqrt()
    }

    fn noise(&self) -> Noise {
        Noise::Gradient { deviation: self.gradient_noise(), ridge: self.rows / (self.rate * self.steps as f64) }
    }

    fn steps(&self) -> u64 {
        self.steps * self.losses.len() as u64
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        for loss in &self.losses {
            let dimension = self.features * loss.outputs();
            let mut w = vec![0f64; dimension];
            let everyone = run.everyone()?;
            for _ in 0..self.steps {
                let gradient = run.at(&self.mechanism, |run, scale| {
                    let noise = run.draw(&scale, dimension)?;
                    let sum = everyone.gradient_sum(&noise, &w, loss)?;
                    run.release(noise, &sum)
                })?;
                for (i, (w, g)) in w.iter_mut().zip(&gradient).enumerate() {
                    let rate = if Some(i % self.features) == self.constant { self.constant_rate } else { self.rate };
                    *w -= rate * g / self.rows;
                }
                for w in w.chunks_mut(self.features) {
                    keep_largest(w, self.count, self.constant);
                }
                self.constraint.project(&mut w);
                progress();
            }
            weights.extend(w);
        }
        Ok(weights)
    }
}
