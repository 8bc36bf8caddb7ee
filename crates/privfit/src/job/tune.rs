//! Private tuning: several candidates, a random number of runs, the best one leaves.
//!
//! *Claim.* Each run draws a candidate by a coin, trains it on one part of the records and counts, with noise, how often it is right on the
//! other. Released are the winner's weights, its number and its noisy score. A record is in one part: it costs the training, or the score.
//! Candidates are planned for the same base guarantee, and that is found so that the selection as a whole meets what was asked for
//! (`account/selection.rs` has the theorem). How many runs counted is secret, and as many are made in any case.
//!
//! *The winner's score is the best of several*, so it is too high. Let T be the number of runs that count, m the records that are held out, s
//! the deviation of the noise on a score. A run's score minus its model's expected score on a new record is sub-Gaussian with variance proxy
//! v = s^2 + 1/(4m): the noise is Gaussian, and by Hoeffding the mean of m records in [0, 1] that the model was not trained on adds the rest.
//! Where each record is held out by a coin of rate q, their number varies too, and by Kearns and Saul the rest is
//! (1-2q)/(2 ln((1-q)/q)) / (q m). The largest of T such excesses, however they depend on each other, is on average at most sqrt(2 v ln T),
//! and by a union bound above sqrt(2 v ln(E(T)/b)) with a chance of at most b; T is drawn by itself, and ln is concave, so that E(T) stands
//! for T in the first. Both rest on public facts alone, and on records that are drawn independently from those that the model will meet.

use super::facts::PublicFacts;
use super::fit::{self, Job, Outcome, Prepared};
use super::output::Output;
use super::release::Release;
use crate::artifact::Artifact;
use crate::data::load::Records;
use crate::error::{Error, Result};
use crate::measure::{Kind, Measures, SumNoise};
use crate::method::{Settings, grade, rounded};
use crate::plan_inputs::{Selection, TrialResult};
use crate::schema::Task;
use crate::training::{Fact, Training};
use privfit_kernel::account::{self, Adjacency, Event, Stopping, Target, calibrate, expected_runs};
use privfit_kernel::engine::{Engine, Needs};
use privfit_kernel::{BestOf, Candidates, Dataset, Entropy, HeldOut, Numerics, Rate, Released, Run, Winner};
use std::collections::BTreeMap;

/// One way to train.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Method, if it is not that of the job.
    pub method: Option<String>,
    /// Settings; they win over those of the job.
    pub settings: BTreeMap<String, f64>,
}

impl Candidate {
    /// For people.
    pub fn text(&self) -> String {
        let mut parts: Vec<String> = self.method.iter().cloned().collect();
        parts.extend(self.settings.iter().map(|(k, v)| format!("{k} {}", rounded(*v))));
        if parts.is_empty() { "as in the job".into() } else { parts.join(", ") }
    }
}

/// What is tried, and how often.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuning {
    /// What is tried.
    pub candidates: Vec<Candidate>,
    /// Law of the number of runs: harmonic (default), uniform, geometric, logarithmic, poisson.
    pub distribution: Option<String>,
    /// Most runs (uniform, harmonic), or their mean (geometric, logarithmic, poisson).
    pub runs: Option<u64>,
    /// Part of the records that is held out for scores; a tenth by default.
    pub held_out: Option<f64>,
}

const KEYS: &str = "runs, distribution, held_out, a table [tune.grid] of lists, and a list [[tune.candidate]]";

