//! The sentences of a certificate. Most are the same for every model; those that are not follow from the event and the public facts.

use super::{Enforced, Notion, Release, Risk};
use privfit_kernel::Numerics;
use privfit_kernel::account::{Adjacency, Event, Stopping};

/// What a notion of neighbours means.
pub(super) fn notion(adjacency: Adjacency) -> Notion {
    let meaning = match adjacency {
        Adjacency::ZeroOut => "one unit's records become blank; how many units there are is public",
        Adjacency::ReplaceOne => "one unit's records become any others; how many units there are is public",
        Adjacency::AddRemove => "one unit is added or removed; how many there are is private",
    };
    Notion { name: adjacency, meaning: meaning.into() }
}

/// What no number covers.
pub(super) fn not_covered() -> Vec<String> {
    [
        "other releases from the same records: each costs budget of its own",
        "what the model teaches about people in general, whether they are in the data or not",
        "choices that somebody made by looking at the private records",
        "whoever can watch the machine, its memory or its clock while it trains",
        "the rows that the model is applied to later",
    ]
    .map(String::from)
    .to_vec()
}

/// What the code enforces, and the test or type that says so.
pub(super) fn enforced(event: &Event, numerics: Numerics, of_layers: bool) -> Vec<Enforced> {
    let mut out = vec![
        (
            "cells are clamped to the bounds of the schema, by a rule that looks at one record",
            "test every_data_set_gets_an_answer",
        ),
        ("code that trains cannot read, print, compare or keep a record", "type Sensitive, tests in refused/"),
        ("what leaves fits in the plan, which was complete before data were opened", "test a_run_refuses_what_was_not_planned"),
        ("noise follows its distribution exactly", "test distribution_is_exact_for_small_scales"),
        ("no seed reaches a private release", "test a_simulation_is_marked"),
        ("messages, exit codes and file shapes do not depend on records", "test neighbours_look_the_same"),
    ];
    match numerics {
        Numerics::Exact => {
            out.push((
                "lengths of contributions are checked on integers",
                "test neighbours_move_sums_by_at_most_the_sensitivity",
            ));
        }
        Numerics::Bounded if of_layers => out.push((
            "sums of gradients move by at most the sensitivity",
            "test one_example_moves_integers_by_at_most_the_sensitivity",
        )),
        Numerics::Bounded => {
            out.push(("distances of neighbours stay within the theorem's bound", "test neighbours_are_close"));
            out.push(("the solver stops only at its certificate", "test minimiser_is_certified_and_the_same_on_every_engine"));
        }
        Numerics::Float => {
            out.push(("sums of blocks move by at most the sensitivity", "test blocks_move_by_at_most_the_sensitivity"))
        }
    }
    if sampled(event) {
        out.push(("samples are drawn inside of the kernel, used once and kept secret", "test poisson_samples_follow_their_rate"));
    }
    out.into_iter().map(|(what, by)| Enforced { what: what.into(), by: by.into() }).collect()
}

/// What nobody but the operator can vouch for.
pub(super) fn assumed(column: bool, private_bounds: bool) -> Vec<String> {
    let unit = match column {
        true => "the unit column is right: all rows of a unit carry its value, and no unit has two",
        false => "one person has one row; where a person has several, they are protected as a group",
    };
    [
        unit,
        match private_bounds {
            true => "nothing in schema or settings was read off the private records, except the private bounds",
            false => "nothing in schema or settings was read off the private records",
        },
        "the operator runs this program as it is, and publishes nothing else from the same records",
        "the random numbers of the operating system are unpredictable",
        "nobody observes side channels of the host: time, memory, power",
    ]
    .map(String::from)
    .to_vec()
}

/// Finite precision in words.
pub(super) fn precision(numerics: Numerics) -> &'static str {
    match numerics {
        Numerics::Exact => "exact: contributions are checked on integers and the discrete noise has its distribution exactly",
        Numerics::Bounded => "bounded: exact noise; errors of solver and floating point have proved bounds, which are charged",
        Numerics::Float => "float: the sensitivity rests on a stated error of floating-point code",
    }
}

