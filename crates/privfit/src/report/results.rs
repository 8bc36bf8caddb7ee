//! Metrics that somebody measured on public rows, for the page of a model: what `privfit evaluate --format json` prints, or one
//! JSON object for each run with its epsilon.

use crate::error::{Error, Result};
use crate::strict_json::Json;
use serde::Serialize;

/// Largest file.
const LARGEST: usize = 1 << 20;
/// Most runs.
const MOST: usize = 10_000;
/// Metrics that a plot can have, the first that is there.
const PLOTTED: [&str; 7] = ["accuracy", "rmse", "auc", "r2", "mae", "log_loss", "distance"];

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// Name of the metric that all runs have.
    pub metric: String,
    /// One value for each run.
    pub runs: Vec<Score>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Its epsilon; none for the model of this page.
    pub epsilon: Option<f64>,
    /// Whether it ran without privacy, for comparison.
    pub open: bool,
    /// Value of the metric.
    pub value: f64,
    /// All numbers of the run.
    pub numbers: Vec<(String, f64)>,
}

/// Runs at one epsilon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) epsilon: f64,
    pub(super) mean: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) runs: usize,
}

fn wrong(text: impl Into<String>) -> Error {
    Error::misuse(format!(
        "the results {}: give the JSON that `privfit evaluate` prints, or lines like {{\"epsilon\": 1, \"accuracy\": 0.8}}",
        text.into()
    ))
}

impl Results {
    /// Reads a file's text: an object, a list of objects, or an object in each line.
    pub fn parse(text: &str) -> Result<Results> {
        if text.len() > LARGEST {
            return Err(wrong("are longer than a megabyte"));
        }
        let objects = match Json::parse(text) {
            Ok(Json::List(list)) => list,
            Ok(one) => vec![one],
            Err(_) => {
                let lines = text.lines().filter(|l| !l.trim().is_empty()).map(Json::parse);
                lines.collect::<std::result::Result<Vec<_>, _>>().map_err(|_| wrong("are not JSON"))?
            }
        };
        if objects.is_empty() || objects.len() > MOST {
            return Err(wrong(format!("have {} runs, and 1 to {MOST} can be shown", objects.len())));
        }
        let mut all = Vec::new();
        for object in objects {
            let Json::Object(pairs) = object else { return Err(wrong("have something that is no object")) };
            let (mut epsilon, mut open, mut numbers) = (None, false, Vec::new());
            for (key, value) in pairs {
                match (key.as_str(), value) {
                    ("epsilon", Json::Number(e)) if e > 0.0 && e.is_finite() => epsilon = Some(e),
                    ("epsilon", Json::Null) => open = true,
                    // What private metrics cost themselves, beside the model.
                    ("epsilon", Json::Object(_)) => {}
                    ("epsilon", _) => return Err(wrong("have an epsilon that is not a positive number")),
                    (_, Json::Number(x)) if x.is_finite() => numbers.push((key, x)),
                    _ => {}
                }
            }
            all.push((epsilon, open, numbers));
        }
        let find = |numbers: &[(String, f64)], name: &str| numbers.iter().find(|n| n.0 == name).map(|n| n.1);
        let metric = PLOTTED.iter().find(|m| all.iter().all(|a| find(&a.2, m).is_some()));
        let Some(metric) = metric else {
            return Err(wrong(format!("have no metric that every run has (known are {})", PLOTTED.join(", "))));
        };
        let mut runs: Vec<Score> = all
            .into_iter()
            .map(|(epsilon, open, numbers)| Score { epsilon, open, value: find(&numbers, metric).unwrap_or(f64::NAN), numbers })
            .collect();
        runs.sort_by(|a, b| a.epsilon.unwrap_or(0.0).total_cmp(&b.epsilon.unwrap_or(0.0)));
        Ok(Results { metric: metric.to_string(), runs })
    }

    /// Mean, smallest and largest value at each epsilon; `own` is that of the model of this page.
    pub(super) fn by_epsilon(&self, own: Option<f64>) -> Vec<Group> {
        let mut found: Vec<(f64, f64)> =
            self.runs.iter().filter(|r| !r.open).filter_map(|r| r.epsilon.or(own).map(|e| (e, r.value))).collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let group = |group: &[(f64, f64)]| {
            let values = || group.iter().map(|g| g.1);
            Group {
                epsilon: group[0].0,
                mean: values().sum::<f64>() / group.len() as f64,
                least: values().fold(f64::INFINITY, f64::min),
                most: values().fold(-f64::INFINITY, f64::max),
                runs: group.len(),
            }
        };
        found.chunk_by(|a, b| a.0 == b.0).map(group).collect()
    }

    /// Mean without privacy, where such runs were given.
    pub(super) fn open(&self) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().filter(|r| r.open).map(|r| r.value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_shapes_are_read() {
        let one = Results::parse("{\"rows\": 10, \"accuracy\": 0.8, \"auc\": 0.9}").unwrap();
        assert_eq!((one.metric.as_str(), one.runs.len(), one.by_epsilon(Some(2.0))[0].epsilon), ("accuracy", 1, 2.0));
        let lines = "{\"epsilon\": 2, \"rmse\": 3}\n\n{\"epsilon\": 1, \"rmse\": 5}\n{\"epsilon\": 1, \"rmse\": 7}\n\
                     {\"epsilon\": null, \"rmse\": 1}\n";
        let many = Results::parse(lines).unwrap();
        let group = |epsilon, mean, least, most, runs| Group { epsilon, mean, least, most, runs };
        assert_eq!(many.by_epsilon(None), [group(1.0, 6.0, 5.0, 7.0, 2), group(2.0, 3.0, 3.0, 3.0, 1)]);
        assert_eq!(many.open(), Some(1.0));
        assert_eq!(Results::parse("[{\"epsilon\": 1, \"rmse\": 5}]").unwrap().runs.len(), 1);
        let noisy = Results::parse("{\"accuracy\": 0.8, \"epsilon\": {\"zero_out\": 0.2}, \"noise\": {\"rows\": 3}}").unwrap();
        assert_eq!((noisy.runs[0].epsilon, noisy.runs[0].value), (None, 0.8), "of the model of this page");
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in ["", "{}", "[]", "7", "{\"accuracy\": \"x\"}", "{\"epsilon\": -1, \"accuracy\": 1}", "{\"a\":1", "[1]"] {
            let error = Results::parse(bad).unwrap_err();
            assert!(error.code() == 2 && error.to_string().contains("give the JSON"), "{bad}: {error}");
        }
    }
}