impl Tuning {
    /// Reads the table `[tune]` of a job.
    pub fn parse(table: &toml::Table) -> Result<Tuning> {
        let wrong = |key: &str, fix: &str| Error::misuse(format!("[tune] {key}: {fix}"));
        let number = |v: &toml::Value| v.as_float().or(v.as_integer().map(|i| i as f64)).filter(|x| x.is_finite());
        let mut tuning = Tuning::default();
        for (key, value) in table {
            match key.as_str() {
                // The second is what earlier versions called it.
                "distribution" | "law" if tuning.distribution.is_some() => {
                    return Err(wrong(key, "distribution is given twice: remove one of the two lines"));
                }
                "distribution" | "law" => {
                    tuning.distribution = Some(value.as_str().ok_or_else(|| wrong(key, "give text in quotes"))?.into())
                }
                "runs" => {
                    let runs = value.as_integer().filter(|r| *r > 0).ok_or_else(|| wrong(key, "give a whole number"))?;
                    tuning.runs = Some(runs as u64);
                }
                "held_out" => tuning.held_out = Some(number(value).ok_or_else(|| wrong(key, "give a number"))?),
                "grid" => {
                    let grid = value.as_table().ok_or_else(|| wrong(key, "give a table of lists"))?;
                    tuning.candidates.extend(combinations(grid)?);
                }
                "candidate" => {
                    let list = value.as_array().ok_or_else(|| wrong(key, "write [[tune.candidate]]"))?;
                    for one in list {
                        let one = one.as_table().ok_or_else(|| wrong(key, "write [[tune.candidate]]"))?;
                        let mut candidate = Candidate::default();
                        for (name, value) in one {
                            candidate.set(name, value)?;
                        }
                        tuning.candidates.push(candidate);
                    }
                }
                _ => return Err(wrong(key, &format!("unknown key: known are {KEYS}"))),
            }
        }
        if tuning.candidates.is_empty() {
            return Err(Error::misuse("[tune] has no candidates: add a table [tune.grid], like  ridge = [1, 10, 100]"));
        }
        Ok(tuning)
    }

    /// The distribution of the number of runs.
    fn stopping(&self) -> Result<Stopping> {
        let count = self.candidates.len() as u64;
        let most = |usual: u64| self.runs.unwrap_or(usual).max(1);
        // Mean number of runs of the distributions without a most.
        let mean = self.runs.unwrap_or(count).max(2) as f64;
        let exact = |gamma: f64| Rate::new(gamma).map(Rate::value);
        Ok(match self.distribution.as_deref().unwrap_or("harmonic") {
            "uniform" => Stopping::Uniform { most: most(3 * count) },
            "harmonic" => Stopping::Harmonic { most: most(6 * count) },
            "geometric" => Stopping::NegativeBinomial { eta: 1.0, gamma: exact(1.0 / mean)? },
            "logarithmic" => {
                let runs = |gamma: f64| expected_runs(Stopping::NegativeBinomial { eta: 0.0, gamma });
                let (mut low, mut high) = (1e-6, 0.9);
                for _ in 0..60 {
                    let middle = f64::sqrt(low * high);
                    if runs(middle) > mean { low = middle } else { high = middle }
                }
                Stopping::NegativeBinomial { eta: 0.0, gamma: exact(high)? }
            }
            "poisson" => Stopping::Poisson { mean },
            other => {
                return Err(Error::misuse(format!(
                    "[tune] distribution is {other:?}: give uniform, harmonic, geometric, logarithmic or poisson"
                )));
            }
        })
    }
}

impl Candidate {
    fn set(&mut self, name: &str, value: &toml::Value) -> Result<()> {
        if name == "method" {
            let text = value.as_str().ok_or_else(|| Error::misuse("[tune] method: give names in quotes"))?;
            self.method = Some(text.into());
            return Ok(());
        }
        // A list of candidates sets each name once; a grid replaces what the last candidate had.
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let mut settings = Settings::default();
        settings.set(name, &text).map_err(|e| e.after("[tune] "))?;
        self.settings.extend(settings.0);
        Ok(())
    }
}

/// Every combination of a grid.
fn combinations(grid: &toml::Table) -> Result<Vec<Candidate>> {
    let mut out = vec![Candidate::default()];
    for (name, values) in grid {
        let values = values.as_array().filter(|v| !v.is_empty());
        let values = values.ok_or_else(|| Error::misuse(format!("[tune.grid] {name}: give a list, like [1, 10, 100]")))?;
        let mut next = Vec::new();
        for candidate in &out {
            for value in values {
                let mut candidate = candidate.clone();
                candidate.set(name, value)?;
                next.push(candidate);
            }
        }
        out = next;
        if out.len() > crate::certificate::MOST_CANDIDATES {
            break;
        }
    }
    Ok(out)
}

/// A tuning job with its plan, before data are opened.
pub struct Tuned {
    candidates: Vec<Prepared>,
    texts: Vec<String>,
    best: BestOf,
    event: Event,
    noise: SumNoise,
    base: f64,
    held_out: HeldOut,
    trial_rows: u64,
    optimism: Optimism,
    job: Job,
    tuning: Tuning,
    method: &'static str,
    facts: PublicFacts,
}

