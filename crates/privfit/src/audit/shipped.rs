//! Shipped methods as subjects: the plan, the kernel and the noise of `fit`, without the model file.

use super::pair::RowMaker;
use super::subject::{Claim, Comparison, Moved, Release, Subject, World};
use crate::artifact::Artifact;
use crate::constraint::Constraint;
use crate::data::encode::Row;
use crate::data::generate::private;
use crate::error::{Error, Result};
use crate::job::fit::{Job, Prepared, prepare};
use crate::loss::{self, Kind};
use crate::method::{self, Settings};
use crate::schema::Schema;
use privfit_kernel::account::{Adjacency, Event};
use privfit_kernel::engine::Threads;
use privfit_kernel::{Dataset, Entropy, Run};

/// A shipped method with its plan.
pub struct Shipped {
    prepared: Prepared,
    schema: Schema,
    claim: Claim,
    one_gaussian: bool,
}

/// What is to be audited.
#[derive(Clone)]
pub struct Question {
    /// Name of the method.
    pub method: String,
    /// Name of the loss; none for the usual one.
    pub loss: Option<String>,
    /// Public facts; none for two features between -1 and 1.
    pub schema: Option<Schema>,
    /// Rows.
    pub rows: u64,
    /// Epsilon of the claim.
    pub epsilon: f64,
    /// Delta of the claim.
    pub delta: f64,
    /// What "one record differs" means.
    pub adjacency: Adjacency,
    /// Numbers of method and loss.
    pub settings: Settings,
    /// Layers of a network; none for those that public facts suggest.
    pub layers: Option<Vec<String>>,
}

impl Default for Question {
    /// A weak setting: a mu of 2, at which a wrong constant shows in a few hundred runs; at epsilon 1 it takes tens of thousands.
    fn default() -> Question {
        Question {
            method: "auto".into(),
            loss: None,
            schema: None,
            rows: 3,
            epsilon: 10.0,
            delta: 1e-5,
            adjacency: Adjacency::ZeroOut,
            settings: Settings::default(),
            layers: None,
        }
    }
}

/// Two features between -1 and 1, and a target that the loss can take.
pub(crate) fn small_schema(loss: Option<&str>) -> Result<Schema> {
    let target = match loss.and_then(loss::find) {
        Some(l) if l.kind == Kind::Number && l.counts => "[target]\ncolumn = \"y\"\nbounds = [0, 1]\n",
        Some(l) if l.kind == Kind::Number => "[target]\ncolumn = \"y\"\nbounds = [-1.0, 1.0]\n",
        Some(l) if l.kind == Kind::Location => "",
        Some(l) if l.multiclass => "[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\", \"c\"]\n",
        _ => "[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n",
    };
    Schema::parse(&format!(
        "[dataset]\nname = \"generated\"\n{target}[features.a]\ntype = \"number\"\nmin = -1\nmax = 1\n\
         [features.b]\ntype = \"number\"\nmin = -1\nmax = 1\n"
    ))
}

impl Shipped {
    /// Plans. Without schema and loss: for two classes, or for a number or a point if the method takes no classes.
    pub fn new(question: &Question) -> Result<Shipped> {
        if let Some(schema) = &question.schema {
            return Shipped::with(question, schema.clone());
        }
        let first = Shipped::with(question, small_schema(question.loss.as_deref())?);
        if first.is_ok() || question.loss.is_some() {
            return first;
        }
        for loss in loss::ALL.iter().filter(|l| l.multiclass || l.least_squares || l.kind == Kind::Location) {
            let other = Question { loss: Some(loss.name.into()), ..question.clone() };
            if let Ok(subject) = Shipped::with(&other, small_schema(Some(loss.name))?) {
                return Ok(subject);
            }
        }
        first
    }

    /// Exactly the plan that a model file records, with its claim; refused where this version cannot make it again.
    pub fn of_model(artifact: &Artifact) -> Result<Shipped> {
        if artifact.training.inputs.as_ref().is_some_and(|i| i.auxiliary.is_some()) {
            return Err(Error::misuse(
                "the model was taught on public rows, which its file does not hold: audit its method by name",
            ));
        }
        let prepared = crate::verify::prepared(artifact)?;
        if !crate::verify::same_event(prepared.plan.event(), &artifact.guarantee.event) {
            return Err(Error::refused(
                "the file records another event than its own facts give: verify it first with `privfit certificate verify`",
            ));
        }
        let (adjacency, delta) = (artifact.guarantee.adjacency, artifact.guarantee.delta);
        let claim = Claim::new(prepared.plan.event().clone(), adjacency, delta);
        Ok(Shipped::of(prepared, artifact.schema.clone(), claim))
    }

