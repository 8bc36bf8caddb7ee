//! Bug 9: batches are shuffled and accounted as if they were Poisson samples. Shipped by nearly every DP-SGD code. Chua et al. 2024 give
//! the pair: every other record pulls by -C, the record in question by +C or not at all. A batch sum above C then says that it is
//! there: with shuffled batches there is exactly one batch without the pull of -C, and one record in it.
//!
//! What the audit needs of a release is its largest batch sum. The largest of the T - 1 batches that do not hold the record is drawn
//! from its distribution directly: a uniform number to the power 1/(T - 1), and its quantile.

use super::normal;
use privfit::audit::bounds::normal_quantile;
use privfit::audit::subject::{Claim, Comparison, Release, Subject, World};
use privfit::data::encode::Row;
use privfit::error::Result;
use privfit::kernel::Entropy;
use privfit::kernel::account::{Adjacency, Event};

/// One epoch of batches of one record, noise of half of the clip.
pub(crate) struct Shuffled {
    steps: u64,
    fixed: bool,
    claim: Claim,
}

/// Noise over clip.
const NOISE: f64 = 0.5;

impl Shuffled {
    /// With the claim for Poisson samples, or the true one.
    pub(crate) fn new(steps: u64, fixed: bool) -> Shuffled {
        let step = Event::gaussian(NOISE);
        let event = match fixed {
            true => Event::Shuffled { batches: steps, epochs: 1, event: Box::new(step) },
            false => step.sampled(1.0 / steps as f64).repeated(steps),
        };
        Shuffled { steps, fixed, claim: Claim::new(event, Adjacency::ZeroOut, 1e-6) }
    }
}

impl Subject for Shuffled {
    fn name(&self) -> String {
        format!("shuffled batches ({})", if self.fixed { "repaired" } else { "accounted as Poisson samples" })
    }

    fn claim(&self) -> &Claim {
        &self.claim
    }

    /// One row with its pull: 1, or 0 for the null record.
    fn open<'a>(&'a self, rows: &'a [Row]) -> Result<World<'a>> {
        let mut words = Entropy::system()?.for_units()?;
        let pull = rows[0].dense[0];
        Ok(Box::new(move || {
            let own = pull + NOISE * normal(&mut words);
            // The upper tail keeps its precision: 1 - u^(1/k) by expm1.
            let u: f64 = 1.0 - words.uniform();
            let tail = -(u.ln() / (self.steps - 1) as f64).exp_m1();
            let others = -1.0 - NOISE * normal_quantile(tail);
            Ok(Release { numbers: vec![own.max(others)] })
        }))
    }

    /// Nothing moves too far: the bug is in the accounting.
    fn compare(&self, _a: &[Row], _b: &[Row], _seed: u64) -> Result<Comparison> {
        Ok(Comparison { moved: Vec::new(), equal: true })
    }

    fn one_gaussian(&self) -> bool {
        false
    }

    fn executed(&self, _rows: &[Row]) -> Result<Event> {
        Ok(Event::Shuffled { batches: self.steps, epochs: 1, event: Box::new(Event::gaussian(NOISE)) })
    }
}