/// How far the winner's score may be above what its model reaches on new records: a public fact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimism {
    /// Runs that count, on average.
    pub runs: f64,
    /// Bound on the excess on average.
    pub mean: f64,
    /// The excess is larger than this in at most one of twenty tunings.
    pub most: f64,
}

/// Chance that the excess is above its bound.
const BEYOND: f64 = 0.05;

impl Optimism {
    /// For so many runs on average, with noise of this deviation on a score from so many records.
    fn new(runs: f64, deviation: f64, held_out: &HeldOut, records: u64) -> Optimism {
        let records = records.max(1) as f64;
        let proxy = match held_out {
            HeldOut::Units(_) => 0.25,
            HeldOut::Each(rate) if rate.value() < 0.5 - 1e-6 => {
                let q = rate.value();
                (1.0 - 2.0 * q) / (2.0 * ((1.0 - q) / q).ln()) / q
            }
            HeldOut::Each(rate) => 0.25 / rate.value(),
        };
        let proxy = deviation * deviation + proxy / records;
        let largest = |runs: f64| (2.0 * proxy * runs.ln().max(0.0)).sqrt();
        Optimism { runs, mean: largest(runs), most: largest(runs.max(1.0) / BEYOND) }
    }

    /// For people.
    fn text(&self) -> String {
        format!(
            "the winner's score is the best of {} runs on average: up to {:.3} too high on average, and at most {:.3} in 95 of 100 tunings",
            rounded(self.runs),
            self.mean,
            self.most
        )
    }
}

/// Plans all candidates for a base guarantee that the selection as a whole allows.
pub fn prepare(job: &Job, tuning: &Tuning, rows: u64, counted: bool) -> Result<Tuned> {
    plan(job, tuning, None, rows, counted)
}

/// The same with the methods that candidates were planned by, for a verifier: what `auto` would choose today does not matter to it.
pub(crate) fn plan(job: &Job, tuning: &Tuning, methods: Option<&[String]>, rows: u64, counted: bool) -> Result<Tuned> {
    // Candidates differ in settings of linear models, unless they name another method.
    let job = &Job { method: if job.method == "auto" { "linear".into() } else { job.method.clone() }, ..job.clone() };
    let count = tuning.candidates.len();
    if count == 0 || count > crate::certificate::MOST_CANDIDATES {
        let most = crate::certificate::MOST_CANDIDATES;
        return Err(Error::misuse(format!("there are {count} candidates: give between 1 and {most}")));
    }
    if job.schema.task() == Task::Location || job.compare {
        return Err(
            Error::misuse("tuning is for models with a target that are private: add [target], and leave out ").naming("compare")
        );
    }
    let stopping = tuning.stopping()?;
    let part = tuning.held_out.unwrap_or(0.1);
    if !(0.01..=0.5).contains(&part) {
        return Err(Error::misuse(format!("[tune] held_out is {part}: give a number from 0.01 to 0.5")));
    }
    // The job by itself: whatever is wrong with it is said before anything else.
    let whole = fit::prepare(job, rows, counted)?;
    let target = whole.problem.target;
    if target.delta == 0.0 {
        return Err(Error::misuse("tuning needs a delta above 0: give ")
            .give("delta", format!("{:.1e}", 1.0 / (rows.max(2) as f64).powi(2)))
            .text(" (1/rows^2)"));
    }
    let trial_rows = ((rows as f64 * part).round() as u64).max(1);
    if trial_rows >= rows {
        return Err(Error::misuse(format!("there are {rows} rows: tuning needs more")));
    }
    let held_out = if whole.problem.rows_known { HeldOut::Units(trial_rows as usize) } else { HeldOut::Each(Rate::new(part)?) };
    let with = |number: usize, epsilon: f64| -> Result<Prepared> {
        let candidate = &tuning.candidates[number];
        let mut job = job.clone();
        job.epsilon = epsilon;
        // Rows are counted already, and fewer of them are trained on.
        (job.rows, job.schema.rows) = (None, None);
        let planned = methods.and_then(|m| m.get(number)).or(candidate.method.as_ref());
        job.method = planned.cloned().unwrap_or(job.method);
        job.settings.0.extend(candidate.settings.clone());
        let prepared =
            fit::prepare(&job, rows - trial_rows, counted).map_err(|e| e.after(format!("candidate {}: ", candidate.text())))?;
        match !prepared.method.can.tunable {
            true => Err(Error::misuse(format!(
                "candidate {}: this method can't be tuned on private rows: choose on public ones, or use another",
                candidate.text()
            ))),
            false => Ok(prepared),
        }
    };
    let mut base = first_guess(stopping, target, job.adjacency)?;
    for _ in 0..40 {
        let candidates = (0..count).map(|c| with(c, base)).collect::<Result<Vec<_>>>()?;
        if let Some(other) = candidates.iter().position(|c| c.plan.row_form() != candidates[0].plan.row_form()) {
            let text = tuning.candidates[other].text();
            return Err(Error::misuse(format!(
                "candidate {text}: it reads records as cells and the first one does not, or the other way: tune linear and additive models apart"
            )));
        }
        let noise = SumNoise::meeting(Kind::Score, Target { epsilon: base, ..target }, job.adjacency, trial_rows)?;
        let events = candidates.iter().map(|c| c.plan.event().clone()).collect();
        let best = BestOf::new(stopping, events, noise.event(Kind::Score))?;
        let event = best.event();
        let total = account::epsilon(&event, job.adjacency, target.delta)?.bound.upper;
        if total <= target.epsilon {
            let texts = tuning.candidates.iter().map(Candidate::text).collect();
            let (job, tuning, method) = (job.clone(), tuning.clone(), whole.method.name);
            let deviation = noise.deviation(Kind::Score) / trial_rows as f64;
            let optimism = Optimism::new(expected_runs(stopping), deviation, &held_out, trial_rows);
            return Ok(Tuned {
                candidates,
                texts,
                best,
                event,
                noise,
                base,
                held_out,
                trial_rows,
                optimism,
                job,
                tuning,
                method,
                facts: whole.facts().clone(),
            });
        }
        // Nearly proportional; a hair less, so that it ends.
        base *= (target.epsilon / total).min(1.0) * 0.998;
    }
    Err(Error::misuse("no base guarantee leaves the selection within epsilon: give a larger epsilon, or fewer runs"))
}

