//! Hard thresholding on one part of the data, as a teacher: the model stays inside of the kernel, which lets votes or averages out.

use super::Problem;
use crate::error::Result;
use crate::loss::{self, Heads};
use crate::schema::Task;
use crate::solve::iterative_hard_thresholding::{Rows, Thresholding, iterative_hard_thresholding};
use privfit_kernel::{Learner, NoiseRng, SparseModel, Unit};

/// Steps at the most on one part.
const STEPS: usize = 60;

/// A teacher for the problem: that many weights, the constant besides, a ridge of the average loss.
pub(super) fn learner(problem: &Problem, sparsity: usize, ridge: f64) -> Result<Learner<SparseModel>> {
    let number = loss::ALL.iter().position(|l| l.name == problem.loss.name).unwrap_or(0);
    let always = problem.constant().map_or(-1.0, |c| c as f64);
    let classes = problem.task.classes();
    let mut parameters = vec![number as f64, classes as f64, sparsity as f64, always, ridge];
    parameters.push(problem.weights.len() as f64);
    parameters.extend(&problem.weights);
    parameters.extend(problem.loss_numbers()?);
    Ok(Learner { name: "hard thresholding", parameters, train })
}

fn train(p: &[f64], units: &mut dyn Iterator<Item = Unit<'_>>, _: &mut NoiseRng) -> SparseModel {
    let weights = &p[6..6 + p[5] as usize];
    let classes = p[1] as usize;
    let positive = usize::from(classes > 0);
    let heads = Heads { classes, positive, weights };
    let Some(loss) = loss::build(&loss::ALL[p[0] as usize], &p[6 + weights.len()..], heads) else {
        return Vec::new();
    };
    let mut rows = Rows::new();
    let mut cells = Vec::new();
    for unit in units {
        for row in 0..unit.rows() {
            cells.clear();
            unit.each(row, |i, x| cells.push((i, x)));
            rows.push(cells.iter().copied(), unit.label(row));
        }
    }
    let always = (p[3] >= 0.0).then_some(p[3] as usize);
    iterative_hard_thresholding(rows, &loss, &Thresholding { sparsity: p[2] as usize, always, ridge: p[4], steps: STEPS })
}

/// Parts that leave each enough records to learn from, and a vote enough weight.
pub(super) fn usual_parts(problem: &Problem) -> u64 {
    ((problem.rows.max(1) as f64).sqrt().round() as u64).max(2)
}

/// Length of the weights that is expected of a sparse model: predictions about as large as targets, or margins of a few units, from
/// cells that are a good part of their largest size.
pub(super) fn usual_radius(problem: &Problem) -> f64 {
    let predicted = if problem.task == Task::Number { 1.0 } else { 4.0 };
    predicted / problem.largest_cell().max(0.05)
}
