//! What a run knows of its engine.

use super::{Confidential, Engine, Key, Needs, Pass, Place, Share, Step};
use crate::account::Event;
use crate::error::{Error, Result, disagree};
use crate::rng::{Entropy, NoiseRng, Stream, Words, indexed};
use crate::sampling::sampler::{Sampler, Shape};
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The engine of one run, and how many times it was asked.
pub(crate) struct Seam<'d> {
    engine: &'d dyn Engine,
    place: Place,
    run: u64,
    steps: AtomicU64,
    /// Working memory of threads that are done with it: it ends with the run.
    spare: Mutex<Vec<Vec<f32>>>,
}

impl<'d> Seam<'d> {
    /// All processes agree on the plan, the code and the number of the run.
    pub(crate) fn begin(engine: &'d dyn Engine, entropy: &Entropy, planned: &Event) -> Result<Seam<'d>> {
        let place = engine.place();
        if place.process >= place.processes || place.divisor == 0 {
            return Err(Error::domain(
                "process",
                place.process,
                "give a number below that of processes, and a divisor of at least 1",
            ));
        }
        // Drawn in any case, so that later draws of a simulation do not depend on how many processes there are.
        let mut run = entropy.rng(Stream::Initialisation)?.word();
        if place.processes > 1 {
            let mut hasher = DefaultHasher::new();
            hasher.write(format!("{planned:?} {}", env!("CARGO_PKG_VERSION")).as_bytes());
            // Wide and plain instructions add in another order.
            hasher.write_u8(u8::from(crate::processor::wide()));
            let own = hasher.finish().to_le_bytes();
            let all = engine.agree(&[own, run.to_le_bytes()].concat())?;
            let (Some(plan), Some(number)) = (all.get(..8), all.get(8..16)) else { return Err(disagree()) };
            if plan != own {
                return Err(Error::Mismatch { what: "the processes of this job have different plans, programs or processors" });
            }
            run = u64::from_le_bytes(number.try_into().unwrap_or_default());
        }
        Ok(Seam { engine, place, run, steps: AtomicU64::new(0), spare: Mutex::new(Vec::new()) })
    }

    pub(crate) fn threads(&self) -> &super::Threads {
        self.engine.threads()
    }

    /// Whether this is the process that leads.
    pub(crate) fn leads(&self) -> bool {
        self.place.process == 0
    }

    /// Whether records are divided among several processes.
    pub(crate) fn divided(&self) -> bool {
        self.place.processes > 1
    }

    /// Refuses what the engine does not offer.
    pub(crate) fn needs(&self, needs: Needs) -> Result<()> {
        let one_process = needs == Needs::Records && self.place.processes > 1;
        if self.place.offers >= needs && !one_process {
            return Ok(());
        }
        Err(match needs {
            Needs::Records => Error::unsupported("a value that needs all records in one process", "use an engine of one process"),
            _ => Error::unsupported(
                "a value that needs exact totals inside, or noise that is not Gaussian,",
                "use an engine of one owner",
            ),
        })
    }

    /// Working memory of at least so many numbers, which may be anything: asking the system for it anew in every step would cost a tenth of a fast one.
    pub(crate) fn borrow_memory(&self, length: usize) -> Vec<f32> {
        let found = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut memory = found.unwrap_or_default();
        memory.resize(length.max(memory.len()), 0.0);
        memory
    }

    /// It is free for another step.
    pub(crate) fn return_memory(&self, memory: Vec<f32>) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }

    fn step(&self) -> Step {
        Step { run: self.run, number: self.steps.fetch_add(1, Ordering::Relaxed) }
    }

    /// This process's part of a sum.
    pub(crate) fn share(&self, pass: &Pass<'_>, length: usize) -> Vec<i64> {
        let mut share = vec![0i64; length];
        self.threads().sum(pass, &mut share);
        share
    }

    /// The total with noise, public.
    pub(crate) fn open(&self, share: &[i64], noise: Vec<i64>) -> Result<Vec<i64>> {
        let total = self.engine.open(self.step(), Share(share), noise)?;
        if total.len() == share.len() { Ok(total) } else { Err(disagree()) }
    }

    /// The exact total, for the insides of the kernel.
    pub(crate) fn collect(&self, share: Vec<i64>) -> Result<Vec<i64>> {
        self.needs(Needs::Totals)?;
        if self.place.processes == 1 {
            return Ok(share);
        }
        let mut total = self.engine.collect(self.step(), Share(&share))?;
        if total.0.len() == share.len() { Ok(std::mem::take(&mut total.0)) } else { Err(disagree()) }
    }

    /// A generator that all processes of one owner have alike.
    pub(crate) fn secret(&self, entropy: &Entropy, stream: Stream) -> Result<NoiseRng> {
        Ok(NoiseRng::from_key(self.key(entropy, stream)?))
    }

