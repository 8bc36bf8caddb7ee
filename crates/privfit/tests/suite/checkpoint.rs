//! Networks that stop and go on inside of one process: at every step, with every optimizer, in a file and in a ledger, and two at once.

use privfit::Error;
use privfit::account::Adjacency;
use privfit::certificate::Declared;
use privfit::checkpoint::{Checkpoints, State};
use privfit::constraint::Constraint;
use privfit::data::load::Source;
use privfit::engine::Threads;
use privfit::job::fit::{Job, Prepared, prepare};
use privfit::job::kept::{CheckpointArguments, CheckpointPlace};
use privfit::job::release::{Context, Delivered, LedgerSession, OutputTarget, Release, release};
use privfit::kernel::Entropy;
use privfit::ledger::{Ledger, amount::Amount, chain::MacKey, record::Scope};
use privfit::method::Settings;
use privfit::network::Pretrained;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SCHEMA: &str = "[dataset]\nname = \"points\"\n[target]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n\
                      [features.a]\ntype = \"number\"\nmin = 0\nmax = 1\n[features.b]\ntype = \"number\"\nmin = 0\nmax = 1\n";

const STEPS: u64 = 12;

/// A directory with 200 rows; gone at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("privfit-kept-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        let row =
            |i: u32| format!("{},{},{}\n", f64::from(i * 37 % 101) / 101.0, f64::from(i * 53 % 97) / 97.0, i * 37 % 101 / 51);
        std::fs::write(path.join("d.csv"), format!("a,b,y\n{}", (0..200).map(row).collect::<String>())).unwrap();
        Place(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn source(&self) -> Source {
        Source { files: vec![self.path("d.csv")], labels: Vec::new() }
    }

    fn ledger(&self) -> LedgerSession {
        let ledger = Ledger::open(self.path("l").to_str().unwrap(), MacKey::default()).unwrap();
        LedgerSession { ledger, request: Some("run".into()), announce: |_| {} }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn network(settings: &[(&str, f64)]) -> Prepared {
    let usual = [("steps", STEPS as f64), ("sampling_rate", 0.3)];
    let usual = usual.iter().filter(|u| settings.iter().all(|s| s.0 != u.0));
    let job = Job {
        schema: privfit::Schema::parse(SCHEMA).unwrap(),
        rows: Some(200),
        epsilon: 1.0,
        delta: Some(1e-5),
        adjacency: Adjacency::ZeroOut,
        loss: None,
        method: "auto".into(),
        settings: Settings(usual.chain(settings).map(|(k, v)| (k.to_string(), *v)).collect()),
        constraint: Constraint::None,
        allow_large_delta: false,
        compare: false,
        auxiliary: None,
        layers: Some(vec!["dense 3".into(), "tanh".into()]),
        pretrained: None,
    };
    prepare(&job, 200, false).unwrap()
}

/// Keeps states in memory, and fails at some of them: before they are kept, or after.
struct Failing {
    state: Option<State>,
    every: u64,
    fails: u64,
    after: bool,
    kept: Vec<u64>,
}

impl Checkpoints for Failing {
    fn due(&self, steps: u64) -> bool {
        steps.is_multiple_of(self.every)
    }

    fn found(&mut self) -> Option<State> {
        self.state.clone()
    }

    fn keep(&mut self, state: State) -> Result<(), Error> {
        let fails = state.steps == self.fails;
        if !fails || self.after {
            self.kept.push(state.steps);
            self.state = Some(state);
        }
        if fails { Err(Error::output("stopped")) } else { Ok(()) }
    }
}

#[test]
fn stopped_at_every_step() {
    let place = Place::new("steps");
    for settings in [
        &[][..],
        &[("adam", 1.0)],
        &[("sampling_rate", 1.0)],
        &[("automatic", 1.0), ("averaged", 0.0)],
        // What inputs are normalised with is released once, and kept.
        &[("normalise", 0.1)],
        // Noise that later steps take back comes of its keys again.
        &[("correlated", 1.0), ("bands", 4.0)],
        &[("taken_back", 0.9), ("normalise", 0.1), ("adam", 1.0)],
        &[("bands", 3.0), ("in_order", 1.0)],
    ] {
        kept_at_every_step(&place, &network(settings), 0, STEPS, &format!("{settings:?}"));
    }
}

/// Steps of linear models with correlated noise: one head, several, and a number that begins at an offset.
#[test]
fn linear_models_stop_at_every_step() {
    let place = Place::new("linear");
    for (target, loss, settings, all) in [
        ("classes = [\"0\", \"1\"]", "logistic", &[("bands", 4.0)][..], 12),
        ("classes = [\"0\", \"1\"]", "logistic", &[("taken_back", 0.5), ("in_order", 1.0)], 12),
        ("classes = [\"0\", \"1\", \"2\"]", "logistic", &[("bands", 4.0)], 36),
        ("bounds = [0, 1]", "squared", &[("taken_back", 0.9)], 12),
        ("bounds = [0, 1]", "poisson", &[("bands", 2.0)], 12),
    ] {
        kept_at_every_step(&place, &linear(target, loss, settings), 0, all, &format!("{loss} {settings:?}"));
    }
}

/// A linear model with correlated noise: four epochs of three batches.
fn linear(target: &str, loss: &str, settings: &[(&str, f64)]) -> Prepared {
    let usual = [("epochs", 4.0), ("batches", 3.0)];
    let job = Job {
        schema: privfit::Schema::parse(&SCHEMA.replace("classes = [\"0\", \"1\"]", target)).unwrap(),
        loss: Some(loss.into()),
        method: "correlated-noise".into(),
        settings: Settings(usual.iter().chain(settings).map(|(k, v)| (k.to_string(), *v)).collect()),
        layers: None,
        ..network(&[]).job().clone()
    };
    prepare(&job, 200, false).unwrap()
}

/// An additive model comes before the network; what it released is kept with each step.
#[test]
fn two_models_stop_at_every_step() {
    let place = Place::new("two");
    let target = "classes = [\"0\", \"1\", \"2\"]";
    let settings = [("steps", STEPS as f64), ("sampling_rate", 0.3), ("additive_steps", 3.0)];
    let job = Job {
        schema: privfit::Schema::parse(&SCHEMA.replace("classes = [\"0\", \"1\"]", target)).unwrap(),
        method: "additive-or-network".into(),
        layers: None,
        settings: Settings(settings.map(|(k, v)| (k.to_string(), v)).into()),
        ..network(&[]).job().clone()
    };
    kept_at_every_step(&place, &prepare(&job, 200, false).unwrap(), 3, STEPS, "two models");
}

/// Ended where a state is kept after the first steps, before or after it is, every so many steps: the same bytes as at once.
fn kept_at_every_step(place: &Place, prepared: &Prepared, before: u64, all: u64, what: &str) {
    let run = |kept: Option<&mut Failing>| {
        let (engine, entropy) = (Threads::new(1), Entropy::simulated(3));
        let data = prepared.open(&place.source(), &entropy).unwrap();
        let output = match kept {
            None => prepared.run(data, &engine, &entropy, &|| {}),
            Some(kept) => prepared.run_kept(data, &engine, &entropy, &|| {}, kept),
        };
        output.and_then(|o| o.bytes())
    };
    let whole = run(None).unwrap();
    for (every, after) in [(1, true), (1, false), (4, true), (5, false)] {
        let mut kept = Failing { state: None, every, fails: 0, after, kept: Vec::new() };
        let due: Vec<u64> = (before + 1..=before + all).filter(|step| step.is_multiple_of(every)).collect();
        for fails in &due {
            kept.fails = *fails;
            assert_eq!(run(Some(&mut kept)).unwrap_err().code(), 3, "at step {fails}");
        }
        kept.fails = 0;
        assert_eq!(run(Some(&mut kept)).unwrap(), whole, "{what}, every {every}");
        assert_eq!(kept.kept, due, "each state is kept once");
    }
}

/// A random number of steps is drawn once: whoever goes on takes the rest of them, and after the last one all are behind, so that nobody takes it again.
#[test]
fn a_random_number_of_steps_is_kept() {
    let place = Place::new("rounds");
    let prepared = network(&[("random_rounds", 1.0)]);
    let mut taken = Vec::new();
    for seed in 0..6 {
        let run = |kept: Option<&mut Failing>| {
            let (engine, entropy) = (Threads::new(1), Entropy::simulated(seed));
            let data = prepared.open(&place.source(), &entropy).unwrap();
            let output = match kept {
                None => prepared.run(data, &engine, &entropy, &|| {}),
                Some(kept) => prepared.run_kept(data, &engine, &entropy, &|| {}, kept),
            };
            output.and_then(|o| o.bytes())
        };
        let whole = run(None).unwrap();
        let mut kept = Failing { state: None, every: 1, fails: 0, after: true, kept: Vec::new() };
        let rounds = loop {
            kept.fails += 1;
            if run(Some(&mut kept)).is_ok() {
                break kept.kept.len() as u64;
            }
        };
        assert_eq!(kept.kept.last(), Some(&STEPS), "after {rounds} steps all are behind");
        assert_eq!(run(Some(&mut kept)).unwrap(), whole, "seed {seed}");
        assert_eq!(kept.kept.len() as u64, rounds, "no step is taken again");
        taken.push(rounds);
        // A number of steps that the plan does not have is none of ours.
        for wrong in [0.0, STEPS as f64 + 1.0, f64::NAN] {
            let mut other = kept.state.clone().unwrap();
            *other.numbers.last_mut().unwrap() = vec![wrong];
            let mut changed = Failing { state: Some(other), every: 1, fails: 0, after: true, kept: Vec::new() };
            assert_eq!(run(Some(&mut changed)).unwrap_err().code(), 4);
        }
    }
    taken.dedup();
    assert!(taken.len() > 1, "{taken:?}");
}

/// The same with frozen layers, all of whose weights are this number.
fn frozen(weight: f64) -> Prepared {
    let pretrained = Pretrained::planned(50, Vec::new()).with_weights(vec![weight; 9]);
    prepare(&Job { pretrained: Some(Arc::new(pretrained)), ..network(&[]).job().clone() }, 200, false).unwrap()
}

/// A run with frozen layers goes on where it was, with the same layers only.
#[test]
fn frozen_layers_go_on_with_themselves_alone() {
    let place = Place::new("frozen");
    let (file, out, other) = (place.path("run"), place.path("m.json"), place.path("other.json"));
    let whole = go(&frozen(0.5), place.in_file(None, &other, &|| {})).0.unwrap().bytes;
    let kept = Some(CheckpointPlace::File(&file));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let steps = Cell::new(0);
        let end = || {
            steps.set(steps.get() + 1);
            assert!(steps.get() < 7, "ended on purpose");
        };
        go(&frozen(0.5), place.in_file(kept, &out, &end))
    }));
    assert!(ended.is_err() && file.exists());
    for others in [frozen(0.25), network(&[])] {
        let error = go(&others, place.in_file(kept, &out, &|| panic!("no step is taken"))).0.err().unwrap();
        assert!(error.code() == 2 && !out.exists(), "{error}");
    }
    let (delivered, resumed) = go(&frozen(0.5), place.in_file(kept, &out, &|| {}));
    assert_eq!((delivered.unwrap().bytes, resumed), (whole, 6));
    // A plan that was made before public rows were looked at trains nothing.
    let planned = Job { pretrained: Some(Arc::new(Pretrained::planned(50, Vec::new()))), ..network(&[]).job().clone() };
    let planned = prepare(&planned, 200, false).unwrap();
    assert!(go(&planned, place.in_file(None, &place.path("none.json"), &|| {})).0.is_err());
}

