//! Objective perturbation: minimise the sum of losses plus a ridge plus a random linear term, then add a little output noise.
//!
//! *What it computes.* theta = argmin sum of losses + (ridge/2) |theta|^2 + <b, theta> with b Gaussian, to a certified gradient norm
//! tau, and theta + output noise. Several classes: softmax in one objective, or one objective for each class against the rest.
//!
//! *Privacy.* The map from b to the minimiser is one to one, so the density of the minimiser is that of b times a determinant. For a
//! linear model one record shifts b by a vector of length at most L in a fixed line (zero-out) or plane (replace-one, 2 L), and
//! changes the determinant by at most 1 + smoothness/ridge; for softmax it is K-1 dimensions and (1 + trace/((K-1) ridge))^(K-1). The
//! resulting curve is exact up to these bounds (`account/objective.rs`). The solver stops within tau/ridge of the minimiser; the
//! 2 tau/ridge between neighbours are covered by the output noise, which is a Gaussian event of its own, and composition is numerical.
//! The ridge covers every coordinate, the constant one included. Published proofs miss a factor of two in tau and hold for linear
//! models only; the repaired ones are used here.
//!
//! *Accuracy.* The best ridge balances noise and shrinkage: ridge = sigma sqrt(d) / radius with radius 20 min(1, sqrt(r/50)),
//! r = n / (sigma sqrt d), found on generated data. The determinant may take at most a quarter of epsilon. Slopes cut at 1/2
//! (logistic loss) halve sigma.
//!
//! *Needs.* A smooth loss, one row to a unit, the true number of rows (so not add-remove), delta > 0. Time: some ten passes over the data.
//!
//! *Reference.* Approximate minima perturbation (AMP) of Iyengar, Near, Song, Thakkar, Thakurta, Wang 2019, after Chaudhuri,
//! Monteleoni, Sarwate 2011 and Kifer, Smith, Thakurta 2012; curve after Redberg, Koskela, Wang 2023.

use super::vector_noise::VectorNoise;
use super::{Method, Plan, Problem, head_losses, needs_smooth, show};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::privacy::{self, LinearTerm, Loss, Run};

/// Row of the list.
pub const METHOD: Method = Method {
    name: "objective",
    alias: "AMP",
    needs: "smooth loss, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "Iyengar et al. 2019, repaired; curve after Redberg et al. 2023",
    theorem: "Let theta minimise the sum of losses + (ridge/2)|theta|^2 + <b, theta>, b Gaussian with standard deviation \
              sigma. The map from b to theta is one to one; one record shifts b by at most L (replace-one 2 L) in as many \
              dimensions as its gradient spans, and changes the log determinant by at most k ln(1 + trace/(k ridge)), k and \
              trace being rank and trace of its curvature. The solver's error tau/ridge on either side is covered by output \
              noise that is charged as a release of its own.",
    settings: &[("ridge", "strength of the ridge, in sum form"), ("radius", "expected length of the weights (sets the ridge)")],
    published: false,
    plan,
};

/// A plan of this kind; other methods choose the ridge or the noise by other rules.
pub(super) struct Objective {
    pub(super) losses: Vec<Loss>,
    pub(super) linear: LinearTerm,
    pub(super) ridge: f64,
    pub(super) tolerance: f64,
    pub(super) output: VectorNoise,
    pub(super) event: Event,
    pub(super) constraint: Constraint,
    pub(super) features: usize,
    /// Standard deviation of a coordinate of the linear term.
    pub(super) deviation: f64,
}

/// Output noise has this part of the loss of the linear term, in Gaussian units: it costs one 800th more noise.
pub(super) const OUTPUT_SHARE: f64 = 1.0 / 20.0;

/// What every method of this kind needs.
pub(super) fn check(problem: &Problem, method: &str) -> Result<Vec<Loss>> {
    problem.needs_rows(method)?;
    needs_smooth(problem, method)?;
    if problem.rows_per_unit > 1 {
        return Err(Error::misuse(format!(
            "{method} has one row to a unit, since nothing inside of it is clipped: use --method noisy-gd"
        )));
    }
    head_losses(problem)
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("objective")?;
    let losses = check(problem, "objective")?;
    let heads = losses.len() as f64;
    let loss = losses[0].clone();
    let (n, d) = (problem.rows.max(1) as f64, problem.features as f64);
    let rank = f64::from(loss.rank);
    // The determinant takes at most a quarter of epsilon, over all heads.
    let least = loss.trace / rank / (problem.target.epsilon / (4.0 * rank * heads)).exp_m1();
    let ridge_of = |nm: f64| {
        let sigma = nm * loss.lipschitz;
        let ratio = n / (sigma * d.sqrt());
        let radius = problem.settings.get("radius", 20.0 * (ratio / 50.0).sqrt().min(1.0));
        problem.settings.get("ridge", (sigma * d.sqrt() / radius).max(least))
    };
    calibrated(problem, losses, false, ridge_of)
}

