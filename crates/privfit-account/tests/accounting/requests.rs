//! A distribution of requests, each with what is known about its truth by other means.

use crate::big::{Big, around, big, chi_hockey_stick, gaussian, responses, small};
use crate::contour::{self, Mechanism};
use privfit_account::{Adjacency, Event, Objective, Stopping, optimal_epsilon};

/// A small generator of its own: requests are the same on every machine.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Between two numbers, evenly in the logarithm.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.unit() * (high / low).ln()).exp()
    }
    fn count(&mut self, low: f64, high: f64) -> u64 {
        self.between(low, high + 0.999) as u64
    }
    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.word() % list.len() as u64) as usize]
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    Epsilon(f64),
    Delta(f64),
}

/// What is known about delta at any epsilon. None: not by these means.
pub(crate) type Curve = Box<dyn Fn(f64) -> Option<(f64, f64)>>;

pub(crate) struct Case {
    pub(crate) family: &'static str,
    pub(crate) event: Event,
    pub(crate) adjacency: Adjacency,
    pub(crate) question: Question,
    /// The worst case costs at least the first and at most the second.
    pub(crate) truth: Curve,
}

fn exactly(f: impl Fn(f64) -> Big + 'static) -> Curve {
    Box::new(move |e| Some(around(&f(e))))
}

/// A mechanism of this kind costs at least so much; the worst one at most anything.
fn at_least(f: impl Fn(f64) -> Option<f64> + 'static) -> Curve {
    Box::new(move |e| f(e).map(|d| (d, 1.0)))
}

fn mu_of(adjacency: Adjacency, noise: f64, factor: f64) -> Big {
    big(if adjacency == Adjacency::ReplaceOne { factor } else { 1.0 }) / big(noise)
}

fn sampled(rate: f64, event: Event) -> Event {
    Event::Poisson { rate, event: Box::new(event) }
}

/// One step of (1-q) Q + q P against Q, and the other way: closed forms of the base curve.
fn amplified(rate: f64, epsilon: f64, base: impl Fn(&Big) -> Big) -> Big {
    let (q, a) = (big(rate), big(epsilon).exp());
    let forward = &q * base(&((&a - big(1.0)) / &q + big(1.0)).ln());
    let rest = big(1.0) - &a * (big(1.0) - &q);
    if small(&rest) <= 0.0 {
        return forward;
    }
    let backward = &rest * base(&(&a * &q / &rest).ln());
    if forward > backward { forward } else { backward }
}

fn laplace(one: f64, epsilon: &Big) -> Big {
    let gap = (epsilon - big(one)) / big(2.0);
    if small(&gap) >= 0.0 { big(0.0) } else { big(1.0) - gap.exp() }
}

/// The larger direction of a composition along a contour, with a margin for its own error.
fn both_directions(mechanisms: Vec<(Mechanism, u64)>, infinite: f64) -> Curve {
    Box::new(move |e| {
        let (one, other) = (contour::delta(&mechanisms, e, true)?, contour::delta(&mechanisms, e, false)?);
        let value = infinite + (1.0 - infinite) * one.max(other);
        Some((value * (1.0 - 1e-7), value * (1.0 + 1e-7)))
    })
}

/// Tilts that the points of a mixture must cover.
const TILT: f64 = 80.0;

fn question(dice: &mut Dice, scale: f64) -> Question {
    if dice.unit() < 0.6 { Question::Epsilon(dice.between(1e-12, 1e-2)) } else { Question::Delta(dice.between(0.3, 4.0) * scale) }
}

fn adjacency(dice: &mut Dice) -> Adjacency {
    dice.one_of(&Adjacency::ALL)
}

fn repeat(event: Event, count: u64) -> Event {
    if count == 1 { event } else { event.repeated(count) }
}

