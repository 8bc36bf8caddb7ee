//! Composition of loss distributions by one Fourier transform.
//!
//! The masses are tilted by e^(theta l) first, theta being the saddle point of the question, so that the answer lies in the middle
//! of the composed distribution: float error is then relative to the answer, and the window needs to hold a few standard deviations only.
//! What lies outside is bounded by Chernoff and charged.

use super::atoms::Atoms;
use super::checked::{at_least, probability_at_least, probability_at_most};
use super::discretise::{Masses, total_cumulant};
use super::gdp::gaussian_delta;
use super::profile::Profile;
use super::special::{crossing, golden_minimum};
use realfft::{RealFftPlanner, num_complex::Complex64};
use std::cell::RefCell;

/// What lies outside of the window, relative to the answer.
const OUTSIDE: f64 = 1e-6;
/// Largest transform, in doubles.
const LARGEST: usize = 1 << 22;

/// What is asked of a composition.
#[derive(Clone, Copy)]
pub(super) enum Question {
    Epsilon { delta: f64 },
    Delta { epsilon: f64 },
}

/// What is composed with the distribution on the grid and is not on the grid itself.
#[derive(Clone, Copy, Default)]
pub(super) struct Beside<'a> {
    /// A Gaussian shift; 0: none.
    pub(super) mu: f64,
    pub(super) atoms: Option<&'a Atoms>,
}

impl Beside<'_> {
    fn is_nothing(&self) -> bool {
        self.mu == 0.0 && self.atoms.is_none()
    }

    /// (ln of the finite part of E[e^(t L)], its first and second derivative).
    fn cumulant(&self, t: f64) -> (f64, f64, f64) {
        let square = self.mu * self.mu;
        let (a, b, c) = self.atoms.map_or((0.0, 0.0, 0.0), |atoms| atoms.cumulant(t));
        (a + 0.5 * t * (1.0 + t) * square, b + (0.5 + t) * square, c + square)
    }
}

thread_local! {
    static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new());
}

/// The composed, tilted distribution in a window.
pub(super) struct Composed {
    theta: f64,
    width: f64,
    /// Grid index of the first cell.
    first: i64,
    /// Tilted mass of each cell, and the float error of each.
    pub(super) mass: Vec<f64>,
    error: f64,
    /// ln of the factor that undoes the tilt: P(S = l) = e^(log_scale - theta l) mass.
    log_scale: f64,
    /// Tilted probability outside of the window.
    outside: f64,
    /// The window reaches down to the smallest loss there is.
    whole: bool,
    /// The window reaches up to the largest finite loss there is.
    to_the_top: bool,
    /// P(S = infinity).
    infinite: f64,
    /// Relative float error of the masses.
    relative: f64,
}

/// Chernoff exponents that bound the tilted, composed distribution above and below.
#[derive(Clone, Copy)]
struct Edges {
    above: f64,
    below: f64,
}

impl Edges {
    /// Exponents with the narrowest window; any are valid, and the width is quasi-convex in each.
    fn best(parts: &[(Masses, u64)], width: f64, theta: f64, log_scale: f64, outside: f64) -> Edges {
        let find = |sign: f64| {
            let extent = |log_t: f64| {
                let t = sign * log_t.exp();
                let value = (total_cumulant(parts, theta + t, width) - log_scale - outside.ln()) / t.abs();
                if value.is_nan() { f64::INFINITY } else { value }
            };
            golden_minimum(-6.0, 12.0, 15, extent).0.exp()
        };
        Edges { above: find(1.0), below: find(-1.0) }
    }

    /// First and last grid index between which all but `outside` on either side lies.
    fn window(&self, parts: &[(Masses, u64)], width: f64, theta: f64, log_scale: f64, outside: f64) -> Option<(i64, i64)> {
        let extent = |t: f64| (total_cumulant(parts, theta + t, width) - log_scale - outside.ln()) / t.abs();
        let limit = |pick: fn(&Masses) -> Option<&i64>| -> f64 {
            parts.iter().map(|(m, c)| *c as f64 * pick(m).copied().unwrap_or(0) as f64).sum()
        };
        let last = (extent(self.above) / width).ceil().min(limit(|m| m.index.last()));
        let first = (-extent(-self.below) / width).floor().max(limit(|m| m.index.first()));
        // With more steps than doubles can count the edges may cross.
        let usable = last >= first && last - first < LARGEST as f64 - 2.0 && first.abs() < 1e18;
        usable.then_some((first as i64, last as i64))
    }
}

