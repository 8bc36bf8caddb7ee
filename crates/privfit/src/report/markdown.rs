//! Reports as Markdown: a model card, and the same for a ledger.

use super::ledger::{LedgerReport, down};
use super::ledger_page;
use super::model::{ModelReport, NOT_PRIVATE};
use crate::certificate::{percent_up, release_line, round_up};
use crate::plot::delta;
use crate::plot::short;
use crate::plot::steers;
use std::fmt::Write;

/// Text that stays text: nothing in it can begin a tag, a link, a table cell or a heading.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '!' | '~' | '$' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if steers(c) => out.push('\u{fffd}'),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    // Bare addresses become links by themselves.
    out.replace("://", ":&#47;/").replace("www.", "www&#46;")
}

fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut out = line(&columns.iter().map(|c| c.to_string()).collect::<Vec<_>>());
    out += &line(&vec!["---".to_string(); columns.len()]);
    rows.iter().for_each(|r| out += &line(&r.iter().map(|c| plain(c)).collect::<Vec<_>>()));
    out + "\n"
}

fn list<S: AsRef<str>>(items: &[S]) -> String {
    items.iter().map(|i| format!("- {}\n", plain(i.as_ref()))).collect::<String>() + "\n"
}

/// The card of a model.
pub(super) fn model(r: &ModelReport) -> String {
    let (c, g) = (&r.certificate, &r.certificate.guarantee);
    let mut out = format!("{}\n# {}\n\n", super::MARKS[1], plain(&r.name()));
    if !r.private {
        let why = plain(g.why_not.as_deref().unwrap_or("its file states so"));
        let _ = write!(out, "> **{NOT_PRIVATE}** Nothing here is a guarantee, and no privacy number is stated ({why}).\n\n");
    }
    if let Some(text) = &c.registry.description {
        let _ = write!(out, "{}\n\n", plain(text));
    }
    out += "## Model details\n\n";
    let mut details = vec![
        format!("Data: {}, {}", c.identity.data, r.units()),
        format!("Method: {}, loss {} ({})", c.mechanism.method, c.mechanism.loss, c.mechanism.source),
        match &r.layers {
            Some(network) => format!("Released numbers: {} weights of a network", network.weights),
            None => format!(
                "Released numbers: {} for each of {} scores, {} of all zero",
                r.weights.features, r.weights.scores, r.weights.zeros
            ),
        },
        format!("Digest of the numbers: SHA-256 {}", c.identity.model_sha256),
        format!("Written by: {}", c.identity.program),
    ];
    let curators = (!c.registry.curators.is_empty()).then(|| c.registry.curators.join(", "));
    for (name, value) in
        [("Day", &c.identity.date), ("Published by", &curators), ("Contact", &c.contact.contact), ("Licence", &c.contact.licence)]
    {
        details.extend(value.as_ref().map(|v| format!("{name}: {v}")));
    }
    out += &list(&details);
    if let Some(network) = &r.layers {
        out += &table(&["layer", "comes out", "weights"], &network.rows());
    }
    if let Some(open) = r.not_checked() {
        let _ = write!(out, "> Recomputed by {}; {}.\n\n", plain(&r.program), plain(&open));
    }
    let stated = c.registry.intended_use.as_deref().unwrap_or("Not stated.");
    let _ = write!(out, "## Intended use\n\n{}\n\n## Guarantee\n\n{}\n\n", plain(stated), plain(&c.plain.sentence));
    if r.private {
        let show = |e: Option<f64>| e.map_or("infinite".into(), round_up);
        let share = |x: Option<f64>| x.map_or("no bound".into(), |x| format!("{} %", percent_up(x)));
        let row = |name: &str, e: Option<f64>, risk: Option<crate::certificate::Risk>| {
            vec![
                name.to_string(),
                show(e),
                delta(g.delta),
                share(risk.map(|r| r.accuracy)),
                share(risk.map(|r| r.true_positive_rate)),
                share(risk.map(|r| r.posterior)),
            ]
        };
        let rows = [row("zero-out", g.zero_out, c.plain.zero_out), row("replace-one", g.replace_one, c.plain.replace_one)];
        out += &table(&["neighbours", "epsilon", "delta", "is right", "finds at 1 % false alarms", "50 % becomes"], &rows);
        let _ = write!(out, "Upper bounds, rounded up. Covers {}.\n\n", plain(&g.scope));
        let rows: Vec<Vec<String>> =
            g.profile.iter().map(|p| vec![delta(p.delta), show(p.zero_out), show(p.replace_one)]).collect();
        out += &table(&["delta", "epsilon, zero-out", "epsilon, replace-one"], &rows);
    }
    let _ = write!(out, "Whose privacy: {}; {}.\n\n## How good it is\n\n", plain(&c.unit.mapping), plain(&c.unit.group));
    match (&r.results, &c.utility.statement) {
        (Some(results), _) => {
            let rows: Vec<Vec<String>> = results
                .runs
                .iter()
                .take(200)
                .map(|run| {
                    let epsilon = match (run.open, run.epsilon) {
                        (true, _) => "without privacy".to_string(),
                        (_, Some(e)) if r.private => short(e),
                        _ => "this model".into(),
                    };
                    vec![epsilon, short(run.value)]
                })
                .collect();
            out += &table(&["epsilon", &plain(&results.metric)], &rows);
            out += "As given with the report; not covered by the certificate, and measured on rows that must be public.\n\n";
        }
        (None, Some(text)) => {
            let _ = write!(out, "Declared by the publisher: {}\n\n", plain(text));
        }
        (None, None) => {
            let _ = write!(out, "Not measured; {}.\n\n", plain(&c.utility.note));
        }
    }
    let _ = write!(out, "## Noise\n\n{}\n\n", plain(&r.weights.noise.text));
    out += &list(&c.mechanism.releases.iter().take(12).map(release_line).collect::<Vec<_>>());
    let _ = write!(out, "Theorem: {}\n\n## What it rests on\n\nTaken as public:\n\n", plain(&c.mechanism.theorem));
    out += &list(&c.unprotected.facts.iter().map(|f| format!("{} ({})", f.what, f.source)).collect::<Vec<_>>());
    out += "Enforced by the program:\n\n";
    out += &list(&c.assumptions.enforced.iter().map(|e| format!("{} ({})", e.what, e.by)).collect::<Vec<_>>());
    out += "Assumed:\n\n";
    out += &list(&c.assumptions.assumed);
    out += "## What is not covered\n\n";
    out += &list(&c.unprotected.not_covered);
    out += "## Numerics, randomness, limits\n\n";
    let mut limits = vec![c.security.precision.clone(), c.security.randomness.clone(), c.security.timing.clone()];
    limits.extend(c.security.limits.clone());
    out += &list(&limits);
    out + "## Check it yourself\n\n```\nprivfit certificate verify model.json\nprivfit certificate show model.json\n```\n"
}

