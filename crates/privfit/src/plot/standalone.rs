//! A plot as a file of its own: title above, names of the lines beside, style inside.

use super::{HEIGHT, Plot, WIDTH, escape};
use std::fmt::Write;

/// Room for the names of the lines.
const BESIDE: f64 = 260.0;
/// Room for the title.
const ABOVE: f64 = 40.0;
/// Height of a name.
const ROW: f64 = 21.0;

/// Okabe and Ito's colours without yellow, which is hard to see on white, and with wine and brown.
const STYLE: &str = "\
svg { background: #fff; font: 14px system-ui, sans-serif; color: #333; }
text { fill: #333; } .title { font-size: 18px; font-weight: 600; }
.grid line { stroke: #e1e1e1; } .cross { display: none; }
.series polyline, .error, .level line { fill: none; stroke: currentColor; stroke-width: 2; }
.error { stroke-width: 1; } .dashed polyline { stroke-dasharray: 7 4; }
.series circle { fill: none; } .series circle.dot { fill: currentColor; }
.level line { stroke-dasharray: 2 4; } .level text { display: none; }
.c1 { color: #0072b2; } .c2 { color: #d55e00; } .c3 { color: #009e73; } .c4 { color: #cc79a7; } .c5 { color: #000; }
.c6 { color: #56b4e9; } .c7 { color: #e69f00; } .c8 { color: #882255; } .c9 { color: #8b4513; }
";

impl Plot {
    /// The file.
    pub fn standalone(&self) -> String {
        let (width, height) = (WIDTH + BESIDE, HEIGHT + ABOVE);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 {} {width} {height}\" \
             role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n<style>\n{STYLE}</style>\n\
             <text class=\"title\" x=\"{}\" y=\"-14\" text-anchor=\"middle\">{}</text>\n",
            -ABOVE,
            escape(&self.title),
            escape(&self.description),
            width / 2.0,
            escape(&self.title)
        );
        self.picture(&mut svg);
        self.names(&mut svg);
        svg + "</svg>\n"
    }

    /// Names of lines and levels, each after a sample; closer together where there are many.
    fn names(&self, svg: &mut String) {
        let samples = self.series.iter().map(|s| (format!("series {}", s.class), &s.name));
        let levels = self.levels.iter().map(|(name, _)| ("level".to_string(), name));
        let row = ROW.min((HEIGHT - 30.0) / (self.series.len() + self.levels.len()).max(1) as f64);
        for (i, (class, name)) in samples.chain(levels).enumerate() {
            let y = 40.0 + row * i as f64;
            let sample = match class.as_str() {
                "level" => format!("<line x1=\"{WIDTH}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\"/>", WIDTH + 36.0),
                _ => format!(
                    "<polyline points=\"{WIDTH},{y:.1} {},{y:.1}\"/><circle class=\"dot\" cx=\"{}\" cy=\"{y:.1}\" r=\"4.5\"/>",
                    WIDTH + 36.0,
                    WIDTH + 18.0
                ),
            };
            let _ = writeln!(
                svg,
                "<g class=\"{class}\">{sample}</g><text x=\"{}\" y=\"{y:.1}\" dominant-baseline=\"middle\" \
                 font-size=\"{:.1}\">{}</text>",
                WIDTH + 44.0,
                14.0 * row / ROW,
                escape(name)
            );
        }
    }
}