/// What one run could have if it were Gaussian.
fn first_guess(stopping: Stopping, target: Target, adjacency: Adjacency) -> Result<f64> {
    let selection = |noise: f64| Ok(Event::Select { stopping, event: Box::new(Event::gaussian(noise)) });
    let noise = calibrate::<Error>(target, selection, adjacency)?;
    Ok(account::epsilon(&Event::gaussian(noise), adjacency, target.delta)?.bound.upper)
}

impl Tuned {
    /// Each candidate in words, with its plan.
    pub fn candidates(&self) -> impl Iterator<Item = (&str, &Prepared)> {
        self.texts.iter().map(String::as_str).zip(&self.candidates)
    }

    /// Runs that are made.
    pub fn runs(&self) -> u64 {
        self.best.runs()
    }

    /// The plan for people.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let Event::Select { stopping, .. } = &self.event else { return Vec::new() };
        vec![
            ("candidates", self.candidates.len().to_string()),
            (
                "runs that count",
                format!("{}; {} on average", crate::certificate::distribution(*stopping), rounded(expected_runs(*stopping))),
            ),
            ("runs that are made", self.runs().to_string()),
            ("epsilon of one run", rounded(self.base)),
            ("held out for scores", format!("{} records", self.trial_rows)),
            ("noise on a score", format!("{} records", rounded(self.noise.deviation(Kind::Score)))),
            ("optimism", self.optimism.text()),
        ]
    }

    /// How far the winner's score may be too high.
    pub fn optimism(&self) -> Optimism {
        self.optimism
    }

    /// Trains, and lets the best leave. Reports each run.
    pub fn train(&self, data: Dataset, engine: &dyn Engine, entropy: &Entropy, progress: &dyn Fn()) -> Result<Artifact> {
        let released = self.select(data, engine, entropy, progress)?;
        let (event, numerics) = (released.event().clone(), released.numerics());
        let simulated = entropy.is_simulated();
        // No run at all has a chance with the Poisson distribution; then weights of 0 are what leaves.
        let (number, weights, score) = match released.into_value() {
            Some(winner) => (winner.candidate, winner.value, Some(winner.score)),
            None => (0, vec![0.0; self.weights()], None),
        };
        // Which candidates were drawn must not show in the grade: it is that of the worst of all.
        let numerics = numerics.max(self.numerics());
        let training = self.training(number, score, numerics);
        let mut schema = self.candidates[number].job().schema.clone();
        schema.rows = self.job.schema.rows;
        let learned = self.candidates[number].plan.learned(weights);
        let outcome = Outcome { learned, event, numerics, simulated };
        self.candidates[number].certified(outcome, training, self.job.epsilon, schema)
    }

    /// The grade of the numerics of the worst candidate.
    pub(crate) fn numerics(&self) -> Numerics {
        self.candidates.iter().map(|c| grade(c.method, c.plan.as_ref())).max().unwrap_or_default()
    }

    /// What a model file records: a function of public facts, and of the released winner and score.
    pub(crate) fn training(&self, number: usize, score: Option<f64>, numerics: Numerics) -> Training {
        let mut training = self.candidates[number].training(numerics);
        training
            .plan
            .push(("chosen".into(), format!("candidate {} of {}: {}", number + 1, self.texts.len(), self.texts[number])));
        training.plan.extend(self.describe().into_iter().map(|(k, v)| (k.to_string(), v)));
        if let Some(score) = score {
            let sd = self.noise.deviation(Kind::Score) / self.trial_rows as f64;
            let name = if self.job.schema.task() == Task::Number { "score (1 is best)" } else { "accuracy" };
            let least = (score - self.optimism.most).max(0.0);
            training.plan.push((
                format!("{name} on held-out records, with noise, the best of several"),
                format!("{score:.4} (noise +- {sd:.4}); on new records at least {least:.4} (95 % confidence)"),
            ));
        }
        training.reason = None;
        training.rows = self.facts.rows;
        training.public = self.candidates[number].public_facts(self.facts.rows);
        training.public.push(Fact::of_rules(format!("settings: {} candidates, and how often they are tried", self.texts.len())));
        if let Some(inputs) = &mut training.inputs {
            inputs.selection = Some(self.selection(number, score));
        }
        training
    }

    fn selection(&self, chosen: usize, score: Option<f64>) -> Selection {
        let planned = self.tuning.candidates.iter().zip(&self.candidates);
        Selection {
            method: self.method.into(),
            settings: self.job.settings.0.clone(),
            candidates: planned
                .map(|(c, p)| TrialResult { named: c.method.clone(), method: p.method.name.into(), settings: c.settings.clone() })
                .collect(),
            distribution: self.tuning.distribution.clone(),
            runs: self.tuning.runs,
            held_out: self.tuning.held_out,
            chosen: chosen as u64,
            score,
        }
    }

    /// Weights of a model.
    pub(crate) fn weights(&self) -> usize {
        self.candidates[0].problem.features * self.candidates[0].problem.scores()
    }

    /// Everything that leaves: the winner with its weights and its noisy score.
    pub(crate) fn select(
        &self,
        data: Dataset,
        engine: &dyn Engine,
        entropy: &Entropy,
        progress: &dyn Fn(),
    ) -> Result<Released<Option<Winner>>> {
        let split = data.split(entropy, self.held_out)?;
        Ok(self.best.run(&split, engine, entropy, self.job.adjacency, self, progress)?)
    }
}

