//! Public rows with labels that were released for some of them: those rows, with these labels in the place of any that their files have.

use super::load::Records;
use super::{Cell, Each, Reader, Record};
use crate::error::{Error, Result};
use crate::schema::{Features, Schema, TargetValues};

/// Rows of a source that have a label, and their labels.
pub struct LabelledRows<'a> {
    source: &'a dyn Records,
    /// Of each row in order; none for a row that is left out.
    labels: Vec<Option<Option<Vec<u8>>>>,
    /// Whether labels are handed out apart from rows.
    apart: bool,
    target: Option<String>,
    /// Rows before each part.
    starts: Vec<usize>,
}

impl<'a> LabelledRows<'a> {
    /// Classes by number, for each row of the source.
    pub fn new(source: &'a dyn Records, schema: &Schema, labels: &[Option<usize>]) -> Result<LabelledRows<'a>> {
        let text = |class: usize| match &schema.target.values {
            TargetValues::Classes(values) => values.get(class).map(|v| v.clone().into_bytes()),
            // Whatever is not listed is the rest.
            TargetValues::Positive(values) => values.first().filter(|_| class == 1).map(|v| v.clone().into_bytes()),
            TargetValues::Bounds(..) | TargetValues::None => None,
        };
        let mut starts = vec![0];
        for part in 0..source.parts() {
            let mut rows = 0;
            source.open(part, schema)?.read(&mut |_| rows += 1)?;
            starts.push(starts[part] + rows);
        }
        if starts.last() != Some(&labels.len()) {
            return Err(Error::misuse("there is not a label for each of the public points: give the same files again"));
        }
        Ok(LabelledRows {
            source,
            labels: labels.iter().map(|label| label.map(text)).collect(),
            apart: matches!(schema.features, Features::Dense { .. } | Features::Image { .. }),
            target: schema.target.column.clone(),
            starts,
        })
    }

    /// Rows that have a label.
    pub fn count(&self) -> u64 {
        self.labels.iter().flatten().count() as u64
    }
}

fn cell(label: &Option<Vec<u8>>) -> Cell<'_> {
    label.as_deref().map_or(Cell::Missing, Cell::Text)
}

/// Rows of one part.
struct Rows<'a> {
    inner: Box<dyn Reader + 'a>,
    names: Vec<String>,
    labels: &'a [Option<Option<Vec<u8>>>],
}

impl Reader for Rows<'_> {
    fn columns(&self) -> &[String] {
        &self.names
    }

    fn header_rows(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let (labels, table) = (self.labels, !self.names.is_empty());
        let mut number = 0;
        self.inner.read(&mut |record| {
            let label = labels.get(number).and_then(Option::as_ref);
            number += 1;
            let Some(label) = label else { return };
            match record {
                Record::Cells(cells) if table => {
                    let own: Vec<Cell<'_>> = std::iter::once(cell(label)).chain(cells.iter().copied()).collect();
                    each(Record::Cells(&own));
                }
                Record::Sparse(_, pairs) => each(Record::Sparse(cell(label), pairs)),
                Record::Labelled(_, values) => each(Record::Labelled(cell(label), values)),
                other => each(other),
            }
        })
    }
}

/// Labels alone.
struct Labels<'a>(&'a [Option<Option<Vec<u8>>>]);

impl Reader for Labels<'_> {
    fn columns(&self) -> &[String] {
        &[]
    }

    fn header_rows(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        self.0.iter().flatten().for_each(|label| each(Record::Cells(&[cell(label)])));
        Ok(())
    }
}

impl Records for LabelledRows<'_> {
    fn parts(&self) -> usize {
        self.source.parts()
    }

    fn open(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>> {
        let inner = self.source.open(part, schema)?;
        let mut names = inner.columns().to_vec();
        if let (false, Some(target)) = (names.is_empty(), &self.target) {
            // The first column of a name is the one that is read.
            names.insert(0, target.clone());
        }
        Ok(Box::new(Rows { inner, names, labels: &self.labels[self.starts[part]..self.starts[part + 1]] }))
    }

    fn label_parts(&self, _: &Schema) -> usize {
        usize::from(self.apart)
    }

    fn open_labels(&self, _: usize, _: &Schema) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(Labels(&self.labels)))
    }

    fn check(&self, _: &Schema) -> Result<()> {
        Ok(())
    }
}
