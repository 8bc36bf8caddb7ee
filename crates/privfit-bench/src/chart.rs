//! Line charts with standard errors, written as SVG and PNG.
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};
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

const WIDTH: u32 = 900;
const HEIGHT: u32 = 560;
/// Plotters works in whole pixels and smooths little, so everything is drawn this many times larger and scaled down.
const ZOOM: u32 = 3;
const TEXT: f64 = 16.0;
const FONT: &[u8] = include_bytes!("../assets/dejavu-sans-ascii.ttf");
/// Numbers beyond this are treated as infinite, so that no sum or difference can overflow.
const LIMIT: f64 = 1e100;
const DARK: RGBColor = RGBColor(50, 50, 50);
const GRID: RGBColor = RGBColor(225, 225, 225);
/// Okabe-Ito without yellow, which is hard to see on white, and with wine and brown.
const COLOURS: [u32; 9] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0x000000, 0x56B4E9, 0xE69F00, 0x882255, 0x8B4513];
/// Corners and turn in degrees of the markers; numbers 5 and 6 are hollow, 7 and 8 are stars.
const CORNERS: [u32; 9] = [12, 4, 3, 4, 3, 12, 4, 4, 5];
const TURNS: [f64; 9] = [0.0, 45.0, -90.0, 0.0, 90.0, 0.0, 45.0, 45.0, -90.0];

type Point = (f64, f64);
type Done = Result<(), String>;

/// Writes `stem`.svg and `stem`.png; parent directories must exist.
pub(crate) fn write(chart: &Chart, stem: &Path) -> Result<(), String> {
    register_font("sans-serif", FontStyle::Normal, FONT).map_err(|_| "the embedded font is invalid")?;
    // `with_extension` would cut a stem such as `eps0.5`.
    let (svg_path, png_path) = (stem.with_added_extension("svg"), stem.with_added_extension("png"));
    let large = (WIDTH * ZOOM, HEIGHT * ZOOM);

    let mut svg = String::new();
    draw(chart, &Canvas { area: SVGBackend::with_string(&mut svg, large).into_drawing_area(), sink: 0.0 })?;
    let size = |(w, h): (u32, u32)| format!("width=\"{w}\" height=\"{h}\"");
    let svg = svg.replacen(&size(large), &size((WIDTH, HEIGHT)), 1); // the view box stays large
    std::fs::write(&svg_path, svg).map_err(|e| format!("{}: {e}", svg_path.display()))?;

    let mut pixels = vec![0; (large.0 * large.1 * 3) as usize];
    draw(chart, &Canvas { area: BitMapBackend::with_buffer(&mut pixels, large).into_drawing_area(), sink: 0.14 })?;
    let mean = |i: u32| {
        let (y, x, channel) = (i / 3 / WIDTH * ZOOM, i / 3 % WIDTH * ZOOM, i % 3);
        let block = (0..ZOOM * ZOOM).map(|k| ((y + k / ZOOM) * large.0 + x + k % ZOOM) * 3 + channel);
        (block.map(|at| u32::from(pixels[at as usize])).sum::<u32>() / (ZOOM * ZOOM)) as u8
    };
    let small = (0..WIDTH * HEIGHT * 3).map(mean).collect();
    let image = BitMapElement::with_owned_buffer((0, 0), (WIDTH, HEIGHT), small).ok_or("the picture has the wrong size")?;
    let area = BitMapBackend::new(&png_path, (WIDTH, HEIGHT)).into_drawing_area();
    area.draw(&image).and_then(|()| area.present()).map_err(|e| format!("{}: {e}", png_path.display()))
}

/// A drawing area with coordinates in final pixels. Centred text is moved down by `sink` of its
/// size, because the bitmap backend places it too high.
struct Canvas<DB: DrawingBackend> {
    area: DrawingArea<DB, Shift>,
    sink: f64,
}

fn zoom((x, y): Point) -> (i32, i32) {
    ((x * f64::from(ZOOM)).round() as i32, (y * f64::from(ZOOM)).round() as i32)
}

impl<DB: DrawingBackend> Canvas<DB> {
    /// A line through points; `dash` has the lengths of dashes and gaps.
    fn line(&self, points: &[Point], colour: RGBColor, width: f64, dash: Option<Point>) -> Done {
        let style = colour.stroke_width((width * f64::from(ZOOM)).round() as u32);
        let points: Vec<_> = points.iter().map(|p| zoom(*p)).collect();
        match dash.map(zoom) {
            Some((on, off)) => self.area.draw(&DashedPathElement::new(points, on, off, style)),
            None => self.area.draw(&PathElement::new(points, style)),
        }
        .map_err(|e| e.to_string())
    }

