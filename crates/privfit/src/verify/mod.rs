//! Working a certificate out again. Nothing in a file is believed: the plan is made again from the recorded public facts, the numbers
//! are derived from the event with today's accountant, the sentences from both.
//!
//! There are four answers. *Holds*: it was recomputed and agrees. *Does not hold*: it was recomputed and contradicts. *Not checked*: it
//! could be recomputed, but not by this version (another planner, other texts, work without an end). *Declared*: nobody can recompute it, it
//! is the publisher's word, and it is never said to hold: what the registry says, and that the weights came from this run.

mod compare;
mod private_bounds;
mod replan;

pub use crate::ledger::check::{Answer, Check};
pub(crate) use replan::{prepared, same_event};

use crate::artifact::Artifact;
use crate::certificate::derive::{Facts, training_digest};
use crate::certificate::merge::{MOST_NODES, MOST_PARTS, merged, nodes};
use crate::certificate::{Certificate, versions};
use crate::error::{Error, Result};
use crate::ledger::Status;
use crate::ledger::verify::verify_model;
use crate::older;
use crate::training::{Guarantee, Training};
use compare::{groups, numbers};
use privfit_kernel::account::Event;
use replan::replan;
use serde::Serialize;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Longest that a file may keep a verifier busy. Ordinary files take a fraction of a second, and what takes longer is not checked. It is the
/// last resort: events and selections have limits of their own.
const LONGEST: Duration = Duration::from_secs(60);

/// Whether a model stands in the ledger that it names. `bytes` is its file.
pub fn against_ledger(status: &Status, artifact: &Artifact, bytes: &[u8]) -> Vec<Check> {
    match &artifact.certificate.identity.ledger {
        Some(position) => verify_model(status, position, bytes),
        None => vec![Check::new("ledger", false, "the model names no ledger")],
    }
}

/// What came out; more checks may be appended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// All checks, in order.
    pub checks: Vec<Check>,
}

impl Verdict {
    /// The worst answer of all: a contradiction before what was not checked. What is declared takes nothing away.
    pub fn answer(&self) -> Answer {
        let any = |answer| self.checks.iter().any(|c| c.answer == answer);
        match (any(Answer::DoesNotHold), any(Answer::NotChecked)) {
            (true, _) => Answer::DoesNotHold,
            (false, true) => Answer::NotChecked,
            (false, false) => Answer::Holds,
        }
    }

    /// Whether everything that can be recomputed was, and agrees.
    pub fn holds(&self) -> bool {
        self.answer() == Answer::Holds
    }

    /// The first check with an answer.
    pub fn first(&self, answer: Answer) -> Option<&Check> {
        self.checks.iter().find(|c| c.answer == answer)
    }

    /// Nothing if it holds, otherwise a refusal that names the first check that does not, or that was not made.
    pub fn into_result(self, what: &str) -> Result<()> {
        self.accept(what, false)
    }

    /// The same; what was not checked may be accepted.
    pub fn accept(self, what: &str, unchecked: bool) -> Result<()> {
        if let Some(check) = self.first(Answer::DoesNotHold) {
            return Err(Error::refused(format!(
                "{what} does not hold: {}: {}; do not rely on it, and ask whoever published it",
                check.name, check.text
            )));
        }
        match self.first(Answer::NotChecked) {
            Some(check) if !unchecked => Err(Error::refused(format!(
                "{what} was not checked as a whole: {}: {}; verify it with the version that wrote it, or accept that with ",
                check.name, check.text
            ))
            .naming("allow_unchecked")),
            _ => Ok(()),
        }
    }
}

/// What a file comes to: the verdict, and the certificate as this version states it, made of nothing that was not recomputed.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The verdict.
    pub verdict: Verdict,
    /// The certificate by this version; none if it could not be worked out. What is declared in it is as the file has it; what was not
    /// checked (plan, public facts, reason) is left out.
    pub certificate: Option<Certificate>,
}

/// Reads a model file and checks its certificate, everything but ledger and signature. A damaged file is an error, a claim that does not
/// hold a verdict.
pub fn verify(text: &str) -> Result<Verdict> {
    Ok(verify_artifact(&Artifact::from_json(text)?))
}

/// The same for a model file that has been read.
pub fn verify_artifact(artifact: &Artifact) -> Verdict {
    examine(artifact).verdict
}

