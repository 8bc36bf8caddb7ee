//! Renyi differential privacy: a fallback for events that have no loss distribution (filters, selection), and a second
//! opinion on those that have one.

use super::adjacency::Adjacency;
use super::checked::{at_most, larger, largest, probability_at_most};
use super::conversion::{LARGEST_ORDER, convert, delta_from_curve, epsilon_from_curve};
use super::curve::Curve;
use super::event::{Event, Sampling, Step};
use super::gdp::{discrete_gaussian_gap, gap_cost, with_gap};
use super::objective;
use super::selection;
use super::special::{log_add, log_binomial, log_normal_upper};
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};
use std::f64::consts::PI;

/// Renyi divergence of the Poisson-subsampled Gaussian, mixture against base, times (order - 1); integer orders.
fn poisson_gaussian_integer(rate: f64, noise: f64, order: f64) -> f64 {
    let (log_q, log_p) = (rate.ln(), (-rate).ln_1p());
    // The binomial weights sum to one, so the sum less one has e^x - 1 in the place of e^x: no cancellation at small rates.
    let mut total = f64::NEG_INFINITY;
    let mut k = 2.0;
    while k <= order {
        let exponent = (k * k - k) / (2.0 * noise * noise);
        let log_gain = if exponent > 30.0 { exponent } else { exponent.exp_m1().ln() };
        total = log_add(total, log_binomial(order, k) + k * log_q + (order - k) * log_p + log_gain);
        k += 1.0;
    }
    if total.is_nan() {
        return f64::INFINITY;
    }
    // Rounding of logarithms of large sizes.
    (if total < 30.0 { total.exp().ln_1p() } else { total }) * (1.0 + 1e-12)
}

/// The same at a real order: the binomial series on both sides of the point where the two parts of the mixture are equal.
fn poisson_gaussian_real(rate: f64, noise: f64, order: f64) -> f64 {
    if noise < 0.25 {
        // The series takes ever more terms; chords between whole orders are close, since the log-moment is nearly a parabola of size 1/noise^2.
        return interpolate(order, |k| poisson_gaussian_integer(rate, noise, k));
    }
    let (log_q, log_p) = (rate.ln(), (-rate).ln_1p());
    let middle = noise * noise * (1.0 / rate - 1.0).ln() + 0.5;
    // Signed sums in units of the largest term seen.
    let (mut positive, mut negative) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let (mut log_coefficient, mut sign) = (0.0f64, 1.0f64);
    for i in 0..100_000 {
        let i = f64::from(i);
        let j = order - i;
        let left = log_coefficient
            + i * log_q
            + j * log_p
            + (i * i - i) / (2.0 * noise * noise)
            + log_normal_upper((i - middle) / noise);
        let right = log_coefficient
            + j * log_q
            + i * log_p
            + (j * j - j) / (2.0 * noise * noise)
            + log_normal_upper((middle - j) / noise);
        let both = log_add(left, right);
        if sign > 0.0 {
            positive = log_add(positive, both)
        } else {
            negative = log_add(negative, both)
        }
        if i > order && both < positive - 40.0 {
            break;
        }
        // Next binomial coefficient (order - i) / (i + 1), with its sign.
        let factor = (order - i) / (i + 1.0);
        if factor == 0.0 {
            break;
        }
        sign *= factor.signum();
        log_coefficient += factor.abs().ln();
    }
    let value = positive + (-(negative - positive).exp()).ln_1p();
    // Near zero the series is all cancellation; the chord between whole orders is an upper bound everywhere.
    if !(value > 1e-6) {
        return interpolate(order, |k| poisson_gaussian_integer(rate, noise, k));
    }
    value * (1.0 + 1e-9)
}

/// (order - 1) x divergence at a real order from bounds at whole orders: the log-moment is convex and 0 at order 1.
fn interpolate(order: f64, at: impl Fn(f64) -> f64) -> f64 {
    let (low, high) = (order.floor(), order.ceil());
    if low == high {
        return at(order);
    }
    let below = if low <= 1.0 { 0.0 } else { at(low) };
    below + (order - low) * (at(high) - below)
}

