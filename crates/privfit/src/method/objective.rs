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
//! r = n / (sigma sqrt d), found on generated data. The determinant may take at most a quarter of epsilon. Derivatives clipped at 1/2
//! (logistic loss) halve sigma.
//!
//! *Needs.* A smooth loss, one row to a unit, the true number of rows (so not add-remove), delta > 0. Time: some ten passes over the data.
//!
//! *Reference.* Approximate minima perturbation (AMP) of Iyengar, Near, Song, Thakkar, Thakurta, Wang 2019, after Chaudhuri,
//! Monteleoni, Sarwate 2011 and Kifer, Smith, Thakurta 2012; curve after Redberg, Koskela, Wang 2023.

use super::Capabilities;
use super::offset::{self, Offset};
use super::vector_noise::VectorNoise;
use super::{Method, Noise, Plan, Problem, head_losses, needs_smooth, rounded};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::method::settings::settings;
use crate::schema::Task;
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{self as kernel, LinearTerm, Loss, Minimise, Run};

settings! {
    /// Settings of objective perturbation.
    pub(crate) struct ObjectiveSettings {
        /// strength of the ridge, in sum form
        ridge: Option<f64> = None, 1e-12..=1e15;
        /// expected length of the weights (sets the ridge)
        radius: Option<f64> = None, 1e-12..=1e15;
        /// whether scores of a number begin at its private mean, not at the middle of its bounds
        offset: bool = true, 0.0..=1.0;
    }
}

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
    settings: ObjectiveSettings::SETTINGS,
    published: false,
    can: Capabilities::BY_THEOREM,
    plan: |problem| plan(problem, ObjectiveSettings::parse(&problem.settings)?),
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
    pub(super) task: Task,
    pub(super) features: usize,
    pub(super) offset: Option<Offset>,
    /// Cost of the output noise over that of the linear term: a bound for any data.
    pub(super) output_cost: f64,
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
        return Err(Error::misuse(format!("{method} has one row to a unit, since nothing inside of it is clipped: use "))
            .give("method", "noisy-gd"));
    }
    head_losses(problem)
}

pub(super) fn plan(problem: &Problem, settings: ObjectiveSettings) -> Result<Box<dyn Plan>> {
    problem.needs_delta("objective")?;
    let losses = check(problem, "objective")?;
    let heads = losses.len() as f64;
    let loss = losses[0].clone();
    let (n, d) = (problem.rows.max(1) as f64, problem.features as f64);
    let rank = f64::from(loss.rank());
    // The determinant takes at most a quarter of epsilon, over all heads.
    let least = loss.trace() / rank / (problem.target.epsilon / (4.0 * rank * heads)).exp_m1();
    let ridge_of = |nm: f64| {
        let sigma = nm * loss.lipschitz();
        let ratio = n / (sigma * d.sqrt());
        let radius = settings.radius.unwrap_or(20.0 * (ratio / 50.0).sqrt().min(1.0));
        settings.ridge.unwrap_or((sigma * d.sqrt() / radius).max(least))
    };
    calibrated(problem, losses, settings.offset, false, ridge_of)
}

/// Noise that meets the target, with the ridge that goes with each amount of it.
pub(super) fn calibrated(
    problem: &Problem,
    losses: Vec<Loss>,
    offset: bool,
    pure: bool,
    ridge_of: impl Fn(f64) -> f64,
) -> Result<Box<dyn Plan>> {
    if !ridge_of(1.0).is_finite() {
        return Err(Error::misuse("epsilon is too small for a finite ridge: give more of it"));
    }
    let offset = offset && offset::applies(problem);
    let losses = if offset { offset::losses(losses) } else { losses };
    let likelihood = matches!(problem.task, Task::Classes(_));
    let parts = |nm: f64| {
        let linear = LinearTerm { noise_multiplier: nm, pure };
        let choose = if likelihood { nats } else { relative };
        let (ridge, tolerance) = choose(problem, &losses, linear, ridge_of(nm));
        let plan = perturbed(problem, &losses, linear, ridge, tolerance, |_| nm / OUTPUT_SHARE)?;
        if offset { plan.beginning(problem, pure, nm) } else { Ok(plan) }
    };
    let noise = calibrate(problem.target, |nm| parts(nm).map(|p| p.event), problem.adjacency)?;
    Ok(Box::new(parts(noise)?))
}

/// The ridge and the tolerance that go with an amount of noise.
type Chosen = (f64, f64);

