//! Private labels: every mechanism in two worlds, broken ones flagged, and the job as a whole.
//!
//! False alarms: each statistical test has a chance of 1e-6, and there are a dozen of them.

use privfit::account::{Adjacency, Event, epsilon};
use privfit::audit::subject::{Claim, Comparison, Moved, Release, Subject, World};
use privfit::audit::{Pair, distribution};
use privfit::data::encode::Row;
use privfit::data::generate::{Random, private, public};
use privfit::engine::Threads;
use privfit::error::Result;
use privfit::job::Release as _;
use privfit::job::fit::Job;
use privfit::job::label;
use privfit::kernel::{
    AboveThreshold, AskVotes, ConfidentVotes, Dataset, DatasetBuilder, Entropy, Learner, NoiseRng, RowShape, Run, StableLabel,
    Train,
};
use privfit::method::Settings;
use privfit::verify::verify_artifact;
use std::sync::Arc;

const PARTS: u32 = 4;
const DELTA: f64 = 1e-3;

/// Records of which one decides what the teacher of its part says; without it all parts agree.
fn records(odd: bool) -> Dataset {
    let shape = RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut builder = DatasetBuilder::new(&Entropy::simulated(0), shape).unwrap();
    (0..12).for_each(|i| builder.row(&[0.5], if odd && i == 7 { 1.0 } else { 0.0 }));
    builder.build()
}

/// 1 where a record of the part says so.
const ANY: Learner<u32> = Learner {
    name: "any",
    parameters: Vec::new(),
    train: |_, units, _| units.fold(0, |any, u| any | u32::from(u.label(0) == 1.0)),
};

#[derive(Clone, Copy)]
enum Mechanism {
    Confident(ConfidentVotes),
    Stable(AboveThreshold),
}

/// A mechanism of the kernel, or one on plain counts that is broken.
struct Votes {
    name: &'static str,
    claim: Claim,
    sound: Option<Mechanism>,
    /// Numbers that leave, given whether the record is there; and how far values before noise move over what is claimed.
    broken: Option<(fn(bool, f64, &mut NoiseRng) -> Vec<f64>, f64)>,
    scale: f64,
    gaussian: bool,
}

fn normal(words: &mut NoiseRng) -> f64 {
    (-2.0 * (1.0 - words.uniform()).ln()).sqrt() * (std::f64::consts::TAU * words.uniform()).cos()
}

fn laplace(words: &mut NoiseRng) -> f64 {
    let (sign, size) = (words.uniform() < 0.5, -(1.0 - words.uniform()).ln());
    if sign { size } else { -size }
}

impl Votes {
    fn numbers(&self, odd: bool, mechanism: Mechanism) -> Vec<f64> {
        let (data, engine, entropy) = (records(odd), Threads::new(1), Entropy::system().unwrap());
        let mut run = Run::begin(&data, &engine, &entropy, &self.claim.event).unwrap();
        let parts = run.parts(PARTS).unwrap();
        let models = run.execute(Train { parts: &parts, learner: &ANY, progress: &|| {} }).unwrap();
        let (label, point): (fn(&u32, &[f32]) -> u32, &[f32]) = (|own, _| *own, &[0.0]);
        let mut out = Vec::new();
        match mechanism {
            Mechanism::Confident(plan) => {
                let mut open = run.execute(plan).unwrap();
                for _ in 0..plan.points() {
                    if open.has_ended() {
                        out.extend([0.0; 3]);
                        continue;
                    }
                    let answer = run.execute(AskVotes { open: &mut open, models: &models, label, point }).unwrap();
                    out.push(f64::from(u8::from(answer.is_some())));
                    out.extend(answer.unwrap_or(vec![0.0; 2]));
                }
            }
            Mechanism::Stable(test) => {
                let mut open = run.execute(test).unwrap();
                for _ in 0..6 {
                    if open.has_ended() {
                        out.push(0.5);
                        continue;
                    }
                    let asked = StableLabel { test: &mut open, models: &models, label, point, classes: 2 };
                    out.push(run.execute(asked).unwrap().map_or(-1.0, |l| f64::from(l) + 1.0));
                }
            }
        }
        run.close(()).unwrap();
        out
    }
}

impl Subject for Votes {
    fn name(&self) -> String {
        self.name.into()
    }

