//! Iterative hard thresholding without privacy: gradient steps, each followed by keeping the largest weights. A baseline, a student on
//! public rows, and a teacher on one part of the data; whoever calls it decides what may be done with the answer.

use privfit_kernel::Loss;
use std::collections::BTreeMap;

/// Compressed rows with labels.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    start: Vec<usize>,
    index: Vec<u32>,
    value: Vec<f64>,
    labels: Vec<f32>,
}

impl Rows {
    /// No rows.
    pub fn new() -> Rows {
        Rows { start: vec![0], ..Rows::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, cells: impl Iterator<Item = (usize, f64)>, label: f32) {
        for (i, x) in cells.filter(|c| c.1 != 0.0) {
            self.index.push(i as u32);
            self.value.push(x);
        }
        self.start.push(self.index.len());
        self.labels.push(label);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    fn scores(&self, w: &[f64]) -> Vec<f64> {
        let cell = |p: usize| self.value[p] * w[self.index[p] as usize];
        self.start.windows(2).map(|r| (r[0]..r[1]).map(cell).sum()).collect()
    }

    fn back(&self, derivatives: &[f64], out: &mut [f64]) {
        for (r, s) in self.start.windows(2).zip(derivatives) {
            for p in r[0]..r[1] {
                out[self.index[p] as usize] += s * self.value[p];
            }
        }
    }

    /// Numbers the columns that occur from 0, and says which they are: a part of wide data has few.
    fn compact(mut self) -> (Rows, Vec<u32>) {
        let mut columns = BTreeMap::new();
        self.index.iter().for_each(|i| {
            columns.insert(*i, 0u32);
        });
        columns.values_mut().enumerate().for_each(|(at, to)| *to = at as u32);
        self.index.iter_mut().for_each(|i| *i = columns[i]);
        (self, columns.into_keys().collect())
    }
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct Thresholding {
    /// Weights kept after each step.
    pub sparsity: usize,
    /// A weight that is kept whatever its size: that of the constant.
    pub always: Option<usize>,
    /// Ridge of the average loss.
    pub ridge: f64,
    /// Steps at the most; fewer if nothing changes any more.
    pub steps: usize,
}

/// Keeps the largest weights in size, ties to the lowest index, and `always`; the others become zero.
pub(crate) fn keep_largest(w: &mut [f64], count: usize, always: Option<usize>) {
    let mut order: Vec<usize> = (0..w.len()).filter(|i| Some(*i) != always && w[*i] != 0.0).collect();
    if order.len() <= count {
        return;
    }
    let by_size = |a: &usize, b: &usize| w[*b].abs().total_cmp(&w[*a].abs()).then(a.cmp(b));
    order.select_nth_unstable_by(count, by_size);
    order[count..].iter().for_each(|i| w[*i] = 0.0);
}

/// The weights, as index-value pairs in ascending order. The length of a step is that of the exact minimum along the gradient on the
/// coordinates in play, for the largest curvature of the loss, halved while the objective rises. Deterministic.
pub fn iterative_hard_thresholding(rows: Rows, loss: &Loss, what: &Thresholding) -> Vec<(u32, f64)> {
    let n = rows.len().max(1) as f64;
    let (rows, columns) = rows.compact();
    let always = what.always.and_then(|a| columns.iter().position(|c| *c as usize == a));
    let d = columns.len();
    let known: Vec<bool> = rows.labels.iter().map(|y| loss.knows(*y)).collect();
    let mut buffer = vec![0f64; rows.len()];
    let mut value = |scores: &[f64], w: &[f64]| {
        loss.values(scores, &rows.labels, &mut buffer);
        let sum: f64 = buffer.iter().zip(&known).filter(|b| *b.1).map(|b| b.0).sum();
        sum / n + 0.5 * what.ridge * w.iter().map(|x| x * x).sum::<f64>()
    };
    let mut w = vec![0f64; d];
    let mut scores = rows.scores(&w);
    let mut now = value(&scores, &w);
    for _ in 0..what.steps {
        let mut derivatives = vec![0f64; rows.len()];
        loss.derivatives(&scores, &rows.labels, &mut derivatives);
        derivatives.iter_mut().zip(&known).for_each(|(s, k)| *s = if *k && s.is_finite() { *s / n } else { 0.0 });
        let mut gradient: Vec<f64> = w.iter().map(|x| what.ridge * x).collect();
        rows.back(&derivatives, &mut gradient);
        // Coordinates in play: those that have a weight, or else those with the steepest derivatives.
        let mut direction = gradient.clone();
        if w.iter().all(|x| *x == 0.0) {
            keep_largest(&mut direction, what.sparsity, always);
        } else {
            direction.iter_mut().zip(&w).for_each(|(g, x)| *g = if *x == 0.0 { 0.0 } else { *g });
        }
        let square: f64 = direction.iter().map(|g| g * g).sum();
        let seen: f64 = rows.scores(&direction).iter().map(|s| s * s).sum::<f64>() / n;
        let mut step = square / (loss.smoothness().min(1e6) * seen + what.ridge * square).max(1e-300);
        if !(square > 0.0 && step.is_finite()) {
            step = 1.0;
        }
        let mut moved = false;
        for _ in 0..30 {
            let mut next: Vec<f64> = w.iter().zip(&gradient).map(|(x, g)| x - step * g).collect();
            keep_largest(&mut next, what.sparsity, always);
            let there = rows.scores(&next);
            let then = value(&there, &next);
            if then < now {
                moved = now - then > 1e-10 * now.abs();
                (w, scores, now) = (next, there, then);
                break;
            }
            step *= 0.5;
        }
        if !moved {
            break;
        }
    }
    columns.into_iter().zip(w).filter(|p| p.1 != 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use privfit_kernel::loss::squared;

    #[test]
    fn keeps_what_is_largest() {
        let kept = |w: &[f64], count, always| {
            let mut w = w.to_vec();
            keep_largest(&mut w, count, always);
            w
        };
        assert_eq!(kept(&[1.0, -3.0, 2.0], 2, None), [0.0, -3.0, 2.0]);
        assert_eq!(kept(&[2.0, -2.0, 2.0], 2, None), [2.0, -2.0, 0.0], "ties go to the lowest index");
        assert_eq!(kept(&[1.0, -3.0], 5, None), [1.0, -3.0], "as many as there are");
        assert_eq!(kept(&[1.0, -3.0], 0, None), [0.0, 0.0]);
        assert_eq!(kept(&[0.1, -3.0, 4.0], 1, Some(0)), [0.1, 0.0, 4.0], "the constant stays");
        let once = kept(&[0.5, -0.25, 4.0, 0.1], 2, None);
        assert_eq!(kept(&once, 2, None), once, "idempotent");
    }

    /// A sparse vector is found again, without noise and without privacy.
    #[test]
    fn recovers_a_sparse_vector() {
        let (n, d) = (400, 300);
        let mut state = 5u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 * 0.5f64.powi(53) * 2.0 - 1.0
        };
        let truth = [(3usize, 0.8), (40, -0.5), (250, 0.6)];
        let mut rows = Rows::new();
        for _ in 0..n {
            let x: Vec<f64> = (0..d).map(|_| uniform()).collect();
            let y: f64 = truth.iter().map(|(i, w)| w * x[*i]).sum();
            rows.push(x.iter().copied().enumerate(), y as f32);
        }
        let found =
            iterative_hard_thresholding(rows, &squared(1e3), &Thresholding { sparsity: 3, always: None, ridge: 0.0, steps: 100 });
        assert_eq!(found.len(), 3);
        for ((i, w), (j, v)) in truth.iter().zip(&found) {
            assert!(*i == *j as usize && (w - v).abs() < 1e-3, "{found:?}");
        }
    }
}
