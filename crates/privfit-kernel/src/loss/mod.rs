//! What a linear model loses on a row: functions on slices, without captures, so that a row has nowhere to go. One file to a loss; its
//! constants are derived there, from the loss and its parameters, and nobody else can set them. One test checks all of them.
//!
//! Labels are class numbers from 0, or targets scaled to [-1, 1].

mod fractional;
mod hinge;
mod huber;
mod huber_svm;
mod logistic;
mod poisson;
mod quantile;
mod softmax;
mod wide;

pub use fractional::fractional;
pub use hinge::hinge;
pub use huber::{huber, least_squares, squared};
pub use huber_svm::huber_svm;
pub use logistic::logistic;
pub use poisson::{LOWEST, poisson};
pub use quantile::quantile;
pub use softmax::softmax;

use crate::error::{Error, Result};
use crate::quiet::quietly;

/// Public numbers of a loss (Huber width, class weights).
pub type LossParameters = [f64];

/// A loss of one or several scores and a label. Constants hold for rows of norm at most 1. Functions get many rows at a time and
/// must treat each by itself: every loss has a test that compares many rows with one at a time.
#[derive(Clone)]
pub struct Loss {
    /// Its name.
    pub(crate) name: &'static str,
    /// Scores to a row.
    pub(crate) outputs: usize,
    /// Public numbers.
    pub(crate) parameters: Vec<f64>,
    /// Values from scores (row after row) and labels; never negative.
    pub(crate) values: fn(&LossParameters, &[f64], &[f32], &mut [f64]),
    /// Derivatives with respect to the scores, fast: single precision, quantised afterwards.
    pub(crate) derivatives: fn(&LossParameters, &[f32], &[f32], &mut [f32]),
    /// Derivatives with respect to the scores, exact: the gradient of `values`.
    pub(crate) derivatives_exact: fn(&LossParameters, &[f64], &[f32], &mut [f64]),
    /// Bound on the Euclidean norm of the derivatives of a row.
    pub(crate) lipschitz: f64,
    /// Labels in this range; a record with another label contributes nothing.
    pub(crate) labels: (f32, f32),
    /// Dimensions that the derivatives of a row can span: 1 for one score, K-1 for softmax.
    pub(crate) rank: u32,
    /// Bound on the second derivative along any direction of the scores; infinite if there is none.
    pub(crate) smoothness: f64,
    /// Bound on the sum of second derivatives over the scores; at most rank x smoothness.
    pub(crate) trace: f64,
    /// Bound on the value at scores of zero. Privacy does not rest on it: it says how far the solver may have to go.
    pub(crate) at_zero: f64,
    /// Its derivatives, as they are clipped, are those of a convex function.
    pub(crate) convex: bool,
    /// The same loss for scores that begin elsewhere, if it is one of a number.
    pub(crate) starting: Option<fn(&Loss, f64, f64) -> Loss>,
}

impl Loss {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Scores to a row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Its parameters; public.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// Bound on the Euclidean norm of the derivatives of a row.
    pub fn lipschitz(&self) -> f64 {
        self.lipschitz
    }

    /// Bound on the second derivative along any direction of the scores; infinite if there is none.
    pub fn smoothness(&self) -> f64 {
        self.smoothness
    }

    /// Bound on the sum of second derivatives over the scores.
    pub fn trace(&self) -> f64 {
        self.trace
    }

    /// Dimensions that the derivatives of a row can span.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Bound on the value at scores of zero.
    pub fn at_zero(&self) -> f64 {
        self.at_zero
    }

    /// The same with derivatives clipped at a smaller bound. Of one score it is still the derivative of a smooth convex function; of several
    /// it need not be that of any function, and whatever rests on one is refused.
    pub fn clipped(&self, clip: f64) -> Loss {
        let lipschitz = self.lipschitz.min(clip);
        Loss { lipschitz, convex: self.convex && (self.outputs == 1 || lipschitz == self.lipschitz), ..self.clone() }
    }

    /// Values of public rows, or of rows that only the kernel sees: from scores, row after row, and labels.
    pub fn values(&self, scores: &[f64], labels: &[f32], out: &mut [f64]) {
        (self.values)(&self.parameters, scores, labels, out);
    }

