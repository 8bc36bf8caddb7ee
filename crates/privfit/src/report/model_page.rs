//! The page of a model: what is guaranteed, in words, numbers and pictures. What that rests on follows in `model_basis.rs`.

use super::curves::FLOOR;
use super::html::{Page, pairs, paragraph, table, tiles};
use super::meaning::{MEANINGS, Meaning};
use super::model::{ModelReport, NOT_PRIVATE};
use super::model_basis;
use super::model_released::{accuracy, weights};
use crate::certificate::{percent_up, round_up};
use crate::plot::escape;
use crate::plot::{Axis, Unit, delta, short};
use crate::plot::{Plot, Series};
use privfit_kernel::account::Adjacency;

/// Colours of the notions.
pub(super) fn class(adjacency: Adjacency) -> &'static str {
    match adjacency {
        Adjacency::ZeroOut => "c1",
        Adjacency::ReplaceOne => "c2",
        Adjacency::AddRemove => "c3",
    }
}

/// The page.
pub(super) fn render(r: &ModelReport) -> String {
    let mut page = Page::default();
    guarantee(r, &mut page);
    if r.private {
        curve(r, &mut page);
        attacks(r, &mut page);
        meaning(r.epsilon(), &mut page);
    }
    weights(r, &mut page);
    accuracy(r, &mut page);
    model_basis::sections(r, &mut page);
    page.finish(&format!("Privacy report: {}", r.name()), &head(r))
}

fn head(r: &ModelReport) -> String {
    let c = &r.certificate;
    let mut out = format!("<p class=\"kicker\">Privacy report</p>\n<h1>{}</h1>\n", escape(&r.name()));
    let mut line = vec![format!("data: {}, {}", c.identity.data, r.units()), format!("written by {}", c.identity.program)];
    line.extend(c.identity.date.clone());
    if !c.registry.curators.is_empty() {
        line.insert(0, c.registry.curators.join(", "));
    }
    out += &format!("<p class=\"byline\">{}</p>\n", escape(&line.join(" · ")));
    if let Some(description) = &c.registry.description {
        out += &paragraph(description);
    }
    if !r.private {
        let why = c.guarantee.why_not.as_deref().unwrap_or("its file states so");
        out += &format!(
            "<div class=\"banner\" role=\"alert\"><b>{NOT_PRIVATE}</b><p>Nothing on this page is a guarantee, and no privacy number is \
             stated ({}). Treat the file like the records it was made from.</p></div>\n",
            escape(why)
        );
    }
    out
}

fn guarantee(r: &ModelReport, page: &mut Page) {
    let (c, g) = (&r.certificate, &r.certificate.guarantee);
    let mut body = format!("<p class=\"lead\">{}</p>\n", escape(&c.plain.sentence));
    let (Some(epsilon), Some(risk)) = (r.epsilon(), r.risk()) else {
        if r.private {
            body += &paragraph("Under the notion of neighbours that was asked for, nothing finite is proved.");
        }
        let title = if r.private { "What is guaranteed" } else { "Nothing is guaranteed" };
        return page.section("guarantee", title, &body);
    };
    let except = if risk.except == 0.0 { String::new() } else { format!(", but for a chance of {:.1e}", 1.05 * risk.except) };
    body += &tiles(&[
        (round_up(epsilon), format!("epsilon under {}, at most", g.asked_adjacency.name())),
        (delta(g.delta), "delta: the part that epsilon does not cover".into()),
        (
            format!("{} %", percent_up(risk.true_positive_rate)),
            "of the people an attacker looks for are found, at 1 % false alarms".into(),
        ),
        (format!("{} %", percent_up(risk.posterior)), format!("is the most that a belief of 50 % can become{except}")),
    ]);
    let rows: Vec<Vec<String>> = [
        ("Was this record used, or blank?", "zero-out", g.zero_out, c.plain.zero_out),
        ("Is it this record, or that one?", "replace-one", g.replace_one, c.plain.replace_one),
    ]
    .into_iter()
    .map(|(question, notion, epsilon, risk)| {
        let share = |x: Option<f64>| x.map_or("no bound".into(), |x| format!("{} %", percent_up(x)));
        vec![
            format!("{question} ({notion})"),
            epsilon.map_or("infinite".into(), round_up),
            share(risk.map(|r| r.accuracy)),
            share(risk.map(|r| r.true_positive_rate)),
            share(risk.map(|r| r.posterior)),
        ]
    })
    .collect();
    body += &table(&["What the attacker asks", "#epsilon", "#is right", "#finds", "#believes"], &rows, None);
    body += &format!(
        "<p class=\"note\">All numbers are upper bounds and rounded up; the attacker knows every other record and sees the whole model. \
         <em>Is right</em>: guesses at even odds; random guessing: 50 %. <em>Finds</em>: right alarms when one alarm in a hundred may be \
         false. <em>Believes</em>: what a belief of 50 % can become. Covers {}.</p>\n",
        escape(&g.scope)
    );
    let notions: Vec<(String, String)> =
        c.adjacency.notions.iter().map(|n| (n.name.name().to_string(), n.meaning.clone())).collect();
    let mut whose = vec![("whose privacy".to_string(), format!("{}; {}", c.unit.mapping, c.unit.group))];
    whose.extend(notions);
    body += &pairs(&whose);
    let held = r.checks.iter().filter(|c| c.held()).count();
    body += &match r.not_checked() {
        None => format!(
            "<p class=\"holds\">Recomputed when this page was written: all {held} checks of the certificate hold. What only the \
             publisher knows is marked as declared.</p>\n"
        ),
        Some(open) => {
            format!("<p class=\"note\">Recomputed when this page was written: {held} checks hold; {}.</p>\n", escape(&open))
        }
    };
    page.section("guarantee", "What is guaranteed", &body);
}

