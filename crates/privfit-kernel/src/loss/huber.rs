//! Huber regression for targets in [-1, 1]: r^2 / 2 for residuals r up to h in size, h |r| - h^2 / 2 beyond. Parameters: h, and
//! where scores begin (0 if it is left out): s stands for score + offset.
//!
//! Constants for rows of norm 1: derivative at most h, second derivative at most 1.

use super::Loss;
use super::offset;

/// The loss.
pub fn huber(width: f64) -> Loss {
    Loss {
        name: "huber",
        outputs: 1,
        parameters: vec![width],
        values: |p, scores, labels, out| {
            let begin = offset(p, 1);
            for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
                let r = (s + begin - f64::from(*y)).abs();
                *o = if r <= p[0] { 0.5 * r * r } else { p[0] * (r - 0.5 * p[0]) };
            }
        },
        derivatives: |p, scores, labels, out| {
            let (h, begin) = (p[0] as f32, offset(p, 1) as f32);
            for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
                *o = (s + begin - y).max(-h).min(h);
            }
        },
        derivatives_exact: |p, scores, labels, out| {
            let begin = offset(p, 1);
            for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
                *o = (s + begin - f64::from(*y)).max(-p[0]).min(p[0]);
            }
        },
        labels: (-1.0, 1.0),
        rank: 1,
        lipschitz: width,
        smoothness: 1.0,
        trace: 1.0,
        at_zero: if width >= 1.0 { 0.5 } else { width * (1.0 - 0.5 * width) },
        convex: true,
        starting: Some(starting_at),
    }
}

/// Squared error (s - y)^2 / 2 with residuals clipped at `clip`: beyond it the loss goes on as its tangent. A raw squared loss has no bound on
/// its derivative and is not offered. With a clip of 2 no residual of a prediction inside of the bounds is ever clipped.
pub fn squared(clip: f64) -> Loss {
    Loss { name: "squared", ..huber(clip) }
}

/// Squared error of public rows, whose targets may be anything: its derivative has next to no bound.
pub fn least_squares() -> Loss {
    Loss { labels: (f32::MIN, f32::MAX), ..squared(1e12) }
}

/// The same with scores that begin anywhere in [-1, 1]: residuals at scores of zero are up to 2.
fn starting_at(loss: &Loss, offset: f64, _: f64) -> Loss {
    let width = loss.parameters[0];
    let at_zero = if width >= 2.0 { 2.0 } else { width * (2.0 - 0.5 * width) };
    Loss { parameters: vec![width, offset], at_zero, ..loss.clone() }
}