    fn claim(&self) -> &Claim {
        &self.claim
    }

    fn open<'a>(&'a self, rows: &'a [Row]) -> Result<World<'a>> {
        let odd = rows.len() == 1;
        let mut words = Entropy::system()?.for_units()?;
        Ok(Box::new(move || {
            let numbers = match (self.sound, self.broken) {
                (Some(mechanism), _) => self.numbers(odd, mechanism),
                (_, Some((broken, _))) => broken(odd, self.scale, &mut words),
                _ => Vec::new(),
            };
            Ok(Release { numbers })
        }))
    }

    fn compare(&self, _: &[Row], _: &[Row], _: u64) -> Result<Comparison> {
        let part = self.broken.map_or(1.0, |b| b.1);
        Ok(Comparison { moved: vec![Moved { what: "votes", part, holds: part <= 1.0 }], equal: true })
    }

    fn one_gaussian(&self) -> bool {
        self.gaussian
    }

    fn executed(&self, _: &[Row]) -> Result<Event> {
        Ok(self.claim.event.clone())
    }
}

fn pair() -> Pair {
    Pair { kind: "one part", a: vec![Row::default()], b: Vec::new() }
}

/// The scale at which an event of one costs so much.
fn calibrated(target: f64, event: impl Fn(f64) -> Event) -> f64 {
    let (mut low, mut high) = (1e-3, 1e4);
    for _ in 0..60 {
        let middle = f64::sqrt(low * high);
        let cost = epsilon(&event(middle), Adjacency::ReplaceOne, DELTA).map_or(f64::INFINITY, |a| a.bound.upper);
        if cost > target { low = middle } else { high = middle }
    }
    high
}

/// At a claim of 1 and of 8: what two worlds show is below the claim for every mechanism of the kernel.
#[test]
fn mechanisms_of_labels_hold_in_two_worlds() {
    for target in [1.0, 8.0] {
        let confident = |nm: f64| ConfidentVotes::new(2, (3, 2), nm, Some((3.5, (2.0 * nm).max(0.3)))).unwrap();
        let plain = |nm: f64| ConfidentVotes::new(2, (1, 1), nm, None).unwrap();
        let stable = |scale: f64| AboveThreshold::new((1.0 / scale).min(900.0), 2, 0.5 * DELTA).unwrap();
        let (a, b) = (calibrated(target, |s| confident(s).event()), calibrated(target, |s| plain(s).event()));
        let c = calibrated(target, |s| stable(s).event());
        let cases = [
            ("confident", Mechanism::Confident(confident(a)), confident(a).event(), false),
            ("votes", Mechanism::Confident(plain(b)), plain(b).event(), false),
            ("stable", Mechanism::Stable(stable(c)), stable(c).event(), false),
        ];
        for (name, mechanism, event, gaussian) in cases {
            let claim = Claim::new(event, Adjacency::ReplaceOne, DELTA);
            let subject = Votes { name, claim, sound: Some(mechanism), broken: None, scale: 0.0, gaussian };
            let finding = distribution::audit(&subject, &pair(), 1800, &|| {}).unwrap();
            assert!(finding.violations.is_empty(), "{name} at {target}: {:?}", finding.violations);
            println!("{name} at {target}: at least {:.3}", finding.epsilon);
            if name == "votes" && target > 1.0 {
                assert!(
                    finding.mu > 0.5 * subject.claim.mu.unwrap(),
                    "an audit that sees nothing: {} {:?}",
                    finding.mu,
                    subject.claim.mu
                );
            }
        }
    }
}

