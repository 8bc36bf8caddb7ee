//! The bucketed sampler: its distribution against exact probabilities, its bookkeeping, and the comparisons that doubles cannot decide.

use super::exact;
use crate::rng::{NoiseRng, Words};
use crate::sampling::bucket_sampler::{BucketSampler, accept, below};

/// Words in a given order; panics if more are asked for.
struct FixedWords(Vec<u64>);

impl Words for FixedWords {
    fn word(&mut self) -> u64 {
        self.0.remove(0)
    }
}

/// Chi-square of counts against probabilities; cells that expect fewer than 10 are put together. False alarm below 1e-8.
pub(crate) fn assert_distribution(counts: &[f64], weights: &[f64], what: &str) {
    let (n, total): (f64, f64) = (counts.iter().sum(), weights.iter().sum());
    let (mut statistic, mut degrees, mut rest) = (0.0, -1.0, (0.0, 0.0));
    let mut cell = |seen: f64, expected: f64| {
        statistic += (seen - expected).powi(2) / expected;
        degrees += 1.0;
    };
    for (seen, weight) in counts.iter().zip(weights) {
        let expected = n * weight / total;
        if expected < 10.0 {
            rest = (rest.0 + seen, rest.1 + expected);
        } else {
            cell(*seen, expected);
        }
    }
    if rest.1 >= 10.0 {
        cell(rest.0, rest.1);
    } else {
        assert!(rest.0 < 60.0, "{what}: {rest:?}");
    }
    assert!(degrees > 3.0, "{what}: {degrees} degrees of freedom");
    assert!(statistic < degrees + 2.0 * (degrees * 18.42f64).sqrt() + 36.9, "{what}: {statistic} for {degrees}");
}

fn assert_ladder(bucket_sampler: &BucketSampler, both: bool, draws: usize, rng: &mut NoiseRng, what: &str) {
    let d = bucket_sampler.scores().len();
    let mut counts = vec![0f64; 2 * d];
    for _ in 0..draws {
        let (item, opposite) = bucket_sampler.draw(rng);
        counts[item + if opposite { d } else { 0 }] += 1.0;
    }
    let scaled = |sign: f64| bucket_sampler.scores().iter().map(move |s| sign * *s as f64 * 0.5f64.powi(20));
    let highest = scaled(1.0).chain(if both { scaled(-1.0) } else { scaled(1.0) }).fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = scaled(1.0).map(|x| (x - highest).exp()).collect();
    weights.extend(scaled(-1.0).map(|x| if both { (x - highest).exp() } else { 0.0 }));
    assert_distribution(&counts, &weights, what);
    assert!(both || counts[d..].iter().all(|c| *c == 0.0));
}

fn scores(rng: &mut NoiseRng, spread: f64, shift: f64) -> Vec<i64> {
    (0..50).map(|_| (((rng.uniform() * 2.0 - 1.0) * spread + shift) * 2f64.powi(20)) as i64).collect()
}

/// Narrow and wide ranges of scores, both signs and one, above and below zero, buckets put together from the first on and later.
#[test]
fn distribution_of_the_ladder() {
    let mut rng = NoiseRng::from_key([41; 32]);
    for both in [true, false] {
        for (spread, shift) in [(0.01, 0.0), (1.0, 0.3), (6.0, 0.0), (6.0, 900.0), (3.0, -900.0), (300.0, 5.0)] {
            for depth in [90, 4, 1] {
                let mut scores = scores(&mut rng, spread, shift);
                // Wide ranges have few items that ever win: some are put next to the top.
                let top = *scores.iter().max_by_key(|s| if both { s.abs() } else { **s }).unwrap();
                (0..12).for_each(|i| scores[i] = top - (i as i64) * (1 << 18));
                let bucket_sampler = BucketSampler::new(scores, 20, both).cut_at(depth);
                bucket_sampler.check();
                assert_ladder(&bucket_sampler, both, 100_000, &mut rng, &format!("{both} {spread} {shift} {depth}"));
            }
        }
    }
}

/// Changes of scores move items between buckets, empty buckets and open new ones; the distribution is that of the scores as they are.
#[test]
fn changes_keep_the_distribution() {
    let mut rng = NoiseRng::from_key([42; 32]);
    for both in [true, false] {
        let mut bucket_sampler = BucketSampler::new(vec![0; 50], 20, both).cut_at(6);
        let mut plain = vec![0i64; 50];
        for round in 0..4 {
            for _ in 0..3000 {
                let item = (rng.word() % 50) as usize;
                // Mostly steps; at times a jump beyond every other item, and back.
                let by = match rng.word() % 10 {
                    0 => -2 * plain[item],
                    1 => (300 << 20) - plain[item],
                    2..5 => -plain[item],
                    _ => ((rng.uniform() - 0.5) * 2f64.powi(21)) as i64,
                };
                bucket_sampler.add(item, by);
                plain[item] += by;
            }
            bucket_sampler.check();
            for (item, score) in plain.iter_mut().enumerate() {
                let by = (item as i64 - 20) * (1 << 17) - *score;
                bucket_sampler.add(item, by);
                *score += by;
            }
            bucket_sampler.check();
            assert_eq!(bucket_sampler.scores(), plain);
            assert_ladder(&bucket_sampler, both, 100_000, &mut rng, &format!("{both} round {round}"));
        }
    }
}

