//! The extension module behind the Python package `privfit`: conversions and calls. What is decided is decided in the library.

mod account;
mod array;
mod arrow;
mod audit;
mod bounds;
mod data;
mod error;
mod file;
mod fit;
mod interrupt;
mod label;
mod ledger;
mod measure;
mod model;
mod objects;
mod report;
mod schema;
mod settings;
mod tune;

use pyo3::prelude::*;

#[pymodule]
fn _privfit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<data::Data>()?;
    module.add_class::<data::Labels>()?;
    module.add_class::<schema::Schema>()?;
    module.add_class::<model::Model>()?;
    module.add_function(wrap_pyfunction!(file::read_file, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit::plan, module)?)?;
    module.add_function(wrap_pyfunction!(fit::methods, module)?)?;
    module.add_function(wrap_pyfunction!(label::label, module)?)?;
    module.add_function(wrap_pyfunction!(tune::tune, module)?)?;
    module.add_function(wrap_pyfunction!(tune::tune_public, module)?)?;
    module.add_function(wrap_pyfunction!(tune::tune_plan, module)?)?;
    module.add_function(wrap_pyfunction!(measure::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(measure::measure, module)?)?;
    module.add_function(wrap_pyfunction!(bounds::buy_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(report::report_model, module)?)?;
    module.add_function(wrap_pyfunction!(report::report_ledger, module)?)?;
    module.add_function(wrap_pyfunction!(report::report_write, module)?)?;
    module.add_function(wrap_pyfunction!(account::answer, module)?)?;
    module.add_function(wrap_pyfunction!(audit::audit, module)?)?;
    module.add_function(wrap_pyfunction!(ledger::ledger_create, module)?)?;
    module.add_function(wrap_pyfunction!(ledger::ledger_show, module)?)?;
    module.add_function(wrap_pyfunction!(ledger::ledger_verify, module)?)?;
    module.add_function(wrap_pyfunction!(ledger::ledger_export, module)?)?;
    Ok(())
}
