//! Where noisy steps stand: what the next step needs, computed from released sums alone, as it is and as a checkpoint has it.
//!
//! *Claim.* Weights, moves, averages and the offset are functions of what was released; a checkpoint holds them, and what the kernel executed. With correlated noise the latter has keys of noise, which makes the file as
//! confidential as the records (`checkpoint/mod.rs`). What is in it is the same numbers in another process, to the bit, and the run goes on after it: no release is made twice.

use super::offset::{Offset, Start};
use crate::checkpoint::State;
use crate::error::{Error, Result};
use privfit_kernel::Run;

/// What a plan says about its descents: a head after the other, each with so many steps and weights.
pub(super) struct Descents<'a> {
    pub(super) heads: usize,
    pub(super) steps: u64,
    pub(super) dimension: usize,
    pub(super) offset: Option<&'a Offset>,
    /// All steps of a head are one release.
    pub(super) correlated: bool,
}

/// Descents of several heads, one after the other.
pub(super) struct Walk {
    /// Where scores of a number begin, if that was released.
    pub(super) start: Option<Start>,
    /// Answers of the heads that are done.
    answers: Vec<Vec<f64>>,
    /// Steps of this head that are done, its weights, their last move, and the sum and number of those that are averaged.
    pub(super) step: u64,
    pub(super) weights: Vec<f64>,
    pub(super) move_by: Vec<f64>,
    pub(super) average: Vec<f64>,
    pub(super) averaged: f64,
}

impl Walk {
    pub(super) fn begin(dimension: usize, start: Option<Start>) -> Walk {
        let nothing = || vec![0.0; dimension];
        let answers = Vec::new();
        Walk { start, answers, step: 0, weights: nothing(), move_by: nothing(), average: nothing(), averaged: 0.0 }
    }

    /// Number of the head that is trained, from 0.
    pub(super) fn head(&self) -> usize {
        self.answers.len()
    }

    /// A head is done: its answer is the average, where there is one, and the next head begins at nothing.
    pub(super) fn end(&mut self) {
        let next = Walk::begin(self.weights.len(), None);
        let Walk { start, answers, weights, average, averaged, .. } = std::mem::replace(self, next);
        (self.start, self.answers) = (start, answers);
        self.answers.push(if averaged > 0.0 { average.iter().map(|a| a / averaged).collect() } else { weights });
    }

    /// The weights of all heads.
    pub(super) fn answer(self) -> Vec<f64> {
        let mut weights = self.answers.concat();
        self.start.iter().for_each(|s| s.fold(&mut weights));
        weights
    }

    /// As lists, for a checkpoint.
    pub(super) fn numbers(&self) -> Vec<Vec<f64>> {
        let own = [&self.weights, &self.move_by, &self.average].map(Vec::clone);
        let own = own.into_iter().chain([vec![self.averaged]]).chain(self.start.iter().map(|s| s.numbers().to_vec()));
        own.chain(self.answers.iter().cloned()).collect()
    }

    /// Goes on after what another process kept. Its last step is one of the head that is taken up, be it the last of it.
    pub(super) fn go_on(plan: &Descents<'_>, run: &mut Run<'_>, State { steps, executed, numbers }: State) -> Result<Walk> {
        let head = steps.saturating_sub(1) / plan.steps.max(1);
        let step = steps - head * plan.steps;
        let mut numbers = numbers.into_iter();
        let mut next = || numbers.next().ok_or_else(not_ours);
        let mut at = Walk::begin(plan.dimension, None);
        (at.step, at.weights, at.move_by, at.average) = (step, next()?, next()?, next()?);
        let [averaged] = next()?[..] else { return Err(not_ours()) };
        at.averaged = averaged;
        at.start = match plan.offset {
            None => None,
            Some(offset) => {
                let [offset_at, clamp] = next()?[..] else { return Err(not_ours()) };
                Some(offset.kept([offset_at, clamp]))
            }
        };
        at.answers = numbers.collect();
        let lists = [&at.weights, &at.move_by, &at.average].into_iter().chain(&at.answers);
        let whole = lists.into_iter().all(|list| list.len() == plan.dimension);
        // With correlated noise the steps of a head are one release.
        let (releases, correlated) = if plan.correlated { (head + 1, Some(step)) } else { (steps, None) };
        let before = plan.offset.map_or(0, |offset| offset.events().len() as u64);
        let fits = executed.count() == before + releases && executed.correlated_steps() == correlated;
        if !whole || !fits || at.answers.len() as u64 != head || head >= plan.heads as u64 {
            return Err(not_ours());
        }
        run.resume(&executed)?;
        Ok(at)
    }
}

/// A whole checkpoint of this very job that does not hold what its runs write.
fn not_ours() -> Error {
    Error::damaged("the checkpoint does not hold a state of this descent: restore it; without it the run can't go on")
}
