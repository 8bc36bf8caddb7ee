//! Huber regression for targets in [-1, 1]: r^2 / 2 for residuals r up to h in size, h |r| - h^2 / 2 beyond. Parameters: h, and
//! where scores begin (0 if it is left out): s stands for score + offset.
//!
//! Constants for rows of norm 1: slope at most h, second derivative at most 1.

use super::offset;
use privfit_kernel::Loss;

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
        slopes: |p, scores, labels, out| {
            let (h, begin) = (p[0] as f32, offset(p, 1) as f32);
            for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
                *o = (s + begin - y).max(-h).min(h);
            }
        },
        slopes_exact: |p, scores, labels, out| {
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
    }
}

/// The same with scores that begin anywhere in [-1, 1]: residuals at scores of zero are up to 2.
pub fn starting_at(loss: &Loss, offset: f64) -> Loss {
    let width = loss.parameters[0];
    let at_zero = if width >= 2.0 { 2.0 } else { width * (2.0 - 0.5 * width) };
    Loss { parameters: vec![width, offset], at_zero, ..loss.clone() }
}
