//! Audits: two worlds at one transcript. A run on the first world is recorded; a run on its neighbour draws the same random words
//! and is handed, at each release, what the first one released (adaptive composition compares neighbours at equal transcripts). What
//! comes out are distances and reaches, never values. Whatever else the second run computes can only differ through a side door, so
//! that its output must be the same to the bit.
//!
//! Only a seed may drive such a run: what it touched is marked as not private, and its noise protects nothing.
//!
//! *Objective perturbation.* The claim is about the linear term: at the minimiser the neighbours' terms differ by one unit's gradient.
//! So the gradients of both worlds are compared at the recorded point, the second world gets the term that makes this point its
//! minimiser too, solves by itself, and the two solutions meet the reach of the output noise, which is for the solver's error alone.

use crate::account::{Adjacency, Event};
use crate::error::{Error, Result};
use crate::mechanism::Reach;
use crate::norm::{L1, L2, Norm, root_up};
use crate::query::solver::Objective;
use crate::run::Run;
use crate::{Dataset, Entropy};
use std::sync::Arc;

/// A recorded run; opaque.
pub struct Transcript {
    points: Vec<Point>,
}

/// What left at a point.
#[derive(Clone)]
pub(crate) enum Out {
    Numbers(Vec<f64>),
    Indices(Vec<usize>),
    Corner(usize, bool),
    /// A set that was held back or not, and the set.
    Set(Option<Vec<usize>>, Vec<usize>),
}

/// The public facts of a point, all of which must agree.
#[derive(Clone, PartialEq)]
pub(crate) struct Facts {
    pub(crate) what: &'static str,
    pub(crate) norm: &'static str,
    pub(crate) reach: Reach,
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
    /// The norm of reach and movement.
    pub norm: &'static str,
    /// How far it may move.
    pub reach: Reach,
    /// How far it moved, rounded up.
    pub moved: u64,
    /// Event, grid and length are the same in both worlds, and what must be certified is.
    pub agrees: bool,
}

impl Movement {
    /// How far it may move under an adjacency.
    pub fn allowed(&self, adjacency: Adjacency) -> u64 {
        if adjacency == Adjacency::ReplaceOne { self.reach.replace_one } else { self.reach.zero_out }
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
    Listen(Vec<ReleasedVector>),
    Record(Vec<Point>),
    Replay { tape: Arc<Transcript>, at: usize, movements: Vec<Movement> },
}

/// A distance whose bound is a real number is counted in parts of that bound.
const PARTS: u64 = 1 << 40;

/// Norm of the difference, rounded up; differences wrap as the noise does.
fn distance(norm: &str, a: &[i64], b: &[i64]) -> u64 {
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

impl<'d> Run<'d> {
    /// Opens a run that is recorded, as the first world of an audit.
    pub fn recorded(
        data: &'d Dataset,
        engine: &'d dyn crate::engine::Engine,
        entropy: &'d Entropy,
        planned: &Event,
    ) -> Result<Run<'d>> {
        Run::audited(data, engine, entropy, planned, Audit::Record(Vec::new()))
    }

    /// Opens a run on a neighbour, which is handed what the recorded one released. Seed and plan must be the same.
    pub fn replayed(
        data: &'d Dataset,
        engine: &'d dyn crate::engine::Engine,
        entropy: &'d Entropy,
        planned: &Event,
        tape: &Arc<Transcript>,
    ) -> Result<Run<'d>> {
        Run::audited(data, engine, entropy, planned, Audit::Replay { tape: tape.clone(), at: 0, movements: Vec::new() })
    }

