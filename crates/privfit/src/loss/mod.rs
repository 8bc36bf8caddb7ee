//! What a linear model loses on a record: one file to a loss, constants derived here and checked by one test for all of them.
//!
//! Labels are class numbers from 0, or targets scaled to [-1, 1]; without a target, 1. A record whose label is outside of the public
//! set, or that can't be read, carries a label that no loss knows, and adds nothing.

pub mod geometric_median;
pub mod logistic;
pub mod mean;
pub mod poisson;
pub mod quantile;
pub mod softmax;

use crate::schema::Task;
use privfit_kernel::Loss;
use privfit_kernel::loss as kernel;

/// The tasks that a loss is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Classes, by scores.
    Classes,
    /// A number, by one score.
    Number,
    /// A point; there is no score, so methods for linear models do not apply.
    Location,
}

/// A number that a loss takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its value if nobody sets it.
    pub default: f64,
    /// Smallest and largest value.
    pub range: (f64, f64),
}

/// What a score stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The sign of a score is a class, and nothing more.
    Sign,
    /// A score is the log-odds of a class; its parameter of this index is the clip of the derivative.
    LogOdds(usize),
    /// Scores are logarithms of probabilities, up to a constant.
    Softmax,
    /// A score is the number, in half-ranges of the target.
    Identity,
    /// A score is the logarithm of a rate over its bound.
    Log,
    /// A score is the log-odds of the part of its range that a number has.
    Share,
    /// There is no score: the answer is a point.
    Point,
}

/// A metric that a loss has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnMetric {
    /// None.
    None,
    /// Poisson deviance.
    Deviance,
    /// Pinball loss, and the part of the targets below.
    Pinball,
}

/// Everything that makes a loss, besides its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// Classes; 0 for a number.
    pub classes: usize,
    /// The class that a single score speaks for.
    pub positive: usize,
    /// Weights of the classes; all 1 where there are none.
    pub weights: &'a [f64],
}

impl Heads<'_> {
    fn weight(&self, class: usize) -> f64 {
        self.weights.get(class).copied().unwrap_or(1.0)
    }

    fn all(&self) -> Vec<f64> {
        (0..self.classes).map(|c| self.weight(c)).collect()
    }

    /// Against the rest: the rest may have weights of its own, of which the largest bounds them all.
    fn two(&self) -> [f64; 2] {
        let rest = (0..self.classes).filter(|c| *c != self.positive).map(|c| self.weight(c)).fold(0.0, f64::max);
        [if self.classes > 0 { rest } else { 1.0 }, self.weight(self.positive)]
    }
}

/// A row of the list of losses: all that is known about one. Nobody asks for a loss by its name to learn more.
pub struct LossEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is for.
    pub kind: Kind,
    /// Whether it takes several classes at once; otherwise several classes are one against the rest.
    pub multiclass: bool,
    /// Its numbers, in the order in which `build` takes them.
    pub parameters: &'static [Parameter],
    /// Says what it is in a line.
    pub what: &'static str,
    /// What a score stands for.
    pub link: Link,
    /// A metric of its own.
    pub metric: OwnMetric,
    /// Whether its derivative has a derivative, so that minimisers take it.
    pub smooth: bool,
    /// Whether second moments of the data say all about it.
    pub least_squares: bool,
    /// Whether targets begin at 0.
    pub counts: bool,
    /// Its first number in publications, where that is another one.
    pub published: Option<f64>,
    /// A clip that costs signal and saves noise, where most weights are zero: its first number for sparse methods.
    pub tight_clip: Option<f64>,
    /// Bound on what one unit adds to a sum, for points.
    pub unit_length: f64,
    /// Makes it; none for a loss without scores.
    pub make: Option<fn(&[f64], Heads<'_>) -> Loss>,
}

/// What most losses have.
const USUAL: LossEntry = LossEntry {
    name: "",
    kind: Kind::Classes,
    multiclass: false,
    parameters: &[],
    what: "",
    link: Link::Sign,
    metric: OwnMetric::None,
    smooth: true,
    least_squares: false,
    counts: false,
    published: None,
    tight_clip: None,
    unit_length: 1.0,
    make: None,
};

impl LossEntry {
    /// Whether it is for that task.
    pub fn fits(&self, task: Task) -> bool {
        let kind = match task {
            Task::Classes(_) => Kind::Classes,
            Task::Number => Kind::Number,
            Task::Location => Kind::Location,
        };
        self.kind == kind
    }

    /// Its numbers if nobody sets them.
    pub fn defaults(&self) -> Vec<f64> {
        self.parameters.iter().map(|n| n.default).collect()
    }
}

/// A width; kinks sharper than a hundredth would only cost the solver time.
const fn width(default: f64, largest: f64) -> Parameter {
    Parameter { name: "width", default, range: (0.01, largest) }
}

