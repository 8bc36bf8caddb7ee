//! Measures of a network on records, for private metrics and private tuning (`sums.rs` has the claim).
//!
//! Every unit is computed by itself, in working memory that was cleared, and its measures are clipped on the integers: nothing rests on how exact the scores are, so that the sum has
//! the grade `exact`.

use super::{Kind, Measure};
use crate::network::Network;
use privfit_kernel::{Blockwise, Clipping, UnitBlock};

/// What is summed over the records: lists that a `Blockwise` borrows.
#[derive(Debug)]
pub(crate) struct NetworkMeasures {
    kind: Kind,
    /// What is measured, the number of the loss, classes, how many numbers the loss has, these, and the words of the network.
    layout: Vec<usize>,
    prepared: Vec<f32>,
    labels: (f32, f32),
}

impl NetworkMeasures {
    /// Of a network with its weights in place.
    pub(crate) fn new(measure: &Measure, network: &Network, prepared: &[f32]) -> NetworkMeasures {
        // One example at a time needs little working memory.
        let mut network = network.clone();
        network.limit_at_once(1);
        let mut layout = vec![measure.kind as usize, measure.loss, measure.classes, measure.loss_parameters.len()];
        layout.extend(measure.loss_parameters.iter().map(|x| x.to_bits() as usize));
        layout.extend(network.words());
        let labels = if measure.classes == 0 { (-1.0, 1.0) } else { (0.0, measure.classes as f32 - 1.0) };
        NetworkMeasures { kind: measure.kind, layout, prepared: prepared.to_vec(), labels }
    }

    /// Sums of measures.
    pub(crate) fn blocks(&self) -> Blockwise<'_> {
        Blockwise {
            name: "measures of a network",
            dimension: self.kind.dimension(),
            error: 0.0,
            exact: true,
            clipping: Clipping::Norm,
            labels: self.labels,
            parameters: &self.prepared,
            layout: &self.layout,
            scratch: self.kind.dimension(),
            at_once: 1,
            norms,
            weighted,
        }
    }
}

/// Measures stand at the beginning of the working memory. The kernel clips them by their own length: this one only says that they are numbers.
fn norms(blocks: &Blockwise<'_>, units: &UnitBlock<'_>, scratch: &mut [f32], out: &mut [f32]) {
    let [kind, loss, classes, count, rest @ ..] = blocks.layout else { return };
    let (numbers, words) = rest.split_at(*count);
    let measures = &mut scratch[..blocks.dimension];
    let network = Network::known(words);
    let mut row = vec![0f32; network.inputs_of_a_row()];
    units.copy_rows(1.0, 0.0, &mut row);
    let scores: Vec<f64> = network.scores(blocks.parameters, &row).iter().map(|s| f64::from(*s)).collect();
    let loss_parameters: Vec<f64> = numbers.iter().map(|bits| f64::from_bits(*bits as u64)).collect();
    let measure = Measure { kind: Kind::of(*kind), loss: *loss, classes: *classes, loss_parameters: &loss_parameters };
    measures.fill(0.0);
    let mut labels = [f32::NAN];
    units.copy_labels(&mut labels);
    measure.each(&scores, labels[0], |i, value| measures[i] = value as f32);
    out.fill(1.0);
}

fn weighted(blocks: &Blockwise<'_>, _: &UnitBlock<'_>, weights: &[f32], scratch: &mut [f32], out: &mut [f32]) {
    if weights[0] > 0.0 {
        out.iter_mut().zip(&scratch[..blocks.dimension]).for_each(|(o, x)| *o += x);
    }
}
