//! Training on public rows, without noise and without a clip: plain steps of Adam over all layers.
//!
//! *Claim.* No private record is in it: rows, labels, layers and the generator are public. The same rows give the same weights on one machine, whatever the number of threads: a batch is divided
//! into groups of examples by their place in it, and their sums are added in that order.

use super::architecture::Network;
use super::pass::{backward, forward, weighted};

/// Examples of a step.
const BATCH: usize = 128;
/// Passes over the rows; few rows are seen more often, and many less, within these numbers of steps.
const PASSES: usize = 10;
const LEAST_STEPS: usize = 1000;
const MOST_STEPS: usize = 10_000;
const MOST_PASSES: usize = 200;
/// Length of a step until half of them are done; it shrinks to zero from there.
const LEARNING_RATE: f64 = 1e-3;
/// Parts of the moments that Adam keeps, and what it divides by at least.
const ADAM: [f64; 2] = [0.9, 0.999];
const LEAST: f64 = 1e-8;

/// Labelled rows that are public: inputs of a network one after the other, and their labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublicExamples {
    /// Encoded numbers of all rows, without a constant.
    pub rows: Vec<f32>,
    /// The number of a class, or a number from -1 to 1, for each row.
    pub labels: Vec<f32>,
}

/// Steps for so many rows: a public number.
pub(crate) fn steps(rows: usize) -> u64 {
    let batch = BATCH.min(rows.max(1));
    let wanted = (PASSES * rows / batch).clamp(LEAST_STEPS, MOST_STEPS);
    wanted.min(MOST_PASSES * rows / batch).max(1) as u64
}

/// The weights of a network after training on public rows; none if they are no numbers any more. `normal` are scales and shifts of inputs.
pub(crate) fn train(
    network: &Network,
    normal: &[f32],
    examples: &PublicExamples,
    threads: usize,
    progress: &dyn Fn(),
) -> Option<Vec<f64>> {
    let count = examples.labels.len();
    let (batch, steps) = (BATCH.min(count), steps(count));
    let mut weights = network.initial();
    let (mut first, mut second) = (vec![0f64; weights.len()], vec![0f64; weights.len()]);
    let mut order = Shuffled::new(count);
    for step in 1..=steps {
        let own: Vec<usize> = (0..batch).map(|_| order.next()).collect();
        let prepared = network.prepare_normal(&weights, normal);
        let gradient = mean_gradient(network, &prepared, examples, &own, threads);
        let rate = LEARNING_RATE * (2.0 * (steps - step + 1) as f64 / steps as f64).min(1.0);
        let [one, two] = ADAM.map(|keep| 1.0 - keep.powi(step.min(1 << 20) as i32));
        for (((w, m), v), g) in weights.iter_mut().zip(&mut first).zip(&mut second).zip(gradient) {
            *m = ADAM[0] * *m + (1.0 - ADAM[0]) * g;
            *v = ADAM[1] * *v + (1.0 - ADAM[1]) * g * g;
            *w -= rate * *m / one / ((*v / two).sqrt() + LEAST);
        }
        progress();
    }
    weights.iter().all(|w| w.is_finite()).then_some(weights)
}

/// The mean gradient of some examples.
fn mean_gradient(network: &Network, prepared: &[f32], examples: &PublicExamples, own: &[usize], threads: usize) -> Vec<f64> {
    let groups: Vec<&[usize]> = own.chunks(network.program.at_once).collect();
    let share = groups.len().div_ceil(threads.clamp(1, groups.len().max(1)));
    let work = |groups: &[&[usize]]| -> Vec<Vec<f32>> {
        let mut scratch = vec![0f32; network.program.scratch];
        groups.iter().map(|group| group_sum(network, prepared, examples, group, &mut scratch)).collect()
    };
    let sums: Vec<Vec<f32>> = std::thread::scope(|scope| {
        let (work, mut parts) = (&work, groups.chunks(share.max(1)));
        let mine = parts.next().unwrap_or_default();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let mut sums = work(mine);
        // A thread fails only where this one would.
        others.into_iter().for_each(|other| sums.extend(other.join().unwrap_or_default()));
        sums
    });
    let mut mean = vec![0f64; network.trained()];
    sums.iter().for_each(|sum| mean.iter_mut().zip(sum).for_each(|(m, s)| *m += f64::from(*s) / own.len() as f64));
    mean
}

