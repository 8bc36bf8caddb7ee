//! What noisy counts say about a column: how much of it lies in each cell, never negative and adding up to 1. Post-processing of released numbers.

/// Neighbouring cells are taken together until their count is so many standard deviations of its noise.
const STANDS_OUT: f64 = 2.0;
/// A cell whose own count is so many of them shares with none before it.
const ALONE: f64 = 4.0;

/// Shares of the cells of a category, from counts with noise of this deviation.
pub(super) fn shares(counts: &[f64], deviation: f64) -> Vec<f64> {
    normalised(counts.iter().map(|c| (c - deviation).max(0.0) + 0.3 * deviation).collect())
}

/// Shares of cells that have an order: neighbours are merged until they stand out of the noise, and share evenly what they have.
pub(super) fn ordered_shares(counts: &[f64], deviation: f64) -> Vec<f64> {
    let mut bins: Vec<(usize, f64)> = Vec::new();
    let (mut cells, mut sum) = (0usize, 0.0f64);
    for count in counts {
        if cells > 0 && *count > ALONE * deviation {
            bins.push((cells, sum.max(0.0)));
            (cells, sum) = (0, 0.0);
        }
        cells += 1;
        sum += count;
        if sum > STANDS_OUT * deviation * (cells as f64).sqrt() {
            bins.push((cells, sum));
            (cells, sum) = (0, 0.0);
        }
    }
    match bins.last_mut() {
        Some(last) => *last = (last.0 + cells, (last.1 + sum).max(0.0)),
        None => return vec![1.0 / counts.len().max(1) as f64; counts.len()],
    }
    let even = bins.iter().flat_map(|(cells, sum)| std::iter::repeat_n(sum / *cells as f64, *cells));
    let total: f64 = bins.iter().map(|b| b.1).sum();
    // A thousandth is spread over all cells, so that none has nothing.
    normalised(even.map(|share| share + 1e-3 * total / counts.len() as f64).collect())
}

fn normalised(mut shares: Vec<f64>) -> Vec<f64> {
    let sum: f64 = shares.iter().sum();
    match sum > 0.0 && sum.is_finite() {
        true => shares.iter_mut().for_each(|s| *s /= sum),
        false => shares = vec![1.0 / shares.len().max(1) as f64; shares.len()],
    }
    shares
}

/// The rank of the middle of each cell.
pub(super) fn ranks(shares: &[f64]) -> Vec<f64> {
    let mut below = 0.0;
    let rank = |share: &f64| {
        below += share;
        below - share / 2.0
    };
    shares.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_follow_counts() {
        for counts in [vec![5.0, 100.0, 0.0, 45.0], vec![-3.0, -4.0], vec![0.0; 9], vec![f64::NAN, 1.0], vec![1e300, 1e300]] {
            for shares in [shares(&counts, 2.0), ordered_shares(&counts, 2.0)] {
                assert!(
                    (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9 && shares.iter().all(|s| *s >= 0.0),
                    "{counts:?} {shares:?}"
                );
                assert_eq!(shares.len(), counts.len());
            }
        }
        // Cells that do not stand out share with a neighbour.
        let merged = ordered_shares(&[100.0, 1.0, 1.0, 6.0], 2.0);
        assert!((merged[0] - 0.925).abs() < 0.01 && (merged[1] - merged[3]).abs() < 1e-12 && merged[1] > 0.02, "{merged:?}");
        // A cell that stands out keeps what it has, also after empty ones.
        let alone = ordered_shares(&[1.0, -1.0, 0.5, 100.0, 100.0, 0.0], 2.0);
        assert!(alone[3] > 0.47 && alone[..3].iter().all(|s| *s < 0.01), "{alone:?}");
        assert_eq!(ranks(&[0.5, 0.25, 0.25]), [0.25, 0.625, 0.875]);
    }
}
