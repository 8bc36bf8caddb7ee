//! Which coordinates: chosen by their scores, by size, or as they are if nobody could change them.

use crate::account::Event;
use crate::audit::{Facts, Out};
use crate::engine::Needs;
use crate::error::disagree;
use crate::error::{Error, Result};
use crate::mechanism::{Exponential, Sensitivity};
use crate::norm::{LInf, Norm};
use crate::rng::Stream;
use crate::run::Query;
use crate::run::{Run, facts};
use crate::sampling::sampler::{Sampler, Shape};
use crate::sampling::select::race;
use crate::value::{Bounded, Noise, Support};

/// Chooses coordinates with the highest scores by the exponential mechanism, one after the other.
pub struct Choose<'a, 'id> {
    /// The randomness of the choice.
    pub arrival_times: Noise<'id, LInf>,
    /// The scores.
    pub scores: &'a Bounded<'id, LInf>,
    /// For which the scores were summed.
    pub mechanism: &'a Exponential,
    /// How many.
    pub count: usize,
}

impl Query<'_> for Choose<'_, '_> {
    type Output = Support;

    fn execute(self, run: &mut Run<'_>) -> Result<Support> {
        let totals = run.seam.collect(self.scores.values.clone())?;
        pick(run, self.arrival_times, self.scores, &totals, self.mechanism, self.count, &[])
    }
}

/// Chooses the coordinates that are largest in size by the exponential mechanism, one after the other, leaving out some that are public. Sizes
/// move by no more than the values do.
pub struct ChooseLargest<'a, 'id> {
    /// The randomness of the choice.
    pub arrival_times: Noise<'id, LInf>,
    /// The values.
    pub values: &'a Bounded<'id, LInf>,
    /// For which the values were summed.
    pub mechanism: &'a Exponential,
    /// How many.
    pub count: usize,
    /// Coordinates to leave out.
    pub except: &'a [usize],
}

impl Query<'_> for ChooseLargest<'_, '_> {
    type Output = Support;

    fn execute(self, run: &mut Run<'_>) -> Result<Support> {
        if self.values.mirrored {
            return Err(Error::Mismatch { what: "vertices have a sign: use Choose, or gradient_coordinates" });
        }
        // Values on this path are below 2^62 in size, so that a size is a score.
        let mut sizes = run.seam.collect(self.values.values.clone())?;
        sizes.iter_mut().for_each(|v| *v = v.saturating_abs());
        pick(run, self.arrival_times, self.values, &sizes, self.mechanism, self.count, self.except)
    }
}

/// The race over scores made of a bounded value, each of which moves by no more than the value.
fn pick<'id>(
    run: &mut Run<'_>,
    arrival_times: Noise<'id, LInf>,
    values: &Bounded<'id, LInf>,
    scores: &[i64],
    mechanism: &Exponential,
    count: usize,
    except: &[usize],
) -> Result<Support> {
    if mechanism.grid != values.grid {
        return Err(Error::Mismatch { what: "the scores were summed for another mechanism" });
    }
    let mut taken = vec![false; scores.len()];
    except.iter().filter(|i| **i < scores.len()).for_each(|i| taken[*i] = true);
    let open: Vec<usize> = (0..scores.len()).filter(|i| !taken[*i]).collect();
    let count = count.min(open.len());
    run.admit(&arrival_times, values, mechanism.event(), count as u64)?;
    let mut more = run.entropy.rng(Stream::Noise)?;
    let bits = values.grid.bits;
    let indices = if except.is_empty() {
        race(&arrival_times.values, scores, bits, count, &mut more)
    } else {
        let of = |from: &[i64]| -> Vec<i64> { open.iter().map(|i| from[*i]).collect() };
        let won = race(&of(&arrival_times.values), &of(scores), bits, count, &mut more);
        won.into_iter().map(|i| open[i]).collect()
    };
    // What the first process chose counts.
    let agreed = run.seam.agree(&indices.iter().map(|i| *i as u64).collect::<Vec<_>>())?;
    if agreed.len() != count {
        return Err(disagree());
    }
    let indices = agreed.into_iter().map(|i| i as usize).collect();
    let facts = || facts::<LInf>(values.grid, mechanism.event().repeated(count.max(1) as u64), values.origin.rate);
    Ok(match run.on_release(facts, scores, Out::Indices(indices)) {
        Out::Indices(indices) => Support { indices },
        _ => Support { indices: Vec::new() },
    })
}

/// A test of whether a set of coordinates is stable enough to be released as it is (propose, test, release).
///
/// The gap between the last chosen and the first other score falls by at most twice the sensitivity when one unit changes, so the number of units
/// that must change before the set can is at least ceil(gap / 2 sensitivity) - 1. That number moves by one with one unit, and is 0 on both of
/// two neighbours whose sets differ, ties included. It gets Laplace noise of scale 1/epsilon and must exceed ln(1/(2 delta))/epsilon:
/// an unstable set passes with a probability of at most delta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StabilityTest {
    /// One unit's step on the grid of the noise, whose scale is 2^40.
    step: u64,
    threshold: i64,
    delta: f64,
}

const TEST_BITS: u32 = 40;

