//! Labels of points that come one by one: sparse vector over distances to instability (`query/threshold.rs` of the kernel has the claim).
//!
//! Sure answers cost nothing; an unsure one ends a stretch, and the next stretch draws its threshold anew. What costs is a stretch, so that each is written down
//! in the ledger before its threshold is drawn, and every answer of it is written after that. A process that is killed has spent the stretch that it was in; the
//! next one begins another, on parts of its own: stretches are mechanisms of their own, whatever ensemble they ask, and compose as any others do. At most one
//! unstable answer can leave in a stretch, so that delta holds for all of them together, across restarts.

use super::facts::PublicFacts;
use super::fit::{Job, Prepared, prepare};
use super::release::Release;
use crate::data::csv::Csv;
use crate::data::encode::{Encoder as RowEncoder, Row};
use crate::data::load::Records;
use crate::error::{Error, Result};
use crate::ledger::record::Scope;
use crate::ledger::{Ledger, Request, Reserved, digest};
use crate::method::ensemble::METHOD;
use crate::method::ensemble::encoder::{Encoder, View};
use crate::method::ensemble::plan::{EnsembleSettings, usual_parts};
use crate::method::ensemble::teacher::{label_of_point, learner};
use crate::method::rounded;
use crate::method::settings::Teachers;
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::engine::Engine;
use privfit_kernel::{AboveThreshold, Dataset, Entropy, PublicRows, Run, StableLabel, Train};
use std::sync::Arc;

/// Most stretches: each is a record of the ledger.
pub const MOST_UNSURE: u64 = 900;

/// A server of labels, complete before data are opened.
pub struct OnlineJob {
    prepared: Prepared,
    settings: EnsembleSettings,
    parts: u32,
    classes: usize,
    unsure: u64,
    test: AboveThreshold,
    event: Event,
    points: Arc<PublicRows>,
}

/// What became of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// There are no more points; the same request goes on.
    Paused,
    /// All unsure answers are spent.
    Ended,
}

/// Where stretches are written down before they begin.
pub trait Stretches {
    /// How many have begun.
    fn begun(&self) -> u64;
    /// One more begins; when this returns it is on the disk.
    fn begin(&mut self) -> Result<()>;
}

/// In a ledger, under one request.
pub struct InLedger {
    ledger: Ledger,
    request: String,
    attempt: u64,
    begun: u64,
}

impl Stretches for InLedger {
    fn begun(&self) -> u64 {
        self.begun
    }

    fn begin(&mut self) -> Result<()> {
        self.ledger.keep(&self.request, self.attempt, (self.begun + 1).to_le_bytes().to_vec())?;
        self.begun += 1;
        Ok(())
    }
}

impl InLedger {
    /// All are spent: nothing more is answered under this request.
    pub fn finish(&mut self) -> Result<()> {
        self.ledger.commit_attempt(&self.request, self.attempt, b"{\"format\":\"privfit-served\"}\n".to_vec())
    }
}

/// In memory, for simulations.
#[derive(Default)]
pub struct InMemory(pub u64);

impl Stretches for InMemory {
    fn begun(&self) -> u64 {
        self.0
    }

    fn begin(&mut self) -> Result<()> {
        self.0 += 1;
        Ok(())
    }
}

/// Plans. `unsure`: how many answers may be unsure. Public points are for the encoder alone, and may be missing where rows are as they are.
pub fn plan(job: &Job, rows: u64, counted: bool, unsure: u64) -> Result<OnlineJob> {
    if !(1..=MOST_UNSURE).contains(&unsure) {
        return Err(Error::misuse(format!("{unsure} answers may be unsure: give from 1 to {MOST_UNSURE}")));
    }
    let given = job.auxiliary.clone();
    let one = || Arc::new(PublicRows::new(vec![0.0; job.schema.dimension()], job.schema.dimension()));
    let job = Job { method: METHOD.name.into(), auxiliary: Some(given.clone().unwrap_or_else(one)), ..job.clone() };
    let prepared = prepare(&job, rows, counted)?;
    let problem = &prepared.problem;
    let settings = EnsembleSettings::parse(&problem.settings)?;
    let classes = problem.task.classes();
    match settings.teachers {
        Teachers::Command => {
            return Err(
                Error::misuse("points that come one by one are for teachers of privfit's own: leave out ").naming("command")
            );
        }
        Teachers::Additive | Teachers::Network if given.is_none() => {
            return Err(Error::misuse("these teachers share an encoder that is made from public points: add ").naming("points"));
        }
        _ if problem.features > 256 && given.is_none() => {
            return Err(
                Error::misuse("rows of so many features are projected on directions of public points: add ").naming("points")
            );
        }
        _ => {}
    }
    let parts = settings.parts.unwrap_or(usual_parts(rows.max(2), settings.teachers, classes)) as u32;
    // A quarter of delta is for unstable answers that leave: replace-one counts it twice, by group privacy, although votes move alike.
    let mistakes = 0.25 * problem.target.delta;
    let test = |scale: f64| AboveThreshold::new(1.0 / scale, unsure, mistakes);
    let scale = calibrate(problem.target, |scale| test(scale).map(|t| t.event()), problem.adjacency)?;
    let test = test(scale)?;
    let event = test.event();
    let points = given.unwrap_or_else(|| Arc::new(PublicRows::new(Vec::new(), problem.features)));
    Ok(OnlineJob { settings, parts, classes, unsure, test, event, points, prepared })
}

