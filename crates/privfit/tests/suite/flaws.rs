//! What is wrong with published methods, one test for each flaw, with the number that shows it. Printed constants come from
//! `method::published::printed`, true costs from our accountants, and the runs here are small references on plain numbers: a flaw
//! of a publication must not be shown by the code that repairs it.

use privfit::account::{
    Accountant, Adjacency, Bound, Event, LossDistributionAccountant, Objective, delta, epsilon, simple_epsilon,
};
use privfit::kernel::loss::huber_svm;
use privfit::method::published::printed::*;
use std::f64::consts::PI;

/// Rows of the training part of Adult in the thesis, and of KDDCup99 and Synthetic-L.
const ADULT: f64 = 36176.0;
const KDD: f64 = 56000.0;
const SYNTHETIC: f64 = 8000.0;

fn assert_near(what: &str, value: f64, expected: f64, relative: f64) {
    assert!((value / expected - 1.0).abs() <= relative, "{what}: {value}, expected {expected}");
}

/// The edge between `false` (low) and `true` (high).
fn edge(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    assert!(!holds(low) && holds(high), "no edge between {low} and {high}");
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

/// A Gaussian whose noise over the true sensitivity is given.
fn gaussian(noise: f64) -> Event {
    Event::Gaussian { noise_multiplier: noise, replace_factor: 1.0 }
}

/// Its delta. A claim is kept if the upper end is below it, and broken if the lower end is above it.
fn gaussian_delta(noise: f64, at: f64) -> Bound {
    delta(&gaussian(noise), Adjacency::ZeroOut, at).unwrap().bound
}

/// The least noise over sensitivity that is private.
fn analytic(at: f64, target: f64) -> f64 {
    edge(1e-3, 1e6, |noise| gaussian_delta(noise, at).upper <= target)
}

fn epsilon_of(event: &Event, adjacency: Adjacency, delta: f64) -> f64 {
    epsilon(event, adjacency, delta).unwrap().bound.upper
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// Midpoint rule.
fn integral(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let n = 20_000;
    let width = (high - low) / f64::from(n);
    (0..n).map(|i| f(low + (f64::from(i) + 0.5) * width)).sum::<f64>() * width
}

/// P(N > x).
fn upper(x: f64) -> f64 {
    integral(x, x + 12.0, density)
}

/// A plain generator: these are simulations, no privacy hangs on it.
struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (2.0 * PI * self.uniform()).cos()
    }
}

/// So many records with the Huber loss around a centre: gradients and smoothness of at most 1. Far from its centre it is linear.
#[derive(Clone, Copy)]
struct Records {
    count: f64,
    centre: f64,
}

const FAR: f64 = 1e12;

fn slope(w: f64, centre: f64) -> f64 {
    (w - centre).max(-1.0).min(1.0)
}

/// Iterates of full gradient descent on (1/divisor) sum of losses + (ridge/2) w^2.
fn descend(records: &[Records], divisor: f64, ridge: f64, step: f64, start: f64, steps: usize) -> Vec<f64> {
    let mut w = start;
    let mut path = Vec::with_capacity(steps);
    for _ in 0..steps {
        let sum: f64 = records.iter().map(|r| r.count * slope(w, r.centre)).sum();
        w -= step * (sum / divisor + ridge * w);
        path.push(w);
    }
    path
}

/// Permutation SGD over batches of `batch` consecutive records; `step(pass, update)` counts from 1. The last batch may be short;
/// it is divided by `batch` unless `true_size`.
fn permutation_sgd(
    centres: &[f64],
    batch: usize,
    passes: u64,
    ridge: f64,
    true_size: bool,
    step: impl Fn(u64, u64) -> f64,
) -> f64 {
    let (mut w, mut update) = (0.0, 0);
    for pass in 1..=passes {
        for part in centres.chunks(batch) {
            update += 1;
            let sum: f64 = part.iter().map(|c| slope(w, *c)).sum();
            let size = if true_size { part.len() } else { batch };
            w -= step(pass, update) * (sum / size as f64 + ridge * w);
        }
    }
    w
}

/// Distance of two runs whose record at `place` pulls one way or the other.
fn distance(rows: usize, place: usize, run: impl Fn(&[f64]) -> f64) -> f64 {
    let mut centres = vec![0.0; rows];
    centres[place] = FAR;
    let one = run(&centres);
    centres[place] = -FAR;
    (one - run(&centres)).abs()
}

// Gaussian noise.

/// Each closed form for Gaussian noise stops being private at some epsilon, and none says so.
#[test]
fn gaussian_forms_stop_being_private() {
    type Form = fn(f64, f64) -> f64;
    let forms: [Form; 3] = [gaussian_classical, gaussian_two, gaussian_thesis];
    let table = [
        (1e-3, [7.463, 8.512, 17.21]),
        (1e-5, [8.420, 9.391, 19.97]),
        (1e-6, [8.782, 9.733, 21.11]),
        (1e-9, [9.624, 10.54, 24.02]),
    ];
    for (target, firsts) in table {
        for (form, first) in forms.iter().zip(firsts) {
            let found = edge(1.0, 60.0, |e| gaussian_delta(form(e, target), e).lower > target);
            assert_near("first epsilon that fails", found, first, 1e-3);
        }
    }
    // The paper claims its output noise for any epsilon.
    assert!(gaussian_delta(gd_sigma(1.0, 10.0, 1e-3), 10.0).lower > 1e-3);
    // Permutation SGD at epsilon 10, where the thesis reports it: delta is 1/m^2, and below 2780 rows it is too large.
    let limit = edge(1e-9, 1e-3, |d| gaussian_delta(psgd_sigma(1.0, 10.0, d), 10.0).lower > d);
    assert_near("delta at epsilon 10", limit, 1.3e-7, 0.02);
    assert_near("rows at epsilon 10", limit.sqrt().recip(), 2780.0, 0.01);
}

/// The thesis's Gaussian lemma has a proof for epsilon of at most 2 (1 + sqrt(2 ln(1/delta))), which covers its experiments; it
/// is loose.
#[test]
fn gaussian_lemma_of_the_thesis_has_a_range() {
    for target in [1e-3f64, 1e-5, 1e-6, 1e-9, 1.0 / (SYNTHETIC * SYNTHETIC)] {
        let range = 2.0 * (1.0 + (2.0 * (1.0 / target).ln()).sqrt());
        assert!(gaussian_delta(gaussian_thesis(range, target), range).upper <= target);
        assert!(gaussian_delta(gaussian_thesis(2.0 * range, target), 2.0 * range).lower > target);
    }
    let smallest_data = 2.0 * (1.0 + (4.0 * SYNTHETIC.ln()).sqrt());
    assert_near("range at 8000 rows", smallest_data, 14.0, 0.01);
    for (target, at, loose) in [(1e-3, 0.1, 2.71), (1e-3, 1.0, 1.83), (1e-5, 0.1, 1.89), (1e-6, 1.0, 1.48), (1e-9, 1.0, 1.354)] {
        assert_near("looseness", gaussian_thesis(at, target) / analytic(at, target), loose, 5e-3);
    }
    // The paper's form, at the epsilons it reports.
    assert_near("looseness at 0.1", gaussian_two(0.1, 1e-3) / analytic(0.1, 1e-3), 2.24, 5e-3);
    assert_near("looseness at 2", gaussian_two(2.0, 1e-3) / analytic(2.0, 1e-3), 1.35, 5e-3);
}

// Approximate minima perturbation.

