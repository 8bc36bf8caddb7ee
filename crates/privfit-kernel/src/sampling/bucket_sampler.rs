//! The exponential mechanism over many items whose scores change a few at a time, exactly: items on buckets, and rejection.
//!
//! *What it computes.* Item i with score v_i is drawn with probability proportional to e^(v_i / scale), scale = 2^bits; where both
//! signs take part, item and sign with probability proportional to e^(+-v_i / scale). Scores are integers, and so is everything
//! that is kept between draws, so that nothing drifts.
//!
//! *How.* An item stands on a bucket l, an integer with v_i / scale <= l ln 2 (|v_i| with both signs) by integer arithmetic. A trial
//! takes a bucket with probability proportional to (items on it) x 2^l and one of its items uniformly, both by one uniform integer
//! of at most 128 bits, a sign by one bit, and accepts with probability e^(v_i / scale - l ln 2). Rungs more than `DEPTH` below
//! the top count as if they were that deep: their items are accepted the more rarely. A trial compares -ln U with the gap, in
//! doubles with an error bound and, where that does not decide, to any precision with more bits of U (`exact.rs`). Every
//! comparison is exact, so the distribution is exact.
//!
//! *Cost.* A bucket is at most 1.01 ln 2 above the score, so at least one trial in five is accepted, whatever the scores are; a
//! change of score is two multiplications and, if the bucket changes, two entries of a list. A draw does not look at items that it
//! does not try.
//!
//! *What a clock sees.* The race (`select.rs`) draws the same number of words whatever the scores are; here the number of trials,
//! and the buckets that are walked, depend on them. Only the accepted item leaves, and by the distribution above it is independent of how
//! many trials were refused before it; a clock on the host could still see their number, as it sees the passes of the solver: out
//! of scope.

use super::exact;
use crate::rng::Words;
use crate::sampling::select::minus_log;
use std::collections::BTreeMap;

/// 2^63 / ln 2 lies between these two.
const PER_LN_2: (u64, u64) = (13_306_513_097_844_322_491, 13_306_513_097_844_322_492);

/// Rungs with a weight of their own. Fewer than 2^32 items, so that weights add up to less than 2^128.
const DEPTH: i64 = 90;

/// Items with integer scores, ready to be drawn from.
pub(crate) struct BucketSampler {
    bits: u32,
    /// Both signs of a score take part.
    both: bool,
    depth: i64,
    scores: Vec<i64>,
    buckets: BTreeMap<i64, Vec<u32>>,
    /// Where on its bucket an item stands.
    place: Vec<u32>,
}

impl BucketSampler {
    /// Scores below 2^62 in size, fewer than 2^32 of them, at least one.
    pub(crate) fn new(scores: Vec<i64>, bits: u32, both: bool) -> BucketSampler {
        assert!(!scores.is_empty() && scores.len() < u32::MAX as usize, "so many items have no bucket_sampler");
        let mut bucket_sampler =
            BucketSampler { bits, both, depth: DEPTH, place: vec![0; scores.len()], scores, buckets: BTreeMap::new() };
        for item in 0..bucket_sampler.scores.len() {
            bucket_sampler.stand(item, bucket_sampler.bucket(bucket_sampler.scores[item]));
        }
        bucket_sampler
    }

    /// Smallest bucket that integer arithmetic shows to be high enough.
    #[inline]
    fn bucket(&self, score: i64) -> i64 {
        let shift = 63 + self.bits;
        let size = u128::from(score.unsigned_abs());
        if score == 0 {
            0
        } else if score > 0 || self.both {
            // Below 2^62 x 2^63.6, and rounded up twice.
            ((size * u128::from(PER_LN_2.1) - 1) >> shift) as i64 + 1
        } else {
            -(((size * u128::from(PER_LN_2.0)) >> shift) as i64)
        }
    }

    fn stand(&mut self, item: usize, bucket: i64) {
        let on = self.buckets.entry(bucket).or_default();
        self.place[item] = on.len() as u32;
        on.push(item as u32);
    }

    fn leave(&mut self, item: usize, bucket: i64) {
        let Some(on) = self.buckets.get_mut(&bucket) else { return };
        let at = self.place[item] as usize;
        on.swap_remove(at);
        match on.get(at) {
            Some(moved) => self.place[*moved as usize] = at as u32,
            None if on.is_empty() => drop(self.buckets.remove(&bucket)),
            None => {}
        }
    }

