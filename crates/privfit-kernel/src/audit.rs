//! Audits: two worlds at one transcript. A run on the first world is recorded; a run on its neighbour draws the same random words
//! and is handed, at each release, what the first one released (adaptive composition compares neighbours at equal transcripts). What
//! comes out are distances over sensitivities, never values. Whatever else the second run computes can only differ through a side door, so
//! that its output must be the same to the bit.
//!
//! Only a seed may drive such a run: what it touched is marked as not private, and its noise protects nothing.
//!
//! *Objective perturbation.* The claim is about the linear term: at the minimiser the neighbours' terms differ by one unit's gradient.
//! So the gradients of both worlds are compared at the recorded point, the second world gets the term that makes this point its
//! minimiser too, solves by itself, and the two solutions meet the sensitivity of the output noise, which is for the solver's error alone.

use crate::account::{Adjacency, Event};
use crate::mechanism::Sensitivity;
use crate::norm::{L1, L2, Norm, root_up};
use std::sync::Arc;

/// A recorded run; opaque.
pub struct Transcript {
    pub(crate) points: Vec<Point>,
}

/// What left at a point.
#[derive(Clone)]
pub(crate) enum Out {
    Numbers(Vec<f64>),
    Indices(Vec<usize>),
    Vertex(usize, bool),
    /// A set that was held back or not, and the set.
    Set(Option<Vec<usize>>, Vec<usize>),
}

/// The public facts of a point, all of which must agree.
#[derive(Clone, PartialEq)]
pub(crate) struct Facts {
    pub(crate) what: &'static str,
    pub(crate) norm: &'static str,
    pub(crate) sensitivity: Sensitivity,
    pub(crate) event: Event,
    /// One unit of the grid of what is released, where it is numbers.
    pub(crate) unit: f64,
}

pub(crate) enum Point {
    Release { facts: Facts, integers: Vec<i64>, out: Out },
    Minimum { theta: Vec<f64>, gradient: Vec<f64>, linear: Vec<f64> },
    Revealed,
}

/// How far a value moved between two worlds, in units of its grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Movement {
    /// What kind of value.
    pub what: &'static str,
    /// The norm of sensitivity and movement.
    pub norm: &'static str,
    /// How far it may move.
    pub sensitivity: Sensitivity,
    /// How far it moved, rounded up.
    pub moved: u64,
    /// Event, grid and length are the same in both worlds, and what must be certified is.
    pub agrees: bool,
}

impl Movement {
    /// How far it may move under an adjacency.
    pub fn allowed(&self, adjacency: Adjacency) -> u64 {
        if adjacency == Adjacency::ReplaceOne { self.sensitivity.replace_one } else { self.sensitivity.zero_out }
    }

    /// Whether it moved no further than it may.
    pub fn holds(&self, adjacency: Adjacency) -> bool {
        self.agrees && self.moved <= self.allowed(adjacency)
    }
}

/// A vector that was released, with the unit of its grid: both are public.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleasedVector {
    /// What was released.
    pub numbers: Vec<f64>,
    /// Each number is a whole multiple of this.
    pub unit: f64,
}

/// What an audit does beside the run.
pub(crate) enum Audit {
    Capture(Vec<ReleasedVector>),
    Record(Vec<Point>),
    Replay { transcript: Arc<Transcript>, at: usize, movements: Vec<Movement> },
}

/// A distance whose bound is a real number is counted in parts of that bound.
pub(crate) const PARTS: u64 = 1 << 40;

/// Norm of the difference, rounded up; differences wrap as the noise does.
pub(crate) fn distance(norm: &str, a: &[i64], b: &[i64]) -> u64 {
    let sizes = || a.iter().zip(b).map(|(a, b)| u128::from(a.wrapping_sub(*b).unsigned_abs()));
    let most = sizes().max().unwrap_or(0);
    let whole = if norm == L2::NAME {
        sizes().try_fold(0u128, |sum, z| sum.checked_add(z * z)).filter(|s| *s < 1 << 124).map(|s| u128::from(root_up(s)))
    } else if norm == L1::NAME {
        sizes().try_fold(0u128, |sum, z| sum.checked_add(z))
    } else {
        Some(most)
    };
    whole.and_then(|w| u64::try_from(w).ok()).unwrap_or(u64::MAX)
}

/// A point that the other world does not have.
pub(crate) fn astray(what: &'static str) -> Movement {
    Movement { what, norm: L2::NAME, sensitivity: Sensitivity { zero_out: 0, replace_one: 0 }, moved: u64::MAX, agrees: false }
}
