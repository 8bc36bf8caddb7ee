//! Metrics from noisy sums, each with its error.
//!
//! *Claim.* All of this is post-processing. What goes in are sums that were released with noise, the standard deviation of that noise, and
//! public facts: the number of records, the classes, the bounds of the target. A value, its error and whether it is withheld depend on
//! nothing else, so none of the three costs anything.
//!
//! *Error.* `noise` is the standard deviation of a metric, by its derivatives in the sums at their noisy values. A metric is divided by
//! noisy sums; they stand two deviations lower in the error, so that a sum which is large by chance does not make the error small. `bias` is
//! how far bins of scores can move the area under the curve: pairs within one bin count half.
//!
//! *Withheld* is a metric whose interval, of two deviations and the bias to either side, is as wide as the way from knowing nothing to perfect:
//! it could not tell one from the other.

use crate::schema::TargetValues;
use serde::{Deserialize, Serialize};

/// Bins of scores for the area under the curve.
pub(crate) const BINS: usize = 32;

/// Losses of a prediction are clipped at this many nats.
pub(crate) const LONGEST_LOSS: f64 = 8.0;

/// A metric with its error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name, as `evaluate` has it.
    pub name: String,
    /// Its value; none if it is withheld.
    pub value: Option<f64>,
    /// Standard deviation of the noise in it; none if the noise hides even that.
    pub noise: Option<f64>,
    /// How far it may be off beside the noise, where it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<f64>,
}

impl Metric {
    /// Withheld if its interval is as wide as the way from knowing nothing to perfect. An error that is not a number hides everything.
    fn new(name: &str, value: f64, noise: f64, bias: Option<f64>, width: f64) -> Metric {
        let error = 2.0 * noise + bias.unwrap_or(0.0);
        let shown = value.is_finite() && error < 0.5 * width;
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        Metric { name: name.into(), value: finite(value).filter(|_| shown), noise: finite(noise), bias: bias.and_then(finite) }
    }

    /// For people.
    pub fn text(&self) -> String {
        let noise = self.noise.map_or(String::new(), |n| format!("noise +- {n:.4}"));
        let bias = self.bias.map_or(String::new(), |b| format!(", bins +- {b:.4}"));
        match (self.value, self.noise) {
            (Some(value), _) if self.name == "rows" => format!("{value:.0}  ({noise}{bias})"),
            (Some(value), _) => format!("{value:.6}  ({noise}{bias})"),
            (None, Some(_)) => format!("withheld: its error hides it ({noise}{bias}); take more rows or a larger epsilon"),
            (None, None) => "withheld: noise hides it, and how far too; take more rows or a larger epsilon".into(),
        }
    }
}

/// Noisy sums, and the standard deviation of the noise on each.
pub(crate) struct Sums<'a> {
    pub(crate) sums: &'a [f64],
    pub(crate) deviation: f64,
    /// Public number of records.
    pub(crate) rows: u64,
}

