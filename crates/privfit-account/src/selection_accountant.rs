//! Selections by the privacy profile of one run.

use super::adjacency::Adjacency;
use super::curve::Curve;
use super::event::Event;
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};

/// Selections by the privacy profile of one run; alone, since profiles of whole selections do not compose.
pub struct SelectionAccountant;

impl SelectionAccountant {
    fn curve<'e>(&self, event: &'e Event, adjacency: Adjacency) -> Result<Curve<'e>> {
        match event {
            Event::Select { .. } => Ok(Curve::new(event, adjacency)),
            _ => Err(Error::unsupported("anything but a selection by itself", "use the rdp accountant")),
        }
    }
}

impl Accountant for SelectionAccountant {
    fn name(&self) -> &'static str {
        "selection"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        check_delta(delta, false)?;
        let upper = self.curve(event, adjacency)?.epsilon(delta);
        let upper = upper.ok_or_else(|| Error::unsupported("this selection at this delta", "give a larger delta"))?;
        Ok(Bound { lower: 0.0, upper })
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        Ok(Bound { lower: 0.0, upper: self.curve(event, adjacency)?.delta(epsilon) })
    }
}