/// Noise that meets the target, with the ridge that goes with each amount of it.
pub(super) fn calibrated(
    problem: &Problem,
    losses: Vec<Loss>,
    pure: bool,
    ridge_of: impl Fn(f64) -> f64,
) -> Result<Box<dyn Plan>> {
    if !(ridge_of(1.0) > 0.0 && ridge_of(1.0).is_finite()) {
        return Err(Error::misuse("ridge and radius must be positive"));
    }
    let n = problem.rows.max(1) as f64;
    let dimension = (problem.features * losses[0].outputs) as f64;
    let parts = |nm: f64| {
        let linear = LinearTerm { noise_multiplier: nm, pure };
        let multiplier = nm / OUTPUT_SHARE;
        // Output noise costs n smoothness/2 times its square, two nats of the log-likelihood of all records together; less where a
        // ridge makes every coordinate count, and a fine solution easy.
        let wanted = |ridge: f64| {
            let curvature = n * losses[0].smoothness + 100.0 * dimension * ridge;
            2.0 / curvature.sqrt() * ridge / (2.0 * multiplier)
        };
        let mut ridge = ridge_of(nm);
        // Gradients of very many rows cannot be certified that finely. A larger ridge, still small against them, brings the weights
        // nearer to the gradient; the noise of a coarse certificate would cost more.
        let given = problem.settings.0.contains_key("ridge");
        while !given && ridge < n && problem.size().limits(&losses[0], ridge, Some(linear)).0 * 1.01 > wanted(ridge) {
            ridge *= 1.1;
        }
        tilted(problem, &losses, linear, ridge, wanted(ridge), |_| multiplier)
    };
    let failed = Event::NotPrivate { why: "no such plan".into() };
    let noise = calibrate(problem.target, |nm| parts(nm).map_or(failed.clone(), |p| p.event), problem.adjacency)?.upper;
    Ok(Box::new(parts(noise)?))
}

/// A plan with all numbers given. The tolerance is the smallest that the solver can certify if the wanted one is below; the output
/// noise, as a multiple of the distance that the tolerance allows, may depend on that distance.
pub(super) fn tilted(
    problem: &Problem,
    losses: &[Loss],
    linear: LinearTerm,
    ridge: f64,
    wanted: f64,
    output_multiplier: impl Fn(f64) -> f64,
) -> Result<Objective> {
    let loss = &losses[0];
    let dimension = problem.features * loss.outputs;
    let (least, radius) = problem.size().limits(loss, ridge, Some(linear));
    let tolerance = wanted.max(least * 1.01);
    let apart = 2.0 * tolerance / ridge * (1.0 + 1e-9);
    let output = VectorNoise::new(linear.pure, (apart, apart), radius, output_multiplier(apart), dimension)?;
    let one = Event::Compose(vec![linear.event(loss, 1.0, ridge, problem.features), output.event(dimension)]);
    let heads = losses.len() as u64;
    let root = if linear.pure { std::f64::consts::SQRT_2 } else { 1.0 };
    Ok(Objective {
        losses: losses.to_vec(),
        linear,
        ridge,
        tolerance,
        output,
        event: if heads == 1 { one } else { one.repeated(heads) },
        constraint: problem.constraint,
        features: problem.features,
        deviation: linear.scale(loss, 1.0, dimension) * root,
    })
}

impl Plan for Objective {
    fn event(&self) -> &Event {
        &self.event
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        vec![
            ("linear term, standard deviation", show(self.deviation)),
            ("ridge", show(self.ridge)),
            ("gradient norm at the end, at most", show(self.tolerance)),
            (self.output.law(), show(self.output.multiplier())),
        ]
    }

    fn gradient_noise(&self) -> f64 {
        self.deviation * (self.losses.len() as f64).sqrt()
    }

    fn ticks(&self) -> u64 {
        self.losses.len() as u64
    }

    fn run(&self, run: &mut Run<'_>, tick: &dyn Fn()) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        for loss in &self.losses {
            let everyone = run.everyone()?;
            let problem = privacy::Problem { loss, ridge: self.ridge, tolerance: self.tolerance };
            let dimension = self.features * loss.outputs;
            weights.extend(self.output.release(run, dimension, |run| run.minimize(&everyone, problem, Some(self.linear)))?);
            tick();
        }
        self.constraint.project(&mut weights);
        Ok(weights)
    }
}
