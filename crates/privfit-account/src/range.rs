//! Many choices by the exponential mechanism (Gumbel noise, permute-and-flip by its bound): losses in a window of width r, bounded range.
//!
//! One choice, at one epsilon, is at its worst a pair of two outcomes with losses t and t - r, t in [0, r] (Dong, Durfee and Rogers, 2020):
//! P(loss = t) = (e^r - e^t) / (e^r - 1). The worst t depends on epsilon, so that the pointwise maximum over t is attained by no single
//! mechanism, and composing it is loose. An adversary who picks t anew before each of k choices, knowing all losses so far, reaches exactly
//!
//!   V_k(s) = max over t of P(t) V_(k-1)(s - t) + (1 - P(t)) V_(k-1)(s - t + r),   V_0(s) = (1 - e^s)+,
//!
//! at epsilon = s. V is convex in a = e^s, so that chords between grid points lie above it, and the maximum over t between two grid points
//! has a closed form: with z = e^t both chords are lines in a/z, and the value is a constant + A z + B / z with A, B <= 0. The family of pairs is
//! closed under exchange of P and Q, so that V(-s) = 1 - e^-s + e^-s V(s) and only s >= 0 is kept.
//!
//! Composition with everything else. Let G be the profile of a pair that is composed with V. One more choice after which G and V_(k-1) remain
//! costs max_t E[G * V_(k-1)] <= G * max_t E[V_(k-1)] = G * V_k, whatever the order of choices and other releases: V_k is a dominating pair of the k
//! choices together, however they are interleaved.

use super::checked::{larger, probability_at_least, probability_at_most};
use super::table::Table;

/// Cells that one composition may look at, and one of many in a search for noise.
pub(crate) const WORK: f64 = 1.5e7;
pub(crate) const QUICK: f64 = 1e6;
/// Cells for a delta so far out that the grid shows.
pub(crate) const FINE: f64 = 1.5e8;
/// The same for each of several passes from below.
pub(crate) const BELOW: f64 = 4e6;

/// Cells to a window, as many as the work allows, and the number of grid points from 0 upwards.
fn grid_size(range: f64, count: u64, work: f64) -> Option<(usize, usize)> {
    let k = count as f64;
    // All of it, or as far as 12 standard deviations of r/2 a choice sensitivity: the rest, below 1e-30, counts as infinite.
    let end = (k * range).min(0.5 * k * range * (0.25 * range).tanh() + 6.0 * range * k.sqrt() + range);
    if !(end < 600.0 && range > 1e-12) {
        return None;
    }
    let states = |cells: f64| (end / range * cells).ceil() + 2.0 * cells;
    let mut cells = 512.0;
    while cells > 8.0 && k * states(cells) * cells > work {
        cells *= 0.5;
    }
    (k * states(cells) * cells <= larger(work, WORK)).then_some((cells as usize, states(cells) as usize))
}

