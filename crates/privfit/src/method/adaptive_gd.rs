//! Adaptive gradient descent: noise and length of each step are chosen on the way, within a budget that is paid at the beginning.
//!
//! *What it computes.* A step releases a noisy gradient of all records and chooses, by the exponential mechanism, among points along it the one with the smallest clipped loss, the present one among them. If that
//! is the present one, the direction was too noisy: the gradient is released again with more budget and averaged with what is known, and the choice is made anew. Later steps keep the larger budget. Lengths of steps follow
//! those that were chosen. It ends when the budget does not pay for another release.
//!
//! *Privacy.* The plan pays for a budget rho of zero-concentrated privacy (replace-one: four times that), whatever happens on the way. Every release is compared with what is left of it before it leaves, by the kernel,
//! and by the method before its noise is drawn. A gradient is clipped to C on the integers: noise multiplier z costs 1 / (2 z^2). Losses of a record are clipped to lie between 0 and a bound; a choice at range e costs
//! e^2 / 8. How many releases there are, and how large, follows from released numbers alone (a filter for parameters that are chosen on the way: Rogers et al. 2016).
//!
//! *Accuracy.* For objectives about which nothing is known. On losses with a known smoothness `noisy-gd` spends nothing on choices, and is composed as Gaussians, which costs less than zero-concentrated privacy.
//!
//! *Needs.* Any loss with scores, delta > 0. Time: about two passes and one more for each length, for each step.
//!
//! *Reference.* Lee and Kifer 2018 (DP-AGD); bounded range of Dong, Durfee, Rogers 2020.

use super::Capabilities;
use super::direction::Direction;
use super::settings::settings;
use super::{Method, Plan, Problem, rounded};
use crate::constraint::Constraint;
use crate::error::Result;
use privfit_kernel::account::{Adjacency, ConcentratedAccountant, Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Batch, Choose, Exponential, Gaussian, Loss, Mechanism, Run};

