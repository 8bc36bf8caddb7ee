//! Privacy loss distributions with certified bounds: any composition of sampled and plain mechanisms, both directions.

use super::adjacency::Adjacency;
use super::compose::{Composed, Question, compose, saddle};
use super::discretise::{Focus, Masses, NUDGE, chords, grid, spread, tangents};
use super::event::{Event, Sampling, Step};
use super::gdp::{discrete_delta, discrete_epsilon, discrete_gaussian_gap, mu_of};
use super::objective::Tilted;
use super::profile::{
    Amplified, BoundedRange, DiscreteShift, LaplaceShift, Profile, ReplacedMixture, Response, Reversed, Shift, Symmetrised,
};
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};

/// Relative width aimed at between the two bounds on epsilon.
const TARGET_GAP: f64 = 2e-4;
/// The same where a transform would become long.
const ENOUGH: f64 = 6e-4;
/// Slots of a transform that takes less than a millisecond, and of one that takes tens of them.
const COMFORTABLE: f64 = 24_000.0;
const LONG: f64 = 100_000.0;
/// Slots of all transforms together after which no finer grid is tried.
const WORK: usize = 1 << 20;
/// Relative width aimed at between the two bounds on delta.
const TARGET_GAP_DELTA: f64 = 2e-3;

/// One mechanism and how often it happens.
pub(super) struct Component {
    profile: Box<dyn Profile>,
    count: u64,
}

/// Certified bounds for one direction.
fn direction(components: &[(&dyn Profile, u64)], question: Question, lower_too: bool) -> Bound {
    direction_keeping(components, question, lower_too, &mut Vec::new())
}