impl Sums<'_> {
    /// Records with a known label: what shares are of.
    fn known(&self) -> f64 {
        self.sums[0].max(1.0)
    }

    /// The same, two deviations lower; nothing can be said about shares if that is nothing.
    fn surely(&self) -> f64 {
        lower(self.sums[0], self.deviation)
    }

    /// A share of the known records.
    fn share(&self, i: usize) -> f64 {
        (self.sums[i] / self.known()).max(0.0).min(1.0)
    }

    /// Standard deviation of a share.
    fn noise(&self, i: usize) -> f64 {
        self.deviation / self.surely() * (1.0 + self.share(i).powi(2)).sqrt()
    }

    fn counted(&self) -> Metric {
        let known = self.sums[0].round().max(0.0);
        Metric::new("rows", known, self.deviation, None, self.rows as f64)
    }

    /// Metrics of classes; `probabilities` and `ranked` say whether there are a log loss and an area under the curve.
    pub(crate) fn classes(&self, classes: usize, probabilities: bool, ranked: bool) -> Vec<Metric> {
        let guess = 1.0 / classes.max(2) as f64;
        let mut out = vec![self.counted(), Metric::new("accuracy", self.share(1), self.noise(1), None, 1.0 - guess)];
        if probabilities {
            let (value, noise) = (LONGEST_LOSS * self.share(2), LONGEST_LOSS * self.noise(2));
            out.push(Metric::new("log_loss", value, noise, None, -guess.ln()));
        }
        if ranked {
            let (value, noise, bias) = area(&self.sums[3..3 + BINS], &self.sums[3 + BINS..], self.deviation);
            out.push(Metric::new("auc", value, noise, Some(bias), 0.5));
        }
        out
    }

    /// Metrics of a number with bounds.
    pub(crate) fn number(&self, target: &TargetValues) -> Vec<Metric> {
        let range = match target {
            TargetValues::Bounds(low, high) => high - low,
            _ => 2.0,
        };
        let (square, error) = (self.share(1), 2.0 * self.noise(1));
        // The root is not straight: two deviations to either side, and half of the longer one.
        let root = ((square + error).sqrt() - square.sqrt()).max(square.sqrt() - (square - error).max(0.0).sqrt());
        let (r2, noise) = self.r2();
        vec![
            self.counted(),
            Metric::new("rmse", range * square.sqrt(), 0.5 * range * root, None, 0.5 * range),
            Metric::new("mae", range * self.share(2), range * self.noise(2), None, 0.5 * range),
            Metric::new("r2", r2, noise, None, 1.0),
        ]
    }

    /// One minus the squared error over the variance of the target, with its standard deviation. Targets are in -1 ... 1, errors half as large.
    fn r2(&self) -> (f64, f64) {
        let (n, sd) = (self.surely(), self.deviation);
        let (error, mean, square) = (self.share(1), 2.0 * self.share(3) - 1.0, self.share(4));
        let variance = square - mean * mean;
        // Derivatives of the variance in the sums of squares, of targets, and in their number; times the number.
        let by = [1.0, -4.0 * mean, 4.0 * mean * self.share(3) - square];
        let least = lower(variance, sd / n * by.iter().map(|d| d * d).sum::<f64>().sqrt());
        let ratio = 4.0 * error / least;
        let through = [-4.0 / least, ratio / least * by[0], ratio / least * by[1], ratio / least * by[2] + ratio];
        (1.0 - 4.0 * error / variance, sd / n * through.iter().map(|d| d * d).sum::<f64>().sqrt())
    }
}

/// Two deviations below a value; 0 if nothing is left, so that an error which is divided by it is infinite or not a number.
fn lower(value: f64, deviation: f64) -> f64 {
    Some(value - 2.0 * deviation).filter(|x| *x > 0.0).unwrap_or(0.0)
}

