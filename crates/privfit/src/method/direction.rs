//! What becomes of the noisy average of gradients before it is a step: regularisers and smoothing.
//!
//! *Claim.* All of it is a function of released numbers and of public ones, and adds nothing to what a record can do: the regulariser lies outside of the clipped sum, and smoothing comes after the noise.
//! Smoothing is invertible besides, so that a smoothed step reveals exactly what the step itself would: no strength of it makes epsilon smaller.
//!
//! *Nonconvex regulariser.* strength x the sum of w^2 / (1 + w^2), added to the average loss. Its derivative is 2 w / (1 + w^2)^2; its second derivative is between -1/2 and 2. Weights are those of encoded rows.
//!
//! *Smoothing.* A gradient is replaced by the solution of (I - s L) x = gradient on a ring of all weights, score after score (`solve/laplacian.rs`). It divides the variance of the noise by up to
//! sqrt(1 + 4s) (1 + 4s) / (1 + 2s) and bends the gradient toward weights that change slowly along the ring: it helps where the answer does so, as weights of pixels do.

use super::{ALL, Method, rounded};
use crate::error::Error;
use crate::solve::laplacian::smooth;

/// Regulariser and smoothing; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Direction {
    /// Strength of the nonconvex regulariser.
    pub(super) nonconvex: f64,
    /// Strength of smoothing.
    pub(super) smoothing: f64,
}

/// Value of the regulariser of one weight.
#[cfg(test)]
fn value(w: f64) -> f64 {
    w * w / (1.0 + w * w)
}

/// Derivative of the regulariser by one weight.
fn derivative(w: f64) -> f64 {
    // In an order in which nothing overflows.
    let part = 1.0 / (1.0 + w * w);
    2.0 * (w * part) * part
}

impl Direction {
    /// Largest second derivative that the regulariser adds.
    pub(super) fn curvature(&self) -> f64 {
        2.0 * self.nonconvex
    }

    /// Makes a direction of an average, at these weights.
    pub(super) fn turn(&self, along: &mut [f64], weights: &[f64]) {
        if self.nonconvex > 0.0 {
            along.iter_mut().zip(weights).for_each(|(a, w)| *a += self.nonconvex * derivative(*w));
        }
        smooth(along, self.smoothing);
    }

    pub(super) fn describe(&self) -> Vec<(&'static str, String)> {
        let lines =
            [("strength of the nonconvex regulariser", self.nonconvex), ("strength of Laplacian smoothing", self.smoothing)];
        lines.into_iter().filter(|l| l.1 > 0.0).map(|l| (l.0, rounded(l.1))).collect()
    }
}

/// Why a method does not take the regulariser, and which ones do.
pub(super) fn needs_convexity(method: &Method) -> Error {
    let others: Vec<&str> = ALL.iter().filter(|m| m.has("nonconvex")).map(|m| m.name).collect();
    Error::misuse(format!(
        "{} has no place for a nonconvex regulariser, and what rests on a minimiser or on convexity can't have one: use ",
        method.name
    ))
    .give("method", others[0])
    .text(format!(" or another one of {}", others.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{plan, schema};

    #[test]
    fn derivatives_are_those_of_the_regulariser() {
        let h = 1e-5;
        for i in -400..=400 {
            let w = f64::from(i) * 0.02;
            let slope = (value(w + h) - value(w - h)) / (2.0 * h);
            let curvature = (derivative(w + h) - derivative(w - h)) / (2.0 * h);
            assert!((slope - derivative(w)).abs() < 1e-8, "{w}");
            assert!((-0.5 - 1e-6..=2.0 + 1e-6).contains(&curvature), "{w}: {curvature}");
        }
        for w in [f64::MAX, -1e200, 5e-324] {
            assert!(derivative(w).is_finite());
        }
    }

    /// Methods that need convexity name those that do not.
    #[test]
    fn who_needs_convexity_says_so() {
        let schema = schema(3, "", "classes = [\"a\", \"b\"]");
        let problem = plan(&schema, "noisy-gd", "logistic", 1000, 1.0, &[("nonconvex", 0.01)]).problem;
        for method in ALL.iter().chain(crate::method::published::ALL) {
            let outcome = crate::method::plan(method.name, &problem);
            match method.has("nonconvex") {
                true => assert!(outcome.is_ok(), "{}", method.name),
                false => {
                    let error = outcome.err().unwrap().to_string();
                    assert!(error.contains("recursive-momentum") && error.contains(method.name), "{error}");
                }
            }
        }
    }

    /// The regulariser and smoothing change neither noise nor event.
    #[test]
    fn privacy_does_not_depend_on_the_direction() {
        let schema = schema(3, "", "classes = [\"a\", \"b\"]");
        let event = |set: &[(&str, f64)]| {
            let fixed = [("steps", 50.0), ("sampling_rate", 0.1), ("learning_rate", 1.0)];
            let all: Vec<_> = fixed.iter().chain(set).copied().collect();
            plan(&schema, "noisy-sgd", "logistic", 1000, 1.0, &all).plan.event().clone()
        };
        let plain = event(&[]);
        for set in [[("smoothing", 3.0)], [("smoothing", 1e6)], [("nonconvex", 0.1)]] {
            assert_eq!(event(&set), plain);
        }
    }
}
