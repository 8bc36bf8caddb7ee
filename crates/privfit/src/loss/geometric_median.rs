//! The geometric median: the point t with the least mean distance |t - x| to the rows x. Distances r below a width w are rounded:
//! r - w/2 beyond, r^2 / 2w within. Robust: a row pulls by at most 1, however far away it is. Parameters: w, |t|^2, t.
//!
//! What is released: sums of units' gradients plus noise, one for each step. The gradient of a row is (t - x) / max(r, w), of
//! length at most 1, and smooth with constant 1/w; a unit adds the average over its rows that count. So the sensitivity is 1 under
//! zero-out and add-remove, 2 under replace-one, whatever its number of rows. t is made of earlier releases.
//!
//! It is no function of a score: the second derivative has rank d and not 1, and the proof of objective perturbation, which is
//! about one line or plane for each record, does not apply.

use super::mean::each_row;
use privfit_kernel::{Contribution, Sink, Unit, UnitRandomness};

/// Bound on the vector of a unit.
pub const LENGTH: f64 = 1.0;

/// What a unit adds to the sum of gradients at a point.
pub fn contribution(width: f64, point: &[f64]) -> Contribution {
    let square: f64 = point.iter().map(|t| t * t).sum();
    let parameters = [&[width, square], point].concat();
    Contribution { name: "geometric median", dimension: point.len(), parameters, add }
}

fn add(p: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    let (width, square, point) = (p[0], p[1], &p[2..]);
    each_row(unit, |row, share| {
        // Only non-zero cells are visited; the rounding of the difference is far below the square of the smallest width.
        let mut distance = square;
        unit.each(row, |j, x| distance += x * (x - 2.0 * point[j]));
        let pull = share / distance.max(width * width).sqrt();
        point.iter().enumerate().for_each(|(j, t)| sink.add(j, pull * t));
        unit.each(row, |j, x| sink.add(j, -pull * x));
    });
}

/// The rounded distance.
pub fn value(width: f64, distance: f64) -> f64 {
    if distance >= width { distance - 0.5 * width } else { distance * distance / (2.0 * width) }
}
