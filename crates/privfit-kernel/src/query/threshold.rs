//! Labels that an ensemble is sure of, at the price of those that it is not sure of: sparse vector over distances to instability.
//!
//! *What it computes.* Models on parts vote on a point. The distance is max(0, floor((gap - 1) / 2)), the gap being that between the two labels
//! with most votes, ties to the lower label. If distance + noise is above a noisy threshold the winning label leaves as it is; otherwise nothing
//! leaves but that fact, and the threshold is drawn anew. After so many of those the test ends.
//!
//! *Privacy.* One unit changes one model, which moves one vote: the gap by at most 2, the distance by at most 1, under every adjacency alike; and
//! the distance is 0 wherever a neighbour has another winner (a test looks at all small votes). The gap less 1 moves by 2, and can be 1 where the
//! winner changes: published forms use it. Between two failures the answers are those of a sparse vector with threshold noise of scale l and query
//! noise of scale 2l for a sensitivity of 1: epsilon = 1/l + 2/(2l), pure. An unstable label leaves only if Lap(2l) - Lap(l) is above the threshold
//! w, which has the chance (4 e^(-w/2l) - e^(-w/l)) / 6; in each stretch at most one unstable query comes before its end, so that the chances of
//! as many as there are stretches are added to delta.
//!
//! *Reference.* Dwork and Roth 2014, section 3.6; distance to instability: Thakurta and Smith 2013.

use crate::account::Event;
use crate::audit::{Facts, Out};
use crate::engine::Needs;
use crate::error::{Error, Result};
use crate::mechanism::Sensitivity;
use crate::norm::{LInf, Norm};
use crate::quiet::quietly;
use crate::rng::Stream;
use crate::run::Query;
use crate::run::Run;
use crate::sampling::sampler::{Sampler, Shape};
use crate::value::Sensitive;

/// Scale of the threshold's noise in grid steps, as a power of two; that of a query is twice as large.
const BITS: u32 = 40;

/// What a test costs, and when it ends: public, before data are opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AboveThreshold {
    /// Grid steps of one unit of distance.
    step: u64,
    threshold: i64,
    failures: u64,
    delta: f64,
}

impl AboveThreshold {
    /// For this epsilon between two failures, so many failures, and a delta for all of them together.
    pub fn new(epsilon: f64, failures: u64, delta: f64) -> Result<AboveThreshold> {
        if !(epsilon > 1e-6 && epsilon < 1e3) {
            return Err(Error::domain("epsilon", epsilon, "give a number from 1e-6 to 1000"));
        }
        if !(1..=1_000_000_000).contains(&failures) {
            return Err(Error::domain("failures", failures, "give a whole number from 1 to a billion"));
        }
        let each = delta / failures as f64;
        if !(delta < 0.5 && each > 1e-290) {
            return Err(Error::domain("delta", delta, "give a number below 0.5, above 1e-290 for each failure"));
        }
        let scale = 2f64.powi(BITS as i32);
        // Two steps of 1/l each make the epsilon.
        let step = (0.5 * epsilon * scale).floor() as u64;
        // The discrete tail is the continuous one up to 2^-38 of it.
        let tail = |x: f64| (4.0 * (-0.5 * x).exp() - (-x).exp()) / 6.0 * (1.0 + 1e-9);
        let (mut low, mut high) = (0.0, 3000.0);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if tail(middle) > each { low = middle } else { high = middle }
        }
        Ok(AboveThreshold { step, threshold: (high * scale).ceil() as i64 + 2, failures, delta })
    }

    fn epsilon(&self) -> f64 {
        (2.0 * self.step as f64 / 2f64.powi(BITS as i32)).next_up()
    }

    /// Distance at which a label leaves with a chance of one half or more.
    pub fn distance(&self) -> f64 {
        self.threshold as f64 / self.step.max(1) as f64
    }

    fn stretch(&self) -> Event {
        Event::Pure { epsilon: self.epsilon(), replace_factor: 1.0 }
    }

    fn mistakes(&self) -> Event {
        Event::Approx { epsilon: f64::MIN_POSITIVE, delta: self.delta }
    }

    /// What the whole test costs.
    pub fn event(&self) -> Event {
        Event::Compose(vec![self.mistakes(), Event::AtMost { times: self.failures, event: Box::new(self.stretch()) }])
    }
}

