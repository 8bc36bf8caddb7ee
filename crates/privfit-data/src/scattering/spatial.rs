//! The same features as convolutions over pixels, for programs that have no Fourier transforms of pictures: exported models.
//!
//! A spectrum that is multiplied is a convolution on a circle. So lines are continued beyond their ends by what lies at the other end, and every wavelet is the transform of its spectrum. Wavelets
//! end where they are below a millionth of their height, or where they would meet themselves on the circle.

use super::filter::deviation;
use super::fourier::{LANES, Transform, ZERO};
use super::{OPPONENT, Scattering};

/// Deviations of a wavelet along its crests after which it ends: exp(-5.5^2 / 2) is below 3e-7.
const DEVIATIONS: f64 = 5.5;

/// Weighted sums of windows that go through a picture, and the lines of the picture that they cover.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// Rows of a window.
    pub height: usize,
    /// Columns of a window.
    pub width: usize,
    /// Pixels from one window to the next.
    pub step: usize,
    /// Weights, one window after the other.
    pub weights: Vec<f32>,
    /// For all rows that windows cover, from the first one on, the row of the picture that lies there.
    pub rows: Vec<usize>,
    /// The same for columns.
    pub columns: Vec<usize>,
}

/// The scattering of pictures of one size, in convolutions.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolutions {
    /// Height, width and channels of a picture.
    pub picture: [usize; 3],
    /// Rows and columns of what comes out.
    pub places: [usize; 2],
    /// Rows and columns of a picture with its margins.
    pub lines: [usize; 2],
    /// For each row with margins, the row of the picture that lies there.
    pub rows: Vec<usize>,
    /// The same for columns.
    pub columns: Vec<usize>,
    /// Whether the features of the mirror image are added.
    pub mirrored: bool,
    /// Weights of three colours in each of three channels; none for other pictures.
    pub colours: Option<[[f32; 3]; 3]>,
    /// Directions of wavelets.
    pub directions: usize,
    /// For each size, wavelets on the picture with its margins: real parts of all directions, then imaginary ones. The modulus is taken of both.
    pub wavelets: Vec<Windows>,
    /// For each size, the average of what such wavelets give; the first one is also that of the picture itself.
    pub averages: Vec<Windows>,
    /// Least variance of what is normalised.
    pub least_variance: f64,
}

/// Places on a circle, from `first` on.
fn around(first: isize, count: usize, circle: usize) -> Vec<usize> {
    (0..count as isize).map(|i| (first + i).rem_euclid(circle as isize) as usize).collect()
}

impl Scattering {
    /// The same map in convolutions.
    pub fn convolutions(&self) -> Convolutions {
        let (h, w) = (self.forward.height, self.forward.width);
        let margins = |lines: usize, own: usize| (0..lines).map(|at| self.mirrored_line(at, own)).collect();
        Convolutions {
            picture: [self.height, self.width, self.channels],
            places: self.places().into(),
            lines: [h, w],
            rows: margins(h, self.height),
            columns: margins(w, self.width),
            mirrored: self.mirrored,
            colours: (self.channels == 3).then_some(OPPONENT),
            directions: LANES,
            wavelets: (0..self.sizes).map(|size| self.wavelets(size)).collect(),
            averages: (0..self.sizes).map(|level| self.averaging(level)).collect(),
            least_variance: super::LEAST_VARIANCE,
        }
    }

    fn wavelets(&self, size: usize) -> Windows {
        let (h, w) = (self.forward.height, self.forward.width);
        let mut pixels: Vec<_> = self.banks[size].spectrum.iter().map(|s| (*s, [0.0; LANES])).collect();
        pixels.resize(h * w, ZERO);
        Transform::new(h, w, true).run(&mut pixels, &mut Vec::new());
        let radius = (DEVIATIONS * deviation(size)).ceil() as usize;
        // Pixels before the middle, and with those after it: the whole circle at the most.
        let sides = |n: usize| if 2 * radius < n { (radius, 2 * radius + 1) } else { (n / 2, n) };
        let ((above, height), (before, width)) = (sides(h), sides(w));
        let mut weights = Vec::with_capacity(2 * LANES * height * width);
        let times = 1.0 / (h * w) as f32;
        for imaginary in [false, true] {
            for lane in 0..LANES {
                for y in around(-(above as isize), height, h) {
                    for x in around(-(before as isize), width, w) {
                        let own = &pixels[y * w + x];
                        weights.push(times * if imaginary { own.1[lane] } else { own.0[lane] });
                    }
                }
            }
        }
        let step = 1 << size;
        let covered = |n: usize, before: usize, all: usize| around(-(before as isize), n - step + all, n);
        Windows { height, width, step, weights, rows: covered(h, above, height), columns: covered(w, before, width) }
    }