    fn with(question: &Question, schema: Schema) -> Result<Shipped> {
        let published = method::find(&question.method).is_some_and(|m| m.published);
        let job = Job {
            schema: schema.clone(),
            rows: Some(question.rows),
            epsilon: question.epsilon,
            delta: Some(question.delta),
            adjacency: question.adjacency,
            loss: question.loss.clone(),
            method: question.method.clone(),
            settings: question.settings.clone(),
            constraint: Constraint::None,
            allow_large_delta: true,
            compare: published,
            auxiliary: None,
            layers: question.layers.clone(),
            pretrained: None,
        };
        let prepared = prepare(&job, question.rows, false)?;
        // A published form is held against what it prints, not against what we know about it.
        let claim = match published {
            true => Claim::asked(question.epsilon, question.delta, question.adjacency),
            false => Claim::new(prepared.plan.event().clone(), question.adjacency, question.delta),
        };
        Ok(Shipped::of(prepared, schema, claim))
    }

    fn of(prepared: Prepared, schema: Schema, claim: Claim) -> Shipped {
        let single = |e: &Event| matches!(e, Event::DiscreteGaussian { .. } | Event::Gaussian { .. });
        let one_gaussian = prepared.method.can.affine
            && match prepared.plan.event() {
                Event::Repeat { times: 1, event } => single(event),
                Event::Compose(events) => events.len() == 1 && single(&events[0]),
                event => single(event),
            };
        Shipped { prepared, schema, claim, one_gaussian }
    }

    /// The plan and what it rests on.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// Public facts.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Makes rows for it.
    pub fn row_maker(&self) -> Result<RowMaker> {
        RowMaker::new(&self.schema, self.prepared.plan.row_form())
    }

    /// Rows as private records.
    pub fn dataset(&self, rows: &[Row]) -> Result<Dataset> {
        // Building rows draws nothing.
        private(rows, &self.schema, self.prepared.plan.row_form(), &Entropy::simulated(0))
    }

    fn run(&self, run: &mut Run<'_>) -> Result<Vec<f64>> {
        Ok(self.prepared.plan.learn(run, &|| {})?.numbers())
    }
}

impl Subject for Shipped {
    fn name(&self) -> String {
        format!("{} with loss {}", self.prepared.method.name, self.prepared.problem.loss.name)
    }

    fn claim(&self) -> &Claim {
        &self.claim
    }

    fn open<'a>(&'a self, rows: &'a [Row]) -> Result<World<'a>> {
        let data = self.dataset(rows)?;
        let entropy = Entropy::system()?;
        let engine = Threads::new(1);
        Ok(Box::new(move || {
            let mut run = Run::begin(&data, &engine, &entropy, self.prepared.plan.event())?;
            let numbers = self.run(&mut run)?;
            Ok(Release { numbers: run.close(numbers)?.into_value() })
        }))
    }

    fn compare(&self, a: &[Row], b: &[Row], seed: u64) -> Result<Comparison> {
        let (first, second) = (self.dataset(a)?, self.dataset(b)?);
        let engine = Threads::new(1);
        let event = self.prepared.plan.event();
        let entropy = Entropy::simulated(seed);
        let mut run = Run::recorded(&first, &engine, &entropy, event)?;
        let before = self.run(&mut run)?;
        let transcript = run.transcript()?;
        let before = run.close(before)?.into_value();
        let entropy = Entropy::simulated(seed);
        let mut run = Run::replayed(&second, &engine, &entropy, event, &transcript)?;
        let after = self.run(&mut run)?;
        let moved = run.movements()?;
        let after = run.close(after)?.into_value();
        let adjacency = self.claim.adjacency;
        let moved = moved.iter().map(|m| Moved {
            what: m.what,
            part: m.moved as f64 / m.allowed(adjacency).max(1) as f64,
            holds: m.holds(adjacency),
        });
        let bits = |v: &[f64]| -> Vec<u64> { v.iter().map(|x| x.to_bits()).collect() };
        Ok(Comparison { moved: moved.collect(), equal: bits(&before) == bits(&after) })
    }

    fn one_gaussian(&self) -> bool {
        self.one_gaussian
    }

    fn executed(&self, rows: &[Row]) -> Result<Event> {
        let data = self.dataset(rows)?;
        let (entropy, engine) = (Entropy::system()?, Threads::new(1));
        let mut run = Run::begin(&data, &engine, &entropy, self.prepared.plan.event())?;
        let numbers = self.run(&mut run)?;
        Ok(run.close(numbers)?.executed().clone())
    }
}
