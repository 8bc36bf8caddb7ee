//! The run of a program: releases in their order, and what is computed from them.

use super::basis::{self, Basis, KnownColumn};
use super::program::{Action, RESIDUALS};
use super::target;
use super::trees::{Forest, PublicRandom};
use super::{Additive, MOMENTUM};
use crate::additive::{AdditiveModel, Cells, Curve, PairTerm, Question, TreeTerm, spread};
use crate::error::Result;
use crate::loss::Link;
use crate::schema::Task;
use privfit_kernel::{
    AllPairs, Batch, CellPoint, CellRows, CellTree, Gaussian, Loss, MOST_GROUPS, PairColumn, Run, leaf_feature,
};

/// Longest step of one score, and of several.
const LONGEST_STEP: [f64; 2] = [18.0, 9.0];
/// How far a batch of trees goes to the best leaves, at the most: 2 would be as far beyond them.
const LONGEST_LEAF: f64 = 1.5;
/// Standard deviations of its noise by which a pair must stand out.
const STANDS_OUT: f64 = 3.0;
/// The last part of the steps, whose weights are averaged.
const AVERAGED: f64 = 0.2;
/// What the scores of several classes spread over, for the noise in them: each has its own.
const SEVERAL: f64 = 1.25;
/// Times its noise from which on the mean square of a target says less about its deviation than a quantile does.
const UNSURE: f64 = 3.0;
/// Least clip of a residual.
pub(super) const LEAST_CLIP: f64 = 0.01;

/// What is known on the way: released or computed from what was, but for the factors of rows, which the kernel keeps to itself.
pub(super) struct State<'d> {
    everyone: Batch<'d>,
    known: Vec<KnownColumn>,
    /// Where scores begin, and what they spread over.
    offsets: Vec<f64>,
    scale: f64,
    /// Estimated variance of a target from 0 to 1.
    square: f64,
    /// Second derivative of the loss at the average row.
    pub(super) curvature: f64,
    pub(super) clip: f64,
    rows: Option<CellRows>,
    pub(super) chosen: Vec<(usize, usize, f64)>,
    /// Whether pairs have joined, be it none.
    paired: bool,
    /// What features of columns are multiplied by, after a look at which of them say something.
    pub(super) emphasis: Vec<f64>,
    pub(super) weights: Vec<f64>,
    moves: Vec<f64>,
    sum: Vec<f64>,
    pub(super) summed: f64,
    step: u64,
    /// The most that the variance of the noise in each weight of a score can be, after the last step.
    pub(super) variance: Vec<f64>,
    /// The features of steps, one basis after the other.
    pub(super) eras: Vec<Era>,
    /// The rate of each step, and the noise that it put into each weight's move, as a standard deviation.
    pub(super) noise: Vec<(f64, f64)>,
}

/// Steps with the same features.
pub(super) struct Era {
    pub(super) first: usize,
    pub(super) scales: Vec<f64>,
    pub(super) squares: Vec<f64>,
}

impl Additive {
    fn loss_at(&self, clip: f64) -> Loss {
        self.loss.clipped(clip)
    }

    /// Noise of a step over its clip, for all steps together.
    fn steps_noise(&self) -> f64 {
        self.mechanisms.step / (self.program.steps() as f64).sqrt()
    }

