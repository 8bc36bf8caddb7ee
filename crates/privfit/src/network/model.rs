//! A released network, and its scores for rows.

use super::architecture::Network;
use super::history::History;
use super::layer::{Layer, Shape};
use crate::data::encode::Row;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// Layers and weights of a network, and how rows enter it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkModel {
    /// Name of the loss.
    pub loss: String,
    /// Its numbers.
    pub loss_parameters: Vec<f64>,
    /// Number of classes; 0 for a number.
    pub classes: usize,
    /// Height, width and channels of what comes in.
    pub input: [usize; 3],
    /// What encoded numbers are multiplied by, and what is added to them.
    pub scale: f32,
    /// See `scale`.
    pub shift: f32,
    /// What the numbers of each channel (or all of them) are multiplied by after that, and then what is added to them: normalisation. Empty where inputs are not normalised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub normal: Vec<f32>,
    /// Layers before the scores, in words; a dense layer with a score for each class, or one for a number, follows.
    pub layers: Vec<String>,
    /// Weights: of each layer those of its inputs, one list of outputs after the other, then a bias for each output.
    pub weights: Vec<f64>,
    /// How training went, from released numbers alone; none in files that were written without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// The network with its weights in place.
    #[serde(skip)]
    ready: OnceLock<Option<(Network, Vec<f32>)>>,
}

impl Clone for NetworkModel {
    fn clone(&self) -> Self {
        NetworkModel {
            loss: self.loss.clone(),
            loss_parameters: self.loss_parameters.clone(),
            layers: self.layers.clone(),
            normal: self.normal.clone(),
            weights: self.weights.clone(),
            history: self.history.clone(),
            ready: OnceLock::new(),
            ..*self
        }
    }
}

impl PartialEq for NetworkModel {
    fn eq(&self, other: &Self) -> bool {
        let facts = |m: &Self| (m.loss.clone(), m.loss_parameters.clone(), m.classes, m.input, m.layers.clone());
        facts(self) == facts(other)
            && (self.scale, self.shift, &self.normal) == (other.scale, other.shift, &other.normal)
            && self.weights == other.weights
            && self.history == other.history
    }
}

impl NetworkModel {
    /// A network with weights; those that overflowed are 0.
    pub(crate) fn new(network: &Network, loss: &str, loss_parameters: Vec<f64>, weights: &[f64]) -> NetworkModel {
        NetworkModel {
            loss: loss.into(),
            loss_parameters,
            classes: network.classes(),
            input: [network.input.height, network.input.width, network.input.channels],
            scale: network.scale,
            shift: network.shift,
            normal: Vec::new(),
            layers: network.layers.iter().map(Layer::to_string).collect(),
            weights: weights.iter().map(|w| if w.is_finite() { *w } else { 0.0 }).collect(),
            history: None,
            ready: OnceLock::new(),
        }
    }

    /// With inputs that are normalised by these scales and shifts of the channels.
    pub(crate) fn with_normal(self, normal: Vec<f32>) -> NetworkModel {
        NetworkModel { normal, ready: OnceLock::new(), ..self }
    }

    /// With what was recorded of its training.
    pub(crate) fn with_history(self, history: Option<History>) -> NetworkModel {
        NetworkModel { history, ..self }
    }

    /// The network, if its parts fit together.
    pub fn network(&self) -> Option<&(Network, Vec<f32>)> {
        let make = || {
            let layers: Vec<Layer> = self.layers.iter().map(|l| Layer::parse(l)).collect::<Result<_, _>>().ok()?;
            let [height, width, channels] = self.input;
            let shape = Shape { height, width, channels };
            let small = height.checked_mul(width)?.checked_mul(channels)? <= 1 << 24 && channels > 0 && self.classes <= 1 << 20;
            let network = small.then(|| Network::new(shape, &layers, self.classes, self.scale, self.shift).ok()).flatten()?;
            let complete = network.dimension() == self.weights.len() && self.weights.iter().all(|w| w.is_finite());
            let complete = complete && self.history.as_ref().is_none_or(History::is_complete);
            let normal = self.normal.is_empty() || shape.can_be_normalised(&self.normal);
            let complete = complete && normal && self.normal.iter().all(|x| x.is_finite());
            complete.then(|| {
                let prepared = network.prepare_normal(&self.weights, &self.normal);
                (network, prepared)
            })
        };
        self.ready.get_or_init(make).as_ref()
    }

    /// Scores of a model: one for each class, or one.
    pub fn outputs(&self) -> usize {
        self.classes.max(1)
    }

