//! The second half of a model's page: what the guarantee rests on, what it leaves out, and how to check it.

use super::html::{Page, commands, folded, list, pairs, paragraph, table};
use super::model::ModelReport;
use crate::certificate::{release_line, round_up};
use crate::plot::delta;
use crate::plot::escape;

/// Kinds of releases that the page lists.
const LISTED: usize = 12;

pub(super) fn sections(r: &ModelReport, page: &mut Page) {
    assumptions(r, page);
    mechanism(r, page);
    let c = &r.certificate;
    let mut body = paragraph("No number on this page says anything about:");
    body += &list(&c.unprotected.not_covered);
    page.section("not-covered", "What is not covered", &body);
    let body = pairs(&[
        ("finite precision", c.security.precision.clone()),
        ("randomness", c.security.randomness.clone()),
        ("time", c.security.timing.clone()),
        ("rounding", c.accounting.slack.clone()),
        ("trust", format!("{} model: {}", c.deployment.model, c.deployment.actors)),
        ("access", format!("{}; {}; {}", c.deployment.release, c.deployment.access, c.deployment.retention)),
    ]);
    page.section("numerics", "Numerics and randomness", &body);
    let mut limits = c.security.limits.clone();
    limits.push("an upper bound is not an attack: how much a real attacker reaches is not measured here".into());
    limits.push("this page repeats the file; it can be wrong where the assumptions above are".into());
    page.section("limits", "Limits", &list(&limits));
    identity(r, page);
    check(r, page);
}

fn assumptions(r: &ModelReport, page: &mut Page) {
    let c = &r.certificate;
    let mut body = String::new();
    if !r.private {
        body += &paragraph("None of this makes this model private. It is what a private one would rest on.");
    }
    body += "<h3>Taken as public</h3>\n";
    body += &paragraph("These facts were known before the records were opened. They are not protected.");
    let facts: Vec<Vec<String>> = c.unprotected.facts.iter().map(|f| vec![f.what.clone(), f.source.clone()]).collect();
    body += &table(&["fact", "where it comes from"], &facts, None);
    body += "<h3>Enforced by the program</h3>\n";
    let enforced: Vec<Vec<String>> = c.assumptions.enforced.iter().map(|e| vec![e.what.clone(), e.by.clone()]).collect();
    body += &table(&["what", "how: the type or test that shows it"], &enforced, None);
    body += "<h3>Assumed: only the operator can vouch for it</h3>\n";
    body += &list(&c.assumptions.assumed);
    body += "<h3>Before training</h3>\n";
    let given: Vec<String> = c.preparation.given.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    body += &pairs(&[
        ("method", format!("chosen {}", c.preparation.method)),
        ("settings given", if given.is_empty() { "none".into() } else { given.join(", ") }),
        ("other settings", c.preparation.other.clone()),
        ("tuning", c.preparation.declaration.clone()),
        ("data sets", c.adjacency.domain.clone()),
    ]);
    page.section("assumptions", "What it rests on", &body);
}

fn mechanism(r: &ModelReport, page: &mut Page) {
    let (c, m) = (&r.certificate, &r.certificate.mechanism);
    let mut body = pairs(&[("method", m.method.clone()), ("loss", m.loss.clone()), ("source", m.source.clone())]);
    body += "<h3>Theorem</h3>\n";
    if !r.private {
        body += &paragraph("It does not apply to this model, because the model is not private. For a private one it states:");
    }
    body += &paragraph(&m.theorem);
    if !m.edits.is_empty() {
        body += "<h3>Edits</h3>\n";
        body += &paragraph(
            "After the release the model was changed by hand. Edits look at released numbers only, so that the guarantee is the same.",
        );
        body += &list(&m.edits);
    }
    body += "<h3>Releases</h3>\n";
    let mut releases: Vec<String> = m.releases.iter().take(LISTED).map(release_line).collect();
    if m.releases.len() > LISTED {
        releases.push(format!("and {} more, which the JSON form of this report lists", m.releases.len() - LISTED));
    }
    body += &list(&releases);
    body += &format!("<h3>Plan</h3>\n{}", pairs(&m.plan));
    if r.private {
        body += "<h3>How the numbers were worked out</h3>\n";
        let mut lines = Vec::new();
        for (name, bounds) in [("zero-out", &c.accounting.zero_out), ("replace-one", &c.accounting.replace_one)] {
            let Some(b) = bounds else { continue };
            let low = if b.lower > 0.0 { format!("; no accountant can prove less than {:.4}", b.lower) } else { String::new() };
            let renyi = b.renyi.map_or(String::new(), |x| format!("; Renyi accounting would say {}", round_up(x)));
            lines.push((
                name.to_string(),
                format!("at most {} by the {} accountant{low}{renyi}", round_up(b.upper), b.accountant),
            ));
        }
        if let Some(rho) = c.guarantee.rho {
            let text =
                format!("rho {:.3e} under zero-out, {:.3e} under replace-one", 1.001 * rho.zero_out, 1.001 * rho.replace_one);
            lines.push(("zero-concentrated".into(), text));
        }
        lines.push(("sampling".into(), c.accounting.amplification.clone()));
        lines.push(("composition".into(), c.accounting.composition.clone()));
        body += &pairs(&lines);
    }
    page.section("theorems", if r.private { "Why it is private" } else { "How it was made" }, &body);
}