/// The k-fold adaptive optimum as a dominating pair, none where it would take too long or does not fit.
pub(crate) fn adaptive(range: f64, count: u64, work: f64) -> Option<Table> {
    let (cells, n) = grid_size(range, count, work)?;
    let width = range / cells as f64;
    let a: Vec<f64> = (0..n + cells + 1).map(|i| (width * i as f64).exp()).collect();
    let inverse: Vec<f64> = a.iter().map(|a| 1.0 / a).collect();
    // Value at grid point i >= 0; beyond the last one, the last value holds.
    let mut value = vec![0.0; n];
    let total = range.exp_m1();
    for step in 0..count {
        // Chord between grid points i and i + 1 as (intercept, slope) in e^s, for i from -cells upwards.
        let at = |i: i64| -> f64 {
            if i >= 0 {
                return value[(i as usize).min(n - 1)];
            }
            let j = (-i) as usize;
            inverse[j] * value[j.min(n - 1)] + (1.0 - inverse[j])
        };
        let point = |i: i64| if i >= 0 { a[i as usize] } else { inverse[(-i) as usize] };
        let chords: Vec<(f64, f64)> = (-(cells as i64)..n as i64)
            .map(|i| {
                let (low, high) = (at(i), at(i + 1));
                let slope = (high - low) / (point(i + 1) - point(i));
                (low - slope * point(i), slope)
            })
            .collect();
        // Losses sensitivity no further than range for each choice made so far.
        let reached = ((step + 1) as usize).saturating_mul(cells).min(n);
        let mut next = vec![0.0; n];
        for (i, out) in next.iter_mut().enumerate().take(reached) {
            let (mut best, mut size) = (0.0, 0.0);
            for m in 0..cells {
                // t in [m, m + 1] cells: s - t lies in cell i - m - 1, s - t + r in cell i - m - 1 + cells.
                let left = i + cells - m - 1;
                let ((alpha, beta), (alpha2, beta2)) = (chords[left], chords[(left + cells).min(chords.len() - 1)]);
                let (linear, inverse_part) = (alpha2 - alpha, a[i] * a[cells] * (beta - beta2));
                let constant = a[cells] * alpha - alpha2 + a[i] * (a[cells] * beta2 - beta);
                let (z0, z1) = (a[m], a[m + 1]);
                let ends = larger(linear * z0 + inverse_part * inverse[m], linear * z1 + inverse_part * inverse[m + 1]);
                // The derivative A - B / z^2 changes its sign inside of few cells; elsewhere an end is the maximum.
                let inside = if linear * z0 * z0 > inverse_part && linear * z1 * z1 < inverse_part {
                    -2.0 * (linear * inverse_part).sqrt()
                } else {
                    f64::NEG_INFINITY
                };
                let here = constant + larger(inside, ends);
                if !(here <= best) {
                    (best, size) = (here, alpha.abs() - a[i] * beta);
                }
            }
            // Lines cancel: their rounding is relative to intercept and slope, not to the value.
            *out = probability_at_most((best + 16.0 * f64::EPSILON * a[cells] * size) / total);
        }
        value = next;
    }
    // Rounding has no place beyond the largest loss there is.
    let top = (count as usize).saturating_mul(cells);
    let curve: Vec<(f64, f64)> =
        value.iter().enumerate().map(|(i, v)| (width * i as f64, if i >= top { 0.0 } else { *v })).take(top + 1).collect();
    Table::symmetric(&curve)
}

/// What the adversary reaches for certain: t on the grid, so that all losses are, and no chord is needed. `V_k` at offset + i cells for i
/// from 0 upwards.
fn reached(range: f64, count: u64, cells: usize, offset: f64, n: usize) -> Vec<f64> {
    let width = range / cells as f64;
    let total = range.exp_m1();
    // P(t) for every t on the grid from the largest down, and its complement.
    let t = || (0..=cells).rev().map(|m| width * m as f64);
    let keep: Vec<f64> = t().map(|t| t.exp() * (range - t).exp_m1() / total).collect();
    let flip: Vec<f64> = t().map(|t| t.exp_m1() / total).collect();
    // From -n to n cells, and a window more at either side: there the value is at least 1 - e^s, or 0.
    let side = n + cells;
    let trivial = |i: usize| probability_at_least(-(offset + width * (i as f64 - side as f64)).exp_m1());
    let mut value: Vec<f64> = (0..=2 * side).map(trivial).collect();
    for step in 0..count {
        let mut next = value.clone();
        let far = (step as usize + 1).saturating_mul(cells).min(n);
        for i in side - far..=side + far {
            let (below, above) = (&value[i - cells..=i], &value[i..=i + cells]);
            next[i] = larger_lower(value[i], best(&keep, below, &flip, above));
        }
        value = next;
    }
    value.truncate(side + n + 1);
    value.split_off(side)
}

/// The largest p below + q above, in lanes.
fn best(keep: &[f64], below: &[f64], flip: &[f64], above: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0; LANES];
    let (mut p, mut b, mut q, mut a) =
        (keep.chunks_exact(LANES), below.chunks_exact(LANES), flip.chunks_exact(LANES), above.chunks_exact(LANES));
    while let (Some(p), Some(b), Some(q), Some(a)) = (p.next(), b.next(), q.next(), a.next()) {
        for j in 0..LANES {
            lanes[j] = larger_lower(lanes[j], p[j] * b[j] + q[j] * a[j]);
        }
    }
    let rest = p.remainder().iter().zip(b.remainder()).zip(q.remainder().iter().zip(a.remainder()));
    let rest = rest.map(|((p, b), (q, a))| p * b + q * a);
    lanes.into_iter().chain(rest).fold(0.0, larger_lower)
}

