//! One run with many canaries, for methods that release gradients: each canary is a record of its own coordinate and of the largest
//! length, and takes part by a fair coin. The score of a canary is its coordinate in the sum of all that the steps released, which
//! is what an attacker sees who sees everything. Steps are so short that weights stay near zero, where derivatives are steepest.
//! A canary of a network is scored by what lies in the direction of its own gradient, in those weights that no other canary touches: those of its own input.
//!
//! *Judged.* Two bounds for any mechanism (`one_run.rs`), and one for mechanisms whose noise is independent in each coordinate, as ours
//! is meant to be: canaries are then as many runs in two worlds. The first two cannot be had at a chance of a false alarm of 1e-6,
//! since delta alone takes more of it, and the tail of a Gaussian curve allows much; they are judged at 1e-3. The third sees a factor
//! of two with a thousand canaries, the first two do not.

use super::distribution;
use super::one_run::{Guesses, best_count, curve_inverse, gaussian_inverse};
use super::shipped::{Question, Shipped};
use super::subject::Subject;
use crate::data::encode::{Row, UNKNOWN};
use crate::error::{Error, Result};
use crate::loss;
use crate::method::{self, Learned};
use crate::network::NetworkModel;
use crate::schema::Schema;
use crate::schema::Task;
use privfit_kernel::account::{self, Adjacency, Event};
use privfit_kernel::engine::Threads;
use privfit_kernel::{Entropy, Run};

/// Methods whose steps release gradients, with a number of steps and a learning rate that the audit chooses.
pub fn methods() -> Vec<&'static str> {
    method::ALL
        .iter()
        .filter(|m| m.can.releases_gradients && !m.can.of_cells && ["steps", "learning_rate"].iter().all(|s| m.has(s)))
        .map(|m| m.name)
        .collect()
}

/// What one run showed.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The claim.
    pub claimed: (f64, f64),
    /// The loss that they are made for.
    pub loss: &'static str,
    /// Canaries.
    pub canaries: u64,
    /// Guesses for the bound by (epsilon, delta), and those for the bound by the trade-off curve.
    pub guesses: (Guesses, Guesses),
    /// Epsilon is at least this, with 95 %: for comparison.
    pub epsilon: f64,
    /// If the trade-off is Gaussian, mu and epsilon are at least this, with 95 %.
    pub gaussian: (f64, f64),
    /// If noise is independent in each coordinate: canaries as runs in two worlds.
    pub pooled: distribution::Finding,
    /// What contradicts the claim, with a chance of a false alarm of `LOOSE` for any mechanism.
    pub violations: Vec<String>,
    /// Scores of canaries that took part, and of those that did not.
    pub scores: (Vec<f64>, Vec<f64>),
}

/// Chance of a false alarm of the bounds for any mechanism.
pub const LOOSE: f64 = 1e-3;

/// Confidence of the bounds that are shown.
const SHOWN: f64 = 0.05;

/// Runs once.
pub fn audit(question: &Question, canaries: u64, progress: &dyn Fn()) -> Result<Finding> {
    let mut question = question.clone();
    if !methods().contains(&question.method.as_str()) {
        return Err(Error::misuse(format!(
            "canaries are for methods that release gradients, and {} is none: use {}, or `privfit audit distribution`",
            question.method,
            methods().join(", ")
        )));
    }
    let of_layers = method::find(&question.method).is_some_and(|m| m.can.of_layers);
    let task = Task::Classes(2);
    let own_loss = loss::usual_of_layers(task).filter(|_| of_layers).map_or(loss::usual_name(task), |l| l.name);
    if question.schema.is_some() || question.loss.as_deref().is_some_and(|l| l != own_loss) {
        return Err(Error::misuse(format!("canaries bring their own schema and the {own_loss} loss: leave out "))
            .naming("schema")
            .text(" and ")
            .naming("loss"));
    }
    if question.adjacency == Adjacency::ReplaceOne {
        return Err(Error::misuse("a canary takes part or not: use ").give("adjacency", "zero-out").text(" or add-remove"));
    }
    if question.settings.0.get("normalise").is_some_and(|share| *share > 0.0) {
        return Err(Error::misuse(
            "canaries have a coordinate of their own, which normalised inputs do not keep: leave out normalise",
        ));
    }
    if !(20..=200_000).contains(&canaries) {
        return Err(Error::misuse(format!("{canaries} canaries are asked for: give 20 to 200000")));
    }
    question.schema = Some(Schema::parse(&format!(
        "[dataset]\nname = \"canaries\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"sparse\"\ndimension = {canaries}\n\
         row_norm = 1.0\nintercept = false\n"
    ))?);
    question.rows = canaries;
    let set = &mut question.settings.0;
    set.entry("steps".into()).or_insert(10.0);
    if !method::find(&question.method).is_some_and(|m| m.can.fixed_step) {
        set.entry("learning_rate".into()).or_insert(1e-6);
    }
    let subject = Shipped::new(&question)?;
    let entropy = Entropy::system()?;
    let mut coins = entropy.for_units()?;
    let present: Vec<bool> = (0..canaries).map(|_| coins.next_word() & 1 == 1).collect();
    let row = |(i, present): (usize, &bool)| match present {
        true => Row { pairs: vec![(i as u32, 1.0)], label: 1.0, ..Row::default() },
        false => Row { label: UNKNOWN, ..Row::default() },
    };
    let rows: Vec<Row> = present.iter().enumerate().map(row).collect();
    let data = subject.dataset(&rows)?;
    let engine = Threads::new(1);
    let plan = &subject.prepared().plan;
    let mut run = Run::begin(&data, &engine, &entropy, plan.event())?;
    run.keep_releases();
    let weights = plan.run(&mut run, progress)?;
    let captured = run.captured_releases();
    let weights = run.close(weights)?.into_value();
    let total = |i: usize| captured.iter().map(|h| h.numbers[i]).sum::<f64>();
    let scores = match plan.learned(weights) {
        Learned::Network(model) => network_scores(&model, canaries as usize, &total)?,
        // A canary of the second class pulls its coordinate of the gradient down.
        _ => (0..canaries as usize).map(|i| -total(i)).collect(),
    };
    let found = judge(&subject, &scores, &present)?;
    Ok(Finding { loss: subject.prepared().problem.loss.name, ..found })
}

