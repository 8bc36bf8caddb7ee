//! A fuzz of the accountant against truths found by other means: closed forms in 400 bits, enumeration, contour integrals.
//!
//! Every run makes a thousand requests, a sweep (PRIVFIT_SWEEP=1) makes twenty thousand others.

mod big;
mod contour;
mod requests;

use privfit_account::{Adjacency, Answer, Event, Target, calibrate_bounds, delta, epsilon};
use requests::{Case, Dice, Question, draw};
use std::collections::BTreeMap;

/// Processor seconds of this thread.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, which lives long enough.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

fn ask(case: &Case) -> privfit_account::Result<Answer> {
    match case.question {
        Question::Epsilon(d) => epsilon(&case.event, case.adjacency, d),
        Question::Delta(e) => delta(&case.event, case.adjacency, e),
    }
}

/// Whether the answer was checked, or what is wrong with it.
fn check(case: &Case, answer: &Answer) -> Result<bool, String> {
    let (lower, upper) = (answer.bound.lower, answer.bound.upper);
    if !(lower >= 0.0 && upper >= lower) {
        return Err(format!("no enclosure: {lower} .. {upper}"));
    }
    match case.question {
        Question::Delta(e) => {
            let Some((least, most)) = (case.truth)(e) else { return Ok(false) };
            if upper < least {
                return Err(format!("delta at {e} is at least {least:e}, the upper bound says {upper:e}"));
            }
            if lower > most {
                return Err(format!("delta at {e} is at most {most:e}, the lower bound says {lower:e}"));
            }
        }
        Question::Epsilon(d) => {
            let Some((least, _)) = (case.truth)(if upper > 0.0 { upper } else { 1e-300 }) else { return Ok(false) };
            if least > d {
                return Err(format!("delta at the upper bound {upper} is at least {least:e}, not {d:e}"));
            }
            if lower > 0.0 {
                let Some((_, most)) = (case.truth)(lower) else { return Ok(false) };
                if most < d {
                    return Err(format!("delta at the lower bound {lower} is at most {most:e}, not {d:e}"));
                }
            }
        }
    }
    Ok(true)
}

/// No upper bound is below the truth, no lower bound above it; nearly every answer has a lower bound, and they lie close together.
#[test]
fn answers_enclose_the_truth() {
    let (requests, seed) = if std::env::var_os("PRIVFIT_SWEEP").is_some() { (20_000, 5) } else { (1000, 1) };
    let mut dice = Dice(seed);
    let (mut gaps, mut without, mut unchecked, mut refused) = (Vec::new(), 0, 0, 0);
    let mut families: BTreeMap<&str, (u64, u64, u64, f64, f64)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for i in 0..requests {
        let case = draw(&mut dice);
        let start = processor_seconds();
        let answer = ask(&case);
        let time = processor_seconds() - start;
        let entry = families.entry(case.family).or_default();
        entry.0 += 1;
        if time > entry.3 {
            entry.3 = time;
        }
        let describe = || format!("request {i}, {}: {:?} {} {:?}", case.family, case.question, case.adjacency, case.event);
        if time > 2.0 {
            println!("{time:.1} processor seconds: {}", describe());
        }
        let answer = match answer {
            Ok(answer) => answer,
            // An infinite loss of more than delta has no finite epsilon; nothing else may be refused.
            Err(_) if matches!(case.question, Question::Epsilon(d) if (case.truth)(1e3).is_some_and(|t| t.1 > d)) => {
                refused += 1;
                continue;
            }
            Err(error) => {
                wrong.push(format!("{error}\n  {}", describe()));
                continue;
            }
        };
        match check(&case, &answer) {
            Ok(true) => {}
            Ok(false) => {
                unchecked += 1;
                entry.2 += 1;
            }
            Err(problem) => wrong.push(format!("{problem} ({})\n  {}", answer.accountant, describe())),
        }
        // Answers that are 0 or below what doubles can tell apart need no enclosure.
        if answer.bound.upper > 1e-290 {
            if answer.bound.lower > 0.0 {
                let gap = 1.0 - answer.bound.lower / answer.bound.upper;
                gaps.push(gap);
                entry.4 = entry.4.max(gap);
                if gap > 0.01 {
                    println!("a gap of {:.2} %: {}", 100.0 * gap, describe());
                }
            } else {
                without += 1;
                entry.1 += 1;
            }
        }
    }
    gaps.sort_by(f64::total_cmp);
    let at = |share: f64| gaps[((gaps.len() - 1) as f64 * share) as usize];
    println!("{:<24}{:>8}{:>12}{:>12}{:>12}{:>12}", "family", "asked", "no lower", "unchecked", "slowest s", "largest gap");
    for (name, (count, none, open, slowest, gap)) in &families {
        println!("{name:<24}{count:>8}{none:>12}{open:>12}{slowest:>12.3}{gap:>12.6}");
    }
    let share = gaps.len() as f64 / (gaps.len() + without) as f64;
    println!("{requests} requests, {refused} without a finite answer, {unchecked} unchecked");
    println!(
        "lower bounds: {:.1} %; gap: median {:.4} %, 99th percentile {:.3} %",
        100.0 * share,
        100.0 * at(0.5),
        100.0 * at(0.99)
    );
    assert!(wrong.is_empty(), "{} of {requests} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(unchecked * 20 < requests, "{unchecked} answers could not be checked");
    assert!(share >= 0.9 && at(0.5) <= 5e-4 && at(0.99) <= 1e-2, "{share} {} {}", at(0.5), at(0.99));
}

/// Noise that was found meets its target by the closed form, and the lower end misses it.
#[test]
fn noise_meets_its_target() {
    let mut dice = Dice(7);
    for _ in 0..60 {
        let target = Target { epsilon: dice.between(1e-2, 100.0), delta: dice.between(1e-40, 1e-2) };
        let found = calibrate_bounds::<privfit_account::Error>(target, |x| Ok(Event::gaussian(x)), Adjacency::ZeroOut).unwrap();
        let at = |noise: f64| big::around(&big::gaussian(&big::big(target.epsilon), &(big::big(1.0) / big::big(noise))));
        assert!(at(found.upper).0 <= target.delta, "{target:?} {found:?} {:?}", at(found.upper));
        assert!(at(found.lower).1 > target.delta && found.lower > 0.999 * found.upper, "{target:?} {found:?}");
    }
}
