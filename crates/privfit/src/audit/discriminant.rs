//! A distinguisher: the direction in which two samples differ most for their spread, or the length of a release where that tells more,
//! since noise that depends on the data shows there and nowhere else.

/// What a release is scored by.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    /// Coordinate and weight; the coordinate after the last one is the logarithm of the squared length.
    weights: Vec<(usize, f64)>,
    linear: bool,
}

/// Features that are looked at in the end.
const KEPT: usize = 24;

fn feature(numbers: &[f64], at: usize) -> f64 {
    let value = match numbers.get(at) {
        Some(x) => *x,
        None => (numbers.iter().map(|x| x * x).sum::<f64>() + 1e-300).ln(),
    };
    if value.is_finite() { value } else { 0.0 }
}

fn mean_and_square(sample: &[Vec<f64>], at: usize) -> (f64, f64) {
    let n = sample.len().max(1) as f64;
    let mean = sample.iter().map(|s| feature(s, at)).sum::<f64>() / n;
    let square = sample.iter().map(|s| (feature(s, at) - mean).powi(2)).sum::<f64>() / n;
    (mean, square)
}

impl Direction {
    /// Fitted so that the first sample scores higher.
    pub(crate) fn fit(a: &[Vec<f64>], b: &[Vec<f64>]) -> Direction {
        let features = a.first().map_or(0, Vec::len);
        // Features by how far the samples are apart in them.
        let apart = |j: usize| {
            let ((ma, va), (mb, vb)) = (mean_and_square(a, j), mean_and_square(b, j));
            let spread = 0.5 * (va + vb);
            // Numbers that do not vary differ for certain, if they differ by more than rounding.
            let least = 1e-24 * (ma * ma + mb * mb) + 1e-280;
            (j, ma - mb, (ma - mb).abs() / (spread + least).sqrt())
        };
        let length = apart(features);
        let mut ranked: Vec<(usize, f64, f64)> = (0..features).map(apart).collect();
        ranked.sort_by(|x, y| y.2.total_cmp(&x.2));
        let best = ranked.first().map_or(0.0, |r| r.2);
        if best > 1e3 {
            // A number that does not vary says it all.
            ranked.truncate(1);
        } else if features > KEPT.min(a.len() / 10) {
            ranked.truncate(KEPT.min(a.len() / 10).max(1));
            // Noise in a direction that nothing points to would only add to the score.
            let floor = 2.5 * (2.0 / a.len().max(1) as f64).sqrt();
            let strong = ranked.iter().filter(|r| r.2 > floor).count().max(1);
            ranked.truncate(strong);
        }
        let kept: Vec<usize> = ranked.iter().map(|r| r.0).collect();
        let difference: Vec<f64> = ranked.iter().map(|r| r.1).collect();
        let k = kept.len();
        let mut matrix = vec![0f64; k * k];
        for sample in [a, b] {
            let means: Vec<f64> = kept.iter().map(|j| mean_and_square(sample, *j).0).collect();
            for s in sample {
                let centred: Vec<f64> = kept.iter().zip(&means).map(|(j, m)| feature(s, *j) - m).collect();
                for p in 0..k {
                    for q in 0..k {
                        matrix[p * k + q] += centred[p] * centred[q] / (2 * sample.len()) as f64;
                    }
                }
            }
        }
        let largest = (0..k).map(|p| matrix[p * k + p]).fold(0.0, f64::max);
        (0..k).for_each(|p| matrix[p * k + p] = 1.001 * matrix[p * k + p] + 1e-12 * largest + 1e-290);
        let solved = solve(&mut matrix, difference.clone(), k);
        // The squared distance of the means in units of the spread, less what chance adds to it.
        let square: f64 = solved.iter().zip(&difference).map(|(w, d)| w * d).sum();
        let chance = 2.0 * k as f64 / a.len().max(1) as f64;
        if length.2 > 1.1 * (square - chance).max(0.0).sqrt() {
            return Direction { weights: vec![(features, length.1.signum())], linear: false };
        }
        Direction { weights: kept.into_iter().zip(solved).collect(), linear: true }
    }

    /// Whether a score is a linear function of the numbers.
    pub(crate) fn linear(&self) -> bool {
        self.linear
    }

    /// Score of a release.
    pub(crate) fn score(&self, numbers: &[f64]) -> f64 {
        self.weights.iter().map(|(j, w)| w * feature(numbers, *j)).sum()
    }
}

/// Solves a positive definite system by Gauss.
fn solve(matrix: &mut [f64], mut right: Vec<f64>, k: usize) -> Vec<f64> {
    for p in 0..k {
        for q in p + 1..k {
            let factor = matrix[q * k + p] / matrix[p * k + p];
            for c in p..k {
                matrix[q * k + c] -= factor * matrix[p * k + c];
            }
            right[q] -= factor * right[p];
        }
    }
    for p in (0..k).rev() {
        let rest: f64 = (p + 1..k).map(|c| matrix[p * k + c] * right[c]).sum();
        right[p] = (right[p] - rest) / matrix[p * k + p];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::Random;

    /// Two correlated coordinates of which only the difference tells; and a length that alone tells.
    #[test]
    fn finds_what_tells() {
        let mut random = Random::new(1);
        let mut sample = |shift: f64, width: f64| -> Vec<Vec<f64>> {
            (0..400)
                .map(|_| {
                    let common = 10.0 * random.normal();
                    vec![common + random.normal() + shift, common + random.normal(), width * random.normal()]
                })
                .collect()
        };
        let (a, b) = (sample(3.0, 1.0), sample(0.0, 1.0));
        let direction = Direction::fit(&a, &b);
        let apart = |direction: &Direction, a: &[Vec<f64>], b: &[Vec<f64>]| {
            let wins = a.iter().zip(b).filter(|(x, y)| direction.score(x) > direction.score(y)).count();
            wins as f64 / a.len() as f64
        };
        // The shift of the first coordinate alone is 0.3 deviations; with the second it is about 2.
        assert!(apart(&direction, &sample(3.0, 1.0), &sample(0.0, 1.0)) > 0.85);
        let long = |random: &mut Random, width: f64| -> Vec<Vec<f64>> {
            (0..200).map(|_| (0..500).map(|_| width * random.normal()).collect()).collect()
        };
        let mut random = Random::new(2);
        let (a, b) = (long(&mut random, 1.1), long(&mut random, 1.0));
        let direction = Direction::fit(&a, &b);
        assert!(apart(&direction, &long(&mut random, 1.1), &long(&mut random, 1.0)) > 0.95);
    }
}
