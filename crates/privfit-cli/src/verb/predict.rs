//! `privfit predict`: apply a released model to new rows. Costs nothing.

use crate::args::files::read_model;
use crate::args::point::located;
use crate::ui::progress::Reading;
use crate::ui::{Failure, output, unwritable};
use clap::Args;
use privfit::Error;
use privfit::affine::quoted;
use privfit::data::load::open;
use privfit::predict::Predictor;
use privfit::schema::Task;
use std::io::Write;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Example:
  privfit predict --model model.json --data new.csv --out predictions.csv

With --reasons each line goes on with where its score begins and what each column, pair and all trees add to it: their sum is the log-odds of
the second class, of the predicted one where there are several, or of the place of a number between its bounds.

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
    /// Also what each column adds to the score of a row, for additive models
    #[arg(long)]
    reasons: bool,
}

impl Predict {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let artifact = read_model(&self.model)?;
        let point = artifact.schema.task() == Task::Location;
        if self.data.is_empty() && !point {
            return Err(Failure::misuse("no rows are given: add --data FILE"));
        }
        let mut predictor = Predictor::new(&artifact);
        if self.reasons {
            predictor = predictor.with_reasons()?;
        }
        let mut sink: Box<dyn Write> = match &self.out {
            None => Box::new(std::io::BufWriter::new(output::Stdout)),
            Some(path) => Box::new(std::io::BufWriter::new(std::fs::File::create(path).map_err(|e| unwritable(path, &e))?)),
        };
        let written = if self.data.is_empty() {
            let mut text = String::from("feature,value\n");
            located(&artifact).iter().for_each(|(name, x)| text.push_str(&format!("{},{x}\n", quoted(name))));
            sink.write_all(text.as_bytes()).and_then(|()| sink.flush()).is_ok()
        } else {
            let reading = Reading::new("predicting", self.out.is_some());
            let mut written = true;
            for path in &self.data {
                written &= predictor.write(open(path, &artifact.schema)?.as_mut(), sink.as_mut())?;
            }
            drop(reading);
            predictor.finish(sink.as_mut()) && written
        };
        match &self.out {
            _ if written => {}
            Some(path) => return Err(Failure(Error::output(format!("cannot write {}: check the disk", path.display())))),
            None => output::lost(),
        }
        Ok(())
    }
}
