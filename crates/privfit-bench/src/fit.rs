//! `privfit-bench fit`: fits of one data set at several epsilons, one JSON line each, for comparisons with other tools.

use super::measure::{peak_memory, processor_time};
use crate::{Failure, print_line};
use privfit::account::Adjacency;
use privfit::constraint::Constraint;
use privfit::data::encode::Row;
use privfit::data::load::{Source, count, load_from, open, read_labels};
use privfit::data::{Cell, Each, Reader, Record};
use privfit::engine::Threads;
use privfit::job::Release;
use privfit::job::fit::{Job, prepare};
use privfit::kernel::Entropy;
use privfit::method::Settings;
use privfit::model::Metrics;
use privfit::{Artifact, Schema};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Rows already in memory, as another tool would have them.
struct InMemory {
    labels: Vec<Vec<u8>>,
    start: Vec<usize>,
    pairs: Vec<(u32, f64)>,
}

impl InMemory {
    fn read(path: &Path, schema: &Schema) -> Result<InMemory, Failure> {
        let mut out = InMemory { labels: Vec::new(), start: vec![0], pairs: Vec::new() };
        open(path, schema)?.read(&mut |record| {
            if let Record::Sparse(Cell::Text(label), pairs) = record {
                out.labels.push(label.to_vec());
                out.pairs.extend_from_slice(pairs);
                out.start.push(out.pairs.len());
            }
        })?;
        Ok(out)
    }
}

impl Reader for InMemory {
    fn columns(&self) -> &[String] {
        &[]
    }
    fn header_rows(&self) -> Option<u64> {
        Some(self.labels.len() as u64)
    }
    fn read(&mut self, each: Each<'_>) -> privfit::Result<()> {
        for (i, label) in self.labels.iter().enumerate() {
            each(Record::Sparse(Cell::Text(label), &self.pairs[self.start[i]..self.start[i + 1]]));
        }
        Ok(())
    }
}

/// Options of the verb.
pub(crate) struct Options {
    pub(crate) data: PathBuf,
    pub(crate) test: Option<PathBuf>,
    pub(crate) epsilon: Vec<f64>,
    pub(crate) delta: Option<f64>,
    pub(crate) repeats: usize,
    pub(crate) threads: usize,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { data, repeats, threads, .. } = options;
    let test = options.test.as_ref().unwrap_or(data);
    let name = data.file_name().map(|n| n.to_string_lossy().to_string()).unwrap_or_default();
    let meta = std::fs::read_to_string(data.join("meta.json")).map_err(|e| {
        Failure::misuse(format!("cannot read {}/meta.json: {e}; give a directory made by make_data.py", data.display()))
    })?;
    let meta: serde_json::Value =
        serde_json::from_str(&meta).map_err(|_| Failure::misuse("meta.json is not JSON: make it again"))?;
    let integer = |key: &str| meta[key].as_u64().ok_or_else(|| Failure::misuse(format!("meta.json has no {key}: make it again")));
    let (n, d) = (integer("n_train")?, integer("d")?);
    let sparse = meta["density"].as_f64().is_some_and(|x| x < 0.1);
    let kind = if sparse { "sparse" } else { "dense" };
    let schema = Schema::parse(&format!(
        "[dataset]\nname = \"bench\"\nrows = {n}\n[target]\nclasses = [\"-1\", \"1\"]\n[features]\nkind = \"{kind}\"\n\
         dimension = {d}\nrow_norm = 1.0\nintercept = false\n[encoding]\nscaling = \"ball\"\n"
    ))?;
    let source = |dir: &Path, part: &str| match sparse {
        true => Source { files: vec![dir.join(format!("{}.svm", if part == "tr" { "train" } else { "test" }))], labels: vec![] },
        false => Source { files: vec![dir.join(format!("X{part}.npy"))], labels: vec![dir.join(format!("y{part}.npy"))] },
    };
    let train = source(data, "tr");
    let mut in_memory = if sparse { Some(InMemory::read(&train.files[0], &schema)?) } else { None };
    let delta = options.delta.unwrap_or(1.0 / (n as f64 * n as f64));
    for repeat in 0..*repeats {
        for epsilon in &options.epsilon {
            let job = Job {
                schema: schema.clone(),
                rows: Some(n),
                epsilon: *epsilon,
                delta: Some(delta),
                adjacency: Adjacency::ZeroOut,
                loss: None,
                method: "linear".into(),
                settings: Settings::default(),
                constraint: Constraint::None,
                allow_large_delta: false,
                compare: false,
                auxiliary: None,
                layers: None,
                pretrained: None,
            };
            let (wall, processor) = (Instant::now(), processor_time());
            let entropy = Entropy::system().map_err(privfit::Error::from)?;
            let prepared = prepare(&job, n, false)?;
            let records = match &mut in_memory {
                Some(rows) => load_from(rows, &schema, prepared.plan.row_form(), &entropy)?,
                None => {
                    count(&train, &schema)?;
                    prepared.open(&train, &entropy)?
                }
            };
            let loaded = processor_time();
            let artifact = prepared.train(&records, &Threads::new(*threads), &entropy, &|| {})?;
            let (fit_s, cpu_s) = (wall.elapsed().as_secs_f64(), processor_time() - processor);
            let rss = peak_memory();
            let accuracy = accuracy(&artifact, &source(test, "te"))?;
            let line = serde_json::json!({
                "bench": "lr", "peer": "ours", "version": env!("CARGO_PKG_VERSION"), "data": name, "n": n, "d": d, "eps": epsilon,
                "delta": delta, "rep": repeat, "fit_s": fit_s, "cpu_s": cpu_s, "load_cpu_s": loaded - processor, "acc": accuracy,
                "rss_mb": rss, "threads": threads,
            });
            print_line(&line.to_string());
        }
    }
    Ok(())
}

fn accuracy(artifact: &Artifact, source: &Source) -> Result<f64, Failure> {
    let mut reader = open(&source.files[0], &artifact.schema)?;
    let encoder = artifact.model.encoder(&artifact.schema, reader.columns(), true)?;
    let mut labels = read_labels(source, &artifact.schema, &encoder)?.map(|l| l.into_iter());
    let (mut row, mut metrics) = (Row::default(), Metrics::default());
    reader.read(&mut |record| {
        encoder.encode(record, None, &mut row);
        if let Some(label) = labels.as_mut().and_then(Iterator::next) {
            row.label = label.0;
        }
        metrics.add(&artifact.model, &row, None);
    })?;
    Ok(metrics.report().iter().find(|m| m.0 == "accuracy").map_or(f64::NAN, |m| m.1))
}
