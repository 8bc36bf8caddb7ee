//! Privacy loss distributions with certified bounds: any composition of sampled and plain mechanisms, both directions.
//!
//! Upper bounds compose a pair that dominates each step. Lower bounds compose a pair that some single mechanism attains at every epsilon at
//! once: a pointwise supremum over mechanisms (bounded range, fixed-size samples, a bound on the loss) dominates, but nobody attains it.

use super::adjacency::Adjacency;
use super::atoms::Atoms;
use super::checked::{at_least, larger, probability_at_least, probability_at_most};
use super::compose::{Beside, Composed, Question};
use super::direction::{Effort, Listed, direction, keep};
use super::discretise::spread;
use super::event::{Event, Sampling, Step};
use super::gdp::{discrete_delta, discrete_epsilon, discrete_gaussian_gap, gap_cost, mu_of, rounding_loss};
use super::objective::PerturbedObjective;
use super::profile::{
    Amplified, BoundedRange, DiscreteShift, LaplaceShift, Profile, ReplacedMixture, Response, Reversed, Shift, Symmetrised,
};
use super::range::{BELOW, FINE, QUICK, WORK, adaptive, reached_delta, reached_epsilon};
use super::table::Table;
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};

/// What some mechanism attains of a dominating pair.
enum Attained {
    /// All of it, at every epsilon.
    Same,
    /// Each epsilon by a mechanism of its own; this pair, so often, by one mechanism for all of them.
    Pointwise(Box<dyn Profile>, u64),
    /// This pair, so often.
    Other(Box<dyn Profile>, u64),
    /// So many choices of this range, each made knowing all losses so far if they are alone, and by the middle of the range otherwise.
    Choices(f64, u64),
    /// Nothing that we know.
    Nothing,
}

/// One mechanism and how often it happens.
pub(super) struct Component {
    profile: Box<dyn Profile>,
    count: u64,
    attained: Attained,
}

/// All steps: components, plain Gaussians merged into one shift, responses merged into one list of losses.
pub(super) struct Parts {
    components: Vec<Component>,
    mu: f64,
    atoms: Option<Atoms>,
}

/// Most losses that are kept off the grid beside a Gaussian shift that is off the grid too: reading it once takes long.
const FEW: usize = 32;

/// A profile for each step.
pub(super) fn parts(steps: &[Step<'_>], adjacency: Adjacency, work: f64) -> Result<Parts> {
    let mut components = Vec::new();
    let (mut square, mut rho) = (0.0, 0.0);
    let mut choices: Vec<(f64, u64)> = Vec::new();
    let mut atoms: Option<Atoms> = None;
    for step in steps {
        let replaces = adjacency.replaces();
        match (step.leaf, step.sampling) {
            (Event::ObjectivePerturbation(o), Sampling::All) => {
                let s = 1.0 / o.output_noise_multiplier;
                square += s * s * step.count as f64;
                let profile = Box::new(PerturbedObjective::prepared(o, adjacency));
                components.push(Component { profile, count: step.count, attained: Attained::Nothing });
            }
            (Event::Exponential { epsilon, replace_factor }, Sampling::All) => {
                let range = if replaces { epsilon * replace_factor } else { *epsilon };
                match choices.iter_mut().find(|c| c.0 == range) {
                    Some(same) => same.1 = same.1.saturating_add(step.count),
                    None => choices.push((range, step.count)),
                }
            }
            (Event::ZeroConcentrated { .. } | Event::Budget { .. }, Sampling::All) => {
                rho += super::zcdp::rho_of(step, adjacency).unwrap_or(f64::INFINITY);
            }
            _ if plain_gaussian(step, adjacency) => {
                square += mu_of(step.leaf, adjacency).map_or(f64::INFINITY, |mu| mu * mu * step.count as f64);
            }
            (Event::Pure { .. } | Event::Approx { .. }, Sampling::All)
                if let Some(all) = Atoms::responses(&response(step.leaf, adjacency), step.count) =>
            {
                match atoms.as_ref().map(|before| before.with(&all)) {
                    None => atoms = Some(all),
                    Some(Some(both)) => atoms = Some(both),
                    Some(None) => components.push(Component { profile: Box::new(all), count: 1, attained: Attained::Same }),
                }
            }
            _ => {
                let (profile, attained) = pair(step, adjacency)?;
                components.push(Component { profile, count: step.count, attained });
            }
        }
    }
    for (range, count) in choices {
        let once = || Box::new(BoundedRange { range });
        components.push(match (count, if count > 1 { adaptive(range, count, work) } else { None }) {
            (1, _) => Component { profile: once(), count: 1, attained: Attained::Pointwise(middle_choice(range), 1) },
            (_, Some(table)) => Component { profile: Box::new(table), count: 1, attained: Attained::Choices(range, count) },
            (_, None) => Component { profile: once(), count, attained: Attained::Choices(range, count) },
        });
    }
    if rho > 0.0 {
        let unusable =
            || Error::unsupported("so much zero-concentrated privacy in a loss distribution", "use the rdp accountant");
        let table = Table::concentrated(rho * (1.0 + 1e-14)).ok_or_else(unusable)?;
        components.push(Component { profile: Box::new(table), count: 1, attained: Attained::Nothing });
    }
    Ok(Parts { components, mu: square.sqrt() * (1.0 + 1e-15), atoms })
}

/// The pair of a choice whose losses are +-range/2.
fn middle_choice(range: f64) -> Box<dyn Profile> {
    Box::new(Response { epsilon: 0.5 * range, delta: 0.0 })
}

/// Steps of exact discrete Gaussian noise that are accounted by its own probabilities: one coordinate, or shifts so short that they
/// cannot be divided among several, integers as they are.
fn own_probabilities(leaf: &Event, adjacency: Adjacency) -> bool {
    let Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, dimension } = leaf else { return false };
    let moved = if adjacency.replaces() { *replace_sensitivity } else { *sensitivity };
    *sigma <= DiscreteShift::LARGEST && replace_sensitivity / sigma < 64 && (*dimension == 1 || moved == 1)
}