/// What a release is given.
struct Given<'a> {
    place: &'a Place,
    seed: Option<u64>,
    ledger: Option<LedgerSession>,
    checkpoint: Option<CheckpointPlace<'a>>,
    every: u64,
    out: &'a Path,
    progress: &'a dyn Fn(),
}

impl Place {
    fn in_file<'a>(&'a self, checkpoint: Option<CheckpointPlace<'a>>, out: &'a Path, progress: &'a dyn Fn()) -> Given<'a> {
        Given { place: self, seed: Some(3), ledger: None, checkpoint, every: 3, out, progress }
    }

    fn in_ledger<'a>(&'a self, out: &'a Path, progress: &'a dyn Fn()) -> Given<'a> {
        let checkpoint = Some(CheckpointPlace::Ledger);
        Given { place: self, seed: None, ledger: Some(self.ledger()), checkpoint, every: 3, out, progress }
    }
}

fn go(job: &dyn Release, given: Given<'_>) -> (Result<Delivered, Error>, u64) {
    let entropy = given.seed.map_or_else(|| Entropy::system().unwrap(), Entropy::simulated);
    let done = Cell::new(0);
    let resumed = |steps| done.set(steps);
    let context = Context {
        source: &given.place.source(),
        engine: &Threads::new(1),
        entropy: &entropy,
        ledger: given.ledger,
        declared: Declared::default(),
        out: Some(OutputTarget { path: given.out, replace: false }),
        checkpoint: given.checkpoint.map(|place| CheckpointArguments { place, every: Some(given.every), resumed: &resumed }),
        opening: &|| {},
        opened: &|| {},
        progress: given.progress,
    };
    (release(job, context), done.get())
}

