//! What a record adds to sums from which metrics are made: a few numbers in [0, 1].

mod network;
mod sums;

pub(crate) use sums::{Measures, SumNoise, needs_delta};

use crate::loss::{self, Link};
use crate::metric::{BINS, LONGEST_LOSS};
use crate::model::{Prediction, read_scores};
use crate::schema::Task;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// One number for a contest: right or wrong, or one minus the squared error over its largest value.
    Score,
    /// Known label, right, log loss, and a bin of the score by class.
    Classes,
    /// Known label, squared and absolute error, the target and its square.
    Number,
}

impl Kind {
    /// Of its number.
    pub(crate) fn of(number: usize) -> Kind {
        [Kind::Score, Kind::Classes, Kind::Number][number.min(2)]
    }

    /// Sums.
    pub(crate) fn dimension(self) -> usize {
        match self {
            Kind::Score => 1,
            Kind::Classes => 3 + 2 * BINS,
            Kind::Number => 5,
        }
    }

    /// Most measures of a row that are not 0.
    pub(crate) fn most(self) -> f64 {
        match self {
            Kind::Score => 1.0,
            Kind::Classes => 4.0,
            Kind::Number => 5.0,
        }
    }

    /// Bound on a unit's vector in L2, a hair above what rounding can do.
    pub(crate) fn length(self) -> f64 {
        self.most().sqrt() * (1.0 + 1e-9)
    }
}

/// What a model's scores are compared with, all of it public.
#[derive(Clone, Copy)]
pub(crate) struct Measure<'a> {
    pub(crate) kind: Kind,
    /// Number of the loss in the list of all.
    pub(crate) loss: usize,
    /// 0 for a number.
    pub(crate) classes: usize,
    pub(crate) loss_parameters: &'a [f64],
}

impl Measure<'_> {
    /// Calls with the measures of a row with a known label that are not 0, each in [0, 1].
    pub(crate) fn each(&self, scores: &[f64], label: f32, mut put: impl FnMut(usize, f64)) {
        let task = if self.classes == 0 { Task::Number } else { Task::Classes(self.classes) };
        let link = loss::ALL.get(self.loss).map_or(Link::Sign, |l| l.link);
        // A number that is none is 0.
        let mut put = |i: usize, value: f64| put(i, value.max(0.0).min(1.0));
        match (read_scores(task, link, self.loss_parameters, scores), self.kind) {
            (Prediction::Class(class, _), Kind::Score) => put(0, f64::from(u8::from(class == label as usize))),
            (Prediction::Class(class, probabilities), _) => {
                put(0, 1.0);
                put(1, f64::from(u8::from(class == label as usize)));
                if let Some(p) = probabilities.get(label as usize) {
                    put(2, -p.max(1e-300).ln() / LONGEST_LOSS);
                }
                if scores.len() == 1 {
                    let along = 1.0 / (1.0 + (-scores[0]).exp());
                    let bin = ((along * BINS as f64) as usize).min(BINS - 1);
                    put(3 + bin + if label == 1.0 { BINS } else { 0 }, 1.0);
                }
            }
            (Prediction::Number(x), kind) => {
                let (y, error) = (f64::from(label), 0.5 * (x - f64::from(label)));
                if kind == Kind::Score {
                    put(0, 1.0 - error * error);
                } else {
                    put(0, 1.0);
                    put(1, error * error);
                    put(2, error.abs());
                    put(3, 0.5 * (y + 1.0));
                    put(4, y * y);
                }
            }
            (Prediction::Distance(_), _) => {}
        }
    }
}