    /// The key of such a generator.
    pub(crate) fn key(&self, entropy: &Entropy, stream: Stream) -> Result<[u8; 32]> {
        Ok(self.engine.secret(Key(Confidential(entropy.key(stream)?)))?.0)
    }

    /// Public numbers of the first process, to all of them.
    pub(crate) fn agree(&self, public: &[u64]) -> Result<Vec<u64>> {
        if self.place.processes == 1 {
            return Ok(public.to_vec());
        }
        let bytes: Vec<u8> = public.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (words, rest) = {
            let all = self.engine.agree(&bytes)?;
            let words: Vec<u64> = all.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default())).collect();
            (words, all.len() % 8)
        };
        if rest == 0 { Ok(words) } else { Err(disagree()) }
    }

    /// This process's part of the noise: zeros where it draws none.
    ///
    /// *Owners.* The total in the view of whoever knows all but `divisor` parts still has noise of the planned variance. Parts are sums of
    /// discrete Gaussians whose scales are powers of two, so that each is drawn exactly. A sum of discrete Gaussians of deviations of at least
    /// S steps is a discrete Gaussian up to factors e^(+-tau), tau = 10 n exp(-pi^2 S^2) for n of them (Poisson summation: two with variances
    /// a and b differ from one by the theta function of ab/(a+b) >= S^2/2). S is at least 32 here: tau is below 10^-4000 and vanishes in the
    /// rounding of every accountant.
    pub(crate) fn noise(&self, entropy: &Entropy, shape: Shape, bits: u32, length: usize) -> Result<Vec<i64>> {
        // A process that draws none draws no key either.
        let key = if self.place.noise.is_empty() { [0; 32] } else { entropy.key(Stream::Noise)? };
        self.noise_of(&key, shape, bits, length)
    }

    /// The same, of a key.
    pub(crate) fn noise_of(&self, key: &[u8; 32], shape: Shape, bits: u32, length: usize) -> Result<Vec<i64>> {
        let mut out = vec![0i64; length];
        if self.place.noise.is_empty() {
            return Ok(out);
        }
        let parts = scales(bits, self.place.divisor)?;
        if shape != Shape::Gaussian && (self.place.noise.len() > 1 || parts.len() > 1) {
            return Err(Error::unsupported("noise in parts that is not Gaussian", "use an engine of one owner"));
        }
        let fill = |(chunk, out): (usize, &mut [i64])| {
            let mut more = Vec::new();
            for (i, part) in self.place.noise.clone().enumerate() {
                let mut key = *key;
                key[16..20].iter_mut().zip(part.to_le_bytes()).for_each(|(k, p)| *k ^= p);
                let mut rng = indexed(&key, chunk as u64);
                for (j, bits) in parts.iter().enumerate() {
                    let sampler = Sampler::new(shape, *bits);
                    if i + j == 0 {
                        sampler.fill(&mut rng, out);
                        continue;
                    }
                    more.resize(out.len(), 0);
                    sampler.fill(&mut rng, &mut more);
                    out.iter_mut().zip(&more).for_each(|(o, m)| *o = o.wrapping_add(*m));
                }
            }
        };
        self.threads().chunks(&mut out, CHUNK, &fill);
        Ok(out)
    }
}

/// Coordinates whose noise comes from one key: what a thread draws at a time.
const CHUNK: usize = 1 << 12;

/// Powers of two whose squares add up to at least 4^bits / divisor, and to less than a hundredth more.
fn scales(bits: u32, divisor: u32) -> Result<Vec<u32>> {
    let digits = if divisor == 1 { 0 } else { (u32::BITS - (divisor - 1).leading_zeros()).div_ceil(2) + 4 };
    if divisor > 1 && bits < digits + 5 {
        return Err(Error::domain("parts of the noise", divisor, "give fewer owners, or more noise"));
    }
    let units = (1u64 << (2 * digits)).div_ceil(u64::from(divisor));
    let digit = |place: u32| std::iter::repeat_n(bits - digits + place, (units >> (2 * place) & 3) as usize);
    Ok((0..=digits).rev().flat_map(digit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_their_variance() {
        assert_eq!(scales(40, 1).unwrap(), [40]);
        assert_eq!(scales(40, 2).unwrap(), [39, 39]);
        assert_eq!(scales(40, 4).unwrap(), [39]);
        for divisor in 1..=1000u32 {
            let sum: f64 = scales(20, divisor).unwrap().iter().map(|s| 4f64.powi(*s as i32)).sum();
            let wanted = 4f64.powi(20) / f64::from(divisor);
            assert!(sum >= wanted && sum < 1.01 * wanted, "{divisor}: {sum} {wanted}");
        }
        assert!(scales(8, 3).is_err() && scales(8, 1).is_ok());
    }
}