/// The same for a ledger.
pub(super) fn ledger(r: &LedgerReport) -> String {
    let mut out = format!("{}\n# Privacy budget of {}\n\n{}\n\n", super::MARKS[1], plain(&r.scope.dataset), plain(&r.sentence()));
    out += &list(&[
        format!("Cap: epsilon {} at delta {}", crate::method::rounded(r.cap), delta(r.delta)),
        format!("Spent: epsilon {}, {:.1} % of the budget", round_up(r.filter), (1000.0 * r.part).ceil() / 10.0),
        format!("Next job: an epsilon of at most about {}", down(r.next)),
        format!("Unit of privacy: {}, neighbours: {}", r.scope.unit, r.scope.adjacency.name()),
    ]);
    if let Some(open) = r.open() {
        let _ = write!(out, "{}\n\n", plain(&open));
    }
    out += "## Jobs\n\n";
    let rows: Vec<Vec<String>> = r
        .jobs
        .iter()
        .map(|j| {
            vec![
                j.sequence.to_string(),
                j.name.clone(),
                format!("{}: {}", j.job, ledger_page::release_text(j)),
                j.epsilon.map_or("none".into(), round_up),
                round_up(j.together),
                if j.released { "released" } else { "reserved, not released" }.to_string(),
            ]
        })
        .collect();
    out += &table(&["record", "name", "what it releases", "own epsilon", "spent with it", "state"], &rows);
    let _ = write!(out, "## What the next job may cost\n\n{}\n\n## State of the chain\n\n", plain(&r.forecast()));
    out += &list(&r.checks.iter().map(|c| format!("{}: {}", c.name, c.text)).collect::<Vec<_>>());
    let _ = write!(out, "Ledger {}, {} records, the last with digest {}.\n\n## Limits\n\n", r.ledger, r.records, r.head);
    out += &list(&ledger_page::limits(r));
    out + "## Check it yourself\n\n```\nprivfit ledger verify LEDGER\nprivfit ledger export LEDGER\n```\n"
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_stay_names() {
        let text = plain("<img src=x>|[a](http://b)\n# x `y` www.z");
        assert_eq!(text, "&lt;img src=x&gt;\\|\\[a\\](http:&#47;/b) \\# x \\`y\\` www&#46;z");
    }
}
