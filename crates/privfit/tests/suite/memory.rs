//! Rows in memory and rows in files give one model file, and whoever gives them, the order of a job is the same.

use privfit::account::Adjacency;
use privfit::certificate::Declared;
use privfit::constraint::Constraint;
use privfit::data::Cell;
use privfit::data::encode::{Encoder, Row};
use privfit::data::load::{Records, Source};
use privfit::data::memory::{Column, Matrix, Memory, Rows};
use privfit::data::{Reader, Record};
use privfit::engine::Threads;
use privfit::job::fit::{Job, prepare};
use privfit::job::release::{Context, Delivered, LedgerSession, release};
use privfit::kernel::Entropy;
use privfit::ledger::{Ledger, amount::Amount, chain::MacKey, record::Scope};
use privfit::method::Settings;
use privfit::{Error, Schema};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

const TABLE: &str = r#"
    [dataset]
    name = "visits"
    [target]
    column = "y"
    classes = [0, 1]
    [features.a]
    type = "number"
    min = -2
    max = 3
    [features.b]
    type = "number"
    min = 0
    max = 7
"#;

/// Rows (a, b, y) that a file and memory hold alike.
struct Numbers(Vec<[f64; 3]>);

impl Matrix for Numbers {
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn width(&self) -> usize {
        2
    }

    fn copy(&self, start: usize, out: &mut [f64]) {
        out.chunks_exact_mut(2).zip(&self.0[start..]).for_each(|(out, row)| out.copy_from_slice(&row[..2]));
    }
}

struct Label<'a>(&'a Numbers);

impl Column for Label<'_> {
    fn rows(&self) -> usize {
        self.0.0.len()
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        Cell::Number(self.0.0[row][2])
    }
}

