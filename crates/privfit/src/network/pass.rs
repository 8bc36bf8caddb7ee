//! The way through a network and back, for a few examples at once.
//!
//! Activations and deltas of an example lie together and are computed from its own alone. Deltas have no borders; those of an example begin at multiples of the group.

use super::product::{Addressed, LANES, Start, padded, product};
use super::program::{Area, Kind, MOST_AT_ONCE, Norm, Program, Step, Weights};

/// What the scores of an example are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Softmax cross-entropy of classes.
    Classes,
    /// Half of the squared error of a number.
    Number,
}

/// Longest input of a dense layer: the gradient of an example with a longer one is not used, because its deltas may be too small for single precision (`blocks.rs`).
pub(super) const LONGEST_INPUT: f64 = 1e15;

/// Least variance of a group.
const LEAST_VARIANCE: f32 = 1e-5;

/// Two areas of the working memory of which the first lies before the second.
fn two(scratch: &mut [f32], from: usize, from_len: usize, to: usize, to_len: usize) -> (&mut [f32], &mut [f32]) {
    let (left, right) = scratch.split_at_mut(to);
    (&mut left[from..from + from_len], &mut right[..to_len])
}

/// Activations of all layers, for so many examples whose numbers lie in the input area.
#[inline(always)]
pub(crate) fn forward(program: &Program, weights: &[f32], scratch: &mut [f32], count: usize) {
    for Step { kind, from, to } in &program.steps {
        match kind {
            Kind::Sums(w) => sums(w, *from, *to, weights, scratch, count),
            Kind::Tanh => tanh(&mut scratch[to.at..to.at + count * to.size()]),
            Kind::Relu => scratch[to.at..to.at + count * to.size()].iter_mut().for_each(|x| *x = select(*x > 0.0, *x, 0.0 * *x)),
            Kind::MaxPool { kernel, stride } => {
                pool(*kernel, *stride, *from, *to, scratch, count, f32::NEG_INFINITY, larger, 1.0)
            }
            Kind::AveragePool { kernel, stride } => {
                pool(*kernel, *stride, *from, *to, scratch, count, 0.0, |a, b| a + b, 1.0 / (kernel * kernel) as f32)
            }
            Kind::GroupNorm(norm) => group_norm(norm, *from, *to, weights, scratch, count),
        }
    }
}

/// The larger one; a number that is none wins.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    select((b > a) | b.is_nan(), b, a)
}

/// One of two numbers, without a branch: otherwise only those that change would be stored, which is slower than storing all.
#[inline(always)]
fn select(first: bool, a: f32, b: f32) -> f32 {
    let mask = u32::from(first).wrapping_neg();
    f32::from_bits(a.to_bits() & mask | b.to_bits() & !mask)
}

#[inline(always)]
fn sums(w: &Weights, from: Area, to: Area, weights: &[f32], scratch: &mut [f32], count: usize) {
    let matrix = &weights[w.prepared..];
    let bias = &matrix[w.steps.len() * w.wide..][..w.wide];
    let (input, output) = two(scratch, from.at, count * from.size(), to.at, count * to.size());
    // A row of outputs is the area of an example, unless that has a border.
    if w.dense && to.size() == w.wide {
        let rows: [u32; MOST_AT_ONCE] = std::array::from_fn(|e| (e * from.size()) as u32);
        let a = Addressed { x: input, rows: &rows[..count], steps: &w.steps };
        return product(a, matrix, w.wide, Start::Bias(bias), output);
    }
    for (x, out) in input.chunks_exact(from.size()).zip(output.chunks_exact_mut(to.size())) {
        if to.border == 0 {
            product(Addressed { x, rows: &w.windows, steps: &w.steps }, matrix, w.wide, Start::Bias(bias), out);
            continue;
        }
        out.fill(0.0);
        for (y, rows) in w.windows.chunks_exact(to.shape.width).enumerate() {
            let out = &mut out[to.pixel(y, 0)..][..to.shape.width * w.wide];
            product(Addressed { x, rows, steps: &w.steps }, matrix, w.wide, Start::Bias(bias), out);
        }
    }
}

