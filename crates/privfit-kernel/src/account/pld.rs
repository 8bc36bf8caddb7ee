//! Privacy loss distributions with certified bounds.
//!
//! Every mechanism is a convex curve delta(a), a = e^epsilon. On a grid of losses the chords of that curve are the loss
//! distribution of a worse mechanism, and the tangents at cell middles, joined at grid points and made convex, that of a
//! better one. Both errors are of second order in the grid, so a grid of a tenth of one step's standard deviation is
//! enough however many steps there are. Cells grow in the tails, as the tilted mass there shrinks.
//!
//! Composition is one Fourier transform. The masses are tilted by e^(theta l) first, theta being the saddle point of the
//! question, so that the answer lies in the middle of the composed law: float error is then relative to the answer, and
//! the window needs to hold a few standard deviations only. What lies outside is bounded by Chernoff and charged.

use super::adjacency::Adjacency;
use super::event::{Event, Sampling, Step};
use super::gdp::{discrete_gaussian_gap, mu_of, with_gap};
use super::objective::Tilted;
use super::profile::{
    Amplified, BoundedRange, DiscreteShift, LaplaceShift, Profile, ReplacedMixture, Response, Reversed, Shift, Symmetrised,
};
use super::special::golden_minimum;
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};
use realfft::{RealFftPlanner, num_complex::Complex64};
use std::cell::RefCell;

/// Relative width aimed at between the two bounds on epsilon.
const TARGET_GAP: f64 = 5e-4;
/// Relative width aimed at between the two bounds on delta.
const TARGET_GAP_DELTA: f64 = 2e-3;
/// What lies outside of the window, relative to the answer.
const OUTSIDE: f64 = 1e-6;
/// Largest transform: 2^22 doubles.
const LARGEST: usize = 1 << 22;

/// What is asked of a composition.
#[derive(Clone, Copy)]
enum Question {
    Epsilon { delta: f64 },
    Delta { epsilon: f64 },
}

/// One mechanism and how often it happens.
struct Component {
    profile: Box<dyn Profile>,
    count: u64,
}

/// A loss distribution on multiples of a grid width.
struct Masses {
    index: Vec<i64>,
    mass: Vec<f64>,
    infinite: f64,
}

impl Masses {
    fn new(entries: impl Iterator<Item = (i64, f64)>, infinite: f64) -> Masses {
        let (index, mass) = entries.filter(|e| e.1 > 0.0).unzip();
        Masses { index, mass, infinite }
    }

    /// (ln sum m e^(t l), its first and second derivative).
    fn cumulant(&self, t: f64, width: f64) -> (f64, f64, f64) {
        let top = self.index.iter().map(|&k| t * width * k as f64).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for (&k, &m) in self.index.iter().zip(&self.mass) {
            let l = width * k as f64;
            let weight = m * (t * l - top).exp();
            sum += weight;
            first += weight * l;
            second += weight * l * l;
        }
        let mean = first / sum;
        (top + sum.ln(), mean, (second / sum - mean * mean).max(0.0))
    }
}

fn total_cumulant(parts: &[(Masses, u64)], t: f64, width: f64) -> f64 {
    parts.iter().map(|(m, count)| *count as f64 * m.cumulant(t, width).0).sum()
}

/// Smallest e >= start with P(L > e) - P(L = infinity) <= tail.
fn quantile(tail_at: impl Fn(f64) -> f64, tail: f64) -> f64 {
    let mut high = 1e-6;
    while tail_at(high) > tail && high < 1e12 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if tail_at(middle) > tail { low = middle } else { high = middle }
    }
    high
}

/// Distance between the losses that 2 % of the mass exceed and fall below.
fn spread(profile: &dyn Profile) -> f64 {
    let infinite = profile.infinite();
    quantile(|e| profile.above(e).0 - infinite, 0.02) + quantile(|e| profile.below(-e).0, 0.02)
}

