//! One kind of release, in the one order that is safe: reserve before data are opened, commit before anything is published. The command and
//! the bindings call [`release`], so that their order can't differ. A job that is kept in between (`kept.rs`) has the same order: whatever is
//! kept was reserved as a whole before, and a process that goes on does so under the same reservation.

use super::facts::PublicFacts;
use super::kept::{CheckpointArguments, InLedger, state_of};
use super::output::Output;
use crate::artifact::LARGEST;
use crate::certificate::{Declared, round_up};
use crate::checkpoint::Checkpoints;
use crate::data::cells::RowForm;
use crate::data::load::Records;
use crate::error::{Error, Result};
use crate::ledger::{Ledger, Position, Request, Reserved, digest, random_name};
use crate::publish::{publish, publish_new};
use privfit_kernel::account::Event;
use privfit_kernel::engine::{Engine, Needs};
use privfit_kernel::{Dataset, Entropy};
use std::path::Path;

/// A job with its plan, complete before data are opened: fit, tune, evaluate, bounds, and whatever comes.
pub trait Release {
    /// Its name in a ledger.
    fn kind(&self) -> &'static str;
    /// The public facts that the plan rests on.
    fn facts(&self) -> &PublicFacts;
    /// What it costs.
    fn event(&self) -> &Event;
    /// What it asks of an engine.
    fn needs(&self) -> Needs;
    /// Steps that `run` reports; public.
    fn steps(&self) -> u64;
    /// Everything that the job says, for the digest of its request; where its files are is not in it.
    fn statement(&self) -> serde_json::Value;
    /// Reads the records. What can be said about them from outside is said here.
    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        self.facts().open(source, RowForm::Features, entropy)
    }
    /// Runs on the records.
    fn run(&self, data: Dataset, engine: &dyn Engine, entropy: &Entropy, progress: &dyn Fn()) -> Result<Output>;
    /// Whether a run that is under way can be kept, so that another process goes on with it.
    fn resumable(&self) -> bool {
        false
    }
    /// Whether what is kept has keys of noise, and is as confidential as the records.
    fn keeps_keys(&self) -> bool {
        false
    }
    /// The same as `run`, where the run is kept in between and goes on from what was kept; only where it is `resumable`.
    fn run_kept(
        &self,
        data: Dataset,
        engine: &dyn Engine,
        entropy: &Entropy,
        progress: &dyn Fn(),
        _: &mut dyn Checkpoints,
    ) -> Result<Output> {
        self.run(data, engine, entropy, progress)
    }
    /// Reads what it released before.
    fn read(&self, bytes: &[u8]) -> Result<Output>;

    /// Digest of everything that the job says and that its noise comes from: a simulation never becomes a private run, nor another one. None if
    /// a run can't be kept.
    fn run_digest(&self, entropy: &Entropy) -> Option<String> {
        let seed = entropy.seed().map_or("private".to_string(), |seed| format!("simulated {seed}"));
        let (adjacency, statement) = (self.facts().adjacency.name(), self.statement().to_string());
        let says = ["checkpoint", self.kind(), env!("CARGO_PKG_VERSION"), adjacency, &seed, &statement];
        self.resumable().then(|| digest(&says.map(str::as_bytes)))
    }

    /// What it asks of a ledger, under a name.
    fn request(&self, name: &str) -> Result<Request> {
        let (kind, version, statement) = (self.kind(), env!("CARGO_PKG_VERSION"), self.statement().to_string());
        Ok(Request {
            name: name.into(),
            job: kind.into(),
            digest: digest(&[kind.as_bytes(), version.as_bytes(), name.as_bytes(), statement.as_bytes()]),
            scope: self.facts().scope()?,
            event: self.event().clone(),
            resumable: false,
        })
    }
}

