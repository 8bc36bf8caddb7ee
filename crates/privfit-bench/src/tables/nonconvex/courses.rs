//! Networks looked at under way: test error and losses after some steps of one fit, for the figures. What is chosen by looking at a figure is looked at on validation rows; figures on test rows show defaults.

use super::cases::{DELTA, SMOOTHING};
use super::cell::tested;
use super::points::{Point, Points};
use crate::Failure;
use crate::progress::Bar;
use crate::tables::Options;
use crate::tables::cell::thread_time;
use crate::tables::each_on_two_cores;
use crate::tables::pictures::{Held, load};
use crate::tables::sets::{Set, splitmix64};
use privfit::account::Adjacency;
use privfit::checkpoint::{Checkpoints, State};
use privfit::constraint::Constraint;
use privfit::engine::Threads;
use privfit::job::fit::{Job, prepare};
use privfit::kernel::{Entropy, Run};
use privfit::method::{Learned, Settings};
use privfit::model::Model;
use privfit::training::epsilon as certified;

/// A fit that is looked at under way.
#[derive(Clone)]
pub(super) struct Course {
    pub(super) name: String,
    epsilon: f64,
    settings: Vec<(&'static str, f64)>,
    layers: &'static [&'static str],
}

/// Courses on one set.
pub(super) struct Group {
    /// As `pictures.rs` calls it.
    pub(super) set: &'static str,
    pub(super) held: &'static str,
    courses: fn() -> Vec<Course>,
}

/// The sets, each with its fits. `mnist-pixels` is there twice: with test files, and with validation rows where a figure compares settings.
pub(super) const GROUPS: &[Group] = &[
    Group { set: "mnist-pixels", held: "validation", courses: settings_of_digits },
    Group { set: "mnist-pixels", held: "test", courses: digits },
    Group { set: "cifar-pixels", held: "test", courses: five_layers },
    Group { set: "cifar", held: "test", courses: six_layers },
];

/// The convolutions and dense layers of the published network of five layers, with tanh in the place of rectifiers.
const CNN5: &[&str] = &[
    "convolution 6 5",
    "tanh",
    "max_pool 2",
    "convolution 16 5",
    "tanh",
    "max_pool 2",
    "flatten",
    "dense 120",
    "tanh",
    "dense 84",
    "tanh",
];
/// Optimisers of chapter 5, each without and with smoothing.
pub(super) const OPTIMISERS: [(&str, bool, f64); 4] =
    [("DP-SGD", false, 0.0), ("DP-LSSGD", false, 1.0), ("DP-Adam", true, 0.0), ("DP-LSAdam", true, 1.0)];
/// Learning rates of the softmax model, over the one of figure 5.1.
pub(super) const LENGTHS: [f64; 4] = [0.25, 0.5, 1.0, 2.0];
pub(super) const LENGTH: f64 = 0.5;
/// Fresh part of the gradients of recursive momentum.
pub(super) const FRESH: f64 = 0.3;

