//! A job and its ledger, in the one order that is safe: reserve before data are opened, commit before anything is published. The command
//! and the bindings call this function, so that their order can't differ.

use crate::artifact::{Artifact, LARGEST, publish, publish_new};
use crate::certificate::{Declared, up};
use crate::data::load::Records;
use crate::error::{Error, Result};
use crate::fit::Prepared;
use crate::ledger::{Ledger, Position, Request, Reserved, random_name};
use crate::tune::Tuned;
use privfit_kernel::{Dataset, Entropy};
use std::path::Path;

/// Who pays.
pub struct Payer {
    /// The budget.
    pub ledger: Ledger,
    /// Name of the request; without one it gets a random name.
    pub request: Option<String>,
    /// Told the name before anything is reserved: whatever happens then, it is what to ask for.
    pub announce: fn(&str),
}

/// Where a release goes.
#[derive(Clone, Copy)]
pub struct OutputTarget<'a> {
    /// The file.
    pub path: &'a Path,
    /// Whether one that is there may be lost.
    pub replace: bool,
}

impl OutputTarget<'_> {
    /// Refuses to lose a file, unless it is what was released under this name before.
    pub fn check(&self, payer: Option<&mut Payer>) -> Result<()> {
        let there = self.path.symlink_metadata().is_ok();
        if self.replace || !there || payer.is_some_and(|p| p.released_before().is_some_and(|bytes| self.holds(&bytes))) {
            return Ok(());
        }
        Err(Error::misuse(format!("{} is there already: give another --out, or --force to lose it", self.path.display())))
    }

    fn holds(&self, bytes: &[u8]) -> bool {
        crate::small_file::read(self.path, LARGEST as u64).is_ok_and(|there| there == bytes)
    }

    fn publish(&self, bytes: &[u8]) -> Result<()> {
        match self.replace {
            true => publish(self.path, bytes),
            false if self.holds(bytes) => Ok(()),
            false => publish_new(self.path, bytes),
        }
    }
}

/// What became of a request.
pub enum Paid {
    /// It is spent, and the job may go on.
    Now(Spending),
    /// It was released before under this name; these are the bytes.
    Before(String, Vec<u8>),
}

/// A reservation.
pub struct Spending {
    ledger: Ledger,
    name: String,
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
        let wanted = request(&name)?;
        (self.announce)(&name);
        Ok(match self.ledger.reserve(&wanted)? {
            Reserved::Before(bytes) => Paid::Before(name, bytes),
            Reserved::Now(position) => Paid::Now(Spending { ledger: self.ledger, name, position }),
        })
    }

    /// What was released under the name of the request.
    fn released_before(&mut self) -> Option<Vec<u8>> {
        self.ledger.released_under(self.request.as_ref()?).ok()
    }
}

impl Spending {
    /// Writes down what is released; after that it may be published.
    pub fn commit(&mut self, bytes: &[u8]) -> Result<()> {
        self.ledger.commit(&self.position.request, bytes.to_vec())
    }

    fn undelivered(&self, committed: bool) -> impl Fn(Error) -> Error {
        undelivered(&self.name, committed)
    }
}

/// What is paid for is not lost: the error says under which name it is found.
fn undelivered(name: &str, committed: bool) -> impl Fn(Error) -> Error {
    move |error| Error::Undelivered { request: name.into(), committed, why: error.to_string() }
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
    pub out: Option<OutputTarget<'a>>,
    /// Called when everything is paid for and the records are about to be read.
    pub opening: &'a dyn Fn(),
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
    let Order { source, entropy, payer, declared, threads, out, opening, opened, tick } = order;
    let mut made = None;
    let StoredRelease { bytes, before, .. } = release(payer, out, &|name| work.request(name), |position| {
        opening();
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

/// What was released.
pub struct StoredRelease {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the same request was released before, so that nothing was spent now.
    pub before: bool,
    /// Name under which a ledger delivers them again.
    pub request: Option<String>,
}

/// The order itself: reserves, makes what is to be released, commits its bytes, publishes them.
pub fn release(
    mut payer: Option<Payer>,
    out: Option<OutputTarget<'_>>,
    request: &dyn Fn(&str) -> Result<Request>,
    make: impl FnOnce(Option<&Position>) -> Result<Vec<u8>>,
) -> Result<StoredRelease> {
    out.map_or(Ok(()), |out| out.check(payer.as_mut()))?;
    let mut spending = match payer.map(|payer| payer.reserve(request)).transpose()? {
        None => None,
        Some(Paid::Now(spending)) => Some(spending),
        Some(Paid::Before(name, bytes)) => {
            out.map_or(Ok(()), |out| out.publish(&bytes)).map_err(undelivered(&name, true))?;
            return Ok(StoredRelease { bytes, before: true, request: Some(name) });
        }
    };
    // Whatever fails from here on, what was reserved stays spent, and whoever reads the message should know.
    let bytes = make(spending.as_ref().map(|s| &s.position)).map_err(|error| match error {
        Error::Misuse(text) if spending.is_some() => Error::Misuse(format!("{text} (what was reserved stays spent)")),
        other => other,
    })?;
    if let Some(spending) = &mut spending {
        spending.commit(&bytes).map_err(spending.undelivered(false))?;
    }
    out.map_or(Ok(()), |out| out.publish(&bytes)).map_err(|error| match &spending {
        Some(spending) => spending.undelivered(true)(error),
        None => Error::Output(format!("{error}; what was made is lost, and another run has a privacy cost of its own")),
    })?;
    Ok(StoredRelease { bytes, before: false, request: spending.map(|s| s.name) })
}
