//! A unit cannot be kept beyond the call that it was lent for.
use privfit_kernel::{UnitRandomness, Sink, Unit};
use std::sync::Mutex;

static KEPT: Mutex<Vec<Unit<'static>>> = Mutex::new(Vec::new());

fn add(_: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, _: &mut Sink<'_>) {
    KEPT.lock().unwrap().push(unit);
}

fn main() {}