pub(super) fn compose(parts: &[(Masses, u64)], tilt: &Tilt, width: f64) -> Option<Composed> {
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
    // Cell 0 of the window stands at index first - offset of the periodic result.
    buffer.rotate_left((first - offset).rem_euclid(n) as usize);
    // A transform of what is not a number is nothing at all: never an empty, harmless distribution.
    if !buffer.iter().all(|m| m.is_finite()) || !log_scale.is_finite() {
        return None;
    }
    let scale = 1.0 / length as f64;
    buffer.iter_mut().for_each(|m| *m = at_least(*m * scale));
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
        whole: first as f64 <= parts.iter().map(|(m, c)| *c as f64 * m.index[0] as f64).sum::<f64>(),
        to_the_top: last as f64 >= parts.iter().map(|(m, c)| *c as f64 * m.index[m.index.len() - 1] as f64).sum::<f64>(),
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
    fn loss(&self, cell: usize) -> f64 {
        self.width * (self.first + cell as i64) as f64
    }

    /// Nothing on the grid: everything is beside it.
    pub(super) fn nothing() -> Composed {
        Composed {
            theta: 0.0,
            width: 1.0,
            first: 0,
            mass: vec![1.0],
            error: 0.0,
            log_scale: 0.0,
            outside: 0.0,
            whole: true,
            to_the_top: true,
            infinite: 0.0,
            relative: 1e-13,
        }
    }

    /// One cell more: sums over the cells from i upwards, relative to cell i: a of the masses, b of the masses times e^-(loss - loss of i).
    /// Relative sums neither overflow nor underflow, however wide the window is.
    fn adder(&self, upper: bool) -> impl Fn(usize, f64, f64) -> (f64, f64) {
        let error = if upper { self.error } else { -self.error };
        let (fall, fall_more) = ((-self.theta * self.width).exp(), (-(self.theta + 1.0) * self.width).exp());
        move |i, a, b| {
            let m = at_least(self.mass[i] + error);
            (a * fall + m, b * fall_more + m)
        }
    }

    /// ln of the finite part of delta at e, for a loss e of at most that of cell i and above that of cell i - 1, and the sums there.
    fn log_delta(&self, i: usize, a: f64, b: f64, e: f64, upper: bool) -> f64 {
        let sign = if upper { 1.0 } else { -1.0 };
        let here = self.loss(i);
        // The charge for what lies outside: beyond the top edge, or, below the window, anywhere above e.
        let inside = upper && (e >= self.loss(0) || self.whole);
        let at = if inside { self.loss(self.mass.len() - 1) } else { e };
        let outside = sign * 2.0 * self.outside * (-self.theta * (at - here)).exp();
        let outside = if inside && self.to_the_top { 0.0 } else { outside };
        // a - e^x b cancels; the rounding is relative to a.
        let rounding = sign * 1e-14 * a;
        let rest = a - (e - here).min(0.0).exp() * b + outside + rounding;
        if rest <= 0.0 { f64::NEG_INFINITY } else { self.log_scale - self.theta * here + rest.ln() }
    }

    /// delta, given ln of its finite part.
    fn total(&self, log: f64, upper: bool) -> f64 {
        let sign = if upper { 1.0 } else { -1.0 };
        let finite = log.exp() * (1.0 + sign * self.relative) + self.infinite;
        if upper { probability_at_most(finite) } else { probability_at_least(finite) }
    }

    /// Answers a question by the upper (pessimistic) or lower (optimistic) reading of the composed distribution. What cannot be answered
    /// is infinite (or delta 1) from above and 0 from below, never a number that rounding made up.
    fn read(&self, question: Question, upper: bool) -> f64 {
        let n = self.mass.len();
        let add = self.adder(upper);
        let log_delta = |i: usize, a: f64, b: f64, e: f64| self.log_delta(i, a, b, e, upper);
        let total = |log: f64| self.total(log, upper);
        match question {
            Question::Delta { epsilon } => {
                let (mut a, mut b, mut i) = (0.0, 0.0, n);
                while i > 0 && self.loss(i - 1) > epsilon {
                    i -= 1;
                    (a, b) = add(i, a, b);
                }
                match (i == n, upper) {
                    (true, true) => total(log_delta(n - 1, 0.0, 0.0, epsilon)),
                    (true, false) => self.infinite,
                    _ => total(log_delta(i, a, b, epsilon)),
                }
            }
            Question::Epsilon { delta } => {
                // Down cell by cell until delta is exceeded at the next one; the answer lies just above that.
                let exceeds = |i: usize, a: f64, b: f64, e: f64| total(log_delta(i, a, b, e)) > delta;
                if exceeds(n - 1, 0.0, 0.0, self.loss(n - 1)) {
                    // Even the largest loss does not bring delta down.
                    return if upper { f64::INFINITY } else { at_least(self.loss(n - 1)) };
                }
                let (mut a, mut b) = (0.0, 0.0);
                // The lower reading is not monotone where the charge for the outside takes over, so checks are close together.
                let stride = (n / 128).clamp(1, 256);
                let mut saved = (n, a, b);
                let mut i = n;
                while i > 0 {
                    i -= 1;
                    (a, b) = add(i, a, b);
                    let bottom = i == 0 || self.loss(i - 1) <= 0.0;
                    if !i.is_multiple_of(stride) && !bottom {
                        continue;
                    }
                    let below = if i == 0 { self.loss(0).min(0.0) } else { at_least(self.loss(i - 1)) };
                    if exceeds(i, a, b, below) {
                        break;
                    }
                    saved = (i, a, b);
                    if bottom {
                        // Below the window nothing is known unless the window holds everything.
                        return if i > 0 || self.whole || self.loss(0) <= 0.0 || !upper { 0.0 } else { self.loss(0) };
                    }
                }
                (i, a, b) = saved;
                while i > 0 {
                    i -= 1;
                    (a, b) = add(i, a, b);
                    let below = if i == 0 { f64::NEG_INFINITY } else { self.loss(i - 1) };
                    let below = at_least(below.max(if self.whole { 0.0 } else { self.loss(0) - self.width }));
                    if exceeds(i, a, b, below) {
                        // delta decreases from `below` to this cell: bisection, keeping the end that the reading needs.
                        let (mut low, mut high) = (below, self.loss(i).max(below));
                        for _ in 0..60 {
                            let middle = 0.5 * (low + high);
                            if exceeds(i, a, b, middle) { low = middle } else { high = middle }
                        }
                        return if upper { high } else { low };
                    }
                }
                if upper && !self.whole { at_least(self.loss(0)) } else { 0.0 }
            }
        }
    }

    /// delta of the composed distribution beside a Gaussian shift of `mu`: the mean of the Gaussian's own curve at epsilon - S. Outside of
    /// the window, delta(e - s) <= e^(K - theta (e - s)) with the Gaussian's cumulant K, so that the tilted probability is what counts.
    fn delta_beside(&self, mu: f64, epsilon: f64, upper: bool) -> f64 {
        let sign = if upper { 1.0 } else { -1.0 };
        let mut sum = 0.0;
        for (i, m) in self.mass.iter().enumerate() {
            let m = at_least(m + sign * self.error);
            if m > 0.0 {
                let loss = self.loss(i);
                let curve = gaussian_delta(epsilon - loss, mu);
                sum += (self.log_scale - self.theta * loss + m.ln()).exp() * if upper { curve.upper } else { curve.lower };
            }
        }
        let cumulant = 0.5 * self.theta * (1.0 + self.theta) * mu * mu;
        let charge = cumulant - self.theta * epsilon;
        // From below only what wraps around into the window counts, and no cell weighs more than the first.
        let charge = if upper { charge } else { charge.min(-self.theta * self.loss(0)) };
        sum += sign * 2.0 * self.outside * (self.log_scale + charge).exp();
        let finite = sum * (1.0 + sign * self.relative) + self.infinite;
        if upper { probability_at_most(finite) } else { probability_at_least(finite) }
    }

    /// The reading at any loss in constant time, after one pass.
    fn reader(&self, upper: bool) -> impl Fn(f64) -> f64 {
        let n = self.mass.len();
        let add = self.adder(upper);
        let mut sums = vec![(0.0, 0.0); n + 1];
        for i in (0..n).rev() {
            sums[i] = add(i, sums[i + 1].0, sums[i + 1].1);
        }
        move |e| {
            // The first cell above e; rounding of the quotient must not move a cell to the other side.
            let mut i = (e / self.width - self.first as f64).floor().clamp(-1.0, n as f64) as i64 + 1;
            while i > 0 && self.loss(i as usize - 1) > e {
                i -= 1;
            }
            while i < n as i64 && !(self.loss(i as usize) > e) {
                i += 1;
            }
            let i = i as usize;
            match (i >= n, upper) {
                (true, true) => self.total(self.log_delta(n - 1, 0.0, 0.0, e, upper), upper),
                (true, false) => self.infinite,
                _ => self.total(self.log_delta(i, sums[i].0, sums[i].1, e, upper), upper),
            }
        }
    }

    /// The same question about the composed distribution and what is beside it; the search for an epsilon begins near a guess.
    pub(super) fn answer_beside(&self, beside: Beside<'_>, question: Question, near: f64, upper: bool) -> f64 {
        if beside.is_nothing() {
            return self.answer(question, upper);
        }
        let own = if beside.mu == 0.0 { Some(self.reader(upper)) } else { None };
        let curve = |e: f64| own.as_ref().map_or_else(|| self.delta_beside(beside.mu, e, upper), |read| read(e));
        let sign = if upper { 1.0 } else { -1.0 };
        let delta_at = |e: f64| -> f64 {
            let Some(atoms) = beside.atoms else { return curve(e) };
            // Rounding of the differences goes to the safe side.
            let at = |l: f64| e - l - sign * 4.0 * f64::EPSILON * (e.abs() + l.abs());
            let finite: f64 = atoms.each().map(|(l, (p, _))| p * curve(at(l))).sum();
            let sum = finite * (1.0 + sign * atoms.slack()) + atoms.infinite();
            if upper { probability_at_most(sum) } else { probability_at_least(sum) }
        };
        let delta = match question {
            Question::Delta { epsilon } => return delta_at(epsilon),
            Question::Epsilon { delta } => delta,
        };
        // How far ln delta is above what is asked for; what is not a number goes to the safe side.
        let excess = |e: f64| {
            let value = (delta_at(e) / delta).ln();
            if value.is_nan() { sign * f64::INFINITY } else { value }
        };
        let (mut low, mut high, mut step) = (near, near, 1e-3 * near + 1e-9);
        let (mut over, mut under) = (f64::NAN, excess(high));
        while !(under <= 0.0) {
            (low, over, high, step) = (high, under, high + step, 4.0 * step);
            if high > 1e9 {
                return if upper { f64::INFINITY } else { 0.0 };
            }
            under = excess(high);
        }
        while !(over > 0.0) {
            if low == 0.0 {
                return 0.0;
            }
            (high, low, step) = (low, at_least(low - step), 4.0 * step);
            (under, over) = (if over.is_nan() { under } else { over }, excess(low));
        }
        // The curve need not be read to more digits than it has.
        let (low, high) = crossing((low, over), (high, under), 1e-10, excess);
        if upper { high } else { low }
    }

    /// The reading, with everything that is not a number turned to the safe side.
    pub(super) fn answer(&self, question: Question, upper: bool) -> f64 {
        let value = self.read(question, upper);
        match (value.is_nan(), upper, question) {
            (false, ..) => value,
            (true, true, Question::Epsilon { .. }) => f64::INFINITY,
            (true, true, Question::Delta { .. }) => 1.0,
            (true, false, _) => 0.0,
        }
    }
}

