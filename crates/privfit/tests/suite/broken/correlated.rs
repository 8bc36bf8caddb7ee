//! Noise that is correlated over steps, with three bugs. Bug 18: a record takes part once more than the sensitivity says. Bug 19: batches are shuffled anew for every epoch, so that a record is last in one and
//! first in the next, next to each other. Bug 20: C^-1 z is not rounded to the grid of the sums, and says which of two neighbours is true.
//!
//! Whoever audits knows both neighbours, so that a release is looked at through two numbers: the noise that the second world would have needed, along the direction in which the worlds differ, and whether the noise
//! that the first would have needed lies on the grid.

use super::{MU, normal};
use privfit::audit::subject::{Claim, Comparison, Moved, Release, Subject, World};
use privfit::data::encode::Row;
use privfit::error::Result;
use privfit::kernel::account::{Adjacency, Event, FACTOR_BITS, Factor, Participation};
use privfit::kernel::{Entropy, NoiseRng};

/// A bug, or none in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bug {
    OnceMore,
    Reshuffled,
    OffTheGrid,
}

/// A record that adds one clip to each step that it is in, and its claim.
pub(crate) struct Correlated {
    bug: Bug,
    fixed: bool,
    /// The part of the last noise that is taken back, in steps of 2^-40.
    taken_back: i128,
    takes_part: Vec<bool>,
    sensitivity: f64,
    claim: Claim,
}

/// The clip in grid steps: odd, so that half of it is off the grid.
const CLIP: i128 = (1 << 20) + 1;
/// Bits of fractions of grid steps.
const BITS: u32 = FACTOR_BITS;

impl Correlated {
    pub(crate) fn new(bug: Bug, fixed: bool) -> Correlated {
        // Steps, batches, the part that is taken back, and where the record is.
        let (steps, batches, decay, honest, broken): (u64, u64, f64, &[usize], &[usize]) = match bug {
            Bug::OnceMore => (8, 8, 0.9, &[0], &[0, 1]),
            Bug::Reshuffled => (128, 64, 0.9, &[0, 64], &[63, 64]),
            Bug::OffTheGrid => (2, 2, 0.5, &[0], &[0]),
        };
        let factor = Factor::geometric(decay).unwrap();
        let sensitivity = Participation::epochs(steps, batches).sensitivity(&factor).unwrap() * CLIP as f64;
        let mut takes_part = vec![false; steps as usize];
        (if fixed { honest } else { broken }).iter().for_each(|at| takes_part[*at] = true);
        let claim = Claim::new(Event::gaussian(1.0 / MU), Adjacency::ZeroOut, 1e-5);
        Correlated { bug, fixed, taken_back: i128::from(factor.taken_back()[0]), takes_part, sensitivity, claim }
    }

    /// What a step takes back of the noise before, in fractions of a grid step.
    fn back(&self, noise: i128) -> i128 {
        let exact = self.taken_back * noise;
        match self.bug == Bug::OffTheGrid && !self.fixed {
            true => exact,
            false => ((exact + (1 << (BITS - 1))) >> BITS) << BITS,
        }
    }

    /// A release in fractions of a grid step, with this noise.
    fn released(&self, pull: i128, noise: &[i128]) -> Vec<i128> {
        let before = |t: usize| if t == 0 { 0 } else { self.back(noise[t - 1]) };
        let sum = |t: usize| if self.takes_part[t] { pull * CLIP } else { 0 };
        (0..noise.len()).map(|t| ((sum(t) + noise[t]) << BITS) - before(t)).collect()
    }

    /// The noise that a world with this pull needs for a release, in grid steps; none where it is off the grid.
    fn needed(&self, pull: i128, released: &[i128]) -> Option<Vec<i128>> {
        let mut noise: Vec<i128> = Vec::new();
        for (t, y) in released.iter().enumerate() {
            let sum = if self.takes_part[t] { pull * CLIP } else { 0 };
            let z = y + noise.last().map_or(0, |z| self.back(*z)) - (sum << BITS);
            if z & ((1 << BITS) - 1) != 0 {
                return None;
            }
            noise.push(z >> BITS);
        }
        Some(noise)
    }

    /// How far the noise of both worlds is apart.
    fn apart(&self) -> Option<Vec<f64>> {
        let noise = vec![12_345; self.takes_part.len()];
        let released = self.released(1, &noise);
        let other = self.needed(0, &released)?;
        Some(other.iter().zip(&noise).map(|(a, b)| (a - b) as f64).collect())
    }

    fn noise(&self, words: &mut NoiseRng) -> Vec<i128> {
        let deviation = self.sensitivity / MU;
        (0..self.takes_part.len()).map(|_| (deviation * normal(words)).round() as i128).collect()
    }
}

fn length(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

impl Subject for Correlated {
    fn name(&self) -> String {
        format!("correlated noise, {:?} ({})", self.bug, if self.fixed { "repaired" } else { "broken" })
    }

    fn claim(&self) -> &Claim {
        &self.claim
    }

    /// One row with its pull: 1, or 0 for the null record.
    fn open<'a>(&'a self, rows: &'a [Row]) -> Result<World<'a>> {
        let mut words = Entropy::system()?.for_units()?;
        let pull = rows[0].dense[0] as i128;
        let direction = self.apart().unwrap_or(vec![1.0; self.takes_part.len()]);
        Ok(Box::new(move || {
            let released = self.released(pull, &self.noise(&mut words));
            let along = self.needed(0, &released).map_or(0.0, |z| {
                z.iter().zip(&direction).map(|(z, d)| *z as f64 * d).sum::<f64>() / length(&direction) / self.sensitivity
            });
            let on_the_grid = f64::from(u8::from(self.needed(1, &released).is_some()));
            Ok(Release { numbers: vec![along, on_the_grid] })
        }))
    }

    fn compare(&self, _a: &[Row], _b: &[Row], _seed: u64) -> Result<Comparison> {
        let part = self.apart().map_or(f64::INFINITY, |v| length(&v) / self.sensitivity);
        // Rounding moves C times all sums by some grid steps, which are a millionth of a clip.
        Ok(Comparison { moved: vec![Moved { what: "noise of all steps", part, holds: part <= 1.0 + 1e-4 }], equal: true })
    }

    fn one_gaussian(&self) -> bool {
        self.bug != Bug::OffTheGrid
    }

    fn executed(&self, _rows: &[Row]) -> Result<Event> {
        Ok(Event::gaussian(1.0 / MU))
    }
}
