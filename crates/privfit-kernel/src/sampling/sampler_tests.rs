//! T-N1, T-N2, T-N3 and the tail. Each statistical check has a false-alarm rate of at most 1e-8.

use super::*;
use crate::rng::NoiseRng;

/// ln(1e8): a tail bound e^-x at this x is met by chance once in 1e8 runs.
const X: f64 = 18.42;

/// Laurent-Massart: P(chi2_k > k + 2 sqrt(k x) + 2 x) <= e^-x.
fn chi_square_limit(degrees: f64) -> f64 {
    degrees + 2.0 * (degrees * X).sqrt() + 2.0 * X
}

fn probabilities(shape: Shape, m: u32) -> (Vec<f64>, i64) {
    let scale = 2f64.powi(m as i32);
    let sensitivity = (40.0 * scale) as i64;
    let weights: Vec<f64> = (-sensitivity..=sensitivity).map(|x| shape.height(x.unsigned_abs() as f64 / scale)).collect();
    let total: f64 = weights.iter().sum();
    (weights.into_iter().map(|w| w / total).collect(), sensitivity)
}

/// Chi-square of `draws` samples against the exact distribution; cells with few expected draws are pooled outwards.
fn chi_square(shape: Shape, m: u32, seed: u8, draws: usize, sampler: &Sampler) -> (f64, f64) {
    let (distribution, sensitivity) = probabilities(shape, m);
    let mut counts = vec![0u64; distribution.len()];
    let mut rng = NoiseRng::from_key([seed; 32]);
    let mut buffer = vec![0i64; 1 << 16];
    let mut left = draws;
    while left > 0 {
        let n = left.min(buffer.len());
        sampler.fill(&mut rng, &mut buffer[..n]);
        for x in &buffer[..n] {
            counts[(x.clamp(&-sensitivity, &sensitivity) + sensitivity) as usize] += 1;
        }
        left -= n;
    }
    let (mut statistic, mut degrees) = (0.0, -1.0);
    let mut side = |order: &mut dyn Iterator<Item = usize>| {
        let (mut expected, mut observed) = (0.0, 0.0);
        for i in order {
            expected += distribution[i] * draws as f64;
            observed += counts[i] as f64;
            if expected >= 20.0 {
                statistic += (observed - expected) * (observed - expected) / expected;
                degrees += 1.0;
                (expected, observed) = (0.0, 0.0);
            }
        }
        if expected > 0.0 {
            statistic += (observed - expected) * (observed - expected) / expected.max(1.0);
            degrees += 1.0;
        }
    };
    side(&mut (sensitivity as usize..distribution.len()));
    side(&mut (0..sensitivity as usize).rev());
    (statistic, degrees)
}

/// T-N1: the whole distribution for small scales, 10^7 draws, three keys.
#[test]
fn distribution_is_exact_for_small_scales() {
    for shape in [Shape::Gaussian, Shape::Laplace] {
        for m in 0..=6 {
            for seed in 1..=3 {
                let sampler = Sampler::new(shape, m);
                let (statistic, degrees) = chi_square(shape, m, seed, 10_000_000, &sampler);
                assert!(statistic < chi_square_limit(degrees), "{shape:?} m {m} seed {seed}: {statistic} at {degrees}");
            }
        }
    }
}

/// The test above can fail: a zero of double weight, the mistake that the sign bit invites, is seen at once.
#[test]
fn a_zero_of_double_weight_would_be_seen() {
    let (distribution, sensitivity) = probabilities(Shape::Gaussian, 3);
    let draws = 1e7;
    let zero = distribution[sensitivity as usize];
    let broken: f64 = distribution
        .iter()
        .enumerate()
        .map(|(i, p)| if i == sensitivity as usize { 2.0 * p / (1.0 + zero) } else { p / (1.0 + zero) })
        .zip(&distribution)
        .map(|(b, p)| draws * (b - p) * (b - p) / p.max(1e-300))
        .sum();
    assert!(broken > chi_square_limit(100.0), "{broken}");
}