/// For log-likelihoods, whose scale is known: output noise of deviation s costs s^2 tr(H)/2, and tr H <= n smoothness + d ridge for rows in
/// the unit ball. That may be two nats of all records together, or a part of what the linear term costs (see `relative`).
fn nats(problem: &Problem, losses: &[Loss], linear: LinearTerm, least: f64) -> Chosen {
    let n = problem.rows.max(1) as f64;
    let loss = &losses[0];
    let d = (problem.features * loss.outputs()) as f64;
    let wanted = |ridge: f64| {
        let deviation = 2.0 / (n * loss.smoothness() + d * ridge).sqrt();
        let known = deviation * ridge * OUTPUT_SHARE / (2.0 * linear.noise_multiplier);
        known.max(OUTPUT_SHARE / effect(problem, loss, ridge))
    };
    let mut ridge = least;
    // Gradients of very many rows cannot be certified that finely. A larger ridge, still small against them, brings the weights
    // nearer to the gradient; the noise of a coarse certificate would cost more.
    let given = problem.settings.0.contains_key("ridge");
    while !given && ridge < n && problem.size().limits(loss, ridge, Some(linear)).0 * 1.01 > wanted(ridge) {
        ridge *= 1.1;
    }
    (ridge, wanted(ridge))
}

/// Effect of the output noise over that of the linear term, at most, for a tolerance of 1.
fn effect(problem: &Problem, loss: &Loss, ridge: f64) -> f64 {
    let d = (problem.features * loss.outputs()) as f64;
    let trace = problem.rows.max(1) as f64 * loss.trace() + d * ridge;
    2.0 / ridge * trace / (d * loss.lipschitz()) / OUTPUT_SHARE
}