impl OnlineJob {
    /// What it costs.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The public facts.
    pub fn facts(&self) -> &PublicFacts {
        self.prepared.facts()
    }

    /// Its parameters, for people.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let distance = self.test.distance();
        vec![
            ("parts with a teacher", self.parts.to_string()),
            ("answers that may be unsure", self.unsure.to_string()),
            ("an answer is sure from a lead of", format!("{} votes", rounded(2.0 * distance + 1.0))),
        ]
    }

    /// Whether no vote can be sure: the lead that is needed is more than all votes.
    pub fn is_hopeless(&self) -> bool {
        2.0 * self.test.distance() + 1.0 > f64::from(self.parts)
    }

    fn scope(&self) -> Result<Scope> {
        self.facts().scope()
    }

    /// Spends all of it, or goes on where it was stopped. When this returns it is on the disk.
    pub fn reserve(&self, mut ledger: Ledger, name: &str) -> Result<InLedger> {
        let statement = self.prepared.statement().to_string();
        let words: [&[u8]; 5] =
            [b"serve", env!("CARGO_PKG_VERSION").as_bytes(), name.as_bytes(), statement.as_bytes(), &self.unsure.to_le_bytes()];
        let request = Request {
            name: name.into(),
            job: "serve".into(),
            digest: digest(&words),
            scope: self.scope()?,
            event: self.event.clone(),
            resumable: true,
        };
        match ledger.reserve(&request)? {
            Reserved::Before(_) => {
                Err(Error::refused("all unsure answers of this request are spent: ask under another ").naming("request"))
            }
            Reserved::Now(position) => Ok(InLedger { ledger, request: position.request, attempt: 1, begun: 0 }),
            Reserved::Again { position, attempt, state } => {
                let damaged = || Error::damaged("the ledger keeps something else for this request: restore it from a copy");
                let number = |bytes: Vec<u8>| bytes.try_into().map(u64::from_le_bytes).map_err(|_| damaged());
                let begun = state.map_or(Ok(0), number)?;
                Ok(InLedger { ledger, request: position.request, attempt, begun })
            }
        }
    }

    /// Reads the records.
    pub fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        self.prepared.open(source, entropy)
    }

    /// Answers points until there are no more of them, or no more unsure answers. `next` hands out encoded points, `answer` is given a class or none.
    pub fn serve(
        &self,
        data: &Dataset,
        engine: &dyn Engine,
        entropy: &Entropy,
        stretches: &mut dyn Stretches,
        next: &mut dyn FnMut() -> Option<Vec<f64>>,
        answer: &mut dyn FnMut(Option<usize>) -> Result<()>,
    ) -> Result<Served> {
        let size = (self.settings.directions as usize, self.settings.width as usize);
        let encoder = Encoder::new(&self.points, &self.prepared.problem.columns, self.settings.teachers, size);
        let none = PublicRows::new(Vec::new(), self.points.features());
        let learner = learner(&encoder, &none, self.classes, self.settings.ridge);
        let mut run = Run::begin(data, engine, entropy, &self.event)?.under(self.facts().adjacency);
        let parts = run.parts(self.parts)?;
        let models = run.execute(Train { parts: &parts, learner: &learner, progress: &|| {} })?;
        let mut test = run.execute(self.test)?;
        let numbers = encoder.numbers();
        let view = View::new(&numbers).0;
        loop {
            if test.begins_stretch() && stretches.begun() >= self.unsure {
                return Ok(Served::Ended);
            }
            let Some(row) = next() else { return Ok(Served::Paused) };
            let mut point = vec![self.classes as f32];
            point.extend(view.encode(&row).into_iter().map(|x| x as f32));
            // Durable first: whatever leaves from here on is paid for.
            if test.begins_stretch() {
                stretches.begin()?;
            }
            let asked =
                StableLabel { test: &mut test, models: &models, label: label_of_point, point: &point, classes: self.classes };
            let label = run.execute(asked)?;
            answer(label.map(|label| label as usize))?;
        }
    }

    /// A point from a line of CSV, under the names of a header.
    pub fn point(&self, header: &str, line: &str) -> Result<Vec<f64>> {
        let schema = &self.prepared.problem.schema;
        let mut reader = Csv::open(Box::new(std::io::Cursor::new(format!("{header}\n{line}\n").into_bytes())))?;
        use crate::data::Reader as _;
        let encoder = RowEncoder::new(schema, reader.columns(), false)?;
        let (mut row, mut out) = (Row::default(), vec![0f64; schema.dimension()]);
        reader.read(&mut |record| {
            encoder.encode(record, None, &mut row);
            out.fill(0.0);
            row.dense.iter().enumerate().for_each(|(i, x)| out[i] = *x);
            row.pairs.iter().for_each(|(i, x)| out[*i as usize] = *x);
        })?;
        Ok(out)
    }

    /// A point of which nothing is known.
    pub fn blank(&self) -> Vec<f64> {
        vec![0.0; self.prepared.problem.features]
    }

    /// Name of a class.
    pub fn class_name(&self, class: usize) -> String {
        self.prepared.problem.schema.class_names().get(class).cloned().unwrap_or_default()
    }
}
