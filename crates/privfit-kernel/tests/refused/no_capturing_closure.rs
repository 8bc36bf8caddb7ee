//! A contribution cannot capture a place to put rows in.
use privfit_kernel::Contribution;
use std::sync::Mutex;

fn main() {
    let stolen = Mutex::new(Vec::new());
    let _ = Contribution {
        name: "thief",
        dimension: 1,
        parameters: vec![],
        add: |_, unit, _, _| stolen.lock().unwrap().push(unit.label(0)),
    };
}