/// Grid points of one mechanism: width 1 in the bulk, wider as the tilted tail shrinks.
fn grid(profile: &dyn Profile, width: f64, theta: f64, log_moment: f64, tail: f64) -> Vec<i64> {
    let infinite = profile.infinite();
    let top = quantile(|e| profile.above(e).0 - infinite, tail);
    let bottom = -quantile(|e| profile.below(-e).0, tail.min(1e-12));
    let (top, bottom) = ((top / width).ceil() as i64, (bottom / width).floor() as i64);
    // The middle: half of the mass on either side.
    let mut middle = quantile(|e| profile.above(e).0, 0.5);
    if profile.above(0.0).0 < 0.5 {
        middle = -quantile(|e| profile.below(-e).0, 0.5);
    }
    let middle = ((middle / width).round() as i64).clamp(bottom, top);
    // Never more than some thousand cells in the bulk: a mechanism much wider than the grid does not need it.
    let coarsest = (spread(profile) / (4096.0 * width)).max(1.0);
    let widest = if theta > 0.0 { (0.25 / (theta * width)).max(1.0) } else { f64::INFINITY };
    let walk = |end: i64, up: bool| {
        let mut points = Vec::new();
        let mut k = middle;
        while k != end {
            let e = width * k as f64;
            let mass = if up { profile.above(e).0 - infinite } else { profile.below(e).0 };
            let weight = (mass.max(1e-300).ln() + theta * e - log_moment).exp();
            let distance = (k - middle).unsigned_abs() as f64;
            let wide = (0.05 / weight.sqrt()).min(widest).min(1.0 + 0.125 * distance).max(coarsest).floor() as i64;
            k = if up { (k + wide).min(end) } else { (k - wide).max(end) };
            points.push(k);
        }
        points
    };
    let mut points = walk(bottom, false);
    points.reverse();
    points.push(middle);
    points.extend(walk(top, true));
    if points.len() == 1 {
        points.push(points[0] + 1);
    }
    points
}

/// (P, Q) mass of losses in (lower, upper], from whichever tails are small.
fn between(above: (Tail, Tail), below: (Tail, Tail)) -> (f64, f64) {
    let pick = |a: (f64, f64), b: (f64, f64)| if a.0 < b.1 { a.0 - a.1 } else { b.1 - b.0 };
    (pick((above.0.0, above.1.0), (below.0.0, below.1.0)).max(0.0), pick((above.0.1, above.1.1), (below.0.1, below.1.1)).max(0.0))
}

type Tail = (f64, f64);

/// Chords: a worse mechanism with losses on the grid only.
fn chords(profile: &dyn Profile, points: &[i64], width: f64) -> Masses {
    let at = |k: i64| (profile.above(width * k as f64), profile.below(width * k as f64));
    let mut mass = vec![0.0; points.len()];
    let mut left = at(points[0]);
    mass[0] = left.1.0;
    for i in 1..points.len() {
        let right = at(points[i]);
        let (p, q) = between((left.0, right.0), (left.1, right.1));
        // The mass of a cell goes to its two ends so that both P and Q keep theirs.
        let span = width * (points[i] - points[i - 1]) as f64;
        let up = ((p - (width * points[i - 1] as f64).exp() * q) / -(-span).exp_m1()).clamp(0.0, p);
        mass[i] += up;
        mass[i - 1] += p - up;
        left = right;
    }
    Masses::new(points.iter().copied().zip(mass), left.0.0)
}

/// Tangents: a better mechanism with losses on the grid only.
///
/// The losses are cut into cells, one for each grid point that is kept, so that the whole of a cell has just the loss of its
/// grid point: adjacent tangents then meet there. What the search misses (atoms, rounding) is taken off the curve.
fn tangents(profile: &dyn Profile, points: &[i64], width: f64, theta: f64) -> Masses {
    // A grid point with nothing below it: needed if the next mass is an atom, in the way if it is a density. Both are valid.
    let (one, other) = (tangents_from(profile, points, width, false), tangents_from(profile, points, width, true));
    if one.cumulant(theta, width).0 >= other.cumulant(theta, width).0 { one } else { other }
}