    pub(super) fn train(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<AdditiveModel> {
        let mut state = State {
            everyone: run.everyone()?,
            known: Vec::new(),
            offsets: vec![0.0; self.program.outputs],
            scale: 1.0,
            square: 0.0,
            curvature: 0.25,
            clip: self.loss.lipschitz(),
            rows: None,
            chosen: Vec::new(),
            paired: false,
            emphasis: Vec::new(),
            weights: Vec::new(),
            moves: Vec::new(),
            sum: Vec::new(),
            summed: 0.0,
            step: 0,
            variance: Vec::new(),
            eras: Vec::new(),
            noise: Vec::new(),
        };
        let mut trees = Vec::new();
        for action in &self.program.actions {
            match action {
                Action::Counts => self.count(run, &mut state)?,
                Action::Target => self.target(run, &mut state)?,
                Action::Residuals => self.residuals(run, &mut state)?,
                Action::Steps(n) | Action::PairSteps(n) => self.descend(run, &mut state, *n, progress)?,
                Action::Screen => self.screen(run, &mut state)?,
                Action::Emphasis => {
                    self.emphasise(&mut state);
                    self.rebase(&mut state)?;
                }
                Action::Leaves(n) => trees = self.grow(run, &mut state, *n, progress)?,
            }
        }
        self.model(&mut state, trees)
    }

    fn count(&self, run: &mut Run<'_>, state: &mut State<'_>) -> Result<()> {
        let (counts, mechanism) = (self.grid.counts(), &self.mechanisms.counts);
        let noisy = run.at(mechanism, |run, scale| {
            let noise = run.draw(&scale, counts.iter().sum())?;
            let sum = state.everyone.cell_counts(&noise, &counts)?;
            run.release(noise, &sum)
        })?;
        let deviation = mechanism.standard_deviation();
        let mut rest = noisy.as_slice();
        for (column, count) in self.grid.columns.iter().zip(counts) {
            let (own, after) = rest.split_at(count);
            rest = after;
            state.known.push(KnownColumn::new(column, own, deviation));
        }
        self.rebase(state)
    }

    /// Changes the features, and the weights with them so that no curve changes.
    fn rebase(&self, state: &mut State<'_>) -> Result<()> {
        let dimension = self.program.dimension(&self.grid, !state.chosen.is_empty() || state.paired);
        let Basis { features, scales, squares } = basis::features(&state.known, &state.emphasis, &state.chosen, dimension)?;
        let old = state.eras.last().map_or(&[][..], |era| &era.scales);
        let change = |weights: &[f64]| -> Vec<f64> {
            let mut out = vec![0.0; dimension * self.program.outputs];
            for (new, own) in out.chunks_mut(dimension).zip(weights.chunks(old.len().max(1))) {
                for (((n, w), was), is) in new.iter_mut().zip(own).zip(old).zip(&scales).take(old.len() - 1) {
                    *n = if *is > 0.0 { w * was / is } else { 0.0 };
                }
                new[dimension - 1] = own[old.len() - 1];
            }
            out
        };
        (state.weights, state.moves) = (change(&state.weights), change(&state.moves));
        state.sum = vec![0.0; state.weights.len()];
        state.eras.push(Era { first: state.noise.len(), scales, squares });
        state.rows = Some(state.everyone.cell_rows(features)?);
        Ok(())
    }

    fn target(&self, run: &mut Run<'_>, state: &mut State<'_>) -> Result<()> {
        let contribution = target::contribution(self.task, self.program.outputs);
        let sums = run.at(&self.mechanisms.target, |run, scale| {
            let noise = run.draw(&scale, contribution.dimension)?;
            let sum = state.everyone.sum(&noise, &contribution)?;
            run.release(noise, &sum)
        })?;
        let error = self.mechanisms.target.standard_deviation() / self.rows;
        let odds = |p: f64| (p / (1.0 - p)).ln();
        if self.program.outputs > 1 {
            let shares = super::histogram::shares(&sums, self.mechanisms.target.standard_deviation());
            let mean = shares.iter().map(|s| s.ln()).sum::<f64>() / shares.len() as f64;
            state.offsets = shares.iter().map(|s| s.ln() - mean).collect();
            state.scale = SEVERAL;
            state.curvature = chance_variance(&state.offsets);
            return Ok(());
        }
        let mean = 0.5 * (1.0 + sums[0] / self.rows);
        match self.task {
            Task::Number => {
                let p = mean.clamp(0.02, 0.98);
                // Of a target from 0 to 1; the square of a mean with noise is too large by the noise.
                state.square = 0.25 * (sums[1] / self.rows - (sums[0] / self.rows).powi(2) + error * error);
                // Where scores begin, what they spread over for a deviation of 1, and the second derivative there.
                let (begin, scale, curvature) = match self.link {
                    Link::Share => (odds(p), 1.0 / (p * (1.0 - p)), p * (1.0 - p)),
                    Link::Log => (p.ln(), 1.0 / p, p),
                    _ => (2.0 * p - 1.0, 2.0, 1.0),
                };
                (state.offsets, state.scale, state.curvature) = (vec![begin], scale, curvature.min(self.loss.smoothness()));
            }
            _ => {
                let least = (1.0 / self.signal).clamp(0.002, 0.4);
                (state.offsets, state.scale) = (vec![odds(mean.clamp(least, 1.0 - least))], 2.0);
                state.curvature = chance_variance(&state.offsets);
            }
        }
        Ok(())
    }

    fn point<'s>(state: &'s State<'_>) -> CellPoint<'s> {
        CellPoint { weights: &state.weights, offsets: &state.offsets }
    }

    fn rows<'s>(state: &'s State<'_>) -> privfit_kernel::Result<&'s CellRows> {
        let what = "the counts of cells come first";
        state.rows.as_ref().ok_or(privfit_kernel::Error::Mismatch { what })
    }

    /// The clip that leaves the wanted part of the residuals as they are. Before trees it looks at the weights of the last step, then at their average.
    fn residuals(&self, run: &mut Run<'_>, state: &mut State<'_>) -> Result<()> {
        self.average(state);
        let edges: Vec<f64> = (1..RESIDUALS).rev().map(|i| 0.8f64.powi(i as i32)).collect();
        let scores = state.everyone.row_scores(Additive::rows(state)?, Additive::point(state), 1)?;
        let counts = run.at(&self.mechanisms.residuals, |run, scale| {
            let noise = run.draw(&scale, RESIDUALS)?;
            let sum = state.everyone.residual_counts(&noise, &scores, &self.loss, &edges)?;
            run.release(noise, &sum)
        })?;
        let place = quantile(&counts, self.settings.unclipped * self.rows, self.rows);
        let clip = edges.get(place).copied().unwrap_or(1.0);
        if state.step == 0 {
            // The square of the deviation that these residuals have: either from the mean square of the target, whose noise is known, or from the quantile. Most is taken from the
            // one that is known better, and by Markov's inequality it is not below what rows beyond the quantile have.
            let unit = if self.link == Link::Identity { 0.5 } else { 1.0 };
            let seen = (unit * clip).powi(2);
            let noise = UNSURE * 0.25 * self.mechanisms.target.standard_deviation() / self.rows;
            let part = seen * seen / (seen * seen + noise * noise);
            let least = (1.0 - self.settings.unclipped) * seen;
            state.scale *= (part * state.square + (1.0 - part) * seen).max(least).sqrt().clamp(0.02, 0.5);
        }
        state.clip = clip.clamp(LEAST_CLIP, self.loss.lipschitz());
        Ok(())
    }

    fn learning_rate(&self, state: &State<'_>) -> f64 {
        let steps = self.program.steps() as f64;
        let noise = self.settings.smoothness * state.scale * (self.signal / 1000.0).sqrt().clamp(0.4, 1.0);
        let longest = LONGEST_STEP[usize::from(self.program.outputs > 1)];
        // A loss may be more curved than the logistic one.
        let steepest = match self.link {
            Link::Log => (4.0 * state.curvature).min(1.0),
            Link::Identity => self.loss.smoothness(),
            _ => 0.25,
        };
        let longest = longest * 0.25 / steepest.max(0.05);
        (noise * self.rows * (1.0 - MOMENTUM) / (self.steps_noise() * steps * state.clip)).min(longest)
    }

    fn descend(&self, run: &mut Run<'_>, state: &mut State<'_>, count: u64, progress: &dyn Fn()) -> Result<()> {
        let mechanism = Gaussian::for_gradients(state.clip, self.mechanisms.step)?;
        let loss = self.loss_at(state.clip);
        let (longest, total) = (self.learning_rate(state), self.program.steps() as f64);
        for _ in 0..count {
            let dimension = state.weights.len();
            let gradient = run.at(&mechanism, |run, scale| {
                let noise = run.draw(&scale, dimension)?;
                let sum = state.everyone.cell_gradient(&noise, Additive::rows(state)?, Additive::point(state), &loss)?;
                run.release(noise, &sum)
            })?;
            let part = state.step as f64 / total;
            // Full steps in the first half, then shorter ones.
            let rate = longest * if part < 0.5 { 1.0 } else { 1.0 - 0.9 * (2.0 * part - 1.0) };
            for ((w, m), g) in state.weights.iter_mut().zip(&mut state.moves).zip(&gradient) {
                *m = MOMENTUM * *m - rate * g / self.rows;
                *w += *m;
            }
            state.step += 1;
            state.noise.push((rate, rate * mechanism.standard_deviation() / self.rows));
            if state.step as f64 > (1.0 - AVERAGED) * total {
                state.summed += 1.0;
                state.sum.iter_mut().zip(&state.weights).for_each(|(s, w)| *s += w);
            }
            progress();
        }
        Ok(())
    }

    /// The average of the last steps, without what the noise alone explains, is the answer.
    fn average(&self, state: &mut State<'_>) {
        if state.summed > 0.0 && state.step == self.program.steps() {
            state.weights = state.sum.iter().map(|s| s / state.summed).collect();
            self.shrink(state);
            (state.sum, state.summed) = (state.weights.clone(), 0.0);
        }
    }

    /// Chooses the pairs whose products stand out of the noise, and makes room for them.
    fn screen(&self, run: &mut Run<'_>, state: &mut State<'_>) -> Result<()> {
        let columns: Vec<PairColumn> = state.known.iter().map(|c| c.screened(self.grid.columns.len())).collect();
        let all = AllPairs::new(&columns)?;
        let mechanism = Gaussian::for_gradients(state.clip, self.mechanisms.screen)?;
        let scores = state.everyone.row_scores(Additive::rows(state)?, Additive::point(state), 1)?;
        let loss = self.loss_at(state.clip);
        let products = run.at(&mechanism, |run, scale| {
            let noise = run.draw(&scale, all.dimension())?;
            let sum = state.everyone.pair_gradients(&noise, &scores, &all, &loss)?;
            run.release(noise, &sum)
        })?;
        let variance = mechanism.standard_deviation().powi(2);
        let mut rest = products.as_slice();
        let mut found: Vec<(f64, (usize, usize, f64))> = Vec::new();
        for (i, j) in all.pairs() {
            let (own, after) = rest.split_at(all.products(i, j));
            rest = after;
            let energy = own.iter().map(|g| g * g).sum::<f64>() - own.len() as f64 * variance;
            let deviations = energy / (variance * (2.0 * own.len() as f64).sqrt());
            if deviations > STANDS_OUT {
                found.push((deviations, (i, j, energy.powf(0.25))));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        state.chosen = found.into_iter().take(self.program.pairs).map(|f| f.1).collect();
        state.paired = true;
        self.emphasise(state);
        self.rebase(state)
    }

    /// How far a column moves scores: the root of the mean square of its curve.
    fn lengths(&self, state: &State<'_>) -> Result<Vec<f64>> {
        let features = Additive::rows(state)?.features();
        let mut out = vec![0.0; self.grid.columns.len()];
        for own in state.weights.chunks(features.dimension()) {
            let (curves, _) = features.curves(own);
            for ((o, curve), column) in out.iter_mut().zip(&curves).zip(&state.known) {
                *o += spread(curve, &column.shares).powi(2);
            }
            for ((i, j, _), curve) in state.chosen.iter().zip(&curves[self.grid.columns.len()..]) {
                let square = curve.iter().map(|x| x * x).sum::<f64>() / curve.len().max(1) as f64;
                out[*i] += square;
                out[*j] += square;
            }
        }
        Ok(out.iter().map(|square| square.sqrt()).collect())
    }

    fn grow(&self, run: &mut Run<'_>, state: &mut State<'_>, batches: u64, progress: &dyn Fn()) -> Result<Vec<TreeTerm>> {
        self.average(state);
        let k = self.program.outputs;
        let mechanism = Gaussian::for_gradients(state.clip, self.mechanisms.leaves)?;
        let loss = self.loss_at(state.clip);
        let mut scores = state.everyone.row_scores(Additive::rows(state)?, Additive::point(state), k)?;
        let features = Additive::rows(state)?.features();
        let (curves, _) = features.curves(&state.weights[..features.dimension()]);
        let forest = Forest::new(&state.known, &self.lengths(state)?, &curves);
        let mut random = PublicRandom(run.public_word()?);
        let (b, leaves) = (self.program.batch, 1usize << self.program.depth);
        // Noise of one leaf's sum, whatever the batch.
        let noise = mechanism.standard_deviation() / leaf_feature(b);
        let shorter = |batch: u64| {
            let part = batch as f64 / batches as f64;
            if part < 0.5 { 1.0 } else { 1.0 - 0.9 * (2.0 * part - 1.0) }
        };
        let squares: f64 = (0..batches).map(|i| b as f64 * shorter(i).powi(2)).sum();
        let wanted = self.settings.tree_smoothness * state.scale / (noise * squares.sqrt());
        // However many rows a leaf holds: the loss is at most so much curved.
        let curved = match (self.link, k) {
            (Link::Identity | Link::Log, _) => state.curvature,
            (_, 1) => 0.25,
            _ => 0.5,
        };
        let longest = LONGEST_LEAF / (b as f64 * curved * self.rows);
        let rate =
            |tree: &CellTree| -> Vec<f64> { forest.most(tree).iter().map(|most| wanted.min(longest / most.max(1e-9))).collect() };
        let mut out = Vec::new();
        for batch in 0..batches {
            let trees: Vec<_> = (0..b).map(|_| forest.tree(self.program.depth, &mut random)).collect();
            let sums = run.at(&mechanism, |run, scale| {
                let noise = run.draw(&scale, b * leaves * k)?;
                let sum = state.everyone.leaf_sums(&noise, &scores, &trees, &loss)?;
                run.release(noise, &sum)
            })?;
            let rates: Vec<f64> = trees.iter().flat_map(|tree| rate(tree).repeat(k)).collect();
            let values: Vec<f64> = sums.iter().zip(rates).map(|(s, rate)| -rate * shorter(batch) * s / leaf_feature(b)).collect();
            state.everyone.add_leaves(&mut scores, &trees, &values)?;
            for (tree, own) in trees.iter().zip(values.chunks(leaves * k)) {
                let questions = tree.splits.iter().map(|s| Question { column: s.column, yes: Cells::of(&s.yes) }).collect();
                out.push(TreeTerm { questions, scores: own.chunks(leaves).map(finite).collect() });
            }
            progress();
        }
        Ok(out)
    }

    fn model(&self, state: &mut State<'_>, trees: Vec<TreeTerm>) -> Result<AdditiveModel> {
        self.average(state);
        let features = Additive::rows(state)?.features();
        let mut offsets = state.offsets.clone();
        let columns = self.grid.columns.len();
        let (mut curves, mut pairs) = (vec![Vec::new(); columns], vec![Vec::new(); state.chosen.len()]);
        for (own, offset) in state.weights.chunks(features.dimension()).zip(&mut offsets) {
            let (all, constant) = features.curves(own);
            *offset += constant;
            for (i, curve) in all.into_iter().enumerate() {
                if i >= columns {
                    pairs[i - columns].push(finite(&curve));
                    continue;
                }
                // Around the average row.
                let mean: f64 = curve.iter().zip(&state.known[i].shares).map(|(x, s)| x * s).sum();
                *offset += mean;
                curves[i].push(finite(&curve.iter().map(|x| x - mean).collect::<Vec<_>>()));
            }
        }
        let mut noise = features.deviations(&state.variance).into_iter();
        let curve = |(scores, known): (Vec<Vec<f64>>, &KnownColumn)| Curve {
            shares: known.shares.clone(),
            scores,
            noise: finite(&noise.next().unwrap_or_default()),
        };
        let pair = |(scores, (i, j, _)): (Vec<Vec<f64>>, &(usize, usize, f64))| PairTerm {
            columns: [*i, *j],
            groups: [state.known[*i].groups(MOST_GROUPS), state.known[*j].groups(MOST_GROUPS)],
            scores,
        };
        Ok(AdditiveModel {
            loss: self.loss_name.into(),
            loss_parameters: self.loss.parameters().to_vec(),
            classes: self.task.classes(),
            offsets: finite(&offsets),
            grid: self.grid.clone(),
            curves: curves.into_iter().zip(&state.known).map(curve).collect(),
            pairs: pairs.into_iter().zip(&state.chosen).map(pair).collect(),
            trees,
            edits: Vec::new(),
        })
    }
}

/// The interval of a quantile, from noisy counts of so many rows. What lies below an edge is counted from both ends, either counts for more where it has
/// fewer intervals, and edges with less than what is wanted are counted: the first one that has as much would often have it by its noise.
fn quantile(counts: &[f64], wanted: f64, rows: f64) -> usize {
    let (all, mut below) = (counts.iter().sum::<f64>(), 0.0);
    let less = |(i, count): (usize, &f64)| {
        below += count;
        // From above: what is not in the intervals after this one.
        let above = rows - (all - below);
        let part = (i + 1) as f64 / counts.len() as f64;
        (1.0 - part) * below + part * above < wanted
    };
    counts.iter().enumerate().map(less).filter(|less| *less).count()
}

/// Variance of a class by the chances of the average row, which is the second derivative of the loss there.
fn chance_variance(offsets: &[f64]) -> f64 {
    let p = match offsets {
        [one] => 1.0 / (1.0 + (-one).exp()),
        several => 1.0 / several.len() as f64,
    };
    p * (1.0 - p)
}

/// Numbers that overflowed are released ones; a model file holds finite ones.
fn finite(numbers: &[f64]) -> Vec<f64> {
    numbers.iter().map(|x| if x.is_finite() { *x } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    /// Exact counts give the interval by definition; with noise of a fifth of all rows in each of 25 counts it is nearer to the truth than the first edge with enough rows.
    #[test]
    fn quantiles_stay_near_with_noise() {
        let exact = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(
            [5.0, 10.0, 11.0, 30.0, 60.0, 61.0, 100.0].map(|wanted| quantile(&exact, wanted, 100.0)),
            [0, 0, 1, 1, 2, 3, 3]
        );
        let mut state = 1u64;
        let mut noise = || {
            // Irwin and Hall: twelve uniform numbers.
            let sum: f64 = (0..12)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 11) as f64 / (1u64 << 53) as f64
                })
                .sum();
            sum - 6.0
        };
        let (mut far, mut low) = (0.0, 0.0);
        for _ in 0..1000 {
            let counts: Vec<f64> = (0..25).map(|i| if (10..20).contains(&i) { 100.0 } else { 0.0 } + 200.0 * noise()).collect();
            let mut below = 0.0;
            let first = counts.iter().position(|count| {
                below += count;
                below >= 700.0
            });
            far += (quantile(&counts, 700.0, 1000.0) as f64 - 16.0).powi(2) / 1000.0;
            low += (first.unwrap_or(24) as f64 - 16.0).powi(2) / 1000.0;
        }
        assert!(far < 0.7 * low, "mean squares {far} and {low}");
    }
}