/// Area under the curve from counts by bin, of the one class and of the other, with the deviation of its noise and what bins may hide.
/// Noise below 0 stays in the counts: clipped it would pull towards a half.
fn area(zeros: &[f64], ones: &[f64], sd: f64) -> (f64, f64, f64) {
    let bins = zeros.len() as f64;
    let (all_zeros, all_ones): (f64, f64) = (zeros.iter().sum(), ones.iter().sum());
    let (least_zeros, least_ones) = (lower(all_zeros, sd * bins.sqrt()), lower(all_ones, sd * bins.sqrt()));
    let (mut below, mut pairs, mut above) = (0.0, 0.0, all_ones);
    let mut middles = Vec::with_capacity(zeros.len());
    for (z, o) in zeros.iter().zip(ones) {
        above -= o;
        pairs += o * (below + 0.5 * z);
        middles.push(((below + 0.5 * z) / all_zeros, (above + 0.5 * o) / all_ones));
        below += z;
    }
    let area = (pairs / (all_zeros * all_ones)).max(0.0).min(1.0);
    let by_ones: f64 = middles.iter().map(|m| (m.0 - area).powi(2)).sum();
    let by_zeros: f64 = middles.iter().map(|m| (m.1 - area).powi(2)).sum();
    // Noise of the one class times noise of the other, which derivatives do not see.
    let both = sd.powi(4) * bins * (2.0 * bins - 1.0) / 4.0 / (least_zeros * least_ones).powi(2);
    let noise = (sd * sd * (by_ones / least_ones.powi(2) + by_zeros / least_zeros.powi(2)) + both).sqrt();
    // Pairs within one bin, two deviations up: they count half, and may all be one way or the other.
    let tied: f64 = zeros.iter().zip(ones).map(|(z, o)| z * o).sum();
    let squares: f64 = zeros.iter().chain(ones).map(|c| c * c).sum();
    let bias = 0.5 * (tied.max(0.0) + 2.0 * sd * squares.sqrt()) / (least_zeros * least_ones);
    (area, noise, bias.min(0.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_like::normal;

    /// Noise for tests: the sum of twelve uniform numbers, from a fixed sequence.
    mod rand_like {
        pub(super) fn normal(state: &mut u64) -> f64 {
            let mut sum = -6.0;
            for _ in 0..12 {
                *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                sum += (*state >> 11) as f64 / (1u64 << 53) as f64;
            }
            sum
        }
    }

    #[test]
    fn areas_by_hand() {
        let area = |zeros: &[f64], ones: &[f64]| super::area(zeros, ones, 0.0);
        assert_eq!(area(&[1.0, 0.0], &[0.0, 1.0]), (1.0, 0.0, 0.0));
        assert_eq!(area(&[0.0, 1.0], &[1.0, 0.0]), (0.0, 0.0, 0.0));
        assert_eq!(area(&[2.0, 2.0], &[1.0, 3.0]).0, (1.0 + 3.0 * 3.0) / 16.0);
        assert_eq!(area(&[2.0, 2.0], &[1.0, 3.0]).2, 0.5 * 8.0 / 16.0, "half of the pairs in one bin");
        assert!(area(&[-5.0, 0.0], &[0.0, 0.0]).1.is_nan(), "no class, no error that could be stated");
    }

    /// Exact sums of a model on so many rows: the positive class has higher scores.
    fn exact(rows: f64) -> Vec<f64> {
        let mut sums = vec![rows, 0.7 * rows, 0.55 / LONGEST_LOSS * rows];
        let weight = |i: usize, up: bool| 1.0 + if up { i as f64 } else { (BINS - 1 - i) as f64 };
        let total: f64 = (0..BINS).map(|i| weight(i, true)).sum();
        sums.extend((0..BINS).map(|i| 0.6 * rows * weight(i, false) / total));
        sums.extend((0..BINS).map(|i| 0.4 * rows * weight(i, true) / total));
        sums
    }

    /// What is not withheld is within its error, and what is withheld would have said nothing. The sequence is fixed: nothing is
    /// left to chance.
    #[test]
    fn shown_metrics_are_within_their_errors() {
        let mut state = 7;
        for (rows, deviation, shown_auc) in
            [(400.0, 20.0, false), (4000.0, 20.0, true), (40_000.0, 20.0, true), (60.0, 20.0, false)]
        {
            let truth = exact(rows);
            let clean = Sums { sums: &truth, deviation: 0.0, rows: rows as u64 }.classes(2, true, true);
            let (mut missed, mut shown) = ([0; 4], [0; 4]);
            for _ in 0..1000 {
                let noisy: Vec<f64> = truth.iter().map(|t| t + deviation * normal(&mut state)).collect();
                let found = Sums { sums: &noisy, deviation, rows: rows as u64 }.classes(2, true, true);
                for (i, (metric, clean)) in found.iter().zip(&clean).enumerate() {
                    let Some(value) = metric.value else { continue };
                    shown[i] += 1;
                    missed[i] += u32::from((value - clean.value.unwrap()).abs() > 2.0 * metric.noise.unwrap());
                    assert!(metric.bias.is_none_or(|b| b > 0.01 && b < 0.12), "{metric:?}");
                }
            }
            assert!(missed.iter().all(|m| *m <= 90), "{rows}: {missed:?} of {shown:?}");
            assert_eq!(shown[3] > 500, shown_auc, "{rows}: {shown:?}");
            assert!(shown_auc || shown[3] < 50, "{rows}: {shown:?}");
        }
    }

    /// The same for numbers.
    #[test]
    fn shown_metrics_of_numbers_are_within_their_errors() {
        let mut state = 8;
        let target = TargetValues::Bounds(0.0, 10.0);
        for (rows, deviation) in [(500.0, 20.0), (5000.0, 20.0), (50_000.0, 20.0)] {
            // Mean -0.2, variance 0.3, and errors that leave a quarter of it.
            let truth = [rows, rows * 0.3 / 16.0, rows * 0.1, rows * 0.4, rows * 0.34];
            let clean = Sums { sums: &truth, deviation: 0.0, rows: rows as u64 }.number(&target);
            assert!((clean[3].value.unwrap() - 0.75).abs() < 1e-12, "{clean:?}");
            let mut missed = [0; 4];
            for _ in 0..1000 {
                let noisy: Vec<f64> = truth.iter().map(|t| t + deviation * normal(&mut state)).collect();
                let found = Sums { sums: &noisy, deviation, rows: rows as u64 }.number(&target);
                for (i, (metric, clean)) in found.iter().zip(&clean).enumerate() {
                    let off = |value: f64| (value - clean.value.unwrap()).abs() > 2.0 * metric.noise.unwrap();
                    missed[i] += u32::from(metric.value.is_some_and(off));
                }
            }
            assert!(missed.iter().all(|m| *m <= 90), "{rows}: {missed:?}");
        }
        // Nothing at all: every name is there, and nothing is shown.
        for found in [Sums { sums: &[-3.0; 5], deviation: 20.0, rows: 40 }.number(&target)] {
            assert!(found.len() == 4 && found.iter().all(|m| m.value.is_none()), "{found:?}");
        }
    }
}