/// Works out everything that a model file states, in bounded time.
pub fn examine(artifact: &Artifact) -> Examined {
    let (send, receive) = std::sync::mpsc::channel();
    let copy = artifact.clone();
    let work = move || {
        let _ = send.send(judge(&copy));
    };
    // As deep as the stack of a program's first thread: accountants may nest. Without a thread nothing is worked out.
    let _ = std::thread::Builder::new().stack_size(8 << 20).spawn(work);
    receive.recv_timeout(LONGEST).unwrap_or_else(|error| {
        let text = match error {
            RecvTimeoutError::Timeout => {
                format!("it was not worked out within {} seconds, and ordinary files are", LONGEST.as_secs())
            }
            RecvTimeoutError::Disconnected => "the program failed while it worked it out".into(),
        };
        Examined { verdict: Verdict { checks: vec![Check::with("time", Answer::NotChecked, text)] }, certificate: None }
    })
}

/// What a file records about its plan, without what was not checked.
fn unchecked(training: &Training) -> Training {
    let method = crate::method::find(&training.method).map_or("unknown", |m| m.name).into();
    // Names of settings are text too: only those that some method or loss has are repeated.
    let mut settings = training.settings.clone();
    settings.retain(|(name, _)| {
        let named = |m: &crate::method::Method| m.has(name);
        crate::method::ALL.iter().chain(crate::method::OF_POINTS).any(named)
            || crate::loss::ALL.iter().any(|l| l.parameters.iter().any(|n| n.name == name))
    });
    Training { method, plan: Vec::new(), reason: None, public: Vec::new(), settings, ..training.clone() }
}

/// Says so where something was left out: nothing at all would be a statement too.
fn blank(mut certificate: Certificate) -> Certificate {
    let text = || "not checked".to_string();
    certificate.mechanism.plan = vec![("all of it".into(), text())];
    certificate.unprotected.facts =
        vec![crate::training::Fact { what: "facts that were taken as public".into(), source: text() }];
    certificate.preparation.method = "in a way that was not checked".into();
    certificate.preparation.other = "not checked".into();
    certificate
}

fn judge(artifact: &Artifact) -> Examined {
    let mut checks = vec![Check::new("file", true, "every byte is as it was written")];
    let (g, c) = (&artifact.guarantee, &artifact.certificate);
    let nothing = |checks: Vec<Check>| Examined { verdict: Verdict { checks }, certificate: None };
    if nodes(&g.event, MOST_NODES).is_none() || merged(&g.event).is_none() {
        let text =
            format!("it has more than {MOST_PARTS} different kinds of parts, or {MOST_NODES} parts in all, and no plan has");
        checks.push(Check::new("event", false, text));
        return nothing(checks);
    }
    let inputs = artifact.training.inputs.as_ref();
    let same_planner = inputs.is_some_and(|i| i.planner == versions::PLANNER);
    let same_texts = inputs.is_some_and(|i| i.texts == versions::TEXTS);
    let again = inputs.filter(|_| same_planner).map(|inputs| replan(artifact, inputs));
    let training = match &again {
        Some(Ok(plan)) => plan.training.clone(),
        _ => unchecked(&artifact.training),
    };
    let derive = |guarantee: &Guarantee| {
        let facts = Facts {
            program: &artifact.program,
            schema: &artifact.schema,
            model: &artifact.model,
            training: &training,
            guarantee,
        };
        let mut today = Certificate::derive(facts, &c.declared(), c.identity.ledger.clone());
        today.identity.build.clone_from(&c.identity.build);
        let digest = if artifact.version > older::LAST { training_digest } else { older::training_digest };
        today.identity.training_sha256 = digest(&artifact.training);
        today
    };
    if !g.private || g.simulated || !c.guarantee.private {
        // A reason that only the file gives is not repeated.
        let planned = again.as_ref().and_then(|a| a.as_ref().ok()).map(|plan| &plan.event);
        let why = match planned {
            _ if g.simulated => "simulated: the noise came from a seed",
            Some(Event::NotPrivate { why }) => why,
            _ => "the file states so itself",
        };
        checks.push(Check::new("guarantee", false, format!("the model is not private, epsilon is infinite ({why})")));
        let event = Event::NotPrivate { why: why.into() };
        let today = derive(&Guarantee { private: false, event, ..g.clone() });
        let today = if matches!(again, Some(Ok(_))) { today } else { blank(today) };
        return Examined { verdict: Verdict { checks }, certificate: Some(today) };
    }
    vulnerabilities(artifact, &mut checks);
    written(artifact, &mut checks);
    match &again {
        None => {
            let text = match inputs {
                None => "the file does not record what its plan was made from (format 2)".to_string(),
                Some(i) => format!("made by planner {}, and this is planner {}", i.planner, versions::PLANNER),
            };
            checks.push(Check::with("plan", Answer::NotChecked, text));
        }
        Some(Err(error)) => checks.push(Check::new("plan", false, format!("the recorded facts have no plan: {error}"))),
        Some(Ok(plan)) => {
            let wrong = plan.differences(artifact);
            let text = match wrong.is_empty() {
                true => "made again from the public facts: event, noise, parameters and public facts are the same".to_string(),
                false => format!("made again from the recorded facts, it differs in {}", wrong.join(", ")),
            };
            checks.push(Check::new("plan", wrong.is_empty(), text));
            if !same_event(&plan.event, &g.event) {
                // Nothing is worked out for an event that nobody planned: it may be made to keep a verifier busy.
                return nothing(checks);
            }
        }
    }
    private_bounds::check(artifact, &mut checks);
    let same = c.mechanism.event == g.event;
    let text = if same { "the one that was recorded in training" } else { "certificate and record differ" };
    checks.push(Check::new("event", same, text));
    let today = derive(g);
    let mut compared = today.clone();
    numbers(c, &mut compared, same_planner, &mut checks);
    let record = g.zero_out == c.guarantee.zero_out && g.replace_one == c.guarantee.replace_one;
    let text =
        if record { "certificate and training record state the same epsilons" } else { "certificate and training record differ" };
    checks.push(Check::new("record", record, text));
    // Facts that are recorded twice must agree, also where the plan was not made again.
    if !matches!(again, Some(Ok(_))) {
        let (t, m) = (&artifact.training, &mut compared.mechanism);
        m.plan.clone_from(&t.plan);
    }
    groups(artifact, &compared, same_planner && same_texts, &mut checks);
    declared(artifact, &mut checks);
    let today = if matches!(again, Some(Ok(_))) { today } else { blank(today) };
    Examined { verdict: Verdict { checks }, certificate: Some(today) }
}

