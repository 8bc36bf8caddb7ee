//! Releases that are no plain fit as subjects: private metrics, private bounds, tuning. The plan, the kernel and the noise are those of the
//! command, and everything that leaves is looked at: all noisy sums, all noisy counts, the winner with its weights and its score.

use super::shipped::small_schema;
use super::subject::{Claim, Comparison, Moved, Release, Subject, World};
use crate::constraint::Constraint;
use crate::data::cells::RowForm;
use crate::data::encode::Row;
use crate::data::generate::private;
use crate::data::memory::{Matrix, Memory, Rows};
use crate::error::{Error, Result};
use crate::job::bounds::{self, BoundsRelease, Draft};
use crate::job::evaluate::{self, Measurement};
use crate::job::fit::Job;
use crate::job::tune::{self, Tuned, Tuning};
use crate::job::{PublicFacts, Release as _};
use crate::loss;
use crate::method::{self, Settings};
use crate::model::Model;
use crate::network::{Network, NetworkModel, Shape};
use crate::schema::{Schema, Task};
use privfit_kernel::account::{Adjacency, Event, Target};
use privfit_kernel::engine::Threads;
use privfit_kernel::{Dataset, Entropy, Run};

/// A job that is not a plain fit.
pub struct JobSubject {
    kind: JobKind,
    schema: Schema,
    claim: Claim,
}

enum JobKind {
    Metrics(Measurement),
    Bounds(BoundsRelease),
    Tuning(Box<Tuned>),
}

/// A weak setting, as for methods: epsilon 10 at delta 1e-5.
const TARGET: Target = Target { epsilon: 10.0, delta: 1e-5 };

fn job(schema: &Schema, adjacency: Adjacency) -> Job {
    Job {
        schema: schema.clone(),
        rows: None,
        epsilon: TARGET.epsilon,
        delta: Some(TARGET.delta),
        adjacency,
        loss: None,
        method: method::noisy_gd::METHOD.name.into(),
        settings: Settings([("momentum".to_string(), 0.0)].into()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: false,
        auxiliary: None,
        layers: None,
        pretrained: None,
    }
}

fn facts(schema: &Schema, adjacency: Adjacency, rows: u64) -> Result<PublicFacts> {
    PublicFacts::new(schema.clone(), (rows, false), adjacency, (TARGET.epsilon, Some(TARGET.delta)), true)
}

impl JobSubject {
    /// Private metrics of a model of two features, on so many rows: classes, or a number.
    pub fn metrics(number: bool, adjacency: Adjacency, rows: u64) -> Result<JobSubject> {
        let schema = small_schema(number.then_some(loss::usual_name(Task::Number)))?;
        let weights = vec![vec![3.0, -1.0, 0.25]];
        let (loss, parameters) = match number {
            true => (loss::usual(Task::Number), vec![2.0]),
            false => (loss::usual(Task::Classes(2)), vec![1.0, 1.0]),
        };
        let model = Model::new(loss.ok_or(Error::Host)?, parameters, if number { 0 } else { 2 }, weights, None);
        let kind = JobKind::Metrics(evaluate::prepare(&model, facts(&schema, adjacency, rows)?)?);
        Ok(JobSubject::of(kind, schema, adjacency))
    }

    /// Private metrics of a network of two features that tells two classes apart.
    pub fn network_metrics(adjacency: Adjacency, rows: u64) -> Result<JobSubject> {
        let schema = small_schema(None)?;
        let network = Network::new(Shape::flat(2), &[], 2, 1.0, 0.0)?;
        // Scores s and -s of the same feature and constant.
        let weights = [3.0, -3.0, -1.0, 1.0, 0.25, -0.25];
        let loss = loss::usual_of_layers(Task::Classes(2)).ok_or(Error::Host)?;
        let model = Model::Network(Box::new(NetworkModel::new(&network, loss.name, Vec::new(), &weights)));
        let kind = JobKind::Metrics(evaluate::prepare(&model, facts(&schema, adjacency, rows)?)?);
        Ok(JobSubject::of(kind, schema, adjacency))
    }

    /// Private bounds of two columns; a row holds their cells as they are.
    pub fn bounds(adjacency: Adjacency, rows: u64) -> Result<JobSubject> {
        let draft = Draft::parse(
            "[dataset]\nname = \"d\"\n[features.a]\ntype = \"number\"\nmin = \"?\"\nmax = \"?\"\n[features.b]\ntype = \"number\"\nmin = 0\n\
             max = \"?\"\n",
        )?;
        let schema = draft.schema().clone();
        let kind = JobKind::Bounds(bounds::prepare(draft, facts(&schema, adjacency, rows)?, 0.01)?);
        Ok(JobSubject::of(kind, schema, adjacency))
    }

    /// Tuning over two candidates that differ in their steps, on so many rows, half of them held out.
    pub fn tuning(adjacency: Adjacency, rows: u64, runs: u64) -> Result<JobSubject> {
        let schema = small_schema(None)?;
        let table: toml::Table = toml::from_str(&format!("runs = {runs}\nheld_out = 0.5\n[grid]\nsteps = [1, 2]\n"))
            .map_err(|_| Error::misuse("the grid of this audit is not TOML"))?;
        let tuned = tune::prepare(&job(&schema, adjacency), &Tuning::parse(&table)?, rows, false)?;
        Ok(JobSubject::of(JobKind::Tuning(Box::new(tuned)), schema, adjacency))
    }

    fn of(kind: JobKind, schema: Schema, adjacency: Adjacency) -> JobSubject {
        let event = match &kind {
            JobKind::Metrics(m) => m.event(),
            JobKind::Bounds(b) => b.event(),
            JobKind::Tuning(t) => t.event(),
        };
        let claim = Claim::new(event.clone(), adjacency, TARGET.delta);
        JobSubject { kind, schema, claim }
    }

    /// The same job with another claim, such as a wrong one.
    pub fn claiming(self, claim: Claim) -> JobSubject {
        JobSubject { claim, ..self }
    }

    /// Public facts.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    fn event(&self) -> &Event {
        match &self.kind {
            JobKind::Metrics(m) => m.event(),
            JobKind::Bounds(b) => b.event(),
            JobKind::Tuning(t) => t.event(),
        }
    }

    fn dataset(&self, rows: &[Row], entropy: &Entropy) -> Result<Dataset> {
        match &self.kind {
            JobKind::Bounds(bounds) => bounds.records(&Memory { rows: Rows::Dense(&Cells(rows)), labels: None }, entropy),
            _ => private(rows, &self.schema, RowForm::Features, entropy),
        }
    }

    fn release(&self, run: &mut Run<'_>) -> Result<Vec<f64>> {
        match &self.kind {
            JobKind::Metrics(m) => m.release(run),
            JobKind::Bounds(b) => b.release(run),
            JobKind::Tuning(_) => Err(Error::misuse("a selection is many runs: audit it in two worlds")),
        }
    }
}

