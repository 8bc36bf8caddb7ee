//! Work that depends on the data and says so.

use super::{Before, Case, clipped, neighbours, null, row};
use privfit::data::generate::Random;
use privfit::kernel::account::Adjacency;

/// Ridge of the sum, over the number of rows.
const RIDGE: f64 = 0.5;

/// Bug 11: descent stops when the gradient is short, the number of steps is in the model's attributes, and the point that was reached gets
/// the noise of the exact minimiser. Shipped as `n_iter_` and a default tolerance of 1e-4 in many wrappers. Found by comparing bytes that
/// meet no noise; two worlds miss it unless the pair crosses the threshold.
pub(super) const STOPPING: Case = Case {
    number: 11,
    name: "stops where the data say",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| {
        let n = 20.0;
        let mut theta = vec![0.0; 2];
        let mut steps = 0;
        // The worst case over all data: the gradient shrinks by 1 - RIDGE / (1/4 + RIDGE) a step.
        let most = if fixed { 200 } else { 10_000 };
        loop {
            let mut gradient: Vec<f64> = theta.iter().map(|t| RIDGE * t).collect();
            for row in rows {
                let x = clipped(row);
                let y = f64::from(row.label);
                let score: f64 = x.iter().zip(&theta).map(|(x, t)| x * t).sum();
                let slope = -y / (1.0 + (y * score).exp());
                gradient.iter_mut().zip(&x).for_each(|(g, x)| *g += slope * x / n);
            }
            if steps == most || !fixed && super::norm(&gradient) < 1e-2 {
                break;
            }
            theta.iter_mut().zip(&gradient).for_each(|(t, g)| *t -= g);
            steps += 1;
        }
        let sensitivity = 1.0 / (n * RIDGE);
        if fixed {
            return Before::covered(theta, sensitivity * (1.0 + 1e-9));
        }
        Before { exact: vec![f64::from(steps)], ..Before::covered(theta, sensitivity) }
    },
    pair: |case| {
        let mut random = Random::new(11);
        let others = (1..case.rows).map(|_| row(2, 1.0, &mut random)).collect();
        neighbours(case, "telling", others, row(2, 1.0, &mut random), null(2))
    },
};
