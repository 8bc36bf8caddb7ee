//! Noise on a whole vector that a theorem bounds: Gaussian, or Laplace for pure privacy. Shared by methods that release one vector.

use crate::error::Result;
use privfit_kernel::account::Event;
use privfit_kernel::{Gaussian, Laplace, Mechanism, Run, Sensitive};

#[derive(Clone, Copy)]
pub(super) enum VectorNoise {
    Gaussian(Gaussian),
    Laplace(Laplace),
}

impl VectorNoise {
    /// For neighbours at most so far apart in L2. Laplace noise covers sqrt(dimension) times that in L1.
    pub(super) fn new(
        pure: bool,
        (one, two): (f64, f64),
        magnitude: f64,
        multiplier: f64,
        dimension: usize,
    ) -> Result<VectorNoise> {
        Ok(if pure {
            VectorNoise::Laplace(Laplace::for_output(one, two, magnitude, multiplier, dimension)?)
        } else {
            VectorNoise::Gaussian(Gaussian::for_output(one, two, magnitude, multiplier, dimension)?)
        })
    }

    pub(super) fn event(&self, dimension: usize) -> Event {
        match self {
            VectorNoise::Gaussian(g) => g.event(dimension),
            VectorNoise::Laplace(l) => l.event(dimension),
        }
    }

    /// Scale of the noise over the distance of neighbours.
    pub(super) fn multiplier(&self) -> f64 {
        match self {
            VectorNoise::Gaussian(g) => g.noise_multiplier(),
            VectorNoise::Laplace(l) => l.noise_multiplier(),
        }
    }

    /// Standard deviation of a coordinate for neighbours so far apart in L2.
    pub(super) fn deviation(&self, apart: f64, dimension: usize) -> f64 {
        self.multiplier()
            * apart
            * match self {
                VectorNoise::Gaussian(_) => 1.0,
                VectorNoise::Laplace(_) => (2.0 * dimension as f64).sqrt(),
            }
    }

    pub(super) fn distribution(&self) -> &'static str {
        match self {
            VectorNoise::Gaussian(_) => "Gaussian noise, standard deviation over sensitivity",
            VectorNoise::Laplace(_) => "Laplace noise, scale over sensitivity",
        }
    }

    /// Draws the noise, computes the vector, and releases their sum.
    pub(super) fn release<'d>(
        &self,
        run: &mut Run<'d>,
        dimension: usize,
        compute: impl FnOnce(&mut Run<'d>) -> std::result::Result<Sensitive<Vec<f64>>, privfit_kernel::Error>,
    ) -> Result<Vec<f64>> {
        match self {
            VectorNoise::Gaussian(gaussian) => Ok(run.at(gaussian, |run, scale| {
                let noise = run.draw(&scale, dimension)?;
                let value = compute(run)?;
                let bounded = run.bounded(&noise, value)?;
                run.release(noise, &bounded)
            })?),
            VectorNoise::Laplace(laplace) => Ok(run.at(laplace, |run, scale| {
                let noise = run.draw(&scale, dimension)?;
                let value = compute(run)?;
                let bounded = run.bounded(&noise, value)?;
                run.release(noise, &bounded)
            })?),
        }
    }
}
