//! The seam: ranks of one owner, rows in mapped files and masked owners give the bytes of one process, or are refused before data are opened.

mod owners;
mod ranks;

use owners::{Owner, Together, owners};
use privfit::account::{Adjacency, Event};
use privfit::certificate::Declared;
use privfit::constraint::Constraint;
use privfit::data::load::{Records, UnitRange};
use privfit::data::memory::{Column, Matrix, Memory, Pairs, Rows};
use privfit::data::{Cell, Reader};
use privfit::engine::{Engine, Needs, Threads};
use privfit::job::bounds::Draft;
use privfit::job::fit::{Job, Prepared, prepare};
use privfit::job::release::{Context, Delivered, check_engine, release};
use privfit::job::tune::{self, Tuning};
use privfit::job::{PublicFacts, Release, bounds, evaluate};
use privfit::kernel::{ALIGNMENT, Contribution, DatasetBuilder, Entropy, Gaussian, Mechanism, RowShape, Run};
use privfit::method::{self, Settings};
use privfit::{Error, KernelError, Schema};
use ranks::{Death, Rank, ranks};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than two blocks of units, and enough rows for a minimiser to begin on some of them.
const ROWS: usize = 2 * ALIGNMENT + 1500;

/// First units of the processes, and the end.
const CUTS: [usize; 4] = [0, ALIGNMENT, 2 * ALIGNMENT, ROWS];

/// Rows of four numbers and a target, from one process's part of the whole.
struct Part {
    from: usize,
    to: usize,
    task: &'static str,
    sparse: bool,
    share: Option<UnitRange>,
    directory: Option<PathBuf>,
    opened: AtomicUsize,
}

fn number(row: usize, column: usize) -> f64 {
    let mut x = (row as u64 * 6_364_136_223_846_793_005).wrapping_add(column as u64 * 1_442_695_040_888_963_407) ^ 0x9e37_79b9;
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    (x >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
}

fn target(task: &str, row: usize) -> f64 {
    let score = number(row, 0) - 0.5 * number(row, 1) + 0.3 * number(row, 9);
    match task {
        "two" => f64::from(u8::from(score > 0.0)),
        "three" => f64::from(u8::from(score > -0.4)) + f64::from(u8::from(score > 0.4)),
        _ => score,
    }
}

impl Matrix for Part {
    fn rows(&self) -> usize {
        self.to - self.from
    }

    fn width(&self) -> usize {
        4
    }

    fn copy(&self, start: usize, out: &mut [f64]) {
        for (i, row) in out.chunks_exact_mut(4).enumerate() {
            row.iter_mut().enumerate().for_each(|(j, x)| *x = number(self.from + start + i, j));
        }
    }
}

impl Pairs for Part {
    fn rows(&self) -> usize {
        self.to - self.from
    }

    fn width(&self) -> usize {
        40
    }

    fn copy(&self, row: usize, out: &mut Vec<(u32, f64)>) {
        let row = self.from + row;
        out.extend((0..4).map(|j| ((j * 9 + row % 7) as u32, 0.5 * number(row, j))));
    }
}

impl Column for Part {
    fn rows(&self) -> usize {
        self.to - self.from
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        Cell::Number(target(self.task, self.from + row))
    }
}

impl Part {
    fn memory(&self) -> Memory<'_> {
        let rows = if self.sparse { Rows::Sparse(self) } else { Rows::Dense(self) };
        Memory { rows, labels: (self.task != "none").then_some(self as &dyn Column) }
    }

    /// Something that lives as long as the part does.
    fn table(&self, schema: &Schema, labels: bool) -> Result<Box<dyn Reader + '_>, Error> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let memory = Box::leak(Box::new(self.memory()));
        if labels { memory.open_labels(0, schema) } else { memory.open(0, schema) }
    }
}

impl Records for Part {
    fn parts(&self) -> usize {
        1
    }

