//! Answers that were given before. A plan is made again where it is verified, compared or resumed, and accounting for the same events is nearly all of the time that takes. An answer is
//! a function of its question and nothing else: asked again, it is the same to the bit.

use super::Answer;
use super::adjacency::Adjacency;
use super::event::Event;
use crate::error::Result;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Answers that are kept; one more, and all are forgotten.
const MOST: usize = 4096;
/// Longest event that is kept, as text.
const LONGEST: usize = 1 << 14;

/// What was asked: which function, the event as text (which has every digit of its numbers), and epsilon or delta.
type Question = (&'static str, String, Adjacency, u64);

static ANSWERS: LazyLock<Mutex<HashMap<Question, Answer>>> = LazyLock::new(Mutex::default);

/// The answer to a question that was asked before, or a new one. Errors, and answers in closed form, are made anew.
pub(crate) fn remembered(
    function: &'static str,
    event: &Event,
    adjacency: Adjacency,
    number: f64,
    compute: impl FnOnce() -> Result<Answer>,
) -> Result<Answer> {
    if matches!(event, Event::Gaussian { .. } | Event::DiscreteGaussian { .. }) {
        return compute();
    }
    let text = format!("{event:?}");
    if text.len() > LONGEST {
        return compute();
    }
    let question = (function, text, adjacency, number.to_bits());
    let answers = || ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(answer) = answers().get(&question) {
        return Ok(*answer);
    }
    let answer = compute()?;
    let mut answers = answers();
    if answers.len() >= MOST {
        answers.clear();
    }
    answers.insert(question, answer);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bound;

    fn answer(upper: f64) -> Answer {
        Answer { bound: Bound { lower: 0.0, upper }, accountant: "test" }
    }

    /// The first answer stays, for the same question alone: function, event to the last digit, adjacency and number; errors do not stay.
    #[test]
    fn questions_are_told_apart() {
        let event = |sigma: f64| Event::gaussian(sigma).repeated(2);
        let ask = |function, sigma, adjacency, number, upper| {
            remembered(function, &event(sigma), adjacency, number, || Ok(answer(upper))).unwrap().bound.upper
        };
        let (zero, one) = (Adjacency::ZeroOut, 1.25);
        assert!(remembered("a", &event(one), zero, 0.5, || Err(crate::Error::unsupported("this", "nothing"))).is_err());
        assert_eq!(ask("a", one, zero, 0.5, 1.0), 1.0);
        assert_eq!(ask("a", one, zero, 0.5, 2.0), 1.0);
        assert_eq!(ask("b", one, zero, 0.5, 3.0), 3.0);
        assert_eq!(ask("a", one.next_up(), zero, 0.5, 4.0), 4.0);
        assert_eq!(ask("a", one, Adjacency::ReplaceOne, 0.5, 5.0), 5.0);
        assert_eq!(ask("a", one, zero, 0.5f64.next_up(), 6.0), 6.0);
    }
}
