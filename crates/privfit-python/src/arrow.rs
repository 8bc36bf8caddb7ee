//! Tables by the Arrow C stream interface: Polars, pyarrow, pandas, DuckDB and whatever else has `__arrow_c_stream__`. A small reader for
//! numbers, truth values, texts and dictionaries, which stay where they are.

use crate::error::misuse;
use crate::interrupt::poll;
use privfit::data::Cell;
use privfit::data::memory::Column;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// What owns foreign memory gives it back when it is dropped.
macro_rules! released {
    ($type:ty) => {
        impl Drop for $type {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the interface's own function, called once, because it marks the struct as released.
                    unsafe { release(self) };
                }
            }
        }
    };
}
released!(ArrowSchema);
released!(ArrowArray);
released!(ArrowArrayStream);

/// A batch that stays alive as long as a column of it does.
struct Batch(ArrowArray);

// SAFETY: by the interface the memory behind an array does not change, and it may be given back on any thread.
unsafe impl Send for Batch {}
// SAFETY: the same.
unsafe impl Sync for Batch {}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Null,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Text32,
    Text64,
    View,
}

impl Kind {
    fn of(format: &str) -> Option<Kind> {
        Some(match format {
            "n" => Kind::Null,
            "b" => Kind::Bool,
            "c" => Kind::I8,
            "s" => Kind::I16,
            "i" => Kind::I32,
            "l" => Kind::I64,
            "C" => Kind::U8,
            "S" => Kind::U16,
            "I" => Kind::U32,
            "L" => Kind::U64,
            "f" => Kind::F32,
            "g" => Kind::F64,
            "u" | "z" => Kind::Text32,
            "U" | "Z" => Kind::Text64,
            "vu" | "vz" => Kind::View,
            _ => return None,
        })
    }
}

/// The cells of one column in one batch.
struct Chunk {
    kind: Kind,
    offset: usize,
    length: usize,
    buffers: Vec<*const u8>,
    dictionary: Option<Box<Chunk>>,
    _batch: Arc<Batch>,
}