pub(crate) fn draw(dice: &mut Dice) -> Case {
    let pick = dice.unit();
    let families: [(f64, fn(&mut Dice) -> Case); 13] = [
        (0.16, plain_gaussians),
        (0.36, sampled_gaussians),
        (0.44, one_sampled_gaussian),
        (0.50, laplaces),
        (0.58, pure_and_approximate),
        (0.66, discrete_gaussians),
        (0.72, mixed),
        (0.79, choices),
        (0.84, tiny_and_huge),
        (0.93, one_sampled_pure),
        (0.96, objectives),
        (0.98, concentrated),
        (1.00, selections_and_subsets),
    ];
    families.iter().find(|f| pick < f.0).expect("shares add to one").1(dice)
}

fn plain_gaussians(dice: &mut Dice) -> Case {
    let adjacency = adjacency(dice);
    let parts: Vec<(f64, f64, u64)> = (0..1 + (dice.unit() * 3.0) as usize)
        .map(|_| (dice.between(0.2, 300.0), dice.one_of(&[1.0, 2f64.sqrt(), 2.0]), dice.count(1.0, 1e4)))
        .collect();
    let square = parts.iter().fold(big(0.0), |sum, (noise, factor, count)| {
        let mu = mu_of(adjacency, *noise, *factor);
        sum + &mu * &mu * big(*count as f64)
    });
    let mu = square.sqrt();
    let scale = small(&mu) * (1.0 + small(&mu));
    let event = Event::Compose(
        parts
            .iter()
            .map(|(noise_multiplier, replace_factor, n)| {
                repeat(Event::Gaussian { noise_multiplier: *noise_multiplier, replace_factor: *replace_factor }, *n)
            })
            .collect(),
    );
    Case {
        family: "plain gaussians",
        event,
        adjacency,
        question: question(dice, scale.min(300.0)),
        truth: exactly(move |e| gaussian(&big(e), &mu)),
    }
}

/// Shifts whose cancellation or size is extreme.
fn tiny_and_huge(dice: &mut Dice) -> Case {
    let noise = if dice.unit() < 0.5 { dice.between(1e2, 1e12) } else { dice.between(1e-3, 0.2) };
    let mu = mu_of(Adjacency::ZeroOut, noise, 2.0);
    let at = small(&mu);
    let asked = if dice.unit() < 0.5 {
        Question::Epsilon(dice.between(1e-250, 0.3))
    } else {
        Question::Delta(0.5 * at * at + at * dice.between(1e-3, 30.0))
    };
    Case {
        family: "tiny and huge shifts",
        event: Event::gaussian(noise),
        adjacency: Adjacency::ZeroOut,
        question: asked,
        truth: exactly(move |e| gaussian(&big(e), &mu)),
    }
}

fn sampled_gaussians(dice: &mut Dice) -> Case {
    let adjacency = adjacency(dice);
    let (noise, rate, count) = (dice.between(0.6, 20.0), dice.between(1e-3, 0.3), dice.count(30.0, 2e4));
    let distribution = if adjacency == Adjacency::ReplaceOne {
        Mechanism::mixture(rate, noise, 1.0, -1.0, TILT)
    } else {
        Mechanism::mixture(rate, noise, 1.0, 0.0, TILT)
    };
    let scale = rate * (count as f64 * ((1.0 / (noise * noise)).exp_m1())).sqrt();
    let truth = both_directions(vec![(distribution, count)], 0.0);
    Case {
        family: "sampled gaussians",
        event: repeat(sampled(rate, Event::gaussian(noise)), count),
        adjacency,
        question: question(dice, scale.min(20.0)),
        truth,
    }
}

fn one_sampled_gaussian(dice: &mut Dice) -> Case {
    let adjacency = dice.one_of(&[Adjacency::ZeroOut, Adjacency::AddRemove]);
    let (noise, rate) = (dice.between(0.3, 20.0), dice.between(1e-6, 1.0));
    let scale = (rate * (1.0 / (noise * noise)).min(30.0).exp_m1()).ln_1p();
    let truth = exactly(move |e| amplified(rate, e, |inner| gaussian(inner, &mu_of(Adjacency::ZeroOut, noise, 2.0))));
    Case {
        family: "one sampled gaussian",
        event: sampled(rate, Event::gaussian(noise)),
        adjacency,
        question: question(dice, scale.max(1e-9)),
        truth,
    }
}

