//! Joint privacy: public messages while a run is open, and a state for each unit that only its own data and those messages make.
//!
//! *Claim.* A message is published when the releases that it was made from have been recorded, so that their cost is a prefix of the plan, which is
//! spent before data are opened; what is published stays published and spent if the run fails later. A unit's state is a function of its own rows
//! and of messages, so that units whose data and messages are equal have equal states, to the byte, whatever the others hold. It never leaves: a
//! contribution may read it, and adds a vector that is clipped on the integers as any other.
//!
//! *Null units.* Zero-out replaces a unit by one without data, which must add nothing: a unit without a cell that is not zero has no state, and
//! what has no state adds zero. So one unit moves a sum by at most the clip under zero-out, and by twice that under replace-one.

use crate::error::{Error, Result};
use crate::memory::{grow, zeros};
use crate::quiet::quietly;
use crate::run::Query;
use crate::run::Run;
use crate::store::dataset::Unit;
use crate::value::Message;

/// A vector for each unit of this process, held by the kernel. No Debug, no Clone, no way to a number.
pub struct UnitState {
    pub(crate) length: usize,
    pub(crate) values: Vec<f64>,
    /// Which units have one.
    pub(crate) present: Vec<bool>,
    pub(crate) data: u64,
}

impl UnitState {
    /// The state of a unit, if it has one.
    pub(crate) fn of(&self, unit_index: usize) -> Option<&[f64]> {
        let at = unit_index * self.length;
        self.present[unit_index].then(|| &self.values[at..at + self.length])
    }
}

/// Makes a state of zeros for every unit that holds data.
pub struct BeginState {
    /// Numbers of one state.
    pub length: usize,
}

impl Query<'_> for BeginState {
    type Output = UnitState;

    fn execute(self, run: &mut Run<'_>) -> Result<UnitState> {
        let unit_count = run.data.unit_count();
        let size = unit_count.checked_mul(self.length).ok_or(Error::Memory)?;
        let mut present = Vec::new();
        grow(&mut present, unit_count);
        present.extend((0..unit_count).map(|unit_index| holds_data(run.data.unit(unit_index))));
        Ok(UnitState { length: self.length, values: zeros(size), present, data: run.data.id })
    }
}

/// Whether a unit has a cell that is not zero.
fn holds_data(unit: Unit<'_>) -> bool {
    let mut cells = 0usize;
    (0..unit.rows()).for_each(|row| unit.each(row, |_, _| cells += 1));
    cells > 0
}

/// Computes every unit's state anew from its own rows, the state that it had, and a message. A unit whose computation panics, or is not finite, has
/// zeros.
pub struct UpdateState<'a> {
    /// The states.
    pub state: &'a mut UnitState,
    /// What everybody sees.
    pub message: &'a Message,
    /// Message, unit, state as it is; writes the state as it will be, which begins as it is.
    pub compute: fn(&[f64], Unit<'_>, &[f64], &mut [f64]),
}

impl Query<'_> for UpdateState<'_> {
    type Output = ();