/// Cells of rows that are not encoded yet.
struct Cells<'a>(&'a [Row]);

impl Matrix for Cells<'_> {
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn width(&self) -> usize {
        self.0.first().map_or(0, |r| r.dense.len())
    }

    fn copy(&self, start: usize, out: &mut [f64]) {
        let width = self.width();
        out.chunks_mut(width.max(1)).zip(&self.0[start..]).for_each(|(to, row)| to.copy_from_slice(&row.dense));
    }
}

impl Subject for JobSubject {
    fn name(&self) -> String {
        match &self.kind {
            JobKind::Metrics(_) => "private metrics",
            JobKind::Bounds(_) => "private bounds",
            JobKind::Tuning(_) => "tuning",
        }
        .into()
    }

    fn claim(&self) -> &Claim {
        &self.claim
    }

    fn open<'a>(&'a self, rows: &'a [Row]) -> Result<World<'a>> {
        let entropy = Entropy::system()?;
        let engine = Threads::new(1);
        if let JobKind::Tuning(tuned) = &self.kind {
            return Ok(Box::new(move || {
                // A split takes the records, so they are built for each release.
                let winner = tuned.select(self.dataset(rows, &entropy)?, &engine, &entropy, &|| {})?.into_value();
                let numbers = match winner {
                    Some(winner) => [&[winner.candidate as f64, winner.score][..], &winner.value].concat(),
                    None => vec![-1.0; 2 + tuned.weights()],
                };
                Ok(Release { numbers })
            }));
        }
        let data = self.dataset(rows, &entropy)?;
        Ok(Box::new(move || {
            let mut run = Run::begin(&data, &engine, &entropy, self.event())?;
            let numbers = self.release(&mut run)?;
            Ok(Release { numbers: run.close(numbers)?.into_value() })
        }))
    }

    fn compare(&self, a: &[Row], b: &[Row], seed: u64) -> Result<Comparison> {
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(seed));
        let (first, second) = (self.dataset(a, &entropy)?, self.dataset(b, &entropy)?);
        let mut run = Run::recorded(&first, &engine, &entropy, self.event())?;
        let before = self.release(&mut run)?;
        let transcript = run.transcript()?;
        let entropy = Entropy::simulated(seed);
        let mut run = Run::replayed(&second, &engine, &entropy, self.event(), &transcript)?;
        let after = self.release(&mut run)?;
        let adjacency = self.claim.adjacency;
        let moved = run.movements()?;
        let moved = moved.iter().map(|m| Moved {
            what: m.what,
            part: m.moved as f64 / m.allowed(adjacency).max(1) as f64,
            holds: m.holds(adjacency),
        });
        Ok(Comparison { moved: moved.collect(), equal: before == after })
    }

    fn one_gaussian(&self) -> bool {
        !matches!(self.kind, JobKind::Tuning(_))
    }

    fn executed(&self, rows: &[Row]) -> Result<Event> {
        let (entropy, engine) = (Entropy::system()?, Threads::new(1));
        let data = self.dataset(rows, &entropy)?;
        if let JobKind::Tuning(tuned) = &self.kind {
            return Ok(tuned.select(data, &engine, &entropy, &|| {})?.event().clone());
        }
        let mut run = Run::begin(&data, &engine, &entropy, self.event())?;
        let numbers = self.release(&mut run)?;
        Ok(run.close(numbers)?.executed().clone())
    }
}
