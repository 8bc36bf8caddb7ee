//! Methods: one file each, and the list of them. A method makes a plan out of public facts; the plan is complete, noise and cost
//! included, before data are opened, and then it runs.

pub(crate) mod adaptive_gd;
pub(crate) mod additive;
pub(crate) mod additive_or_network;
pub mod auto;
mod block_learner;
pub(crate) mod correlated_noise;
mod correlation;
mod direction;
mod end_noise;
pub mod ensemble;
pub(crate) mod frank_wolfe;
pub(crate) mod hard_thresholding;
pub(crate) mod hyperparameter_free;
mod location;
pub(crate) mod network;
pub(crate) mod noisy_gd;
pub(crate) mod noisy_projected_sgd;
pub(crate) mod noisy_sgd;
pub mod noisy_thresholding;
pub mod objective;
pub(crate) mod objective_pure;
mod offset;
pub mod output;
pub(crate) mod output_gd;
pub mod permutation_sgd;
pub mod published;
pub(crate) mod random_round_sgd;
mod recursion;
pub(crate) mod recursive_momentum;
mod rounds;
pub mod settings;
pub mod statistics;
mod support;
mod teacher;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod transfer_blocks;
pub(crate) mod transfer_convex;
pub(crate) mod transfer_support;
pub(crate) mod two_stage;
mod vector_noise;
mod walk;
pub(crate) mod weighted_columns;

use crate::additive::AdditiveModel;
use crate::checkpoint::Checkpoints;
use crate::constraint::Constraint;
use crate::data::cells::RowForm;
use crate::data::encode::Column;
use crate::error::{Error, Result};
use crate::loss::{self, Heads, Kind, LossEntry, OwnMetric};
use crate::memory::{MemoryConditions, MemoryPart};
use crate::model::RowMap;
use crate::network::{NetworkModel, Pretrained};
use crate::schema::{Schema, Task};
use privfit_kernel::account::{Adjacency, Event, Target};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Loss, Numerics, ProblemSize, PublicRows, Run};
use std::sync::Arc;

pub use settings::{Setting, Settings};

/// Everything that a plan may know: public facts.
#[derive(Clone)]
pub struct Problem {
    /// Names, bounds, categories.
    pub schema: Arc<Schema>,
    /// Rows, or units where there is a unit column.
    pub rows: u64,
    /// Whether `rows` is the true number: counted or compared with the files. Not under add-remove, where it is private, and not with
    /// a unit column, where units are not counted.
    pub rows_known: bool,
    /// Most rows of one unit.
    pub rows_per_unit: usize,
    /// Encoded features, the constant one included.
    pub features: usize,
    /// Whether rows are index-value pairs.
    pub sparse: bool,
    /// What each encoded feature is, for methods that look at features by themselves.
    pub columns: Vec<Column>,
    /// What is predicted.
    pub task: Task,
    /// The loss.
    pub loss: &'static LossEntry,
    /// Public weights of the classes; empty if equal.
    pub weights: Vec<f64>,
    /// What "one record differs" means.
    pub adjacency: Adjacency,
    /// The guarantee to be met.
    pub target: Target,
    /// Where weights are held.
    pub constraint: Constraint,
    /// Numbers set by the user.
    pub settings: Settings,
    /// Encoded rows without labels that are public, for methods whose answers teach a student.
    pub auxiliary: Option<Arc<PublicRows>>,
    /// Layers of a network, in words; none for those that the public facts suggest.
    pub layers: Option<Vec<String>>,
    /// Layers that were trained on public rows and stay as they are.
    pub pretrained: Option<Arc<Pretrained>>,
}

impl Problem {
    /// The loss, for the class that one score speaks for.
    pub fn build_loss(&self, positive: usize) -> Result<Loss> {
        loss::build(self.loss, &self.loss_numbers()?, Heads { classes: self.task.classes(), positive, weights: &self.weights })
            .ok_or_else(|| location::no_score(self, "this method"))
    }

    /// The numbers of the loss.
    pub(crate) fn loss_numbers(&self) -> Result<Vec<f64>> {
        self.loss.parameters.iter().map(|n| self.settings.within(n.name, n.default, n.range.0, n.range.1)).collect()
    }