fn laplaces(dice: &mut Dice) -> Case {
    let adjacency = adjacency(dice);
    let noise = dice.between(0.1, 100.0);
    let one = if adjacency == Adjacency::ReplaceOne { 2.0 / noise } else { 1.0 / noise };
    let count = if dice.unit() < 0.4 { 1 } else { dice.count(2.0, 3000.0) };
    let scale = (one.min(one * one) * (count as f64).sqrt()).min(100.0);
    if count == 1 {
        let truth = exactly(move |e| laplace(one, &big(e)));
        return Case { family: "laplace", event: Event::laplace(noise), adjacency, question: question(dice, scale), truth };
    }
    // A Gaussian beside them, so that the atoms are smoothed and the contour ends.
    let mu = one * dice.between(0.3, 3.0);
    let truth = both_directions(vec![(Mechanism::Laplace { epsilon: one }, count), (Mechanism::Gaussian { mu }, 1)], 0.0);
    let gaussian = Event::Gaussian { noise_multiplier: 1.0 / mu, replace_factor: 1.0 };
    let event = Event::Compose(vec![repeat(Event::laplace(noise), count), gaussian]);
    Case { family: "laplace", event, adjacency, question: question(dice, scale), truth }
}

fn pure_and_approximate(dice: &mut Dice) -> Case {
    let adjacency = adjacency(dice);
    let (epsilon, count) = (dice.between(1e-3, 2.0), dice.count(1.0, 300.0));
    let delta = if dice.unit() < 0.5 { 0.0 } else { dice.between(1e-16, 1e-9) };
    let replaces = adjacency == Adjacency::ReplaceOne;
    let (one, lost) = if replaces { (2.0 * epsilon, (1.0 + epsilon.exp()) * delta) } else { (epsilon, delta) };
    let event = if delta == 0.0 { Event::pure(epsilon) } else { Event::Approx { epsilon, delta } };
    // The doubling of a delta is rounded.
    let truth: Curve = Box::new(move |e| {
        let (low, high) = around(&responses(one, lost, count, e));
        Some((low * (1.0 - 1e-12), high * (1.0 + 1e-12)))
    });
    let scale = one * (count as f64).sqrt();
    Case {
        family: "pure and approximate",
        event: repeat(event, count),
        adjacency,
        question: question(dice, scale.min(100.0)),
        truth,
    }
}

fn one_sampled_pure(dice: &mut Dice) -> Case {
    let adjacency = dice.one_of(&[Adjacency::ZeroOut, Adjacency::AddRemove]);
    let (epsilon, rate) = (dice.between(1e-2, 8.0), dice.between(1e-5, 0.9));
    let by_laplace = dice.unit() < 0.5;
    let event = if by_laplace { Event::laplace(1.0 / epsilon) } else { Event::pure(epsilon) };
    let one = if by_laplace { 1.0 / (1.0 / epsilon) } else { epsilon };
    let truth = exactly(move |e| {
        amplified(rate, e, |inner| {
            if by_laplace {
                return if small(inner) < -one { big(1.0) - inner.exp() } else { laplace(one, inner) };
            }
            let (keep, a) = (big(one).exp() / (big(1.0) + big(one).exp()), inner.exp());
            let (high, low) = (&keep - &a * (big(1.0) - &keep), big(1.0) - &a);
            let best = if high > low { high } else { low };
            if small(&best) > 0.0 { best } else { big(0.0) }
        })
    });
    let scale = (rate * epsilon.exp_m1()).ln_1p();
    Case { family: "one sampled pure", event: sampled(rate, event), adjacency, question: question(dice, 0.4 * scale), truth }
}

