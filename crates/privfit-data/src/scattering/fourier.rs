//! Fourier transforms of small pictures, of eight pictures at once: one of each lane.
//!
//! Lengths are products of 2, 3 and 5. Lanes never meet, so that what is computed in one does not depend on the others.

/// Pictures that are transformed together.
pub(super) const LANES: usize = 8;

/// A number of each lane.
pub(super) type Lane = [f32; LANES];

/// Real and imaginary parts of a picture, row by row.
#[derive(Clone, Default)]
pub(super) struct Complex {
    pub(super) re: Vec<Lane>,
    pub(super) im: Vec<Lane>,
}

#[cfg(test)]
impl Complex {
    /// Zeros.
    pub(super) fn new(size: usize) -> Complex {
        Complex { re: vec![[0.0; LANES]; size], im: vec![[0.0; LANES]; size] }
    }
}

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

/// Transforms of one length, in one direction: factors, and for each of them its turns.
struct Line {
    n: usize,
    /// Factor, and cosine and sine of all turns of the length.
    factors: Vec<usize>,
    turns: Vec<(f32, f32)>,
}

impl Line {
    fn new(n: usize, sign: f64) -> Line {
        let (mut factors, mut rest) = (Vec::new(), n);
        for p in [4, 2, 3, 5] {
            while rest % p == 0 {
                factors.push(p);
                rest /= p;
            }
        }
        debug_assert_eq!(rest, 1);
        let turn = |k: usize| sign * std::f64::consts::TAU * k as f64 / n as f64;
        Line { n, factors, turns: (0..n).map(|k| (turn(k).cos() as f32, turn(k).sin() as f32)).collect() }
    }

    /// Stockham's order: after each factor the numbers lie in the other buffer, and in the right order after the last.
    #[inline(always)]
    fn transform(&self, x: &mut [(Lane, Lane)], y: &mut [(Lane, Lane)]) {
        let (mut from, mut to) = (x, y);
        let (mut left, mut stride, mut swaps) = (self.n, 1, 0);
        for &p in &self.factors {
            let parts = left / p;
            for q in 0..parts {
                for s in 0..stride {
                    let mut own = [([0f32; LANES], [0f32; LANES]); 5];
                    for (j, own) in own.iter_mut().enumerate().take(p) {
                        *own = from[s + stride * (q + parts * j)];
                    }
                    for k in 0..p {
                        let mut sum = own[0];
                        for (j, x) in own.iter().enumerate().take(p).skip(1) {
                            add_turned(&mut sum, x, self.turns[j * k * (self.n / p) % self.n]);
                        }
                        // The turn of what follows.
                        let turn = self.turns[q * k * stride % self.n];
                        let mut out = ([0f32; LANES], [0f32; LANES]);
                        add_turned(&mut out, &sum, turn);
                        to[s + stride * (p * q + k)] = out;
                    }
                }
            }
            (left, stride, swaps) = (parts, stride * p, swaps + 1);
            (from, to) = (to, from);
        }
        if swaps % 2 == 1 {
            to.copy_from_slice(from);
        }
    }
}

/// Adds a number times a turn.
#[inline(always)]
fn add_turned(sum: &mut (Lane, Lane), x: &(Lane, Lane), (c, s): (f32, f32)) {
    for i in 0..LANES {
        sum.0[i] += x.0[i] * c - x.1[i] * s;
        sum.1[i] += x.0[i] * s + x.1[i] * c;
    }
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

    /// In place.
    pub(super) fn run(&self, x: &mut Complex) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the instructions.
            return unsafe { self.run_wide(x) };
        }
        self.run_plain(x);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn run_wide(&self, x: &mut Complex) {
        self.run_plain(x);
    }

    #[inline(always)]
    fn run_plain(&self, x: &mut Complex) {
        let most = self.height.max(self.width);
        let (mut one, mut two) = (vec![([0f32; LANES], [0f32; LANES]); most], vec![([0f32; LANES], [0f32; LANES]); most]);
        for (line, count, step, next) in [(&self.along, self.height, 1, self.width), (&self.down, self.width, self.width, 1)] {
            for i in 0..count {
                let (one, two) = (&mut one[..line.n], &mut two[..line.n]);
                for (k, own) in one.iter_mut().enumerate() {
                    let at = i * next + k * step;
                    *own = (x.re[at], x.im[at]);
                }
                line.transform(one, two);
                for (k, own) in one.iter().enumerate() {
                    let at = i * next + k * step;
                    (x.re[at], x.im[at]) = *own;
                }
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
            let mut y = Complex::new(x.len());
            for (i, x) in x.iter().enumerate() {
                (0..LANES).for_each(|l| (y.re[i][l], y.im[i][l]) = ((x * (l + 1) as f64) as f32, 0.0));
            }
            Transform::new(height, width, false).run(&mut y);
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
                            (f64::from(y.re[at][l]) - times * re).abs() < 1e-4
                                && (f64::from(y.im[at][l]) - times * im).abs() < 1e-4
                        );
                    }
                }
            }
            Transform::new(height, width, true).run(&mut y);
            for (i, x) in x.iter().enumerate() {
                assert!((f64::from(y.re[i][0]) / (height * width) as f64 - x).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn lengths_have_small_factors() {
        assert_eq!([(36, 4), (37, 4), (16, 2), (41, 4), (7, 1)].map(|(n, of)| length(n, of)), [36, 40, 16, 48, 8]);
    }
}
