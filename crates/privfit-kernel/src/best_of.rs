//! The best of a random number of runs. Each run draws a candidate, trains it on one part of the records and scores it on the other; the
//! winner leaves, and nothing else does. How many runs counted stays secret: as many are made whatever that number is.

use crate::account::{Adjacency, Event, Stopping};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::numerics::Numerics;
use crate::quiet::quietly;
use crate::rng::{Entropy, NoiseRng, Rate, Stream};
use crate::run::Run;
use crate::store::split::{Split, below};
use crate::value::Released;

/// A selection, complete before data are opened.
#[derive(Clone, Debug)]
pub struct BestOf {
    stopping: Stopping,
    candidates: Vec<Event>,
    score: Event,
}

/// What a selection runs. It gets to see the outputs of runs that lose, which are not paid for, so it has nowhere to put them: `&self`, no
/// cells (they are not `Sync`), plain numbers out. Locks and atomics would compile; a test of the library finds them in its sources.
pub trait Candidates: Sync {
    /// Trains a candidate on the records of the run and gives what it released.
    fn train(&self, candidate: usize, run: &mut Run<'_>) -> Result<Vec<f64>>;
    /// Scores what a candidate released, on other records.
    fn score(&self, candidate: usize, value: &[f64], run: &mut Run<'_>) -> Result<f64>;
}

/// The winner.
#[derive(Clone, Debug, PartialEq)]
pub struct Winner {
    /// Number of the candidate.
    pub candidate: usize,
    /// What its run released.
    pub value: Vec<f64>,
    /// The score, with noise.
    pub score: f64,
}

/// Chance that an unbounded distribution asks for more runs than are always made: about what a bit error in the hardware has.
const BEYOND: f64 = 1e-12;

impl BestOf {
    /// What each candidate's training costs the records to train on, and what a score costs the records to try on.
    pub fn new(stopping: Stopping, candidates: Vec<Event>, score: Event) -> Result<BestOf> {
        if candidates.is_empty() {
            return Err(Error::domain("candidates", 0, "give at least one"));
        }
        let best = BestOf { stopping, candidates, score };
        best.event().validate()?;
        let exact = match stopping {
            Stopping::Uniform { .. } | Stopping::Harmonic { .. } => true,
            Stopping::NegativeBinomial { eta, gamma } => {
                (eta == 0.0 || eta == 1.0) && gamma > 1e-6 && Rate::new(gamma).is_ok_and(|r| r.value() == gamma)
            }
            Stopping::Poisson { mean } => mean == mean.floor() && (1.0..1e6).contains(&mean),
        };
        if !exact {
            return Err(Error::unsupported(
                "this distribution of the number of runs, which is not drawn exactly",
                "use uniform, harmonic, negative binomial with eta 0 or 1, or Poisson with a whole mean",
            ));
        }
        Ok(best)
    }

    /// What the whole costs. A record is in one of the two parts, and a coin picks the candidate.
    pub fn event(&self) -> Event {
        let mut either: Vec<Event> = Vec::new();
        for event in self.candidates.iter().chain([&self.score]) {
            if !either.contains(event) {
                either.push(event.clone());
            }
        }
        Event::Select { stopping: self.stopping, event: Box::new(Event::Either(either)) }
    }

    /// Runs that are made, however many count.
    pub fn runs(&self) -> u64 {
        match self.stopping {
            Stopping::Uniform { most } | Stopping::Harmonic { most } => most,
            // (1 - gamma)^n; the logarithmic distribution is below it.
            Stopping::NegativeBinomial { gamma, .. } => (BEYOND.ln() / (-gamma).ln_1p()).ceil() as u64,
            Stopping::Poisson { mean } => {
                // Chernoff: P(K >= n) <= e^-m (e m / n)^n.
                let tail = |n: f64| n - mean + n * (mean / n).ln();
                let mut n = mean.ceil();
                while tail(n) > BEYOND.ln() {
                    n += 1.0;
                }
                n as u64
            }
        }
    }

    /// How many runs count.
    fn count(&self, rng: &mut NoiseRng) -> Result<u64> {
        Ok(match self.stopping {
            Stopping::Uniform { most } => 1 + below(most, rng),
            Stopping::Harmonic { most } => loop {
                let k = 1 + below(most, rng);
                if below(k, rng) == 0 {
                    break k;
                }
            },
            Stopping::NegativeBinomial { eta, gamma } => loop {
                let rate = Rate::new(gamma)?;
                let mut k = 1;
                while !rate.draw(1, rng)[0] {
                    k += 1;
                }
                // The logarithmic distribution is a geometric one times 1/k.
                if eta == 1.0 || below(k, rng) == 0 {
                    break k;
                }
            },
            Stopping::Poisson { mean } => (0..mean as u64).map(|_| poisson_one(rng)).sum(),
        })
    }

    /// Trains and scores one candidate.
    fn attempt(
        &self,
        split: &Split,
        engine: &dyn Engine,
        entropy: &Entropy,
        adjacency: Adjacency,
        candidates: &dyn Candidates,
        candidate: usize,
    ) -> Result<Released<Winner>> {
        let swapped = || Error::Mismatch { what: "a candidate put another run in the place of its own" };
        let mut first = Run::begin(&split.train, engine, entropy, &self.candidates[candidate])?.under(adjacency);
        let id = first.id();
        let value = candidates.train(candidate, &mut first)?;
        let trained = if first.id() == id { first.close(value)? } else { return Err(swapped()) };
        let mut second = Run::begin(&split.validation, engine, entropy, &self.score)?.under(adjacency);
        let id = second.id();
        let number = candidates.score(candidate, &trained.value, &mut second)?;
        let scored = if second.id() == id { second.close(number)? } else { return Err(swapped()) };
        // A score that is no number loses.
        let score = if scored.value.is_nan() { f64::NEG_INFINITY } else { scored.value };
        Ok(Released {
            value: Winner { candidate, value: trained.value, score },
            numerics: trained.numerics.max(scored.numerics),
            order_dependent: trained.order_dependent || scored.order_dependent,
            event: scored.event,
            executed: scored.executed,
        })
    }

    /// Runs, under the adjacency that is promised. No winner if none of the runs that count succeeded. `progress` is called after each of the runs that are always made.
    pub fn run(
        &self,
        split: &Split,
        engine: &dyn Engine,
        entropy: &Entropy,
        adjacency: Adjacency,
        candidates: &dyn Candidates,
        progress: &dyn Fn(),
    ) -> Result<Released<Option<Winner>>> {
        if split.by_count && adjacency == Adjacency::AddRemove {
            return Err(crate::error::order_dependent());
        }
        let count = self.count(&mut entropy.rng(Stream::Noise)?)?;
        let mut draws = entropy.rng(Stream::Initialisation)?;
        let mut winner: Option<Winner> = None;
        let (mut numerics, mut order_dependent) = (Numerics::Exact, split.by_count);
        for made in 0..self.runs().max(count) {
            let candidate = below(self.candidates.len() as u64, &mut draws) as usize;
            // A run that fails, panics or is not the one that was begun loses, and nobody hears of it: an error could quote what it released.
            let attempt = quietly(|| self.attempt(split, engine, entropy, adjacency, candidates, candidate)).and_then(Result::ok);
            progress();
            let Some(attempt) = attempt else { continue };
            numerics = numerics.max(attempt.numerics);
            order_dependent |= attempt.order_dependent;
            if made < count && winner.as_ref().is_none_or(|w| attempt.value.score > w.score) {
                winner = Some(attempt.value);
            }
        }
        let executed = self.event();
        let event = if entropy.is_simulated() {
            Event::NotPrivate { why: "simulated: the noise came from a seed".into() }
        } else {
            executed.clone()
        };
        Ok(Released { value: winner, event, executed, numerics, order_dependent })
    }
}

/// A Poisson number of mean 1, exactly, by whole numbers alone (Duchon and Duvignau: cycles of length one of a growing permutation).
fn poisson_one(rng: &mut NoiseRng) -> u64 {
    let (mut n, mut last, mut k) = (1u64, 0u64, 1u64);
    loop {
        let i = 1 + below(n + 1, rng);
        if i == n + 1 {
            k += 1;
        } else if i > last {
            k -= 1;
            last = n + 1;
        } else {
            return k;
        }
        n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{epsilon, expected_runs};
    use crate::engine::Threads;
    use crate::{Contribution, DatasetBuilder, Gaussian, HeldOut, Mechanism, RowShape};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn best(stopping: Stopping) -> BestOf {
        BestOf::new(stopping, vec![Event::gaussian(3.0)], Event::gaussian(4.0)).unwrap()
    }

    /// Frequencies of the number of runs against their distribution. False alarm below 1e-8 in all.
    #[test]
    fn numbers_of_runs_have_their_distribution() {
        let gamma = 0.125;
        let distributions: Vec<(Stopping, Box<dyn Fn(u64) -> f64>)> = vec![
            (Stopping::Uniform { most: 7 }, Box::new(|k| if (1..=7).contains(&k) { 1.0 / 7.0 } else { 0.0 })),
            (Stopping::Harmonic { most: 6 }, Box::new(|k| if (1..=6).contains(&k) { 1.0 / k as f64 / 2.45 } else { 0.0 })),
            (
                Stopping::NegativeBinomial { eta: 1.0, gamma },
                Box::new(move |k| if k >= 1 { gamma * (1.0 - gamma).powi(k as i32 - 1) } else { 0.0 }),
            ),
            (
                Stopping::NegativeBinomial { eta: 0.0, gamma },
                Box::new(move |k| if k >= 1 { (1.0 - gamma).powi(k as i32) / k as f64 / (1.0 / gamma).ln() } else { 0.0 }),
            ),
            (Stopping::Poisson { mean: 2.0 }, Box::new(|k| (-2f64).exp() * (1..=k).map(|i| 2.0 / i as f64).product::<f64>())),
        ];
        let mut rng = NoiseRng::from_key([31; 32]);
        for (stopping, distribution) in distributions {
            let (n, best) = (200_000, best(stopping));
            let mut seen = std::collections::BTreeMap::<u64, f64>::new();
            (0..n).for_each(|_| *seen.entry(best.count(&mut rng).unwrap()).or_default() += 1.0);
            let mean = seen.iter().map(|(k, c)| *k as f64 * c).sum::<f64>() / f64::from(n);
            assert!((mean / expected_runs(stopping) - 1.0).abs() < 0.03, "{stopping:?}: {mean}");
            for k in 0..12 {
                let (expected, got) = (f64::from(n) * distribution(k), seen.get(&k).copied().unwrap_or(0.0));
                assert!((got - expected).abs() <= 6.5 * expected.sqrt(), "{stopping:?} {k}: {got} {expected}");
            }
            assert!(*seen.keys().last().unwrap() <= best.runs());
        }
    }

    #[test]
    fn distributions_that_are_not_drawn_exactly_are_refused() {
        for stopping in
            [Stopping::NegativeBinomial { eta: 0.5, gamma: 0.1 }, Stopping::Poisson { mean: 2.5 }, Stopping::Uniform { most: 0 }]
        {
            assert!(BestOf::new(stopping, vec![Event::gaussian(1.0)], Event::gaussian(1.0)).is_err());
        }
        assert!(
            BestOf::new(Stopping::Uniform { most: 5 }, Vec::new(), Event::gaussian(1.0)).is_err(),
            "there is nothing to choose from"
        );
    }

    fn add(_: &[f64], unit: crate::Unit<'_>, _: &mut crate::UnitRandomness<'_>, sink: &mut crate::Sink<'_>) {
        sink.add(0, unit.label(0).into());
    }

    const PANICS: usize = 99;

    /// Releases the sum of labels so many times, and remembers what a test may and a library must not.
    struct Seen {
        mechanism: Gaussian,
        times: usize,
        scores: Mutex<Vec<f64>>,
    }

    impl Seen {
        fn once(&self, run: &mut Run<'_>) -> Result<f64> {
            let sum = Contribution { name: "label", dimension: 1, parameters: Vec::new(), add };
            let everyone = run.everyone()?;
            run.at(&self.mechanism, |run, scale| {
                let noise = run.draw(&scale, 1)?;
                let value = everyone.sum(&noise, &sum)?;
                Ok(run.release(noise, &value)?[0])
            })
        }
    }

    impl Candidates for Seen {
        fn train(&self, candidate: usize, run: &mut Run<'_>) -> Result<Vec<f64>> {
            if self.times == PANICS {
                std::panic::panic_any(self.once(run)?);
            }
            (0..self.times).try_for_each(|_| self.once(run).map(drop))?;
            Ok(vec![candidate as f64])
        }

        fn score(&self, _: usize, _: &[f64], run: &mut Run<'_>) -> Result<f64> {
            let score = self.once(run)?;
            self.scores.lock().unwrap().push(score);
            Ok(score)
        }
    }

    /// The same number of runs is made whatever counts; the winner has the best score of those that count; what is not planned is refused.
    #[test]
    fn the_winner_leaves_and_time_does_not_tell() {
        let shape = RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None };
        let data = |seed| {
            let mut builder = DatasetBuilder::new(&Entropy::simulated(seed), shape).unwrap();
            (0..400).for_each(|i| builder.row(&[0.1], (i % 2) as f32));
            builder.build().split(&Entropy::simulated(seed), HeldOut::Units(40)).unwrap()
        };
        let mechanism = Gaussian::new(1.0, 2.0, 400).unwrap();
        let event = mechanism.event(1);
        let most = 9;
        let best = BestOf::new(Stopping::Uniform { most }, vec![event.clone(); 4], event.clone()).unwrap();
        assert_eq!(
            best.event(),
            Event::Select { stopping: Stopping::Uniform { most }, event: Box::new(Event::Either(vec![event])) }
        );
        let engine = Threads::new(1);
        let mut winners = Vec::new();
        for seed in 0..30 {
            let (seen, made) = (Seen { mechanism, times: 1, scores: Mutex::default() }, AtomicUsize::new(0));
            let tick = || {
                made.fetch_add(1, Ordering::Relaxed);
            };
            let entropy = Entropy::simulated(seed);
            let released = best.run(&data(seed), &engine, &entropy, Adjacency::ZeroOut, &seen, &tick).unwrap();
            let scores = seen.scores.into_inner().unwrap();
            assert_eq!((made.into_inner(), scores.len()), (most as usize, most as usize));
            let winner = released.value().as_ref().unwrap();
            let place = scores.iter().position(|s| *s == winner.score).unwrap();
            assert!(scores[..place].iter().all(|s| *s < winner.score), "the best so far");
            assert!(matches!(released.event(), Event::NotPrivate { .. }) && winner.candidate == winner.value[0] as usize);
            winners.push(place);
        }
        assert!(winners.iter().any(|w| *w == 0) && winners.iter().any(|w| *w > 3), "{winners:?}");
        let entropy = Entropy::system().unwrap();
        let run = |times: usize, adjacency: Adjacency| {
            let seen = Seen { mechanism, times, scores: Mutex::default() };
            best.run(&data(1), &engine, &entropy, adjacency, &seen, &|| {})
        };
        assert!(run(0, Adjacency::ZeroOut).unwrap().value().is_none(), "planned but not executed");
        assert!(run(2, Adjacency::ZeroOut).unwrap().value().is_none(), "executed but not planned");
        assert!(run(PANICS, Adjacency::ZeroOut).unwrap().value().is_none(), "what a panic carries goes nowhere");
        assert!(run(1, Adjacency::AddRemove).is_err(), "how many are left to train on is private");
        let released = run(1, Adjacency::ZeroOut).unwrap();
        assert_eq!(released.event(), &best.event());
        assert!(released.is_order_dependent() && released.epsilon(Adjacency::AddRemove, 1e-6).is_err());
        assert!(epsilon(released.event(), Adjacency::ZeroOut, 1e-6).unwrap().bound.upper.is_finite());
    }
}