fn discrete_gaussians(dice: &mut Dice) -> Case {
    let adjacency = adjacency(dice);
    let (sigma, sensitivity) = (dice.count(1.0, 40.0), dice.count(1.0, 20.0));
    let (count, dimension) =
        (if sigma <= 8 && sensitivity <= 8 { dice.count(1.0, 2.0) } else { 1 }, if dice.unit() < 0.05 { 7 } else { 1 });
    let shift = (if adjacency == Adjacency::ReplaceOne { 2 * sensitivity } else { sensitivity }) as i64;
    let width = 40 * sigma as i64 + shift;
    let weight = move |x: i64| (-0.5 * (x as f64 / sigma as f64).powi(2)).exp();
    let total: f64 = (-width..=width).map(weight).sum();
    let loss = move |x: i64| (2 * x * shift - shift * shift) as f64 / (2.0 * (sigma * sigma) as f64);
    // Enumeration of all outcomes of one or two releases.
    let once = move |e: f64| -> f64 {
        (-width..=width).filter(|x| loss(*x) > e).map(|x| weight(x - shift) / total * -(e - loss(x)).exp_m1()).sum()
    };
    let value = move |e: f64| {
        if count == 1 { once(e) } else { (-width..=width).map(|x| weight(x - shift) / total * once(e - loss(x))).sum() }
    };
    let truth: Curve = Box::new(move |e| {
        let value = value(e);
        // In several dimensions the shift may be another one.
        Some((
            value * (1.0 - 1e-11),
            if dimension == 1 || (shift == 1 && adjacency != Adjacency::ReplaceOne) { value * (1.0 + 1e-11) } else { 1.0 },
        ))
    });
    let mu = shift as f64 / sigma as f64;
    let event = Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity: 2 * sensitivity, dimension };
    Case {
        family: "discrete gaussians",
        event: repeat(event, count),
        adjacency,
        question: question(dice, (mu + mu * mu).min(100.0)),
        truth,
    }
}

fn mixed(dice: &mut Dice) -> Case {
    let adjacency = dice.one_of(&[Adjacency::ZeroOut, Adjacency::AddRemove]);
    let (noise, laplace, pure) = (dice.between(0.5, 10.0), dice.between(1.0, 50.0), dice.between(1e-2, 0.5));
    let (rate, steps) = (dice.between(1e-3, 0.2), dice.count(10.0, 1000.0));
    let (many, few) = (dice.count(1.0, 20.0), dice.count(1.0, 10.0));
    let delta = if dice.unit() < 0.5 { 0.0 } else { dice.between(1e-16, 1e-13) };
    let last = if delta == 0.0 { Event::pure(pure) } else { Event::Approx { epsilon: pure, delta } };
    let event = Event::Compose(vec![
        Event::gaussian(noise),
        repeat(Event::laplace(laplace), many),
        repeat(sampled(rate, Event::gaussian(1.0)), steps),
        repeat(last, few),
    ]);
    let mechanisms = vec![
        (Mechanism::Gaussian { mu: 1.0 / noise }, 1),
        (Mechanism::Laplace { epsilon: 1.0 / laplace }, many),
        (Mechanism::mixture(rate, 1.0, 1.0, 0.0, TILT), steps),
        (Mechanism::Response { epsilon: pure }, few),
    ];
    let lost = -(few as f64 * (-delta).ln_1p()).exp_m1();
    Case { family: "mixed", event, adjacency, question: question(dice, 1.0), truth: both_directions(mechanisms, lost) }
}

