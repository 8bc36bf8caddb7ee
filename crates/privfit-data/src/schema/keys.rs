//! Tables of a schema file, read key by key: what is wrong, and what nobody asked for, is named with what to write in its place.

use super::UnitOfPrivacy;
use crate::error::{Error, Result};
use toml::{Table, Value};

/// A table whose keys are taken one by one; what is left is unknown.
pub(super) struct Keys {
    place: String,
    pub(super) table: Table,
}

impl Keys {
    pub(super) fn new(place: &str, table: Table) -> Keys {
        Keys { place: place.into(), table }
    }

    pub(super) fn wrong<T>(&self, key: &str, fix: &str) -> Result<T> {
        Err(Error::misuse(match self.place.is_empty() {
            true => format!("[{key}]: {fix}"),
            false => format!("[{}] {key}: {fix}", self.place),
        }))
    }

    pub(super) fn table(&mut self, key: &str) -> Result<Keys> {
        match self.table.remove(key) {
            Some(Value::Table(t)) => Ok(Keys::new(key, t)),
            Some(_) => self.wrong(key, "give a table"),
            None => Err(Error::misuse(format!("the schema has no [{key}] table: add one (`privfit schema` has an example)"))),
        }
    }

    pub(super) fn table_or_empty(&mut self, key: &str) -> Result<Keys> {
        if self.table.contains_key(key) { self.table(key) } else { Ok(Keys::new(key, Table::new())) }
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(_) => self.wrong(key, "give text in quotes"),
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Boolean(b)) => Ok(Some(b)),
            Some(_) => self.wrong(key, "give true or false"),
        }
    }

    pub(super) fn number(&mut self, key: &str) -> Result<Option<f64>> {
        let value = match self.table.remove(key) {
            None => return Ok(None),
            Some(Value::Integer(i)) => i as f64,
            Some(Value::Float(f)) => f,
            Some(_) => return self.wrong(key, "give a number"),
        };
        if !value.is_finite() {
            return self.wrong(key, "give a finite number");
        }
        Ok(Some(value))
    }

    pub(super) fn integer(&mut self, key: &str) -> Result<Option<u64>> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Integer(i)) if i > 0 => Ok(Some(i as u64)),
            Some(_) => self.wrong(key, "give a whole number of at least 1"),
        }
    }

    pub(super) fn need<T>(&self, key: &str, value: Option<T>, fix: &str) -> Result<T> {
        let Some(value) = value else {
            // Missing because it is misspelt, perhaps.
            return match crate::nearest::nearest(key, self.table.keys().map(String::as_str)) {
                Some(typed) => self.wrong(typed, &format!("unknown key: did you mean {key:?}? {fix}")),
                None => self.wrong(key, fix),
            };
        };
        Ok(value)
    }

    /// Texts; numbers are taken as they are written.
    pub(super) fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>> {
        let list = match self.table.remove(key) {
            None => return Ok(None),
            Some(Value::Array(list)) => list,
            Some(_) => return self.wrong(key, "give a list, like [\"a\", \"b\"]"),
        };
        let mut out = Vec::with_capacity(list.len());
        for value in list {
            out.push(match value {
                Value::String(s) => s,
                Value::Integer(i) => i.to_string(),
                Value::Float(f) => f.to_string(),
                Value::Boolean(b) => b.to_string(),
                _ => return self.wrong(key, "give a list of texts"),
            });
        }
        let mut sorted = out.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != out.len() {
            return self.wrong(key, "a value is listed twice: remove one of them");
        }
        Ok(Some(out))
    }

    pub(super) fn numbers(&mut self, key: &str) -> Result<Option<Vec<f64>>> {
        let list = match self.table.remove(key) {
            None => return Ok(None),
            Some(Value::Array(list)) => list,
            Some(_) => return self.wrong(key, "give a list of numbers"),
        };
        let number = |v: &Value| v.as_float().or(v.as_integer().map(|i| i as f64)).filter(|x| x.is_finite());
        match list.iter().map(number).collect() {
            Some(out) => Ok(Some(out)),
            None => self.wrong(key, "give a list of finite numbers"),
        }
    }

    pub(super) fn unit(&mut self) -> Result<UnitOfPrivacy> {
        match self.table.remove("unit") {
            None => Ok(UnitOfPrivacy::Row),
            Some(Value::String(s)) if s == "row" => Ok(UnitOfPrivacy::Row),
            Some(Value::Table(t)) => {
                let mut keys = Keys::new("dataset.unit", t);
                let column = keys.text("column")?;
                let column = keys.need("column", column, "give the name of the column with the identity")?;
                let max_rows = keys.integer("max_rows")?;
                let max_rows = keys.need("max_rows", max_rows, "give the most rows of one unit that count")? as usize;
                if max_rows > 1_000_000 {
                    return keys.wrong("max_rows", "give at most 1000000");
                }
                keys.finish("column, max_rows")?;
                Ok(UnitOfPrivacy::Column { column, max_rows })
            }
            Some(_) => self.wrong("unit", "give \"row\" or { column = \"NAME\", max_rows = K }"),
        }
    }

    pub(super) fn finish(self, allowed: &str) -> Result<()> {
        match self.table.keys().next() {
            None => Ok(()),
            Some(key) => {
                let hint = crate::nearest::hint(key, allowed.split(", "));
                Err(Error::misuse(match self.place.is_empty() {
                    true => format!("unknown table [{key}]: {hint}known are {allowed}"),
                    false => format!("[{}] unknown key {key:?}: {hint}known are {allowed}", self.place),
                }))
            }
        }
    }
}
