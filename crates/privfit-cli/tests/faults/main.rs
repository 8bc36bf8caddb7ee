//! Faults on purpose: processes ended at every system call, calls that fail, disks that lose power, files with flipped bits.
//! What must hold throughout: nothing is released that is not written down as spent.
//!
//! Longer runs by environment variables, each with what every run of the tests has: PRIVFIT_KILLS (150 random kills, PRIVFIT_SEED for
//! others), PRIVFIT_RETRIES (300), PRIVFIT_BITS (20000 flipped bits of a ledger, 0 for every one), PRIVFIT_LOG_BITS (2000 of its log),
//! PRIVFIT_REQUESTS (20 by each of 64 processes, with a server).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

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
mod scene;
mod server;
mod team;
mod tls;
mod tracer;
mod tracer_works;
