//! The verdict of a verification, for people and for programs.

use super::{Failure, Format, print_line};
use privfit::Error;
use privfit::foreign::one_line;
use privfit::verify::{Answer, Verdict};

/// As JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(value).map_err(|_| Failure(Error::damaged("the certificate can't be written as JSON: fetch it again")))
}

/// Prints the verdict and its checks; a refusal if one does not hold, or was not made and that is not allowed.
pub(crate) fn say(verdict: Verdict, what: &str, allow_unchecked: bool, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => {
            let object = serde_json::json!({
                "verdict": verdict.answer(), "holds": verdict.holds(), "checks": json(&verdict.checks)?,
            });
            print_line(&object.to_string());
        }
        Format::Text => {
            print_line(&format!("verdict        {}", summary(&verdict)));
            // What is wrong first.
            let order = [Answer::DoesNotHold, Answer::NotChecked, Answer::Holds, Answer::Declared];
            for check in order.iter().flat_map(|a| verdict.checks.iter().filter(move |c| c.answer == *a)) {
                print_line(&format!("{:<14} {:<26} {}", check.answer.text(), one_line(&check.name), one_line(&check.text)));
            }
        }
    }
    Ok(verdict.accept(what, allow_unchecked)?)
}

/// The verdict in a line.
fn summary(verdict: &Verdict) -> String {
    let names = |answer| verdict.checks.iter().filter(|c| c.answer == answer).map(|c| one_line(&c.name)).collect::<Vec<_>>();
    let (wrong, open, word) = (names(Answer::DoesNotHold), names(Answer::NotChecked), names(Answer::Declared));
    let declared = if word.is_empty() { String::new() } else { format!("; the publisher's word: {}", word.join(", ")) };
    match verdict.answer() {
        Answer::DoesNotHold => format!("does not hold: {}", wrong.join(", ")),
        Answer::NotChecked => format!("not checked as a whole: {}{declared}", open.join(", ")),
        _ => format!("holds: {} checks{declared}", names(Answer::Holds).len()),
    }
}
