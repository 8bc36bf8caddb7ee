//! Additive models of tables: a curve for each column, chosen pairs of columns, random trees.
//!
//! *What it computes.* Columns are divided into public cells, and noisy counts of all cells give ranks, means and shares. Features of a cell are smooth functions of its rank, a straight line and indicators;
//! noisy gradient descent with momentum on all rows learns their weights, which are a curve for each column. On the way all products of two columns' features are compared in one
//! release, and those pairs that stand out of the noise join. Sums over the leaves of random trees, whose questions depend on released numbers alone, add what is left.
//!
//! *Privacy.* All releases are sums of bounded integers with Gaussian noise, and their order is planned. Counts of F columns at once have the sensitivity sqrt F (replace-one sqrt 2F); counts of the sizes of
//! residuals 1 (sqrt 2); mean and mean square of a target in [-1, 1] sqrt 2 (2 sqrt 2). A row's derivative is clipped to C and its features to the unit ball, both on the integers, so that one row moves a
//! sum of gradients, of products of pairs, or over leaves, by at most C (2 C): `query/cell_features.rs`, `cell_pairs.rs` and `cell_trees.rs` of the kernel have the proofs. C may follow earlier releases, because
//! noise is a multiple of it. A unit of several rows has its rows divided by their number. Composition is exact, as Gaussians.
//!
//! *Accuracy.* The noise that all steps leave in a score is about learning rate x steps x C / (1 - momentum) over n mu, whatever the number of features; it is set to a part of what scores spread over. So the model
//! is as smooth as the noise asks for. On the way features that look like chance become shorter, at the end weights: the noise in them is known, and what rows of a sample add by chance is estimated (`chance.rs`).
//! With n mu below a few hundred a linear model may do better.
//!
//! *Needs.* A table; two or more classes, or a number between bounds; delta > 0. All adjacencies, units of several rows. Time: a pass over the cells for each step.
//!
//! *Reference.* Additive models: Hastie and Tibshirani 1986. With noise on histograms of residuals: Nori et al. 2021 (DP-EBM). Descent on smooth features of private ranks, chosen pairs and random trees are ours.

mod basis;
mod chance;
mod histogram;
mod program;
mod run;
mod target;
mod trees;

use super::{Capabilities, Learned, Method, Noise, Plan, Problem, rounded};
use crate::additive::AdditiveModel;
use crate::data::cells::{CellGrid, RowForm};
use crate::error::{Error, Result};
use crate::loss::Link;
use crate::method::settings::settings;
use crate::schema::{Features, Task};
use privfit_kernel::account::{Adjacency, Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Gaussian, Loss, Run};
use program::{Action, Mechanisms, Program, Shares};