/// While one process uses a file, another one is refused; the first is not disturbed.
#[test]
fn a_file_has_one_process() {
    let place = Place::new("file");
    let prepared = network(&[]);
    let (file, out, other) = (place.path("run"), place.path("m.json"), place.path("other.json"));
    let whole = go(&prepared, place.in_file(None, &other, &|| {})).0.unwrap().bytes;
    std::fs::remove_file(&other).unwrap();
    let kept = Some(CheckpointPlace::File(&file));
    let refused = RefCell::new(Vec::new());
    let intrude = || refused.borrow_mut().push(go(&prepared, place.in_file(kept, &other, &|| {})).0.err().unwrap().code());
    let (delivered, resumed) = go(&prepared, place.in_file(kept, &out, &intrude));
    assert_eq!((delivered.unwrap().bytes, resumed), (whole.clone(), 0));
    assert_eq!(*refused.borrow(), [1; STEPS as usize]);
    assert!(!file.exists() && !other.exists() && std::fs::read(&out).unwrap() == whole);
    // Delivered, and ended before its state was removed: the same again, and the model that is there is its own.
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let steps = Cell::new(0);
        let end = || {
            steps.set(steps.get() + 1);
            assert!(steps.get() < STEPS, "ended on purpose");
        };
        go(&prepared, place.in_file(kept, &other, &end))
    }));
    assert!(ended.is_err() && file.exists() && !other.exists());
    std::fs::write(&other, &whole).unwrap();
    let (delivered, resumed) = go(&prepared, place.in_file(kept, &other, &|| panic!("no step is left")));
    assert_eq!((delivered.unwrap().bytes, resumed), (whole, STEPS));
    assert!(!file.exists());
}