/// The larger of two lower bounds; what is not a number proves nothing.
fn larger_lower(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// A lower bound on what k choices cost: an adversary who picks t on a grid, knowing all losses so far. `upper` is a bound on the answer. None
/// where it would take too long.
pub(crate) fn reached_epsilon(range: f64, count: u64, delta: f64, upper: f64) -> Option<f64> {
    let (cells, n) = grid_size(range, count, BELOW)?;
    let width = range / cells as f64;
    let exceeds = |v: f64| v * (1.0 - SLACK) > delta;
    let curve = reached(range, count, cells, 0.0, n);
    let Some(last) = curve.iter().rposition(|v| exceeds(*v)) else { return Some(0.0) };
    // Between two grid points by grids that begin between them.
    let (base, mut low, mut high) = (width * last as f64, 0.0, width);
    for _ in 0..4 {
        let middle = 0.5 * (low + high);
        if exceeds(reached(range, count, cells, middle, n)[last]) { low = middle } else { high = middle }
    }
    Some(if base + low < upper { base + low } else { upper })
}

/// The same for a delta at an epsilon.
pub(crate) fn reached_delta(range: f64, count: u64, epsilon: f64, work: f64) -> Option<f64> {
    let (cells, n) = grid_size(range, count, work)?;
    let width = range / cells as f64;
    let cell = (epsilon / width).floor();
    if !(cell < n as f64) {
        return Some(0.0);
    }
    let offset = epsilon - width * cell;
    Some(probability_at_least(reached(range, count, cells, offset, n)[cell as usize] * (1.0 - SLACK)))
}

/// Rounding of sums of positive terms, over all choices.
const SLACK: f64 = 1e-11;

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::*;

    /// Two choices by brute force over t, then t again for each outcome: the table lies just above.
    #[test]
    fn two_choices_by_brute_force() {
        for range in [0.1f64, 0.7, 2.0] {
            let table = adaptive(range, 2, WORK).unwrap();
            let p = |t: f64| (range.exp() - t.exp()) / range.exp_m1();
            let one = |s: f64| {
                (0..=400)
                    .map(|i| range * f64::from(i) / 400.0)
                    .map(|t| p(t) * (-(s - t).exp_m1()).max(0.0) + (1.0 - p(t)) * (-(s - t + range).exp_m1()).max(0.0))
                    .fold(0.0, f64::max)
            };
            for share in [0.0, 0.3, 0.9, 1.3, 1.9] {
                let s = share * range;
                let truth = (0..=400)
                    .map(|i| range * f64::from(i) / 400.0)
                    .map(|t| p(t) * one(s - t) + (1.0 - p(t)) * one(s - t + range))
                    .fold(0.0, f64::max);
                let (ours, reached) = (table.delta(s), reached_delta(range, 2, s, BELOW).unwrap());
                assert!(ours >= truth && ours <= truth * 1.002 + 3e-6, "{range} {s}: {ours} {truth}");
                assert!(reached <= ours && reached >= 0.99 * truth, "{range} {s}: {reached} {truth}");
            }
        }
    }

    /// One choice is the pointwise maximum.
    #[test]
    fn one_choice_is_the_profile() {
        for range in [0.2f64, 1.5] {
            let (table, profile) = (adaptive(range, 1, WORK).unwrap(), super::super::profile::BoundedRange { range });
            for i in -9..10 {
                let e = range * f64::from(i) / 10.0;
                let (ours, truth) = (table.delta(e), profile.delta(e));
                assert!(ours >= truth * (1.0 - 1e-12) && ours <= truth + 1e-4 * range, "{range} {e}: {ours} {truth}");
            }
        }
    }
}
