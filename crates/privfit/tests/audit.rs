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
    let threshold = (1..20)
        .map(|i| sorted[i * half / 20])
        .max_by(|s, t| {
            let gain = |t: f64| (above(&a, t) as f64 + 1.0) / (above(&b, t) as f64 + 1.0 + half as f64 * 0.01);
            gain(*s).total_cmp(&gain(*t))
        })
        .unwrap();
    let (a, b) = (score(&with[half..]), score(&without[half..]));
    let (low, _) = proportion(above(&a, threshold), a.len());
    let (_, high) = proportion(above(&b, threshold), b.len());
    ((low - DELTA) / high).max(1e-9).ln().max(0.0)
}

fn audit(method: &str, loss: &str, target: &str, set: &[(&str, f64)], records: (&str, &str), runs: usize) -> f64 {
    let schema = schema(target);
    let job = Job {
        schema: schema.clone(),
        rows: Some(3),
        epsilon: EPSILON,
        delta: Some(DELTA),
        adjacency: Adjacency::ZeroOut,
        loss: Some(loss.into()),
        method: method.into(),
        settings: Settings(set.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: false,
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
    let cases: [Case; 11] = [
        ("noisy-gd", "logistic", classes, &[("steps", 1.0), ("momentum", 0.0), ("rate", 1.0)], 0.1),
        ("noisy-gd", "logistic", classes, &[("steps", 10.0)], 0.05),
        ("noisy-sgd", "logistic", classes, &[("steps", 5.0), ("sampling_rate", 0.5)], 0.0),
        ("output", "logistic", classes, &[("ridge", 4.0)], 0.1),
        ("objective", "logistic", classes, &[], 0.0),
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
        let least = audit(method, loss, target, set, records, 6000);
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
    };
    let prepared = prepare(&job, 3, false).unwrap();
    let with = dataset(&schema, &["0,0,no", "0,0,no", "1,1,yes"], &entropy);
    let without = dataset(&schema, &["0,0,no", "0,0,no", "?"], &entropy);
    let least = proven(&sample(&prepared, &with, &entropy, 6000), &sample(&prepared, &without, &entropy, 6000));
    assert!(least > EPSILON, "{least}");
}
