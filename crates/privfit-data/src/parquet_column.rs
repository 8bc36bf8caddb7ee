//! A column of a Parquet row group, decoded some rows at a time.

use super::Cell;
use super::dense::half;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, Int96};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// What the stored values of a column stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    /// Themselves. Dates, times and timestamps are numbers in the unit of the file.
    Plain,
    /// Integers without a sign.
    Unsigned,
    /// Integers to be divided by this.
    Decimal(f64),
    /// Two bytes that are a number.
    Half,
}

impl Form {
    pub(crate) fn of(column: &ColumnDescriptor) -> Form {
        use ConvertedType::{DECIMAL, UINT_8, UINT_16, UINT_32, UINT_64};
        let physical = column.physical_type();
        match column.converted_type() {
            UINT_8 | UINT_16 | UINT_32 | UINT_64 => Form::Unsigned,
            DECIMAL => Form::Decimal(10f64.powi(column.type_scale().max(0))),
            _ if physical == Type::FIXED_LEN_BYTE_ARRAY && column.logical_type_ref() == Some(&LogicalType::Float16) => Form::Half,
            _ => Form::Plain,
        }
    }

    /// An integer's value. Beyond 2^53 it is rounded.
    fn integer(self, value: i64, unsigned: u64) -> f64 {
        match self {
            Form::Unsigned => unsigned as f64,
            Form::Decimal(divisor) => value as f64 / divisor,
            _ => value as f64,
        }
    }

    /// The number that bytes stand for, if they stand for one.
    fn bytes(self, bytes: &[u8]) -> Option<f64> {
        match (self, bytes) {
            (Form::Decimal(_), []) => Some(0.0),
            // Two's complement, highest byte first.
            (Form::Decimal(divisor), [first, rest @ ..]) => {
                let first = f64::from(*first as i8);
                Some(rest.iter().fold(first, |value, &byte| value * 256.0 + f64::from(byte)) / divisor)
            }
            (Form::Half, &[low, high]) => Some(half(u16::from_le_bytes([low, high]))),
            _ => None,
        }
    }
}

/// A column and the values of its current rows.
pub(crate) struct Column {
    reader: ColumnReader,
    form: Form,
    /// 0 for a null; empty if the column can't have any.
    levels: Vec<i16>,
    optional: bool,
    /// The values that are not null, in one of the two.
    numbers: Vec<f64>,
    texts: Vec<ByteArray>,
}

impl Column {
    pub(crate) fn new(reader: ColumnReader, form: Form, optional: bool) -> Column {
        Column { reader, form, levels: Vec::new(), optional, numbers: Vec::new(), texts: Vec::new() }
    }

    /// Decodes exactly so many rows.
    pub(crate) fn decode(&mut self, rows: usize) -> Result<()> {
        let Column { reader, form, levels, numbers, texts, .. } = self;
        let form = *form;
        levels.clear();
        numbers.clear();
        texts.clear();
        match reader {
            ColumnReader::BoolColumnReader(reader) => numbers.extend(values(reader, rows, levels)?.into_iter().map(f64::from)),
            ColumnReader::Int32ColumnReader(reader) => {
                let values = values(reader, rows, levels)?;
                numbers.extend(values.into_iter().map(|value| form.integer(value.into(), u64::from(value as u32))));
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let values = values(reader, rows, levels)?;
                numbers.extend(values.into_iter().map(|value| form.integer(value, value as u64)));
            }
            ColumnReader::Int96ColumnReader(reader) => numbers.extend(values(reader, rows, levels)?.iter().map(nanoseconds)),
            ColumnReader::FloatColumnReader(reader) => numbers.extend(values(reader, rows, levels)?.into_iter().map(f64::from)),
            ColumnReader::DoubleColumnReader(reader) => *numbers = values(reader, rows, levels)?,
            ColumnReader::ByteArrayColumnReader(reader) => *texts = values(reader, rows, levels)?,
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                texts.extend(values(reader, rows, levels)?.into_iter().map(ByteArray::from));
            }
        }
        let nulls = levels.iter().filter(|&&level| level == 0).count();
        let wanted = if self.optional { levels.len() == rows } else { levels.is_empty() };
        if !wanted || self.numbers.len() + self.texts.len() + nulls != rows {
            return Err(ParquetError::General(String::new()));
        }
        Ok(())
    }

    /// Puts the decoded rows into every `width`-th cell, from the first one.
    pub(crate) fn fill<'a>(&'a self, width: usize, cells: &mut [Cell<'a>]) {
        let mut numbers = self.numbers.iter().map(|&number| Cell::Number(number));
        let mut texts = self.texts.iter().map(|text| {
            let bytes = text.data();
            self.form.bytes(bytes).map_or(Cell::Text(bytes), Cell::Number)
        });
        let mut next = || numbers.next().or_else(|| texts.next()).unwrap_or(Cell::Missing);
        let cells = cells.iter_mut().step_by(width);
        if self.levels.is_empty() {
            cells.for_each(|cell| *cell = next());
        } else {
            cells.zip(&self.levels).for_each(|(cell, &level)| *cell = if level == 0 { Cell::Missing } else { next() });
        }
    }
}

/// The values of the next rows that are not null.
fn values<T: DataType>(reader: &mut ColumnReaderImpl<T>, rows: usize, levels: &mut Vec<i16>) -> Result<Vec<T::T>> {
    let mut values = Vec::new();
    reader.read_records(rows, Some(levels), None, &mut values)?;
    Ok(values)
}

/// An old kind of timestamp: nanoseconds of a Julian day. Counted from 1970 as in other timestamps.
fn nanoseconds(value: &Int96) -> f64 {
    let &[low, high, day] = value.data() else { return f64::NAN };
    let time = (u64::from(high) << 32 | u64::from(low)) as i64;
    (f64::from(day) - 2_440_588.0) * 86_400e9 + time as f64
}
