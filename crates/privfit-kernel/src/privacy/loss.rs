//! What a linear model loses on a row: functions on slices, without captures, so that a row has nowhere to go.

/// Numbers of a loss (Huber width, class weights).
pub type LossParameters = [f64; 4];

/// A loss of one or several scores and a label. Constants hold for rows of norm at most 1.
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
    /// Bound on the second derivative along any direction of the scores; infinite if there is none.
    pub smoothness: f64,
}
