//! What a run remembers of its steps, for a picture of its training.
//!
//! *Claim.* Every number here is a function of released sums, of weights that were made of them, and of public settings. Nothing in this file sees a record, so that a history costs nothing and
//! may stand in the model file. The number of points is public: it depends on the number of steps alone.
//!
//! *What it estimates.* A released sum is s + z with independent noise of variance v in each of d coordinates, so the mean of |s + z|^2 is |s|^2 + d v. The square of the length without
//! noise is therefore estimated without bias by |s + z|^2 - d v; the mean over the steps of a point is taken first, and what is negative counts as 0.

use serde::{Deserialize, Serialize};

/// Most points of a history.
const MOST_POINTS: usize = 50;

/// How training went, from released numbers alone. Lengths of gradients are those of the mean of an expected sample, in units of the clip.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Steps in all.
    pub steps: u64,
    /// Length that noise alone would have.
    pub noise: f64,
    /// One for each part of the steps, in order.
    pub points: Vec<Point>,
}

/// Means over some steps that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The last of the steps, from 1.
    pub step: u64,
    /// Length of the noisy gradient: the root of the mean square.
    pub noisy: f64,
    /// Estimated length of the gradient without noise; 0 where noise hides it.
    pub signal: f64,
    /// The learning rate.
    pub learning_rate: f64,
    /// How far the weights moved in a step: the root of the mean square.
    pub moved: f64,
}

/// Numbers of a point in a list.
const WIDTH: usize = 5;

impl History {
    /// The least length that stands out of the noise with so many weights: two standard deviations of what noise alone adds to the square of a point.
    pub fn least_visible(&self, weights: usize) -> f64 {
        let steps_of_a_point = self.steps as f64 / self.points.len().max(1) as f64;
        self.noise * (2.0 * (2.0 / (weights.max(1) as f64 * steps_of_a_point.max(1.0))).sqrt()).sqrt()
    }

    /// Whether it is one: few points in the order of their steps, and numbers that can be.
    pub(crate) fn is_complete(&self) -> bool {
        let good = |x: f64| x.is_finite() && x >= 0.0;
        let ordered = self.points.windows(2).all(|two| two[0].step < two[1].step);
        let within = self.points.iter().all(|p| p.step >= 1 && p.step <= self.steps);
        let numbers = self.points.iter().all(|p| [p.noisy, p.signal, p.learning_rate, p.moved].into_iter().all(good));
        self.points.len() <= MOST_POINTS && good(self.noise) && ordered && within && numbers
    }

    /// At the end of the weights, for the list of numbers that a run gives.
    pub(crate) fn append(&self, numbers: &mut Vec<f64>) {
        numbers.extend([self.steps as f64, self.noise]);
        numbers.extend(self.points.iter().flat_map(|p| [p.step as f64, p.noisy, p.signal, p.learning_rate, p.moved]));
    }

    /// Takes the history off the end of so many weights; none if there is none.
    pub(crate) fn split(numbers: &mut Vec<f64>, weights: usize) -> Option<History> {
        let own = if numbers.len() > weights { numbers.split_off(weights) } else { Vec::new() };
        let [steps, noise, rest @ ..] = own.as_slice() else { return None };
        let point = |n: &[f64]| Point { step: n[0] as u64, noisy: n[1], signal: n[2], learning_rate: n[3], moved: n[4] };
        let history = History { steps: *steps as u64, noise: *noise, points: rest.chunks_exact(WIDTH).map(point).collect() };
        history.is_complete().then_some(history)
    }
}

/// Keeps a history while a run goes on.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    history: History,
    /// Steps that were recorded.
    done: u64,
    /// Of the steps since the last point: how many, and sums of the squares of noisy lengths and of moves, and of learning rates.
    open: [f64; 4],
    /// The weights after the last step.
    weights: Vec<f64>,
}

impl Recorder {
    /// For so many steps from these weights; `deviation` is that of the noise in each number of a mean gradient.
    pub(crate) fn new(steps: u64, deviation: f64, weights: &[f64]) -> Recorder {
        let noise = finite(deviation * (weights.len() as f64).sqrt());
        let history = History { steps, noise, points: Vec::new() };
        Recorder { history, done: 0, open: [0.0; 4], weights: weights.to_vec() }
    }

    /// After a step: the released sum, what it is divided by, the learning rate, and the weights that were made of it.
    pub(crate) fn step(&mut self, sum: &[f64], divide: f64, learning_rate: f64, weights: &[f64]) {
        let noisy: f64 = sum.iter().map(|s| (s / divide).powi(2)).sum();
        let moved: f64 = weights.iter().zip(&self.weights).map(|(new, old)| (new - old).powi(2)).sum();
        self.weights.copy_from_slice(weights);
        self.open.iter_mut().zip([1.0, noisy, moved, learning_rate]).for_each(|(o, x)| *o += x);
        let points = self.history.steps.min(MOST_POINTS as u64);
        let before = self.done * points / self.history.steps.max(1);
        self.done += 1;
        if self.done * points / self.history.steps.max(1) > before {
            let [count, noisy, moved, rate] = std::mem::take(&mut self.open);
            let square = finite(noisy / count);
            self.history.points.push(Point {
                step: self.done,
                noisy: square.sqrt(),
                signal: (square - self.history.noise.powi(2)).max(0.0).sqrt(),
                learning_rate: finite(rate / count),
                moved: finite(moved / count).sqrt(),
            });
        }
    }

