//! Nor may there be a cell in it.
use privfit_kernel::Result;
use privfit_kernel::{Candidates, Run};
use std::cell::RefCell;

struct Thief {
    stolen: RefCell<Vec<f64>>,
}

impl Candidates for Thief {
    fn train(&self, _: usize, _: &mut Run<'_>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }

    fn score(&self, _: usize, value: &[f64], _: &mut Run<'_>) -> Result<f64> {
        self.stolen.borrow_mut().extend(value);
        Ok(0.0)
    }
}

fn main() {}
