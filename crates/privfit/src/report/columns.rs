//! The curves of an additive model in pictures: what each column, and each pair of columns, adds to a score, over how many rows are there.

use super::bars::signed;
use super::html::paragraph;
use crate::additive::{AdditiveModel, PairTerm};
use crate::artifact::Artifact;
use crate::data::cells::CellKind;
use crate::model::Model;
use crate::plot::{Axis, Unit, escape, short};
use serde::Serialize;
use std::fmt::Write;

/// The terms of an additive model, the most important column first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Columns {
    /// Classes whose scores there are; empty where there is one score.
    pub classes: Vec<String>,
    /// Columns.
    pub columns: Vec<Column>,
    /// Pairs of columns.
    pub pairs: Vec<Pair>,
    /// How many trees add the rest.
    pub trees: usize,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// How far it moves scores: the root of the mean square of its curve.
    pub spread: f64,
    /// Whether its cells, but the last one, have an order.
    pub ordered: bool,
    /// Its cells: categories, or the middles of intervals.
    pub cells: Vec<String>,
    /// Share of the rows in each, by counts with noise.
    pub shares: Vec<f64>,
    /// For each score what each cell adds.
    pub scores: Vec<Vec<f64>>,
    /// The largest standard deviation that the noise in that can have; empty if the curve was edited.
    pub noise: Vec<f64>,
}

/// Two columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Their names.
    pub names: [String; 2],
    /// A cell of each group of either.
    pub groups: [Vec<String>; 2],
    /// What each two groups add to the first score, those of one group of the first column after each other.
    pub scores: Vec<f64>,
}

fn cell_names(kind: &CellKind) -> Vec<String> {
    let middles = kind.middles().unwrap_or_default();
    let name = |cell: usize| middles.get(cell).map_or_else(|| kind.cell_name(cell), |x| short(*x));
    (0..kind.count()).map(name).collect()
}

impl Columns {
    /// The terms of a model; none where it is no additive one.
    pub(super) fn of(artifact: &Artifact) -> Option<Columns> {
        let Model::Additive(model) = &artifact.model else { return None };
        let classes = if model.offsets.len() > 1 { artifact.schema.class_names() } else { Vec::new() };
        let column = |(j, curve): (usize, &crate::additive::Curve)| {
            let known = &model.grid.columns[j];
            // A cell between a bound and an anchor that are the same number has no row.
            let (anchor, middles) = (known.kind.anchor_cell(), known.kind.middles().unwrap_or_default());
            let empty = |cell: usize| anchor.is_some_and(|a| cell != a && middles.get(cell).is_some_and(|m| *m == middles[a]));
            fn kept<T: Clone>(list: &[T], empty: &dyn Fn(usize) -> bool) -> Vec<T> {
                list.iter().enumerate().filter(|(i, _)| !empty(*i)).map(|(_, x)| x.clone()).collect()
            }
            Column {
                name: known.name.clone(),
                spread: curve.total_spread(),
                ordered: known.kind.ordered(),
                cells: kept(&cell_names(&known.kind), &empty),
                shares: kept(&curve.shares, &empty),
                scores: curve.scores.iter().map(|s| kept(s, &empty)).collect(),
                noise: kept(&curve.noise, &empty),
            }
        };
        let mut columns: Vec<Column> = model.curves.iter().enumerate().map(column).collect();
        columns.sort_by(|a, b| b.spread.total_cmp(&a.spread));
        let pairs = model.pairs.iter().map(|p| pair(model, p)).collect();
        Some(Columns { classes, columns, pairs, trees: model.trees.len() })
    }
}

fn pair(model: &AdditiveModel, term: &PairTerm) -> Pair {
    let names = term.columns.map(|j| model.grid.columns[j].name.clone());
    let groups = [0, 1].map(|side| {
        let cells = cell_names(&model.grid.columns[term.columns[side]].kind);
        let middle = |group: usize| {
            let own: Vec<usize> = (0..cells.len()).filter(|c| usize::from(term.groups[side][*c]) == group).collect();
            own.get(own.len() / 2).map_or(String::new(), |c| cells[*c].clone())
        };
        (0..term.counts()[side]).map(middle).collect()
    });
    Pair { names, groups, scores: term.scores.first().cloned().unwrap_or_default() }
}