settings! {
    /// Settings of additive models.
    pub(crate) struct AdditiveSettings {
        /// number of steps
        steps: u64 = 200, 1.0..=100_000.0;
        /// most pairs of columns that are chosen; 0 for none
        pairs: Option<u64> = None, 0.0..=100.0;
        /// number of random trees; 0 for none
        trees: Option<u64> = None, 0.0..=100_000.0;
        /// questions of a tree
        depth: u64 = 4, 1.0..=8.0;
        /// noise that all steps may leave in a score, over what scores spread over
        smoothness: f64 = 0.65, 0.01..=100.0;
        /// the same for trees
        tree_smoothness: f64 = 0.2, 0.01..=100.0;
        /// part of the residuals that are not clipped, for a number
        unclipped: f64 = 0.7, 0.1..=1.0;
        /// part of the squared privacy loss for trees
        tree_share: f64 = 0.4, 0.01..=0.9;
        /// part of the squared privacy loss for the choice of pairs
        pair_share: Option<f64> = None, 0.001..=0.5;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "additive",
    alias: "DP-GAM",
    needs: "a table with classes or a number as target, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies; also units of several rows",
    source: "additive models of Hastie and Tibshirani 1986, on private histograms",
    theorem: "Counts of the cells of F columns move by sqrt F when one record becomes null (replace-one sqrt 2F). Gradients of scores that are \
              linear in features of cells, products of pairs and sums over leaves are clipped to length C on the integers, so that one record moves \
              each sum by at most C (replace-one 2 C). All sums carry Gaussian noise and compose exactly; features, clips, pairs and trees \
              follow from released sums only.",
    settings: AdditiveSettings::SETTINGS,
    published: false,
    can: Capabilities { releases_gradients: true, many_steps: true, of_cells: true, ..Capabilities::ANY },
    plan: |problem| Ok(Box::new(planned(problem, None)?)),
};

/// Rows times mu above which pairs are compared, for each pair of columns.
const PAIRS_FROM: f64 = 4.0;
/// The share of the comparison of pairs is such that an effect of a pair stands out whatever the columns and rows: noise over what a pair of so many columns may say.
const PAIRS_SEEN: f64 = 50.0;
/// Rows times mu above which trees are grown: for numbers, for two classes, and for several, which have no pairs.
const TREES_FROM: [f64; 3] = [1200.0, 3000.0, 2000.0];
/// Columns whose pairs are compared, at the most: every pair has a histogram.
const MOST_PAIRED: f64 = 256.0;
/// Columns, at the most.
const MOST_COLUMNS: f64 = 65_535.0;
/// Leaves of all trees, at the most: a model file holds each of them.
const MOST_LEAVES: u64 = 4_000_000;
/// Trees of one pass.
const BATCH: usize = 5;
const PAIRS: usize = 10;
const TREES: u64 = 500;
const MOMENTUM: f64 = 0.9;

pub(super) struct Additive {
    grid: CellGrid,
    lines: usize,
    program: Program,
    mechanisms: Mechanisms,
    event: Event,
    loss: Loss,
    loss_name: &'static str,
    task: Task,
    rows: f64,
    settings: AdditiveSettings,
    /// What the scores of a number stand for.
    link: Link,
    /// Rows over the noise of a single release with the whole budget, or rows if there is less noise than 1.
    signal: f64,
}

/// The plan whose noise is that of a single release with this multiplier; none for the least that meets the target.
pub(super) fn planned(problem: &Problem, multiplier: Option<f64>) -> Result<Additive> {
    let settings = AdditiveSettings::parse(&problem.settings)?;
    problem.needs_delta(METHOD.name)?;
    if !matches!(problem.schema.features, Features::Table(_)) {
        return Err(Error::misuse(
            "additive models are for the columns of a table, and these rows have none: describe [features.NAME], or use ",
        )
        .give("method", "noisy-gd"));
    }
    let rows = problem.rows.max(1) as f64;
    // Beyond a mu of 1 it is the number of rows that limits what can be told apart.
    let signal = rows / multiplier.map_or_else(|| problem.single_noise(), Ok)?.max(1.0);
    let loss = problem.build_loss(1)?;
    if !METHOD.can.takes(problem.loss) {
        let usual = crate::loss::usual_of_cells(problem.task).map_or("logistic", |l| l.name);
        return Err(Error::misuse(format!(
            "additive models take losses with probabilities for classes, and means of numbers but no quantiles, and not loss {}: use ",
            problem.loss.name
        ))
        .give("loss", usual));
    }
    let outputs = loss.outputs();
    if outputs == 1 && problem.task.classes() > 2 {
        return Err(Error::misuse("an additive model has a score for each of several classes: use ").give("loss", "softmax"));
    }
    let number = problem.task == Task::Number;
    let columns = problem.schema.used_columns() as f64;
    if columns > MOST_COLUMNS {
        return Err(
            Error::misuse(format!("an additive model has at most {MOST_COLUMNS} columns: use ")).give("method", "noisy-gd")
        );
    }
    // Lines of a grid that counts can tell apart.
    let lines = (signal * 0.283 / (4.0 * columns.sqrt())).clamp(8.0, 64.0) as usize;
    let grid = CellGrid::new(&problem.schema, lines)?;
    let compared = outputs == 1 && columns >= 2.0 && signal / (columns * columns) >= PAIRS_FROM;
    let pairs = settings.pairs.map_or(if compared { PAIRS } else { 0 }, |n| n as usize);
    let possible = outputs == 1 && (2.0..=MOST_PAIRED).contains(&columns);
    if settings.pairs.is_some_and(|n| n > 0) && !possible {
        return Err(Error::misuse("pairs need a model with one score and 2 to 256 columns: give pairs = 0"));
    }
    let pairs = if possible { pairs } else { 0 };
    let grown = signal >= TREES_FROM[if number { 0 } else { 1 + usize::from(outputs > 1) }];
    let trees = settings.trees.unwrap_or(if grown { TREES } else { 0 });
    if (trees << settings.depth) * outputs as u64 > MOST_LEAVES {
        return Err(Error::misuse(format!("{trees} trees of depth {} have too many leaves: give fewer trees", settings.depth)));
    }
    let shares = {
        let (counts, target) = (0.08, (20.0 / signal).powi(2).clamp(0.005, 0.3));
        let residuals = if number { (56.0 / signal).powi(2).clamp(0.02, 0.1) } else { 0.0 };
        let usual = (PAIRS_SEEN * columns / signal).powi(2).clamp(0.08, 0.25);
        let screen = if pairs > 0 { settings.pair_share.unwrap_or(usual) } else { 0.0 };
        let leaves = if trees > 0 { settings.tree_share } else { 0.0 };
        let scale = 1.0 - counts - target - residuals;
        let (screen, leaves) = (screen * scale, leaves * scale);
        Shares { counts, target, residuals, screen, leaves, steps: (scale - screen - leaves).max(0.05) }
    };
    let t = settings.steps;
    let mut actions = vec![Action::Counts, Action::Target];
    // Where the clip is looked at again, and where pairs join.
    let looks: &[u64] = if number { &[0, t / 8, t / 3, 2 * t / 3] } else { &[] };
    let join = if pairs > 0 { 2 * t / 5 } else { t };
    // Features that look like chance become shorter here, and once more where pairs join.
    let emphasis = t / 4;
    let mut stops: Vec<u64> = looks.iter().copied().chain([join, emphasis]).filter(|s| *s < t).collect();
    stops.sort_unstable();
    stops.dedup();
    let (mut at, mut joined) = (0, false);
    let mut steps = |actions: &mut Vec<Action>, to: u64, joined: bool| {
        if to > at {
            actions.push(if joined { Action::PairSteps(to - at) } else { Action::Steps(to - at) });
            at = to;
        }
    };
    for stop in stops {
        steps(&mut actions, stop, joined);
        if looks.contains(&stop) {
            actions.push(Action::Residuals);
        }
        if stop == emphasis {
            actions.push(Action::Emphasis);
        }
        if stop == join {
            actions.push(Action::Screen);
            joined = true;
        }
    }
    steps(&mut actions, t, joined);
    if trees > 0 {
        if number {
            actions.push(Action::Residuals);
        }
        actions.push(Action::Leaves(trees.div_ceil(BATCH as u64)));
    }
    let counts_factor = if problem.adjacency == Adjacency::ReplaceOne { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 };
    let depth = settings.depth as usize;
    let program = Program { actions, shares, outputs, pairs, batch: BATCH, depth, rows: problem.rows, counts_factor };
    let make = |multiplier: f64| -> Result<(Mechanisms, Event)> {
        let mechanisms = program.mechanisms(&grid, multiplier)?;
        let event = program.event(&grid, &mechanisms)?;
        Ok((mechanisms, event))
    };
    let multiplier = match multiplier {
        Some(multiplier) => multiplier,
        None => calibrate(problem.target, |m| make(m).map(|m| m.1), problem.adjacency)?,
    };
    let (mechanisms, event) = make(multiplier)?;
    // Every clip that the run may choose has a grid: said here, before anything is spent.
    for clip in [run::LEAST_CLIP.min(loss.lipschitz()), loss.lipschitz()] {
        let used = [(true, mechanisms.step), (pairs > 0, mechanisms.screen), (trees > 0, mechanisms.leaves)];
        for (_, noise) in used.into_iter().filter(|u| u.0) {
            Gaussian::for_gradients(clip, noise)?;
        }
    }
    Ok(Additive {
        grid,
        lines,
        program,
        mechanisms,
        event,
        loss,
        loss_name: problem.loss.name,
        task: problem.task,
        link: problem.loss.link,
        rows,
        settings,
        signal,
    })
}

impl Additive {
    /// The cells that it reads.
    pub(super) fn grid(&self) -> &CellGrid {
        &self.grid
    }

    /// The list of a model whose curves are all 0.
    fn silent(&self) -> Vec<f64> {
        let (k, counts) = (self.program.outputs, self.grid.counts());
        let mut out = [k, counts.len(), 0, 0].map(|n| n as f64).to_vec();
        out.resize(4 + k, 0.0);
        for cells in counts {
            out.push(cells as f64);
            out.extend(vec![1.0 / cells as f64; cells].into_iter().chain([0.0]).chain(vec![0.0; k * cells]));
        }
        out
    }
}

impl Plan for Additive {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Sums
    }

    fn row_form(&self) -> RowForm<'_> {
        RowForm::Cells(&self.grid)
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("columns", self.grid.columns.len().to_string()),
            ("lines of a grid", self.lines.to_string()),
            ("noise of counts, standard deviation", rounded(self.mechanisms.counts.standard_deviation())),
            ("steps", self.program.steps().to_string()),
            ("noise of a step over its clip", rounded(self.mechanisms.step)),
        ];
        if self.program.pairs > 0 {
            out.push(("pairs of columns, at most", self.program.pairs.to_string()));
            out.push(("noise of the comparison of pairs over its clip", rounded(self.mechanisms.screen)));
        }
        if self.program.batches() > 0 {
            out.push(("trees", (self.program.batches() * self.program.batch as u64).to_string()));
            out.push(("noise of a batch of trees over its clip", rounded(self.mechanisms.leaves)));
        }
        out
    }

    fn gradient_noise(&self) -> f64 {
        self.loss.lipschitz() * self.mechanisms.step / (self.program.steps() as f64).sqrt()
    }

    fn noise(&self) -> Noise {
        Noise::Cells { signal: self.signal, columns: self.grid.columns.len() as f64, trees: self.program.batches() > 0 }
    }

    fn steps(&self) -> u64 {
        self.program.steps() + self.program.batches()
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        Ok(self.train(run, progress)?.to_list())
    }

    fn learned(&self, mut numbers: Vec<f64>) -> Learned {
        // Zeros, where nothing was trained: a model that says nothing.
        if numbers.first().is_none_or(|outputs| *outputs == 0.0) {
            numbers = self.silent();
        }
        let parameters = self.loss.parameters().to_vec();
        let model = AdditiveModel::from_list(&numbers, self.grid.clone(), self.loss_name, parameters, self.task.classes());
        Learned::Additive(Box::new(model))
    }
}