fn tangents_from(profile: &dyn Profile, points: &[i64], width: f64, skip_empty: bool) -> Masses {
    let infinite = profile.infinite();
    let tails = |e: f64| (profile.above(e), profile.below(e));
    // Under an upper bound on the loss Q may have less than its full mass.
    let start = tails(f64::MIN / 4.0);
    let end = ((infinite, 0.0), (1.0 - infinite, start.1.1 + start.0.1));
    let (mut kept, mut cells): (Vec<i64>, Vec<(f64, f64)>) = (Vec::new(), Vec::new());
    let (mut edge, mut left) = (f64::NEG_INFINITY, start);
    for &k in points {
        let e = width * k as f64;
        let a = e.exp();
        if edge >= e {
            continue;
        }
        // Positive once the losses from the left edge up to b are more than e together.
        let excess = |b: &(Tail, Tail)| {
            let (p, q) = between((left.0, b.0), (left.1, b.1));
            p - a * q
        };
        if excess(&end) < 0.0 && !kept.is_empty() {
            break;
        }
        let here = tails(e);
        if skip_empty && excess(&here) >= 0.0 {
            continue;
        }
        let (mut low, mut high) = (e, if edge.is_finite() { 2.0 * e - edge } else { e + 0.5 * width });
        let mut right = tails(high);
        let mut at_high = excess(&right);
        for _ in 0..60 {
            if at_high >= 0.0 {
                break;
            }
            (low, high) = (high, high + 2.0 * (high - e));
            right = tails(high);
            at_high = excess(&right);
        }
        let mut at_low = if low == e { excess(&here) } else { excess(&tails(low)) };
        let mut side = 0;
        for _ in 0..12 {
            if at_high <= 1e-12 * (right.1.0 - left.1.0).abs() || at_low >= 0.0 {
                break;
            }
            // False position; an end that stays twice counts half.
            let b = low + (high - low) * (at_low / (at_low - at_high)).clamp(0.02, 0.98);
            let here = tails(b);
            let value = excess(&here);
            if value >= 0.0 {
                (high, right, at_high) = (b, here, value);
                if side == 1 {
                    at_low *= 0.5;
                }
                side = 1;
            } else {
                (low, at_low) = (b, value);
                if side == -1 {
                    at_high *= 0.5;
                }
                side = -1;
            }
        }
        kept.push(k);
        cells.push(between((left.0, right.0), (left.1, right.1)));
        (edge, left) = (high, right);
    }
    // The last cell takes all that is left.
    let (p, q) = between((left.0, end.0), (left.1, end.1));
    if let Some(last) = cells.last_mut() {
        *last = (last.0 + p, last.1 + q);
    }
    let n = kept.len();
    let points = &kept;
    let a: Vec<f64> = points.iter().map(|&k| (width * k as f64).exp()).collect();
    // Heights over and under the two neighbouring tangents at each grid point.
    let over: Vec<f64> = cells.iter().zip(&a).map(|((p, q), a)| (p - a * q).max(0.0)).collect();
    let under: Vec<f64> = cells.iter().zip(&a).map(|((p, q), a)| (a * q - p).max(0.0)).collect();
    let gap = |i: usize| if i == 0 { a[0] } else { a[i] - a[i - 1] };
    // Points of the convex minorant: (grid position, Q-mass there = change of slope), pooled where it is negative.
    let mut kept: Vec<(usize, f64)> = Vec::with_capacity(n);
    for i in 0..n {
        let mut slope_change = cells[i].1;
        if i + 1 < n {
            slope_change += (under[i] - over[i + 1]) / gap(i + 1);
        }
        slope_change -= (if i == 0 { 0.0 } else { under[i - 1] } - over[i]) / gap(i);
        kept.push((i, slope_change));
    }
    let mut stack: Vec<(usize, f64)> = Vec::with_capacity(n);
    let mut rest = kept.into_iter().peekable();
    while let Some((i, change)) = rest.next() {
        if change >= 0.0 {
            stack.push((i, change));
            continue;
        }
        // Remove the point: its change is shared by its neighbours in proportion to the opposite interval.
        let next = rest.peek().map(|r| r.0);
        let before = stack.last().map(|s| s.0);
        let left_width = a[i] - before.map_or(0.0, |b| a[b]);
        let right_width = next.map_or(f64::INFINITY, |r| a[r] - a[i]);
        let share = if right_width.is_finite() { right_width / (left_width + right_width) } else { 1.0 };
        if let Some(last) = stack.last_mut() {
            last.1 += change * share;
        }
        if let Some(ahead) = rest.peek_mut() {
            ahead.1 += change * (1.0 - share);
        }
        // A neighbour on the left may have turned negative: put it back in front.
        while let Some(&(j, c)) = stack.last() {
            if c >= 0.0 {
                break;
            }
            stack.pop();
            let left_width = a[j] - stack.last().map_or(0.0, |s| a[s.0]);
            let right_width = rest.peek().map_or(f64::INFINITY, |r| a[r.0] - a[j]);
            let share = if right_width.is_finite() { right_width / (left_width + right_width) } else { 1.0 };
            if let Some(last) = stack.last_mut() {
                last.1 += c * share;
            }
            if let Some(ahead) = rest.peek_mut() {
                ahead.1 += c * (1.0 - share);
            }
        }
    }
    Masses::new(stack.into_iter().map(|(i, q)| (points[i], a[i] * q)), (infinite - under[n - 1]).max(0.0))
}

