//! The sections of a model's page about the released numbers and how good they are.

use super::bars::{bars, signed};
use super::filters::Filters;
use super::html::{Page, folded, paragraph, table};
use super::layers;
use super::model::ModelReport;
use super::results::Group;
use crate::plot::escape;
use crate::plot::{Axis, Unit, short};
use crate::plot::{Plot, Series};

/// Runs that are listed without being asked for.
const FEW: usize = 8;

/// The released numbers, and what is known about the noise in them.
pub(super) fn weights(r: &ModelReport, page: &mut Page) {
    let w = &r.weights;
    if let Some(columns) = &r.columns {
        let many = |count: usize, one: &str, several: &str| match count {
            0 => String::new(),
            1 => format!(", one {one}"),
            n => format!(", {n} {several}"),
        };
        let text = format!(
            "The model adds up a curve for each of {} columns{}{}. They are what was released: whoever has the file can read all of them.",
            columns.columns.len(),
            many(columns.pairs.len(), "pair of columns", "pairs of columns"),
            many(columns.trees, "tree", "random trees"),
        );
        return page.section("weights", "What was released", &(paragraph(&text) + &super::columns::figures(columns)));
    }
    if let Some(network) = &r.layers {
        page.section("weights", "What was released", &layers::released(network, r.filters.as_ref(), &w.noise.text));
        return layers::training(network, page);
    }
    let what = if r.point { "coordinates" } else { "weights" };
    let scores = if w.scores == 1 { String::new() } else { format!(" for each of {} scores", w.scores) };
    let mut body = paragraph(&format!(
        "The model has {} {what}{scores}. They are what was released: whoever has the file can read all of them.",
        w.features
    ));
    if w.largest.is_empty() {
        body += &paragraph("All of them are zero.");
        return page.section("weights", "What was released", &body);
    }
    body += &r.filters.as_ref().map_or(String::new(), Filters::figure);
    let mut caption = escape(&w.noise.text);
    let shown = w.largest.len();
    let more = match (w.more, w.zeros) {
        (0, 0) => format!("All {shown} are shown."),
        (0, z) => format!("All {shown} that are not zero are shown; {z} more are zero."),
        (m, 0) => format!("The {shown} largest by size are shown; there are {m} more."),
        (m, z) => format!("The {shown} largest by size are shown; there are {m} more, and {z} are zero."),
    };
    caption += &format!(" {more}");
    let title = if r.point { "Coordinates, largest first" } else { "Weights, largest first" };
    body += &format!(
        "<figure>\n<h3 id=\"weights-t\">{title}</h3>\n{}<figcaption>{caption}</figcaption>\n</figure>\n",
        bars(w, r.point)
    );
    let rows: Vec<Vec<String>> = w
        .largest
        .iter()
        .map(|x| {
            let name = x.class.as_ref().map_or(x.feature.clone(), |c| format!("{c}: {}", x.feature));
            vec![name, signed(x.value, 6)]
        })
        .collect();
    body += &folded("The same as a table", &table(&["encoded feature", "#value"], &rows, None));
    page.section("weights", "What was released", &body);
}

/// With a capital at the beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

/// What was measured, where that was given.
pub(super) fn accuracy(r: &ModelReport, page: &mut Page) {
    let c = &r.certificate;
    let mut body = String::new();
    if let Some(statement) = &c.utility.statement {
        body += &paragraph(&format!("Declared by the publisher: {statement}"));
    }
    let Some(results) = &r.results else {
        body += &paragraph(&format!(
            "No measurement was given for this page; {}. Measure on public rows with `privfit evaluate`, and give the outcome to \
             `privfit report`.",
            c.utility.note
        ));
        return page.section("accuracy", "How good it is", &body);
    };
    let share = matches!(results.metric.as_str(), "accuracy" | "auc");
    let show = |x: f64| if share { format!("{:.2} %", 100.0 * x) } else { short(x) };
    let points = results.by_epsilon(r.epsilon());
    if r.private && !points.is_empty() {
        let least = points.iter().map(|p| p.least).chain(results.open()).fold(f64::INFINITY, f64::min);
        let most = points.iter().map(|p| p.most).chain(results.open()).fold(-f64::INFINITY, f64::max);
        let text = |p: &Group| {
            let runs =
                if p.runs == 1 { String::new() } else { format!(", {} runs from {} to {}", p.runs, show(p.least), show(p.most)) };
            format!("epsilon {}: {} {}{runs}", short(p.epsilon), results.metric, show(p.mean))
        };
        let plot = Plot {
            id: "accuracy-plot",
            title: format!("{} against epsilon", capital(&results.metric)),
            description: points.iter().map(text).collect::<Vec<_>>().join("; "),
            x: Axis::from_zero("epsilon", points.iter().map(|p| p.epsilon).fold(0.1, f64::max), Unit::Plain),
            y: Axis::around(&results.metric, least, most, if share { Unit::Percent } else { Unit::Plain }),
            series: vec![Series {
                class: "c1",
                name: results.metric.clone(),
                points: points.iter().map(|p| (p.epsilon, p.mean, text(p))).collect(),
                steps: false,
                dots: true,
                errors: Vec::new(),
            }],
            levels: results.open().map(|x| (format!("without privacy: {}", show(x)), x)).into_iter().collect(),
            marks: Vec::new(),
        };
        body += &plot.figure("Means of the runs that were given.");
    }
    let rows: Vec<Vec<String>> = results
        .runs
        .iter()
        .take(1000)
        .map(|run| {
            let epsilon = match (run.open, run.epsilon) {
                (true, _) => "without privacy".into(),
                (_, Some(e)) if r.private => short(e),
                _ => "this model".into(),
            };
            let others = run.numbers.iter().filter(|n| n.0 != results.metric);
            let others: Vec<String> = others.map(|(k, v)| format!("{k} {}", short(*v))).collect();
            vec![epsilon, show(run.value), others.join(", ")]
        })
        .collect();
    let metric = format!("#{}", results.metric);
    let runs = match rows.iter().all(|r| r[2].is_empty()) {
        true => table(&["epsilon", &metric], &rows.iter().map(|r| r[..2].to_vec()).collect::<Vec<_>>(), None),
        false => table(&["epsilon", &metric, "also measured"], &rows, None),
    };
    body += &if rows.len() > FEW { folded(&format!("All {} runs", results.runs.len()), &runs) } else { runs };
    body += "<p class=\"note\">As given with the report. The certificate does not cover these numbers, nothing here checks them, and they \
             are exact statements about the rows they were measured on: those must be public.</p>\n";
    page.section("accuracy", "How good it is", &body);
}