fn plain_gaussian(step: &Step<'_>, adjacency: Adjacency) -> bool {
    matches!(step.leaf, Event::Gaussian { .. } | Event::GaussianDp { .. } | Event::DiscreteGaussian { .. })
        && step.sampling == Sampling::All
        && !own_probabilities(step.leaf, adjacency)
}

/// A pair with its sampling, and what is attained of it. `of` makes the pair that a record's presence or its replacement makes.
fn sampled<B: Profile + 'static>(
    sampling: Sampling,
    adjacency: Adjacency,
    of: impl Fn(Adjacency) -> B,
) -> (Box<dyn Profile>, Attained) {
    let (absent, replaced) = (Adjacency::ZeroOut, Adjacency::ReplaceOne);
    match sampling {
        Sampling::All => (Box::new(of(adjacency)), Attained::Same),
        Sampling::Poisson { rate } if !adjacency.replaces() => (Box::new(Amplified { base: of(absent), rate }), Attained::Same),
        // With a fixed size another record takes the place of the one that is absent, so the replace-one pair counts under every adjacency;
        // for Poisson samples under replace-one, joint convexity gives the same curve. The adversary may pick the direction anew at each
        // step. Attained is one direction: of the replace-one pair where all other records stand at the far end, otherwise of a record that
        // is replaced by one that contributes nothing.
        Sampling::Poisson { rate } | Sampling::FixedSize { rate } => {
            let far = matches!(sampling, Sampling::FixedSize { .. }) && adjacency.replaces();
            let worse = Box::new(Symmetrised(Amplified { base: of(replaced), rate }));
            let one = Box::new(Amplified { base: of(if far { replaced } else { absent }), rate });
            (worse, if far { Attained::Pointwise(one, 1) } else { Attained::Other(one, 1) })
        }
    }
}

/// The worst mechanism with pure or approximate privacy.
fn response(leaf: &Event, adjacency: Adjacency) -> Response {
    match leaf {
        // Two steps of the group: (2 epsilon, (1 + e^epsilon) delta).
        Event::Approx { epsilon, delta } if adjacency.replaces() => {
            Response { epsilon: 2.0 * epsilon, delta: probability_at_most(gap_cost(*epsilon, *delta)) }
        }
        Event::Approx { epsilon, delta } => Response { epsilon: *epsilon, delta: *delta },
        _ => Response { epsilon: super::pure::epsilon_of(leaf, adjacency).unwrap_or(f64::INFINITY), delta: 0.0 },
    }
}