/// Lemma 4.3.1 takes the gradient difference for a fixed shift of the noise, but the minimiser follows the noise. The loss
/// sqrt(|theta|^2 + s^2), against a record without loss, points along the noise wherever that goes: in 5000 dimensions the log
/// ratio of the noise densities is 2.82, where the lemma says at most 0.5 but for 1 in a million. The determinant happens to take
/// it back.
#[test]
fn amp_density_lemma_fails_beyond_scalar_scores() {
    let (dimension, epsilon3, delta1) = (5000, 0.5, 1e-6);
    let split = AmpSplit { epsilon1: 1.49, epsilon2: 0.01, epsilon3, delta1, delta2: 1e-8, gamma: 1e-6 };
    let smoothing = 1e-3;
    let printed = amp(split, 1000.0, 1.0, 1.0 / smoothing, f64::from(dimension));
    let mut dice = Dice(1);
    // A ridge that leaves the loss linear, as the lemma allows; then the ridge that the algorithm prescribes for this loss.
    for (ridge, ratio, determinant) in [(1.0, 2.82, -2.83), (printed.ridge, 0.93, -0.93)] {
        let (mut worst, mut mean, mut mean_determinant, mut glm_exceeds) = (f64::INFINITY, 0.0, 0.0, 0);
        for _ in 0..100 {
            let noise: Vec<f64> = (0..dimension).map(|_| printed.linear_sigma * dice.normal()).collect();
            let norm = noise.iter().map(|b| b * b).sum::<f64>().sqrt();
            // The minimiser is opposite to the noise: ridge r + r / sqrt(r^2 + s^2) = |b|.
            let pull = |r: f64| r / (r * r + smoothing * smoothing).sqrt();
            let r = edge(0.0, norm / ridge, |r| ridge * r + pull(r) >= norm);
            // Noise that gives the same minimiser without the record.
            let other = ridge * r;
            let log_ratio = (norm * norm - other * other) / (2.0 * printed.linear_sigma.powi(2));
            let root = (r * r + smoothing * smoothing).sqrt();
            let across = (1.0 / (ridge * root)).ln_1p() * f64::from(dimension - 1);
            let along = (smoothing * smoothing / (ridge * root.powi(3))).ln_1p();
            worst = worst.min(log_ratio);
            mean += log_ratio / 100.0;
            mean_determinant -= (across + along) / 100.0;
            // A record with a scalar score, whose gradient keeps its direction, under the same noise.
            let scalar = 2.0 * (2.0 * noise[0].abs() + 2.0) / (2.0 * printed.linear_sigma.powi(2));
            glm_exceeds += usize::from(scalar > epsilon3);
        }
        assert_near("log ratio", mean, ratio, 0.01);
        assert!(worst > 1.7 * epsilon3, "every draw exceeds the lemma: {worst}");
        assert_near("log determinant", mean_determinant, determinant, 0.01);
        assert!((mean + mean_determinant).abs() < 0.02, "{mean} {mean_determinant}: together they cancel");
        assert_eq!(glm_exceeds, 0);
    }
}

fn determinant(a: [[f64; 3]; 3]) -> f64 {
    a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0])
        + a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0])
}

fn add_outer(a: &mut [[f64; 3]; 3], weight: f64, x: [f64; 3]) {
    for (row, xi) in a.iter_mut().zip(x) {
        for (cell, xj) in row.iter_mut().zip(x) {
            *cell += weight * xi * xj;
        }
    }
}

/// Three steps of the proof of lemma 4.3.2 are wrong.
#[test]
fn amp_determinant_lemma_has_three_wrong_steps() {
    // "The rank of E is at most r", so r eigenvalues move: one outer product moves both eigenvalues of diag(1, 2).
    let (trace, det): (f64, f64) = (3.0 + 1.0, 1.5 * 2.5 - 0.25);
    let root = (trace * trace / 4.0 - det).sqrt();
    assert!(trace / 2.0 - root > 1.2 && trace / 2.0 + root > 2.6, "{} {}", trace / 2.0 - root, trace / 2.0 + root);
    // "An upper bound beta on the eigenvalues of A": A is a sum over records; ten equal ones have ten times beta.
    let (beta, mut a) = (0.25, [[0.0; 3]; 3]);
    (0..10).for_each(|_| add_outer(&mut a, beta, [1.0, 0.0, 0.0]));
    assert!(a[0][0] >= 9.99 * beta);
    // The last line: its bound Lambda / (Lambda - r beta) must be at most e^x, x = epsilon1 - epsilon3, and is not at the Lambda
    // chosen.
    for x in [0.01, 0.1, 0.5, 0.9, 0.99] {
        let split = AmpSplit { epsilon1: 1.0, epsilon2: 0.1, epsilon3: 1.0 - x, delta1: 1e-6, delta2: 1e-8, gamma: 1e-6 };
        let ridge = amp(split, 1000.0, 1.0, beta, 2.0).ridge;
        let bound = ridge / (ridge - 2.0 * beta);
        assert!(bound > x.exp() * (1.0 + 0.4 * x * x), "{x}: {bound} against {}", x.exp());
    }
}

/// The bound itself is true, and for scalar scores far too careful: the determinant grows by 1 + beta/Lambda at most, also when a
/// record is replaced, so half the ridge is enough at any x, and an eighth with the right beta for the logistic loss.
#[test]
fn amp_determinant_bound_repaired() {
    let mut dice = Dice(2);
    let unit = |dice: &mut Dice| {
        let v = [dice.normal(), dice.normal(), dice.normal()];
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.map(|x| x / norm)
    };
    let beta = 1.0;
    let mut largest: f64 = 0.0;
    for round in 0..2000 {
        let ridge = 0.05 + 5.0 * dice.uniform();
        let mut common = [[ridge, 0.0, 0.0], [0.0, ridge, 0.0], [0.0, 0.0, ridge]];
        for _ in 0..round % 4 {
            let (weight, x) = (beta * dice.uniform(), unit(&mut dice));
            add_outer(&mut common, weight, x);
        }
        let (mut before, mut after) = (common, common);
        if round % 3 > 0 {
            let (weight, x) = (beta * dice.uniform(), unit(&mut dice));
            add_outer(&mut before, weight, x);
        }
        add_outer(&mut after, beta, unit(&mut dice));
        let excess = determinant(after) / determinant(before) / (1.0 + beta / ridge);
        assert!(excess <= 1.0 + 1e-12, "{excess}");
        largest = largest.max(excess);
    }
    assert!(largest >= 1.0 - 1e-12, "attained: {largest}");
    for x in [0.01f64, 0.1, 1.0, 2.0] {
        let tight = beta / x.exp_m1();
        assert_near("ratio at the tight ridge", 1.0 + beta / tight, x.exp(), 1e-12);
        assert!(2.0 * beta / x >= 2.0 * tight, "the printed ridge is at least twice that");
    }
    assert_near("with the logistic beta", (2.0 / 0.01) / (0.25 / 0.01f64.exp_m1()), 8.0, 0.01);
}

/// Lemma 4.3.3 takes the bound m gamma / Lambda of |approximate - exact minimiser| for a sensitivity. A pair of neighbours with
/// the same noise and the same exact minimiser, solved by bisection from one public bracket: the answers are 1.996 times that
/// apart, and the release that the lemma speaks of has 100 times its delta and more.
#[test]
fn amp_output_noise_is_half_of_what_its_lemma_needs() {
    let m = ADULT;
    for (at, excess) in [(0.1, 100.0), (1.0, 1000.0), (10.0, 10_000.0)] {
        let printed = amp_without_settings(at, 1.0 / (m * m), m, 1.0, Regime::Low);
        let tolerance = m * printed.split.gamma;
        let sensitivity = tolerance / printed.ridge;
        let minimiser = 3.0 * sensitivity;
        // Left of the minimiser both records are linear; right of it one of them bends.
        let solve = |centre: f64| {
            let noise = 1.0 - printed.ridge * minimiser;
            let gradient = |w: f64| noise + printed.ridge * w + slope(w, centre);
            assert!(gradient(minimiser).abs() < 1e-6 * tolerance);
            let (mut low, mut high) = (minimiser - 3.0 * 0.998 * sensitivity, minimiser + 5.0 * 0.998 * sensitivity);
            loop {
                let w = 0.5 * (low + high);
                if gradient(w).abs() <= tolerance {
                    return w;
                }
                if gradient(w) > 0.0 { high = w } else { low = w }
            }
        };
        let apart = (solve(FAR) - solve(minimiser + 1.0)).abs() / sensitivity;
        assert_near("distance over the printed bound", apart, 1.996, 1e-3);
        let split = printed.split;
        let true_delta = gaussian_delta(printed.output_sigma / (apart * sensitivity), split.epsilon2).lower;
        assert!(true_delta > excess * split.delta2, "{at}: {true_delta:e} {:e}", split.delta2);
        assert!(
            gaussian_delta(printed.output_sigma / sensitivity, split.epsilon2).upper <= split.delta2,
            "half of it would have been covered"
        );
    }
}

