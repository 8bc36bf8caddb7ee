//! What privacy will cost in accuracy, from public facts alone: a rule of thumb.
//!
//! What counts is r, the noise on the average gradient in all coordinates together. Points of accuracy lost grow like 550 r^1.35; the
//! two numbers were fitted to the Adult table of the examples, where forecasts are within a factor of two from epsilon 0.1 to 1 under
//! both adjacencies. Generated data with a decaying spectrum lost three times as much, data with a rare class up to ten times. For a
//! numeric target the forecast is r itself, and no more than an order of magnitude; for a mean r is the expected error.

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
            let value = (550.0 * ratio.powf(1.35)).min(100.0 * (1.0 - 1.0 / classes as f64));
            Forecast { what: "points of accuracy lost against no privacy", value }
        }
        Task::Location => {
            Forecast { what: "distance from the point without noise, over the radius of the ball", value: 100.0 * ratio.min(2.0) }
        }
        Task::Number => Forecast { what: "root mean squared error above no privacy", value: 100.0 * ratio.min(2.0) },
    }
}
