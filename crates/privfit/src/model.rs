//! A released model, and its predictions for new rows. Nothing here costs anything.

use crate::additive::AdditiveModel;
use crate::additive::edit::Edit;
use crate::data::cells::CellGrid;
use crate::data::encode::{Encoder, Row, UNKNOWN};
use crate::error::{Error, Result};
use crate::loss::{self, Kind, Link, LossEntry, OwnMetric, logistic, poisson, quantile, softmax};
use crate::network::NetworkModel;
use crate::schema::{Schema, TargetValues, Task};
use serde::{Deserialize, Serialize};

/// A released model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Model {
    /// Scores that are linear in the encoded features.
    Linear(LinearModel),
    /// A point that stands for all rows.
    Point(PointModel),
    /// Scores that are sums of functions of one column, of pairs and of trees.
    Additive(Box<AdditiveModel>),
    /// Scores of a network.
    Network(Box<NetworkModel>),
}

/// Weights, and the loss by which scores are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearModel {
    /// Name of the loss.
    pub loss: String,
    /// Its numbers.
    pub loss_parameters: Vec<f64>,
    /// Number of classes; 0 for a number.
    pub classes: usize,
    /// Weights, one list for each score, over the encoded features.
    pub weights: Vec<Vec<f64>>,
    /// How rows were changed before they met the weights, where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<RowMap>,
}

/// A mean or a geometric median of the encoded rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointModel {
    /// Name of the loss.
    pub loss: String,
    /// Its numbers.
    pub loss_parameters: Vec<f64>,
    /// Its coordinates: the encoded features.
    pub point: Vec<f64>,
}

/// A map of each row by itself: the root of the size of each cell, times a factor of its column, the row divided by its own length, a
/// constant appended, and the whole divided by its length. Weights stand at the places of the encoded features; that of the constant
/// is kept here. The factors were released, with noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowMap {
    /// A factor for each encoded feature; 0 for one that is left out.
    pub factors: Vec<f64>,
    /// Size of the constant.
    pub constant: f64,
    /// Its weight.
    pub weight: f64,
}

impl RowMap {
    /// Score of a row.
    fn score(&self, row: &Row, weights: &[f64]) -> f64 {
        let (mut sum, mut square) = (0.0, 0.0);
        let mut add = |i: usize, x: f64| {
            if let (Some(factor), Some(w)) = (self.factors.get(i), weights.get(i)) {
                let x = x.signum() * x.abs().sqrt() * factor;
                sum += x * w;
                square += x * x;
            }
        };
        row.dense.iter().enumerate().for_each(|(i, x)| add(i, *x));
        row.pairs.iter().for_each(|(i, x)| add(*i as usize, *x));
        let own = if square > 0.0 { sum / square.sqrt() } else { 0.0 };
        (own + self.constant * self.weight) / (1.0 + self.constant * self.constant).sqrt()
    }
}

/// What a model says about one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// Class number, and the probabilities of all classes where the loss has them.
    Class(usize, Vec<f64>),
    /// Target between -1 and 1, to be mapped to its bounds.
    Number(f64),
    /// Distance of the row from the released point, in units of the ball.
    Distance(f64),
}

impl Link {
    /// Whether scores stand for probabilities.
    pub(crate) fn has_probabilities(self) -> bool {
        matches!(self, Link::LogOdds(_) | Link::Softmax)
    }
}

impl Model {
    /// The model of these weights, score after score, or of this point.
    pub fn new(
        loss: &LossEntry,
        loss_parameters: Vec<f64>,
        classes: usize,
        mut weights: Vec<Vec<f64>>,
        map: Option<RowMap>,
    ) -> Model {
        let loss_name = loss.name.to_string();
        match loss.kind {
            Kind::Location => {
                Model::Point(PointModel { loss: loss_name, loss_parameters, point: weights.pop().unwrap_or_default() })
            }
            _ => Model::Linear(LinearModel { loss: loss_name, loss_parameters, classes, weights, map }),
        }
    }

    /// Name of the loss.
    pub fn loss(&self) -> &str {
        match self {
            Model::Linear(m) => &m.loss,
            Model::Point(m) => &m.loss,
            Model::Additive(m) => &m.loss,
            Model::Network(m) => &m.loss,
        }
    }

    /// Its numbers.
    pub fn loss_parameters(&self) -> &[f64] {
        match self {
            Model::Linear(m) => &m.loss_parameters,
            Model::Point(m) => &m.loss_parameters,
            Model::Additive(m) => &m.loss_parameters,
            Model::Network(m) => &m.loss_parameters,
        }
    }

