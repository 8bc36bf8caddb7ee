//! `privfit evaluate`: metrics of a released model, exact on public rows, with noise on private ones.

mod private;

use crate::args::files::read_model;
use crate::args::point::{bounds, located};
use crate::ui::progress::Reading;
use crate::ui::{Failure, Format, note, print_line};
use clap::Args;
use privfit::Artifact;
use privfit::data::decode::Decoder;
use privfit::data::encode::{Row, UNKNOWN, is_sparse};
use privfit::data::load::{Source, check_labels, open, read_labels};
use privfit::model::Metrics;
use privfit::schema::{Features, Task};
use std::path::PathBuf;

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
    private: private::Private,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
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
        if !self.labels.is_empty() {
            check_labels(&source, &artifact.schema)?;
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
            let encoder = artifact.model.encoder(&artifact.schema, reader.columns(), true)?;
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
            note("these rows count as public: the numbers above are exact and nothing protects them");
        }
        Ok(())
    }
}
