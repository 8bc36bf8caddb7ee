//! The page of a ledger: how much there is, what was spent by which job, what is left, and whether the records hold.

use super::html::{Page, commands, folded, list, pairs, paragraph, table, tiles};
use super::ledger::{LedgerReport, Spending, down};
use super::model_page::meaning;
use crate::certificate::{release_line, round_up};
use crate::plot::delta;
use crate::plot::escape;
use crate::plot::{Axis, Unit};
use crate::plot::{Plot, Series};

/// Jobs that a page lists.
const LISTED: usize = 300;
/// Points that a plot has.
const DRAWN: usize = 400;
/// Kinds of releases that are named for a job.
const NAMED: usize = 3;

/// What a job does, in words.
pub(super) fn release_text(job: &Spending) -> String {
    let mut said: Vec<String> = job.releases.iter().take(NAMED).map(release_line).collect();
    if job.releases.len() > NAMED {
        said.push(format!("and {} more", job.releases.len() - NAMED));
    }
    said.join("; ")
}

/// The page.
pub(super) fn render(r: &LedgerReport) -> String {
    let mut page = Page::default();
    budget(r, &mut page);
    spending(r, &mut page);
    jobs(r, &mut page);
    next(r, &mut page);
    meaning((!r.jobs.is_empty()).then_some(r.filter), &mut page);
    chain(r, &mut page);
    page.section("limits", "Limits", &list(&limits(r)));
    let mut body =
        paragraph("Put the file or the address of the ledger in the place of LEDGER; --ledger-key FILE where it has a key.");
    body += &commands(&[
        ("Check the chain, the sums and the charges:", "privfit ledger verify LEDGER"),
        ("Check published models against it:", "privfit ledger verify LEDGER --model model.json"),
        ("All records, with their digests:", "privfit ledger export LEDGER"),
        ("Write this page again:", "privfit report LEDGER --out again.html"),
    ]);
    page.section("check", "Check it yourself", &body);
    let title = format!("Privacy budget of {}", r.scope.dataset);
    let head = format!(
        "<p class=\"kicker\">Privacy budget</p>\n<h1>{}</h1>\n<p class=\"byline\">{}</p>\n",
        escape(&r.scope.dataset),
        escape(&format!("unit of privacy: {} · neighbours: {} · {} records", r.scope.unit, r.scope.adjacency.name(), r.records))
    );
    page.finish(&title, &head)
}

/// What a ledger can't tell.
pub(super) fn limits(r: &LedgerReport) -> Vec<String> {
    let mut out = vec![
        "releases that were made without the ledger are not in it, and cost all the same".to_string(),
        "a copy of the ledger on a second machine, or an old copy put back, shows only when it is compared with published models"
            .into(),
        "the digests show accidents; only a ledger with a key shows forgery, to whoever has the key".into(),
        format!("every epsilon is about one unit ({}) under {}", r.scope.unit, r.scope.adjacency.name()),
    ];
    out.push("what was spent is never paid back, whatever became of the job".into());
    out
}

fn budget(r: &LedgerReport, page: &mut Page) {
    let mut body = format!("<p class=\"lead\">{}</p>\n", escape(&r.sentence()));
    body += &tiles(&[
        (
            crate::method::rounded(r.cap),
            format!("epsilon is the cap, at delta {}, for everything that is ever released", delta(r.delta)),
        ),
        (round_up(r.filter), "epsilon is spent so far".into()),
        (format!("{:.1} %", (1000.0 * r.part).ceil() / 10.0), "of the budget is gone".into()),
        (down(r.next), "is about the largest epsilon that the next job may have".into()),
    ]);
    if let Some(open) = r.open() {
        body += &paragraph(&open);
    }
    body += &format!(
        "<p class=\"note\">The cap holds whatever is asked after which answer. Charges are exact decimals and rounded up; all {} checks \
         of the ledger hold.</p>\n",
        r.checks.len()
    );
    page.section("budget", "How much is spent", &body);
}