/// Pictures that are shown without being asked for.
const SHOWN: usize = 12;

/// The pictures.
pub(super) fn figures(c: &Columns) -> String {
    let mut out = paragraph(
        "Each picture has a column. The line is what a row in a cell adds to the score; 0 is the average row. The band around it is plus and minus one standard deviation of \
         the noise, at the most: gradients of later steps take a part of it back. Areas of grey bars are the shares of the rows in each cell, by counts that have noise too; cells with more rows are wider.",
    );
    if !c.classes.is_empty() {
        let names: Vec<String> = c.classes.iter().take(3).cloned().collect();
        out += &paragraph(&format!(
            "There is a line for each of {} classes; in the order of the colours: {}{}.",
            c.classes.len(),
            names.join(", "),
            if c.classes.len() > 3 { ", and the others thin" } else { "" }
        ));
    }
    let all = c.columns.iter().map(figure).chain(c.pairs.iter().map(heat));
    let (shown, more): (Vec<_>, Vec<_>) = all.enumerate().partition(|(i, _)| *i < SHOWN);
    let join = |list: Vec<(usize, String)>| list.into_iter().map(|f| f.1).collect::<String>();
    out += &join(shown);
    if !more.is_empty() {
        out += &super::html::folded(&format!("{} more pictures", more.len()), &join(more));
    }
    if c.trees > 0 {
        out += &paragraph(&format!("{} random trees add what curves and pairs leave over. They have no picture.", c.trees));
    }
    out
}

fn figure(column: &Column) -> String {
    let picture = if column.ordered { curve(column) } else { categories(column) };
    format!(
        "<figure>\n<h3>{} <span class=\"note\">spread {:.2}</span></h3>\n{picture}</figure>\n",
        escape(&column.name),
        column.spread
    )
}

const WIDTH: f64 = 640.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 632.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 150.0;
/// Height of the tallest grey bar.
const TALLEST: f64 = 46.0;
/// The last cell, for what is missing or unlisted, is shown if it has so many rows.
const ENOUGH: f64 = 0.005;

fn class(score: usize) -> &'static str {
    ["c1", "c2", "c3", "quiet"][score.min(3)]
}