/// tanh as a ratio of polynomials, within 1e-6.
#[inline(always)]
fn tanh(numbers: &mut [f32]) {
    for x in numbers {
        // NaN stays NaN.
        let t = if *x > 7.9 {
            7.9
        } else if *x < -7.9 {
            -7.9
        } else {
            *x
        };
        let s = t * t;
        let p = -2.760_768_5e-16f32;
        let p = p * s + 2.000_188e-13;
        let p = p * s - 8.604_672e-11;
        let p = p * s + 5.122_297_1e-8;
        let p = p * s + 1.485_722_4e-5;
        let p = p * s + 6.372_619_3e-4;
        let p = p * s + 4.893_524_6e-3;
        let q = 1.198_258_4e-6f32;
        let q = q * s + 1.185_347_1e-4;
        let q = q * s + 2.268_434_6e-3;
        let q = q * s + 4.893_525e-3;
        *x = t * p / q;
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn pool(
    kernel: usize,
    stride: usize,
    from: Area,
    to: Area,
    scratch: &mut [f32],
    count: usize,
    first: f32,
    join: impl Fn(f32, f32) -> f32,
    times: f32,
) {
    let (input, output) = two(scratch, from.at, count * from.size(), to.at, count * to.size());
    for (x, out) in input.chunks_exact(from.size()).zip(output.chunks_exact_mut(to.size())) {
        if to.border > 0 {
            out.fill(0.0);
        }
        for py in 0..to.shape.height {
            for px in 0..to.shape.width {
                let (at, out) = (from.pixel(py * stride, px * stride), &mut out[to.pixel(py, px)..][..from.channels]);
                let (groups, rest) = out.as_chunks_mut::<LANES>();
                let grouped = groups.len() * LANES;
                for (g, out) in groups.iter_mut().enumerate() {
                    let mut own = [first; LANES];
                    for ky in 0..kernel {
                        for kx in 0..kernel {
                            let at = at + ky * from.row() + kx * from.channels + g * LANES;
                            let Some(x) = x[at..].first_chunk::<LANES>() else { continue };
                            for i in 0..LANES {
                                own[i] = join(own[i], x[i]);
                            }
                        }
                    }
                    for i in 0..LANES {
                        out[i] = own[i] * times;
                    }
                }
                for (c, out) in rest.iter_mut().enumerate() {
                    let mut own = first;
                    for ky in 0..kernel {
                        for kx in 0..kernel {
                            own = join(own, x[at + ky * from.row() + kx * from.channels + grouped + c]);
                        }
                    }
                    *out = own * times;
                }
            }
        }
    }
}

#[inline(always)]
fn group_norm(norm: &Norm, from: Area, to: Area, weights: &[f32], scratch: &mut [f32], count: usize) {
    let channels = from.channels;
    let (scales, offsets) = weights[norm.prepared..][..2 * channels].split_at(channels);
    for e in 0..count {
        let mut moments = vec![(0f64, 0f64); norm.groups];
        let numbers = (from.shape.height * from.shape.width * norm.real / norm.groups) as f64;
        let x = &scratch[from.at + e * from.size()..][..from.size()];
        each_pixel(from, |_, at| {
            for (x, own) in x[at..at + channels].iter().zip(&norm.own) {
                if let Some((group, _)) = own {
                    let sums = &mut moments[*group as usize];
                    (sums.0, sums.1) = (sums.0 + f64::from(*x), sums.1 + f64::from(*x) * f64::from(*x));
                }
            }
        });
        let kept = norm.moments + e * 2 * norm.groups;
        for (g, (sum, square)) in moments.into_iter().enumerate() {
            let mean = sum / numbers;
            let variance = (square / numbers - mean * mean).max(0.0) as f32;
            scratch[kept + 2 * g] = mean as f32;
            scratch[kept + 2 * g + 1] = 1.0 / (variance + LEAST_VARIANCE).sqrt();
        }
        let moments: Vec<f32> = scratch[kept..kept + 2 * norm.groups].to_vec();
        let (x, out) = two(scratch, from.at + e * from.size(), from.size(), to.at + e * to.size(), to.size());
        out.fill(0.0);
        each_pixel(from, |(py, px), at| {
            let out = &mut out[to.pixel(py, px)..][..channels];
            for (c, own) in norm.own.iter().enumerate() {
                if let Some((group, _)) = own {
                    let [mean, inverse] = [0, 1].map(|i| moments[2 * *group as usize + i]);
                    out[c] = (x[at + c] - mean) * inverse * scales[c] + offsets[c];
                }
            }
        });
    }
}

/// Calls with every pixel of an area, and where it begins.
#[inline(always)]
fn each_pixel(area: Area, mut f: impl FnMut((usize, usize), usize)) {
    for y in 0..area.shape.height {
        for x in 0..area.shape.width {
            f((y, x), area.pixel(y, x));
        }
    }
}

/// Sum of squares: in single precision over few, then in double.
#[inline(always)]
fn square(numbers: &[f32]) -> f64 {
    let mut sum = 0f64;
    for part in numbers.chunks(64 * LANES) {
        let mut lanes = [0f32; LANES];
        let (groups, rest) = part.as_chunks::<LANES>();
        for group in groups {
            for i in 0..LANES {
                lanes[i] += group[i] * group[i];
            }
        }
        sum += lanes.iter().map(|x| f64::from(*x)).sum::<f64>() + rest.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>();
    }
    sum
}

/// Derivatives of the loss by the scores of an example, into deltas; a label that is none of the classes gives NaN.
pub(super) fn derivative(goal: Goal, scores: &[f32], label: f32, out: &mut [f32]) {
    match goal {
        Goal::Number => out[0] = scores[0] - label,
        Goal::Classes => {
            let most = scores.iter().fold(f32::NEG_INFINITY, |m, s| larger(m, *s));
            let mut sum = 0f32;
            for (o, s) in out.iter_mut().zip(scores) {
                *o = (s - most).exp();
                sum += *o;
            }
            out.iter_mut().for_each(|o| *o /= sum);
            match out.get_mut(label as usize).filter(|_| label >= 0.0) {
                Some(own) => *own -= 1.0,
                None => out.fill(f32::NAN),
            }
        }
    }
}

/// After `forward`: deltas of all layers that are trained, what is kept of each example for a weighted sum, and the Euclidean norm of each gradient.
#[inline(always)]
pub(crate) fn backward(program: &Program, weights: &[f32], goal: Goal, labels: &[f32], scratch: &mut [f32], norms: &mut [f32]) {
    let count = labels.len();
    let mut squares = [0f64; MOST_AT_ONCE];
    let [mut own, mut other] = program.deltas;
    let (output, real) = (program.output, program.output.shape.channels);
    for (e, label) in labels.iter().enumerate() {
        let (scores, deltas) = two(scratch, output.at + e * output.size(), output.size(), own + e * output.size(), output.size());
        deltas.fill(0.0);
        derivative(goal, &scores[..real], *label, &mut deltas[..real]);
    }
    for (number, Step { kind, from, to }) in program.steps.iter().enumerate().rev() {
        let (size, before) = (padded(to.deltas()), padded(from.deltas()));
        match kind {
            Kind::Sums(w) => {
                gradients(w, *from, scratch, own, count, &mut squares);
                let Some(back) = w.back else { break };
                if w.dense {
                    let (read, write) = spread_out(scratch, own, count * size, other, count * before);
                    let rows: [u32; MOST_AT_ONCE] = std::array::from_fn(|e| (e * size) as u32);
                    let a = Addressed { x: read, rows: &rows[..count], steps: &w.counting };
                    product(a, &weights[back..], w.windowed(), Start::Zero, write);
                } else {
                    for e in 0..count {
                        let (read, windows) = two(scratch, own + e * size, size, program.windows, w.windows.len() * w.windowed());
                        let a = Addressed { x: read, rows: &w.deltas, steps: &w.counting };
                        product(a, &weights[back..], w.windowed(), Start::Zero, windows);
                        let (write, windows) =
                            two(scratch, other + e * before, before, program.windows, w.windows.len() * w.windowed());
                        scatter(w, *from, *to, windows, write);
                    }
                }
            }
            Kind::Tanh | Kind::Relu => {
                for e in 0..count {
                    let tanh = matches!(kind, Kind::Tanh);
                    let (y, deltas) = two(scratch, to.at + e * to.size(), to.size(), own + e * size, size);
                    let row = to.shape.width * to.channels;
                    for (py, deltas) in deltas[..to.deltas()].chunks_exact_mut(row).enumerate() {
                        let y = &y[to.pixel(py, 0)..][..row];
                        match tanh {
                            true => deltas.iter_mut().zip(y).for_each(|(d, y)| *d *= 1.0 - y * y),
                            false => deltas.iter_mut().zip(y).for_each(|(d, y)| *d = select(*y > 0.0, *d, 0.0 * *y)),
                        }
                    }
                }
                continue;
            }
            // Nothing that has weights lies before.
            _ if first_weights(program, number) && !matches!(kind, Kind::GroupNorm(_)) => break,
            Kind::MaxPool { kernel, stride } | Kind::AveragePool { kernel, stride } => {
                let largest = matches!(kind, Kind::MaxPool { .. });
                for e in 0..count {
                    pool_back(*kernel, *stride, largest, *from, *to, scratch, e, own + e * size, other + e * before);
                }
            }
            Kind::GroupNorm(norm) => {
                for e in 0..count {
                    squares[e] += group_norm_back(norm, *from, *to, weights, scratch, e, own + e * size, other + e * before);
                }
            }
        }
        (own, other) = (other, own);
    }
    norms.iter_mut().zip(squares).for_each(|(norm, square)| *norm = square.sqrt() as f32);
}

/// Whether no step before this one has weights.
fn first_weights(program: &Program, number: usize) -> bool {
    !program.steps[..number].iter().any(|s| matches!(s.kind, Kind::Sums(_) | Kind::GroupNorm(_)))
}

/// Two areas in any order: the first to read, the second to write.
fn spread_out(scratch: &mut [f32], read: usize, read_len: usize, write: usize, write_len: usize) -> (&[f32], &mut [f32]) {
    if read < write {
        let (left, right) = scratch.split_at_mut(write);
        return (&left[read..read + read_len], &mut right[..write_len]);
    }
    let (left, right) = scratch.split_at_mut(read);
    (&right[..read_len], &mut left[write..write + write_len])
}

/// What is kept of each example, and the square of its gradient.
#[inline(always)]
fn gradients(w: &Weights, from: Area, scratch: &mut [f32], deltas: usize, count: usize, squares: &mut [f64; MOST_AT_ONCE]) {
    let windows = w.windows.len();
    for e in 0..count {
        let at = deltas + e * windows * w.wide;
        if w.dense {
            scratch.copy_within(at..at + w.wide, w.gradients + e * w.wide);
            let input = &scratch[from.at + e * from.size()..][..from.size()];
            // Deltas may be so small that their squares are nothing in single precision, and inputs large.
            let deltas: f64 = scratch[at..at + w.wide].iter().map(|d| f64::from(*d) * f64::from(*d)).sum();
            let inputs = square(input);
            squares[e] += if inputs <= LONGEST_INPUT * LONGEST_INPUT { (1.0 + inputs) * deltas } else { f64::INFINITY };
            continue;
        }
        let (before, kept) = scratch.split_at_mut(w.gradients);
        let kept = &mut kept[e * w.gradient_size()..][..w.gradient_size()];
        let (own, bias) = kept.split_at_mut(w.steps.len() * w.wide);
        let x = &before[from.at + e * from.size()..][..from.size()];
        let deltas = &before[at..at + windows * w.wide];
        product(Addressed { x, rows: &w.steps, steps: &w.windows }, deltas, w.wide, Start::Zero, own);
        bias.fill(0.0);
        for row in deltas.chunks_exact(w.wide) {
            bias.iter_mut().zip(row).for_each(|(b, d)| *b += d);
        }
        squares[e] += square(own) + square(bias);
    }
}

/// Adds gradients by windows to the pixels that windows share.
#[inline(always)]
fn scatter(w: &Weights, from: Area, to: Area, windows: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    let (border, channels, width) = (from.border as isize, from.channels, from.shape.width as isize);
    let mut windows = windows.chunks_exact(w.windowed());
    for py in 0..to.shape.height {
        for px in 0..to.shape.width {
            let Some(window) = windows.next() else { return };
            let left = (px * w.stride) as isize - border;
            let (first, last) = ((-left).max(0) as usize, (width - left).clamp(0, w.kernel as isize) as usize);
            for ky in 0..w.kernel {
                let y = (py * w.stride + ky) as isize - border;
                if y < 0 || y >= from.shape.height as isize || first >= last {
                    continue;
                }
                let at = (y as usize * from.shape.width + (left + first as isize) as usize) * channels;
                let run = (last - first) * channels;
                let window = &window[(ky * w.kernel + first) * channels..][..run];
                out[at..at + run].iter_mut().zip(window).for_each(|(o, x)| *o += x);
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn pool_back(
    kernel: usize,
    stride: usize,
    largest: bool,
    from: Area,
    to: Area,
    scratch: &mut [f32],
    example: usize,
    own: usize,
    other: usize,
) {
    let (x_at, channels) = (from.at + example * from.size(), from.channels);
    let first = own.min(other);
    let (areas, deltas) = scratch.split_at_mut(first);
    let (read, write) = spread_out(deltas, own - first, to.deltas(), other - first, padded(from.deltas()));
    let x = &areas[x_at..x_at + from.size()];
    write.fill(0.0);
    let share = 1.0 / (kernel * kernel) as f32;
    for py in 0..to.shape.height {
        for px in 0..to.shape.width {
            let read = &read[(py * to.shape.width + px) * channels..][..channels];
            for first in (0..channels).step_by(LANES) {
                let here = first..(first + LANES).min(channels);
                // The first of the largest has all that comes back.
                let (mut rest, mut largest_one) = ([0f32; LANES], [f32::NEG_INFINITY; LANES]);
                rest[..here.len()].copy_from_slice(&read[here.clone()]);
                // Found again: what came out may have changed in place since.
                for (ky, kx) in (0..kernel).flat_map(|ky| (0..kernel).map(move |kx| (ky, kx))).filter(|_| largest) {
                    let x = &x[from.pixel(py * stride + ky, px * stride + kx)..][here.clone()];
                    match x.first_chunk::<LANES>() {
                        Some(x) => (0..LANES).for_each(|i| largest_one[i] = larger(largest_one[i], x[i])),
                        None => x.iter().enumerate().for_each(|(i, x)| largest_one[i] = larger(largest_one[i], *x)),
                    }
                }
                for ky in 0..kernel {
                    for kx in 0..kernel {
                        let (qy, qx) = (py * stride + ky, px * stride + kx);
                        let out = &mut write[(qy * from.shape.width + qx) * channels..][here.clone()];
                        if !largest {
                            out.iter_mut().zip(&rest).for_each(|(o, r)| *o += r * share);
                            continue;
                        }
                        let x = &x[from.pixel(qy, qx)..][here.clone()];
                        match (out.first_chunk_mut::<LANES>(), x.first_chunk::<LANES>()) {
                            (Some(out), Some(x)) => route(out, x, &largest_one, &mut rest),
                            _ => route(out, x, &largest_one[..here.len()], &mut rest[..here.len()]),
                        }
                    }
                }
            }
        }
    }
}

/// What comes back goes to those that are the largest one, and nothing is left for others.
#[inline(always)]
fn route(out: &mut [f32], x: &[f32], largest: &[f32], rest: &mut [f32]) {
    for i in 0..out.len() {
        let part = select(x[i] == largest[i], rest[i], 0.0);
        out[i] += part;
        rest[i] -= part;
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn group_norm_back(
    norm: &Norm,
    from: Area,
    to: Area,
    weights: &[f32],
    scratch: &mut [f32],
    example: usize,
    own: usize,
    other: usize,
) -> f64 {
    let channels = from.channels;
    let scales = &weights[norm.prepared..][..channels];
    let moments: Vec<f32> = scratch[norm.moments + example * 2 * norm.groups..][..2 * norm.groups].to_vec();
    let numbers = (from.shape.height * from.shape.width * norm.real / norm.groups) as f32;
    let mut gradient = vec![0f32; 2 * channels];
    // For each group the mean of what comes back, and of it times the normal number.
    let mut means = vec![(0f32, 0f32); norm.groups];
    let x_at = from.at + example * from.size();
    let pixel = |py: usize, px: usize| own + (py * to.shape.width + px) * channels;
    each_pixel(from, |(py, px), at| {
        for (c, group) in norm.own.iter().enumerate().filter_map(|(c, own)| own.map(|own| (c, own.0 as usize))) {
            let normal = (scratch[x_at + at + c] - moments[2 * group]) * moments[2 * group + 1];
            let delta = scratch[pixel(py, px) + c];
            gradient[c] += delta * normal;
            gradient[channels + c] += delta;
            means[group].0 += delta * scales[c] / numbers;
            means[group].1 += delta * scales[c] * normal / numbers;
        }
    });
    for y in 0..from.shape.height {
        for x in 0..from.shape.width {
            for (c, own) in norm.own.iter().enumerate() {
                let to = other + (y * from.shape.width + x) * channels + c;
                let Some((group, _)) = own else {
                    scratch[to] = 0.0;
                    continue;
                };
                let group = *group as usize;
                let (mean, inverse) = (moments[2 * group], moments[2 * group + 1]);
                let normal = (scratch[x_at + from.pixel(y, x) + c] - mean) * inverse;
                let delta = scratch[pixel(y, x) + c] * scales[c];
                scratch[to] = inverse * (delta - means[group].0 - normal * means[group].1);
            }
        }
    }
    let kept = norm.gradients + example * 2 * channels;
    scratch[kept..kept + 2 * channels].copy_from_slice(&gradient);
    square(&gradient)
}

/// After `backward`: adds the weighted sum of the gradients of all examples, by the weights that are trained. An example of weight 0 adds nothing, whatever it holds.
#[inline(always)]
pub(crate) fn weighted(program: &Program, factors: &[f32], scratch: &mut [f32], out: &mut [f32]) {
    let count = factors.len();
    for Step { kind, from, .. } in &program.steps[program.first_trained..] {
        match kind {
            Kind::Sums(w) => {
                let first = w.at - program.frozen;
                let (before, sum) = scratch.split_at_mut(program.sum);
                let sum = &mut sum[..w.gradient_size()];
                if w.dense {
                    // Weighted deltas take the place of those that were kept; those of weight 0 become 0, and their inputs too, which may be anything.
                    for (e, factor) in factors.iter().enumerate() {
                        let deltas = &mut before[w.gradients + e * w.wide..][..w.wide];
                        deltas.iter_mut().for_each(|d| *d = if *factor > 0.0 { *d * factor } else { 0.0 });
                        if *factor <= 0.0 {
                            before[from.at + e * from.size()..][..from.size()].fill(0.0);
                        }
                    }
                    let steps: [u32; MOST_AT_ONCE] = std::array::from_fn(|e| (e * from.size()) as u32);
                    let x = &before[from.at..from.at + count * from.size()];
                    let deltas = &before[w.gradients..w.gradients + count * w.wide];
                    let (own, bias) = sum.split_at_mut(w.steps.len() * w.wide);
                    product(Addressed { x, rows: &w.steps, steps: &steps[..count] }, deltas, w.wide, Start::Zero, own);
                    bias.fill(0.0);
                    for row in deltas.chunks_exact(w.wide) {
                        bias.iter_mut().zip(row).for_each(|(b, d)| *b += d);
                    }
                } else {
                    add_weighted(&before[w.gradients..], w.gradient_size(), factors, sum);
                }
                for (k, row) in w.own.iter().enumerate() {
                    let Some(row) = row else { continue };
                    let to = &mut out[first + *row as usize * w.outputs..][..w.outputs];
                    to.iter_mut().zip(&sum[k * w.wide..]).for_each(|(o, s)| *o += s);
                }
                let to = &mut out[first + w.inputs * w.outputs..][..w.outputs];
                to.iter_mut().zip(&sum[w.steps.len() * w.wide..]).for_each(|(o, s)| *o += s);
            }
            Kind::GroupNorm(norm) => {
                let all = norm.own.len();
                let mut sum = vec![0f32; 2 * all];
                add_weighted(&scratch[norm.gradients..], 2 * all, factors, &mut sum);
                for (c, own) in norm.own.iter().enumerate().filter_map(|(c, own)| own.map(|own| (c, own.1 as usize))) {
                    out[norm.at + own] += sum[c];
                    out[norm.at + norm.real + own] += sum[all + c];
                }
            }
            _ => {}
        }
    }
}

/// Weighted sum of lists that follow each other.
#[inline(always)]
fn add_weighted(lists: &[f32], size: usize, factors: &[f32], sum: &mut [f32]) {
    sum.fill(0.0);
    for (list, factor) in lists.chunks_exact(size).zip(factors).filter(|(_, factor)| **factor > 0.0) {
        sum.iter_mut().zip(list).for_each(|(s, x)| *s += factor * x);
    }
}
