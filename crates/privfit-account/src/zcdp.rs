//! Zero-concentrated privacy with the optimal conversion, and the filter for adaptively chosen releases.

use super::adjacency::Adjacency;
use super::conversion::{delta_from_curve, epsilon_from_curve};
use super::event::{Event, Sampling, Step};
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};

/// The loose textbook conversion, kept for comparison only.
pub fn simple_epsilon(rho: f64, delta: f64) -> f64 {
    rho + 2.0 * (rho * (1.0 / delta).ln()).sqrt()
}

/// Optimal conversion: the infimum over real orders of rho a + ln(1 - 1/a) - ln(delta a)/(a - 1).
pub fn optimal_epsilon(rho: f64, delta: f64) -> f64 {
    epsilon_from_curve(&|order| rho * order, delta)
}

/// The rho of one unsampled step, if it is zero-concentrated.
pub(crate) fn rho_of(step: &Step<'_>, adjacency: Adjacency) -> Option<f64> {
    if step.sampling != Sampling::All {
        return None;
    }
    let replaces = adjacency.replaces();
    let pure = |e: f64| e * (0.5 * e).tanh();
    let once = match step.leaf {
        Event::Gaussian { .. } | Event::GaussianDp { .. } | Event::DiscreteGaussian { .. } => {
            // The discrete Gaussian satisfies the continuous bound exactly.
            let mu = super::gdp::mu_of(step.leaf, adjacency)?;
            0.5 * mu * mu
        }
        Event::Laplace { .. } | Event::DiscreteLaplace { .. } | Event::Pure { .. } => {
            pure(super::pure::epsilon_of(step.leaf, adjacency)?)
        }
        Event::Exponential { epsilon, replace_factor } => {
            let range = if replaces { epsilon * replace_factor } else { *epsilon };
            range * range / 8.0
        }
        Event::ZeroConcentrated { rho } => {
            if replaces {
                4.0 * rho
            } else {
                *rho
            }
        }
        Event::Budget { rho } => (1.0 + 2e-12) * if replaces { 4.0 * rho } else { *rho },
        Event::Approx { .. }
        | Event::ObjectivePerturbation(_)
        | Event::Poisson { .. }
        | Event::FixedSize { .. }
        | Event::Shuffled { .. }
        | Event::Repeat { .. }
        | Event::AtMost { .. }
        | Event::Compose(_)
        | Event::Either(_)
        | Event::Select { .. }
        | Event::NotPrivate { .. } => return None,
    };
    Some(once * step.count as f64)
}

/// Adds the rho of every release.
pub struct ConcentratedAccountant;

impl ConcentratedAccountant {
    /// Total rho of an event.
    pub fn rho(&self, event: &Event, adjacency: Adjacency) -> Result<f64> {
        let mut total = 0.0;
        for step in event.steps(adjacency)? {
            total += rho_of(&step, adjacency).ok_or_else(|| {
                Error::unsupported(
                    "a sampled, approximate or selected event in zero-concentrated accounting",
                    "use the pld or rdp accountant",
                )
            })?;
        }
        Ok(total * (1.0 + 1e-14))
    }
}

impl Accountant for ConcentratedAccountant {
    fn name(&self) -> &'static str {
        "zcdp"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        check_delta(delta, false)?;
        Ok(Bound { lower: 0.0, upper: optimal_epsilon(self.rho(event, adjacency)?, delta) })
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let rho = self.rho(event, adjacency)?;
        Ok(Bound { lower: 0.0, upper: delta_from_curve(&|order| rho * order, epsilon) })
    }
}
