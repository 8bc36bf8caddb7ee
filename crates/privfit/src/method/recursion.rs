//! The estimate of a gradient that recursive momentum carries on from step to step: released numbers, and how a step makes the next one of them. `recursive_momentum.rs` has the claim.

use super::rounded;
use crate::error::Result;
use privfit_kernel::{Batch, Gaussian, Loss, Rate, Recursion, RecursiveClip, Run};

/// Share of the fresh gradient, bounds, and the noise of the steps.
pub(super) struct Recursive {
    pub(super) fresh: f64,
    pub(super) clip: Clip,
    /// Of the first step: mechanism, sampling, and the public number that sums are divided by.
    pub(super) first: (Gaussian, Option<Rate>, f64),
    /// Of the others: noise over the longest vector.
    pub(super) noise_multiplier: f64,
}

/// Bounds on the vector of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Clip {
    /// A gradient, and its change, which the length of the last step bounds too.
    Split { gradient: f64, change: f64, smoothness: f64 },
    /// Both together.
    Joint(f64),
}

/// What is carried on.
pub(super) struct Estimate {
    value: Vec<f64>,
    /// The iterate before; none at the first step.
    before: Option<Vec<f64>>,
}

impl Recursive {
    pub(super) fn begin(&self, dimension: usize) -> Estimate {
        Estimate { value: vec![0.0; dimension], before: None }
    }

    /// Bounds for a step from one iterate to another: numbers that were released.
    fn clip(&self, before: &[f64], now: &[f64]) -> RecursiveClip {
        match self.clip {
            Clip::Joint(clip) => RecursiveClip::Joint { clip },
            Clip::Split { gradient, change, smoothness } => {
                let way = before.iter().zip(now).map(|(b, n)| (b - n) * (b - n)).sum::<f64>().sqrt();
                // A length that is no number bounds nothing.
                RecursiveClip::Split { gradient, change: (smoothness * way).min(change) }
            }
        }
    }

    /// The longest vector of a record after however long a step.
    pub(super) fn longest(&self) -> f64 {
        match self.clip {
            Clip::Joint(clip) => clip,
            Clip::Split { gradient, change, .. } => RecursiveClip::Split { gradient, change }.longest(self.fresh),
        }
    }

    /// One step: the estimate at the iterate, in units of an average.
    pub(super) fn step<'d>(
        &self,
        run: &mut Run<'d>,
        everyone: &Batch<'d>,
        (sampled, divide): (Option<Rate>, f64),
        loss: &Loss,
        weights: &[f64],
        estimate: &mut Estimate,
    ) -> Result<Vec<f64>> {
        let dimension = weights.len();
        match &estimate.before {
            None => {
                let (mechanism, rate, divide) = &self.first;
                let sum = run.at(mechanism, |run, scale| {
                    let noise = run.draw(&scale, dimension)?;
                    let sum = match rate {
                        None => everyone.gradient_sum(&noise, weights, loss)?,
                        Some(rate) => run.poisson(*rate)?.gradient_sum(&noise, weights, loss)?,
                    };
                    run.release(noise, &sum)
                })?;
                estimate.value.iter_mut().zip(&sum).for_each(|(v, g)| *v = g / divide);
            }
            Some(before) => {
                let clip = self.clip(before, weights);
                let mechanism = Gaussian::for_gradients(clip.longest(self.fresh), self.noise_multiplier)?;
                let recursion = Recursion { before, fresh: self.fresh, clip };
                let sum = run.at(&mechanism, |run, scale| {
                    let noise = run.draw(&scale, dimension)?;
                    let sum = match sampled {
                        None => everyone.recursive_gradient_sum(&noise, weights, loss, &recursion)?,
                        Some(rate) => run.poisson(rate)?.recursive_gradient_sum(&noise, weights, loss, &recursion)?,
                    };
                    run.release(noise, &sum)
                })?;
                let kept = 1.0 - self.fresh;
                estimate.value.iter_mut().zip(&sum).for_each(|(v, h)| *v = kept * *v + h / divide);
            }
        }
        estimate.before = Some(weights.to_vec());
        Ok(estimate.value.clone())
    }

    pub(super) fn describe(&self) -> Vec<(&'static str, String)> {
        let clip = match self.clip {
            Clip::Joint(clip) => format!("{}, of both together", rounded(clip)),
            Clip::Split { change, smoothness, .. } => {
                format!("{}, or {} times the length of the last step", rounded(change), rounded(smoothness))
            }
        };
        let (mechanism, rate, _) = &self.first;
        vec![
            ("fresh part of a gradient", rounded(self.fresh)),
            ("clip of the change of a gradient", clip),
            ("noise over the longest vector of a record", rounded(self.noise_multiplier)),
            ("sampling rate of the first step", rounded(rate.map_or(1.0, |r| r.value()))),
            ("noise of the first step, standard deviation", rounded(mechanism.standard_deviation())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privfit_kernel::planned_step;

    /// Bounds follow the way between two iterates, are never above twice the clip, and give noise the same multiplier whatever their size.
    #[test]
    fn noise_follows_the_way() {
        let first = Gaussian::for_gradients(0.5, 1.0).unwrap();
        let recursive = Recursive {
            fresh: 0.1,
            clip: Clip::Split { gradient: 0.5, change: 0.3, smoothness: 0.25 },
            first: (first, None, 1.0),
            noise_multiplier: 3.7,
        };
        let longest = |to: f64| recursive.clip(&[0.0, 0.0], &[to, 0.0]).longest(0.1);
        assert!((longest(0.4) - (0.05 + 0.9 * 0.1)).abs() < 1e-12);
        assert!((longest(0.0) - 0.05).abs() < 1e-12);
        for far in [1e9, f64::INFINITY, f64::NAN] {
            assert!((longest(far) - (0.05 + 0.9 * 0.3)).abs() < 1e-12, "{far}");
        }
        let event = |to: f64| planned_step(&Gaussian::for_gradients(longest(to), 3.7).unwrap(), 9, None);
        assert!([1e-12, 0.01, 0.4, 1e9].iter().all(|to| event(*to) == event(0.0)));
    }
}
