//! Squared error (s - y)^2 / 2 for targets in [-1, 1], with residuals cut at `clip`: beyond it the loss goes on as its tangent.
//! A raw squared loss has no bound on its slope and is not offered. Parameters: clip.
//!
//! Constants for rows of norm 1: slope at most clip, second derivative at most 1. With the default clip of 2 no residual of a
//! prediction inside of the bounds is ever cut.

use privfit_kernel::Loss;

/// The loss.
pub fn squared(clip: f64) -> Loss {
    Loss { name: "squared", ..super::huber::huber(clip) }
}
