//! Laplacian smoothing of a vector of all trained weights: those of a layer on one ring, output after output, its biases on another. Which weights are neighbours is public.

use super::architecture::Network;
use super::program::Kind;
use crate::solve::laplacian::smooth;

impl Network {
    /// A gradient, or a noisy sum of gradients, smoothed.
    pub(crate) fn smoothed(&self, sum: &[f64], strength: f64) -> Vec<f64> {
        let mut out = sum.to_vec();
        for step in &self.program.steps[self.program.first_trained..] {
            match &step.kind {
                Kind::Sums(w) => {
                    let at = w.at - self.frozen();
                    let (weights, biases) = out[at..at + (w.inputs + 1) * w.outputs].split_at_mut(w.inputs * w.outputs);
                    // Inputs x outputs in memory; outputs x inputs around the ring.
                    let mut ring: Vec<f64> =
                        (0..w.outputs).flat_map(|o| weights.iter().skip(o).step_by(w.outputs).copied()).collect();
                    smooth(&mut ring, strength);
                    ring.chunks(w.inputs.max(1)).enumerate().for_each(|(o, own)| {
                        weights.iter_mut().skip(o).step_by(w.outputs).zip(own).for_each(|(w, x)| *w = *x);
                    });
                    smooth(biases, strength);
                }
                Kind::GroupNorm(norm) => {
                    let at = norm.at - self.frozen();
                    out[at..at + 2 * norm.real].chunks_mut(norm.real.max(1)).for_each(|own| smooth(own, strength));
                }
                _ => {}
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::network::{Layer, Network, Shape};
    use crate::solve::laplacian::smooth;

    /// Every weight lies on one ring; the ring of an output begins where that of the output before ends.
    #[test]
    fn rings_follow_the_layers() {
        let shape = Shape { height: 4, width: 4, channels: 1 };
        let layers: Vec<Layer> = ["convolution 4 3", "group_norm 2", "relu", "flatten", "dense 5", "tanh"]
            .iter()
            .map(|l| Layer::parse(l).unwrap())
            .collect();
        let network = Network::new(shape, &layers, 3, 1.0, 0.0).unwrap();
        let d = network.dimension();
        let sum: Vec<f64> = (0..d).map(|i| (i as f64 * 0.37).sin()).collect();
        assert_eq!(network.smoothed(&sum, 0.0), sum);
        let smoothed = network.smoothed(&sum, 2.0);
        assert!(smoothed.iter().zip(&sum).all(|(a, b)| a != b));
        // 9 inputs and 4 outputs of the convolution.
        let mut ring: Vec<f64> = (0..4).flat_map(|o| (0..9).map(move |i| (o, i))).map(|(o, i)| sum[i * 4 + o]).collect();
        smooth(&mut ring, 2.0);
        for o in 0..4 {
            for i in 0..9 {
                assert_eq!(smoothed[i * 4 + o], ring[o * 9 + i]);
            }
        }
        let mut biases = sum[36..40].to_vec();
        smooth(&mut biases, 2.0);
        assert_eq!(smoothed[36..40], biases);
        // Of frozen layers nothing is trained, and the scores are smoothed by themselves.
        let frozen = network.with_frozen_layers().unwrap();
        let tail = &sum[frozen.frozen()..];
        assert_eq!(frozen.smoothed(tail, 2.0), smoothed[frozen.frozen()..]);
    }
}
