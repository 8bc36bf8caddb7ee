//! NumPy arrays, read where they lie by their array interface: any order of rows and columns, any stride, any real type.

use crate::error::misuse;
use crate::interrupt::poll;
use privfit::data::Cell;
use privfit::data::memory::{Column, Matrix, Pairs};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Types of numbers, in the byte order of this machine.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
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
}

impl Kind {
    fn of(descr: &str) -> Option<Kind> {
        let native = if cfg!(target_endian = "little") { '<' } else { '>' };
        let kind = descr.strip_prefix([native, '|', '='])?;
        Some(match kind {
            "b1" => Kind::Bool,
            "i1" => Kind::I8,
            "i2" => Kind::I16,
            "i4" => Kind::I32,
            "i8" => Kind::I64,
            "u1" => Kind::U8,
            "u2" => Kind::U16,
            "u4" => Kind::U32,
            "u8" => Kind::U64,
            "f4" => Kind::F32,
            "f8" => Kind::F64,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Kind::Bool | Kind::I8 | Kind::U8 => 1,
            Kind::I16 | Kind::U16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::I64 | Kind::U64 | Kind::F64 => 8,
        }
    }
}

/// Calls a macro with the Rust type of a kind.
macro_rules! typed {
    ($kind:expr, $with:ident) => {
        match $kind {
            Kind::Bool | Kind::U8 => $with!(u8),
            Kind::I8 => $with!(i8),
            Kind::I16 => $with!(i16),
            Kind::I32 => $with!(i32),
            Kind::I64 => $with!(i64),
            Kind::U16 => $with!(u16),
            Kind::U32 => $with!(u32),
            Kind::U64 => $with!(u64),
            Kind::F32 => $with!(f32),
            Kind::F64 => $with!(f64),
        }
    };
}

/// An array of one or two dimensions. It keeps the Python object, and with it the memory, alive.
pub(crate) struct Array {
    _owner: Py<PyAny>,
    data: *const u8,
    kind: Kind,
    rows: usize,
    width: usize,
    /// Bytes from one row, and from one column, to the next.
    steps: (isize, isize),
}

// SAFETY: the memory is only read, and it belongs to an object that is kept alive. A caller that writes to it meanwhile gets some mixture
// of old and new numbers, as with every reader of an array.
unsafe impl Send for Array {}
// SAFETY: the same.
unsafe impl Sync for Array {}

impl Array {
    /// Looks at an object with an array interface.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Array> {
        let interface = object.getattr("__array_interface__")?.cast_into::<PyDict>()?;
        let get = |key: &str| interface.get_item(key)?.ok_or_else(|| misuse("the array has an incomplete interface: copy it"));
        if interface.get_item("mask")?.is_some_and(|mask| !mask.is_none()) {
            return Err(misuse("the array has a mask, and what is masked would be read all the same: fill it first"));
        }
        let descr: String = get("typestr")?.extract()?;
        let Some(kind) = Kind::of(&descr) else {
            return Err(misuse(format!("numbers of type {descr:?} are not read: convert them with .astype(float)")));
        };
        let (address, _): (usize, bool) = get("data")?.extract()?;
        let shape: Vec<usize> = get("shape")?.extract()?;
        let strides: Option<Vec<isize>> = match interface.get_item("strides")? {
            Some(strides) => strides.extract()?,
            None => None,
        };
        let (rows, width) = match shape[..] {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => return Err(misuse(format!("an array has {} dimensions: give rows and columns", shape.len()))),
        };
        let size = kind.size() as isize;
        let steps = match strides.as_deref() {
            None => (size * width as isize, size),
            Some([row]) => (*row, size),
            Some([row, column]) => (*row, *column),
            Some(_) => return Err(misuse("the array has an unknown layout: copy it")),
        };
        Ok(Array { _owner: object.clone().unbind(), data: address as *const u8, kind, rows, width, steps })
    }

    /// Numbers in all.
    pub(crate) fn len(&self) -> usize {
        self.rows * self.width
    }

    /// One number.
    fn at(&self, row: usize, column: usize) -> f64 {
        assert!(row < self.rows && column < self.width);
        macro_rules! read {
            ($type:ty) => {
                // SAFETY: the place is inside of the array by the assertion.
                unsafe { self.place(row, column).cast::<$type>().read_unaligned() as f64 }
            };
        }
        let x = typed!(self.kind, read);
        if self.kind == Kind::Bool { f64::from(u8::from(x != 0.0)) } else { x }
    }

    fn place(&self, row: usize, column: usize) -> *const u8 {
        self.data.wrapping_offset(row as isize * self.steps.0 + column as isize * self.steps.1)
    }

