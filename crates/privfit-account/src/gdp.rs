//! Gaussian differential privacy: full-batch Gaussian releases compose exactly, mu^2 = sum of mu_i^2.

use super::adjacency::Adjacency;
use super::checked::{largest, probability_at_least, probability_at_most, smaller};
use super::event::{Event, Sampling, Step};
use super::special::{mills, mills_drop, normal_density, normal_upper, smallest};
use super::{Accountant, Bound, check_delta, check_epsilon, lattice};
use crate::error::{Error, Result};

/// delta(epsilon) of a Gaussian shift of `mu` standard deviations, for every real epsilon.
///
/// Negative arguments matter: a joint curve averages this over epsilon - Z, and its mass lies where that is below 0.
pub(crate) fn gaussian_delta(epsilon: f64, mu: f64) -> Bound {
    if mu == 0.0 {
        let value = -epsilon.exp_m1();
        return Bound { lower: probability_at_least(value), upper: probability_at_most(value) };
    }
    let near = epsilon / mu - 0.5 * mu;
    let far = near + mu;
    if near < -1.0 {
        // Both terms are of order one and the difference is benign.
        let first = normal_upper(near);
        let second = if far > 25.0 { normal_density(near) * mills(far) } else { epsilon.exp() * normal_upper(far) };
        let value = first - second;
        let error = 1e-13 * (first + second);
        return Bound { lower: probability_at_least(value - error), upper: probability_at_most(value + error) };
    }
    // density(near) = e^epsilon density(far), so the difference is one density times a difference of Mills ratios. Its rounding grows
    // with the arguments: a unit in the last place of near moves the density by near^2 of them.
    let value = normal_density(near) * mills_drop(near, mu);
    let units = 64.0 + 16.0 * near * near + 16.0 * (1.0 + near.abs()) * (far.abs() + mu);
    let error = f64::EPSILON * units * value + f64::MIN_POSITIVE;
    // Below the smallest normal doubles nothing is known from below.
    let lower = if value > 1e-290 { value - error } else { 0.0 };
    Bound { lower: probability_at_least(lower), upper: probability_at_most(value + error) }
}

/// Smallest epsilon >= 0 with delta(epsilon) <= delta.
pub(crate) fn gaussian_epsilon(mu: f64, delta: f64) -> Bound {
    quick_epsilon(mu, delta).unwrap_or_else(|| searched_epsilon(mu, delta))
}

/// The same by Newton's method on ln delta(epsilon), which is concave: a Gaussian loss against the concave ln(1 - e^-x). From the right of
/// the root, where zCDP puts the start, every step stays on the right. Both ends are checked like those of a search; none if a check fails.
fn quick_epsilon(mu: f64, delta: f64) -> Option<Bound> {
    let mut at = mu * (-2.0 * delta.ln()).sqrt() + 0.5 * mu * mu;
    for _ in 0..40 {
        let value = gaussian_delta(at, mu);
        let near = at / mu - 0.5 * mu;
        let slope = normal_density(near) * mills(near + mu);
        let step = (value.upper / delta).ln() * value.upper / slope;
        let next = at + step;
        if !(next > 0.0 && next.is_finite()) {
            return None;
        }
        if step.abs() <= 1e-9 * at {
            // The next error is the square of this one. Ends lie beyond what both curves leave open, each with its own check.
            let between = (value.upper - value.lower) / slope;
            let ends = (0..4).map(|k| 4e-15 * next * f64::from(1 << (3 * k)));
            let upper = ends.clone().map(|e| next + e).find(|e| gaussian_delta(*e, mu).upper <= delta)?;
            let lower = ends.map(|e| next - 1.1 * between - e).find(|e| *e > 0.0 && gaussian_delta(*e, mu).lower > delta)?;
            return Some(Bound { lower: lower * (1.0 - 1e-14), upper });
        }
        at = next;
    }
    None
}

/// The same by halving, for whatever mu and delta.
fn searched_epsilon(mu: f64, delta: f64) -> Bound {
    let find = |pick: fn(Bound) -> f64| {
        if pick(gaussian_delta(0.0, mu)) <= delta {
            return 0.0;
        }
        let mut high = 1.0;
        while pick(gaussian_delta(high, mu)) > delta {
            high *= 2.0;
            if high > 1e300 {
                return f64::INFINITY;
            }
        }
        smallest(0.0, high, |e| pick(gaussian_delta(e, mu)) <= delta)
    };
    Bound { lower: find(|b| b.lower) * (1.0 - 1e-14), upper: find(|b| b.upper) }
}

