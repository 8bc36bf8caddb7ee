//! Working a certificate out again: everything that follows from the recorded event and facts is derived with today's accountant and
//! compared. A claim may be larger than what is proved today, never smaller.

use super::Certificate;
use super::derive::Facts;
use super::merge::{MOST_PARTS, merged};
use crate::artifact::Artifact;
use crate::error::{Error, Result};
use privfit_kernel::account::{Adjacency, Event};
use serde::Serialize;

/// Numbers agree if they differ by no more than other machines round.
const ROUNDING: f64 = 1e-9;

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What.
    pub name: String,
    /// Whether it holds.
    pub held: bool,
    /// Why, in a line.
    pub text: String,
}

impl Check {
    /// A check by its outcome.
    pub fn new(name: &str, held: bool, text: impl Into<String>) -> Check {
        Check { name: name.into(), held, text: text.into() }
    }
}

/// What came out; more checks may be appended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// All checks, in order.
    pub checks: Vec<Check>,
}

impl Verdict {
    /// Whether every check holds.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|c| c.held)
    }

    /// Nothing if every check holds, otherwise a refusal that names the first one that does not.
    pub fn into_result(self, what: &str) -> Result<()> {
        match self.checks.into_iter().find(|c| !c.held) {
            None => Ok(()),
            Some(check) => Err(Error::Refused(format!(
                "{what} does not hold: {}: {}; do not rely on it, and ask whoever published it",
                check.name, check.text
            ))),
        }
    }
}

/// Reads a model file and checks its certificate, everything but a ledger. A damaged file is an error, a claim that does not hold
/// a verdict.
pub fn verify(text: &str) -> Result<Verdict> {
    Ok(verify_artifact(&Artifact::from_json(text)?))
}

/// Claims that may only be too large: recorded and worked out today.
struct Claims<'a> {
    name: &'a str,
    lines: Vec<String>,
    held: bool,
}

