//! Scattering features of pictures: a fixed map of one picture that no data decided.
//!
//! *What it computes.* Wavelets of eight directions and one or two sizes take edges out of a picture; the modulus of what they give is averaged over a few pixels. The modulus of the finer size
//! goes through the wavelets of the coarser one once more. What comes out are 81 numbers (9 for small pictures) for every 4 x 4 (2 x 2) pixels of every channel, which do not change much when a
//! picture is moved or bent a little: a linear model of them learns from noisy gradients what a convolution network would have to learn first.
//!
//! *Privacy.* A map of one record and public constants, as every encoder is. It costs nothing. Numbers that are not finite were clipped before.
//!
//! *Mirror images.* If asked for, the features of a picture and of its mirror image are added: what comes out is the same for both. Where a class does not tell left from right, as in
//! photographs, this is what training on both would lead to, without spending examples or noise on the difference.
//!
//! *Normalisation.* The averaged picture, and the numbers of every eight directions, have the mean 0 and the variance 1 within a picture: nothing is learned from data.
//!
//! *Reference.* Bruna and Mallat 2013; Oyallon and Mallat 2015; Tramer and Boneh 2021 for private learning.

mod filter;
mod fourier;
mod spatial;

use filter::{Bank, low_pass};
use fourier::{Complex, LANES, Lane, Transform, ZERO, length};

pub use spatial::{Convolutions, Windows};

/// Everything that is public about scattering of pictures of one size.
pub struct Scattering {
    height: usize,
    width: usize,
    channels: usize,
    /// Sizes of wavelets: 1 or 2.
    sizes: usize,
    /// Pixels that are added on the left and on top; on the other sides up to a size with small factors.
    margin: usize,
    /// Whether features of the mirror image are added.
    mirrored: bool,
    banks: Vec<Bank>,
    forward: Transform,
    /// Back, at full size and at half of it.
    back: Vec<Transform>,
    /// Averages at full size and at half of it.
    averages: Vec<Vec<f32>>,
}

/// Working memory.
#[derive(Default)]
struct Scratch {
    spectrum: Vec<Complex>,
    spectra: Vec<Complex>,
    product: Vec<Complex>,
    room: Vec<Complex>,
    modulus: Vec<Lane>,
    rows: Vec<Lane>,
}

/// Brightness, and the two differences of three colours: what is alike in them would otherwise be there three times.
const OPPONENT: [[f32; 3]; 3] = [[0.577_350_26; 3], [0.707_106_77, -0.707_106_77, 0.0], [0.408_248_3, 0.408_248_3, -0.816_496_6]];
/// Pictures with a smaller side have wavelets of one size, and no scattering features unless the schema asks for them: few pixels say as much themselves.
pub const USUAL_SIDE: usize = 16;
/// Least variance of a group of paths, so that an even picture stays even.
const LEAST_VARIANCE: f64 = 1e-5;
/// Pictures with a smaller side have no scattering features.
pub const LEAST_SIDE: usize = 6;

/// Height, width and channels of what comes out of pictures of a size; none if they are too small.
pub fn shape(height: usize, width: usize, channels: usize) -> Option<[usize; 3]> {
    let sizes = sizes(height, width)?;
    let step = 1 << sizes;
    Some([height.div_ceil(step), width.div_ceil(step), channels * paths(sizes)])
}

fn sizes(height: usize, width: usize) -> Option<usize> {
    match height.min(width) {
        ..LEAST_SIDE => None,
        LEAST_SIDE..USUAL_SIDE => Some(1),
        _ => Some(2),
    }
}

/// Numbers for each pixel of what comes out, for a channel.
fn paths(sizes: usize) -> usize {
    1 + LANES * sizes + if sizes == 2 { LANES * LANES } else { 0 }
}

impl Scattering {
    /// For pictures of a size; none if they are too small.
    pub fn new(height: usize, width: usize, channels: usize) -> Option<Scattering> {
        let sizes = sizes(height, width)?;
        let (step, margin) = (1 << sizes, 1 << sizes);
        let [h, w] = [height, width].map(|n| length(n.next_multiple_of(step) + 2 * margin, step));
        let half = |n: usize, level: usize| n >> level;
        Some(Scattering {
            height,
            width,
            channels,
            sizes,
            margin,
            mirrored: false,
            banks: (0..sizes).map(|size| Bank::new(h, w, size)).collect(),
            forward: Transform::new(h, w, false),
            back: (0..sizes).map(|level| Transform::new(half(h, level), half(w, level), true)).collect(),
            averages: (0..sizes).map(|level| low_pass(sizes - 1, level)).collect(),
        })
    }

