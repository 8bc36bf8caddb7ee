//! The default method, from public facts alone.

use super::Problem;
use crate::loss::Task;

/// Features up to which second moments are worth releasing.
pub(crate) const MOMENTS: usize = 300;

/// Rows over the length of the noise on a gradient sum below which many noisy steps beat one exact minimisation: they learn the strong
/// directions first, where a ridge shrinks all alike.
const FAINT: f64 = 80.0;

/// Whether the noise of the whole budget is long against the rows.
fn faint(problem: &Problem) -> bool {
    let (Ok(noise), Ok(loss)) = (problem.single_noise(), problem.build_loss(1)) else { return false };
    let length = noise * loss.lipschitz * (problem.features as f64).sqrt();
    problem.rows as f64 / length < FAINT
}

/// The name of the method.
pub fn choose(problem: &Problem) -> &'static str {
    let pure = problem.target.delta == 0.0;
    let smooth = problem.loss.name != "hinge";
    let grouped = problem.rows_per_unit > 1;
    if problem.settings.0.contains_key("sparsity") {
        return sparse(problem, smooth && !grouped && problem.rows_known && !problem.loss.many);
    }
    match problem.task {
        Task::Location if problem.loss.name == "mean" => "statistics",
        Task::Location => "noisy-gd",
        _ if pure => "output",
        Task::Number if problem.loss.name == "squared" && problem.features <= MOMENTS => "statistics",
        Task::Classes(2) if smooth && !grouped && problem.rows_known && !faint(problem) => "objective",
        Task::Number if smooth && !grouped && problem.rows_known => "objective",
        _ => "noisy-gd",
    }
}

/// With a declared number of columns that matter. Choosing k columns by scores costs sqrt(k) times the bound on a cell, noise on all
/// columns costs the length of a row.
fn sparse(problem: &Problem, minimisable: bool) -> &'static str {
    let count = super::support::sparsity(problem).unwrap_or(1) as f64;
    let cells = count.sqrt() * problem.largest_cell() < 1.0;
    match problem.task {
        // It has one score to a class; several at once take the other one.
        _ if cells && !problem.loss.many => "noisy-thresholding",
        Task::Classes(2) if minimisable => "weighted-columns",
        _ => "hard-thresholding",
    }
}

/// Why, in a few words.
pub fn reason(problem: &Problem) -> &'static str {
    match choose(problem) {
        "statistics" if problem.task == Task::Location => "a mean is one noisy sum",
        _ if problem.task == Task::Location => "a geometric median is found by gradients, each of length at most 1",
        "noisy-thresholding" => "few columns matter, and the bound on a cell is small against a row",
        "weighted-columns" => "few columns matter, and rows have few large cells, such as words",
        "hard-thresholding" => "few columns matter, and rows have few large cells",
        "output" => "delta is 0, and it is the method with pure privacy",
        "statistics" => "a number is predicted from few features, whose second moments say most about it",
        "objective" => "one score and a smooth loss: the whole budget goes into one exact minimisation",
        _ if problem.rows_per_unit > 1 => "a unit has several rows, which are clipped together",
        _ if !problem.rows_known => "the true number of rows is private or not counted, and gradients do not need it",
        _ if problem.loss.name == "hinge" => "the loss has a corner, so it takes gradients",
        _ if problem.task == Task::Classes(2) => "with this much noise steps that learn the strong directions first do better",
        _ => "several classes at once: descent averages the noise of many scores",
    }
}