impl<'a> Claims<'a> {
    fn new(name: &'a str) -> Claims<'a> {
        Claims { name, lines: Vec::new(), held: true }
    }

    /// None is infinite.
    fn compare(&mut self, what: &str, recorded: Option<f64>, today: Option<f64>) {
        let show = |x: Option<f64>| x.map_or("infinite".into(), |x| if x < 1e-3 { format!("{x:.3e}") } else { super::up(x) });
        let (r, t) = (recorded.unwrap_or(f64::INFINITY), today.unwrap_or(f64::INFINITY));
        if r == t {
            return;
        }
        if !(t <= r * (1.0 + ROUNDING) && r >= 0.0) {
            self.held = false;
            self.lines.push(format!("{what} is claimed as {} and today's accountant proves {}", show(recorded), show(today)));
        } else if t < r * (1.0 - ROUNDING) {
            self.lines.push(format!("{what}: today's accountant proves {} instead of {}", show(today), show(recorded)));
        }
    }

    fn done(self, usual: &str, out: &mut Vec<Check>) {
        let text = if self.lines.is_empty() { usual.to_string() } else { self.lines.join("; ") };
        out.push(Check::new(self.name, self.held, text));
    }
}

/// The same for a model file that has been read.
pub fn verify_artifact(artifact: &Artifact) -> Verdict {
    let mut checks = vec![Check::new("file", true, "every byte is as it was written")];
    let (g, c) = (&artifact.guarantee, &artifact.certificate);
    if !g.private || g.simulated || !c.guarantee.private {
        let why = match &g.event {
            Event::NotPrivate { why } => why.clone(),
            _ => "it says so itself".into(),
        };
        checks.push(Check::new("guarantee", false, format!("the model is not private, epsilon is infinite ({why})")));
        return Verdict { checks };
    }
    if merged(&g.event).is_none() {
        checks.push(Check::new(
            "event",
            false,
            format!("it has more than {MOST_PARTS} different kinds of parts, and no plan has"),
        ));
        return Verdict { checks };
    }
    // A hole that was found later in what wrote this file.
    let version = artifact.program.rsplit(' ').next().unwrap_or("");
    for found in crate::advisory::for_model(version, &artifact.training.method).unwrap_or_default() {
        let text =
            format!("{}: {}; its true epsilon is {}; fixed in {}", found.id, found.what, found.true_epsilon, found.fixed_in);
        checks.push(Check::new("advisory", false, text));
    }
    let same = c.mechanism.event == g.event;
    checks.push(Check::new(
        "event",
        same,
        if same { "the one that was recorded in training" } else { "certificate and record differ" },
    ));
    if !same {
        return Verdict { checks };
    }
    let facts = Facts {
        program: &artifact.program,
        schema: &artifact.schema,
        model: &artifact.model,
        training: &artifact.training,
        guarantee: g,
    };
    let mut today = Certificate::derive(facts, &c.declared(), c.identity.ledger.clone());
    today.identity.build.clone_from(&c.identity.build);
    numbers(c, &mut today, &mut checks);
    let record = g.zero_out == c.guarantee.zero_out && g.replace_one == c.guarantee.replace_one;
    checks.push(Check::new(
        "record",
        record,
        if record { "certificate and training record state the same epsilons" } else { "certificate and training record differ" },
    ));
    groups(c, &today, artifact.program == crate::artifact::program(), &mut checks);
    Verdict { checks }
}

/// Checks the numbers, and puts the recorded ones in the place of today's, so that the rest can be compared as a whole.
fn numbers(c: &Certificate, today: &mut Certificate, checks: &mut Vec<Check>) {
    for (name, recorded, now, enclosure, fresh) in [
        (
            "epsilon under zero-out",
            c.guarantee.zero_out,
            today.guarantee.zero_out,
            &c.accounting.zero_out,
            &mut today.accounting.zero_out,
        ),
        (
            "epsilon under replace-one",
            c.guarantee.replace_one,
            today.guarantee.replace_one,
            &c.accounting.replace_one,
            &mut today.accounting.replace_one,
        ),
    ] {
        let mut claims = Claims::new(name);
        claims.compare("epsilon", recorded, now);
        claims.compare("its upper bound", enclosure.as_ref().map(|b| b.upper), now);
        if let (Some(enclosure), Some(fresh)) = (enclosure, &fresh) {
            claims.compare("Renyi accounting", enclosure.renyi, fresh.renyi);
            if !(enclosure.lower >= 0.0 && enclosure.lower <= enclosure.upper && recorded == Some(enclosure.upper)) {
                claims.held = false;
                claims.lines.push("its enclosure is not one".into());
            }
        }
        let usual = now.map_or("infinite, as it says".into(), |e| format!("{} at delta {:e}", super::up(e), c.guarantee.delta));
        claims.done(&usual, checks);
        // A better accountant has another name and another lower bound.
        if fresh.is_some() {
            fresh.clone_from(enclosure);
        }
    }
    if c.guarantee.add_remove.is_some() || today.guarantee.add_remove.is_some() {
        let mut claims = Claims::new("epsilon under add-remove");
        claims.compare("epsilon", c.guarantee.add_remove, today.guarantee.add_remove);
        claims.done(&today.guarantee.add_remove.map_or("infinite".into(), super::up), checks);
    }
    let mut claims = Claims::new("profile");
    for (recorded, now) in c.guarantee.profile.iter().zip(&today.guarantee.profile) {
        claims.compare(&format!("epsilon at {:e} under zero-out", now.delta), recorded.zero_out, now.zero_out);
        claims.compare(&format!("epsilon at {:e} under replace-one", now.delta), recorded.replace_one, now.replace_one);
    }
    let deltas = |c: &Certificate| c.guarantee.profile.iter().map(|p| p.delta).collect::<Vec<_>>();
    if deltas(c) != deltas(today) {
        claims.held = false;
        claims.lines.push("its deltas are not the usual ones".into());
    }
    claims.done("epsilon at every delta from 1e-4 to 1e-12", checks);
    let mut claims = Claims::new("rho");
    for pick in [|r: super::Rho| r.zero_out, |r: super::Rho| r.replace_one] {
        claims.compare("rho", c.guarantee.rho.map(pick), today.guarantee.rho.map(pick));
    }
    claims.done(if c.guarantee.rho.is_some() { "zero-concentrated privacy" } else { "none is claimed" }, checks);
    let mut claims = Claims::new("attacks");
    for (name, recorded, now) in
        [("zero-out", c.plain.zero_out, today.plain.zero_out), ("replace-one", c.plain.replace_one, today.plain.replace_one)]
    {
        let views: [(&str, fn(super::Risk) -> f64); 4] = [
            ("right alarms", |r| r.true_positive_rate),
            ("right guesses", |r| r.accuracy),
            ("belief", |r| r.posterior),
            ("exception", |r| r.except),
        ];
        for (what, view) in views {
            claims.compare(&format!("{what} under {name}"), recorded.map(view), now.map(view));
        }
    }
    claims.done("what the best attacker reaches, under both notions", checks);
    let better = c.plain.zero_out != today.plain.zero_out || c.plain.replace_one != today.plain.replace_one;
    let old = c.guarantee.clone();
    today.guarantee.zero_out = old.zero_out;
    today.guarantee.replace_one = old.replace_one;
    today.guarantee.add_remove = old.add_remove;
    today.guarantee.rho = old.rho;
    today.guarantee.profile = old.profile;
    (today.plain.zero_out, today.plain.replace_one) = (c.plain.zero_out, c.plain.replace_one);
    if better {
        // The sentence repeats the recorded numbers.
        let asked = today.guarantee.asked_adjacency;
        let risk = if asked == Adjacency::ReplaceOne { c.plain.replace_one } else { c.plain.zero_out };
        today.plain.sentence = super::words::sentence(asked, risk);
    }
}

/// Checks everything else, group by group. Another version of the program has other words for the same facts.
fn groups(c: &Certificate, today: &Certificate, ours: bool, checks: &mut Vec<Check>) {
    let fixed = [
        ("identity", c.identity == today.identity, "name, program, and the digest of the released numbers"),
        ("unit", c.unit == today.unit, "as the schema says"),
        (
            "method",
            c.mechanism.plan == today.mechanism.plan && c.mechanism.method == today.mechanism.method,
            "as recorded in training",
        ),
        ("registry", c.registry == today.registry && c.contact == today.contact, "declared, not checked"),
    ];
    let guarantee = [
        c.guarantee.private == today.guarantee.private,
        c.guarantee.variant == today.guarantee.variant,
        c.guarantee.delta == today.guarantee.delta,
        c.guarantee.asked_epsilon == today.guarantee.asked_epsilon,
        c.guarantee.asked_adjacency == today.guarantee.asked_adjacency,
        c.security.numerics == today.security.numerics,
        c.security.seeded == today.security.seeded,
        c.adjacency.units == today.adjacency.units,
        c.adjacency.units_public == today.adjacency.units_public,
    ];
    let add = |checks: &mut Vec<Check>, name: &str, held: bool, text: &str| {
        checks.push(Check::new(name, held, if held { text } else { "differs from what the recorded facts say" }));
    };
    for (name, held, text) in fixed {
        add(checks, name, held, text);
    }
    add(checks, "guarantee", guarantee.iter().all(|h| *h), "delta, adjacency, numerics and number of units as recorded");
    if !ours {
        let text = format!("not compared: written by {}, and this is {}", c.identity.program, crate::artifact::program());
        checks.push(Check::new("words", true, text));
        return;
    }
    let words = [
        ("guarantee", c.guarantee == today.guarantee),
        ("adjacency", c.adjacency == today.adjacency),
        ("unprotected", c.unprotected == today.unprotected),
        ("mechanism", c.mechanism == today.mechanism),
        ("accounting", c.accounting == today.accounting),
        ("assumptions", c.assumptions == today.assumptions),
        ("preparation", c.preparation == today.preparation),
        ("deployment", c.deployment == today.deployment),
        ("security", c.security == today.security),
        ("utility", c.utility == today.utility),
        ("plain", c.plain == today.plain),
    ];
    let wrong: Vec<&str> = words.iter().filter(|w| !w.1).map(|w| w.0).collect();
    let text = match wrong.is_empty() {
        true => "every sentence follows from the recorded facts".into(),
        false => format!("edited in {}", wrong.join(", ")),
    };
    checks.push(Check::new("words", wrong.is_empty(), text));
}
