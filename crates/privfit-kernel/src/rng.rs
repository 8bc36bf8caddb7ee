//! Randomness: ChaCha20 keyed by the operating system, one key for each draw, never a stream that outlives it.
//!
//! A fresh key for each draw makes a forked process or a resumed machine snapshot harmless between draws. A seed exists for
//! simulation only, and whatever it touched is marked as not private.

use crate::error::{Error, Result};
use crate::limits::ALIGNMENT;
use crate::memory::grow;
use chacha20::ChaCha20Legacy;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroize;

/// What a stream of random words is for. Streams never share a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Noise that protects a release.
    Noise,
    /// Which records take part.
    Sampling,
    /// Starting points, and other choices that may become public.
    Initialisation,
    /// Which part a unit index belongs to.
    Parts,
    /// Choices inside of one unit (augmentation, dropout).
    Unit,
}

/// A source of keys. Holding one proves that the operating system gave randomness, so data may be opened.
pub struct Entropy {
    source: Source,
}

enum Source {
    System { fill: fn(&mut [u8]) -> bool },
    Simulated { seed: u64, draws: AtomicU64 },
}

impl Entropy {
    /// Keys from the operating system; fails here, before any data are opened, if there are none.
    pub fn system() -> Result<Entropy> {
        Entropy::from_source(|bytes| getrandom::fill(bytes).is_ok())
    }

    /// Keys from any function that fills a buffer with random bytes and says whether it could: hardware modules, fault tests.
    pub(crate) fn from_source(fill: fn(&mut [u8]) -> bool) -> Result<Entropy> {
        let entropy = Entropy { source: Source::System { fill } };
        entropy.key(Stream::Initialisation).map(|mut key| key.zeroize())?;
        Ok(entropy)
    }

    /// Repeatable keys. Everything drawn from them is marked as not private.
    pub fn simulated(seed: u64) -> Entropy {
        Entropy { source: Source::Simulated { seed, draws: AtomicU64::new(0) } }
    }

    /// Whether a seed decides the noise.
    pub fn is_simulated(&self) -> bool {
        matches!(self.source, Source::Simulated { .. })
    }

    /// The seed of a simulation, and how many keys were drawn from it.
    pub(crate) fn position(&self) -> Option<(u64, u64)> {
        match &self.source {
            Source::System { .. } => None,
            Source::Simulated { seed, draws } => Some((*seed, draws.load(Ordering::Relaxed))),
        }
    }

    /// The seed of a simulation.
    pub fn seed(&self) -> Option<u64> {
        self.position().map(|p| p.0)
    }

    /// Counts on from so many keys, as another process of the same simulation did. Keys of the system have no number.
    pub(crate) fn go_on_from(&self, position: u64) {
        if let Source::Simulated { draws, .. } = &self.source {
            draws.store(position, Ordering::Relaxed);
        }
    }

    pub(crate) fn key(&self, stream: Stream) -> Result<[u8; 32]> {
        let mut key = [0u8; 32];
        match &self.source {
            Source::System { fill } => {
                // A source that answers with zeros did not answer.
                if !fill(&mut key) || key == [0u8; 32] {
                    return Err(Error::Entropy);
                }
            }
            Source::Simulated { seed, draws } => {
                let mut root = [0u8; 32];
                root[..8].copy_from_slice(&seed.to_le_bytes());
                root[8] = stream as u8 + 1;
                root[16..24].copy_from_slice(&draws.fetch_add(1, Ordering::Relaxed).to_le_bytes());
                cipher(&root).apply_keystream(&mut key);
            }
        }
        Ok(key)
    }

    /// A generator for the choice of a unit's rows, before they reach the kernel. It never meets noise or batches.
    pub fn for_units(&self) -> Result<NoiseRng> {
        self.rng(Stream::Unit)
    }

    /// A generator with a key of its own.
    pub(crate) fn rng(&self, stream: Stream) -> Result<NoiseRng> {
        let mut key = self.key(stream)?;
        let rng = NoiseRng::from_key(key);
        key.zeroize();
        Ok(rng)
    }
}

/// Uniform random 64-bit words. A trait, so that tests can script them.
pub(crate) trait Words {
    fn word(&mut self) -> u64;
}

const BUFFER: usize = 256;

