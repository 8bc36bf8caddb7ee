//! The released numbers of a model, the largest first, and what is known about the noise in them.

use crate::additive::AdditiveModel;
use crate::artifact::Artifact;
use crate::method::rounded;
use crate::model::Model;
use crate::schema::Task;
use serde::Serialize;

/// Weights that a page shows.
const SHOWN: usize = 40;

/// The released numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Weights {
    /// Scores: one, or one for each class.
    pub scores: usize,
    /// Encoded features.
    pub features: usize,
    /// The largest by size.
    pub largest: Vec<Weight>,
    /// How many more are not zero.
    pub more: usize,
    /// How many are zero.
    pub zeros: usize,
    /// What is known about the noise in them.
    pub noise: NoiseLevel,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Weight {
    /// Class whose score it is for, where there are several.
    pub class: Option<String>,
    /// Name of the encoded feature.
    pub feature: String,
    /// The number.
    pub value: f64,
}

/// Noise in the released numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseLevel {
    /// Standard deviation in each number, where that is public.
    pub deviation: Option<f64>,
    /// What is known, in words.
    pub text: String,
}

impl Weights {
    pub(super) fn of(artifact: &Artifact) -> Weights {
        let names = artifact.schema.feature_names();
        let classes = artifact.schema.class_names();
        // Of an additive model how far each column moves a score: the root of the mean square of its curve.
        let spreads = |model: &AdditiveModel| -> Vec<Vec<f64>> {
            (0..model.offsets.len()).map(|k| model.curves.iter().map(|c| c.spread(k)).collect()).collect()
        };
        let (names, lists) = match &artifact.model {
            Model::Additive(m) => (m.grid.columns.iter().map(|c| c.name.clone()).collect(), spreads(m)),
            model => (names, model.weights().to_vec()),
        };
        let mut all: Vec<Weight> = Vec::new();
        let mut zeros = 0;
        for (k, list) in lists.iter().enumerate() {
            for (i, value) in list.iter().enumerate() {
                if *value == 0.0 {
                    zeros += 1;
                    continue;
                }
                let class = (lists.len() > 1).then(|| classes.get(k).cloned().unwrap_or_else(|| k.to_string()));
                let feature = names.get(i).cloned().unwrap_or_else(|| format!("x{i}"));
                all.push(Weight { class, feature, value: *value });
            }
        }
        // The sort keeps the order of equals, so that the same model gives the same page.
        all.sort_by(|a, b| b.value.abs().total_cmp(&a.value.abs()));
        let more = all.len().saturating_sub(SHOWN);
        all.truncate(SHOWN);
        Weights { scores: lists.len(), features: names.len(), largest: all, more, zeros, noise: noise(artifact) }
    }
}

/// What the plan says about noise in the released numbers. Nothing is estimated: how a noisy step moves a weight depends on the records.
fn noise(artifact: &Artifact) -> NoiseLevel {
    let plan = &artifact.training.plan;
    let find = |key: &str| plan.iter().find(|p| p.0 == key).map(|p| p.1.as_str());
    let number = |key: &str| find(key).and_then(|v| v.parse::<f64>().ok()).filter(|x| *x > 0.0 && x.is_finite());
    let words = |text: String| NoiseLevel { deviation: None, text };
    let method = artifact.training.method.as_str();
    let several = find("steps").map_or("every step".to_string(), |n| format!("each of {n} steps"));
    if artifact.schema.task() != Task::Location
        && crate::method::find(method).is_some_and(|m| m.can.noise_at_the_end)
        && let Some(deviation) = number("noise, standard deviation")
    {
        return NoiseLevel {
            deviation: Some(deviation),
            text: format!(
                "Noise of standard deviation {} was added to every weight at the end. A bar inside of the band may be noise alone.",
                rounded(deviation)
            ),
        };
    }
    if let (Some(linear), Some(ridge)) = (number("linear term, standard deviation"), number("ridge")) {
        return words(format!(
            "The noise is a random linear term (standard deviation {}) inside of the objective. How far it moves a weight depends on \
             the curvature of the private records, so it is not known exactly; because of the ridge the standard deviation is in no \
             direction larger than about {}. No band is drawn.",
            rounded(linear),
            rounded(linear / ridge)
        ));
    }
    if let Some(step) = number("noise of a step, standard deviation") {
        return words(format!(
            "Noise of standard deviation {} was added to the sum of clipped gradients in {several}. What of it is left in a weight \
             depends on the path that training took, so it is not known; no band is drawn.",
            rounded(step)
        ));
    }
    let said: Vec<String> = plan.iter().filter(|p| p.0.contains("noise")).map(|p| format!("{} {}", p.0, p.1)).collect();
    if said.is_empty() {
        return words("The plan does not state the noise of single weights, so no band is drawn.".into());
    }
    words(format!(
        "The plan states the noise of what was released on the way ({}), not that of single weights, so no band is drawn.",
        said.join("; ")
    ))
}
