//! Loss distributions on a grid: a worse one from chords, a better one from tangents.
//!
//! Every mechanism is a convex curve delta(a), a = e^epsilon. Chords of that curve between grid points are the loss distribution
//! of a worse mechanism, and tangents that meet at grid points that of a better one. Both errors are of second order in the grid
//! width, so a tenth of one step's standard deviation is enough however many steps there are. Cells grow in the tails, as the
//! tilted mass there shrinks.

use super::checked::{at_least, larger, largest, not_negative};
use super::profile::Profile;

/// Losses of the better mechanism are this much lower than the grid says, so that an atom on a grid point, or a rounding error
/// away from it, is not lost. Charged for each step.
pub(super) const NUDGE: f64 = 1e-13;

/// A loss distribution on multiples of a grid width.
pub(super) struct Masses {
    pub(super) index: Vec<i64>,
    pub(super) mass: Vec<f64>,
    pub(super) infinite: f64,
}

impl Masses {
    fn new(entries: impl Iterator<Item = (i64, f64)>, infinite: f64) -> Masses {
        // A mass that is not a number is kept: whoever adds the masses up sees it.
        let (index, mass) = entries.filter(|e| !(e.1 <= 0.0)).unzip();
        Masses { index, mass, infinite }
    }

    /// (ln sum m e^(t l), its first and second derivative).
    pub(super) fn cumulant(&self, t: f64, width: f64) -> (f64, f64, f64) {
        cumulant(self.index.iter().map(|&k| width * k as f64).zip(self.mass.iter().copied()), t)
    }
}

/// (ln sum m e^(t l), its first and second derivative) of losses l with masses m.
pub(super) fn cumulant(losses: impl Iterator<Item = (f64, f64)> + Clone, t: f64) -> (f64, f64, f64) {
    let top = losses.clone().map(|(l, _)| t * l).fold(f64::NEG_INFINITY, larger);
    let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
    for (l, m) in losses {
        let weight = m * (t * l - top).exp();
        sum += weight;
        first += weight * l;
        second += weight * l * l;
    }
    let mean = first / sum;
    (top + sum.ln(), mean, at_least(second / sum - mean * mean))
}

pub(super) fn total_cumulant(parts: &[(Masses, u64)], t: f64, width: f64) -> f64 {
    parts.iter().map(|(m, count)| *count as f64 * m.cumulant(t, width).0).sum()
}