    /// A whole number, for indices.
    pub(crate) fn integer(&self, row: usize) -> i64 {
        assert!(row < self.rows);
        macro_rules! read {
            ($type:ty) => {
                // SAFETY: the place is inside of the array by the assertion.
                unsafe { self.place(row, 0).cast::<$type>().read_unaligned() as i64 }
            };
        }
        typed!(self.kind, read)
    }

    /// The numbers of an array of one column, if they are of that kind and follow each other.
    fn slice<T>(&self, kind: Kind) -> Option<&[T]> {
        let fits = self.kind == kind && kind.size() == size_of::<T>() && self.width == 1;
        let follow = self.steps.0 == size_of::<T>() as isize && self.data.cast::<T>().is_aligned() && self.rows > 0;
        // SAFETY: so many numbers of this type, one after the other and aligned, in memory that `_owner` keeps alive.
        (fits && follow).then(|| unsafe { std::slice::from_raw_parts(self.data.cast::<T>(), self.rows) })
    }

    /// Writes numbers into the first places of an array of f64 whose rows follow each other.
    pub(crate) fn fill(&self, numbers: &[f64]) -> PyResult<()> {
        let size = size_of::<f64>() as isize;
        let whole = self.steps.1 == size && self.steps.0 == size * self.width as isize;
        if self.kind != Kind::F64 || numbers.len() != self.len() || !(whole || self.len() == 0) {
            return Err(misuse("there is no room for the answer: give an array of float64 in C order"));
        }
        // SAFETY: as many numbers of this type as the array has, one after the other; the caller made it for this answer.
        unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), self.data.cast_mut().cast::<f64>(), numbers.len()) };
        Ok(())
    }
}

impl Matrix for Array {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.width
    }

    fn copy(&self, start: usize, out: &mut [f64]) {
        poll();
        let (width, rows) = (self.width, out.len() / self.width.max(1));
        assert!(start + rows <= self.rows && rows * width == out.len());
        let size = size_of::<f64>() as isize;
        if self.kind == Kind::F64 && self.steps == (size * width as isize, size) {
            // SAFETY: the rows are inside of the array by the assertion and lie one after the other, to the byte.
            unsafe {
                let place = self.place(start, 0);
                std::ptr::copy_nonoverlapping(place, out.as_mut_ptr().cast::<u8>(), size_of_val(out));
            }
            return;
        }
        // Memory is walked in its own order: that of columns, if it is theirs.
        let by_column = self.steps.0.abs() < self.steps.1.abs();
        macro_rules! read {
            ($type:ty) => {{
                let one = |row: usize, column: usize| {
                    // SAFETY: row and column are inside of the array by the assertion.
                    unsafe { self.place(start + row, column).cast::<$type>().read_unaligned() as f64 }
                };
                if by_column {
                    for column in 0..width {
                        for row in 0..rows {
                            out[row * width + column] = one(row, column);
                        }
                    }
                } else {
                    for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
                        for (column, out) in out.iter_mut().enumerate() {
                            *out = one(row, column);
                        }
                    }
                }
            }};
        }
        typed!(self.kind, read);
        if self.kind == Kind::Bool {
            out.iter_mut().for_each(|x| *x = f64::from(u8::from(*x != 0.0)));
        }
    }
}

impl Column for Array {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        let x = self.at(row, 0);
        if x.is_nan() { Cell::Missing } else { Cell::Number(x) }
    }
}

/// Compressed rows, as SciPy has them.
pub(crate) struct Csr {
    pub(crate) values: Array,
    pub(crate) indices: Array,
    pub(crate) starts: Array,
    pub(crate) width: usize,
}

impl Pairs for Csr {
    fn rows(&self) -> usize {
        self.starts.rows.saturating_sub(1)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn copy(&self, row: usize, out: &mut Vec<(u32, f64)>) {
        if row.is_multiple_of(256) {
            poll();
        }
        // What is out of range is left out, never read.
        let most = self.values.rows.min(self.indices.rows);
        let place = |row: usize| usize::try_from(self.starts.integer(row)).unwrap_or(0).min(most);
        let cells = place(row)..place(row + 1);
        // As SciPy makes them: no question of type and place for every cell.
        if let (Some(values), Some(indices)) = (self.values.slice::<f64>(Kind::F64), self.indices.slice::<i32>(Kind::I32)) {
            let (Some(values), Some(indices)) = (values.get(cells.clone()), indices.get(cells)) else { return };
            let inside = |i: i32| (0..self.width as i64).contains(&i64::from(i));
            if indices.iter().fold(true, |all, i| all & inside(*i)) {
                return out.extend(indices.iter().zip(values).map(|(i, x)| (*i as u32, *x)));
            }
            return out.extend(indices.iter().zip(values).filter(|p| inside(*p.0)).map(|(i, x)| (*i as u32, *x)));
        }
        for at in cells {
            let index = self.indices.integer(at);
            if (0..self.width as i64).contains(&index) {
                out.push((index as u32, self.values.at(at, 0)));
            }
        }
    }
}
