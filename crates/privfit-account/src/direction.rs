//! Certified bounds for one direction of a composition: choose a grid, tilt, compose, read, and refine until the two bounds meet.

use super::Bound;
use super::checked::at_least;
use super::compose::{Beside, Composed, Question, compose, saddle};
use super::discretise::{Focus, Masses, NUDGE, chords, grid, spread, tangents};
use super::profile::Profile;

/// Relative width aimed at between the two bounds on epsilon.
const TARGET_GAP: f64 = 2e-4;
/// The same where a transform would become long.
const ENOUGH: f64 = 6e-4;
/// Cells of a transform that takes less than a millisecond, and of one that takes tens of them.
const COMFORTABLE: f64 = 24_000.0;
const LONG: f64 = 100_000.0;
/// Cells of all transforms together after which no finer grid is tried.
const WORK: usize = 1 << 20;
/// Relative width aimed at between the two bounds on delta.
const TARGET_GAP_DELTA: f64 = 2e-3;

/// Beyond this e^loss is no straight line across a cell, and errors are not of second order.
const WIDEST: f64 = 0.2;

/// A pair and how often it happens.
pub(super) type Listed<'a> = (&'a dyn Profile, u64);

/// How much is asked for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Effort {
    /// Both bounds, close together.
    Both,
    /// The upper bound only.
    Upper,
    /// An upper bound for a comparison.
    Coarse,
}

