//! Fourier transforms of small pictures, of eight pictures at once: one of each lane.
//!
//! Lengths are products of 2, 3 and 5. Lanes never meet, so that what is computed in one does not depend on the others.

/// Pictures that are transformed together.
pub(super) const LANES: usize = 8;

/// A number of each lane.
pub(super) type Lane = [f32; LANES];

/// Real and imaginary part of each lane.
pub(super) type Complex = (Lane, Lane);

/// Zero.
pub(super) const ZERO: Complex = ([0.0; LANES], [0.0; LANES]);

/// The least length from `least` on that is a multiple of `of` and has no other factors than 2, 3 and 5.
pub(super) fn length(least: usize, of: usize) -> usize {
    let smooth = |n: usize| {
        [2, 3, 5]
            .iter()
            .fold(n, |n, p| (0..).try_fold(n, |n, _: u32| if n % p == 0 { Ok(n / p) } else { Err(n) }).unwrap_or_else(|n| n))
            == 1
    };
    (least..).find(|n| n % of == 0 && smooth(*n)).unwrap_or(least)
}

/// One factor of a transform: so many parts, of numbers that lie so far apart, and the turns of each part.
struct Stage {
    factor: usize,
    stride: usize,
    turns: Vec<[(f32, f32); MOST]>,
}

/// The largest factor.
const MOST: usize = 5;

/// Transforms of one length, in one direction.
struct Line {
    stages: Vec<Stage>,
    /// For each factor, its own turns.
    roots: [[(f32, f32); MOST]; MOST + 1],
}

impl Line {
    fn new(n: usize, sign: f64) -> Line {
        let turn = |k: usize, n: usize| {
            let angle = sign * std::f64::consts::TAU * (k % n) as f64 / n as f64;
            (angle.cos() as f32, angle.sin() as f32)
        };
        let (mut stages, mut left, mut stride) = (Vec::new(), n, 1);
        for factor in [4, 2, 3, 5] {
            while left % factor == 0 {
                let parts = left / factor;
                stages.push(Stage {
                    factor,
                    stride,
                    turns: (0..parts).map(|q| std::array::from_fn(|k| turn(q * k * stride, n))).collect(),
                });
                (left, stride) = (parts, stride * factor);
            }
        }
        debug_assert_eq!(left, 1);
        Line { stages, roots: std::array::from_fn(|p| std::array::from_fn(|k| turn(k, p.max(1)))) }
    }

    /// Stockham's order: after each factor the numbers lie in the other buffer, in the right order after the last.
    #[inline(always)]
    fn transform(&self, x: &mut [Complex], y: &mut [Complex]) {
        let (mut from, mut to) = (x, y);
        for stage in &self.stages {
            let roots = &self.roots[stage.factor];
            match stage.factor {
                2 => step::<2>(stage, roots, from, to),
                3 => step::<3>(stage, roots, from, to),
                4 => step::<4>(stage, roots, from, to),
                _ => step::<5>(stage, roots, from, to),
            }
            (from, to) = (to, from);
        }
        if self.stages.len() % 2 == 1 {
            to.copy_from_slice(from);
        }
    }
}

/// One factor: sums of P numbers, turned, of all parts.
#[inline(always)]
fn step<const P: usize>(stage: &Stage, roots: &[(f32, f32); MOST], from: &[Complex], to: &mut [Complex]) {
    let (stride, parts) = (stage.stride, stage.turns.len());
    for (q, turns) in stage.turns.iter().enumerate() {
        for s in 0..stride {
            let mut own = [ZERO; P];
            for (j, own) in own.iter_mut().enumerate() {
                *own = from[s + stride * (q + parts * j)];
            }
            sums::<P>(&mut own, roots);
            to[s + stride * P * q] = own[0];
            for k in 1..P {
                to[s + stride * (P * q + k)] = turned(own[k], turns[k]);
            }
        }
    }
}

/// The transform of P numbers. Turns of two and four are signs and swaps of parts; otherwise those of j and P - j are conjugate.
#[inline(always)]
fn sums<const P: usize>(own: &mut [Complex; P], roots: &[(f32, f32); MOST]) {
    if P == 2 {
        (own[0], own[1]) = (add(own[0], own[1], 1.0), add(own[0], own[1], -1.0));
        return;
    }
    if P == 4 {
        let (even, odd) = (add(own[0], own[2], 1.0), add(own[1], own[3], 1.0));
        let (a, b) = (add(own[0], own[2], -1.0), quarter(add(own[1], own[3], -1.0), roots[1].1));
        (own[0], own[2]) = (add(even, odd, 1.0), add(even, odd, -1.0));
        (own[1], own[3]) = (add(a, b, 1.0), add(a, b, -1.0));
        return;
    }
    let (mut both, mut gap) = ([ZERO; P], [ZERO; P]);
    let mut all = own[0];
    for j in 1..=P / 2 {
        (both[j], gap[j]) = (add(own[j], own[P - j], 1.0), add(own[j], own[P - j], -1.0));
        all = add(all, both[j], 1.0);
    }
    let first = own[0];
    own[0] = all;
    for k in 1..=P / 2 {
        let (mut even, mut odd) = (first, ZERO);
        for j in 1..=P / 2 {
            let (c, s) = roots[j * k % P];
            (even, odd) = (add(even, both[j], c), add(odd, gap[j], s));
        }
        let odd = quarter(odd, 1.0);
        (own[k], own[P - k]) = (add(even, odd, 1.0), add(even, odd, -1.0));
    }
}

