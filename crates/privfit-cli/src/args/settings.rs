//! Settings as `--set KEY=VALUE`.

use crate::ui::Failure;
use privfit::error::Error;
use privfit::method::Settings;

/// Reads them; one that is given twice is an error.
pub(crate) fn settings(set: &[String]) -> Result<Settings, Failure> {
    let mut out = Settings::default();
    for pair in set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Failure::misuse(format!("--set {pair}: give KEY=VALUE, like steps=200")));
        };
        out.set(key, value).map_err(|e: Error| e.after("--set: "))?;
    }
    Ok(out)
}
