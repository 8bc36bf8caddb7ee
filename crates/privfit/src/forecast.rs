//! What privacy will cost in accuracy, from public facts alone: a range.
//!
//! *Derivation.* Rows lie in the unit ball, so a column whose standard deviation is `spread` of half of the width of its bounds has
//! the variance spread^2 / d in an encoded row of d features, and a loss of curvature k has the eigenvalue h = k spread^2 / d there.
//! With s the noise of a coordinate of the average gradient and l the ridge over the rows, weights are off by s / (h + l) and too
//! short by the part l / (h + l). Scores are then off by s^2 (d / k) h / (h + l)^2 in the mean of squares, which is largest at h = l:
//! a ridge bounds it whatever the spread. Descent that stops early is a ridge of n over the way that a flat direction goes. Noise t
//! on the weights themselves puts scores off by t^2 times the square of a row's length, which is from 1/d (the constant) to 1.
//!
//! *Numbers.* The error m without privacy becomes sqrt(m^2 + noise + what the ridge takes of the gain). Where a plan standardises,
//! columns count with the spread that it found instead of their own: not below its floor, nor below the noise of its means. Three
//! Newton steps follow the first fit, which leave the fourth power of its shrinkage, and noise in proportion to what the first fit left.
//!
//! *Classes.* A ridge shortens noise and signal alike, so that noise before shrinking counts: V = s^2 d / (k h). For normal scores of
//! variance S near 0 a score is on the wrong side for the part (1 - 1/sqrt(1 + V/S)) sqrt(S) / sqrt(8 pi), which is at most
//! 0.06 sqrt(V) over all S: 6 points. Shrinking moves scores across a threshold by the square of the part it takes.
//!
//! *Additive models.* Columns count by their ranks, so that bounds, zeros and tails hardly matter, and what is lost goes by the rows times mu, s: a number loses about 800/s per cent
//! of half of its range, two classes 500/s points, several of them by the power 3/4 of 1/s, all times the root of a tenth of the columns. How much more or less depends on how
//! bent the truth is, a factor of three for most tables; until there are rows enough for pairs and trees, what two columns say together is lost too.
//!
//! *What nobody may look at* is between two ends: spreads (from a fortieth to a half, or from 0.15 where columns fill their bounds), the
//! error that stays (up to 0.4 half-ranges), what there is to gain (up to 0.3 half-ranges, or three tenths of all points). Those ends were
//! set on 22 tables, real and generated, and held on another 20 (zero-heavy and correlated columns, wide bounds, rare classes, few rows);
//! `tests/data/forecasts.txt` has what was measured. A table with nothing to learn loses nothing, and there the lower end is none. Measured were
//! `objective`, `noisy-gd`, `output` and `statistics`; other methods go by the same formula. What columns cost that a method leaves out is not in it.

use crate::method::{Noise, Plan, Problem};
use crate::schema::Task;
use serde_json::{Value, json};

/// A forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// What is forecast.
    pub what: &'static str,
    /// Lower end: points of accuracy, or per cent.
    pub least: f64,
    /// What is likely, within a factor of three for most tables; none where spreads of columns decide.
    pub likely: Option<f64>,
    /// Upper end where columns and target fill their bounds: standard deviations of at least a tenth of half of the width.
    pub filled: f64,
    /// Upper end for any columns: mostly zeros, wide bounds.
    pub most: f64,
}

/// Spreads of columns.
const NARROW: f64 = 0.025;
const FILLED: f64 = 0.15;
const WIDE: f64 = 0.5;
/// Errors without privacy, in half-ranges of the target.
const SMALL_ERROR: f64 = 0.02;
const LARGE_ERROR: f64 = 0.4;
/// What columns tell about a number, in half-ranges; about classes, as a part of all points.
const GAIN: f64 = 0.3;
/// Smallest spread that standardisation tells apart.
const FLOOR: f64 = 0.03;
/// Points of accuracy that scores with noise of variance 1 lose at most.
const POINTS: f64 = 6.0;

