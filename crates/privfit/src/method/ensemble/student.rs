//! A linear student of released answers. It sees public points and noisy counts alone, so that it costs nothing.
//!
//! Counts over the number of parts, with their noise, are moved to the nearest shares that there are: none below 0, and 1 in all. That takes away what noise says of labels
//! that nobody has voted for. These shares stand in the place of probabilities in a cross-entropy, with a ridge that is made for the rest of the noise.

use super::encoder::{Encoder, spread};
use super::plan::{Answer, Ensemble};
use privfit_kernel::PublicRows;

/// Steps of the student; accelerated gradient descent.
const STEPS: usize = 600;
/// Expected length of the weights of a classifier.
const RADIUS: f64 = 10.0;

/// The most frequent label of an answer.
pub(crate) fn winner(counts: &[f64]) -> usize {
    (0..counts.len()).fold(0, |best, c| if counts[c] > counts[best] { c } else { best })
}

/// The nearest point of the simplex to counts over the number of parts.
fn nearest_shares(counts: &[f64], parts: f64) -> Vec<f64> {
    let mut sorted = counts.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut level) = (0.0, 0.0);
    for (i, count) in sorted.iter().enumerate() {
        sum += count / parts;
        let own = (sum - 1.0) / (i + 1) as f64;
        if count / parts > own {
            level = own;
        }
    }
    counts.iter().map(|count| (count / parts - level).max(0.0)).collect()
}

/// Weights of all scores over the encoded features: one score for two classes, otherwise one for each.
pub(crate) fn weights(ensemble: &Ensemble, encoder: &Encoder, points: &PublicRows, answers: &[Answer]) -> Vec<f64> {
    let encoder = encoder.linear();
    let classes = ensemble.classes();
    let outputs = if classes == 2 { 1 } else { classes };
    let (mut all, width) = (encoder.points(points), encoder.width());
    // What rows have in common says nothing: their differences are brought to a length of 1, which the ridge is made for.
    let factor = 1.0 / spread(&all, width).max(1e-12);
    all.iter_mut().for_each(|x| *x *= factor);
    let parts = f64::from(ensemble.parts());
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for (z, counts) in all.chunks(width).zip(answers) {
        let Some(counts) = counts else { continue };
        rows.extend_from_slice(z);
        let shares = nearest_shares(counts, parts);
        match outputs {
            1 => targets.push(shares[1]),
            _ => targets.extend(shares),
        }
    }
    let count = rows.len() / width;
    let noise = ensemble.votes().deviation() / parts;
    // Noise of a coordinate of the gradient, and the ridge that balances it, as for weights with noise (`method/teacher.rs`).
    let square = rows.iter().map(|x| x * x).sum::<f64>() / width.max(1) as f64;
    let ridge = (0.5 * count as f64 * noise * noise * square / (RADIUS * RADIUS)).cbrt().max(1e-3) * ensemble.student_ridge();
    let mut small = descend(&rows, width, &targets, outputs, ridge);
    small.iter_mut().for_each(|w| *w *= factor);
    // Back to the features: scores are linear in directions, which are linear in features.
    let features = points.features();
    let directions = encoder.directions();
    let mut out = vec![0f64; outputs * features];
    for (own, to) in small.chunks(width).zip(out.chunks_mut(features)) {
        match directions.is_empty() {
            true => to.copy_from_slice(own),
            false => own.iter().zip(directions.chunks(features)).for_each(|(w, direction)| {
                to.iter_mut().zip(direction).for_each(|(t, x)| *t += w * x);
            }),
        }
    }
    out
}

/// Minimises the sum of cross-entropies and a ridge; weights score after score.
fn descend(rows: &[f64], width: usize, targets: &[f64], outputs: usize, ridge: f64) -> Vec<f64> {
    // Curvature is at most 1/4 of the squared rows for one score, 1/2 for several.
    let square: f64 = top_moment(rows, width);
    let step = 1.0 / ((if outputs == 1 { 0.25 } else { 0.5 }) * square * 1.01 + ridge);
    let momentum = {
        let root = (step * ridge).sqrt();
        (1.0 - root) / (1.0 + root)
    };
    let mut weights = vec![0f64; outputs * width];
    let mut ahead = weights.clone();
    let mut scores = vec![0f64; outputs];
    for _ in 0..STEPS {
        let mut gradient: Vec<f64> = ahead.iter().map(|w| ridge * w).collect();
        for (row, target) in rows.chunks(width).zip(targets.chunks(outputs)) {
            for (s, own) in scores.iter_mut().zip(ahead.chunks(width)) {
                *s = own.iter().zip(row).map(|(w, x)| w * x).sum();
            }
            probabilities(&mut scores);
            for ((p, t), own) in scores.iter().zip(target).zip(gradient.chunks_mut(width)) {
                own.iter_mut().zip(row).for_each(|(g, x)| *g += (p - t) * x);
            }
        }
        for ((a, w), g) in ahead.iter_mut().zip(&mut weights).zip(&gradient) {
            let next = *a - step * g;
            *a = next + momentum * (next - *w);
            *w = next;
        }
    }
    weights
}