    /// Exact derivatives with respect to the scores.
    pub fn derivatives(&self, scores: &[f64], labels: &[f32], out: &mut [f64]) {
        (self.derivatives_exact)(&self.parameters, scores, labels, out);
    }

    /// The same loss of a number for scores that begin at `offset` instead of 0; counts are clamped at the part `clamp` of their bound. No
    /// constant depends on the two, which may be released numbers: only the value at zero is bounded for all of them.
    pub fn starting_at(&self, offset: f64, clamp: f64) -> Loss {
        self.starting.map_or_else(|| self.clone(), |starting| starting(self, offset, clamp))
    }

    /// Whether a label is one that the loss knows.
    pub fn knows(&self, label: f32) -> bool {
        label >= self.labels.0 && label <= self.labels.1
    }

    /// Refuses a loss that no theorem about minimisers or descents holds for.
    pub(crate) fn validate_smooth(&self) -> Result<()> {
        self.validate()?;
        if !self.smoothness.is_finite() {
            return Err(Error::domain("smoothness", self.smoothness, "use a loss with a bounded second derivative"));
        }
        match self.convex {
            true => Ok(()),
            false => Err(Error::unsupported(
                "a loss of several scores with clipped derivatives",
                "do not clip them, or release gradients",
            )),
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if !(self.lipschitz >= f64::MIN_POSITIVE && self.lipschitz.is_finite()) {
            return Err(Error::domain("lipschitz", self.lipschitz, "give a positive finite number"));
        }
        if !(self.smoothness >= f64::MIN_POSITIVE) {
            return Err(Error::domain("smoothness", self.smoothness, "give a positive number, infinite if there is none"));
        }
        if !(self.trace > 0.0 && self.trace <= f64::from(self.rank) * self.smoothness) {
            return Err(Error::domain("trace", self.trace, "give a positive number of at most rank x smoothness"));
        }
        if !(self.at_zero >= 0.0 && self.at_zero.is_finite()) {
            return Err(Error::domain("at_zero", self.at_zero, "give a finite number of at least 0"));
        }
        if self.outputs == 0 || self.rank == 0 || self.rank as usize > self.outputs {
            return Err(Error::domain("rank", self.rank, "give at least 1 and at most the number of outputs"));
        }
        Ok(())
    }

    /// Exact derivatives of many rows, never longer than the bound and never a panic. For one output this keeps them monotone in the
    /// score, so that they are still the derivatives of a convex function.
    pub(crate) fn bounded_derivatives(&self, scores: &[f64], labels: &[f32], out: &mut [f64]) {
        let call = |scores: &[f64], labels: &[f32], out: &mut [f64]| {
            let call = || (self.derivatives_exact)(&self.parameters, scores, labels, out);
            quietly(call).is_some()
        };
        let k = self.outputs;
        if !call(scores, labels, out) {
            // One row's doing: each by itself, and only that one contributes nothing.
            for (i, part) in out.chunks_mut(k).enumerate() {
                if !call(&scores[i * k..(i + 1) * k], &labels[i..=i], part) {
                    part.fill(0.0);
                }
            }
        }
        if k == 1 {
            for (s, y) in out.iter_mut().zip(labels) {
                let clipped = s.clamp(-self.lipschitz, self.lipschitz);
                *s = if clipped.is_nan() || !self.knows(*y) { 0.0 } else { clipped };
            }
            return;
        }
        for (row, y) in out.chunks_mut(k).zip(labels) {
            if !self.knows(*y) || row.iter().any(|s| s.is_nan()) {
                row.fill(0.0);
                continue;
            }
            let size = row.iter().map(|s| s * s).sum::<f64>().sqrt();
            if size > self.lipschitz {
                let factor = if size.is_finite() { self.lipschitz / size } else { 0.0 };
                row.iter_mut().for_each(|s| *s = if s.is_finite() { *s * factor } else { 0.0 });
            }
        }
    }
}

/// The parameter of that number, for where scores begin; 0 if it is left out.
#[inline(always)]
fn offset(p: &LossParameters, at: usize) -> f64 {
    p.get(at).copied().unwrap_or(0.0)
}

/// e^x for arguments clipped at +-80, by a polynomial that the compiler can vectorise; relative error below 3e-7.
#[inline(always)]
fn fast_exp(x: f32) -> f32 {
    // NaN passes through max and min as the bound, so that the result is finite.
    let x = x.max(-80.0).min(80.0) * std::f32::consts::LOG2_E;
    let whole = (x + 12_582_912.0) - 12_582_912.0;
    let t = (x - whole) * std::f32::consts::LN_2;
    let p = 1.0 + t * (1.0 + t * (0.5 + t * (1.0 / 6.0 + t * (1.0 / 24.0 + t * (1.0 / 120.0 + t * (1.0 / 720.0))))));
    p * f32::from_bits(((whole as i32 + 127) << 23) as u32)
}

/// e^x for arguments clipped at +-700, off by less than 4 units in the last place, in a form that the compiler can vectorise.
#[inline(always)]
fn exact_exp(x: f64) -> f64 {
    const PUSH: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts; the first has zeros at its end, so that whole numbers times it are exact.
    const HIGH: f64 = 6.931_471_803_691_238e-1;
    const LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = x.max(-700.0).min(700.0);
    let pushed = x * std::f64::consts::LOG2_E + PUSH;
    let whole = pushed - PUSH;
    let t = (x - whole * HIGH) - whole * LOW;
    // Terms of the series from 1/13! to 1/2!.
    const TERMS: [f64; 12] = [
        1.605_904_383_682_161_5e-10,
        2.087_675_698_786_81e-9,
        2.505_210_838_544_172e-8,
        2.755_731_922_398_589e-7,
        2.755_731_922_398_589_3e-6,
        2.480_158_730_158_73e-5,
        1.984_126_984_126_984e-4,
        1.388_888_888_888_889e-3,
        8.333_333_333_333_333e-3,
        4.166_666_666_666_666_4e-2,
        1.666_666_666_666_666_6e-1,
        0.5,
    ];
    let mut sum = 0.0;
    for term in TERMS {
        sum = sum * t + term;
    }
    let value = 1.0 + (t + t * t * sum);
    // The last bits of the pushed number are the whole one.
    value * f64::from_bits((pushed.to_bits() << 52).wrapping_add(1.0f64.to_bits()))
}

/// Sign and weight of a label: parameters are positive class, anything, weight of the others, weight of the positive class.
#[inline(always)]
fn sign(p: &LossParameters, label: f32) -> (f64, f64) {
    if f64::from(label) == p[0] { (1.0, p[3]) } else { (-1.0, p[2]) }
}

#[inline(always)]
fn by_margin(p: &LossParameters, s: &[f64], y: &[f32], out: &mut [f64], value: impl Fn(&LossParameters, f64) -> f64) {
    for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
        let (y, w) = sign(p, *y);
        *o = w * value(p, s * y);
    }
}

