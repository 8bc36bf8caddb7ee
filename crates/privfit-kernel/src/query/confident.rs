//! Votes of an ensemble with noise, where the ensemble is sure: a noisy threshold on the largest count, then noisy counts, whose largest is the label.
//!
//! *What it computes.* Models on parts vote on a public point. Noise is added to the number of votes of the most frequent label; below a public
//! threshold nothing leaves but that fact. Otherwise all counts leave with noise of their own. After so many points, or so many answers, it ends.
//!
//! *Privacy.* One unit changes one model, which may go from any label or none to any other: the largest count moves by at most 1 and the counts by at
//! most sqrt 2 in L2, under zero-out and replace-one alike; halving either for zero-out would be wrong, since the model may change altogether. Each
//! test is a Gaussian release with mu = 1/s1, each answer one with mu = sqrt 2/s2, noise drawn before counts exist. All tests are charged when
//! it begins, however many are made, and answers as they leave, at most as many as planned: which point is answered is decided by what left before,
//! and Gaussian releases in an order that is chosen on the way compose as in any other: mu^2 <= tests/s1^2 + 2 answers/s2^2 (fully adaptive
//! composition). The Renyi divergence of order alpha is alpha tests/(2 s1^2) + alpha answers/s2^2. Nothing in this depends on the votes.
//! Add-remove is refused: there the number of units is private, and parts are lists of unit indices.
//!
//! *Reference.* Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson 2018 (Confident-GNMax); Smith and Thakurta 2022 (adaptive composition).

use super::ensemble::Votes;
use crate::account::Event;
use crate::audit::{Facts, Out};
use crate::engine::Needs;
use crate::error::{Error, Result};
use crate::mechanism::{Gaussian, GridKind, Mechanism, Sensitivity};
use crate::norm::{LInf, Norm};
use crate::quiet::quietly;
use crate::rng::Stream;
use crate::run::{Query, Run};
use crate::sampling::sampler::{Sampler, Shape};
use crate::value::Sensitive;

/// Scale of the noise of a test in grid steps, as a power of two.
const BITS: u32 = 40;
/// Most models, points and classes: sums of votes on the grid stay far from 2^63.
const MOST: u64 = 1 << 20;

/// The noisy test of the largest count.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Test {
    /// Grid steps of one vote.
    vote: u64,
    /// Votes at which it passes half of the time.
    threshold: f64,
}

/// What answers cost, and how many there are: public, before data are opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidentVotes {
    test: Option<Test>,
    answer: Gaussian,
    classes: usize,
    points: u64,
    answers: u64,
}

impl ConfidentVotes {
    /// At most so many answers among so many points. Noise of an answer over sqrt 2, the sensitivity of counts; and, where there is a test, its threshold
    /// in votes and its noise in votes.
    pub fn new(
        classes: usize,
        (points, answers): (u64, u64),
        noise_multiplier: f64,
        test: Option<(f64, f64)>,
    ) -> Result<ConfidentVotes> {
        if !(2..=MOST as usize).contains(&classes) {
            return Err(Error::domain("classes", classes, "give a whole number from 2 to a million"));
        }
        if !(1..=MOST).contains(&points) || !(1..=points).contains(&answers) {
            return Err(Error::domain(
                "answers",
                format!("{answers} of {points}"),
                "give at least one, and at most one for each of a million points",
            ));
        }
        if test.is_none() && answers < points {
            return Err(Error::domain("answers", answers, "without a test every point is answered: give as many as points"));
        }
        let test = test.map(|(threshold, deviation)| {
            if !(threshold.is_finite() && threshold >= 0.0 && threshold <= MOST as f64) {
                return Err(Error::domain("threshold", threshold, "give a number of votes, at most a million"));
            }
            let vote = (2f64.powi(BITS as i32) / deviation).floor();
            if !(deviation.is_finite() && (1.0..2f64.powi(42)).contains(&vote)) {
                return Err(Error::domain("noise of the test", deviation, "give a number of votes from 0.25 to 1e12"));
            }
            Ok(Test { vote: vote as u64, threshold })
        });
        let answer = Gaussian::for_votes(noise_multiplier)?;
        Ok(ConfidentVotes { test: test.transpose()?, answer, classes, points, answers })
    }

    fn test_event(test: &Test) -> Event {
        Event::DiscreteGaussian { sigma: 1 << BITS, sensitivity: test.vote, replace_sensitivity: test.vote, dimension: 1 }
    }