/// The same; the pessimistic laws that were composed on the way are kept for other questions.
fn direction_keeping(components: &[(&dyn Profile, u64)], question: Question, lower_too: bool, kept: &mut Vec<Composed>) -> Bound {
    let steps: f64 = components.iter().map(|c| c.1 as f64).sum();
    // Losses above the last grid point count as infinite: together far below the delta in question.
    let tail = match question {
        Question::Epsilon { delta } => 1e-6 * delta / steps,
        Question::Delta { .. } => 1e-18 / steps,
    };
    let square: f64 = components.iter().map(|(p, c)| *c as f64 * spread(*p).powi(2)).sum();
    let mut width = (square / steps).sqrt() / 24.0;
    if !(width > 1e-15 && width < 1e6) {
        return Bound { lower: 0.0, upper: f64::INFINITY };
    }
    let mut focus = vec![Focus::default(); components.len()];
    let mut best = Bound { lower: 0.0, upper: f64::INFINITY };
    let atom = components.iter().filter_map(|(p, c)| p.atom().map(|a| (*c, a))).max_by_key(|x| x.0).map(|x| x.1);
    let (mut slots, mut coarser) = (0, false);
    for round in 0..12 {
        if let Some(atom) = atom {
            width = atom / (atom / width).ceil();
        }
        let points: Vec<Vec<i64>> = components.iter().zip(&focus).map(|((p, _), f)| grid(*p, width, f, tail)).collect();
        let worse: Vec<(Masses, u64)> = components.iter().zip(&points).map(|((p, c), g)| (chords(*p, g, width), *c)).collect();
        // Losses whose exponentials do not fit in a double: another accountant must answer.
        let usable = |m: &Masses| {
            let total: f64 = m.mass.iter().sum::<f64>() + m.infinite;
            m.index.last().is_some_and(|k| width * (*k as f64) < 600.0) && (total - 1.0).abs() < 1e-6
        };
        if !worse.iter().all(|(m, _)| usable(m)) {
            break;
        }
        let widest = worse.iter().flat_map(|(m, _)| [m.index[0], m.index[m.index.len() - 1]]).map(i64::unsigned_abs).max();
        let largest = (600.0 / (width * widest.unwrap_or(1).max(1) as f64)).max(1e-3);
        let tilt = saddle(&worse, width, question, largest);
        let theta = tilt.theta;
        focus = worse.iter().map(|(m, _)| Focus { theta, log_moment: m.cumulant(theta, width).0 }).collect();
        // Second-order error of the grid: the variance grows by width^2/6 a step above and shrinks by half of it below.
        let error = 0.125 * tilt.slope * steps * width * width;
        let aim = match question {
            Question::Epsilon { .. } => TARGET_GAP * tilt.epsilon.max(1e-7),
            Question::Delta { .. } => TARGET_GAP_DELTA / tilt.slope,
        };
        // For a comparison a coarse bound is enough.
        let aim = if lower_too { aim } else { 30.0 * aim };
        if round == 0 || (error > 16.0 * aim && round < 6 && !coarser) {
            let tight = width * (aim / error).sqrt();
            // Short transforms cost nothing, so they may as well be finer; long ones stop at a gap that is good enough.
            let comfortable = if lower_too { tilt.length / COMFORTABLE } else { f64::INFINITY };
            let enough = (width * (ENOUGH / TARGET_GAP * aim / error).sqrt()).min(tilt.length / LONG);
            width = tight.min(comfortable).max(enough).max(width * 1e-3);
            continue;
        }
        let Some(above) = compose(&worse, &tilt, width) else {
            // Too long a transform: a coarser grid still gives a bound.
            if best.upper.is_finite() || round > 9 {
                break;
            }
            (width, coarser) = (3.0 * width, true);
            continue;
        };
        let upper = above.answer(question, true);
        let lower = if lower_too {
            let better: Vec<(Masses, u64)> =
                components.iter().zip(&points).map(|((p, c), g)| (tangents(*p, g, width, theta), *c)).collect();
            // Its losses are lower than the grid says by the nudge of every step.
            let empty = better.iter().any(|(m, _)| m.index.is_empty());
            match question {
                _ if empty => 0.0,
                Question::Epsilon { .. } => {
                    compose(&better, &tilt, width).map_or(0.0, |c| (c.answer(question, false) - steps * NUDGE).max(0.0))
                }
                Question::Delta { epsilon } => {
                    let question = Question::Delta { epsilon: epsilon + steps * NUDGE };
                    compose(&better, &tilt, width).map_or(0.0, |c| c.answer(question, false))
                }
            }
        } else {
            0.0
        };
        best = Bound { lower: best.lower.max(lower), upper: best.upper.min(upper) };
        let length = above.mass.len();
        kept.push(above);
        if !lower_too {
            break;
        }
        let gap = (best.upper - best.lower) / best.upper;
        let wanted = match question {
            Question::Epsilon { .. } if length as f64 > 0.7 * LONG => ENOUGH,
            Question::Epsilon { .. } => TARGET_GAP,
            Question::Delta { .. } => TARGET_GAP_DELTA,
        };
        slots += 2 * length + 20 * points.iter().map(Vec::len).sum::<usize>();
        if !(gap > 2.0 * wanted) || slots > WORK {
            break;
        }
        width *= (1.5 * wanted / gap).sqrt().clamp(0.1, 0.8);
    }
    best
}

