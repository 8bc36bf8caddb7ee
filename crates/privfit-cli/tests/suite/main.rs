//! The command as its users meet it.

mod audit;
mod browser;
mod certificate;
mod comfort;
mod command;
mod dependencies;
mod documents;
mod embeddings;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod faults;
mod gallery;
mod guide;
mod harness;
mod house;
mod labels;
mod leak;
mod ledger;
mod memory;
mod pictures;
mod pretrain;
mod report;
mod same_bytes;
mod tuning;
mod wrong_inputs;
