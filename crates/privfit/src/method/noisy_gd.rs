//! Noisy gradient descent on all records.
//!
//! *What it computes.* A fixed number of steps; each releases the sum of clipped gradients plus Gaussian noise, divides by the public
//! number of rows, and moves with momentum. The answer is the average of the second half of the iterates.
//!
//! *Privacy.* A record's gradient, derivative times row, is clipped to `clip` on the integers; zero-out moves a sum by at most clip, replace-one
//! by 2 clip. Steps compose exactly, as Gaussians (`account/gdp.rs`). Momentum, averaging and projection look at released numbers
//! only. A unit of several rows has its gradients added up and clipped as one.
//!
//! *Accuracy.* Noise of the steps averages out, so that many small steps cost little; the total time of the descent takes the place of
//! a ridge. rate = n / (250 x noise over clip of one release with the whole budget), at most 32, found on generated data, and
//! at most 0.9 (1 + sqrt momentum)^2 over the smoothness of the loss, up to where momentum damps every direction: 6.8 for softmax, 13.7
//! for the logistic loss. 100 steps, and up to four times as many where that limit makes them shorter; on sparse rows with little budget
//! as few as four, by Chebyshev's rule, the last of which is the answer.
//!
//! *Needs.* Any loss, any number of rows to a unit, delta > 0. Time: one pass over the data for each step.
//!
//! *Reference.* Song, Chaudhuri, Sarwate 2013; Bassily, Smith, Thakurta 2014; exact composition of Dong, Roth, Su 2019.

use super::correlation;
use super::direction::Direction;
use super::offset::{self, Offset};
use super::recursion::Recursive;
use super::rounds;
use super::walk::{Descents, Walk};
use super::{Capabilities, Point};
use super::{Learned, Method, Noise, Plan, Problem, rounded};
use crate::checkpoint::{Checkpoints, State};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::method::settings::settings;
use crate::schema::Task;
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{CorrelatedGaussian, Gaussian, Loss, Rate, Run, planned_step};