/// Facts of approximate minima perturbation for our accountant, with the factor of two in the output noise.
fn amp_event(printed: &Amp, rows: f64, smoothness: f64) -> Objective {
    Objective {
        noise_multiplier: printed.linear_sigma,
        replace_factor: 2.0,
        degrees: 1,
        log_determinant: (smoothness / printed.ridge).ln_1p(),
        output_noise_multiplier: printed.output_sigma * printed.ridge / (2.0 * rows * printed.split.gamma),
        grid_sigma: 0,
        dimension: 1,
    }
}

/// A grid point of the thesis: fractions of the budget for the output (f) and for the noise (f1).
fn amp_grid(at: f64, rows: f64, f: f64, f1: f64) -> Amp {
    let (target, epsilon1) = (1.0 / (rows * rows), (1.0 - f) * at);
    let split = AmpSplit {
        epsilon1,
        epsilon2: f * at,
        epsilon3: f1 * epsilon1,
        delta1: (1.0 - f) * target,
        delta2: f * target,
        gamma: target,
    };
    amp(split, rows, 1.0, 1.0, 2.0)
}

/// The Huber machine of half-width 0.1 has beta = 5, and the released code takes 1. The determinant then costs up to 2.5 times
/// its share; the proof is void, and only what is loose elsewhere keeps the true epsilon below the claim.
#[test]
fn amp_huber_machine_has_five_times_the_smoothness() {
    let loss = huber_svm(1, 2, 0.1, [1.0, 1.0]);
    let margins: Vec<f64> = (0..4001).map(|i| f64::from(i) * 5e-4).collect();
    let mut derivatives = vec![0.0; margins.len()];
    loss.derivatives(&margins, &vec![1.0; margins.len()], &mut derivatives);
    let steepest = derivatives.windows(2).map(|s| (s[1] - s[0]) / 5e-4).fold(0.0, f64::max);
    assert_near("beta", steepest, 5.0, 1e-6);
    let target = 1.0 / (ADULT * ADULT);
    for (at, truth) in [(0.1, 0.0840), (1.0, 0.917), (10.0, 9.328)] {
        let printed = amp_without_settings(at, target, ADULT, 1.0, Regime::Low);
        let planned = printed.split.epsilon1 - printed.split.epsilon3;
        let paid = (5.0 / printed.ridge).ln_1p();
        assert!(paid > 1.25 * planned && paid < 2.5 * planned, "{paid} {planned}");
        let event = Event::ObjectivePerturbation(amp_event(&printed, ADULT, 5.0));
        assert_near("true epsilon", epsilon_of(&event, Adjacency::ReplaceOne, target), truth, 2e-3);
    }
    // Over the grid with one percent or less for the output.
    for (at, low, high) in [(0.1, 0.0741, 0.0903), (1.0, 0.8002, 0.9325), (10.0, 9.203, 9.479)] {
        let all = [0.9, 0.92, 0.95, 0.98, 0.99].into_iter().flat_map(|f1| [0.001, 0.01].map(|f| amp_grid(at, ADULT, f, f1)));
        let truths: Vec<f64> = all
            .map(|a| epsilon_of(&Event::ObjectivePerturbation(amp_event(&a, ADULT, 5.0)), Adjacency::ReplaceOne, target))
            .collect();
        let (least, most) = truths.iter().fold((f64::INFINITY, 0.0f64), |(a, b), t| (a.min(*t), b.max(*t)));
        assert!(least >= low && most <= high && most < at, "{at}: {least} {most}");
    }
}

/// For the logistic loss (beta 1/4, where 1 is charged) the published parameters spend far less than they claim.
#[test]
fn amp_without_settings_spends_less_than_it_claims() {
    let target = 1.0 / (ADULT * ADULT);
    for (at, ridge, sigma, truth) in [(0.1, 297.2, 162.2, 0.0682), (1.0, 21.5, 16.68, 0.719), (10.0, 2.02, 1.679, 8.199)] {
        let printed = amp_without_settings(at, target, ADULT, 1.0, Regime::Low);
        assert_near("ridge", printed.ridge, ridge, 1e-3);
        assert_near("noise", printed.linear_sigma, sigma, 1e-3);
        let event = Event::ObjectivePerturbation(amp_event(&printed, ADULT, 0.25));
        assert_near("true epsilon", epsilon_of(&event, Adjacency::ReplaceOne, target), truth, 2e-3);
    }
}

/// Basic composition of the two stages is loose. But with half of the budget on the output, the factor of two eats that up: for
/// the Huber machine at epsilon 10, no proof that we know gives the claim to that point of the published grid.
#[test]
fn amp_basic_composition_is_loose() {
    let target = 1.0 / (ADULT * ADULT);
    let cost = |at: f64, f: f64, smoothness: f64| {
        let printed = amp_grid(at, ADULT, f, 0.9);
        let joint = amp_event(&printed, ADULT, smoothness);
        let exact = Event::ObjectivePerturbation(Objective { output_noise_multiplier: f64::INFINITY, ..joint });
        let split = printed.split;
        let stages = epsilon_of(&exact, Adjacency::ReplaceOne, split.delta1)
            + epsilon_of(&gaussian(joint.output_noise_multiplier), Adjacency::ZeroOut, split.delta2);
        (epsilon_of(&Event::ObjectivePerturbation(joint), Adjacency::ReplaceOne, target), stages)
    };
    for (at, f, joint, stages) in [(1.0, 0.1, 0.664, 0.790), (1.0, 0.5, 0.8439, 1.0904), (10.0, 0.5, 9.884, 12.52)] {
        let found = cost(at, f, 0.25);
        assert_near("together", found.0, joint, 2e-3);
        assert_near("one after the other", found.1, stages, 2e-3);
    }
    assert_near("Huber machine", cost(10.0, 0.5, 5.0).0, 10.63, 2e-3);
}

// Preprocessing and reporting.

/// Columns are divided by their maximum over the private data before rows are clipped. One record in a hundred thousand then
/// moves every row, and a sum of gradients moves by 45000 times what the noise is made for.
#[test]
fn column_maxima_move_every_row() {
    let prepare = |column: &[f64]| -> Vec<f64> {
        let most = column.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        column.iter().map(|x| (x / most).max(-1.0).min(1.0)).collect()
    };
    let mut column = vec![1.0; 100_000];
    let before = prepare(&column);
    column[7] = 10.0;
    let after = prepare(&column);
    let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    assert_eq!(moved, 99_999);
    // Gradient of the logistic loss at 0 is -x y / 2, so 1/2 is its bound and 1 what replacing a record may do to the sum.
    let sum = |rows: &[f64]| rows.iter().map(|x| 0.5 * x).sum::<f64>();
    assert!((sum(&before) - sum(&after)).abs() > 40_000.0, "{}", sum(&before) - sum(&after));
    // With a declared bound it is one row.
    let declared = |column: &[f64]| -> Vec<f64> { column.iter().map(|x| (x / 10.0).max(-1.0).min(1.0)).collect() };
    let plain = vec![1.0; 100_000];
    assert_eq!(declared(&plain).iter().zip(declared(&column)).filter(|(a, b)| *a != b).count(), 1);
}

/// "L = 1 achieves a good trade-off across all datasets": picked on the data of the evaluation. A pick of that kind is an answer
/// about the data; here one record decides between 1 and 10, with certainty.
#[test]
fn clipping_bound_picked_on_the_data_tells_of_a_record() {
    // Noise grows with the bound, information is lost on the rows that are clipped.
    let pick = |norms: &[f64]| {
        let score = |bound: f64| norms.iter().map(|x| (bound / x).min(1.0)).sum::<f64>() - 0.55 * bound;
        [0.1, 1.0, 10.0].into_iter().max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap()
    };
    let mut norms = vec![1.0; 1000];
    norms[..5].fill(10.0);
    assert_eq!(pick(&norms), 1.0);
    norms[5] = 10.0;
    assert_eq!(pick(&norms), 10.0);
}