    /// Changes a score.
    #[inline]
    pub(crate) fn add(&mut self, item: usize, by: i64) {
        let (old, new) = (self.scores[item], self.scores[item] + by);
        self.scores[item] = new;
        let (from, to) = (self.bucket(old), self.bucket(new));
        if from != to {
            self.leave(item, from);
            self.stand(item, to);
        }
    }

    /// An item, and whether with the opposite sign of its score.
    pub(crate) fn draw(&self, words: &mut impl Words) -> (usize, bool) {
        let top = self.buckets.last_key_value().map_or(0, |(l, _)| *l);
        let own = self.buckets.range(top - self.depth + 1..).rev();
        let (weight, count) = own.fold((0u128, 0usize), |(w, c), (l, on)| (w + self.weight(on, *l, top), c + on.len()));
        // Everything deeper, one unit each.
        let total = weight + (self.scores.len() - count) as u128;
        loop {
            let at = below(total, words);
            let (item, bucket) = self.at(at, top);
            let opposite = self.both && words.word() >> 63 == 1;
            let score = self.scores[item];
            if accept(if opposite { -score } else { score }, self.bits, bucket, words) {
                return (item, opposite);
            }
        }
    }

    /// The item at a point of the total weight, and the bucket that it counts for.
    fn at(&self, mut at: u128, top: i64) -> (usize, i64) {
        for (l, on) in self.buckets.iter().rev() {
            let bucket = (*l).max(top - self.depth);
            let weight = self.weight(on, bucket, top);
            if at < weight {
                return (on[(at >> (bucket - top + self.depth)) as usize] as usize, bucket);
            }
            at -= weight;
        }
        unreachable!("the point lies below the total weight")
    }

    /// Weight of a bucket; that of the deepest one that has its own is 2 for each item.
    fn weight(&self, on: &[u32], bucket: i64, top: i64) -> u128 {
        (on.len() as u128) << (bucket - top + self.depth)
    }

    pub(crate) fn scores(&self) -> &[i64] {
        &self.scores
    }

    /// A bucketed sampler with fewer buckets of their own.
    #[cfg(test)]
    pub(crate) fn cut_at(mut self, depth: i64) -> BucketSampler {
        self.depth = depth;
        self
    }

    /// Every item stands once, at its place, on the bucket of its score, and no bucket is empty.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.buckets.values().map(Vec::len).sum::<usize>(), self.scores.len());
        assert!(self.buckets.values().all(|on| !on.is_empty()));
        for (item, score) in self.scores.iter().enumerate() {
            assert_eq!(self.buckets[&self.bucket(*score)][self.place[item] as usize], item as u32);
        }
    }

    #[cfg(test)]
    pub(crate) fn rung_of(&self, score: i64) -> i64 {
        self.bucket(score)
    }
}

/// A uniform number below `count`, exactly: as many bits as it has, again if they are too many.
pub(crate) fn below(count: u128, words: &mut impl Words) -> u128 {
    let spare = (count - 1).leading_zeros();
    loop {
        let word = match spare {
            128 => 0,
            64.. => u128::from(words.word() >> (spare - 64)),
            _ => (u128::from(words.word()) << 64 | u128::from(words.word())) >> spare,
        };
        if word < count {
            return word;
        }
    }
}

/// Whether a uniform U is below e^(score / 2^bits - bucket ln 2), which is at most 1.
pub(crate) fn accept(score: i64, bits: u32, bucket: i64, words: &mut impl Words) -> bool {
    if score == 0 && bucket == 0 {
        return true;
    }
    let first = words.word();
    let (u, e) = minus_log(first);
    let (x, height) = (score as f64 * 0.5f64.powi(bits as i32), bucket as f64 * std::f64::consts::LN_2);
    let error = 0.5f64.powi(44) * (1.0 + x.abs() + height.abs() + e) + 0.5f64.powi(63) / u;
    // Close to 0 64 bits say little, and the error says so.
    let gap = e - (height - x);
    if gap.abs() > error && first >= 1 << 20 {
        return gap > 0.0;
    }
    let mut known = vec![first];
    loop {
        if let Some(above) = exact::above(&known, score >= 0, u128::from(score.unsigned_abs()), bits, bucket) {
            return above;
        }
        known.push(words.word());
    }
}
