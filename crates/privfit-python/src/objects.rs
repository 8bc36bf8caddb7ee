//! Columns of Python objects and of codes: texts and numbers in any mixture. Whatever is neither is missing, and nobody is told.

use crate::array::Array;
use privfit::data::Cell;
use privfit::data::memory::Column;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::HashMap;

/// A value that is kept.
#[derive(Clone, PartialEq)]
pub(crate) enum Value {
    Missing,
    Number(f64),
    Text(Vec<u8>),
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Value::Missing => Cell::Missing,
            Value::Number(x) => Cell::Number(*x),
            Value::Text(text) => Cell::Text(text),
        }
    }

    fn of(object: &Bound<'_, PyAny>) -> Value {
        if let Ok(text) = object.cast::<PyString>() {
            return text.to_str().map_or(Value::Missing, |t| Value::Text(t.as_bytes().to_vec()));
        }
        match object.extract::<f64>() {
            Ok(x) if !x.is_nan() => Value::Number(x),
            _ => Value::Missing,
        }
    }
}

/// Python objects, each distinct text once.
pub(crate) struct Objects {
    codes: Vec<u32>,
    values: Vec<Value>,
}

impl Objects {
    /// Reads a sequence of objects.
    pub(crate) fn of(sequence: &Bound<'_, PyAny>) -> PyResult<Objects> {
        let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut out = Objects { codes: Vec::with_capacity(sequence.len().unwrap_or(0)), values: vec![Value::Missing] };
        for object in sequence.try_iter()? {
            let value = Value::of(&object?);
            let next = out.values.len() as u32;
            let code = match &value {
                Value::Missing => 0,
                Value::Text(text) => match known.get(text) {
                    Some(code) => *code,
                    None => *known.entry(text.clone()).or_insert(next),
                },
                Value::Number(x) => *numbers.entry(x.to_bits()).or_insert(next),
            };
            if code == next {
                out.values.push(value);
            }
            out.codes.push(code);
        }
        Ok(out)
    }
}

impl Column for Objects {
    fn rows(&self) -> usize {
        self.codes.len()
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        self.values[self.codes[row] as usize].cell()
    }
}

/// Codes of a list of values, as categorical columns have them; a code that is not one of the list is missing.
pub(crate) struct Codes {
    codes: Array,
    values: Vec<Value>,
}

impl Codes {
    pub(crate) fn of(codes: Array, values: &Bound<'_, PyAny>) -> PyResult<Codes> {
        let values = values.try_iter()?.map(|v| v.map(|v| Value::of(&v))).collect::<PyResult<_>>()?;
        Ok(Codes { codes, values })
    }
}

impl Column for Codes {
    fn rows(&self) -> usize {
        Column::rows(&self.codes)
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        let code = usize::try_from(self.codes.integer(row)).ok();
        code.and_then(|code| self.values.get(code)).map_or(Cell::Missing, Value::cell)
    }
}
