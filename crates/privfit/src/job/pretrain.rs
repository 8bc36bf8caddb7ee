//! Layers from public rows: the network is trained on rows that are declared public, without noise; its layers before the scores are frozen, and the scores alone are trained on the private records.
//!
//! *Claim.* Nothing here looks at a private record: rows, labels and their schema are public, and so is everything that comes out. What the private training releases is the head alone
//! (`method/network.rs`), so that the guarantee is the same whatever the public rows are. That they are public is the word of whoever gives them: the certificate lists their number and digests.
//!
//! Classes of the public rows may be others, since their scores are thrown away. Features must be encoded alike, so that they are those of the job; a schema for the public rows may differ from
//! the job's in its target only.

use super::fit::{Job, Prepared};
use crate::data::Record;
use crate::data::encode::{Encoder, Row, UNKNOWN};
use crate::data::load::{Records, Source, count, read_labels};
use crate::data::picture::{container, each_file};
use crate::error::{Error, Result};
use crate::ledger::digest_of;
use crate::method::Problem;
use crate::method::network::architecture;
use crate::network::pretrain::{steps, train};
use crate::network::{Pretrained, PublicExamples};
use crate::schema::{Schema, Task, UnitOfPrivacy};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Fewer rows are most likely a mistake.
const LEAST_ROWS: u64 = 10;

/// Most numbers of public rows that are held in memory.
const MOST_NUMBERS: usize = 1 << 28;

/// Labelled rows that are declared public, and what is known of them before they are looked at.
pub struct PublicRecords<'a> {
    records: &'a dyn Records,
    schema: Schema,
    planned: Pretrained,
}

impl<'a> PublicRecords<'a> {
    /// Rows for the layers of a job, with digests of their files; their schema, if it has another target than the job.
    pub fn new(job: &Job, records: &'a dyn Records, schema: Option<&Schema>, digests: Vec<String>) -> Result<PublicRecords<'a>> {
        let schema = public_schema(&job.schema, schema)?;
        records.check(&schema).map_err(of_public_rows)?;
        let rows = count(records, &schema).map_err(of_public_rows)?;
        if rows < LEAST_ROWS {
            return Err(Error::misuse(format!("there are {rows} public rows: give at least {LEAST_ROWS}")));
        }
        Ok(PublicRecords { records, schema, planned: Pretrained::planned(rows, digests) })
    }

    /// For a plan: how many there are, and nothing trained.
    pub fn planned(&self) -> Arc<Pretrained> {
        Arc::new(self.planned.clone())
    }

    /// Steps that training on them takes.
    pub fn steps(&self) -> u64 {
        steps(self.planned.rows() as usize)
    }

    /// Trains the network of a plan on them and freezes its layers. The plan is to be made again with what comes out.
    pub fn train(&self, prepared: &Prepared, threads: usize, progress: &dyn Fn()) -> Result<Arc<Pretrained>> {
        let problem = &prepared.problem;
        // Encoded as the private records are, whatever the job left open.
        let schema = Schema { features: problem.schema.features.clone(), ..self.schema.clone() };
        let public = Problem { task: schema.task(), schema: Arc::new(schema.clone()), ..problem.clone() };
        let (network, normal) = architecture(&public)?;
        let examples = self.examples(&schema)?;
        let weights = train(&network, &normal, &examples, threads, progress).ok_or_else(|| {
            Error::misuse("training on the public rows ended with numbers that are too large: give other layers, or other rows")
        })?;
        let frozen = network.with_frozen_layers()?.frozen();
        Ok(Arc::new(self.planned.clone().with_weights(weights[..frozen].to_vec())))
    }

    /// Every row, encoded. What can't be read is said: these rows are public.
    fn examples(&self, schema: &Schema) -> Result<PublicExamples> {
        let own = schema.dimension() - usize::from(schema.intercept);
        let (mut out, mut row, mut labels) = (PublicExamples::default(), Row::default(), None);
        let (mut bad, mut full) = (Vec::new(), false);
        for part in 0..self.records.parts() {
            let mut reader = self.records.open(part, schema).map_err(of_public_rows)?;
            let encoder = Encoder::new(schema, reader.columns(), true).map_err(of_public_rows)?;
            if part == 0 {
                labels = read_labels(self.records, schema, &encoder).map_err(of_public_rows)?.map(|l| l.into_iter());
            }
            reader
                .read(&mut |record| {
                    full |= out.rows.len() + own > MOST_NUMBERS;
                    if full {
                        return;
                    }
                    encoder.encode(record, None, &mut row);
                    if let Some((label, _)) = labels.as_mut().and_then(|l| l.next()) {
                        row.label = label;
                    }
                    if matches!(record, Record::Broken) || row.label == UNKNOWN || !row.label.is_finite() {
                        bad.push(out.labels.len() + 1);
                    }
                    let start = out.rows.len();
                    out.rows.resize(start + own, 0.0);
                    let to = &mut out.rows[start..];
                    to.iter_mut().zip(&row.dense).for_each(|(x, own)| *x = *own as f32);
                    for (j, own) in &row.pairs {
                        if let Some(x) = to.get_mut(*j as usize) {
                            *x = *own as f32;
                        }
                    }
                    out.labels.push(row.label);
                })
                .map_err(of_public_rows)?;
        }
        match bad.first() {
            _ if full => Err(Error::misuse("the public rows have more than 268 million numbers: give fewer of them")),
            Some(first) => Err(Error::misuse(format!(
                "{} of the public rows can't be read or have a label that is no class or number of their schema, number {first} first: correct or remove them, or state their target in ",
                bad.len()
            ))
            .naming("public_schema")),
            None => Ok(out),
        }
    }
}

fn of_public_rows(error: Error) -> Error {
    error.after("public rows: ")
}

/// The schema of public rows: features as the job has them, and a target of their own if one is stated.
fn public_schema(own: &Schema, stated: Option<&Schema>) -> Result<Schema> {
    let stated = stated.unwrap_or(own);
    if stated.task() == Task::Location {
        return Err(Error::misuse("the schema of the public rows has no [target], so that there is nothing to learn: add one"));
    }
    let alike = (&stated.features, stated.intercept, stated.scaling) == (&own.features, own.intercept, own.scaling);
    if !alike {
        return Err(Error::misuse(
            "the schema of the public rows has other features than that of the job, so that their layers would not fit: give it the same [features]; only its [target] may differ",
        ));
    }
    Ok(Schema { target: stated.target.clone(), unit: UnitOfPrivacy::Row, rows: None, ..own.clone() })
}

/// SHA-256 of every file, as `sha256sum` prints it, rows first and then labels; of a folder of pictures that of all paths and bytes in it.
pub fn digests(source: &Source) -> Result<Vec<String>> {
    source.files.iter().chain(&source.labels).map(|path| digest(path)).collect()
}

fn digest(path: &Path) -> Result<String> {
    if path.is_dir() {
        let mut all = String::new();
        each_file(path, &mut |path, bytes| all += &format!("{} {}\n", digest_of(path), digest_of(bytes)))?;
        return Ok(digest_of(all.as_bytes()));
    }
    // A path that goes into a zip file is that file.
    let path = container(path);
    let failed = |e: std::io::Error| Error::misuse(format!("public rows: cannot read {}: {e}; check the path", path.display()));
    let mut file = crate::small_file::open(&path).map_err(failed)?;
    let (mut sha, mut buffer) = (Sha256::new(), vec![0u8; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(sha.finalize().iter().map(|b| format!("{b:02x}")).collect()),
            read => sha.update(&buffer[..read]),
        }
    }
}