/// Two processes of one request: whoever comes later goes on, the other one can write nothing any more, and one model is released.
#[test]
fn a_request_has_one_process() {
    let place = Place::new("ledger");
    let prepared = network(&[]);
    let scope = Scope::of(&privfit::Schema::parse(SCHEMA).unwrap(), Adjacency::ZeroOut).unwrap();
    let path = place.path("l");
    Ledger::create(path.to_str().unwrap(), MacKey::default(), scope, Amount::parse("3").unwrap(), 1e-5).unwrap();
    let (out, other) = (place.path("m.json"), place.path("other.json"));
    let (steps, second) = (Cell::new(0), RefCell::new(None));
    let overtake = || {
        steps.set(steps.get() + 1);
        // Step 7 of the first one is computed, and step 6 was the last that is written down.
        if steps.get() == 7 {
            *second.borrow_mut() = Some(go(&prepared, place.in_ledger(&other, &|| {})));
        }
    };
    let first = go(&prepared, place.in_ledger(&out, &overtake)).0.err().unwrap();
    assert_eq!((first.code(), steps.get()), (1, 8), "{first}: it ends where it would have kept step 9");
    let (delivered, resumed) = second.take().unwrap();
    let bytes = delivered.unwrap().bytes;
    assert_eq!(resumed, 6);
    assert!(!out.exists() && std::fs::read(&other).unwrap() == bytes);
    let again = go(&prepared, place.in_ledger(&out, &|| panic!("released before"))).0.unwrap();
    assert!(again.before && again.bytes == bytes);
    let status = Ledger::open(path.to_str().unwrap(), MacKey::default()).unwrap().status().unwrap();
    assert_eq!((status.spent.jobs, status.spent.released), (1, 1));
    let verdict = privfit::verify::against_ledger(&status, &privfit::Artifact::from_bytes(&bytes).unwrap(), &bytes);
    assert!(verdict.iter().all(|c| c.held()), "{verdict:?}");
}

/// Refused before anything is reserved, made or opened.
#[test]
fn what_can_not_be_kept() {
    let place = Place::new("refused");
    let scope = Scope::of(&privfit::Schema::parse(SCHEMA).unwrap(), Adjacency::ZeroOut).unwrap();
    let path = place.path("l");
    Ledger::create(path.to_str().unwrap(), MacKey::default(), scope, Amount::parse("3").unwrap(), 1e-5).unwrap();
    let (file, out) = (place.path("run"), place.path("m.json"));
    let refused = |job: &Prepared, ledger: bool, checkpoint, every, words: &str| {
        let ledger = ledger.then(|| place.ledger());
        let given = Given { place: &place, seed: None, ledger, checkpoint: Some(checkpoint), every, out: &out, progress: &|| {} };
        let error = go(job, given).0.err().unwrap();
        assert!(error.code() == 2 && error.to_string().contains(words), "{error}");
        assert!(!file.exists() && !out.exists());
    };
    let job = network(&[]);
    let plain =
        prepare(&Job { layers: None, method: "output".into(), settings: Settings::default(), ..job.job().clone() }, 200, false);
    refused(&plain.unwrap(), false, CheckpointPlace::File(&file), 1, "method = \"network\"");
    refused(&job, true, CheckpointPlace::File(&file), 1, "checkpoint = \"ledger\"");
    refused(&job, false, CheckpointPlace::Ledger, 1, "there is no ledger");
    refused(&job, false, CheckpointPlace::File(&file), 0, "checkpoint_every = 1");
    refused(&network(&[("steps", 3000.0)]), true, CheckpointPlace::Ledger, 2, "checkpoint_every = 3");
    assert_eq!(place.ledger().ledger.status().unwrap().spent.jobs, 0);
}