thread_local! {
    static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new());
}

/// The composed, tilted law in a window.
struct Composed {
    theta: f64,
    width: f64,
    /// Grid index of the first slot.
    first: i64,
    /// Tilted mass of each slot, and the float error of each.
    mass: Vec<f64>,
    error: f64,
    /// ln of the factor that undoes the tilt: P(S = l) = e^(log_scale - theta l) mass.
    log_scale: f64,
    /// Tilted probability outside of the window.
    outside: f64,
    /// P(S = infinity).
    infinite: f64,
    /// Relative float error of the masses.
    relative: f64,
}

/// Chernoff exponents that bound the tilted, composed law above and below.
#[derive(Clone, Copy)]
struct Edges {
    above: f64,
    below: f64,
}

impl Edges {
    /// Exponents with the narrowest window; any are valid, and the width is quasi-convex in each.
    fn best(parts: &[(Masses, u64)], width: f64, theta: f64, log_scale: f64, outside: f64) -> Edges {
        let find = |sign: f64| {
            let reach = |log_t: f64| {
                let t = sign * log_t.exp();
                let value = (total_cumulant(parts, theta + t, width) - log_scale - outside.ln()) / t.abs();
                if value.is_nan() { f64::INFINITY } else { value }
            };
            golden_minimum(-6.0, 12.0, 15, reach).0.exp()
        };
        Edges { above: find(1.0), below: find(-1.0) }
    }

    /// First and last grid index between which all but `outside` on either side lies.
    fn window(&self, parts: &[(Masses, u64)], width: f64, theta: f64, log_scale: f64, outside: f64) -> Option<(i64, i64)> {
        let reach = |t: f64| (total_cumulant(parts, theta + t, width) - log_scale - outside.ln()) / t.abs();
        let limit = |pick: fn(&Masses) -> Option<&i64>| -> f64 {
            parts.iter().map(|(m, c)| *c as f64 * pick(m).copied().unwrap_or(0) as f64).sum()
        };
        let last = (reach(self.above) / width).ceil().min(limit(|m| m.index.last()));
        let first = (-reach(-self.below) / width).floor().max(limit(|m| m.index.first()));
        (last - first < LARGEST as f64 - 2.0 && first.abs() < 1e18).then_some((first as i64, last as i64))
    }
}

