//! `privfit-bench variants`: settings of networks side by side on the same rows, so that defaults are chosen on validation rows and generated data. Every epsilon is accounted from the plan's event.

use super::cell::{mean_and_error, thread_time};
use super::each_on_two_cores;
use super::nonconvex::cell::tested;
use super::pictures::{Held, load};
use super::sets::{Set, splitmix64};
use crate::{Failure, print_line};
use privfit::account::Adjacency;
use privfit::constraint::Constraint;
use privfit::engine::Threads;
use privfit::job::fit::{Job, Prepared, prepare};
use privfit::kernel::Entropy;
use privfit::method::Settings;
use serde_json::json;
use std::path::PathBuf;

/// Options of the verb.
pub(crate) struct Options {
    pub(crate) sets: Vec<String>,
    pub(crate) epsilons: Vec<f64>,
    pub(crate) variants: Vec<String>,
    pub(crate) fits: u64,
    pub(crate) test: bool,
    pub(crate) shared: PathBuf,
}

const DELTA: f64 = 1e-5;
/// Settings that say which noise a network takes: without them it chooses by its forecast.
const CHOICE: [&str; 3] = ["correlated", "bands", "taken_back"];

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let held = if options.test { Held::Test } else { Held::Validation };
    let variants: Vec<Settings> = options.variants.iter().map(|text| settings(text)).collect::<Result<_, _>>()?;
    for name in &options.sets {
        let set = load(&options.shared, name, held)?;
        let variants = || options.variants.iter().zip(&variants);
        let work: Vec<_> = options.epsilons.iter().flat_map(|e| variants().map(move |v| (*e, v))).collect();
        each_on_two_cores(work, |(epsilon, (text, settings))| {
            print_line(&line(options, name, &set, epsilon, text, settings)?);
            Ok(())
        })?;
    }
    Ok(())
}

/// Numbers, `true` and `false` by the names of settings.
fn settings(text: &str) -> Result<Settings, Failure> {
    let one = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let value = match value {
            "true" => 1.0,
            "false" => 0.0,
            number => number.parse().ok()?,
        };
        Some((key.to_string(), value))
    };
    let wrong = || Failure::misuse(format!("{text:?} is no list of settings: give key=value with spaces between"));
    text.split_whitespace().map(one).collect::<Option<_>>().map(Settings).ok_or_else(wrong)
}

fn planned(set: &Set, epsilon: f64, settings: Settings) -> Result<Prepared, Failure> {
    let job = Job {
        schema: set.schema.clone(),
        rows: Some(set.rows),
        epsilon,
        delta: Some(DELTA),
        adjacency: Adjacency::ZeroOut,
        loss: None,
        method: "network".into(),
        settings,
        constraint: Constraint::None,
        allow_large_delta: true,
        compare: true,
        auxiliary: None,
        layers: None,
        pretrained: None,
    };
    Ok(prepare(&job, set.rows, false)?)
}

fn line(options: &Options, name: &str, set: &Set, epsilon: f64, text: &str, settings: &Settings) -> Result<String, Failure> {
    let prepared = planned(set, epsilon, settings.clone())?;
    let free = settings.0.iter().filter(|(key, _)| !CHOICE.contains(&key.as_str())).map(|(k, v)| (k.clone(), *v)).collect();
    let forecast = planned(set, epsilon, Settings(free))?.plan.correlation_forecast();
    let engine = Threads::new(1);
    let (mut right, mut entropy, mut seconds) = (Vec::new(), Vec::new(), 0.0);
    for fit in 0..options.fits {
        let begin = thread_time();
        let artifact = prepared.train(&set.train, &engine, &Entropy::simulated(splitmix64(fit)), &|| {})?;
        seconds += thread_time() - begin;
        let [log_loss, wrong] = tested(&artifact.model, &set.test);
        right.push(1.0 - wrong);
        entropy.push(log_loss);
    }
    let ([accuracy, accuracy_error], [log_loss, log_loss_error]) =
        (mean_and_error(&right).into(), mean_and_error(&entropy).into());
    let described = prepared.plan.describe();
    let said = |name: &str| described.iter().find(|d| d.0 == name).map(|d| d.1.clone());
    Ok(json!({
        "set": name, "rows": set.rows, "held": if options.test { "test" } else { "validation" }, "epsilon": epsilon, "variant": text,
        "forecast": forecast, "accuracy": accuracy, "accuracy_error": accuracy_error, "log_loss": log_loss, "log_loss_error": log_loss_error,
        "fits": options.fits, "steps": prepared.plan.steps(), "batches": said("batches"), "rate": said("sampling rate"),
        "learning_rate": said("learning rate"), "taken_back": said("noise that a step takes back"),
        "seconds": seconds / options.fits.max(1) as f64,
    })
    .to_string())
}