/// The sum of the gradients of a few examples.
fn group_sum(network: &Network, prepared: &[f32], examples: &PublicExamples, group: &[usize], scratch: &mut [f32]) -> Vec<f32> {
    let size = network.input.size();
    let rows: Vec<f32> = group.iter().flat_map(|e| &examples.rows[e * size..(e + 1) * size]).copied().collect();
    let labels: Vec<f32> = group.iter().map(|e| examples.labels[*e]).collect();
    let mut sum = vec![0f32; network.trained()];
    let inputs = network.inputs(prepared, &rows);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        unsafe { wide(network, prepared, &inputs, &labels, scratch, &mut sum) };
        return sum;
    }
    plain(network, prepared, &inputs, &labels, scratch, &mut sum);
    sum
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn wide(network: &Network, prepared: &[f32], inputs: &[f32], labels: &[f32], scratch: &mut [f32], sum: &mut [f32]) {
    plain(network, prepared, inputs, labels, scratch, sum);
}

#[inline(always)]
fn plain(network: &Network, prepared: &[f32], inputs: &[f32], labels: &[f32], scratch: &mut [f32], sum: &mut [f32]) {
    let mut norms = vec![0f32; labels.len()];
    network.enter(inputs, scratch);
    forward(&network.program, prepared, scratch, labels.len());
    backward(&network.program, prepared, network.goal, labels, scratch, &mut norms);
    weighted(&network.program, &vec![1.0; labels.len()], scratch, sum);
}

/// Numbers of examples in an order that a public generator gives, a new one for each pass.
struct Shuffled {
    order: Vec<usize>,
    at: usize,
    state: u64,
}

impl Shuffled {
    fn new(count: usize) -> Shuffled {
        Shuffled { order: (0..count).collect(), at: count, state: 0x5EED }
    }

    fn next(&mut self) -> usize {
        if self.at == self.order.len() {
            for i in (1..self.order.len()).rev() {
                let other = self.below(i + 1);
                self.order.swap(i, other);
            }
            self.at = 0;
        }
        self.at += 1;
        self.order[self.at - 1]
    }

    /// SplitMix64.
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Layer, Shape};

    /// Points in the plane whose class no line tells: the sign of the product.
    fn examples(count: usize) -> PublicExamples {
        let mut out = PublicExamples::default();
        let mut random = Shuffled::new(0);
        for _ in 0..count {
            let [a, b] = [0, 1].map(|_| random.below(2001) as f32 / 1000.0 - 1.0);
            out.rows.extend([a, b]);
            out.labels.push(f32::from(u8::from(a * b > 0.0)));
        }
        out
    }

    fn network(layers: &[&str]) -> Network {
        let layers: Vec<Layer> = layers.iter().map(|l| Layer::parse(l).unwrap()).collect();
        Network::new(Shape::flat(2), &layers, 2, 1.5, 0.0).unwrap()
    }

    /// Layers learn what a linear model can't, and their weights are the same with any number of threads.
    #[test]
    fn public_rows_teach_layers() {
        let (network, examples) = (network(&["dense 24", "tanh", "dense 12", "tanh"]), examples(2000));
        let trained = |threads: usize| train(&network, &[], &examples, threads, &|| {}).unwrap();
        let weights = trained(1);
        assert!(weights.iter().zip(trained(3)).all(|(a, b)| a.to_bits() == b.to_bits()));
        let right = |weights: &[f64]| {
            let scores = network.scores(&network.prepare(weights), &examples.rows);
            let ok = scores.chunks(2).zip(&examples.labels).filter(|(s, l)| (s[1] > s[0]) == (**l == 1.0)).count();
            ok as f64 / examples.labels.len() as f64
        };
        assert!(right(&weights) > 0.95 && right(&network.initial()) < 0.75, "{}", right(&weights));
    }

    /// Every row is seen once in a pass, and the number of steps is bounded at both ends.
    #[test]
    fn passes_are_whole() {
        let mut order = Shuffled::new(50);
        for _ in 0..3 {
            let mut pass: Vec<usize> = (0..50).map(|_| order.next()).collect();
            pass.sort_unstable();
            assert_eq!(pass, (0..50).collect::<Vec<_>>());
        }
        assert_eq!([1, 100, 1000, 60_000, 10_000_000].map(steps), [200, 200, 1000, 4687, 10_000]);
        // Numbers that overflow give no weights.
        let huge = PublicExamples { rows: vec![f32::MAX; 20], labels: vec![0.0; 10] };
        assert_eq!(train(&network(&["dense 3", "relu"]), &[], &huge, 1, &|| {}), None);
    }
}