fn compose(parts: &[(Masses, u64)], tilt: &Tilt, width: f64) -> Option<Composed> {
    let (theta, outside) = (tilt.theta, tilt.outside);
    let log_scale = total_cumulant(parts, theta, width);
    let (first, last) = tilt.edges.window(parts, width, theta, log_scale, outside)?;
    let needed = (last - first + 2) as usize;
    let length = needed.next_power_of_two().max(16);
    let length = if needed <= length / 4 * 3 { length / 4 * 3 } else { length };
    let n = length as i64;
    let (mut log_keep, mut steps) = (0.0, 0.0);
    let (forward, inverse) = PLANNER.with_borrow_mut(|p| (p.plan_fft_forward(length), p.plan_fft_inverse(length)));
    let mut product = vec![Complex64::new(1.0, 0.0); length / 2 + 1];
    let mut offset = 0i64;
    let mut buffer = vec![0.0; length];
    let mut spectrum = vec![Complex64::default(); length / 2 + 1];
    for (masses, count) in parts {
        buffer.fill(0.0);
        let (log_moment, mean, _) = masses.cumulant(theta, width);
        // Centred, so that phases stay small before they are multiplied by the count.
        let centre = (mean / width).round() as i64;
        for (&k, &m) in masses.index.iter().zip(&masses.mass) {
            buffer[(k - centre).rem_euclid(n) as usize] += m * (theta * width * k as f64 - log_moment).exp();
        }
        forward.process(&mut buffer, &mut spectrum).ok()?;
        let count_f = *count as f64;
        for (value, z) in product.iter_mut().zip(&spectrum) {
            *value *= if *count == 1 { *z } else { power(*z, count_f) };
        }
        let turn = (i128::from(centre) * i128::from(*count)).rem_euclid(i128::from(n)) as i64;
        offset = (offset + turn).rem_euclid(n);
        log_keep += count_f * (-masses.infinite).ln_1p();
        steps += count_f;
    }
    let digits = (length as f64).log2();
    let spread = 2.0 / length as f64 * product.iter().filter(|z| z.re != 0.0 || z.im != 0.0).map(|z| z.norm()).sum::<f64>();
    product[0].im = 0.0;
    product[length / 2].im = 0.0;
    inverse.process(&mut product, &mut buffer).ok()?;
    // Slot 0 of the window stands at index first - offset of the periodic result.
    buffer.rotate_left((first - offset).rem_euclid(n) as usize);
    let scale = 1.0 / length as f64;
    buffer.iter_mut().for_each(|m| *m = (*m * scale).max(0.0));
    let mass = buffer;
    Some(Composed {
        theta,
        width,
        first,
        mass,
        // Roundoff of the transform is below epsilon log2(n) and grows with the power.
        error: f64::EPSILON * (steps + 1.0) * digits * spread,
        log_scale,
        outside,
        infinite: -log_keep.exp_m1(),
        // Masses sum to one up to rounding, per step.
        relative: 1e-9 + 1e-13 * steps,
    })
}

fn power(z: Complex64, count: f64) -> Complex64 {
    let square = z.norm_sqr();
    // 1 - x <= e^-x: most frequencies vanish without a logarithm.
    if !(0.5 * count * (1.0 - square) < 60.0) {
        return Complex64::default();
    }
    let log = 0.5 * count * square.ln();
    let (sin, cos) = (count * z.im.atan2(z.re)).sin_cos();
    let size = log.exp();
    Complex64::new(size * cos, size * sin)
}

impl Composed {
    fn loss(&self, slot: usize) -> f64 {
        self.width * (self.first + slot as i64) as f64
    }