/// Every loss.
pub const ALL: &[LossEntry] = &[
    LossEntry {
        name: "logistic",
        kind: Kind::Classes,
        parameters: &[Parameter { name: "slope_clip", default: 0.5, range: (0.01, 1.0) }],
        what: "log-likelihood of two classes, derivatives clipped at slope_clip (1: not clipped)",
        link: Link::LogOdds(1),
        published: Some(1.0),
        make: Some(|n, h| kernel::logistic(h.positive, h.classes, n[0], h.two())),
        ..USUAL
    },
    LossEntry {
        name: "softmax",
        kind: Kind::Classes,
        multiclass: true,
        what: "log-likelihood of several classes",
        link: Link::Softmax,
        make: Some(|_, h| kernel::softmax(&h.all())),
        ..USUAL
    },
    LossEntry {
        name: "huber-svm",
        kind: Kind::Classes,
        parameters: &[width(0.5, 100.0)],
        what: "support vector machine with a rounded kink",
        published: Some(0.1),
        make: Some(|n, h| kernel::huber_svm(h.positive, h.classes, n[0], h.two())),
        ..USUAL
    },
    LossEntry {
        name: "hinge",
        kind: Kind::Classes,
        what: "support vector machine (noisy gradients only: it is not smooth)",
        smooth: false,
        make: Some(|_, h| kernel::hinge(h.positive, h.classes, h.two())),
        ..USUAL
    },
    LossEntry {
        name: "squared",
        kind: Kind::Number,
        parameters: &[Parameter { name: "residual_clip", default: 2.0, range: (0.01, 100.0) }],
        what: "squared error, residuals clipped at residual_clip half-ranges of the target",
        link: Link::Identity,
        least_squares: true,
        tight_clip: Some(0.5),
        make: Some(|n, _| kernel::squared(n[0])),
        ..USUAL
    },
    LossEntry {
        name: "huber",
        kind: Kind::Number,
        parameters: &[width(0.25, 100.0)],
        what: "squared error for residuals up to width half-ranges, absolute beyond",
        link: Link::Identity,
        make: Some(|n, _| kernel::huber(n[0])),
        ..USUAL
    },
    LossEntry {
        name: "quantile",
        kind: Kind::Number,
        parameters: &[Parameter { name: "quantile", default: 0.5, range: (0.01, 0.99) }, width(0.1, 1.0)],
        what: "the number that this part of the targets stays below; kink rounded over width half-ranges",
        link: Link::Identity,
        metric: OwnMetric::Pinball,
        make: Some(|n, _| kernel::quantile(n[0], n[1])),
        ..USUAL
    },
    LossEntry {
        name: "fractional",
        kind: Kind::Number,
        what: "a number between bounds as a soft label of the logistic loss: its mean, which never leaves the bounds",
        link: Link::Share,
        make: Some(|_, _| kernel::fractional()),
        ..USUAL
    },
    LossEntry {
        name: "poisson",
        kind: Kind::Number,
        what: "counts from 0 to their bound, by the logarithm of their rate",
        link: Link::Log,
        metric: OwnMetric::Deviance,
        counts: true,
        make: Some(|_, _| kernel::poisson()),
        ..USUAL
    },
    LossEntry {
        name: "mean",
        kind: Kind::Location,
        what: "no target: the mean of the rows, from one noisy sum",
        link: Link::Point,
        unit_length: mean::LENGTH,
        ..USUAL
    },
    LossEntry {
        name: "geometric-median",
        kind: Kind::Location,
        parameters: &[width(0.05, 1.0)],
        what: "no target: the point with the least mean distance to the rows; distances below width are rounded",
        link: Link::Point,
        unit_length: geometric_median::LENGTH,
        ..USUAL
    },
];

/// The row of that name.
pub fn find(name: &str) -> Option<&'static LossEntry> {
    let name = name.replace('_', "-");
    ALL.iter().find(|l| l.name == name)
}

/// The loss itself. None for a loss without scores.
pub fn build(entry: &LossEntry, parameters: &[f64], heads: Heads<'_>) -> Option<Loss> {
    entry.make.map(|make| make(parameters, heads))
}

/// The loss that is meant if none is named; none for a task that must be asked for by its loss.
pub fn usual(task: Task) -> Option<&'static LossEntry> {
    let fits = |l: &&LossEntry| l.fits(task) && l.multiclass == matches!(task, Task::Classes(3..));
    ALL.iter().find(fits).filter(|_| task != Task::Location)
}

/// The same for models of cells, whose scores are log-odds.
pub(crate) fn usual_of_cells(task: Task) -> Option<&'static LossEntry> {
    match task {
        Task::Number => ALL.iter().find(|l| l.link == Link::Share),
        _ => usual(task),
    }
}

/// The same for networks.
pub(crate) fn usual_of_layers(task: Task) -> Option<&'static LossEntry> {
    match task {
        Task::Classes(_) => ALL.iter().find(|l| l.multiclass),
        Task::Number => ALL.iter().find(|l| l.least_squares && l.kind == Kind::Number),
        Task::Location => None,
    }
}

/// Its name; empty if the task has none.
pub(crate) fn usual_name(task: Task) -> &'static str {
    usual(task).map_or("", |l| l.name)
}