/// The mu of one unsampled step, if it is Gaussian.
pub(crate) fn mu_of(leaf: &Event, adjacency: Adjacency) -> Option<f64> {
    let replaces = adjacency.replaces();
    match leaf {
        Event::Gaussian { noise_multiplier, replace_factor } => {
            Some(if replaces { replace_factor / noise_multiplier } else { 1.0 / noise_multiplier })
        }
        Event::GaussianDp { mu } => Some(if replaces { 2.0 * mu } else { *mu }),
        Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, .. } => {
            Some(if replaces { *replace_sensitivity } else { *sensitivity } as f64 / *sigma as f64)
        }
        Event::Laplace { .. }
        | Event::DiscreteLaplace { .. }
        | Event::Pure { .. }
        | Event::Approx { .. }
        | Event::ZeroConcentrated { .. }
        | Event::ObjectivePerturbation(_)
        | Event::Exponential { .. }
        | Event::Poisson { .. }
        | Event::FixedSize { .. }
        | Event::Shuffled { .. }
        | Event::Repeat { .. }
        | Event::AtMost { .. }
        | Event::Budget { .. }
        | Event::Compose(_)
        | Event::Either(_)
        | Event::Select { .. }
        | Event::NotPrivate { .. } => None,
    }
}

/// Total variation distance between the transcript with discrete Gaussian noise and with rounded continuous noise.
///
/// KL divergence per coordinate is at most 1/(576 sigma^4) either way; chain rule over all coordinates and releases, then
/// Pinsker. It is exact in that no average is taken, so it also covers sampling and adaptive composition.
pub(crate) fn discrete_gaussian_gap(steps: &[Step<'_>]) -> f64 {
    let inside = |event: &Event| event.steps(Adjacency::ZeroOut).map_or(f64::INFINITY, |steps| discrete_gaussian_gap(&steps));
    let (mut total, mut apart) = (0.0, 0.0);
    for step in steps {
        let (sigma, dimension) = match step.leaf {
            Event::DiscreteGaussian { sigma, dimension, .. } => (*sigma, *dimension),
            Event::ObjectivePerturbation(o) if o.grid_sigma > 0 => (o.grid_sigma, o.dimension),
            Event::Either(events) => {
                apart += step.count as f64 * largest(events.iter().map(inside));
                continue;
            }
            // The number of runs is independent of what they do: one run's distance for each of them, on average.
            Event::Select { stopping, event } => {
                apart += step.count as f64 * super::expected_runs(*stopping) * inside(event);
                continue;
            }
            _ => continue,
        };
        total += step.count as f64 * dimension as f64 / (1152.0 * (sigma as f64).powi(4));
    }
    (total.sqrt() + apart) * (1.0 + 1e-12)
}

/// How far rounding of continuous noise to the grid can lower a curve: a lower bound on the continuous curve, less this and the distance
/// above, is one on the discrete curve.
///
/// Given everything else, one step's best test is a threshold T with p(T) = e^epsilon q(T); the grid moves it by at most 1/2, where p is at
/// most 0.4 / sigma and the loss rises by at most r / sigma^2 a grid step, so that the test loses at most 0.05 (r / sigma^3) e^(r / 2 sigma^2).
/// Steps are rounded one after the other.
pub(crate) fn rounding_loss(steps: &[Step<'_>]) -> f64 {
    let mut total = 0.0;
    for step in steps {
        if let Event::DiscreteGaussian { sigma, replace_sensitivity, .. } = step.leaf {
            let (sigma, sensitivity) = (*sigma as f64, *replace_sensitivity as f64);
            total += step.count as f64 * 0.05 * sensitivity / sigma.powi(3) * (0.5 * sensitivity / (sigma * sigma)).exp();
        }
    }
    total * (1.0 + 1e-12)
}

/// The other way to charge the discrete distribution, for large epsilons, where e^epsilon times a distance is too much.
///
/// Up to a tail of probability e^-a the density ratio between discrete and rounded continuous noise is within e^(+-eta), with
/// eta = 1.01 (t + d) / (24 sigma^2) for a release of d coordinates, t the largest squared norm over sigma^2 outside of the tail. So
/// delta(epsilon) <= e^eta delta_continuous(epsilon - 2 eta) + (1 + e^epsilon) e^-a. None where the grid is too coarse for the 1.01.
/// It holds for sampled releases too: with tails cut off, each distribution of a mixture is at most e^eta times its continuous one and at least
/// e^-eta times it, around its own centre, and so is the mixture, on whichever side of the comparison it stands.
fn discrete_gaussian_ratio(steps: &[Step<'_>], tail: f64) -> Option<f64> {
    let releases: f64 = steps.iter().map(|s| s.count as f64).sum();
    let mut total = 0.0;
    for step in steps {
        let (sigma, dimension) = match step.leaf {
            Event::DiscreteGaussian { sigma, dimension, .. } => (*sigma, *dimension),
            Event::ObjectivePerturbation(o) if o.grid_sigma > 0 => (o.grid_sigma, o.dimension),
            Event::Either(_) | Event::Select { .. } => return None,
            _ => continue,
        };
        if sigma < 1 << 12 {
            return None;
        }
        let t = ((dimension as f64).sqrt() + (2.0 * (tail + releases.ln())).sqrt()).powi(2);
        total += step.count as f64 * 1.01 * (t + dimension as f64) / (24.0 * (sigma as f64).powi(2));
    }
    Some(total * (1.0 + 1e-12))
}

/// a of the tail e^-a in `discrete_gaussian_ratio`: so far out that e^epsilon times its probability is below 10^-80.
fn tail(epsilon: f64) -> f64 {
    185.0 + epsilon
}

/// (1 + e^epsilon) times a distance: what the distance between two distributions costs in delta.
pub(crate) fn gap_cost(epsilon: f64, gap: f64) -> f64 {
    if gap == 0.0 { 0.0 } else { (1.0 + epsilon.exp()) * gap }
}

/// Smaller of two valid upper bounds on delta: by transcript distance, by density ratio.
pub(crate) fn discrete_delta(epsilon: f64, steps: &[Step<'_>], continuous: impl Fn(f64) -> f64) -> f64 {
    let gap = gap_cost(epsilon, discrete_gaussian_gap(steps));
    let exact = continuous(epsilon);
    let by_distance = exact + gap;
    if gap <= 1e-6 * exact {
        return probability_at_most(by_distance);
    }
    let by_ratio = discrete_gaussian_ratio(steps, tail(epsilon)).map_or(1.0, |eta| {
        eta.exp() * continuous(epsilon - 2.0 * eta) + (-tail(epsilon)).exp() + (epsilon - tail(epsilon)).exp()
    });
    probability_at_most(smaller(by_distance, by_ratio))
}

/// Smaller of two valid upper bounds on epsilon, and the lower bound of the first.
pub(crate) fn discrete_epsilon(delta: f64, steps: &[Step<'_>], epsilon_at: impl Fn(f64) -> Result<Bound>) -> Result<Bound> {
    let gap = discrete_gaussian_gap(steps);
    let mut bound = with_gap(delta, gap, &epsilon_at)?;
    let rounding = rounding_loss(steps);
    if rounding > 0.0 && bound.lower > 0.0 {
        let wider = delta + gap_cost(bound.lower, gap) + rounding;
        bound.lower = if wider < 1.0 { epsilon_at(wider)?.lower } else { 0.0 };
    }
    if gap_cost(bound.upper, gap) <= 1e-6 * delta {
        // The first way costs nothing that one could see.
        return Ok(bound);
    }
    // The tail is laid out for an epsilon above the answer.
    let enough = 1.0 + 2.0 * smaller(epsilon_at(delta)?.upper, 1e6);
    if let Some(eta) = discrete_gaussian_ratio(steps, tail(enough)).filter(|eta| *eta > 0.0) {
        let rest = delta * (1.0 - 1e-12) * (-eta).exp();
        let upper = epsilon_at(rest)?.upper * (1.0 + 1e-15) + 2.0 * eta;
        // The tail must fit in what was left of delta.
        if upper <= enough && 2.0 * (enough - tail(enough)).exp() <= 1e-12 * delta && upper < bound.upper {
            return Ok(Bound { lower: bound.lower, upper });
        }
    }
    Ok(bound)
}

/// Adds the transcript distance to a curve: delta(epsilon) + (1 + e^epsilon) gap <= delta, solved for epsilon.
pub(crate) fn with_gap(delta: f64, gap: f64, epsilon_at: impl Fn(f64) -> Result<Bound>) -> Result<Bound> {
    let mut answer = epsilon_at(delta)?;
    if gap == 0.0 {
        return Ok(answer);
    }
    let lower = {
        // The same distance the other way: the true curve is at least delta_continuous - (1 + e^epsilon) gap.
        let wider = delta + gap_cost(answer.lower, gap);
        if wider < 1.0 { epsilon_at(wider)?.lower } else { 0.0 }
    };
    for _ in 0..200 {
        let rest = delta - gap_cost(answer.upper, gap);
        if !(rest > 0.0) {
            return Ok(Bound { lower, upper: f64::INFINITY });
        }
        let next = epsilon_at(rest)?;
        let done = next.upper <= answer.upper * (1.0 + 1e-13);
        answer = next;
        if done {
            return Ok(Bound { lower, upper: answer.upper * (1.0 + 1e-12) });
        }
    }
    Ok(Bound { lower, upper: f64::INFINITY })
}

/// Analytic Gaussian: exact for any composition of unsampled Gaussian events.
pub struct GaussianAccountant;

impl GaussianAccountant {
    fn total(&self, steps: &[Step<'_>], adjacency: Adjacency) -> Result<f64> {
        let mut square = 0.0;
        for step in steps {
            match (mu_of(step.leaf, adjacency), step.sampling) {
                (Some(mu), Sampling::All) => square += mu * mu * step.count as f64,
                _ => {
                    return Err(Error::unsupported(
                        "an event that is not a plain Gaussian in Gaussian composition",
                        "use the pld or rdp accountant",
                    ));
                }
            }
        }
        Ok(square.sqrt() * (1.0 + 1e-15))
    }
}

/// The Gaussian shift that noise on coarse grids comes to as it is, and what is charged for it in delta; none where another way must be
/// gone.
fn on_its_grid(steps: &[Step<'_>], adjacency: Adjacency) -> Option<(f64, f64)> {
    let (mut square, mut left_out, mut coarse) = (0.0, 0.0, false);
    for step in steps {
        let mut mu = mu_of(step.leaf, adjacency)?;
        if let Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, dimension } = step.leaf {
            let moved = if adjacency.replaces() { *replace_sensitivity } else { *sensitivity };
            if *sigma > lattice::LARGEST || moved >= lattice::FURTHEST * sigma {
                return None;
            }
            coarse = true;
            mu = lattice::step(*sigma) * moved as f64;
            left_out += step.count as f64 * *dimension as f64 * lattice::LEFT_OUT;
        }
        square += mu * mu * step.count as f64;
    }
    coarse.then(|| (square.sqrt() * (1.0 + 1e-15), left_out))
}

impl Accountant for GaussianAccountant {
    fn name(&self) -> &'static str {
        "gaussian"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        check_delta(delta, false)?;
        let steps = event.steps(adjacency)?;
        let mu = self.total(&steps, adjacency)?;
        let mut bound = discrete_epsilon(delta, &steps, |d| Ok(gaussian_epsilon(mu, d)))?;
        if let Some((mu, left_out)) = on_its_grid(&steps, adjacency)
            && delta > left_out
        {
            bound.upper = smaller(bound.upper, gaussian_epsilon(mu, delta - left_out).upper);
        }
        Ok(bound)
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let steps = event.steps(adjacency)?;
        let mu = self.total(&steps, adjacency)?;
        let gap = gap_cost(epsilon, discrete_gaussian_gap(&steps)) + rounding_loss(&steps);
        let mut upper = discrete_delta(epsilon, &steps, |e| gaussian_delta(e, mu).upper);
        if let Some((mu, left_out)) = on_its_grid(&steps, adjacency) {
            upper = smaller(upper, probability_at_most(gaussian_delta(epsilon, mu).upper + left_out));
        }
        Ok(Bound { lower: probability_at_least(gaussian_delta(epsilon, mu).lower - gap), upper })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_arguments_are_not_clamped() {
        // Correction A7: the identity delta(-e) = 1 - e^-e + e^-e delta(e) holds for every real e.
        for mu in [1e-3, 0.1, 1.0, 4.0] {
            for e in [1e-4f64, 0.3, 2.0, 7.0] {
                let direct = gaussian_delta(-e, mu).upper;
                let reflected = 1.0 - (-e).exp() + (-e).exp() * gaussian_delta(e, mu).upper;
                assert!((direct - reflected).abs() < 1e-12, "mu {mu} e {e}: {direct} {reflected}");
            }
        }
        assert!(gaussian_delta(-1.0, 0.0).upper > 0.63);
    }

    /// The charge for the discrete distribution stays small at every epsilon, and never goes below the exact discrete curve.
    #[test]
    fn discrete_distribution_is_charged_at_every_epsilon() {
        let event = |bits: u32, mu: f64| Event::DiscreteGaussian {
            sigma: 1 << bits,
            sensitivity: (mu * 2f64.powi(bits as i32)) as u64,
            replace_sensitivity: (2.0 * mu * 2f64.powi(bits as i32)) as u64,
            dimension: 100,
        };
        for (mu, epsilon) in [(0.02, 0.1), (1.0, 5.0), (5.0, 40.0), (8.0, 90.0)] {
            let continuous = gaussian_delta(epsilon, mu).upper;
            let ours = GaussianAccountant.delta(&event(32, mu), Adjacency::ZeroOut, epsilon).unwrap().upper;
            assert!(ours >= continuous * (1.0 - 1e-6) && ours <= continuous * (1.0 + 1e-6) + 1e-40, "{mu}: {ours} {continuous}");
            let back = GaussianAccountant.epsilon(&event(32, mu), Adjacency::ZeroOut, continuous).unwrap().upper;
            assert!((back / epsilon - 1.0).abs() < 1e-6, "{back} {epsilon}");
        }
        // One coordinate, exact sums over the lattice: sigma of 4096 units.
        let (sigma, shift) = (4096.0f64, 4096.0 * 3.0);
        let weight = |x: f64| (-0.5 * x * x / (sigma * sigma)).exp();
        let total: f64 = (-60_000..=60_000).map(|x| weight(f64::from(x))).sum();
        let one = Event::DiscreteGaussian { sigma: 4096, sensitivity: 12288, replace_sensitivity: 24576, dimension: 1 };
        for epsilon in [0.5, 4.0, 12.0] {
            let above = |x: f64| (weight(x - shift) - f64::exp(epsilon) * weight(x)).max(0.0);
            let exact: f64 = (-60_000..=60_000).map(|x| above(f64::from(x))).sum::<f64>() / total;
            let ours = GaussianAccountant.delta(&one, Adjacency::ZeroOut, epsilon).unwrap().upper;
            assert!(ours >= exact && ours <= exact * 1.01, "{epsilon}: {ours} {exact}");
        }
    }

    /// Newton's method ends where halving does, in a twelfth of its time: certificates ask a hundred times.
    #[test]
    fn quick_and_searched_epsilons_agree() {
        let mut quick = 0;
        for mu in [1e-12, 1e-6, 3e-3, 0.1, 0.7, 1.0, 4.0, 30.0, 300.0, 1e5] {
            for delta in [0.9, 0.3, 1e-2, 1e-5, 1e-8, 1e-12, 1e-30, 1e-100, 1e-250] {
                let slow = searched_epsilon(mu, delta);
                let Some(fast) = quick_epsilon(mu, delta) else { continue };
                quick += 1;
                let near = |a: f64, b: f64| (a - b).abs() <= 2e-12 * b;
                assert!(near(fast.upper, slow.upper) && near(fast.lower, slow.lower), "{mu} {delta}: {fast:?} {slow:?}");
                assert!(fast.lower <= fast.upper && gaussian_delta(fast.upper, mu).upper <= delta);
            }
        }
        assert!(quick >= 60, "{quick}");
    }

    #[test]
    fn closed_form_values() {
        assert!((gaussian_delta(1.0, 1.0).upper - 0.126_936_737_506_643_94).abs() < 1e-13);
        let e = gaussian_epsilon(1.0, 1e-5);
        assert!(e.lower <= 4.377_178_095_681_225 && e.upper >= 4.377_178_095_681_224, "{e:?}");
        assert!(e.upper - e.lower < 1e-9);
    }

    #[test]
    fn table_of_noise_for_unit_sensitivity() {
        // (delta, epsilon, standard deviation): the analytic column of the published comparison.
        let table = [
            (1e-3, 0.1, 17.4044),
            (1e-3, 1.0, 2.5747),
            (1e-3, 2.0, 1.4452),
            (1e-3, 10.0, 0.4061),
            (1e-5, 1.0, 3.7306),
            (1e-6, 1.0, 4.2247),
            (1e-6, 10.0, 0.5411),
            (1e-9, 10.0, 0.6502),
        ];
        for (delta, epsilon, sigma) in table {
            assert!(gaussian_delta(epsilon, 1.0 / (sigma + 5e-5)).upper <= delta);
            assert!(gaussian_delta(epsilon, 1.0 / (sigma - 5e-5)).lower > delta);
        }
    }
}
