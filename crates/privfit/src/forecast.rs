//! What privacy will cost in accuracy, from public facts alone: a rule of thumb.
//!
//! What counts is r, the noise on the average gradient in all coordinates together. Points of accuracy lost grow like 750 r^1.35; the
//! constants lie between what generated data with a decaying spectrum and the Adult table of the examples ask for. On Adult it is
//! within a factor of two; on data whose classes are rare, or that are hard to tell apart, losses of several times as much were seen.

use crate::loss::Task;
use crate::method::{Plan, Problem};

/// A forecast.
pub struct Forecast {
    /// What is forecast.
    pub what: &'static str,
    /// Its value: points of accuracy, or a ratio of errors minus 1 in per cent.
    pub value: f64,
}

impl Forecast {
    /// For people.
    pub fn text(&self) -> String {
        format!("{:.2} {}", self.value, if self.what.starts_with("points") { "points" } else { "per cent" })
    }
}

/// Loss against training without noise, for data like those that the rule was fitted on.
pub fn forecast(problem: &Problem, plan: &dyn Plan) -> Forecast {
    let (n, d) = (problem.all_rows(), problem.features as f64);
    // Noise on the average gradient, in all coordinates together.
    let ratio = plan.gradient_noise() * d.sqrt() / n;
    match problem.task {
        Task::Classes(classes) => {
            let value = (750.0 * ratio.powf(1.35)).min(100.0 * (1.0 - 1.0 / classes as f64));
            Forecast { what: "points of accuracy lost against no privacy", value }
        }
        Task::Number => Forecast { what: "root mean squared error above no privacy", value: 100.0 * ratio.min(2.0) },
    }
}
