//! `privfit-bench account`: certified epsilon of five well-known settings, with processor time and memory.

use crate::measure::{peak_memory, timed};
use crate::{Failure, print_line};
use privfit::account::{Adjacency, Event, epsilon};
use serde_json::json;

/// Sampling rate, noise multiplier, steps, delta.
const SETTINGS: [(&str, f64, f64, u64, f64); 5] = [
    ("mnist60ep", 256.0 / 60000.0, 1.1, 14063, 1e-5),
    ("abadi", 0.01, 4.0, 10000, 1e-5),
    ("tinyq", 1e-4, 0.8, 1_000_000, 1e-8),
    ("largebatch", 0.2, 10.0, 2000, 1e-6),
    ("gauss", 1.0, 50.0, 1000, 1e-6),
];

pub(crate) fn run(repeats: usize, only: Option<&str>) -> Result<(), Failure> {
    if let Some(name) = only
        && !SETTINGS.iter().any(|s| s.0 == name)
    {
        return Err(Failure::misuse(format!(
            "the setting {name:?} is unknown: use mnist60ep, abadi, tinyq, largebatch or gauss"
        )));
    }
    for (name, rate, noise, steps, delta) in SETTINGS.iter().filter(|s| only.is_none_or(|o| o == s.0)) {
        let event = Event::gaussian(*noise).sampled(*rate).repeated(*steps);
        let (mut best, mut answer) = (f64::INFINITY, None);
        for _ in 0..repeats {
            let (result, seconds) = timed(|| epsilon(&event, Adjacency::AddRemove, *delta));
            best = best.min(seconds);
            answer = Some(result?);
        }
        let Some(answer) = answer else { continue };
        let (lower, upper) = (answer.bound.lower, answer.bound.upper);
        let out = json!({
            "bench": "accounting", "peer": "privfit", "setting": name, "eps": upper, "lower": lower, "upper": upper,
            "relative_gap": (upper - lower) / upper, "accountant": answer.accountant,
            "cpu_s": best, "rss_mb": peak_memory(), "repeats": repeats,
        });
        print_line(&out.to_string());
    }
    Ok(())
}
