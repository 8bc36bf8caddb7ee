//! Tables by the Arrow C stream interface: Polars, pyarrow, pandas, DuckDB and whatever else has `__arrow_c_stream__`. Cells are read
//! where they are: numbers, truth values, texts and dictionaries.

use crate::error::misuse;
use crate::interrupt::poll;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, LargeBinaryArray, PrimitiveArray, RecordBatch};
use arrow_schema::DataType;
use privfit::data::Cell;
use privfit::data::memory::Column;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// The cells of one column in one batch. Texts are bytes: nobody has checked that they are UTF-8.
enum Chunk {
    Null,
    Bool(BooleanArray),
    I8(PrimitiveArray<Int8Type>),
    I16(PrimitiveArray<Int16Type>),
    I32(PrimitiveArray<Int32Type>),
    I64(PrimitiveArray<Int64Type>),
    U8(PrimitiveArray<UInt8Type>),
    U16(PrimitiveArray<UInt16Type>),
    U32(PrimitiveArray<UInt32Type>),
    U64(PrimitiveArray<UInt64Type>),
    F32(PrimitiveArray<Float32Type>),
    F64(PrimitiveArray<Float64Type>),
    Text(BinaryArray),
    LongText(LargeBinaryArray),
    View(BinaryViewArray),
    /// Places in a list of values.
    Dictionary(Box<Chunk>, Box<Chunk>, usize),
}

impl Chunk {
    /// None if cells of this type are not read.
    fn of(array: &ArrayRef) -> Option<Chunk> {
        Some(match array.data_type() {
            DataType::Null => Chunk::Null,
            DataType::Boolean => Chunk::Bool(array.as_boolean().clone()),
            DataType::Int8 => Chunk::I8(array.as_primitive().clone()),
            DataType::Int16 => Chunk::I16(array.as_primitive().clone()),
            DataType::Int32 => Chunk::I32(array.as_primitive().clone()),
            DataType::Int64 => Chunk::I64(array.as_primitive().clone()),
            DataType::UInt8 => Chunk::U8(array.as_primitive().clone()),
            DataType::UInt16 => Chunk::U16(array.as_primitive().clone()),
            DataType::UInt32 => Chunk::U32(array.as_primitive().clone()),
            DataType::UInt64 => Chunk::U64(array.as_primitive().clone()),
            DataType::Float32 => Chunk::F32(array.as_primitive().clone()),
            DataType::Float64 => Chunk::F64(array.as_primitive().clone()),
            DataType::Utf8 => Chunk::Text(array.as_string::<i32>().clone().into()),
            DataType::LargeUtf8 => Chunk::LongText(array.as_string::<i64>().clone().into()),
            DataType::Utf8View => Chunk::View(array.as_string_view().clone().to_binary_view()),
            DataType::Binary => Chunk::Text(array.as_binary::<i32>().clone()),
            DataType::LargeBinary => Chunk::LongText(array.as_binary::<i64>().clone()),
            DataType::BinaryView => Chunk::View(array.as_binary_view().clone()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let keys: ArrayRef = arrow_array::make_array(dictionary.keys().to_data());
                let values = dictionary.values();
                Chunk::Dictionary(Box::new(Chunk::of(&keys)?), Box::new(Chunk::of(values)?), values.len())
            }
            _ => return None,
        })
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        fn number<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize, read: impl Fn(T::Native) -> f64) -> Cell<'_> {
            match array.is_valid(row).then(|| read(array.value(row))) {
                Some(number) if !number.is_nan() => Cell::Number(number),
                _ => Cell::Missing,
            }
        }
        match self {
            Chunk::Null => Cell::Missing,
            Chunk::Bool(a) if a.is_valid(row) => Cell::Number(f64::from(u8::from(a.value(row)))),
            Chunk::Bool(_) => Cell::Missing,
            Chunk::I8(a) => number(a, row, f64::from),
            Chunk::I16(a) => number(a, row, f64::from),
            Chunk::I32(a) => number(a, row, f64::from),
            Chunk::I64(a) => number(a, row, |x| x as f64),
            Chunk::U8(a) => number(a, row, f64::from),
            Chunk::U16(a) => number(a, row, f64::from),
            Chunk::U32(a) => number(a, row, f64::from),
            Chunk::U64(a) => number(a, row, |x| x as f64),
            Chunk::F32(a) => number(a, row, f64::from),
            Chunk::F64(a) => number(a, row, |x| x),
            Chunk::Text(a) => {
                if a.is_valid(row) {
                    Cell::Text(a.value(row))
                } else {
                    Cell::Missing
                }
            }
            Chunk::LongText(a) => {
                if a.is_valid(row) {
                    Cell::Text(a.value(row))
                } else {
                    Cell::Missing
                }
            }
            Chunk::View(a) => {
                if a.is_valid(row) {
                    Cell::Text(a.value(row))
                } else {
                    Cell::Missing
                }
            }
            Chunk::Dictionary(keys, values, count) => match keys.cell(row) {
                Cell::Number(place) if place >= 0.0 && (place as usize) < *count => values.cell(place as usize),
                _ => Cell::Missing,
            },
        }
    }
}

/// A column in as many chunks as there are batches; none of them if its type is not one that is read.
pub(crate) struct ArrowColumn {
    pub(crate) format: String,
    pub(crate) text: bool,
    chunks: Option<Vec<Chunk>>,
    ends: Arc<Vec<usize>>,
}

impl ArrowColumn {
    /// Whether cells of this type are read.
    pub(crate) fn known(&self) -> bool {
        self.chunks.is_some()
    }
}

impl Column for ArrowColumn {
    fn rows(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        if row.is_multiple_of(4096) {
            poll();
        }
        let at = self.ends.partition_point(|end| *end <= row);
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        self.chunks.as_ref().map_or(Cell::Missing, |chunks| chunks[at].cell(row - start))
    }
}

/// Reads the stream of an object: names and columns.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Vec<(String, ArrowColumn)>> {
    let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    let broken = || misuse("the Arrow stream can't be read: make the table again, or convert it to NumPy");
    // SAFETY: the capsule holds such a stream; the reader moves it out, and leaves one that is marked as released.
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) }.map_err(|_| broken())?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(|_| broken())?;
    let ends = batches.iter().scan(0, |sum, batch| {
        *sum += batch.num_rows();
        Some(*sum)
    });
    let ends: Arc<Vec<usize>> = Arc::new(ends.collect());
    let column = |(i, field): (usize, &Arc<arrow_schema::Field>)| {
        let chunks = batches.iter().map(|batch| Chunk::of(batch.column(i))).collect();
        let text = matches!(
            field.data_type(),
            DataType::Dictionary(..)
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
        );
        (field.name().clone(), ArrowColumn { format: field.data_type().to_string(), text, chunks, ends: ends.clone() })
    };
    Ok(schema.fields().iter().enumerate().map(column).collect())
}