/// Counts are (3, 1) with the record and (4, 0) without it. Each of these claims what its sound form has, and is caught.
#[test]
fn broken_votes_are_flagged() {
    type Broken = fn(bool, f64, &mut NoiseRng) -> Vec<f64>;
    let mut caught = 0;
    for target in [1.0, 8.0] {
        // Two parts of one record: counts move by twice as much.
        let two_parts: Broken = |odd, deviation, words| {
            let counts = if odd { [2.0, 2.0] } else { [4.0, 0.0] };
            counts.iter().map(|c| c + deviation * normal(words)).collect()
        };
        // An answer that is given twice and counted once.
        let twice: Broken = |odd, deviation, words| {
            let counts = if odd { [3.0, 1.0, 3.0, 1.0] } else { [4.0, 0.0, 4.0, 0.0] };
            counts.iter().map(|c| c + deviation * normal(words)).collect()
        };
        // A threshold without noise: whether the count is there is seen.
        let bare: Broken = |odd, deviation, words| {
            let counts = if odd { [3.0, 1.0] } else { [4.0, 0.0] };
            match counts[0] >= 3.5 {
                true => counts.iter().map(|c| c + deviation * normal(words)).chain([1.0]).collect(),
                false => vec![0.0, 0.0, 0.0],
            }
        };
        // The raw gap, as if it moved by 1: gaps 1 and 3 around a threshold, five times in a row.
        let gap: Broken = |odd, scale, words| {
            let (level, gap) = (2.0 + scale * laplace(words), if odd { 1.0 } else { 3.0 });
            let passed = (0..5).take_while(|_| gap + 2.0 * scale * laplace(words) > level).count();
            vec![passed as f64]
        };
        let votes = |nm: f64| ConfidentVotes::new(2, (1, 1), nm, None).unwrap().event();
        let nm = calibrated(target, votes);
        let gaussian = |name, broken: Broken, part| {
            let claim = Claim::new(votes(nm), Adjacency::ReplaceOne, DELTA);
            Votes {
                name,
                claim,
                sound: None,
                broken: Some((broken, part)),
                scale: nm * std::f64::consts::SQRT_2,
                gaussian: part > 0.0,
            }
        };
        let pure = Claim::new(Event::Pure { epsilon: target, replace_factor: 1.0 }, Adjacency::ReplaceOne, DELTA);
        let raw =
            Votes { name: "raw gap", claim: pure, sound: None, broken: Some((gap, 2.0)), scale: 2.0 / target, gaussian: false };
        let cases = [
            gaussian("two parts", two_parts, 2.0),
            gaussian("twice", twice, f64::sqrt(2.0)),
            gaussian("bare threshold", bare, 0.0),
            raw,
        ];
        for subject in cases {
            let finding = distribution::audit(&subject, &pair(), 30_000, &|| {}).unwrap();
            let moved = subject.compare(&[], &[], 0).unwrap().violated();
            // What one bit shows of a pure claim of 1 is little: there the movement of the value says it.
            let by_runs = !finding.violations.is_empty();
            println!("{} at {target}: at least {:.3}, {by_runs} {moved}", subject.name, finding.epsilon);
            assert!(by_runs || subject.name == "raw gap" && moved, "{} at {target} is missed", subject.name);
            caught += 1;
        }
    }
    assert_eq!(caught, 8);
}