    /// Adds the features of the mirror image, or does not.
    pub fn with_mirror_image(self, mirrored: bool) -> Scattering {
        Scattering { mirrored, ..self }
    }

    /// Numbers of a picture.
    pub fn dimension(&self) -> usize {
        shape(self.height, self.width, self.channels).map_or(0, |s| s.iter().product())
    }

    /// Features of pixels between 0 and 1, row by row with channels last, in the same order; pixels that are missing are 0.
    pub fn features(&self, pixels: &[f64], out: &mut Vec<f64>) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the instructions.
            return unsafe { self.features_wide(pixels, out) };
        }
        self.features_plain(pixels, out);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn features_wide(&self, pixels: &[f64], out: &mut Vec<f64>) {
        self.features_plain(pixels, out);
    }

    #[inline(always)]
    fn features_plain(&self, pixels: &[f64], out: &mut Vec<f64>) {
        let (paths, places) = (paths(self.sizes), self.places());
        let (size, all) = (places.0 * places.1, self.channels * paths);
        let (mut scratch, mut own) = (Scratch::default(), vec![0f32; all * size]);
        out.clear();
        out.resize(own.len(), 0.0);
        for mirror in [false, true].into_iter().filter(|mirror| self.mirrored || !mirror) {
            for (channel, own) in own.chunks_exact_mut(paths * size).enumerate() {
                self.channel(pixels, channel, mirror, &mut scratch, own);
            }
            self.normalise(&mut own, size);
            for (path, own) in own.chunks_exact(size).enumerate() {
                own.iter().enumerate().for_each(|(place, x)| out[place * all + path] += f64::from(*x));
            }
        }
    }

    /// Mean 0 and variance 1 within a picture: for averages of each channel, and for every eight directions.
    #[inline(always)]
    fn normalise(&self, paths: &mut [f32], size: usize) {
        let channels = paths.len() / self.channels;
        for channel in paths.chunks_exact_mut(channels) {
            let (average, directions) = channel.split_at_mut(size);
            for group in std::iter::once(average).chain(directions.chunks_exact_mut(LANES * size)) {
                let n = group.len() as f64;
                let mean = group.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
                let variance = group.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
                let inverse = 1.0 / (variance + LEAST_VARIANCE).sqrt();
                group.iter_mut().for_each(|x| *x = ((f64::from(*x) - mean) * inverse) as f32);
            }
        }
    }

    /// Rows and columns of what comes out.
    fn places(&self) -> (usize, usize) {
        (self.height.div_ceil(1 << self.sizes), self.width.div_ceil(1 << self.sizes))
    }

    /// The line of a picture that lies at a place with margins, which mirror the picture.
    #[inline(always)]
    fn mirrored_line(&self, at: usize, lines: usize) -> usize {
        let period = 2 * (lines - 1);
        let at = (at + period * self.margin - self.margin) % period;
        if at < lines { at } else { period - at }
    }

    /// One channel, of the picture or of its mirror image: paths one after the other, each a picture of places.
    #[inline(always)]
    fn channel(&self, pixels: &[f64], channel: usize, mirror: bool, s: &mut Scratch, out: &mut [f32]) {
        let (h, w) = (self.forward.height, self.forward.width);
        let size = self.places().0 * self.places().1;
        // The picture itself, averaged: in all lanes, of which one is taken.
        s.modulus.clear();
        for y in 0..h {
            let row = self.mirrored_line(y, self.height) * self.width;
            let pixel = |x| {
                let x = self.mirrored_line(x, self.width);
                let at = (row + if mirror { self.width - 1 - x } else { x }) * self.channels;
                let own = |c: usize| pixels.get(at + c).map_or(0.0, |x| *x as f32);
                match OPPONENT.get(channel).filter(|_| self.channels == 3) {
                    Some([red, green, blue]) => red * own(0) + green * own(1) + blue * own(2),
                    None => own(channel),
                }
            };
            for x in 0..w {
                s.modulus.push([pixel(x); LANES]);
            }
        }
        self.average(0, &s.modulus, &mut s.rows, out, 1);
        self.transform(&s.modulus, &mut s.spectrum, &mut s.room);
        for level in 0..self.sizes {
            self.filter(level, &s.spectrum, None, &mut s.product, &mut s.room, &mut s.modulus);
            self.average(level, &s.modulus, &mut s.rows, &mut out[(1 + level * LANES) * size..], LANES);
            if level == 0 && self.sizes == 2 {
                self.transform(&s.modulus, &mut s.spectra, &mut s.room);
            }
        }
        for direction in (0..LANES).filter(|_| self.sizes == 2) {
            self.filter(1, &s.spectra, Some(direction), &mut s.product, &mut s.room, &mut s.modulus);
            self.average(1, &s.modulus, &mut s.rows, &mut out[(1 + (2 + direction) * LANES) * size..], LANES);
        }
    }

    /// Spectra of pictures.
    #[inline(always)]
    fn transform(&self, pictures: &[Lane], out: &mut Vec<Complex>, room: &mut Vec<Complex>) {
        out.resize(pictures.len(), ZERO);
        for (out, x) in out.iter_mut().zip(pictures) {
            *out = (*x, [0.0; LANES]);
        }
        self.forward.run(out, room);
    }

    /// Modulus of spectra (or of one lane of them, eight times) through the wavelets of a size, at a resolution that halves with every size.
    #[inline(always)]
    fn filter(
        &self,
        level: usize,
        spectrum: &[Complex],
        lane: Option<usize>,
        product: &mut Vec<Complex>,
        room: &mut Vec<Complex>,
        modulus: &mut Vec<Lane>,
    ) {
        let (h, w) = (self.forward.height, self.forward.width);
        let (sh, sw) = (h >> level, w >> level);
        product.clear();
        product.resize(sh * sw, ZERO);
        // Sampling every second pixel adds what lies half a spectrum apart.
        for (y, row) in spectrum.chunks_exact(w).enumerate() {
            let (to, bank) = (&mut product[(y % sh) * sw..][..sw], &self.banks[level].spectrum[y * w..][..w]);
            for (row, bank) in row.chunks_exact(sw).zip(bank.chunks_exact(sw)) {
                for ((to, x), filter) in to.iter_mut().zip(row).zip(bank) {
                    let x = match lane {
                        None => *x,
                        Some(lane) => ([x.0[lane]; LANES], [x.1[lane]; LANES]),
                    };
                    for i in 0..LANES {
                        to.0[i] += x.0[i] * filter[i];
                        to.1[i] += x.1[i] * filter[i];
                    }
                }
            }
        }
        self.back[level].run(product, room);
        let times = 1.0 / (h * w) as f32;
        modulus.resize(product.len(), [0.0; LANES]);
        for (out, x) in modulus.iter_mut().zip(product.iter()) {
            for i in 0..LANES {
                out[i] = times * (x.0[i] * x.0[i] + x.1[i] * x.1[i]).sqrt();
            }
        }
    }

    /// Averages around each place, along rows and then down, for the first lanes.
    #[inline(always)]
    fn average(&self, level: usize, picture: &[Lane], rows: &mut Vec<Lane>, out: &mut [f32], lanes: usize) {
        let (h, w) = (self.forward.height >> level, self.forward.width >> level);
        let (weights, step, margin) = (&self.averages[level], (1 << self.sizes) >> level, self.margin >> level);
        let (height, width) = self.places();
        let first = |place: usize, n: usize| (margin + place * step + n * weights.len() - weights.len() / 2) % n;
        rows.resize(h * width, [0.0; LANES]);
        for (row, out) in picture.chunks_exact(w).zip(rows.chunks_exact_mut(width)) {
            for (x, out) in out.iter_mut().enumerate() {
                *out = weighted(row, 1, first(x, w), weights);
            }
        }
        for y in 0..height {
            let first = first(y, h);
            for x in 0..width {
                let sum = weighted(&rows[x..], width, first, weights);
                for (i, sum) in sum.iter().enumerate().take(lanes) {
                    out[i * height * width + y * width + x] = *sum;
                }
            }
        }
    }
}