    /// Answers a question by the upper (pessimistic) or lower (optimistic) reading of the composed law.
    fn answer(&self, question: Question, upper: bool) -> f64 {
        let n = self.mass.len();
        let reference = self.loss(n / 2);
        // All sums are in units of e^(log_scale - theta reference); float error and the mass outside count against us.
        let sign = if upper { 1.0 } else { -1.0 };
        let unit = (self.log_scale - self.theta * reference).exp() * (1.0 + sign * self.relative);
        let outside = |e: f64| {
            let at = if upper { self.loss(n - 1) } else { e };
            sign * 2.0 * self.outside * (-self.theta * (at - reference)).exp()
        };
        // delta(e) from sums over the losses above e: a of the masses, b of the masses times e^-(loss - reference).
        let delta_at = |a: f64, b: f64, e: f64| unit * (a - (e - reference).exp() * b + outside(e)).max(0.0) + self.infinite;
        let sum = |from: usize, to: usize, mut a: f64, mut b: f64| {
            let l = self.loss(to - 1) - reference;
            let (mut weight, mut weight_more) = ((-self.theta * l).exp(), (-(self.theta + 1.0) * l).exp());
            let (grow, grow_more) = ((self.theta * self.width).exp(), ((self.theta + 1.0) * self.width).exp());
            for m in self.mass[from..to].iter().rev() {
                let m = (m + sign * self.error).max(0.0);
                a += weight * m;
                b += weight_more * m;
                weight *= grow;
                weight_more *= grow_more;
            }
            (a, b)
        };
        const BLOCK: usize = 256;
        let (mut a, mut b, mut end) = (0.0, 0.0, n);
        match question {
            Question::Delta { epsilon } => {
                let above = ((epsilon / self.width).floor() as i64 + 1 - self.first).clamp(0, n as i64) as usize;
                while end > above {
                    let start = above.max(end.saturating_sub(BLOCK));
                    (a, b) = sum(start, end, a, b);
                    end = start;
                }
                delta_at(a, b, epsilon).min(1.0)
            }
            Question::Epsilon { delta } => {
                // Down block by block, then slot by slot, until delta is exceeded at a slot; the answer lies just above it.
                let mut size = BLOCK;
                while end > 0 {
                    let start = end.saturating_sub(size);
                    let (more_a, more_b) = sum(start, end, a, b);
                    let below = if start == 0 { f64::NEG_INFINITY } else { self.loss(start - 1) };
                    if start > 0 && below > 0.0 && delta_at(more_a, more_b, below) <= delta {
                        (a, b, end) = (more_a, more_b, start);
                    } else if size > 1 {
                        size = 1;
                    } else {
                        // Between `below` and the slot that was added last: delta = a - e^x b, solved for x.
                        let at = |x: f64| delta_at(more_a, more_b, x);
                        if at(below.max(0.0)) <= delta {
                            return 0.0;
                        }
                        let rest = more_a + outside(below.max(0.0)) - (delta - self.infinite) / unit;
                        let x = reference + (rest / more_b).ln();
                        return if x.is_nan() { self.loss(start) } else { x.clamp(below.max(0.0), self.loss(start).max(0.0)) };
                    }
                }
                0.0
            }
        }
    }
}

/// A tilt: any is valid, a good one puts the answer in the middle of a narrow law.
struct Tilt {
    theta: f64,
    /// Tilted probability that may lie outside of the window without hurting the answer.
    outside: f64,
    /// Estimated epsilon of the answer.
    epsilon: f64,
    /// Slope of -ln delta there.
    slope: f64,
    edges: Edges,
}

