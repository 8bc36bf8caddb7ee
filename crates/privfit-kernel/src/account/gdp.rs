//! Gaussian differential privacy: full-batch Gaussian releases compose exactly, mu^2 = sum of mu_i^2.

use super::adjacency::Adjacency;
use super::event::{Event, Sampling, Step};
use super::special::{mills, normal_density, normal_upper, smallest};
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};

/// Relative float error granted to the closed form before it is handed out as an upper bound.
const SLACK: f64 = 1e-13;

/// delta(epsilon) of a Gaussian shift of `mu` standard deviations, for every real epsilon.
///
/// Negative arguments matter: a joint curve averages this over epsilon - Z, and its mass lies where that is below 0.
pub(crate) fn gaussian_delta(epsilon: f64, mu: f64) -> Bound {
    if mu == 0.0 {
        let value = (1.0 - epsilon.exp()).max(0.0);
        return Bound { lower: value, upper: value };
    }
    let (near, far) = (epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu);
    if near < 0.0 {
        // Upper half: both terms are of order one and the difference is benign.
        let first = normal_upper(near);
        let second = if far > 25.0 { normal_density(near) * mills(far) } else { epsilon.exp() * normal_upper(far) };
        let value = first - second;
        let error = SLACK * (first + second);
        return Bound { lower: (value - error).max(0.0), upper: (value + error).min(1.0) };
    }
    // density(near) = e^epsilon density(far), so the difference is one density times a difference of Mills ratios.
    let (a, b) = (mills(near), mills(far));
    let scale = normal_density(near);
    let error = SLACK * scale * a;
    Bound { lower: (scale * (a - b) - error).max(0.0), upper: (scale * (a - b) + error).min(1.0) }
}

/// Smallest epsilon >= 0 with delta(epsilon) <= delta.
pub(crate) fn gaussian_epsilon(mu: f64, delta: f64) -> Bound {
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
        Event::DiscreteGaussian { sigma, reach, replace_reach, .. } => {
            Some(if replaces { *replace_reach } else { *reach } as f64 / *sigma as f64)
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
        | Event::Select { .. }
        | Event::NotPrivate { .. } => None,
    }
}

/// Total variation distance between the transcript with discrete Gaussian noise and with rounded continuous noise.
///
/// KL divergence per coordinate is at most 1/(576 sigma^4) either way; chain rule over all coordinates and releases, then
/// Pinsker. It is exact in that no average is taken, so it also covers sampling and adaptive composition.
pub(crate) fn discrete_gaussian_gap(steps: &[Step<'_>]) -> f64 {
    let mut total = 0.0;
    for step in steps {
        let (sigma, dimension) = match step.leaf {
            Event::DiscreteGaussian { sigma, dimension, .. } => (*sigma, *dimension),
            Event::ObjectivePerturbation(o) if o.grid_sigma > 0 => (o.grid_sigma, o.dimension),
            _ => continue,
        };
        total += step.count as f64 * dimension as f64 / (1152.0 * (sigma as f64).powi(4));
    }
    total.sqrt() * (1.0 + 1e-12)
}

/// Adds the transcript distance to a curve: delta(epsilon) + (1 + e^epsilon) gap <= delta, solved for epsilon.
pub(crate) fn with_gap(delta: f64, gap: f64, epsilon_at: impl Fn(f64) -> Result<Bound>) -> Result<Bound> {
    let mut answer = epsilon_at(delta)?;
    if gap == 0.0 {
        return Ok(answer);
    }
    let lower = {
        // The same distance the other way: the true curve is at least delta_continuous - (1 + e^epsilon) gap.
        let wider = delta + (1.0 + answer.lower.exp()) * gap;
        if wider < 1.0 { epsilon_at(wider)?.lower } else { 0.0 }
    };
    for _ in 0..200 {
        let rest = delta - (1.0 + answer.upper.exp()) * gap;
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
    fn total(&self, event: &Event, adjacency: Adjacency) -> Result<(f64, f64)> {
        let steps = event.steps(adjacency)?;
        let mut square = 0.0;
        for step in &steps {
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
        Ok((square.sqrt() * (1.0 + 1e-15), discrete_gaussian_gap(&steps)))
    }
}

impl Accountant for GaussianAccountant {
    fn name(&self) -> &'static str {
        "gaussian"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        check_delta(delta, false)?;
        let (mu, gap) = self.total(event, adjacency)?;
        with_gap(delta, gap, |d| Ok(gaussian_epsilon(mu, d)))
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let (mu, gap) = self.total(event, adjacency)?;
        let bound = gaussian_delta(epsilon, mu);
        let gap = (1.0 + epsilon.exp()) * gap;
        Ok(Bound { lower: (bound.lower - gap).max(0.0), upper: (bound.upper + gap).min(1.0) })
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
