//! Flags, files and job files on their way to the library: parsed, then resolved.

pub(crate) mod files;
pub(crate) mod fit;
pub(crate) mod ledger;
pub(crate) mod point;
pub(crate) mod pretrain;
pub(crate) mod settings;
pub(crate) mod size;
pub(crate) mod table;
