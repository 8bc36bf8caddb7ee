//! Rows and labels of Python as records of the library.

use crate::array::{Array, Csr};
use crate::arrow::{self, ArrowColumn};
use crate::error::misuse;
use crate::objects::{Codes, Objects};
use privfit::data::Cell;
use privfit::data::memory::{Column, Matrix, Memory, Pairs, Rows};
use privfit::schema::{Feature, Features};
use privfit::{Error, Schema};
use pyo3::prelude::*;

type AnyColumn = Box<dyn Column + Send + Sync>;

/// Columns with their names.
struct Frame {
    names: Vec<String>,
    columns: Vec<Cells>,
}

enum Cells {
    Arrow(ArrowColumn),
    Other { cells: AnyColumn, text: bool },
}

impl Cells {
    fn column(&self) -> &dyn Column {
        match self {
            Cells::Arrow(column) => column,
            Cells::Other { cells, .. } => cells.as_ref(),
        }
    }

    fn is_text(&self) -> bool {
        match self {
            Cells::Arrow(column) => column.text,
            Cells::Other { text, .. } => *text,
        }
    }
}

/// A table whose columns are numbers, as rows of numbers.
impl Matrix for Frame {
    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.column().rows())
    }

    fn width(&self) -> usize {
        self.columns.len()
    }

    fn copy(&self, start: usize, out: &mut [f64]) {
        let width = self.columns.len();
        for (at, column) in self.columns.iter().enumerate() {
            for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
                out[at] = match column.column().cell(start + row) {
                    Cell::Number(x) => x,
                    Cell::Text(text) => std::str::from_utf8(text).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(f64::NAN),
                    Cell::Missing => f64::NAN,
                };
            }
        }
    }
}

enum Layout {
    Dense(Array),
    Sparse(Csr),
    Table(Frame),
}

/// Rows, read where they lie.
#[pyclass(module = "privfit._privfit", frozen)]
pub(crate) struct Data(Layout);

#[pymethods]
impl Data {
    /// Rows of numbers: a NumPy array of two dimensions.
    #[staticmethod]
    fn dense(array: &Bound<'_, PyAny>) -> PyResult<Data> {
        Ok(Data(Layout::Dense(Array::of(array)?)))
    }

    /// Compressed rows: values, indices and starts as NumPy arrays.
    #[staticmethod]
    fn sparse(values: &Bound<'_, PyAny>, indices: &Bound<'_, PyAny>, starts: &Bound<'_, PyAny>, width: usize) -> PyResult<Data> {
        let (values, indices, starts) = (Array::of(values)?, Array::of(indices)?, Array::of(starts)?);
        Ok(Data(Layout::Sparse(Csr { values, indices, starts, width })))
    }

    /// Named columns: each a NumPy array of numbers, a sequence of objects, or codes with their values.
    #[staticmethod]
    fn table(names: Vec<String>, columns: Vec<Bound<'_, PyAny>>) -> PyResult<Data> {
        let columns = columns.iter().map(column).collect::<PyResult<Vec<_>>>()?;
        let frame = Frame { names, columns };
        let rows = frame.rows();
        if frame.names.len() != frame.columns.len() || frame.columns.iter().any(|c| c.column().rows() != rows) {
            return Err(misuse("the columns have different lengths: give a table"));
        }
        Ok(Data(Layout::Table(frame)))
    }

    /// Whatever has `__arrow_c_stream__`.
    #[staticmethod]
    fn arrow(object: &Bound<'_, PyAny>) -> PyResult<Data> {
        let (names, columns) = arrow::read(object)?.into_iter().map(|(n, c)| (n, Cells::Arrow(c))).unzip();
        Ok(Data(Layout::Table(Frame { names, columns })))
    }

    /// The same columns under other names.
    fn renamed(slf: Bound<'_, Self>, names: Vec<String>) -> PyResult<Renamed> {
        match &slf.get().0 {
            Layout::Table(frame) if frame.columns.len() == names.len() => Ok(Renamed { names, data: slf.unbind() }),
            _ => Err(misuse("there are other columns than names: give rows that belong to the model")),
        }
    }

    /// Number of rows and of columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        match &self.0 {
            Layout::Dense(array) => (Matrix::rows(array), array.width()),
            Layout::Sparse(csr) => (Pairs::rows(csr), csr.width),
            Layout::Table(frame) => (frame.rows(), frame.width()),
        }
    }

    /// Names of the columns, and whether they hold text; none for rows of numbers.
    #[getter]
    fn columns(&self) -> Option<Vec<(String, bool)>> {
        match &self.0 {
            Layout::Table(frame) => Some(frame.names.iter().cloned().zip(frame.columns.iter().map(Cells::is_text)).collect()),
            _ => None,
        }
    }
}

/// A table under other names.
#[pyclass(module = "privfit._privfit", frozen)]
pub(crate) struct Renamed {
    names: Vec<String>,
    data: Py<Data>,
}

/// Rows as they are given to a call.
#[derive(FromPyObject)]
pub(crate) enum Input<'py> {
    Data(Bound<'py, Data>),
    Renamed(Bound<'py, Renamed>),
}

impl Input<'_> {
    /// The records, for a schema.
    pub(crate) fn memory<'a>(&'a self, schema: &Schema, labels: Option<&'a dyn Column>) -> privfit::Result<Memory<'a>> {
        let (layout, names) = match self {
            Input::Data(data) => (&data.get().0, None),
            Input::Renamed(renamed) => (&renamed.get().data.get().0, Some(&renamed.get().names)),
        };
        let rows = match (layout, &schema.features) {
            (Layout::Dense(array), _) => Rows::Dense(array),
            (Layout::Sparse(csr), _) => Rows::Sparse(csr),
            (Layout::Table(frame), Features::Table(list)) => {
                let names = names.unwrap_or(&frame.names);
                let used = |name: &String| list.iter().any(|c| c.0 == *name && c.1 != Feature::Ignore);
                for (name, cells) in names.iter().zip(&frame.columns) {
                    if let Cells::Arrow(column) = cells
                        && !column.known()
                        && used(name)
                    {
                        return Err(Error::misuse(format!(
                            "column {name:?} has the Arrow type {:?}, which is not read: cast it to numbers or text",
                            column.format
                        )));
                    }
                }
                Rows::Table(names.iter().cloned().zip(frame.columns.iter().map(Cells::column)).collect())
            }
            (Layout::Table(frame), _) => Rows::Dense(frame),
        };
        Ok(Memory { rows, labels })
    }
}

/// A column: numbers, or a pair of codes and values, or objects.
fn column(object: &Bound<'_, PyAny>) -> PyResult<Cells> {
    if let Ok((codes, values)) = object.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        return Ok(Cells::Other { cells: Box::new(Codes::of(Array::of(&codes)?, &values)?), text: true });
    }
    Ok(match Array::of(object) {
        Ok(array) => Cells::Other { cells: Box::new(array), text: false },
        Err(_) => Cells::Other { cells: Box::new(Objects::of(object)?), text: true },
    })
}

/// A label for each row.
#[pyclass(module = "privfit._privfit", frozen)]
pub(crate) struct Labels(Cells);

#[pymethods]
impl Labels {
    /// Labels from a NumPy array of numbers, or from a sequence of objects.
    #[new]
    fn new(labels: &Bound<'_, PyAny>) -> PyResult<Labels> {
        Ok(Labels(column(labels)?))
    }

    fn __len__(&self) -> usize {
        self.0.column().rows()
    }
}

impl Labels {
    pub(crate) fn column(&self) -> &dyn Column {
        self.0.column()
    }
}