    fn averaging(&self, level: usize) -> Windows {
        let (h, w) = (self.forward.height >> level, self.forward.width >> level);
        let (line, step, margin) = (&self.averages[level], (1 << self.sizes) >> level, self.margin >> level);
        let side = line.len();
        let covered = |n: usize, places: usize| around(margin as isize - (side / 2) as isize, (places - 1) * step + side, n);
        Windows {
            height: side,
            width: side,
            step,
            weights: line.iter().flat_map(|a| line.iter().map(move |b| a * b)).collect(),
            rows: covered(h, self.places().0),
            columns: covered(w, self.places().1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture through windows: [windows][rows][columns].
    fn through(windows: &Windows, picture: &[f64], width: usize) -> Vec<Vec<f64>> {
        let count = |all: usize, own: usize| (all - own) / windows.step + 1;
        let (down, along) = (count(windows.rows.len(), windows.height), count(windows.columns.len(), windows.width));
        let sum = |own: &[f32], y: usize, x: usize| -> f64 {
            let place = |i: usize| {
                let (row, column) =
                    (windows.rows[y * windows.step + i / windows.width], windows.columns[x * windows.step + i % windows.width]);
                picture[row * width + column]
            };
            own.iter().enumerate().map(|(i, weight)| f64::from(*weight) * place(i)).sum()
        };
        let size = windows.height * windows.width;
        windows.weights.chunks(size).map(|own| (0..down * along).map(|i| sum(own, i / along, i % along)).collect()).collect()
    }

    fn moduli(windows: &Windows, picture: &[f64], width: usize) -> Vec<Vec<f64>> {
        let parts = through(windows, picture, width);
        let (real, imaginary) = parts.split_at(LANES);
        real.iter().zip(imaginary).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a.hypot(*b)).collect()).collect()
    }

    fn normalised(groups: &mut [Vec<f64>], least: f64) {
        let n = groups.iter().map(Vec::len).sum::<usize>() as f64;
        let mean = groups.iter().flatten().sum::<f64>() / n;
        let variance = groups.iter().flatten().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        groups.iter_mut().flatten().for_each(|x| *x = (*x - mean) / (variance + least).sqrt());
    }

    /// Features by convolutions alone, in double precision.
    fn features(all: &Convolutions, pixels: &[f64]) -> Vec<f64> {
        let ([_, width, channels], [h, w]) = (all.picture, all.lines);
        let mut sum = Vec::new();
        for mirror in [false, true].into_iter().filter(|mirror| all.mirrored || !mirror) {
            let mut paths: Vec<Vec<f64>> = Vec::new();
            for channel in 0..channels {
                let pixel = |y: usize, x: usize| {
                    let x = if mirror { width - 1 - all.columns[x] } else { all.columns[x] };
                    let own = &pixels[(all.rows[y] * width + x) * channels..][..channels];
                    match all.colours {
                        Some(colours) => own.iter().zip(colours[channel]).map(|(a, b)| a * f64::from(b)).sum(),
                        None => own[channel],
                    }
                };
                let picture: Vec<f64> = (0..h * w).map(|i| pixel(i / w, i % w)).collect();
                let average = |level: usize, picture: &[f64]| through(&all.averages[level], picture, w >> level).swap_remove(0);
                let mut own = vec![average(0, &picture)];
                normalised(&mut own, all.least_variance);
                let mut group = |level: usize, pictures: &[Vec<f64>]| {
                    let mut group: Vec<Vec<f64>> = pictures.iter().map(|p| average(level, p)).collect();
                    normalised(&mut group, all.least_variance);
                    own.extend(group);
                };
                let finest = moduli(&all.wavelets[0], &picture, w);
                group(0, &finest);
                if let Some(coarse) = all.wavelets.get(1) {
                    group(1, &moduli(coarse, &picture, w));
                    finest.iter().for_each(|picture| group(1, &moduli(coarse, picture, w)));
                }
                paths.extend(own);
            }
            sum.resize(paths.len() * paths[0].len(), 0.0);
            for (path, own) in paths.iter().enumerate() {
                own.iter().enumerate().for_each(|(place, x)| sum[place * paths.len() + path] += x);
            }
        }
        sum
    }

    /// One size and two, wavelets that are longer than the circle and shorter, colours, mirror images, sides that are no multiples of anything.
    #[test]
    fn convolutions_give_the_same_features() {
        for (height, width, channels, mirrored) in
            [(6, 7, 1, false), (17, 30, 2, true), (28, 28, 1, false), (9, 12, 3, true), (16, 60, 1, false)]
        {
            let pixels: Vec<f64> = (0..height * width * channels).map(|i| ((i * i) as f64 * 0.37).sin().abs()).collect();
            let scattering = Scattering::new(height, width, channels).unwrap().with_mirror_image(mirrored);
            let mut expected = Vec::new();
            scattering.features(&pixels, &mut expected);
            let found = features(&scattering.convolutions(), &pixels);
            assert_eq!(found.len(), expected.len());
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-3, "{height} x {width} x {channels}: {worst}");
        }
    }
}