impl Forecast {
    /// For people.
    pub fn text(&self) -> String {
        let [least, filled, most] = self.ends();
        let range = format!("{least} to {most} {}", self.unit());
        if let Some(likely) = self.likely {
            return format!("about {} of {range}", digits(likely, f64::round));
        }
        if filled == most { range } else { format!("{range}; at most {filled} where columns fill their bounds") }
    }

    /// The three ends with two digits. The lower one is rounded down, and to 0 where it is next to nothing; the upper ones are rounded up.
    pub fn ends(&self) -> [String; 3] {
        let least = if self.least < 1e-3 { 0.0 } else { self.least };
        [digits(least, f64::floor), digits(self.filled, f64::ceil), digits(self.most, f64::ceil)]
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let mut out = json!({"what": self.what, "unit": self.unit(), "least": self.least, "filled": self.filled, "most": self.most, "text": self.text()});
        if let Some(likely) = self.likely {
            out["likely"] = json!(likely);
        }
        out
    }

    /// The unit of all numbers.
    pub fn unit(&self) -> &'static str {
        if self.what.starts_with("points") { "points" } else { "per cent" }
    }
}

/// Two significant digits, or more of a larger whole number.
fn digits(x: f64, round: fn(f64) -> f64) -> String {
    if !(x > 0.0) {
        return "0".into();
    }
    let places = (1 - x.log10().floor() as i32).clamp(0, 9);
    let scale = 10f64.powi(places);
    // A number that has two digits already keeps them.
    let near = (x * scale).round();
    let scaled = if (x * scale - near).abs() < 1e-6 { near } else { round(x * scale) };
    let text = format!("{:.*}", places as usize, scaled / scale);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// Loss against training without noise.
pub fn forecast(problem: &Problem, plan: &dyn Plan) -> Forecast {
    let facts = Facts::new(problem, plan);
    if let Noise::Cells { signal, columns, trees } = facts.noise {
        return of_cells(signal, columns, trees, problem.task);
    }
    match problem.task {
        Task::Classes(classes) => facts.classes(classes),
        Task::Number => facts.number(),
        Task::Location => facts.location(problem.loss.parameters.is_empty()),
    }
}

/// An additive model: what is likely, and what was seen on tables that are harder. On some tables privacy costs nothing: noise keeps a model from following chance.
fn of_cells(signal: f64, columns: f64, trees: bool, task: Task) -> Forecast {
    let wide = (columns / 10.0).sqrt();
    // What is likely, and all that there is to lose.
    let (likely, all) = match task {
        Task::Classes(2) => (500.0 / signal + 0.03, 50.0),
        Task::Classes(classes) => {
            let classes = classes as f64;
            (1.4 * classes.sqrt() * (1000.0 / signal).powf(0.75), 100.0 * (1.0 - 1.0 / classes))
        }
        Task::Number | Task::Location => (800.0 / signal, 60.0),
    };
    // What several columns say together is found with rows enough; a score for each of several classes has trees for that, or nothing.
    let together = match task {
        Task::Classes(3..) if trees => 14.0 / (1.0 + signal / 3000.0),
        Task::Classes(3..) => 14.0,
        _ => 10.0 / (1.0 + (signal / 1500.0).powi(2)),
    };
    let likely = (wide * likely).min(all / 3.0);
    let most = (4.0 * likely + together).min(all);
    Forecast { what: what(task), least: 0.0, likely: Some(likely), filled: most, most }
}

/// What is forecast for a task.
fn what(task: Task) -> &'static str {
    match task {
        Task::Classes(_) => "points of accuracy lost against no privacy",
        Task::Number => "root mean squared error above no privacy, of half of the target's range",
        Task::Location => "distance from the point without noise, over the radius of the ball",
    }
}

struct Facts {
    noise: Noise,
    /// Features that carry noise.
    features: f64,
    /// Rows at the least: one to a unit. At the most, as many as a unit may have.
    rows: (f64, f64),
    curvature: f64,
}