/// T-N1, the tail: P(|x| > 4 scales), and the blocks beyond the last column by brute force on their acceptance.
#[test]
fn tails_are_right() {
    for (shape, m) in [(Shape::Gaussian, 4), (Shape::Laplace, 4), (Shape::Gaussian, 40), (Shape::Laplace, 40)] {
        let draws = 20_000_000usize;
        let mut rng = NoiseRng::from_key([9; 32]);
        let mut buffer = vec![0i64; 1 << 16];
        let sampler = Sampler::new(shape, m);
        let (mut far, mut left) = (0u64, draws);
        while left > 0 {
            let n = left.min(buffer.len());
            sampler.fill(&mut rng, &mut buffer[..n]);
            far += buffer[..n].iter().filter(|x| x.unsigned_abs() > 4 << m).count() as u64;
            left -= n;
        }
        let p = if m == 4 {
            let (distribution, sensitivity) = probabilities(shape, m);
            distribution
                .iter()
                .enumerate()
                .filter(|(i, _)| (*i as i64 - sensitivity).unsigned_abs() > 4 << m)
                .map(|(_, p)| p)
                .sum()
        } else if shape == Shape::Gaussian {
            libm::erfc(4.0 / 2f64.sqrt())
        } else {
            (-4f64).exp()
        };
        let mean = p * draws as f64;
        // Bernstein: P(|N - mean| > sqrt(2 mean x) + x) <= 2 e^-x.
        assert!((far as f64 - mean).abs() < (2.0 * mean * (X + 1.0)).sqrt() + X + 1.0, "{shape:?} {m}: {far} {mean}");
    }
    // Every tail block is accepted with a probability below one, for every scale: otherwise the distribution would be cut.
    for shape in [Shape::Gaussian, Shape::Laplace] {
        for m in 0..=Sampler::LARGEST {
            let s = Sampler::new(shape, m);
            let shift = shape.tail_shift(m);
            for block in 0..40u32 {
                let x = (shape.columns() << m) + (u64::from(block) << shift);
                if x >> 62 != 0 {
                    break;
                }
                let factor = (u128::from(s.table.steps) << (block + 1 + shift - s.column)) as f64;
                let accept = factor * shape.height(x as f64 * 0.5f64.powi(m as i32));
                assert!(accept <= 1.0, "{shape:?} m {m} block {block}: {accept}");
            }
        }
    }
}

/// T-N2: at m = 40 the scaled distribution is continuous for all that 10^7 draws can see: moments 1 to 6 and Kolmogorov-Smirnov.
#[test]
fn distribution_is_right_for_large_scales() {
    let n = 10_000_000usize;
    for shape in [Shape::Gaussian, Shape::Laplace] {
        let mut draws = vec![0i64; n];
        Sampler::new(shape, 40).fill(&mut NoiseRng::from_key([77; 32]), &mut draws);
        let scale = 2f64.powi(-40);
        let moment = |k: i32| draws.iter().map(|x| (*x as f64 * scale).powi(k)).sum::<f64>() / n as f64;
        // E|X|^2k: (2k-1)!! for the Gaussian, (2k)! for the Laplace distribution.
        let even = |k: u32| -> f64 {
            match shape {
                Shape::Gaussian => (1..=k).map(|i| f64::from(2 * i - 1)).product(),
                Shape::Laplace => (1..=2 * k).map(f64::from).product(),
            }
        };
        for k in 1..=6u32 {
            let truth = if k % 2 == 0 { even(k / 2) } else { 0.0 };
            let deviation = ((even(k) - truth * truth) / n as f64).sqrt();
            let seen = moment(k as i32);
            assert!((seen - truth).abs() < 7.0 * deviation, "{shape:?} moment {k}: {seen} {truth} +- {deviation}");
        }
        draws.sort_unstable();
        let cumulative = |x: f64| match shape {
            Shape::Gaussian => 0.5 * libm::erfc(-x / 2f64.sqrt()),
            Shape::Laplace => {
                if x < 0.0 {
                    0.5 * x.exp()
                } else {
                    1.0 - 0.5 * (-x).exp()
                }
            }
        };
        let mut worst: f64 = 0.0;
        for (i, x) in draws.iter().enumerate() {
            let c = cumulative(*x as f64 * scale);
            worst = worst.max((c - i as f64 / n as f64).abs()).max((c - (i + 1) as f64 / n as f64).abs());
        }
        // Dvoretzky-Kiefer-Wolfowitz: P(D > e) <= 2 exp(-2 n e^2).
        let limit = ((2f64.ln() + X) / (2.0 * n as f64)).sqrt();
        assert!(worst < limit, "{shape:?}: {worst} {limit}");
        // Low bits are uniform: a sampler on a coarser grid would pass everything above.
        let odd = draws.iter().filter(|x| *x & 1 == 1).count() as f64;
        assert!((odd / n as f64 - 0.5).abs() < 3.5 / (n as f64).sqrt());
    }
}