/// Divergence of (1-q)N(0)+qN(1) from (1-q)N(0)+qN(1-r), the larger of both directions, by the trapezoidal rule on a
/// function that is analytic and decays like a Gaussian.
///
/// The two shifts in opposite directions are the worst for a factor of 2; for others a right angle may be worse, so nothing is said.
fn poisson_gaussian_replace(rate: f64, noise: f64, factor: f64, order: f64) -> f64 {
    if (factor - 2.0).abs() > 1e-9 {
        return f64::INFINITY;
    }
    let inverse = 1.0 / (noise * noise);
    let log_ratio = |x: f64, shift: f64| log_add((-rate).ln_1p(), rate.ln() + (x * shift - 0.5 * shift * shift) * inverse);
    let sensitivity = (order + 1.0) * factor.max(1.0) + 12.0 * noise;
    // The logarithm has branch points at pi noise^2 off the real line: a step of noise^2 / 2 leaves an error of e^-39.
    let step = (noise / 16.0).min(0.5 * noise * noise);
    let half = (sensitivity / step).ceil();
    if !(half < 1e6) {
        return f64::INFINITY;
    }
    let half = half as i64;
    let (mut forward, mut backward) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for i in -half..=half {
        let x = i as f64 * step;
        let base = -0.5 * x * x * inverse;
        let (p, q) = (log_ratio(x, 1.0), log_ratio(x, 1.0 - factor));
        forward = log_add(forward, base + order * p + (1.0 - order) * q);
        backward = log_add(backward, base + order * q + (1.0 - order) * p);
    }
    let scale = (step / (noise * (2.0 * PI).sqrt())).ln();
    at_most(larger(forward, backward) + scale) * (1.0 + 1e-12) + 1e-14
}

/// Fixed-size subsets without replacement, Gaussian noise over the replace-one sensitivity (the forward-difference bound of
/// Wang, Balle and Kasiviswanathan), times (order - 1); whole orders.
fn fixed_size_gaussian(rate: f64, noise: f64, order: f64) -> f64 {
    let inverse = 1.0 / (noise * noise);
    // ln E[(ratio - 1)^l] for even l: a positive integrand, so no difference of large numbers.
    let central = |l: f64| {
        let step = noise / 16.0;
        let (low, high) = ((-14.0 * noise / step) as i64, ((l + 14.0 * noise) / step).ceil() as i64);
        let mut total = f64::NEG_INFINITY;
        for i in low..=high {
            let x = i as f64 * step;
            let exponent = (x - 0.5) * inverse;
            let log_gap = if exponent > 30.0 { exponent } else { exponent.exp_m1().abs().ln() };
            total = log_add(total, -0.5 * x * x * inverse + l * log_gap);
        }
        total + (step / (noise * (2.0 * PI).sqrt())).ln()
    };
    let top = order as usize;
    let mut even = vec![f64::NAN; top / 2 + 2];
    let mut total = 0.0f64;
    for j in 2..=top {
        let jf = j as f64;
        let plain = 2f64.ln() + 0.5 * jf * (jf - 1.0) * inverse;
        let refined = if j == 2 {
            4f64.ln() + inverse.exp_m1().ln()
        } else {
            let mut part = |half: usize| {
                if even[half].is_nan() {
                    even[half] = central(2.0 * half as f64);
                }
                even[half]
            };
            4f64.ln() + 0.5 * (part(j / 2) + part(j.div_ceil(2)))
        };
        total = log_add(total, jf * rate.ln() + log_binomial(order, jf) + plain.min(refined));
    }
    total
}

fn pure(epsilon: f64, order: f64) -> f64 {
    // Randomised response, the worst pure mechanism.
    let (keep, flip) = (-(-epsilon).exp().ln_1p(), -epsilon.exp().ln_1p());
    log_add(order * keep + (1.0 - order) * flip, order * flip + (1.0 - order) * keep) / (order - 1.0)
}

fn laplace(epsilon: f64, order: f64) -> f64 {
    let (a, b) = (order / (2.0 * order - 1.0), (order - 1.0) / (2.0 * order - 1.0));
    log_add(a.ln() + (order - 1.0) * epsilon, b.ln() - order * epsilon) / (order - 1.0)
}

/// A step, and what is made once for all orders: the profile of one run of a selection.
struct Prepared<'e> {
    step: Step<'e>,
    one: Option<Curve<'e>>,
}

/// The steps of an event, ready for many orders, and a delta that no divergence can express: approximate mechanisms are pure ones except
/// with that probability.
fn prepare(event: &Event, adjacency: Adjacency) -> Result<(Vec<Prepared<'_>>, f64)> {
    let mut failure = 0.0;
    let mut prepared = Vec::new();
    for step in event.steps(adjacency)? {
        let one = match step.leaf {
            Event::Select { event, .. } => Some(Curve::new(event, adjacency)),
            Event::Approx { epsilon, delta } => {
                let whole = adjacency.replaces() || matches!(step.sampling, Sampling::FixedSize { .. });
                failure += step.count as f64 * if whole { gap_cost(*epsilon, *delta) } else { *delta };
                None
            }
            _ => None,
        };
        prepared.push(Prepared { step, one });
    }
    Ok((prepared, failure))
}