/// Mean square that scores are off by, and what a ridge takes of the gain.
struct Off {
    noise: f64,
    shrunk: f64,
}

impl Facts {
    fn new(problem: &Problem, plan: &dyn Plan) -> Facts {
        let weight = problem.weights.iter().sum::<f64>() / problem.weights.len().max(1) as f64;
        let curvature = match problem.task {
            Task::Classes(2) => 0.25,
            Task::Classes(classes) => 1.0 / classes as f64,
            Task::Number | Task::Location => 1.0,
        };
        Facts {
            noise: plan.noise(),
            features: plan.noisy_columns().unwrap_or(problem.features) as f64,
            rows: (problem.rows.max(1) as f64, problem.all_rows()),
            curvature: curvature * if problem.weights.is_empty() { 1.0 } else { weight },
        }
    }

    fn eigenvalue(&self, spread: f64) -> f64 {
        self.curvature * spread * spread / self.features
    }

    /// Part that a ridge takes of weights along a column.
    fn shrinkage(&self, ridge: f64, spread: f64) -> f64 {
        let ridge = ridge / self.rows.0;
        ridge / (self.eigenvalue(spread) + ridge)
    }

    /// For a number: columns of that spread or more, an error of m without privacy, so much to gain, rows of that squared length.
    fn off(&self, rows: f64, spread: f64, m: f64, gain: f64, length: f64) -> Off {
        let d = self.features;
        match self.noise {
            Noise::Gradient { deviation, ridge } => {
                let h = self.eigenvalue(spread).max(ridge / rows);
                let noise = (deviation / rows).powi(2) * d / self.curvature * h / (h + ridge / rows).powi(2);
                Off { noise, shrunk: gain * self.shrinkage(ridge, spread) }
            }
            Noise::Weights { deviation, ridge } => {
                // Its scores begin in the middle of the bounds: half of the way to the mean may be lost too.
                let constant = ridge / rows * d / (1.0 + ridge / rows * d);
                let shrunk = gain * self.shrinkage(ridge, spread);
                Off { noise: deviation * deviation * length, shrunk: shrunk.hypot(if gain > 0.0 { 0.5 * constant } else { 0.0 }) }
            }
            Noise::Standardised { means, moments, step, clip } => {
                let wide = 1.0 + (means / rows + FLOOR) / spread;
                let level = moments / rows * (2.0 * d).sqrt() * d * wide * wide;
                let left = level / (1.0 + level);
                let noise = (clip * step / rows * d * wide).powi(2) * (m.max(FLOOR).powi(2) + (left * gain).powi(2));
                Off { noise, shrunk: left.powi(4) * gain }
            }
            Noise::Cells { .. } => Off { noise: 0.0, shrunk: 0.0 },
        }
    }

    fn number(&self) -> Forecast {
        let above = |square: f64, m: f64| 100.0 * ((m * m + square).sqrt() - m);
        let upper = |spread: f64, least: f64| {
            let at = |m: &f64| {
                let off = self.off(self.rows.0, spread, *m, GAIN, 1.0);
                // Predictions are clamped to the bounds.
                above((off.noise + off.shrunk * off.shrunk).min(1.0), *m)
            };
            [least, 0.1, 0.2, LARGE_ERROR].iter().map(at).fold(0.0, f64::max)
        };
        // Half of it, for columns that say the same.
        let lower = |m: f64| above((0.5 * self.off(self.rows.1, WIDE, m, 0.0, 1.0 / self.features).noise).min(0.3), m);
        let (filled, most) = (upper(FILLED, SMALL_ERROR), upper(NARROW, 0.0));
        Forecast {
            what: what(Task::Number),
            likely: None,
            least: lower(FLOOR).min(lower(LARGE_ERROR)).min(filled),
            filled: filled.min(most),
            most,
        }
    }