fn course(name: impl Into<String>, epsilon: f64, layers: &'static [&'static str], settings: &[(&'static str, f64)]) -> Course {
    Course { name: name.into(), epsilon, settings: settings.to_vec(), layers }
}

fn optimisers(epsilon: f64, layers: &'static [&'static str], more: &[(&'static str, f64)]) -> Vec<Course> {
    let one = |(name, adam, smoothing): (&str, bool, f64)| {
        let own = [("adam", f64::from(u8::from(adam))), ("smoothing", smoothing), ("correlated", 0.0)];
        course(name, epsilon, layers, &[&own[..], more].concat())
    };
    OPTIMISERS.into_iter().map(one).collect()
}

/// DP-SGD and recursive momentum at a published epsilon. A step of recursive momentum takes several times as long, so that it has fewer.
fn both(epsilon: f64, layers: &'static [&'static str], passes: f64, rate: f64) -> Vec<Course> {
    let common = [("correlated", 0.0), ("sampling_rate", rate)];
    let steps = |part: f64| ("steps", (part * passes / rate).round());
    vec![
        course("DP-SGD", epsilon, layers, &[&common[..], &[steps(1.0)]].concat()),
        course("recursive momentum", epsilon, layers, &[("sampling_rate", rate), steps(0.4), ("fresh", FRESH)]),
    ]
}

fn digits() -> Vec<Course> {
    let mut out: Vec<Course> = [(1.2, 20.0), (3.0, 30.0), (7.0, 40.0)]
        .into_iter()
        .flat_map(|(e, passes)| both(e, &["mnist_cnn"], passes, 2048.0 / 60_000.0))
        .collect();
    // What figures 5.1 and 5.7, right, are about.
    out.extend([0.2, 0.4].into_iter().flat_map(|e| optimisers(e, &["mnist_cnn"], &[])));
    out.extend(optimisers(1.2, &["mnist_cnn"], &[]).into_iter().skip(1));
    out
}

fn five_layers() -> Vec<Course> {
    let mut out: Vec<Course> = [6.0, 8.0, 10.0].into_iter().flat_map(|e| both(e, CNN5, 20.0, 1024.0 / 25_000.0)).collect();
    out.extend(optimisers(3.0, CNN5, &[("sampling_rate", 1024.0 / 25_000.0), ("steps", 367.0)]));
    out
}

fn six_layers() -> Vec<Course> {
    [2.0, 4.0, 8.0].into_iter().flat_map(|e| both(e, &["linear"], 20.0, 1024.0 / 25_000.0)).collect()
}

/// Settings that are compared: softmax on pixels (figures 5.1, 5.3, 5.4), and strengths and lengths of steps of a network (figure 5.7).
fn settings_of_digits() -> Vec<Course> {
    let softmax = |name: String, epsilon: f64, more: &[(&'static str, f64)]| {
        let common = [("correlated", 0.0), ("sampling_rate", 0.02), ("steps", 250.0)];
        course(name, epsilon, &["linear"], &[&common[..], more].concat())
    };
    let mut out = Vec::new();
    for epsilon in [0.1, 0.2] {
        for strength in [0.0, 1.0, 3.0] {
            for length in LENGTHS {
                let settings = [("smoothing", strength), ("learning_rate", LENGTH * length)];
                out.push(softmax(of_softmax(strength, length), epsilon, &settings));
            }
        }
    }
    out.extend([0.05, 0.4].map(|e| softmax(of_softmax(0.0, 1.0), e, &[("learning_rate", LENGTH)])));
    let network =
        |name: String, more: &[(&'static str, f64)]| course(name, 0.4, &["mnist_cnn"], &[&[("correlated", 0.0)], more].concat());
    out.extend(SMOOTHING.map(|s| network(of_strength(s), &[("smoothing", s)])));
    for length in [0.25, 1.0] {
        out.extend([0.0, 1.0].map(|s| network(of_length(s, length), &[("smoothing", s), ("learning_rate", length)])));
    }
    out
}

pub(super) fn of_softmax(strength: f64, length: f64) -> String {
    format!("softmax s={strength} length {length}")
}

pub(super) fn of_strength(strength: f64) -> String {
    format!("CNN s={strength}")
}

pub(super) fn of_length(strength: f64, length: f64) -> String {
    format!("CNN s={strength} learning rate {length}")
}

/// Steps of a fit after which it is looked at, besides the last: a few close to the start, more later on.
const LOOKS: u64 = 12;

/// Weights after some steps, and the processor seconds until then.
struct Watch {
    at: Vec<u64>,
    begin: f64,
    seen: Vec<(u64, f64, Vec<Vec<f64>>)>,
}

impl Checkpoints for Watch {
    fn due(&self, steps: u64) -> bool {
        self.at.contains(&steps)
    }
    fn found(&mut self) -> Option<State> {
        None
    }
    fn keep(&mut self, state: State) -> privfit::Result<()> {
        self.seen.push((state.steps, thread_time() - self.begin, state.numbers));
        Ok(())
    }
}

/// All courses that are not in the file yet.
pub(super) fn run(options: &Options, points: &Points) -> Result<(), Failure> {
    for group in GROUPS.iter().filter(|g| options.wants(&format!("course {} {}", g.set, g.held))) {
        let missing: Vec<Course> =
            (group.courses)().into_iter().filter(|c| points.of(group.set, group.held, &c.name, c.epsilon).is_empty()).collect();
        if missing.is_empty() {
            continue;
        }
        let held = if group.held == "test" { Held::Test } else { Held::Validation };
        let set = load(&options.shared, group.set, held)?;
        let bar = Bar::new(missing.len() as u64, true, "courses");
        each_on_two_cores(missing, |course| {
            points.add(compute(group, &set, &course)?)?;
            bar.step();
            Ok(())
        })?;
        bar.finish();
    }
    points.sort()
}

fn compute(group: &Group, set: &Set, course: &Course) -> Result<Vec<Point>, Failure> {
    let job = Job {
        schema: set.schema.clone(),
        rows: Some(set.rows),
        epsilon: course.epsilon,
        delta: Some(DELTA),
        adjacency: Adjacency::ZeroOut,
        loss: Some("softmax".into()),
        method: "network".into(),
        settings: Settings(course.settings.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: true,
        auxiliary: None,
        layers: Some(course.layers.iter().map(|l| l.to_string()).collect()),
        pretrained: None,
    };
    let prepared = prepare(&job, set.rows, false)?;
    let plan = prepared.plan.as_ref();
    let truth = certified(plan.event(), Adjacency::ZeroOut, DELTA).unwrap_or(f64::INFINITY);
    let rate = plan.describe().iter().find(|d| d.0 == "sampling rate").and_then(|d| d.1.parse().ok()).unwrap_or(1.0);
    let steps = plan.steps();
    let key = [group.set, &course.name, &course.epsilon.to_string()];
    let key = key.iter().flat_map(|p| p.bytes().chain([0])).fold(3, |k, b| splitmix64(k ^ u64::from(b)));
    let (entropy, engine) = (Entropy::simulated(key), Threads::new(1));
    // The last look is at what is released.
    let at = (1..LOOKS).map(|i| (steps as f64 * (i as f64 / LOOKS as f64).powf(1.5)).ceil() as u64).collect();
    let kernel = privfit::Error::from;
    let mut watch = Watch { at, begin: thread_time(), seen: Vec::new() };
    let mut run = Run::begin(&set.train, &engine, &entropy, plan.event()).map_err(kernel)?.under(Adjacency::ZeroOut);
    let learned = plan.learn_kept(&mut run, &|| {}, &mut watch)?;
    let spent = thread_time() - watch.begin;
    let learned = run.close(learned).map_err(kernel)?.into_value();
    let mut out = Vec::new();
    let mut look = |step: u64, seconds: f64, learned: Learned| {
        let Learned::Network(network) = learned else { return };
        let model = Model::Network(network);
        let [cross_entropy, wrong] = tested(&model, &set.test);
        let [training, _] = tested(&model, &set.clear);
        out.push(Point {
            set: group.set.into(),
            held: group.held.into(),
            name: course.name.clone(),
            numbers: [course.epsilon, truth, step as f64, step as f64 * rate, seconds, training, cross_entropy, wrong],
        });
    };
    for (step, seconds, mut numbers) in watch.seen {
        // Scales and shifts of inputs, where they were released, are the last list, and come first.
        let released = if numbers.len() > 6 && !course.settings.iter().any(|s| s.0 == "fresh") || numbers.len() > 8 {
            numbers.pop().unwrap_or_default()
        } else {
            Vec::new()
        };
        let weights = numbers.swap_remove(0);
        look(step, seconds, plan.learned([released, weights].concat()));
    }
    look(steps, spent, learned);
    Ok(out)
}
