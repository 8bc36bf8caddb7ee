//! Mechanisms that are broken on purpose, each by a bug that somebody shipped. They work on plain rows, never through the kernel, are in
//! no list of methods, and nothing but tests can reach them: an auditor that misses one of them is not an auditor. Each has a repaired
//! form beside it, which must pass.

mod cells;
mod correlated;
mod exact;
pub(crate) mod network;
mod noise;
pub(crate) mod objective;
mod rows;
mod shuffled;
mod stopping;
mod tuning;
mod unstable;

pub(crate) use correlated::{Bug, Correlated};
pub(crate) use shuffled::Shuffled;

use privfit::audit::Pair;
use privfit::audit::subject::{Claim, Comparison, Moved, Release, Subject, World};
use privfit::data::encode::Row;
use privfit::data::generate::Random;
use privfit::error::Result;
use privfit::kernel::account::{Adjacency, Event};
use privfit::kernel::{Entropy, NoiseRng};

/// All claim this mu, and the epsilon that it has at this delta.
pub(crate) const MU: f64 = 2.0;
const DELTA: f64 = 1e-5;

/// What exists before noise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// Meets noise.
    pub(crate) values: Vec<f64>,
    /// How far one record is said to move them, in L2.
    pub(crate) sensitivity: f64,
    /// Standard deviation of the noise.
    pub(crate) deviation: f64,
    /// Leaves as it is.
    pub(crate) exact: Vec<f64>,
    /// Noise from a seed.
    pub(crate) seed: Option<u64>,
}

impl Before {
    /// Noise that covers a sensitivity at the claimed mu.
    fn covered(values: Vec<f64>, sensitivity: f64) -> Before {
        Before { values, sensitivity, deviation: sensitivity / MU, ..Before::default() }
    }
}

/// A broken mechanism.
pub(crate) struct Case {
    /// Its number in the list of bugs.
    pub(crate) number: u32,
    /// Its name.
    pub(crate) name: &'static str,
    /// The relation that it claims privacy for.
    pub(crate) adjacency: Adjacency,
    /// Public number of rows.
    pub(crate) rows: usize,
    /// Features.
    pub(crate) dimension: usize,
    /// Releases that one call makes, whatever the label says; and in the repaired form.
    pub(crate) trials: u64,
    /// What meets noise, with the bug or without.
    pub(crate) before: fn(&[Row], fixed: bool) -> Before,
    /// Record that shows it, and the others.
    pub(crate) pair: fn(&Case) -> Pair,
}

/// Every mechanism of this shape.
pub(crate) const ALL: [&Case; 17] = [
    &noise::WRONG_REACH,
    &rows::NO_CLIPPING,
    &rows::MEASURED_BOUNDS,
    &noise::PRIVATE_COUNT,
    &noise::FIXED_SEED,
    &exact::INTERCEPT,
    &unstable::TEACHER,
    &rows::CLIPPED_MEAN,
    &noise::LOWER_TWICE,
    &stopping::STOPPING,
    &tuning::TWO_TRIALS,
    &unstable::KNOWLEDGE_TRANSFER,
    &unstable::OJA,
    &cells::ONE_COLUMN,
    &cells::LEAVES,
    &cells::PAIRS,
    &network::NO_CLIP,
];

/// A case as a subject, with its bug or without.
pub(crate) struct Broken {
    /// The case.
    pub(crate) case: &'static Case,
    /// Whether the bug is repaired.
    pub(crate) fixed: bool,
    claim: Claim,
}

impl Broken {
    /// A case with its claim.
    pub(crate) fn new(case: &'static Case, fixed: bool) -> Broken {
        let times = if fixed { case.trials } else { 1 };
        // The multiplier is relative to zero-out; replace-one has twice the sensitivity here.
        let doubled = if case.adjacency == Adjacency::ReplaceOne { 2.0 } else { 1.0 };
        let event = Event::gaussian(doubled / MU).repeated(times);
        Broken { case, fixed, claim: Claim::new(event, case.adjacency, DELTA) }
    }

    /// Pairs of all kinds, and the one that shows the bug.
    pub(crate) fn pairs(&self, count: usize) -> Vec<Pair> {
        let mut random = Random::new(u64::from(self.case.number));
        let mut out = vec![(self.case.pair)(self.case)];
        for i in 0..count {
            out.push(pair(self.case, ["random", "outlier", "duplicate", "one against none"][i % 4], &mut random));
        }
        out
    }
}

/// A row of a length and any direction.
fn row(dimension: usize, length: f64, random: &mut Random) -> Row {
    let mut dense: Vec<f64> = (0..dimension).map(|_| random.normal()).collect();
    let size = norm(&dense).max(1e-300);
    dense.iter_mut().for_each(|x| *x *= length / size);
    Row { dense, label: if random.below(2) == 0 { 1.0 } else { -1.0 }, ..Row::default() }
}