/// Reported accuracies are the best mean of ten runs over a grid, on the test data. With models that are pure noise, whose
/// accuracy is one half, 80 grid points report 1.2 points more on 1024 test rows and 2400 report 1.7; on fresh data the chosen
/// point has nothing.
#[test]
fn best_of_a_grid_on_test_data_is_optimistic() {
    let mut dice = Dice(3);
    let mut accuracy = || (0..160).map(|_| dice.bits().count_ones()).sum::<u32>() as f64 / (10.0 * 1024.0);
    for (points, rounds, bias) in [(80, 400, 0.0120), (2400, 40, 0.0169)] {
        let (mut reported, mut fresh) = (0.0, 0.0);
        for _ in 0..rounds {
            let best = (0..points).map(|_| accuracy()).fold(0.0, f64::max);
            reported += best / f64::from(rounds);
            fresh += accuracy() / f64::from(rounds);
        }
        assert_near("optimism", reported - 0.5, bias, 0.08);
        assert!((fresh - 0.5).abs() < 0.003, "{fresh}");
    }
}

// Permutation SGD.

/// The bound 2 T eta L / k needs eta <= 2/beta, which the listing does not ask for and its grid does not keep: with 3/beta each
/// update doubles the distance.
#[test]
fn psgd_long_steps_break_the_bound() {
    let (rows, batch, passes) = (2000, 50, 1);
    let excess = |step: f64| {
        let found = distance(rows, 0, |centres| permutation_sgd(centres, batch, passes, 0.0, false, |_, _| step));
        found / psgd_sensitivity_constant(passes as f64, step, 1.0, batch as f64)
    };
    assert!(excess(3.0) > 20.0, "{}", excess(3.0));
    assert!(excess(2.1) > 2.0, "{}", excess(2.1));
    for step in [0.1, 1.0, 1.9, 2.0] {
        assert!(excess(step) <= 1.0 + 1e-9, "{step}: {}", excess(step));
    }
    // The grid of the thesis: steps and clipping bounds that do not go together. Logistic beta L^2/4, Huber machine 5 L^2.
    let broken = |beta: f64| {
        let pairs = [0.1, 1.0, 10.0, 100.0].into_iter().flat_map(|bound: f64| [0.001, 0.01, 0.1, 1.0].map(|step| (bound, step)));
        pairs.filter(|(bound, step)| *step > 2.0 / (beta * bound * bound)).count()
    };
    assert_eq!((broken(0.25), broken(5.0)), (6, 8));
}

/// The released code divides the last, short batch by its true size: 36176 mod 50 = 26 records, for which the sensitivity is
/// 50/26 of the printed one. Divided by 50 it is within the bound.
#[test]
fn psgd_short_last_batch_breaks_the_bound() {
    let rows = ADULT as usize;
    let excess = |true_size: bool| {
        let found = distance(rows, rows - 1, |centres| permutation_sgd(centres, 50, 1, 0.0, true_size, |_, _| 0.1));
        found / psgd_sensitivity_constant(1.0, 0.1, 1.0, 50.0)
    };
    assert_eq!(rows % 50, 26);
    assert_near("divided by its size", excess(true), 50.0 / 26.0, 1e-6);
    assert_near("divided by 50", excess(false), 1.0, 1e-6);
}

/// The strongly convex variant takes the index of the pass for the counter of its step. Steps stay large to the end, and the last
/// batch is hardly contracted: 3.1 and 29 times the printed sensitivity. With the counter of updates the bound holds.
#[test]
fn scpsgd_pass_index_breaks_the_bound() {
    let (rows, batch, smoothness) = (ADULT as usize, 50, 0.25);
    // Records with no curvature of their own are the worst: only the ridge contracts.
    let run = |passes: u64, ridge: f64, place: usize, global: bool| {
        let step = |pass, update| {
            if global { scpsgd_step_global(update, smoothness, ridge) } else { scpsgd_step_printed(pass, smoothness, ridge) }
        };
        // The distance of the two runs; what the other records pull is the same for both.
        let (mut apart, mut update) = (0.0, 0);
        for pass in 1..=passes {
            for start in (0..rows).step_by(batch) {
                update += 1;
                let hit = place >= start && place < start + batch;
                let eta = step(pass, update);
                apart = apart * (1.0 - eta * ridge) + if hit { 2.0 * eta / batch as f64 } else { 0.0 };
            }
        }
        apart / scpsgd_sensitivity(1.0, ridge, rows as f64)
    };
    for (passes, ridge, excess) in [(200, 1e-3, 3.06), (10, 1e-2, 28.9)] {
        assert_near("pass index", run(passes, ridge, rows - 1, false), excess, 0.01);
        // The listing runs one pass less than it pays for; that does not help.
        assert_near("pass index, one pass less", run(passes - 1, ridge, rows - 1, false), excess, 0.01);
        for place in [0, rows / 2, rows - 1] {
            let found = run(passes, ridge, place, true);
            assert!(found <= 1.0 + 1e-9 && found > 0.5, "{passes} {place}: {found}");
        }
    }
}

// Minibatch SGD.

/// The noise of minibatch SGD is the small-epsilon limit of a moments bound without its conditions. True epsilons, for Poisson
/// batches and the easier neighbours (one record or none).
#[test]
fn sgd_spends_many_times_its_claim() {
    let table = [
        (ADULT, 50.0, 100, 0.1, 1.0, 2.53, 0.0306),
        (KDD, 50.0, 100, 0.1, 1.0, 1.67, 0.0369),
        (ADULT, 50.0, 1000, 1.0, 1.0, 0.801, 1.68),
        (ADULT, 50.0, 100, 1.0, 1.0, 0.253, 35.77),
        (KDD, 50.0, 100, 0.1f64.sqrt(), 1.0, 0.528, 5.289),
        (KDD, 50.0, 1000, 1.0, 1.0, 0.528, 6.132),
        (KDD, 50.0, 100, 1.0, 1.0, 0.167, 88.9),
        (SYNTHETIC, 50.0, 1000, 10.0, 1.0, 0.335, 48.96),
        // Seven classes, each with a seventh of epsilon and delta.
        (464_809.0, 50.0, 1000, 1.0, 7.0, 0.504, 5.833),
        (464_809.0, 50.0, 100, 1.0, 7.0, 0.160, 81.4),
    ];
    for (rows, batch, steps, at, classes, noise, truth) in table {
        let target = 1.0 / (rows * rows * classes);
        let found = sgd_sigma(1.0, steps as f64, rows, at / classes, target) * batch;
        assert_near("noise over the bound of a record", found, noise, 5e-3);
        let event = gaussian(found).sampled(batch / rows).repeated(steps);
        let bound = LossDistributionAccountant.epsilon(&event, Adjacency::ZeroOut, target).unwrap();
        assert!(bound.lower > 0.997 * truth && bound.upper < 1.003 * truth, "{rows} {steps} {at}: {bound:?}");
    }
}

/// One single step of the same already spends more than the whole claim: a lower bound in closed form.
#[test]
fn sgd_spends_its_claim_in_one_step() {
    let table = [
        (464_809.0, 50.0, 1000, 1.0, 7.0, 3.675),
        (464_809.0, 50.0, 100, 1.0, 7.0, 45.51),
        (3.2e6, 50.0, 1000, 0.1, 1.0, 83.51),
        (14.4e6, 300.0, 5000, 0.1, 1.0, 11.47),
    ];
    for (rows, batch, steps, at, classes, truth) in table {
        let (target, rate): (f64, f64) = (1.0 / (rows * rows * classes), batch / rows);
        let noise = sgd_sigma(1.0, f64::from(steps), rows, at / classes, target) * batch;
        // delta(e) = rate delta_Gauss(ln(1 + (e^e - 1)/rate)).
        let step = |e: f64| rate * gaussian_delta(noise, e + ((1.0 - (1.0 - rate) * (-e).exp()) / rate).ln()).lower;
        let found = edge(0.01, 200.0, |e| step(e) <= target);
        assert_near("epsilon of one step", found, truth, 1e-3);
        assert!(found > 20.0 * at / classes);
    }
}

// Frank-Wolfe.