/// a + times b.
#[inline(always)]
fn add(mut a: Complex, b: Complex, times: f32) -> Complex {
    for i in 0..LANES {
        a.0[i] += times * b.0[i];
        a.1[i] += times * b.1[i];
    }
    a
}

/// A quarter turn, times a number.
#[inline(always)]
fn quarter(a: Complex, times: f32) -> Complex {
    let mut out = ZERO;
    for i in 0..LANES {
        out.0[i] = -times * a.1[i];
        out.1[i] = times * a.0[i];
    }
    out
}

/// A number times a turn.
#[inline(always)]
fn turned(x: Complex, (c, s): (f32, f32)) -> Complex {
    let mut out = ZERO;
    for i in 0..LANES {
        out.0[i] = x.0[i] * c - x.1[i] * s;
        out.1[i] = x.0[i] * s + x.1[i] * c;
    }
    out
}

/// Transforms of pictures of one size, without a factor before them.
pub(super) struct Transform {
    pub(super) height: usize,
    pub(super) width: usize,
    along: Line,
    down: Line,
}

impl Transform {
    /// To frequencies, or back from them.
    pub(super) fn new(height: usize, width: usize, back: bool) -> Transform {
        let sign = if back { 1.0 } else { -1.0 };
        Transform { height, width, along: Line::new(width, sign), down: Line::new(height, sign) }
    }

    /// In place, with room for two lines.
    #[inline(always)]
    pub(super) fn run(&self, x: &mut [Complex], room: &mut Vec<Complex>) {
        let most = self.height.max(self.width);
        room.resize(2 * most, ZERO);
        let (one, two) = room.split_at_mut(most);
        for row in x.chunks_exact_mut(self.width) {
            self.along.transform(row, &mut two[..self.width]);
        }
        let (one, two) = (&mut one[..self.height], &mut two[..self.height]);
        for column in 0..self.width {
            for (own, row) in one.iter_mut().zip(x.chunks_exact(self.width)) {
                *own = row[column];
            }
            self.down.transform(one, two);
            for (own, row) in one.iter().zip(x.chunks_exact_mut(self.width)) {
                row[column] = *own;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against sums over all pixels, in double precision, and there and back again.
    #[test]
    fn transforms_are_sums_over_all_pixels() {
        for (height, width) in [(1, 2), (4, 3), (5, 8), (9, 10), (18, 20)] {
            let x: Vec<f64> = (0..height * width).map(|i| ((i * i) as f64 * 0.7).sin()).collect();
            let mut room = Vec::new();
            let mut y: Vec<Complex> =
                x.iter().map(|x| (std::array::from_fn(|l| (x * (l + 1) as f64) as f32), [0.0; LANES])).collect();
            Transform::new(height, width, false).run(&mut y, &mut room);
            for ky in 0..height {
                for kx in 0..width {
                    let (mut re, mut im) = (0.0, 0.0);
                    for (i, x) in x.iter().enumerate() {
                        let turn = (i / width * ky) as f64 / height as f64 + (i % width * kx) as f64 / width as f64;
                        (re, im) = (re + x * (std::f64::consts::TAU * turn).cos(), im - x * (std::f64::consts::TAU * turn).sin());
                    }
                    let at = ky * width + kx;
                    for l in [0, 6] {
                        let times = (l + 1) as f64;
                        assert!(
                            (f64::from(y[at].0[l]) - times * re).abs() < 1e-4
                                && (f64::from(y[at].1[l]) - times * im).abs() < 1e-4
                        );
                    }
                }
            }
            Transform::new(height, width, true).run(&mut y, &mut room);
            for (i, x) in x.iter().enumerate() {
                assert!((f64::from(y[i].0[0]) / (height * width) as f64 - x).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn lengths_have_small_factors() {
        assert_eq!([(36, 4), (37, 4), (16, 2), (41, 4), (7, 1)].map(|(n, of)| length(n, of)), [36, 40, 16, 48, 8]);
    }
}
