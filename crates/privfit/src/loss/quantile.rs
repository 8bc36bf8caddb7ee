//! The pinball loss with its kink, for metrics.

/// Of a residual target - prediction.
pub fn pinball(level: f64, residual: f64) -> f64 {
    (level * residual).max((level - 1.0) * residual)
}