/// A test that is going on. The noisy threshold stays in here.
pub struct OpenTest {
    test: AboveThreshold,
    level: Option<i64>,
    failed: u64,
    run: u64,
}

impl OpenTest {
    /// Whether it has failed as often as it may.
    pub fn has_ended(&self) -> bool {
        self.failed == self.test.failures
    }

    /// Whether the next answer begins a stretch, which is what costs: whoever keeps account elsewhere writes it down first.
    pub fn begins_stretch(&self) -> bool {
        self.level.is_none()
    }

    /// How often it has failed: released information.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}

impl Query<'_> for AboveThreshold {
    type Output = OpenTest;

    fn execute(self, run: &mut Run<'_>) -> Result<OpenTest> {
        run.seam.needs(Needs::Records)?;
        run.may_depend_on_order()?;
        run.record.admit(&run.planned, self.mistakes(), 1)?;
        Ok(OpenTest { test: self, level: None, failed: 0, run: run.id })
    }
}

/// Asks for the label of a point.
pub struct StableLabel<'a, M> {
    /// The test that pays.
    pub test: &'a mut OpenTest,
    /// Models on parts.
    pub models: &'a [Sensitive<Option<M>>],
    /// A model's label of a point.
    pub label: fn(&M, &[f32]) -> u32,
    /// The point; public.
    pub point: &'a [f32],
    /// Labels that there are.
    pub classes: usize,
}

/// The winner, ties to the lower label, and how many units must change before there can be another, less one.
fn margin(votes: &[u64]) -> (usize, u64) {
    let winner = (0..votes.len()).fold(0, |best, label| if votes[label] > votes[best] { label } else { best });
    let second = (0..votes.len()).filter(|label| *label != winner).map(|label| votes[label]).max().unwrap_or(0);
    let gap = votes.get(winner).copied().unwrap_or(0) - second;
    (winner, gap.saturating_sub(1) / 2)
}

impl<M> Query<'_> for StableLabel<'_, M> {
    type Output = Option<u32>;

