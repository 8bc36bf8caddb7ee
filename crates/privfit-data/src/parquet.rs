//! Parquet tables of flat columns, read with the `parquet` crate.
//!
//! The footer is public. What is in the pages is not: an error or a panic of the crate while they are read is `Error::Host`,
//! without its text.

use super::parquet_column::{Column, Form};
use super::parquet_pages::{CheckedPages, check_sizes};
use super::thrift::{Shape, schema_shape};
use super::{Cell, Each, Reader, Record};
use crate::error::{Error, Result};
use parquet::basic::Compression;
use parquet::column::reader::get_column_reader;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::serialized_reader::SerializedFileReader;
use privfit_kernel::quietly;
use std::collections::HashSet;
use std::fs::File;

/// Largest footer. The crate reserves up to a few hundred times as much.
const FOOTER_LIMIT: u64 = 64 << 20;

/// Cells that are decoded at a time, and most rows of them.
const CELLS: usize = 64 << 10;
const ROWS: usize = 4096;

/// An open Parquet file.
pub struct ParquetFile {
    file: File,
    reader: SerializedFileReader<File>,
    columns: Vec<String>,
    rows: u64,
}

impl ParquetFile {
    /// Reads the footer.
    pub fn open(file: File) -> Result<ParquetFile> {
        let other =
            || Error::misuse("the file is not a Parquet file, or its footer is damaged: check the path, or write the file again");
        let footer = footer(&file).ok_or_else(other)?;
        if let Shape::Nested(name) = schema_shape(&footer).ok_or_else(other)? {
            return Err(nested(&String::from_utf8_lossy(name)));
        }
        let handle = file.try_clone().map_err(|_| Error::Host)?;
        let reader = quietly(|| SerializedFileReader::new(handle)).and_then(|reader| reader.ok()).ok_or_else(other)?;
        let columns = quietly(|| columns(&reader)).ok_or_else(other)??;
        let groups = reader.metadata().row_groups();
        let rows =
            groups.iter().try_fold(0i64, |sum, group| (group.num_rows() >= 0).then(|| sum.checked_add(group.num_rows()))?);
        let whole = rows == Some(reader.metadata().file_metadata().num_rows());
        if !whole || groups.iter().any(|group| group.num_columns() != columns.len()) {
            return Err(other());
        }
        let rows = rows.unwrap_or_default().unsigned_abs();
        Ok(ParquetFile { file, reader, columns, rows })
    }
}

impl Reader for ParquetFile {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn header_rows(&self) -> Option<u64> {
        // A footer can announce anything: the pages must have as many values.
        let whole = self.reader.metadata().row_groups().iter().all(|group| has_its_rows(&self.file, group));
        whole.then_some(self.rows)
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let width = self.columns.len();
        let block = (CELLS / width).clamp(1, ROWS);
        for place in 0..self.reader.num_row_groups() {
            let group = self.reader.metadata().row_group(place);
            if !has_its_rows(&self.file, group) {
                return Err(Error::Host);
            }
            let mut columns = guarded(|| open_columns(&self.reader, place, group))?;
            let mut left = group.num_rows().unsigned_abs();
            while left > 0 {
                let rows = usize::try_from(left).map_or(block, |left| left.min(block));
                // The crate is called in here alone, so that a panic of `each` remains one.
                guarded(|| columns.iter_mut().try_for_each(|column| column.decode(rows)))?;
                let mut cells = vec![Cell::Missing; rows * width];
                columns.iter().enumerate().for_each(|(place, column)| column.fill(width, &mut cells[place..]));
                cells.chunks_exact(width).for_each(|row| each(Record::Cells(row)));
                left -= rows as u64;
            }
        }
        Ok(())
    }
}

/// Whether each column has as many values as the group says that it has rows.
fn has_its_rows(file: &File, group: &RowGroupMetaData) -> bool {
    let rows = u64::try_from(group.num_rows()).ok();
    rows.is_some() && group.columns().iter().all(|chunk| check_sizes(file, chunk) == rows)
}

fn guarded<T>(call: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    quietly(call).and_then(|value| value.ok()).ok_or(Error::Host)
}

fn nested(name: &str) -> Error {
    Error::misuse(format!(
        "column `{name}` of the Parquet file is nested: write its parts as columns of their own, or leave it out"
    ))
}

/// The metadata at the end of the file.
fn footer(file: &File) -> Option<Vec<u8>> {
    let size = file.metadata().ok()?.len();
    let tail = file.get_bytes(size.checked_sub(8)?, 8).ok()?;
    let length = u64::from(u32::from_le_bytes(*tail.strip_suffix(b"PAR1")?.first_chunk()?));
    if length > FOOTER_LIMIT {
        return None;
    }
    let bytes = file.get_bytes((size - 8).checked_sub(length)?, usize::try_from(length).ok()?).ok()?;
    Some(bytes.to_vec())
}

