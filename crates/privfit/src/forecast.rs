//! What privacy will cost in accuracy, from public facts alone: a rule of thumb, and what it stayed below.
//!
//! What counts is r, the noise on the average gradient in all coordinates together. How much of it shows depends on what nobody may
//! look at: spectrum, rare classes, where targets lie inside of their bounds. So a forecast is two numbers. `value` is in the middle
//! of what was found on sixteen tables, real and generated, at epsilon 0.2 and 1 (120 r^0.8 points for classes; r/2 for numbers where the
//! method standardises them, 7 r where it does not, in half-ranges of the target), and `most` is above all of it (200 r^0.6 points;
//! 2 r and 25 r). The middle is off by six on some tables, and where rows are many the true loss may be too small to measure: only the
//! upper end is meant as a bound. For a mean r is the expected error.

use crate::loss::Task;
use crate::method::{Plan, Problem};

/// A forecast.
pub struct Forecast {
    /// What is forecast.
    pub what: &'static str,
    /// Its value: points of accuracy, or per cent.
    pub value: f64,
    /// What it was below on every table that was tried, in the same unit.
    pub most: f64,
}

impl Forecast {
    /// For people.
    pub fn text(&self) -> String {
        let unit = self.unit();
        format!("{:.2} {unit}, hardly above {:.2} {unit}", self.value, self.most)
    }

    /// The unit of both numbers.
    pub fn unit(&self) -> &'static str {
        if self.what.starts_with("points") { "points" } else { "per cent" }
    }
}

/// Loss against training without noise.
pub fn forecast(problem: &Problem, plan: &dyn Plan) -> Forecast {
    let (n, d) = (problem.all_rows(), problem.features as f64);
    // Noise on the average gradient, in all coordinates together.
    let ratio = plan.gradient_noise() * d.sqrt() / n;
    match problem.task {
        Task::Classes(classes) => {
            let all = 100.0 * (1.0 - 1.0 / classes as f64);
            Forecast {
                what: "points of accuracy lost against no privacy",
                value: (120.0 * ratio.powf(0.8)).min(all),
                most: (200.0 * ratio.powf(0.6)).min(all),
            }
        }
        Task::Location => Forecast {
            what: "distance from the point without noise, over the radius of the ball",
            value: 100.0 * ratio.min(2.0),
            most: 200.0 * ratio.min(1.0),
        },
        Task::Number => {
            let (middle, most) = if plan.standardises() { (0.5, 2.0) } else { (7.0, 25.0) };
            Forecast {
                what: "root mean squared error above no privacy, of half of the target's range",
                value: 100.0 * (middle * ratio).min(2.0),
                most: 100.0 * (most * ratio).min(2.0),
            }
        }
    }
}