    /// Number of classes; 0 for a number or a point.
    pub fn classes(&self) -> usize {
        match self {
            Model::Linear(m) => m.classes,
            Model::Additive(m) => m.classes,
            Model::Network(m) => m.classes,
            Model::Point(_) => 0,
        }
    }

    /// How many scores a row has; a point counts as one.
    pub fn outputs(&self) -> usize {
        match self {
            Model::Linear(m) => m.weights.len(),
            Model::Point(_) => 1,
            Model::Additive(m) => m.offsets.len(),
            Model::Network(m) => m.outputs(),
        }
    }

    /// Released numbers over the encoded features: a list for each score, or the point; none of other models.
    pub fn weights(&self) -> &[Vec<f64>] {
        match self {
            Model::Additive(_) | Model::Network(_) => &[],
            Model::Linear(m) => &m.weights,
            Model::Point(m) => std::slice::from_ref(&m.point),
        }
    }

    /// The same model with other numbers over the encoded features.
    pub fn with_weights(mut self, mut weights: Vec<Vec<f64>>) -> Model {
        match &mut self {
            Model::Linear(m) => m.weights = weights,
            Model::Point(m) => m.point = weights.pop().unwrap_or_default(),
            Model::Additive(_) | Model::Network(_) => {}
        }
        self
    }

    /// How rows are changed before they meet the weights, where they are.
    pub fn map(&self) -> Option<&RowMap> {
        match self {
            Model::Linear(m) => m.map.as_ref(),
            Model::Point(_) | Model::Additive(_) | Model::Network(_) => None,
        }
    }

    /// What scores stand for.
    pub fn link(&self) -> Link {
        let unknown = if self.classes() == 0 { Link::Identity } else { Link::Sign };
        loss::find(self.loss()).map_or(unknown, |l| l.link)
    }

    /// What is predicted.
    pub fn task(&self) -> Task {
        match self {
            Model::Point(_) => Task::Location,
            _ if self.classes() == 0 => Task::Number,
            _ => Task::Classes(self.classes()),
        }
    }

    /// The cells of the columns that it looks at, where it does.
    pub fn grid(&self) -> Option<&CellGrid> {
        match self {
            Model::Additive(m) => Some(&m.grid),
            Model::Linear(_) | Model::Point(_) | Model::Network(_) => None,
        }
    }

    /// What kind of model it is, in a word.
    pub fn family(&self) -> &'static str {
        match self {
            Model::Linear(_) => "linear",
            Model::Point(_) => "point",
            Model::Additive(_) => "curves",
            Model::Network(_) => "layers",
        }
    }

    /// What was changed after the release.
    pub fn edits(&self) -> &[Edit] {
        match self {
            Model::Additive(m) => &m.edits,
            Model::Linear(_) | Model::Point(_) | Model::Network(_) => &[],
        }
    }

    /// What turns the records of a file into rows for this model.
    pub fn encoder(&self, schema: &Schema, header: &[String], labelled: bool) -> Result<Encoder> {
        Encoder::new(schema, header, labelled)?.of_form(self.grid().into(), header)
    }

    /// The prediction of a row.
    pub fn predict(&self, row: &Row) -> Prediction {
        match self {
            Model::Point(m) => Prediction::Distance(m.distance(row)),
            _ => {
                let mut scores = Vec::with_capacity(self.outputs());
                self.scores(row, &mut scores);
                read_scores(self.task(), self.link(), self.loss_parameters(), &scores)
            }
        }
    }

    /// Scores of a row; a point has none.
    pub fn scores(&self, row: &Row, out: &mut Vec<f64>) {
        out.clear();
        match self {
            Model::Linear(m) => m.scores(row, out),
            Model::Additive(m) => m.scores(row, out),
            Model::Network(m) => m.scores(row, out),
            Model::Point(_) => {}
        }
    }
}

impl PointModel {
    /// Distance of a row from the point.
    fn distance(&self, row: &Row) -> f64 {
        if row.pairs.is_empty() && !row.dense.is_empty() {
            return row.dense.iter().zip(&self.point).map(|(x, t)| (x - t) * (x - t)).sum::<f64>().sqrt();
        }
        let mut rest = self.point.clone();
        row.pairs.iter().for_each(|(i, x)| {
            if let Some(r) = rest.get_mut(*i as usize) {
                *r -= x
            }
        });
        rest.iter().map(|r| r * r).sum::<f64>().sqrt()
    }
}