/// Printed noise overshoots by epsilon / (4 ln(1/delta)) in the usual composition: 0.1, 1.2 and 12 percent. Composed exactly it
/// keeps the claim up to epsilon 1, and misses it by a percent at 10 with many steps.
#[test]
fn frank_wolfe_overshoots() {
    let target = 1.0 / (ADULT * ADULT);
    for (at, overshoot, exact) in [(0.1, 0.0012, 0.0773), (1.0, 0.0119, 0.8468), (10.0, 0.119, 10.0666)] {
        let steps = 1000;
        let scale = frank_wolfe_scale(1.0, 1.0, steps as f64, ADULT, at, target);
        // Scores move by 2 L c / m under replace-one; the minimum of noisy scores costs twice that over the scale.
        let each = 2.0 * (2.0 / ADULT) / scale;
        let simple = simple_epsilon(0.5 * steps as f64 * each * each, target);
        assert_near("overshoot", simple / at - 1.0, overshoot, 0.02);
        let composed = epsilon_of(&Event::pure(each).repeated(steps), Adjacency::ZeroOut, target);
        assert_near("composed exactly", composed, exact, 1e-3);
    }
}

/// "Clipping each dimension to min(x, L)" bounds nothing from below.
#[test]
fn frank_wolfe_clipping_is_one_sided() {
    let (bound, rows) = (1.0, 1000.0);
    // Gradient of the logistic loss at 0 for a row with one coordinate, averaged; replacing the row by a null one moves it by
    // this.
    let moved = |x: f64| 0.5 * x.abs() / rows;
    assert_eq!([0.3, 7.0].map(|x| frank_wolfe_clip(x, bound)), [0.3, 1.0]);
    assert!(moved(frank_wolfe_clip(1e9, bound)) <= bound / rows);
    assert!(moved(frank_wolfe_clip(-1e9, bound)) > 1e8 * bound / rows);
    assert!(moved((-1e9f64).max(-bound).min(bound)) <= bound / rows);
}

/// The released code has half of the printed noise, and takes gradients on 1000 rows while its noise is made for all of them.
#[test]
fn frank_wolfe_code_has_half_of_the_noise_and_small_batches() {
    let target = 1.0 / (ADULT * ADULT);
    for (at, steps, batch_cost) in [(0.1, 5u64, 0.499), (1.0, 5, 4.99), (10.0, 1000, 3.53)] {
        let printed = frank_wolfe_scale(1.0, 1.0, steps as f64, ADULT, at, target);
        let released = frank_wolfe_scale_released(1.0, 1.0, steps as f64, ADULT, at, target);
        assert_near("noise", released / printed, 0.5, 1e-12);
        // Epsilon of one step on its batch: amplification by sampling needs it to be far below 1.
        let each = 2.0 * (2.0 / 1000.0) / released;
        assert_near("one step on its batch", each, batch_cost, 2e-3);
    }
    // The halved noise by itself: 1000 full-batch steps at claimed 10.
    let scale = frank_wolfe_scale_released(1.0, 1.0, 1000.0, ADULT, 10.0, target);
    let event = Event::pure(2.0 * (2.0 / ADULT) / scale).repeated(1000);
    assert!(epsilon_of(&event, Adjacency::ZeroOut, target) > 20.0);
}

// Gradient descent with output noise, and random rounds.