/// A bucket is above its score, and by no more than 1.01 steps of ln 2, up to the largest scores.
#[test]
fn rungs_are_above_their_scores() {
    let mut rng = NoiseRng::from_key([43; 32]);
    // ln 2 x 2^64, rounded down.
    let ln_2 = 12_786_308_645_202_655_659i128;
    for bits in [8u32, 20, 44] {
        for both in [true, false] {
            let bucket_sampler = BucketSampler::new(vec![0], bits, both);
            assert_eq!(bucket_sampler.rung_of(0), 0);
            for round in 0..20_000 {
                let score = match round {
                    0 => (1i64 << 62) - 1,
                    1 => -(1i64 << 62) + 1,
                    _ => (rng.word() as i64 >> 2) >> (rng.word() % 62),
                };
                let bucket = i128::from(bucket_sampler.rung_of(score));
                // Both sides times 2^64, and again by a little, for the rounding of the constant.
                let size = i128::from(if both { score.abs() } else { score });
                let (height, target) = (bucket * ln_2, if bits <= 64 { size << (64 - bits) } else { size });
                assert!(height + bucket.abs() >= target, "{score} {bits} {both}");
                assert!(height - target <= ln_2 + ln_2 / 100, "{score} {bits} {both}");
            }
        }
    }
}

/// Items far below the top have the chance that is theirs: a trial finds them with a unit of weight, and compares with the lowest
/// bucket.
#[test]
fn deep_items_can_be_drawn() {
    // 100 scales below are 145 buckets. The total weight is 2^90 + 2, 91 bits: the last of them is item 2.
    let bucket_sampler = BucketSampler::new(vec![200 << 20, 100 << 20, 99 << 20], 20, false);
    let top = bucket_sampler.rung_of(200 << 20);
    let word = |x: u128| [(x >> 27) as u64, ((x << 37) & u128::from(u64::MAX)) as u64];
    let [a, b] = word((1 << 90) + 1);
    // Refused at first, then the top item: the script must fit to the word.
    let [c, d] = word(12345);
    assert_eq!(bucket_sampler.draw(&mut FixedWords(vec![a, b, u64::MAX / 2, c, d, 1 << 40])), (0, false));
    // Accepted if U is small enough: e^-(100 - 90 ln 2 ...) is about e^-38.
    let gap = (top - 90) as f64 * std::f64::consts::LN_2 - 99.0;
    let turn = ((-gap).exp() * 2f64.powi(64)) as u64;
    assert_eq!(bucket_sampler.draw(&mut FixedWords(vec![a, b, turn - turn / 100])), (2, false));
    assert_eq!(bucket_sampler.draw(&mut FixedWords(vec![a, b, turn + turn / 100, c, d, 1 << 40])), (0, false));
    let [a, b] = word(1 << 90);
    assert_eq!(
        bucket_sampler.draw(&mut FixedWords(vec![a, b, 1])),
        (1, false),
        "one word of 1 is below e^-39, more words are not needed"
    );
}

/// Where doubles do not decide, further words do, and exactly they.
#[test]
fn close_comparisons_take_further_words() {
    for (score, bucket) in [(5i64 << 18, 2i64), (-(3i64 << 18), 1), (-(40i64 << 20), -57), (700 << 20, 1010)] {
        let gap = bucket as f64 * std::f64::consts::LN_2 - score as f64 * 0.5f64.powi(20);
        assert!(gap > 0.0, "{gap}");
        let compare = |words: &[u64]| exact::above(words, score >= 0, u128::from(score.unsigned_abs()), 20, bucket);
        // The word at which the comparison turns, by bisection: below it U is small enough for certain.
        let (mut low, mut high) = (0u64, u64::MAX);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if compare(&[middle]) == Some(true) { low = middle } else { high = middle }
        }
        let turn = high;
        assert_eq!(compare(&[turn]), None, "{score} {bucket}");
        assert!(
            accept(score, 20, bucket, &mut FixedWords(vec![turn - 1]))
                && !accept(score, 20, bucket, &mut FixedWords(vec![turn + 1]))
        );
        // One further word is taken, and decides.
        assert!(
            accept(score, 20, bucket, &mut FixedWords(vec![turn, 0]))
                && !accept(score, 20, bucket, &mut FixedWords(vec![turn, u64::MAX]))
        );
        // Where it turns again, a third.
        let (mut low, mut high) = (0u64, u64::MAX);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if compare(&[turn, middle]) == Some(true) { low = middle } else { high = middle }
        }
        assert!(accept(score, 20, bucket, &mut FixedWords(vec![turn, high, 0])));
        assert!(!accept(score, 20, bucket, &mut FixedWords(vec![turn, high, u64::MAX])));
    }
}

#[test]
fn uniform_numbers_are_uniform() {
    let mut rng = NoiseRng::from_key([44; 32]);
    assert_eq!(below(1, &mut FixedWords(vec![])), 0);
    assert_eq!(
        below(6, &mut FixedWords(vec![7 << 61, 6 << 61, 5 << 61 | 1])),
        5,
        "three bits, and again where they are too many"
    );
    // Around 64 bits, and with a top that is not a power of two.
    for count in [6u128, (1 << 64) - 1, 1 << 64, (1 << 64) + 1, 6 << 100, u128::MAX] {
        let mut counts = [0f64; 6];
        for _ in 0..60_000 {
            let x = below(count, &mut rng);
            assert!(x < count);
            // Sixths of the range, but for a part of 2^-60 of it.
            counts[((x / (count / 6)).min(5)) as usize] += 1.0;
        }
        assert_distribution(&counts, &[1.0; 6], "sixths");
    }
}