fn job(schema: privfit::Schema, points: Vec<Row>, settings: &[(&str, f64)]) -> Job {
    let auxiliary = Some(Arc::new(public(&points, &schema)));
    Job {
        schema,
        rows: None,
        epsilon: 3.0,
        delta: Some(1e-7),
        adjacency: Adjacency::ZeroOut,
        loss: None,
        method: "auto".into(),
        settings: Settings(settings.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: privfit::constraint::Constraint::None,
        allow_large_delta: false,
        compare: false,
        auxiliary,
        layers: None,
        pretrained: None,
    }
}

/// Rows of four numbers, of which two decide the class.
fn rows(seed: u64, count: usize) -> Vec<Row> {
    let mut random = Random::new(seed);
    let one = |_| {
        let dense: Vec<f64> = (0..4).map(|_| random.uniform() - 0.5).collect();
        let label = if dense[0] + 0.5 * dense[1] > 0.0 { 1.0 } else { 0.0 };
        Row { dense, label, ..Row::default() }
    };
    (0..count).map(one).collect()
}

fn schema() -> privfit::Schema {
    let text = "[dataset]\nname = \"generated\"\n[target]\nclasses = [\"no\", \"yes\"]\n[features]\nkind = \"dense\"\ndimension = 4\nrow_norm = 1.0\nintercept = false\n";
    privfit::Schema::parse(text).unwrap()
}

/// The job as a whole on generated rows: the plan is a function of public facts, the labels are those of the ensemble, the student knows the classes, the file is
/// read as it was written, and its certificate is recomputed by a stranger.
#[test]
fn labels_are_released_with_their_certificate() {
    let (schema, rows, points) = (schema(), rows(1, 6000), rows(2, 200));
    let job = job(schema.clone(), points.clone(), &[]);
    let planned = label::plan(&job, 6000, false, None).unwrap();
    assert_eq!(planned.event(), label::plan(&job, 6000, false, None).unwrap().event());
    let spent = epsilon(planned.event(), Adjacency::ReplaceOne, 1e-7).unwrap().bound.upper;
    assert!(spent <= 3.0 && spent > 2.9, "votes cost the same under both: {spent}");
    assert!(planned.offers().iter().all(|(answers, share)| *answers > 0 && (0.5..=1.0).contains(share)));
    let entropy = Entropy::system().unwrap();
    let data = private(&rows, &schema, privfit::data::cells::RowForm::Features, &entropy).unwrap();
    let steps = std::cell::Cell::new(0);
    let output = planned.run(data, &Threads::new(2), &entropy, &|| steps.set(steps.get() + 1)).unwrap();
    assert_eq!(steps.get(), planned.steps(), "progress is that of parts and points");
    let bytes = output.bytes().unwrap();
    let labels = planned.read(&bytes).unwrap().into_labels().unwrap();
    assert_eq!(labels.to_bytes().unwrap(), bytes);
    let right = |labels: &[Option<usize>]| {
        let both = labels.iter().zip(&points).filter_map(|(label, row)| label.map(|l| l == row.label as usize));
        let right: Vec<bool> = both.collect();
        (right.iter().filter(|r| **r).count() as f64 / right.len().max(1) as f64, right.len())
    };
    let (accuracy, answered) = right(&labels.labels());
    assert!(answered > 50 && accuracy > 0.7, "{accuracy} of {answered}");
    assert!(labels.table().lines().count() == 201 && labels.table().starts_with("point,label,"));
    // Teachers of every kind answer, and teach the linear student.
    for teachers in [1.0, 2.0] {
        let planned =
            label::plan(&self::job(schema.clone(), points.clone(), &[("teachers", teachers)]), 6000, false, None).unwrap();
        let data = private(&rows, &schema, privfit::data::cells::RowForm::Features, &entropy).unwrap();
        let other = planned.run(data, &Threads::new(2), &entropy, &|| {}).unwrap().into_labels().unwrap();
        let (accuracy, answered) = right(&other.labels());
        assert!(
            answered > 50 && accuracy > 0.7 && verify_artifact(&other.student).holds(),
            "{teachers}: {accuracy} of {answered}"
        );
    }
    // The certificate is that of any model: whoever holds the file can make plan, numbers and sentences again.
    let artifact = privfit::Artifact::from_bytes(&bytes).unwrap();
    assert_eq!(artifact, labels.student);
    assert!(verify_artifact(&artifact).holds(), "{:?}", verify_artifact(&artifact));
    // A label that is changed is not noticed by the student's digest; a student that is changed is.
    let other = String::from_utf8(bytes.clone()).unwrap().replacen("\\\"rows\\\": 6000", "\\\"rows\\\": 6001", 1);
    assert!(other.as_bytes() == bytes || privfit::Artifact::from_json(&other).is_err());
    assert!(privfit::prediction::labels::Labels::from_bytes(b"{}").is_err());
}

/// What has no guarantee has no plan, and says why.
#[test]
fn ensembles_without_a_guarantee_are_refused() {
    let (schema, points) = (schema(), rows(2, 20));
    let plan = |change: &dyn Fn(&mut Job), settings: &[(&str, f64)]| {
        let mut job = job(schema.clone(), points.clone(), settings);
        change(&mut job);
        label::plan(&job, 500, false, None).map(|_| ()).map_err(|e| e.to_string())
    };
    assert!(plan(&|_| (), &[]).is_ok());
    for (change, settings, says) in [
        (&|j: &mut Job| j.adjacency = Adjacency::AddRemove, &[][..], "parts"),
        (&|j: &mut Job| j.auxiliary = None, &[], "public points"),
        (&|j: &mut Job| j.delta = Some(0.0), &[], "delta"),
        (&|_: &mut Job| (), &[("parts", 501.0)], "units"),
        (&|_: &mut Job| (), &[("teachers", 3.0)], "command"),
        (&|_: &mut Job| (), &[("label_private", 1.0)], "labels alone"),
    ] as [(&dyn Fn(&mut Job), &[(&str, f64)], &str); 6]
    {
        let error = plan(change, settings).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}
