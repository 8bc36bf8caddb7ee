//! Tuning on rows that are declared public: free, since nobody's privacy is in them. The winner is then trained on the private records by
//! itself, with the whole budget.
//!
//! There may be fewer public rows than private ones. Noise and ridge are for sums, so both are brought to scale: with m public rows for n
//! private ones epsilon is times n/m, which gives the noise the same size against a row, and the ridge is times m/n.

use super::fit::{Job, prepare};
use super::tune::{Candidate, Tuning};
use crate::data::encode::Row;
use crate::data::load::{Records, count, load, read_labels};
use crate::data::{Each, Reader};
use crate::error::{Error, Result};
use crate::model::Metrics;
use crate::schema::{Schema, TargetValues, UnitOfPrivacy};
use privfit_kernel::Entropy;
use privfit_kernel::account::Adjacency;
use privfit_kernel::engine::Engine;
use std::cell::Cell;

/// Parts of the public rows; each candidate is trained without each of them and tried on it.
const FOLDS: u64 = 3;

/// What a candidate reached, and the job it makes.
pub struct TrialResult {
    /// The candidate.
    pub candidate: Candidate,
    /// Mean accuracy, or minus the mean root of the squared error, over the folds.
    pub score: f64,
}

/// The job of a candidate.
pub fn job_of(candidate: &Candidate, job: &Job) -> Job {
    let mut job = job.clone();
    job.method = candidate.method.clone().unwrap_or(job.method);
    job.settings.0.extend(candidate.settings.clone());
    job
}

/// Tries every candidate on public rows; the best comes first. `rows` is the public number of private records.
pub fn rank(
    job: &Job,
    tuning: &Tuning,
    rows: u64,
    public: &dyn Records,
    engine: &dyn Engine,
    progress: &dyn Fn(),
) -> Result<Vec<TrialResult>> {
    if job.schema.unit != UnitOfPrivacy::Row {
        return Err(Error::misuse("tuning on public rows is for unit = \"row\": tune without ").naming("public"));
    }
    let all = count(public, &job.schema)?;
    if all < 10 * FOLDS {
        return Err(Error::misuse(format!("there are {all} public rows: give at least {}", 10 * FOLDS)));
    }
    let scale = (all - all / FOLDS) as f64 / rows.max(1) as f64;
    let mut tried = Vec::new();
    for candidate in &tuning.candidates {
        let mut trial = job_of(candidate, job);
        (trial.rows, trial.schema.rows, trial.allow_large_delta) = (None, None, true);
        trial.epsilon = (job.epsilon / scale).min(1000.0);
        if trial.adjacency == Adjacency::AddRemove {
            trial.adjacency = Adjacency::ZeroOut;
        }
        if let Some(ridge) = trial.settings.0.get_mut("ridge") {
            *ridge *= scale;
        }
        let mut total = 0.0;
        for fold in 0..FOLDS {
            let (rest, part) = (Folded::new(public, fold, false), Folded::new(public, fold, true));
            let size = count(&rest, &trial.schema)?;
            // The same noise for all candidates; a seed is enough where nothing is private.
            let entropy = Entropy::simulated(fold);
            let prepared = prepare(&trial, size, true).map_err(|e| e.after(format!("candidate {}: ", candidate.text())))?;
            let data = load(&rest, &trial.schema, prepared.plan.row_form(), &entropy, Some(size))?;
            let artifact = prepared.train(&data, engine, &entropy, &|| {})?;
            total += score(&artifact.model, &part, &trial.schema)?;
            progress();
        }
        tried.push(TrialResult { candidate: candidate.clone(), score: total / FOLDS as f64 });
    }
    tried.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(tried)
}

/// Runs that `rank` makes.
pub fn steps(tuning: &Tuning) -> u64 {
    FOLDS * tuning.candidates.len() as u64
}

/// Exact accuracy, or minus the root of the mean squared error, on public rows.
fn score(model: &crate::model::Model, rows: &dyn Records, schema: &Schema) -> Result<f64> {
    let bounds = match schema.target.values {
        TargetValues::Bounds(low, high) => Some((low, high)),
        _ => None,
    };
    let (mut metrics, mut row, mut labels) = (Metrics::default(), Row::default(), None);
    for part in 0..rows.parts() {
        let mut reader = rows.open(part, schema)?;
        let encoder = model.encoder(schema, reader.columns(), true)?;
        if part == 0 {
            labels = read_labels(rows, schema, &encoder)?.map(|l| l.into_iter());
        }
        reader.read(&mut |record| {
            encoder.encode(record, None, &mut row);
            if let Some((label, target)) = labels.as_mut().and_then(|l| l.next()) {
                (row.label, row.target) = (label, target);
            }
            metrics.add(model, &row, bounds);
        })?;
    }
    let report = metrics.report();
    let find = |name: &str| report.iter().find(|m| m.0 == name).map(|m| m.1);
    find("accuracy")
        .or(find("rmse").map(|e| -e))
        .ok_or_else(|| Error::misuse("the public rows have no labels: give labelled rows"))
}

/// Every third record of others, or all the rest.
struct Folded<'a> {
    inner: &'a dyn Records,
    fold: u64,
    inside: bool,
    rows: Cell<u64>,
    labels: Cell<u64>,
}

impl<'a> Folded<'a> {
    fn new(inner: &'a dyn Records, fold: u64, inside: bool) -> Folded<'a> {
        Folded { inner, fold, inside, rows: Cell::new(0), labels: Cell::new(0) }
    }
}

impl Records for Folded<'_> {
    fn parts(&self) -> usize {
        self.inner.parts()
    }

    fn open(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>> {
        if part == 0 {
            self.rows.set(0);
        }
        Ok(Box::new(Every { inner: self.inner.open(part, schema)?, of: self, at: &self.rows }))
    }

    fn label_parts(&self, schema: &Schema) -> usize {
        self.inner.label_parts(schema)
    }

    fn open_labels(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>> {
        if part == 0 {
            self.labels.set(0);
        }
        Ok(Box::new(Every { inner: self.inner.open_labels(part, schema)?, of: self, at: &self.labels }))
    }

    fn check(&self, schema: &Schema) -> Result<()> {
        self.inner.check(schema)
    }
}

struct Every<'a> {
    inner: Box<dyn Reader + 'a>,
    of: &'a Folded<'a>,
    at: &'a Cell<u64>,
}

impl Reader for Every<'_> {
    fn columns(&self) -> &[String] {
        self.inner.columns()
    }

    fn header_rows(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let (of, at) = (self.of, self.at);
        self.inner.read(&mut |record| {
            let i = at.replace(at.get() + 1);
            if (i % FOLDS == of.fold) == of.inside {
                each(record);
            }
        })
    }
}
