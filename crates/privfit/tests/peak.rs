//! The memory that a plan announces against the memory that its run truly takes: every allocation of this process is counted.

use privfit::Schema;
use privfit::account::Adjacency;
use privfit::certificate::Declared;
use privfit::constraint::Constraint;
use privfit::data::Cell;
use privfit::data::memory::{Column, Matrix, Memory, Rows};
use privfit::engine::Threads;
use privfit::job::fit::{Job, Prepared, prepare};
use privfit::job::kept::{CheckpointArguments, CheckpointPlace};
use privfit::job::release::{Context, release};
use privfit::kernel::Entropy;
use privfit::memory::MemoryConditions;
use privfit::method::Settings;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

#[global_allocator]
static MEMORY: Counting = Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: everything is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    /// Both sizes count while one is copied to the other, as an allocator would need that cannot move pages.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        more(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Most bytes that are held at once while something happens, beyond those that were held before.
fn peak<T>(happens: impl FnOnce() -> T) -> (T, u64) {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let out = happens();
    (out, (PEAK.load(Ordering::Relaxed) - before) as u64)
}

/// Pictures that nobody has to hold: pixels are made when they are asked for.
struct Pictures(usize);

const PIXELS: usize = 14 * 14;

impl Matrix for Pictures {
    fn rows(&self) -> usize {
        self.0
    }

    fn width(&self) -> usize {
        PIXELS
    }

    fn copy(&self, start: usize, out: &mut [f64]) {
        out.iter_mut().enumerate().for_each(|(i, x)| *x = ((start * PIXELS + i) * 2_654_435_761 % 256) as f64);
    }
}

impl Column for Pictures {
    fn rows(&self) -> usize {
        self.0
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        Cell::Number((row * 7 % 10) as f64)
    }
}

fn job(layers: &str, settings: &[(&str, f64)]) -> Job {
    let schema = "[dataset]\nname = \"t\"\n[target]\nclasses = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n[features]\nkind = \"image\"\nshape = [14, 14]\nmax = 255\n";
    let fixed = [("steps", 2.0), ("sampling_rate", 0.001)];
    let settings = fixed.iter().chain(settings).map(|(name, value)| (name.to_string(), *value)).collect();
    Job {
        schema: Schema::parse(schema).unwrap(),
        rows: None,
        epsilon: 2.0,
        delta: Some(1e-7),
        adjacency: Adjacency::ZeroOut,
        loss: None,
        method: "auto".into(),
        settings: Settings(settings),
        constraint: Constraint::None,
        allow_large_delta: false,
        compare: false,
        auxiliary: None,
        layers: Some(layers.split(", ").map(String::from).collect()),
        pretrained: None,
    }
}

fn train(prepared: &Prepared, pictures: &Pictures, threads: usize, checkpoint: Option<&std::path::Path>) {
    let source = Memory { rows: Rows::Dense(pictures), labels: Some(pictures) };
    let kept =
        checkpoint.map(|path| CheckpointArguments { place: CheckpointPlace::File(path), every: Some(1), resumed: &|_| {} });
    let context = Context {
        source: &source,
        engine: &Threads::new(threads),
        entropy: &Entropy::simulated(5),
        ledger: None,
        declared: Declared::default(),
        out: None,
        checkpoint: kept,
        opening: &|| {},
        opened: &|| {},
        progress: &|| {},
    };
    release(prepared, context).unwrap();
}

/// One test, because it counts for the whole process. The bound holds for every shape of network and way to run it, and is not absurd.
#[test]
fn runs_need_no_more_than_is_announced() {
    const MANY: usize = 40_000;
    const FEW: usize = 2_000;
    let folder = std::env::temp_dir().join(format!("privfit-peak-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let dense = "flatten, dense 900, tanh, dense 700, tanh";
    let windows = "convolution 24 5 padding 2, tanh, max_pool 2, convolution 32 3 padding 1, group_norm 4, relu";
    let cases: [(&str, &str, &[(&str, f64)], usize, usize, bool, usize); 9] = [
        ("many rows", "linear", &[], MANY, 1, false, 64),
        ("dense", dense, &[], MANY, 1, false, 64),
        ("dense, two threads", dense, &[], MANY, 2, false, 64),
        ("dense, Adam", dense, &[("adam", 1.0)], MANY, 2, false, 64),
        ("dense, exact", dense, &[("exact", 1.0)], MANY, 2, false, 64),
        ("dense, kept", dense, &[], FEW, 1, true, 64),
        ("dense, normalised", dense, &[("normalise", 0.1)], FEW, 1, false, 64),
        ("windows", windows, &[("sampling_rate", 0.02)], MANY, 2, false, 64),
        ("windows, one by one", windows, &[], FEW, 1, false, 1),
    ];
    for (name, layers, settings, rows, threads, checkpoint, at_once) in cases {
        let job = job(layers, settings);
        let (mut prepared, program) = peak(|| {
            let prepared = prepare(&job, rows as u64, true).unwrap();
            // A certificate has both.
            for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
                privfit::training::epsilon(prepared.plan.event(), adjacency, 1e-7);
            }
            prepared
        });
        if at_once < prepared.plan.at_once().unwrap() {
            prepared.plan.limit_at_once(at_once);
            assert_eq!(prepared.plan.at_once(), Some(at_once));
        }
        let need = prepared.memory(&MemoryConditions { threads, checkpoint, ledger: false, program });
        assert!(need.complete, "{name}");
        let path = checkpoint.then(|| folder.join("state"));
        let ((), found) = peak(|| train(&prepared, &Pictures(rows), threads, path.as_deref()));
        println!("{name}: announced {}, found {found}: {}", need.total(), need.text());
        assert!(found <= need.total(), "{name}: {found} bytes, announced {}: {}", need.total(), need.text());
        assert!(need.total() < 3 * found + 8_000_000, "{name}: {found} bytes, announced {}: {}", need.total(), need.text());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