fn identity(r: &ModelReport, page: &mut Page) {
    let c = &r.certificate;
    let i = &c.identity;
    let stated = |x: &Option<String>| x.clone().unwrap_or_else(|| "not stated".into());
    let mut lines = vec![
        ("digest of the numbers", format!("SHA-256 {}", i.model_sha256)),
        ("data set", i.data.clone()),
        ("program", i.program.clone()),
        ("build", stated(&i.build)),
        ("day", stated(&i.date)),
    ];
    match &i.ledger {
        None => lines.push(("ledger", "none: what else was released from these records is not known".into())),
        Some(l) => {
            lines.push(("ledger", format!("{}, declared by the publisher", l.ledger)));
            lines.push(("record", format!("number {}, digest {}", l.sequence, l.hash)));
            if r.private {
                let (spent, at) = (round_up(l.epsilon), delta(l.delta));
                let text = format!("job {} of the data set; together epsilon {spent} of {} at delta {at}", l.jobs, l.cap_epsilon);
                lines.push(("spent by then", text));
            }
        }
    }
    let mut body = format!("<div class=\"mono\">{}</div>", pairs(&lines));
    let d = &c.registry;
    let curators = (!d.curators.is_empty()).then(|| d.curators.join(", "));
    let declared: Vec<(&str, String)> = [
        ("curator", &curators),
        ("contact", &c.contact.contact),
        ("intended use", &d.intended_use),
        ("region", &d.region),
        ("sector", &d.sector),
        ("published", &d.publication_date),
        ("licence", &c.contact.licence),
        ("expiry", &c.contact.expiry),
        ("revision", &c.contact.revision),
    ]
    .into_iter()
    .filter_map(|(k, v)| v.clone().map(|v| (k, v)))
    .collect();
    body += "<h3>Declared by the publisher, not checked</h3>\n";
    body += &if declared.is_empty() { paragraph("Nothing was declared.") } else { pairs(&declared) };
    page.section("identity", "Identity", &body);
}

fn check(r: &ModelReport, page: &mut Page) {
    let mut body =
        paragraph("None of this needs the private records. Put the name of the model file in the place of model.json.");
    let ledger = r.certificate.identity.ledger.is_some();
    let mut lines = vec![
        ("Recompute every number from the recorded noise:", "privfit certificate verify model.json"),
        ("Read the whole certificate:", "privfit certificate show model.json"),
        ("Write this page again; it has the same bytes:", "privfit report model.json --out again.html"),
    ];
    if ledger {
        lines
            .insert(1, ("Compare it with the ledger that paid for it:", "privfit certificate verify model.json --ledger LEDGER"));
    }
    body += &commands(&lines);
    body += &commands(&[("Attack its plan and compare with its claim:", "privfit audit sensitivity --model model.json")]);
    let rows: Vec<Vec<String>> =
        r.checks.iter().map(|c| vec![c.name.clone(), c.answer.text().to_string(), c.text.clone()]).collect();
    body += &folded("What was checked for this page", &table(&["check", "outcome", "why"], &rows, None));
    if !r.private {
        body += &format!("<p class=\"note\">{}</p>\n", escape("A model that is not private does not pass the first of them."));
    }
    page.section("check", "Check it yourself", &body);
}
