//! What a linear model loses on a record: one file to a loss, constants derived here and checked by one test for all of them.
//!
//! Labels are class numbers from 0, or targets scaled to [-1, 1]; without a target, 1. A record whose label is outside of the public
//! set, or that can't be read, carries a label that no loss knows, and adds nothing.

pub mod geometric_median;
pub mod hinge;
pub mod huber;
pub mod huber_svm;
pub mod logistic;
pub mod mean;
pub mod poisson;
pub mod quantile;
pub mod softmax;
pub mod squared;

use privfit_kernel::{Loss, LossParameters};

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One of several classes.
    Classes(usize),
    /// A number.
    Number,
    /// Nothing: one point of the feature space stands for all rows.
    Location,
}

impl Task {
    /// Number of classes; 0 where there are none.
    pub fn classes(self) -> usize {
        match self {
            Task::Classes(k) => k,
            Task::Number | Task::Location => 0,
        }
    }
}

/// The tasks that a loss is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Classes, by scores.
    Classes,
    /// A number, by one score.
    Number,
    /// A point; there is no score, so methods for linear models do not apply.
    Location,
}

/// A number that a loss takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its value if nobody sets it.
    pub default: f64,
    /// Smallest and largest value.
    pub range: (f64, f64),
}

/// A row of the list of losses.
pub struct LossEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is for.
    pub kind: Kind,
    /// Whether it takes several classes at once; otherwise several classes are one against the rest.
    pub many: bool,
    /// Its numbers, in the order in which `build` takes them.
    pub numbers: &'static [Number],
    /// Says what it is in a line.
    pub what: &'static str,
}

impl LossEntry {
    /// Whether it is for that task.
    pub fn fits(&self, task: Task) -> bool {
        let kind = match task {
            Task::Classes(_) => Kind::Classes,
            Task::Number => Kind::Number,
            Task::Location => Kind::Location,
        };
        self.kind == kind
    }

    /// Its numbers if nobody sets them.
    pub fn defaults(&self) -> Vec<f64> {
        self.numbers.iter().map(|n| n.default).collect()
    }
}

/// A width; corners sharper than a hundredth would only cost the solver time.
const fn width(default: f64, largest: f64) -> Number {
    Number { name: "width", default, range: (0.01, largest) }
}

/// Every loss.
pub const ALL: &[LossEntry] = &[
    LossEntry {
        name: "logistic",
        kind: Kind::Classes,
        many: false,
        numbers: &[Number { name: "slope_clip", default: 0.5, range: (0.01, 1.0) }],
        what: "log-likelihood of two classes, slopes cut at slope_clip (1: not cut)",
    },
    LossEntry { name: "softmax", kind: Kind::Classes, many: true, numbers: &[], what: "log-likelihood of several classes" },
    LossEntry {
        name: "huber-svm",
        kind: Kind::Classes,
        many: false,
        numbers: &[width(0.5, 100.0)],
        what: "support vector machine with a rounded corner",
    },
    LossEntry {
        name: "hinge",
        kind: Kind::Classes,
        many: false,
        numbers: &[],
        what: "support vector machine (noisy gradients only: it is not smooth)",
    },
    LossEntry {
        name: "squared",
        kind: Kind::Number,
        many: false,
        numbers: &[Number { name: "residual_clip", default: 2.0, range: (0.01, 100.0) }],
        what: "squared error, residuals cut at residual_clip half-ranges of the target",
    },
    LossEntry {
        name: "huber",
        kind: Kind::Number,
        many: false,
        numbers: &[width(0.25, 100.0)],
        what: "squared error for residuals up to width half-ranges, absolute beyond",
    },
    LossEntry {
        name: "quantile",
        kind: Kind::Number,
        many: false,
        numbers: &[Number { name: "quantile", default: 0.5, range: (0.01, 0.99) }, width(0.1, 1.0)],
        what: "the number that this part of the targets stays below; corner rounded over width half-ranges",
    },
    LossEntry {
        name: "poisson",
        kind: Kind::Number,
        many: false,
        numbers: &[],
        what: "counts from 0 to their bound, by the logarithm of their rate",
    },
    LossEntry {
        name: "mean",
        kind: Kind::Location,
        many: false,
        numbers: &[],
        what: "no target: the mean of the rows, from one noisy sum",
    },
    LossEntry {
        name: "geometric-median",
        kind: Kind::Location,
        many: false,
        numbers: &[width(0.05, 1.0)],
        what: "no target: the point with the least mean distance to the rows; distances below width are rounded",
    },
];

/// The row of that name.
pub fn find(name: &str) -> Option<&'static LossEntry> {
    let name = name.replace('_', "-");
    ALL.iter().find(|l| l.name == name)
}

