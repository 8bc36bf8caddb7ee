//! A random number of steps, the last iterate of which is the answer: one of a random iterate, for losses that are not convex.
//!
//! *What is released.* R, uniform from 1 to T and drawn before the first step, and what the first R of T planned steps release. R looks at no record, so that it may be public: the model file states it, and so does the time
//! that a run takes.
//!
//! *Privacy.* Adjacency and sensitivity are those of a step. For every R what is released is a part of what T steps release, so that its privacy loss is at most theirs; R has the same distribution for both
//! neighbours, and a mixture of pairs with the same weights is distinguished no better than the worst of them. The event is [`Event::AtMost`] of T steps: the plan pays for all of them, whatever R is.
//! Because R is drawn alike for both neighbours and released, delta(epsilon) is the mean over R of that of R steps; it is charged at T, because a plan is what a run may do at the most, and a ledger gives nothing back.
//! Choosing R by what was seen, or drawing it again until it is small, would be covered by T as well, but the answer would be no random iterate.
//!
//! *Accuracy.* The mean over all iterates of the squared length of the gradient is what theorems about losses without convexity bound; a random iterate has it in expectation, the last one has no such bound. It takes half of the
//! steps on average, for the price of all.
//!
//! *Reference.* Ghadimi and Lan 2013; Zhang, Zheng, Mou, Wang 2017 (RRPSGD); Cutkosky and Orabona 2019.

use crate::error::Result;
use privfit_kernel::Run;
use privfit_kernel::account::Event;

/// The line of a plan whose number of steps is drawn; certificates follow it with a sentence.
pub(super) const DRAWN: &str = "steps that are taken";

/// What at most so many steps cost.
pub(super) fn at_most(step: Event, times: u64) -> Event {
    Event::AtMost { times, event: Box::new(step) }
}

/// Draws the number of steps, before the first one.
pub(super) fn drawn(run: &mut Run<'_>, most: u64) -> Result<u64> {
    // Multiply and take the upper half: off from uniform by less than most / 2^64.
    Ok(1 + ((u128::from(run.public_word()?) * u128::from(most)) >> 64) as u64)
}

/// In words.
pub(super) fn described(most: u64) -> (&'static str, String) {
    (DRAWN, format!("drawn before the first one, each number from 1 to {most} alike; all {most} are paid for"))
}