/// The key stream itself: as a cipher it has the widest instructions, which it has not as a generator.
fn cipher(key: &[u8; 32]) -> ChaCha20Legacy {
    ChaCha20Legacy::new(key.into(), &Default::default())
}

/// A keyed generator; wiped when it is dropped.
pub struct NoiseRng {
    cipher: ChaCha20Legacy,
    buffer: [u64; BUFFER],
    next: usize,
}

impl NoiseRng {
    pub(crate) fn from_key(key: [u8; 32]) -> NoiseRng {
        NoiseRng { cipher: cipher(&key), buffer: [0; BUFFER], next: BUFFER }
    }

    #[cold]
    fn refill(&mut self) {
        self.buffer.fill(0);
        // SAFETY: words are bytes without padding, of any value, and the list of bytes ends with this statement's borrow.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.buffer.as_mut_ptr().cast::<u8>(), 8 * BUFFER) };
        self.cipher.apply_keystream(bytes);
        self.buffer.iter_mut().for_each(|word| *word = u64::from_le(*word));
        self.next = 0;
    }

    /// A uniform word.
    pub fn next_word(&mut self) -> u64 {
        self.word()
    }

    /// A uniform number below `count`.
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(count)) >> 64) as u64
    }

    /// A uniform number in [0, 1), for choices inside of a unit; never for noise.
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (0.5f64).powi(53)
    }
}

impl Words for NoiseRng {
    #[inline(always)]
    fn word(&mut self) -> u64 {
        if self.next == BUFFER {
            self.refill();
        }
        let word = self.buffer[self.next];
        self.next += 1;
        word
    }
}

impl Drop for NoiseRng {
    fn drop(&mut self) {
        self.buffer.zeroize();
    }
}

/// An exact sampling rate, numerator over 2^64: the number that the sampler compares with is the one the accountant sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    numerator: u64,
}

impl Rate {
    /// The smallest representable rate that is at least `rate`, for 0 < rate < 1.
    pub fn new(rate: f64) -> Result<Rate> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::domain("sampling rate", rate, "give a number strictly between 0 and 1; use everyone() for 1"));
        }
        // Exact: a double below 1 times 2^64 has either no fraction or fewer than 53 bits before the point.
        let numerator = (rate * 2f64.powi(64)).ceil() as u64;
        Ok(Rate { numerator: numerator.max(1) })
    }

    /// The rate as the accountant uses it; exact.
    pub fn value(self) -> f64 {
        self.numerator as f64 * 0.5f64.powi(64)
    }

    /// So many exact Bernoullis.
    pub(crate) fn draw(self, count: usize, words: &mut impl Words) -> Vec<bool> {
        let mut out = Vec::new();
        self.draw_into(count, words, &mut out);
        out
    }

    /// Each compares 64 random bits of its own with the rate, from the first on; 64 of them read a bit each from every word, until all are decided: eight words, nearly always.
    fn draw_into(self, count: usize, words: &mut impl Words, out: &mut Vec<bool>) {
        grow(out, count);
        let mut left = count;
        while left > 0 {
            let own = left.min(64);
            let (mut below, mut open) = (0u64, u64::MAX >> (64 - own));
            for bit in (0..64).rev() {
                let word = words.word();
                if self.numerator >> bit & 1 == 1 {
                    below |= open & !word;
                    open &= word;
                } else {
                    open &= !word;
                }
                if open == 0 {
                    break;
                }
            }
            let start = out.len();
            out.resize(start + own, false);
            // Few are chosen: those are set one by one.
            while below != 0 {
                out[start + below.trailing_zeros() as usize] = true;
                below &= below - 1;
            }
            left -= own;
        }
    }

    /// One for each of so many units, the first of which has this index among those of all processes.
    pub(crate) fn draw_units(self, key: &[u8; 32], first: usize, count: usize) -> Vec<bool> {
        let mut out = Vec::new();
        grow(&mut out, count);
        unit_blocks(key, first, count, |units, rng| self.draw_into(units, rng, &mut out));
        out
    }
}

/// Calls with the generator of each block of units, and how many of its units there are. Keyed by the index of the block, so that no draw
/// depends on how units are divided among processes.
pub(crate) fn unit_blocks(key: &[u8; 32], first: usize, count: usize, mut f: impl FnMut(usize, &mut NoiseRng)) {
    debug_assert!(first.is_multiple_of(ALIGNMENT), "a process holds whole blocks");
    for start in (0..count).step_by(ALIGNMENT) {
        f(ALIGNMENT.min(count - start), &mut indexed(key, (first + start) as u64));
    }
}

