//! What was seen of fits under way, one look each in a CSV file, so that a run that was stopped goes on where it was.

use crate::Failure;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const COLUMNS: [&str; 8] =
    ["epsilon", "true_epsilon", "step", "passes", "seconds", "training_cross_entropy", "cross_entropy", "wrong"];

/// One look at a fit.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) set: String,
    pub(super) held: String,
    pub(super) name: String,
    pub(super) numbers: [f64; 8],
}

impl Point {
    pub(super) fn get(&self, column: &str) -> f64 {
        COLUMNS.iter().position(|c| *c == column).map_or(f64::NAN, |i| self.numbers[i])
    }

    fn text(&self) -> String {
        let numbers: Vec<String> =
            self.numbers.iter().map(|x| format!("{:.6}", x).trim_end_matches('0').trim_end_matches('.').into()).collect();
        format!("{},{},{},{}", self.set, self.held, self.name, numbers.join(","))
    }

    fn parse(line: &str) -> Option<Point> {
        let parts: Vec<&str> = line.split(',').collect();
        let [set, held, name, numbers @ ..] = &parts[..] else { return None };
        let numbers: Vec<f64> = numbers.iter().map(|n| n.parse().ok()).collect::<Option<_>>()?;
        Some(Point { set: set.to_string(), held: held.to_string(), name: name.to_string(), numbers: numbers.try_into().ok()? })
    }
}

/// All of them, and their file.
pub(super) struct Points {
    path: PathBuf,
    all: Mutex<Vec<Point>>,
}

impl Points {
    pub(super) fn open(path: &Path) -> Points {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Points { path: path.into(), all: Mutex::new(text.lines().filter_map(Point::parse).collect()) }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Point>> {
        self.all.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The looks at a fit, in the order of its steps.
    pub(super) fn of(&self, set: &str, held: &str, name: &str, epsilon: f64) -> Vec<Point> {
        let wanted = |p: &&Point| p.set == set && p.held == held && p.name == name && p.get("epsilon") == epsilon;
        let mut found: Vec<Point> = self.list().iter().filter(wanted).cloned().collect();
        found.sort_by(|a, b| a.get("step").total_cmp(&b.get("step")));
        found
    }

    /// The last look: at what is released.
    pub(super) fn last(&self, set: &str, held: &str, name: &str, epsilon: f64) -> Option<Point> {
        self.of(set, held, name, epsilon).pop()
    }

    /// Adds the looks at a fit, all at once.
    pub(super) fn add(&self, points: Vec<Point>) -> Result<(), Failure> {
        let mut all = self.list();
        all.extend(points);
        self.write(&all)
    }

    pub(super) fn sort(&self) -> Result<(), Failure> {
        let mut all = self.list();
        let number = |p: &Point, column| p.get(column);
        all.sort_by(|a, b| {
            (&a.set, &a.held, &a.name)
                .cmp(&(&b.set, &b.held, &b.name))
                .then(number(a, "epsilon").total_cmp(&number(b, "epsilon")))
                .then(number(a, "step").total_cmp(&number(b, "step")))
        });
        self.write(&all)
    }

    fn write(&self, all: &[Point]) -> Result<(), Failure> {
        let lines: String = all.iter().map(|p| p.text() + "\n").collect();
        let beside = self.path.with_extension("new");
        let done = std::fs::write(&beside, format!("set,held,method,{}\n{lines}", COLUMNS.join(",")))
            .and_then(|()| std::fs::rename(&beside, &self.path));
        done.map_err(|e| Failure::misuse(format!("cannot write {}: {e}; give another --out", self.path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written is read again, in the order of steps, and fits that differ in epsilon, rows or name are apart.
    #[test]
    fn looks_are_found_again() {
        let point = |held: &str, epsilon: f64, step: f64| Point {
            set: "digits".into(),
            held: held.into(),
            name: "DP-SGD".into(),
            numbers: [epsilon, epsilon - 0.0005, step, step / 50.0, 1.25, f64::NAN, 0.5, 0.03],
        };
        let directory = std::env::temp_dir().join(format!("privfit-points-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("points.csv");
        let points = Points::open(&path);
        let (late, early) = (point("test", 1.2, 100.0), point("test", 1.2, 10.0));
        points.add(vec![late, early, point("test", 3.0, 7.0)]).ok().unwrap();
        points.add(vec![point("validation", 1.2, 8.0)]).ok().unwrap();
        let again = Points::open(&path);
        let steps: Vec<f64> = again.of("digits", "test", "DP-SGD", 1.2).iter().map(|p| p.get("step")).collect();
        assert_eq!(steps, [10.0, 100.0]);
        let last = again.last("digits", "test", "DP-SGD", 1.2).unwrap();
        assert!(last.get("true_epsilon") == 1.1995 && last.get("passes") == 2.0 && last.get("wrong") == 0.03);
        assert!(last.get("training_cross_entropy").is_nan() && again.last("digits", "test", "DP-SGD", 7.0).is_none());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