fn spending(r: &LedgerReport, page: &mut Page) {
    if r.jobs.is_empty() {
        return page.section("spending", "Spending, job by job", &paragraph("No job has spent anything yet."));
    }
    // A page with a point for each of very many jobs would be too large to open.
    let every = r.jobs.len().div_ceil(DRAWN);
    let mut added = Some(0.0);
    let mut plain = vec![(0.0, 0.0, "before the first job: nothing".to_string())];
    let mut spent = plain.clone();
    for (i, job) in r.jobs.iter().enumerate() {
        let n = i as f64 + 1.0;
        added = added.zip(job.epsilon).map(|(a, e)| a + e);
        if !(i + 1).is_multiple_of(every) && i + 1 != r.jobs.len() {
            continue;
        }
        spent.push((n, job.together, format!("after job {}, {}: epsilon {} spent", i + 1, job.name, round_up(job.together))));
        if let Some(sum) = added {
            plain.push((n, sum, format!("epsilons added up: {}", round_up(sum))));
        }
    }
    let top = plain.last().map_or(0.0, |p| p.1).min(2.5 * r.cap).max(1.12 * r.cap);
    let mut series = vec![Series {
        class: "c1",
        name: "spent, by the ledger".into(),
        points: spent,
        steps: true,
        dots: true,
        errors: Vec::new(),
    }];
    if r.jobs.len() > 1 && added.is_some() {
        series.push(Series {
            class: "quiet",
            name: "epsilons simply added up".into(),
            points: plain,
            steps: true,
            dots: false,
            errors: Vec::new(),
        });
    }
    let plot = Plot {
        id: "spending-plot",
        title: "Epsilon spent after each job".into(),
        description: format!(
            "Step plot of the epsilon spent after each of {} jobs, ending at {}, below a cap of {}.",
            r.jobs.len(),
            round_up(r.filter),
            crate::method::rounded(r.cap)
        ),
        x: Axis { high: r.jobs.len() as f64, ..Axis::from_zero("jobs", r.jobs.len() as f64, Unit::Count) },
        y: Axis::from_zero(&format!("epsilon at delta {}", delta(r.delta)), top, Unit::Plain),
        series,
        levels: vec![(format!("cap {}", crate::method::rounded(r.cap)), r.cap)],
        marks: Vec::new(),
    };
    let mut body = plot.figure(
        "The first job counts by itself. From the second on the ledger counts in a way that holds though jobs are chosen after the answers \
         before them: that costs something at once, so that the line jumps there, and hardly anything for each further job. Adding epsilons \
         up is drawn for comparison; it would need the sum of all deltas as well.",
    );
    let rows: Vec<Vec<String>> = r
        .jobs
        .iter()
        .take(LISTED)
        .enumerate()
        .map(|(i, j)| vec![(i + 1).to_string(), j.name.clone(), round_up(j.together)])
        .collect();
    body += &folded("The same as a table", &table(&["#jobs", "last one", "#epsilon spent"], &rows, None));
    page.section("spending", "Spending, job by job", &body);
}

fn jobs(r: &LedgerReport, page: &mut Page) {
    let skipped = r.jobs.len().saturating_sub(LISTED);
    let rows: Vec<Vec<String>> = r
        .jobs
        .iter()
        .skip(skipped)
        .map(|j| {
            vec![
                j.sequence.to_string(),
                j.name.clone(),
                format!("{}: {}", j.job, release_text(j)),
                j.epsilon.map_or("none".into(), round_up),
                if j.released { "released" } else { "reserved, not released" }.to_string(),
            ]
        })
        .collect();
    let mut body = match rows.is_empty() {
        true => paragraph("There are none."),
        false => table(&["#record", "name", "what it releases", "#own epsilon", "state"], &rows, None),
    };
    if skipped > 0 {
        body += &paragraph(&format!("The last {LISTED} are shown; {skipped} came before them."));
    }
    page.section("jobs", "Jobs", &body);
}

fn next(r: &LedgerReport, page: &mut Page) {
    let mut body = format!("<p class=\"lead\">{}</p>\n", escape(&r.forecast()));
    body += &paragraph(
        "That is for one more job with Gaussian noise or pure privacy, whichever may cost more. Several small jobs together may have more \
         than one large one. A job that does not fit is refused before any record is read.",
    );
    page.section("next", "What the next job may cost", &body);
}

fn chain(r: &LedgerReport, page: &mut Page) {
    let rows: Vec<Vec<String>> =
        r.checks.iter().map(|c| vec![c.name.clone(), c.answer.text().to_string(), c.text.clone()]).collect();
    let mut body = table(&["check", "outcome", "why"], &rows, None);
    body += &format!(
        "<div class=\"mono\">{}</div>",
        pairs(&[("ledger", r.ledger.clone()), ("records", r.records.to_string()), ("digest of the last", r.head.clone())])
    );
    page.section("chain", "State of the chain", &body);
}
