//! Flags for public rows that train the layers of a network, and the table of a job file that holds the same.

use super::files::{holds_private, read_text};
use crate::ui::Failure;
use clap::Args;
use privfit::Schema;
use privfit::data::load::Source;
use std::path::{Path, PathBuf};

#[derive(Args, Clone, Default)]
pub(crate) struct PretrainArguments {
    /// PUBLIC labelled rows: layers are trained on them without noise and frozen, and the whole budget goes into the scores. For networks
    #[arg(long, num_args = 1.., value_name = "FILE")]
    public_rows: Vec<PathBuf>,
    /// Labels of the public rows, for formats that keep them apart
    #[arg(long, num_args = 1.., value_name = "FILE")]
    public_labels: Vec<PathBuf>,
    /// Schema of the public rows, if their classes are others; [features] must be the same
    #[arg(long, value_name = "FILE")]
    public_schema: Option<PathBuf>,
}

impl PretrainArguments {
    /// The table [pretrain] of a job file; an error is the fix.
    pub(crate) fn parse(table: &toml::Table, base: &Path) -> Result<PretrainArguments, String> {
        let fix = "give data, and labels and schema where they are needed: paths, or lists of them";
        let mut out = PretrainArguments::default();
        for (key, value) in table {
            let paths: Option<Vec<PathBuf>> = match value {
                toml::Value::String(path) => Some(vec![base.join(path)]),
                toml::Value::Array(list) => list.iter().map(|v| v.as_str().map(|path| base.join(path))).collect(),
                _ => None,
            };
            match (key.as_str(), paths) {
                ("data", Some(paths)) => out.public_rows = paths,
                ("labels", Some(paths)) => out.public_labels = paths,
                ("schema", Some(paths)) if paths.len() == 1 => out.public_schema = paths.into_iter().next(),
                ("data" | "labels" | "schema", _) => return Err(format!("{key}: {fix}")),
                _ => return Err(format!("unknown key {key}: {fix}")),
            }
        }
        Ok(out)
    }

    /// These flags, and what the job file says where there are none.
    pub(crate) fn or(&self, job: Option<&PretrainArguments>) -> PretrainArguments {
        let Some(job) = job else { return self.clone() };
        let first = |own: &[PathBuf], other: &[PathBuf]| if own.is_empty() { other.to_vec() } else { own.to_vec() };
        PretrainArguments {
            public_rows: first(&self.public_rows, &job.public_rows),
            public_labels: first(&self.public_labels, &job.public_labels),
            public_schema: self.public_schema.clone().or(job.public_schema.clone()),
        }
    }

    /// The public files, if there are any; none of them may be a private one.
    pub(crate) fn source(&self, private: &[PathBuf]) -> Result<Option<Source>, Failure> {
        if self.public_rows.is_empty() {
            return match self.public_labels.is_empty() && self.public_schema.is_none() {
                true => Ok(None),
                false => Err(Failure::misuse("no public rows are given: add --public-rows FILE")),
            };
        }
        if let Some(path) = holds_private(self.public_rows.iter().chain(&self.public_labels), private) {
            return Err(Failure::misuse(format!(
                "{} holds the private records: give other rows to --public-rows, or leave it out",
                path.display()
            )));
        }
        Ok(Some(Source { files: self.public_rows.clone(), labels: self.public_labels.clone() }))
    }

    /// The schema of the public rows, if it is not that of the job.
    pub(crate) fn schema(&self) -> Result<Option<Schema>, Failure> {
        let Some(path) = &self.public_schema else { return Ok(None) };
        Ok(Some(Schema::parse(&read_text(path, "schema")?)?))
    }
}