/// The dominating pair of one step, and what is attained of it.
fn pair(step: &Step<'_>, adjacency: Adjacency) -> Result<(Box<dyn Profile>, Attained)> {
    let pure = |a| super::pure::epsilon_of(step.leaf, a).unwrap_or(f64::INFINITY);
    Ok(match (step.leaf, step.sampling) {
        (Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, .. }, sampling)
            if own_probabilities(step.leaf, adjacency) =>
        {
            sampled(sampling, adjacency, |a| {
                DiscreteShift::new(*sigma, if a.replaces() { *replace_sensitivity } else { *sensitivity })
            })
        }
        (Event::Gaussian { .. } | Event::DiscreteGaussian { .. }, Sampling::Poisson { rate }) if adjacency.replaces() => {
            let noise = 1.0 / mu_of(step.leaf, Adjacency::ZeroOut).unwrap_or(f64::INFINITY);
            let factor = mu_of(step.leaf, Adjacency::ReplaceOne).unwrap_or(f64::INFINITY) * noise;
            let mixture = |factor| ReplacedMixture { rate, noise, factor };
            if (factor - 2.0).abs() < 1e-12 {
                (Box::new(mixture(2.0)), Attained::Same)
            } else if (factor - 1.0).abs() < 1e-12 {
                let shift = || Amplified { base: Shift { mu: factor / noise }, rate };
                (Box::new(Symmetrised(shift())), Attained::Pointwise(Box::new(shift()), 1))
            } else {
                (Box::new(Symmetrised(mixture(factor))), Attained::Pointwise(Box::new(mixture(factor)), 1))
            }
        }
        (Event::Gaussian { .. } | Event::GaussianDp { .. } | Event::DiscreteGaussian { .. }, sampling) => {
            sampled(sampling, adjacency, |a| Shift { mu: mu_of(step.leaf, a).unwrap_or(f64::INFINITY) })
        }
        (Event::Laplace { .. } | Event::DiscreteLaplace { .. }, sampling) => {
            sampled(sampling, adjacency, |a| LaplaceShift { epsilon: pure(a) })
        }
        (Event::Pure { .. } | Event::Approx { .. }, sampling) => sampled(sampling, adjacency, |a| response(step.leaf, a)),
        (Event::Exponential { epsilon, replace_factor }, sampling) => {
            let range = |a: Adjacency| if a.replaces() { epsilon * replace_factor } else { *epsilon };
            let (worse, _) = sampled(sampling, adjacency, |a| BoundedRange { range: range(a) });
            let attained = match sampled(sampling, adjacency, |a| Response { epsilon: 0.5 * range(a), delta: 0.0 }) {
                (middle, Attained::Same) => Attained::Pointwise(middle, 1),
                (_, attained) => attained,
            };
            (worse, attained)
        }
        (Event::ObjectivePerturbation(_), _) => {
            return Err(Error::unsupported("objective perturbation on a sample", "run it on all records"));
        }
        (Event::ZeroConcentrated { .. } | Event::Budget { .. }, _) => {
            return Err(Error::unsupported("zero-concentrated privacy on a sample", "describe the mechanism itself"));
        }
        (Event::Either(_) | Event::Select { .. }, _) => {
            return Err(Error::unsupported("a selection in a loss distribution", "use the rdp accountant"));
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
    })
}

/// A list of pairs for one direction of the whole composition.
fn turned<'a>(list: &[Listed<'a>], reversals: &'a [Reversed<'a>]) -> Vec<Listed<'a>> {
    list.iter().zip(reversals).map(|((p, c), r)| (if p.symmetric() { *p } else { r as &dyn Profile }, *c)).collect()
}

