//! What can be audited: something that makes a release out of rows, with a claim about it.

use crate::data::encode::Row;
use crate::error::Result;
use privfit_kernel::account::{self, Adjacency, Event};
use std::sync::OnceLock;

/// What is promised. Numbers that take an accountant a second are worked out when they are asked for.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The event that the promise rests on.
    pub event: Event,
    /// What "one record differs" means.
    pub adjacency: Adjacency,
    /// Its delta.
    pub delta: f64,
    /// Its mu, if every part of the event is a full Gaussian release.
    pub mu: Option<f64>,
    epsilon: OnceLock<f64>,
    curve: OnceLock<Vec<(f64, f64)>>,
}

impl Claim {
    /// What an event promises.
    pub fn new(event: Event, adjacency: Adjacency, delta: f64) -> Claim {
        let mu = total_mu(&event, adjacency);
        Claim { event, adjacency, delta, mu, epsilon: OnceLock::new(), curve: OnceLock::new() }
    }

    /// A claim of an epsilon and a delta, on nobody's word.
    pub fn asked(epsilon: f64, delta: f64, adjacency: Adjacency) -> Claim {
        let claim = Claim::new(Event::Approx { epsilon, delta }, adjacency, delta);
        let _ = (claim.epsilon.set(epsilon), claim.curve.set(vec![(epsilon, delta)]));
        claim
    }

    /// Its epsilon at its delta; infinite if no accountant has one.
    pub fn epsilon(&self) -> f64 {
        let answer = || account::epsilon(&self.event, self.adjacency, self.delta);
        *self.epsilon.get_or_init(|| answer().map_or(f64::INFINITY, |a| a.bound.upper))
    }

    /// Points (epsilon, delta) of the curve that the event promises: where Gaussians of a mu about 2 are told apart best.
    pub fn curve(&self) -> &[(f64, f64)] {
        self.curve.get_or_init(|| {
            let mut curve = vec![(self.epsilon(), self.delta)];
            for at in [0.25, 1.0, 2.0, 4.0].into_iter().filter(|e| *e < self.epsilon()) {
                if let Ok(answer) = account::delta(&self.event, self.adjacency, at) {
                    curve.push((at, answer.bound.upper));
                }
            }
            curve
        })
    }
}

/// The mu of an event that is made of full Gaussian releases: their squares add up.
pub(crate) fn total_mu(event: &Event, adjacency: Adjacency) -> Option<f64> {
    let replaces = adjacency == Adjacency::ReplaceOne;
    match event {
        Event::Gaussian { noise_multiplier, replace_factor } => {
            Some(if replaces { *replace_factor } else { 1.0 } / noise_multiplier)
        }
        Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, .. } => {
            Some(if replaces { *replace_sensitivity } else { *sensitivity } as f64 / *sigma as f64)
        }
        Event::GaussianDp { mu } => Some(if replaces { 2.0 * mu } else { *mu }),
        Event::Repeat { times, event } | Event::AtMost { times, event } => {
            Some(total_mu(event, adjacency)? * (*times as f64).sqrt())
        }
        Event::Shuffled { epochs, event, .. } => Some(total_mu(event, adjacency)? * (*epochs as f64).sqrt()),
        Event::Compose(events) => {
            let squares: Option<f64> = events.iter().map(|e| total_mu(e, adjacency).map(|m| m * m)).sum();
            squares.map(f64::sqrt)
        }
        _ => None,
    }
}

/// Everything that leaves in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Release {
    /// Numbers that a distinguisher may look at.
    pub numbers: Vec<f64>,
}

/// How far one value moved between two worlds.
#[derive(Clone, Debug)]
pub struct Moved {
    /// What kind of value.
    pub what: &'static str,
    /// Distance over sensitivity.
    pub part: f64,
    /// Whether it is within reach, and everything public about it agrees.
    pub holds: bool,
}

/// Two worlds at one transcript.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Every value that meets noise.
    pub moved: Vec<Moved>,
    /// Everything else is the same, to the bit.
    pub equal: bool,
}

impl Comparison {
    /// Whether anything moved that may not.
    pub fn violated(&self) -> bool {
        !self.equal || self.moved.iter().any(|m| !m.holds)
    }
}

/// Makes one release after the other in one world.
pub type World<'a> = Box<dyn FnMut() -> Result<Release> + 'a>;

/// What can be audited.
pub trait Subject {
    /// Its name.
    fn name(&self) -> String;
    /// What it promises.
    fn claim(&self) -> &Claim;
    /// Opens a world: each call makes a release with fresh noise.
    fn open<'a>(&'a self, rows: &'a [Row]) -> Result<World<'a>>;
    /// Compares two worlds at one transcript.
    fn compare(&self, a: &[Row], b: &[Row], seed: u64) -> Result<Comparison>;
    /// Whether a release is an affine map of one Gaussian vector, so that shifts over deviations are a test.
    fn one_gaussian(&self) -> bool;
    /// What was truly executed in the last resort: the events of one run, to be held against the claim.
    fn executed(&self, rows: &[Row]) -> Result<Event>;
}