/// The tilt for a question: the saddle point of the steepest-descent estimate
/// ln delta = K - theta K' - ln(theta (1+theta) sqrt(2 pi K'')), or K' = epsilon; less where the single step has so heavy a
/// tail that the tilted law would spread out.
fn saddle(parts: &[(Masses, u64)], width: f64, question: Question, largest: f64) -> Tilt {
    let sums = |theta: f64| {
        parts.iter().fold((0.0, 0.0, 0.0), |(a, b, c), (masses, count)| {
            let (k, k1, k2) = masses.cumulant(theta, width);
            let count = *count as f64;
            (a + count * k, b + count * k1, c + count * k2)
        })
    };
    let prefactor =
        |theta: f64, second: f64| (theta * (1.0 + theta) * (2.0 * std::f64::consts::PI * second).sqrt()).ln().max(0.0);
    let (mut low, mut high) = (1e-4f64.ln(), largest.ln());
    for _ in 0..22 {
        let log_theta = 0.5 * (low + high);
        let theta = log_theta.exp();
        let (value, first, second) = sums(theta);
        let too_small = match question {
            Question::Epsilon { delta } => value - theta * first - prefactor(theta, second) > delta.max(1e-300).ln(),
            Question::Delta { epsilon } => first < epsilon,
        };
        if too_small { low = log_theta } else { high = log_theta }
    }
    let slope = high.exp();
    let mut theta = slope;
    let (value, first, second) = sums(theta);
    let (epsilon, log_delta) = match question {
        Question::Epsilon { delta } => (first.max(0.0), delta.max(1e-300).ln()),
        Question::Delta { epsilon } => (epsilon, value - theta * epsilon - prefactor(theta, second)),
    };
    // Share of the tilted law that answers the question; float error must stay far below it.
    let share = |theta: f64, log_scale: f64| (log_delta + theta * epsilon - log_scale).min(0.0).exp();
    let steps: f64 = parts.iter().map(|p| p.1 as f64).sum();
    let look = |theta: f64| {
        let log_scale = sums(theta).0;
        let outside = OUTSIDE * share(theta, log_scale);
        let edges = Edges::best(parts, width, theta, log_scale, outside);
        let span = edges.window(parts, width, theta, log_scale, outside).map_or(i64::MAX, |w| w.1 - w.0);
        (span, outside, edges)
    };
    let (mut span, mut outside, mut edges) = look(theta);
    while span > 1 << 15 {
        let less = 0.8 * theta;
        if share(less, sums(less).0) < 1e-6 + 1e-11 * steps {
            break;
        }
        let next = look(less);
        if next.0 as f64 > 0.95 * span as f64 {
            break;
        }
        (span, outside, edges) = next;
        theta = less;
    }
    Tilt { theta, outside, epsilon, slope, edges }
}

/// Certified bounds for one direction.
fn direction(components: &[(&dyn Profile, u64)], question: Question, lower_too: bool) -> Bound {
    let steps: f64 = components.iter().map(|c| c.1 as f64).sum();
    // Losses above the last grid point count as infinite: together far below the delta in question.
    let tail = match question {
        Question::Epsilon { delta } => 1e-6 * delta / steps,
        Question::Delta { .. } => 1e-18 / steps,
    };
    let square: f64 = components.iter().map(|(p, c)| *c as f64 * spread(*p).powi(2)).sum();
    let mut width = (square / steps).sqrt() / 24.0;
    let (mut theta, mut moments) = (0.0, vec![0.0; components.len()]);
    let mut best = Bound { lower: 0.0, upper: f64::INFINITY };
    let atom = components.iter().filter_map(|(p, c)| p.atom().map(|a| (*c, a))).max_by_key(|x| x.0).map(|x| x.1);
    for round in 0..12 {
        if let Some(atom) = atom {
            width = atom / (atom / width).ceil();
        }
        let points: Vec<Vec<i64>> = components.iter().zip(&moments).map(|((p, _), m)| grid(*p, width, theta, *m, tail)).collect();
        let worse: Vec<(Masses, u64)> = components.iter().zip(&points).map(|((p, c), g)| (chords(*p, g, width), *c)).collect();
        let widest = worse.iter().flat_map(|(m, _)| [m.index[0], m.index[m.index.len() - 1]]).map(i64::unsigned_abs).max();
        let largest = (600.0 / (width * widest.unwrap_or(1).max(1) as f64)).max(1e-3);
        let tilt = saddle(&worse, width, question, largest);
        theta = tilt.theta;
        moments = worse.iter().map(|(m, _)| m.cumulant(theta, width).0).collect();
        // Second-order error of the grid: the variance grows by width^2/6 a step above and shrinks by half of it below.
        let error = 0.125 * tilt.slope * steps * width * width;
        let aim = match question {
            Question::Epsilon { .. } => TARGET_GAP * tilt.epsilon.max(1e-3),
            Question::Delta { .. } => TARGET_GAP_DELTA / tilt.slope,
        };
        // For a comparison a coarse bound is enough.
        let aim = if lower_too { aim } else { 6.0 * aim };
        if round == 0 || (error > 4.0 * aim && round < 6) {
            width = (width * (aim / error).sqrt()).max(width * 1e-3);
            continue;
        }
        let Some(above) = compose(&worse, &tilt, width) else { break };
        let upper = above.answer(question, true);
        let lower = if lower_too {
            let better: Vec<(Masses, u64)> =
                components.iter().zip(&points).map(|((p, c), g)| (tangents(*p, g, width, theta), *c)).collect();
            compose(&better, &tilt, width).map_or(0.0, |c| c.answer(question, false))
        } else {
            0.0
        };
        best = Bound { lower: best.lower.max(lower), upper: best.upper.min(upper) };
        let wanted = match question {
            Question::Epsilon { .. } => TARGET_GAP,
            Question::Delta { .. } => TARGET_GAP_DELTA,
        };
        if !lower_too || best.upper - best.lower <= 2.4 * wanted * best.upper.abs() {
            break;
        }
        let gap = (best.upper - best.lower) / best.upper;
        width *= (1.5 * wanted / gap).sqrt().clamp(0.1, 0.8);
    }
    best
}