impl Release for Tuned {
    fn kind(&self) -> &'static str {
        "tune"
    }

    fn facts(&self) -> &PublicFacts {
        &self.facts
    }

    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Records
    }

    fn steps(&self) -> u64 {
        self.runs()
    }

    fn statement(&self) -> serde_json::Value {
        let candidates: Vec<_> = self.candidates.iter().map(|c| (c.method.name, &c.job().settings.0)).collect();
        serde_json::json!({
            "schema": self.job.schema, "rows": self.facts.rows, "epsilon": self.job.epsilon, "delta": self.job.delta,
            "loss": self.job.loss, "first": self.candidates[0].statement(), "candidates": candidates,
            "settings": self.job.settings.0, "method": self.job.method, "held_out": format!("{:?}", self.held_out), "event": self.event,
        })
    }

    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        self.facts.open(source, self.candidates[0].plan.row_form(), entropy)
    }

    fn run(&self, data: Dataset, engine: &dyn Engine, entropy: &Entropy, progress: &dyn Fn()) -> Result<Output> {
        Ok(Output::Model(Box::new(self.train(data, engine, entropy, progress)?)))
    }

    fn read(&self, bytes: &[u8]) -> Result<Output> {
        Ok(Output::Model(Box::new(Artifact::from_bytes(bytes)?)))
    }
}

