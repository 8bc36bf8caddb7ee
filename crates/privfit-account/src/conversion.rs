//! From a Renyi curve to epsilon and delta: the best order of all.

use super::checked::{at_least, at_most, probability_at_most, smaller};
use super::special::golden_minimum;

/// Largest order that is tried.
pub(super) const LARGEST_ORDER: f64 = 16384.0;

/// Converts one order: rdp + ln(1 - 1/a) - ln(delta a)/(a - 1).
pub(super) fn convert(rdp: f64, order: f64, delta: f64) -> f64 {
    let value = rdp + (-1.0 / order).ln_1p() - (delta * order).ln() / (order - 1.0);
    at_most(value)
}

/// Minimum of a function over real orders: a scan on a geometric grid that ends once it clearly rises, then a golden section.
fn minimise_over_orders(f: impl Fn(f64) -> f64) -> f64 {
    let order_of = |i: f64| 1.0 + 2f64.powf(i / 3.0 - 6.0);
    let last = ((LARGEST_ORDER - 1.0).log2() + 6.0) * 3.0;
    let (mut best, mut at, mut rises, mut previous) = (f64::INFINITY, 0.0, 0, f64::INFINITY);
    let mut i = 0.0;
    while i <= last {
        let value = f(order_of(i));
        if value < best {
            (best, at) = (value, i);
        }
        rises = if value > previous { rises + 1 } else { 0 };
        if rises >= 6 && value > 1.5 * best {
            break;
        }
        previous = value;
        i += 1.0;
    }
    if best == 0.0 || best == f64::INFINITY {
        return best;
    }
    let (_, refined) = golden_minimum(at_least(at - 1.0), (at + 1.0).min(last), 30, |i| f(order_of(i)));
    smaller(refined, best)
}

/// Smallest epsilon that a Renyi curve proves, over all real orders.
pub(super) fn epsilon_from_curve(curve: &dyn Fn(f64) -> f64, delta: f64) -> f64 {
    minimise_over_orders(|order| convert(curve(order), order, delta)) * (1.0 + 1e-12)
}

/// Smallest delta that a Renyi curve proves, over all real orders.
pub(super) fn delta_from_curve(curve: &dyn Fn(f64) -> f64, epsilon: f64) -> f64 {
    // Minimised in a positive monotone transform, so that the scan's stopping rule works on logarithms below zero.
    let log_delta = |order: f64| {
        let value = (order - 1.0) * (curve(order) + (-1.0 / order).ln_1p() - epsilon) - order.ln();
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let least = minimise_over_orders(|order| (log_delta(order) / 64.0).exp()).ln() * 64.0;
    probability_at_most(least.exp() * (1.0 + 1e-12))
}