// SAFETY: pointers into the batch that is kept alive beside them, and only read.
unsafe impl Send for Chunk {}
// SAFETY: the same.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// SAFETY: schema and array are a valid pair of the interface, and the array is part of the batch.
    unsafe fn of(schema: &ArrowSchema, array: &ArrowArray, before: usize, length: usize, batch: &Arc<Batch>) -> Option<Chunk> {
        // SAFETY: by the contract of this function.
        unsafe {
            let kind = Kind::of(CStr::from_ptr(schema.format).to_str().ok()?)?;
            let buffers = (0..array.n_buffers as usize).map(|i| (*array.buffers.add(i)).cast::<u8>()).collect();
            let dictionary = match (schema.dictionary.as_ref(), array.dictionary.as_ref()) {
                (Some(schema), Some(values)) => Some(Box::new(Chunk::of(schema, values, 0, values.length as usize, batch)?)),
                _ => None,
            };
            Some(Chunk { kind, offset: array.offset as usize + before, length, buffers, dictionary, _batch: batch.clone() })
        }
    }

    /// The number at a place of a buffer.
    ///
    /// SAFETY: the buffer has such a place.
    unsafe fn number<T: Copy>(&self, buffer: usize, at: usize) -> T {
        // SAFETY: by the contract of this function.
        unsafe { self.buffers[buffer].cast::<T>().add(at).read_unaligned() }
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        assert!(row < self.length);
        let at = self.offset + row;
        let validity = self.buffers.first().copied().unwrap_or(std::ptr::null());
        // SAFETY: a place of the column, whose buffers are as the format says.
        unsafe {
            if self.kind == Kind::Null || !validity.is_null() && validity.add(at / 8).read() >> (at % 8) & 1 == 0 {
                return Cell::Missing;
            }
            let number = match self.kind {
                Kind::Null => return Cell::Missing,
                Kind::Bool => f64::from(self.number::<u8>(1, at / 8) >> (at % 8) & 1),
                Kind::I8 => f64::from(self.number::<i8>(1, at)),
                Kind::I16 => f64::from(self.number::<i16>(1, at)),
                Kind::I32 => f64::from(self.number::<i32>(1, at)),
                Kind::I64 => self.number::<i64>(1, at) as f64,
                Kind::U8 => f64::from(self.number::<u8>(1, at)),
                Kind::U16 => f64::from(self.number::<u16>(1, at)),
                Kind::U32 => f64::from(self.number::<u32>(1, at)),
                Kind::U64 => self.number::<u64>(1, at) as f64,
                Kind::F32 => f64::from(self.number::<f32>(1, at)),
                Kind::F64 => self.number::<f64>(1, at),
                Kind::Text32 => {
                    let (start, end) = (self.number::<i32>(1, at) as usize, self.number::<i32>(1, at + 1) as usize);
                    return self.text(2, start, end - start);
                }
                Kind::Text64 => {
                    let (start, end) = (self.number::<i64>(1, at) as usize, self.number::<i64>(1, at + 1) as usize);
                    return self.text(2, start, end - start);
                }
                Kind::View => {
                    // Sixteen bytes: the length, then the text itself, or where it is.
                    let length = self.number::<i32>(1, 4 * at) as usize;
                    if length <= 12 {
                        return self.text(1, 16 * at + 4, length);
                    }
                    let (buffer, start) =
                        (self.number::<i32>(1, 4 * at + 2) as usize, self.number::<i32>(1, 4 * at + 3) as usize);
                    return self.text(2 + buffer, start, length);
                }
            };
            match &self.dictionary {
                Some(values) if number >= 0.0 && (number as usize) < values.length => values.cell(number as usize),
                Some(_) => Cell::Missing,
                None if number.is_nan() => Cell::Missing,
                None => Cell::Number(number),
            }
        }
    }

    /// SAFETY: the buffer has these bytes.
    unsafe fn text(&self, buffer: usize, start: usize, length: usize) -> Cell<'_> {
        if length == 0 {
            return Cell::Text(b"");
        }
        // SAFETY: by the contract of this function; the batch outlives the borrow.
        Cell::Text(unsafe { std::slice::from_raw_parts(self.buffers[buffer].add(start), length) })
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
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<ArrowArrayStream>();
    let broken = || misuse("the Arrow stream can't be read: make the table again, or convert it to NumPy");
    // SAFETY: the capsule holds such a stream. It is moved out, and what is left is marked as released, as the interface wants.
    let mut stream = unsafe {
        let stream = pointer.as_ptr().read();
        (*pointer.as_ptr()).release = None;
        stream
    };
    let (Some(get_schema), Some(get_next), Some(_)) = (stream.get_schema, stream.get_next, stream.release) else {
        return Err(broken());
    };
    let mut schema = std::mem::MaybeUninit::<ArrowSchema>::zeroed();
    // SAFETY: the stream's own function fills in the schema if it returns 0; zeros are a schema that needs no release.
    let schema = unsafe {
        match get_schema(&mut stream, schema.as_mut_ptr()) {
            0 => schema.assume_init(),
            _ => return Err(broken()),
        }
    };
    let mut batches = Vec::new();
    loop {
        let mut array = std::mem::MaybeUninit::<ArrowArray>::zeroed();
        // SAFETY: as for the schema.
        let array = unsafe {
            match get_next(&mut stream, array.as_mut_ptr()) {
                0 => array.assume_init(),
                _ => return Err(broken()),
            }
        };
        if array.release.is_none() {
            break;
        }
        batches.push(Arc::new(Batch(array)));
    }
    // SAFETY: schema and batches are those of one stream.
    unsafe { columns(&schema, &batches) }.ok_or_else(broken)
}

/// SAFETY: the schema is that of the batches.
unsafe fn columns(schema: &ArrowSchema, batches: &[Arc<Batch>]) -> Option<Vec<(String, ArrowColumn)>> {
    // SAFETY: by the contract of this function, for all that follows.
    unsafe {
        if CStr::from_ptr(schema.format).to_bytes() != b"+s" {
            return None;
        }
        let mut ends = Vec::new();
        batches.iter().fold(0, |sum, b| {
            ends.push(sum + b.0.length as usize);
            sum + b.0.length as usize
        });
        let ends = Arc::new(ends);
        let mut out = Vec::new();
        for i in 0..schema.n_children as usize {
            let child = (*schema.children.add(i)).as_ref()?;
            let name = if child.name.is_null() { String::new() } else { CStr::from_ptr(child.name).to_str().ok()?.to_string() };
            let format = CStr::from_ptr(child.format).to_str().ok()?.to_string();
            let mut chunks = Some(Vec::with_capacity(batches.len()));
            for batch in batches {
                let array = (*batch.0.children.add(i)).as_ref()?;
                let chunk = Chunk::of(child, array, batch.0.offset as usize, batch.0.length as usize, batch);
                chunks = chunks.zip(chunk).map(|(mut list, chunk)| {
                    list.push(chunk);
                    list
                });
            }
            let text = !child.dictionary.is_null() || matches!(Kind::of(&format), Some(Kind::Text32 | Kind::Text64 | Kind::View));
            out.push((name, ArrowColumn { format, text, chunks, ends: ends.clone() }));
        }
        Some(out)
    }
}