fn numbers() -> Numbers {
    let row = |i: u32| {
        let (a, b) = (f64::from(i * 37 % 101) / 20.0 - 2.0, f64::from(i * 53 % 97) / 14.0);
        [a, b, f64::from(u8::from(a * 1.5 + b > 4.0))]
    };
    Numbers((0..400).map(row).collect())
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("privfit-memory-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn job(schema: &str, epsilon: f64) -> Job {
    Job {
        schema: Schema::parse(schema).unwrap(),
        rows: None,
        epsilon,
        delta: Some(1e-6),
        adjacency: Adjacency::ZeroOut,
        loss: None,
        method: "auto".into(),
        settings: Settings::default(),
        constraint: Constraint::None,
        allow_large_delta: false,
        compare: false,
        auxiliary: None,
        layers: None,
        pretrained: None,
    }
}

fn released(job: &Job, source: &dyn Records, ledger: Option<LedgerSession>, seed: Option<u64>) -> Result<Delivered, Error> {
    let entropy = seed.map_or_else(|| Entropy::system().unwrap(), Entropy::simulated);
    let (rows, counted) = job.rows(Some(source))?;
    let prepared = prepare(job, rows, counted)?;
    let context = Context {
        source,
        engine: &Threads::new(1),
        entropy: &entropy,
        ledger,
        declared: Declared::default(),
        out: None,
        checkpoint: None,
        opening: &|| {},
        opened: &|| {},
        progress: &|| {},
    };
    release(&prepared, context)
}

fn model(delivered: Delivered) -> privfit::Artifact {
    delivered.output.into_model().unwrap()
}

#[test]
fn files_and_memory_give_one_model_file() {
    let dir = folder("same");
    let numbers = numbers();
    let lines: String = numbers.0.iter().map(|[a, b, y]| format!("{y},{b},{a}\n")).collect();
    std::fs::write(dir.join("d.csv"), format!("y,b,a\n{lines}")).unwrap();
    let job = job(TABLE, 3.0);
    let file = Source { files: vec![dir.join("d.csv")], labels: vec![] };
    let label = Label(&numbers);
    let memory = Memory { rows: Rows::Dense(&numbers), labels: Some(&label) };
    let (a, b) = (released(&job, &file, None, Some(4)).unwrap(), released(&job, &memory, None, Some(4)).unwrap());
    assert_eq!(String::from_utf8(a.bytes).unwrap(), String::from_utf8(b.bytes).unwrap());
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Counts how often its records are opened.
struct Watched<'a>(Memory<'a>, AtomicUsize);

impl Records for Watched<'_> {
    fn parts(&self) -> usize {
        self.0.parts()
    }

    fn open(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>, Error> {
        Ok(Box::new(Opened(self.0.open(part, schema)?, &self.1)))
    }

    fn label_parts(&self, schema: &Schema) -> usize {
        self.0.label_parts(schema)
    }

    fn open_labels(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>, Error> {
        Ok(Box::new(Opened(self.0.open_labels(part, schema)?, &self.1)))
    }

    fn check(&self, schema: &Schema) -> Result<(), Error> {
        self.0.check(schema)
    }
}

struct Opened<'a>(Box<dyn Reader + 'a>, &'a AtomicUsize);

impl Reader for Opened<'_> {
    fn columns(&self) -> &[String] {
        self.0.columns()
    }

    fn header_rows(&self) -> Option<u64> {
        self.0.header_rows()
    }

    fn read(&mut self, each: &mut dyn FnMut(Record<'_>)) -> Result<(), Error> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read(each)
    }
}

#[test]
fn a_refused_job_reads_nothing_and_a_repeated_one_neither() {
    let dir = folder("spend");
    let place = dir.join("l").display().to_string();
    let scope = Scope::of(&Schema::parse(TABLE).unwrap(), Adjacency::ZeroOut).unwrap();
    Ledger::create(&place, MacKey::default(), scope, Amount::parse("2").unwrap(), 1e-5).unwrap();
    let ledger = |name: &str| {
        Some(LedgerSession {
            ledger: Ledger::open(&place, MacKey::default()).unwrap(),
            request: Some(name.to_string()),
            announce: |_| {},
        })
    };
    let numbers = numbers();
    let label = Label(&numbers);
    let source = Watched(Memory { rows: Rows::Dense(&numbers), labels: Some(&label) }, AtomicUsize::new(0));
    let refused = released(&job(TABLE, 40.0), &source, ledger("a"), None);
    assert!(matches!(refused, Err(Error::Refused(_))) && source.1.load(Ordering::Relaxed) == 0);
    let first = released(&job(TABLE, 1.0), &source, ledger("b"), None).unwrap();
    let reads = source.1.load(Ordering::Relaxed);
    assert!(reads == 2 && !first.before);
    let again = released(&job(TABLE, 1.0), &source, ledger("b"), None).unwrap();
    assert!(again.before && again.bytes == first.bytes && source.1.load(Ordering::Relaxed) == reads);
    assert!(model(first).certificate.identity.ledger.is_some());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn coefficients_are_those_of_the_scores() {
    let numbers = numbers();
    let label = Label(&numbers);
    let memory = Memory { rows: Rows::Dense(&numbers), labels: Some(&label) };
    let ball = format!("{TABLE}\n[encoding]\nscaling = \"ball\"");
    let regression = TABLE.replace("classes = [0, 1]", "bounds = [-1.0, 4.0]");
    for text in [TABLE, &ball, &regression] {
        let job = Job { method: "linear".into(), ..job(text, 3.0) };
        let artifact = model(released(&job, &memory, None, Some(1)).unwrap());
        let (schema, model) = (&artifact.schema, &artifact.model);
        let linear = artifact.linear().unwrap();
        let encoder = Encoder::new(schema, &["a".into(), "b".into()], false).unwrap().at_full_length();
        let (mut row, mut scores) = (Row::default(), Vec::new());
        for [a, b, _] in &numbers.0 {
            encoder.encode(Record::Dense(&[*a, *b]), None, &mut row);
            model.scores(&row, &mut scores);
            let score = if text == regression { 1.5 + 2.5 * scores[0] * linear.scale } else { scores[0] * linear.scale };
            let own = linear.weights[0][0] * a + linear.weights[0][1] * b + linear.constants[0];
            assert!((own - score).abs() < 1e-9 * (1.0 + score.abs()), "{own} {score}");
        }
    }
}
