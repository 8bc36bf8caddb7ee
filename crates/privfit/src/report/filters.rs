//! Weights that meet the pixels of images, as pictures of them: one for each class of a linear model, or for each sum of the first layer of a network. They are released numbers.

use crate::artifact::Artifact;
use crate::model::Model;
use crate::network::{Layer, Shape, input_shape};
use crate::plot::{escape, short};
use crate::schema::{Features, Task};
use serde::Serialize;
use std::fmt::Write;

/// Pixels that a page draws, of all pictures together.
const MOST_PIXELS: usize = 12_000;
/// Pictures that a page draws.
const MOST_PICTURES: usize = 64;
/// Levels of a colour.
const LEVELS: usize = 10;

/// Pictures of weights.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Filters {
    /// What they are, in words.
    pub what: String,
    /// Height and width of each, in pixels.
    pub size: [usize; 2],
    /// Name of each: a class, or a number from 1.
    pub names: Vec<String>,
    /// Their pixels, row by row: means over the channels.
    pub pictures: Vec<Vec<f64>>,
    /// How many more there are.
    pub more: usize,
}

impl Filters {
    /// The pictures of a model of images; none of other models.
    pub(super) fn of(artifact: &Artifact) -> Option<Filters> {
        let schema = &artifact.schema;
        if !matches!(schema.features, Features::Image { .. }) {
            return None;
        }
        let classes = |count: usize| match schema.task() {
            Task::Classes(k) if k == count => schema.class_names(),
            Task::Classes(_) => schema.class_names().into_iter().skip(1).take(count).collect(),
            Task::Number | Task::Location => vec![schema.target.column.clone().unwrap_or("number".into())],
        };
        match &artifact.model {
            Model::Linear(m) if m.map.is_none() => {
                let image = input_shape(schema, 0);
                let weights = |pixel: usize, own: usize| m.weights[own].get(pixel).copied().unwrap_or(0.0);
                Filters::new("The weights of each score", image, classes(m.weights.len()), m.weights.len(), &weights)
            }
            Model::Network(m) => {
                let layers = m.placed().ok()?;
                let first = layers.iter().find(|l| l.layer != Layer::Flatten)?;
                let (inputs, outputs) = first.sums()?;
                let own = &m.weights[first.weights.clone()];
                let [height, width, channels] = m.input;
                let last = layers.last().is_some_and(|l| l == first);
                let (what, shape) = match first.layer {
                    Layer::Convolution { kernel, .. } => (
                        "The windows of the first layer",
                        Shape { height: kernel, width: kernel, channels: first.input.channels },
                    ),
                    _ if last => ("The weights of each score", Shape { height, width, channels }),
                    _ => ("The weights of the first layer", Shape { height, width, channels }),
                };
                let names = if last { classes(outputs) } else { (1..=outputs).map(|i| i.to_string()).collect() };
                (inputs == shape.size()).then_some(())?;
                Filters::new(what, shape, names, outputs, &|pixel, filter| own[pixel * outputs + filter])
            }
            Model::Linear(_) | Model::Point(_) | Model::Additive(_) => None,
        }
    }

    /// Of weights by place and picture; none of pictures that have one pixel, or that are too large.
    fn new(
        what: &str,
        shape: Shape,
        mut names: Vec<String>,
        count: usize,
        weight: &dyn Fn(usize, usize) -> f64,
    ) -> Option<Filters> {
        let pixels = shape.height * shape.width;
        let shown = count.min(MOST_PICTURES).min(MOST_PIXELS / pixels.max(1));
        if pixels < 2 || shown == 0 || names.len() != count {
            return None;
        }
        names.truncate(shown);
        let pixel = |p: usize, own: usize| {
            (0..shape.channels).map(|c| weight(p * shape.channels + c, own)).sum::<f64>() / shape.channels as f64
        };
        let pictures = (0..shown).map(|own| (0..pixels).map(|p| pixel(p, own)).collect()).collect();
        let what = if shape.channels > 1 { format!("{what}, the mean of {} channels", shape.channels) } else { what.into() };
        Some(Filters { what, size: [shape.height, shape.width], names, pictures, more: count - shown })
    }