settings! {
    /// Settings of noisy gradient descent.
    pub(crate) struct NoisyGdSettings {
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e7;
        /// length of a step, for the average gradient
        learning_rate: Option<f64> = None, 1e-9..=1e9;
        /// part of the last move that is kept; 0.9 by default, 0 for a median
        momentum: Option<f64> = None, 0.0..=0.999;
        /// largest gradient of a record
        clip: Option<f64> = None, 1e-6..=1e6;
        /// strength of a ridge outside of the clipped sum, in sum form
        ridge: f64 = 0.0, 0.0..=1e12;
        /// whether scores of a number begin at its private mean, not at the middle of its bounds
        offset: bool = true, 0.0..=1.0;
        /// strength of a nonconvex regulariser of the average loss, the sum of w^2 / (1 + w^2)
        nonconvex: f64 = 0.0, 0.0..=1e6;
        /// strength of Laplacian smoothing of noisy gradients
        smoothing: f64 = 0.0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "noisy-gd",
    alias: "DP-GD",
    needs: "any loss but mean, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies; also units of several rows",
    source: "Song et al. 2013, Bassily et al. 2014, exact Gaussian composition",
    theorem: "Each record's gradient is clipped to length C on the integers, so that one record moves a sum by at most C (replace- \
              one 2 C). T sums with Gaussian noise sigma are jointly Gaussian-private with mu = sqrt(T) C/sigma; everything \
              else looks at released sums only.",
    settings: NoisyGdSettings::SETTINGS,
    published: false,
    can: Capabilities { point: Some(Point::Median), releases_gradients: true, affine: true, ..Capabilities::ANY },
    plan: |problem| plan(problem, NoisyGdSettings::parse(&problem.settings)?, None),
};

/// Longest step, whatever the loss.
pub(super) const LONGEST: f64 = 32.0;
/// Fewest steps.
const STEPS: f64 = 100.0;

/// Longest step that momentum damps. In a direction of curvature h a step of length r multiplies what is left by a root of x^2 - (1 + m - r h) x + m,
/// whose size is sqrt(m) as long as r h < (1 + sqrt m)^2, and 1 at 2 (1 + m). Rows lie in the unit ball, so that no curvature is above
/// the smoothness of the loss. A tenth less, since next to the end both roots are the same and what is left grows before it falls.
pub(super) fn stable_rate(momentum: f64, smoothness: f64) -> f64 {
    // Without smoothness there is no such limit, and steps stay as long as they were found to be good for.
    if smoothness.is_finite() { 0.9 * (1.0 + momentum.sqrt()).powi(2) / smoothness } else { LONGEST }
}

/// Part of the last move that is kept.
const MOMENTUM: f64 = 0.9;
/// Distance that a direction without curvature goes for a gradient of 1: a hundred steps of length 1 with that momentum, averaged over
/// their second half, (0.75 x 100 - 0.9 / 0.1) / 0.1.
pub(super) const DISTANCE: f64 = 660.0;
/// Fewest steps on sparse rows.
const FEWEST: u64 = 4;

/// Rate and momentum of each step for little budget on sparse rows, where a hundred small steps go no further than few long ones.
///
/// What T steps leave of a direction is a polynomial of degree T in its curvature, which is 1 at 0; how fast it falls there is the way that flat
/// directions go. Of those that leave at most `rest` of all curvatures from `low` to `top`, Chebyshev's goes furthest:
/// T tanh(T u) / (top tanh(u/2)) with low = top tanh(u/2)^2, and it leaves 1 / cosh(T u). Its last iterate also has less noise in flat directions
/// than an average of momentum's (0.87 of the least, not 0.78). The way is 1.25 of that of a hundred steps, down to 0.35 of it with less budget,
/// and a fifth may be left, less where the way is long: on three sparse texts and three generated tables at epsilon 0.03 to 4 accuracy was the same or
/// better; on a table of few features with ample budget (a9a, epsilon 0.3 and 0.5) it lost a tenth of a point, and there `auto` takes another method.
/// None if it takes a hundred steps. `ridge` is the curvature of a ridge.
pub(super) fn few_steps(wanted: f64, smoothness: f64, ridge: f64) -> Option<Vec<(f64, f64)>> {
    let way = 1.25 * wanted * DISTANCE * (wanted / stable_rate(MOMENTUM, smoothness)).max(0.35);
    let rest = 0.2 * (1000.0 / way).min(1.0);
    // Without smoothness steps are no longer than momentum's would be.
    let top = if smoothness.is_finite() { smoothness } else { stable_rate(MOMENTUM, 1.0) / LONGEST } + ridge;
    (FEWEST..STEPS as u64).find_map(|steps| {
        let t = steps as f64;
        let goes = |u: f64| t * (t * u).tanh() / (top * (0.5 * u).tanh());
        let (mut least, mut most) = ((1.0 / rest).acosh() / t, 8.0);
        if goes(least) < way {
            return None;
        }
        for _ in 0..60 {
            let u = 0.5 * (least + most);
            if goes(u) >= way { least = u } else { most = u }
        }
        // Where even plain steps go too far, shorter ones.
        let shorter = (way / goes(least)).min(1.0);
        Some(chebyshev(steps, top * (0.5 * least).tanh().powi(2), top).map(|(rate, m)| (shorter * rate, m)).collect())
    })
}

/// Rate and momentum of each of Chebyshev's steps for curvatures between two ends.
fn chebyshev(steps: u64, low: f64, top: f64) -> impl Iterator<Item = (f64, f64)> {
    let (middle, half) = (0.5 * (top + low), 0.5 * (top - low));
    let mut last = half / middle;
    (0..steps).map(move |step| {
        if step == 0 {
            return (1.0 / middle, 0.0);
        }
        let next = 1.0 / (2.0 * middle / half - last);
        let schedule = (2.0 * next / half, next * last);
        last = next;
        schedule
    })
}

/// Noisy steps, and what is made of them. Other methods of this kind plan one of these too.
pub(super) struct Steps {
    pub(super) losses: Vec<Loss>,
    pub(super) mechanism: Gaussian,
    pub(super) sampled: Option<Rate>,
    /// Noise that is correlated over the steps, on fixed batches in the place of samples.
    pub(super) correlated: Option<CorrelatedGaussian>,
    pub(super) steps: u64,
    /// Length of the step of that number, counted from 1, for the average gradient.
    pub(super) rate: Box<dyn Fn(u64) -> f64 + Send + Sync>,
    /// Part of the last move that the step of that number keeps.
    pub(super) momentum: Box<dyn Fn(u64) -> f64 + Send + Sync>,
    pub(super) ridge: f64,
    /// Gradient sums are divided by this public number.
    pub(super) divide: f64,
    pub(super) answer: Answer,
    pub(super) event: Event,
    pub(super) constraint: Constraint,
    pub(super) features: usize,
    pub(super) offset: Option<Offset>,
    /// What becomes of noisy averages before they are steps.
    pub(super) direction: Direction,
    /// Where estimates of gradients are carried on from step to step.
    pub(super) recursive: Option<Recursive>,
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
    let dimension = problem.features * losses[0].outputs();
    let event_of = |nm: f64| -> Result<(Gaussian, Event)> {
        let mechanism = Gaussian::for_gradients(clip, nm)?;
        let step = planned_step(&mechanism, dimension, sampled);
        let times = steps * losses.len() as u64;
        Ok((mechanism, if at_most { rounds::at_most(step, times) } else { step.repeated(times) }))
    };
    let multiplier = calibrate(problem.target, |nm| event_of(nm).map(|s| s.1), problem.adjacency)?;
    event_of(multiplier)
}

/// The same after an offset, where one applies. With samples its noise is that of as many steps on everyone: what samples save, steps
/// keep.
fn with_offset(
    problem: &Problem,
    offset: bool,
    losses: &[Loss],
    clip: f64,
    sampled: Option<Rate>,
    steps: u64,
) -> Result<(Gaussian, Option<Offset>, Event)> {
    if !(offset && offset::applies(problem)) {
        let (mechanism, event) = calibrated_steps(problem, losses, clip, sampled, steps, false)?;
        return Ok((mechanism, None, event));
    }
    // A step's noise over that of the whole, on everyone.
    let root = (steps as f64).sqrt() * sampled.map_or(1.0, |r| r.value());
    let dimension = problem.features * losses[0].outputs();
    let make = |nm: f64| -> Result<(Gaussian, Option<Offset>, Event)> {
        let mechanism = Gaussian::for_gradients(clip, nm)?;
        let offset = Offset::new(problem, false, nm / root)?;
        let mut events = offset.as_ref().map_or(Vec::new(), Offset::events);
        events.push(planned_step(&mechanism, dimension, sampled).repeated(steps));
        Ok((mechanism, offset, Event::Compose(events)))
    };
    let multiplier = calibrate(problem.target, |nm| make(nm).map(|m| m.2), problem.adjacency)?;
    make(multiplier)
}

/// Plans a descent on everyone, or on Poisson samples.
pub(super) fn plan(problem: &Problem, settings: NoisyGdSettings, sampling: Option<f64>) -> Result<Box<dyn Plan>> {
    problem.needs_delta(if sampling.is_some() { "noisy-sgd" } else { "noisy-gd" })?;
    let losses = super::head_losses(problem)?;
    let several = losses[0].outputs() > 1;
    let n = problem.all_rows();
    // Softmax derivatives are clipped where those of two classes would be: at sqrt(1/2), half of their bound.
    let bound = losses[0].lipschitz();
    let clip = settings.clip.unwrap_or(if several { 0.5 * bound } else { bound }).min(bound);
    // Derivatives are clipped on the integers, so that the bound of the loss is the clip.
    let losses: Vec<Loss> = losses.iter().map(|l| l.clipped(clip)).collect();
    let rows_clip = clip * if problem.rows_per_unit > 1 { (problem.rows_per_unit as f64).sqrt() } else { 1.0 };
    let sampled = sampling.map(Rate::new).transpose()?;
    let fraction = sampling.unwrap_or(1.0);
    // The rule was found for derivatives up to 1/2 and curvature up to 1/4. Steeper losses bring more noise, curved ones learn faster.
    let slower = match problem.task {
        Task::Classes(_) if !several => (0.5 / clip).min(1.0) * (0.25 / losses[0].smoothness().min(1.0)).sqrt().min(1.0),
        _ => 1.0,
    };
    let noise = problem.single_noise()? * (losses.len() as f64).sqrt();
    let wanted = (slower * n / (250.0 * noise)).min(LONGEST);
    let given = settings.learning_rate.is_some() || settings.momentum.is_some() || settings.steps.is_some();
    let short = problem.sparse && !several && sampled.is_none() && !given;
    let divide = n * fraction;
    let ridge = settings.ridge;
    let direction = Direction { nonconvex: settings.nonconvex, smoothing: settings.smoothing };
    let few = short.then(|| few_steps(wanted, losses[0].smoothness(), ridge / divide + direction.curvature())).flatten();
    let momentum = settings.momentum.unwrap_or(MOMENTUM);
    let usual_rate = wanted.min(stable_rate(momentum, losses[0].smoothness() + direction.curvature()));
    // What a step may not go, more of them go.
    let usual_steps = match (&few, sampled) {
        (Some(few), _) => few.len() as f64,
        (None, Some(_)) => (20.0 / fraction).clamp(100.0, 5000.0).round(),
        (None, None) if settings.learning_rate.is_some() => STEPS,
        (None, None) => (STEPS * wanted / usual_rate).clamp(STEPS, 4.0 * STEPS).round(),
    };
    let rate = settings.learning_rate.unwrap_or(usual_rate);
    let steps = settings.steps.unwrap_or(usual_steps as u64);
    let (mechanism, offset, event) = with_offset(problem, settings.offset, &losses, rows_clip, sampled, steps)?;
    if few.is_none() && rate * ridge / divide > 1.0 {
        return Err(Error::misuse(format!(
            "learning_rate {rate} times ridge {ridge} over {divide} rows is above 1 and diverges: give less of them"
        )));
    }
    let answer = if few.is_some() { Answer::Last } else { Answer::HalfAverage };
    let paces = few.unwrap_or_else(|| vec![(rate, momentum)]);
    let schedule = move |step: u64| paces[(step as usize - 1).min(paces.len() - 1)];
    let again = schedule.clone();
    Ok(Box::new(Steps {
        losses,
        mechanism,
        sampled,
        correlated: None,
        steps,
        rate: Box::new(move |step| schedule(step).0),
        momentum: Box::new(move |step| again(step).1),
        ridge,
        divide,
        answer,
        event,
        constraint: problem.constraint,
        features: problem.features,
        offset,
        direction,
        recursive: None,
    }))
}

impl Plan for Steps {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        // Owners would each round a part of the noise that is taken back.
        if self.correlated.is_some() { Needs::Totals } else { Needs::Sums }
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("steps", self.steps.to_string()),
            ("learning rate", rounded((self.rate)(1))),
            ("momentum", rounded((self.momentum)(1))),
            ("clip", rounded(self.losses[0].lipschitz())),
            ("noise of a step, standard deviation", rounded(self.mechanism.standard_deviation())),
        ];
        let last = ((self.rate)(self.steps), (self.momentum)(self.steps));
        if last.1 != (self.momentum)(1) {
            out.push(("learning rate and momentum at the end", format!("{}, {}", rounded(last.0), rounded(last.1))));
        }
        if let Some(rate) = self.sampled {
            out.push(("sampling rate", rounded(rate.value())));
        }
        out.extend(self.correlated.iter().flat_map(correlation::described));
        out.extend(self.correlated.as_ref().and_then(correlation::order));
        out.extend(self.offset.as_ref().map(Offset::describe));
        out.extend(self.direction.describe());
        out.extend(self.recursive.iter().flat_map(Recursive::describe));
        out
    }

    fn gradient_noise(&self) -> f64 {
        if let Some(run) = &self.correlated {
            return correlation::gradient_noise(run);
        }
        let fraction = self.sampled.map_or(1.0, |r| r.value());
        self.mechanism.standard_deviation() / fraction / (self.steps as f64).sqrt()
    }

    fn noise(&self) -> Noise {
        // Of curved directions only the steps of the second half count.
        let deviation = std::f64::consts::SQRT_2 * self.gradient_noise();
        let way = self.way();
        let batch = self.correlated.as_ref().map_or(1.0, |run| 1.0 / run.participation().separation as f64);
        let fraction = self.sampled.map_or(batch, |r| r.value());
        Noise::Gradient { deviation, ridge: (self.divide / way + self.ridge) / fraction }
    }

    fn steps(&self) -> u64 {
        self.steps * self.losses.len() as u64
    }

    fn keeps_keys(&self) -> bool {
        self.correlated.is_some()
    }

    fn follows_order(&self) -> bool {
        self.correlated.as_ref().is_some_and(CorrelatedGaussian::is_in_order)
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        self.descend(run, progress, None)
    }

    fn learn_kept(&self, run: &mut Run<'_>, progress: &dyn Fn(), kept: &mut dyn Checkpoints) -> Result<Learned> {
        Ok(self.learned(self.descend(run, progress, Some(kept))?))
    }
}