/// A profile for each step, with plain Gaussians merged into one.
pub(super) fn components(steps: &[Step<'_>], adjacency: Adjacency) -> Result<Vec<Component>> {
    let mut out = Vec::new();
    let mut square = 0.0;
    for step in steps {
        if let Event::ObjectivePerturbation(o) = step.leaf {
            let s = 1.0 / o.output_noise_multiplier;
            square += s * s * step.count as f64;
        }
        match profile(step, adjacency)? {
            Some(profile) => out.push(Component { profile, count: step.count }),
            None => square += mu_of(step.leaf, adjacency).map_or(f64::INFINITY, |mu| mu * mu * step.count as f64),
        }
    }
    if square > 0.0 {
        out.push(Component { profile: Box::new(Shift { mu: square.sqrt() * (1.0 + 1e-15) }), count: 1 });
    }
    Ok(out)
}

/// The dominating pair of one step; none for a plain Gaussian.
fn profile(step: &Step<'_>, adjacency: Adjacency) -> Result<Option<Box<dyn Profile>>> {
    let replaces = adjacency.replaces();
    fn sampled<B: Profile + 'static>(sampling: Sampling, replaces: bool, absent: B, replaced: B) -> Box<dyn Profile> {
        match sampling {
            Sampling::All => Box::new(if replaces { replaced } else { absent }),
            Sampling::Poisson { rate } if !replaces => Box::new(Amplified { base: absent, rate }),
            // With a fixed size another record takes the place of the one that is absent, so the replace-one pair counts
            // under every adjacency; for Poisson samples under replace-one, joint convexity gives the same curve.
            Sampling::Poisson { rate } | Sampling::FixedSize { rate } => {
                Box::new(Symmetrised(Amplified { base: replaced, rate }))
            }
        }
    }
    let shift = |adjacency| Shift { mu: mu_of(step.leaf, adjacency).unwrap_or(f64::INFINITY) };
    let pure = |adjacency| super::pure::epsilon_of(step.leaf, adjacency).unwrap_or(f64::INFINITY);
    Ok(Some(match (step.leaf, step.sampling) {
        (Event::DiscreteGaussian { sigma, reach, replace_reach, dimension: 1 }, sampling)
            if *sigma <= DiscreteShift::LARGEST && replace_reach / sigma < 64 =>
        {
            sampled(sampling, replaces, DiscreteShift::new(*sigma, *reach), DiscreteShift::new(*sigma, *replace_reach))
        }
        (Event::Gaussian { .. } | Event::GaussianDp { .. } | Event::DiscreteGaussian { .. }, Sampling::All) => return Ok(None),
        (Event::Gaussian { .. } | Event::DiscreteGaussian { .. }, Sampling::Poisson { rate }) if replaces => {
            let noise = 1.0 / mu_of(step.leaf, Adjacency::ZeroOut).unwrap_or(f64::INFINITY);
            let factor = mu_of(step.leaf, Adjacency::ReplaceOne).unwrap_or(f64::INFINITY) * noise;
            let factor = if (factor - 2.0).abs() < 1e-12 { 2.0 } else { factor };
            let mixture = ReplacedMixture { rate, noise, factor };
            if factor == 2.0 { Box::new(mixture) } else { Box::new(Symmetrised(mixture)) }
        }
        (Event::Gaussian { .. } | Event::GaussianDp { .. } | Event::DiscreteGaussian { .. }, sampling) => {
            sampled(sampling, replaces, shift(Adjacency::ZeroOut), shift(Adjacency::ReplaceOne))
        }
        (Event::Laplace { .. } | Event::DiscreteLaplace { .. }, sampling) => sampled(
            sampling,
            replaces,
            LaplaceShift { epsilon: pure(Adjacency::ZeroOut) },
            LaplaceShift { epsilon: pure(Adjacency::ReplaceOne) },
        ),
        (Event::Pure { .. }, sampling) => sampled(
            sampling,
            replaces,
            Response { epsilon: pure(Adjacency::ZeroOut), delta: 0.0 },
            Response { epsilon: pure(Adjacency::ReplaceOne), delta: 0.0 },
        ),
        (Event::Approx { epsilon, delta }, sampling) => sampled(
            sampling,
            replaces,
            Response { epsilon: *epsilon, delta: *delta },
            // Two steps of the group: (2 epsilon, (1 + e^epsilon) delta).
            Response { epsilon: 2.0 * epsilon, delta: ((1.0 + epsilon.exp()) * delta).min(1.0) },
        ),
        (Event::Exponential { epsilon, replace_factor }, sampling) => {
            sampled(sampling, replaces, BoundedRange { range: *epsilon }, BoundedRange { range: epsilon * replace_factor })
        }
        (Event::ObjectivePerturbation(o), Sampling::All) => Box::new(Tilted::new(o, adjacency)),
        (Event::ObjectivePerturbation(_), _) => {
            return Err(Error::unsupported("objective perturbation on a sample", "run it on all records"));
        }
        (Event::ZeroConcentrated { .. } | Event::Budget { .. } | Event::Either(_) | Event::Select { .. }, _) => {
            return Err(Error::unsupported("a filter or a selection in a loss distribution", "use the rdp accountant"));
        }
        (Event::NotPrivate { why }, _) => {
            return Err(Error::unsupported(
                format!("an event that is not private ({why})"),
                "remove it: its epsilon is infinite",
            ));
        }
        (
            Event::Poisson { .. }
            | Event::FixedSize { .. }
            | Event::Shuffled { .. }
            | Event::Repeat { .. }
            | Event::AtMost { .. }
            | Event::Compose(_),
            _,
        ) => return Err(Error::unsupported("a nested event", "flatten it")),
    }))
}

