//! What chance leaves in weights, and what is done about it: all of it is computed from released numbers.
//!
//! The noise of every step is known, and so is how far later steps pull it back, but for the second derivative of the loss. So the variance that noise leaves in a weight can be
//! computed, and what the rows of a sample add by chance can be estimated. Weights that belong together have a truth behind them whose variance is what is left of
//! their mean square; each is multiplied by the part of the truth in it.

use super::run::State;
use super::{Additive, MOMENTUM, basis};
use crate::schema::Task;

/// Part of the variance by chance that counts where weights are made shorter. Less than all of it: columns that say the same share what they say, and each looks like chance by itself.
const REMOVED: f64 = 0.5;
/// Second derivative of the loss along a feature, over that at the average row: rows are clipped, and so are derivatives.
const PULL: f64 = 0.4;
/// The least squared length of features that look like chance, over that of features without any.
const FAINTEST: f64 = 0.25;

impl Additive {
    /// Variance of the average of so many last weights, for each feature: from the noise, and because rows are a sample. A second derivative of the loss of 0
    /// pulls nothing back, and gives the most that the noise can be.
    fn variances(&self, state: &State<'_>, last: usize, curvature: f64) -> Vec<[f64; 2]> {
        let Some(now) = state.eras.last() else { return Vec::new() };
        // Mean square of a derivative: of a class that of its chance, less what the clip takes; of a number about half of the squared clip.
        let residual = match self.task {
            Task::Number => 0.5 * state.clip * state.clip,
            _ => 0.7 * state.curvature,
        };
        let of = |j: usize| {
            let step = |(t, (rate, deviation)): (usize, &(f64, f64))| {
                let era = state.eras.iter().rfind(|era| era.first <= t).unwrap_or(now);
                let (scale, square) = (era.scales.get(j).unwrap_or(&0.0), era.squares.get(j).unwrap_or(&0.0));
                let by = if now.scales[j] > 0.0 { scale / now.scales[j] } else { 0.0 };
                NoisyMove { pull: rate * curvature * square, noise: deviation * by, rate: rate * by }
            };
            let moves: Vec<NoisyMove> = state.noise.iter().enumerate().map(step).collect();
            let sampled = residual * now.squares[j] / self.rows;
            [left_over(&moves, last), carried(&moves, last).powi(2) * sampled]
        };
        (0..now.scales.len()).map(of).collect()
    }

    /// Weights that belong together are multiplied by the part of the truth in them.
    pub(super) fn shrink(&self, state: &mut State<'_>) {
        let last = state.summed as usize;
        let variances = self.variances(state, last, PULL * state.curvature);
        let groups = basis::all_groups(&self.grid, &state.chosen);
        for own in state.weights.chunks_mut(variances.len()) {
            let mut first = 0;
            for count in &groups {
                let group = &mut own[first..first + count];
                let chance: Vec<f64> = variances[first..first + count].iter().map(|v| REMOVED * (v[0] + v[1])).collect();
                first += count;
                let truth = truth(group, &chance);
                group.iter_mut().zip(&chance).for_each(|(w, v)| *w *= part(truth, *v));
            }
        }
        state.variance = self.variances(state, last, 0.0).iter().map(|v| v[0]).collect();
    }

    /// Features that say something become longer, at the cost of those that look like chance: rows have one length for all of them.
    pub(super) fn emphasise(&self, state: &mut State<'_>) {
        let variances = self.variances(state, 1, PULL * state.curvature);
        let Some(era) = state.eras.last() else { return };
        let (mut out, mut first) = (Vec::new(), 0);
        for count in basis::all_groups(&self.grid, &[]) {
            let chance: Vec<f64> = variances[first..first + count].iter().map(|v| v[0] + v[1]).collect();
            let squares = &era.squares[first..first + count];
            let (mut found, mut all) = (0.0, 0.0);
            for own in state.weights.chunks(variances.len()) {
                let truth = truth(&own[first..first + count], &chance);
                found += chance.iter().zip(squares).map(|(v, q)| q * part(truth, *v)).sum::<f64>();
                all += squares.iter().sum::<f64>();
            }
            first += count;
            let by = (found / all.max(1e-300)).max(FAINTEST).sqrt();
            out.resize(first, by);
        }
        state.emphasis = out;
    }
}

/// The part of the truth in a number, whose truth and chance have such variances.
fn part(truth: f64, chance: f64) -> f64 {
    truth / (truth + chance).max(1e-300)
}

