//! The verbs, one file each. None imports another.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod certificate;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod label;
pub(crate) mod ledger;
pub(crate) mod manual;
pub(crate) mod methods;
pub(crate) mod model;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod schema;
pub(crate) mod tune;
