//! Settings as `--set KEY=NUMBER`.

use crate::ui::Failure;
use privfit::method::Settings;
use std::collections::BTreeMap;

/// Reads them; one that is given twice is an error.
pub(crate) fn settings(set: &[String]) -> Result<Settings, Failure> {
    let mut out = BTreeMap::new();
    for pair in set {
        let parsed = pair.split_once('=').and_then(|(k, v)| v.parse::<f64>().ok().map(|v| (k, v)));
        let Some((key, value)) = parsed.filter(|p| p.1.is_finite()) else {
            return Err(Failure::misuse(format!("--set {pair}: give KEY=NUMBER, like steps=200")));
        };
        if out.insert(key.replace('-', "_"), value).is_some() {
            return Err(Failure::misuse(format!("--set {key} is given twice: remove one of them")));
        }
    }
    Ok(Settings(out))
}
