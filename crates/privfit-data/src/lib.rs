//! Public facts about a data set ([`schema`]), and files of records: readers (CSV, Parquet, NPY, IDX, LIBSVM, pictures, memory) and the encoder
//! between them and the kernel. The error type that every crate above the kernel shares is here too ([`error`]).
//!
//! Files of records. A reader knows its format and nothing else; it hands out one record at a time, and what it hands out for a
//! record depends on that record's bytes alone: a bad record is `Record::Broken`, never an error and never a changed neighbour.
//! Damage of the file as a whole (a cut-off block, a wrong magic) is `Error::Host` once records are being read.

pub mod cells;
pub mod csv;
pub mod decode;
mod dense;
pub mod encode;
pub mod error;
pub mod generate;
pub mod gz;
pub mod idx;
pub mod labelled;
pub mod libsvm;
mod lines;
pub mod load;
pub mod memory;
pub mod nearest;
pub mod npy;
mod npy_header;
pub mod parquet;
mod parquet_column;
mod parquet_pages;
pub mod picture;
pub mod publish;
pub mod scattering;
pub mod schema;
pub mod small_file;
#[cfg(test)]
mod testing;
mod thrift;

pub use error::{Error, Result};
pub use schema::Schema;

/// One cell of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing there.
    Missing,
    /// A number, from a format that has numbers.
    Number(f64),
    /// Text, from a format that has text; numbers in it are parsed by the encoder.
    Text(&'a [u8]),
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record<'a> {
    /// A row of a table, in the order of the reader's columns.
    Cells(&'a [Cell<'a>]),
    /// A row of numbers; its label is in another file.
    Dense(&'a [f64]),
    /// A row of numbers with its label.
    Labelled(Cell<'a>, &'a [f64]),
    /// A label and the non-zero features, numbered from 0.
    Sparse(Cell<'a>, &'a [(u32, f64)]),
    /// A record that can't be read. It stays a record, so that nobody else changes place.
    Broken,
}

/// Receives records in the order of the file.
pub type Each<'a> = &'a mut dyn FnMut(Record<'_>);

/// An open file of records.
pub trait Reader {
    /// Names of the columns, for tables; empty for other kinds. Public.
    fn columns(&self) -> &[String];
    /// Number of records if the format's header tells it and the file is as long as that. Public.
    fn header_rows(&self) -> Option<u64>;
    /// Hands out every record.
    fn read(&mut self, each: Each<'_>) -> Result<()>;
}