/// A profile for each step, with plain Gaussians merged into one.
fn components(steps: &[Step<'_>], adjacency: Adjacency) -> Result<Vec<Component>> {
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
        (Event::ZeroConcentrated { .. } | Event::Budget { .. } | Event::Select { .. }, _) => {
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

/// A single mechanism needs no grid.
fn alone(profile: &dyn Profile, question: Question) -> Bound {
    let curve = |e: f64| {
        let forward = profile.delta(e);
        if profile.symmetric() { forward } else { forward.max(Reversed(profile).delta(e)) }
    };
    // Cancellation in P - e^e Q costs at most this.
    let slack = |e: f64| 1e-14 * profile.above(e).0;
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
fn discrete_laplace_gap(steps: &[Step<'_>]) -> f64 {
    let mut total = 0.0;
    for step in steps {
        if let Event::DiscreteLaplace { scale, dimension, .. } = step.leaf {
            total += 0.5 * step.count as f64 * *dimension as f64 / *scale as f64;
        }
    }
    total * (1.0 + 1e-12)
}

/// Discrete Gaussian steps that are not accounted by their own probabilities.
fn approximated<'a>(steps: &[Step<'a>]) -> Vec<Step<'a>> {
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
        let bound = with_gap(delta * (-ratio).exp(), discrete_gaussian_gap(&approximated(&steps)), |d| {
            self.ask(&components, Question::Epsilon { delta: d })
        })?;
        Ok(Bound { lower: (bound.lower - 2.0 * ratio).max(0.0), upper: bound.upper + 2.0 * ratio })
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let steps = event.steps(adjacency)?;
        let components = components(&steps, adjacency)?;
        if components.is_empty() {
            return Ok(Bound { lower: 0.0, upper: 0.0 });
        }
        let ratio = discrete_laplace_gap(&steps);
        let bound = self.ask(&components, Question::Delta { epsilon: (epsilon - 2.0 * ratio).max(0.0) })?;
        let gap = (1.0 + epsilon.exp()) * discrete_gaussian_gap(&approximated(&steps));
        let lower = if ratio == 0.0 { bound.lower - gap } else { 0.0 };
        Ok(Bound { lower: lower.max(0.0), upper: (ratio.exp() * bound.upper + gap).min(1.0) })
    }
}