/// A line over cells that have an order.
fn curve(column: &Column) -> String {
    let cells = column.shares.len();
    let shown = if column.shares[cells - 1] > ENOUGH { cells } else { cells - 1 };
    let noise = |i: usize| column.noise.get(i).copied().unwrap_or(0.0);
    let ends = |i: usize| column.scores.iter().map(move |s| (s[i] - noise(i), s[i] + noise(i)));
    let (low, high) = (0..shown).flat_map(ends).fold((0f64, 0f64), |(l, h), (a, b)| (l.min(a), h.max(b)));
    let y_axis = Axis::around("", low, high.max(low + 1e-6), Unit::Plain);
    // Cells with more rows are wider; a bar's area is the share of its rows.
    let wide = |share: &f64| share.max(0.0).sqrt() + 0.15 / shown as f64;
    let total: f64 = column.shares[..shown].iter().map(wide).sum();
    let mut edges = vec![LEFT];
    for share in &column.shares[..shown] {
        edges.push(edges[edges.len() - 1] + (RIGHT - LEFT) * wide(share) / total);
    }
    let x = |i: usize| edges[i];
    let y = |v: f64| BOTTOM - y_axis.place(v) * (BOTTOM - TOP);
    let mut svg = format!(
        "<svg class=\"curve\" viewBox=\"0 0 {WIDTH} 186\" role=\"img\" aria-label=\"curve of {}: from {} to {}\">\n<g class=\"grid\">",
        escape(&column.name),
        signed(low, 2),
        signed(high, 2)
    );
    for tick in y_axis.ticks(5) {
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/><text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
            y(tick),
            LEFT - 8.0,
            y(tick) + 4.5,
            y_axis.tick(tick)
        );
    }
    svg += "</g>\n<g class=\"band\">";
    let dense = |i: usize| column.shares[i] / (x(i + 1) - x(i)).max(1e-9);
    let most = (0..shown).map(dense).fold(1e-12, f64::max);
    for i in 0..shown {
        let (height, wide) = (TALLEST * dense(i) / most, x(i + 1) - x(i) - 0.6);
        if height > 0.3 && wide > 0.0 {
            let _ =
                write!(svg, "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{height:.1}\"/>", x(i), BOTTOM - height);
        }
    }
    svg += "</g>\n";
    for (k, scores) in column.scores.iter().enumerate() {
        let _ = write!(svg, "<g class=\"series {}\">", class(k));
        // What is missing stands apart.
        let ordered = cells - 1;
        let steps = |shift: f64| -> Vec<String> {
            let point = |i: usize, at: usize| format!("{:.1},{:.1}", x(at), y(scores[i] + shift * noise(i)));
            (0..ordered).flat_map(|i| [point(i, i), point(i, i + 1)]).collect()
        };
        if !column.noise.is_empty() && column.scores.len() == 1 {
            let (up, mut down) = (steps(1.0), steps(-1.0));
            down.reverse();
            let _ = write!(svg, "<polygon points=\"{} {}\"/>", up.join(" "), down.join(" "));
        }
        let _ = write!(svg, "<polyline points=\"{}\"/>", steps(0.0).join(" "));
        if shown == cells {
            let middle = 0.5 * (x(cells - 1) + x(cells));
            let _ = write!(svg, "<circle class=\"dot\" cx=\"{middle:.1}\" cy=\"{:.1}\" r=\"4\"/>", y(scores[cells - 1]));
        }
        svg += "</g>\n";
    }
    // Names of cells where there is room.
    let (mut free, end) = (LEFT - 30.0, if shown == cells { RIGHT - 90.0 } else { RIGHT + 10.0 });
    for i in 0..cells - 1 {
        let (at, half) = (0.5 * (x(i) + x(i + 1)), 5.0 * column.cells[i].chars().count() as f64);
        if at - half >= free && at + half <= end {
            let name = escape(&column.cells[i]);
            let _ = writeln!(svg, "<text class=\"tick-x\" x=\"{at:.1}\" y=\"172\" text-anchor=\"middle\">{name}</text>");
            free = at + half + 50.0;
        }
    }
    if shown == cells {
        let _ = writeln!(
            svg,
            "<text class=\"tick-x\" x=\"{RIGHT}\" y=\"172\" text-anchor=\"end\">{}</text>",
            escape(&column.cells[cells - 1])
        );
    }
    svg + "</svg>\n"
}

/// Categories that are listed.
const LISTED: usize = 16;

