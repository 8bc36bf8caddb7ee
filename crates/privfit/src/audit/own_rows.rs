//! The owner's records as rows of an audit. What comes out of such an audit tells about them, and is for the owner alone.

use crate::data::cells::RowForm;
use crate::data::encode::{Row, UNKNOWN};
use crate::data::load::{Source, check_labels, encoder, open, read_labels};
use crate::error::{Error, Result};
use crate::schema::{Schema, UnitOfPrivacy};

/// Encoded rows of files, with their labels.
pub fn own_rows(source: &Source, schema: &Schema, form: RowForm<'_>) -> Result<Vec<Row>> {
    if schema.unit != UnitOfPrivacy::Row {
        return Err(Error::misuse("audits on records of your own take one row to a unit: leave out ")
            .naming("data")
            .text(", or use unit = \"row\""));
    }
    check_labels(source, schema)?;
    let mut out = Vec::new();
    let mut labels: Option<std::vec::IntoIter<(f32, f64)>> = None;
    for (i, path) in source.files.iter().enumerate() {
        let mut reader = open(path, schema)?;
        let encoder = encoder(schema, form, reader.as_ref())?;
        if i == 0 {
            labels = read_labels(source, schema, &encoder)?.map(|l| l.into_iter());
        }
        reader.read(&mut |record| {
            let mut row = Row::default();
            encoder.encode(record, None, &mut row);
            if let Some(labels) = &mut labels {
                row.label = labels.next().map_or(UNKNOWN, |l| l.0);
            }
            out.push(row);
        })?;
    }
    Ok(out)
}