    /// Largest size of a cell of an encoded row that public facts allow; at most 1.
    pub(crate) fn largest_cell(&self) -> f64 {
        let size = |c: &Column| match c.group {
            Some(_) => 1.0 / c.scale,
            None => (1.0 - c.shift).abs().max((1.0 + c.shift).abs()) / c.scale,
        };
        self.columns.iter().map(size).fold(0.0f64, f64::max).min(1.0)
    }

    /// The constant feature, which no selection leaves out.
    pub fn constant(&self) -> Option<usize> {
        self.columns.iter().position(|c| c.constant)
    }

    /// Scores of a model, and the classes that they speak for: one for two classes or a number, one for each class otherwise.
    pub fn heads(&self) -> Vec<usize> {
        match self.task {
            Task::Classes(k) if k > 2 => (0..k).collect(),
            _ => vec![1],
        }
    }

    /// Scores of the model.
    pub fn scores(&self) -> usize {
        if self.loss.multiclass
            && let Task::Classes(k) = self.task
        {
            k
        } else {
            self.heads().len()
        }
    }

    /// Public sizes for the kernel.
    pub fn size(&self) -> ProblemSize {
        ProblemSize {
            unit_count: self.rows as usize,
            rows_per_unit: self.rows_per_unit,
            features: self.features,
            row_norm: 1.0,
            sparse: self.sparse,
        }
    }

    /// Standard deviation over sensitivity of one Gaussian release that meets the target, for the adjacency.
    pub(crate) fn single_noise(&self) -> Result<f64> {
        let event = |nm: f64| Ok(Event::Gaussian { noise_multiplier: nm, replace_factor: 2.0 });
        privfit_kernel::account::calibrate(self.target, event, self.adjacency)
    }

    /// The solver's certificate rests on the true number of rows; an estimate would make its outcome depend on the private one.
    pub(crate) fn needs_rows(&self, method: &str) -> Result<()> {
        if self.rows_known {
            return Ok(());
        }
        Err(Error::misuse(format!("{method} rests on the true number of rows, which is private under add-remove and not counted with a unit column: use ")).give("method", "noisy-gd").text(format!("{}, or zero-out with unit = \"row\"", if self.loss.least_squares { " or statistics" } else { "" })))
    }

    /// Rows in all, at the most.
    pub(crate) fn all_rows(&self) -> f64 {
        (self.rows as f64 * self.rows_per_unit as f64).max(1.0)
    }

    /// Approximate privacy is asked for; pure privacy is refused with the fix.
    pub(crate) fn needs_delta(&self, method: &str) -> Result<()> {
        if self.target.delta > 0.0 {
            return Ok(());
        }
        Err(Error::misuse(format!("{method} adds Gaussian noise and needs a delta: give "))
            .naming("delta")
            .text(" (say 1/n^2), or use ")
            .give("method", "output")
            .text(" for pure privacy"))
    }
}

/// What a method can do, for whoever lists, audits, tunes or reports methods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capabilities {
    /// It minimises, or follows exact gradients: the loss must be smooth.
    pub smooth: bool,
    /// It has one score.
    pub one_score: bool,
    /// It is for two classes.
    pub two_classes: bool,
    /// It is for losses about which second moments say all.
    pub least_squares: bool,
    /// The points that it finds, where there is no target.
    pub point: Option<Point>,
    /// Delta is 0 unless it is given.
    pub pure_by_default: bool,
    /// Delta must be 0.
    pub pure_only: bool,
    /// Weights lie in an L1 ball or simplex.
    pub in_l1_ball: bool,
    /// It can be a candidate of private tuning.
    pub tunable: bool,
    /// How far finite precision is covered.
    pub numerics: Numerics,
    /// What it releases are gradients.
    pub releases_gradients: bool,
    /// The step size does not depend on a setting.
    pub fixed_step: bool,
    /// It takes many steps by default.
    pub many_steps: bool,
    /// The answer is an affine map of what was released.
    pub affine: bool,
    /// Noise is added to the weights at the end.
    pub noise_at_the_end: bool,
    /// It reads cells of a table, not features.
    pub of_cells: bool,
    /// It trains a network.
    pub of_layers: bool,
    /// It labels public points, and its model is a student of those.
    pub of_points: bool,
    /// A run that is under way can be kept, so that another process goes on with it.
    pub resumable: bool,
    /// Lines of a plan that say that it does more than its theorem tells, and the sentences about it that follow the theorem.
    pub also: &'static [(&'static str, &'static str)],
}