/// Distance of gradient descent on neighbours: random logistic problems in three dimensions, one record replaced.
fn logistic_distance(dice: &mut Dice, rows: usize, ridge: f64, step: f64, steps: usize) -> f64 {
    let row = |dice: &mut Dice| {
        let v = [dice.normal(), dice.normal(), dice.normal()];
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.map(|x| x / norm)
    };
    let mut data: Vec<[f64; 3]> = (0..rows).map(|_| row(dice)).collect();
    let run = |data: &[[f64; 3]]| {
        let mut w = [0.0; 3];
        for _ in 0..steps {
            let mut gradient = w.map(|x| ridge * x);
            for x in data {
                let score: f64 = x.iter().zip(w).map(|(a, b)| a * b).sum();
                let pull = -1.0 / (1.0 + score.exp()) / rows as f64;
                gradient.iter_mut().zip(x).for_each(|(g, x)| *g += pull * x);
            }
            w.iter_mut().zip(gradient).for_each(|(w, g)| *w -= step * g);
        }
        w
    };
    let before = run(&data);
    data[0] = row(dice);
    before.iter().zip(run(&data)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// Lemma 2 of the paper, 3 L T eta / n, is loose: the truth is 2 L T eta / n, for steps up to 2/beta, and is attained.
#[test]
fn gd_convex_sensitivity_is_loose() {
    let mut dice = Dice(4);
    for round in 0..200 {
        let (rows, steps) = (2 + round % 7, 1 + round);
        let step = 8.0 * dice.uniform();
        let bound = gd_sensitivity_convex(1.0, steps as f64, step, rows as f64);
        let found = logistic_distance(&mut dice, rows, 0.0, step, steps);
        assert!(found <= bound * 2.0 / 3.0 * (1.0 + 1e-9), "{rows} {steps} {step}: {found} {bound}");
    }
    let (rows, steps, step) = (8.0, 40, 1.0);
    let linear = |centre: f64| descend(&[Records { count: 1.0, centre }], rows, 0.0, step, 0.0, steps)[steps - 1];
    let found = (linear(FAR) - linear(-FAR)).abs();
    assert_near(
        "attained, over the printed bound",
        found / gd_sensitivity_convex(1.0, steps as f64, step, rows),
        2.0 / 3.0,
        1e-9,
    );
}

/// Lemma 3 of the paper, 5 L (mu + beta) / (n mu beta), is loose: 2 L / (n mu), attained. With the Gaussian form on top, 3.8
/// times the noise that is needed and more.
#[test]
fn gd_strongly_convex_sensitivity_is_loose() {
    let mut dice = Dice(5);
    for round in 0..200 {
        let (rows, steps) = (2 + round % 7, 1 + 2 * round);
        let ridge = 0.01 + dice.uniform();
        let step = dice.uniform() * 2.0 / (2.0 * ridge + 0.25);
        let found = logistic_distance(&mut dice, rows, ridge, step, steps);
        let tight = 2.0 / (rows as f64 * ridge) * (1.0 - (1.0 - step * ridge).powi(steps as i32));
        assert!(found <= tight * (1.0 + 1e-9), "{rows} {steps} {step}: {found} {tight}");
    }
    let (rows, ridge, smoothness) = (8.0, 0.05, 1.0);
    let run = |centre: f64| {
        let step = 1.0 / (ridge + smoothness);
        descend(&[Records { count: 1.0, centre }], rows, ridge, step, 0.0, 400)[399]
    };
    let found = (run(FAR) - run(-FAR)).abs();
    assert!(found >= 0.95 * 2.0 / (rows * ridge));
    let printed = gd_sensitivity_strong(1.0, ridge, smoothness + ridge, rows);
    assert_near("printed over it", printed / found, 2.5 * (1.0 + ridge / (smoothness + ridge)), 1e-6);
    // The Gaussian form on top; the factor is 3.8 for a small ridge.
    let noise = gd_sigma(printed, 1.0, 1e-3) / (2.0 / (rows * ridge) * analytic(1.0, 1e-3));
    assert_near("noise over what is needed", noise, 3.966, 1e-3);
}

/// The strongly convex theorem wants a Lipschitz constant that a strongly convex loss cannot have, and a known radius of every
/// dataset's minimiser. Neither is needed: the ridge is the same for neighbours and cancels.
#[test]
fn gd_strongly_convex_loss_is_not_lipschitz() {
    let (rows, ridge, step) = (10.0, 0.01, 0.5);
    let gradient = |w: f64| slope(w, 0.0) + ridge * w;
    assert!(gradient(1e6) > 1e4, "beyond any constant, given a point");
    // Minimisers sit anywhere up to L/mu = 100: a radius of 1 is met by one dataset and broken by another.
    let minimiser = |centre: f64| *descend(&[Records { count: rows, centre }], rows, ridge, step, 0.0, 5000).last().unwrap();
    assert!(minimiser(0.5).abs() < 1.0 && minimiser(FAR) > 99.0);
    // From a start far outside of every ball, neighbours stay within 2 L / (n mu) for L of the data loss alone.
    let run = |centre: f64| {
        descend(&[Records { count: rows - 1.0, centre: FAR }, Records { count: 1.0, centre }], rows, ridge, step, 1e5, 5000)
    };
    let furthest = run(FAR).iter().zip(run(-FAR)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(furthest <= 2.0 / (rows * ridge) * (1.0 + 1e-9), "{furthest}");
    assert!(furthest > 0.95 * 2.0 / (rows * ridge), "{furthest}");
}

/// The proof for random rounds claims a loss of at most 0.128 in a step, but for delta/2n; the quantile is 0.472 (n = 30000,
/// delta 1e-3, epsilon 1). Its composition also leaves out a term.
#[test]
fn rrpsgd_step_claim_is_false() {
    let (rows, at, target): (f64, f64, f64) = (30_000.0, 1.0, 1e-3);
    let claimed = at / (2.0 * (2.0 * (2.0 / target).ln()).sqrt());
    assert_near("claimed", claimed, 0.128, 2e-3);
    let quantile = |sensitivity: f64| {
        let mu = sensitivity / rrpsgd_sigma(1.0, rows, at, target);
        // The loss is N(mu^2/2, mu^2).
        edge(0.0, 2.0, |loss| upper(loss / mu - mu / 2.0) <= target / (2.0 * rows))
    };
    assert_near("a replaced record", quantile(2.0), 0.472, 3e-3);
    assert_near("factor", quantile(2.0) / claimed, 3.68, 5e-3);
    assert_near("a record or none", quantile(1.0) / claimed, 1.83, 5e-3);
    // After amplification by 2/n the leading term of n^2 steps is all of epsilon; the second one is dropped.
    let each = 2.0 * claimed / rows;
    assert_near("leading term", (2.0 * rows * rows * (2.0 / target).ln()).sqrt() * each, at, 1e-9);
    assert_near("dropped", rows * rows * each * each.exp_m1(), 0.0658, 1e-2);
}

/// The theorem holds all the same, with room: n^2 steps of one record each cost 0.169 where 1 is claimed. A single draw is a
/// sample of fixed size, whose neighbours differ by 2 L also under zero-out; only Poisson draws would give 0.068 there.
#[test]
fn rrpsgd_conclusion_holds_with_room() {
    let (rows, at, target): (u64, f64, f64) = (30_000, 1.0, 1e-3);
    let noise = Event::gaussian(rrpsgd_sigma(1.0, rows as f64, at, target));
    let single = Event::FixedSize { batch: 1, rows, event: Box::new(noise.clone()) }.repeated(rows * rows);
    let poisson = noise.sampled(1.0 / rows as f64).repeated(rows * rows);
    let bound = |event: &Event, adjacency| LossDistributionAccountant.epsilon(event, adjacency, target).unwrap();
    for adjacency in [Adjacency::ReplaceOne, Adjacency::ZeroOut] {
        let found = bound(&single, adjacency);
        assert!(found.upper > 0.165 && found.upper < 0.172, "{adjacency}: {found:?}");
    }
    assert_near("Poisson, zero-out", bound(&poisson, Adjacency::ZeroOut).upper, 0.0685, 0.01);
    assert_near("Poisson, replace-one", bound(&poisson, Adjacency::ReplaceOne).upper, 0.1622, 0.01);
}

// Lecture notes.

/// Lemma 1 of the notes: 2 n / lambda for the minimiser of a sum. It is 2 / lambda, attained by two linear losses; n times less.
#[test]
fn notes_output_sensitivity_is_too_large_by_the_rows() {
    let (rows, ridge) = (1000.0, 5.0);
    let minimiser = |centre: f64| {
        let others = Records { count: rows - 1.0, centre: FAR };
        *descend(&[others, Records { count: 1.0, centre }], 1.0, ridge, 0.1, 0.0, 400).last().unwrap()
    };
    let found = (minimiser(FAR) - minimiser(-FAR)).abs();
    assert_near("distance", found, 2.0 / ridge, 1e-6);
    assert_near("printed over it", notes_output_sensitivity(rows, ridge) / found, rows, 1e-6);
    // Noise that the notes call sufficient buys far more than it claims.
    let noise = notes_output_sigma(rows, ridge, 1.0, 1e-5) / (2.0 / ridge);
    assert!(epsilon_of(&gaussian(noise), Adjacency::ZeroOut, 1e-5) < 0.01);
}

/// Algorithm 3 of the notes: the sketch of the proof does not add up, the claim is true by a wide margin (n = 30000, delta 1e-5):
/// 0.067 at claimed 1 for single draws, 0.031 for Poisson draws under zero-out.
#[test]
fn notes_sgd_sketch_does_not_add_up_and_the_claim_holds() {
    let (rows, at, target): (u64, f64, f64) = (30_000, 1.0, 1e-5);
    let n = rows as f64;
    // A failure of delta/2 in each of n^2 steps is not delta.
    assert!(n * n * target / 2.0 > 1000.0);
    // n^2 steps of epsilon / (n sqrt(ln(1/delta))): advanced composition gives sqrt 2 times epsilon before its second term.
    let each = at / (n * (1.0 / target).ln().sqrt());
    assert_near("left over", (2.0 * n * n * (1.0 / target).ln()).sqrt() * each / at, 2f64.sqrt(), 1e-9);
    let noise = Event::gaussian(notes_sgd_sigma(1.0, n, at, target) / n);
    let single = Event::FixedSize { batch: 1, rows, event: Box::new(noise.clone()) }.repeated(rows * rows);
    let poisson = noise.sampled(1.0 / n).repeated(rows * rows);
    let bound = |event: &Event, adjacency| LossDistributionAccountant.epsilon(event, adjacency, target).unwrap().upper;
    assert_near("single draws", bound(&single, Adjacency::ReplaceOne), 0.0670, 0.01);
    assert_near("Poisson, zero-out", bound(&poisson, Adjacency::ZeroOut), 0.0308, 0.01);
    // In the limit of small rates n^2 steps are one Gaussian with a sensitivity of 2 n L.
    let needed = 2.0 * n * analytic(at, target);
    assert_near("noise over what is needed", notes_sgd_sigma(1.0, n, at, target) / needed, 12.0, 0.01);
}

// Numbers of rows that are not true, and steps that are too long.

/// Gradient descent divided by a declared number of rows N below the true n: the smoothness is (n/N) beta and 2/beta is too long
/// a step. With 1000 rows around the start and one more record: 60, 77 and 140 times the claimed sensitivity; exactly it at N =
/// n.
#[test]
fn gd_with_too_few_declared_rows_breaks_the_bound() {
    let worst = |declared: f64, step: f64| {
        let path =
            descend(&[Records { count: 1000.0, centre: 0.0 }, Records { count: 1.0, centre: FAR }], declared, 0.0, step, 0.0, 50);
        // Without the record nothing moves. The claim under zero-out is L eta T / N.
        path.iter().enumerate().map(|(t, w)| w.abs() / (step * (t + 1) as f64 / declared)).fold(0.0, f64::max)
    };
    for (declared, step, excess) in [(500.0, 1.5, 60.0), (250.0, 1.0, 77.0), (250.0, 2.0, 140.0)] {
        assert_near("distance over the claim", worst(declared, step), excess, 0.02);
    }
    for step in [0.5, 1.0, 1.5, 2.0] {
        assert_near("true number", worst(1001.0, step), 1.0, 1e-9);
    }
}

/// The decreasing steps and the strongly convex ones have the true number of updates in their sensitivity: a declared number of
/// rows above the true one understates it.
#[test]
fn psgd_with_too_many_declared_rows_breaks_the_bound() {
    let (rows, batch, passes, ridge) = (1000, 10, 5, 0.05);
    // Linear records: nothing but the ridge contracts.
    let run = |place: usize, ridge: f64, step: &dyn Fn(u64, u64) -> f64| {
        let pair = |last: f64| {
            let mut centres = vec![FAR; rows];
            centres[place] = last;
            permutation_sgd(&centres, batch, passes, ridge, false, step)
        };
        (pair(FAR) - pair(-FAR)).abs()
    };
    let strong = run(rows - 1, ridge, &|_, update| scpsgd_step_global(update, 1.0 + ridge, ridge));
    assert!(strong <= scpsgd_sensitivity(1.0, ridge, rows as f64) * (1.0 + 1e-9));
    assert_near("twice the rows", strong / scpsgd_sensitivity(1.0, ridge, 2.0 * rows as f64), 2.0, 0.01);
    let n = rows as f64;
    let decreasing = run(0, 0.0, &|_, update| psgd_step_decreasing(update as f64, 1.0, n, 0.5));
    assert_near("decreasing", decreasing, psgd_sensitivity_decreasing(passes, 1.0, 1.0, n, batch as f64, 0.5), 1e-6);
    assert!(decreasing > 1.3 * psgd_sensitivity_decreasing(passes, 1.0, 1.0, 2.0 * n, batch as f64, 0.5));
    let root = run(0, 0.0, &|_, update| psgd_step_square_root(update as f64, 1.0, n, 0.5));
    assert_near("square root", root, psgd_sensitivity_square_root(passes, 1.0, 1.0, n, batch as f64, 0.5), 1e-6);
    assert!(root > 1.2 * psgd_sensitivity_square_root(passes, 1.0, 1.0, 2.0 * n, batch as f64, 0.5));
}

/// A fixed-size sample out of fewer rows than declared is a larger share of them.
#[test]
fn fixed_size_sample_of_too_many_declared_rows_costs_more() {
    let cost = |rows: u64| {
        let event = Event::FixedSize { batch: 50, rows, event: Box::new(Event::gaussian(4.0)) }.repeated(1000);
        LossDistributionAccountant.epsilon(&event, Adjacency::ReplaceOne, 1e-6).unwrap()
    };
    let (declared, truth) = (cost(20_000), cost(10_000));
    assert!(truth.lower > 1.9 * declared.lower && truth.upper > 1.9 * declared.upper, "{truth:?} {declared:?}");
}

/// Strongly convex descent needs steps of at most 2/(2 mu + beta) with beta that of a record's loss. With 2/(mu + beta), the form
/// for a regularised beta, runs swing without contracting, and a record adds up: more than 25 times the claimed sensitivity.
#[test]
fn strongly_convex_step_needs_the_regularised_smoothness() {
    let (rows, ridge, smoothness) = (1000.0, 0.05, 1.0);
    let worst = |step: f64, start: f64, centre: f64| {
        let run = |count: f64| {
            let others = Records { count: rows - 1.0, centre: 0.0 };
            descend(&[others, Records { count, centre }], rows, ridge, step, start, 1000)
        };
        let claimed = |t: usize| (1.0 - (1.0 - step * ridge).powi(t as i32 + 1)) / (rows * ridge);
        run(1.0).iter().zip(run(0.0)).enumerate().map(|(t, (a, b))| (a - b).abs() / claimed(t)).fold(0.0, f64::max)
    };
    let long = worst(2.0 / (ridge + smoothness), 1.0, 0.0);
    assert!(long > 25.0, "{long}");
    let mut most: f64 = 0.0;
    for start in [0.0, 0.3, 1.0, 3.0] {
        for centre in [0.0, 0.2, -1.0, 2.0, FAR] {
            most = most.max(worst(2.0 / (2.0 * ridge + smoothness), start, centre));
        }
    }
    assert!(most <= 1.0 + 1e-9 && most > 0.9, "{most}");
}

/// Permutation SGD with steps min(1/beta, 1/(xi t)): there a record's beta does no harm, whatever xi is, since both runs are
/// equal before the first update and the step is 1/(xi t) with t >= 2 wherever 1/beta would be too long. Worst case over
/// curvatures.
#[test]
fn scpsgd_steps_are_safe_with_the_smoothness_of_a_record() {
    for ridge in [0.05, 0.3, 0.5, 0.6, 0.9, 1.0, 1.5, 4.0] {
        let (batches, passes, batch) = (7u64, 6u64, 5.0);
        for place in 0..batches {
            let mut apart = 0.0;
            for update in 1..=batches * passes {
                let step = scpsgd_step_global(update, 1.0, ridge);
                // The common part of the step has some curvature from xi to xi + beta.
                let factor = (1.0 - step * ridge).abs().max((1.0 - step * (ridge + 1.0)).abs());
                apart = apart * factor + if (update - 1) % batches == place { 2.0 * step / batch } else { 0.0 };
            }
            let bound = scpsgd_sensitivity(1.0, ridge, batches as f64 * batch);
            assert!(apart <= bound * (1.0 + 1e-9), "{ridge} {place}: {}", apart / bound);
        }
    }
}

// Objective perturbation of 2012.

/// The pure variant under replace-one: density ratio e^epsilon (1 + epsilon/2), attained by a Huber record at the edge of its
/// bend against a linear one. 1.405 at claimed 1; under zero-out it keeps the claim.
#[test]
fn kst12_pure_is_for_zero_out() {
    for at in [0.1, 1.0, 4.0f64] {
        let (rate, ridge) = (kst12_pure_rate(at, 1.0), kst12(at, 1e-6, 1.0, 1.0).ridge);
        // Log density of the minimiser at w: noise is -(ridge w + slope), and the change of variables gives the curvature.
        let log_density = |w: f64, slope: f64, curvature: f64| (ridge + curvature).ln() - rate * (ridge * w + slope).abs();
        let w = 10.0 / ridge;
        let bent = slope(w, w + 1.0 - 1e-9);
        let replaced = log_density(w, bent, 1.0) - log_density(w, 1.0, 0.0);
        assert_near("replaced", replaced, at + (at / 2.0).ln_1p(), 1e-6);
        let without = log_density(w, bent, 1.0) - log_density(w, 0.0, 0.0);
        assert_near("or none", without, at / 2.0 + (at / 2.0).ln_1p(), 1e-6);
        assert!(without <= at);
    }
    let cost = 1.0 + 0.5f64.ln_1p();
    assert_near("epsilon at claimed 1", cost, 1.405, 1e-3);
}

/// Delta of the Gaussian variant at its own epsilon, for a Huber record around `centre` against a linear one. One dimension,
/// exact up to the midpoint rule.
fn kst12_pair(at: f64, target: f64, centre: f64, linear: f64) -> f64 {
    let Kst12 { ridge, sigma } = kst12(at, target, 1.0, 1.0);
    let bent = |w: f64| {
        let curvature = if (w - centre).abs() < 1.0 { 1.0 } else { 0.0 };
        (ridge + curvature) * density((ridge * w + slope(w, centre)) / sigma) / sigma
    };
    let straight = |w: f64| ridge * density((ridge * w + linear) / sigma) / sigma;
    let far = 12.0 * sigma / ridge;
    let excess = |w: f64| (bent(w) - at.exp() * straight(w)).max(0.0);
    // The bend by itself: it is narrow.
    integral(centre - 1.0, centre + 1.0, excess) + integral(-far, centre - 1.0, excess) + integral(centre + 1.0, far, excess)
}

/// The Gaussian variant under replace-one: our bound is 8.8e-4 at claimed (1, 1e-5), and a pair in one dimension breaks the claim
/// 17 times at (1, 1e-8). Under zero-out the claim is kept.
#[test]
fn kst12_gaussian_is_for_zero_out() {
    let bound = |at: f64, target: f64, adjacency| {
        let Kst12 { ridge, sigma } = kst12(at, target, 1.0, 1.0);
        let event = Event::ObjectivePerturbation(Objective {
            noise_multiplier: sigma,
            replace_factor: 2.0,
            degrees: 1,
            log_determinant: (1.0 / ridge).ln_1p(),
            output_noise_multiplier: f64::INFINITY,
            grid_sigma: 0,
            dimension: 1,
        });
        delta(&event, adjacency, at).unwrap().bound.upper
    };
    assert_near("bound", bound(1.0, 1e-5, Adjacency::ReplaceOne), 8.83e-4, 5e-3);
    for (at, target, found) in [(1.0, 1e-8, 1.7e-7), (0.1, 1e-8, 9.3e-8), (4.0, 1e-8, 3.2e-8)] {
        let Kst12 { ridge, sigma } = kst12(at, target, 1.0, 1.0);
        let search = (0..200).map(|i| kst12_pair(at, target, 8.0 * sigma / ridge * f64::from(i) / 200.0, 1.0));
        let most = search.fold(0.0, f64::max);
        assert_near("the pair", most, found, 0.05);
        assert!(most <= bound(at, target, Adjacency::ReplaceOne));
        assert!(bound(at, target, Adjacency::ZeroOut) < target);
    }
}

// The released code.

/// Noise comes from a generator that is seeded with one byte. Everybody can try all 256, and does not have to guess: no output of
/// one dataset is an output of the other.
#[test]
fn one_byte_of_seed_is_enumerated() {
    let sigma = analytic(1.0, 1e-6);
    let release = |value: f64, seed: u8| {
        let mut dice = Dice(u64::from(seed));
        [0.0; 3].map(|_: f64| value + sigma * dice.normal())
    };
    let names = |output: [f64; 3], value: f64| (0..=255).any(|seed| release(value, seed) == output);
    let caught = (0..=255).filter(|seed| names(release(1.0, *seed), 1.0) && !names(release(1.0, *seed), 0.0)).count();
    assert_eq!(caught, 256, "claimed epsilon is 1");
}

/// A solver that fails for some noise, and is run again with new noise: the released code's answer to slow convergence. Where the
/// noise is accepted only within a standard deviation, neighbours have outputs that the other cannot have: delta is 9 percent,
/// not 1e-6.
#[test]
fn redrawn_noise_has_gaps() {
    let (at, target) = (1.0, 1e-6);
    let sigma = analytic(at, target);
    let inside = 1.0 - 2.0 * upper(1.0);
    // Outputs of one dataset (mean 0) beyond the range of the other (mean 1), both clipped at one standard deviation.
    let gap = (upper(1.0 - 1.0 / sigma) - upper(1.0)) / inside;
    assert_near("outputs that give it away", gap, 0.094, 0.01);
    assert!(gap > 1e4 * target);
    let mut dice = Dice(6);
    let mut draw = || {
        loop {
            let noise = dice.normal();
            if noise.abs() <= 1.0 {
                return sigma * noise;
            }
        }
    };
    let impossible = (0..20_000).filter(|_| draw() < 1.0 - sigma).count() as f64 / 20_000.0;
    assert_near("simulated", impossible, gap, 0.08);
}

// The constants themselves.

/// Printed values at reference points, so that nobody repairs them by mistake.
#[test]
fn printed_constants() {
    for (target, at, classical, two, thesis) in [
        (1e-3, 0.1, 37.7648, 38.9895, 47.1692),
        (1e-5, 1.0, 4.8448, 4.9409, 5.7985),
        (1e-6, 10.0, 0.5299, 0.5387, 0.6257),
        (1e-9, 10.0, 0.6472, 0.6545, 0.7438),
    ] {
        assert_near("1.25", gaussian_classical(at, target), classical, 1e-4);
        assert_near("2", gaussian_two(at, target), two, 1e-4);
        assert_near("thesis", gaussian_thesis(at, target), thesis, 1e-4);
    }
    // The split: at a small epsilon the curve, at a large one the limit of step 1, in high dimension 0.97.
    let fraction = |at, regime| {
        let split = amp_split(at, 1e-6, 1000.0, regime);
        split.epsilon3 / split.epsilon1
    };
    assert_near("0.1", fraction(0.1, Regime::Low), 0.932, 1e-3);
    assert_near("0.001", fraction(0.001, Regime::Low), 0.99, 1e-12);
    assert_near("10", fraction(10.0, Regime::Low), 0.9, 1e-12);
    assert_near("100", fraction(100.0, Regime::High), 0.99, 1e-12);
    assert_near("high", fraction(1.0, Regime::High), 0.97, 1e-12);
    let printed = amp_without_settings(1.0, 1e-6, 1000.0, 0.25, Regime::High);
    assert_near("ridge", printed.ridge, 0.5 / (0.03 * 0.99), 1e-9);
    assert_near("noise", printed.linear_sigma, 2.0 * (1.0 + (2.0 * (1.0 / 0.99e-6f64).ln()).sqrt()) / (0.97 * 0.99), 1e-9);
    assert_near("output", printed.output_sigma, 1e-3 / printed.ridge * (1.0 + (2.0 * 1e8f64.ln()).sqrt()) / 0.01, 1e-9);
    let perturbed = kst12(0.5, 1e-8, 2.0, 3.0);
    assert_near("ridge of 2012", perturbed.ridge, 12.0, 1e-12);
    assert_near("variance of 2012", perturbed.sigma.powi(2), 4.0 * (8.0 * 2e8f64.ln() + 2.0) / 0.25, 1e-12);
    assert_near(
        "variance of permutation SGD",
        psgd_sigma(psgd_sensitivity_constant(10.0, 0.1, 2.0, 50.0), 0.5, 1e-4).powi(2),
        8.0 * 100.0 * 4.0 * 0.01 * 2e4f64.ln() / (2500.0 * 0.25),
        1e-12,
    );
    assert_near(
        "its strongly convex variant",
        scpsgd_sigma(2.0, 0.1, 100.0, 0.5, 1e-4).powi(2),
        8.0 * 4.0 * 2e4f64.ln() / (0.01 * 1e4 * 0.25),
        1e-12,
    );
    let enough = cms11(1.0, 1000.0, 0.25, 0.01);
    assert_near("epsilon'", enough.epsilon, 1.0 - 2.0 * 0.025f64.ln_1p(), 1e-12);
    assert_eq!(enough.extra_ridge, 0.0);
    let little = cms11(0.01, 1000.0, 0.25, 1e-3);
    assert_near("half", little.epsilon, 0.005, 1e-12);
    assert_near("extra ridge", little.extra_ridge, 0.098875, 1e-5);
    // What CMS11 charges for the determinant is twice what it costs.
    assert_near("charged", (1.0 - enough.epsilon) / 0.025f64.ln_1p(), 2.0, 1e-12);
    let facts = GdFacts { rows: 1e4, lipschitz: 1.0, smoothness: 0.25, dimension: 20.0, radius: 1.0, epsilon: 1.0, delta: 1e-3 };
    assert_eq!(gd_steps_convex(&facts), ((2500.0f64 * 2500.0 / (20.0 * 1000f64.ln())).cbrt().ceil()) as u64);
    assert_eq!(gd_steps_convex(&GdFacts { delta: 0.0, ..facts }), 25);
    assert_eq!((gd_steps_strong(&facts, 0.1), gd_steps_strong(&GdFacts { delta: 0.0, ..facts }, 0.1)), (26, 23));
    assert_near("pure noise", gd_pure_scale(0.3, 2.0), 0.15, 1e-12);
    assert_near("Frank-Wolfe step", frank_wolfe_step(3), 0.25, 1e-12);
    let sigma = notes_sgd_sigma(1.0, 100.0, 1.0, 1e-5);
    let moment = notes_sgd_moment(1.0, 100.0, 5.0, sigma);
    assert_near("second moment", moment * moment, 1e4 + 5.0 * 32.0 * 1e4 * 1e7f64.ln() * 1e5f64.ln(), 1e-12);
    assert_near("step of the notes", notes_sgd_step(4, 2.0, moment), 1.0 / moment, 1e-12);
    assert_near("output noise of the notes", notes_output_sigma(1000.0, 5.0, 1.0, 1e-5), 678.6, 1e-4);
    let scale = (4.0 + 80.0 * 9e7f64.ln() * 2e3f64.ln()).sqrt();
    assert_near("random rounds", rrpsgd_step(0.25, 1.0, 1.0, 20.0, 3e4, 1.0, 1e-3), 1.0 / (3e4 * scale), 1e-12);
    let distribution = rrpsgd_distribution(&[1.0, 2.0, 4.0], 0.25);
    [0.2, 12.0 / 35.0, 16.0 / 35.0]
        .iter()
        .zip(distribution)
        .for_each(|(a, b)| assert_near("distribution of rounds", b, *a, 1e-12));
}