fn curve(r: &ModelReport, page: &mut Page) {
    let end = r.curves.iter().flat_map(|c| c.points.last()).map(|p| p.epsilon).fold(0.1, f64::max);
    let series = |c: &super::PrivacyCurve| Series {
        class: class(c.adjacency),
        name: c.adjacency.name().into(),
        points: c
            .points
            .iter()
            .filter(|p| p.delta >= FLOOR)
            .map(|p| {
                (
                    p.epsilon,
                    p.delta,
                    format!("{}: epsilon {}, delta at most {:.1e}", c.adjacency.name(), round_up(p.epsilon), 1.05 * p.delta),
                )
            })
            .collect(),
        steps: false,
        dots: false,
        errors: Vec::new(),
    };
    let marks = r.curves.iter().filter(|c| c.claim.delta >= FLOOR).map(|c| {
        let text = format!(
            "stated: epsilon {} at delta {} under {}",
            round_up(c.claim.epsilon),
            delta(c.claim.delta),
            c.adjacency.name()
        );
        (c.claim.epsilon, c.claim.delta, class(c.adjacency), text)
    });
    let plot = Plot {
        id: "curve-plot",
        title: "Delta at every epsilon".into(),
        description: format!(
            "Line plot of delta, on a logarithmic axis from 1 to 1e-12, against epsilon from 0 to {}; delta falls as epsilon grows.",
            short(end)
        ),
        x: Axis::from_zero("epsilon", end, Unit::Plain),
        y: Axis { label: "delta (logarithmic)".into(), low: FLOOR, high: 1.0, unit: Unit::Power, given: Vec::new() },
        series: r.curves.iter().map(series).collect(),
        levels: Vec::new(),
        marks: marks.collect(),
    };
    let g = &r.certificate.guarantee;
    let rows: Vec<Vec<String>> = g
        .profile
        .iter()
        .map(|p| {
            let show = |e: Option<f64>| e.map_or("infinite".into(), round_up);
            vec![delta(p.delta), show(p.zero_out), show(p.replace_one)]
        })
        .collect();
    let mut body = paragraph(
        "One pair of numbers is one point of a curve. The model meets every point of it at once: a smaller epsilon with a larger delta, \
         and a larger epsilon with a smaller one.",
    );
    body += &plot.figure(&escape(&format!(
        "Worked out by {} from the recorded noise, with today's accountant. Lower is more private.",
        r.program
    )));
    body += &table(&["#delta", "#epsilon, zero-out", "#epsilon, replace-one"], &rows, None);
    page.section("curve", "Epsilon and delta", &body);
}