/// Names of the columns, if all of them can be read.
fn columns(reader: &SerializedFileReader<File>) -> Result<Vec<String>> {
    let metadata = reader.metadata();
    let schema = metadata.file_metadata().schema_descr();
    let mut seen = HashSet::new();
    for column in schema.columns() {
        let name = column.name();
        if column.max_rep_level() > 0 || column.path().parts().len() != 1 {
            return Err(nested(name));
        }
        if !seen.insert(name) {
            return Err(Error::misuse(format!("the Parquet file has two columns named `{name}`: rename one of them")));
        }
    }
    if seen.is_empty() {
        return Err(Error::misuse("the Parquet file has no columns: write a table with at least one"));
    }
    for chunk in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        if chunk.file_path().is_some() {
            return Err(Error::misuse("the Parquet file is a summary of other files: give one with the rows in it"));
        }
        let codec = chunk.compression();
        if matches!(codec, Compression::BROTLI(_) | Compression::LZO) {
            return Err(Error::misuse(format!(
                "column `{}` of the Parquet file is compressed with {codec}: write it with snappy, gzip, zstd, lz4 or none",
                chunk.column_path()
            )));
        }
    }
    Ok(schema.columns().iter().map(|column| column.name().to_owned()).collect())
}

fn open_columns(
    reader: &SerializedFileReader<File>,
    place: usize,
    group: &RowGroupMetaData,
) -> parquet::errors::Result<Vec<Column>> {
    let pages = reader.get_row_group(place)?;
    let open = |(place, chunk): (usize, &ColumnChunkMetaData)| {
        let descriptor = chunk.column_descr_ptr();
        let (form, optional) = (Form::of(&descriptor), descriptor.max_def_level() > 0);
        let pages = CheckedPages { pages: pages.get_column_page_reader(place)?, optional };
        Ok(Column::new(get_column_reader(descriptor, Box::new(pages)), form, optional))
    };
    group.columns().iter().enumerate().map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::records;
    use super::*;
    use std::io::Write;

    /// The files are written by pyarrow, see make.py there.
    fn path(name: &str) -> String {
        format!("{}/tests/corpus/parquet/{name}.parquet", env!("CARGO_MANIFEST_DIR"))
    }

    fn open(name: &str) -> Result<ParquetFile> {
        ParquetFile::open(File::open(path(name)).unwrap())
    }

    fn open_bytes(name: &str, bytes: &[u8]) -> Result<ParquetFile> {
        let path = std::env::temp_dir().join(format!("privfit-parquet-{}-{name}", std::process::id()));
        File::create(&path).unwrap().write_all(bytes).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        ParquetFile::open(file)
    }

    #[test]
    fn types() {
        let mut reader = open("types").unwrap();
        let names = "bool i8 u32 i64 u64 f16 f32 f64 text bytes fixed day time dec big";
        assert_eq!(reader.columns().join(" "), names);
        assert_eq!(reader.header_rows(), Some(3));
        let huge = (1e300).to_string();
        let first = format!("1|-1|4294967295|-5|9223372036854776000|1.5|0.25|{huge}|é|\u{fffd}\0|abc|10|2000|-1.25|-12.5");
        let last = "0|2|2|2|2|-2|NaN|-inf||b|def|10|2000|3.5|100000000000000000000";
        let nulls = vec!["."; 15].join("|");
        // Twice, since every read starts from the front.
        for _ in 0..2 {
            assert_eq!(records(&mut reader).unwrap(), [&first[..], &nulls, last]);
        }
        assert_eq!(records(&mut open("types_int").unwrap()).unwrap(), ["-1.25|2000", ".|.", "3.5|2000"]);
        assert_eq!(records(&mut open("int96").unwrap()).unwrap(), ["2000000000", ".", "2000000000"]);
    }

    #[test]
    fn codecs_and_encodings() {
        let row = |i: usize| {
            let x = if i.is_multiple_of(5) { ".".to_owned() } else { (i as f64 / 4.0).to_string() };
            let t = if i.is_multiple_of(7) { ".".to_owned() } else { ["a", "b", "c"][i % 3].repeat(i % 4) };
            format!("{i}|{x}|{t}")
        };
        let want: Vec<String> = (0..40).map(row).collect();
        for name in ["none", "snappy", "gzip", "zstd", "lz4", "plain", "v2", "delta"] {
            assert_eq!(records(&mut open(name).unwrap()).unwrap(), want, "{name}");
        }
        assert_eq!(records(&mut open("required").unwrap()).unwrap()[8], "8|i");
        assert_eq!(open("empty").unwrap().header_rows(), Some(0));
        assert_eq!(records(&mut open("empty").unwrap()).unwrap().len(), 0);
    }

    #[test]
    fn public_faults_have_words() {
        let says = |result: Result<ParquetFile>, word: &str| matches!(result, Err(Error::Misuse(text)) if text.contains(word));
        assert!(says(open("nested"), "column `b`") && says(open("list"), "column `b`") && says(open("brotli"), "BROTLI"));
        let whole = std::fs::read(path("snappy")).unwrap();
        for length in [0, 4, 7, 8, whole.len() / 2, whole.len() - 1] {
            assert!(says(open_bytes("cut", &whole[..length]), "not a Parquet file"));
        }
        assert!(says(open_bytes("long", &[0, 0, 0, 0, 255, 255, 255, 255, b'P', b'A', b'R', b'1']), "not a Parquet file"));
    }

    #[test]
    fn damaged_pages_are_the_hosts_fault() {
        let mut bytes = std::fs::read(path("plain")).unwrap();
        bytes[4..40].fill(0xff);
        assert_eq!(records(&mut open_bytes("pages", &bytes).unwrap()), Err(Error::Host));
    }
}