/// Points that stand for all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// One noisy sum.
    Mean,
    /// Noisy steps.
    Median,
}

impl Capabilities {
    /// Any loss with a target, and nothing special.
    pub const ANY: Capabilities = Capabilities {
        smooth: false,
        one_score: false,
        two_classes: false,
        least_squares: false,
        point: None,
        pure_by_default: false,
        pure_only: false,
        in_l1_ball: false,
        tunable: true,
        numerics: Numerics::Exact,
        releases_gradients: false,
        fixed_step: false,
        many_steps: false,
        affine: false,
        noise_at_the_end: false,
        of_cells: false,
        of_layers: false,
        of_points: false,
        resumable: false,
        also: &[],
    };

    /// Rests on a theorem about minimisers or distances of iterates, with proved errors of solver and floating point.
    pub(crate) const BY_THEOREM: Capabilities = Capabilities { smooth: true, numerics: Numerics::Bounded, ..Capabilities::ANY };

    /// A published form, for comparison.
    pub(crate) const PUBLISHED: Capabilities = Capabilities { tunable: false, ..Capabilities::ANY };

    /// Whether it takes a loss.
    pub fn takes(&self, loss: &LossEntry) -> bool {
        match loss.kind {
            Kind::Location => self.point == Some(if loss.parameters.is_empty() { Point::Mean } else { Point::Median }),
            Kind::Number if self.two_classes => false,
            _ if self.of_points => loss.kind == Kind::Classes && loss.link.has_probabilities(),
            // Both an additive model and a network: for more than two classes.
            _ if self.of_layers && self.of_cells => loss.multiclass,
            _ if self.of_layers => loss.multiclass || loss.least_squares,
            // The sizes of its derivatives are what makes a quantile, and additive models clip them.
            _ if self.of_cells => loss.kind == Kind::Number && loss.metric != OwnMetric::Pinball || loss.link.has_probabilities(),
            _ => {
                (loss.smooth || !self.smooth)
                    && !(loss.multiclass && self.one_score)
                    && (loss.least_squares || !self.least_squares)
            }
        }
    }
}

/// A method: what it is, and how it plans.
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// What its authors call it.
    pub alias: &'static str,
    /// Which tasks and losses it takes.
    pub needs: &'static str,
    /// What it guarantees.
    pub guarantee: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Why it holds: the theorem in our symbols.
    pub theorem: &'static str,
    /// Its settings: name, meaning, type, range, default.
    pub settings: &'static [Setting],
    /// A published form, for comparison: its plan says what it truly guarantees, which need not be what was asked for.
    pub published: bool,
    /// What it can do.
    pub can: Capabilities,
    /// Makes a plan.
    pub plan: fn(&Problem) -> Result<Box<dyn Plan>>,
}

impl Method {
    /// Whether it has a setting of that name.
    pub fn has(&self, setting: &str) -> bool {
        self.settings.iter().any(|s| s.name == setting)
    }
}

/// Where the noise of a plan is, and the ridge (in sum form) that its weights feel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// On gradients.
    Gradient {
        /// Standard deviation of a coordinate of the sum over all records, all steps together.
        deviation: f64,
        /// The ridge, or what stopping early amounts to.
        ridge: f64,
    },
    /// On weights.
    Weights {
        /// Standard deviation of a coordinate.
        deviation: f64,
        /// The ridge.
        ridge: f64,
    },
    /// On statistics of columns that the plan standardises.
    Standardised {
        /// Standard deviation of the noise of a column's sum.
        means: f64,
        /// Standard deviation of the noise of a sum of products.
        moments: f64,
        /// Noise multiplier of the last step on residuals.
        step: f64,
        /// Standard deviations of the residuals at which that step clips them.
        clip: f64,
    },
    /// On sums over cells.
    Cells {
        /// Rows over the noise of a single release with the whole budget.
        signal: f64,
        /// Columns.
        columns: f64,
        /// Whether there are trees.
        trees: bool,
    },
}