fn attacks(r: &ModelReport, page: &mut Page) {
    let share = |x: f64| format!("{} %", short((1e4 * x).round() / 1e2));
    let mut series: Vec<Series> = r
        .curves
        .iter()
        .map(|c| Series {
            class: class(c.adjacency),
            name: format!("best attacker, {}", c.adjacency.name()),
            points: c
                .attacks
                .iter()
                .map(|a| {
                    let text = format!(
                        "{}: at {} false alarms at most {} % found",
                        c.adjacency.name(),
                        share(a.false_positive_rate),
                        percent_up(a.true_positive_rate)
                    );
                    (a.false_positive_rate, a.true_positive_rate, text)
                })
                .collect(),
            steps: false,
            dots: false,
            errors: Vec::new(),
        })
        .collect();
    let guess = |x: f64| (x, x, format!("guessing: at {} false alarms {} found", share(x), share(x)));
    series.push(Series {
        class: "quiet",
        name: "guessing".into(),
        points: vec![guess(0.0), guess(1.0)],
        steps: false,
        dots: false,
        errors: Vec::new(),
    });
    let plot = Plot {
        id: "tradeoff-plot",
        title: "How many are found, at how many false alarms".into(),
        description:
            "Line plot of the share of right alarms against the share of false alarms; the diagonal is guessing, and the lines \
                      above it are bounds for the best attacker."
                .into(),
        x: Axis { label: "false alarms".into(), low: 0.0, high: 1.0, unit: Unit::Percent, given: Vec::new() },
        y: Axis { label: "found (right alarms)".into(), low: 0.0, high: 1.0, unit: Unit::Percent, given: Vec::new() },
        series,
        levels: Vec::new(),
        marks: Vec::new(),
    };
    let mut body = paragraph(
        "An attacker who tests whether a person is in the data can be bold or careful. No attack on this model, whatever it computes, is \
         above the lines; guessing is on the diagonal. The nearer a line is to the diagonal, the more private the model.",
    );
    body += &plot.figure(
        "False alarms: share of people who are not in the data and are taken for one who is. Found: share of people who are, and are \
         recognised. Bounds that follow from the curve above; they hold for every test that anybody could think of.",
    );
    let picked = [0.001, 0.01, 0.05, 0.1, 0.5];
    let rows: Vec<Vec<String>> = picked
        .iter()
        .map(|x| {
            let mut row = vec![share(*x)];
            row.extend(r.curves.iter().map(|c| {
                let found = c.attacks.iter().find(|a| a.false_positive_rate == *x);
                found.map_or(String::new(), |a| format!("{} %", percent_up(a.true_positive_rate)))
            }));
            row
        })
        .collect();
    let names: Vec<String> = r.curves.iter().map(|c| format!("#found, {}", c.adjacency.name())).collect();
    let columns: Vec<&str> = ["#false alarms"].into_iter().chain(names.iter().map(String::as_str)).collect();
    body += &table(&columns, &rows, None);
    page.section("tradeoff", "What the best attacker can do", &body);
}

/// What values of epsilon mean, with the nearest one marked.
pub(super) fn meaning(own: Option<f64>, page: &mut Page) {
    let rows: Vec<Vec<String>> = MEANINGS
        .iter()
        .map(|m| {
            vec![
                short(m.epsilon),
                short((10.0 * m.odds()).ceil() / 10.0),
                format!("{} %", percent_up(m.belief())),
                format!("{} %", percent_up(m.found())),
                m.words.to_string(),
            ]
        })
        .collect();
    let mut body = paragraph(
        "Epsilon bounds a ratio: whatever somebody learns, the odds of any statement about one person change by at most the factor below. \
         The numbers are plain arithmetic for delta 0; a model is usually better than the row of its epsilon.",
    );
    body +=
        &table(&["#epsilon", "#odds change by", "#50 % becomes", "#found at 1 %", "in words"], &rows, own.map(Meaning::nearest));
    if let Some(own) = own {
        body +=
            &format!("<p class=\"note\">The marked row is the one nearest to {}, the epsilon of this page.</p>\n", round_up(own));
    }
    page.section("meaning", "What values of epsilon mean", &body);
}
