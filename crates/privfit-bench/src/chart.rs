//! Line charts with standard errors, as SVG files.

use privfit::plot::{Axis, Plot, Series as Line, Unit};
use std::path::Path;

/// One line of a chart.
pub(crate) struct Series {
    /// Name in the legend.
    pub(crate) name: String,
    /// Whether the line is dashed.
    pub(crate) dashed: bool,
    /// x, mean, standard error
    pub(crate) points: Vec<(f64, f64, f64)>,
}

/// A line chart with standard errors as thin bars.
pub(crate) struct Chart {
    /// Text above the plot.
    pub(crate) title: String,
    /// Name of the x axis.
    pub(crate) x: String,
    /// Name of the y axis.
    pub(crate) y: String,
    /// Whether the x axis is logarithmic; points with x <= 0 are then left out.
    pub(crate) log_x: bool,
    /// Horizontal dotted lines, e.g. the accuracy without privacy.
    pub(crate) levels: Vec<(String, f64)>,
    /// The lines; up to nine have colours of their own.
    pub(crate) series: Vec<Series>,
}

/// Width and height of a chart as a file of its own.
const PANEL: (usize, usize) = (900, 420);
/// Numbers beyond this are treated as infinite, so that no sum or difference can overflow.
const LIMIT: f64 = 1e100;
const CLASSES: [[&str; 2]; 9] = [
    ["c1", "c1 dashed"],
    ["c2", "c2 dashed"],
    ["c3", "c3 dashed"],
    ["c4", "c4 dashed"],
    ["c5", "c5 dashed"],
    ["c6", "c6 dashed"],
    ["c7", "c7 dashed"],
    ["c8", "c8 dashed"],
    ["c9", "c9 dashed"],
];

/// Writes `stem`.svg; parent directories must exist.
pub(crate) fn write(chart: &Chart, stem: &Path) -> Result<(), String> {
    // `with_extension` would cut a stem such as `eps0.5`.
    let path = stem.with_added_extension("svg");
    std::fs::write(&path, plot(chart).standalone()).map_err(|e| format!("{}: {e}", path.display()))
}

/// Writes several charts as one picture, two beside each other.
pub(crate) fn write_panels(charts: &[Chart], stem: &Path) -> Result<(), String> {
    let (width, height) = PANEL;
    let columns = charts.len().clamp(1, 2);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\">\n",
        width * columns,
        height * charts.len().div_ceil(columns)
    );
    for (i, chart) in charts.iter().enumerate() {
        let place = format!("<svg x=\"{}\" y=\"{}\" ", i % columns * width, i / columns * height);
        svg += &plot(chart).standalone().replacen("<svg ", &place, 1);
    }
    let path = stem.with_added_extension("svg");
    std::fs::write(&path, svg + "</svg>\n").map_err(|e| format!("{}: {e}", path.display()))
}

fn fine(x: f64) -> bool {
    x.abs() <= LIMIT // false for NaN
}

fn plot(chart: &Chart) -> Plot {
    let series: Vec<Line> = chart.series.iter().enumerate().map(|(i, s)| line(s, i, chart.log_x)).collect();
    let levels: Vec<(String, f64)> = chart.levels.iter().filter(|level| fine(level.1)).cloned().collect();
    let xs: Vec<f64> = series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
    let ends = |s: &Line| -> Vec<f64> { s.points.iter().zip(&s.errors).flat_map(|(p, e)| [p.1 - e, p.1 + e]).collect() };
    let ys: Vec<f64> = series.iter().flat_map(ends).chain(levels.iter().map(|l| l.1)).collect();
    let x = if chart.log_x { Axis::logarithmic(&chart.x, &xs) } else { around(&chart.x, &xs) };
    Plot {
        id: "chart",
        title: chart.title.clone(),
        description: format!("{} against {}, with standard errors", chart.y, chart.x),
        x,
        y: around(&chart.y, &ys),
        series,
        levels,
        marks: Vec::new(),
    }
}