impl StabilityTest {
    /// For this epsilon and delta, under zero-out; replace-one costs what two zero-outs do.
    pub fn new(epsilon: f64, delta: f64) -> Result<StabilityTest> {
        if !(epsilon > 1e-6 && epsilon < 1e3) {
            return Err(Error::domain("epsilon", epsilon, "give a number from 1e-6 to 1000"));
        }
        if !(1e-300..0.5).contains(&delta) {
            return Err(Error::domain("delta", delta, "give a number from 1e-300 to 0.5"));
        }
        let scale = 2f64.powi(TEST_BITS as i32);
        let step = (epsilon * scale).floor() as u64;
        // P(noise > t) = q^(t+1) / (1 + q) with q = e^(-1/scale), and 1 + q > 2 - 2^-40.
        let threshold = (scale * ((1.0 / (2.0 * delta)).ln() + 1e-9)).ceil() as i64;
        Ok(StabilityTest { step, threshold, delta })
    }

    /// What the test costs, whatever it says.
    pub fn event(&self) -> Event {
        Event::Approx { epsilon: (self.step as f64 / 2f64.powi(TEST_BITS as i32)).next_up(), delta: self.delta }
    }
}

/// The `count` largest in size, ties to the lowest index, in ascending order; and how many units must change before that can change, less one.
fn largest(values: &[i64], count: usize, sensitivity: u64, except: &[usize]) -> (Vec<usize>, u64) {
    let mut order: Vec<usize> = (0..values.len()).filter(|i| !except.contains(i)).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(values[*i].unsigned_abs()), *i));
    let gap = match (count.checked_sub(1).and_then(|c| order.get(c)), order.get(count)) {
        (Some(last), Some(first)) => values[*last].unsigned_abs() - values[*first].unsigned_abs(),
        // All or none of them: nothing to change.
        _ => u64::MAX,
    };
    order.truncate(count);
    // The proof is about the set. Which of its members is the largest may change with one unit although the set cannot.
    order.sort_unstable();
    (order, gap.div_ceil(2 * sensitivity).saturating_sub(1))
}

/// The coordinates that are largest in size as they are, or nothing if one unit might have changed them. Some public ones are left out.
pub struct StableSupport<'a, 'id> {
    /// The values.
    pub values: &'a Bounded<'id, LInf>,
    /// How sure.
    pub test: &'a StabilityTest,
    /// How many.
    pub count: usize,
    /// Coordinates to leave out.
    pub except: &'a [usize],
}

impl Query<'_> for StableSupport<'_, '_> {
    type Output = Option<Support>;

    fn execute(self, run: &mut Run<'_>) -> Result<Option<Support>> {
        if self.values.run != run.id || self.values.mirrored || self.values.origin.rate.is_some() {
            return Err(Error::Mismatch { what: "a stability test needs coordinates of this run, of everyone" });
        }
        if self.values.origin.order_dependent {
            run.may_depend_on_order()?;
        }
        run.seam.needs(Needs::Totals)?;
        let mut noise = [0i64];
        let mut rng = run.seam.secret(run.entropy, Stream::Noise)?;
        Sampler::new(Shape::Laplace, TEST_BITS).fill(&mut rng, &mut noise);
        run.record.admit(&run.planned, self.test.event(), 1)?;
        run.order_dependent |= self.values.origin.order_dependent;
        let totals = run.seam.collect(self.values.values.clone())?;
        let (indices, distance) = largest(&totals, self.count, self.values.grid.sensitivity.zero_out, self.except);
        let level = i128::from(distance) * i128::from(self.test.step) + i128::from(noise[0]);
        let passed = level > i128::from(self.test.threshold);
        let sensitivity = Sensitivity { zero_out: 1, replace_one: 2 };
        let facts =
            || Facts { what: "distance to another set", norm: LInf::NAME, sensitivity, event: self.test.event(), unit: 1.0 };
        let out = Out::Set(passed.then(|| indices.clone()), indices);
        Ok(match run.on_release(facts, &[distance.min(1 << 40) as i64], out) {
            Out::Set(indices, _) => indices.map(|indices| Support { indices }),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neighbours whose sets differ are both at distance zero, and the distance moves by at most one; every pair of small scores.
    #[test]
    fn distance_is_zero_where_a_neighbour_differs() {
        let scores = |code: u32| [code % 8, code / 8 % 8, code / 64].map(|x| i64::from(x) - 3);
        let mut differ = 0;
        for a in 0..512 {
            for b in 0..512 {
                let (x, y) = (scores(a), scores(b));
                for sensitivity in [1u64, 2] {
                    if x.iter().zip(&y).any(|(p, q)| p.abs_diff(*q) > sensitivity) {
                        continue;
                    }
                    for count in [1, 2] {
                        let (s, d) = largest(&x, count, sensitivity, &[]);
                        let (t, e) = largest(&y, count, sensitivity, &[]);
                        assert!(d.abs_diff(e) <= 1, "{x:?} {y:?}");
                        if s != t {
                            differ += 1;
                            assert!(d == 0 && e == 0, "{x:?} {y:?} {count} {sensitivity}");
                        }
                    }
                }
            }
        }
        assert!(differ > 1000);
    }

    /// One unit may swap the two largest of a set that nobody can change; what is released must be the same.
    #[test]
    fn order_inside_of_a_stable_set_is_not_released() {
        let (a, far) = largest(&[100, 101, 3], 2, 1, &[]);
        let (b, _) = largest(&[101, 100, 3], 2, 1, &[]);
        assert!(a == b && far > 40);
    }

    #[test]
    fn threshold_has_the_tail_that_delta_allows() {
        for delta in [1e-12, 1e-5, 0.01, 0.3] {
            let test = StabilityTest::new(0.7, delta).unwrap();
            let tail = 0.5 * (-(test.threshold as f64) / 2f64.powi(40)).exp();
            assert!(tail <= delta && tail > 0.999_99 * delta, "{tail}");
        }
        assert!(StabilityTest::new(0.0, 0.1).is_err() && StabilityTest::new(1.0, 0.0).is_err());
    }
}