/// A row with one cell.
fn axis(dimension: usize, at: usize, value: f64, label: f32) -> Row {
    let mut dense = vec![0.0; dimension];
    dense[at] = value;
    Row { dense, label, ..Row::default() }
}

fn null(dimension: usize) -> Row {
    Row { dense: vec![0.0; dimension], label: 0.0, ..Row::default() }
}

/// Replaces the last record by what the adjacency says.
fn neighbours(case: &Case, kind: &'static str, others: Vec<Row>, target: Row, other: Row) -> Pair {
    let mut b = others.clone();
    match case.adjacency {
        Adjacency::ZeroOut => b.push(null(case.dimension)),
        Adjacency::ReplaceOne => b.push(other),
        Adjacency::AddRemove => {}
    }
    let mut a = others;
    a.push(target);
    Pair { kind, a, b }
}

fn pair(case: &Case, kind: &'static str, random: &mut Random) -> Pair {
    let d = case.dimension;
    let target = row(d, if kind == "outlier" { 100.0 } else { 1.0 }, random);
    let other = row(d, 1.0, random);
    let others = (1..case.rows).map(|_| match kind {
        "duplicate" => target.clone(),
        "one against none" => null(d),
        _ => {
            let length = random.uniform();
            row(d, length, random)
        }
    });
    let others = others.collect();
    neighbours(case, kind, others, target, other)
}

/// One record of length 1 among null ones; replaced by its opposite.
fn alone(case: &Case) -> Pair {
    let d = case.dimension;
    neighbours(case, "telling", vec![null(d); case.rows - 1], axis(d, 0, 1.0, 1.0), axis(d, 0, -1.0, 1.0))
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// A row, clipped to length 1.
fn clipped(row: &Row) -> Vec<f64> {
    let factor = 1.0 / norm(&row.dense).max(1.0);
    row.dense.iter().map(|x| x * factor).collect()
}

/// Sum of vectors.
fn sum(vectors: impl Iterator<Item = Vec<f64>>, dimension: usize) -> Vec<f64> {
    let mut out = vec![0.0; dimension];
    vectors.for_each(|v| out.iter_mut().zip(&v).for_each(|(o, x)| *o += x));
    out
}

/// A standard normal number, in floats: good enough for mechanisms that are broken anyway.
fn normal(words: &mut NoiseRng) -> f64 {
    let (u, v) = (1.0 - words.uniform(), words.uniform());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

impl Subject for Broken {
    fn name(&self) -> String {
        format!("{} ({})", self.case.name, if self.fixed { "repaired" } else { "broken" })
    }

    fn claim(&self) -> &Claim {
        &self.claim
    }

    fn open<'a>(&'a self, rows: &'a [Row]) -> Result<World<'a>> {
        let before = (self.case.before)(rows, self.fixed);
        let mut words = Entropy::system()?.for_units()?;
        Ok(Box::new(move || {
            let mut seeded = before.seed.map(Random::new);
            let mut draw = || match &mut seeded {
                Some(random) => random.normal(),
                None => normal(&mut words),
            };
            let mut numbers: Vec<f64> = before.values.iter().map(|v| v + before.deviation * draw()).collect();
            // Several trials: the one with the largest first number is kept.
            for _ in 1..self.case.trials {
                let again: Vec<f64> = before.values.iter().map(|v| v + before.deviation * draw()).collect();
                if again[0] > numbers[0] {
                    numbers = again;
                }
            }
            numbers.extend(&before.exact);
            Ok(Release { numbers })
        }))
    }

    fn compare(&self, a: &[Row], b: &[Row], _seed: u64) -> Result<Comparison> {
        let (a, b) = ((self.case.before)(a, self.fixed), (self.case.before)(b, self.fixed));
        let apart: Vec<f64> = a.values.iter().zip(&b.values).map(|(x, y)| x - y).collect();
        let distance = norm(&apart);
        let agrees = a.values.len() == b.values.len() && a.sensitivity == b.sensitivity && a.deviation == b.deviation;
        let enough = a.sensitivity <= MU * a.deviation * (1.0 + 1e-9);
        let part = if distance == 0.0 { 0.0 } else { distance / a.sensitivity };
        let moved = Moved { what: "value before noise", part, holds: agrees && enough && part <= 1.0 + 1e-9 };
        let bits = |v: &[f64]| -> Vec<u64> { v.iter().map(|x| x.to_bits()).collect() };
        Ok(Comparison { moved: vec![moved], equal: bits(&a.exact) == bits(&b.exact) })
    }

    fn one_gaussian(&self) -> bool {
        self.case.trials == 1
    }

    fn executed(&self, _rows: &[Row]) -> Result<Event> {
        let doubled = if self.case.adjacency == Adjacency::ReplaceOne { 2.0 } else { 1.0 };
        Ok(Event::gaussian(doubled / MU).repeated(self.case.trials))
    }
}