/// Bars of categories without an order, the highest first.
fn categories(column: &Column) -> String {
    let mut order: Vec<usize> =
        (0..column.shares.len()).filter(|i| i + 1 < column.shares.len() || column.shares[*i] > ENOUGH).collect();
    order.sort_by(|a, b| column.shares[*b].total_cmp(&column.shares[*a]));
    let more = order.len().saturating_sub(LISTED);
    order.truncate(LISTED);
    let first = |i: usize| column.scores[0][i];
    order.sort_by(|a, b| first(*b).total_cmp(&first(*a)));
    let rows: Vec<Vec<String>> = order
        .iter()
        .map(|i| {
            let mut row = vec![column.cells[*i].clone(), format!("{:.1} %", 100.0 * column.shares[*i])];
            row.extend(column.scores.iter().take(3).map(|s| signed(s[*i], 2)));
            row
        })
        .collect();
    if column.scores.len() > 1 {
        let heads = ["category", "#share", "#first class", "#second", "#third"];
        return super::html::table(&heads[..2 + column.scores.len().min(3)], &rows, None);
    }
    let noise = |i: usize| column.noise.get(i).copied().unwrap_or(0.0);
    let (low, high) = order.iter().fold((0f64, 0f64), |(l, h), i| (l.min(first(*i) - noise(*i)), h.max(first(*i) + noise(*i))));
    let axis = Axis::around("", low, high.max(low + 1e-6), Unit::Plain);
    let (from, to, row) = (250.0, 548.0, 24.0);
    let x = |v: f64| from + axis.place(v) * (to - from);
    let height = row * order.len() as f64 + 6.0;
    let mut svg = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"scores of the categories of {}\">\n",
        escape(&column.name)
    );
    for (n, i) in order.iter().enumerate() {
        let (top, v) = (row * n as f64, first(*i));
        let name: String = column.cells[*i].chars().take(26).collect();
        let (base, middle) = (top + 0.68 * row, top + 0.5 * row);
        let colour = if v < 0.0 { "c2" } else { "c1" };
        let _ = writeln!(
            svg,
            "<g class=\"bar {colour}\"><title>{}: {}, {:.1} % of the rows</title><text x=\"238\" y=\"{base}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/><line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" \
             y2=\"{middle:.1}\"/><text x=\"636\" y=\"{base}\" text-anchor=\"end\">{}</text></g>",
            escape(&column.cells[*i]),
            signed(v, 3),
            100.0 * column.shares[*i],
            escape(&name),
            x(v.min(0.0)),
            top + 5.0,
            (x(v) - x(0.0)).abs().max(0.5),
            row - 10.0,
            x(v - noise(*i)),
            x(v + noise(*i)),
            signed(v, 2),
        );
    }
    let _ = writeln!(svg, "<line class=\"zero\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{height}\"/>\n</svg>", x(0.0));
    if more > 0 {
        svg += &format!("<figcaption>{more} rarer categories are not shown.</figcaption>\n");
    }
    svg
}

/// A pair as a map: one colour for scores above 0, another one below, the stronger the further.
fn heat(pair: &Pair) -> String {
    let [rows, columns] = pair.groups.each_ref().map(Vec::len);
    let (left, top, wide, high) = (120.0, 6.0, 500.0, 220.0);
    let most = pair.scores.iter().fold(1e-12, |m: f64, x| m.max(x.abs()));
    let mut svg = format!(
        "<figure>\n<h3>{0} and {1} <span class=\"note\">from {2} to {3}</span></h3>\n<svg class=\"heat\" viewBox=\"0 0 {WIDTH} 268\" role=\"img\" \
         aria-label=\"what {0} and {1} add together\">\n",
        escape(&pair.names[0]),
        escape(&pair.names[1]),
        signed(pair.scores.iter().copied().fold(0.0, f64::min), 2),
        signed(pair.scores.iter().copied().fold(0.0, f64::max), 2)
    );
    let (w, h) = (wide / columns.max(1) as f64, high / rows.max(1) as f64);
    for (i, v) in pair.scores.iter().enumerate() {
        let (row, column) = (i / columns.max(1), i % columns.max(1));
        let _ = write!(
            svg,
            "<rect class=\"{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.2}\" fill-opacity=\"{:.2}\"/>",
            if *v < 0.0 { "c2" } else { "c1" },
            left + w * column as f64,
            // The first group lies at the bottom.
            top + high - h * (row + 1) as f64,
            w + 0.2,
            h + 0.2,
            v.abs() / most
        );
    }
    svg.push('\n');
    let few = |count: usize| -> Vec<usize> {
        let labels = 4.min(count);
        (0..labels).map(|k| if labels > 1 { k * (count - 1) / (labels - 1) } else { 0 }).collect()
    };
    for i in few(rows) {
        let at = top + high - h * (i as f64 + 0.5) + 4.5;
        let name: String = pair.groups[0][i].chars().take(13).collect();
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{at:.1}\" text-anchor=\"end\">{}</text>", left - 8.0, escape(&name));
    }
    for i in few(columns) {
        let at = left + w * (i as f64 + 0.5);
        let name: String = pair.groups[1][i].chars().take(13).collect();
        let _ = writeln!(
            svg,
            "<text class=\"tick-x\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            top + high + 18.0,
            escape(&name)
        );
    }
    svg + &format!(
        "</svg>\n<figcaption>Up: {}. To the right: {}. Blue adds to the score, orange takes away.</figcaption>\n</figure>\n",
        escape(&pair.names[0]),
        escape(&pair.names[1])
    )
}