/// The guarantee in a sentence.
pub(crate) fn sentence(asked: Adjacency, risk: Option<Risk>) -> String {
    let Some(risk) = risk else {
        return "Nothing is guaranteed: treat this model like the records that it was trained on.".into();
    };
    let question = match asked {
        Adjacency::ReplaceOne => "which of two records a person has",
        Adjacency::ZeroOut | Adjacency::AddRemove => "whether one person's record was used",
    };
    format!(
        "Somebody who knows all other records and sees this model can guess {question} with at most {} % of guesses right (random \
         guessing: 50 %). If they accept one false alarm in a hundred, they find at most {} % of the people they look for.",
        super::percent_up(risk.accuracy),
        super::percent_up(risk.true_positive_rate),
    )
}

/// Whether an event claims amplification.
fn sampled(event: &Event) -> bool {
    match event {
        Event::Poisson { .. } | Event::FixedSize { .. } => true,
        Event::Shuffled { event, .. }
        | Event::Repeat { event, .. }
        | Event::AtMost { event, .. }
        | Event::Select { event, .. } => sampled(event),
        Event::Compose(events) | Event::Either(events) => events.iter().any(sampled),
        _ => false,
    }
}

/// What sampling adds.
pub(super) fn amplification(event: &Event) -> &'static str {
    match sampled(event) {
        true => {
            "by sampling: each unit takes part in a step with a fixed probability; the kernel draws the samples and keeps them"
        }
        false if matches!(event, Event::Select { .. }) => {
            "none is claimed: in each run every unit takes part in training or in the score"
        }
        false => "none is claimed: every unit takes part in every release",
    }
}

/// How releases are put together.
pub(super) fn composition(event: &Event) -> &'static str {
    match event {
        Event::Repeat { .. } | Event::Compose(_) => "a fixed plan, composed numerically or in closed form",
        Event::AtMost { .. } => "at most so many releases, all of them paid for",
        Event::Budget { .. } => "a filter: releases up to a total, all of it paid for",
        Event::Select { .. } => "the best of a random number of runs, all of them paid for; how many counted stays secret",
        Event::NotPrivate { .. } => "nothing to compose",
        _ => "one release",
    }
}

fn power(x: u64) -> String {
    if x.is_power_of_two() { format!("2^{}", x.trailing_zeros()) } else { x.to_string() }
}

/// Law of the number of runs in a selection.
pub(crate) fn distribution(stopping: Stopping) -> String {
    match stopping {
        Stopping::Uniform { most } => format!("every number from 1 to {most} alike"),
        Stopping::Harmonic { most } => format!("k from 1 to {most} in proportion to 1/k"),
        Stopping::NegativeBinomial { eta, gamma } => format!("truncated negative binomial, eta {eta}, gamma {gamma}"),
        Stopping::Poisson { mean } => format!("Poisson with mean {mean}"),
    }
}

/// Most runs that count in a selection, or the mean number where there is no most.
pub(super) fn runs(stopping: Stopping) -> u64 {
    match stopping {
        Stopping::Uniform { most } | Stopping::Harmonic { most } => most,
        other => privfit_kernel::account::expected_runs(other).ceil() as u64,
    }
}

/// The theorem behind a selection.
pub(super) const SELECTION: &str = "A selection releases the best of K runs, K random and secret. With the privacy profile d of one \
    run, f the generating function of K, s the chance to do better than the winner: s' <= e^t s + d(t), the winner's density is that of \
    one run times f'(1 - s), which moves by at most R, and delta(epsilon) <= E[K] d(epsilon - ln R). A candidate is trained on one \
    part of the records and scored on the other, so that a run costs as much as the dearer of the two.";

/// What an event releases, one by one and in words.
pub(crate) fn releases_of(event: &Event) -> Vec<Release> {
    let mut out = Vec::new();
    releases(event, 1, None, &mut out);
    out
}

