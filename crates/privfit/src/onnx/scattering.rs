//! Scattering features in operations: what `data/scattering` does with Fourier transforms is done here by convolutions with fixed weights.
//!
//! Pictures are [pictures, 1, rows, columns] here, a channel of a record each, so that a convolution sees every channel and every direction by itself. All numbers are floats, as they are in the
//! encoder itself; what differs are roundings.

use super::graph::Graph;
use super::proto::Element;
use crate::data::scattering::{Convolutions, Windows};

/// Features of pixels between 0 and 1, in the order of the encoder.
pub(super) fn features(graph: &mut Graph, all: &Convolutions, pixels: &str) -> String {
    let ([height, width, channels], [h, w]) = (all.picture, all.lines);
    let pixels = graph.cast(pixels, Element::Float);
    let mut pixels = graph.reshape(&pixels, &[height, width, channels]);
    if let Some(colours) = all.colours {
        let turned: Vec<f32> = (0..9).map(|i| colours[i % 3][i / 3]).collect();
        let turned = graph.floats(&[3, 3], &turned);
        pixels = graph.apply("MatMul", &[&pixels, &turned]);
    }
    let planes = graph.transpose(&pixels, &[0, 3, 1, 2]);
    let rows = graph.lines(&planes, &all.rows, 2);
    let mut pictures = graph.lines(&rows, &all.columns, 3);
    let mut sides = 1;
    if all.mirrored {
        let turned: Vec<usize> = all.columns.iter().map(|x| width - 1 - x).collect();
        let turned = graph.lines(&rows, &turned, 3);
        (pictures, sides) = (graph.beside(&[&pictures, &turned]), 2);
    }
    let pictures = graph.shaped(&pictures, &[-1, 1, h as i64, w as i64]);
    let own = through(graph, &all.averages[0], &pictures);
    let finest = modulus(graph, all, 0, &pictures);
    let edges = through(graph, &all.averages[0], &finest);
    // What is normalised together: the averaged picture, and the eight directions of a size; after those of the first size come eight such groups.
    let mut groups = vec![(own, 1, 1), (edges, 1, all.directions)];
    if all.wavelets.len() > 1 {
        for (pictures, count) in [(&pictures, 1), (&finest, all.directions)] {
            let coarse = modulus(graph, all, 1, pictures);
            groups.push((through(graph, &all.averages[1], &coarse), count, all.directions));
        }
    }
    let (place, mut numbers, mut paths) = (all.places[0] * all.places[1], 0, Vec::new());
    for (group, count, size) in &groups {
        let normal = normalised(graph, group, *count, size * place);
        // Of every channel of a record.
        paths.push(graph.shaped(&normal, &[-1, (count * size) as i64, place as i64]));
        numbers += count * size;
    }
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let paths = graph.beside(&paths);
    let paths = graph.shaped(&paths, &[-1, sides, (channels * numbers) as i64, place as i64]);
    // Of the picture and, if it is there, of its mirror image.
    let paths = graph.sum_along(&paths, 1);
    let turned = graph.transpose(&paths, &[0, 2, 1]);
    let flat = graph.reshape(&turned, &[place * channels * numbers]);
    graph.cast(&flat, Element::Double)
}

/// Windows through pictures that are continued at their ends.
fn through(graph: &mut Graph, windows: &Windows, pictures: &str) -> String {
    let rows = graph.lines(pictures, &windows.rows, 2);
    let continued = graph.lines(&rows, &windows.columns, 3);
    let sides = [windows.height, windows.width];
    let weights = graph.floats(&[windows.weights.len() / (sides[0] * sides[1]), 1, sides[0], sides[1]], &windows.weights);
    graph.convolution(&continued, &weights, sides, windows.step)
}

/// The modulus of wavelets of a size, each direction a picture of its own.
fn modulus(graph: &mut Graph, all: &Convolutions, size: usize, pictures: &str) -> String {
    let parts = through(graph, &all.wavelets[size], pictures);
    let squares = graph.apply("Mul", &[&parts, &parts]);
    let [h, w] = all.lines.map(|n| (n >> size) as i64);
    let both = graph.shaped(&squares, &[-1, 2, all.directions as i64, h * w]);
    let sums = graph.sum_along(&both, 1);
    let roots = graph.apply("Sqrt", &[&sums]);
    graph.shaped(&roots, &[-1, 1, h, w])
}

/// Mean 0 and variance 1 of groups of so many numbers, of which a channel of a record has so many. The least variance of the operation, 1e-5, is that of the encoder.
fn normalised(graph: &mut Graph, from: &str, groups: usize, numbers: usize) -> String {
    let grouped = graph.shaped(from, &[-1, groups as i64, numbers as i64]);
    let (ones, zeros) = (graph.floats(&[groups], &vec![1.0; groups]), graph.floats(&[groups], &vec![0.0; groups]));
    graph.apply("InstanceNormalization", &[&grouped, &ones, &zeros])
}