/// The loss itself: its numbers, class weights (all 1 if none are given), and the class that a single score speaks for. None for
/// a loss without scores.
pub fn build(entry: &LossEntry, numbers: &[f64], classes: usize, positive: usize, weights: &[f64]) -> Option<Loss> {
    let number = numbers.first().copied().unwrap_or(0.0);
    let weight = |c: usize| weights.get(c).copied().unwrap_or(1.0);
    let all: Vec<f64> = (0..classes).map(weight).collect();
    // Against the rest: the rest may have weights of its own, of which the largest bounds them all.
    let rest = (0..classes).filter(|c| *c != positive).map(weight).fold(0.0, f64::max);
    let two = [if classes > 0 { rest } else { 1.0 }, weight(positive)];
    Some(match entry.name {
        "logistic" => logistic::logistic(positive, classes, number, two),
        "softmax" => softmax::softmax(&all),
        "huber-svm" => huber_svm::huber_svm(positive, classes, number, two),
        "hinge" => hinge::hinge(positive, classes, two),
        "squared" => squared::squared(number),
        "huber" => huber::huber(number),
        "quantile" => quantile::quantile(number, numbers[1]),
        "poisson" => poisson::poisson(),
        _ => return None,
    })
}

/// The parameter of that number, for where scores begin; 0 if it is left out.
#[inline(always)]
fn offset(p: &LossParameters, at: usize) -> f64 {
    p.get(at).copied().unwrap_or(0.0)
}

/// The same loss of a number for scores that begin at `offset` instead of 0; counts are clamped at the part `clamp` of their bound. No
/// constant depends on the two numbers, which may be released ones: only the value at zero is bounded for all of them.
pub fn starting_at(loss: &Loss, offset: f64, clamp: f64) -> Loss {
    match loss.name {
        "squared" | "huber" => huber::starting_at(loss, offset),
        "quantile" => quantile::starting_at(loss, offset),
        "poisson" => poisson::starting_at(loss, offset, clamp),
        _ => loss.clone(),
    }
}

/// e^x for arguments cut at +-80, by a polynomial that the compiler can vectorise; relative error below 3e-7.
#[inline(always)]
pub(crate) fn fast_exp(x: f32) -> f32 {
    // NaN passes through max and min as the bound, so that the result is finite.
    let x = x.max(-80.0).min(80.0) * std::f32::consts::LOG2_E;
    let whole = (x + 12_582_912.0) - 12_582_912.0;
    let t = (x - whole) * std::f32::consts::LN_2;
    let p = 1.0 + t * (1.0 + t * (0.5 + t * (1.0 / 6.0 + t * (1.0 / 24.0 + t * (1.0 / 120.0 + t * (1.0 / 720.0))))));
    p * f32::from_bits(((whole as i32 + 127) << 23) as u32)
}

/// e^x for arguments cut at +-700, off by less than 4 units in the last place, in a form that the compiler can vectorise.
#[inline(always)]
pub(crate) fn exact_exp(x: f64) -> f64 {
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
fn by_margin_slope(p: &LossParameters, s: &[f64], y: &[f32], out: &mut [f64], slope: impl Fn(&LossParameters, f64) -> f64) {
    for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
        let (y, w) = sign(p, *y);
        *o = y * w * slope(p, s * y);
    }
}