/// Choices of bounded range: with one t for all of them they sensitivity what enumeration says, and zero-concentrated privacy bounds them.
fn choices(dice: &mut Dice) -> Case {
    let adjacency = adjacency(dice);
    let (epsilon, count) = (dice.between(1e-2, 2.0), dice.count(1.0, 300.0));
    let range = if adjacency == Adjacency::ReplaceOne { 2.0 * epsilon } else { epsilon };
    let k = count as f64;
    let reached = move |t: f64, e: f64| -> f64 {
        let keep = (range.exp() - t.exp()) / range.exp_m1();
        let mut log = k * keep.ln();
        let mut sum = 0.0;
        for low in 0..=count {
            let loss = k * t - low as f64 * range;
            if loss <= e {
                break;
            }
            sum += log.exp() * -(e - loss).exp_m1();
            log += ((1.0 - keep) / keep).ln() + ((k - low as f64) / (low as f64 + 1.0)).ln();
        }
        sum
    };
    let truth: Curve = Box::new(move |e| {
        let best = (1..400).map(|i| reached(range * f64::from(i) / 400.0, e)).fold(0.0, f64::max);
        // The largest delta whose conversion does not reach e.
        let (mut low, mut high) = (-300.0f64, 0.0f64);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            if optimal_epsilon(k * range * range / 8.0, 10f64.powf(middle)) > e { low = middle } else { high = middle }
        }
        Some((best * (1.0 - 1e-9), if e >= k * range { 0.0 } else { 10f64.powf(high) * 1.001 }))
    });
    let scale = 0.5 * range * k.sqrt() * (1.0 + 0.25 * range * k.sqrt());
    Case {
        family: "choices",
        event: repeat(Event::Exponential { epsilon, replace_factor: 2.0 }, count),
        adjacency,
        question: question(dice, scale.min(0.3 * k * range)),
        truth,
    }
}

fn objectives(dice: &mut Dice) -> Case {
    let adjacency = adjacency(dice);
    let (noise, degrees, det) = (dice.between(0.01, 100.0), dice.count(1.0, 12.0) as u32, dice.between(1e-3, 3.0));
    let replaces = adjacency == Adjacency::ReplaceOne;
    let (mu, freedom) = if replaces { (2.0 / noise, 2 * degrees) } else { (1.0 / noise, degrees) };
    let event = Event::ObjectivePerturbation(Objective {
        noise_multiplier: noise,
        replace_factor: 2.0,
        degrees,
        log_determinant: det,
        output_noise_multiplier: f64::INFINITY,
        grid_sigma: 0,
        dimension: 1,
    });
    let constant = big(det) + big(mu) * big(mu) / big(2.0);
    // The bound Z is what the event stands for; its curve is the truth from above and below.
    let truth: Curve = Box::new(move |e| Some(around(&chi_hockey_stick(freedom, mu, &(big(e) - &constant)))));
    Case {
        family: "objectives",
        event,
        adjacency,
        question: question(dice, det + mu * mu + mu * f64::from(freedom).sqrt()),
        truth,
    }
}

/// Zero-concentrated privacy beside something else: a Gaussian has it too.
fn concentrated(dice: &mut Dice) -> Case {
    let adjacency = adjacency(dice);
    let (rho, noise) = (dice.between(1e-4, 5.0), dice.between(0.5, 20.0));
    let replaces = adjacency == Adjacency::ReplaceOne;
    let mu = (big(if replaces { 8.0 } else { 2.0 }) * big(rho)).sqrt();
    let square = &mu * &mu + mu_of(adjacency, noise, 2.0) * mu_of(adjacency, noise, 2.0);
    let beside = match (dice.unit() * 3.0) as u32 {
        0 => Event::gaussian(noise),
        1 => Event::Approx { epsilon: 1.0 / noise, delta: 1e-15 },
        _ => sampled(0.01, Event::laplace(noise)),
    };
    let total = if matches!(beside, Event::Gaussian { .. }) { square.sqrt() } else { mu };
    let scale = small(&total) + small(&total).powi(2);
    let event = Event::Compose(vec![Event::ZeroConcentrated { rho }, beside]);
    let truth = at_least(move |e| Some(around(&gaussian(&big(e), &total)).0));
    Case { family: "concentrated", event, adjacency, question: question(dice, scale), truth }
}

