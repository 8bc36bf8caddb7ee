//! A teacher of our own on one part: linear in what the shared encoder makes of a row. It is not private; it stays inside of the kernel, and its labels
//! leave by votes alone. It takes the same steps on any rows of a part.

use super::encoder::{Encoder, View, spread};
use crate::solve::ridge::{left_out, ridge};
use privfit_kernel::{Learner, NoiseRng, PublicRows, Unit};

/// What a part has learned.
pub(crate) struct Teacher {
    /// Weights, feature after feature; empty for a part without a row.
    weights: Vec<f64>,
    /// Of two classes: the second from this score on.
    threshold: f64,
    /// Its labels of the public points.
    labels: Vec<u32>,
}

/// No label.
const SILENT: u32 = u32::MAX;

/// A teacher for so many classes, with a ridge relative to the mean squared distance of public points from their mean. It answers for the points at once.
pub(crate) fn learner(encoder: &Encoder, points: &PublicRows, classes: usize, strength: f64) -> Learner<Teacher> {
    let encoded = encoder.points(points);
    // What rows have in common says nothing. Without points: rows lie in the unit ball, and are as far apart as that at the most.
    let apart = if points.is_empty() { 1.0 } else { spread(&encoded, encoder.width()).powi(2) };
    let mut parameters = encoder.numbers();
    parameters.extend([classes as f64, strength * apart.max(1e-12)]);
    parameters.extend(encoded);
    Learner { name: "ridge on a shared encoder", parameters, train }
}

fn outputs(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}

fn train(parameters: &[f64], units: &mut dyn Iterator<Item = Unit<'_>>, _: &mut NoiseRng) -> Teacher {
    let (view, rest) = View::new(parameters);
    let (classes, strength, points) = (rest[0] as usize, rest[1], &rest[2..]);
    let outputs = outputs(classes);
    let (mut rows, mut targets, mut width) = (Vec::new(), Vec::new(), 0);
    let mut dense = vec![0f64; view.features];
    for unit in units {
        for row in 0..unit.rows() {
            let label = unit.label(row);
            if !(label >= 0.0 && (label as usize) < classes) {
                continue;
            }
            dense.fill(0.0);
            unit.each(row, |i, x| dense[i] = x);
            let encoded = view.encode(&dense);
            width = encoded.len();
            rows.extend(encoded);
            match outputs {
                1 => targets.push(if label == 1.0 { 1.0 } else { -1.0 }),
                _ => targets.extend((0..classes).map(|c| f64::from(u8::from(label as usize == c)) - 1.0 / classes as f64)),
            }
        }
    }
    let weights = ridge(&rows, width, &targets, outputs, strength);
    // A strong ridge draws scores towards the more frequent class. So the threshold is where as many rows are of the second class as there are, each
    // by the weights that the others have.
    let threshold = if outputs == 1 && !targets.is_empty() { threshold(&rows, width, &targets, &weights, strength) } else { 0.0 };
    let mut teacher = Teacher { weights, threshold, labels: Vec::new() };
    let all = if width == 0 { 1 } else { width };
    let labels = points.chunks(all).map(|z| teacher.label_of(z, outputs));
    teacher.labels = if width == 0 { Vec::new() } else { labels.collect() };
    teacher
}

/// The score that so many rows are above as are of the second class.
fn threshold(rows: &[f64], width: usize, targets: &[f64], weights: &[f64], strength: f64) -> f64 {
    let second = targets.iter().filter(|t| **t > 0.0).count();
    let mut scores = left_out(rows, width, targets, weights, strength);
    scores.sort_by(|a, b| b.total_cmp(a));
    match (second, second == scores.len()) {
        (0, _) => f64::INFINITY,
        (_, true) => f64::NEG_INFINITY,
        _ => 0.5 * (scores[second - 1] + scores[second]),
    }
}

impl Teacher {
    /// The label of an encoded point; none of a part without a row.
    fn label_of(&self, encoded: &[f64], outputs: usize) -> u32 {
        if self.weights.is_empty() {
            return SILENT;
        }
        let mut scores = vec![0f64; outputs];
        for (z, own) in encoded.iter().zip(self.weights.chunks(outputs)) {
            scores.iter_mut().zip(own).for_each(|(s, w)| *s += z * w);
        }
        match scores[..] {
            [score] => u32::from(score > self.threshold),
            _ => (0..scores.len()).fold(0, |best, c| if scores[c] > scores[best] { c } else { best }) as u32,
        }
    }
}

/// Its label of a public point, by the number of the point.
pub(crate) fn label_of_number(teacher: &Teacher, point: &[f32]) -> u32 {
    teacher.labels.get(point[0] as usize).copied().unwrap_or(SILENT)
}

/// Its label of an encoded point that was not known beforehand, after the number of classes.
pub(crate) fn label_of_point(teacher: &Teacher, point: &[f32]) -> u32 {
    let encoded: Vec<f64> = point[1..].iter().map(|x| f64::from(*x)).collect();
    teacher.label_of(&encoded, outputs(point[0] as usize))
}

/// The same for the labels of a command.
pub(crate) fn label_of_command(labels: &Vec<u32>, point: &[f32]) -> u32 {
    labels.get(point[0] as usize).copied().unwrap_or(SILENT)
}
