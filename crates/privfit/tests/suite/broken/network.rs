//! Gradients of a small network that nobody clips.

use super::{Before, Case, axis, neighbours, norm, null, sum};
use privfit::data::encode::Row;
use privfit::kernel::account::Adjacency;

const INPUTS: usize = 4;
const HIDDEN: usize = 3;

/// Gradient of the logistic loss of a network with 4 inputs, 3 hidden tanh and one score, at fixed weights; a null record has none.
pub(crate) fn gradient(row: &Row) -> Vec<f64> {
    let first = |i: usize, h: usize| 0.004 * ((i * 5 + h * 3) % 7) as f64 - 0.01;
    let second = |h: usize| 0.5 - 0.3 * h as f64;
    let hidden: Vec<f64> = (0..HIDDEN).map(|h| (0..INPUTS).map(|i| row.dense[i] * first(i, h)).sum::<f64>().tanh()).collect();
    let score: f64 = (0..HIDDEN).map(|h| hidden[h] * second(h)).sum();
    let label = f64::from(row.label);
    let derivative = -label / (1.0 + (label * score).exp());
    let back: Vec<f64> = (0..HIDDEN).map(|h| derivative * second(h) * (1.0 - hidden[h] * hidden[h])).collect();
    let mut out: Vec<f64> = (0..INPUTS).flat_map(|i| back.iter().map(move |b| row.dense[i] * b)).collect();
    out.extend(&back);
    out.extend(hidden.iter().map(|h| derivative * h));
    out.push(derivative);
    out
}

/// Bug 20: the noise is for gradients of length 1, and those of a network are as long as they are. Shipped as "the clip is optional". Found by an outlier before noise, by two
/// worlds, and by canaries.
pub(super) const NO_CLIP: Case = Case {
    number: 20,
    name: "gradients of a network are not clipped",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: INPUTS,
    trials: 1,
    before: |rows, fixed| {
        let one = |row: &Row| {
            let g = gradient(row);
            let factor = if fixed { 1.0 / norm(&g).max(1.0) } else { 1.0 };
            g.iter().map(|x| x * factor).collect()
        };
        Before::covered(sum(rows.iter().map(one), INPUTS * HIDDEN + 2 * HIDDEN + 1), 1.0)
    },
    pair: |case| neighbours(case, "telling", vec![null(INPUTS); case.rows - 1], axis(INPUTS, 0, 30.0, 1.0), null(INPUTS)),
};
