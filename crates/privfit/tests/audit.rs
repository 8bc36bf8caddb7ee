//! Two worlds: with one record and with the null record in its place. Many runs of the whole method in each; a distinguisher is
//! fitted on half of them and judged on the other half. What it proves about epsilon must stay below the claim, for every method, and
//! come near it where the mechanism is a plain Gaussian. False alarms: each test has a confidence of 1 - 1e-8.

use privfit::Schema;
use privfit::account::Adjacency;
use privfit::constraint::Constraint;
use privfit::data::csv::Csv;
use privfit::data::load::load_from;
use privfit::engine::Threads;
use privfit::fit::{Job, Prepared, prepare};
use privfit::method::Settings;
use privfit::privacy::{Dataset, Entropy, Run};

const EPSILON: f64 = 4.0;
const DELTA: f64 = 1e-3;

fn schema(target: &str) -> Schema {
    let target = if target.is_empty() { String::new() } else { format!("[target]\ncolumn = \"y\"\n{target}\n") };
    Schema::parse(&format!(
        "[dataset]\nname = \"t\"\n{target}[features.a]\ntype = \"number\"\nmin = -1\nmax = 1\n\
         [features.b]\ntype = \"number\"\nmin = -1\nmax = 1\n"
    ))
    .unwrap()
}

fn dataset(schema: &Schema, lines: &[&str], entropy: &Entropy) -> Dataset {
    let text = format!("a,b,y\n{}\n", lines.join("\n"));
    load_from(&mut Csv::open(Box::new(std::io::Cursor::new(text.into_bytes()))).unwrap(), schema, entropy).unwrap()
}

/// Weights of many runs.
fn sample(prepared: &Prepared, data: &Dataset, entropy: &Entropy, runs: usize) -> Vec<Vec<f64>> {
    let engine = Threads::new(1);
    let one = |_| {
        let mut run = Run::begin(data, &engine, entropy, prepared.plan.event()).unwrap();
        let weights = prepared.plan.run(&mut run, &|| {}).unwrap();
        run.close(weights).unwrap().into_value()
    };
    (0..runs).map(one).collect()
}

/// Upper and lower ends of a proportion at a confidence of 1 - 1e-9, by the Chernoff bound in its divergence form.
fn proportion(hits: usize, runs: usize) -> (f64, f64) {
    let (p, n) = (hits as f64 / runs as f64, runs as f64);
    let divergence = |q: f64| {
        let term = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a * (a / b).ln() };
        term(p, q) + term(1.0 - p, 1.0 - q)
    };
    let limit = 1e9f64.ln() / n;
    let edge = |mut inside: f64, mut outside: f64| {
        for _ in 0..60 {
            let middle = 0.5 * (inside + outside);
            if divergence(middle) < limit { inside = middle } else { outside = middle }
        }
        outside
    };
    (edge(p, 1e-12), edge(p, 1.0 - 1e-12))
}

/// Largest epsilon that the runs prove.
fn proven(with: &[Vec<f64>], without: &[Vec<f64>]) -> f64 {
    let half = with.len() / 2;
    let d = with[0].len();
    let mean = |runs: &[Vec<f64>], j: usize| runs.iter().map(|w| w[j]).sum::<f64>() / runs.len() as f64;
    // Difference of means over variances: the best line for independent noise.
    let direction: Vec<f64> = (0..d)
        .map(|j| {
            let (a, b) = (mean(&with[..half], j), mean(&without[..half], j));
            let spread = without[..half].iter().map(|w| (w[j] - b) * (w[j] - b)).sum::<f64>() / half as f64;
            (a - b) / spread
        })
        .collect();
    let score =
        |runs: &[Vec<f64>]| -> Vec<f64> { runs.iter().map(|w| w.iter().zip(&direction).map(|(w, d)| w * d).sum()).collect() };
    // The threshold is chosen on the first half, judged on the second.
    let (a, b) = (score(&with[..half]), score(&without[..half]));
    let above = |runs: &[f64], t: f64| runs.iter().filter(|x| **x > t).count();
    let mut sorted = a.clone();
    sorted.sort_by(f64::total_cmp);
    let bound = |a: &[f64], b: &[f64], t: f64| {
        let ((low, _), (_, high)) = (proportion(above(a, t), a.len()), proportion(above(b, t), b.len()));
        ((low - DELTA) / high).max(1e-9).ln().max(0.0)
    };
    let candidates = (1..200).map(|i| sorted[i * half / 200]);
    let threshold = candidates.max_by(|s, t| bound(&a, &b, *s).total_cmp(&bound(&a, &b, *t))).unwrap();
    let (a, b) = (score(&with[half..]), score(&without[half..]));
    bound(&a, &b, threshold)
}

