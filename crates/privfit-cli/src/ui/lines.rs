//! Lines that several verbs print.

use privfit::Artifact;
use privfit::foreign::one_line;

/// Columns that a text names at the most.
const NAMED: usize = 20;

/// One line about the columns that the model has, where it does not have all.
pub(crate) fn selected_line(artifact: &Artifact) -> Option<String> {
    let chosen = artifact.selected()?;
    let names = artifact.schema.feature_names();
    let some: Vec<&str> = chosen.iter().take(NAMED).map(|i| names[*i].as_str()).collect();
    let rest = chosen.len().saturating_sub(NAMED);
    let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    Some(format!("{} of {} columns, released information: {}{more}", chosen.len(), names.len(), one_line(&some.join(", "))))
}

/// What is guaranteed, both ways.
pub(crate) fn guarantee_line(zero: Option<f64>, replace: Option<f64>, delta: f64) -> String {
    let text = |e: Option<f64>| e.map_or("infinite".into(), privfit::certificate::round_up);
    let delta = if delta == 0.0 { "0".to_string() } else { format!("{delta:e}") };
    format!("epsilon {} under zero-out, {} under replace-one, at delta {delta}", text(zero), text(replace))
}