/// Composition of loss distributions, both directions of the whole.
pub struct LossDistributionAccountant;

impl LossDistributionAccountant {
    fn ask(&self, components: &[Component], question: Question) -> Result<Bound> {
        if let [only] = components
            && only.count == 1
        {
            return Ok(alone(only.profile.as_ref(), question));
        }
        let forward: Vec<(&dyn Profile, u64)> = components.iter().map(|c| (c.profile.as_ref(), c.count)).collect();
        if components.iter().all(|c| c.profile.symmetric()) {
            return Ok(direction(&forward, question, true));
        }
        let reversals: Vec<Reversed<'_>> = components.iter().map(|c| Reversed(c.profile.as_ref())).collect();
        let backward: Vec<(&dyn Profile, u64)> = components
            .iter()
            .zip(&reversals)
            .map(|(c, r)| (if c.profile.symmetric() { c.profile.as_ref() } else { r as &dyn Profile }, c.count))
            .collect();
        // A lower bound on either direction bounds the maximum; the direction with the larger curve gives the better one.
        let one = direction(&forward, question, true);
        let other = direction(&backward, question, false);
        if other.upper <= one.upper {
            return Ok(one);
        }
        let other = direction(&backward, question, true);
        Ok(Bound { lower: one.lower.max(other.lower), upper: one.upper.max(other.upper) })
    }
}

/// Laws composed for some deltas, one list for each direction; none for a single mechanism, which needs no grid.
pub(super) fn laws(components: &[Component], deltas: &[f64]) -> Option<Vec<Vec<Composed>>> {
    if let [only] = components
        && only.count == 1
    {
        return None;
    }
    let forward: Vec<(&dyn Profile, u64)> = components.iter().map(|c| (c.profile.as_ref(), c.count)).collect();
    let reversals: Vec<Reversed<'_>> = components.iter().map(|c| Reversed(c.profile.as_ref())).collect();
    let mut directions = vec![forward];
    if !components.iter().all(|c| c.profile.symmetric()) {
        let turned = components.iter().zip(&reversals);
        directions.push(
            turned.map(|(c, r)| (if c.profile.symmetric() { c.profile.as_ref() } else { r as &dyn Profile }, c.count)).collect(),
        );
    }
    let compose = |direction: &Vec<(&dyn Profile, u64)>| {
        let mut kept = Vec::new();
        for delta in deltas {
            direction_keeping(direction, Question::Epsilon { delta: *delta }, true, &mut kept);
        }
        kept
    };
    Some(directions.iter().map(compose).collect())
}