    fn execute(self, run: &mut Run<'_>) -> Result<Option<u32>> {
        let (test, open) = (self.test.test, self.test);
        if open.run != run.id {
            return Err(Error::Mismatch { what: "the test belongs to another run" });
        }
        if open.has_ended() {
            return Err(Error::Mismatch { what: "the test has failed as often as it was planned for" });
        }
        run.of_one_partition(self.models)?;
        if self.classes < 2 {
            return Err(Error::domain("classes", self.classes, "give at least 2"));
        }
        let mut rng = run.entropy.rng(Stream::Noise)?;
        let mut draw = |bits: u32| {
            let mut noise = [0i64];
            Sampler::new(Shape::Laplace, bits).fill(&mut rng, &mut noise);
            noise[0]
        };
        let level = match open.level {
            Some(level) => level,
            None => {
                run.record.admit(&run.planned, test.stretch(), 1)?;
                *open.level.insert(test.threshold.saturating_add(draw(BITS)))
            }
        };
        let noise = draw(BITS + 1);
        let mut votes = vec![0u64; self.classes];
        for model in self.models {
            let vote = quietly(|| model.value.as_ref().map_or(usize::MAX, |m| (self.label)(m, self.point) as usize));
            if let Some(count) = votes.get_mut(vote.unwrap_or(usize::MAX)) {
                *count += 1;
            }
        }
        let (winner, distance) = margin(&votes);
        let passed = i128::from(distance) * i128::from(test.step) + i128::from(noise) > i128::from(level);
        let sensitivity = Sensitivity { zero_out: 1, replace_one: 1 };
        let facts =
            || Facts { what: "distance to another label", norm: LInf::NAME, sensitivity, event: test.stretch(), unit: 1.0 };
        let label = match run.on_release(facts, &[distance as i64], Out::Set(passed.then(|| vec![winner]), vec![winner])) {
            Out::Set(label, _) => label.and_then(|l| l.first().copied()),
            _ => None,
        };
        if label.is_none() {
            open.failed += 1;
            open.level = None;
        }
        Ok(label.map(|label| label as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_tests::train;
    use crate::tests::dataset;
    use crate::{Entropy, Learner, engine::Threads};

    /// All votes of up to nine models for three labels, some of them silent: one model more or less sure moves the distance by at most 1, and
    /// another winner is at distance 0 on both sides. The published distance, gap - 1, does neither.
    #[test]
    fn one_model_moves_the_distance_by_one() {
        let (mut moved, mut changed, mut published) = (0, 0, 0);
        for code in 0..10u64.pow(3) {
            let votes = [code % 10, code / 10 % 10, code / 100];
            if votes.iter().sum::<u64>() > 9 {
                continue;
            }
            let (winner, distance) = margin(&votes);
            let gap = |v: &[u64; 3]| {
                let mut sorted = *v;
                sorted.sort_unstable();
                sorted[2] - sorted[1]
            };
            // From a label, or from silence, to another label, or to silence.
            for from in 0..4 {
                for to in (0..4).filter(|to| *to != from) {
                    let mut other = votes;
                    if from < 3 && votes[from] == 0 {
                        continue;
                    }
                    if from < 3 {
                        other[from] -= 1;
                    }
                    if to < 3 {
                        other[to] += 1;
                    }
                    let (now, near) = margin(&other);
                    assert!(distance.abs_diff(near) <= 1, "{votes:?} {other:?}");
                    moved += u64::from(distance != near);
                    if now != winner {
                        changed += 1;
                        assert!(distance == 0 && near == 0, "{votes:?} {other:?}");
                        published += u64::from(gap(&votes).saturating_sub(1) > 0);
                    }
                    published += u64::from(gap(&votes).saturating_sub(1).abs_diff(gap(&other).saturating_sub(1)) > 1);
                }
            }
        }
        assert!(moved > 100 && changed > 100 && published > 100, "{moved} {changed} {published}");
    }

    fn ensemble(sure: bool) -> (crate::Dataset, Learner<f64>) {
        let learner = Learner { name: "size", parameters: vec![], train: |_, units, _| units.count() as f64 };
        (dataset(if sure { 4000 } else { 40 }, 2, false, None), learner)
    }

    /// It ends after exactly as many failures as were planned, sure answers cost nothing, and the whole fits in the plan.
    #[test]
    fn sure_labels_cost_nothing_and_failures_are_counted() {
        let test = AboveThreshold::new(1.0, 3, 1e-6).unwrap();
        let (data, learner) = ensemble(true);
        let (engine, entropy) = (Threads::new(2), Entropy::simulated(3));
        let mut run = Run::begin(&data, &engine, &entropy, &test.event()).unwrap();
        let parts = run.parts(300).unwrap();
        let models = run.execute(crate::Train { parts: &parts, learner: &learner, progress: &|| {} }).unwrap();
        let mut open = run.execute(test).unwrap();
        // All say 1, or half of them do.
        let all: fn(&f64, &[f32]) -> u32 = |_, _| 1;
        let half: fn(&f64, &[f32]) -> u32 = |size, _| u32::from(*size as u64 % 2 == 0);
        let mut ask = |run: &mut Run<'_>, label| {
            let (test, models, point) = (&mut open, &models[..], &[0.0f32][..]);
            let answer = run.execute(StableLabel { test, models, label, point, classes: 2 });
            (answer, open.failed(), open.has_ended())
        };
        for _ in 0..50 {
            assert!(matches!(ask(&mut run, all), (Ok(Some(1)), 0, false)));
        }
        for failed in 1..=3 {
            let (answer, now, ended) = ask(&mut run, half);
            assert!(answer.unwrap().is_none() && now == failed && ended == (failed == 3));
            assert_eq!(ask(&mut run, all).0.is_ok(), failed < 3);
        }
        run.close(()).unwrap();
        // Another run's test, and models of one part, are refused.
        let mut run = Run::begin(&data, &engine, &entropy, &test.event()).unwrap();
        let parts = run.parts(2).unwrap();
        let models = [train(&mut run, &parts[0], &learner), train(&mut run, &parts[0], &learner)];
        let query = StableLabel { test: &mut open, models: &models, label: all, point: &[0.0], classes: 2 };
        assert!(run.execute(query).is_err());
        let mut own = run.execute(test).unwrap();
        let query = StableLabel { test: &mut own, models: &models, label: all, point: &[0.0], classes: 2 };
        assert!(run.execute(query).is_err());
    }

    /// The closed form of the whole: epsilons of all stretches, and the delta of mistakes. Votes move alike under every adjacency.
    #[test]
    fn the_cost_is_that_of_its_stretches() {
        let (epsilon, failures, delta) = (0.3, 4, 1e-7);
        let test = AboveThreshold::new(epsilon, failures, delta).unwrap();
        let at = |adjacency, delta| crate::account::epsilon(&test.event(), adjacency, delta).map(|a| a.bound.upper);
        for adjacency in [crate::account::Adjacency::ZeroOut, crate::account::Adjacency::ReplaceOne] {
            let whole = at(adjacency, 1e-6).unwrap();
            assert!(whole <= failures as f64 * epsilon * (1.0 + 1e-6) && whole > 0.9 * failures as f64 * epsilon, "{whole}");
            assert!(at(adjacency, 0.5 * delta).is_err(), "mistakes are not free");
        }
    }

    /// Two worlds at one transcript: a model that turns with one record moves no distance by more than 1, and the second world gives the same
    /// answers to the bit.
    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        let test = AboveThreshold::new(2.0, 20, 0.01).unwrap();
        let learner: Learner<f64> = Learner {
            name: "mean label",
            parameters: vec![],
            train: |_, units, _| units.fold(0.0, |sum, unit| sum + f64::from(unit.label(0))),
        };
        let engine = Threads::new(1);
        let answers = |run: &mut Run<'_>| -> Vec<Option<u32>> {
            let parts = run.parts(12).unwrap();
            let models = run.execute(crate::Train { parts: &parts, learner: &learner, progress: &|| {} }).unwrap();
            let mut open = run.execute(test).unwrap();
            let label: fn(&f64, &[f32]) -> u32 = |sum, point| u32::from(*sum > f64::from(point[0]));
            let ask = |i: i32| {
                let (test, point) = (&mut open, &[i as f32 / 2.0][..]);
                run.execute(StableLabel { test, models: &models, label, point, classes: 2 }).unwrap()
            };
            (-9..9).map(ask).collect()
        };
        let mut moved = 0;
        for seed in 0..20 {
            let entropy = Entropy::simulated(seed);
            let first = dataset(60, 2, false, None);
            let mut run = Run::recorded(&first, &engine, &entropy, &test.event()).unwrap();
            let before = answers(&mut run);
            let transcript = run.transcript().unwrap();
            let other = dataset(60, 2, false, Some((7, Some(vec![0.1, 0.1]))));
            let entropy = Entropy::simulated(seed);
            let mut run = Run::replayed(&other, &engine, &entropy, &test.event(), &transcript).unwrap();
            assert_eq!(before, answers(&mut run));
            for movement in run.movements().unwrap() {
                assert!(movement.holds(crate::account::Adjacency::ReplaceOne), "{movement:?}");
                moved += movement.moved;
            }
        }
        assert!(moved > 0, "the record shows in no distance");
    }

    /// An unstable label leaves as often as delta says. 40,000 trials, false alarm below 1e-9.
    #[test]
    fn unstable_labels_leave_as_often_as_delta_says() {
        let delta = 0.04;
        let test = AboveThreshold::new(0.5, 1, delta).unwrap();
        let (mut rng, mut passed) = (crate::NoiseRng::from_key([4; 32]), 0u32);
        let trials = 40_000;
        let (mut level, mut query) = (vec![0i64; trials], vec![0i64; trials]);
        Sampler::new(Shape::Laplace, BITS).fill(&mut rng, &mut level);
        Sampler::new(Shape::Laplace, BITS + 1).fill(&mut rng, &mut query);
        level.iter().zip(&query).for_each(|(l, q)| passed += u32::from(*q > test.threshold + l));
        let expected = delta * trials as f64;
        assert!((f64::from(passed) - expected).abs() < 6.2 * expected.sqrt(), "{passed} {expected}");
        for bad in [0.0, 0.5, f64::NAN] {
            assert!(AboveThreshold::new(1.0, 1, bad).is_err());
        }
        assert!(AboveThreshold::new(0.0, 1, 0.1).is_err() && AboveThreshold::new(1.0, 0, 0.1).is_err());
    }
}
