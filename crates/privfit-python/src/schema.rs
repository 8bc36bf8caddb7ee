//! Public facts.

use crate::error::raised;
use privfit::schema::Task;
use privfit::schema::{Feature, Features, TargetValues, UnitOfPrivacy};
use pyo3::prelude::*;

/// A schema that was read and checked.
#[pyclass(module = "privfit._privfit", frozen)]
pub(crate) struct Schema(pub(crate) privfit::Schema);

#[pymethods]
impl Schema {
    /// Reads the text of a schema.
    #[new]
    fn new(text: &str) -> PyResult<Schema> {
        privfit::Schema::parse(text).map(Schema).map_err(raised)
    }

    /// Name of the data set.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Names of the classes; empty for numbers.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.class_names()
    }

    /// Bounds of the target, if it is a number.
    #[getter]
    fn target_bounds(&self) -> Option<(f64, f64)> {
        match self.0.target.values {
            TargetValues::Bounds(low, high) => Some((low, high)),
            _ => None,
        }
    }

    /// Column of the target, if it has one.
    #[getter]
    fn target(&self) -> Option<&str> {
        self.0.target.column.as_deref()
    }

    /// `classes`, `number` or `location`.
    #[getter]
    fn task(&self) -> &'static str {
        match self.0.task() {
            Task::Classes(_) => "classes",
            Task::Number => "number",
            Task::Location => "location",
        }
    }

    /// Whose privacy is protected.
    #[getter]
    fn unit(&self) -> String {
        match &self.0.unit {
            UnitOfPrivacy::Row => "row".into(),
            UnitOfPrivacy::Column { column, .. } => format!("column {column}"),
        }
    }

    /// Columns that are used, or none if rows have no names.
    #[getter]
    fn columns(&self) -> Option<Vec<String>> {
        match &self.0.features {
            Features::Table(columns) => Some(columns.iter().filter(|c| c.1 != Feature::Ignore).map(|c| c.0.clone()).collect()),
            _ => None,
        }
    }

    /// Height, width and channels of images, as far as they are stated; none for other rows.
    #[getter]
    fn image_shape(&self) -> Option<Vec<usize>> {
        match &self.0.features {
            Features::Image { shape, .. } => Some(shape.clone()),
            _ => None,
        }
    }

    /// Names of the encoded features, without the constant.
    #[getter]
    fn encoded(&self) -> Vec<String> {
        let mut names = self.0.feature_names();
        names.truncate(names.len() - usize::from(self.0.intercept));
        names
    }
}