impl Candidates for Tuned {
    fn train(&self, candidate: usize, run: &mut Run<'_>) -> privfit_kernel::Result<Vec<f64>> {
        inside(self.candidates[candidate].plan.run(run, &|| {}))
    }

    fn score(&self, candidate: usize, weights: &[f64], run: &mut Run<'_>) -> privfit_kernel::Result<f64> {
        let own = &self.candidates[candidate];
        let model = own.model(own.plan.learned(weights.to_vec()));
        let measures = inside(model.and_then(|m| Measures::of(Kind::Score, &m)))?;
        Ok(inside(self.noise.release(run, &measures))?[0] / self.trial_rows as f64)
    }
}

/// Errors of the library on their way through the kernel. None of them depends on records.
fn inside<T>(result: Result<T>) -> privfit_kernel::Result<T> {
    result.map_err(|_| privfit_kernel::Error::Mismatch { what: "a candidate does not run as it was planned: leave it out" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise from a fixed sequence: the sum of twelve uniform numbers.
    fn normal(state: &mut u64) -> f64 {
        (0..12).fold(-6.0, |sum, _| sum + uniform(state))
    }

    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The best of several equal models is above the truth, by no more than the bounds say. The sequence is fixed: nothing is left to chance.
    #[test]
    fn the_best_of_several_is_within_its_optimism() {
        let mut state = 11;
        let each = HeldOut::Each(Rate::new(0.1).unwrap());
        for (runs, records, deviation, held_out) in
            [(6u32, 60u64, 0.08, HeldOut::Units(60)), (20, 200, 0.01, HeldOut::Units(200)), (12, 60, 0.02, each)]
        {
            let bound = Optimism::new(f64::from(runs), deviation, &held_out, records);
            let (truth, mut sum, mut beyond) = (0.7, 0.0, 0);
            for _ in 0..2000 {
                let best = (0..runs).fold(f64::MIN, |best, _| {
                    let right = match held_out {
                        HeldOut::Units(_) => (0..records).filter(|_| uniform(&mut state) < truth).count(),
                        HeldOut::Each(_) => (0..10 * records).filter(|_| uniform(&mut state) < 0.1 * truth).count(),
                    };
                    best.max(right as f64 / records as f64 + deviation * normal(&mut state))
                });
                sum += best - truth;
                beyond += u32::from(best - truth > bound.most);
            }
            let mean = sum / 2000.0;
            assert!(mean > 0.0 && mean <= bound.mean && beyond <= 160, "{mean} {beyond} {bound:?}");
            assert!(mean > 0.4 * bound.mean, "the bound is not idle: {mean} {bound:?}");
        }
        assert_eq!(Optimism::new(1.0, 0.1, &HeldOut::Units(10), 10).mean, 0.0, "one run is not the best of several");
    }

    /// Whatever runs inside of a selection sees the outputs of runs that lose, which are not paid for. The compiler keeps cells and `&mut` away
    /// from it; locks, atomics and statics it would allow, so that nothing in these sources may have one.
    #[test]
    fn nothing_keeps_what_losing_runs_release() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = vec![];
        let mut folders = ["method", "loss", "solve"].map(|f| source.join(f)).to_vec();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.extend(
            [
                "job/tune.rs",
                "job/fit.rs",
                "measure/mod.rs",
                "measure/network.rs",
                "measure/sums.rs",
                "metric.rs",
                "model.rs",
                "linear.rs",
                "affine.rs",
            ]
            .map(|f| source.join(f)),
        );
        assert!(files.len() > 40, "{files:?}");
        let places = [
            "Mutex",
            "RwLock",
            "Atomic",
            "Cell<",
            "OnceLock",
            "OnceCell",
            "LazyLock",
            "thread_local",
            "mpsc",
            " static ",
            "\nstatic ",
            "panic_any",
            "Box::leak",
            "println!",
            "std::fs",
        ];
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let found: Vec<&str> = places.iter().copied().filter(|p| shipped.contains(p)).collect();
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
    }
}
