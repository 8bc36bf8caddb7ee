//! Sparse methods: printed constants and what is wrong with them, the attack on the published knowledge transfer, and what the
//! repaired methods reach on generated data.

use privfit::Schema;
use privfit::account::{Adjacency, Event, delta, epsilon};
use privfit::constraint::Constraint;
use privfit::data::generate::{Design, Drawn};
use privfit::engine::Threads;
use privfit::job::fit::{Job, Prepared, prepare};
use privfit::kernel::loss::{logistic, squared};
use privfit::kernel::{Dataset, Entropy, PublicRows, Run, norm_bound};
use privfit::method::Settings;
use privfit::method::published::printed::*;
use privfit::solve::iterative_hard_thresholding::{Rows, Thresholding, iterative_hard_thresholding};

fn near(what: &str, value: f64, expected: f64, relative: f64) {
    assert!((value / expected - 1.0).abs() <= relative, "{what}: {value}, expected {expected}");
}

fn job(schema: &Schema, method: &str, (epsilon, delta): (f64, f64), set: &[(&str, f64)]) -> Job {
    Job {
        schema: schema.clone(),
        rows: None,
        epsilon,
        delta: Some(delta),
        adjacency: Adjacency::ReplaceOne,
        loss: None,
        method: method.into(),
        settings: Settings(set.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: true,
        auxiliary: None,
        layers: None,
        pretrained: None,
    }
}

fn weights(prepared: &Prepared, data: &Dataset, entropy: &Entropy) -> Vec<f64> {
    let engine = Threads::new(2);
    let mut run = Run::begin(data, &engine, entropy, prepared.plan.event()).unwrap();
    let weights = prepared.plan.run(&mut run, &|| ()).unwrap();
    run.close(weights).unwrap().into_value()
}

/// Mean relative error over seeds.
fn error_of(design: &Design, method: &str, privacy: (f64, f64), seeds: std::ops::Range<u64>, set: &[(&str, f64)]) -> f64 {
    let schema = design.schema().unwrap();
    let prepared = prepare(&job(&schema, method, privacy, set), design.rows as u64, true).unwrap();
    let count = (seeds.end - seeds.start) as f64;
    let one = |seed: u64| {
        let drawn: Drawn = design.draw(seed);
        let entropy = Entropy::simulated(seed);
        let data = drawn.dataset(&schema, &entropy).unwrap();
        drawn.relative_error(&schema, &weights(&prepared, &data, &entropy))
    };
    seeds.map(one).sum::<f64>() / count
}

fn zero_out(event: &Event, delta: f64) -> f64 {
    epsilon(event, Adjacency::ZeroOut, delta).unwrap().bound.upper
}

/// The table of Gaussian noise, its mu, and the rho that a tight conversion allows.
#[test]
fn reference_values_of_one_gaussian_release() {
    for (eps, del, sigma, rho) in [
        (0.1, 1e-5, 30.749566, 0.000433),
        (0.5, 1e-5, 7.031827, 0.008506),
        (1.0, 1e-5, 3.730632, 0.030557),
        (1.0, 1e-6, 4.224679, 0.024356),
        (2.0, 1e-5, 1.993812, 0.108256),
        (4.0, 1e-5, 1.081162, 0.373144),
        (8.0, 1e-5, 0.600229, 1.229715),
        (10.0, 1e-5, 0.499889, 1.782696),
        (0.8, 0.01, 2.219734, 0.072993),
        (2.0, 0.01, 1.116254, 0.305078),
        (5.0, 0.01, 0.569379, 1.236305),
        (10.0, 0.01, 0.350097, 3.399012),
    ] {
        near("exact", zero_out(&Event::gaussian(sigma), del), eps, 2e-6);
        near("tight", zero_out(&Event::ZeroConcentrated { rho }, del), eps, 2e-3);
        // exact <= tight <= simple
        let simple = |rho: f64| rho + 2.0 * (rho * (1.0f64 / del).ln()).sqrt();
        let same = 1.0 / (2.0 * sigma * sigma);
        let tight = zero_out(&Event::ZeroConcentrated { rho: same }, del);
        assert!(eps <= tight * (1.0 + 1e-6) && tight <= simple(same), "{eps} {tight} {}", simple(same));
    }
    let at = |mu: f64, eps: f64| delta(&Event::gaussian(1.0 / mu), Adjacency::ZeroOut, eps).unwrap().bound.upper;
    near("delta", at(0.5, 1.0), 0.006829595, 1e-6);
    near("delta", at(1.0, 1e-12), 0.382924923, 1e-6);
}

/// Chapter 2 of the second thesis: a factor of 2 is lost, and the corollary for logistic regression loses 8.
#[test]
fn printed_hard_thresholding_costs_more_than_it_says() {
    let printed = hard_thresholding_deviation(10.0, 1.0, 1000.0, 1.0, 1e-5);
    near("printed noise", printed, 0.02191595, 1e-6);
    let truth = |sigma: f64, steps: u64, eps_delta: f64| {
        let event = Event::gaussian(sigma * 1000.0).repeated(steps);
        epsilon(&event, Adjacency::ReplaceOne, eps_delta).unwrap().bound.upper
    };
    near("true epsilon", truth(printed, 10, 1e-5), 1.0845, 1e-3);
    near("true epsilon", truth(hard_thresholding_deviation(10.0, 1.0, 1000.0, 4.0, 0.01), 10, 0.01), 4.299, 1e-3);
    let logistic = hard_thresholding_logistic_deviation(10.0, 1.0, 1000.0, 1.0, 1e-5);
    near("true epsilon, logistic", truth(logistic, 10, 1e-5), 2.397, 1e-3);
    near(
        "true epsilon, logistic",
        truth(hard_thresholding_logistic_deviation(10.0, 1.0, 1000.0, 4.0, 0.01), 10, 0.01),
        14.85,
        1e-3,
    );
    // Ours: the exact noise.
    let schema = Design::bounded(1000, 20, 3, true).schema().unwrap();
    let noise = |adjacency| {
        let mut job = job(&schema, "hard-thresholding", (1.0, 1e-5), &[("steps", 10.0), ("slope_clip", 1.0)]);
        job.adjacency = adjacency;
        prepare(&job, 1000, true).unwrap().plan.gradient_noise() * 10f64.sqrt() / 1000.0
    };
    near("replace-one", noise(Adjacency::ReplaceOne), 0.02359459, 1e-3);
    near("zero-out", noise(Adjacency::ZeroOut), 0.01179729, 1e-3);
}

#[test]
fn printed_constants_of_transfer_selection_and_frank_wolfe() {
    for (n, s) in [(800.0, 10.0), (4000.0, 50.0)] {
        near("transfer", knowledge_transfer_deviation(n, 1.0 / 3.0, s, 1.0, n, 0.8, 0.01, 0.1), 5.362612, 1e-6);
    }
    // Objective perturbation on the support, for zero-out; twice the gradient bound under replace-one.
    near("KST12", kst12(1.0, 1e-5, 1.0, 1.0).sigma, 10.082092, 1e-6);
    // Peeling: printed Laplace noise, and one choice of all by Gumbel noise with half of the budget.
    let peel = |eps: f64| 2.0 * 0.002 * (3.0 * 10.0 * (1e5f64).ln()).sqrt() / eps;
    near("peeling", peel(1.0), 0.07433844, 1e-6);
    near("peeling", peel(0.5), 2.0 * 0.07433844, 1e-6);
    let rho = 0.030557;
    near("one shot", 0.002 * (10.0f64 / (2.0 * 0.5 * rho)).sqrt(), 0.03618075, 1e-4);
    // Ours by numerical composition: less noise than by rho.
    let schema = Design::bounded(1000, 50, 10, true).schema().unwrap();
    let set = [("sparsity", 10.0), ("rounds", 1.0), ("share", 0.5), ("slope_clip", 1.0), ("cap", 1.0 / 50f64.sqrt())];
    let plan = prepare(&job(&schema, "noisy-thresholding", (1.0, 1e-5), &set), 1000, true).unwrap();
    let said = plan.plan.describe().into_iter().find(|d| d.0 == "scale of the noise of a score").unwrap().1;
    // In units of the replace-one sensitivity, 2 clip cap.
    let ours = said.parse::<f64>().unwrap() / (2.0 / 50f64.sqrt()) * 0.002;
    assert!(ours < 0.0362 && ours > 0.030, "{ours}");
    // Frank-Wolfe: e0 and the Gumbel scale for 50 choices by rho, of the average gradient at vertices of length 1.
    near("e0", (8.0 * rho / 50.0f64).sqrt(), 0.06992178, 1e-4);
    near("Gumbel", 2.0 * 0.002 / (8.0 * rho / 50.0f64).sqrt(), 0.05720678, 1e-4);
}

/// Sensitivities of teachers, closed form; and those of a fixed support against neighbours.
#[test]
fn teachers_on_a_fixed_support_move_as_little_as_claimed() {
    near("logistic", 2.0 * 10f64.sqrt() / (1000.0 * 0.1), 0.06324555, 1e-6);
    near("squared", 2.0 * 10f64.sqrt() * (1.0 + (10.0 / 0.1f64).sqrt()) / (1000.0 * 0.1), 0.69570109, 1e-6);
    near("parts", 2.0 * 1.0 / 20.0 * 30.0, 3.0, 1e-12);
    // All columns are kept, so this is ridge regression: strongly convex.
    let what = Thresholding { sparsity: 3, always: None, ridge: 0.1, steps: 5000 };
    let mut random = privfit::data::generate::Random::new(3);
    let mut largest = 0f64;
    for _ in 0..300 {
        let mut record = || {
            let x: Vec<f64> =
                (0..3).map(|_| if random.uniform() < 0.5 { -1.0 } else { 1.0 } * random.uniform().powf(0.2)).collect();
            (x, if random.uniform() < 0.5 { 0f32 } else { 1.0 })
        };
        let rows: Vec<_> = (0..21).map(|_| record()).collect();
        let fit = |last: usize| {
            let mut data = Rows::new();
            for (x, y) in rows[..19].iter().chain([&rows[last]]) {
                data.push(x.iter().copied().enumerate(), *y);
            }
            let mut out = [0f64; 3];
            iterative_hard_thresholding(data, &logistic(1, 2, 1.0, [1.0, 1.0]), &what)
                .iter()
                .for_each(|(i, w)| out[*i as usize] = *w);
            out
        };
        let (a, b) = (fit(19), fit(20));
        largest = largest.max(a.iter().zip(&b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt());
    }
    let claim = 2.0 * 3f64.sqrt() / (20.0 * 0.1);
    assert!(largest < claim && largest > 0.2 * claim, "{largest} {claim}");
}

/// One row decides between two columns that are equally good otherwise: teacher on either data set.
fn swing(n: usize, last: usize, lambda: f64) -> [f64; 2] {
    let mut rows = Rows::new();
    for i in 0..n {
        let column = if i == n - 1 { last } else { i % 2 };
        rows.push([(column, 1.0)].into_iter(), 1.0);
    }
    let mut out = [0f64; 2];
    let what = Thresholding { sparsity: 1, always: None, ridge: lambda, steps: 200 };
    iterative_hard_thresholding(rows, &squared(1e9), &what).iter().for_each(|(i, w)| out[*i as usize] = *w);
    out
}

/// The proof says that one record moves the teacher by sqrt(2 s) gamma / (n lambda). It moves it by more than 800 times that.
#[test]
fn a_sparse_teacher_has_no_sensitivity() {
    let mut moved = Vec::new();
    for n in [1001, 10_001, 100_001] {
        let (a, b) = (swing(n, 0, 0.1), swing(n, 1, 0.1));
        assert!(a[1] == 0.0 && b[0] == 0.0, "{a:?} {b:?}");
        moved.push((a[0].powi(2) + b[1].powi(2)).sqrt());
        if n == 10_001 {
            near("distance", moved[1], 1.17853, 1e-4);
            let claimed = 2f64.sqrt() / (n as f64 * 0.1);
            assert!(moved[1] / claimed > 800.0, "{}", moved[1] / claimed);
            // The inequality that the proof needs: gradient at the minimiser times the way to the other one is not negative.
            let p = (n / 2 + 1) as f64 / n as f64;
            let q = 1.0 - p;
            let inner = -q * b[1] + (p * (a[0] - 1.0) + 0.1 * a[0]) * -a[0];
            near("inner product", inner, -0.41663, 1e-2);
        }
    }
    assert!((moved[2] / moved[0] - 1.0).abs() < 1e-3, "it does not fall with n: {moved:?}");
}

fn swing_schema() -> Schema {
    Schema::parse(
        "[dataset]\nname = \"swing\"\n[target]\nbounds = [-1, 1]\n[features]\nkind = \"dense\"\ndimension = 2\nbound = 1\nintercept = false\n",
    )
    .unwrap()
}

/// Guesses of the attack on a support.
const GUESSES: usize = 1000;

/// Attack: which of two neighbours was it, by the column that the model has? Guesses that are right among so many.
fn right_guesses(method: &str, set: &[(&str, f64)]) -> u64 {
    let n = 2001;
    let schema = swing_schema();
    let entropy = Entropy::simulated(11);
    let data: Vec<Dataset> = (0..2)
        .map(|last| {
            let cells = (0..n).flat_map(|i| {
                let column = if i == n - 1 { last } else { i % 2 };
                [f64::from(u8::from(column == 0)), f64::from(u8::from(column == 1))]
            });
            let drawn = Drawn { weights: vec![0.0; 2], cells: cells.collect(), labels: vec![1.0; n] };
            drawn.dataset(&schema, &entropy).unwrap()
        })
        .collect();
    let mut all = vec![("sparsity", 1.0)];
    all.extend(set);
    let prepared = prepare(&job(&schema, method, (1.0, 1e-5), &all), n as u64, true).unwrap();
    let engine = Threads::new(1);
    let mut right = 0;
    for trial in 0..GUESSES {
        let truth = trial % 2;
        let mut run = Run::begin(&data[truth], &engine, &entropy, prepared.plan.event()).unwrap();
        let w = prepared.plan.run(&mut run, &|| ()).unwrap();
        let guess = usize::from(w[0].abs() < w[1].abs());
        right += u64::from(guess == truth);
    }
    right
}

/// The published form gives the record away every time, at a claim of epsilon 1; no repair does better than its epsilon allows. If a
/// repair sat exactly at the ceiling of 0.7311, 2,000 guesses would pass the limit below, six standard deviations above it, with a
/// probability under 1e-8: that is the rate of false alarms.
#[test]
fn attack_on_the_support() {
    let ridge = 0.1 * 0.5;
    let published = right_guesses("published-knowledge-transfer", &[("ridge", ridge)]);
    println!("published: {published} of {GUESSES}");
    assert!(published as usize * 100 > 99 * GUESSES, "{published}");
    let ceiling = (1f64.exp() + 1e-5) / (1.0 + 1f64.exp());
    let limit = GUESSES as f64 * ceiling + 6.0 * (GUESSES as f64 * ceiling * (1.0 - ceiling)).sqrt();
    for (method, set) in [
        ("noisy-thresholding", &[][..]),
        ("hard-thresholding", &[]),
        ("two-stage", &[]),
        ("transfer-support", &[]),
        ("transfer-support", &[("stable", 0.2)]),
        ("transfer-support", &[("rows", 50.0)]),
        ("transfer-blocks", &[]),
        ("transfer-blocks", &[("rows", 50.0)]),
        ("transfer-convex", &[]),
        ("transfer-convex", &[("rows", 50.0)]),
        ("frank-wolfe", &[("steps", 3.0)]),
    ] {
        let right = right_guesses(method, set);
        println!("{method} {set:?}: {right} of {GUESSES}");
        assert!((right as f64) < limit, "{method}: {right}");
    }
}

/// No guarantee object, and a refusal without the word that it is a comparison.
#[test]
fn published_form_is_refused_unless_it_is_a_comparison() {
    let schema = swing_schema();
    for method in ["published-knowledge-transfer", "IGHT"] {
        let mut job = job(&schema, method, (1.0, 1e-5), &[]);
        let prepared = prepare(&job, 100, true).unwrap();
        assert!(matches!(prepared.plan.event(), Event::NotPrivate { .. }));
        assert!(epsilon(prepared.plan.event(), Adjacency::ZeroOut, 1e-5).map_or(true, |a| a.bound.upper.is_infinite()));
        job.compare = false;
        assert!(prepare(&job, 100, true).is_err());
    }
}

/// Correction A2: parts that go by what a record is would change twice when one record is replaced; ours go by its unit index. Twelve voters,
/// votes (0, 4, 8): one record that moves from one part to another turns two votes, and the winner with them.
#[test]
fn parts_by_content_change_two_votes() {
    let votes = [0, 4, 8];
    let two_turned = [votes[0], votes[1] + 2, votes[2] - 2];
    assert_eq!(two_turned, [0, 6, 6]);
    let distance = (votes[2] - votes[1] - 1) / 2;
    assert_eq!(distance, 1, "a distance of one, and yet the lead is gone after one record");
    // By content: the part of a record is a hash of its value.
    let part = |value: u64| value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
    let (old, new) = ((0..100).collect::<Vec<u64>>(), (0..99).chain([1234]).collect::<Vec<u64>>());
    let members = |rows: &[u64], p: u64| rows.iter().filter(|r| part(**r) == p).count();
    let changed = (0..16).filter(|p| members(&old, *p) != members(&new, *p)).count();
    assert_eq!(changed, 2);
}

/// Correction A3: a vote or a teacher of a part changes altogether under zero-out too. The event says the same for both adjacencies.
#[test]
fn votes_and_teachers_of_parts_are_not_halved_under_zero_out() {
    let schema = Design::bounded(900, 30, 3, true).schema().unwrap();
    let prepared = prepare(&job(&schema, "transfer-blocks", (1.0, 1e-4), &[]), 900, true).unwrap();
    let at = |a| epsilon(prepared.plan.event(), a, 1e-4).unwrap().bound.upper;
    near("both adjacencies", at(Adjacency::ZeroOut), at(Adjacency::ReplaceOne), 1e-3);
    // Halved, the claim would be broken: a part that turns its teacher around moves the average by 2 R / parts even if its record
    // becomes null. With half of the noise that it needs, epsilon 1 is 2.2.
    let halved = Event::Gaussian { noise_multiplier: 0.5 * 3.730632, replace_factor: 1.0 };
    assert!(epsilon(&halved, Adjacency::ZeroOut, 1e-5).unwrap().bound.lower > 2.1);
}

/// Columns that are chosen as they are, because no record could change them: hardly ever where two are tied, nearly always where one
/// stands out. False alarms below 1e-6.
#[test]
fn stable_choices_pass_and_ties_do_not() {
    let set = [("sparsity", 1.0), ("stable", 0.5), ("share", 0.2)];
    let schema = swing_schema();
    let entropy = Entropy::simulated(5);
    let make = |n: usize, first: usize| {
        let cells = (0..n).flat_map(|i| if i < first { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
        Drawn { weights: vec![0.0; 2], cells, labels: vec![1.0; n] }.dataset(&schema, &entropy).unwrap()
    };
    // delta is large, so that a tie passes now and then.
    let prepared = prepare(&job(&schema, "transfer-support", (1.0, 0.2), &set), 2000, true).unwrap();
    let engine = Threads::new(1);
    let passed = |data: &Dataset, trials: u32| {
        let one = |_| {
            let mut run = Run::begin(data, &engine, &entropy, prepared.plan.event()).unwrap();
            let w = prepared.plan.run(&mut run, &|| ()).unwrap();
            // A choice by scores comes after the test in the record; a stable one is alone there.
            let executed = format!("{:?}", run.close(w).unwrap().executed());
            u32::from(!executed.contains("Exponential"))
        };
        (0..trials).map(one).sum::<u32>()
    };
    let tied = passed(&make(2000, 1000), 1500);
    let (p, n) = (0.02, 1500.0);
    assert!(f64::from(tied) < n * p + 5.0 * f64::sqrt(n * p * (1.0 - p)) && tied > 5, "{tied}");
    assert_eq!(passed(&make(2000, 1900), 200), 200);
}

/// Generated labels follow the sign of the weights: the printed distribution has it the other way round.
#[test]
fn generated_classes_follow_their_weights() {
    let drawn = Design::bounded(20_000, 12, 6, true).draw(1);
    let mut with = [0f64; 12];
    for (row, y) in drawn.cells.chunks(12).zip(&drawn.labels) {
        with.iter_mut().zip(row).for_each(|(w, x)| *w += x * (y - 0.5));
    }
    let dot: f64 = with.iter().zip(&drawn.weights).map(|(a, b)| a * b).sum();
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!(dot / norm(&with) / norm(&drawn.weights) > 0.9);
}

/// With no noise to speak of, private hard thresholding and the baseline find the same weights, and so does noisy thresholding.
#[test]
fn without_noise_the_baseline_is_found_again() {
    let design = Design::bounded(2000, 40, 4, false);
    let big = (1e7, 0.5);
    let set = [("sparsity", 4.0)];
    let baseline = error_of(&design, "IGHT", big, 0..3, &set);
    assert!(baseline < 0.03, "{baseline}");
    let many = [("sparsity", 4.0), ("steps", 60.0), ("clip", 2.0), ("learning_rate", 60.0)];
    let hard = error_of(&design, "hard-thresholding", big, 0..3, &many);
    assert!((hard - baseline).abs() < 0.02, "{hard} {baseline}");
    let noisy = error_of(&design, "noisy-thresholding", big, 0..3, &[("sparsity", 4.0), ("clip", 2.0), ("radius", 1.0)]);
    assert!(noisy < 0.1, "{noisy}");
    // The same seed, the same weights.
    let schema = design.schema().unwrap();
    let prepared = prepare(&job(&schema, "noisy-thresholding", (1.0, 0.01), &set), 2000, true).unwrap();
    let once = || {
        let entropy = Entropy::simulated(9);
        let data = design.draw(9).dataset(&schema, &entropy).unwrap();
        weights(&prepared, &data, &entropy)
    };
    assert_eq!(once(), once());
}

/// Rows as pairs and rows as cells are the same to every sparse method.
#[test]
fn sparse_and_dense_rows_agree() {
    let design = Design::bounded(400, 60, 5, true);
    let dense = design.schema().unwrap();
    let text = |kind: &str| {
        Schema::parse(&format!(
            "[dataset]\nname = \"g\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"{kind}\"\ndimension = 60\nbound = 1\nintercept = false\n"
        ))
        .unwrap()
    };
    assert_eq!(dense.dimension(), text("sparse").dimension());
    for method in
        ["noisy-thresholding", "hard-thresholding", "two-stage", "transfer-support", "transfer-blocks", "transfer-convex"]
    {
        let run = |kind: &str| {
            let schema = text(kind);
            let prepared = prepare(&job(&schema, method, (2.0, 0.001), &[("sparsity", 5.0)]), 400, true).unwrap();
            let entropy = Entropy::simulated(4);
            let data = design.draw(4).dataset(&schema, &entropy).unwrap();
            weights(&prepared, &data, &entropy)
        };
        let (a, b) = (run("dense"), run("sparse"));
        let apart = a.iter().zip(&b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
        let length = a.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!(apart <= 1e-5 * length && length > 0.0, "{method}: {apart} {length}");
    }
}

/// A declared sparsity is enough, whatever is predicted: the method that `auto` takes can do it.
#[test]
fn auto_takes_a_method_that_can() {
    let of = |target: &str, features: &str| {
        let text =
            format!("[dataset]\nname = \"a\"\n[target]\n{target}\n[features]\nkind = \"dense\"\ndimension = 500\n{features}\n");
        let prepared = prepare(&job(&Schema::parse(&text).unwrap(), "auto", (1.0, 1e-4), &[("sparsity", 5.0)]), 900, true);
        prepared.unwrap().method.name
    };
    let (two, three, number) = ("classes = [\"a\", \"b\"]", "classes = [\"a\", \"b\", \"c\"]", "bounds = [0, 1]");
    assert_eq!(of(two, "bound = 1"), "noisy-thresholding");
    assert_eq!(of(number, "bound = 1"), "noisy-thresholding");
    assert_eq!(of(three, "bound = 1"), "hard-thresholding");
    assert_eq!(of(two, "row_norm = 1"), "weighted-columns");
    assert_eq!(of(three, "row_norm = 1"), "hard-thresholding");
    assert_eq!(of(number, "row_norm = 1"), "hard-thresholding");
}

/// Public rows: what is seen through them is bounded from the rows, not from a distribution they may not follow.
#[test]
fn answers_are_bounded_by_the_rows_themselves() {
    // Equal rows: the covariance of the distribution says 1/3, these have a singular value of sqrt(m k).
    let rows = PublicRows::new(vec![1.0; 50 * 4], 4);
    near("equal rows", norm_bound(&rows), 200f64.sqrt(), 1e-2);
    assert!(norm_bound(&rows) > 2.0 * (50.0f64 / 3.0).sqrt());
}

/// Rows of words with a constant as long as the rest of the row: its curvature is another one than that of a word, and one length of a
/// step for both would swing for ever.
#[test]
fn words_with_a_constant_are_learnt() {
    let text = "[dataset]\nname = \"w\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"sparse\"\ndimension = 60\nrow_norm = 1\n";
    let schema = Schema::parse(text).unwrap();
    let mut random = privfit::data::generate::Random::new(8);
    let (mut cells, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..3000 {
        let class = random.below(2);
        let mut row = vec![0f64; 60];
        (0..8).for_each(|_| row[10 + random.below(50)] = 1.0);
        // Each class has words of its own.
        (0..2).for_each(|_| row[5 * class + random.below(5)] = 1.0);
        let length = row.iter().sum::<f64>().sqrt();
        cells.extend(row.iter().map(|x| x / length));
        labels.push(class as f64);
    }
    let drawn = Drawn { weights: vec![0.0; 60], cells, labels };
    let entropy = Entropy::simulated(2);
    let data = drawn.dataset(&schema, &entropy).unwrap();
    for method in ["hard-thresholding", "noisy-thresholding", "weighted-columns", "auto"] {
        let prepared = prepare(&job(&schema, method, (8.0, 1e-6), &[("sparsity", 12.0)]), 3000, true).unwrap();
        let artifact = prepared.train(&data, &Threads::new(1), &entropy, &|| ()).unwrap();
        let encoder = privfit::data::encode::Encoder::new(&schema, &[], true).unwrap();
        let mut row = privfit::data::encode::Row::default();
        let (mut right, mut scores) = (0, Vec::new());
        for (x, y) in drawn.cells.chunks(60).zip(&drawn.labels) {
            encoder.encode(privfit::data::Record::Dense(x), None, &mut row);
            artifact.model.scores(&row, &mut scores);
            right += usize::from((scores[0] > 0.0) == (*y > 0.0));
        }
        assert!(right > 2500, "{method}: {right} of 3000");
    }
}

/// Small versions of the comparisons: bands are generous, seeds are fixed.
#[test]
fn accuracy_on_generated_rows() {
    let design = Design::bounded(800, 1000, 10, false);
    let set = [("sparsity", 10.0)];
    let error = |eps: f64| error_of(&design, "noisy-thresholding", (eps, 0.01), 0..6, &set);
    let (low, middle, high) = (error(0.8), error(2.0), error(5.0));
    assert!(low < 0.4 && middle < 0.2 && high < 0.12, "{low} {middle} {high}");
    assert!(high < middle && middle < low);
    let baseline = error_of(&design, "IGHT", (1.0, 0.01), 0..3, &set);
    assert!(baseline < 0.06, "{baseline}");
    let many = Design::bounded(20_000, 300, 10, false);
    // Targets that are not clipped: without noise the baseline is nearly exact.
    let mut wide = many.schema().unwrap();
    wide.target.values = privfit::schema::TargetValues::Bounds(-8.0, 8.0);
    let prepared = prepare(&job(&wide, "IGHT", (1.0, 0.01), &set), 20_000, true).unwrap();
    let (drawn, entropy) = (many.draw(1), Entropy::simulated(1));
    let exact = drawn.relative_error(&wide, &weights(&prepared, &drawn.dataset(&wide, &entropy).unwrap(), &entropy));
    assert!(exact < 0.02, "{exact}");
    // Screening, then a teacher on what was chosen: with many records the choice is easy, and most of the budget is for the teacher.
    let full = Design::bounded(20_000, 1000, 10, false);
    let screened =
        error_of(&full, "transfer-support", (0.8, 0.01), 0..3, &[("sparsity", 10.0), ("share", 0.25), ("residual_clip", 0.25)]);
    assert!(screened < 0.15, "{screened}");
    let one = error_of(&many, "noisy-thresholding", (0.8, 0.01), 0..2, &set);
    assert!(one < 0.055, "{one}");
}
