//! The default method, from public facts alone.

use super::{
    Method, Problem, additive, additive_or_network, hard_thresholding, network, noisy_gd, noisy_thresholding, objective, output,
    statistics, weighted_columns,
};
use crate::constraint::Constraint;
use crate::schema::{Features, Task};
use privfit_kernel::account::Adjacency;

/// Names that stand for a choice by public facts: among all methods, and among those of linear models.
pub const NAMES: [&str; 2] = ["auto", "linear"];

/// Rows times mu from which curves of a number are better than straight lines, which have less to learn: on generated tables (`bench/shapes.py`). Of classes they are for any
/// number of rows.
const CURVES_FROM: f64 = 200.0;

/// Why an additive model, for a problem with the loss that goes with it; none where a linear one is expected to do better, or more is asked for than
/// an additive one has.
pub fn additive(problem: &Problem) -> Option<&'static str> {
    let table = matches!(problem.schema.features, Features::Table(_)) && problem.task != Task::Location;
    let known = |name: &String| additive::METHOD.has(name);
    if !table || problem.constraint != Constraint::None || !problem.settings.0.keys().all(known) || problem.target.delta == 0.0 {
        return None;
    }
    let signal = problem.rows as f64 / problem.single_noise().ok()?;
    let least = if problem.task == Task::Number { CURVES_FROM } else { 0.0 };
    (signal >= least).then_some("curves of a table's columns say more than straight lines, and there are enough rows for them")
}

/// Rows times mu from which a network of a table may beat curves and pairs, for more than two classes; and for each column, because noise is on the weights of all of them: on generated tables of 300 columns a network
/// has six points fewer right, and half of that was lost by an additive model that had a part of the budget only.
const LAYERS_FROM: f64 = 25_000.0;
const LAYERS_FROM_COLUMN: f64 = 500.0;

/// Whether a problem is one for networks, given a method that trains one.
fn for_layers(problem: &Problem, method: &Method) -> bool {
    problem.constraint == Constraint::None
        && problem.settings.0.keys().all(|name| method.has(name))
        && problem.target.delta > 0.0
        && problem.adjacency != Adjacency::AddRemove
        && problem.rows_per_unit == 1
        && problem.weights.is_empty()
        && matches!(problem.task, Task::Classes(_))
}

/// Why a network, where it is the default: for classes of pictures with scattering features.
pub fn network(problem: &Problem) -> Option<&'static str> {
    (for_layers(problem, &network::METHOD) && problem.schema.scatters())
        .then_some("scores of scattering features need few steps, so that little noise meets them")
}

/// Why an additive model and a network, of which the better one is released: for more than two classes of large tables.
pub fn additive_or_network(problem: &Problem) -> Option<&'static str> {
    let table = matches!(problem.schema.features, Features::Table(_)) && matches!(problem.task, Task::Classes(3..));
    let signal = || problem.single_noise().map_or(0.0, |noise| problem.rows as f64 / noise);
    (table && for_layers(problem, &additive_or_network::METHOD) && signal() >= LAYERS_FROM.max(LAYERS_FROM_COLUMN * problem.schema.used_columns() as f64))
        .then_some("there are so many rows that a network may find how columns act together, and so many that it costs little to see whether it does")
}

/// Rows over the length of the noise on a gradient sum below which many noisy steps beat one exact minimisation: they learn the strong
/// directions first, where a ridge shrinks all alike.
const FAINT: f64 = 80.0;

/// Whether the noise of the whole budget is long against the rows.
fn faint(problem: &Problem) -> bool {
    let (Ok(noise), Ok(loss)) = (problem.single_noise(), problem.build_loss(1)) else { return false };
    let length = noise * loss.lipschitz() * (problem.features as f64).sqrt();
    problem.rows as f64 / length < FAINT
}

/// The method of a linear model, and why in a few words.
pub fn choose(problem: &Problem) -> (&'static Method, &'static str) {
    let (pure, smooth) = (problem.target.delta == 0.0, problem.loss.smooth);
    let grouped = problem.rows_per_unit > 1;
    let minimisable = smooth && !grouped && problem.rows_known;
    if problem.settings.0.contains_key("sparsity") {
        return sparse(problem, minimisable && !problem.loss.multiclass);
    }
    const MINIMISED: (&Method, &str) =
        (&objective::METHOD, "one score and a smooth loss: the whole budget goes into one exact minimisation");
    match problem.task {
        // A loss without numbers is a mean.
        Task::Location if problem.loss.parameters.is_empty() => (&statistics::METHOD, "a mean is one noisy sum"),
        Task::Location => (&noisy_gd::METHOD, "a geometric median is found by gradients, each of length at most 1"),
        _ if pure => (&output::METHOD, "delta is 0, and it is the method with pure privacy"),
        Task::Number if problem.loss.least_squares && problem.features <= statistics::LARGEST => {
            (&statistics::METHOD, "a number is predicted from few features, whose second moments say most about it")
        }
        Task::Classes(2) if minimisable && !faint(problem) => MINIMISED,
        Task::Number if minimisable => MINIMISED,
        _ => (&noisy_gd::METHOD, gradients(problem)),
    }
}

/// Why gradients.
fn gradients(problem: &Problem) -> &'static str {
    match problem.task {
        _ if problem.rows_per_unit > 1 => "a unit has several rows, which are clipped together",
        _ if !problem.rows_known => "the true number of rows is private or not counted, and gradients do not need it",
        _ if !problem.loss.smooth => "the loss has a kink, so it takes gradients",
        Task::Classes(2) => "with this much noise steps that learn the strong directions first do better",
        _ => "several classes at once: descent averages the noise of many scores",
    }
}

/// With a declared number of columns that matter. Choosing k columns by scores costs sqrt(k) times the bound on a cell, noise on all
/// columns costs the length of a row.
fn sparse(problem: &Problem, minimisable: bool) -> (&'static Method, &'static str) {
    let count = super::support::sparsity(problem, problem.settings.0.get("sparsity").map(|s| (*s as u64).max(1))) as f64;
    let cells = count.sqrt() * problem.largest_cell() < 1.0;
    match problem.task {
        // It has one score to a class; several at once take the other one.
        _ if cells && !problem.loss.multiclass => {
            (&noisy_thresholding::METHOD, "few columns matter, and the bound on a cell is small against a row")
        }
        Task::Classes(2) if minimisable => {
            (&weighted_columns::METHOD, "few columns matter, and rows have few large cells, such as words")
        }
        _ => (&hard_thresholding::METHOD, "few columns matter, and rows have few large cells"),
    }
}