fn selections_and_subsets(dice: &mut Dice) -> Case {
    if dice.unit() < 0.5 { subsets(dice) } else { selections(dice) }
}

/// Fixed-size subsets under replace-one: all others at the far end.
fn subsets(dice: &mut Dice) -> Case {
    let (noise, rows) = (dice.between(1.2, 20.0), 10_000);
    let (batch, count) = (dice.count(10.0, 3000.0), if dice.unit() < 0.5 { 1 } else { dice.count(30.0, 1000.0) });
    let rate = batch as f64 / rows as f64;
    let event = Event::FixedSize { batch, rows, event: Box::new(Event::gaussian(noise)) };
    let mechanisms = vec![(Mechanism::mixture(rate, noise, 2.0, 0.0, TILT), count)];
    let composed = both_directions(mechanisms, 0.0);
    let truth: Curve = if count == 1 {
        exactly(move |e| amplified(rate, e, |inner| gaussian(inner, &(big(2.0) / big(noise)))))
    } else {
        at_least(move |e| composed(e).map(|b| b.0))
    };
    let scale = rate * (count as f64 * (4.0 / (noise * noise)).exp_m1()).sqrt();
    Case {
        family: "subsets",
        event: repeat(event, count),
        adjacency: Adjacency::ReplaceOne,
        question: question(dice, scale.min(20.0)),
        truth,
    }
}

/// The best of a random number of runs, each a Gaussian rounded to bins: the winner's distribution by its generating function.
fn selections(dice: &mut Dice) -> Case {
    let mu = dice.between(0.02, 1.0);
    let most = dice.count(2.0, 60.0);
    let (stopping, runs): (Stopping, Vec<f64>) = match (dice.unit() * 3.0) as u32 {
        0 => (Stopping::Uniform { most }, (0..=most).map(|k| if k == 0 { 0.0 } else { 1.0 / most as f64 }).collect()),
        1 => {
            let sum: f64 = (1..=most).map(|k| 1.0 / k as f64).sum();
            (Stopping::Harmonic { most }, (0..=most).map(|k| if k == 0 { 0.0 } else { 1.0 / k as f64 / sum }).collect())
        }
        _ => {
            let mean = dice.between(0.5, 12.0);
            let mut p = vec![(-mean).exp()];
            (1..=100).for_each(|k| p.push(p[k - 1] * mean / k as f64));
            (Stopping::Poisson { mean }, p)
        }
    };
    let truth = at_least(move |e| {
        let upper = |x: f64| small(&crate::big::normal_upper(&big(x)));
        let bins = |mu: f64| -> Vec<f64> {
            let above: Vec<f64> = (0..=60).map(|i| upper(-6.0 + 0.2 * f64::from(i) - mu)).collect();
            let inner = above.windows(2).map(|w| w[0] - w[1]);
            std::iter::once(1.0 - above[0]).chain(inner).chain(std::iter::once(above[60])).collect()
        };
        let winner = |q: &[f64]| -> Vec<f64> {
            let generating = |z: f64| runs.iter().rev().fold(0.0, |sum, p| sum * z + p);
            let mut below = 0.0f64;
            q.iter()
                .map(|x| {
                    let next = (below + x).min(1.0);
                    let p = generating(next) - generating(below);
                    below = next;
                    p
                })
                .collect()
        };
        let (a, b) = (winner(&bins(0.0)), winner(&bins(mu)));
        let apart = |p: &[f64], q: &[f64]| -> f64 { p.iter().zip(q).map(|(p, q)| (p - e.exp() * q).max(0.0)).sum() };
        Some((apart(&a, &b).max(apart(&b, &a)) - 1e-12).max(0.0))
    });
    let event = Event::Select { stopping, event: Box::new(Event::gaussian(1.0 / mu)) };
    Case { family: "selections", event, adjacency: Adjacency::ZeroOut, question: question(dice, 4.0 * mu), truth }
}