    /// All that the next step needs but the weights, in a list whose length does not change: for a checkpoint.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let mut out = vec![self.done as f64];
        out.extend(self.open);
        out.extend(self.history.points.iter().flat_map(|p| [p.step as f64, p.noisy, p.signal, p.learning_rate, p.moved]));
        out.resize(1 + self.open.len() + MOST_POINTS * WIDTH, 0.0);
        out
    }

    /// Goes on from such a list, at these weights.
    pub(crate) fn go_on(&mut self, numbers: &[f64], weights: &[f64]) {
        let [done, a, b, c, d, rest @ ..] = numbers else { return };
        (self.done, self.open) = (*done as u64, [*a, *b, *c, *d]);
        let points = self.done * self.history.steps.min(MOST_POINTS as u64) / self.history.steps.max(1);
        let point = |n: &[f64]| Point { step: n[0] as u64, noisy: n[1], signal: n[2], learning_rate: n[3], moved: n[4] };
        self.history.points = rest.chunks_exact(WIDTH).take(points as usize).map(point).collect();
        self.weights.copy_from_slice(weights);
    }

    /// The weights that a run gives, with the history at their end.
    pub(crate) fn with(self, mut weights: Vec<f64>) -> Vec<f64> {
        self.history.append(&mut weights);
        weights
    }
}

/// Numbers that overflowed are 0, as in the model.
fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(steps: u64, sum: &dyn Fn(u64) -> Vec<f64>) -> History {
        let mut recorder = Recorder::new(steps, 0.5, &[0.0; 4]);
        for step in 0..steps {
            // The weights move by 3 and 4, and back.
            let weights = if step % 2 == 0 { [3.0, 0.0, 4.0, 0.0] } else { [0.0; 4] };
            recorder.step(&sum(step), 10.0, 0.1, &weights);
        }
        let mut numbers = recorder.with(vec![7.0; 4]);
        let history = History::split(&mut numbers, 4).unwrap();
        assert_eq!(numbers, [7.0; 4]);
        history
    }

    /// A recorder that goes on from the numbers of another gives the same history, wherever it was interrupted.
    #[test]
    fn interruptions_change_nothing() {
        let step = |recorder: &mut Recorder, step: u64| {
            let weights = [step as f64, 1.0, 0.5 * step as f64, 0.0];
            recorder.step(&[step as f64, 2.0, 3.0, 4.0], 7.0, 0.1 * step as f64, &weights);
            weights
        };
        for steps in [1, 7, 50, 120] {
            let mut whole = Recorder::new(steps, 0.5, &[0.0; 4]);
            (0..steps).for_each(|s| _ = step(&mut whole, s));
            for cut in [0, 1, steps / 2, steps - 1] {
                let (mut first, mut weights) = (Recorder::new(steps, 0.5, &[0.0; 4]), [0.0; 4]);
                (0..cut).for_each(|s| weights = step(&mut first, s));
                let mut second = Recorder::new(steps, 0.5, &[0.0; 4]);
                assert_eq!(first.numbers().len(), second.numbers().len());
                second.go_on(&first.numbers(), &weights);
                (cut..steps).for_each(|s| _ = step(&mut second, s));
                assert_eq!(second.history, whole.history, "{cut} of {steps}");
            }
        }
    }

    #[test]
    fn points_are_few_and_cover_all_steps() {
        for steps in [1, 2, 49, 50, 51, 99, 1000, 1234] {
            let history = recorded(steps, &|_| vec![20.0, 0.0, 0.0, 0.0]);
            assert_eq!(history.points.len() as u64, steps.min(50), "{steps}");
            assert_eq!(history.points.last().unwrap().step, steps);
            // Noise alone: 0.5 times the root of 4. Noisy square 4, so that 3 is left without noise.
            assert_eq!(history.noise, 1.0);
            for p in &history.points {
                assert!((p.noisy - 2.0).abs() < 1e-12 && (p.signal - 3f64.sqrt()).abs() < 1e-12, "{p:?}");
                assert!((p.moved - 5.0).abs() < 1e-12 && (p.learning_rate - 0.1).abs() < 1e-12, "{p:?}");
            }
        }
    }

    #[test]
    fn what_noise_hides_is_zero_and_what_overflows_is_a_number() {
        assert!(recorded(60, &|_| vec![1.0; 4]).points.iter().all(|p| p.signal == 0.0 && p.noisy > 0.0));
        assert!(recorded(60, &|_| vec![1e300; 4]).is_complete());
        assert!(recorded(60, &|_| vec![f64::NAN; 4]).is_complete());
    }

    #[test]
    fn weights_alone_have_no_history() {
        let mut numbers = vec![1.0, 2.0];
        assert_eq!(History::split(&mut numbers, 2), None);
        assert_eq!(History::split(&mut numbers, 3), None);
        assert_eq!(numbers, [1.0, 2.0]);
        let mut backwards = recorded(3, &|_| vec![20.0; 4]);
        backwards.points.reverse();
        assert!(!backwards.is_complete());
    }
}
