//! A network in double precision, written without any of the code that it checks: arrays with indices, one example, derivatives by the chain rule at each layer.

use super::layer::{Layer, Shape};
use super::pass::Goal;

type Picture = Vec<Vec<Vec<f64>>>;

fn zeros(s: Shape) -> Picture {
    vec![vec![vec![0.0; s.channels]; s.width]; s.height]
}

/// Scores, and the gradient of the loss by all weights.
pub(super) fn gradient(
    input: Shape,
    layers: &[Layer],
    scores: usize,
    goal: Goal,
    weights: &[f64],
    x: &[f64],
    label: f64,
) -> (Vec<f64>, Vec<f64>) {
    let mut layers = layers.to_vec();
    layers.extend([Layer::Flatten, Layer::Dense(scores)]);
    let mut shapes = vec![input];
    let mut at = vec![];
    let mut used = 0;
    for (i, l) in layers.iter().enumerate() {
        shapes.push(l.shape(i + 1, shapes[i]).unwrap());
        at.push(used);
        used += match *l {
            Layer::Dense(n) => (shapes[i].channels + 1) * n,
            Layer::Convolution { filters, kernel, .. } => (kernel * kernel * shapes[i].channels + 1) * filters,
            Layer::GroupNorm(_) => 2 * shapes[i].channels,
            _ => 0,
        };
    }
    assert_eq!(used, weights.len());
    let mut values = vec![zeros(input)];
    for y in 0..input.height {
        for z in 0..input.width {
            for c in 0..input.channels {
                values[0][y][z][c] = x[(y * input.width + z) * input.channels + c];
            }
        }
    }
    let cell = |p: &Picture, y: isize, x: isize, c: usize| {
        let inside = y >= 0 && x >= 0 && (y as usize) < p.len() && (x as usize) < p[0].len();
        if inside { p[y as usize][x as usize][c] } else { 0.0 }
    };
    let moments = |p: &Picture, s: Shape, groups: usize, g: usize| {
        let own = s.channels / groups;
        let all: Vec<f64> = p.iter().flatten().flat_map(|v| v[g * own..(g + 1) * own].to_vec()).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        (mean, (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / all.len() as f64 + 1e-5).sqrt(), all.len() as f64)
    };
    for (i, l) in layers.iter().enumerate() {
        let (from, s, to) = (values[i].clone(), shapes[i], shapes[i + 1]);
        let mut out = zeros(to);
        for y in 0..to.height {
            for x in 0..to.width {
                for c in 0..to.channels {
                    out[y][x][c] = match *l {
                        Layer::Tanh => from[y][x][c].tanh(),
                        Layer::Relu => from[y][x][c].max(0.0),
                        Layer::Flatten => {
                            let (pixel, channel) = (c / s.channels, c % s.channels);
                            from[pixel / s.width][pixel % s.width][channel]
                        }
                        Layer::Dense(n) => {
                            (0..s.channels).map(|k| from[0][0][k] * weights[at[i] + k * n + c]).sum::<f64>()
                                + weights[at[i] + s.channels * n + c]
                        }
                        Layer::Convolution { filters, kernel, stride, padding } => {
                            let mut sum = weights[at[i] + kernel * kernel * s.channels * filters + c];
                            for ky in 0..kernel {
                                for kx in 0..kernel {
                                    for k in 0..s.channels {
                                        let w = weights[at[i] + ((ky * kernel + kx) * s.channels + k) * filters + c];
                                        sum += w * cell(
                                            &from,
                                            (y * stride + ky) as isize - padding as isize,
                                            (x * stride + kx) as isize - padding as isize,
                                            k,
                                        );
                                    }
                                }
                            }
                            sum
                        }
                        Layer::MaxPool { kernel, stride } => (0..kernel * kernel)
                            .map(|j| from[y * stride + j / kernel][x * stride + j % kernel][c])
                            .fold(f64::MIN, f64::max),
                        Layer::AveragePool { kernel, stride } => {
                            (0..kernel * kernel).map(|j| from[y * stride + j / kernel][x * stride + j % kernel][c]).sum::<f64>()
                                / (kernel * kernel) as f64
                        }
                        Layer::GroupNorm(groups) => {
                            let (mean, deviation, _) = moments(&from, s, groups, c / (s.channels / groups));
                            (from[y][x][c] - mean) / deviation * weights[at[i] + c] + weights[at[i] + s.channels + c]
                        }
                    };
                }
            }
        }
        values.push(out);
    }
    let found = values[layers.len()][0][0].clone();
    let mut delta = zeros(shapes[layers.len()]);
    match goal {
        Goal::Number => delta[0][0][0] = found[0] - label,
        Goal::Classes => {
            let most = found.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = found.iter().map(|s| (s - most).exp()).sum();
            for c in 0..scores {
                delta[0][0][c] = (found[c] - most).exp() / sum - f64::from(u8::from(c == label as usize));
            }
        }
    }
    let mut gradient = vec![0.0; weights.len()];
    for (i, l) in layers.iter().enumerate().rev() {
        let (from, result, s, to) = (&values[i], &values[i + 1], shapes[i], shapes[i + 1]);
        let mut back = zeros(s);
        for y in 0..to.height {
            for x in 0..to.width {
                for c in 0..to.channels {
                    let d = delta[y][x][c];
                    match *l {
                        Layer::Tanh => back[y][x][c] += d * (1.0 - result[y][x][c].powi(2)),
                        Layer::Relu => back[y][x][c] += if from[y][x][c] > 0.0 { d } else { 0.0 },
                        Layer::Flatten => back[c / s.channels / s.width][c / s.channels % s.width][c % s.channels] += d,
                        Layer::Dense(n) => {
                            for k in 0..s.channels {
                                gradient[at[i] + k * n + c] += d * from[0][0][k];
                                back[0][0][k] += d * weights[at[i] + k * n + c];
                            }
                            gradient[at[i] + s.channels * n + c] += d;
                        }
                        Layer::Convolution { filters, kernel, stride, padding } => {
                            gradient[at[i] + kernel * kernel * s.channels * filters + c] += d;
                            for ky in 0..kernel {
                                for kx in 0..kernel {
                                    let (py, px) = (
                                        (y * stride + ky) as isize - padding as isize,
                                        (x * stride + kx) as isize - padding as isize,
                                    );
                                    if py < 0 || px < 0 || py as usize >= s.height || px as usize >= s.width {
                                        continue;
                                    }
                                    for k in 0..s.channels {
                                        let w = at[i] + ((ky * kernel + kx) * s.channels + k) * filters + c;
                                        gradient[w] += d * from[py as usize][px as usize][k];
                                        back[py as usize][px as usize][k] += d * weights[w];
                                    }
                                }
                            }
                        }
                        Layer::MaxPool { kernel, stride } => {
                            let j = (0..kernel * kernel)
                                .find(|j| from[y * stride + j / kernel][x * stride + j % kernel][c] == result[y][x][c])
                                .unwrap();
                            back[y * stride + j / kernel][x * stride + j % kernel][c] += d;
                        }
                        Layer::AveragePool { kernel, stride } => {
                            for j in 0..kernel * kernel {
                                back[y * stride + j / kernel][x * stride + j % kernel][c] += d / (kernel * kernel) as f64;
                            }
                        }
                        Layer::GroupNorm(groups) => {
                            let own = s.channels / groups;
                            let (mean, deviation, count) = moments(from, s, groups, c / own);
                            let normal = (from[y][x][c] - mean) / deviation;
                            gradient[at[i] + c] += d * normal;
                            gradient[at[i] + s.channels + c] += d;
                            let d = d * weights[at[i] + c];
                            back[y][x][c] += d / deviation;
                            for py in 0..s.height {
                                for px in 0..s.width {
                                    for k in c / own * own..(c / own + 1) * own {
                                        let other = (from[py][px][k] - mean) / deviation;
                                        back[py][px][k] -= d / deviation * (1.0 + normal * other) / count;
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        delta = back;
    }
    (found, gradient)
}