/// A ledger, and the name of the request that is made to it.
pub struct LedgerSession {
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
    pub fn check(&self, ledger: Option<&mut LedgerSession>) -> Result<()> {
        let there = self.path.symlink_metadata().is_ok();
        if self.replace || !there || ledger.is_some_and(|l| l.released_before().is_some_and(|bytes| self.holds(&bytes))) {
            return Ok(());
        }
        Err(Error::misuse(format!("{} is there already: give another ", self.path.display()))
            .naming("out")
            .text(", or ")
            .naming("force")
            .text(" to lose it"))
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
enum Reservation {
    /// It is spent, and the job may go on.
    Now(Spent),
    /// It was released before under this name; these are the bytes.
    Before(String, Vec<u8>),
}

/// A reservation that is on the disk.
struct Spent {
    ledger: Ledger,
    name: String,
    position: Position,
    /// Which process of the request this is, and what the ones before it kept.
    attempt: u64,
    state: Option<Vec<u8>>,
}

impl LedgerSession {
    /// Spends. When this returns it is on the disk.
    fn reserve(mut self, release: &dyn Release, resumable: bool) -> Result<Reservation> {
        let name = match self.request {
            Some(name) => name,
            None => random_name()?,
        };
        let wanted = Request { resumable, ..release.request(&name)? };
        (self.announce)(&name);
        let (position, attempt, state) = match self.ledger.reserve(&wanted)? {
            Reserved::Before(bytes) => return Ok(Reservation::Before(name, bytes)),
            Reserved::Now(position) => (position, 1, None),
            Reserved::Again { position, attempt, state } => (position, attempt, state),
        };
        Ok(Reservation::Now(Spent { ledger: self.ledger, name, position, attempt, state }))
    }

    /// What was released under the name of the request.
    fn released_before(&mut self) -> Option<Vec<u8>> {
        self.ledger.released_under(self.request.as_ref()?).ok()
    }
}

impl Spent {
    /// Writes down what is released; after that it may be published.
    fn commit(&mut self, bytes: &[u8]) -> Result<()> {
        self.ledger.commit_attempt(&self.position.request, self.attempt, bytes.to_vec())
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
    format!("record {}: {jobs} so far, epsilon {} of {} at delta {:e}", p.sequence, round_up(p.epsilon), p.cap_epsilon, p.delta)
}

/// Everything around a plan.
pub struct Context<'a> {
    /// Where the records are.
    pub source: &'a dyn Records,
    /// What runs it.
    pub engine: &'a dyn Engine,
    /// Randomness.
    pub entropy: &'a Entropy,
    /// The budget that is spent, if there is one.
    pub ledger: Option<LedgerSession>,
    /// What the job declares about a model.
    pub declared: Declared,
    /// Where the release goes, if it is to be a file.
    pub out: Option<OutputTarget<'a>>,
    /// Where the run is kept in between, if it is.
    pub checkpoint: Option<CheckpointArguments<'a>>,
    /// Called when everything is reserved and the records are about to be read.
    pub opening: &'a dyn Fn(),
    /// Called when the records are read and the run begins.
    pub opened: &'a dyn Fn(),
    /// Called after each public step.
    pub progress: &'a dyn Fn(),
}

/// What was released.
pub struct Delivered {
    /// What it is.
    pub output: Output,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether the same request was released before, so that nothing was spent now.
    pub before: bool,
    /// Name under which a ledger delivers them again.
    pub request: Option<String>,
}

/// Reserves, opens the data, runs, commits and publishes. Where there are several processes, the first one alone reserves, commits and
/// publishes; the others run with it, and fail where it fails.
pub fn release(release: &dyn Release, context: Context<'_>) -> Result<Delivered> {
    let (engine, place) = (context.engine, context.engine.place());
    check_engine(release.needs(), engine)?;
    if place.processes > 1 && context.checkpoint.is_some() {
        return Err(
            Error::misuse("several processes can't be stopped and gone on with: use one, or leave out ").naming("checkpoint")
        );
    }
    if place.processes == 1 {
        return lead(release, context, &|| Ok(()));
    }
    if place.process > 0 {
        return follow(release, context);
    }
    let delivered = lead(release, context, &|| Ok(engine.agree(GO).map(|_| ())?)).and_then(|delivered| {
        // Those who wait for a beginning hear that there is none, the others what was released.
        engine.agree(if delivered.before { BEFORE } else { &delivered.bytes })?;
        Ok(delivered)
    });
    delivered.inspect_err(|_| engine.abandon())
}

/// The first process begins.
const GO: &[u8] = b"go";
/// The request was released before: nobody runs.
const BEFORE: &[u8] = b"before";

/// Refuses a plan that an engine can't run.
pub fn check_engine(needs: Needs, engine: &dyn Engine) -> Result<()> {
    let place = engine.place();
    if place.offers >= needs && (needs != Needs::Records || place.processes == 1) {
        return Ok(());
    }
    Err(Error::misuse(match needs {
        Needs::Records => {
            "this job needs all records in one process, and the engine divides them: use another method, or one process"
        }
        _ => {
            "this job needs exact totals inside, or noise that is not Gaussian, and these processes belong to several owners: use another \
             method, or the processes of one owner"
        }
    }))
}

/// Opens the data and runs. A mistake while data are open is reported as a failure of the host, whatever it is: its text could tell.
fn run(
    release: &dyn Release,
    context: &Context<'_>,
    position: Option<&Position>,
    kept: Option<(u64, &mut dyn Checkpoints)>,
) -> Result<Output> {
    (context.opening)();
    let data = release.open(context.source, context.entropy)?;
    (context.opened)();
    let (engine, entropy, progress) = (context.engine, context.entropy, context.progress);
    let output = match kept {
        None => release.run(data, engine, entropy, progress),
        Some((done, kept)) => {
            context.checkpoint.iter().filter(|_| done > 0).for_each(|c| (c.resumed)(done));
            release.run_kept(data, engine, entropy, progress, kept)
        }
    };
    let output = output.map_err(|error| match error {
        Error::Misuse(_) => Error::Host,
        other => other,
    })?;
    Ok(output.stating(context.declared.clone(), position))
}

/// A process that is not the first: what the first one published is what counts.
fn follow(release: &dyn Release, context: Context<'_>) -> Result<Delivered> {
    if context.engine.agree(&[])? != GO {
        return Err(Error::refused("this request was released before, and the first process delivers it again"));
    }
    run(release, &context, None, None).inspect_err(|_| context.engine.abandon())?;
    let bytes = context.engine.agree(&[])?;
    Ok(Delivered { output: release.read(&bytes)?, bytes, before: false, request: None })
}

/// The first process, or the only one.
fn lead(release: &dyn Release, mut context: Context<'_>, begin: &dyn Fn() -> Result<()>) -> Result<Delivered> {
    let out = context.out;
    let has_ledger = context.ledger.is_some();
    let kept = context
        .checkpoint
        .as_ref()
        .map(|c| c.check(release.run_digest(context.entropy), release.steps(), has_ledger, release.keeps_keys()))
        .transpose()?;
    let mut file = context.checkpoint.as_ref().zip(kept.as_ref()).map_or(Ok(None), |(c, kept)| c.find(kept))?;
    // Where all steps are done the file may be there already: whoever wrote it did not live to say so.
    if file.as_ref().is_none_or(|file| !file.is_complete()) {
        out.map_or(Ok(()), |out| out.check(context.ledger.as_mut()))?;
    }
    if let (None, Some(c), Some(kept)) = (&file, &context.checkpoint, &kept) {
        file = c.create(kept)?;
    }
    let mut spent = match context.ledger.take().map(|ledger| ledger.reserve(release, kept.is_some())).transpose()? {
        None => None,
        Some(Reservation::Now(spent)) => Some(spent),
        Some(Reservation::Before(name, bytes)) => {
            out.map_or(Ok(()), |out| out.publish(&bytes)).map_err(undelivered(&name, true))?;
            return Ok(Delivered { output: release.read(&bytes)?, bytes, before: true, request: Some(name) });
        }
    };
    let position = spent.as_ref().map(|s| s.position.clone());
    let mut in_ledger = match (&mut spent, &kept) {
        (Some(Spent { ledger, position, attempt, state, .. }), Some(kept)) => {
            let found = state.take().map_or(Ok(None), |bytes| state_of(kept, &bytes))?;
            Some(InLedger { ledger, request: position.request.clone(), attempt: *attempt, kept, found })
        }
        _ => None,
    };
    let done =
        file.as_ref().map_or(0, |f| f.done()).max(in_ledger.as_ref().and_then(|l| l.found.as_ref()).map_or(0, |s| s.steps));
    let keeper = match (&mut file, &mut in_ledger) {
        (Some(file), _) => Some((done, file as &mut dyn Checkpoints)),
        (None, Some(in_ledger)) => Some((done, in_ledger as &mut dyn Checkpoints)),
        _ => None,
    };
    begin()?;
    // Whatever fails from here on, what was reserved stays spent, and whoever reads the message should know.
    let output = run(release, &context, position.as_ref(), keeper).map_err(|error| match error {
        error @ Error::Misuse(_) if has_ledger => error.text(" (what was reserved stays spent)"),
        other => other,
    })?;
    let bytes = output.bytes()?;
    if let Some(spent) = &mut spent {
        spent.commit(&bytes).map_err(|error| match error {
            // It is known not to be committed, and whoever asks again goes on.
            error @ Error::Refused(_) if kept.is_some() => error,
            other => spent.undelivered(false)(other),
        })?;
    }
    out.map_or(Ok(()), |out| out.publish(&bytes)).map_err(|error| match (&spent, &file) {
        (Some(spent), _) => spent.undelivered(true)(error),
        (None, Some(_)) => Error::output(format!("{error}; nothing is lost: run the job again, which takes no step again")),
        (None, None) => Error::output(format!("{error}; what was made is lost, and another run has a privacy cost of its own")),
    })?;
    // Only what is durable elsewhere may go.
    if out.is_some() {
        file.map_or(Ok(()), |file| file.finish())?;
    }
    Ok(Delivered { output, bytes, before: false, request: spent.map(|s| s.name) })
}