/// Smallest e >= start with P(L > e) - P(L = infinity) <= tail.
fn quantile(tail_at: impl Fn(f64) -> f64, tail: f64) -> f64 {
    let mut high = 1e-6;
    if tail_at(0.0) <= tail {
        return 0.0;
    }
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

/// How wide the loss is spread: the largest distance between two opposite quantiles, weighted as a standard deviation would.
pub(super) fn spread(profile: &dyn Profile) -> f64 {
    let infinite = profile.infinite();
    let at = |t: f64| quantile(|e| profile.above(e).0 - infinite, t) + quantile(|e| profile.below(-e).0, t);
    largest([(0.02, 1.0), (1e-3, 0.2236), (1e-5, 0.02236), (1e-8, 7.07e-4)].into_iter().map(|(t, weight)| at(t) * weight))
}

/// Where the mass of a mechanism matters for a question.
#[derive(Clone, Copy, Default)]
pub(super) struct Focus {
    /// Tilt of the composed distribution, and ln of the mechanism's moment there.
    pub(super) theta: f64,
    pub(super) log_moment: f64,
}

impl Focus {
    /// Share of the question that losses beyond e, of this mass, have in it.
    fn weight(&self, mass: f64, e: f64) -> f64 {
        (mass.max(1e-300).ln() + self.theta * e - self.log_moment).min(0.0).exp()
    }
}

/// Grid points of one mechanism: width 1 in the bulk, wider as the tilted tail shrinks.
pub(super) fn grid(profile: &dyn Profile, width: f64, focus: &Focus, tail: f64) -> Vec<i64> {
    let infinite = profile.infinite();
    let top = quantile(|e| profile.above(e).0 - infinite, tail);
    let bottom = -quantile(|e| profile.below(-e).0, tail.min(1e-12));
    let (highest, lowest) = (top, bottom);
    let (mut top, mut bottom) = ((top / width).ceil() as i64, (bottom / width).floor() as i64);
    // Rounding must not leave an atom outside.
    while width * (top as f64) < highest {
        top += 1;
    }
    while width * (bottom as f64) > lowest {
        bottom -= 1;
    }
    // The middle: half of the mass on either side.
    let mut middle = quantile(|e| profile.above(e).0, 0.5);
    if profile.above(0.0).0 < 0.5 {
        middle = -quantile(|e| profile.below(-e).0, 0.5);
    }
    let middle = ((middle / width).round() as i64).clamp(bottom, top);
    // Never more than some thousand cells in the bulk: a mechanism much wider than the grid does not need it.
    let coarsest = (spread(profile) / (4096.0 * width)).max((top - bottom) as f64 / 1e6).max(1.0);
    let widest = if focus.theta > 0.0 { (0.25 / (focus.theta * width)).max(1.0) } else { f64::INFINITY };
    let walk = |end: i64, up: bool| {
        let mut points = Vec::new();
        let mut k = middle;
        while k != end {
            let e = width * k as f64;
            let mass = if up { profile.above(e).0 - infinite } else { profile.below(e).0 };
            let weight = focus.weight(mass, e);
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
    if let Some(atom) = profile.atom() {
        // Coarse cells must not step over mass that sits on a grid point.
        points.extend([atom, -atom].map(|a| (a / width + 1e-6).floor() as i64));
        points.sort_unstable();
        points.dedup();
    }
    if points.len() == 1 {
        points.push(points[0] + 1);
    }
    points
}

/// (P, Q) mass of losses in (lower, upper], from whichever tails are small.
fn between(above: (Tail, Tail), below: (Tail, Tail)) -> (f64, f64) {
    let pick = |a: (f64, f64), b: (f64, f64)| if a.0 < b.1 { a.0 - a.1 } else { b.1 - b.0 };
    (
        not_negative(pick((above.0.0, above.1.0), (below.0.0, below.1.0))),
        not_negative(pick((above.0.1, above.1.1), (below.0.1, below.1.1))),
    )
}

type Tail = (f64, f64);

/// Chords: a worse mechanism with losses on the grid only.
pub(super) fn chords(profile: &dyn Profile, points: &[i64], width: f64) -> Masses {
    let at = |k: i64| (profile.above(width * k as f64), profile.below(width * k as f64));
    let mut mass = vec![0.0; points.len()];
    let mut left = at(points[0]);
    mass[0] = left.1.0;
    for i in 1..points.len() {
        let right = at(points[i]);
        let (p, q) = between((left.0, right.0), (left.1, right.1));
        // The mass of a cell goes to its two ends so that both P and Q keep theirs.
        let span = width * (points[i] - points[i - 1]) as f64;
        let low = width * points[i - 1] as f64;
        let log_q = q.max(f64::MIN_POSITIVE).ln();
        // Rounding of the difference, relative to the cell; more mass at the upper end is the worse mechanism.
        let rounding = 4.0 * f64::EPSILON * (2.0 + low.abs() + log_q.abs()) * p;
        let up = not_negative((p - (low + q.ln()).exp() + rounding) / -(-span).exp_m1());
        let up = if up > p { p } else { up };
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
pub(super) fn tangents(profile: &dyn Profile, points: &[i64], width: f64, theta: f64) -> Masses {
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
        let a = (e - NUDGE).exp();
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
    if n == 0 {
        return Masses { index: Vec::new(), mass: Vec::new(), infinite: 0.0 };
    }
    let points = &kept;
    let a: Vec<f64> = points.iter().map(|&k| (width * k as f64 - NUDGE).exp()).collect();
    // Heights over and under the two neighbouring tangents at each grid point.
    let over: Vec<f64> = cells.iter().zip(&a).map(|((p, q), a)| not_negative(p - a * q)).collect();
    let under: Vec<f64> = cells.iter().zip(&a).map(|((p, q), a)| not_negative(a * q - p)).collect();
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
    Masses::new(stack.into_iter().map(|(i, q)| (points[i], a[i] * q)), at_least(infinite - under[n - 1]))
}
