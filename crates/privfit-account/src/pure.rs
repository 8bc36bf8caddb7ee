//! Pure privacy: epsilons add, in exact decimal arithmetic, so that ten times 0.1 is 1 and an eleventh does not fit.

use super::adjacency::Adjacency;
use super::checked::probability_at_most;
use super::event::{Event, Sampling, Step, Stopping};
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};

/// Decimal places kept; amounts with more are rounded up.
const PLACES: i32 = 20;

/// The epsilon of one unsampled leaf, if it is pure.
pub(crate) fn epsilon_of(leaf: &Event, adjacency: Adjacency) -> Option<f64> {
    let replaces = adjacency.replaces();
    match leaf {
        Event::Laplace { noise_multiplier, replace_factor } => {
            Some(quotient_up(if replaces { *replace_factor } else { 1.0 }, *noise_multiplier))
        }
        Event::DiscreteLaplace { scale, sensitivity, replace_sensitivity, .. } => {
            Some((if replaces { *replace_sensitivity } else { *sensitivity } as f64 / *scale as f64).next_up())
        }
        Event::Pure { epsilon, replace_factor } => Some(if replaces { product_up(*replace_factor, *epsilon) } else { *epsilon }),
        Event::Approx { epsilon, delta } if *delta == 0.0 => Some(if replaces { 2.0 * epsilon } else { *epsilon }),
        // Scores of bounded range e0: the loss never exceeds e0.
        Event::Exponential { epsilon, replace_factor } => Some(if replaces { epsilon * replace_factor } else { *epsilon }),
        Event::Either(events) => {
            events.iter().map(|e| PureAccountant.total(e, adjacency).ok()).try_fold(0.0, |most: f64, e| Some(most.max(e?)))
        }
        Event::Select { stopping: Stopping::NegativeBinomial { eta, .. }, event } => {
            let inner = PureAccountant.total(event, adjacency).ok()?;
            Some((2.0 + if *eta > 0.0 { *eta } else { 0.0 }) * inner)
        }
        // The winner's density is that of one run times a weight that moves by e^epsilon once (harmonic) or twice (uniform).
        Event::Select { stopping: stopping @ (Stopping::Harmonic { .. } | Stopping::Uniform { .. }), event } => {
            let inner = PureAccountant.total(event, adjacency).ok()?;
            Some(if matches!(stopping, Stopping::Harmonic { .. }) { 2.0 } else { 3.0 } * inner)
        }
        Event::Approx { .. }
        | Event::Gaussian { .. }
        | Event::DiscreteGaussian { .. }
        | Event::ZeroConcentrated { .. }
        | Event::GaussianDp { .. }
        | Event::ObjectivePerturbation(_)
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

/// Amplification of a pure mechanism whose epsilon under each adjacency is given; under replace-one the same bound holds for the replace-one
/// epsilon, and a fixed-size batch without a record holds another one instead.
pub(crate) fn sampled_epsilon(whole: impl Fn(Adjacency) -> f64, sampling: Sampling, adjacency: Adjacency) -> f64 {
    let (rate, epsilon) = match sampling {
        Sampling::All => return whole(adjacency),
        Sampling::Poisson { rate } => (rate, whole(adjacency)),
        Sampling::FixedSize { rate } => (rate, whole(Adjacency::ReplaceOne)),
    };
    if epsilon > 700.0 {
        // ln(1 - q + q e^epsilon) <= epsilon.
        return epsilon;
    }
    (rate * epsilon.exp_m1()).ln_1p().next_up().next_up()
}

/// a b, rounded up if it is not exact.
fn product_up(a: f64, b: f64) -> f64 {
    let p = a * b;
    if a.mul_add(b, -p) > 0.0 { p.next_up() } else { p }
}

/// a / b, rounded up if it is not exact.
fn quotient_up(a: f64, b: f64) -> f64 {
    let q = a / b;
    if q.mul_add(b, -a) < 0.0 { q.next_up() } else { q }
}

/// An exact sum of decimal numbers, each read as its shortest decimal text.
#[derive(Default)]
struct DecimalSum {
    /// In units of 10^-PLACES.
    units: u128,
    overflow: bool,
}

impl DecimalSum {
    fn add(&mut self, value: f64, count: u64) {
        match decimal_units(value).and_then(|u| u.checked_mul(u128::from(count))).and_then(|u| self.units.checked_add(u)) {
            Some(total) => self.units = total,
            None => self.overflow = true,
        }
    }

    fn value(&self) -> f64 {
        if self.overflow {
            return f64::INFINITY;
        }
        // Correctly rounded by the standard library's decimal parser.
        let (whole, part) = (self.units / 10u128.pow(PLACES as u32), self.units % 10u128.pow(PLACES as u32));
        format!("{whole}.{part:0width$}", width = PLACES as usize).parse().unwrap_or(f64::INFINITY)
    }
}

fn decimal_units(value: f64) -> Option<u128> {
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let places = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    let number: u128 = digits.replace('.', "").parse().ok()?;
    let shift = PLACES + exponent - places;
    if shift >= 0 {
        number.checked_mul(10u128.checked_pow(shift as u32)?)
    } else {
        Some(number.div_ceil(10u128.checked_pow(-shift as u32).unwrap_or(u128::MAX)))
    }
}

/// Sum of epsilons.
pub struct PureAccountant;

impl PureAccountant {
    fn total(&self, event: &Event, adjacency: Adjacency) -> Result<f64> {
        let mut sum = DecimalSum::default();
        for step in event.steps(adjacency)? {
            let epsilon = epsilon_of(step.leaf, adjacency).ok_or_else(|| {
                Error::unsupported("an event without pure privacy in a sum of epsilons", "give a delta above 0")
            })?;
            let whole = |a| if a == adjacency { epsilon } else { epsilon_of(step.leaf, a).unwrap_or(f64::INFINITY) };
            sum.add(sampled_epsilon(whole, step.sampling, adjacency), step.count);
        }
        Ok(sum.value())
    }
}

impl Accountant for PureAccountant {
    fn name(&self) -> &'static str {
        "pure"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        check_delta(delta, true)?;
        let upper = self.total(event, adjacency)?;
        // At delta 0 the sum is attained: losses of these mechanisms sensitivity their epsilon together.
        let attained = |step: &Step<'_>| {
            step.sampling == Sampling::All
                && matches!(step.leaf, Event::Pure { .. } | Event::Laplace { .. } | Event::Approx { .. })
        };
        let tight = delta == 0.0 && event.steps(adjacency)?.iter().all(attained);
        Ok(Bound { lower: if tight { upper } else { 0.0 }, upper })
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let total = self.total(event, adjacency)?;
        // Above the sum nothing is left; below it the worst pure mechanism is randomised response.
        let upper = if epsilon >= total { 0.0 } else { -(epsilon - total).exp_m1() / (1.0 + (-total).exp()) * (1.0 + 1e-14) };
        Ok(Bound { lower: 0.0, upper: probability_at_most(upper) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_sums_are_exact() {
        let mut sum = DecimalSum::default();
        sum.add(0.1, 10);
        assert_eq!(sum.value(), 1.0);
        sum.add(0.1, 1);
        assert!(sum.value() > 1.0);
        let mut mixed = DecimalSum::default();
        for (value, count) in [(0.1, 1), (0.2, 1), (0.25, 2), (0.7, 1)] {
            mixed.add(value, count);
        }
        assert_eq!(mixed.value(), 1.5);
        let mut tiny = DecimalSum::default();
        tiny.add(1e-300, 1);
        assert!(tiny.value() > 0.0, "rounded up, never lost");
        let mut huge = DecimalSum::default();
        huge.add(1e300, 1);
        assert_eq!(huge.value(), f64::INFINITY);
    }
}
