//! `privfit predict` and `privfit evaluate`: apply a released model to new rows. Costs nothing.

use crate::progress::Reading;
use crate::{Failure, Format, print_line};
use clap::Args;
use privfit::data::decode::Decoder;
use privfit::data::encode::{Encoder, Row, UNKNOWN, is_sparse};
use privfit::data::load::{Source, open, read_labels};
use privfit::loss::Task;
use privfit::model::{Metrics, Prediction};
use privfit::schema::{Features, TargetValues};
use privfit::{Artifact, Error};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Example:
  privfit predict --model model.json --data new.csv --out predictions.csv

A model without a target is a point: without --data it is printed in the units of the columns (shares for categories), with
--data the distance of each row from it, in units of the ball that holds all rows.")]
pub(crate) struct Predict {
    /// Model file
    #[arg(long)]
    model: PathBuf,
    /// Files with rows; the target column may be missing
    #[arg(long, num_args = 1..)]
    data: Vec<PathBuf>,
    /// Where predictions go, one line for each row; the terminal by default
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  privfit evaluate --model model.json --data test.csv --format json
  privfit evaluate --model model.json --data private.csv --epsilon 0.2 --delta 1e-8 --ledger visits.ledger

Without --epsilon the rows count as public: the metrics are exact and nothing protects them. Do not evaluate like that on the rows the
model was trained on, nor on anything else that is private. A label that is not in the model's schema is left out; how many were known is
said (JSON: `rows` of `records`), and none at all is an error. With --epsilon the metrics have noise, and the rows may be private: what they
cost is printed, and a ledger records it.")]
pub(crate) struct Evaluate {
    /// Model file
    #[arg(long)]
    model: PathBuf,
    /// Files with labelled rows; they count as public unless --epsilon is given
    #[arg(long, num_args = 1.., required = true)]
    data: Vec<PathBuf>,
    /// Files with labels, for formats that keep them apart
    #[arg(long, num_args = 1..)]
    labels: Vec<PathBuf>,
    #[command(flatten)]
    private: crate::evaluate_private::Private,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// The bytes of a model file, no more than a model file may have.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    privfit::small_file::read(path, privfit::artifact::LARGEST as u64)
        .map_err(|e| Failure::misuse(format!("cannot read the model {}: {e}; check the path", path.display())))
}

pub(crate) fn read_model(path: &Path) -> Result<Artifact, Failure> {
    let artifact = Artifact::from_bytes(&read_bytes(path)?)?;
    say_if_not_private(&artifact);
    Ok(artifact)
}

pub(crate) fn say_if_not_private(artifact: &Artifact) {
    if !artifact.guarantee.private {
        crate::note("note: this model is not private (a simulation, or a published form without a guarantee)");
    }
}

/// A cell of a CSV line.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

impl Predict {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let artifact = read_model(&self.model)?;
        let point = artifact.schema.task() == Task::Location;
        if self.data.is_empty() && !point {
            return Err(Failure::misuse("no rows are given: add --data FILE"));
        }
        let mut sink: Box<dyn Write> = match &self.out {
            None => Box::new(std::io::BufWriter::new(crate::output::Stdout)),
            Some(path) => {
                Box::new(std::io::BufWriter::new(std::fs::File::create(path).map_err(|e| crate::unwritable(path, &e))?))
            }
        };
        let names = artifact.schema.class_names();
        let bounds = bounds(&artifact);
        let mut head = String::from(if point { "distance" } else { "prediction" });
        let mut first = true;
        let mut failed = false;
        if self.data.is_empty() {
            first = false;
            let mut text = String::from("feature,value\n");
            located(&artifact).iter().for_each(|(name, x)| text.push_str(&format!("{},{x}\n", quoted(name))));
            failed |= sink.write_all(text.as_bytes()).is_err();
        }
        let reading = Reading::new("predicting", self.out.is_some());
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
                    Prediction::Distance(distance) => format!("{distance}"),
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
        drop(reading);
        if first {
            failed |= writeln!(sink, "{head}").is_err();
        }
        match (sink.flush(), &self.out) {
            (Ok(()), _) if !failed => {}
            (_, Some(path)) => return Err(Failure(Error::Output(format!("cannot write {}: check the disk", path.display())))),
            (_, None) => crate::output::lost(),
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

/// The released point in the units of the columns.
fn located(artifact: &Artifact) -> Vec<(String, f64)> {
    let decoder = Decoder::new(&artifact.schema);
    let cells = decoder.names().iter().zip(&artifact.model.weights[0]).enumerate();
    cells.map(|(j, (name, x))| (name.clone(), decoder.value(j, *x))).collect()
}

/// Mean distance of rows from the released point, column by column and in the units of the columns. For tables.
struct Apart {
    decoder: Decoder,
    point: Vec<(String, f64)>,
    sums: Vec<f64>,
    rows: f64,
}

impl Apart {
    fn new(artifact: &Artifact) -> Option<Apart> {
        let table = matches!(artifact.schema.features, Features::Table(_)) && !is_sparse(&artifact.schema);
        (table && artifact.schema.task() == Task::Location).then(|| {
            let point = located(artifact);
            Apart { decoder: Decoder::new(&artifact.schema), sums: vec![0.0; point.len()], point, rows: 0.0 }
        })
    }

    fn add(&mut self, row: &Row) {
        if row.label == UNKNOWN {
            return;
        }
        self.rows += 1.0;
        for (j, (sum, cell)) in self.sums.iter_mut().zip(&row.dense).enumerate() {
            *sum += (self.decoder.value(j, *cell) - self.point[j].1).abs();
        }
    }

    /// Name, value of the point, mean distance of the rows from it.
    fn report(&self) -> Vec<(&str, f64, f64)> {
        self.point.iter().zip(&self.sums).map(|((name, x), sum)| (name.as_str(), *x, sum / self.rows.max(1.0))).collect()
    }
}

impl Evaluate {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let artifact = read_model(&self.model)?;
        let source = Source { files: self.data.clone(), labels: self.labels.clone() };
        if artifact.schema.task() == Task::Location && !self.labels.is_empty() {
            return Err(Failure::misuse("the model has no target, so there are no labels: leave out --labels"));
        }
        if let Some(epsilon) = self.private.epsilon {
            return self.private.run(epsilon, &artifact, &source, self.format);
        }
        let bounds = bounds(&artifact);
        let mut metrics = Metrics::default();
        let mut apart = Apart::new(&artifact);
        let mut labels = None;
        let reading = Reading::new("evaluating", self.format == Format::Text);
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
                apart.iter_mut().for_each(|a| a.add(&row));
            })?;
        }
        drop(reading);
        metrics.check(&artifact.schema.target.values)?;
        let seen = metrics.seen();
        let report = metrics.report();
        if self.format == Format::Json {
            let mut map: serde_json::Map<String, serde_json::Value> = report
                .iter()
                .map(|(k, v)| (k.to_string(), if *k == "rows" { (*v as u64).into() } else { (*v).into() }))
                .collect();
            map.insert("records".into(), seen.into());
            if let Some(apart) = &apart {
                let column = |c: (&str, f64, f64)| serde_json::json!({"name": c.0, "point": c.1, "mean_distance": c.2});
                map.insert("columns".into(), apart.report().into_iter().map(column).collect());
            }
            print_line(&serde_json::Value::Object(map).to_string());
        } else {
            for (name, value) in report {
                let text = match name {
                    "rows" if artifact.schema.task() == Task::Location => format!("{value} of {seen} can be read"),
                    "rows" => format!("{value} of {seen} have a known label"),
                    _ => format!("{value:.6}"),
                };
                print_line(&format!("{name:<10}{text}"));
            }
            for (name, point, mean) in apart.iter().flat_map(Apart::report) {
                let name = privfit::foreign::one_line(name);
                print_line(&format!("column    {name}: point {point:.6}, mean distance {mean:.6}"));
            }
            crate::note("these rows count as public: the numbers above are exact and nothing protects them");
        }
        Ok(())
    }
}
