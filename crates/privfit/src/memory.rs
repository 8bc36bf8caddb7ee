//! Memory that a job needs, in parts.

/// How a job is run, as far as memory depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConditions {
    /// Threads.
    pub threads: usize,
    /// Whether checkpoints are kept.
    pub checkpoint: bool,
    /// Whether a ledger keeps a copy of what is released.
    pub ledger: bool,
    /// Bytes of the program itself, accounting included.
    pub program: u64,
}

/// A part of what is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// What it is for.
    pub what: &'static str,
    /// Bytes.
    pub bytes: u64,
}

impl MemoryPart {
    pub(crate) fn new(what: &'static str, bytes: u64) -> MemoryPart {
        MemoryPart { what, bytes }
    }
}

/// What a job needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// What is held at the same time.
    pub parts: Vec<MemoryPart>,
    /// Whether these are all parts: the sum is an upper bound then, and a lower one otherwise.
    pub complete: bool,
    /// Examples that a network computes at once.
    pub at_once: Option<usize>,
}

impl MemoryNeed {
    /// Bytes of all parts.
    pub fn total(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// The parts in words, largest first.
    pub fn text(&self) -> String {
        let mut parts = self.parts.clone();
        parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        let words: Vec<String> = parts.iter().map(|part| format!("{} {}", part.what, size(part.bytes))).collect();
        words.join(", ")
    }
}

/// Bytes for people, rounded up.
pub fn size(bytes: u64) -> String {
    let (divisor, unit) = match bytes {
        0..1_000_000 => (1_000, "KB"),
        1_000_000..10_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    format!("{} {unit}", bytes.div_ceil(divisor))
}
