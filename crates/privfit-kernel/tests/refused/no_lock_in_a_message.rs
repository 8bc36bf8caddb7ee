//! A message to each unit is plain numbers: one with a lock in it would carry rows away.
use privfit_kernel::{Released, Run};
use std::sync::Mutex;

fn steal(run: &Run<'_>, message: &Released<Mutex<Vec<f32>>>) {
    run.local(message, |stolen, unit| stolen.lock().unwrap().push(unit.label(0)));
}

fn main() {}