/// The points that can be drawn, in order.
fn line(series: &Series, number: usize, log_x: bool) -> Line {
    let mut points: Vec<_> = series.points.iter().filter(|p| fine(p.0) && fine(p.1) && (p.0 > 0.0 || !log_x)).copied().collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    // A single run has no standard error (NaN), but its mean is worth showing.
    let error = |e: f64| if fine(e) && e > 0.0 { e } else { 0.0 };
    let text = |p: &(f64, f64, f64)| format!("{}: {:.4} at {} (standard error {:.4})", series.name, p.1, p.0, error(p.2));
    Line {
        class: CLASSES[number % 9][usize::from(series.dashed)],
        name: format!("{}{}", series.name, if points.is_empty() { " (no data)" } else { "" }),
        errors: points.iter().map(|p| error(p.2)).collect(),
        points: points.iter().map(|p| (p.0, p.1, text(p))).collect(),
        steps: false,
        // So many would be one thick line.
        dots: points.len() <= 40,
    }
}

fn around(label: &str, numbers: &[f64]) -> Axis {
    if numbers.is_empty() {
        return Axis::from_zero(label, 1.0, Unit::Plain);
    }
    let (low, high) = numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
    // A range that nearly begins at zero begins there; room below it would be of numbers that can't be.
    if low >= 0.0 && low < 0.2 * high {
        return Axis::from_zero(label, high, Unit::Plain);
    }
    Axis::around(label, low, high, Unit::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SVG of a chart with the given lines, after checks that hold for every chart.
    fn svg(log_x: bool, lines: &[&[(f64, f64, f64)]]) -> String {
        let series = |points: &&[(f64, f64, f64)]| Series { name: "a <b> & c\n".into(), dashed: true, points: points.to_vec() };
        let levels = vec![("level".into(), f64::NAN)];
        let text = || "title ".repeat(30);
        let chart = Chart { title: text(), x: text(), y: text(), log_x, levels, series: lines.iter().map(series).collect() };
        let svg = plot(&chart).standalone();
        assert_eq!(svg, plot(&chart).standalone());
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<b>"), "{svg}");
        svg
    }

    #[test]
    fn odd_points_are_drawn_or_left_out() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let good = (1.0, 80.0, 1.0);
        for log_x in [false, true] {
            let one = svg(log_x, &[&[good]]);
            let bad = [(nan, 1.0, 1.0), (1.0, nan, 1.0), (inf, 1.0, 0.0), (1.0, -inf, 0.0), (1.0, f64::MAX, 0.0)];
            assert_eq!(svg(log_x, &[&[&bad[..], &[good]].concat()]), one);
            svg(log_x, &[]);
            assert!(svg(log_x, &[&[], &bad]).contains("(no data)"));
            svg(log_x, &[&[(1.0, 50.0, 0.0), (2.0, 50.0, nan), (3.0, 50.0, inf), (3.0, 50.0, -1.0)]]);
            svg(log_x, &[&[(0.0, 0.0, 0.0), (5e-324, 5e-324, 0.0)]]);
            svg(log_x, &[&[(1e-99, -1e99, 1e99), (1e99, 1e99, 1e99)]]);
            svg(log_x, &vec![&[good, (2.0, 1.0, 0.5)][..]; 60]);
        }
        assert_eq!(svg(true, &[&[(0.0, 1.0, 0.0), (-1.0, 1.0, 0.0), good]]), svg(true, &[&[good]]));
    }

    /// Panels stand in two columns, each a picture of its own, and an axis of small numbers and large ones begins at zero.
    #[test]
    fn panels_are_side_by_side() {
        let points = vec![(30.0, 1.0, 0.0), (400.0, 5.0, 0.0)];
        let one = || Chart {
            title: "t".into(),
            x: "steps".into(),
            y: "y".into(),
            log_x: false,
            levels: vec![],
            series: vec![Series { name: "line".into(), dashed: false, points: points.clone() }],
        };
        let stem = std::env::temp_dir().join(format!("privfit-panels-{}", std::process::id()));
        write_panels(&[one(), one(), one()], &stem).unwrap();
        let path = stem.with_added_extension("svg");
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let places = ["<svg x=\"0\" y=\"0\"", "<svg x=\"900\" y=\"0\"", "<svg x=\"0\" y=\"420\""];
        assert!(svg.contains("viewBox=\"0 0 1800 840\"") && places.iter().all(|place| svg.contains(place)), "{svg}");
        assert!(!svg.contains(">-100<") && !svg.contains(">-200<"));
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let chart = Chart { title: "".into(), x: "".into(), y: "".into(), log_x: false, levels: vec![], series: vec![] };
        assert!(write(&chart, Path::new("/nonexistent/chart")).is_err());
    }
}
