//! A released model in the units of its columns.

use privfit::Artifact;
use privfit::data::decode::Decoder;
use privfit::schema::TargetValues;

/// Bounds of the target, if it is a number.
pub(crate) fn bounds(artifact: &Artifact) -> Option<(f64, f64)> {
    match artifact.schema.target.values {
        TargetValues::Bounds(low, high) => Some((low, high)),
        _ => None,
    }
}

/// The released point in the units of the columns.
pub(crate) fn located(artifact: &Artifact) -> Vec<(String, f64)> {
    let decoder = Decoder::new(&artifact.schema);
    let cells = decoder.names().iter().zip(&artifact.model.weights()[0]).enumerate();
    cells.map(|(j, (name, x))| (name.clone(), decoder.value(j, *x))).collect()
}