/// Largest eigenvalue of the sum of squares of rows, from above by a little.
fn top_moment(rows: &[f64], width: usize) -> f64 {
    let mut v = vec![1.0f64; width];
    let mut value = 0.0;
    for _ in 0..60 {
        let length = v.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-300);
        v.iter_mut().for_each(|x| *x /= length);
        let mut next = vec![0f64; width];
        for row in rows.chunks(width.max(1)) {
            let along: f64 = row.iter().zip(&v).map(|(x, v)| x * v).sum();
            next.iter_mut().zip(row).for_each(|(n, x)| *n += along * x);
        }
        value = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        v = next;
    }
    1.05 * value
}

fn probabilities(scores: &mut [f64]) {
    if let [score] = scores {
        *score = 1.0 / (1.0 + (-*score).exp());
        return;
    }
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter_mut().for_each(|s| *s = (*s - most).exp());
    let sum: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|s| *s /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares are none below 0 and 1 in all, and those that are so already stay.
    #[test]
    fn shares_are_those_of_votes() {
        let mut random = crate::data::generate::Random::new(9);
        for _ in 0..200 {
            let counts: Vec<f64> = (0..5).map(|_| 20.0 + 40.0 * random.normal()).collect();
            let shares = nearest_shares(&counts, 100.0);
            assert!(shares.iter().all(|s| *s >= 0.0) && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert_eq!(winner(&shares), winner(&counts));
            let distance = |other: &[f64]| counts.iter().zip(other).map(|(c, s)| (c / 100.0 - s).powi(2)).sum::<f64>();
            // No other point of the simplex is nearer.
            for _ in 0..20 {
                let raw: Vec<f64> = (0..5).map(|_| random.uniform()).collect();
                let sum: f64 = raw.iter().sum();
                assert!(distance(&shares) <= distance(&raw.iter().map(|r| r / sum).collect::<Vec<f64>>()) + 1e-12);
            }
        }
        let same = nearest_shares(&[30.0, 70.0], 100.0);
        assert!((same[0] - 0.3).abs() < 1e-12 && (same[1] - 0.7).abs() < 1e-12);
    }

    /// Gradients vanish where it ends, for one score and for several, although targets are no probabilities.
    #[test]
    fn students_meet_their_minimum() {
        let mut random = crate::data::generate::Random::new(4);
        for outputs in [1, 3] {
            let (count, width, ridge) = (50, 4, 0.3);
            let rows: Vec<f64> = (0..count * width).map(|_| random.normal()).collect();
            let mut targets: Vec<f64> = (0..count * outputs).map(|_| random.normal()).collect();
            if outputs > 1 {
                for own in targets.chunks_mut(outputs) {
                    let rest = (1.0 - own.iter().sum::<f64>()) / outputs as f64;
                    own.iter_mut().for_each(|t| *t += rest);
                }
            }
            let weights = descend(&rows, width, &targets, outputs, ridge);
            let mut gradient: Vec<f64> = weights.iter().map(|w| ridge * w).collect();
            for (row, target) in rows.chunks(width).zip(targets.chunks(outputs)) {
                let mut p: Vec<f64> = weights.chunks(width).map(|w| w.iter().zip(row).map(|(w, x)| w * x).sum()).collect();
                probabilities(&mut p);
                for ((p, t), own) in p.iter().zip(target).zip(gradient.chunks_mut(width)) {
                    own.iter_mut().zip(row).for_each(|(g, x)| *g += (p - t) * x);
                }
            }
            assert!(gradient.iter().all(|g| g.abs() < 1e-3), "{gradient:?}");
        }
    }
}
