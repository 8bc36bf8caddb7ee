//! The weights of a model as bars, with the band of the noise where it is known.

use super::weights::Weights;
use crate::plot::escape;
use crate::plot::{Axis, Unit, short};
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const ROW: f64 = 26.0;
const TOP: f64 = 34.0;
/// Where names end, bars begin and end, values end.
const NAMES: f64 = 246.0;
const LEFT: f64 = 258.0;
const RIGHT: f64 = 548.0;
const VALUES: f64 = 636.0;
/// Longest names that are written in full, on a wide screen and on a phone; the rest is in a title.
const LONGEST: [usize; 2] = [30, 18];

fn cut(name: &str, longest: usize) -> String {
    match name.chars().count() > longest {
        true => name.chars().take(longest - 1).chain(['…']).collect(),
        false => name.into(),
    }
}

/// A number with its sign, and a minus that is as wide as a plus.
pub(super) fn signed(x: f64, digits: usize) -> String {
    format!("{x:+.digits$}").replace('-', "\u{2212}")
}

/// The picture.
pub(super) fn bars(weights: &Weights, point: bool) -> String {
    let band = weights.noise.deviation.unwrap_or(0.0);
    let values = || weights.largest.iter().map(|w| w.value);
    let low = values().fold(-band, f64::min);
    let high = values().fold(band, f64::max);
    let axis =
        Axis { label: String::new(), low, high: if high > low { high } else { low + 1.0 }, unit: Unit::Plain, given: Vec::new() };
    let at = |x: f64| LEFT + axis.place(x) * (RIGHT - LEFT);
    let rows = weights.largest.len();
    let height = TOP + ROW * rows as f64 + 8.0;
    let what = if point { "coordinates of the released point" } else { "weights" };
    let mut svg = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"weights-t\" \
         aria-describedby=\"weights-d\">\n<desc id=\"weights-d\">Bars of the {rows} largest {what}; the table below has the same \
         numbers.</desc>\n<text class=\"axis\" x=\"{NAMES}\" y=\"18\" text-anchor=\"end\">encoded feature</text><text \
         class=\"axis\" x=\"{VALUES}\" y=\"18\" text-anchor=\"end\">{}</text>\n",
        if point { "coordinate" } else { "weight" }
    );
    if band > 0.0 {
        let _ = writeln!(
            svg,
            "<rect class=\"band\" x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"><title>noise: plus and minus one standard \
             deviation, {}</title></rect>",
            at(-band),
            at(band) - at(-band),
            ROW * rows as f64,
            short(band)
        );
    }
    for (i, w) in weights.largest.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        let name = w.class.as_ref().map_or(w.feature.clone(), |c| format!("{c}: {}", w.feature));
        let (a, b) = (at(w.value.min(0.0)), at(w.value.max(0.0)));
        let m = y + 0.68 * ROW;
        let label = |class: &str, longest: usize| {
            format!("<text class=\"{class}\" x=\"{NAMES}\" y=\"{m}\" text-anchor=\"end\">{}</text>", escape(&cut(&name, longest)))
        };
        let _ = writeln!(
            svg,
            "<g class=\"bar {}\"><title>{}: {}</title><rect class=\"hit\" x=\"0\" y=\"{y}\" width=\"{WIDTH}\" \
             height=\"{ROW}\"/>{}{}<rect x=\"{a:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/><text x=\"{VALUES}\" \
             y=\"{m}\" text-anchor=\"end\">{}</text></g>",
            if w.value < 0.0 { "c2" } else { "c1" },
            escape(&name),
            signed(w.value, 6),
            label("roomy", LONGEST[0]),
            label("tight", LONGEST[1]),
            y + 5.0,
            (b - a).max(0.5),
            ROW - 10.0,
            signed(w.value, 3)
        );
    }
    let zero = at(0.0);
    let _ = writeln!(
        svg,
        "<line class=\"zero\" x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>\n</svg>",
        TOP + ROW * rows as f64
    );
    svg
}
