//! Runs that are recorded, replayed, or watched.

use super::Run;
use crate::account::Event;
use crate::audit::{Audit, Facts, Movement, Out, Point, ReleasedVector, Transcript, astray, distance};
use crate::error::{Error, Result};
use crate::rng::Entropy;
use crate::store::dataset::Dataset;
use std::sync::Arc;

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
        transcript: &Arc<Transcript>,
    ) -> Result<Run<'d>> {
        Run::audited(
            data,
            engine,
            entropy,
            planned,
            Audit::Replay { transcript: transcript.clone(), at: 0, movements: Vec::new() },
        )
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
            self.audit = Some(Audit::Capture(Vec::new()));
        }
    }

    /// The vectors that were released since `capture`.
    pub fn captured_releases(&mut self) -> Vec<ReleasedVector> {
        match &mut self.audit {
            Some(Audit::Capture(captured)) => std::mem::take(captured),
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
        let Some(Audit::Replay { transcript, at, mut movements }) = self.audit.take() else {
            return Err(Error::Mismatch { what: "this run is not a replay: begin it with Run::replayed" });
        };
        if at != transcript.points.len() {
            movements.push(astray("end of the run"));
        }
        Ok(movements)
    }

    /// A point at which something leaves: noted in the first world, compared and replaced in the second.
    pub(crate) fn on_release(&mut self, facts: impl FnOnce() -> Facts, integers: &[i64], out: Out) -> Out {
        match &mut self.audit {
            None => out,
            Some(Audit::Capture(captured)) => {
                if let Out::Numbers(numbers) = &out {
                    captured.push(ReleasedVector { numbers: numbers.clone(), unit: facts().unit });
                }
                out
            }
            Some(Audit::Record(points)) => {
                points.push(Point::Release { facts: facts(), integers: integers.to_vec(), out: out.clone() });
                out
            }
            Some(Audit::Replay { transcript, at, movements }) => {
                let facts = facts();
                let point = transcript.points.get(*at);
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
                movements.push(Movement { what: facts.what, norm: facts.norm, sensitivity: first.sensitivity, moved, agrees });
                if std::mem::discriminant(forced) == std::mem::discriminant(&out) { forced.clone() } else { out }
            }
        }
    }

    /// The integers of the first world at the point that comes next, in the second world of an audit.
    pub(crate) fn recorded_integers(&self) -> Option<Vec<i64>> {
        let Some(Audit::Replay { transcript, at, .. }) = &self.audit else { return None };
        match transcript.points.get(*at) {
            Some(Point::Release { integers, .. }) => Some(integers.clone()),
            _ => None,
        }
    }

    /// A movement that several releases make together.
    pub(crate) fn note_movement(&mut self, movement: Movement) {
        if let Some(Audit::Replay { movements, .. }) = &mut self.audit {
            movements.push(movement);
        }
    }

    /// A value that leaves as it is, which only a plan without a promise allows.
    pub(crate) fn on_reveal(&mut self) {
        match &mut self.audit {
            Some(Audit::Record(points)) => points.push(Point::Revealed),
            Some(Audit::Replay { at, movements, .. }) => {
                *at += 1;
                movements.push(astray("revealed without noise"));
            }
            _ => {}
        }
    }
}