/// Vulnerabilities that were found later in what wrote this file. A version that cannot be read may have any of them.
fn vulnerabilities(artifact: &Artifact, checks: &mut Vec<Check>) {
    let version = versions::version_of(&artifact.program);
    match version.map(|v| crate::advisory::for_model(v, &artifact.training.method)) {
        Some(Ok(list)) if list.is_empty() => {
            checks.push(Check::new("advisories", true, "none that this version knows concerns the program and the method"));
        }
        Some(Ok(list)) => {
            for found in list {
                let text = format!(
                    "{}: {}; its true epsilon is {}; fixed in {}",
                    found.id, found.what, found.true_epsilon, found.fixed_in
                );
                checks.push(Check::new("advisory", false, text));
            }
        }
        Some(Err(_)) | None => {
            let text = format!("{:?} is not a version that advisories could be looked up for", artifact.program);
            checks.push(Check::with("advisories", Answer::NotChecked, text));
        }
    }
}

/// Whether the program that is said to have written the file plans and writes with the versions that the file records.
fn written(artifact: &Artifact, checks: &mut Vec<Check>) {
    let version = versions::version_of(&artifact.program).unwrap_or_default();
    let known = versions::PROGRAMS.iter().find(|p| p.0 == version);
    let recorded = artifact.training.inputs.as_ref().map(|i| (i.planner, i.texts));
    let check = match (known, recorded) {
        (Some((_, planner, texts)), Some(recorded)) if recorded == (*planner, *texts) => {
            Check::new("versions", true, format!("{} has planner {planner} and texts {texts}", artifact.program))
        }
        (Some(_), _) => Check::with(
            "versions",
            Answer::NotChecked,
            format!(
                "the file records another planner or other texts than {:?} has: it is from a build before the release",
                artifact.program
            ),
        ),
        (None, _) => Check::with(
            "versions",
            Answer::NotChecked,
            format!("this is {}, and it does not know {:?}", crate::training::program(), artifact.program),
        ),
    };
    checks.push(check);
}

/// What is the publisher's word.
fn declared(artifact: &Artifact, checks: &mut Vec<Check>) {
    let c = &artifact.certificate;
    let mut say = |name: &str, text: String| checks.push(Check::with(name, Answer::Declared, text));
    say("weights", "that they came from this run of this plan is the publisher's word; a signature says whose".into());
    if let Some(build) = &c.identity.build {
        say("build", format!("the program is said to have the digest {build:?}"));
    }
    if c.declared() != crate::schema::Declared::default() {
        say("registry", "name, use, contact, dates and usefulness are the publisher's words".into());
    }
    if let Some(l) = &c.identity.ledger {
        say(
            "ledger",
            format!(
                "the model is said to stand in ledger {:?}, record {}; verifying with that ledger compares them",
                l.ledger, l.sequence
            ),
        );
    }
}