/// A plan: complete before data are opened.
pub trait Plan: Send + Sync {
    /// What it will cost.
    fn event(&self) -> &Event;
    /// What it asks of an engine.
    fn needs(&self) -> Needs;
    /// How far finite precision is covered, where its settings say something else than its method.
    fn numerics(&self) -> Option<Numerics> {
        None
    }
    /// Its parameters, for people.
    fn describe(&self) -> Vec<(&'static str, String)>;
    /// Standard deviation of the noise on a gradient sum of all records, for forecasts.
    fn gradient_noise(&self) -> f64;
    /// Where the noise is, for forecasts.
    fn noise(&self) -> Noise {
        Noise::Gradient { deviation: self.gradient_noise(), ridge: 0.0 }
    }
    /// Columns that rows are reduced to, for forecasts; none for all.
    fn noisy_columns(&self) -> Option<usize> {
        None
    }
    /// Steps that `run` reports; public.
    fn steps(&self) -> u64;
    /// An upper bound of what a run holds at once besides so many encoded rows, in parts; none where it has not been worked out.
    fn memory(&self, _conditions: &MemoryConditions, _rows: u64) -> Option<Vec<MemoryPart>> {
        None
    }
    /// Examples that are computed at once, where memory depends on them.
    fn at_once(&self) -> Option<usize> {
        None
    }
    /// Computes fewer examples at once. A public number, which changes roundings, but neither noise nor guarantee.
    fn limit_at_once(&mut self, _most: usize) {}
    /// Runs, and returns the weights, score after score, or the list of numbers that `learned` reads.
    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>>;
    /// What it reads rows as.
    fn row_form(&self) -> RowForm<'_> {
        RowForm::Features
    }
    /// Runs, and returns what was learned; most methods have weights for rows as they are.
    fn learn(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Learned> {
        Ok(self.learned(self.run(run, progress)?))
    }
    /// The same as `learn`, where the run is kept in between and goes on from what was kept; only where the method is `resumable`.
    fn learn_kept(&self, run: &mut Run<'_>, progress: &dyn Fn(), _: &mut dyn Checkpoints) -> Result<Learned> {
        self.learn(run, progress)
    }
    /// Whether what is kept of a run under way has keys of its noise, so that it is as confidential as the records.
    fn keeps_keys(&self) -> bool {
        false
    }
    /// Whether the place of a record in the files says when it takes part, so that it counts as public.
    fn follows_order(&self) -> bool {
        false
    }
    /// Forecast of the noise in the answer with noise that is correlated over the steps, over that with samples; where the plan chose between them.
    fn correlation_forecast(&self) -> Option<f64> {
        None
    }
    /// What the numbers of `run` say.
    fn learned(&self, numbers: Vec<f64>) -> Learned {
        Learned::Weights(numbers, None)
    }
}

/// What a run learned.
pub enum Learned {
    /// Weights, score after score, and how rows must be changed to meet them.
    Weights(Vec<f64>, Option<RowMap>),
    /// An additive model.
    Additive(Box<AdditiveModel>),
    /// A network.
    Network(Box<NetworkModel>),
}

impl Learned {
    /// All released numbers in a row, for audits.
    pub(crate) fn numbers(self) -> Vec<f64> {
        match self {
            Learned::Weights(mut numbers, map) => {
                if let Some(RowMap { factors, constant, weight }) = map {
                    numbers.extend(factors);
                    numbers.extend([constant, weight]);
                }
                numbers
            }
            Learned::Additive(model) => model.numbers().copied().collect(),
            Learned::Network(model) => model.weights,
        }
    }
}

/// Every method.
pub const ALL: &[Method] = &[
    objective::METHOD,
    objective_pure::METHOD,
    hyperparameter_free::METHOD,
    output::METHOD,
    output_gd::METHOD,
    permutation_sgd::METHOD,
    noisy_gd::METHOD,
    noisy_sgd::METHOD,
    noisy_projected_sgd::METHOD,
    correlated_noise::METHOD,
    random_round_sgd::METHOD,
    recursive_momentum::METHOD,
    adaptive_gd::METHOD,
    frank_wolfe::METHOD,
    statistics::METHOD,
    additive::METHOD,
    network::METHOD,
    additive_or_network::METHOD,
    noisy_thresholding::METHOD,
    weighted_columns::METHOD,
    hard_thresholding::METHOD,
    two_stage::METHOD,
    transfer_support::METHOD,
    transfer_blocks::METHOD,
    transfer_convex::METHOD,
];

/// Methods that answer for public points, and are listed by themselves: without points they have no plan.
pub const OF_POINTS: &[Method] = &[ensemble::METHOD];

/// The method of that name or alias.
pub fn find(name: &str) -> Option<&'static Method> {
    let plain = |t: &str| t.to_lowercase().replace(['-', '_', ' '], "");
    ALL.iter()
        .chain(OF_POINTS)
        .chain(published::ALL)
        .find(|m| plain(m.name) == plain(name) || m.alias.split(", ").any(|a| plain(a) == plain(name)))
}