    /// What the whole costs.
    pub fn event(&self) -> Event {
        let answers = Event::AtMost { times: self.answers, event: Box::new(self.answer.event(self.classes)) };
        match &self.test {
            None => answers,
            Some(test) => Event::Compose(vec![Self::test_event(test).repeated(self.points), answers]),
        }
    }

    /// Standard deviation of the noise of a count that leaves, in votes.
    pub fn deviation(&self) -> f64 {
        self.answer.standard_deviation()
    }

    /// Threshold and standard deviation of the test, in votes.
    pub fn test(&self) -> Option<(f64, f64)> {
        self.test.map(|t| (t.threshold, 2f64.powi(BITS as i32) / t.vote as f64))
    }

    /// Most answers.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Most points.
    pub fn points(&self) -> u64 {
        self.points
    }
}

/// Points that may still be asked about.
pub struct OpenVotes {
    plan: ConfidentVotes,
    points: u64,
    answers: u64,
    run: u64,
}

impl OpenVotes {
    /// Whether all points or all answers are used up; released information.
    pub fn has_ended(&self) -> bool {
        self.points == 0 || self.answers == 0
    }
}

impl Query<'_> for ConfidentVotes {
    type Output = OpenVotes;

    fn execute(self, run: &mut Run<'_>) -> Result<OpenVotes> {
        run.seam.needs(Needs::Records)?;
        run.may_depend_on_order()?;
        if let Some(test) = &self.test {
            run.record.admit(&run.planned, Self::test_event(test), self.points)?;
        }
        Ok(OpenVotes { plan: self, points: self.points, answers: self.answers, run: run.id })
    }
}

/// Asks about a point: the noisy counts of its labels, or nothing.
pub struct AskVotes<'a, M> {
    /// What pays.
    pub open: &'a mut OpenVotes,
    /// Models on parts.
    pub models: &'a [Sensitive<Option<M>>],
    /// A model's label of a point; one beyond the classes is none.
    pub label: fn(&M, &[f32]) -> u32,
    /// The point; public.
    pub point: &'a [f32],
}

impl<M> Query<'_> for AskVotes<'_, M> {
    type Output = Option<Vec<f64>>;