    fn marker(&self, index: usize, (x, y): Point, colour: RGBColor) -> Done {
        let kind = (index + index / 9) % 9; // shifted, so that the tenth series differs from the first
        let (hollow, star) = (kind == 5 || kind == 6, kind > 6);
        let half = std::f64::consts::PI / f64::from(CORNERS[kind]);
        let radius = if CORNERS[kind] == 3 || star { 6.0 } else { 5.0 };
        let corner = |i: u32| {
            let r = radius * [1.0, if star { 0.35 } else { half.cos() }][i as usize % 2];
            let (sin, cos) = (TURNS[kind].to_radians() + half * f64::from(i)).sin_cos();
            (x + r * cos, y + r * sin)
        };
        let outline: Vec<_> = (0..=2 * CORNERS[kind]).map(corner).collect();
        let corners: Vec<_> = outline.iter().map(|p| zoom(*p)).collect();
        let fill = if hollow { WHITE } else { colour };
        self.area.draw(&Polygon::new(corners, fill.filled())).map_err(|e| e.to_string())?;
        if hollow { self.line(&outline, colour, 1.7, None) } else { Ok(()) }
    }

    /// Text beside or around a point, smaller if it would be wider than `room`.
    fn text(&self, text: &str, (x, y): Point, size: f64, room: f64, side: HPos, upright: bool) -> Done {
        let size = size * (room / self.text_width(text, size).max(1.0)).min(1.0);
        let turn = if upright { FontTransform::Rotate270 } else { FontTransform::None };
        let at = if upright { (x + self.sink * size, y) } else { (x, y + self.sink * size) };
        let font = ("sans-serif", size * f64::from(ZOOM)).into_font().transform(turn);
        let style = TextStyle::from(font).color(&DARK).pos(Pos::new(side, VPos::Center));
        let text = text.replace(char::is_control, " "); // not allowed in XML
        self.area.draw_text(&text, &style, zoom(at)).map_err(|e| e.to_string())
    }

    /// Zero if there is no font, as drawing the text then fails anyway.
    fn text_width(&self, text: &str, size: f64) -> f64 {
        let style = TextStyle::from(("sans-serif", size * f64::from(ZOOM)).into_font());
        self.area.estimate_text_size(text, &style).map_or(0.0, |(width, _)| f64::from(width) / f64::from(ZOOM))
    }

    /// Splits text into lines of at most `room` pixels, at spaces where there are any.
    fn wrap(&self, text: &str, room: f64) -> Vec<String> {
        let mut lines = vec![];
        let mut line = String::new();
        for letter in text.chars() {
            line.push(letter);
            if self.text_width(&line, TEXT) > room {
                let rest = line.split_off(line.rfind(' ').map_or(line.len() - letter.len_utf8(), |space| space + 1));
                lines.push(std::mem::replace(&mut line, rest));
            }
        }
        lines.push(line);
        lines
    }
}

/// Lowest and highest value with some space around, never empty.
fn range(values: impl Iterator<Item = f64> + Clone) -> Point {
    let (low, high) = (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max));
    let (span, size) = (high - low, low.abs().max(high.abs()));
    let tiny = (size * 1e-9).max(1.0 / LIMIT); // equal but for rounding
    let space = 0.05 * [span, size].into_iter().find(|s| *s > tiny).unwrap_or(20.0);
    if low > high { (0.0, 1.0) } else { (low - space, high + space) }
}

/// Round numbers within a range, with labels; whole numbers only if `whole`.
fn round_ticks((low, high): Point, whole: bool) -> Vec<(f64, String)> {
    let raw = (high - low) / 7.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|s| s * power).into_iter().find(|s| *s >= raw).unwrap_or(10.0 * power);
    let step = if whole { step.max(1.0) } else { step };
    let digits = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    let label = |v: f64| if digits > 8 || v.abs() >= 1e9 { format!("{v:.3e}") } else { format!("{v:.digits$}") };
    let steps = (low / step).ceil() as i64..=(high / step).floor() as i64;
    steps.map(|i| (i as f64 * step, label(i as f64 * step))).collect()
}

/// Ticks at the points' x values (given in order), or at decades if these are too many.
fn log_ticks((low, high): Point, xs: &[f64]) -> Vec<(f64, String)> {
    let decades: Vec<f64> = (low.ceil() as i32..=high.floor() as i32).map(|d| 10f64.powi(d)).collect();
    let points = !xs.is_empty() && (xs.len() <= 12 || decades.len() < 2);
    (if points { xs } else { &decades }).iter().map(|x| (*x, short(*x))).collect()
}

/// A positive number as it is if that is short, else with two digits or as a whole number.
fn short(value: f64) -> String {
    let plain = value.to_string();
    if !(1e-4..1e6).contains(&value) {
        format!("{value:.1e}").replace(".0e", "e")
    } else if value.fract() == 0.0 || plain.replace('.', "").trim_start_matches('0').len() <= 3 {
        plain
    } else {
        format!("{value:.*}", (1.0 - value.log10().floor()).max(0.0) as usize)
    }
}