/// A single mechanism needs no grid.
fn alone(profile: &dyn Profile, question: Question) -> Bound {
    let curve = |e: f64| {
        let forward = profile.delta(e);
        if profile.symmetric() { forward } else { forward.max(Reversed(profile).delta(e)) }
    };
    // Cancellation in P - e^(e + ln Q) costs at most this.
    let slack = |e: f64| {
        let (p, q) = profile.above(e);
        p * (1e-14 + 1e-15 * (e.abs() + q.max(f64::MIN_POSITIVE).ln().abs()))
    };
    match question {
        Question::Delta { epsilon } => {
            let (value, slack) = (curve(epsilon), slack(epsilon));
            Bound { lower: (value - slack).max(0.0), upper: (value + slack).min(1.0) }
        }
        Question::Epsilon { delta } => {
            let find = |sign: f64| {
                if curve(0.0) + sign * slack(0.0) <= delta {
                    return 0.0;
                }
                let mut high = 1.0;
                while curve(high) + sign * slack(high) > delta {
                    high *= 2.0;
                    if high > 1e300 {
                        return f64::INFINITY;
                    }
                }
                super::special::smallest(0.0, high, |e| curve(e) + sign * slack(e) <= delta)
            };
            Bound { lower: find(-1.0), upper: find(1.0) }
        }
    }
}

/// Pointwise log ratio between discrete Laplace noise and rounded continuous noise, over the whole transcript: at most
/// 1/(2 scale) a coordinate.
pub(super) fn discrete_laplace_gap(steps: &[Step<'_>]) -> f64 {
    let mut total = 0.0;
    for step in steps {
        if let Event::DiscreteLaplace { scale, dimension, .. } = step.leaf {
            total += 0.5 * step.count as f64 * *dimension as f64 / *scale as f64;
        }
    }
    total * (1.0 + 1e-12)
}

/// Discrete Gaussian steps that are not accounted by their own probabilities.
pub(super) fn approximated<'a>(steps: &[Step<'a>]) -> Vec<Step<'a>> {
    let own = |s: &Step<'_>| {
        matches!(s.leaf, Event::DiscreteGaussian { sigma, dimension: 1, replace_reach, .. }
            if *sigma <= DiscreteShift::LARGEST && replace_reach / sigma < 64)
    };
    steps.iter().filter(|s| !own(s)).copied().collect()
}

