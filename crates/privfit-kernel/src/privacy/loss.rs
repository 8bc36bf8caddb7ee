//! What a linear model loses on a row: functions on slices, without captures, so that a row has nowhere to go.

use crate::error::{Error, Result};

/// Numbers of a loss (Huber width, class weights).
pub type LossParameters = [f64; 4];

/// A loss of one or several scores and a label. Constants hold for rows of norm at most 1. Functions get many rows at a time and
/// must treat each by itself: every loss has a test that compares many rows with one at a time.
#[derive(Clone, Copy)]
pub struct Loss {
    /// Its name.
    pub name: &'static str,
    /// Scores to a row.
    pub outputs: usize,
    /// Public numbers.
    pub parameters: LossParameters,
    /// Values from scores (row after row) and labels.
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
        if self.outputs == 0 || self.rank == 0 || self.rank as usize > self.outputs {
            return Err(Error::domain("rank", self.rank, "give at least 1 and at most the number of outputs"));
        }
        Ok(())
    }

    /// Exact slopes of one row, never longer than the bound and never a panic. For one output this keeps them monotone in the
    /// score, so that they are still the slopes of a convex function.
    pub(crate) fn bounded_slopes(&self, scores: &[f64], label: f32, out: &mut [f64]) {
        let call = || (self.slopes_exact)(&self.parameters, scores, &[label], out);
        let calm = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_ok();
        if !calm || !self.knows(label) || out.iter().any(|s| s.is_nan()) {
            out.fill(0.0);
        } else if let [one] = out {
            *one = one.clamp(-self.lipschitz, self.lipschitz);
        } else {
            let size = out.iter().map(|s| s * s).sum::<f64>().sqrt();
            if size > self.lipschitz {
                let factor = if size.is_finite() { self.lipschitz / size } else { 0.0 };
                out.iter_mut().for_each(|s| *s = if s.is_finite() { *s * factor } else { 0.0 });
            }
        }
    }
}
