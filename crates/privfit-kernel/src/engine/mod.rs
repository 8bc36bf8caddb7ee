//! The seam between the kernel and what runs it: threads here; cluster ranks and data owners elsewhere, without touching a method.
//!
//! Every process of a job runs the same plan. Each holds some units, numbered among those of all processes, and a sum in its memory is only
//! its *share*: the wrapping total over its own units. [`Engine::open`] is the only way out: it makes a total public, to all processes at
//! once, with the noise already in it. What needs the exact total inside (minimisers, selections) uses [`Engine::collect`], which engines of
//! one owner offer. A plan says what it [`Needs`], and an engine that does not offer that is refused before data are opened.
//!
//! An engine sees sums of its own process and never a unit: passes over records run on the [`Threads`] that it names.
//!
//! *Randomness.* What concerns a unit (sampling, parts, augmentation) is keyed by its index among all units, under a key of its owner, so that
//! the division among processes changes no bit and nobody outside can tell who was sampled. Noise is drawn in parts ([`Place::noise`]): one
//! part by the first process where one owner runs all of them; by every owner a part of its own otherwise, because an owner knows its own part
//! and can subtract it.

mod seam;
mod threads;

pub(crate) use seam::Seam;
pub use threads::Threads;
pub(crate) use threads::{Pass, SLOW_TASK, TASK};

use crate::error::Result;
use std::ops::Range;
use zeroize::Zeroize;

/// What a plan asks of an engine, and what an engine offers. Whoever offers more offers less too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// Sums with Gaussian noise, and nothing else: data owners who do not trust each other can open those.
    Sums,
    /// Exact totals inside, or noise that is not Gaussian: processes of one owner.
    Totals,
    /// All records in one process.
    Records,
}

/// Which process of how many this is, and its part of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// This process, counted from 0. The first one leads.
    pub process: usize,
    /// How many there are.
    pub processes: usize,
    /// What the engine can do.
    pub offers: Needs,
    /// The parts of the noise that this process draws.
    pub noise: Range<u32>,
    /// The variance of a part is at least that of the noise over this: the number of parts that nobody who looks on can subtract.
    pub divisor: u32,
}

impl Place {
    /// One process that holds all records.
    pub fn alone() -> Place {
        Place { process: 0, processes: 1, offers: Needs::Records, noise: 0..1, divisor: 1 }
    }
}

/// Which opening this is: a run, under the number that its first process gave it, and a count of its steps. An engine opens each once, so that
/// a stage that is tried again cannot open a second noisy copy of one total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The run; the same in all processes.
    pub run: u64,
    /// Steps of the run so far.
    pub number: u64,
}

/// The sum over this process's own units. An engine may send it on within its owner, or masked; nothing else ever holds one.
pub struct Share<'a>(&'a [i64]);

impl Share<'_> {
    /// The sum.
    pub fn values(&self) -> &[i64] {
        self.0
    }
}

/// Something that stays inside of the kernel once it is in here; wiped when it is dropped.
pub struct Confidential<T: Zeroize>(T);

impl<T: Zeroize> Confidential<T> {
    /// Hands it to the kernel.
    pub fn new(value: T) -> Confidential<T> {
        Confidential(value)
    }
}

impl<T: Zeroize> Drop for Confidential<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A key of this process, for an engine to send on within its owner.
pub struct Key(Confidential<[u8; 32]>);

impl Key {
    /// The key.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0.0
    }

    /// It counts as it is.
    pub fn into_secret(self) -> Confidential<[u8; 32]> {
        self.0
    }
}

/// Holds units and opens sums.
pub trait Engine: Sync {
    /// Threads for the passes of this process.
    fn threads(&self) -> &Threads;

    /// Which process this is.
    fn place(&self) -> Place;

    /// Adds the shares and the noise of all processes, wrapping, and gives the total to all of them. No process ever sees it without noise.
    fn open(&self, step: Step, share: Share<'_>, noise: Vec<i64>) -> Result<Vec<i64>>;

    /// Adds the shares of all processes, wrapping, for the insides of each of them. Refused where processes belong to several owners.
    fn collect(&self, step: Step, share: Share<'_>) -> Result<Confidential<Vec<i64>>>;

    /// The key that counts: that of the first process where one owner runs all of them, its own otherwise. Never public.
    fn secret(&self, own: Key) -> Result<Confidential<[u8; 32]>>;

    /// This process has failed: the others are told, and whatever they ask next fails too, so that none waits for ever.
    fn abandon(&self);

    /// Public bytes of the first process (which plan, which code, choices that are public), to all of them.
    fn agree(&self, public: &[u8]) -> Result<Vec<u8>>;
}
