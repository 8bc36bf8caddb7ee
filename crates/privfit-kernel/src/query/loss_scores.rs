//! Scores for a choice among iterates: minus the sum of the losses of all units there, each clipped.
//!
//! *Claim.* A unit adds to the score of an iterate minus its loss there (of all its rows together), clipped to lie between 0 and C; iterates are released numbers. Every score moves by at most C
//! if the unit becomes null, and by at most C if it becomes another one; the mechanism charges twice that. Clipped losses are put on the grid of `Exponential::new` and checked there, as contributions are.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::norm::LInf;
use crate::value::{Bounded, Noise};

impl Batch<'_> {
    /// Scores of weights of a linear model, output after output; the highest is the one with the smallest loss. The mechanism must come from `Exponential::new`, whose clip is that of a unit's loss.
    pub fn loss_scores<'id>(
        &self,
        arrival_times: &Noise<'id, LInf>,
        iterates: &[Vec<f64>],
        loss: &Loss,
    ) -> Result<Bounded<'id, LInf>> {
        loss.validate()?;
        let (d, k) = (self.data.dimension, loss.outputs);
        if iterates.iter().any(|w| w.len() != d * k) {
            return Err(Error::Mismatch { what: "the number of weights is not features x outputs" });
        }
        let longest = arrival_times.grid.clip;
        self.clipped_sum(arrival_times, iterates.len(), &|unit_index, sink| {
            let unit = self.data.unit(unit_index);
            let (mut scores, mut value) = (vec![0f64; k], [0f64]);
            for (j, w) in iterates.iter().enumerate() {
                let mut sum = 0.0;
                for row in (0..unit.rows()).filter(|row| loss.knows(unit.label(*row))) {
                    for o in 0..k {
                        scores[o] = unit.dot(row, &w[o * d..(o + 1) * d]);
                    }
                    loss.values(&scores, &[unit.label(row)], &mut value);
                    sum += value[0];
                }
                // A loss that is no number counts as the longest one.
                sink.add(j, -(if sum.is_nan() { longest } else { sum.clamp(0.0, longest) }));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::account::Event;
    use crate::engine::Threads;
    use crate::loss::logistic;
    use crate::{Choose, Dataset, DatasetBuilder, Entropy, Exponential, RowShape, Run};

    fn data(changed: Option<(f64, f32)>) -> Dataset {
        let shape = RowShape { dimension: 2, row_norm: 1.0, sparse: false, rows_per_unit: None };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        for i in 0..40 {
            let (x, label) = changed
                .filter(|_| i == 7)
                .unwrap_or(((i as f64 * 0.7).sin() * 0.7, f32::from(u8::from((i as f64 * 0.7).sin() > 0.0))));
            builder.row(&[x, 0.5], label);
        }
        builder.build()
    }

    fn totals(data: &Dataset, iterates: &[Vec<f64>], clip: f64) -> (Vec<i64>, usize) {
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(2));
        let mechanism = Exponential::new(clip, 0.01).unwrap();
        let mut run = Run::begin(data, &engine, &entropy, &Event::NotPrivate { why: "test".into() }).unwrap();
        let everyone = run.everyone().unwrap();
        run.at(&mechanism, |run, scale| {
            let arrival_times = run.draw(&scale, iterates.len())?;
            let scores = everyone.loss_scores(&arrival_times, iterates, &logistic(1, 2, 1.0, [1.0, 1.0]))?;
            let values = scores.values.clone();
            let chosen = run.execute(Choose { arrival_times, scores: &scores, mechanism: &mechanism, count: 1 })?;
            Ok((values, chosen.indices()[0]))
        })
        .unwrap()
    }

    /// The best of three iterates wins, and one record, whatever it holds, moves no score by more than the bound on one.
    #[test]
    fn scores_are_losses_and_neighbours_are_close() {
        let iterates = [vec![0.0, 0.0], vec![-9.0, 0.0], vec![9.0, 0.0], vec![1e300, -1e300]];
        let (base, best) = totals(&data(None), &iterates, 2.0);
        assert_eq!(best, 2);
        // At the origin every record loses ln 2.
        let step = -base[0] as f64 / (40.0 * std::f64::consts::LN_2);
        assert!((totals(&data(None), &iterates[..1], 2.0).0[0] - base[0]).abs() < 1);
        let bound = 2.0 * step * (1.0 + 1e-6) + 1.0;
        let mut most: f64 = 0.0;
        for x in [0.0, 0.7, -0.7, 1e30, f64::NAN] {
            for label in [0.0, 1.0, 5.0, f32::NAN] {
                let (other, _) = totals(&data(Some((x, label))), &iterates, 2.0);
                for (a, b) in base.iter().zip(&other) {
                    assert!((a - b).abs() as f64 <= bound, "{x} {label}: {a} {b}");
                    most = most.max((a - b).abs() as f64);
                }
            }
        }
        assert!(most > 0.9 * bound, "nothing came near the bound: {most} of {bound}");
    }
}
