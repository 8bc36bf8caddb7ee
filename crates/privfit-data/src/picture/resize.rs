//! A picture as the pixels of a shape: the largest centred crop of the shape's aspect ratio, and each pixel the mean of the area that it covers
//! there, with exact overlaps. Where the crop is smaller than the shape, each pixel is interpolated between the four nearest ones.
//!
//! Rows of the picture are visited one after the other, so that nothing but the result is held besides the picture.

use super::decode::Picture;

/// Where one pixel of the result gets its value along one side: the first pixel of the picture, and weights from there on.
struct Span {
    first: usize,
    weights: Vec<f64>,
}

/// Spans of all pixels along a side of the result. `from` pixels of the picture, of which `crop` in the middle count.
fn spans(from: usize, crop: f64, to: usize) -> Vec<Span> {
    let (start, step) = ((from as f64 - crop) / 2.0, crop / to as f64);
    let last = from - 1;
    let span = |i: usize| {
        if step < 1.0 {
            let middle = (start + (i as f64 + 0.5) * step - 0.5).max(0.0).min(last as f64);
            let first = (middle.floor() as usize).min(last.saturating_sub(1));
            let along = middle - first as f64;
            let weights = if last == 0 { vec![1.0] } else { vec![1.0 - along, along] };
            return Span { first, weights };
        }
        let (low, high) = (start + i as f64 * step, start + (i as f64 + 1.0) * step);
        let first = (low.floor().max(0.0) as usize).min(last);
        let end = (high.ceil() as usize).max(first + 1).min(from);
        let overlap = |x: usize| (high.min(x as f64 + 1.0) - low.max(x as f64)).max(0.0);
        let mut weights: Vec<f64> = (first..end).map(overlap).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
        Span { first, weights }
    };
    (0..to).map(span).collect()
}

/// The pixels of a shape (height, width, channels), from 0 to `max`.
pub(crate) fn resized(picture: &Picture, (height, width, channels): (usize, usize, usize), max: f64, out: &mut Vec<f64>) {
    out.clear();
    out.resize(height * width * channels, 0.0);
    if (picture.height, picture.width) == (height, width) {
        for (y, row) in out.chunks_exact_mut(width * channels).enumerate() {
            picture.row(y, channels, max, row);
        }
        return;
    }
    // Pixels of the picture to one of the shape, where the crop touches two borders.
    let step = (picture.height as f64 / height as f64).min(picture.width as f64 / width as f64);
    let down = spans(picture.height, (step * height as f64).min(picture.height as f64), height);
    let across = spans(picture.width, (step * width as f64).min(picture.width as f64), width);
    let mut source = vec![0.0; picture.width * channels];
    let mut narrow = vec![0.0; width * channels];
    let end = down.iter().map(|s| s.first + s.weights.len()).max().unwrap_or(0);
    let mut begin = 0;
    for y in down[0].first..end {
        // Spans are in order: those that ended above are not looked at again.
        while down[begin].first + down[begin].weights.len() <= y {
            begin += 1;
        }
        picture.row(y, channels, max, &mut source);
        for (span, pixel) in across.iter().zip(narrow.chunks_exact_mut(channels)) {
            pixel.fill(0.0);
            for (weight, from) in span.weights.iter().zip(source[span.first * channels..].chunks_exact(channels)) {
                pixel.iter_mut().zip(from).for_each(|(p, x)| *p += weight * x);
            }
        }
        for (i, span) in down.iter().enumerate().skip(begin).take_while(|(_, s)| s.first <= y) {
            if let Some(weight) = span.weights.get(y - span.first) {
                let row = &mut out[i * width * channels..][..width * channels];
                row.iter_mut().zip(&narrow).for_each(|(o, x)| *o += weight * x);
            }
        }
    }
}
