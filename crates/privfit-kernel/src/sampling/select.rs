//! The exponential mechanism, exactly: an exponential race with lazily refined arrival times.
//!
//! Item i wins if E_i e^-(score_i / scale) is the smallest, E_i = -ln U_i with U_i uniform: P(i) is proportional to
//! e^(score_i / scale). The first 64 bits of every U_i are drawn before the scores exist, so neither their number nor the time
//! to draw them depends on data. Doubles decide unless two arrival times are within their error, about once in 2^40 races; then more
//! bits are drawn and compared to any precision. A double Gumbel would never choose an item 41 scales below the top.

use super::exact;
use crate::rng::{NoiseRng, Words};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Between these two lies score/scale - ln E, given the first 64 bits of U.
#[derive(Clone, Copy)]
struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    fn new(word: u64, score: i64, scale: f64) -> Bounds {
        // Near either end of the unit interval 64 bits say little.
        if !(1 << 20..=u64::MAX - (1 << 20)).contains(&word) {
            return Bounds { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let (u, e) = minus_log(word);
        let level = score as f64 * scale;
        let log = e.ln();
        let relative = 0.5f64.powi(63) / (u * e);
        let error = relative + 0.5f64.powi(44) * (1.0 + level.abs() + log.abs());
        Bounds { low: level - log - error, high: level - log + error }
    }
}

/// U and -ln U at the middle of what 64 bits leave open; without cancellation for U close to 1.
pub(crate) fn minus_log(word: u64) -> (f64, f64) {
    let u = (word as f64 + 0.5) * 0.5f64.powi(64);
    if word > u64::MAX / 2 { (u, -(-((u64::MAX - word) as f64 + 0.5) * 0.5f64.powi(64)).ln_1p()) } else { (u, -u.ln()) }
}

/// The `count` first items of the race, in order.
pub(crate) fn race(first: &[i64], scores: &[i64], bits: u32, count: usize, more: &mut NoiseRng) -> Vec<usize> {
    let scale = 0.5f64.powi(bits as i32);
    let bounds: Vec<Bounds> = first.iter().zip(scores).map(|(word, score)| Bounds::new(*word as u64, *score, scale)).collect();
    let count = count.min(bounds.len());
    let mut order = candidates(&bounds, count);
    // Words beyond the first, of the few items that need them.
    let mut further: HashMap<usize, Vec<u64>> = HashMap::new();
    let mut compare = |a: usize, b: usize| -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        // The larger key comes first.
        if bounds[a].low > bounds[b].high {
            return Ordering::Less;
        }
        if bounds[b].low > bounds[a].high {
            return Ordering::Greater;
        }
        let gap = i128::from(scores[a]) - i128::from(scores[b]);
        let mut draw = |i: usize, new: bool| -> Vec<u64> {
            let words = further.entry(i).or_insert_with(|| vec![first[i] as u64]);
            if new {
                words.push(more.word());
            }
            words.clone()
        };
        let (mut u, mut v) = (draw(a, false), draw(b, false));
        loop {
            if let Some(first) = exact::race(&u, &v, gap >= 0, gap.unsigned_abs(), bits) {
                return if first { Ordering::Less } else { Ordering::Greater };
            }
            (u, v) = (draw(a, true), draw(b, true));
        }
    };
    order.sort_by(|a, b| compare(*a, *b));
    order.truncate(count);
    order
}

/// Items that may be among the first `count`: all but those that so many others are certain to beat.
fn candidates(bounds: &[Bounds], count: usize) -> Vec<usize> {
    if count == bounds.len() || count == 0 {
        return (0..count).collect();
    }
    let least = if count == 1 {
        bounds.iter().fold(f64::NEG_INFINITY, |best, b| best.max(b.low))
    } else {
        let mut low: Vec<f64> = bounds.iter().map(|b| b.low).collect();
        *low.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a)).1
    };
    (0..bounds.len()).filter(|i| bounds[*i].high >= least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(rng: &mut NoiseRng, n: usize) -> Vec<i64> {
        (0..n).map(|_| rng.word() as i64).collect()
    }

    /// Frequencies of the winner, and of the second, against the exact distribution.
    #[test]
    fn distribution_of_the_race() {
        let mut rng = NoiseRng::from_key([21; 32]);
        let scores = [0i64, 1 << 39, 1 << 40, -(1 << 40), 3 << 39];
        let weights: Vec<f64> = scores.iter().map(|s| (*s as f64 * 0.5f64.powi(40)).exp()).collect();
        let total: f64 = weights.iter().sum();
        let n = 400_000;
        let mut wins = [[0f64; 5]; 5];
        for _ in 0..n {
            let words = draw(&mut rng, 5);
            let order = race(&words, &scores, 40, 2, &mut rng);
            wins[order[0]][order[1]] += 1.0;
        }
        let (mut statistic, mut degrees) = (0.0, -1.0);
        for i in 0..5 {
            for j in 0..5 {
                if i != j {
                    let expected = f64::from(n) * weights[i] / total * weights[j] / (total - weights[i]);
                    statistic += (wins[i][j] - expected).powi(2) / expected;
                    degrees += 1.0;
                }
            }
        }
        // False alarm below 1e-8.
        assert!(statistic < degrees + 2.0 * (degrees * 18.42f64).sqrt() + 36.9, "{statistic}");
    }

    /// Correction B1: an item far below the top must keep its chance. Force its clock to the smallest values.
    #[test]
    fn far_items_can_win() {
        let mut rng = NoiseRng::from_key([22; 32]);
        // 60 scales below: U so close to 1 that E is about 2^-64 and smaller.
        let scores = [0i64, -(60 << 40)];
        let words = [(1u64 << 63) as i64, -1];
        let mut wins = 0;
        for _ in 0..2000 {
            // Given the first 64 ones, E is uniform in [0, 2^-64]: the item wins if E < ln 2 e^-60, one in 3.1e6 x 2^-64 ...
            let order = race(&words, &scores, 40, 1, &mut rng);
            wins += usize::from(order[0] == 1);
        }
        // e^-60 ln 2 / 2^-64 = 0.1119 of the draws.
        let p = (-60f64).exp() * std::f64::consts::LN_2 * 2f64.powi(64);
        let (mean, spread) = (2000.0 * p, (2000.0 * p * (1.0 - p)).sqrt());
        assert!((wins as f64 - mean).abs() < 6.5 * spread, "{wins} {mean}");
        let gumbel_limit = -(-(f64::EPSILON / 2.0).ln_1p()).abs().ln() + 3.6;
        assert!(gumbel_limit < 60.0, "a double Gumbel could never reach that far: {gumbel_limit}");
    }

    /// The few that are sorted are the first of all that could be: the same words give the same order, however many are asked for.
    #[test]
    fn the_first_of_many_are_the_first_of_all() {
        let mut rng = NoiseRng::from_key([23; 32]);
        let scores: Vec<i64> = (0..3000).map(|_| rng.word() as i64 >> 22).collect();
        for round in 0..20 {
            let mut words = draw(&mut rng, 3000);
            // Words that say little, in some rounds.
            if round % 2 == 1 {
                words[17] = -1;
                words[18] = 5;
            }
            let all = race(&words, &scores, 40, 3000, &mut NoiseRng::from_key([24; 32]));
            for count in [0usize, 1, 2, 7, 500, 2999] {
                let few = race(&words, &scores, 40, count, &mut NoiseRng::from_key([24; 32]));
                assert!(few.len() == count && (round % 2 == 1 || few == all[..count]), "{round} {count}");
            }
        }
    }
}