    fn audited(
        data: &'d Dataset,
        engine: &'d dyn crate::engine::Engine,
        entropy: &'d Entropy,
        planned: &Event,
        audit: Audit,
    ) -> Result<Run<'d>> {
        if !entropy.is_simulated() {
            return Err(Error::Mismatch { what: "only a simulation can be recorded or replayed: use Entropy::simulated" });
        }
        Ok(Run { audit: Some(audit), ..Run::begin(data, engine, entropy, planned)? })
    }

    /// Keeps a copy of every vector that is released from now on; all of it is out anyway.
    pub fn keep_releases(&mut self) {
        if self.audit.is_none() {
            self.audit = Some(Audit::Listen(Vec::new()));
        }
    }

    /// The vectors that were released since `listen`.
    pub fn kept_releases(&mut self) -> Vec<ReleasedVector> {
        match &mut self.audit {
            Some(Audit::Listen(heard)) => std::mem::take(heard),
            _ => Vec::new(),
        }
    }

    /// The recording of this run.
    pub fn transcript(&mut self) -> Result<Arc<Transcript>> {
        match self.audit.take() {
            Some(Audit::Record(points)) => Ok(Arc::new(Transcript { points })),
            _ => Err(Error::Mismatch { what: "this run is not recorded: begin it with Run::recorded" }),
        }
    }

    /// How far each value moved against the recorded run. A release that only one of the worlds made is a movement that does not agree.
    pub fn movements(&mut self) -> Result<Vec<Movement>> {
        let Some(Audit::Replay { tape, at, mut movements }) = self.audit.take() else {
            return Err(Error::Mismatch { what: "this run is not a replay: begin it with Run::replayed" });
        };
        if at != tape.points.len() {
            movements.push(astray("end of the run"));
        }
        Ok(movements)
    }

    /// A point at which something leaves: noted in the first world, compared and replaced in the second.
    pub(crate) fn leaves(&mut self, facts: impl FnOnce() -> Facts, integers: &[i64], out: Out) -> Out {
        match &mut self.audit {
            None => out,
            Some(Audit::Listen(heard)) => {
                if let Out::Numbers(numbers) = &out {
                    heard.push(ReleasedVector { numbers: numbers.clone(), unit: facts().unit });
                }
                out
            }
            Some(Audit::Record(points)) => {
                points.push(Point::Release { facts: facts(), integers: integers.to_vec(), out: out.clone() });
                out
            }
            Some(Audit::Replay { tape, at, movements }) => {
                let facts = facts();
                let point = tape.points.get(*at);
                *at += 1;
                let Some(Point::Release { facts: first, integers: before, out: forced }) = point else {
                    movements.push(astray(facts.what));
                    return out;
                };
                let mut agrees = *first == facts && before.len() == integers.len();
                let mut moved = distance(facts.norm, before, integers);
                if let (Out::Set(_, a), Out::Set(_, b), [near], [here]) = (forced, &out, &before[..], integers)
                    && a != b
                {
                    // Sets of neighbours differ only where the distance is zero; two steps away one of the two may be at one.
                    agrees &= (*near).min(*here) == 0;
                    moved = moved.max(near.max(here).unsigned_abs() + 1);
                }
                movements.push(Movement { what: facts.what, norm: facts.norm, reach: first.reach, moved, agrees });
                if std::mem::discriminant(forced) == std::mem::discriminant(&out) { forced.clone() } else { out }
            }
        }
    }

    /// A value that leaves as it is, which only a plan without a promise allows.
    pub(crate) fn reveals(&mut self) {
        match &mut self.audit {
            Some(Audit::Record(points)) => points.push(Point::Revealed),
            Some(Audit::Replay { at, movements, .. }) => {
                *at += 1;
                movements.push(astray("revealed without noise"));
            }
            _ => {}
        }
    }

    /// Solves, and in an audit looks at the gradient where the other world ended.
    pub(crate) fn solves(&mut self, mut objective: Objective<'_>, tilted: bool) -> Result<Vec<f64>> {
        if !tilted || matches!(self.audit, None | Some(Audit::Listen(_))) {
            return objective.solve();
        }
        let floor = objective.limits().floor();
        let tolerance = objective.problem.tolerance;
        let certified = |gradient: &[f64]| length(gradient) + floor <= tolerance;
        let recorded = match &mut self.audit {
            Some(Audit::Replay { tape, at, .. }) => {
                *at += 1;
                match tape.points.get(*at - 1) {
                    Some(Point::Minimum { theta, gradient, linear }) if theta.len() == objective.dimension() => {
                        Some((theta.clone(), gradient.clone(), linear.clone()))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let mut movement = Movement {
            what: "gradient at the minimiser",
            norm: L2::NAME,
            reach: Reach { zero_out: PARTS, replace_one: 2 * PARTS },
            moved: u64::MAX,
            agrees: false,
        };
        if let Some((theta, first, linear)) = recorded {
            objective.linear = linear;
            let here = objective.gradient(&theta)?;
            let apart: Vec<f64> = first.iter().zip(&here).map(|(a, b)| a - b).collect();
            objective.linear.iter_mut().zip(&apart).for_each(|(b, g)| *b += g);
            let bound = objective.problem.loss.lipschitz * self.data.row_norm + 2.0 * floor;
            movement.moved = (length(&apart) / bound * PARTS as f64).ceil() as u64;
            movement.agrees = certified(&first);
        }
        let theta = objective.solve()?;
        let gradient = objective.gradient(&theta)?;
        movement.agrees &= certified(&gradient);
        match &mut self.audit {
            Some(Audit::Record(points)) => {
                points.push(Point::Minimum { theta: theta.clone(), gradient, linear: objective.linear });
            }
            Some(Audit::Replay { movements, .. }) => movements.push(movement),
            _ => {}
        }
        Ok(theta)
    }
}

fn length(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// A point that the other world does not have.
fn astray(what: &'static str) -> Movement {
    Movement { what, norm: L2::NAME, reach: Reach { zero_out: 0, replace_one: 0 }, moved: u64::MAX, agrees: false }
}