/// Both directions of a list of pairs.
fn both(list: &[Listed<'_>], beside: Beside<'_>, question: Question, effort: Effort) -> Bound {
    let one = direction(list, beside, question, effort);
    if list.iter().all(|(p, _)| p.symmetric()) {
        return one;
    }
    let reversals: Vec<Reversed<'_>> = list.iter().map(|(p, _)| Reversed(*p)).collect();
    let back = turned(list, &reversals);
    // A lower bound on either direction bounds the maximum; the direction with the larger curve gives the better one.
    let other = direction(&back, beside, question, Effort::Coarse);
    if other.upper <= one.upper {
        return one;
    }
    let other = direction(&back, beside, question, effort);
    Bound { lower: if one.lower > other.lower { one.lower } else { other.lower }, upper: larger(one.upper, other.upper) }
}

impl Parts {
    pub(super) fn is_empty(&self) -> bool {
        self.components.is_empty() && self.mu == 0.0 && self.atoms.is_none()
    }

    /// Whether there is nothing but choices of one range, in one table.
    pub(super) fn are_choices_alone(&self) -> bool {
        let alone = self.mu == 0.0 && self.atoms.is_none();
        alone && matches!(&self.components[..], [Component { count: 1, attained: Attained::Choices(..), .. }])
    }

    /// An upper bound.
    pub(super) fn at_most(&self, question: Question) -> f64 {
        self.ask(question, false).upper
    }

    /// The pairs to compose numerically, and what is kept beside their grid. A shift much wider than the rest is: its own curve is averaged
    /// over the rest.
    fn split<'a>(&'a self, mut list: Vec<Listed<'a>>, shift: &'a Shift) -> (Vec<Listed<'a>>, Beside<'a>) {
        let square: f64 = list.iter().map(|(p, c)| *c as f64 * spread(*p).powi(2)).sum();
        let mut beside = Beside { mu: shift.mu, atoms: self.atoms.as_ref() };
        if shift.mu > 0.0 && !list.is_empty() && !(shift.mu > 8.0 || shift.mu * shift.mu > 16.0 * square) {
            beside.mu = 0.0;
            list.push((shift, 1));
        }
        match &self.atoms {
            Some(atoms) if beside.mu > 0.0 && atoms.number() > FEW && !list.is_empty() => {
                beside.atoms = None;
                list.push((atoms, 1));
            }
            _ => {}
        }
        (list, beside)
    }

    fn dominating(&self) -> Vec<Listed<'_>> {
        self.components.iter().map(|c| (c.profile.as_ref(), c.count)).collect()
    }

    fn ask(&self, question: Question, lower_too: bool) -> Bound {
        let shift = Shift { mu: self.mu };
        match (&self.components[..], self.mu == 0.0, &self.atoms) {
            ([only], true, None) if only.count == 1 => return only.alone(question, lower_too),
            ([], true, Some(atoms)) => return alone(atoms, question),
            ([], false, None) => return alone(&shift, question),
            _ => {}
        }
        let (list, beside) = self.split(self.dominating(), &shift);
        if !lower_too {
            return both(&list, beside, question, Effort::Upper);
        }
        if self.components.iter().all(|c| matches!(c.attained, Attained::Same)) {
            return both(&list, beside, question, Effort::Both);
        }
        let upper = both(&list, beside, question, Effort::Upper).upper;
        if let ([Component { attained: Attained::Choices(range, count), .. }], true) =
            (&self.components[..], self.mu == 0.0 && self.atoms.is_none())
            && let Some(lower) = choices_lower(*range, *count, question, upper)
        {
            return Bound { lower, upper };
        }
        // Middles of choices are made here and live as long as the list.
        let middles: Vec<Option<Box<dyn Profile>>> = self
            .components
            .iter()
            .map(|c| if let Attained::Choices(range, _) = c.attained { Some(middle_choice(range)) } else { None })
            .collect();
        let attained: Option<Vec<Listed<'_>>> =
            self.components.iter().zip(&middles).map(|(c, middle)| c.attained_by_one(middle.as_deref())).collect();
        let lower = attained.map_or(0.0, |list| {
            let (list, beside) = self.split(list, &shift);
            both(&list, beside, question, Effort::Both).lower
        });
        Bound { lower: if lower < upper { lower } else { upper }, upper }
    }
}

impl Component {
    /// A pair that one mechanism attains, and how often.
    fn attained_by_one<'a>(&'a self, middle: Option<&'a dyn Profile>) -> Option<Listed<'a>> {
        match &self.attained {
            Attained::Same => Some((self.profile.as_ref(), self.count)),
            Attained::Pointwise(profile, times) | Attained::Other(profile, times) => {
                Some((profile.as_ref(), self.count.checked_mul(*times)?))
            }
            Attained::Choices(_, count) => Some((middle?, *count)),
            Attained::Nothing => None,
        }
    }