    fn execute(self, run: &mut Run<'_>) -> Result<()> {
        if self.state.data != run.data.id || self.message.run != run.id {
            return Err(Error::Mismatch { what: "states and message belong to other records, or to another run" });
        }
        let length = self.state.length;
        let mut next = vec![0f64; length];
        for unit_index in (0..run.data.unit_count()).filter(|unit_index| self.state.present[*unit_index]) {
            let own = &mut self.state.values[unit_index * length..(unit_index + 1) * length];
            next.copy_from_slice(own);
            let calm = quietly(|| (self.compute)(&self.message.values, run.data.unit(unit_index), own, &mut next)).is_some();
            match calm && next.iter().all(|x| x.is_finite()) {
                true => own.copy_from_slice(&next),
                false => own.fill(0.0),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Event;
    use crate::engine::Threads;
    use crate::{DatasetBuilder, Entropy, Gaussian, Mechanism, RowShape, StatefulContribution};

    fn data(rows: &[[f64; 2]]) -> crate::Dataset {
        let shape = RowShape { dimension: 2, row_norm: 2.0, sparse: false, rows_per_unit: None };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        rows.iter().for_each(|row| builder.row(row, 1.0));
        builder.build()
    }

    /// Three rounds: each unit moves its state towards its own row times a message, and the sum of states is released and published.
    fn rounds(run: &mut Run<'_>, mechanism: &Gaussian) -> Result<(UnitState, Vec<f64>)> {
        let mut state = run.execute(BeginState { length: 1 })?;
        let everyone = run.everyone()?;
        let mut out = vec![1.0];
        for _ in 0..3 {
            let message = run.publish(out.clone())?;
            let compute: fn(&[f64], Unit<'_>, &[f64], &mut [f64]) = |message, unit, own, next| {
                unit.each(0, |i, x| {
                    if i == 0 {
                        next[0] = 0.5 * own[0] + x * message[0].clamp(-1.0, 1.0)
                    }
                });
            };
            run.execute(UpdateState { state: &mut state, message: &message, compute })?;
            let sum = StatefulContribution {
                name: "state",
                dimension: 1,
                parameters: vec![],
                add: |_, _, own, sink| sink.add(0, own[0] + 0.25),
            };
            out = run.at(mechanism, |run, scale| {
                let noise = run.draw(&scale, 1)?;
                let value = everyone.sum_with(&noise, &sum, &state)?;
                run.release(noise, &value)
            })?;
        }
        Ok((state, out))
    }

    /// States of units with equal data are equal to the byte; a null unit has none and adds nothing; one unit moves the sum by at most the clip.
    #[test]
    fn states_depend_on_own_data_and_messages_alone() {
        let mechanism = Gaussian::new(1.0, 3.0, 10).unwrap();
        let planned = mechanism.event(1).repeated(3);
        let engine = Threads::new(1);
        let first = data(&[[0.5, 0.0], [0.0, 0.0], [0.5, 0.0], [-1.0, 0.3]]);
        let entropy = Entropy::simulated(5);
        let mut run = Run::recorded(&first, &engine, &entropy, &planned).unwrap();
        let (state, _) = rounds(&mut run, &mechanism).unwrap();
        assert!(state.of(1).is_none(), "a null unit has no state");
        assert_eq!(state.of(0).unwrap()[0].to_bits(), state.of(2).unwrap()[0].to_bits());
        let transcript = run.transcript().unwrap();
        for other in [[0.0, 0.0], [2.0, 0.0], [f64::NAN, 1.0], [1e300, 0.0]] {
            let neighbour = data(&[[0.5, 0.0], [0.0, 0.0], [0.5, 0.0], other]);
            let entropy = Entropy::simulated(5);
            let mut run = Run::replayed(&neighbour, &engine, &entropy, &planned, &transcript).unwrap();
            let (near, _) = rounds(&mut run, &mechanism).unwrap();
            assert_eq!(near.of(0).unwrap()[0].to_bits(), state.of(0).unwrap()[0].to_bits(), "others do not show");
            let zero_out = other == [0.0, 0.0];
            let adjacency = if zero_out { crate::account::Adjacency::ZeroOut } else { crate::account::Adjacency::ReplaceOne };
            let moved = run.movements().unwrap();
            assert!(moved.len() == 3 && moved.iter().all(|m| m.holds(adjacency)), "{other:?}: {moved:?}");
            assert!(moved.iter().any(|m| m.moved > 0));
        }
    }

    /// What is not recorded can't be published before it is released, and messages and states of others are refused.
    #[test]
    fn messages_and_states_belong_to_their_run() {
        let engine = Threads::new(1);
        let (one, two) = (data(&[[0.5, 0.0]]), data(&[[0.5, 0.0]]));
        let entropy = Entropy::simulated(5);
        let nothing = Event::Compose(vec![]);
        let mut run = Run::begin(&one, &engine, &entropy, &nothing).unwrap();
        let mut other = Run::begin(&two, &engine, &entropy, &nothing).unwrap();
        let (mut state, message) = (run.execute(BeginState { length: 2 }).unwrap(), other.publish(vec![1.0]).unwrap());
        let compute: fn(&[f64], Unit<'_>, &[f64], &mut [f64]) = |_, _, _, next| next.fill(f64::NAN);
        assert!(run.execute(UpdateState { state: &mut state, message: &message, compute }).is_err());
        let own = run.publish(vec![1.0]).unwrap();
        assert!(other.execute(UpdateState { state: &mut state, message: &own, compute }).is_err());
        run.execute(UpdateState { state: &mut state, message: &own, compute }).unwrap();
        assert_eq!(state.of(0).unwrap(), [0.0, 0.0], "what is not finite is zero");
    }
}