    fn classes(&self, classes: usize) -> Forecast {
        let all = 100.0 * (1.0 - 1.0 / classes as f64);
        // Standard deviation of the noise of scores, had nothing shrunk them.
        let noise = |rows: f64, spread: f64| match self.noise {
            Noise::Gradient { deviation, .. } => deviation / rows * spread / self.eigenvalue(spread),
            Noise::Weights { deviation, ridge } => deviation / (1.0 - self.shrinkage(ridge, spread)),
            Noise::Standardised { moments, .. } => moments / rows * self.features,
            Noise::Cells { .. } => 0.0,
        };
        let ridge = match self.noise {
            Noise::Gradient { ridge, .. } | Noise::Weights { ridge, .. } => ridge,
            Noise::Standardised { .. } | Noise::Cells { .. } => 0.0,
        };
        let upper = |spread: f64| {
            let stake = 0.3 * all * self.shrinkage(ridge, spread).powi(2);
            (POINTS * noise(self.rows.0, spread) + stake).min(all)
        };
        // Rows all of which vary as much as they can; few of them near a threshold, and little to lose.
        let off = match self.noise {
            Noise::Weights { deviation, .. } => deviation,
            _ => noise(self.rows.1, 1.0),
        };
        let (filled, most) = (upper(FILLED), upper(NARROW));
        Forecast {
            what: what(Task::Classes(classes)),
            likely: None,
            least: (10.0 * off * off).min(0.1 * off.max(1.0)).min(filled),
            filled,
            most,
        }
    }

