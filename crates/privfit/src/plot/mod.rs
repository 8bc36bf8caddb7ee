//! Line plots as SVG: axes, grid, a legend, a title for every point. Inside of a page colours come from the page's style, so that one
//! picture serves light, dark and paper; a file of its own brings its style with it.

mod escape;
mod scale;
mod standalone;

pub(crate) use escape::{escape, steers};
pub use scale::{Axis, Unit};
pub(crate) use scale::{delta, short};

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 34.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 64.0;

/// A line.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Class of its colour: `c1` to `c3`, `quiet`; up to `c9` in a file of its own.
    pub class: &'static str,
    /// Name in the legend.
    pub name: String,
    /// Points, with what is said about each.
    pub points: Vec<(f64, f64, String)>,
    /// Standard errors of the points; none if empty.
    pub errors: Vec<f64>,
    /// Whether values hold until the next point.
    pub steps: bool,
    /// Whether points are seen without pointing at them.
    pub dots: bool,
}

/// A plot.
pub struct Plot {
    /// Name on the page, part of ids.
    pub id: &'static str,
    /// What it shows, in a few words.
    pub title: String,
    /// What it says, for whoever can't see it.
    pub description: String,
    /// The axis below.
    pub x: Axis,
    /// The axis beside.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// Horizontal lines with a name.
    pub levels: Vec<(String, f64)>,
    /// Points that stand out: where, class, what is said.
    pub marks: Vec<(f64, f64, &'static str, String)>,
}

impl Plot {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - self.y.place(y) * (HEIGHT - TOP - BOTTOM))
    }

    /// The figure: legend, picture, and a place for what is read off.
    pub(crate) fn figure(&self, caption: &str) -> String {
        let mut svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" tabindex=\"0\" aria-labelledby=\"{id}-t\" \
             aria-describedby=\"{id}-d\">\n<desc id=\"{id}-d\">{}</desc>\n",
            escape(&self.description),
            id = self.id
        );
        self.picture(&mut svg);
        svg.push_str("</svg>");
        format!(
            "<figure>\n<h3 id=\"{}-t\">{}</h3>\n{}{svg}\n<p class=\"readout\" hidden aria-hidden=\"true\"></p>\n\
             <figcaption>{caption}</figcaption>\n</figure>\n",
            self.id,
            escape(&self.title),
            self.legend()
        )
    }

    /// Everything between the axes, and the axes.
    fn picture(&self, svg: &mut String) {
        self.frame(svg);
        for (name, level) in &self.levels {
            let (a, y) = self.at(self.x.low, *level);
            let _ = writeln!(
                svg,
                "<g class=\"level\"><line x1=\"{a:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"><title>{name}</title></line>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text></g>",
                WIDTH - RIGHT,
                WIDTH - RIGHT - 4.0,
                y - 7.0,
                name = escape(name)
            );
        }
        let (_, top) = self.at(self.x.low, self.y.high);
        let (_, bottom) = self.at(self.x.low, self.y.low);
        let _ = writeln!(svg, "<line class=\"cross\" x1=\"0\" x2=\"0\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>");
        self.series.iter().for_each(|s| self.line(s, svg));
        for (x, y, class, text) in &self.marks {
            let (x, y) = self.at(*x, *y);
            let _ = writeln!(
                svg,
                "<circle class=\"mark {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\"><title>{}</title></circle>",
                escape(text)
            );
        }
    }

    fn frame(&self, svg: &mut String) {
        svg.push_str("<g class=\"grid\">\n");
        let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in self.y.ticks(6) {
            let (_, y) = self.at(self.x.low, tick);
            let _ = writeln!(
                svg,
                "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" \
                 dominant-baseline=\"middle\">{}</text>",
                left - 8.0,
                y + 1.0,
                self.y.tick(tick)
            );
        }
        for tick in self.x.ticks(6) {
            let (x, _) = self.at(tick, self.y.low);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/><text class=\"tick-x\" x=\"{x:.1}\" y=\"{}\" \
                 text-anchor=\"middle\">{}</text>",
                bottom + 22.0,
                self.x.tick(tick)
            );
        }
        let _ = writeln!(
            svg,
            "</g>\n<text class=\"axis\" x=\"4\" y=\"20\">{}</text><text class=\"axis\" x=\"{right}\" y=\"{}\" \
             text-anchor=\"end\">{}</text>",
            escape(&self.y.label),
            HEIGHT - 12.0,
            escape(&self.x.label)
        );
    }

    fn line(&self, s: &Series, svg: &mut String) {
        let mut path = String::new();
        let mut before: Option<f64> = None;
        for (x, y, _) in &s.points {
            let (x, y) = self.at(*x, *y);
            if let (true, Some(level)) = (s.steps, before) {
                let _ = write!(path, "{x:.1},{level:.1} ");
            }
            let _ = write!(path, "{x:.1},{y:.1} ");
            before = Some(y);
        }
        let _ = write!(svg, "<g class=\"series {}\">", s.class);
        for ((x, y, _), error) in s.points.iter().zip(&s.errors).filter(|(_, e)| **e > 0.0) {
            let ((x, low), (_, high)) = (self.at(*x, y - error), self.at(*x, y + error));
            let (a, b) = (x - 3.0, x + 3.0);
            let _ = write!(
                svg,
                "<path class=\"error\" d=\"M{x:.1},{low:.1}V{high:.1}M{a:.1},{low:.1}H{b:.1}M{a:.1},{high:.1}H{b:.1}\"/>"
            );
        }
        let _ = writeln!(svg, "<polyline points=\"{}\"/>", path.trim_end());
        for (x, y, text) in &s.points {
            let (x, y) = self.at(*x, *y);
            let shown = if s.dots { " class=\"dot\"" } else { "" };
            let _ =
                writeln!(svg, "<circle{shown} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"><title>{}</title></circle>", escape(text));
        }
        svg.push_str("</g>\n");
    }

    /// Names beside samples of their lines. One line needs none.
    fn legend(&self) -> String {
        let mut out = String::from("<p class=\"legend\">");
        for s in &self.series {
            let _ = write!(
                out,
                "<span><svg class=\"key\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><g class=\"series {}\"><polyline \
                 points=\"0,6 30,6\"/></g></svg>{}</span> ",
                s.class,
                escape(&s.name)
            );
        }
        for (_, _, class, text) in self.marks.iter().take(1) {
            let _ = write!(
                out,
                "<span><svg class=\"key\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><circle class=\"mark {class}\" cx=\"15\" \
                 cy=\"6\" r=\"5\"/></svg>{}</span> ",
                escape(text.split(':').next().unwrap_or_default())
            );
        }
        if self.series.len() + self.marks.len() < 2 { String::new() } else { out.trim_end().to_string() + "</p>\n" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(name: &str, points: Vec<(f64, f64, String)>) -> String {
        let series =
            |class| Series { class, name: name.into(), points: points.clone(), steps: class == "c2", ..Series::default() };
        let plot = Plot {
            id: "p",
            title: name.into(),
            description: name.into(),
            x: Axis::from_zero(name, 3.0, Unit::Plain),
            y: Axis { label: name.into(), low: 1e-12, high: 1.0, unit: Unit::Power, given: Vec::new() },
            series: vec![series("c1"), series("c2")],
            levels: vec![(name.into(), 0.1)],
            marks: vec![(1.0, 0.1, "c1", name.into())],
        };
        plot.figure("caption")
    }

    #[test]
    fn texts_are_harmless_and_odd_numbers_stay_inside() {
        let odd = [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0];
        let points = odd.iter().map(|x| (*x, *x, "\"><img src=x onerror=alert(1)>".to_string())).collect();
        let text = plot("<script>alert(1)</script>", points);
        assert!(!text.contains("<script") && !text.contains("<img") && !text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.contains("role=\"img\"") && text.contains("aria-describedby=\"p-d\""));
        let points = text.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        for pair in points.split(' ') {
            let (x, y) = pair.split_once(',').unwrap();
            assert!((0.0..=WIDTH).contains(&x.parse().unwrap()) && (0.0..=HEIGHT).contains(&y.parse().unwrap()), "{pair}");
        }
    }
}