    /// Choices alone, given an upper bound; on a finer grid where the two bounds are far apart.
    fn choices_alone(&self, range: f64, count: u64, question: Question, upper: f64) -> Bound {
        let mut bound = Bound { lower: choices_lower(range, count, question, upper).unwrap_or(0.0), upper };
        if let Question::Delta { epsilon } = question
            && bound.lower < (1.0 - COARSE_GAP) * upper
            && let (Some(above), Some(below)) = (adaptive(range, count, FINE), reached_delta(range, count, epsilon, FINE))
        {
            bound.upper = super::checked::smaller(upper, alone(&above, question).upper);
            bound.lower = larger(bound.lower, below);
        }
        Bound { lower: if bound.lower < bound.upper { bound.lower } else { bound.upper }, upper: bound.upper }
    }

    /// A single mechanism needs no grid.
    fn alone(&self, question: Question, lower_too: bool) -> Bound {
        let bound = alone(self.profile.as_ref(), question);
        let lower = match &self.attained {
            _ if !lower_too => 0.0,
            Attained::Same | Attained::Pointwise(..) => bound.lower,
            Attained::Other(profile, 1) => alone(profile.as_ref(), question).lower,
            Attained::Choices(range, count) => return self.choices_alone(*range, *count, question, bound.upper),
            Attained::Other(..) | Attained::Nothing => 0.0,
        };
        Bound { lower: if lower < bound.upper { lower } else { bound.upper }, upper: bound.upper }
    }
}

/// Relative gap in delta above which choices are made on a finer grid.
const COARSE_GAP: f64 = 0.005;

/// What an adversary reaches who picks each choice knowing all losses so far.
fn choices_lower(range: f64, count: u64, question: Question, upper: f64) -> Option<f64> {
    match question {
        Question::Delta { epsilon } => reached_delta(range, count, epsilon, BELOW),
        Question::Epsilon { delta } => reached_epsilon(range, count, delta, upper),
    }
}

/// Distributions composed for some deltas, one list for each direction; none for a single mechanism, which needs no grid.
pub(super) fn distributions(parts: &Parts, deltas: &[f64]) -> Option<Vec<Vec<Composed>>> {
    let shift = Shift { mu: parts.mu };
    let mut list = parts.dominating();
    if parts.mu > 0.0 {
        list.push((&shift, 1));
    }
    if let Some(atoms) = &parts.atoms {
        list.push((atoms, 1));
    }
    if let [(_, 1)] = list[..] {
        return None;
    }
    let reversals: Vec<Reversed<'_>> = list.iter().map(|(p, _)| Reversed(*p)).collect();
    let mut directions = vec![list.clone()];
    if !list.iter().all(|(p, _)| p.symmetric()) {
        directions.push(turned(&list, &reversals));
    }
    let compose = |list: &Vec<Listed<'_>>| {
        let mut kept = Vec::new();
        for delta in deltas {
            keep(list, Question::Epsilon { delta: *delta }, &mut kept);
        }
        kept
    };
    Some(directions.iter().map(compose).collect())
}

/// A single mechanism needs no grid.
fn alone(profile: &dyn Profile, question: Question) -> Bound {
    let curve = |e: f64| {
        let forward = profile.delta(e);
        if profile.symmetric() { forward } else { larger(forward, Reversed(profile).delta(e)) }
    };
    // Cancellation in P - e^(e + ln Q) costs at most this.
    let slack = |e: f64| {
        let (p, q) = profile.above(e);
        // Q may be so small that it has few digits left; e^e makes them count.
        p * (profile.slack() + 1e-15 * (e.abs() + q.max(f64::MIN_POSITIVE).ln().abs())) + (e - 735.0).exp()
    };
    match question {
        Question::Delta { epsilon } => {
            let (value, slack) = (curve(epsilon), slack(epsilon));
            Bound { lower: probability_at_least(value - slack), upper: probability_at_most(value + slack) }
        }
        Question::Epsilon { delta } => {
            let find = |sign: f64| {
                let holds = |e: f64| curve(e) + sign * slack(e) <= delta;
                if holds(0.0) {
                    return 0.0;
                }
                // Rounding grows with e^e: above some 700 the curve may hold for a short while only.
                let reached = |factor: f64, end: f64| {
                    std::iter::successors(Some(1.0), |e| Some(e * factor)).take_while(|e| *e < end).find(|e| holds(*e))
                };
                match reached(2.0, 1e300).or_else(|| reached(1.004, 800.0)) {
                    Some(high) => super::special::smallest(0.0, high, holds),
                    None => f64::INFINITY,
                }
            };
            Bound { lower: at_least(find(-1.0)), upper: find(1.0) }
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
pub(super) fn approximated<'a>(steps: &[Step<'a>], adjacency: Adjacency) -> Vec<Step<'a>> {
    steps.iter().filter(|s| !own_probabilities(s.leaf, adjacency)).copied().collect()
}

