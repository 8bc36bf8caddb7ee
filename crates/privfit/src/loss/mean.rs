//! The mean of the rows, the point with the least mean squared distance to them. No parameters.
//!
//! What is released: one sum of units' vectors plus noise. A unit adds the average of its rows that count; rows lie in the unit
//! ball, so averages do, and the sensitivity is 1 under zero-out and add-remove, 2 under replace-one, whatever its number of rows.
//! Every unit counts once.

use crate::data::encode::COUNTS;
use privfit_kernel::{Contribution, Sink, Unit, UnitRandomness};

/// Bound on the vector of a unit.
pub const LENGTH: f64 = 1.0;

/// What a unit adds to the sum.
pub fn contribution(features: usize) -> Contribution {
    Contribution { name: "mean", dimension: features, parameters: Vec::new(), add }
}

/// Calls with each row of a unit that counts, and with its share of the unit.
pub(super) fn each_row(unit: Unit<'_>, mut f: impl FnMut(usize, f64)) {
    let counts = |row: &usize| unit.label(*row) == COUNTS;
    let count = (0..unit.rows()).filter(counts).count();
    (0..unit.rows()).filter(counts).for_each(|row| f(row, 1.0 / count as f64));
}

fn add(_: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    each_row(unit, |row, share| unit.each(row, |j, x| sink.add(j, share * x)));
}

/// Half of the squared distance.
pub fn value(distance: f64) -> f64 {
    0.5 * distance * distance
}
