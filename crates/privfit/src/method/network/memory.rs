//! What a network holds while it is trained, and while its file is written: an upper bound made of public sizes.
//!
//! The lists are those of `descend`, of `sum_blocks` and `Threads::sum` of the kernel, and of `Artifact::to_json`; a test compares their lengths with these numbers.

use super::{Inputs, Networks};
use crate::memory::{MemoryConditions, MemoryPart};

/// Bytes of a weight in a model file at the most: a line with its margin, 17 digits, signs and an exponent.
const WRITTEN: u64 = 34;
/// Text grows by doubling, and may be copied when it does.
const GROWING: u64 = 3;
/// Bytes that a thread has for sampled units of a block, which are at most 16384, and for its stack.
const THREAD: u64 = (1 << 20) + 16_384 * 8;

impl Networks {
    /// Lists of doubles, one for each weight, that last from step to step: weights, moments, the sum of the last iterates, and the weights before.
    fn lasting(&self) -> u64 {
        // With recursive momentum an estimate and the weights of the last step, too.
        4 + u64::from(self.settings.adam) + if self.recursive.is_some() { 2 } else { 0 }
    }

    pub(super) fn memory_parts(&self, conditions: &MemoryConditions, rows: u64) -> Vec<MemoryPart> {
        let (weights, threads) = (self.network.dimension() as u64, conditions.threads.max(1) as u64);
        let normal = match &self.inputs {
            Inputs::Plain => 0,
            Inputs::Public(normal) => normal.len(),
            Inputs::Released(moments, _) => moments.unchanged().len(),
        } as u64;
        let lasting = self.lasting() * 8 * weights;
        // Noise, the sum of all threads, and the numbers that are released.
        let released = 3 * 8 * weights;
        // Those of both iterates, and once more side by side.
        let iterates = if self.recursive.is_some() { 4 } else { 1 };
        let prepared = iterates * 4 * (self.network.program.prepared as u64 + normal);
        // For every thread its sum of integers, that of a block, and one example by itself: where it has to be checked on the integers.
        let sums = threads * (8 + 4 + 16) * weights;
        let stored = if self.recursive.is_some() { 2 * weights } else { 0 };
        let scratch = threads * (4 * (self.network.scratch() as u64 + stored) + THREAD);
        // The network of the plan, that of each thread, and two while their sizes are worked out. Sums for normalisation are shorter than sums of steps, or two for each input.
        let lists = (threads + 3) * self.network.program.lists() + (threads + 2) * 16 * 8 * normal;
        // Lists once more, as bytes that grow; a ledger has copies of its own.
        let kept = if conditions.checkpoint { (3 + if conditions.ledger { 2 } else { 0 }) * lasting } else { 0 };
        // The model twice, its text, and the copies of a ledger; what a step holds is gone then.
        let written = 2 * 8 * weights + (GROWING + if conditions.ledger { 3 } else { 0 }) * WRITTEN * weights;
        // Noise of the steps before, and what it is summed to in wide integers; the units of each batch, and those of one once more.
        let (past, batches) = match &self.correlated {
            None => (0, 2 * rows),
            Some(run) => (
                (8 * run.factor().bands() as u64 + 24) * weights,
                8 * rows + 16 * rows / run.participation().separation.max(1) + 2 * rows,
            ),
        };
        let step = released + prepared + sums + kept + past;
        let steps = vec![
            MemoryPart::new("gradients and noise of a step", step),
            MemoryPart::new("weights, moments and averages", lasting + lists),
            MemoryPart::new("examples computed at once", scratch),
            MemoryPart::new("who is sampled", batches),
        ];
        let end = vec![MemoryPart::new("the model file as it is written", written + lists)];
        // One after the other: the larger counts.
        let all = |parts: &[MemoryPart]| parts.iter().map(|part| part.bytes).sum::<u64>();
        if all(&steps) >= all(&end) { steps } else { end }
    }
}