    fn execute(self, run: &mut Run<'_>) -> Result<Option<Vec<f64>>> {
        let open = self.open;
        if open.run != run.id {
            return Err(Error::Mismatch { what: "the votes belong to another run" });
        }
        if open.has_ended() {
            return Err(Error::Mismatch { what: "as many points were asked about, or answered, as were planned" });
        }
        run.of_one_partition(self.models)?;
        if self.models.len() as u64 > MOST {
            return Err(Error::domain("models", self.models.len(), "give at most a million"));
        }
        let classes = open.plan.classes;
        open.points -= 1;
        if let Some(test) = open.plan.test {
            let mut rng = run.entropy.rng(Stream::Noise)?;
            let mut noise = [0i64];
            Sampler::new(Shape::Gaussian, BITS).fill(&mut rng, &mut noise);
            let mut counts = vec![0u64; classes];
            for model in self.models {
                let vote = quietly(|| model.value.as_ref().map_or(usize::MAX, |m| (self.label)(m, self.point) as usize));
                if let Some(count) = counts.get_mut(vote.unwrap_or(usize::MAX)) {
                    *count += 1;
                }
            }
            let largest = (counts.iter().max().copied().unwrap_or(0) * test.vote) as i64;
            let level = (test.threshold * test.vote as f64).ceil() as i128;
            let passed = i128::from(largest) + i128::from(noise[0]) >= level;
            let sensitivity = Sensitivity { zero_out: test.vote, replace_one: test.vote };
            let event = ConfidentVotes::test_event(&test);
            let facts = || Facts { what: "largest count of votes", norm: LInf::NAME, sensitivity, event, unit: 1.0 };
            run.record.grade(GridKind::Votes.numerics());
            // The second world of an audit follows what was released in the first one.
            if !matches!(run.on_release(facts, &[largest], Out::Set(passed.then(Vec::new), Vec::new())), Out::Set(Some(_), _)) {
                return Ok(None);
            }
        }
        open.answers -= 1;
        let (models, label, point) = (self.models, self.label, self.point);
        run.at(&open.plan.answer, |run, scale| {
            let noise = run.draw(&scale, classes)?;
            let votes = run.execute(Votes { noise: &noise, models, label, point })?;
            run.release(noise, &votes).map(Some)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Adjacency, delta, epsilon};
    use crate::engine::Threads;
    use crate::query::ensemble::Train;
    use crate::tests::dataset;
    use crate::{Dataset, Entropy, Learner};

    const MEAN: Learner<f64> = Learner {
        name: "sum of labels",
        parameters: Vec::new(),
        train: |_, units, _| units.map(|u| f64::from(u.label(0))).sum(),
    };

    /// 1 for models above the point, 0 for those below, and no label for a few.
    fn above(sum: &f64, point: &[f32]) -> u32 {
        if *sum == f64::from(point[0]) { 9 } else { u32::from(*sum > f64::from(point[0])) }
    }

    fn ask(run: &mut Run<'_>, plan: ConfidentVotes, parts: u32, points: i32) -> Vec<Option<Vec<f64>>> {
        let parts = run.parts(parts).unwrap();
        let models = run.execute(Train { parts: &parts, learner: &MEAN, progress: &|| {} }).unwrap();
        let mut open = run.execute(plan).unwrap();
        let mut out = Vec::new();
        for i in 0..points {
            if open.has_ended() {
                break;
            }
            let point = [(i % 12 - 6) as f32];
            out.push(run.execute(AskVotes { open: &mut open, models: &models, label: above, point: &point }).unwrap());
        }
        out
    }

    /// The closed form: mu^2 = tests/s1^2 + 2 answers/s2^2 under zero-out and replace-one alike, and Renyi accounting says no less.
    #[test]
    fn the_cost_is_the_sum_of_squares() {
        let (points, answers, s1, nm) = (1000u64, 286u64, 150.0, 40.0);
        let plan = ConfidentVotes::new(10, (points, answers), nm, Some((200.0, s1))).unwrap();
        let mu = (points as f64 / (s1 * s1) + answers as f64 / (nm * nm)).sqrt();
        for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
            let exact = epsilon(&Event::GaussianDp { mu }, Adjacency::ZeroOut, 1e-5).unwrap().bound;
            let own = epsilon(&plan.event(), adjacency, 1e-5).unwrap().bound;
            assert!((own.upper / exact.upper - 1.0).abs() < 1e-6, "{} {}", own.upper, exact.upper);
            // alpha tests/(2 s1^2) + alpha answers/s2^2, with s2 = sqrt 2 nm, at the best order.
            let s2 = std::f64::consts::SQRT_2 * nm;
            let renyi = |a: f64| a * points as f64 / (2.0 * s1 * s1) + a * answers as f64 / (s2 * s2);
            let by = |a: f64| renyi(a) + ((a - 1.0) / a).ln() - (1e-5f64.ln() + a.ln()) / (a - 1.0);
            let least = (11..4000).map(|i| by(f64::from(i) / 10.0)).fold(f64::INFINITY, f64::min);
            assert!(own.upper <= least && own.upper > 0.8 * least, "{} {least}", own.upper);
        }
        // One more answer than planned would cost more.
        let more = ConfidentVotes::new(10, (points, answers + 1), nm, Some((200.0, s1))).unwrap();
        let at = |p: &ConfidentVotes| delta(&p.event(), Adjacency::ZeroOut, 1.0).unwrap().bound.upper;
        assert!(at(&more) > at(&plan));
        assert!(ConfidentVotes::new(1, (9, 9), 1.0, None).is_err() && ConfidentVotes::new(2, (9, 3), 1.0, None).is_err());
        assert!(ConfidentVotes::new(2, (3, 9), 1.0, Some((1.0, 1.0))).is_err());
        assert!(ConfidentVotes::new(2, (9, 3), 1.0, Some((f64::NAN, 1.0))).is_err());
    }

    /// Every vote of up to seven models for three labels: one model that turns, or falls silent, moves the largest count by at most 1 and the counts by
    /// at most sqrt 2, and both are attained.
    #[test]
    fn one_model_moves_counts_by_sqrt_two() {
        let (mut one, mut two) = (0, 0);
        for code in 0..8i64.pow(3) {
            let votes = [code % 8, code / 8 % 8, code / 64];
            for from in 0..4 {
                for to in 0..4 {
                    let mut other = votes;
                    if from < 3 {
                        other[from] -= 1;
                    }
                    if to < 3 {
                        other[to] += 1;
                    }
                    if votes.iter().sum::<i64>() > 7 || other.iter().any(|n| *n < 0) {
                        continue;
                    }
                    let moved = votes.iter().max().unwrap().abs_diff(*other.iter().max().unwrap());
                    let square: i64 = votes.iter().zip(&other).map(|(a, b)| (a - b).pow(2)).sum();
                    assert!(moved <= 1 && square <= 2);
                    (one, two) = (one + i32::from(moved == 1), two + i32::from(square == 2));
                }
            }
        }
        assert!(one > 100 && two > 100);
    }

    /// It ends after as many answers, or points, as were planned, and never answers another time.
    #[test]
    fn answers_and_points_are_counted() {
        let (data, engine, entropy) = (dataset(300, 2, false, None), Threads::new(1), Entropy::simulated(5));
        for (points, answers, threshold) in [(40, 3, 0.0), (7, 3, 1e5), (5, 5, 0.0)] {
            let plan = ConfidentVotes::new(2, (points, answers), 2.0, Some((threshold, 1.0))).unwrap();
            let mut run = Run::begin(&data, &engine, &entropy, &plan.event()).unwrap();
            let out = ask(&mut run, plan, 20, 100);
            let given = out.iter().flatten().count() as u64;
            assert!(given <= answers && out.len() as u64 <= points);
            assert!(given == answers || out.len() as u64 == points);
            assert_eq!(given == 0, threshold > 1e4);
            run.close(()).unwrap();
        }
        // What is not planned does not leave: the plan has one answer less, or one point less.
        let plan = ConfidentVotes::new(2, (8, 8), 2.0, Some((0.0, 1.0))).unwrap();
        for (points, answers) in [(8, 7), (7, 7)] {
            let less = ConfidentVotes::new(2, (points, answers), 2.0, Some((0.0, 1.0))).unwrap();
            let mut run = Run::begin(&data, &engine, &entropy, &less.event()).unwrap();
            let parts = run.parts(20).unwrap();
            let models = run.execute(Train { parts: &parts, learner: &MEAN, progress: &|| {} }).unwrap();
            let Ok(mut open) = run.execute(plan) else { continue };
            let mut asked = || run.execute(AskVotes { open: &mut open, models: &models, label: above, point: &[0.5] }).is_ok();
            assert!((0..7).all(|_| asked()) && !asked());
        }
        // Under add-remove parts are lists of unit indices of a private number.
        let mut run = Run::begin(&data, &engine, &entropy, &plan.event()).unwrap().under(Adjacency::AddRemove);
        assert!(run.execute(plan).is_err());
    }

    /// Two worlds at one transcript: another record in the place of one moves no value by more than its sensitivity.
    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        let plan = ConfidentVotes::new(2, (40, 30), 1.0, Some((5.0, 2.0))).unwrap();
        let engine = Threads::new(1);
        let mut moved = [0u64; 2];
        for seed in 0..30 {
            let worlds = |data: &Dataset, transcript: Option<&std::sync::Arc<_>>| {
                let entropy = Entropy::simulated(seed);
                match transcript {
                    None => {
                        let mut run = Run::recorded(data, &engine, &entropy, &plan.event()).unwrap();
                        let out = ask(&mut run, plan, 12, 40);
                        (out, Some(run.transcript().unwrap()), Vec::new())
                    }
                    Some(transcript) => {
                        let mut run = Run::replayed(data, &engine, &entropy, &plan.event(), transcript).unwrap();
                        let out = ask(&mut run, plan, 12, 40);
                        (out, None, run.movements().unwrap())
                    }
                }
            };
            let (before, transcript, _) = worlds(&dataset(80, 2, false, None), None);
            let with = if seed % 2 == 0 { None } else { Some(vec![0.1, 0.1]) };
            let (after, _, movements) = worlds(&dataset(80, 2, false, Some((7, with))), transcript.as_ref());
            assert_eq!(before, after, "what leaves is the transcript");
            for movement in movements {
                assert!(movement.holds(Adjacency::ZeroOut) && movement.holds(Adjacency::ReplaceOne), "{movement:?}");
                moved[usize::from(movement.what == "votes")] += movement.moved;
            }
        }
        assert!(moved.iter().all(|m| *m > 0), "a record shows in a test and in counts: {moved:?}");
    }
}
