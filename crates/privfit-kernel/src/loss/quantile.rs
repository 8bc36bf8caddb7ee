//! Quantile regression for targets in [-1, 1]: the pinball loss of the residual r = y - s at level q, q r above and (q - 1) r
//! below, averaged over r - h ... r + h, which rounds its kink: (q - 1/2) r + r^2 / 4h + h / 4 for |r| <= h, unchanged beyond.
//! Parameters: q, h, and where scores begin (0 if it is left out): s stands for score + offset.
//!
//! Constants for rows of norm 1: the derivative in s goes from -q to 1 - q, linearly over |r| <= h, so its size is at most max(q, 1 -
//! q) and the second derivative at most 1 / 2h. An average of pinball losses is never below the pinball loss, hence never
//! negative. At s = 0 it is convex in y, so largest at y = 1 or -1: max(q, 1 - q), or |q - 1/2| + (h + 1/h) / 4 for h above 1.

use super::Loss;
use super::offset;

/// The loss.
pub fn quantile(level: f64, width: f64) -> Loss {
    let steepest = level.max(1.0 - level);
    let curvature = 0.5 / width;
    Loss {
        name: "quantile",
        outputs: 1,
        parameters: vec![level, width],
        values: |p, scores, labels, out| {
            let (q, h, begin) = (p[0], p[1], offset(p, 2));
            for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
                let r = f64::from(*y) - s - begin;
                *o = if r.abs() <= h { (q - 0.5) * r + r * r / (4.0 * h) + 0.25 * h } else { pinball(q, r) };
            }
        },
        derivatives: |p, scores, labels, out| {
            let (q, steep, begin) = (p[0] as f32, (0.5 / p[1]) as f32, offset(p, 2) as f32);
            for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
                *o = (0.5 - q + (s + begin - y) * steep).max(-q).min(1.0 - q);
            }
        },
        derivatives_exact: |p, scores, labels, out| {
            let (q, steep, begin) = (p[0], 0.5 / p[1], offset(p, 2));
            for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
                *o = (0.5 - q + (s + begin - f64::from(*y)) * steep).max(-q).min(1.0 - q);
            }
        },
        labels: (-1.0, 1.0),
        rank: 1,
        lipschitz: steepest,
        smoothness: curvature,
        trace: curvature,
        at_zero: if width <= 1.0 { steepest } else { (level - 0.5).abs() + 0.25 * (width + 1.0 / width) },
        convex: true,
        starting: Some(starting_at),
    }
}

/// The same with scores that begin anywhere in [-1, 1]: residuals at scores of zero are up to 2, beyond every kink.
fn starting_at(loss: &Loss, offset: f64, _: f64) -> Loss {
    let (level, width) = (loss.parameters[0], loss.parameters[1]);
    Loss { parameters: vec![level, width, offset], at_zero: 2.0 * loss.lipschitz, ..loss.clone() }
}

/// The loss with its kink, of a residual target - prediction.
fn pinball(level: f64, residual: f64) -> f64 {
    (level * residual).max((level - 1.0) * residual)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: inside of the kink, on both sides of it, and flat where the part q of the targets is below.
    #[test]
    fn closed_forms() {
        let loss = quantile(0.8, 0.1);
        let at = |s: f64, y: f32| {
            let (mut value, mut derivative) = ([0.0], [0.0]);
            (loss.values)(&loss.parameters, &[s], &[y], &mut value);
            (loss.derivatives_exact)(&loss.parameters, &[s], &[y], &mut derivative);
            (value[0], derivative[0])
        };
        let close = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12;
        assert!(close(at(0.0, 1.0), (0.8, -0.8)) && close(at(0.0, -1.0), (0.2, 0.2)), "{:?}", at(0.0, 1.0));
        assert!(close(at(0.5, 0.5), (0.025, -0.3)) && close(at(0.25, 0.5), (0.2, -0.8)));
        // Targets -1, -0.5, 0, 0.5 below and 1 above: four fifths.
        let sum: f64 = [-1.0f32, -0.5, 0.0, 0.5, 1.0].iter().map(|y| at(0.75, *y).1).sum();
        assert!(sum.abs() < 1e-12, "{sum}");
    }
}