/// For numbers, whose scale inside of their bounds is not known: a part of whatever the linear term costs, on any data. With H the
/// second derivative of the objective, output noise of deviation s costs s^2 tr(H)/2 and the linear term sigma^2 tr(H^-1)/2, which
/// is at least sigma^2 d^2 / (2 tr H); and tr H <= n trace + d ridge for rows in the unit ball. So output noise costs at most
/// (s tr H / (d sigma))^2 of the linear term. Where the tolerance that this asks for cannot be certified, the ridge grows until its
/// own cost, for weights of length 1 beside an offset, outweighs that.
fn relative(problem: &Problem, losses: &[Loss], linear: LinearTerm, least: f64) -> Chosen {
    let loss = &losses[0];
    let n = problem.rows.max(1) as f64;
    let d = (problem.features * loss.outputs()) as f64;
    let deviation = linear.scale(loss, 1.0, d as usize) * if linear.pure { std::f64::consts::SQRT_2 } else { 1.0 };
    let at = |ridge: f64| {
        let trace = n * loss.trace() + d * ridge;
        let effect = effect(problem, loss, ridge);
        let tolerance = (OUTPUT_SHARE / effect).max(problem.size().limits(loss, ridge, Some(linear)).0 * 1.01);
        let noise = (d * deviation).powi(2) / trace * (1.0 + (tolerance * effect).powi(2));
        let shrinkage = ridge * ridge / (n * loss.trace() / d + ridge);
        (noise + shrinkage, (ridge, tolerance))
    };
    let mut best = at(least);
    if problem.settings.0.contains_key("ridge") {
        return best.1;
    }
    let mut ridge = least;
    while ridge < n {
        ridge *= 1.1;
        let next = at(ridge);
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// A plan with all numbers given. The tolerance is the smallest that the solver can certify if the wanted one is below; the output
/// noise, as a multiple of the distance that the tolerance allows, may depend on that distance.
pub(super) fn perturbed(
    problem: &Problem,
    losses: &[Loss],
    linear: LinearTerm,
    ridge: f64,
    wanted: f64,
    output_multiplier: impl Fn(f64) -> f64,
) -> Result<Objective> {
    let loss = &losses[0];
    let dimension = problem.features * loss.outputs();
    let (least, radius) = problem.size().limits(loss, ridge, Some(linear));
    let tolerance = wanted.max(least * 1.01);
    let apart = 2.0 * tolerance / ridge * (1.0 + 1e-9);
    let output = VectorNoise::new(linear.pure, (apart, apart), radius, output_multiplier(apart), dimension)?;
    let one = Event::Compose(vec![linear.event(loss, 1.0, ridge, problem.features), output.event(dimension)]);
    let heads = losses.len() as u64;
    // As in `relative`; the square root of the dimension that pure noise has is on both sides.
    let d = dimension as f64;
    let trace = problem.rows.max(1) as f64 * loss.trace() + d * ridge;
    let root = if linear.pure { std::f64::consts::SQRT_2 } else { 1.0 };
    Ok(Objective {
        losses: losses.to_vec(),
        linear,
        ridge,
        tolerance,
        output,
        event: if heads == 1 { one } else { one.repeated(heads) },
        constraint: problem.constraint,
        task: problem.task,
        features: problem.features,
        offset: None,
        output_cost: (output_multiplier(apart) * apart * trace / (d * linear.noise_multiplier * loss.lipschitz())).powi(2),
        deviation: linear.scale(loss, 1.0, dimension) * root,
    })
}

impl Objective {
    /// The same with scores that begin at a private mean, where that applies.
    fn beginning(mut self, problem: &Problem, pure: bool, multiplier: f64) -> Result<Objective> {
        self.offset = Offset::new(problem, pure, multiplier)?;
        if let Some(offset) = &self.offset {
            let mut events = offset.events();
            events.push(self.event);
            self.event = Event::Compose(events);
        }
        Ok(self)
    }
}

impl Plan for Objective {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Totals
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("linear term, standard deviation", rounded(self.deviation)),
            ("ridge", rounded(self.ridge)),
            ("gradient norm at the end, at most", rounded(self.tolerance)),
            (self.output.distribution(), rounded(self.output.multiplier())),
        ];
        if self.task == Task::Number {
            out.push(("output noise, cost over that of the linear term, at most", rounded(self.output_cost)));
        }
        out.extend(self.offset.as_ref().map(Offset::describe));
        out
    }

    fn gradient_noise(&self) -> f64 {
        self.deviation * (self.losses.len() as f64).sqrt()
    }

    fn noise(&self) -> Noise {
        Noise::Gradient { deviation: self.deviation, ridge: self.ridge }
    }

    fn steps(&self) -> u64 {
        self.losses.len() as u64
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let start = self.offset.as_ref().map(|o| o.find(run)).transpose()?;
        let mut weights = Vec::new();
        for loss in &self.losses {
            let everyone = run.everyone()?;
            let moved = start.as_ref().map(|s| s.loss(loss));
            let loss = moved.as_ref().unwrap_or(loss);
            let problem = kernel::Problem { loss, ridge: self.ridge, tolerance: self.tolerance };
            let dimension = self.features * loss.outputs();
            weights
                .extend(self.output.release(run, dimension, |run| {
                    run.execute(Minimise { on: &everyone, problem, linear: Some(self.linear) })
                })?);
            progress();
        }
        start.iter().for_each(|s| s.fold(&mut weights));
        self.constraint.project(&mut weights);
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, coefficients, dataset, plan, schema};
    use privfit_kernel::Entropy;

    /// The stated bound on the cost of output noise is small for every loss of a number, whatever the width: log-likelihoods set the
    /// scale of this noise once, and a Huber loss drowned in it.
    #[test]
    fn output_noise_costs_little_beside_the_linear_term() {
        for method in ["objective", "objective-pure", "hyperparameter-free"] {
            for (loss, bounds) in
                [("squared", "[0, 1000]"), ("huber", "[0, 1000]"), ("quantile", "[-1, 1]"), ("poisson", "[0, 100]")]
            {
                for (rows, epsilon) in [(300, 1.0), (20_000, 0.1), (20_000, 1.0), (20_000, 50.0)] {
                    let prepared = plan(&schema(5, "", &format!("bounds = {bounds}")), method, loss, rows, epsilon, &[]);
                    let plan = prepared.plan.describe();
                    let number = |key: &str| -> f64 { plan.iter().find(|p| p.0.starts_with(key)).unwrap().1.parse().unwrap() };
                    let cost = number("output noise, cost");
                    // With much budget the linear term itself costs next to nothing, and shrinkage would cost more.
                    let most = if epsilon > 4.0 { 20.0 } else { 0.5 };
                    assert!(cost < most, "{method} {loss} {rows} {epsilon}: {cost}");
                    // The same from what else the plan states.
                    let apart = 2.0 * number("gradient norm") / number("ridge");
                    let noise =
                        plan.iter().find(|p| p.0.ends_with("over sensitivity")).unwrap().1.parse::<f64>().unwrap() * apart;
                    let pure = if method == "objective-pure" { (2.0f64 * 6.0).sqrt() } else { 1.0 };
                    let loss = prepared.problem.build_loss(1).unwrap();
                    let again =
                        noise * pure * (rows as f64 * loss.trace() + 6.0 * number("ridge")) / (6.0 * number("linear term"));
                    assert!(
                        (again * again / cost - 1.0).abs() < 0.02,
                        "{method} {rows} {epsilon}: {} is not {cost}",
                        again * again
                    );
                }
            }
        }
    }

    /// Targets at one end of their bounds: ten give or take three of a thousand. The fit explains what there is to explain.
    #[test]
    fn narrow_targets_are_learned() {
        let (schema, mut random) = (schema(2, "", "bounds = [0, 1000]"), Random(7));
        let rows: Vec<Vec<f64>> = (0..20_000)
            .map(|_| {
                let (a, b) = (random.next(), random.next());
                vec![a, b, 10.0 + 3.0 * a - 2.0 * b + 3.0 * random.next()]
            })
            .collect();
        let entropy = Entropy::simulated(3);
        let data = dataset(&schema, 2, false, &rows, &entropy);
        for loss in ["huber", "quantile"] {
            for epsilon in [1.0, 50.0] {
                let found = coefficients(&plan(&schema, "objective", loss, 20_000, epsilon, &[]), &data, &entropy);
                // In half-ranges of 500 around the middle.
                let off: Vec<f64> = found.iter().zip([3.0, -2.0, -490.0]).map(|(w, t)| w * 500.0 - t).collect();
                assert!(off.iter().all(|o| o.abs() < 1.5), "{loss} {epsilon}: {off:?}");
            }
        }
    }
}