settings! {
    /// Settings of adaptive gradient descent.
    pub(crate) struct AdaptiveGdSettings {
        /// steps that the budget would pay for if none needed more of it
        steps: u64 = 60, 1.0..=1e6;
        /// how much more budget a gradient gets that showed no way down
        growth: f64 = 0.5, 0.01..=100.0;
        /// largest gradient of a record
        clip: Option<f64> = None, 1e-6..=1e6;
        /// largest loss of a record; four times that of weights of zero if not given
        loss_clip: Option<f64> = None, 1e-6..=1e6;
        /// longest of the first steps
        longest: f64 = 2.0, 1e-6..=1e6;
        /// strength of a nonconvex regulariser of the average loss, the sum of w^2 / (1 + w^2)
        nonconvex: f64 = 0.0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "adaptive-gd",
    alias: "DP-AGD",
    needs: "any loss but mean and geometric-median, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies; also units of several rows",
    source: "Lee and Kifer 2018; zero-concentrated privacy with a filter",
    theorem: "Releases are chosen on the way, and each is compared with what is left of a budget rho of zero-concentrated privacy before it leaves. A sum of gradients clipped to length C on the integers, with Gaussian noise z C, \
              costs 1 / (2 z^2); a choice among points by losses clipped between 0 and B, by the exponential mechanism of range e, costs e^2 / 8. Under replace-one each costs four times as much at the most. All of the \
              budget is paid for, whatever was released.",
    settings: AdaptiveGdSettings::SETTINGS,
    published: false,
    can: Capabilities { releases_gradients: true, many_steps: true, ..Capabilities::ANY },
    plan,
};

/// Lengths that are tried, besides none.
const LENGTHS: usize = 8;
/// Steps after which the longest length follows those that were chosen, and by how much it is above them.
const FOLLOW: (usize, f64) = (5, 1.3);

struct Adaptive {
    losses: Vec<Loss>,
    settings: AdaptiveGdSettings,
    clip: f64,
    loss_clip: f64,
    rho: f64,
    event: Event,
    direction: Direction,
    divide: f64,
    features: usize,
    constraint: Constraint,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta(METHOD.name)?;
    let settings = AdaptiveGdSettings::parse(&problem.settings)?;
    let losses = super::head_losses(problem)?;
    let bound = losses[0].lipschitz();
    let clip = settings.clip.unwrap_or(if losses[0].outputs() > 1 { 0.5 * bound } else { bound }).min(bound);
    let losses: Vec<Loss> = losses.iter().map(|l| l.clipped(clip)).collect();
    let unit = if problem.rows_per_unit > 1 { (problem.rows_per_unit as f64).sqrt() } else { 1.0 };
    let budget = |noise_multiplier: f64| Event::Budget { rho: 0.5 / (noise_multiplier * noise_multiplier) };
    let noise_multiplier = calibrate(problem.target, |nm| Result::Ok(budget(nm)), problem.adjacency)?;
    let Event::Budget { rho } = budget(noise_multiplier) else { unreachable!("a budget") };
    let loss_clip = settings.loss_clip.unwrap_or((4.0 * losses[0].at_zero()).max(1e-3)) * unit;
    Ok(Box::new(Adaptive {
        losses,
        clip: clip * unit,
        loss_clip,
        rho,
        event: Event::Budget { rho },
        direction: Direction { nonconvex: settings.nonconvex, smoothing: 0.0 },
        settings,
        divide: problem.all_rows(),
        features: problem.features,
        constraint: problem.constraint,
    }))
}

/// What a release costs of a budget, as the kernel counts it.
fn cost(event: &Event) -> f64 {
    let rho = |adjacency| ConcentratedAccountant.rho(event, adjacency).unwrap_or(f64::INFINITY);
    rho(Adjacency::ZeroOut).max(0.25 * rho(Adjacency::ReplaceOne))
}

/// A noise multiplier that costs so much.
fn multiplier(rho: f64) -> f64 {
    (0.5 / rho).sqrt()
}

/// What is left of the budget of a head.
struct Left(f64);

impl Left {
    /// Takes the cost of a release, if it is there: before its noise is drawn.
    fn takes(&mut self, cost: f64) -> bool {
        let enough = cost <= self.0;
        if enough {
            self.0 -= cost;
        }
        enough
    }
}

impl Adaptive {
    /// A noisy gradient sum that costs at most so much; none if that is not left.
    fn gradient<'d>(
        &self,
        run: &mut Run<'d>,
        on: &Batch<'d>,
        w: &[f64],
        loss: &Loss,
        rho: f64,
        left: &mut Left,
    ) -> Result<Option<Vec<f64>>> {
        let mechanism = Gaussian::for_gradients(self.clip, multiplier(rho))?;
        if !left.takes(cost(&mechanism.event(w.len()))) {
            return Ok(None);
        }
        Ok(Some(run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, w.len())?;
            let sum = on.gradient_sum(&noise, w, loss)?;
            run.release(noise, &sum)
        })?))
    }

    /// Which of some points has the smallest loss, by a choice that costs at most so much; none if that is not left.
    fn best<'d>(
        &self,
        run: &mut Run<'d>,
        on: &Batch<'d>,
        points: &[Vec<f64>],
        loss: &Loss,
        rho: f64,
        left: &mut Left,
    ) -> Result<Option<usize>> {
        let mechanism = Exponential::new(self.loss_clip, multiplier(rho))?;
        if !left.takes(cost(&mechanism.event())) {
            return Ok(None);
        }
        let chosen = run.at(&mechanism, |run, scale| {
            let arrival_times = run.draw(&scale, points.len())?;
            let scores = on.loss_scores(&arrival_times, points, loss)?;
            run.execute(Choose { arrival_times, scores: &scores, mechanism: &mechanism, count: 1 })
        })?;
        Ok(chosen.indices().first().copied())
    }

    fn descend(&self, run: &mut Run<'_>, loss: &Loss, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let mut w = vec![0.0; self.features * loss.outputs()];
        let everyone = run.everyone()?;
        // A little is left over, so that sums of rounded costs stay within the budget.
        let mut left = Left(self.rho / self.losses.len() as f64 * (1.0 - 1e-9));
        let each = 0.5 * left.0 / self.settings.steps as f64 * (1.0 - 1e-6);
        let (mut known, mut longest, mut chosen) = (each, self.settings.longest, Vec::new());
        for _ in 0..self.settings.steps {
            let Some(mut sum) = self.gradient(run, &everyone, &w, loss, known, &mut left)? else { break };
            let moved = loop {
                let mut along: Vec<f64> = sum.iter().map(|g| g / self.divide).collect();
                self.direction.turn(&mut along, &w);
                let size = along.iter().map(|a| a * a).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
                let point = |length: f64| {
                    let mut point: Vec<f64> = w.iter().zip(&along).map(|(w, a)| w - length * a / size).collect();
                    self.constraint.project(&mut point);
                    point
                };
                let lengths: Vec<f64> = (0..=LENGTHS).map(|i| longest * i as f64 / LENGTHS as f64).collect();
                let points: Vec<Vec<f64>> = lengths.iter().map(|l| point(*l)).collect();
                match self.best(run, &everyone, &points, loss, each, &mut left)? {
                    None => break None,
                    Some(0) => {}
                    Some(i) => break Some((points[i].clone(), lengths[i])),
                }
                // No way down was seen: more budget for this gradient, and for later ones.
                let more = self.settings.growth * known;
                let Some(again) = self.gradient(run, &everyone, &w, loss, more, &mut left)? else { break None };
                let share = known / (known + more);
                sum.iter_mut().zip(&again).for_each(|(s, a)| *s = share * *s + (1.0 - share) * a);
                known += more;
            };
            let Some((point, length)) = moved else { break };
            w = point;
            chosen.push(length);
            if chosen.len() == FOLLOW.0 {
                longest = FOLLOW.1 * chosen.drain(..).fold(0.0, f64::max);
            }
            progress();
        }
        Ok(w)
    }
}