    /// The figure.
    pub(super) fn figure(&self) -> String {
        const WIDTH: f64 = 640.0;
        let [height, width] = self.size;
        let named = self.names.iter().any(|n| n.parse::<usize>().is_err()) || height.max(width) > 12;
        let across = if height.max(width) > 12 || self.names.len() <= 10 { 5 } else { 8 }.min(self.names.len().max(1));
        let (gap, label) = (14.0, if named || self.names.len() <= 10 { 22.0 } else { 0.0 });
        // Pictures are as large as a fifth of the page would make them, at the most.
        let side = ((WIDTH + gap) / across.max(5) as f64 - gap).min(120.0);
        let pixel = side / height.max(width) as f64;
        let (tall, wide) = (height as f64 * pixel + label + gap, WIDTH / across.max(5) as f64);
        let rows = self.names.len().div_ceil(across);
        let largest = self.pictures.iter().flatten().fold(0f64, |m, w| m.max(w.abs()));
        let mut svg = format!(
            "<svg class=\"filters\" viewBox=\"0 0 {WIDTH} {:.1}\" role=\"img\" aria-labelledby=\"filters-t\" \
             aria-describedby=\"filters-d\">\n<desc id=\"filters-d\">{} pictures of {height} x {width} weights; the largest weight has \
             the size {}.</desc>\n",
            rows as f64 * tall,
            self.names.len(),
            short(largest)
        );
        for (i, (name, picture)) in self.names.iter().zip(&self.pictures).enumerate() {
            let (x, y) = ((i % across) as f64 * wide, (i / across) as f64 * tall);
            let _ = write!(svg, "<g transform=\"translate({x:.1} {y:.1})\"><title>{}</title>", escape(name));
            let _ =
                write!(svg, "<g transform=\"scale({pixel:.3})\"><path class=\"edge\" d=\"M0,0h{width}v{height}h-{width}z\"/>");
            svg.push_str(&pixels(picture, width, largest));
            svg.push_str("</g>");
            if label > 0.0 {
                let _ = write!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    width as f64 * pixel / 2.0,
                    height as f64 * pixel + 16.0,
                    escape(&shortened(name))
                );
            }
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>");
        let more = if self.more == 0 { String::new() } else { format!(" {} more are not shown.", self.more) };
        format!(
            "<figure>\n<h3 id=\"filters-t\">{}</h3>\n<p class=\"legend\"><span><svg class=\"key\" viewBox=\"0 0 30 12\" \
             aria-hidden=\"true\"><g class=\"heat c1\"><rect width=\"30\" height=\"12\"/></g></svg>adds</span> <span><svg class=\"key\" \
             viewBox=\"0 0 30 12\" aria-hidden=\"true\"><g class=\"heat c2\"><rect width=\"30\" height=\"12\"/></g></svg>takes \
             away</span></p>\n{svg}\n<figcaption>A pixel is as strong as its weight is large; the strongest has the size {}. Weights \
             are released numbers, so that this picture costs nothing.{more}</figcaption>\n</figure>\n",
            escape(&self.what),
            short(largest)
        )
    }
}

/// Pixels of one picture: a path for each level of each colour, with pixels side by side in one piece.
fn pixels(picture: &[f64], width: usize, largest: f64) -> String {
    let level = |w: f64| {
        let size = (w.abs() / largest * LEVELS as f64).round() as i32;
        if w < 0.0 { -size } else { size }
    };
    let mut paths: std::collections::BTreeMap<i32, String> = std::collections::BTreeMap::new();
    for (y, row) in picture.chunks(width).enumerate() {
        let mut x = 0;
        while x < row.len() {
            let own = level(row[x]);
            let run = row[x..].iter().take_while(|w| level(**w) == own).count();
            if own != 0 {
                let _ = write!(paths.entry(own).or_default(), "M{x},{y}h{run}v1h-{run}z");
            }
            x += run;
        }
    }
    let mut out = String::new();
    for (level, path) in paths {
        let class = if level > 0 { "c1" } else { "c2" };
        let strength = f64::from(level.abs()) / LEVELS as f64;
        let _ = write!(out, "<path class=\"{class}\" fill-opacity=\"{}\" d=\"{path}\"/>", short(strength));
    }
    out
}

/// A name that fits below a picture.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 14 { name.into() } else { name.chars().take(13).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_of_one_level_are_one_path() {
        let text = pixels(&[1.0, 1.0, 0.0, -0.5, 0.01, 1.0], 3, 1.0);
        assert_eq!(
            text,
            "<path class=\"c2\" fill-opacity=\"0.5\" d=\"M0,1h1v1h-1z\"/>\
             <path class=\"c1\" fill-opacity=\"1\" d=\"M0,0h2v1h-2zM2,1h1v1h-1z\"/>"
        );
        // Nothing but zeros is nothing, whatever they are divided by.
        assert_eq!(pixels(&[0.0; 4], 2, 0.0), "");
    }

    #[test]
    fn pictures_are_few_and_names_are_harmless() {
        let shape = Shape { height: 28, width: 28, channels: 3 };
        let names: Vec<String> = (0..100).map(|i| format!("<b>{i}")).collect();
        let filters = Filters::new("Weights", shape, names, 100, &|place, own| (place * own) as f64).unwrap();
        assert_eq!((filters.pictures.len(), filters.more), (15, 85));
        // The mean of places 3, 4 and 5.
        assert_eq!(filters.pictures[2][1], 8.0);
        let figure = filters.figure();
        assert!(!figure.contains("<b>") && figure.contains("85 more") && figure.len() < 400_000, "{}", figure.len());
        assert_eq!(Filters::new("Weights", Shape::flat(4), vec!["a".into()], 1, &|_, _| 1.0), None);
    }
}
