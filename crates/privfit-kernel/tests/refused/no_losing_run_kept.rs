//! What losing runs of a selection release is not paid for: who trains and scores them has no place to put it.
use privfit_kernel::Result;
use privfit_kernel::{Candidates, Run};

struct Thief {
    stolen: Vec<f64>,
}

impl Candidates for Thief {
    fn train(&self, _: usize, _: &mut Run<'_>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }

    fn score(&self, _: usize, value: &[f64], _: &mut Run<'_>) -> Result<f64> {
        self.stolen.extend(value);
        Ok(0.0)
    }
}

fn main() {}
