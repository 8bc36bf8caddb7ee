//! The extension module behind the Python package `privfit`: conversions and calls. What is decided is decided in the library.

mod account;
mod array;
mod arrow;
mod audit;
mod data;
mod error;
mod fit;
mod interrupt;
mod ledger;
mod model;
mod objects;
mod schema;

use pyo3::prelude::*;

#[pymodule]
fn _privfit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<data::Data>()?;
    module.add_class::<data::Labels>()?;
    module.add_class::<schema::Schema>()?;
    module.add_class::<model::Model>()?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit::plan, module)?)?;
    module.add_function(wrap_pyfunction!(fit::methods, module)?)?;
    module.add_function(wrap_pyfunction!(account::answer, module)?)?;
    module.add_function(wrap_pyfunction!(audit::audit, module)?)?;
    module.add_function(wrap_pyfunction!(ledger::ledger_create, module)?)?;
    module.add_function(wrap_pyfunction!(ledger::ledger_show, module)?)?;
    module.add_function(wrap_pyfunction!(ledger::ledger_verify, module)?)?;
    module.add_function(wrap_pyfunction!(ledger::ledger_export, module)?)?;
    Ok(())
}
