//! What a linear model loses on a row: functions on slices, without captures, so that a row has nowhere to go.

use crate::error::{Error, Result};
use crate::quiet::quietly;

/// Public numbers of a loss (Huber width, class weights).
pub type LossParameters = [f64];

/// A loss of one or several scores and a label. Constants hold for rows of norm at most 1. Functions get many rows at a time and
/// must treat each by itself: every loss has a test that compares many rows with one at a time.
#[derive(Clone)]
pub struct Loss {
    /// Its name.
    pub name: &'static str,
    /// Scores to a row.
    pub outputs: usize,
    /// Public numbers.
    pub parameters: Vec<f64>,
    /// Values from scores (row after row) and labels; never negative.
    pub values: fn(&LossParameters, &[f64], &[f32], &mut [f64]),
    /// Slopes with respect to the scores, fast: single precision, quantised afterwards.
    pub slopes: fn(&LossParameters, &[f32], &[f32], &mut [f32]),
    /// Slopes with respect to the scores, exact: the gradient of `values`.
    pub slopes_exact: fn(&LossParameters, &[f64], &[f32], &mut [f64]),
    /// Bound on the Euclidean norm of the slopes of a row.
    pub lipschitz: f64,
    /// Labels in this range; a record with another label contributes nothing.
    pub labels: (f32, f32),
    /// Dimensions that the slopes of a row can span: 1 for one score, K-1 for softmax.
    pub rank: u32,
    /// Bound on the second derivative along any direction of the scores; infinite if there is none.
    pub smoothness: f64,
    /// Bound on the sum of second derivatives over the scores; at most rank x smoothness.
    pub trace: f64,
    /// Bound on the value at scores of zero. Privacy does not rest on it: it says how far the solver may have to go.
    pub at_zero: f64,
}

impl Loss {
    /// Whether a label is one that the loss knows.
    pub(crate) fn knows(&self, label: f32) -> bool {
        label >= self.labels.0 && label <= self.labels.1
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

    /// Exact slopes of many rows, never longer than the bound and never a panic. For one output this keeps them monotone in the
    /// score, so that they are still the slopes of a convex function.
    pub(crate) fn bounded_slopes(&self, scores: &[f64], labels: &[f32], out: &mut [f64]) {
        let call = |scores: &[f64], labels: &[f32], out: &mut [f64]| {
            let call = || (self.slopes_exact)(&self.parameters, scores, labels, out);
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
                let cut = s.clamp(-self.lipschitz, self.lipschitz);
                *s = if cut.is_nan() || !self.knows(*y) { 0.0 } else { cut };
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