/// The leaves of an event in words, with how often each happens.
pub(super) fn releases(event: &Event, times: u64, rate: Option<f64>, out: &mut Vec<Release>) {
    let mut leaf = |what: String, multiplier: Option<f64>, replace: Option<f64>, grid: Option<String>| {
        out.push(Release { what, times, noise_multiplier: multiplier, replace_factor: replace, rate, grid });
    };
    let grid = |scale: u64| Some(format!("noise scale of {} grid units", power(scale)));
    match event {
        Event::Gaussian { noise_multiplier, replace_factor } => {
            leaf("Gaussian noise on a vector of bounded length (L2)".into(), Some(*noise_multiplier), Some(*replace_factor), None)
        }
        Event::Laplace { noise_multiplier, replace_factor } => {
            leaf("Laplace noise on a vector of bounded L1 length".into(), Some(*noise_multiplier), Some(*replace_factor), None)
        }
        Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, dimension } => leaf(
            format!(
                "discrete Gaussian noise on {dimension} number{} of bounded length (L2)",
                if *dimension == 1 { "" } else { "s" }
            ),
            Some(*sigma as f64 / *sensitivity as f64),
            Some(*replace_sensitivity as f64 / *sensitivity as f64),
            grid(*sigma),
        ),
        Event::DiscreteLaplace { scale, sensitivity, replace_sensitivity, dimension } => leaf(
            format!(
                "discrete Laplace noise on {dimension} number{} of bounded L1 length",
                if *dimension == 1 { "" } else { "s" }
            ),
            Some(*scale as f64 / *sensitivity as f64),
            Some(*replace_sensitivity as f64 / *sensitivity as f64),
            grid(*scale),
        ),
        Event::Pure { epsilon, replace_factor } => {
            leaf(format!("a step with pure privacy, epsilon {epsilon}"), None, Some(*replace_factor), None)
        }
        Event::Approx { epsilon, delta } => {
            leaf(format!("a step with approximate privacy, epsilon {epsilon}, delta {delta:e}"), None, None, None)
        }
        Event::ZeroConcentrated { rho } => leaf(format!("a step with zero-concentrated privacy, rho {rho}"), None, None, None),
        Event::GaussianDp { mu } => leaf(format!("a step with Gaussian privacy, mu {mu}"), None, None, None),
        Event::ObjectivePerturbation(o) => leaf(
            format!(
                "objective perturbation: a Gaussian linear term, log determinant at most {}, {} degree{} of freedom",
                crate::method::rounded(o.log_determinant),
                o.degrees,
                if o.degrees == 1 { "" } else { "s" }
            ),
            Some(o.noise_multiplier),
            Some(o.replace_factor),
            (o.grid_sigma > 0).then(|| grid(o.grid_sigma)).flatten(),
        ),
        Event::Exponential { epsilon, replace_factor } => {
            leaf(format!("a private choice with losses in a window of {epsilon}"), None, Some(*replace_factor), None)
        }
        Event::Budget { rho } => leaf(format!("releases chosen on the way, up to rho {rho} in all"), None, None, None),
        Event::Select { stopping, event } => {
            leaf(format!("the best of a random number of runs of what follows ({})", distribution(*stopping)), None, None, None);
            releases(event, times, rate, out);
        }
        Event::NotPrivate { why } => leaf(format!("without a guarantee: {why}"), None, None, None),
        Event::Poisson { rate, event } => releases(event, times, Some(*rate), out),
        Event::FixedSize { batch, rows, event } => releases(event, times, Some(*batch as f64 / *rows as f64), out),
        Event::Shuffled { epochs: n, event, .. } | Event::Repeat { times: n, event } | Event::AtMost { times: n, event } => {
            releases(event, times.saturating_mul(*n), rate, out);
        }
        Event::Compose(events) => events.iter().for_each(|e| releases(e, times, rate, out)),
        Event::Either(events) => {
            let each = "one of the following for each record: they meet disjoint records, or a coin picks one";
            leaf(each.into(), None, None, None);
            events.iter().for_each(|e| releases(e, times, rate, out));
        }
    }
}