/// The theorem that a model rests on: that of its method, or of the tasks that have no scores.
pub fn theorem(method: &str, task: Task) -> Option<&'static str> {
    let method = find(method)?;
    Some(if task == Task::Location { location::THEOREM } else { method.theorem })
}

/// What follows the theorem of a method: sentences about the lines of its plan that ask for one. Plans are made again when a certificate is verified.
pub fn also(method: &str, plan: &[(String, String)]) -> Vec<&'static str> {
    let sentences = find(method).map_or(&[][..], |m| m.can.also).iter();
    sentences.filter(|(line, _)| plan.iter().any(|(name, _)| name == line)).map(|(_, sentence)| *sentence).collect()
}

/// Plans with the method of that name, or with the one for a linear model that the public facts suggest.
pub fn plan(name: &str, problem: &Problem) -> Result<(&'static Method, Box<dyn Plan>)> {
    let name = if auto::NAMES.contains(&name) { auto::choose(problem).0.name } else { name };
    let Some(method) = find(name) else {
        let known: Vec<&str> = ALL.iter().map(|m| m.name).collect();
        let hint = crate::nearest::hint(name, known.iter().copied());
        return Err(Error::misuse(format!("unknown method {name:?}: {hint}known are auto, linear, {}", known.join(", "))));
    };
    if problem.settings.0.contains_key("nonconvex") && !method.has("nonconvex") {
        return Err(direction::needs_convexity(method));
    }
    let mut known: Vec<&str> = method.settings.iter().map(|s| s.name).collect();
    known.extend(problem.loss.parameters.iter().map(|n| n.name));
    problem.settings.only(&known)?;
    if !problem.loss.fits(problem.task) {
        let list: Vec<&str> = loss::ALL.iter().filter(|l| l.fits(problem.task)).map(|l| l.name).collect();
        return Err(Error::misuse(format!("loss {} does not fit the target: use {}", problem.loss.name, list.join(", "))));
    }
    // Methods are for scores; a task without them has its own plans, and whatever is not among those is refused.
    let plan = if problem.task == Task::Location { location::plan(method, problem)? } else { (method.plan)(problem)? };
    Ok((method, plan))
}

/// Several classes with one score: each head a loss of its own.
pub(crate) fn head_losses(problem: &Problem) -> Result<Vec<Loss>> {
    if problem.loss.multiclass {
        Ok(vec![problem.build_loss(1)?])
    } else {
        problem.heads().into_iter().map(|h| problem.build_loss(h)).collect()
    }
}

/// A loss that minimisers can take.
pub(crate) fn needs_smooth(problem: &Problem, method: &str) -> Result<()> {
    if problem.build_loss(1)?.smoothness().is_finite() {
        return Ok(());
    }
    Err(Error::misuse(format!("{method} needs a smooth loss and {} has a kink: use ", problem.loss.name))
        .give("loss", "huber-svm")
        .text(", or ")
        .give("method", "noisy-gd"))
}

/// Rounded for people.
pub(crate) fn rounded(x: f64) -> String {
    if x != 0.0 && !(1e-3..1e5).contains(&x.abs()) {
        format!("{x:.3e}")
    } else {
        format!("{:.4}", x).trim_end_matches('0').trim_end_matches('.').into()
    }
}

/// How far finite precision is covered by a plan: the kernel grades every run, and this says beforehand what it finds.
pub(crate) fn grade(method: &Method, plan: &dyn Plan) -> Numerics {
    plan.numerics().unwrap_or(method.can.numerics)
}