    /// Scores of an encoded row; the constant at its end is left out.
    pub fn scores(&self, row: &Row, out: &mut Vec<f64>) {
        let Some((network, prepared)) = self.network() else {
            out.resize(self.outputs(), 0.0);
            return;
        };
        let mut x = vec![0f32; network.input.size()];
        x.iter_mut().zip(&row.dense).for_each(|(x, own)| *x = *own as f32);
        for (j, own) in &row.pairs {
            if let Some(x) = x.get_mut(*j as usize) {
                *x = *own as f32;
            }
        }
        out.extend(network.scores(prepared, &x).iter().map(|s| f64::from(*s)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::Point;
    use super::*;

    /// Files of networks without a history are read as before, and a history that is none makes a file that is damaged.
    #[test]
    fn a_history_is_optional_and_checked() {
        let layers = [Layer::parse("dense 2").unwrap(), Layer::Tanh];
        let network = Network::new(Shape::flat(3), &layers, 2, 1.0, 0.0).unwrap();
        let model = NetworkModel::new(&network, "softmax", vec![], &network.initial());
        let text = serde_json::to_string(&model).unwrap();
        assert!(!text.contains("history"));
        let read: NetworkModel = serde_json::from_str(&text).unwrap();
        assert!(read == model && read.network().is_some());
        let point = Point { step: 2, noisy: 1.0, signal: 0.5, learning_rate: 0.1, moved: 0.2 };
        let history = |step| History { steps: 2, noise: 0.8, points: vec![Point { step, ..point }] };
        let with = model.clone().with_history(Some(history(2)));
        let read: NetworkModel = serde_json::from_str(&serde_json::to_string(&with).unwrap()).unwrap();
        assert!(read == with && read != model && read.network().is_some());
        assert!(model.with_history(Some(history(3))).network().is_none());
    }

    /// Scales and shifts change scores as the inputs themselves would, stand in the file, and are checked; files without them are read as before.
    #[test]
    fn normalised_inputs_are_in_the_file() {
        let layers: Vec<Layer> = ["convolution 4 3 padding 1", "tanh"].iter().map(|l| Layer::parse(l).unwrap()).collect();
        let shape = Shape { height: 3, width: 2, channels: 2 };
        let network = Network::new(shape, &layers, 2, 3.0, 0.0).unwrap();
        let plain = NetworkModel::new(&network, "softmax", vec![], &network.initial());
        let text = serde_json::to_string(&plain).unwrap();
        assert!(!text.contains("normal"));
        let normal = plain.clone().with_normal(vec![2.0, 0.5, -0.25, 0.125]);
        let read: NetworkModel = serde_json::from_str(&serde_json::to_string(&normal).unwrap()).unwrap();
        assert!(read == normal && read.clone() == normal && read != plain);
        let scores = |model: &NetworkModel, row: &[f64]| {
            let mut out = Vec::new();
            model.scores(&Row { dense: row.to_vec(), ..Row::default() }, &mut out);
            out
        };
        let row: Vec<f64> = (0..12).map(|i| f64::from(i) / 32.0 - 0.125).collect();
        // By hand: 3 x 2 - 0.25 and 3 x / 2 + 0.125, divided by the scale of the plain network.
        let by_hand: Vec<f64> =
            row.iter().enumerate().map(|(i, x)| if i % 2 == 0 { 2.0 * x - 0.25 / 3.0 } else { 0.5 * x + 0.125 / 3.0 }).collect();
        let (found, expected) = (scores(&read, &row), scores(&plain, &by_hand));
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {expected:?}");
        assert!((found[0] - scores(&plain, &row)[0]).abs() > 1e-3);
        for damaged in [vec![1.0; 3], vec![1.0; 6], vec![1.0, 1.0, f32::NAN, 0.0]] {
            assert!(plain.clone().with_normal(damaged).network().is_none());
        }
    }

    /// Layers lie one after the other, and their weights are all there are.
    #[test]
    fn layers_have_their_places() {
        let words = ["convolution 4 3 stride 2 padding 1", "group_norm 2", "relu", "max_pool 2"];
        let layers: Vec<Layer> = words.iter().map(|l| Layer::parse(l).unwrap()).collect();
        let network = Network::new(Shape { height: 8, width: 6, channels: 3 }, &layers, 5, 1.0, 0.0).unwrap();
        let model = NetworkModel::new(&network, "softmax", vec![], &network.initial());
        let placed: Vec<(String, String, usize)> =
            model.placed().unwrap().iter().map(|l| (l.layer.to_string(), l.output.to_string(), l.weights.len())).collect();
        let found: Vec<(&str, &str, usize)> = placed.iter().map(|l| (l.0.as_str(), l.1.as_str(), l.2)).collect();
        assert_eq!(
            found,
            [
                ("convolution 4 3 stride 2 padding 1", "4 x 3 x 4", 112),
                ("group_norm 2", "4 x 3 x 4", 8),
                ("relu", "4 x 3 x 4", 0),
                ("max_pool 2 stride 2", "2 x 1 x 4", 0),
                ("flatten", "8", 0),
                ("dense 5", "5", 45),
            ]
        );
        let csv = model.weights_csv().unwrap();
        assert_eq!(csv.lines().count(), 1 + 112 + 8 + 45);
        assert!(csv.contains("\n2,group_norm 2,scale,,3,1\n2,group_norm 2,offset,,0,0\n"), "{csv}");
    }
}