impl Accountant for LossDistributionAccountant {
    fn name(&self) -> &'static str {
        "pld"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        check_delta(delta, false)?;
        let steps = event.steps(adjacency)?;
        let components = components(&steps, adjacency)?;
        if components.is_empty() {
            return Ok(Bound { lower: 0.0, upper: 0.0 });
        }
        let ratio = discrete_laplace_gap(&steps);
        // delta <= e^ratio delta_continuous(epsilon - 2 ratio), and the same the other way.
        let bound = discrete_epsilon(delta * (-ratio).exp(), &approximated(&steps), |d| {
            self.ask(&components, Question::Epsilon { delta: d })
        })?;
        let lower = if ratio == 0.0 { bound.lower } else { 0.0 };
        Ok(Bound { lower, upper: bound.upper + 2.0 * ratio })
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let steps = event.steps(adjacency)?;
        let components = components(&steps, adjacency)?;
        if components.is_empty() {
            return Ok(Bound { lower: 0.0, upper: 0.0 });
        }
        let ratio = discrete_laplace_gap(&steps);
        let steps = approximated(&steps);
        // Below zero the curve is at most its value at zero plus 1 - e^epsilon.
        let ask = |e: f64| -> Result<Bound> {
            let shifted = e - 2.0 * ratio;
            let Bound { lower, upper } = self.ask(&components, Question::Delta { epsilon: shifted.max(0.0) })?;
            Ok(Bound { lower, upper: upper - shifted.min(0.0).exp_m1() })
        };
        let bound = ask(epsilon)?;
        let gap = (1.0 + epsilon.exp()) * discrete_gaussian_gap(&steps);
        let lower = if ratio == 0.0 { bound.lower - gap } else { 0.0 };
        let continuous = |e: f64| ratio.exp() * if e == epsilon { bound.upper } else { ask(e).map_or(1.0, |b| b.upper) };
        Ok(Bound { lower: lower.max(0.0), upper: discrete_delta(epsilon, &steps, continuous) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::gdp::{gaussian_delta, gaussian_epsilon};
    use super::*;

    /// The grid, the tilt and the transform against the one case whose composition is known exactly.
    #[test]
    fn bounds_enclose_composed_gaussians() {
        for (mu, count) in [(1.0, 2u64), (0.3, 7), (0.1, 100), (0.02, 3000), (0.001, 400_000), (2.0, 3)] {
            let shift = Shift { mu };
            let total = mu * (count as f64).sqrt();
            for delta in [0.3, 1e-3, 1e-6, 1e-10, 1e-14] {
                let truth = gaussian_epsilon(total, delta).upper;
                let bound = direction(&[(&shift, count)], Question::Epsilon { delta }, true);
                assert!(
                    bound.lower <= truth * (1.0 + 1e-12) && bound.upper >= truth * (1.0 - 1e-12),
                    "{mu} {count} {delta}: {bound:?} {truth}"
                );
                assert!(bound.upper - bound.lower <= 2e-3 * truth + 1e-9, "{mu} {count} {delta}: {bound:?} {truth}");
            }
            for epsilon in [0.01, 0.5, 2.0] {
                let truth = gaussian_delta(epsilon, total);
                let bound = direction(&[(&shift, count)], Question::Delta { epsilon }, true);
                assert!(bound.lower <= truth.upper && bound.upper >= truth.lower, "{mu} {count} {epsilon}: {bound:?} {truth:?}");
                assert!(truth.upper < 1e-30 || bound.upper < 1.01 * truth.upper, "{mu} {count} {epsilon}: {bound:?} {truth:?}");
            }
        }
    }

    /// Chords lie above the curve, tangents below, everywhere and for every kind of mechanism.
    #[test]
    fn discretised_curves_enclose_the_curve() {
        let profiles: [(&str, Box<dyn Profile>); 8] = [
            ("gaussian", Box::new(Shift { mu: 0.5 })),
            ("laplace", Box::new(LaplaceShift { epsilon: 0.7 })),
            ("response", Box::new(Response { epsilon: 0.4, delta: 1e-4 })),
            ("range", Box::new(BoundedRange { range: 0.8 })),
            ("poisson", Box::new(Amplified { base: Shift { mu: 1.2 }, rate: 0.05 })),
            ("fixed", Box::new(Symmetrised(Amplified { base: Shift { mu: 1.2 }, rate: 0.05 }))),
            ("replaced", Box::new(ReplacedMixture { rate: 0.05, noise: 0.8, factor: 2.0 })),
            ("discrete", Box::new(DiscreteShift::new(3, 2))),
        ];
        let curve = |m: &Masses, width: f64, e: f64| {
            let above = m.index.iter().zip(&m.mass).map(|(k, p)| (width * *k as f64, p)).filter(|l| l.0 > e);
            m.infinite + above.map(|(l, p)| p * -(e - l).exp_m1()).sum::<f64>()
        };
        for (name, profile) in &profiles {
            for reversed in [false, true] {
                let back = Reversed(profile.as_ref());
                let p: &dyn Profile = if reversed { &back } else { profile.as_ref() };
                for width in [0.3, 0.05, 0.0037] {
                    let points = grid(p, width, &Focus { theta: 1.0, ..Focus::default() }, 1e-13);
                    let (worse, better) = (chords(p, &points, width), tangents(p, &points, width, 1.0));
                    for i in -300..300 {
                        let e = 0.0101 * f64::from(i);
                        let (low, truth, high) = (curve(&better, width, e), p.delta(e), curve(&worse, width, e));
                        assert!(
                            low <= truth + 1e-12 && truth <= high + 1e-12,
                            "{name} {reversed} {width} at {e}: {low} {truth} {high}"
                        );
                    }
                }
            }
        }
    }
}
