//! Comparing what a certificate states with what is worked out today: numbers one by one, everything else group by group.

use super::{Answer, Check};
use crate::artifact::Artifact;
use crate::certificate::{Certificate, Rho, Risk, round_up, sentence};
use privfit_kernel::account::Adjacency;

/// Claims are too small if they differ by more than other machines round.
const ROUNDING: f64 = 1e-9;

/// Searches for the best attacker end beside the same point on every machine, not at it.
const SEARCH: f64 = 1e-6;

/// Claims: recorded and worked out today. They may never be too small. If the same planner (and with it the same accountant) wrote them,
/// they may not be too large either: that would harm nobody, but this version did not write it.
struct Claims<'a> {
    name: &'a str,
    strict: bool,
    lines: Vec<String>,
    answer: Answer,
}

impl<'a> Claims<'a> {
    fn new(name: &'a str, strict: bool) -> Claims<'a> {
        Claims { name, strict, lines: Vec::new(), answer: Answer::Holds }
    }

    fn fail(&mut self, line: String) {
        self.answer = Answer::DoesNotHold;
        self.lines.push(line);
    }

    /// None is infinite.
    fn compare(&mut self, what: &str, recorded: Option<f64>, today: Option<f64>) {
        let show = |x: Option<f64>| x.map_or("infinite".into(), |x| if x < 1e-3 { format!("{x:.3e}") } else { round_up(x) });
        let (r, t) = (recorded.unwrap_or(f64::INFINITY), today.unwrap_or(f64::INFINITY));
        if r == t {
            return;
        }
        if !(t <= r * (1.0 + ROUNDING) && r >= 0.0) {
            self.fail(format!("{what} is claimed as {} and today's accountant proves {}", show(recorded), show(today)));
        } else if t < r * (1.0 - SEARCH) {
            if self.strict && self.answer == Answer::Holds {
                self.answer = Answer::NotChecked;
            }
            self.lines.push(format!("{what}: today's accountant proves {} instead of {}", show(today), show(recorded)));
        }
    }

    fn done(self, usual: &str, out: &mut Vec<Check>) {
        let text = if self.lines.is_empty() { usual.to_string() } else { self.lines.join("; ") };
        out.push(Check::with(self.name, self.answer, text));
    }
}

/// Checks the numbers, and puts the recorded ones in the place of today's, so that the rest can be compared as a whole.
pub(super) fn numbers(c: &Certificate, today: &mut Certificate, strict: bool, checks: &mut Vec<Check>) {
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
        let mut claims = Claims::new(name, strict);
        claims.compare("epsilon", recorded, now);
        claims.compare("its upper bound", enclosure.as_ref().map(|b| b.upper), now);
        if let (Some(enclosure), Some(fresh)) = (enclosure, &fresh) {
            claims.compare("Renyi accounting", enclosure.renyi, fresh.renyi);
            if !(enclosure.lower >= 0.0 && enclosure.lower <= enclosure.upper && recorded == Some(enclosure.upper)) {
                claims.fail("its enclosure is not one".into());
            }
            let near = (enclosure.lower - fresh.lower).abs() <= SEARCH * fresh.upper;
            if strict && !(near && enclosure.accountant == fresh.accountant) {
                claims.fail("its enclosure is not the one that this version finds".into());
            }
        }
        let usual = now.map_or("infinite, as stated".into(), |e| format!("{} at delta {:e}", round_up(e), c.guarantee.delta));
        claims.done(&usual, checks);
        // A better accountant has another name and another lower bound.
        if fresh.is_some() {
            fresh.clone_from(enclosure);
        }
    }
    if c.guarantee.add_remove.is_some() || today.guarantee.add_remove.is_some() {
        let mut claims = Claims::new("epsilon under add-remove", strict);
        claims.compare("epsilon", c.guarantee.add_remove, today.guarantee.add_remove);
        claims.done(&today.guarantee.add_remove.map_or("infinite".into(), round_up), checks);
    }
    let mut claims = Claims::new("profile", strict);
    for (recorded, now) in c.guarantee.profile.iter().zip(&today.guarantee.profile) {
        claims.compare(&format!("epsilon at {:e} under zero-out", now.delta), recorded.zero_out, now.zero_out);
        claims.compare(&format!("epsilon at {:e} under replace-one", now.delta), recorded.replace_one, now.replace_one);
    }
    let deltas = |c: &Certificate| c.guarantee.profile.iter().map(|p| p.delta).collect::<Vec<_>>();
    if deltas(c) != deltas(today) {
        claims.fail("its deltas are not the usual ones".into());
    }
    claims.done("epsilon at every delta from 1e-4 to 1e-12", checks);
    let mut claims = Claims::new("rho", strict);
    for pick in [|r: Rho| r.zero_out, |r: Rho| r.replace_one] {
        claims.compare("rho", c.guarantee.rho.map(pick), today.guarantee.rho.map(pick));
    }
    claims.done(if c.guarantee.rho.is_some() { "zero-concentrated privacy" } else { "none is claimed" }, checks);
    let mut claims = Claims::new("attacks", strict);
    for (name, recorded, now) in
        [("zero-out", c.plain.zero_out, today.plain.zero_out), ("replace-one", c.plain.replace_one, today.plain.replace_one)]
    {
        let views: [(&str, fn(Risk) -> f64); 4] = [
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
        today.plain.sentence = sentence(asked, risk);
    }
}

/// Checks everything else, group by group. Sentences are compared if `ours`: they are those of this planner and these texts.
pub(super) fn groups(artifact: &Artifact, today: &Certificate, ours: bool, checks: &mut Vec<Check>) {
    let (c, g, t) = (&artifact.certificate, &artifact.guarantee, &artifact.training);
    let declared = [c.registry == today.registry, c.contact == today.contact, c.utility.statement == today.utility.statement];
    let fixed = [
        ("identity", c.identity == today.identity, "name, program, and the digests of schema and released numbers"),
        ("unit", c.unit == today.unit, "as the schema states"),
        ("method", c.mechanism.plan == t.plan && c.mechanism.method == t.method, "as recorded in training"),
        ("form", declared.iter().all(|d| *d), "what is declared stands where it belongs"),
    ];
    let guarantee = [
        c.guarantee.private == g.private,
        c.guarantee.variant == today.guarantee.variant,
        c.guarantee.delta == g.delta,
        c.guarantee.asked_epsilon == g.asked_epsilon,
        c.guarantee.asked_adjacency == g.adjacency,
        c.security.numerics == t.numerics,
        c.security.seeded == g.simulated,
        c.adjacency.units == t.rows,
        c.adjacency.units_public == today.adjacency.units_public,
        c.preparation.given == t.settings,
        c.plain.false_positive_rate == today.plain.false_positive_rate,
    ];
    let add = |checks: &mut Vec<Check>, name: &str, held: bool, text: &str| {
        checks.push(Check::new(name, held, if held { text } else { "differs from what the recorded facts say" }));
    };
    for (name, held, text) in fixed {
        add(checks, name, held, text);
    }
    add(
        checks,
        "guarantee",
        guarantee.iter().all(|h| *h),
        "delta, adjacency, numerics, settings and number of units as recorded",
    );
    if !ours {
        let text = "written with another planner or other texts: they are not compared, and not shown";
        checks.push(Check::with("sentences", Answer::NotChecked, text));
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
    checks.push(Check::new("sentences", wrong.is_empty(), text));
}