/// Variance of the truth behind some numbers, each of which is the truth and chance of a known variance: what is left of squares in the mean, where those with little chance count for more.
fn truth(numbers: &[f64], chance: &[f64]) -> f64 {
    // A feature that was never there has no weight.
    let used = || numbers.iter().zip(chance).filter(|(w, _)| **w != 0.0);
    let mut truth = used().map(|(w, _)| w * w).sum::<f64>() / used().count().max(1) as f64;
    for _ in 0..30 {
        let (mut left, mut all) = (0.0, 0.0);
        for (w, v) in used() {
            let counts = 1.0 / (truth + v).max(1e-150).powi(2);
            left += counts * (w * w - v);
            all += counts;
        }
        truth = (left / all.max(1e-300)).max(0.0);
    }
    truth
}

/// A move of a weight: how far the weight pulls it back, its noise as a standard deviation, and how far a gradient of 1 goes.
struct NoisyMove {
    pull: f64,
    noise: f64,
    rate: f64,
}

/// Variance of the average of the last weights from the noise of moves.
fn left_over(moves: &[NoisyMove], last: usize) -> f64 {
    // Covariance of the weight, its move, and the sum of the last weights.
    let [mut ww, mut wm, mut mm, mut ws, mut ms, mut ss] = [0.0; 6];
    for (t, NoisyMove { pull, noise, .. }) in moves.iter().enumerate() {
        // move = MOMENTUM move - pull weight + noise; weight = weight + move.
        let (new_mm, new_wm) =
            (MOMENTUM * MOMENTUM * mm - 2.0 * MOMENTUM * pull * wm + pull * pull * ww + noise * noise, MOMENTUM * wm - pull * ww);
        let new_ms = MOMENTUM * ms - pull * ws;
        (ww, wm, mm) = (ww + 2.0 * new_wm + new_mm, new_wm + new_mm, new_mm);
        (ws, ms) = (ws + new_ms, new_ms);
        if t + last >= moves.len() {
            (ss, ws, ms) = (ss + 2.0 * ws + ww, ws + ww, ms + wm);
        }
    }
    ss / (last.max(1) as f64).powi(2)
}

/// How far the average of the last weights follows a gradient of 1 that is the same in all steps.
fn carried(moves: &[NoisyMove], last: usize) -> f64 {
    let [mut weight, mut way, mut sum] = [0.0; 3];
    for (t, NoisyMove { pull, rate, .. }) in moves.iter().enumerate() {
        way = MOMENTUM * way - pull * weight + rate;
        weight += way;
        sum += if t + last >= moves.len() { weight } else { 0.0 };
    }
    sum / last.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against descent that is simulated move by move, and numbers by hand.
    #[test]
    fn variances_are_those_of_descent() {
        let moves: Vec<NoisyMove> = (0..40).map(|t| NoisyMove { pull: 0.02, noise: 0.1 + 0.01 * t as f64, rate: 0.5 }).collect();
        let last = 8;
        // The average of the last weights is linear in the noise of each move.
        let average = |noise: &dyn Fn(usize) -> f64| {
            let (mut weight, mut way, mut sum) = (0.0, 0.0, 0.0);
            for (t, m) in moves.iter().enumerate() {
                way = MOMENTUM * way - m.pull * weight + noise(t);
                weight += way;
                sum += if t + last >= moves.len() { weight } else { 0.0 };
            }
            sum / last as f64
        };
        let variance: f64 = (0..moves.len()).map(|i| average(&|t| if t == i { moves[i].noise } else { 0.0 }).powi(2)).sum();
        assert!((left_over(&moves, last) / variance - 1.0).abs() < 1e-9);
        assert!((carried(&moves, last) / average(&|t| moves[t].rate) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_truth_is_what_chance_leaves() {
        // The same chance everywhere: the mean square less the chance.
        assert!((truth(&[3.0, -1.0], &[2.0, 2.0]) - 3.0).abs() < 1e-9);
        assert_eq!(truth(&[1.0, -1.0, 0.5], &[2.0, 2.0, 2.0]), 0.0);
        assert!((truth(&[2.0, 0.0, -2.0], &[0.0; 3]) - 4.0).abs() < 1e-9);
        assert_eq!((truth(&[], &[]), part(0.0, 0.0), part(3.0, 1.0)), (0.0, 0.0, 0.75));
        // A number that is all chance says little beside one that is none.
        assert!((truth(&[2.0, 100.0], &[0.0, 1e4]) - 4.0).abs() < 0.1);
    }
}