/// A weighted sum of numbers that lie so far apart, from one of them on; after the last comes the first again.
#[inline(always)]
fn weighted(numbers: &[Lane], apart: usize, mut at: usize, weights: &[f32]) -> Lane {
    let (mut sum, count) = ([0f32; LANES], numbers.len().div_ceil(apart));
    for weight in weights {
        let own = &numbers[at * apart];
        for i in 0..LANES {
            sum[i] += weight * own[i];
        }
        at = if at + 1 == count { 0 } else { at + 1 };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(height: usize, width: usize, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        (0..height * width).map(|i| f((i / width) as f64, (i % width) as f64)).collect()
    }

    /// Numbers of one path, before normalisation.
    fn paths_of(scattering: &Scattering, pixels: &[f64]) -> Vec<f32> {
        let size = scattering.places().0 * scattering.places().1;
        let mut out = vec![0f32; paths(scattering.sizes) * size];
        scattering.channel(pixels, 0, false, &mut Scratch::default(), &mut out);
        out.chunks(size).map(|path| path.iter().sum::<f32>() / size as f32).collect()
    }

    #[test]
    fn sizes_are_those_that_are_announced() {
        for (height, width, channels, expected) in [
            (28, 28, 1, Some([7, 7, 81])),
            (32, 32, 3, Some([8, 8, 243])),
            (8, 9, 1, Some([4, 5, 9])),
            (30, 17, 2, Some([8, 5, 162])),
            (5, 28, 1, None),
        ] {
            assert_eq!(shape(height, width, channels), expected);
            let Some(scattering) = Scattering::new(height, width, channels) else { continue };
            let mut out = Vec::new();
            // Fewer pixels than there should be are taken as black ones.
            scattering.features(&[1.0; 20], &mut out);
            assert_eq!(out.len(), scattering.dimension());
            assert!(out.iter().all(|x| x.is_finite()));
        }
        assert!(Scattering::new(3, 40, 1).is_none());
    }

    /// An even picture has its own brightness as average and nothing else; normalised, nothing at all.
    #[test]
    fn even_pictures_have_no_edges() {
        let scattering = Scattering::new(28, 28, 1).unwrap();
        let paths = paths_of(&scattering, &[0.5; 784]);
        assert!((paths[0] - 0.5).abs() < 1e-5 && paths[1..].iter().all(|x| x.abs() < 1e-5), "{paths:?}");
        let mut out = Vec::new();
        scattering.features(&[0.5; 784], &mut out);
        assert!(out.iter().all(|x| x.abs() < 1e-2));
    }

    /// A wave answers in its direction and size, and a closed form says how much: the wavelet's spectrum at its frequency times half of its height.
    #[test]
    fn waves_answer_in_their_direction() {
        let scattering = Scattering::new(32, 32, 1).unwrap();
        // Four pixels long, so that mirrored margins go on with it.
        for (turned, lane) in [(false, 0), (true, 4)] {
            let wave = picture(32, 32, |y, x| 0.5 + 0.5 * (std::f64::consts::FRAC_PI_2 * if turned { y } else { x }).cos());
            let paths = paths_of(&scattering, &wave);
            let best = (1..17).max_by(|a, b| paths[*a].total_cmp(&paths[*b])).unwrap();
            assert_eq!((best - 1) % LANES, lane, "{paths:?}");
            // cos = (e^i + e^-i)/2: one of both frequencies passes the wavelet.
            let at = if turned { 10 * 40 } else { 10 };
            let expected = 0.25 * scattering.banks[0].spectrum[at][lane];
            assert!((paths[1 + lane] - expected).abs() < 0.02 * expected, "{} {expected}", paths[1 + lane]);
        }
    }

    /// With mirror images both have the same features, which are the sum of both without; otherwise they differ.
    #[test]
    fn mirror_images_are_the_same_picture() {
        let pixels: Vec<f64> = (0..20 * 17 * 3).map(|i| ((i * i) as f64 * 0.37).sin().abs()).collect();
        let turned: Vec<f64> = (0..20 * 17 * 3).map(|i| pixels[(i / 51) * 51 + (16 - i / 3 % 17) * 3 + i % 3]).collect();
        let features = |mirrored: bool, pixels: &[f64]| {
            let mut out = Vec::new();
            Scattering::new(20, 17, 3).unwrap().with_mirror_image(mirrored).features(pixels, &mut out);
            out
        };
        let (one, other, both) = (features(false, &pixels), features(false, &turned), features(true, &pixels));
        assert!(one.iter().zip(&other).any(|(a, b)| (a - b).abs() > 0.1));
        assert!(both.iter().zip(features(true, &turned)).all(|(a, b)| *a == b));
        assert!(both.iter().zip(one.iter().zip(&other)).all(|(both, (a, b))| *both == a + b));
    }

    /// A picture that is moved by a pixel changes little, against another picture.
    #[test]
    fn small_moves_change_little() {
        let scattering = Scattering::new(28, 28, 1).unwrap();
        let blob =
            |cy: f64, cx: f64, long: f64| picture(28, 28, |y, x| (-((y - cy) / 3.0).powi(2) - ((x - cx) / long).powi(2)).exp());
        let features = |pixels: &[f64]| {
            let mut out = Vec::new();
            scattering.features(pixels, &mut out);
            out
        };
        let gap = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let (base, moved, other) =
            (features(&blob(13.0, 13.0, 6.0)), features(&blob(13.0, 14.0, 6.0)), features(&blob(13.0, 13.0, 2.0)));
        assert!(gap(&base, &moved) < 0.6 * gap(&base, &other), "{} {}", gap(&base, &moved), gap(&base, &other));
    }
}