impl LinearModel {
    fn scores(&self, row: &Row, out: &mut Vec<f64>) {
        if let Some(map) = &self.map {
            out.extend(self.weights.iter().map(|w| map.score(row, w)));
            return;
        }
        out.extend(self.weights.iter().map(|w| {
            let dense: f64 = row.dense.iter().zip(w).map(|(x, w)| x * w).sum();
            let sparse: f64 = row.pairs.iter().map(|(i, x)| w.get(*i as usize).map_or(0.0, |w| w * x)).sum();
            dense + sparse
        }));
    }
}

/// What scores say, by the loss that they were made for.
pub(crate) fn read_scores(task: Task, link: Link, loss_parameters: &[f64], scores: &[f64]) -> Prediction {
    let clip = |at: usize| loss_parameters.get(at).copied().unwrap_or(1.0);
    match (task, scores.len()) {
        (Task::Number, _) if link == Link::Share => Prediction::Number(2.0 * logistic::probability(1.0, scores[0]) - 1.0),
        (Task::Number, _) if link == Link::Log => Prediction::Number(2.0 * poisson::rate(scores[0]) - 1.0),
        (Task::Number | Task::Location, _) => Prediction::Number(scores[0].max(-1.0).min(1.0)),
        (Task::Classes(_), 1) => {
            let class = usize::from(scores[0] > 0.0);
            let probabilities = match link {
                Link::LogOdds(at) => {
                    let p = logistic::probability(clip(at), scores[0]);
                    vec![1.0 - p, p]
                }
                _ => Vec::new(),
            };
            Prediction::Class(class, probabilities)
        }
        (Task::Classes(_), _) => {
            let class = (0..scores.len()).fold(0, |best, c| if scores[c] > scores[best] { c } else { best });
            let mut probabilities = vec![0.0; scores.len()];
            match link {
                Link::Softmax => softmax::probabilities(scores, &mut probabilities),
                Link::LogOdds(at) => {
                    // One against the rest: each its own, brought to a sum of one.
                    let own = probabilities.iter_mut().zip(scores);
                    own.for_each(|(p, s)| *p = logistic::probability(clip(at), *s));
                    let sum: f64 = probabilities.iter().sum();
                    probabilities.iter_mut().for_each(|p| *p /= sum);
                }
                _ => probabilities.clear(),
            }
            Prediction::Class(class, probabilities)
        }
    }
}

/// Metrics on labelled rows, gathered one row at a time.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Rows that were given, with a known label or without.
    seen: u64,
    /// Those with a known label.
    rows: u64,
    right: u64,
    log_loss: f64,
    with_probabilities: bool,
    /// Score and label of two classes, for the area under the curve.
    ranked: Vec<(f64, bool)>,
    errors: Errors,
    distance: f64,
    /// Name of a loss that has a number of its own to report.
    special: Option<&'static str>,
}

#[derive(Clone, Debug, Default)]
struct Errors {
    square: f64,
    absolute: f64,
    sum: f64,
    sum_square: f64,
    /// Poisson deviance, or pinball loss.
    special: f64,
    below: u64,
}

impl Metrics {
    /// Adds a row with its label; a row without a known label is left out. `bounds` are those of a numeric target.
    pub fn add(&mut self, model: &Model, row: &Row, bounds: Option<(f64, f64)>) {
        self.seen += 1;
        match (model.predict(row), bounds) {
            (Prediction::Class(class, probabilities), _) => {
                if row.label == UNKNOWN {
                    return;
                }
                let label = row.label as usize;
                self.rows += 1;
                self.right += u64::from(class == label);
                if let Some(p) = probabilities.get(label) {
                    self.with_probabilities = true;
                    self.log_loss -= p.max(1e-300).ln();
                }
                if model.outputs() == 1 {
                    let mut scores = Vec::new();
                    model.scores(row, &mut scores);
                    self.ranked.push((scores[0], label == 1));
                }
            }
            (Prediction::Number(x), Some((low, high))) => {
                if row.label == UNKNOWN || !row.target.is_finite() {
                    return;
                }
                let predicted = low + (x + 1.0) / 2.0 * (high - low);
                self.rows += 1;
                let error = predicted - row.target;
                self.errors.square += error * error;
                self.errors.absolute += error.abs();
                self.errors.sum += row.target;
                self.errors.sum_square += row.target * row.target;
                match loss::find(model.loss()).map_or(OwnMetric::None, |l| l.metric) {
                    OwnMetric::Deviance => {
                        self.special = Some("deviance");
                        self.errors.special += poisson::deviance(row.target.max(0.0), predicted);
                    }
                    OwnMetric::Pinball => {
                        self.special = Some("pinball");
                        self.errors.special += quantile::pinball(model.loss_parameters().first().copied().unwrap_or(0.5), -error);
                        self.errors.below += u64::from(row.target <= predicted);
                    }
                    OwnMetric::None => {}
                }
            }
            (Prediction::Distance(distance), _) => {
                if row.label == UNKNOWN {
                    return;
                }
                self.rows += 1;
                self.distance += distance;
                self.special = Some("distance");
            }
            (Prediction::Number(_), None) => {}
        }
    }