/// Bounds for one direction.
pub(super) fn direction(list: &[Listed<'_>], beside: Beside<'_>, question: Question, effort: Effort) -> Bound {
    bounds(list, beside, question, effort, &mut Vec::new())
}

/// Composes for a question and keeps the pessimistic distributions, which answer other questions as well.
pub(super) fn keep(list: &[Listed<'_>], question: Question, kept: &mut Vec<Composed>) {
    bounds(list, Beside::default(), question, Effort::Upper, kept);
}

/// A width of at most the given one, such that the atoms lie on its multiples or just above: a loss that is better, and on the grid, has to go
/// down to the next multiple, at every step.
fn aligned(width: f64, atoms: &[(f64, f64)]) -> f64 {
    let Some(&(first, _)) = atoms.iter().max_by(|a, b| (a.0 * a.1).total_cmp(&(b.0 * b.1))) else { return width };
    let least = (first / width).ceil();
    let off = |width: f64| -> f64 {
        atoms.iter().map(|(atom, count)| count * (atom / width - (atom / width + 1e-9).floor()) * width).sum()
    };
    let tries = if atoms.len() == 1 { 1 } else { 400.min(1 + least as u64) };
    (0..tries).map(|i| first / (least + i as f64)).min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(width)
}

fn bounds(list: &[Listed<'_>], beside: Beside<'_>, question: Question, effort: Effort, kept: &mut Vec<Composed>) -> Bound {
    let lower_too = effort == Effort::Both;
    if list.is_empty() {
        let nothing = Composed::nothing();
        let read = |upper| nothing.answer_beside(beside, question, 1.0, upper);
        return Bound { lower: if lower_too { read(false) } else { 0.0 }, upper: read(true) };
    }
    let steps: f64 = list.iter().map(|c| c.1 as f64).sum();
    // Losses above the last grid point count as infinite: together far below the delta in question.
    let mut tail = match question {
        Question::Epsilon { delta } => 1e-6 * delta / steps,
        Question::Delta { .. } => 1e-18 / steps,
    };
    let square: f64 = list.iter().map(|(p, c)| *c as f64 * spread(*p).powi(2)).sum();
    let mut width = (square / steps).sqrt() / 24.0;
    if !(width > 1e-15 && width < 1e6) {
        return Bound { lower: 0.0, upper: f64::INFINITY };
    }
    let mut focus = vec![Focus::default(); list.len()];
    let mut best = Bound { lower: 0.0, upper: f64::INFINITY };
    let atoms: Vec<(f64, f64)> = list.iter().filter_map(|(p, c)| p.atom().map(|a| (a, *c as f64))).collect();
    let (mut cells, mut coarser, mut known) = (0, false, None);
    for round in 0..12 {
        width = aligned(width, &atoms);
        let points: Vec<Vec<i64>> = list.iter().zip(&focus).map(|((p, _), f)| grid(*p, width, f, tail)).collect();
        let worse: Vec<(Masses, u64)> = list.iter().zip(&points).map(|((p, c), g)| (chords(*p, g, width), *c)).collect();
        // Losses whose exponentials do not fit in a double: another accountant must answer.
        let usable = |m: &Masses| {
            let total: f64 = m.mass.iter().sum::<f64>() + m.infinite;
            m.index.last().is_some_and(|k| width * (*k as f64) < 600.0) && (total - 1.0).abs() < 1e-6
        };
        if !worse.iter().all(|(m, _)| usable(m)) {
            break;
        }
        let widest = worse.iter().flat_map(|(m, _)| [m.index[0], m.index[m.index.len() - 1]]).map(i64::unsigned_abs).max();
        let largest = (600.0 / (width * widest.unwrap_or(1).max(1) as f64)).max(1e-3);
        let tilt = saddle(&worse, width, question, largest, beside, known);
        let theta = tilt.theta;
        focus = worse.iter().map(|(m, _)| Focus { theta, log_moment: m.cumulant(theta, width).0 }).collect();
        // The tail is charged relative to the answer, however small that is.
        let charged = (1e-6 * tilt.log_delta.exp() / steps).max(1e-100);
        if matches!(question, Question::Delta { .. }) && charged < 0.1 * tail && round < 4 {
            tail = charged;
            continue;
        }
        // Second-order error of the grid: the variance grows by width^2/6 a step above and shrinks by half of it below.
        let error = 0.125 * tilt.slope * steps * width * width;
        let aim = match question {
            Question::Epsilon { .. } => TARGET_GAP * tilt.epsilon.max(1e-7),
            Question::Delta { .. } => TARGET_GAP_DELTA / tilt.slope,
        };
        let aim = if effort == Effort::Coarse { 30.0 * aim } else { aim };
        if round == 0 || (error > 16.0 * aim && round < 6 && !coarser) {
            let tight = width * (aim / error).sqrt();
            // Short transforms cost nothing, so they may as well be finer; long ones stop at a gap that is good enough.
            let comfortable = if lower_too && beside.mu == 0.0 { tilt.length / COMFORTABLE } else { f64::INFINITY };
            let enough = (width * (ENOUGH / TARGET_GAP * aim / error).sqrt()).min(tilt.length / LONG);
            width = tight.min(comfortable).max(enough).max(width * 1e-3).min(WIDEST);
            if beside.mu > 0.0 {
                // The Gaussian allows a coarse grid; the tangents of the rest do not.
                width = width.min((square / steps).sqrt() / 8.0);
            }
            continue;
        }
        let Some(above) = compose(&worse, &tilt, width) else {
            // Too long a transform: a coarser grid still gives a bound.
            if best.upper.is_finite() || round > 9 {
                break;
            }
            (width, coarser) = (2.0 * width, true);
            continue;
        };
        let read = |c: &Composed, question: Question, upper: bool| c.answer_beside(beside, question, tilt.epsilon, upper);
        let upper = read(&above, question, true);
        let lower = if lower_too {
            let better: Vec<(Masses, u64)> =
                list.iter().zip(&points).map(|((p, c), g)| (tangents(*p, g, width, theta), *c)).collect();
            // Its losses are lower than the grid says by the nudge of every step.
            let empty = better.iter().any(|(m, _)| m.index.is_empty() || m.mass.iter().any(|x| x.is_nan()));
            match question {
                _ if empty => 0.0,
                Question::Epsilon { .. } => {
                    compose(&better, &tilt, width).map_or(0.0, |c| at_least(read(&c, question, false) - steps * NUDGE))
                }
                Question::Delta { epsilon } => {
                    let question = Question::Delta { epsilon: epsilon + steps * NUDGE };
                    compose(&better, &tilt, width).map_or(0.0, |c| read(&c, question, false))
                }
            }
        } else {
            0.0
        };
        best = Bound {
            lower: if lower > best.lower { lower } else { best.lower },
            upper: super::checked::smaller(best.upper, upper),
        };
        let length = above.mass.len();
        kept.push(above);
        // An answer far from the estimate: the tilt, and the charge for what lies outside, were made for another question.
        let off = match question {
            Question::Epsilon { .. } => (tilt.epsilon - upper).abs() * tilt.slope,
            Question::Delta { .. } => (tilt.log_delta - upper.ln()).abs(),
        };
        if off > 1.0 && effort != Effort::Coarse && known.is_none() && upper.is_finite() && upper > 0.0 {
            known = Some(upper);
            continue;
        }
        if !lower_too {
            break;
        }
        let gap = (best.upper - best.lower) / best.upper;
        let wanted = match question {
            Question::Epsilon { .. } if length as f64 > 0.7 * LONG => ENOUGH,
            Question::Epsilon { .. } => TARGET_GAP,
            Question::Delta { .. } => TARGET_GAP_DELTA,
        };
        cells += 2 * length + 20 * points.iter().map(Vec::len).sum::<usize>();
        if !(gap > 2.0 * wanted) || cells > WORK {
            break;
        }
        width *= (1.5 * wanted / gap).sqrt().clamp(0.1, 0.8);
    }
    best
}