fn total(prepared: &[Prepared<'_>], adjacency: Adjacency, order: f64) -> f64 {
    prepared.iter().map(|p| p.step.count as f64 * divergence(p, adjacency, order)).sum::<f64>() * (1.0 + 1e-14)
}

/// Divergence of one step at one order; infinite where no bound is known.
fn divergence(prepared: &Prepared<'_>, adjacency: Adjacency, order: f64) -> f64 {
    let step = &prepared.step;
    let replaces = adjacency.replaces();
    let unknown = f64::INFINITY;
    match (step.leaf, step.sampling) {
        (Event::Gaussian { .. } | Event::GaussianDp { .. } | Event::DiscreteGaussian { .. }, Sampling::All) => {
            super::gdp::mu_of(step.leaf, adjacency).map_or(unknown, |mu| 0.5 * order * mu * mu)
        }
        // So little noise that sampling is all that is left: the plain divergence is an upper bound.
        (Event::Gaussian { noise_multiplier, .. }, Sampling::Poisson { .. }) if *noise_multiplier < 0.02 => {
            super::gdp::mu_of(step.leaf, adjacency).map_or(unknown, |mu| 0.5 * order * mu * mu)
        }
        (Event::Gaussian { noise_multiplier, replace_factor }, Sampling::Poisson { rate }) => {
            if replaces {
                return poisson_gaussian_replace(rate, *noise_multiplier, *replace_factor, order) / (order - 1.0);
            }
            if order == order.floor() {
                poisson_gaussian_integer(rate, *noise_multiplier, order) / (order - 1.0)
            } else {
                poisson_gaussian_real(rate, *noise_multiplier, order) / (order - 1.0)
            }
        }
        (Event::DiscreteGaussian { sigma, sensitivity, .. }, Sampling::Poisson { rate }) if !replaces => {
            // At whole orders and whole shifts the binomial sum is exact for the discrete distribution too.
            let noise = *sigma as f64 / *sensitivity as f64;
            interpolate(order, |k| poisson_gaussian_integer(rate, noise, k)) / (order - 1.0)
        }
        (Event::Gaussian { noise_multiplier, replace_factor }, Sampling::FixedSize { rate }) => {
            // Whatever the adjacency: a batch without the record holds another one instead.
            if order > 512.0 {
                return unknown;
            }
            interpolate(order, |k| fixed_size_gaussian(rate, noise_multiplier / replace_factor, k)) / (order - 1.0)
        }
        (Event::Laplace { .. } | Event::DiscreteLaplace { .. } | Event::Pure { .. }, Sampling::All) => {
            let Some(epsilon) = super::pure::epsilon_of(step.leaf, adjacency) else { return unknown };
            if matches!(step.leaf, Event::Laplace { .. }) { laplace(epsilon, order) } else { pure(epsilon, order) }
        }
        (Event::Exponential { epsilon, replace_factor }, Sampling::All) => {
            let range = if replaces { epsilon * replace_factor } else { *epsilon };
            (range * range * order / 8.0).min(pure(range, order))
        }
        (Event::ZeroConcentrated { .. } | Event::Budget { .. }, Sampling::All) => {
            let once = Step { count: 1, ..*step };
            super::zcdp::rho_of(&once, adjacency).map_or(unknown, |rho| rho * order)
        }
        (Event::ObjectivePerturbation(o), Sampling::All) => objective::divergence(o, adjacency, order),
        (Event::Either(events), Sampling::All) => largest(events.iter().map(|e| renyi(e, adjacency, order).unwrap_or(unknown))),
        (Event::Select { stopping, event }, Sampling::All) => prepared.one.as_ref().map_or(unknown, |one| {
            let curve = |a: f64| renyi(event, adjacency, a).unwrap_or(unknown);
            selection::divergence(*stopping, &curve, &|e| one.delta(e), order)
        }),
        // Up to the probability that was set aside.
        (Event::Approx { epsilon, .. }, sampling) => pure(
            super::pure::sampled_epsilon(|a| if a.replaces() { 2.0 * epsilon } else { *epsilon }, sampling, adjacency),
            order,
        ),
        (Event::Laplace { .. } | Event::DiscreteLaplace { .. } | Event::Pure { .. } | Event::Exponential { .. }, sampling) => {
            let whole = |a| super::pure::epsilon_of(step.leaf, a).unwrap_or(unknown);
            pure(super::pure::sampled_epsilon(whole, sampling, adjacency), order)
        }
        (
            Event::GaussianDp { .. }
            | Event::DiscreteGaussian { .. }
            | Event::ZeroConcentrated { .. }
            | Event::ObjectivePerturbation(_)
            | Event::Poisson { .. }
            | Event::FixedSize { .. }
            | Event::Shuffled { .. }
            | Event::Repeat { .. }
            | Event::AtMost { .. }
            | Event::Budget { .. }
            | Event::Compose(_)
            | Event::Either(_)
            | Event::Select { .. }
            | Event::NotPrivate { .. },
            _,
        ) => unknown,
    }
}

/// Total divergence of an event at one order above 1; infinite where no bound is known.
pub fn renyi(event: &Event, adjacency: Adjacency, order: f64) -> Result<f64> {
    if !(order > 1.0 && order <= LARGEST_ORDER) {
        return Err(Error::domain("order", order, "give a number above 1 and at most 16384"));
    }
    let (prepared, failure) = prepare(event, adjacency)?;
    // An infinite loss has no divergence.
    Ok(if failure > 0.0 { f64::INFINITY } else { total(&prepared, adjacency, order) })
}

/// Epsilon from exactly the listed orders.
pub fn epsilon_at_orders(event: &Event, adjacency: Adjacency, delta: f64, orders: &[f64]) -> Result<f64> {
    check_delta(delta, false)?;
    let mut best = f64::INFINITY;
    for &order in orders {
        best = best.min(convert(renyi(event, adjacency, order)?, order, delta));
    }
    Ok(best * (1.0 + 1e-12))
}

/// Distance of linear terms on a grid from their continuous distribution, which no divergence can express: whoever adds up divergences adds it to
/// delta, times 1 + exp(epsilon). Discrete Gaussian noise on a value needs none: its divergences never exceed the continuous ones.
pub fn grid_gap(event: &Event, adjacency: Adjacency) -> Result<f64> {
    let steps = event.steps(adjacency)?;
    let linear: Vec<Step<'_>> = steps
        .into_iter()
        .filter(|s| matches!(s.leaf, Event::ObjectivePerturbation(_) | Event::Either(_) | Event::Select { .. }))
        .collect();
    Ok(discrete_gaussian_gap(&linear))
}

/// Adds Renyi divergences and converts at the best real order.
pub struct RenyiAccountant;

impl Accountant for RenyiAccountant {
    fn name(&self) -> &'static str {
        "rdp"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        check_delta(delta, false)?;
        let gap = grid_gap(event, adjacency)?;
        let (prepared, failure) = prepare(event, adjacency)?;
        let curve = |order: f64| total(&prepared, adjacency, order);
        let bound = with_gap(delta, gap, |d| {
            let rest = (d - failure) * (1.0 - 1e-12);
            let upper = if rest > 0.0 { epsilon_from_curve(&curve, rest) } else { f64::INFINITY };
            Ok(Bound { lower: 0.0, upper })
        })?;
        if bound.upper == f64::INFINITY {
            return Err(Error::unsupported("this event in Renyi accounting", "use the pld accountant"));
        }
        Ok(Bound { lower: 0.0, upper: bound.upper })
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let gap = gap_cost(epsilon, grid_gap(event, adjacency)?);
        let (prepared, failure) = prepare(event, adjacency)?;
        let upper = delta_from_curve(&|order| total(&prepared, adjacency, order), epsilon) + failure * (1.0 + 1e-12) + gap;
        Ok(Bound { lower: 0.0, upper: probability_at_most(upper) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_orders_join_the_whole_ones() {
        for (rate, noise) in [(0.01, 1.0), (0.004, 0.8), (0.2, 3.0)] {
            for order in [2.0, 3.0, 8.0, 17.0] {
                let whole = poisson_gaussian_integer(rate, noise, order);
                let near = poisson_gaussian_real(rate, noise, order + 1e-7);
                assert!((near / whole - 1.0).abs() < 1e-4, "{rate} {noise} {order}: {whole} {near}");
            }
            let halves: Vec<f64> = (0..20).map(|i| poisson_gaussian_real(rate, noise, 1.25 + 0.5 * f64::from(i))).collect();
            assert!(halves.windows(2).all(|w| w[0] < w[1]), "the log-moment increases: {halves:?}");
        }
    }

    #[test]
    fn replace_quadrature_contains_the_plain_gaussian() {
        // Rate close to 1: the pair is N(1) against N(-1), a shift of 2.
        let value = poisson_gaussian_replace(1.0 - 1e-12, 2.0, 2.0, 3.0) / 2.0;
        assert!((value / (0.5 * 3.0 * 1.0) - 1.0).abs() < 1e-6, "{value}");
        // Other factors: a right angle between the shifts can be worse than a line, so nothing is said about them.
        assert_eq!(poisson_gaussian_replace(0.1, 1.0, 2f64.sqrt(), 2.0), f64::INFINITY);
    }
}