fn draw<DB: DrawingBackend>(chart: &Chart, canvas: &Canvas<DB>) -> Done {
    canvas.area.fill(&WHITE).map_err(|e| e.to_string())?;
    let fine = |v: f64| v.abs() <= LIMIT; // false for NaN
    let kept = |p: &&(f64, f64, f64)| fine(p.0) && fine(p.1) && (p.0 > 0.0 || !chart.log_x);
    // A single run has no standard error (NaN), but its mean is worth showing.
    let error = |e: f64| if fine(e) && e > 0.0 { e } else { 0.0 };
    let clean = |series: &Series| {
        let mut points: Vec<_> = series.points.iter().filter(kept).map(|p| (p.0, p.1, error(p.2))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let lines: Vec<_> = chart.series.iter().map(clean).collect();
    let levels: Vec<_> = chart.levels.iter().filter(|level| fine(level.1)).collect();
    let mut xs: Vec<f64> = lines.iter().flatten().map(|p| p.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let scale = |x: f64| if chart.log_x { x.log10() } else { x };
    let x_range = range(xs.iter().map(|x| scale(*x)));
    let y_range = range(lines.iter().flatten().flat_map(|p| [p.1 - p.2, p.1 + p.2]).chain(levels.iter().map(|l| l.1)));
    let whole = !xs.is_empty() && xs.iter().all(|x| x.fract() == 0.0);
    let x_ticks = if chart.log_x { log_ticks(x_range, &xs) } else { round_ticks(x_range, whole) };
    let y_ticks = round_ticks(y_range, false);

    // The legend and the numbers of the y axis decide how much width is left for the plot.
    let note = |i: usize| if lines[i].is_empty() { " (no data)" } else { "" };
    let names = chart.series.iter().enumerate().map(|(i, series)| format!("{}{}", series.name, note(i)));
    let names = names.chain(levels.iter().map(|level| level.0.clone()));
    let legend: Vec<_> = names.map(|name| canvas.wrap(&name, 250.0)).collect();
    let legend_width = legend.iter().flatten().map(|line| 52.0 + canvas.text_width(line, TEXT)).fold(0.0, f64::max);
    let tick_width = y_ticks.iter().map(|tick| canvas.text_width(&tick.1, TEXT)).fold(0.0, f64::max);
    let (width, height) = (f64::from(WIDTH), f64::from(HEIGHT));
    let (left, right, top, bottom) = (46.0 + tick_width, width - 24.0 - legend_width, 50.0, height - 66.0);
    let at_x = |x: f64| left + (scale(x) - x_range.0) / (x_range.1 - x_range.0) * (right - left);
    let at_y = |y: f64| bottom - (y - y_range.0) / (y_range.1 - y_range.0) * (bottom - top);
    let middle = ((left + right) / 2.0, (top + bottom) / 2.0);

    for (y, label) in &y_ticks {
        canvas.line(&[(left, at_y(*y)), (right, at_y(*y))], GRID, 1.0, None)?;
        canvas.text(label, (left - 8.0, at_y(*y)), TEXT, width, HPos::Right, false)?;
    }
    let mut free = 0.0; // where the last label ended: a label that would touch it is left out
    for (x, label) in x_ticks.iter().map(|(x, label)| (at_x(*x), label)) {
        let half = canvas.text_width(label, TEXT) / 2.0;
        if x - half >= free {
            canvas.line(&[(x, top), (x, bottom)], GRID, 1.0, None)?;
            canvas.text(label, (x, bottom + 16.0), TEXT, width, HPos::Center, false)?;
            free = x + half + 8.0;
        }
    }
    canvas.line(&[(left, top), (left, bottom), (right, bottom)], DARK, 1.3, None)?;
    canvas.text(&chart.title, (width / 2.0, 24.0), 20.0, width - 30.0, HPos::Center, false)?;
    canvas.text(&chart.x, (middle.0, height - 22.0), TEXT, right - left, HPos::Center, false)?;
    canvas.text(&chart.y, (18.0, middle.1), TEXT, bottom - top, HPos::Center, true)?;
    if xs.is_empty() {
        canvas.text("no data", middle, TEXT, width, HPos::Center, false)?;
    }

    let rows: f64 = legend.iter().map(|lines| lines.len() as f64 + 0.3).sum();
    let row = ((bottom - top) / rows).min(20.0); // smaller if there are many names
    let (sample_x, mut y) = (right + 16.0, top + 0.5 * row);
    let mut samples = vec![];
    for name in &legend {
        samples.push([(sample_x, y), (sample_x + 36.0, y)]);
        for line in name {
            canvas.text(line, (sample_x + 44.0, y), TEXT * row / 20.0, width, HPos::Left, false)?;
            y += row;
        }
        y += 0.3 * row;
    }
    for (i, level) in levels.iter().enumerate() {
        for line in [[(left, at_y(level.1)), (right, at_y(level.1))], samples[lines.len() + i]] {
            canvas.line(&line, DARK, 1.7, Some((2.0, 3.0 + 3.0 * (i % 4) as f64)))?;
        }
    }
    for (i, points) in lines.iter().enumerate() {
        let [_, r, g, b] = COLOURS[i % 9].to_be_bytes();
        let (colour, dash) = (RGBColor(r, g, b), chart.series[i].dashed.then_some((7.0, 4.0)));
        for (x, mean, error) in points.iter().filter(|p| p.2 > 0.0) {
            let (x, low, high) = (at_x(*x), at_y(mean - error), at_y(mean + error));
            for bar in [[(x, low), (x, high)], [(x - 3.0, low), (x + 3.0, low)], [(x - 3.0, high), (x + 3.0, high)]] {
                canvas.line(&bar, colour, 1.0, None)?;
            }
        }
        let path: Vec<Point> = points.iter().map(|p| (at_x(p.0), at_y(p.1))).collect();
        canvas.line(&path, colour, 2.0, dash)?;
        canvas.line(&samples[i], colour, 2.0, dash)?;
        for at in path.into_iter().chain([(sample_x + 18.0, samples[i][0].1)]) {
            canvas.marker(i, at, colour)?;
        }
    }
    canvas.area.present().map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SVG of a chart with the given lines, after checks that hold for every chart.
    fn svg(name: &str, log_x: bool, lines: &[&[(f64, f64, f64)]]) -> String {
        let dir = std::env::temp_dir().join(format!("chart-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let series = |points: &&[(f64, f64, f64)]| Series { name: "a <b> & c\n".into(), dashed: true, points: points.to_vec() };
        let levels = vec![("level".into(), f64::NAN)];
        let text = || "title ".repeat(30);
        let chart = Chart { title: text(), x: text(), y: text(), log_x, levels, series: lines.iter().map(series).collect() };
        let read = || ["eps0.5.svg", "eps0.5.png"].map(|file| std::fs::read(dir.join(file)).unwrap());
        write(&chart, &dir.join("eps0.5")).unwrap();
        let [svg, png] = read();
        write(&chart, &dir.join("eps0.5")).unwrap();
        assert!(read() == [svg.clone(), png.clone()], "not deterministic");
        assert_eq!(png[16..24], [[0, 0, 3, 132], [0, 0, 2, 48]].concat()); // 900 x 560
        std::fs::remove_dir_all(&dir).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.starts_with("<svg width=\"900\" height=\"560\"") && svg.contains("font-family=\"sans-serif\""));
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<b>"));
        svg
    }

    #[test]
    fn odd_points_are_drawn_or_left_out() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let good = (1.0, 80.0, 1.0);
        for log_x in [false, true] {
            let one = svg("one", log_x, &[&[good]]);
            let bad = [(nan, 1.0, 1.0), (1.0, nan, 1.0), (inf, 1.0, 0.0), (1.0, -inf, 0.0), (1.0, f64::MAX, 0.0)];
            assert_eq!(svg("bad", log_x, &[&[&bad[..], &[good]].concat()]), one);
            assert!(svg("none", log_x, &[]).contains("no data"));
            assert!(svg("empty", log_x, &[&[], &bad]).contains("(no data)"));
            svg("equal", log_x, &[&[(1.0, 50.0, 0.0), (2.0, 50.0, nan), (3.0, 50.0, inf), (3.0, 50.0, -1.0)]]);
            svg("zero", log_x, &[&[(0.0, 0.0, 0.0), (5e-324, 5e-324, 0.0)]]);
            svg("huge", log_x, &[&[(1e-99, -1e99, 1e99), (1e99, 1e99, 1e99)]]);
            svg("many", log_x, &vec![&[good, (2.0, 1.0, 0.5)][..]; 60]);
        }
        assert_eq!(svg("left", true, &[&[(0.0, 1.0, 0.0), (-1.0, 1.0, 0.0), good]]), svg("only", true, &[&[good]]));
    }

    #[test]
    fn ticks_are_short() {
        let labels = [0.01, 10f64.powf(-1.5), 0.125, 10f64.powf(0.5), 9.9999, 1024.0, 1e6].map(short);
        assert_eq!(labels, ["0.01", "0.032", "0.125", "3.2", "10.0", "1024", "1e6"]);
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let chart = Chart { title: "".into(), x: "".into(), y: "".into(), log_x: false, levels: vec![], series: vec![] };
        assert!(write(&chart, Path::new("/nonexistent/chart")).is_err());
    }
}
