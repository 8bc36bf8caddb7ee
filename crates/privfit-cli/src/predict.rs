//! `privfit predict` and `privfit evaluate`: apply a released model to new rows. Costs nothing.

use crate::{Failure, Format, print_line};
use clap::Args;
use privfit::data::encode::{Encoder, Row};
use privfit::data::load::{Source, open, read_labels};
use privfit::model::{Metrics, Prediction};
use privfit::schema::TargetValues;
use privfit::{Artifact, Error};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Example:
  privfit predict --model model.json --data new.csv --out predictions.csv")]
pub(crate) struct Predict {
    /// Model file
    #[arg(long)]
    model: PathBuf,
    /// Files with rows; the target column may be missing
    #[arg(long, num_args = 1.., required = true)]
    data: Vec<PathBuf>,
    /// Where predictions go, one line for each row; the terminal by default
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Example:
  privfit evaluate --model model.json --data test.csv --format json

The rows count as public: the metrics are exact and nothing protects them. Do not evaluate on the rows the model was trained on, nor
on anything else that is private.")]
pub(crate) struct Evaluate {
    /// Model file
    #[arg(long)]
    model: PathBuf,
    /// Files with labelled rows that count as public
    #[arg(long, num_args = 1.., required = true)]
    data: Vec<PathBuf>,
    /// Files with labels, for formats that keep them apart
    #[arg(long, num_args = 1..)]
    labels: Vec<PathBuf>,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

fn read_model(path: &Path) -> Result<Artifact, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::misuse(format!("cannot read the model {}: {e}; check the path", path.display())))?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::Damaged("the model file is damaged (not text): fetch it again".into()))?;
    Ok(Artifact::from_json(&text)?)
}

/// A cell of a CSV line.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

impl Predict {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let artifact = read_model(&self.model)?;
        let mut sink: Box<dyn Write> = match &self.out {
            None => Box::new(std::io::BufWriter::new(std::io::stdout().lock())),
            Some(path) => Box::new(std::io::BufWriter::new(
                std::fs::File::create(path)
                    .map_err(|e| Failure::misuse(format!("cannot write {}: {e}; check the path", path.display())))?,
            )),
        };
        let names = artifact.schema.class_names();
        let bounds = bounds(&artifact);
        let mut head = String::from("prediction");
        let mut first = true;
        let mut failed = false;
        for path in &self.data {
            let mut reader = open(path, &artifact.schema)?;
            let encoder = Encoder::new(&artifact.schema, reader.columns(), false)?;
            let mut row = Row::default();
            reader.read(&mut |record| {
                encoder.encode(record, None, &mut row);
                let mut line = match artifact.model.predict(&row) {
                    Prediction::Number(x) => {
                        let (low, high) = bounds.unwrap_or((-1.0, 1.0));
                        format!("{}", low + (x + 1.0) / 2.0 * (high - low))
                    }
                    Prediction::Class(class, probabilities) => {
                        if first && !probabilities.is_empty() {
                            names.iter().for_each(|n| head.push_str(&format!(",{}", quoted(&format!("p({n})")))));
                        }
                        let mut line = quoted(&names[class]);
                        probabilities.iter().for_each(|p| line.push_str(&format!(",{p:.6}")));
                        line
                    }
                };
                line.push('\n');
                if std::mem::take(&mut first) {
                    line = format!("{head}\n{line}");
                }
                failed |= sink.write_all(line.as_bytes()).is_err();
            })?;
        }
        if first {
            failed |= writeln!(sink, "prediction").is_err();
        }
        if failed || sink.flush().is_err() {
            if self.out.is_none() {
                // Nobody reads any more.
                return Ok(());
            }
            return Err(Failure::misuse("cannot write the predictions: check the disk and the path"));
        }
        Ok(())
    }
}

fn bounds(artifact: &Artifact) -> Option<(f64, f64)> {
    match artifact.schema.target.values {
        TargetValues::Bounds(low, high) => Some((low, high)),
        _ => None,
    }
}

impl Evaluate {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let artifact = read_model(&self.model)?;
        let source = Source { files: self.data.clone(), labels: self.labels.clone() };
        let bounds = bounds(&artifact);
        let mut metrics = Metrics::default();
        let mut labels = None;
        for (i, path) in self.data.iter().enumerate() {
            let mut reader = open(path, &artifact.schema)?;
            let encoder = Encoder::new(&artifact.schema, reader.columns(), true)?;
            if i == 0 {
                labels = read_labels(&source, &artifact.schema, &encoder)?.map(|l| l.into_iter());
            }
            let mut row = Row::default();
            reader.read(&mut |record| {
                encoder.encode(record, None, &mut row);
                if let Some(labels) = &mut labels
                    && let Some((label, target)) = labels.next()
                {
                    (row.label, row.target) = (label, target);
                }
                metrics.add(&artifact.model, &row, bounds);
            })?;
        }
        let report = metrics.report();
        if self.format == Format::Json {
            let map: serde_json::Map<String, serde_json::Value> = report
                .iter()
                .map(|(k, v)| (k.to_string(), if *k == "rows" { (*v as u64).into() } else { (*v).into() }))
                .collect();
            print_line(&serde_json::Value::Object(map).to_string());
        } else {
            for (name, value) in report {
                let text = if name == "rows" { format!("{value}") } else { format!("{value:.6}") };
                print_line(&format!("{name:<10}{text}"));
            }
            eprintln!("these rows count as public: the numbers above are exact and nothing protects them");
        }
        Ok(())
    }
}
