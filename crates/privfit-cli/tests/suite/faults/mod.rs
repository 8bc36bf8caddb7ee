//! Faults on purpose: processes ended at every system call, calls that fail, disks that lose power, files with flipped bits.
//! What must hold throughout: nothing is released that is not written down as spent.
//!
//! Every run of the tests takes samples: 4,000 bits of a ledger, every third call of a holder that is stopped or killed, 100 random kills. A
//! sweep (PRIVFIT_SWEEP=1) takes all of them.

mod checks;
mod damage;
mod disk;
mod failing_calls;
mod history;
mod hostile;
mod kills;
mod power;
mod races;
mod recorder;
mod resumed;
mod scene;
mod server;
mod team;
mod tls;
mod tracer;
mod tracer_works;
