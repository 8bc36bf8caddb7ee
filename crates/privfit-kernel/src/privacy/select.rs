//! The exponential mechanism, exactly: an exponential race with lazily refined clocks.
//!
//! Item i wins if E_i e^-(score_i / scale) is the smallest, E_i = -ln U_i with U_i uniform: P(i) is proportional to
//! e^(score_i / scale). The first 64 bits of every U_i are drawn before the scores exist, so neither their number nor the time
//! to draw them depends on data. Doubles decide unless two clocks are within their error, about once in 2^40 races; then more
//! bits are drawn and compared to any precision. A double Gumbel would never choose an item 41 scales below the top.

use super::exact;
use super::rng::{NoiseRng, Words};
use std::cmp::Ordering;

struct Clock {
    /// score/scale - ln E, and its error.
    key: f64,
    error: f64,
    words: Vec<u64>,
}

/// The `count` first items of the race, in order.
pub(crate) fn race(first: &[i64], scores: &[i64], bits: u32, count: usize, more: &mut NoiseRng) -> Vec<usize> {
    let scale = 0.5f64.powi(bits as i32);
    let mut clocks: Vec<Clock> = first
        .iter()
        .zip(scores)
        .map(|(word, score)| {
            let word = *word as u64;
            let u = (word as f64 + 0.5) * 0.5f64.powi(64);
            // -ln u for u close to 1 without cancellation.
            let e = if word > u64::MAX / 2 { -(-((u64::MAX - word) as f64 + 0.5) * 0.5f64.powi(64)).ln_1p() } else { -u.ln() };
            let level = *score as f64 * scale;
            let relative = 0.5f64.powi(63) / (u * e);
            let error = relative + 0.5f64.powi(44) * (1.0 + level.abs() + e.ln().abs());
            // Near either end of the unit interval 64 bits say little.
            let vague = !(1 << 20..=u64::MAX - (1 << 20)).contains(&word);
            Clock { key: level - e.ln(), error: if vague { f64::INFINITY } else { error }, words: vec![word] }
        })
        .collect();
    let mut order: Vec<usize> = (0..clocks.len()).collect();
    let count = count.min(order.len());
    let mut compare = |a: usize, b: usize| -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let (x, y) = (&clocks[a], &clocks[b]);
        if (x.key - y.key).abs() > x.error + y.error {
            // The larger key comes first.
            return y.key.total_cmp(&x.key);
        }
        let gap = i128::from(scores[a]) - i128::from(scores[b]);
        loop {
            if let Some(first) = exact::race(&clocks[a].words, &clocks[b].words, gap >= 0, gap.unsigned_abs(), bits) {
                return if first { Ordering::Less } else { Ordering::Greater };
            }
            clocks[a].words.push(more.word());
            clocks[b].words.push(more.word());
        }
    };
    if count < order.len() {
        order.select_nth_unstable_by(count, |a, b| compare(*a, *b));
        order.truncate(count);
    }
    order.sort_by(|a, b| compare(*a, *b));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(rng: &mut NoiseRng, n: usize) -> Vec<i64> {
        (0..n).map(|_| rng.word() as i64).collect()
    }

    /// Frequencies of the winner, and of the second, against the exact law.
    #[test]
    fn law_of_the_race() {
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
}