#[inline(always)]
fn by_margin_derivative(
    p: &LossParameters,
    s: &[f64],
    y: &[f32],
    out: &mut [f64],
    derivative: impl Fn(&LossParameters, f64) -> f64,
) {
    for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
        let (y, w) = sign(p, *y);
        *o = y * w * derivative(p, s * y);
    }
}

#[inline(always)]
fn by_margin_fast(p: &LossParameters, s: &[f32], y: &[f32], out: &mut [f32], derivative: impl Fn(&LossParameters, f64) -> f64) {
    for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
        let (y, w) = sign(p, *y);
        *o = (y * w * derivative(p, f64::from(*s) * y)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform in [-1, 1).
    struct Random(u64);
    impl Random {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    }

    /// Every loss with several parameters, and its number of classes; 0 for numbers.
    fn every() -> Vec<(Loss, usize)> {
        let mut out = Vec::new();
        for round in 0..3 {
            let width = [0.1, 0.5, 1.0][round];
            for classes in [2usize, 3, 10] {
                for two in [[1.0, 1.0], [0.5, 2.0]] {
                    out.push((logistic(1, classes, width, two), classes));
                    out.push((huber_svm(1, classes, width, two), classes));
                    out.push((hinge(1, classes, two), classes));
                }
                for weights in [vec![1.0; classes], (0..classes).map(|c| [0.5, 2.0, 1.0][c % 3]).collect()] {
                    out.push((softmax(&weights), classes));
                }
            }
            let level = [0.5, 0.9, 0.1][round];
            for loss in [squared(width), squared(2.0), huber(width), quantile(level, width), poisson(), fractional()] {
                out.push((loss.starting_at([-1.0, -0.3, 0.0][round], [1.0, 0.25, 0.01][round]), 0));
                out.push((loss, 0));
            }
        }
        out
    }

    fn label(random: &mut Random, classes: usize) -> f32 {
        let u = random.next();
        if classes == 0 { u as f32 } else { ((u * 0.5 + 0.5) * classes as f64) as usize as f32 }
    }

    fn derivatives(loss: &Loss, s: &[f64], y: f32) -> Vec<f64> {
        let mut out = vec![0.0; loss.outputs];
        (loss.derivatives_exact)(&loss.parameters, s, &[y], &mut out);
        out
    }

    fn value(loss: &Loss, s: &[f64], y: f32) -> f64 {
        let mut out = [0.0];
        (loss.values)(&loss.parameters, s, &[y], &mut out);
        out[0]
    }

    fn size(v: &[f64]) -> f64 {
        v.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Derivatives are the derivatives of the values, fast ones are close to exact ones, values are not negative.
    #[test]
    fn derivatives_are_derivatives() {
        let mut random = Random(1);
        for (loss, classes) in every() {
            for _ in 0..300 {
                let s: Vec<f64> = (0..loss.outputs).map(|_| 6.0 * random.next()).collect();
                let y = label(&mut random, classes);
                let exact = derivatives(&loss, &s, y);
                let mut fast = vec![0f32; loss.outputs];
                let single: Vec<f32> = s.iter().map(|s| *s as f32).collect();
                (loss.derivatives)(&loss.parameters, &single, &[y], &mut fast);
                assert!(value(&loss, &s, y) >= 0.0);
                for o in 0..loss.outputs {
                    let h = 1e-6;
                    let (mut above, mut below) = (s.clone(), s.clone());
                    above[o] += h;
                    below[o] -= h;
                    let difference = (value(&loss, &above, y) - value(&loss, &below, y)) / (2.0 * h);
                    // At a kink the difference lies between the two derivatives.
                    let (a, b) = (derivatives(&loss, &above, y)[o], derivatives(&loss, &below, y)[o]);
                    assert!(difference > a.min(b) - 1e-6 && difference < a.max(b) + 1e-6, "{} {difference} {a} {b}", loss.name);
                    assert!((f64::from(fast[o]) - exact[o]).abs() < 2e-5 * loss.lipschitz.max(1.0), "{}", loss.name);
                }
            }
        }
    }

    /// Derivatives of several scores that are clipped need not be those of a function: what rests on one is refused. Of one score they still are.
    #[test]
    fn clipped_losses_of_several_scores_are_not_minimised() {
        assert!(softmax(&[1.0; 3]).clipped(0.5).validate_smooth().is_err());
        assert!(softmax(&[1.0; 3]).clipped(2.0).validate_smooth().is_ok(), "nothing is clipped");
        assert!(logistic(1, 2, 1.0, [1.0, 1.0]).clipped(0.25).validate_smooth().is_ok());
        assert!(hinge(1, 2, [1.0, 1.0]).validate_smooth().is_err());
    }

    #[test]
    fn exponentials_are_close() {
        for i in -700_000..700_000 {
            let x = f64::from(i) * 1e-3 + 1e-4;
            let truth = x.exp();
            assert!((exact_exp(x) / truth - 1.0).abs() < 4.0 * f64::EPSILON, "{x}: {} {truth}", exact_exp(x));
        }
        for x in [-80.0f32, -3.3, -0.1, 0.0, 0.7, 20.0, 80.0] {
            assert!((fast_exp(x) / x.exp() - 1.0).abs() < 2e-6);
        }
        assert!(exact_exp(f64::NAN).is_finite() && exact_exp(f64::INFINITY).is_finite() && exact_exp(f64::NEG_INFINITY) > 0.0);
    }

    /// Adversarial search for a derivative, a change of derivatives, a trace and a value at zero above the constants; the constants are met
    /// up to a part of them, so that none is loose without reason.
    #[test]
    fn constants_hold_and_are_tight() {
        for (loss, classes) in every() {
            let mut random = Random(7);
            let (mut derivative, mut curve, mut trace) = (0f64, 0f64, 0f64);
            for round in 0..6000 {
                let spread = [0.3, 2.0, 12.0, 80.0][round % 4];
                let s: Vec<f64> = (0..loss.outputs).map(|_| spread * random.next()).collect();
                let y = label(&mut random, classes);
                let at = derivatives(&loss, &s, y);
                derivative = derivative.max(size(&at));
                let zero = vec![0.0; loss.outputs];
                assert!(value(&loss, &zero, y) <= loss.at_zero * (1.0 + 1e-12) + 1e-15, "{}", loss.name);
                if loss.smoothness.is_finite() {
                    let mut way: Vec<f64> = (0..loss.outputs).map(|_| random.next()).collect();
                    let (length, h) = (size(&way), 1e-5);
                    way.iter_mut().for_each(|w| *w *= h / length);
                    let moved: Vec<f64> = s.iter().zip(&way).map(|(s, w)| s + w).collect();
                    let change: Vec<f64> = derivatives(&loss, &moved, y).iter().zip(&at).map(|(a, b)| a - b).collect();
                    curve = curve.max(size(&change) / h);
                    let sum: f64 = (0..loss.outputs)
                        .map(|o| {
                            let mut moved = s.clone();
                            moved[o] += h;
                            (derivatives(&loss, &moved, y)[o] - at[o]) / h
                        })
                        .sum();
                    trace = trace.max(sum);
                }
            }
            assert!(derivative <= loss.lipschitz * (1.0 + 1e-9), "{}: {derivative} above {}", loss.name, loss.lipschitz);
            assert!(derivative > 0.8 * loss.lipschitz, "{}: {derivative} far below {}", loss.name, loss.lipschitz);
            if loss.smoothness.is_finite() {
                assert!(curve <= loss.smoothness * (1.0 + 1e-4), "{}: {curve} above {}", loss.name, loss.smoothness);
                assert!(trace <= loss.trace * (1.0 + 1e-4), "{}: {trace} above {}", loss.name, loss.trace);
                assert!(trace > 0.3 * loss.trace, "{}: {trace} far below {}", loss.name, loss.trace);
            }
        }
    }

    /// Many rows at a time are as many rows one by one, to the bit: no record shows in another's derivative.
    #[test]
    fn rows_are_independent() {
        let mut random = Random(3);
        for (loss, classes) in every() {
            let (n, k) = (77, loss.outputs);
            let special = [f32::NAN, 1e30, -0.0, f32::INFINITY, f32::NEG_INFINITY];
            let single: Vec<f32> =
                (0..n * k).map(|i| special.get(i % 23).copied().unwrap_or(5.0 * random.next() as f32)).collect();
            let double: Vec<f64> = single.iter().map(|s| f64::from(*s)).collect();
            let labels: Vec<f32> = (0..n).map(|i| if i % 11 == 0 { 700.0 } else { label(&mut random, classes) }).collect();
            let (mut fast, mut exact) = (vec![0f32; n * k], vec![0f64; n * k]);
            (loss.derivatives)(&loss.parameters, &single, &labels, &mut fast);
            (loss.derivatives_exact)(&loss.parameters, &double, &labels, &mut exact);
            for i in 0..n {
                let (mut one, mut one_exact) = (vec![0f32; k], vec![0f64; k]);
                let part = i * k..(i + 1) * k;
                (loss.derivatives)(&loss.parameters, &single[part.clone()], &labels[i..=i], &mut one);
                (loss.derivatives_exact)(&loss.parameters, &double[part.clone()], &labels[i..=i], &mut one_exact);
                let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let bits_exact = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&one), bits(&fast[part.clone()]), "{} row {i}", loss.name);
                assert_eq!(bits_exact(&one_exact), bits_exact(&exact[part]), "{} row {i}", loss.name);
            }
        }
    }
}
