//! `privfit-bench factors`: sensitivity and error of factors of correlated noise, for a comparison with other programs.

use crate::{Failure, print_line};
use privfit::account::{Factor, Participation};
use serde_json::json;

pub(crate) fn run(steps: &[u64], bands: &[usize], separations: &[u64], decays: &[f64]) -> Result<(), Failure> {
    let roots = bands.iter().map(|b| Ok((json!({"bands": b}), Factor::inverse_square_root(*b))));
    let geometric = decays.iter().map(|d| Ok((json!({"decay": d}), Factor::geometric(*d)?)));
    for factor in roots.chain(geometric) {
        let (name, factor): (serde_json::Value, Factor) =
            factor.map_err(|e: privfit::account::Error| Failure::misuse(e.to_string()))?;
        for steps in steps {
            for separation in separations.iter().filter(|s| *s <= steps) {
                let pattern = Participation::epochs(*steps, *separation);
                let out = json!({
                    "factor": name, "steps": steps, "separation": separation, "times": pattern.times,
                    "sensitivity": pattern.sensitivity(&factor)?, "error": factor.prefix_error(*steps)?,
                });
                print_line(&out.to_string());
            }
        }
    }
    Ok(())
}