/// Composition of loss distributions, both directions of the whole.
pub struct LossDistributionAccountant;

impl LossDistributionAccountant {
    fn epsilon_with(&self, event: &Event, adjacency: Adjacency, delta: f64, lower_too: bool) -> Result<Bound> {
        check_delta(delta, false)?;
        let steps = event.steps(adjacency)?;
        let parts = parts(&steps, adjacency, if lower_too { WORK } else { QUICK })?;
        if parts.is_empty() {
            return Ok(Bound { lower: 0.0, upper: 0.0 });
        }
        let ratio = discrete_laplace_gap(&steps);
        // delta <= e^ratio delta_continuous(epsilon - 2 ratio), and the same the other way.
        let bound = discrete_epsilon(delta * (-ratio).exp(), &approximated(&steps, adjacency), |d| {
            Ok(parts.ask(Question::Epsilon { delta: d }, lower_too))
        })?;
        let lower = if ratio == 0.0 { bound.lower } else { 0.0 };
        Ok(Bound { lower, upper: bound.upper + 2.0 * ratio })
    }

    fn delta_with(&self, event: &Event, adjacency: Adjacency, epsilon: f64, lower_too: bool) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let steps = event.steps(adjacency)?;
        let parts = parts(&steps, adjacency, if lower_too { WORK } else { QUICK })?;
        if parts.is_empty() {
            return Ok(Bound { lower: 0.0, upper: 0.0 });
        }
        let ratio = discrete_laplace_gap(&steps);
        let steps = approximated(&steps, adjacency);
        // Below zero the curve is at most its value at zero plus 1 - e^epsilon.
        let ask = |e: f64| {
            let shifted = e - 2.0 * ratio;
            let Bound { lower, upper } = parts.ask(Question::Delta { epsilon: at_least(shifted) }, lower_too);
            Bound { lower, upper: upper - shifted.min(0.0).exp_m1() }
        };
        let bound = ask(epsilon);
        let gap = gap_cost(epsilon, discrete_gaussian_gap(&steps)) + rounding_loss(&steps);
        let lower = if ratio == 0.0 { bound.lower - gap } else { 0.0 };
        let continuous = |e: f64| ratio.exp() * if e == epsilon { bound.upper } else { ask(e).upper };
        Ok(Bound { lower: probability_at_least(lower), upper: discrete_delta(epsilon, &steps, continuous) })
    }
}

impl Accountant for LossDistributionAccountant {
    fn name(&self) -> &'static str {
        "pld"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        self.epsilon_with(event, adjacency, delta, true)
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        self.delta_with(event, adjacency, epsilon, true)
    }

    fn epsilon_at_most(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<f64> {
        Ok(self.epsilon_with(event, adjacency, delta, false)?.upper)
    }

    fn delta_at_most(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<f64> {
        Ok(self.delta_with(event, adjacency, epsilon, false)?.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::super::discretise::{Focus, Masses, chords, grid, tangents};
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
                let bound = direction(&[(&shift, count)], Beside::default(), Question::Epsilon { delta }, Effort::Both);
                assert!(
                    bound.lower <= truth * (1.0 + 1e-12) && bound.upper >= truth * (1.0 - 1e-12),
                    "{mu} {count} {delta}: {bound:?} {truth}"
                );
                assert!(bound.upper - bound.lower <= 2e-3 * truth + 1e-9, "{mu} {count} {delta}: {bound:?} {truth}");
            }
            for epsilon in [0.01, 0.5, 2.0] {
                let truth = gaussian_delta(epsilon, total);
                let bound = direction(&[(&shift, count)], Beside::default(), Question::Delta { epsilon }, Effort::Both);
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