    /// A mean is off by its noise. A geometric median by the noise over a curvature that is at least (1 - 1/d)/2 in a ball of radius 1;
    /// next to many rows it is up to one over the width of the rounding.
    fn location(&self, mean: bool) -> Forecast {
        let d = self.features;
        let deviation = match self.noise {
            Noise::Gradient { deviation, .. } | Noise::Weights { deviation, .. } => deviation,
            Noise::Standardised { moments, .. } => moments,
            Noise::Cells { .. } => 0.0,
        };
        let off = |rows: f64| 100.0 * deviation / rows * d.sqrt();
        let (low, high) = if mean { (0.79, 1.0) } else { (0.05, 2.0 * d / (d - 1.0).max(0.1)) };
        let most = (high * off(self.rows.0)).min(200.0);
        Forecast { what: what(Task::Location), likely: None, least: (low * off(self.rows.1)).min(most), filled: most, most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use crate::constraint::Constraint;
    use crate::job::fit::{Job, prepare};
    use crate::method::Settings;
    use privfit_kernel::account::Adjacency;

    /// Public facts of a table; bounds are no part of a forecast, since rows are scaled by them.
    struct Table {
        name: String,
        rows: u64,
        schema: Schema,
        filled: bool,
    }

    fn schema(numbers: usize, categories: &[usize], target: &str) -> Schema {
        let target = match target.parse::<usize>() {
            Ok(classes) => format!("classes = {:?}", (0..classes).map(|c| c.to_string()).collect::<Vec<_>>()),
            Err(_) => "bounds = [-1, 1]".into(),
        };
        let number = |i: usize| format!("[features.n{i}]\ntype = \"number\"\nmin = -1\nmax = 1\n");
        let category = |(i, values): (usize, &usize)| {
            format!(
                "[features.c{i}]\ntype = \"category\"\nvalues = {:?}\n",
                (0..*values).map(|v| v.to_string()).collect::<Vec<_>>()
            )
        };
        let features: String = (0..numbers).map(number).chain(categories.iter().enumerate().map(category)).collect();
        Schema::parse(&format!("[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\n{target}\n{features}")).unwrap()
    }

    fn of(table: &Table, method: &str, loss: &str, epsilon: f64) -> crate::error::Result<Forecast> {
        let job = Job {
            schema: table.schema.clone(),
            rows: Some(table.rows),
            epsilon,
            delta: Some(1.0 / (table.rows as f64).powi(2)),
            adjacency: Adjacency::ZeroOut,
            loss: Some(loss.into()),
            method: method.into(),
            settings: Settings::default(),
            constraint: Constraint::None,
            allow_large_delta: false,
            compare: false,
            auxiliary: None,
            layers: None,
            pretrained: None,
        };
        let prepared = prepare(&job, table.rows, false)?;
        Ok(forecast(&prepared.problem, prepared.plan.as_ref()))
    }

    /// What was lost on real and generated tables lies in the range; also columns that are mostly zeros, and bounds a hundred times as wide as
    /// what is between them. A loss below two standard errors may be anything within
    /// two of them.
    #[test]
    fn what_was_measured_lies_in_the_range() {
        let text = include_str!("../tests/data/forecasts.txt");
        let mut table: Option<Table> = None;
        let (mut cells, mut outside) = (0, Vec::new());
        let (mut near, mut likely) = (0, 0);
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            if words[0] == "table" {
                let categories: Vec<usize> = words[7].split(',').filter_map(|c| c.parse().ok()).collect();
                table = Some(Table {
                    name: words[1].into(),
                    rows: words[3].parse().unwrap(),
                    schema: schema(words[5].parse().unwrap(), &categories, words[9]),
                    filled: words[11] == "filled",
                });
                continue;
            }
            let table = table.as_ref().unwrap();
            let numbers: Vec<f64> = words[2..].iter().map(|w| w.parse().unwrap()).collect();
            let &[epsilon, lost, error] = &numbers[..] else { panic!("{line}") };
            let range = of(table, words[0], words[1], epsilon).unwrap();
            let (least, largest) = if lost > 2.0 * error { (lost, lost) } else { (lost + 2.0 * error, lost - 2.0 * error) };
            let upper = if table.filled { range.filled } else { range.most };
            if !(range.least <= least && largest <= upper && upper <= range.most) {
                outside.push(format!("{} {line}: {range:?}", table.name));
            }
            if let Some(about) = range.likely.filter(|_| lost > 2.0 * error) {
                likely += 1;
                near += usize::from(lost < 3.0 * about && about < 3.0 * lost);
            }
            cells += 1;
        }
        assert!(likely > 200 && 6 * near >= 5 * likely, "{near} of {likely} are near what is likely");
        assert!(cells > 100 && outside.is_empty(), "{} of {cells} outside:\n{}", outside.len(), outside.join("\n"));
    }

    fn table(rows: u64, schema: Schema) -> Table {
        Table { name: "t".into(), rows, schema, filled: true }
    }

    /// More budget and more rows lose less, and the ends are in order.
    #[test]
    fn ranges_shrink_with_rows_and_budget() {
        // Plans that choose columns or take samples need longer.
        let names = ["objective", "hyperparameter-free", "output", "output-gd", "noisy-gd", "statistics", "hard-thresholding"];
        for method in names.into_iter().chain(["transfer-blocks", "transfer-convex", "additive"]) {
            for (target, loss) in [("2", "logistic"), ("number", "squared")] {
                let at = |rows: u64, epsilon: f64| of(&table(rows, schema(6, &[3], target)), method, loss, epsilon);
                let (Ok(few), Ok(more), Ok(many)) = (at(3000, 0.5), at(3000, 5.0), at(300_000, 5.0)) else { continue };
                for (a, b) in [(few, more), (more, many)] {
                    assert!(b.most <= a.most && b.filled <= a.filled, "{method} {loss}: {a:?} {b:?}");
                    assert!(
                        (0.0 < b.least || method == "additive") && b.least <= b.filled && b.filled <= b.most,
                        "{method} {loss}: {b:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn ranges_read_naturally() {
        let range = |least, filled, most| Forecast { what: "points of accuracy lost", least, likely: None, filled, most }.text();
        assert_eq!(range(0.2, 1.8, 1.8), "0.2 to 1.8 points");
        assert_eq!(range(0.00031, 0.104, 12.4), "0 to 13 points; at most 0.11 where columns fill their bounds");
        // No upper end is rounded to nothing, and no lower one to more than it is.
        assert_eq!(range(0.01294, 0.0000321, 50.0), "0.012 to 50 points; at most 0.000033 where columns fill their bounds");
        assert_eq!(range(9.96, 99.7, 100.0), "9.9 to 100 points");
    }
}