#[inline(always)]
fn by_margin_fast(p: &LossParameters, s: &[f32], y: &[f32], out: &mut [f32], slope: impl Fn(&LossParameters, f64) -> f64) {
    for ((o, s), y) in out.iter_mut().zip(s).zip(y) {
        let (y, w) = sign(p, *y);
        *o = (y * w * slope(p, f64::from(*s) * y)) as f32;
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

    fn every() -> Vec<(Loss, usize)> {
        let mut out = Vec::new();
        for entry in ALL {
            for classes in [2usize, 3, 10] {
                for weights in [vec![], vec![0.5, 2.0, 1.0]] {
                    for round in 0..3 {
                        let k = if entry.kind == Kind::Classes { classes } else { 0 };
                        // Numbers of a loss with several take turns.
                        let pick = |(i, n): (usize, &Number)| [0.1f64, 0.5, 1.0][(round + i) % 3].max(n.range.0).min(n.range.1);
                        let numbers: Vec<f64> = entry.numbers.iter().enumerate().map(pick).collect();
                        // Losses without scores have tests of their own, beside them.
                        let built = build(entry, &numbers, k, 1, &weights);
                        let moved = |loss: &Loss| starting_at(loss, [-1.0, -0.3, 0.0][round], [1.0, 0.25, 0.01][round]);
                        if entry.kind == Kind::Number {
                            out.extend(built.iter().map(|loss| (moved(loss), k)));
                        }
                        out.extend(built.map(|loss| (loss, k)));
                    }
                }
            }
        }
        out
    }

    fn label(random: &mut Random, classes: usize) -> f32 {
        let u = random.next();
        if classes == 0 { u as f32 } else { ((u * 0.5 + 0.5) * classes as f64) as usize as f32 }
    }

    fn slopes(loss: &Loss, s: &[f64], y: f32) -> Vec<f64> {
        let mut out = vec![0.0; loss.outputs];
        (loss.slopes_exact)(&loss.parameters, s, &[y], &mut out);
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

    /// Slopes are the derivatives of the values, fast ones are close to exact ones, values are not negative.
    #[test]
    fn slopes_are_derivatives() {
        let mut random = Random(1);
        for (loss, classes) in every() {
            for _ in 0..300 {
                let s: Vec<f64> = (0..loss.outputs).map(|_| 6.0 * random.next()).collect();
                let y = label(&mut random, classes);
                let exact = slopes(&loss, &s, y);
                let mut fast = vec![0f32; loss.outputs];
                let single: Vec<f32> = s.iter().map(|s| *s as f32).collect();
                (loss.slopes)(&loss.parameters, &single, &[y], &mut fast);
                assert!(value(&loss, &s, y) >= 0.0);
                for o in 0..loss.outputs {
                    let h = 1e-6;
                    let (mut above, mut below) = (s.clone(), s.clone());
                    above[o] += h;
                    below[o] -= h;
                    let difference = (value(&loss, &above, y) - value(&loss, &below, y)) / (2.0 * h);
                    // At a corner the difference lies between the two slopes.
                    let (a, b) = (slopes(&loss, &above, y)[o], slopes(&loss, &below, y)[o]);
                    assert!(difference > a.min(b) - 1e-6 && difference < a.max(b) + 1e-6, "{} {difference} {a} {b}", loss.name);
                    assert!((f64::from(fast[o]) - exact[o]).abs() < 2e-5 * loss.lipschitz.max(1.0), "{}", loss.name);
                }
            }
        }
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

    /// Adversarial search for a slope, a change of slopes, a trace and a value at zero above the constants; the constants are met
    /// up to a part of them, so that none is loose without reason.
    #[test]
    fn constants_hold_and_are_tight() {
        for (loss, classes) in every() {
            let mut random = Random(7);
            let (mut slope, mut curve, mut trace) = (0f64, 0f64, 0f64);
            for round in 0..6000 {
                let spread = [0.3, 2.0, 12.0, 80.0][round % 4];
                let s: Vec<f64> = (0..loss.outputs).map(|_| spread * random.next()).collect();
                let y = label(&mut random, classes);
                let at = slopes(&loss, &s, y);
                slope = slope.max(size(&at));
                let zero = vec![0.0; loss.outputs];
                assert!(value(&loss, &zero, y) <= loss.at_zero * (1.0 + 1e-12) + 1e-15, "{}", loss.name);
                if loss.smoothness.is_finite() {
                    let mut way: Vec<f64> = (0..loss.outputs).map(|_| random.next()).collect();
                    let (length, h) = (size(&way), 1e-5);
                    way.iter_mut().for_each(|w| *w *= h / length);
                    let moved: Vec<f64> = s.iter().zip(&way).map(|(s, w)| s + w).collect();
                    let change: Vec<f64> = slopes(&loss, &moved, y).iter().zip(&at).map(|(a, b)| a - b).collect();
                    curve = curve.max(size(&change) / h);
                    let sum: f64 = (0..loss.outputs)
                        .map(|o| {
                            let mut moved = s.clone();
                            moved[o] += h;
                            (slopes(&loss, &moved, y)[o] - at[o]) / h
                        })
                        .sum();
                    trace = trace.max(sum);
                }
            }
            assert!(slope <= loss.lipschitz * (1.0 + 1e-9), "{}: {slope} above {}", loss.name, loss.lipschitz);
            assert!(slope > 0.8 * loss.lipschitz, "{}: {slope} far below {}", loss.name, loss.lipschitz);
            if loss.smoothness.is_finite() {
                assert!(curve <= loss.smoothness * (1.0 + 1e-4), "{}: {curve} above {}", loss.name, loss.smoothness);
                assert!(trace <= loss.trace * (1.0 + 1e-4), "{}: {trace} above {}", loss.name, loss.trace);
                assert!(trace > 0.3 * loss.trace, "{}: {trace} far below {}", loss.name, loss.trace);
            }
        }
    }

    /// Many rows at a time are as many rows one by one, to the bit: no record shows in another's slope.
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
            (loss.slopes)(&loss.parameters, &single, &labels, &mut fast);
            (loss.slopes_exact)(&loss.parameters, &double, &labels, &mut exact);
            for i in 0..n {
                let (mut one, mut one_exact) = (vec![0f32; k], vec![0f64; k]);
                let part = i * k..(i + 1) * k;
                (loss.slopes)(&loss.parameters, &single[part.clone()], &labels[i..=i], &mut one);
                (loss.slopes_exact)(&loss.parameters, &double[part.clone()], &labels[i..=i], &mut one_exact);
                let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let bits_exact = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&one), bits(&fast[part.clone()]), "{} row {i}", loss.name);
                assert_eq!(bits_exact(&one_exact), bits_exact(&exact[part]), "{} row {i}", loss.name);
            }
        }
    }
}
