//! A job and its ledger, in the one order that is safe: reserve before data are opened, commit before anything is published. The command
//! and the bindings call this function, so that their order can't differ.

use crate::artifact::{Artifact, publish};
use crate::certificate::{Declared, up};
use crate::data::load::Records;
use crate::error::{Error, Result};
use crate::fit::Prepared;
use crate::ledger::{Ledger, Position, Request, Reserved, random_name};
use crate::tune::Tuned;
use privfit_kernel::privacy::{Dataset, Entropy};
use std::path::Path;

/// Who pays.
pub struct Payer {
    /// The budget.
    pub ledger: Ledger,
    /// Name of the request; without one it is a name that nobody will ask for again.
    pub request: Option<String>,
}

/// What became of a request.
pub enum Paid {
    /// It is spent, and the job may go on.
    Now(Spending),
    /// It was released before; these are the bytes.
    Before(Vec<u8>),
}

/// A reservation.
pub struct Spending {
    ledger: Ledger,
    /// Where it stands.
    pub position: Position,
}

impl Payer {
    /// Spends. When this returns it is on the disk.
    pub fn reserve(mut self, request: &dyn Fn(&str) -> Result<Request>) -> Result<Paid> {
        let name = match self.request {
            Some(name) => name,
            None => random_name()?,
        };
        Ok(match self.ledger.reserve(&request(&name)?)? {
            Reserved::Before(bytes) => Paid::Before(bytes),
            Reserved::Now(position) => Paid::Now(Spending { ledger: self.ledger, position }),
        })
    }
}

impl Spending {
    /// Writes down what is released; after that it may be published.
    pub fn commit(&mut self, bytes: &[u8]) -> Result<()> {
        self.ledger.commit(&self.position.request, bytes.to_vec())
    }
}

/// One line about where the ledger stands now.
pub fn line(position: &Position) -> String {
    let p = position;
    let jobs = if p.jobs == 1 { "1 job".to_string() } else { format!("{} jobs", p.jobs) };
    format!("record {}: {jobs} so far, epsilon {} of {} at delta {:e}", p.sequence, up(p.epsilon), p.cap_epsilon, p.delta)
}

/// Everything around a plan that a training job needs.
pub struct Order<'a> {
    /// Where the records are.
    pub source: &'a dyn Records,
    /// Randomness.
    pub entropy: &'a Entropy,
    /// Who pays, if anybody does.
    pub payer: Option<Payer>,
    /// What the job declares about the model.
    pub declared: Declared,
    /// Threads.
    pub threads: usize,
    /// Where the model file goes, if there is to be one.
    pub out: Option<&'a Path>,
    /// Called when the records are read and training begins.
    pub opened: &'a dyn Fn(),
    /// Called after each public step.
    pub tick: &'a dyn Fn(),
}

/// What a training job came to.
pub struct Released {
    /// The model.
    pub artifact: Artifact,
    /// Its file.
    pub bytes: Vec<u8>,
    /// Whether the same request was released before, so that nothing was spent now.
    pub before: bool,
}

/// A training job: what it asks of a ledger, and how records become a model.
pub trait Work {
    /// The request, under a name.
    fn request(&self, name: &str) -> Result<Request>;
    /// Opens the records. What can be said about them from outside is said here.
    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset>;
    /// Trains.
    fn train(&self, data: Dataset, entropy: &Entropy, threads: usize, tick: &dyn Fn()) -> Result<Artifact>;
}

impl Work for Prepared {
    fn request(&self, name: &str) -> Result<Request> {
        self.request(name)
    }

    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        self.open(source, entropy)
    }

    fn train(&self, data: Dataset, entropy: &Entropy, threads: usize, tick: &dyn Fn()) -> Result<Artifact> {
        self.train(&data, entropy, threads, tick)
    }
}

impl Work for Tuned {
    fn request(&self, name: &str) -> Result<Request> {
        self.request(name)
    }

    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        self.open(source, entropy)
    }

    fn train(&self, data: Dataset, entropy: &Entropy, threads: usize, tick: &dyn Fn()) -> Result<Artifact> {
        self.train(data, entropy, threads, tick)
    }
}

/// Reserves, opens the data, trains, commits and publishes.
pub fn fit(work: &dyn Work, order: Order<'_>) -> Result<Released> {
    let Order { source, entropy, payer, declared, threads, out, opened, tick } = order;
    let mut made = None;
    let (bytes, before) = release(payer, out, &|name| work.request(name), |position| {
        let data = work.open(source, entropy)?;
        opened();
        let mut artifact = work.train(data, entropy, threads, tick)?.with_declared(declared);
        if let Some(position) = position {
            artifact = artifact.with_ledger(position.clone());
        }
        let bytes = artifact.to_json()?.into_bytes();
        made = Some(artifact);
        Ok(bytes)
    })?;
    let artifact = match made {
        Some(artifact) => artifact,
        None => Artifact::from_bytes(&bytes)?,
    };
    Ok(Released { artifact, bytes, before })
}

/// The order itself: reserves, makes what is to be released, commits its bytes, publishes them. Gives the bytes, and whether they were
/// released before.
pub fn release(
    payer: Option<Payer>,
    out: Option<&Path>,
    request: &dyn Fn(&str) -> Result<Request>,
    make: impl FnOnce(Option<&Position>) -> Result<Vec<u8>>,
) -> Result<(Vec<u8>, bool)> {
    let mut spending = match payer.map(|payer| payer.reserve(request)).transpose()? {
        None => None,
        Some(Paid::Now(spending)) => Some(spending),
        Some(Paid::Before(bytes)) => {
            out.map_or(Ok(()), |out| publish(out, &bytes))?;
            return Ok((bytes, true));
        }
    };
    // Whatever fails from here on, what was reserved stays spent, and whoever reads the message should know.
    let bytes = make(spending.as_ref().map(|s| &s.position)).map_err(|error| match error {
        Error::Misuse(text) if spending.is_some() => Error::Misuse(format!("{text} (what was reserved stays spent)")),
        other => other,
    })?;
    if let Some(spending) = &mut spending {
        spending.commit(&bytes)?;
    }
    out.map_or(Ok(()), |out| publish(out, &bytes))?;
    Ok((bytes, false))
}