/// Words from a list, then a failure.
struct Script<'a>(std::slice::Iter<'a, u64>);

impl Words for Script<'_> {
    fn word(&mut self) -> u64 {
        *self.0.next().expect("the script is long enough")
    }
}

/// T-N3: 10^4 scripted strings (10^5 in a sweep) whose first word, or first two, equal the threshold to the last bit, so that the doubles cannot
/// decide. The oracle is another implementation of e^-z (dashu, 512 bits).
#[test]
fn ties_are_decided_exactly() {
    use dashu::float::{FBig, round::mode::HalfEven};
    use dashu::integer::{IBig, UBig};
    type Big = FBig<HalfEven, 2>;
    let mut rng = NoiseRng::from_key([5; 32]);
    let precision = 512;
    let (mut checked, mut accepted) = (0, 0);
    let wanted = if std::env::var_os("PRIVFIT_SWEEP").is_some() { 100_000 } else { 10_000 };
    while checked < wanted {
        let shape = if checked % 2 == 0 { Shape::Gaussian } else { Shape::Laplace };
        let m = [3u32, 17, 40, 52][(rng.word() % 4) as usize];
        let sampler = Sampler::new(shape, m);
        let cell = sampler.table.cells[(rng.word() as usize) % CELLS];
        if cell & (ACCEPT | TAIL | REJECT) != 0 {
            continue;
        }
        let x = (u64::from(cell & 0xfff) << sampler.column) + (rng.word() & ((1 << sampler.column) - 1));
        let step = u64::from(cell >> 12 & 0xfff);
        let (value, shift) = shape.exponent(x, m);
        let z: Big = FBig::from_parts(IBig::from(value), -(shift as isize)).with_precision(precision).value();
        let threshold = ((-z).exp() * Big::from(sampler.table.steps) - Big::from(step)).with_precision(precision).value();
        // The first 192 bits of the threshold, as three words.
        let scaled: IBig = (threshold * Big::from_parts(IBig::ONE, 192)).floor().to_int().value();
        if scaled <= IBig::ZERO || scaled >= IBig::from(UBig::ONE << 192) {
            continue;
        }
        let scaled: UBig = scaled.try_into().expect("positive");
        let word = |i: usize| -> u64 {
            let part = (&scaled >> (64 * (2 - i))) & UBig::from(u64::MAX);
            part.try_into().expect("64 bits")
        };
        // Tie in one word, then a word above or below; or a tie in two words.
        let tie_in_two = rng.word().is_multiple_of(4);
        let last = rng.word();
        let script = if tie_in_two { vec![word(0), word(1), last] } else { vec![word(0), last] };
        let known = if tie_in_two { 2 } else { 1 };
        let expected = last < word(known);
        if last == word(known) {
            continue;
        }
        let decided = sampler.accept(x, step, sampler.table.steps, 0, &mut Script(script.iter()));
        assert_eq!(decided, expected, "{shape:?} m {m} x {x} step {step}");
        checked += 1;
        accepted += usize::from(decided);
    }
    assert!((wanted / 5..wanted / 5 * 4).contains(&accepted), "both outcomes were seen: {accepted}");
}

#[test]
fn exact_bernoulli_has_the_right_mean() {
    let mut rng = NoiseRng::from_key([3; 32]);
    for (gap, m) in [(1u64, 0), (3, 2), (1 << 39, 40), (5 << 40, 40)] {
        let n = 1_000_000;
        let hits = (0..n).filter(|_| bernoulli_exp(gap, m, &mut rng)).count() as f64;
        let p = (-(gap as f64) * 0.5f64.powi(m as i32)).exp();
        let mean = p * f64::from(n);
        assert!((hits - mean).abs() < (2.0 * mean * (X + 1.0)).sqrt() + X + 1.0, "{gap} {m}: {hits} {mean}");
    }
}
