//! Private labels of public points.

use crate::data::{Input, Labels as Given};
use crate::error::raised;
use crate::fit::Arguments;
use crate::interrupt::without_lock;
use crate::model::Model;
use crate::schema::Schema;
use privfit::Error;
use privfit::data::load::public_rows;
use privfit::job::label::plan;
use privfit::prediction::command::CommandArguments;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A command as learner: words, seconds, bytes, parts at once.
pub(crate) type Command = (Vec<String>, f64, u64, usize);

/// What labels are: counts of each point, parts, noise of a count, and a linear student with the certificate.
type Released = (Vec<Option<Vec<f64>>>, u64, f64, Model);

/// Reserves, opens the data, trains, asks, commits.
#[pyfunction]
pub(crate) fn label(
    py: Python<'_>,
    data: Input<'_>,
    labels: Option<Bound<'_, Given>>,
    points: Input<'_>,
    schema: &Schema,
    asked: Arguments,
    command: Option<Command>,
) -> PyResult<Released> {
    let mut job = asked.job(schema)?;
    let memory = data.memory(&schema.0, labels.as_ref().map(|l| l.get().column())).map_err(raised)?;
    let points = points.memory(&schema.0, None).map_err(raised)?;
    without_lock(py, || {
        let entropy = asked.entropy()?;
        job.auxiliary = Some(Arc::new(public_rows(&points, &job.schema)?));
        let command = command.map(|(words, seconds, memory, at_once)| CommandArguments {
            words,
            seconds,
            memory,
            at_once,
            hidden: asked.ledger.iter().map(PathBuf::from).collect(),
        });
        let (rows, counted) = job.rows(Some(&memory))?;
        let delivered = asked.deliver(&plan(&job, rows, counted, command)?, &memory, &entropy)?;
        let released = delivered.output.into_labels().ok_or(Error::Host)?;
        let bytes = released.student.to_json()?.into_bytes();
        let student = Model { artifact: released.student, bytes, before: delivered.before };
        Ok((released.answers, released.parts, released.noise, student))
    })
}