/// What was released in the direction of each canary's own gradient, at weights that hardly moved; `total` sums an entry over all releases.
fn network_scores(model: &NetworkModel, canaries: usize, total: &dyn Fn(usize) -> f64) -> Result<Vec<f64>> {
    let Some((network, prepared)) = model.network() else {
        return Err(Error::misuse("the layers do not fit rows of numbers: give others, like dense 3, tanh"));
    };
    let gradient = |i: usize| {
        let mut row = vec![0f32; canaries];
        row[i % canaries] = 1.0;
        network.gradient(prepared, &row, 1.0)
    };
    let mut scores = Vec::with_capacity(canaries);
    let mut own = gradient(0);
    for i in 0..canaries {
        let next = gradient(i + 1);
        let (mut score, mut square) = (0.0, 0.0);
        for (at, g) in own.iter().enumerate().filter(|(at, g)| **g != 0.0 && next[*at] == 0.0) {
            score += f64::from(*g) * total(at);
            square += f64::from(*g) * f64::from(*g);
        }
        scores.push(if square > 0.0 { score / square.sqrt() } else { 0.0 });
        own = next;
    }
    Ok(scores)
}

/// Judges scores against the claim of a subject.
pub fn judge(subject: &dyn Subject, scores: &[f64], present: &[bool]) -> Result<Finding> {
    let claim = subject.claim();
    let m = scores.len() as u64;
    // How many to name: for the mu that a Gaussian with this claim would have.
    let mu = claim.mu.unwrap_or_else(|| gaussian_mu(claim.epsilon(), claim.delta));
    let alpha = 0.5 * LOOSE;
    // To contradict a claim: as many as would show most if the truth were half as much again. Fewer, safer guesses would all be
    // right in both cases.
    let more = 1.5 * mu;
    let first = Guesses::of(scores, present, best_count(m, more, |g| g.epsilon(claim.delta, alpha)));
    let second = Guesses::of(scores, present, best_count(m, more, |g| g.mu(alpha)));
    let mut violations = Vec::new();
    if first.chance(claim.epsilon(), claim.delta) <= alpha {
        violations.push(format!(
            "{} of {} guesses are right, too many for epsilon {:.3}",
            first.right,
            first.named,
            claim.epsilon()
        ));
    }
    let excluded = match claim.mu {
        Some(mu) => second.excluded(alpha, &|y| gaussian_inverse(y, mu)),
        None => second.excluded(alpha, &|y| curve_inverse(y, claim.curve())),
    };
    if excluded {
        violations.push(format!("{} of {} guesses are right, too many for the claimed curve", second.right, second.named));
    }
    let shown = Guesses::of(scores, present, best_count(m, mu, |g| g.epsilon(claim.delta, SHOWN)));
    let shown_mu = Guesses::of(scores, present, best_count(m, mu, |g| g.mu(SHOWN))).mu(SHOWN);
    let by_curve = match shown_mu > 1e-3 {
        true => account::epsilon(&Event::GaussianDp { mu: shown_mu }, Adjacency::ZeroOut, claim.delta.max(1e-12))?.bound.lower,
        false => 0.0,
    };
    let part = |which: bool| -> Vec<f64> { scores.iter().zip(present).filter(|(_, p)| **p == which).map(|(s, _)| *s).collect() };
    let (with, without) = (part(true), part(false));
    let some = with.len().min(without.len());
    let world = |s: &[f64]| -> Vec<Vec<f64>> { s[..some].iter().map(|x| vec![*x]).collect() };
    let pooled = distribution::judge(claim, false, "canaries", &world(&with), &world(&without));
    violations.extend(pooled.violations.iter().map(|v| format!("{v} (canaries as runs in two worlds)")));
    Ok(Finding {
        loss: loss::usual_name(Task::Classes(2)),
        claimed: (claim.epsilon(), claim.delta),
        canaries: m,
        guesses: (first, second),
        epsilon: shown.epsilon(claim.delta, SHOWN),
        gaussian: (shown_mu, by_curve),
        pooled,
        violations,
        scores: (with, without),
    })
}

/// The mu with this epsilon at this delta.
fn gaussian_mu(epsilon: f64, delta: f64) -> f64 {
    let (mut low, mut high) = (1e-3, 20.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        let answer = account::epsilon(&Event::GaussianDp { mu: middle }, Adjacency::ZeroOut, delta.max(1e-12));
        if answer.is_ok_and(|a| a.bound.upper <= epsilon) { low = middle } else { high = middle }
    }
    low
}