impl Steps {
    /// How far the answer goes in a direction without curvature, for a gradient of 1.
    fn way(&self) -> f64 {
        let (mut move_by, mut at, mut sum, mut counted) = (0.0, 0.0, 0.0, 0.0);
        for step in 1..=self.steps {
            move_by = (self.momentum)(step) * move_by + (self.rate)(step);
            at += move_by;
            let counts = match self.answer {
                Answer::HalfAverage => 2 * step > self.steps,
                Answer::Last => step == self.steps,
                Answer::Random => true,
            };
            if counts {
                sum += at;
                counted += 1.0;
            }
        }
        sum / counted
    }

    fn descents(&self) -> Descents<'_> {
        Descents {
            heads: self.losses.len(),
            steps: self.steps,
            dimension: self.features * self.losses[0].outputs(),
            offset: self.offset.as_ref(),
            correlated: self.correlated.is_some(),
        }
    }

    /// One descent after the other, or what is left of them.
    fn descend(&self, run: &mut Run<'_>, progress: &dyn Fn(), mut kept: Option<&mut dyn Checkpoints>) -> Result<Vec<f64>> {
        let mut at = match kept.as_mut().and_then(|kept| kept.found()) {
            Some(state) => Walk::go_on(&self.descents(), run, state)?,
            None => Walk::begin(self.descents().dimension, self.offset.as_ref().map(|o| o.find(run)).transpose()?),
        };
        while let Some(loss) = self.losses.get(at.head()) {
            let moved = at.start.as_ref().map(|s| s.loss(loss));
            self.one_descent(run, moved.as_ref().unwrap_or(loss), &mut at, progress, &mut kept)?;
            at.end();
        }
        Ok(at.answer())
    }

    fn one_descent(
        &self,
        run: &mut Run<'_>,
        loss: &Loss,
        at: &mut Walk,
        progress: &dyn Fn(),
        kept: &mut Option<&mut dyn Checkpoints>,
    ) -> Result<()> {
        let steps = if self.answer == Answer::Random { rounds::drawn(run, self.steps)? } else { self.steps };
        let dimension = self.features * loss.outputs();
        let mut estimate = self.recursive.as_ref().map(|r| r.begin(dimension));
        // Whoever goes on draws no key that was drawn before; batches of correlated noise are handed out.
        let everyone = match &self.correlated {
            None => Some(run.everyone()?),
            Some(correlated) => {
                run.begin_correlated(correlated)?;
                None
            }
        };
        let average = |sum: Vec<f64>| -> Vec<f64> { sum.iter().map(|g| g / self.divide).collect() };
        for step in at.step..steps {
            let w = &at.weights;
            let mut along = match (&everyone, &self.recursive, &mut estimate) {
                (None, _, _) => average(run.correlated_step(|batch, noise| batch.gradient_sum(noise, w, loss))?),
                (Some(everyone), Some(recursive), Some(estimate)) => {
                    recursive.step(run, everyone, (self.sampled, self.divide), loss, w, estimate)?
                }
                (Some(everyone), _, _) => average(run.at(&self.mechanism, |run, scale| {
                    let noise = run.draw(&scale, dimension)?;
                    let sum = match self.sampled {
                        None => everyone.gradient_sum(&noise, w, loss)?,
                        Some(rate) => run.poisson(rate)?.gradient_sum(&noise, w, loss)?,
                    };
                    run.release(noise, &sum)
                })?),
            };
            let (rate, momentum) = ((self.rate)(step + 1), (self.momentum)(step + 1));
            along.iter_mut().zip(&at.weights).for_each(|(a, w)| *a += self.ridge / self.divide * w);
            self.direction.turn(&mut along, &at.weights);
            for ((w, m), a) in at.weights.iter_mut().zip(&mut at.move_by).zip(&along) {
                *m = momentum * *m - rate * a;
                *w += *m;
            }
            self.constraint.project(&mut at.weights);
            if self.answer == Answer::HalfAverage && 2 * step >= steps - 1 {
                at.averaged += 1.0;
                at.average.iter_mut().zip(&at.weights).for_each(|(a, w)| *a += w);
            }
            at.step = step + 1;
            let behind = at.head() as u64 * self.steps + at.step;
            if let Some(kept) = kept.as_mut().filter(|kept| kept.due(behind)) {
                kept.keep(State { steps: behind, executed: run.executed()?, numbers: at.numbers() })?;
            }
            progress();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, schema};
    use super::{DISTANCE, MOMENTUM, few_steps, stable_rate};
    use crate::Schema;

    /// Sparse rows with little budget take few passes over the data; they took a hundred. More budget takes more.
    #[test]
    fn little_budget_takes_few_passes_over_sparse_rows() {
        let text = "[dataset]\nname = \"s\"\n[target]\nclasses = [\"-1\", \"1\"]\n[features]\nkind = \"sparse\"\ndimension = 2000\nrow_norm = 1.0\n";
        let schema = Schema::parse(text).unwrap();
        let steps = |epsilon: f64| -> f64 {
            let prepared = plan(&schema, "auto", "logistic", 10_000, epsilon, &[]);
            assert_eq!(prepared.method.name, "noisy-gd");
            prepared.plan.describe().iter().find(|p| p.0 == "steps").unwrap().1.parse().unwrap()
        };
        assert!(steps(0.1) <= 9.0 && steps(0.5) <= 20.0 && steps(0.1) < steps(0.5), "{} {}", steps(0.1), steps(0.5));
    }

    /// Chebyshev's steps go the way that they should in a flat direction, and leave no more than a fifth of any curvature beyond the low end; with a
    /// ridge too, and where plain steps would go too far.
    #[test]
    fn few_steps_go_their_way_and_stay() {
        for (wanted, smoothness, ridge) in
            [(0.01, 0.25, 0.0), (0.3, 0.25, 0.0), (0.9, 0.25, 0.01), (4.0, 0.25, 0.0), (9.0, 0.25, 0.0), (2.0, 2.0, 0.5)]
        {
            let paces = few_steps(wanted, smoothness, ridge).unwrap();
            let goes = |derivative: &dyn Fn(f64) -> f64| {
                let (mut w, mut by) = (0.0, 0.0);
                for (rate, momentum) in &paces {
                    by = momentum * by - rate * derivative(w);
                    w += by;
                }
                w
            };
            let way = 1.25 * wanted * DISTANCE * (wanted / stable_rate(MOMENTUM, smoothness)).max(0.35);
            let went = goes(&|_| -1.0);
            assert!((went / way - 1.0).abs() < 1e-6, "{wanted} {smoothness} {ridge}: {went} of {way}");
            // A direction of curvature h has its minimum at 1.
            let left = |h: f64| (1.0 - goes(&|w| h * (w - 1.0))).abs();
            let top = smoothness + ridge;
            let low = (12.0 / way).min(top);
            let worst = (0..=400).map(|i| left(low + (top - low) * f64::from(i) / 400.0)).fold(0.0, f64::max);
            assert!(worst <= 0.2 || way * top < 12.0, "{wanted} {smoothness} {ridge}: {worst} is left");
        }
        assert!(few_steps(32.0, 0.25, 0.0).is_none());
    }

    /// At the longest step that a plan takes, momentum damps a direction of the largest curvature: for softmax it did not, and the
    /// loss rose with epsilon.
    #[test]
    fn steps_are_stable_by_rule() {
        for (loss, target) in [
            ("softmax", "classes = [\"a\", \"b\", \"c\"]"),
            ("softmax", "classes = [\"a\", \"b\", \"c\"]\nweights = [1.0, 5.0, 1.0]"),
            ("logistic", "classes = [\"a\", \"b\"]"),
            ("huber-svm", "classes = [\"a\", \"b\"]"),
            ("squared", "bounds = [-1, 1]"),
            ("quantile", "bounds = [-1, 1]"),
            ("poisson", "bounds = [0, 1]"),
        ] {
            for (epsilon, set) in
                [(0.1, &[][..]), (4.0, &[]), (50.0, &[]), (50.0, &[("momentum", 0.0)]), (50.0, &[("momentum", 0.99)])]
            {
                let prepared = plan(&schema(4, "", target), "noisy-gd", loss, 1_000_000, epsilon, set);
                let number =
                    |key: &str| -> f64 { prepared.plan.describe().iter().find(|p| p.0 == key).unwrap().1.parse().unwrap() };
                let curvature = number("learning rate") * prepared.problem.build_loss(1).unwrap().smoothness();
                let (momentum, steps) = (number("momentum"), if set.is_empty() { 100 } else { 2000 });
                let (mut w, mut by) = (1.0, 0.0);
                for _ in 0..steps {
                    by = momentum * by - curvature * w;
                    w += by;
                }
                assert!(w.abs() < 0.1 || curvature < 1e-2, "{loss} {epsilon} {set:?}: {w} after {steps} steps");
            }
        }
    }
}