/// The generator of one index under a key.
pub(crate) fn indexed(key: &[u8; 32], index: u64) -> NoiseRng {
    let mut key = *key;
    key[24..].iter_mut().zip(index.to_le_bytes()).for_each(|(k, i)| *k ^= i);
    NoiseRng::from_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_draws_differ() {
        let entropy = Entropy::simulated(7);
        let mut seen = std::collections::HashSet::new();
        for stream in [Stream::Noise, Stream::Sampling, Stream::Initialisation, Stream::Parts, Stream::Unit] {
            for _ in 0..3 {
                assert!(seen.insert(entropy.rng(stream).unwrap().next_word()));
            }
        }
        let again = Entropy::simulated(7);
        assert!(seen.contains(&again.rng(Stream::Noise).unwrap().next_word()), "a simulation can be repeated");
        assert!(!seen.contains(&Entropy::simulated(8).rng(Stream::Noise).unwrap().next_word()));
        let (a, b) = (Entropy::system().unwrap(), Entropy::system().unwrap());
        assert_ne!(a.rng(Stream::Noise).unwrap().next_word(), b.rng(Stream::Noise).unwrap().next_word());
    }

    /// The generator is ChaCha20 and nothing else: the key-stream of the all-zero key and nonce is public knowledge.
    #[test]
    fn known_answer() {
        let mut rng = NoiseRng::from_key([0; 32]);
        assert_eq!(rng.next_word().to_le_bytes(), [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
        assert_eq!(rng.next_word().to_le_bytes(), [0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28]);
    }

    /// T-N10: a source that fails, or that fills in nothing, stops everything before data can be opened.
    #[test]
    fn failing_entropy_is_refused() {
        assert_eq!(Entropy::from_source(|_| false).err(), Some(Error::Entropy));
        assert_eq!(Entropy::from_source(|_| true).err(), Some(Error::Entropy));
    }

    #[test]
    fn rates_are_what_the_accountant_sees() {
        for rate in [1e-30, 1e-4, 0.1, 1.0 / 3.0, 0.5, 1.0 - 1e-16] {
            let exact = Rate::new(rate).unwrap();
            assert!(exact.value() >= rate);
            assert_eq!(exact.value() * 2f64.powi(64), exact.numerator as f64);
            assert_eq!((exact.numerator as f64) as u128, u128::from(exact.numerator), "no rounding in the conversion");
        }
        // Words that sit next to the rate, on either side of it.
        struct FixedWords(Vec<u64>);
        impl Words for FixedWords {
            fn word(&mut self) -> u64 {
                self.0.remove(0)
            }
        }
        // Each coin against the comparison of its own 64 bits, of which each word holds one.
        for (rate, around) in [(1.0 / 3.0, true), (0.25, true), (1e-9, true), (0.999, false)] {
            let p = Rate::new(rate).unwrap();
            let mut uniform: Vec<u64> = (0..7u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            if around {
                uniform.extend([p.numerator - 1, p.numerator, p.numerator + 1, 0, u64::MAX]);
            }
            let bits = |bit: u32| uniform.iter().enumerate().map(|(i, u)| (u >> bit & 1) << i).sum::<u64>();
            let words: Vec<u64> = (0..64).rev().map(bits).collect();
            let expected: Vec<bool> = uniform.iter().map(|u| *u < p.numerator).collect();
            assert_eq!(p.draw(uniform.len(), &mut FixedWords(words)), expected, "{rate}");
        }
        let mut rng = NoiseRng::from_key([9; 32]);
        for rate in [1e-5, 0.001, 0.25, 0.9] {
            let (n, p) = (4_000_000, Rate::new(rate).unwrap());
            let hits = p.draw(n, &mut rng).into_iter().filter(|b| *b).count() as f64;
            let spread = (n as f64 * rate * (1.0 - rate)).sqrt();
            assert!((hits - n as f64 * rate).abs() < 6.0 * spread, "{rate}: {hits}");
        }
        for rate in [0.0, 1.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
            assert!(Rate::new(rate).is_err());
        }
    }
}