impl Plan for Adaptive {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Totals
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let each = 0.5 * self.rho / (self.losses.len() as f64 * self.settings.steps as f64);
        let mut out = vec![
            ("most steps", self.settings.steps.to_string()),
            ("budget, zero-concentrated", rounded(self.rho)),
            ("clip", rounded(self.clip)),
            ("clip of the loss of a record", rounded(self.loss_clip)),
            ("noise of the first gradient, standard deviation", rounded(self.clip * multiplier(each))),
        ];
        out.extend(self.direction.describe());
        out
    }

    fn gradient_noise(&self) -> f64 {
        // Half of the budget is for gradients.
        self.clip * multiplier(0.5 * self.rho / self.losses.len() as f64)
    }

    fn steps(&self) -> u64 {
        self.settings.steps * self.losses.len() as u64
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        for loss in &self.losses {
            weights.extend(self.descend(run, loss, progress)?);
        }
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{Random, dataset, plan, schema};
    use privfit_kernel::Entropy;
    use privfit_kernel::account::epsilon;
    use privfit_kernel::engine::Threads;

    /// Whatever was chosen on the way, what was executed costs no more than the budget, and the plan is that budget, which meets the target under each adjacency.
    #[test]
    fn the_budget_is_never_exceeded() {
        let classes = "classes = [\"0\", \"1\"]";
        let schema = schema(3, "", classes);
        let mut random = Random(7);
        let useful: Vec<Vec<f64>> = (0..300)
            .map(|_| {
                let x = [random.next(), random.next(), random.next()];
                vec![x[0], x[1], x[2], f64::from(u8::from(x[0] > 0.0))]
            })
            .collect();
        let useless: Vec<Vec<f64>> = (0..300).map(|i| vec![0.0, 0.0, 0.0, f64::from(i % 2)]).collect();
        for set in [&[][..], &[("growth", 10.0)], &[("steps", 1.0)], &[("nonconvex", 0.1)]] {
            let prepared = plan(&schema, "adaptive-gd", "logistic", 300, 1.0, set);
            let Event::Budget { rho } = prepared.plan.event() else { panic!() };
            let spent = epsilon(prepared.plan.event(), Adjacency::ZeroOut, 1e-8).unwrap().bound.upper;
            assert!(spent <= 1.0 && spent > 0.99, "{spent}");
            for rows in [&useful, &useless] {
                let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
                let data = dataset(&schema, 3, false, rows, &entropy);
                let mut run = Run::begin(&data, &engine, &entropy, prepared.plan.event()).unwrap();
                let weights = prepared.plan.run(&mut run, &|| {}).unwrap();
                let released = run.close(weights).unwrap();
                let executed = cost(released.executed());
                assert!(
                    executed <= *rho && executed > if set.is_empty() { 0.3 * rho } else { 0.0 },
                    "{set:?}: {executed} of {rho}"
                );
                assert!(released.into_value().iter().all(|w| w.is_finite()));
            }
        }
    }
}