type Set<'a> = &'a [(&'a str, f64)];

fn audit(method: &str, loss: &str, target: &str, set: Set<'_>, records: (&str, &str), epsilon: f64, runs: usize) -> f64 {
    let schema = schema(target);
    let job = Job {
        schema: schema.clone(),
        rows: Some(3),
        epsilon,
        delta: Some(if method == "objective-pure" { 0.0 } else { DELTA }),
        adjacency: Adjacency::ZeroOut,
        loss: Some(loss.into()),
        method: method.into(),
        settings: Settings(set.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: false,
        auxiliary: None,
    };
    let prepared = prepare(&job, 3, false).unwrap();
    let entropy = Entropy::system().unwrap();
    let (canary, others) = records;
    let with = dataset(&schema, &[others, others, canary], &entropy);
    // A line that can't be read is the null record.
    let without = dataset(&schema, &[others, others, "?"], &entropy);
    proven(&sample(&prepared, &with, &entropy, runs), &sample(&prepared, &without, &entropy, runs))
}

#[test]
fn no_method_leaks_more_than_it_claims() {
    let classes = "classes = [\"no\", \"yes\"]";
    let number = "bounds = [-1.0, 1.0]";
    let pairs = ("1,1,yes", "0,0,no");
    let count = "bounds = [0, 1]";
    // Method, loss, target, settings, and the part of epsilon that must be visible.
    type Case = (&'static str, &'static str, &'static str, &'static [(&'static str, f64)], f64);
    let cases: [Case; 19] = [
        ("noisy-gd", "logistic", classes, &[("steps", 1.0), ("momentum", 0.0), ("rate", 1.0)], 0.1),
        ("noisy-gd", "logistic", classes, &[("steps", 10.0)], 0.05),
        ("noisy-sgd", "logistic", classes, &[("steps", 5.0), ("sampling_rate", 0.5)], 0.0),
        ("output", "logistic", classes, &[("ridge", 4.0)], 0.1),
        ("objective", "logistic", classes, &[], 0.0),
        ("objective-pure", "logistic", classes, &[], 0.0),
        ("hyperparameter-free", "logistic", classes, &[], 0.0),
        ("output-gd", "logistic", classes, &[("ridge", 0.0), ("steps", 1.0), ("rate", 1.0)], 0.1),
        ("output-gd", "logistic", classes, &[("steps", 20.0), ("ridge", 1.0)], 0.05),
        ("permutation-sgd", "logistic", classes, &[("passes", 1.0), ("batch", 1.0), ("rate", 0.1)], 0.1),
        ("noisy-projected-sgd", "logistic", classes, &[("steps", 5.0), ("sampling_rate", 0.5)], 0.0),
        ("random-round-sgd", "logistic", classes, &[("steps", 5.0), ("sampling_rate", 0.5)], 0.0),
        ("frank-wolfe", "logistic", classes, &[("steps", 3.0)], 0.0),
        ("statistics", "squared", number, &[], 0.0),
        ("noisy-gd", "quantile", number, &[("steps", 1.0), ("momentum", 0.0), ("rate", 1.0)], 0.1),
        ("noisy-gd", "poisson", count, &[("steps", 1.0), ("momentum", 0.0), ("rate", 1.0)], 0.1),
        ("objective", "poisson", count, &[], 0.0),
        ("noisy-gd", "geometric-median", "", &[("steps", 1.0)], 0.1),
        ("statistics", "mean", "", &[], 0.1),
    ];
    for (method, loss, target, set, visible) in cases {
        // The canary has the longest row and, at weights of zero, the steepest slope.
        let records = match target {
            t if t == classes => pairs,
            t if t == count => ("1,1,0", "0,0,1"),
            _ => ("1,1,1", "0,0,-1"),
        };
        let least = audit(method, loss, target, set, records, EPSILON, 6000);
        println!("{method} {loss} {set:?}: {least:.2} of {EPSILON}");
        assert!(least <= EPSILON, "{method} {loss} {set:?}: {least} is proven and {EPSILON} claimed");
        assert!(least >= visible * EPSILON, "{method} {loss} {set:?}: the audit sees {least} only");
    }
}

/// The audit can see: half of the noise is found out.
#[test]
fn too_little_noise_is_flagged() {
    let classes = "classes = [\"no\", \"yes\"]";
    let schema = schema(classes);
    let entropy = Entropy::system().unwrap();
    // A plan for epsilon 20, judged by the claim of 4.
    let job = Job {
        schema: schema.clone(),
        rows: Some(3),
        epsilon: 20.0,
        delta: Some(DELTA),
        adjacency: Adjacency::ZeroOut,
        loss: None,
        method: "noisy-gd".into(),
        settings: Settings([("steps".to_string(), 1.0), ("momentum".to_string(), 0.0)].into()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: false,
        auxiliary: None,
    };
    let prepared = prepare(&job, 3, false).unwrap();
    let with = dataset(&schema, &["0,0,no", "0,0,no", "1,1,yes"], &entropy);
    let without = dataset(&schema, &["0,0,no", "0,0,no", "?"], &entropy);
    let least = proven(&sample(&prepared, &with, &entropy, 6000), &sample(&prepared, &without, &entropy, 6000));
    assert!(least > EPSILON, "{least}");
}

/// Where a release is one Gaussian and the canary is the worst record, the audit comes near the claim: no noise is wasted.
#[test]
fn plain_gaussians_are_tight() {
    let classes = "classes = [\"no\", \"yes\"]";
    let one_step: Set<'_> = &[("steps", 1.0), ("momentum", 0.0), ("rate", 1.0)];
    let descent: Set<'_> = &[("ridge", 0.0), ("steps", 1.0), ("rate", 1.0)];
    for (method, set) in [("noisy-gd", one_step), ("output-gd", descent)] {
        for (epsilon, part, runs) in [(1.0, 0.25, 60_000), (4.0, 0.55, 200_000)] {
            let least = audit(method, "logistic", classes, set, ("1,1,yes", "0,0,no"), epsilon, runs);
            println!("{method}: {least:.2} of {epsilon}");
            assert!(least <= epsilon && least >= part * epsilon, "{method}: {least} of {epsilon}");
        }
    }
}

/// The published form of minibatch SGD claims 1 and spends far more; the audit proves it on what the method releases.
#[test]
fn published_minibatch_noise_is_flagged() {
    let classes = "classes = [\"no\", \"yes\"]";
    let schema = schema(classes);
    let entropy = Entropy::system().unwrap();
    let job = Job {
        schema: schema.clone(),
        rows: Some(400),
        epsilon: 1.0,
        delta: Some(DELTA),
        adjacency: Adjacency::ZeroOut,
        loss: Some("logistic".into()),
        method: "published-p-sgd".into(),
        settings: Settings([("steps", 2.0), ("batch", 2.0), ("rate", 0.1)].map(|(k, v)| (k.to_string(), v)).into()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: true,
        auxiliary: None,
    };
    let prepared = prepare(&job, 400, false).unwrap();
    let truth = privfit::account::epsilon(prepared.plan.event(), Adjacency::ZeroOut, DELTA).unwrap().bound.upper;
    let mut lines = vec!["0,0,no"; 399];
    lines.push("1,1,yes");
    let with = dataset(&schema, &lines, &entropy);
    lines[399] = "?";
    let without = dataset(&schema, &lines, &entropy);
    let least = proven(&sample(&prepared, &with, &entropy, 150_000), &sample(&prepared, &without, &entropy, 150_000));
    println!("claimed 1, proven {least:.2}, accounted {truth:.2}");
    assert!(least > 1.0 && least <= truth, "claimed 1, proven {least}, accounted {truth}");
}