/// A tilt: any is valid, a good one puts the answer in the middle of a narrow distribution.
pub(super) struct Tilt {
    pub(super) theta: f64,
    /// Tilted probability that may lie outside of the window without hurting the answer.
    outside: f64,
    /// Estimated epsilon of the answer, and ln of its delta.
    pub(super) epsilon: f64,
    pub(super) log_delta: f64,
    /// Slope of -ln delta there.
    pub(super) slope: f64,
    /// Length of the window.
    pub(super) length: f64,
    edges: Edges,
}

/// The tilt for a question: the saddle point of the steepest-descent estimate
/// ln delta = K - theta K' - ln(theta (1+theta) sqrt(2 pi K'')), or K' = epsilon; less where the single step has so heavy a
/// tail that the tilted distribution would spread out.
///
/// What is beside the grid is part of the question and not of the composed distribution. An answer that is known already, if only
/// roughly, takes the place of the estimate, which is poor for a few steps with heavy tails.
pub(super) fn saddle(
    parts: &[(Masses, u64)],
    width: f64,
    question: Question,
    largest: f64,
    beside: Beside<'_>,
    known: Option<f64>,
) -> Tilt {
    let sums = |theta: f64| {
        parts.iter().fold(beside.cumulant(theta), |(a, b, c), (masses, count)| {
            let (k, k1, k2) = masses.cumulant(theta, width);
            let count = *count as f64;
            (a + count * k, b + count * k1, c + count * k2)
        })
    };
    let prefactor =
        |theta: f64, second: f64| at_least((theta * (1.0 + theta) * (2.0 * std::f64::consts::PI * second).sqrt()).ln());
    let plain_spread = sums(1e-4).2.sqrt();
    let (mut low, mut high) = (1e-4f64.ln(), largest.ln());
    for _ in 0..22 {
        let log_theta = 0.5 * (low + high);
        let theta = log_theta.exp();
        let (value, first, second) = sums(theta);
        let too_small = match question {
            Question::Epsilon { .. } if known.is_some() => known.is_some_and(|epsilon| first < epsilon),
            // On a lattice the distribution ends up in its largest loss; more tilt then says nothing more.
            Question::Epsilon { delta } => {
                let stuck = second.sqrt() < 0.02 * plain_spread && theta * second.sqrt() < 0.3;
                value - theta * first - prefactor(theta, second) > delta.max(1e-300).ln() && !stuck
            }
            Question::Delta { epsilon } => first < epsilon,
        };
        if too_small { low = log_theta } else { high = log_theta }
    }
    let mut theta = high.exp();
    let (value, first, second) = sums(theta);
    // Where delta is large, its logarithm falls by the density over delta and not by the tilt.
    let slope = theta.max(0.5 / (second + width * width).sqrt());
    let (epsilon, log_delta) = match question {
        Question::Epsilon { delta } if known.is_some() => (known.unwrap_or(0.0), delta.max(1e-300).ln()),
        Question::Delta { epsilon } if known.is_some() => (epsilon, known.unwrap_or(0.0).max(1e-300).ln()),
        Question::Epsilon { delta } => (at_least(first), delta.max(1e-300).ln()),
        Question::Delta { epsilon } => (epsilon, value - theta * epsilon - prefactor(theta, second)),
    };
    // Share of the tilted distribution that answers the question; float error must stay far below it.
    let share = |theta: f64, log_scale: f64| (log_delta + theta * epsilon - log_scale).min(0.0).exp();
    let steps: f64 = parts.iter().map(|p| p.1 as f64).sum();
    let look = |theta: f64| {
        let outside = OUTSIDE * share(theta, sums(theta).0);
        let log_scale = total_cumulant(parts, theta, width);
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
    Tilt { theta, outside, epsilon, log_delta, slope, edges, length: span as f64 * width }
}