    fn open(&self, _: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>, Error> {
        self.table(schema, false)
    }

    fn label_parts(&self, schema: &Schema) -> usize {
        self.memory().label_parts(schema)
    }

    fn open_labels(&self, _: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>, Error> {
        self.table(schema, true)
    }

    fn check(&self, schema: &Schema) -> Result<(), Error> {
        self.memory().check(schema)
    }

    fn share(&self) -> Option<UnitRange> {
        self.share
    }

    fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Case {
    method: &'static str,
    loss: &'static str,
    task: &'static str,
    sparse: bool,
    steps: Option<f64>,
}

impl Case {
    fn schema(&self) -> Schema {
        let target = match self.task {
            "two" => "[target]\ncolumn = \"y\"\nclasses = [0, 1]\n",
            "three" => "[target]\ncolumn = \"y\"\nclasses = [0, 1, 2]\n",
            "number" => "[target]\ncolumn = \"y\"\nbounds = [-2.0, 2.0]\n",
            _ => "",
        };
        let features = match self.sparse {
            true => "[features]\nkind = \"sparse\"\ndimension = 40\nrow_norm = 1.0\n".to_string(),
            false => (0..4).map(|j| format!("[features.f{j}]\ntype = \"number\"\nmin = -1\nmax = 1\n")).collect(),
        };
        Schema::parse(&format!("[dataset]\nname = \"t\"\n{target}{features}")).unwrap()
    }

    fn job(&self) -> Job {
        Job {
            schema: self.schema(),
            rows: None,
            epsilon: 2.0,
            delta: Some(if self.method == "objective-pure" { 0.0 } else { 1e-6 }),
            adjacency: Adjacency::ZeroOut,
            loss: Some(self.loss.into()),
            method: self.method.into(),
            settings: Settings(self.steps.iter().map(|s| ("steps".to_string(), *s)).collect()),
            constraint: Constraint::None,
            allow_large_delta: false,
            compare: false,
            auxiliary: None,
            layers: None,
            pretrained: None,
        }
    }

    fn prepared(&self) -> Option<Prepared> {
        prepare(&self.job(), ROWS as u64, false).ok()
    }

    fn part(&self, from: usize, to: usize, divided: bool) -> Part {
        let share = divided.then_some(UnitRange { first: from as u64, total: ROWS as u64 });
        Part { from, to, task: self.task, sparse: self.sparse, share, directory: None, opened: AtomicUsize::new(0) }
    }

    fn parts(&self) -> Vec<Part> {
        CUTS.windows(2).map(|w| self.part(w[0], w[1], true)).collect()
    }
}

fn released(job: &dyn Release, source: &Part, engine: &dyn Engine, seed: u64) -> Result<Delivered, Error> {
    let context = Context {
        source,
        engine,
        entropy: &Entropy::simulated(seed),
        ledger: None,
        declared: Declared::default(),
        out: None,
        checkpoint: None,
        opening: &|| {},
        opened: &|| {},
        progress: &|| {},
    };
    release(job, context)
}

/// Every process in a thread of its own. An engine is dropped when its process ends, as a dead process's connections are.
fn together<E: Engine + Send>(job: &(dyn Release + Sync), parts: &[Part], engines: Vec<E>) -> Vec<Result<Vec<u8>, Error>> {
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (part, engine) in parts.iter().zip(engines) {
            running.push(scope.spawn(move || released(job, part, &engine, 5).map(|d| d.bytes)));
        }
        running.into_iter().map(|r| r.join().unwrap_or(Err(Error::Host))).collect()
    })
}

/// One line: same bytes, or refused with which words.
fn verdict<E: Engine + Send>(job: &(dyn Release + Sync), case: &Case, engines: Vec<E>, expected: Option<&[u8]>) -> String {
    let parts = case.parts();
    let outcomes = together(job, &parts, engines);
    if let Err(error) = &outcomes[0] {
        assert!(outcomes.iter().all(|o| o.as_ref().err() == Some(error)), "{}: all are refused alike", case.method);
        assert!(parts.iter().all(|p| p.opened.load(Ordering::Relaxed) == 0), "{}: refused after data were opened", case.method);
        return format!("refused: {error}");
    }
    for bytes in &outcomes {
        assert!(bytes.as_deref().ok() == expected, "{} {}: other bytes", case.method, case.loss);
    }
    "same bytes".into()
}

fn compared(job: &(dyn Release + Sync), case: &Case, directory: &Path) -> [String; 4] {
    let whole = case.part(0, ROWS, false);
    let one = released(job, &whole, &Threads::new(1), 5).unwrap().bytes;
    let two = released(job, &whole, &Threads::new(2), 5).unwrap().bytes;
    assert!(one == two, "{} {}: threads", case.method, case.loss);
    let mapped = Part { directory: Some(directory.into()), ..case.part(0, ROWS, false) };
    assert!(released(job, &mapped, &Threads::new(2), 5).unwrap().bytes == one, "{} {}: mapped", case.method, case.loss);
    let divided = verdict(job, case, ranks(3, None), Some(&one));
    let reference = Together { threads: Threads::new(1), parts: 0..3, divisor: 2 };
    let expected = check_engine(job.needs(), &reference).is_ok().then(|| released(job, &whole, &reference, 5).unwrap().bytes);
    if job.kind() == "fit" {
        assert!(expected.as_deref() != Some(&one[..]), "{}: the noise of owners is another", case.method);
    }
    let owned = verdict(job, case, owners(3, 1), expected.as_deref());
    ["same bytes".into(), divided, "same bytes".into(), owned]
}

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("privfit-seam-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// For each method a line: threads, ranks, mapped, masked owners.
#[test]
fn every_method_gives_the_same_bytes_or_is_refused() {
    let directory = directory("methods");
    let few = [
        "noisy-gd",
        "noisy-sgd",
        "noisy-projected-sgd",
        "random-round-sgd",
        "recursive-momentum",
        "adaptive-gd",
        "output-gd",
        "frank-wolfe",
        "additive",
    ];
    let mut seen = Vec::new();
    for entry in method::ALL {
        let steps = few.contains(&entry.name).then_some(6.0);
        let mut planned = 0;
        for (loss, task, sparse) in [
            ("logistic", "two", false),
            ("softmax", "three", false),
            ("squared", "number", false),
            ("fractional", "number", false),
            ("huber-svm", "two", true),
            ("mean", "none", false),
        ] {
            let case = Case { method: entry.name, loss, task, sparse, steps };
            let Some(prepared) = case.prepared() else { continue };
            planned += 1;
            let [threads, ranks, mapped, owners] = compared(&prepared, &case, &directory);
            let kind = if sparse { "sparse" } else { "dense" };
            println!("{} {loss} {kind} | threads: {threads} | ranks: {ranks} | mapped: {mapped} | owners: {owners}", entry.name);
            assert_eq!(ranks == "same bytes", prepared.needs() < Needs::Records, "{}", entry.name);
            assert_eq!(owners == "same bytes", prepared.needs() == Needs::Sums, "{}", entry.name);
        }
        assert!(planned > 0, "{} was not tried", entry.name);
        seen.push(planned);
    }
    assert!(seen.iter().sum::<i32>() > 40, "{seen:?}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "mapped files leave nothing behind");
    std::fs::remove_dir(&directory).unwrap();
}

/// The other kinds of jobs run through the same seam.
#[test]
fn every_kind_of_job_gives_the_same_bytes_or_is_refused() {
    let directory = directory("jobs");
    let case = Case { method: "objective", loss: "logistic", task: "two", sparse: false, steps: None };
    let fitted = released(&case.prepared().unwrap(), &case.part(0, ROWS, false), &Threads::new(1), 5).unwrap();
    let model = fitted.output.into_model().unwrap().model;
    let facts = |schema: Schema, delta: f64| {
        PublicFacts::new(schema, (ROWS as u64, false), Adjacency::ZeroOut, (1.0, Some(delta)), false).unwrap()
    };
    let gaussian = evaluate::prepare(&model, facts(case.schema(), 1e-6)).unwrap();
    let laplace = evaluate::prepare(&model, facts(case.schema(), 0.0)).unwrap();
    let text = "[dataset]\nname = \"t\"\n[features.f0]\ntype = \"number\"\nmin = \"?\"\nmax = \"?\"\n[features.f1]\ntype = \"number\"\nmin = -1\nmax = 1\n\
                [features.f2]\ntype = \"number\"\nmin = -1\nmax = 1\n[features.f3]\ntype = \"number\"\nmin = -1\nmax = 1\n";
    let draft = Draft::parse(text).unwrap();
    let schema = draft.schema().clone();
    let quantiles = bounds::prepare(draft, facts(schema, 1e-6), 0.01).unwrap();
    let grid: toml::Table = toml::from_str("runs = 2\n[grid]\nridge = [1, 100]\n").unwrap();
    let tuned = tune::prepare(&case.job(), &Tuning::parse(&grid).unwrap(), ROWS as u64, false).unwrap();
    let none = Case { task: "none", ..case };
    let jobs: [(&str, &(dyn Release + Sync), &Case, bool, bool); 4] = [
        ("metrics", &gaussian, &case, true, true),
        ("pure metrics", &laplace, &case, true, false),
        ("bounds", &quantiles, &none, true, true),
        ("tuning", &tuned, &case, false, false),
    ];
    for (name, job, case, on_ranks, by_owners) in jobs {
        let [_, ranks, _, owners] = compared(job, case, &directory);
        println!("{name} | ranks: {ranks} | owners: {owners}");
        assert_eq!((ranks == "same bytes", owners == "same bytes"), (on_ranks, by_owners), "{name}");
    }
    std::fs::remove_dir(&directory).unwrap();
}

/// A rank that is killed takes the job with it: nobody releases, nobody waits for ever, and nobody tells which record did it.
#[test]
fn a_killed_rank_ends_the_job() {
    for method in ["noisy-gd", "objective"] {
        let case = Case { method, loss: "logistic", task: "two", sparse: false, steps: (method == "noisy-gd").then_some(6.0) };
        let prepared = case.prepared().unwrap();
        for (rank, at) in [(1, 0), (2, 3), (0, 2)] {
            for fails in [false, true] {
                let death = Death { rank, at, fails };
                let outcomes = together(&prepared, &case.parts(), ranks(3, Some(death)));
                assert!(outcomes.iter().all(Result::is_err), "{method}, {death:?}");
            }
        }
    }
}

/// Ranks that would run different plans, or a step that would be opened twice, are stopped.
#[test]
fn different_plans_and_repeated_steps_are_stopped() {
    let case = |steps| Case { method: "noisy-gd", loss: "logistic", task: "two", sparse: false, steps: Some(steps) };
    let plans = [case(6.0).prepared().unwrap(), case(7.0).prepared().unwrap()];
    let shape = RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let outcomes: Vec<Result<usize, KernelError>> = std::thread::scope(|scope| {
        let one = |(engine, plan): (Rank, &Prepared)| {
            let event = plan.event().clone();
            scope.spawn(move || {
                let entropy = Entropy::simulated(1);
                let data = DatasetBuilder::new(&entropy, shape)?.build();
                Run::begin(&data, &engine, &entropy, &event).map(|_| engine.steps())
            })
        };
        let running: Vec<_> = ranks(2, None).into_iter().zip(&plans).map(one).collect();
        running.into_iter().map(|r| r.join().unwrap()).collect()
    });
    assert!(outcomes[0].is_ok() && matches!(outcomes[1], Err(KernelError::Mismatch { .. })));
    let lines = ranks(1, None);
    let share = |values: &[i64]| {
        let (data, entropy) = (empty(), Entropy::simulated(1));
        let noise = Gaussian::new(1.0, 1.0, 1).unwrap();
        let mut run = Run::begin(&data, &lines[0], &entropy, &noise.event(values.len())).unwrap();
        let everyone = run.everyone().unwrap();
        let sum = Contribution { name: "nothing", dimension: values.len(), parameters: vec![], add: |_, _, _, _| {} };
        run.at(&noise, |run, scale| {
            let noise = run.draw(&scale, values.len())?;
            let value = everyone.sum(&noise, &sum)?;
            run.release(noise, &value)
        })
    };
    // The same seed gives the same run number: a process that starts again cannot open a step that was open.
    assert!(share(&[0]).is_ok());
    assert!(matches!(share(&[0]), Err(KernelError::Engine { .. })));
}

fn empty() -> privfit::kernel::Dataset {
    let shape = RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None };
    DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap().build()
}

/// What owners send tells nothing: nobody ever holds an unmasked total, and in the view of any one of them there is as much noise as was
/// planned. False alarm below 1e-9.
#[test]
fn owners_see_masked_shares_and_enough_noise() {
    const LENGTH: usize = 20_000;
    for (count, colluding) in [(2usize, 1usize), (3, 1), (5, 2)] {
        let mechanism = Gaussian::new(1.0, 2.0, 1000).unwrap();
        let event = mechanism.event(LENGTH);
        let Event::DiscreteGaussian { sigma, .. } = event else { panic!("{event:?}") };
        let engines: Vec<Owner> = owners(count, colluding);
        let log = engines[0].log.clone();
        let add = |_: &[f64],
                   unit: privfit::kernel::Unit<'_>,
                   _: &mut privfit::kernel::UnitRandomness<'_>,
                   sink: &mut privfit::kernel::Sink<'_>| {
            (0..100).for_each(|i| sink.add(i, f64::from(unit.label(0))));
        };
        let outs: Vec<Vec<f64>> = std::thread::scope(|scope| {
            let one = |(owner, engine): (usize, Owner)| {
                let event = event.clone();
                scope.spawn(move || {
                    let entropy = Entropy::system().unwrap();
                    let shape = RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None };
                    let mut builder =
                        DatasetBuilder::new(&entropy, shape).unwrap().place(owner * ALIGNMENT, count * ALIGNMENT).unwrap();
                    (0..100).for_each(|_| builder.row(&[0.1], 1.0));
                    let data = builder.build();
                    let mut run = Run::begin(&data, &engine, &entropy, &event).unwrap();
                    let everyone = run.everyone().unwrap();
                    let sum = Contribution { name: "label", dimension: LENGTH, parameters: vec![], add };
                    let released = run.at(&mechanism, |run, scale| {
                        let noise = run.draw(&scale, LENGTH)?;
                        let value = everyone.sum(&noise, &sum)?;
                        run.release(noise, &value)
                    });
                    run.close(released.unwrap()).unwrap().into_value()
                })
            };
            let running: Vec<_> = engines.into_iter().enumerate().map(one).collect();
            running.into_iter().map(|r| r.join().unwrap()).collect()
        });
        assert!(outs.iter().all(|o| *o == outs[0]), "all owners get one total");
        let seen = log.lock().unwrap();
        assert_eq!(seen.len(), count);
        // Every message, and every sum of some but not all of them, is uniform: no bit of it follows shares or noise.
        for set in 1..(1u32 << count) - 1 {
            let mut bits = 0u64;
            for i in 0..LENGTH {
                let members = || seen.iter().filter(|s| set >> s.owner & 1 == 1);
                let sent = members().fold(0i64, |sum, s| sum.wrapping_add(s.sent[i]));
                let plain = members().fold(0i64, |sum, s| sum.wrapping_add(s.share[i]).wrapping_add(s.noise[i]));
                bits += u64::from((sent ^ plain).count_ones());
            }
            let (mean, deviation) = (32.0 * LENGTH as f64, (16.0 * LENGTH as f64).sqrt());
            assert!((bits as f64 - mean).abs() < 7.0 * deviation, "{count} owners, set {set:b}: {bits}");
        }
        // Noise that is left when some put together what they know.
        for set in (0..1u32 << count).filter(|s| s.count_ones() as usize == colluding) {
            let left = |i: usize| seen.iter().filter(|s| set >> s.owner & 1 == 0).map(|s| s.noise[i] as f64).sum::<f64>();
            let variance = (0..LENGTH).map(|i| left(i).powi(2)).sum::<f64>() / LENGTH as f64 / (sigma as f64).powi(2);
            let spread = (2.0 / LENGTH as f64).sqrt();
            assert!(variance > 1.0 - 7.0 * spread, "{count} owners, {set:b} collude: {variance}");
            assert!(variance < 1.02 + 7.0 * spread, "not much more than is needed: {variance}");
        }
    }
}
