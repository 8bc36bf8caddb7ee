//! What an audit recorded stays inside: distances come out, values do not.

use privfit_kernel::Transcript;

fn read(tape: &Transcript) -> usize {
    tape.points.len()
}

fn main() {}
