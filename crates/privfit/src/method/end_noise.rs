//! Descents whose answer gets the noise: the plan that several methods share. How far apart neighbours end comes from the kernel
//! (`privacy/descent.rs`), step by step; no method states a sensitivity of its own.

use super::vector_noise::VectorNoise;
use super::{Noise, Plan, Problem, head_losses, needs_smooth, rounded};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Descend, Descent, Gaussian, Loss, Run, Stability, StepSchedule};

/// The steps.
#[derive(Clone, Copy)]
pub(super) struct Recipe {
    /// Ridge of the average of losses.
    pub(super) ridge: f64,
    /// Records to a batch; none for everyone.
    pub(super) batch: Option<usize>,
    pub(super) passes: u64,
    pub(super) schedule: StepSchedule,
    /// A short last batch is divided by its own size.
    pub(super) own_size: bool,
}

impl Recipe {
    pub(super) fn descent<'a>(&self, loss: &'a Loss) -> Descent<'a> {
        Descent {
            loss,
            ridge: self.ridge,
            batch: self.batch,
            passes: self.passes,
            schedule: self.schedule,
            own_size: self.own_size,
        }
    }
}

struct EndNoise {
    losses: Vec<Loss>,
    recipe: Recipe,
    stability: Stability,
    noise: VectorNoise,
    deviation: f64,
    event: Event,
    constraint: Constraint,
    features: usize,
    rows: u64,
}

/// What a descent needs, whatever its steps are.
pub(super) fn check(problem: &Problem, method: &str) -> Result<Vec<Loss>> {
    problem.needs_rows(method)?;
    needs_smooth(problem, method)?;
    if problem.rows_per_unit > 1 {
        return Err(Error::misuse(format!("{method} has one row to a unit, since nothing on its way is clipped: use "))
            .give("method", "noisy-gd"));
    }
    head_losses(problem)
}

/// Noise that meets the target.
pub(super) fn calibrated(problem: &Problem, losses: Vec<Loss>, recipe: Recipe) -> Result<Box<dyn Plan>> {
    let pure = problem.target.delta == 0.0;
    let stability = recipe.descent(&losses[0]).stability(&problem.size());
    if !(stability.replace_one.is_finite() && stability.replace_one > 0.0) {
        return Err(Error::misuse(
            "these steps are so long that neighbours can end anywhere: give a smaller rate, or fewer passes",
        ));
    }
    let dimension = problem.features * losses[0].outputs();
    let heads = losses.len() as u64;
    let Stability { zero_out, replace_one, longest } = stability;
    let noise_of = |nm: f64| VectorNoise::new(pure, (zero_out, replace_one), longest, nm, dimension);
    let event_of = |nm: f64| noise_of(nm).map(|n| n.event(dimension).repeated(heads));
    let multiplier = calibrate(problem.target, event_of, problem.adjacency)?;
    let root = if pure { (2.0 * dimension as f64).sqrt() } else { 1.0 };
    let deviation = multiplier * stability.zero_out * root;
    finish(problem, losses, recipe, stability, noise_of(multiplier)?, deviation, None)
}

/// Gaussian noise of this standard deviation, whatever that is worth: for published forms. The event says what it truly costs.
pub(super) fn with_deviation(problem: &Problem, losses: Vec<Loss>, recipe: Recipe, deviation: f64) -> Result<Box<dyn Plan>> {
    let stability = recipe.descent(&losses[0]).stability(&problem.size());
    let dimension = problem.features * losses[0].outputs();
    let Stability { zero_out, replace_one, longest } = stability;
    let noise = Gaussian::for_output(zero_out, replace_one, longest, deviation / zero_out, dimension);
    match noise {
        Ok(noise) if replace_one.is_finite() => {
            finish(problem, losses, recipe, stability, VectorNoise::Gaussian(noise), deviation, None)
        }
        _ => {
            let noise = Gaussian::for_output(deviation, deviation, 1e6 * deviation, 1.0, dimension)?;
            let why = "steps longer than 2 / smoothness: neighbours can end anywhere, and the printed sensitivity is not one";
            finish(problem, losses, recipe, stability, VectorNoise::Gaussian(noise), deviation, Some(why))
        }
    }
}

fn finish(
    problem: &Problem,
    losses: Vec<Loss>,
    recipe: Recipe,
    stability: Stability,
    noise: VectorNoise,
    deviation: f64,
    broken: Option<&str>,
) -> Result<Box<dyn Plan>> {
    let dimension = problem.features * losses[0].outputs();
    let event = match broken {
        Some(why) => Event::NotPrivate { why: why.into() },
        None => noise.event(dimension).repeated(losses.len() as u64),
    };
    Ok(Box::new(EndNoise {
        losses,
        recipe,
        stability,
        noise,
        deviation,
        event,
        constraint: problem.constraint,
        features: problem.features,
        rows: problem.rows,
    }))
}

impl Plan for EndNoise {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        if self.recipe.batch.is_some() { Needs::Records } else { Needs::Totals }
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![("passes", self.recipe.passes.to_string())];
        if let Some(batch) = self.recipe.batch {
            out.push(("records to a batch", batch.to_string()));
        }
        out.extend([
            ("first learning rate", rounded(self.recipe.schedule.rate(1, 1))),
            ("ridge", rounded(self.recipe.ridge * self.rows as f64)),
            ("distance of neighbours, zero-out", rounded(self.stability.zero_out)),
            ("noise, standard deviation", rounded(self.deviation)),
        ]);
        out
    }

    fn gradient_noise(&self) -> f64 {
        // Noise on weights weighs like noise x curvature on a gradient sum; a quarter of the largest curvature is a fair guess.
        self.deviation * self.rows as f64 * 0.1 * self.losses[0].smoothness() * (self.losses.len() as f64).sqrt()
    }

    fn noise(&self) -> Noise {
        let rows = self.rows as f64;
        // The way of a flat direction, pass by pass.
        let updates = self.recipe.batch.map_or(1.0, |b| (rows / b as f64).ceil().max(1.0));
        let middle = |pass: u64| ((pass as f64 - 0.5) * updates).ceil().max(1.0) as u64;
        let way: f64 = (1..=self.recipe.passes).map(|pass| updates * self.recipe.schedule.rate(middle(pass), pass)).sum();
        Noise::Weights { deviation: self.deviation, ridge: rows * (self.recipe.ridge + 1.0 / way.max(f64::MIN_POSITIVE)) }
    }

    fn steps(&self) -> u64 {
        self.recipe.passes * self.losses.len() as u64
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        for loss in &self.losses {
            let everyone = run.everyone()?;
            let dimension = self.features * loss.outputs();
            let descent = self.recipe.descent(loss);
            let part =
                self.noise.release(run, dimension, |run| run.execute(Descend { on: &everyone, descent: &descent, progress }))?;
            weights.extend(part);
        }
        self.constraint.project(&mut weights);
        Ok(weights)
    }
}