    /// Rows that were given, with a known label or without.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Metrics of no row at all are no metrics: a misuse. For rows that count as public only.
    pub fn check(&self, target: &TargetValues) -> Result<()> {
        if self.rows > 0 {
            return Ok(());
        }
        let seen = self.seen;
        let (what, listed) = match target {
            _ if seen == 0 => return Err(Error::misuse("there are no rows to evaluate on: give labelled rows")),
            TargetValues::None => return Err(Error::misuse(format!("none of the {seen} rows can be read: give other rows"))),
            TargetValues::Classes(values) => ("that is one of classes", format!("{values:?}")),
            TargetValues::Positive(values) => ("to compare with positive", format!("{values:?}")),
            TargetValues::Bounds(low, high) => ("that is a number, with bounds", format!("[{low:?}, {high:?}]")),
        };
        Err(Error::misuse(format!(
            "none of the {seen} rows has a label {what} = {listed}: give rows with such labels, or correct [target] of the schema \
             and train again"
        )))
    }

    /// Names and values.
    pub fn report(mut self) -> Vec<(&'static str, f64)> {
        let n = self.rows as f64;
        let mut out = vec![("rows", n)];
        if self.rows == 0 {
            return out;
        }
        if self.special == Some("distance") {
            out.push(("distance", self.distance / n));
            return out;
        }
        if self.errors.sum_square > 0.0 || self.errors.square > 0.0 {
            let spread = self.errors.sum_square - self.errors.sum * self.errors.sum / n;
            out.push(("rmse", (self.errors.square / n).sqrt()));
            out.push(("mae", self.errors.absolute / n));
            out.push(("r2", if spread > 0.0 { 1.0 - self.errors.square / spread } else { 0.0 }));
            if let Some(name) = self.special {
                out.push((name, self.errors.special / n));
            }
            if self.special == Some("pinball") {
                out.push(("below", self.errors.below as f64 / n));
            }
            return out;
        }
        out.push(("accuracy", self.right as f64 / n));
        if self.with_probabilities {
            out.push(("log_loss", self.log_loss / n));
        }
        if let Some(auc) = area(&mut self.ranked) {
            out.push(("auc", auc));
        }
        out
    }
}

/// Probability that a positive row scores above a negative one, ties counting half.
fn area(ranked: &mut [(f64, bool)]) -> Option<f64> {
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positive = ranked.iter().filter(|r| r.1).count() as f64;
    let negative = ranked.len() as f64 - positive;
    if positive == 0.0 || negative == 0.0 {
        return None;
    }
    let (mut below, mut area, mut i) = (0.0, 0.0, 0);
    while i < ranked.len() {
        let same = ranked[i..].iter().take_while(|r| r.0 == ranked[i].0).count();
        let ups = ranked[i..i + same].iter().filter(|r| r.1).count() as f64;
        let downs = same as f64 - ups;
        area += ups * (below + 0.5 * downs);
        below += downs;
        i += same;
    }
    Some(area / (positive * negative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_counts_pairs() {
        assert_eq!(area(&mut [(0.1, false), (0.2, true), (0.3, false), (0.4, true)]), Some(0.75));
        assert_eq!(area(&mut [(0.1, false), (0.1, true)]), Some(0.5));
        assert_eq!(area(&mut [(0.1, true)]), None);
    }

    #[test]
    fn metrics_of_numbers() {
        let model = Model::new(loss::find("squared").unwrap(), vec![2.0], 0, vec![vec![1.0]], None);
        let mut metrics = Metrics::default();
        for (x, target) in [(0.5, 7.5), (-1.0, 1.0), (9.0, 10.0)] {
            let row = Row { dense: vec![x], label: 0.0, target, ..Row::default() };
            metrics.add(&model, &row, Some((0.0, 10.0)));
        }
        let report = metrics.report();
        let get = |name: &str| report.iter().find(|r| r.0 == name).unwrap().1;
        assert!((get("rmse") - (1.0f64 / 3.0).sqrt()).abs() < 1e-12 && (get("mae") - 1.0 / 3.0).abs() < 1e-12);
        let mean = 18.5 / 3.0;
        let spread: f64 = [7.5f64, 1.0, 10.0].iter().map(|y| (y - mean).powi(2)).sum();
        assert!((get("r2") - (1.0 - 1.0 / spread)).abs() < 1e-12);
    }
}
