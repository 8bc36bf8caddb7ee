//! `privfit predict`: apply a released model to new rows. Costs nothing.

use crate::args::files::read_model;
use crate::args::point::{bounds, located};
use crate::ui::progress::Reading;
use crate::ui::{Failure, output, unwritable};
use clap::Args;
use privfit::Error;
use privfit::data::encode::{Encoder, Row};
use privfit::data::load::open;
use privfit::model::Prediction;
use privfit::schema::Task;
use std::io::Write;
use std::path::PathBuf;

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
            None => Box::new(std::io::BufWriter::new(output::Stdout)),
            Some(path) => Box::new(std::io::BufWriter::new(std::fs::File::create(path).map_err(|e| unwritable(path, &e))?)),
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
            (_, Some(path)) => return Err(Failure(Error::output(format!("cannot write {}: check the disk", path.display())))),
            (_, None) => output::lost(),
        }
        Ok(())
    }
}
